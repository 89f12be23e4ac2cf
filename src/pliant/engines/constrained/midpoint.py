"""`Midpoint`: implicit midpoint in joint coordinates, tension as inertia, in linear time. The default of the engine.

The unknown is the velocity u of all joints at the middle of the step; links are where half a step of it leads. With N
the map from joint to body velocities there and p the momenta before the step, Newton's laws averaged over half a step

    N^T (M N u - p - h/2 f) + springs = 0

decide u, and the momenta after the step are `2 M N u - p`. That reflection keeps kinetic energy exactly whatever the
length of the step, so no mass ratio is too large: only work of forces changes it. Momenta belong to bodies rather than
to joints (linear in world axes, angular in the body's own), which spares all centrifugal terms. Joints cannot come
apart, since only joint coordinates move.

u is found by iterations with the matrix of `_solver_kernels`: inertia, springs, and the *transverse Newmark inertia*
of tension, `h²/4` times an upper bound of geometric stiffness. Two to four are enough as a rule. Where they do not
contract, or a joint runs into a stop, backward Euler takes the step instead, which damps; where that is not found
either, the step is halved. Such steps get no more energy than there was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.constrained import _energy_kernels as energies
from pliant.engines.constrained import _kernels as kernels
from pliant.engines.constrained import _reaction_kernels as reactions
from pliant.engines.constrained import _step_kernels as stepping
from pliant.engines.constrained._arrays import State
from pliant.engines.constrained.packing import pack
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.joints import BALL
from pliant.mechanism.links import LINK_BALL

__all__ = ["Midpoint"]

Floats = NDArray[np.float64]
_CLOSE = 1e-7  # of the radius, and radians: how far loops may be open at the end of an iteration


class Midpoint:
    """A mechanism in motion: coordinates, velocities, and the momenta of its bodies."""

    def __init__(self, m: Mechanism, timestep: float, gravity: Floats, tolerance: float):
        self.m, self.timestep = m, timestep
        self._packed = packed = pack(m, gravity)
        sizes = np.cumsum([0] + [part.size for part in packed.state])
        self._flat = np.zeros(sizes[-1])
        self._state = State(
            *(
                self._flat[a:b].reshape(part.shape)
                for a, b, part in zip(sizes[:-1], sizes[1:], packed.state, strict=True)
            )
        )
        self._state.q[:] = packed.state.q
        self._dofs, self._links = packed.model.dofs, packed.model.links
        self._plain = self._dofs.copy(), self._links.copy()  # without motors
        self._info = packed.scratch.info
        self._info[stepping.TOLERANCE], self._info[stepping.CLOSE] = tolerance, _CLOSE
        self._moved = False
        self._model = packed.model
        self._set_stops(anew=True)
        self._asked = np.zeros((len(self._links), 30)), np.zeros((len(self._links), 6))

    def advance(self, n: int) -> int:
        """Take `n` steps; returns how many were taken before the motion left the finite numbers."""
        self._moved = True
        if self._beyond:
            self._set_stops()
        return stepping.advance(n, self.timestep, self._model, self._state, self._packed.scratch)

    def _set_stops(self, anew: bool = False) -> None:
        """Stops where limits are; or, of joints beyond theirs, where these are, to follow them on their way back.

        Files have such joints at their reference pose. To push them back at once would be a blow.
        """
        m, table, plain = self.m, self._dofs, self._plain[0]
        q = self._state.q[m.dof_coordinate]
        for p in m.ball_primitives.tolist():
            c, d = m.primitive_coordinate[p], m.primitive_dof[p]
            q[d : d + 3] = np.linalg.norm(spatial.quat_log(self._state.q[c : c + 4]))
        ball = m.dof_kind == BALL
        for column, sign in ((kernels.UPPER, 1.0), (kernels.LOWER, -1.0)):
            limit = sign * plain[:, column]
            now = np.inf if anew else sign * table[:, column]
            wide = np.minimum(now, np.maximum(limit, sign * q))
            table[:, column] = sign * np.where(ball & (sign < 0), limit, wide)
        self._beyond = bool(
            (table[:, [kernels.LOWER, kernels.UPPER]] != plain[:, [kernels.LOWER, kernels.UPPER]]).any()
        )

    @property
    def state(self) -> Floats:
        """Everything that moves, in one array."""
        return self._flat

    @state.setter
    def state(self, value: Floats) -> None:
        self._flat[:] = value
        self._moved = False
        self._set_stops(anew=True)

    @property
    def q(self) -> Floats:
        """Joint coordinates; set, everything is at rest."""
        return self._state.q

    @q.setter
    def q(self, value: Floats) -> None:
        self._flat[:] = 0.0
        self._state.q[:] = value
        self._moved = False
        self._set_stops(anew=True)

    @property
    def poses(self) -> Floats:
        """World poses of all bodies."""
        return kinematics.link_poses(self.m, self._state.q)[self.m.links.body_link]

    # --- velocities

    def _kinematics(self, u: Floats) -> Floats:
        # not in the step's own arrays: `joint_wrenches` needs what is in them
        model, (work, moving) = self._model, self._asked
        kernels.forward(model.links, model.constants, self.q, u, 0.0, work)
        kernels.momenta(0, len(model.links), model.constants, work, moving)
        return work

    @property
    def velocity(self) -> Floats:
        """Joint velocities nearest to the bodies' momenta, (nv,)."""
        return self._state.v.copy()

    @velocity.setter
    def velocity(self, value: Floats) -> None:
        self._state.v[:] = self._state.u[:] = value
        work = self._kinematics(self._state.v)
        kernels.settle(work, self._asked[1], self._state.momentum)
        self._moved = False

    @property
    def twists(self) -> Floats:
        """Velocity of the origin and angular velocity of every body, world axes, (bodies, 6)."""
        work = self._kinematics(self._state.v)[self.m.links.body_link]
        frames = spatial.se3_inverse(self._packed.frames[self.m.links.body_link])
        turn = work[:, :9].reshape(-1, 3, 3)
        spin = work[:, kernels.W : kernels.W + 3]
        arm = np.einsum("nij,nj->ni", turn, frames[:, :3, 3])
        out = np.empty((len(work), 6))
        out[:, :3], out[:, 3:] = work[:, kernels.V : kernels.V + 3] + np.cross(spin, arm), spin
        return out

    # --- loads

    def set_loads(self, entries: dict[int, Floats]) -> None:
        """Wrenches by body, as `pliant.engines.wrenches.entry` makes them."""
        rows = np.zeros((len(entries), 16))
        for row, (body, given) in zip(rows, entries.items(), strict=True):
            link = self.m.links.body_link[body]
            turn = self._packed.frames[link, :3, :3].T  # into the joint frame's axes
            row[0] = link
            row[1:7] = given[:6]
            row[7:10] = turn @ (given[6:9] - self.m.com[body])
            force, torque = given[9:12], given[12:15]
            row[10:13] = turn @ force
            row[13:16] = turn @ (torque - np.cross(self.m.com[body], force))
        self._model = self._model._replace(loads=rows)

    def set_motor(self, dofs: NDArray[np.int64], numbers: Floats, torque: Floats) -> None:
        """Motors of dofs: target, stiffness, velocity, damping; and torque per dof."""
        target, stiffness, velocity, damping = numbers
        table, plain = self._dofs, self._plain[0]
        table[dofs, kernels.STIFFNESS] = plain[dofs, kernels.STIFFNESS] + stiffness
        table[dofs, kernels.DAMPING] = plain[dofs, kernels.DAMPING] + damping
        table[dofs, kernels.PULL] = (
            plain[dofs, kernels.PULL] + stiffness * target + damping * velocity + torque
        )
        for p in np.flatnonzero(self._links[:, kernels.KIND] == LINK_BALL):
            d = self._links[p, kernels.DOF]
            if np.isin(np.arange(d, d + 3), dofs).any():
                self._links[p, kernels.SPRUNG] = 1
        self._info[stepping.LENGTH] = 0.0

    @property
    def torques(self) -> Floats | None:
        """Of motors, per dof; None if any of them holds a target or a velocity."""
        columns = [kernels.STIFFNESS, kernels.DAMPING, kernels.PULL]
        stiffness, damping, pull = (self._dofs[:, columns] - self._plain[0][:, columns]).T
        return None if stiffness.any() or damping.any() else pull

    def clear_motors(self) -> None:
        """Take all motors away."""
        self._dofs[:], self._links[:] = self._plain
        self._set_stops(anew=True)
        self._info[stepping.LENGTH] = 0.0

    # --- what can be asked

    @property
    def kinetic(self) -> float:
        """Kinetic energy, rotors included, J."""
        return energies.kinetic(self._model.constants, self._state.momentum) + 0.5 * float(
            self.m.armature @ self._state.v**2
        )

    @property
    def violation(self) -> float:
        """The largest distance by which a loop is open, m."""
        loops = self.m.topology.loops
        gaps = kinematics.constraint_gaps(self.m, self.q, kinematics.link_poses(self.m, self.q))
        return float(np.linalg.norm(gaps[: 6 * loops].reshape(-1, 6)[:, :3], axis=1).max(initial=0.0))

    @property
    def damping(self) -> Floats:
        """No body gets any."""
        return np.zeros((self.m.body_count, 6))

    @property
    def effort(self) -> tuple[int, int, int]:
        """Linear solves, parts of steps, and parts that did not settle, so far."""
        solves, substeps, unsettled = self._info[[stepping.SOLVES, stepping.SUBSTEPS, stepping.UNSETTLED]]
        return int(solves), int(substeps), int(unsettled)

    @property
    def joint_wrenches(self) -> Floats:
        """Wrench through every joint on its child in the last step, child's frame, (joints, 6)."""
        m = self.m
        out = np.zeros((m.joint_count, 6))
        if not self._moved:
            return out
        h = float(self._info[stepping.LAST])
        scratch = self._packed.scratch
        work = scratch.work
        through = reactions.through(
            self._model.links,
            self._model.loops,
            work,
            scratch.at_middle,
            scratch.impulse,
            self._state.momentum,
            self._state.multipliers,
            m.radius,
        )
        last = np.zeros(m.joint_count, dtype=np.int64)
        last[m.links.joint] = np.arange(len(m.links))
        frames = self._packed.frames[last]
        turn = np.einsum("nij,nkj->nki", work[last, :9].reshape(-1, 3, 3), frames[:, :3, :3])
        through = through[last] * (2 / h)
        force = np.einsum("nij,nj->ni", turn, through[:, :3])
        torque = np.einsum("nij,nj->ni", turn, through[:, 3:])
        out[:, :3], out[:, 3:] = force, torque + np.cross(frames[:, :3, 3], force)
        return out
