"""`FreeBodies`: all free rigid bodies of a world, as one actor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.contact import _free as kernels
from pliant.errors import ConvergenceError, InputError
from pliant.statics.loads import LOAD_SIZE, Load

__all__ = ["FreeBodies"]

Floats = NDArray[np.float64]
_UNIT = 1e-6  # by how much the square of a quaternion may differ from one
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class FreeBodies:
    """Rigid bodies without joints. Momentum and angular momentum change by impulses alone, exactly.

    In free flight a body follows its parabola, and rotates with constant angular momentum and energy. In contact the
    kernels of a world's contact step move all of them together; see `Actor` for the words that they share.
    """

    def __init__(self, timestep: float, gravity: Floats):
        self._h, self._gravity = timestep, gravity
        self.gain = timestep * float(np.linalg.norm(gravity))  # speed that gravity adds in a step, m/s
        self.fall = 0.0  # margins of free bodies account for their speed and `gain` themselves
        self.names: list[str] = []
        self.loads: dict[int, Load] = {}
        self._set(np.zeros((0, kernels.FIXED)), np.zeros((0, 3, 3)), np.zeros((0, kernels.STATE)))
        self._start = self._state.copy()

    def _set(self, fixed: Floats, axes: Floats, state: Floats) -> None:
        self._state, self.count, self.size = state, len(fixed), 6 * len(fixed)
        self.arrays = kernels.FreeArrays(
            fixed=fixed,
            axes=axes,
            state=state,
            loads=np.zeros((self.count, LOAD_SIZE)),
            gravity=self._gravity,
            wrench=np.zeros((self.count, 6)),
            touched=np.zeros(self.count, dtype=bool),
            still=np.zeros(self.size),
            work=np.zeros((5, 4)),
            poses=np.tile(np.eye(4), (self.count, 1, 1)),
        )
        for index, load in self.loads.items():
            load.write(self.arrays.loads[index])
        self._place()

    def _place(self) -> None:
        """Poses from the state."""
        a = self.arrays
        kernels.place(a.fixed, a.axes, a.state, a.work, a.poses)

    @property
    def poses(self) -> Floats:
        """World poses, (bodies, 4, 4)."""
        return self.arrays.poses

    def add(self, name: str, mass: float, com: Floats, inertia: Floats, pose: Floats, twist: Floats) -> None:
        """Add a body: mass, centre of mass and inertia about it in its frame, pose; velocity and spin, world."""
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
        if not np.isfinite(state).all():
            raise InputError(f"body '{name}': its place or its momentum is too large for a number")
        fixed = np.concatenate([[mass], com, moments])
        self._set(
            np.concatenate([self.arrays.fixed, fixed[None]]),
            np.concatenate([self.arrays.axes, axes[None]]),
            np.concatenate([self._state, state[None]]),
        )
        self.names.append(name)
        self._start = np.concatenate([self._start, state[None]])

    # --- as an actor

    @property
    def sizes(self) -> Ints:
        """Length of the rows of each body."""
        return np.full(self.count, 6, dtype=np.int64)

    @property
    def offsets(self) -> Ints:
        """Offset of the rows of each body in the actor's velocities."""
        return 6 * np.arange(self.count, dtype=np.int64)

    def write_poses(self, out: Floats) -> None:
        """Write the world poses of all bodies."""
        out[:] = self.poses

    def not_finite(self, body: int) -> ConvergenceError:
        """The error of a body whose state is not finite."""
        return ConvergenceError(
            f"body '{self.names[body]}' left the finite numbers: a shorter timestep may help"
        )

    def step(self) -> None:
        """Take a step without contacts."""
        bad = kernels.fly(self.arrays, self._h)
        if bad >= 0:
            raise self.not_finite(bad)

    @property
    def state(self) -> Floats:
        """State of all bodies, flat; see `_free` for the columns."""
        return self._state.ravel().copy()

    @state.setter
    def state(self, value: Floats) -> None:
        if not isinstance(value, np.ndarray) or value.size != self._state.size or value.dtype != np.float64:
            raise InputError("state: it belongs to other free bodies")
        if not np.isfinite(value).all():
            raise InputError("state: numbers of free bodies are not finite")
        turns = value.reshape(self._state.shape)[:, kernels.QUATERNION : kernels.MOMENTUM]
        with np.errstate(over="ignore"):
            if (np.abs((turns**2).sum(axis=1) - 1.0) > _UNIT).any():
                raise InputError("state: the orientation of a free body is no unit quaternion")
        self._state[:] = value.reshape(self._state.shape)
        self._place()

    def reset(self) -> None:
        """Return to the start, without loads."""
        self.loads.clear()
        self.arrays.loads[:] = 0.0
        self.state = self._start

    # --- one body

    def set_load(self, index: int, load: Load) -> None:
        """Set the wrench on a body; it replaces the one before."""
        self.loads.pop(index, None)
        if load.acts:
            self.loads[index] = load
        load.write(self.arrays.loads[index])

    def velocity(self, index: int) -> Floats:
        """Velocity of a body's centre of mass and its angular velocity, world axes, (6,)."""
        out = np.zeros(self.size)
        kernels.velocities(self.arrays.fixed, self._state, self.arrays.work, out)
        return out[6 * index : 6 * index + 6]

    def move(self, index: int, pose: Floats | None, velocity: Floats | None, spin: Floats | None) -> None:
        """Pose of a body, velocity of its centre of mass and angular velocity, world; None leaves one as it is."""
        row, fixed, axes = self._state[index].copy(), self.arrays.fixed[index], self.arrays.axes[index]
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
        if not np.isfinite(row).all():
            raise InputError(
                f"body '{self.names[index]}': its place or its momentum is too large for a number"
            )
        self._state[index] = row
        self._place()

    def momentum(self, index: int) -> Floats:
        """Momentum of a body, and angular momentum about the world's origin, (6,)."""
        x, _, p, spin = np.split(self._state[index], [kernels.QUATERNION, kernels.MOMENTUM, kernels.ANGULAR])
        return np.concatenate([p, spin + np.cross(x, p)])

    def kinetic(self, index: int) -> float:
        """Kinetic energy of a body, J."""
        return 0.5 * float(self.velocity(index) @ self._state[index, kernels.MOMENTUM :])
