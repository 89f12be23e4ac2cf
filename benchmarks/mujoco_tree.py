"""MuJoCo on the same mechanism under the same push: contacts off, one call for many steps.

Of its integrators the fastest counts that holds for a second: no warnings, everything in place, and no more energy
than the push put in.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import mujoco
import numpy as np
from pushed import STEP, Floats, Pushed

__all__ = ["INTEGRATORS", "QUICK", "MuJoCo"]

INTEGRATORS = ("Euler", "implicit", "implicitfast", "RK4", "discrete")
QUICK = ("Euler", "implicitfast", "discrete")  # those that have ever been the fastest
mujoco.set_mju_user_warning(lambda _: None)  # integrators that blow up are tried on purpose


class MuJoCo:
    """A model, its state and the push."""

    def __init__(self, case: Pushed, h: float = STEP):
        self.case = case
        self.model = mujoco.MjModel.from_xml_string(case.m.to_mjcf())
        self.model.opt.gravity[:] = 0
        self.model.opt.timestep = h
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.data = mujoco.MjData(self.model)
        self.tip = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, case.tip)

    def restart(self, integrator: str) -> None:
        """At rest in the reference pose, with the push on."""
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        mujoco.mj_resetData(self.model, self.data)
        self.push()

    def push(self, part: float = 1.0) -> None:
        """From now on."""
        self.data.xfrc_applied[self.tip, :3] = part * self.case.force

    def step(self, n: int) -> None:
        """n steps in one call."""
        mujoco.mj_step(self.model, self.data, nstep=n)

    @property
    def displacement(self) -> Floats:
        """Of the tip, from its place in the reference pose."""
        return self.data.xpos[self.tip] - self.case.m.reference_poses[self.case.index, :3, 3]

    @property
    def warned(self) -> bool:
        """Whether it has said that something is wrong since the restart."""
        return any(warning.number for warning in self.data.warning)

    def seconds(self, integrator: str, n: int) -> float:
        """Least seconds per step of three short runs."""
        times = []
        for _ in range(3):
            self.restart(integrator)
            self.step(1)
            start = process_time()
            self.step(n)
            times.append((process_time() - start) / n)
        return min(times)

    def holds(self, integrator: str, seconds: float = 1.0) -> bool:
        """Whether time passes without warnings, with all in place, and no more energy than the push put in."""
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

    def fastest(
        self, seconds: float = 1.0, among: Sequence[str] = INTEGRATORS
    ) -> tuple[str | None, list[str]]:
        """The fastest integrator that holds, and the faster ones that do not; slower ones cannot count."""
        known = [i for i in among if hasattr(mujoco.mjtIntegrator, f"mjINT_{i.upper()}")]
        few = 4 if self.model.nv > 200 else 50
        failed = []
        for name in sorted(known, key=lambda name: self.seconds(name, few)):
            if self.holds(name, seconds):
                return name, failed
            failed.append(name)
        return None, failed
