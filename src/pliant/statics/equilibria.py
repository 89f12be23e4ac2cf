"""`equilibria`: static equilibria of one mechanism under many loads, on all cores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import MOST_THREADS, flag, whole
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.read_only import read_only
from pliant.statics import newton_kernels as kernels
from pliant.statics.arrays import Cases
from pliant.statics.configuration import Configuration
from pliant.statics.equilibrium import (
    STABILITIES,
    check_mechanism,
    check_size,
    explain,
    starting_point,
    unloaded_scale,
)
from pliant.statics.load_kernels import ACTS, FORCE, LINK, LOAD_SIZE
from pliant.statics.loads import (
    Loads,
    load_rows,
    loaded_body,
    loads_without_wrenches,
    parse_wrenches,
    row_sizes,
    tendon_lengths,
)
from pliant.statics.newton_kernels import ITERATIONS, RESIDUAL, RESULTS, STABILITY, STATE
from pliant.statics.workspace import borrow_statics
from pliant.text import brief, counted, track

__all__ = ["Equilibria", "Wrenches", "equilibria", "solve_cases", "solve_held"]

Floats = NDArray[np.float64]
Wrenches = Sequence[Mapping[str, Any]] | Mapping[str, ArrayLike]
_CHUNK = 64  # cases that follow each other; the same for any number of threads, so that results do not depend on it


class Equilibria:
    """Equilibria of a mechanism under many loads; made by `pliant.equilibria`.

    Attributes:
        mechanism: the mechanism.
        q: joint coordinates, (cases, nq); where the search ended for cases without an equilibrium.
        multipliers: constraint forces of loops (6 each, world axes) and couplings, (cases, rows).
        residual: largest unbalanced force as a fraction of the load, (cases,).
        iterations: Newton iterations, (cases,).
        converged: whether an equilibrium was found, (cases,).
        gravity: the gravity of all cases, as given.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        wrenches: Wrenches,
        gravity: tuple[float, ...] | None,
        parts: tuple[Loads, Cases],
        answers: tuple[Floats, Floats, Floats],
    ):
        self.mechanism, self.gravity, self._wrenches = mechanism, gravity, wrenches
        self._always, self._cases = parts
        q, multipliers, results = answers
        self.q, self.multipliers = read_only(q), read_only(multipliers)
        self._state, self._stability = results[:, STATE], results[:, STABILITY]
        self.residual = read_only(results[:, RESIDUAL].copy())
        self.iterations = read_only(results[:, ITERATIONS].astype(np.int64))
        self.converged = read_only(self._state == kernels.CONVERGED)

    def __len__(self) -> int:
        return len(self.q)

    @cached_property
    def stability(self) -> NDArray[Any]:
        """ "stable", "neutral" or "unstable" per case; "" where there is no equilibrium, (cases,)."""
        names = np.array(STABILITIES)[self._stability.astype(np.int64)]
        return np.where(self.converged, names, "")

    @cached_property
    def errors(self) -> dict[int, ConvergenceError]:
        """Why there is no equilibrium, by number of case, for those without."""
        return {i: self._error(i) for i in np.flatnonzero(~self.converged).tolist()}

    def poses(self, body: str | None = None) -> Floats:
        """World poses of a body, (cases, 4, 4), or of all bodies, (cases, bodies, 4, 4)."""
        m = self.mechanism
        if body is None:
            return kinematics.body_poses(m, self.q, np.arange(m.body_count))
        index = m.body_index(body)
        if index < 0:
            return np.tile(np.eye(4), (len(self), 1, 1))
        return kinematics.body_poses(m, self.q, np.array([index]))[:, 0]

    def wrenches(self, case: int) -> dict[str, Any]:
        """Wrenches of a case, as `pliant.equilibrium` takes them."""
        given = self._wrenches
        if isinstance(given, Mapping):
            return {
                body: tuple(np.asarray(values, dtype=float)[case].tolist()) for body, values in given.items()
            }
        return dict(given[case])

    def configuration(self, case: int) -> Configuration:
        """The equilibrium of a case, as `pliant.equilibrium` returns it.

        Raises:
            ConvergenceError: this case has none.
        """
        case = range(len(self))[case]
        if not self.converged[case]:
            raise self._error(case)
        found = self._configuration(case)
        found.stability = str(self.stability[case])
        return found

    def _configuration(self, case: int) -> Configuration:
        cases, (first, last) = self._cases, self._cases.start[case : case + 2]
        loads = self._always.with_rows(cases.rows[first:last], float(cases.scale[case]) - self._always.scale)
        found = Configuration.known(self.mechanism, self.q[case].copy(), self.multipliers[case].copy(), loads)
        found.residual, found.iterations = float(self.residual[case]), int(self.iterations[case])
        found.wrenches, found.gravity = self.wrenches(case), self.gravity
        return found

    def _error(self, case: int) -> ConvergenceError:
        return explain(self._configuration(case), float(self._state[case]))

    def __repr__(self) -> str:
        missing = len(self) - int(self.converged.sum())
        lost = f", {missing} not found" if missing else ""
        return f"<Equilibria of '{self.mechanism.name}': {counted(len(self), 'load case')}{lost}>"


def equilibria(
    mechanism: Mechanism,
    loads: Wrenches,
    *,
    gravity: ArrayLike | None = None,
    start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None = None,
    limits: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> Equilibria:
    """Static equilibria of one mechanism under many loads, on all cores.

    A case whose load is similar to the one before it starts from its equilibrium: order the cases along paths, such as
    the rows of a grid. The others are found as by `pliant.equilibrium`. Where a mechanism has several equilibria under
    one load, the one found may depend on the cases before it.

    Args:
        mechanism: the mechanism.
        loads: mappings `{body: wrench}`, one per case, as `pliant.equilibrium` takes them; or one mapping of arrays,
            `{body: forces (n, 3), or forces and torques (n, 6)}`, world axes, at the origins of the bodies.
        gravity, limits: as for `pliant.equilibrium`, the same for all cases.
        start: where cases start from that do not follow the one before them, as for `pliant.equilibrium`.
        threads: number of threads; None for one per core. Results do not depend on it.
        progress: show a progress bar.

    Returns:
        The `Equilibria`: arrays over all cases, and each as a `Configuration`. A case without an equilibrium does not
        stop the others; see `Equilibria.converged` and `Equilibria.errors`.

    Example:
        >>> import pliant
        >>> gripper = pliant.gallery.gripper()
        >>> found = pliant.equilibria(gripper, {"left_pad": [(-f, 0, 0) for f in range(20)]})
        >>> bool(found.converged.all())
        True
    """
    return solve_cases(
        mechanism,
        loads,
        gravity=gravity,
        start=start,
        limits=limits,
        threads=threads,
        progress="equilibria" if flag(progress, "progress") else "",
        follow=True,
    )


def solve_cases(
    mechanism: Mechanism,
    loads: Wrenches,
    *,
    gravity: ArrayLike | None = None,
    start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None = None,
    limits: bool = False,
    threads: int | None = None,
    progress: str = "",
    follow: bool = False,
) -> Equilibria:
    """`equilibria`; without `follow` every case begins at the start: results depend on no order.

    `progress` is the title of a progress bar, or empty for none.
    """
    m = check_mechanism(mechanism)
    threads = whole(os.cpu_count() or 1 if threads is None else threads, "threads", 1, MOST_THREADS)
    always = loads_without_wrenches(m, gravity, limits)
    cases = _make_cases(m, loads, always)
    begin, forces = starting_point(m, start)
    answers = _allocate_answers(m, cases)
    count = len(cases.scale)
    size = _CHUNK if follow else max(1, -(-count // (4 * threads)))

    def solve(chunk: int) -> None:
        part = chunk, min(chunk + size, count)
        _find(m, cases, part, (begin.copy(), forces, start is not None, follow), answers)

    chunks = range(0, count, size)
    if threads == 1 or len(chunks) < 2:
        for chunk in track(chunks, progress, progress != ""):
            solve(chunk)
    else:
        with ThreadPoolExecutor(min(threads, len(chunks))) as pool:
            try:
                for done in track([pool.submit(solve, chunk) for chunk in chunks], progress, progress != ""):
                    done.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    down = None if gravity is None else tuple(np.asarray(gravity, dtype=float).tolist())
    kept = loads if isinstance(loads, Mapping) else tuple(loads)
    return Equilibria(m, kept, down, (always, cases), answers)


def solve_held(m: Mechanism, loads: Wrenches, q: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Equilibria of a mechanism that springs hold at each of many configurations, by one kernel on this thread.

    Springs are slack and weights compensated there, as `pliant.equilibrium(m.with_pose(q), loads)` has it.

    Args:
        m: the mechanism.
        loads: as for `equilibria`, one case per configuration.
        q: these configurations, (cases, nq), loops closed.

    Returns:
        Coordinates of the equilibria, (cases, nq), and whether each was found, (cases,).
    """
    cases = _make_cases(m, loads, loads_without_wrenches(m, None, False), q)
    answers = _allocate_answers(m, cases)
    start = q[0].copy(), np.zeros(m.elimination.hard), False, False
    _find(m, cases, (0, len(q)), start, answers)
    return answers[0], answers[2][:, STATE] == kernels.CONVERGED


def _make_cases(m: Mechanism, loads: Wrenches, always: Loads, held: Floats | None = None) -> Cases:
    """Load cases; `held` are reference poses of their own, at which springs are slack, (cases, nq)."""
    rows, first = _rows_of_arrays(m, loads) if isinstance(loads, Mapping) else _rows_of_cases(m, loads)
    count = len(first) - 1
    of = np.repeat(np.arange(count), np.diff(first))
    scale: Floats = always.scale + np.bincount(of, row_sizes(m, rows), minlength=count).astype(np.float64)
    scale[scale == 0.0] = unloaded_scale(m)
    if count:
        check_size(m, float(scale.max()), f"the load of case {int(scale.argmax())}")
    given = always.arrays
    reference, rest, tendon_rest = np.array(m.reference)[None], given.rest[None], given.tendon_rest[None]
    if held is not None:
        reference, rest, tendon_rest = held, held, np.array([tendon_lengths(m, q, q) for q in held])
    return Cases(rows, first, given.rows, reference, rest, tendon_rest, given.stops, scale)


def _allocate_answers(m: Mechanism, cases: Cases) -> tuple[Floats, Floats, Floats]:
    count = len(cases.scale)
    return np.zeros((count, m.nq)), np.zeros((count, m.elimination.hard)), np.zeros((count, RESULTS))


def _find(m: Mechanism, cases: Cases, part: tuple[int, int], start: Any, answers: Any) -> None:
    """Answers to the cases `part[0]` to `part[1]`; arguments as of the kernel."""
    room = np.empty((len(cases.weights) + int(np.diff(cases.start).max(initial=0)), LOAD_SIZE))
    with borrow_statics(m) as arrays:
        kernels.find_equilibria(*arrays, cases, room, *part, *start, *answers)


def _rows_of_arrays(m: Mechanism, loads: Mapping[str, ArrayLike]) -> tuple[Floats, NDArray[np.int64]]:
    """Rows of loads from arrays by body, and where those of every case start."""
    values: dict[int, Floats] = {}
    for body, given in loads.items():
        try:
            array = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"loads on '{body}': numbers expected, not {brief(given)}") from None
        if array.ndim != 2 or array.shape[1] not in (3, 6):
            raise InputError(
                f"loads on '{body}': an array (cases, 3) or (cases, 6) expected, got shape {array.shape}"
            )
        if not np.isfinite(array).all():
            raise InputError(
                f"loads on '{body}': not finite in case {np.argwhere(~np.isfinite(array))[0, 0]}"
            )
        values[loaded_body(m, body)] = array
    if not values:
        raise InputError("loads: an array for at least one body expected")
    lengths = {len(array) for array in values.values()}
    if len(lengths) > 1:
        raise InputError(f"loads: arrays of {sorted(lengths)} cases: give the same number for all bodies")
    count = lengths.pop()
    rows = np.zeros((count, len(values), LOAD_SIZE))
    for i, (body, array) in enumerate(values.items()):
        rows[:, i, FORCE : FORCE + array.shape[1]] = array
        rows[:, i, ACTS], rows[:, i, LINK] = array.any(axis=1), m.links.body_link[body]
    return rows.reshape(-1, LOAD_SIZE), len(values) * np.arange(count + 1)


def _rows_of_cases(m: Mechanism, loads: Any) -> tuple[Floats, NDArray[np.int64]]:
    """Rows of loads from one mapping per case, and where those of every case start."""
    if isinstance(loads, str) or not isinstance(loads, Sequence):
        raise InputError(
            "loads: a sequence of mappings {body: wrench}, or one mapping {body: array} expected"
        )
    parts, first = [np.zeros((0, LOAD_SIZE))], np.zeros(len(loads) + 1, dtype=np.int64)
    for i, wrenches in enumerate(loads):
        if not isinstance(wrenches, Mapping):
            raise InputError(f"loads: case {i} is no mapping {{body: wrench}} but {brief(wrenches)}")
        parts.append(load_rows(parse_wrenches(m, wrenches), m.links.body_link))
        first[i + 1] = first[i] + len(wrenches)
    return np.concatenate(parts), first
