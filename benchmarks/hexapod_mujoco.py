"""The gallery's hexapod in MuJoCo: the same MJCF on the same ground, driven by the torques of the same gait."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from time import perf_counter

import mujoco
import numpy as np

from pliant.engines.reduced import reduce
from pliant.formats import to_mjcf
from pliant.gallery import worlds
from pliant.gallery.robots import hexapod
from pliant.gallery.worlds import walking

__all__ = ["FEW", "SETTINGS", "Setting", "Walk"]

FRICTION, STRIDE, PERIOD, ROUGHNESS = 0.8, 0.06, 0.8, 0.02  # as `worlds.hexapod` has them
mujoco.set_mju_user_warning(lambda text: None)  # `Walk.failed` looks at the counters


@dataclass(frozen=True)
class Setting:
    """Of MuJoCo's solver."""

    integrator: str
    cone: str
    impratio: float

    def __str__(self) -> str:
        return f"{self.integrator}, {self.cone}, impratio {self.impratio:g}"


_INTEGRATORS = tuple(
    name
    for name in ("Euler", "implicit", "implicitfast", "RK4", "discrete")
    if hasattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}")
)
SETTINGS = tuple(Setting(*s) for s in product(_INTEGRATORS, ("elliptic", "pyramidal"), (1, 10, 100)))
FEW = tuple(Setting(*s) for s in product(("implicitfast", "discrete"), ("pyramidal", "elliptic"), (10,)))


class Walk:
    """The scene at a step and a setting; the gait is that of `worlds.hexapod`, as torques in the joints."""

    def __init__(self, h: float, setting: Setting, walks: bool = True, rigid: bool = False):
        self.h = h
        m = hexapod()
        start = worlds.hexapod().world.pose("hexapod/body") - m.reference_poses[m.body_index("body")]
        m = m.with_pose({"base": (*start[:3, 3].tolist(), 1.0, 0.0, 0.0, 0.0)})
        legs = reduce(m)
        self._torques, self._walks = walking.gait(legs, STRIDE, PERIOD), walks
        spec = mujoco.MjSpec.from_string(to_mjcf(m))
        o = spec.option
        o.timestep, o.gravity = h, [0, 0, -9.81]
        o.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{setting.integrator.upper()}")
        o.cone = getattr(mujoco.mjtCone, f"mjCONE_{setting.cone.upper()}")
        o.impratio = setting.impratio
        _ground(spec)
        for geom in spec.geoms:
            geom.friction, geom.condim = [FRICTION, 0.005, 0.0001], 3
            geom.contype, geom.conaffinity = (1, 2) if geom.parent.name == "world" else (2, 1)
            if rigid:
                geom.solref[0], geom.solimp[:2] = 0.002, (0.99, 0.999)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        names = legs.mechanism.dof_names
        self._dofs = np.array([self.model.joint(name).dofadr[0] for name in names])
        self._body = self.model.body("body").id

    def run(self, seconds: float) -> None:
        self.timed(seconds)

    def timed(self, seconds: float) -> float:
        """Advance; how long the steps took, without what drives them. Standing, it is one call."""
        n = round(seconds / self.h)
        if not self._walks:
            start = perf_counter()
            mujoco.mj_step(self.model, self.data, nstep=n)
            return perf_counter() - start
        took, driven = 0.0, [self._torques(self.data.time + (k + 0.5) * self.h) for k in range(n)]
        for torque in driven:
            self.data.qfrc_applied[self._dofs] = torque
            start = perf_counter()
            mujoco.mj_step(self.model, self.data)
            took += perf_counter() - start
        return took

    @property
    def failed(self) -> bool:
        return bool(self.data.warning.number.any()) or not bool(np.isfinite(self.data.qpos).all())

    @property
    def place(self) -> np.ndarray:
        """Of the body."""
        return self.data.xpos[self._body].copy()


def _ground(spec: mujoco.MjSpec) -> None:
    shape = walking._ground(ROUGHNESS, 0)
    assert shape.mesh is not None  # a height field has one
    heights = shape.mesh.vertices[:, 2]
    columns = len(np.unique(shape.mesh.vertices[:, 0].round(9)))
    top = float(heights.max())
    spec.add_hfield(
        name="ground",
        nrow=len(heights) // columns,
        ncol=columns,
        size=[shape.size[0], shape.size[1], top, shape.size[2]],
        userdata=(heights / top).astype(np.float32),
    )
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="ground")
