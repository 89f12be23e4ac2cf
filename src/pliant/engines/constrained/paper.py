"""`Paper`: GS17's methods behind the same words as `Midpoint`, for `ConstrainedSimulation`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.constrained.methods import STABILIZATIONS, MaximalStepper
from pliant.mechanism import Mechanism, kinematics

__all__ = ["METHODS", "Paper"]

Floats = NDArray[np.float64]
METHODS = STABILIZATIONS


class Paper:
    """A `MaximalStepper` as `ConstrainedSimulation` uses it."""

    def __init__(
        self, m: Mechanism, timestep: float, gravity: Floats, stabilization: str, solver: str | None
    ):
        self.m = m
        self._stepper = MaximalStepper(m, timestep, gravity, stabilization, solver)
        self._entries: dict[int, Floats] = {}
        self._steps = 0

    def _parts(self) -> tuple[Floats, ...]:
        s = self._stepper
        return s.x, s.quaternion, s.v, s.q, s._lam

    @property
    def state(self) -> Floats:
        """Everything that moves, in one array."""
        return np.concatenate([part.ravel() for part in self._parts()])

    @state.setter
    def state(self, value: Floats) -> None:
        at = 0
        for part in self._parts():
            part[...] = value[at : at + part.size].reshape(part.shape)
            at += part.size
        self._stepper._fresh = not self._stepper._lam.any()
        self._stepper._geometry()

    def advance(self, n: int) -> int:
        """Take `n` steps; returns how many were taken before the motion left the finite numbers."""
        for done in range(n):
            if self._entries:
                self._push()
            try:
                self._stepper.step()
            except (ArithmeticError, ValueError, np.linalg.LinAlgError):
                return done
            if not self._stepper.finite:
                return done
            self._steps += 1
        return n

    def set_loads(self, entries: dict[int, Floats]) -> None:
        """Wrenches by body, as `pliant.engines.wrenches.entry` makes them."""
        self._entries = entries
        self._stepper.external[:] = 0.0

    def _push(self) -> None:
        poses = self._stepper.poses
        for body, given in self._entries.items():
            turn = poses[body, :3, :3]
            arm = turn @ (given[6:9] - self.m.com[body])
            force, torque = (
                turn @ given[9:12],
                turn @ (given[12:15] - np.cross(self.m.com[body], given[9:12])),
            )
            self._stepper.external[body, :3] = given[:3] + force
            self._stepper.external[body, 3:] = given[3:6] + np.cross(arm, given[:3]) + torque

    @property
    def poses(self) -> Floats:
        """World poses of all bodies."""
        return self._stepper.poses

    @property
    def q(self) -> Floats:
        """Joint coordinates, measured from the bodies' poses; set, everything is at rest."""
        return self._stepper.coordinates()

    @q.setter
    def q(self, value: Floats) -> None:
        self._stepper.set_state(kinematics.link_poses(self.m, value)[self.m.links.body_link])

    def _jacobian(self) -> Floats:
        """Velocities of centres of mass and angular velocities per joint velocity, (6 bodies, nv)."""
        m, links = self.m, kinematics.link_poses(self.m, self.q)
        out = np.zeros((m.body_count, 6, m.nv))
        for body, link in enumerate(m.links.body_link.tolist()):
            rows = kinematics.link_jacobian(m, links, link)
            arm = links[link, :3, :3] @ m.com[body]
            rows[:3] -= np.cross(arm, rows[3:], axisa=0, axisb=0, axisc=0)
            out[body] = rows
        return out.reshape(-1, m.nv)

    @property
    def velocity(self) -> Floats:
        """Joint velocities nearest to those of the bodies, (nv,)."""
        return np.asarray(
            np.linalg.lstsq(self._jacobian(), self._stepper.v.ravel(), rcond=None)[0], dtype=np.float64
        )

    @velocity.setter
    def velocity(self, value: Floats) -> None:
        self._stepper.v[:] = (self._jacobian() @ value).reshape(-1, 6)

    @property
    def twists(self) -> Floats:
        """Velocity of the origin and angular velocity of every body, world axes, (bodies, 6)."""
        out = self._stepper.v.copy()
        arm = np.einsum("nij,nj->ni", self._stepper.poses[:, :3, :3], self.m.com)
        out[:, :3] -= np.cross(out[:, 3:], arm)
        return out

    @property
    def kinetic(self) -> float:
        """Kinetic energy, J."""
        return self._stepper.kinetic_energy

    @property
    def violation(self) -> float:
        """The largest distance by which a joint has come apart, m."""
        return self._stepper.violation

    @property
    def joint_wrenches(self) -> Floats:
        """Wrench through every joint on its child in the last step, child's frame, (joints, 6)."""
        m = self.m
        turn = self._stepper.poses[m.joint_children, :3, :3]
        force = np.einsum("nij,ni->nj", turn, self._stepper.multipliers[:, :3])
        torque = np.einsum("nij,ni->nj", turn, self._stepper.multipliers[:, 3:])
        return np.concatenate([force, torque + np.cross(m.child_frames[:, :3, 3], force)], axis=1)

    @property
    def damping(self) -> Floats:
        """Damping every body received in the last step."""
        return self._stepper.damping.copy()

    @property
    def effort(self) -> tuple[int, int, int]:
        """One linear solve a step."""
        return self._steps, self._steps, 0
