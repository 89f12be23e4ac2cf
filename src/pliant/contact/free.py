"""Free rigid bodies of a world: all of them one actor."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.contact import _free_kernels as kernels
from pliant.engines.actor import Blocks
from pliant.errors import ConvergenceError
from pliant.statics.loads import LOAD_SIZE, Load

__all__ = ["FreeBodies"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class FreeBodies:
    """Rigid bodies that nothing holds. Momentum and angular momentum change by impulses alone, exactly.

    In free flight a body follows its parabola, and turns with constant angular momentum and energy.
    """

    def __init__(self, timestep: float, gravity: Floats):
        self._h, self._gravity = timestep, gravity
        self.gain = timestep * float(np.linalg.norm(gravity))  # of speed in a step
        self.fall = 0.0
        self.names: list[str] = []
        self._work = np.zeros((5, 4))
        self.loads: dict[int, Load] = {}
        self._given = np.zeros((0, LOAD_SIZE))
        self._first = 0
        self._set(np.zeros((0, kernels.FIXED)), np.zeros((0, 3, 3)), np.zeros((0, kernels.STATE)))
        self._start = self._state.copy()

    def _set(self, fixed: Floats, axes: Floats, state: Floats) -> None:
        self._fixed, self._axes, self._state = fixed, axes, state
        self.count = len(fixed)
        self.size = 6 * self.count
        self.poses = np.tile(np.eye(4), (self.count, 1, 1))
        kernels.place(fixed, axes, state, self._work, self.poses)
        self._touched = np.zeros(self.count, dtype=bool)
        self._wrench, self._still = np.zeros((self.count, 6)), np.zeros(self.size)
        given = self._given
        self._given = np.zeros((self.count, LOAD_SIZE))
        self._given[: len(given)] = given

    def add(self, name: str, mass: float, com: Floats, inertia: Floats, pose: Floats, twist: Floats) -> None:
        """Another body: mass, centre of mass and inertia about it in its frame, pose; velocity and spin, world."""
        moments, axes = np.linalg.eigh(inertia)
        if np.linalg.det(axes) < 0:
            axes[:, 0] *= -1.0
        turn = pose[:3, :3] @ axes
        state = np.concatenate(
            [
                pose[:3, :3] @ com + pose[:3, 3],
                spatial.quat_from_matrix(turn),
                mass * twist[:3],
                turn @ (moments * (turn.T @ twist[3:])),
            ]
        )
        fixed = np.concatenate([[mass], com, moments])
        self._set(
            np.concatenate([self._fixed, fixed[None]]),
            np.concatenate([self._axes, axes[None]]),
            np.concatenate([self._state, state[None]]),
        )
        self.names.append(name)
        self._start = np.concatenate([self._start, state[None]])

    # --- the actor

    @property
    def sizes(self) -> Ints:
        return np.full(self.count, 6, dtype=np.int64)

    @property
    def offsets(self) -> Ints:
        return 6 * np.arange(self.count, dtype=np.int64)

    def place(self, first: int) -> None:
        self._first = first

    def write_poses(self, out: Floats) -> None:
        out[:] = self.poses

    def look_ahead(self, ahead: float, most: float, margins: Floats, wanted: Floats) -> None:
        """Widen margins of bodies to as far as they go in a step, so many times."""
        kernels.look_ahead(self._fixed, self._state, self._h, self.gain, ahead, most, margins, wanted)

    def _accelerate(self) -> None:
        kernels.accelerate(
            self._fixed, self._state, self._given, self.poses, self._gravity, self._h, self._wrench
        )

    def _move(self, w: Floats) -> None:
        bad = kernels.move(
            self._fixed,
            self._axes,
            self._state,
            self._wrench,
            self._gravity,
            self._touched,
            w,
            self._h,
            self._work,
            self.poses,
        )
        if bad >= 0:
            self.fail(bad)

    def fail(self, body: int) -> NoReturn:
        raise ConvergenceError(
            f"body '{self.names[body]}' left the finite numbers: a shorter timestep may help"
        )

    def step(self) -> None:
        self._accelerate()
        self._touched[:] = False
        self._move(self._still)

    def begin(self, blocks: Blocks, before: Floats, u: Floats) -> None:
        b = blocks
        kernels.velocities(self._fixed, self._state, self._work, before)
        self._accelerate()
        kernels.velocities(self._fixed, self._state, self._work, u)
        kernels.rows(
            b.count,
            b.kind,
            b.body,
            b.point,
            b.axes,
            b.side,
            b.J,
            b.Y,
            self._first,
            self._fixed,
            self._state,
            self._work,
        )

    def finish(self, blocks: Blocks, u: Floats, w: Floats) -> None:
        b = blocks
        kernels.strike(b.count, b.body, b.side, b.J, b.impulse, self._first, self._state, self._touched)
        kernels.balance(
            b.count, b.body, b.axes, b.amount, self._first, self._fixed, self._state, self._h, self._work
        )
        self._move(w)

    def compiled(self) -> tuple[NDArray, ...]:
        """Arrays for compiled steps of a world."""
        return (
            self._fixed,
            self._axes,
            self._state,
            self._given,
            self._gravity,
            self._wrench,
            self._touched,
            self._still,
            self._work,
            self.poses,
        )

    @property
    def state(self) -> Floats:
        return self._state.ravel().copy()

    @state.setter
    def state(self, value: Floats) -> None:
        self._state[:] = value.reshape(self._state.shape)
        kernels.place(self._fixed, self._axes, self._state, self._work, self.poses)

    def reset(self) -> None:
        self.loads.clear()
        self._given[:] = 0.0
        self.state = self._start

    # --- one body

    def set_load(self, index: int, load: Load) -> None:
        """Wrench on a body, in place of the one before."""
        self.loads.pop(index, None)
        if load.acts:
            self.loads[index] = load
        load.write(self._given[index])

    def velocity(self, index: int) -> Floats:
        """Velocity of a body's centre of mass and its angular velocity, world axes, (6,)."""
        out = np.zeros(self.size)
        kernels.velocities(self._fixed, self._state, self._work, out)
        return out[6 * index : 6 * index + 6]

    def move(self, index: int, pose: Floats | None, velocity: Floats | None, spin: Floats | None) -> None:
        """Pose of a body, velocity of its centre of mass and angular velocity, world; None leaves one as it is."""
        row, fixed, axes = self._state[index], self._fixed[index], self._axes[index]
        rate = self.velocity(index)[3:] if spin is None else spin
        if pose is not None:
            row[kernels.POSITION : kernels.QUATERNION] = (
                pose[:3, :3] @ fixed[kernels.CENTRE : kernels.MOMENT] + pose[:3, 3]
            )
            row[kernels.QUATERNION : kernels.MOMENTUM] = spatial.quat_from_matrix(pose[:3, :3] @ axes)
        if velocity is not None:
            row[kernels.MOMENTUM : kernels.ANGULAR] = fixed[kernels.MASS] * velocity
        turn = spatial.quat_to_matrix(row[kernels.QUATERNION : kernels.MOMENTUM])
        row[kernels.ANGULAR :] = turn @ (fixed[kernels.MOMENT :] * (turn.T @ rate))
        kernels.place(self._fixed, self._axes, self._state, self._work, self.poses)

    def momentum(self, index: int) -> Floats:
        """Momentum of a body, and angular momentum about the world's origin, (6,)."""
        x, p, spin = self._state[index, [0, 1, 2, 7, 8, 9, 10, 11, 12]].reshape(3, 3)
        return np.concatenate([p, spin + np.cross(x, p)])

    def kinetic(self, index: int) -> float:
        """Kinetic energy of a body, J."""
        return 0.5 * float(self.velocity(index) @ self._state[index, kernels.MOMENTUM :])
