"""MuJoCo: the chain, pushed mechanisms, integration to rest, a closed loop, and the gallery's scenes with contact.

Many steps are one call. Integrators that diverge are tried on purpose: warnings are counted, not printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from time import perf_counter, process_time

import mujoco
import numpy as np

import pliant
from pliant import scenes
from pliant.gallery import robots
from pliant.scenes.locomotion import gait

from ..systems import GRAVITY, STEP, Chain, Floats, Pushed
from . import ChainRun as _ChainRun

__all__ = [
    "GRASP_SETTINGS",
    "INTEGRATORS",
    "QUICK_GRASP_SETTINGS",
    "QUICK_WALK_SETTINGS",
    "WALK_SETTINGS",
    "ChainRun",
    "Grasp",
    "PushedEnds",
    "PushedLoops",
    "PushedMechanism",
    "Relaxation",
    "Setting",
    "Walk",
    "swing_loop",
]

INTEGRATORS = ("Euler", "implicit", "implicitfast", "RK4", "discrete")
QUICK_INTEGRATORS = ("Euler", "implicitfast", "discrete")  # the fastest stable one is always among these
CLOSING = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))  # equalities that close loops
mujoco.set_mju_user_warning(lambda _: None)  # else every warning goes to the screen and into a log file


def _integrator(name: str) -> int:
    return getattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}")


class ChainRun(_ChainRun):
    """Chain in joint coordinates; a cable is of ball joints with springs. The setting is the integrator."""

    SETTINGS = ("RK4", "implicit", "implicitfast", "Euler", "discrete")
    LARGEST = 500

    def __init__(self, system: Chain, h: float, setting: str):
        self.model = _build_chain(system, h, setting)
        self.data = mujoco.MjData(self.model)
        self.data.qvel[:] = system.free_rates
        mujoco.mj_forward(self.model, self.data)

    def step(self, n: int = 1) -> None:
        mujoco.mj_step(self.model, self.data, nstep=n)

    def energy(self) -> tuple[float, float]:
        # A step leaves derived quantities of its beginning behind.
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy[1]), float(self.data.energy[0])

    def tip(self) -> np.ndarray:
        mujoco.mj_kinematics(self.model, self.data)
        return self.data.site_xpos[0].copy()

    def finite(self) -> bool:
        """Whether no number became too large, at which MuJoCo resets its state."""
        warnings = self.data.warning
        bad = (
            mujoco.mjtWarning.mjWARN_BADQPOS,
            mujoco.mjtWarning.mjWARN_BADQVEL,
            mujoco.mjtWarning.mjWARN_BADQACC,
        )
        return bool(np.isfinite(self.data.qpos).all()) and not any(warnings[w].number for w in bad)


def _build_chain(system: Chain, h: float, setting: str) -> mujoco.MjModel:
    """Model of the chain, built without a file: files may be nested 500 bodies deep at most."""
    spec = mujoco.MjSpec()
    spec.compiler.boundmass = spec.compiler.boundinertia = 0.0
    option = spec.option
    option.timestep, option.gravity = h, [0, 0, -GRAVITY]
    option.integrator = _integrator(setting)
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    base = np.empty(4)
    mujoco.mju_mat2Quat(base, system.base.ravel())
    above = spec.worldbody.add_body(quat=base.tolist())
    for i in range(system.links):
        mass, com, inertia = system.inertia(i)
        above = above.add_body(
            pos=[0, 0, -system.length if i else 0.0],
            mass=mass,
            ipos=[0, 0, com],
            inertia=inertia,
            explicitinertial=True,
        )
        if system.kind in ("ball", "cable"):
            ball = above.add_joint(type=mujoco.mjtJoint.mjJNT_BALL)
            if system.kind == "cable":
                ball.stiffness[0] = system.bending
        else:
            for axis, free in zip(np.eye(3), system.free(i), strict=True):
                if free:
                    above.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis)
    above.add_site(pos=[0, 0, -system.length])
    return spec.compile()


def _reset(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Return to rest in the reference pose, which a model of `to_mjcf` keeps as its keyframe."""
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    else:
        mujoco.mj_resetData(model, data)


class PushedMechanism:
    """Mechanism under the push, without contacts and gravity, at a time step."""

    def __init__(self, case: Pushed, h: float = STEP):
        self.case = case
        self.model = mujoco.MjModel.from_xml_string(case.m.to_mjcf())
        self.model.opt.gravity[:] = 0
        self.model.opt.timestep = h
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.data = mujoco.MjData(self.model)
        self.tip = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, case.tip)

    def restart(self, integrator: str) -> None:
        """Return to rest in the reference pose, with the push applied."""
        self.model.opt.integrator = _integrator(integrator)
        _reset(self.model, self.data)
        self.push()

    def push(self, part: float = 1.0) -> None:
        """Apply a part of the force from now on."""
        self.data.xfrc_applied[self.tip, :3] = part * self.case.force

    def step(self, n: int) -> None:
        """Advance by n steps in one call."""
        mujoco.mj_step(self.model, self.data, nstep=n)

    @property
    def displacement(self) -> Floats:
        """Displacement of the pushed body's origin from the reference pose, world axes, m."""
        return self.data.xpos[self.tip] - self.case.m.reference_poses[self.case.index, :3, 3]

    @property
    def warned(self) -> bool:
        """Whether MuJoCo has warned since the restart."""
        return any(warning.number for warning in self.data.warning)

    def seconds(self, integrator: str, n: int) -> float:
        """Processor time of a step: the least of three runs of n steps."""
        times = []
        for _ in range(3):
            self.restart(integrator)
            self.step(1)
            start = process_time()
            self.step(n)
            times.append((process_time() - start) / n)
        return min(times)

    def holds(self, integrator: str, seconds: float = 1.0) -> bool:
        """Whether a run has no warnings, no body farther than two radii, and no more energy than the push's work."""
        self.restart(integrator)
        mujoco.mj_forward(self.model, self.data)
        start = self.data.xipos.copy()
        work = 0.0
        for _ in range(round(50 * seconds)):
            self.step(max(1, round(0.02 / self.model.opt.timestep)))
            mujoco.mj_energyPos(self.model, self.data)
            mujoco.mj_energyVel(self.model, self.data)
            moved = self.data.xipos - start
            far = np.abs(moved).max()
            work = max(work, abs(float(self.case.force @ moved[self.tip])))
            if self.warned or not far < 2 * self.case.m.radius or not self.data.energy.sum() < 1.1 * work:
                return False
        return True

    def fastest(self, quick: bool = False) -> tuple[str | None, list[str]]:
        """Fastest integrator that holds for a second, and the faster ones that do not.

        `quick`: for a tenth of a second, among fewer integrators.
        """
        seconds, among = (0.1, QUICK_INTEGRATORS) if quick else (1.0, INTEGRATORS)
        few = 4 if self.model.nv > 200 else 50
        failed = []
        for name in sorted(among, key=lambda name: self.seconds(name, few)):
            if self.holds(name, seconds):
                return name, failed
            failed.append(name)
        return None, failed


class PushedLoops(PushedMechanism):
    """Mechanism with closed loops under the push; loops are soft constraints. The setting is the integrator."""

    SETTINGS = ("discrete", "implicitfast", "implicit", "Euler")

    def __init__(self, case: Pushed, h: float, setting: str):
        super().__init__(case, h)
        self._bodies = [self.model.body(name).id for name in case.m.body_names]
        self.restart(setting)

    @property
    def failed(self) -> bool:
        """Whether MuJoCo has warned of numbers too large."""
        return self.warned

    def _refresh(self) -> None:
        """Compute positions, velocities and constraints: a step leaves those of its beginning behind."""
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)

    @property
    def origins(self) -> Floats:
        """World positions of all bodies' origins."""
        self._refresh()
        return self.data.xpos[self._bodies].copy()

    @property
    def pushed(self) -> Floats:
        """World position of the point at which the force acts."""
        self._refresh()
        return self.data.xipos[self.tip].copy()

    @property
    def energy(self) -> float:
        """Kinetic and elastic energy, J."""
        self._refresh()
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy.sum())

    @property
    def gap(self) -> float:
        """Largest distance between the two points that a <connect> or <weld> holds together, m."""
        self._refresh()
        data, largest = self.data, 0.0
        rows = np.flatnonzero(data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY))
        for loop in np.flatnonzero(np.isin(self.model.eq_type, CLOSING)):
            apart = data.efc_pos[rows[data.efc_id[rows] == loop][:3]]  # a weld's rotation follows
            largest = max(largest, float(np.linalg.norm(apart)))
        return largest


class PushedEnds:
    """Mechanism under forces on the centres of mass of its end effectors, without contacts and gravity.

    Args:
        m: the mechanism.
        h: time step, s.
        integrator: one of `INTEGRATORS`.
        soft: loops and couplings at MuJoCo's default softness. Otherwise they are as stiff as the time step allows: a
            time constant of two steps (MuJoCo raises shorter ones to that), and an impedance of 0.9999.
    """

    def __init__(self, m: pliant.Mechanism, h: float, integrator: str, soft: bool = False):
        self.model = model = mujoco.MjModel.from_xml_string(m.to_mjcf())
        model.opt.gravity[:], model.opt.timestep, model.opt.integrator = 0, h, _integrator(integrator)
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        solref, solimp = ((0.02, 1), (0.9, 0.95)) if soft else ((2 * h, 1), (0.9999, 0.9999))
        model.eq_solref[:], model.eq_solimp[:, :2] = solref, solimp
        self.data, self._dofs = mujoco.MjData(model), m.dof_names
        self.bodies = np.array([model.body(name).id for name in m.end_effectors])
        self.start = m.reference_poses[[m.body_index(name) for name in m.end_effectors], :3, 3]

    def restart(self) -> None:
        """Return to rest in the reference pose, without forces."""
        _reset(self.model, self.data)

    def place(self, q: Floats) -> None:
        """Rest at these coordinates of a mechanism of hinges and slides."""
        self.restart()
        for name, value in zip(self._dofs, q, strict=True):
            self.data.qpos[self.model.joint(name).qposadr] = value

    def push(self, forces: Floats) -> None:
        """Apply forces from now on, N, world axes, (ends, 3)."""
        self.data.xfrc_applied[self.bodies, :3] = forces

    def ramp(self, forces: Floats) -> bool:
        """Forces that change within a step: there are none."""
        return False

    def step(self, n: int) -> None:
        """Advance by n steps in one call."""
        mujoco.mj_step(self.model, self.data, nstep=n)

    @property
    def displacement(self) -> Floats:
        """Displacements of the end effectors' origins from the reference pose, world axes, m, (ends, 3)."""
        mujoco.mj_kinematics(self.model, self.data)  # a step leaves the poses of its beginning
        return self.data.xpos[self.bodies] - self.start

    @property
    def energy(self) -> float:
        """Kinetic and elastic energy, J."""
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy.sum())

    @property
    def failed(self) -> bool:
        """Whether MuJoCo has warned since the restart, as it does of numbers too large."""
        return bool(self.data.warning.number.any())


class Relaxation:
    """Damped integration to rest under a world force on the first end effector: MuJoCo has no static solver.

    The model is compiled once: `settle` alone is timed.

    Args:
        m: the mechanism.
        force: on the end effector's origin.
        target: world position of that origin at rest.
        tolerance: distance from the target that counts as there, in radii.
    """

    CALL = 10  # steps in one call

    def __init__(
        self, m: pliant.Mechanism, force: Sequence[float], target: np.ndarray, tolerance: float = 1e-6
    ):
        self.force, self.target, self.tolerance = force, target, tolerance * m.radius
        self.stiffness = float(m.stiffness.max())  # of the stiffest dof
        self.model = mujoco.MjModel.from_xml_string(m.to_mjcf())
        self.model.opt.gravity[:] = 0
        self.data = mujoco.MjData(self.model)
        self.tip = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, m.end_effectors[0])
        self.setting = "", 0.0, 0.0  # integrator, time step in s, damping over stiffness in s

    def choose(self, integrators: Sequence[str]) -> bool:
        """Choose the setting that comes to rest in the fewest steps; False if none does."""
        found = []
        for integrator in integrators:
            for timestep in (2e-3, 5e-3, 1e-2, 3e-2):
                for relaxation in (1e-3, 5e-3, 2e-2, 1e-1):
                    self.setting = integrator, timestep, relaxation
                    steps = self.settle(2000)
                    if steps is not None:
                        found.append((steps, self.setting))
        if found:
            _, self.setting = min(found)
        return bool(found)

    def __str__(self) -> str:
        integrator, timestep, relaxation = self.setting
        damping = relaxation * self.stiffness
        return f"MuJoCo {integrator} to rest, {1e3 * timestep:g} ms, damping {damping:g} N m s/rad"

    def settle(self, limit: int = 100_000) -> int | None:
        """Steps from the reference pose to within the tolerance of the target; None if it diverges."""
        model, data, tip = self.model, self.data, self.tip
        integrator, model.opt.timestep, relaxation = self.setting
        model.opt.integrator = _integrator(integrator)
        model.dof_damping[:] = relaxation * self.stiffness
        _reset(model, data)
        mujoco.mj_forward(model, data)
        there = 0
        for steps in range(0, limit, self.CALL):
            data.xfrc_applied[tip] = [*self.force, *np.cross(data.xpos[tip] - data.xipos[tip], self.force)]
            mujoco.mj_step(model, data, nstep=self.CALL)
            if any(warning.number for warning in data.warning):
                return None
            there = there + 1 if np.abs(data.xpos[tip] - self.target).max() < self.tolerance else 0
            if there == 2:  # at rest, not passing by
                return steps
        return None


def swing_loop(m: pliant.Mechanism, integrator: str, h: float, time: float) -> tuple[float, float] | None:
    """Largest gap of the first <connect> and largest energy drift, m and J, of a free swing; None if MuJoCo warns."""
    model = mujoco.MjModel.from_xml_string(m.to_mjcf())
    model.opt.timestep = h
    model.opt.integrator = _integrator(integrator)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    _reset(model, data)
    mujoco.mj_forward(model, data)
    start, gap, drift = float(data.energy.sum()), 0.0, 0.0
    for _ in range(round(time / h)):
        mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        gap = max(gap, float(np.linalg.norm(data.efc_pos[:3])))
        drift = max(drift, abs(float(data.energy.sum()) - start))
    return None if data.warning.number.any() else (gap, drift)


# --- scenes with contact


@dataclass(frozen=True)
class Setting:
    """Integrator, friction cone, impratio and iterations of the noslip solver; None: as MuJoCo has it, none."""

    integrator: str
    cone: str
    impratio: float
    noslip: int | None = None

    def __str__(self) -> str:
        noslip = "" if self.noslip is None else f", noslip {self.noslip}"
        return f"{self.integrator}, {self.cone}, impratio {self.impratio:g}{noslip}"


CONES = ("elliptic", "pyramidal")
GRASP_SETTINGS = tuple(Setting(*s) for s in product(INTEGRATORS, CONES, (1, 10, 100, 1000), (0, 5, 20)))
# The best settings of the whole scan, and similar ones.
QUICK_GRASP_SETTINGS = tuple(
    Setting(*s) for s in product(("implicitfast", "discrete"), CONES, (10,), (0, 20))
)
WALK_SETTINGS = tuple(Setting(*s) for s in product(INTEGRATORS, CONES, (1, 10, 100)))
QUICK_WALK_SETTINGS = tuple(
    Setting(*s) for s in product(("implicitfast", "discrete"), ("pyramidal", "elliptic"), (10,))
)
FRICTION = 0.8  # of `scenes.grasp` and `scenes.hexapod`


def _set_options(spec: mujoco.MjSpec, h: float, setting: Setting) -> None:
    o = spec.option
    o.timestep, o.gravity = h, [0, 0, -9.81]
    o.integrator = _integrator(setting.integrator)
    o.cone = getattr(mujoco.mjtCone, f"mjCONE_{setting.cone.upper()}")
    o.impratio = setting.impratio
    if setting.noslip is not None:
        o.noslip_iterations = setting.noslip


def _set_friction(geom: mujoco.MjsGeom, rigid: bool) -> None:
    """Friction of the scenes; contacts of MuJoCo's default softness, or nearly rigid ones."""
    geom.friction, geom.condim = [FRICTION, 0.005, 0.0001], 3
    if rigid:
        geom.solref[0], geom.solimp[:2] = 0.002, (0.99, 0.999)


class _Scene:
    """Compiled scene and its state."""

    def __init__(self, spec: mujoco.MjSpec, h: float):
        self.h, self.model = h, spec.compile()
        self.data = mujoco.MjData(self.model)

    @property
    def failed(self) -> bool:
        """Whether MuJoCo warned or numbers are not finite."""
        return bool(self.data.warning.number.any()) or not bool(np.isfinite(self.data.qpos).all())


class Grasp(_Scene):
    """`scenes.grasp`: the same hand, ball, floor and forces."""

    GRIP, LIFT = 4.0, 3000.0  # N and N/m, of `scenes.grasp`

    def __init__(self, h: float, setting: Setting, rigid: bool = False):
        m = scenes.lifting_hand()
        spec = mujoco.MjSpec.from_string(m.to_mjcf())
        _set_options(spec, h, setting)
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.3, 0.3, 0.1])
        ball = spec.worldbody.add_body(name="ball", pos=[0, 0, 0.03])
        ball.add_freejoint()
        ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.03, 0, 0], mass=0.1)
        for geom in spec.geoms:
            _set_friction(geom, rigid)
            # Links of the hand touch ball and floor, not each other.
            kind = {"world": (2, 3), "ball": (4, 7)}.get(geom.parent.name, (1, 6))
            geom.contype, geom.conaffinity = kind
        super().__init__(spec, h)
        rest = pliant.equilibrium(scenes.lifting_hand(), gravity=(0, 0, -9.81)).q.tolist()
        for name, value in zip(m.joint_names, rest, strict=True):  # the open hand under its weight
            self.data.qpos[self.model.joint(name).qposadr[0]] = value
        self._tips = [self.model.body(f"finger{f + 1}_tip").id for f in range(3)]
        self._palm, self._ball = self.model.body("palm").id, self.model.body("ball").id

    def run(self, seconds: float) -> None:
        """Close the hand by forces, and after a second lift it."""
        for _ in range(round(seconds / self.h)):
            self._push(min(max(self.data.time - 1.0, 0.0), 1.0))
            mujoco.mj_step(self.model, self.data)

    def _push(self, lifted: float) -> None:
        """Apply the grip at the fingertips' origins, and a part of the lift at the palm."""
        data = self.data
        for f, tip in enumerate(self._tips):
            angle = 2 * math.pi * f / 3
            force = np.array([-self.GRIP * math.cos(angle), -self.GRIP * math.sin(angle), 0.0])
            data.xfrc_applied[tip, :3] = force  # acts at the centre of mass
            data.xfrc_applied[tip, 3:] = np.cross(data.xpos[tip] - data.xipos[tip], force)
        data.xfrc_applied[self._palm, 2] = 0.1 * self.LIFT * lifted

    def step(self, n: int) -> None:
        """Advance by n steps in one call, with constant forces."""
        mujoco.mj_step(self.model, self.data, nstep=n)

    @property
    def ball(self) -> np.ndarray:
        """World position of the ball, m."""
        return self.data.xpos[self._ball].copy()

    @property
    def palm(self) -> np.ndarray:
        """World position of the palm, m."""
        return self.data.xpos[self._palm].copy()

    @property
    def squeeze(self) -> float:
        """Sum of the normal forces on the ball, N."""
        out, force = 0.0, np.zeros(6)
        for i in range(self.data.ncon):
            mujoco.mj_contactForce(self.model, self.data, i, force)
            out += force[0]
        return float(out)


class Walk(_Scene):
    """`scenes.hexapod`: the same robot and ground, the same gait as joint torques."""

    STRIDE, PERIOD = 0.06, 0.8  # m and s, of `scenes.hexapod`

    def __init__(self, h: float, setting: Setting, walks: bool = True, rigid: bool = False):
        m, world = robots.hexapod(), scenes.hexapod().world
        start = world.pose("hexapod/body") - m.reference_poses[m.body_index("body")]
        m = m.with_pose({"base": (*start[:3, 3].tolist(), 1.0, 0.0, 0.0, 0.0)})
        legs = pliant.reduce(m)
        self._torques, self._walks = gait(legs, self.STRIDE, self.PERIOD), walks
        spec = mujoco.MjSpec.from_string(m.to_mjcf())
        _set_options(spec, h, setting)
        [ground] = world.scene.shapes("world")
        _add_ground(spec, ground)
        for geom in spec.geoms:
            _set_friction(geom, rigid)
            # Links touch the ground, not each other.
            geom.contype, geom.conaffinity = (1, 2) if geom.parent.name == "world" else (2, 1)
        super().__init__(spec, h)
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        names = legs.mechanism.dof_names
        self._dofs = np.array([self.model.joint(name).dofadr[0] for name in names])
        self._body = self.model.body("body").id

    def run(self, seconds: float) -> None:
        """Advance."""
        self.timed(seconds)

    def timed(self, seconds: float) -> float:
        """Advance; wall-clock time of the steps, s, without computing torques. Standing is one call."""
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
    def place(self) -> np.ndarray:
        """World position of the body, m."""
        return self.data.xpos[self._body].copy()


def _add_ground(spec: mujoco.MjSpec, shape: pliant.shapes.Shape) -> None:
    """Add a height field."""
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
