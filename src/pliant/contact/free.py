"""Free rigid bodies of a world: all of them one actor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.contact import _free_kernels as kernels
from pliant.contact.solver import Blocks
from pliant.engines.wrenches import WRENCH_SIZE, entry
from pliant.errors import ConvergenceError, InputError
from pliant.shapes import Shape

__all__ = ["FreeBodies", "FreeBody"]

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
        self._given = np.zeros((0, WRENCH_SIZE))
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
        self._given = np.zeros((self.count, WRENCH_SIZE))
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

    def begin(self, blocks: Blocks, turning: Bools, before: Floats, u: Floats) -> None:
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

    def finish(self, blocks: Blocks, turning: Bools, u: Floats, w: Floats) -> None:
        b = blocks
        kernels.strike(b.count, b.body, b.side, b.J, b.impulse, self._first, self._state, self._touched)
        kernels.balance(
            b.count, b.body, b.axes, b.amount, self._first, self._fixed, self._state, self._h, self._work
        )
        self._move(w)

    def arrays(self) -> tuple[NDArray, ...]:
        """What compiled steps need."""
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
        self._given[:] = 0.0
        self.state = self._start


class FreeBody:
    """One free body of a world, `world[name]`."""

    def __init__(self, bodies: FreeBodies, index: int, shapes: Sequence[Shape]):
        self._bodies, self._index = bodies, index
        self.shapes = tuple(shapes)

    @property
    def name(self) -> str:
        return self._bodies.names[self._index]

    @property
    def mass(self) -> float:
        """kg."""
        return float(self._bodies._fixed[self._index, 0])

    @property
    def poses(self) -> Floats:
        """World pose, (1, 4, 4)."""
        return self._bodies.poses[self._index : self._index + 1].copy()

    def pose(self, body: str | None = None) -> Floats:
        """World pose, 4 x 4."""
        self._check(body)
        return self._bodies.poses[self._index].copy()

    @property
    def position(self) -> Floats:
        """World position of the body's origin, (3,)."""
        return self._bodies.poses[self._index, :3, 3].copy()

    @property
    def twist(self) -> Floats:
        """Velocity of the centre of mass and angular velocity, world axes, (6,); set it to throw the body."""
        b = self._bodies
        out = np.zeros(b.size)
        kernels.velocities(b._fixed, b._state, b._work, out)
        return out[6 * self._index : 6 * self._index + 6]

    @twist.setter
    def twist(self, value: ArrayLike) -> None:
        given = np.asarray(value, dtype=np.float64)
        if given.shape != (6,) or not np.isfinite(given).all():
            raise InputError(f"twist of '{self.name}': 6 finite numbers expected, got shape {given.shape}")
        b, i = self._bodies, self._index
        turn = spatial.quat_to_matrix(b._state[i, 3:7])
        b._state[i, 7:10] = self.mass * given[:3]
        b._state[i, 10:13] = turn @ (b._fixed[i, 4:7] * (turn.T @ given[3:]))

    @property
    def momentum(self) -> Floats:
        """Momentum and angular momentum about the world's origin, (6,)."""
        x, p, turn = self._bodies._state[self._index, [0, 1, 2, 7, 8, 9, 10, 11, 12]].reshape(3, 3)
        return np.concatenate([p, turn + np.cross(x, p)])

    @property
    def kinetic(self) -> float:
        """Kinetic energy, J."""
        row = self._bodies._state[self._index]
        return 0.5 * float(self.twist @ row[7:13])

    def apply_wrench(
        self,
        body: str | None = None,
        force: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        *,
        point: ArrayLike | None = None,
        frame: str = "world",
    ) -> None:
        """Set the wrench on the body; it replaces the one before and stays until cleared. As in all simulations."""
        self._check(body)
        self._bodies._given[self._index] = entry(self.name, force, torque, point, frame)

    def clear_wrenches(self) -> None:
        """Take the wrench away."""
        self._bodies._given[self._index] = 0.0

    def _check(self, body: str | None) -> None:
        if body is not None and body != self.name:
            raise InputError(f"'{self.name}' is a body by itself: it has no '{body}'")

    def __repr__(self) -> str:
        return (
            f"<FreeBody '{self.name}': {self.mass:.6g} kg at {np.array2string(self.position, precision=4)}>"
        )
