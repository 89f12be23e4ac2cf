"""The gallery's grasp in MuJoCo: the same hand from the same MJCF, a ball, a floor, and the same forces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import mujoco
import numpy as np

from pliant.formats import to_mjcf
from pliant.gallery import worlds
from pliant.statics import equilibrium

__all__ = ["FEW", "SETTINGS", "Grasp", "Setting"]

GRIP, FRICTION, LIFT = 4.0, 0.8, 3000.0  # as `worlds.grasp` has them
mujoco.set_mju_user_warning(lambda text: None)  # `Grasp.failed` looks at the counters


@dataclass(frozen=True)
class Setting:
    """Of MuJoCo's solver."""

    integrator: str
    cone: str
    impratio: float
    noslip: int

    def __str__(self) -> str:
        return f"{self.integrator}, {self.cone}, impratio {self.impratio:g}, noslip {self.noslip}"


_INTEGRATORS = tuple(
    name
    for name in ("Euler", "implicit", "implicitfast", "RK4", "discrete")
    if hasattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}")
)
SETTINGS = tuple(
    Setting(*s) for s in product(_INTEGRATORS, ("elliptic", "pyramidal"), (1, 10, 100, 1000), (0, 5, 20))
)
# For the quick run: those that came out first in the whole scan, and their like.
FEW = tuple(
    Setting(*s) for s in product(("implicitfast", "discrete"), ("elliptic", "pyramidal"), (10,), (0, 20))
)


class Grasp:
    """The scene at a step and a setting; contacts are as soft as MuJoCo has them, or as good as rigid."""

    def __init__(self, h: float, setting: Setting, rigid: bool = False):
        self.h, m = h, worlds.lifting_hand()
        spec = mujoco.MjSpec.from_string(to_mjcf(m))
        o = spec.option
        o.timestep, o.gravity = h, [0, 0, -9.81]
        o.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{setting.integrator.upper()}")
        o.cone = getattr(mujoco.mjtCone, f"mjCONE_{setting.cone.upper()}")
        o.impratio, o.noslip_iterations = setting.impratio, setting.noslip
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.3, 0.3, 0.1])
        ball = spec.worldbody.add_body(name="ball", pos=[0, 0, 0.03])
        ball.add_freejoint()
        ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.03, 0, 0], mass=0.1)
        for geom in spec.geoms:
            geom.friction, geom.condim = [FRICTION, 0.005, 0.0001], 3
            # Links of the hand touch ball and floor, not each other.
            kind = {"world": (2, 3), "ball": (4, 7)}.get(geom.parent.name, (1, 6))
            geom.contype, geom.conaffinity = kind
            if rigid:
                geom.solref[0], geom.solimp[:2] = 0.002, (0.99, 0.999)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        for name, value in zip(m.joint_names, _rest(), strict=True):
            self.data.qpos[self.model.joint(name).qposadr[0]] = value
        self._tips = [self.model.body(f"finger{f + 1}_tip").id for f in range(3)]
        self._palm, self._ball = self.model.body("palm").id, self.model.body("ball").id

    def run(self, seconds: float) -> None:
        """Forces close the hand, and after a second lift it."""
        for _ in range(round(seconds / self.h)):
            self._push(min(max(self.data.time - 1.0, 0.0), 1.0))
            mujoco.mj_step(self.model, self.data)

    def _push(self, lifted: float) -> None:
        data = self.data
        for f, tip in enumerate(self._tips):
            angle = 2 * math.pi * f / 3
            force = np.array([-GRIP * math.cos(angle), -GRIP * math.sin(angle), 0.0])
            data.xfrc_applied[tip, :3] = force  # pliant's act at the origin, these at the centre of mass
            data.xfrc_applied[tip, 3:] = np.cross(data.xpos[tip] - data.xipos[tip], force)
        data.xfrc_applied[self._palm, 2] = 0.1 * LIFT * lifted

    def step(self, n: int) -> None:
        """n steps in one call, forces as they are."""
        mujoco.mj_step(self.model, self.data, nstep=n)

    @property
    def failed(self) -> bool:
        """Whether it warned or left the finite numbers."""
        return bool(self.data.warning.number.any()) or not bool(np.isfinite(self.data.qpos).all())

    @property
    def ball(self) -> np.ndarray:
        return self.data.xpos[self._ball].copy()

    @property
    def palm(self) -> np.ndarray:
        return self.data.xpos[self._palm].copy()

    @property
    def squeeze(self) -> float:
        """Normal forces on the ball, N, summed."""
        out, force = 0.0, np.zeros(6)
        for i in range(self.data.ncon):
            mujoco.mj_contactForce(self.model, self.data, i, force)
            out += force[0]
        return float(out)


def _rest() -> list[float]:
    """Joint coordinates of the open hand under its weight."""
    return equilibrium(worlds.lifting_hand(), gravity=(0, 0, -9.81)).q.tolist()
