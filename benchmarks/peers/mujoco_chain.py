"""The chain in MuJoCo: joint coordinates, so nothing can come apart. A cable is of balls with springs."""

from __future__ import annotations

import mujoco
import numpy as np

from peers.system import GRAVITY, Chain

SETTINGS = tuple(
    name
    for name in ("RK4", "implicit", "implicitfast", "Euler", "discrete")
    if hasattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}")  # discrete came with MuJoCo 4
)
LARGEST = 500

# `finite` looks at the counters; otherwise every failed run leaves lines on the screen and in a log file.
mujoco.set_mju_user_warning(lambda text: None)


def model(system: Chain, h: float, setting: str) -> mujoco.MjModel:
    """The chain, built without a file: files may be nested 500 bodies deep at most."""
    spec = mujoco.MjSpec()
    spec.compiler.boundmass = spec.compiler.boundinertia = 0.0
    option = spec.option
    option.timestep, option.gravity = h, [0, 0, -GRAVITY]
    option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{setting.upper()}")
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    above = spec.worldbody.add_body(quat=_quaternion(system.base))
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


def _quaternion(rotation: np.ndarray) -> list[float]:
    out = np.empty(4)
    mujoco.mju_mat2Quat(out, rotation.ravel())
    return out.tolist()


class _Run:
    def __init__(self, system: Chain, h: float, setting: str):
        self.model = model(system, h, setting)
        self.data = mujoco.MjData(self.model)
        free = np.array([system.free(i) for i in range(system.links)])
        self.data.qvel[:] = system.rates[free]
        mujoco.mj_forward(self.model, self.data)

    def step(self, n: int = 1) -> None:
        mujoco.mj_step(self.model, self.data, nstep=n)

    def _now(self) -> None:
        """Derived quantities of the present state: after a step they are those of its beginning."""
        mujoco.mj_fwdPosition(self.model, self.data)
        mujoco.mj_fwdVelocity(self.model, self.data)

    def energy(self) -> tuple[float, float]:
        self._now()
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy[1]), float(self.data.energy[0])

    def violation(self) -> float:
        return 0.0

    def tip(self) -> np.ndarray:
        mujoco.mj_kinematics(self.model, self.data)
        return self.data.site_xpos[0].copy()

    def finite(self) -> bool:
        """MuJoCo starts over when a number gets too large; that counts as a failure."""
        warnings = self.data.warning
        bad = (
            mujoco.mjtWarning.mjWARN_BADQPOS,
            mujoco.mjtWarning.mjWARN_BADQVEL,
            mujoco.mjtWarning.mjWARN_BADQACC,
        )
        return bool(np.isfinite(self.data.qpos).all()) and not any(warnings[w].number for w in bad)


def build(system: Chain, h: float, setting: str) -> _Run:
    """A run with the integrator of that name."""
    return _Run(system, h, setting)
