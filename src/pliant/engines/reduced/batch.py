"""`ReducedBatch`: many copies of one model, each with its own wrenches, on all cores."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import MOST_THREADS, choice, numbers, room, whole
from pliant.engines.reduced import kernels
from pliant.engines.reduced.arrays import METHODS, check_arguments
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.manifold import pack_model
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.simulation import Stride, are_poses
from pliant.errors import ConvergenceError, InputError
from pliant.one_thread import Use, exclusive
from pliant.statics.equilibrium import beside_springs
from pliant.statics.load_kernels import FOLLOWER_FORCE, FOLLOWER_TORQUE, FORCE, TORQUE
from pliant.statics.loads import LOAD_SIZE, Load
from pliant.text import brief, counted
from pliant.threads import Threads

__all__ = ["ReducedBatch"]

Floats = NDArray[np.float64]
_KINDS = (FORCE, FOLLOWER_FORCE), (TORQUE, FOLLOWER_TORQUE)  # columns of loads


class ReducedBatch:
    """Copies of a reduced or blended model that move independently: methods of `ReducedSimulation`, one row per copy.

    Results do not depend on the number of threads.

    Example:
        >>> import numpy as np, pliant
        >>> model = pliant.reduce(pliant.gallery.hand())
        >>> batch = pliant.ReducedBatch(model, 0.001, copies=100)
        >>> batch.apply_wrench("thumb_tip", force=np.outer(np.linspace(0, 2, 100), [0, 0, 1]))
        >>> batch.step(50)
        >>> batch.poses.shape
        (100, 17, 4, 4)
    """

    def __init__(
        self,
        model: ReducedModel | BlendedModel,
        timestep: float,
        copies: int,
        reconstruction: str = "joint",
        gravity: ArrayLike | None = None,
        threads: int | None = None,
        method: str = "auto",
    ):
        """Start all copies at rest.

        Args:
            model, timestep, reconstruction, gravity, method: as for `ReducedSimulation`.
            copies: number of copies.
            threads: number of threads; all cores by default.
        """
        force = check_arguments(model, timestep, reconstruction, gravity)
        copies = whole(copies, "copies", 1)
        threads = whole(os.cpu_count() or 1 if threads is None else threads, "threads", 1, MOST_THREADS)
        choice(method, "method", METHODS)
        packed = pack_model(model, float(timestep), reconstruction, force, method, len(model.end_effectors))
        self._kernels, self._use = packed.kernels, Use()
        self._options = (model, timestep, copies, reconstruction, gravity, threads, method)
        self._model, self._timestep, self._copies = model, float(timestep), copies
        self._start = packed.state
        self._states = room((copies, *packed.state.shape), f"copies: {brief(copies)} states")
        self._all_poses = room((copies, *packed.poses.shape), f"copies: {brief(copies)} times all poses")
        self._states[:], self._all_poses[:] = packed.state, packed.poses
        self._shown = self._all_poses[:, : model.mechanism.body_count].view()
        self._shown.flags.writeable = False
        self._moving = self._states[:, : packed.sizes[kernels.WRENCH]]
        self._wrenches = self._states[:, packed.sizes[kernels.WRENCH] : packed.sizes[kernels.WORK]].reshape(
            copies, -1, LOAD_SIZE
        )
        threads = min(threads, copies)
        edges = np.linspace(0, self._copies, threads + 1).astype(int).tolist()
        # of each thread: steps that are divided or meet stops change them on the way
        self._constant = [
            (packed.sizes.copy(), packed.links, packed.constants.copy()) for _ in range(threads)
        ]
        self._parts = [slice(a, b) for a, b in pairwise(edges)]
        self._pool = Threads(threads) if threads > 1 else None
        self._stride = Stride()

    def _map(self, kernel: Any, *arguments: Any) -> list[Any]:
        """Run a kernel on every thread's copies; kernels release the GIL."""

        def run(thread: int) -> Any:
            part = self._parts[thread]
            return kernel(*arguments, *self._constant[thread], self._states[part], self._all_poses[part])

        if self._pool is None:
            return [run(0)]
        return self._pool.run(run, range(len(self._parts)))

    @property
    def model(self) -> ReducedModel | BlendedModel:
        """The model in motion."""
        return self._model

    @property
    def copies(self) -> int:
        """Number of copies."""
        return self._copies

    @property
    def timestep(self) -> float:
        """Length of a step, s."""
        return self._timestep

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return float(self._states[0, kernels.TIME])

    @exclusive
    def step(self, n: int = 1) -> None:
        """Advance all copies by `n` time steps. Ctrl-C ends it soon, with all copies at the same time.

        Raises:
            ConvergenceError: a copy left the finite numbers; all are as after the last step that every copy completed.
        """
        for part in self._stride.parts(whole(n, "step: n", 0)):
            before = self._moving.copy()
            try:
                self._advance(part, before)
            except ConvergenceError:
                raise
            except BaseException:  # Ctrl-C: some copies may be ahead of others
                self._moving[:] = before
                self._map(self._kernels.reconstruct_batch)
                raise

    def _advance(self, n: int, before: Floats) -> None:
        """Take `n` steps from the state `before`."""
        ends = self._map(self._kernels.advance_batch, n)
        done = min(least for _, least in ends)
        if done == n:
            return
        part, copy = next((p, c) for p, (c, least) in zip(self._parts, ends, strict=True) if least == done)
        self._moving[:] = before
        self._map(self._kernels.reconstruct_batch)
        self._map(self._kernels.advance_batch, done)
        index, m = part.start + copy, self._model.mechanism
        rows = np.abs(self._wrenches[index])
        force, torque = (rows[:, w : w + 3] + rows[:, v : v + 3] for w, v in _KINDS)
        said = beside_springs(m, float((force + torque / m.radius).max(initial=0.0)))
        raise ConvergenceError(f"copy {index} left the finite numbers at t = {self.time:.6g} s: {said}")

    @property
    def poses(self) -> Floats:
        """World poses of all bodies of all copies, (copies, bodies, 4, 4); read-only, changed by the next step."""
        return self._shown

    def pose(self, body: str) -> Floats:
        """World poses of a body in all copies, (copies, 4, 4)."""
        index = self._model.mechanism.body_index(body)
        return np.tile(np.eye(4), (self._copies, 1, 1)) if index < 0 else self._shown[:, index].copy()

    @exclusive
    def apply_wrench(
        self,
        body: str,
        force: ArrayLike | None = None,
        torque: ArrayLike | None = None,
        *,
        point: ArrayLike | None = None,
        frame: str = "world",
    ) -> None:
        """Set the wrench on an end effector of all copies: 3 numbers for all, or (copies, 3)."""
        place = self._model.index(body)
        load = Load.of(body, force, torque, point, frame, self._copies)
        load.write(self._wrenches[:, place], self._model.mechanism.body_index(body))

    @exclusive
    def clear_wrenches(self) -> None:
        """Take all wrenches away."""
        self._wrenches[:] = 0.0

    @exclusive
    def reset(self) -> None:
        """Restore all copies as constructed, without wrenches."""
        self._states[:] = self._start
        self._map(self._kernels.reconstruct_batch)

    @property
    def state(self) -> Floats:
        """States of all copies, (copies, numbers); each row time, coordinates, rates and base of a copy."""
        return self._moving.copy()

    @state.setter
    @exclusive
    def state(self, value: ArrayLike) -> None:
        given = numbers(value, "state")
        if given.shape not in (self._moving.shape, self._moving.shape[1:]):
            raise InputError(f"state: shape {self._moving.shape} expected, got {given.shape}")
        if not np.isfinite(given).all():
            raise InputError("state: not all numbers are finite")
        before = self._moving.copy()
        self._moving[:] = given
        self._map(self._kernels.reconstruct_batch)
        if not are_poses(self._shown):
            self._moving[:] = before
            self._map(self._kernels.reconstruct_batch)
            raise InputError("state: its numbers are damaged: they give bodies no pose")

    @exclusive
    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._options, self.state, self._wrenches.copy())

    def __repr__(self) -> str:
        m = self._model.mechanism
        return (
            f"<ReducedBatch of {counted(self._copies, 'copy', 'copies')} of '{m.name}': "
            f"{counted(m.body_count, 'body', 'bodies')}, steps of {self.timestep:.6g} s, at t = {self.time:.6g} s>"
        )


def _restored(options: tuple[Any, ...], state: Floats, wrenches: Floats) -> ReducedBatch:
    """Independent batch from the values of `__reduce__`."""
    out = ReducedBatch(*options)
    out.state = state
    out._wrenches[:] = wrenches
    return out
