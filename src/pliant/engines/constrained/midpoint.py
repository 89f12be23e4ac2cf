"""`Midpoint`: implicit midpoint in joint coordinates, tension as inertia, in linear time. The default of the engine.

The unknown is the velocity u of all joints at the middle of the step; links are where half a step of it leads. With N
the map from joint to body velocities there and p the momenta before the step, Newton's laws averaged over half a step

    N^T (M N u - p - h/2 f) + springs = 0

decide u, and the momenta after the step are `2 M N u - p`. This update keeps kinetic energy exactly whatever the
length of the step, so no mass ratio is too large: only work of forces changes it. Momenta belong to bodies rather than
to joints (linear in world axes, angular in the body's own), which spares all centrifugal terms. Joints cannot come
apart, since only joint coordinates move.

u is found by iterations with the matrix of `_aba`: inertia, springs, and the *transverse Newmark inertia*
of tension, `h²/4` times an upper bound of geometric stiffness. Two to four are enough as a rule. Where they do not
contract, or a joint runs into a stop, a step of backward Euler replaces it, which damps and gains no energy; where that
does not converge either, the step is halved.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.constrained import _links, _step
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained.arrays import Model, State
from pliant.engines.constrained.contact_step import ContactStep
from pliant.engines.constrained.packing import pack
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.joints import BALL
from pliant.mechanism.links import LINK_BALL
from pliant.statics.loads import Load, load_rows

__all__ = ["Midpoint"]

Floats = NDArray[np.float64]
_CLOSE = 1e-7  # rad or radii: gap of loops that counts as closed


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
        self._info[col.INFO_TOLERANCE], self._info[col.INFO_CLOSE] = tolerance, _CLOSE
        self._moved = False
        self._limited = np.isfinite(self._dofs[:, col.LOWER : col.UPPER + 1])
        self._model = packed.model
        self._arrays = _step.join_arrays(packed.model, self._state, packed.scratch)
        self._set_stops(anew=True)
        self._asked = np.zeros((len(self._links), col.KINEMATIC_COLUMNS)), np.zeros((len(self._links), 6))
        # Poses of body frames in the frames of loads: at centres of mass, with the axes of joint frames.
        turn = packed.frames[m.links.body_link, :3, :3].transpose(0, 2, 1)
        self._load_frames = spatial.pose(-np.einsum("nij,nj->ni", turn, m.com), turn)

    def advance(self, n: int) -> int:
        """Take `n` steps; returns how many were taken before the motion left the finite numbers.

        Stops of joints that began beyond their limits follow them back after every step.
        """
        self._moved, done = True, 0
        while self._beyond and done < n:
            self._set_stops()
            if _step.advance(1, self.timestep, self._model.loads, self._arrays) < 1:
                return done
            done += 1
        return (
            n if done == n else done + _step.advance(n - done, self.timestep, self._model.loads, self._arrays)
        )

    def _set_stops(self, anew: bool = False) -> None:
        """Set stops to the limits, or to the coordinates of joints beyond their limits, which stops follow back.

        Reference poses of files may be beyond limits: to push joints back at once would be an impact.
        """
        m, table, plain = self.m, self._dofs, self._plain[0]
        q = self._state.q[m.dof_coordinate]
        c, d = m.primitive_coordinate[m.ball_primitives], m.primitive_dof[m.ball_primitives]
        turn = spatial.quat_log(self._state.q[c[:, None] + np.arange(4)])
        q[d[:, None] + np.arange(3)] = np.linalg.norm(turn, axis=1)[:, None]
        ball = m.dof_kind == BALL
        for column, sign in ((col.UPPER, 1.0), (col.LOWER, -1.0)):
            limit = sign * plain[:, column]
            now = np.inf if anew else sign * table[:, column]
            wide = np.minimum(now, np.maximum(limit, sign * q))
            table[:, column] = sign * np.where(ball & (sign < 0), limit, wide)
        self._note_stops()

    def _note_stops(self) -> None:
        """Keep a copy of the stops, for `stops`, and whether any of them is not at its limit."""
        stops, limits = (table[:, col.LOWER : col.UPPER + 1] for table in (self._dofs, self._plain[0]))
        self._stops = stops[self._limited]
        self._beyond = bool((stops != limits).any())

    @property
    def state(self) -> Floats:
        """State of the motion, all fields of `State` in one array."""
        return self._flat

    @state.setter
    def state(self, value: Floats) -> None:
        self._flat[:] = value
        self._moved = False
        self._set_stops(anew=True)

    @property
    def taken(self) -> int:
        """Whole steps since the start; counted where they are taken, so that Ctrl-C loses none."""
        return int(self._info[col.INFO_TAKEN])

    @property
    def stops(self) -> Floats:
        """Stops of joints, lower and upper ones: part of the state, as they follow joints back to their limits."""
        return self._stops

    @stops.setter
    def stops(self, value: Floats) -> None:
        self._dofs[:, col.LOWER : col.UPPER + 1][self._limited] = value
        self._note_stops()

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

    def contact_step(self, first: int) -> ContactStep:
        """Steps in contact, of a mechanism whose first body is number `first` in a world."""
        body_link = np.ascontiguousarray(self.m.links.body_link, dtype=np.int64)
        at_link = np.zeros((len(body_link), 6))
        at_link[:, 3:] = self._model.constants[body_link, col.C_COM : col.C_COM + 3]
        parts = self._state, self._packed.scratch, self._asked
        return ContactStep(self.timestep, self._prepare, *parts, first, body_link, at_link)

    def _prepare(self) -> Model:
        """The model, for a step that is about to be taken."""
        if self._beyond:
            self._set_stops()
        self._moved = True
        return self._model

    # --- velocities

    def _kinematics(self, u: Floats) -> Floats:
        # not in the arrays of the step: `joint_wrenches` reads those of the last step
        model, (work, moving) = self._model, self._asked
        _links.forward(model.links, model.constants, self.q, u, 0.0, work)
        _links.momenta(0, len(model.links), model.constants, work, moving)
        return work

    @property
    def velocity(self) -> Floats:
        """Joint velocities nearest to the bodies' momenta, (nv,)."""
        return self._state.v.copy()

    @velocity.setter
    def velocity(self, value: Floats) -> None:
        self._state.v[:] = self._state.u[:] = value
        work = self._kinematics(self._state.v)
        _links.set_momentum(work, self._asked[1], self._state.momentum)
        self._moved = False

    @property
    def twists(self) -> Floats:
        """Velocity of the origin and angular velocity of every body, world axes, (bodies, 6)."""
        work = self._kinematics(self._state.v)[self.m.links.body_link]
        frames = spatial.se3_inverse(self._packed.frames[self.m.links.body_link])
        turn = work[:, col.W_ROTATION : col.W_ROTATION + 9].reshape(-1, 3, 3)
        spin = work[:, col.W_SPIN : col.W_SPIN + 3]
        arm = np.einsum("nij,nj->ni", turn, frames[:, :3, 3])
        out = np.empty((len(work), 6))
        out[:, :3], out[:, 3:] = work[:, col.W_VELOCITY : col.W_VELOCITY + 3] + np.cross(spin, arm), spin
        return out

    # --- loads

    def set_loads(self, loads: Mapping[int, Load]) -> None:
        """Set the loads, by number of body, in place of all before."""
        self._model = self._model._replace(loads=load_rows(loads, self.m.links.body_link, self._load_frames))

    def set_motors(self, drive: Floats, torque: Floats) -> None:
        """Motors of all dofs: target, stiffness, velocity and damping, (4, nv), and torque, (nv,)."""
        target, stiffness, velocity, damping = drive
        table, plain = self._dofs, self._plain[0]
        table[:, col.STIFFNESS] = plain[:, col.STIFFNESS] + stiffness
        table[:, col.DAMPING] = plain[:, col.DAMPING] + damping
        table[:, col.PULL] = plain[:, col.PULL] + stiffness * target + damping * velocity + torque
        self._links[:] = self._plain[1]
        driven = (drive != 0.0).any(axis=0) | (torque != 0.0)
        for p in np.flatnonzero(self._links[:, col.KIND] == LINK_BALL):
            d = self._links[p, col.DOF]
            if driven[d : d + 3].any():
                self._links[p, col.SPRUNG] = 1
        self._info[col.INFO_LENGTH] = 0.0

    # --- measures

    @property
    def kinetic(self) -> float:
        """Kinetic energy, rotors included, J."""
        return _links.kinetic(self._model.constants, self._state.momentum) + 0.5 * float(
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
        """Damping that the method adds to bodies: none, (bodies, 6)."""
        return np.zeros((self.m.body_count, 6))

    @property
    def effort(self) -> tuple[int, int, int]:
        """Linear solves, parts of steps, and parts that did not converge, since the start."""
        solves, substeps, unsettled = self._info[col.INFO_SOLVES : col.INFO_UNSETTLED + 1].tolist()
        return int(solves), int(substeps), int(unsettled)

    @property
    def joint_wrenches(self) -> Floats:
        """Wrench through every joint on its child in the last step, child's frame, (joints, 6)."""
        m = self.m
        if not self._moved:
            return np.zeros((m.joint_count, 6))
        h = float(self._info[col.INFO_LAST])
        scratch = self._packed.scratch
        work = scratch.work
        through = np.empty((len(work), 6))
        _links.joint_reactions(
            self._model.links,
            self._model.loops,
            work,
            scratch.at_middle,
            scratch.impulse,
            self._state.momentum,
            self._state.multipliers,
            through,
        )
        # from joint frames to the frames of links
        poses = np.zeros((len(work), 4, 4))
        poses[:, :3, :3] = work[:, col.W_ROTATION : col.W_ROTATION + 9].reshape(-1, 3, 3)
        poses[:, :3, 3], poses[:, 3, 3] = work[:, col.W_POSITION : col.W_POSITION + 3], 1.0
        poses = poses @ spatial.se3_inverse(self._packed.frames)
        carried = np.einsum("nji,nbj->nbi", poses[:, :3, :3], through.reshape(-1, 2, 3)) * (-2 / h)
        carried[:, 1] += np.cross(self._packed.frames[:, :3, 3], carried[:, 0])
        return kinematics.joint_wrenches(m, poses, carried.reshape(-1, 6))
