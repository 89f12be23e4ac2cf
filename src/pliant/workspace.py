"""`compliance_map`: stiffness, natural frequency and room to joint limits of an end effector over its workspace.

At every sampled configuration the springs are slack and weights are compensated: position servos hold the robot there.
With joint stiffness K and the Jacobian J of the end effector its compliance is `J K⁻¹ Jᵀ`; where loops or couplings tie
joints to each other, K⁻¹ acts on the motions that they allow (`statics.servo`).
"""

from __future__ import annotations

import math
import os
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import MOST_THREADS, flag, numbers, vector, whole
from pliant.errors import ConvergenceError, InputError, PliantError
from pliant.extras import require
from pliant.files import as_path, check_writable, replacing
from pliant.mechanism import Mechanism, edit, kinematics
from pliant.mechanism.joints import BALL, HINGE
from pliant.mechanism.loop_closure import LoopCloser, close_loops
from pliant.statics import Configuration
from pliant.statics.equilibria import solve_held
from pliant.statics.servo import Holder
from pliant.text import LENGTHS, brief, counted, listed, table, unit_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pliant.viewer.map_view import MapView

__all__ = ["ComplianceMap", "Principal", "compliance_map", "with_held_base"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_SAMPLES = 512
_POINTS = 21  # per joint of a grid
_MOST = 1_000_000  # samples
_CHUNK = 64  # samples at a time; the same whatever the number of threads
_DOFS = 2000  # of a mechanism whose frequencies are computed, at most
_CHUNK_NUMBERS = 4_000_000  # in a chunk's matrices of dofs, at most
_BEYOND = 1e-9  # radians and radii: closer to a limit is at the limit
_DEPENDENT = 1e-6  # remainder of a column of loops' rows that counts as none
_NUDGE = 0.1  # radians and radii: away from the reference pose, which may be singular
_ROUNDING = 1e-12  # of the largest compliance: not shown
_SUFFIXES = (".csv", ".parquet", ".npz")
_AXES = ("x", "y", "z")
_OPEN, _LIMITS, _FREE = "loops do not close", "beyond joint limits", "held by no spring"


class Principal(NamedTuple):
    """Principal compliances at every sample.

    Attributes:
        compliance: along the principal directions, largest first, (samples, 3), m/N or rad/(N m).
        axes: these directions, in columns, world axes, (samples, 3, 3); the largest entry of each is positive.
    """

    compliance: Floats
    axes: Floats


@dataclass(frozen=True, eq=False, repr=False)
class ComplianceMap:
    """An end effector at sampled configurations of its mechanism, each held there by its springs.

    Attributes:
        mechanism: the mechanism, its base held if it floats.
        end_effector: name of the body.
        joints: names of the dofs that were sampled.
        shape: number of points per joint if they form a grid, else the number of samples; both with those dropped.
        dropped: number of samples without a result, by reason.
        index: numbers of the samples with a result among all, (samples,).
        q: joint coordinates, (samples, nq).
        poses: world poses of the end effector, (samples, 4, 4).
        compliance: twist per wrench at its origin, world axes, linear part first, (samples, 6, 6).
        frequency: lowest natural frequency of the mechanism, Hz, (samples,); NaN where some motion meets no stiffness.
        margin: room of the joints that move to their nearest limit, as a fraction of the joint's range, 0 to 0.5; NaN
            if none has limits on both sides.
        margin_joint: the dof it is of, (samples,); empty if there is none.
        load: the force, or force and torque, of the sag, world axes; None for none.
        sag: displacement of the end effector under `load`, m, (samples, 3); NaN without a load or an equilibrium.
    """

    mechanism: Mechanism
    end_effector: str
    joints: tuple[str, ...]
    shape: tuple[int, ...]
    dropped: dict[str, int]
    index: Ints
    q: Floats
    poses: Floats
    compliance: Floats
    frequency: Floats
    margin: Floats
    margin_joint: NDArray[Any]
    load: tuple[float, ...] | None
    sag: Floats

    def __len__(self) -> int:
        return len(self.index)

    @property
    def total(self) -> int:
        """Number of samples, with those dropped."""
        return math.prod(self.shape)

    @property
    def position(self) -> Floats:
        """Positions of the end effector's origin, world, m, (samples, 3)."""
        return self.poses[:, :3, 3]

    @cached_property
    def translation(self) -> Principal:
        """Principal compliances under forces, m/N."""
        return _principal(self.compliance[:, :3, :3])

    @cached_property
    def rotation(self) -> Principal:
        """Principal compliances under torques, rad/(N m)."""
        return _principal(self.compliance[:, 3:, 3:])

    @property
    def worst(self) -> Floats:
        """Compliance in the softest direction, m/N, (samples,)."""
        return self.translation.compliance[:, 0]

    @property
    def worst_direction(self) -> Floats:
        """The softest direction, world axes, (samples, 3)."""
        return self.translation.axes[:, :, 0]

    @property
    def best(self) -> Floats:
        """Compliance in the stiffest direction, m/N, (samples,)."""
        return self.translation.compliance[:, 2]

    @property
    def best_direction(self) -> Floats:
        """The stiffest direction, world axes, (samples, 3)."""
        return self.translation.axes[:, :, 2]

    def coordinates(self, joint: str) -> Floats:
        """Coordinate of a joint or dof at every sample, (samples,) or, of a joint with several, (samples, count)."""
        values = self.q[:, edit.named_coordinates(self.mechanism, joint)]
        return values[:, 0] if values.shape[1] == 1 else values

    def configuration(self, sample: int) -> Configuration:
        """The configuration of a sample, as the reference pose of the mechanism: `equilibrium` starts from there."""
        return Configuration(self.mechanism.with_pose(self.q[sample]))

    def grid(self, values: ArrayLike) -> Floats:
        """Values per sample in the shape of the grid, one axis per joint; NaN for samples that were dropped."""
        out = np.full(self.total, np.nan)
        out[self.index] = values
        return out.reshape(self.shape)

    # --- tables and files

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        """One array per column of the table, (samples,) each."""
        out: dict[str, NDArray[Any]] = {"index": self.index}
        out |= {f"q.{name}": self.coordinates(name) for name in self.joints}
        out |= dict(zip(_AXES, self.position.T, strict=True))
        for label, found in (("", self.translation), ("turn.", self.rotation)):
            for which, name in ((0, "worst"), (2, "best")):
                out[label + name] = found.compliance[:, which]
                out |= {f"{label}{name}.{axis}": found.axes[:, i, which] for i, axis in enumerate(_AXES)}
            block = self.compliance[:, 3:, 3:] if label else self.compliance[:, :3, :3]
            pairs = [(i, j) for i in range(3) for j in range(i, 3)]
            out |= {f"{label}c.{_AXES[i]}{_AXES[j]}": block[:, i, j] for i, j in pairs}
        out |= {"frequency": self.frequency, "margin": self.margin, "margin.joint": self.margin_joint}
        if self.load is not None:
            out |= {f"sag.{axis}": self.sag[:, i] for i, axis in enumerate(_AXES)}
        return out

    @cached_property
    def table(self) -> Any:
        """The table as a pandas DataFrame if pandas is installed, else as a dictionary of arrays."""
        try:
            import pandas
        except ImportError:
            return self.columns
        return pandas.DataFrame(self.columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table: `.csv`, `.parquet`, or `.npz`, which also has `q`, `poses` and `compliance` as arrays.

        Raises:
            FormatError: the suffix is another one, or the file cannot be written.
        """
        path = as_path(path)
        check_writable(path, *_SUFFIXES)
        suffix = path.suffix.lower()
        if suffix == ".parquet":
            from pliant.study.store import column

            pa: Any = require("pyarrow")
            from pyarrow import parquet

            kinds = {"i": int, "f": float, "U": str}
            parts = {key: column(v.tolist(), kinds[v.dtype.kind]) for key, v in self.columns.items()}
            with replacing(path) as file:
                parquet.write_table(pa.table(parts), file, compression="zstd")
        elif suffix == ".npz":
            arrays = {"q": self.q, "poses": self.poses, "compliance": self.compliance}
            with replacing(path) as file:
                np.savez_compressed(file, allow_pickle=False, **self.columns, **arrays)
        else:
            rows = zip(*(values.tolist() for values in self.columns.values()), strict=True)
            lines = [",".join(map(_cell, row)) for row in (self.columns, *rows)]
            with replacing(path) as file:
                file.write(("\n".join(lines) + "\n").encode())

    # --- words and pictures

    def summary(self) -> str:
        """Range of every quantity, and the configurations with the largest and least compliance."""
        lines = [f"{self.mechanism.name}: {self.end_effector}, {self._counts()}"]
        if not len(self):
            return lines[0]
        most = float(self.worst.max())
        factor, unit = unit_for(most, LENGTHS)
        turn = _ROUNDING * most / self.mechanism.radius**2
        rows = [
            _spread(f"softest direction ({unit}/N)", self.worst / factor),
            _spread(f"stiffest direction ({unit}/N)", self.best / factor, _ROUNDING * most / factor),
            _spread("softest turn (rad/(N m))", self.rotation.compliance[:, 0], turn),
            _spread("first frequency (Hz)", self.frequency),
            _spread("room to a joint limit", self.margin),
        ]
        if self.load is not None:
            rows.append(_spread(f"sag ({unit})", np.linalg.norm(self.sag, axis=1) / factor))
        lines += ["", table(["", "least", "median", "most"], rows), ""]
        for word, at in (("softest", int(self.worst.argmax())), ("stiffest", int(self.worst.argmin()))):
            where = " ".join(f"{x:.4g}" for x in self.position[at])
            joints = ", ".join(f"{n} {self.coordinates(n)[at]:.4g}" for n in self.joints[:8])
            more = ", ..." if len(self.joints) > 8 else ""
            lines.append(f"{word}: sample {self.index[at]} at ({where}) m, {joints}{more}")
        return "\n".join(lines)

    def _counts(self) -> str:
        """Joints, number of samples and of those dropped, in words."""
        many = "x".join(map(str, self.shape))
        lost = "".join(f", {n} {reason}" for reason, n in self.dropped.items() if n)
        kept = f"; {len(self)} of them with a result{lost}" if lost else ""
        return f"{many} samples of {listed(self.joints, 8, quoted=False)}{kept}"

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, view: tuple[float, float] | None = None
    ) -> Figure:
        """A picture: the workspace coloured by the largest compliance, with the mechanism and a few ellipsoids.

        Args:
            path: where to save it (.png, .svg, .pdf); not saved if None.
            view: where to look from: elevation and azimuth, degrees; by default a plane workspace is seen face on.
        """
        from pliant.viewer.map_picture import plot_map

        return plot_map(self, path, view=view)

    def view(self, *, host: str = "127.0.0.1", port: int = 8080, block: bool = True) -> MapView:
        """Show the map in the browser, samples coloured; click one to see the mechanism there. As `pliant.view`."""
        from pliant.viewer.map_view import view_map

        return view_map(self, host=host, port=port, block=block)

    def _repr_png_(self) -> bytes:
        from pliant.plotting import png

        return png(self.plot())

    def __repr__(self) -> str:
        name = f"{self.end_effector}' of '{self.mechanism.name}"
        return f"<ComplianceMap of '{name}': {len(self)} of {self.total} samples, {counted(len(self.joints), 'joint')}>"


def _principal(blocks: Floats) -> Principal:
    values, axes = np.linalg.eigh(blocks)
    values, axes = np.maximum(values[:, ::-1], 0.0), axes[:, :, ::-1]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return Principal(values, axes * np.where(largest < 0, -1.0, 1.0))


def _spread(name: str, values: Floats, rounding: float = 0.0) -> list[str]:
    """Name, least, median and largest value as text; values up to `rounding` are shown as 0."""
    known = values[np.isfinite(values)]
    if not len(known):
        return [name, "-", "-", "-"]
    ends = np.quantile(known, (0.0, 0.5, 1.0))
    return [name, *(f"{value:.4g}" if value > rounding else "0" for value in ends)]


def _cell(value: Any) -> str:
    """A value of a CSV table; numbers to the last bit."""
    text = value if isinstance(value, str) else "" if value != value else repr(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def compliance_map(
    mechanism: Mechanism,
    end_effector: str | None = None,
    *,
    joints: str | Iterable[str] | None = None,
    points: int | None = None,
    samples: int | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    load: ArrayLike | None = None,
    frequency: bool = True,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ComplianceMap:
    """Compliance of an end effector over its workspace: at every configuration its springs hold the mechanism there.

    Springs are slack and weights compensated at each sampled configuration, as with position servos whose stiffness is
    that of the joints. Joints of closed loops and couplings that are not sampled follow those that are. Samples whose
    loops do not close, that are beyond joint limits, or that no spring holds are dropped and counted.

    Args:
        mechanism: the mechanism; a base that floats is held.
        end_effector: name of the body; by default the first of those the mechanism suggests that moves.
        joints: joints or dofs to sample, names or patterns; by default all that move the body, of those in closed loops
            an independent set, joints with springs first. All others stay at the reference pose.
        points: make a grid of so many points per joint. By default a grid of 21 if one or two `joints` are given.
        samples: draw so many configurations, evenly spread (Sobol'); 512 by default.
        ranges: `{joint, dof or pattern: (low, high)}`, rad or m. By default joint limits; hinges without limits turn by
            half a turn either way from the reference pose, slides without limits need a range.
        load: force (3 numbers) or force and torque (6) on the end effector, world axes, N and N m: the map then has its
            `sag`, the true nonlinear equilibrium at each sample.
        frequency: compute the lowest natural frequency, at a cost that is cubic in the number of dofs.
        seed: of the samples drawn.
        threads: at once, by default one per core; the result does not depend on it.
        progress: called with the number of samples done and the number of all.

    Raises:
        InputError: an argument is unusable, or no spring holds the end effector anywhere.
        ConvergenceError: loops close at no sample.

    Example:
        >>> import pliant
        >>> found = pliant.compliance_map(pliant.gallery.two_link(), joints=["base", "elbow"], points=5)
        >>> found
        <ComplianceMap of 'right' of 'two_link': 25 of 25 samples, 2 joints>
        >>> bool(found.worst.max() > 4 * found.worst.min())
        True
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"a Mechanism expected, not {type(mechanism).__name__}")
    m = with_held_base(mechanism)
    ties = _Ties(m)
    body = end_effector
    if body is None:  # some files suggest bodies that are fixed to the base
        usable = m.dof_joint[m.dof_kind != BALL]
        chains = {name: ties.followers(ties.chain(m.body_index(name))) for name in m.end_effectors}
        body = next((name for name, chain in chains.items() if chain[usable].any()), m.end_effectors[0])
    if m.body_index(body) < 0:
        raise InputError("the world does not move: name a body as end effector")
    frequency = flag(frequency, "frequency")
    if points is not None and samples is not None:
        raise InputError("points make a grid, samples are drawn: give one of them")
    if frequency and m.nv > _DOFS:
        raise InputError(
            f"natural frequencies of '{m.name}', {m.nv} dofs, would take too long: leave them out (frequency=False, "
            "or --no-frequency)"
        )
    force = None if load is None else _load(load)
    connected = ties.followers(ties.chain(m.body_index(body)))
    low, high = _ranges(m, ranges)
    if joints is None:
        dofs = _default_dofs(m, connected, ties.ties(np.flatnonzero(connected).tolist()), low, high)
    else:
        dofs = _named_dofs(m, joints, low, high)
    if not len(dofs):
        raise InputError(
            f"no joint with a range moves '{body}' of '{m.name}': name another body, or give ranges"
        )
    if ranges is not None:
        for name in ranges:
            if not np.isin(edit.matching_dofs(m, name), dofs).any():
                raise InputError(f"range of '{name}': it is not among the joints that are sampled")
    few = joints is not None and len(dofs) <= 2
    if points is not None or (samples is None and few):
        values, shape = _grid(low[dofs], high[dofs], _POINTS if points is None else points)
    else:
        values, shape = _draw(low[dofs], high[dofs], _SAMPLES if samples is None else samples, seed)
    threads = whole(os.cpu_count() or 1 if threads is None else threads, "threads", 1, MOST_THREADS)
    sampled = m.dof_joint[dofs].tolist()
    moving = (
        np.union1d(dofs, np.flatnonzero(ties.followers(sampled)[m.dof_joint])) if ties.ties(sampled) else dofs
    )
    setting = _Setting(m, body, dofs, moving, ties.ties(sampled), force, frequency)
    parts = list(_run(setting, values, threads, progress or (lambda done, total: None)))
    return _gather(setting, parts, shape)


# --- arguments


def with_held_base(m: Mechanism) -> Mechanism:
    """The mechanism itself, or with a base that floats, without springs, held at the reference pose."""
    return m.with_fixed_base() if m.floating else m


def _load(load: ArrayLike) -> tuple[float, ...]:
    count = 6 if numbers(load, "load").shape == (6,) else 3
    return tuple(
        vector(load, "load", count, expected="a force (3 numbers) or a force and a torque (6)").tolist()
    )


class _Ties:
    """Joints that follow each other: those of a loop, and those of a coupling."""

    def __init__(self, m: Mechanism):
        self._m = m
        self._from_world: dict[int, frozenset[int]] = {-1: frozenset()}
        self._groups: list[frozenset[int]] = [
            self.chain(int(m.joint_parents[j])) ^ self.chain(int(m.joint_children[j])) | {j}
            for j in m.topology.chords.tolist()
        ]
        self._groups += [
            frozenset(m.dof_joint[m.couplings.row(r)[0]].tolist()) for r in range(len(m.couplings))
        ]

    def chain(self, body: int) -> frozenset[int]:
        """Joints of the tree between the world and a body."""
        tree, waiting = self._m.topology, []
        while body not in self._from_world:
            waiting.append(body)
            body = int(tree.parent[body])
        found = self._from_world[body]
        for b in reversed(waiting):
            found = self._from_world[b] = found | {int(tree.tree_joint[b])}
        return found

    def followers(self, joints: Iterable[int]) -> NDArray[np.bool_]:
        """These joints and all tied to them, directly or by others, as a mask of all joints."""
        found, left = set(joints), self._groups
        while True:
            joined = [group for group in left if not found.isdisjoint(group)]
            if not joined:
                break
            left = [group for group in left if found.isdisjoint(group)]
            found.update(*joined)
        out = np.zeros(self._m.joint_count, dtype=bool)
        out[list(found)] = True
        return out

    def ties(self, joints: Iterable[int]) -> bool:
        """Whether any of these joints is in a loop or a coupling."""
        found = set(joints)
        return any(not found.isdisjoint(group) for group in self._groups)


def _ranges(m: Mechanism, given: Mapping[str, tuple[float, float]] | None) -> tuple[Floats, Floats]:
    """Lowest and highest coordinate of every dof; infinite for those that have no range."""
    reference = m.reference[m.dof_coordinate]
    hinge, low, high = m.dof_kind == HINGE, m.lower.copy(), m.upper.copy()
    endless = hinge & np.isinf(low) & np.isinf(high)
    low[endless], high[endless] = reference[endless] - np.pi, reference[endless] + np.pi
    low = np.where(hinge & np.isinf(low), high - 2 * np.pi, low)
    high = np.where(hinge & np.isinf(high), low + 2 * np.pi, high)
    low[m.dof_kind == BALL], high[m.dof_kind == BALL] = -np.inf, np.inf
    if given is not None and not isinstance(given, Mapping):
        raise InputError("ranges: a mapping {joint: (low, high)} expected")
    for name, ends in (given or {}).items():
        first, last = vector(ends, f"range of '{name}'", 2, expected="a low and a high end").tolist()
        if not first < last:
            raise InputError(f"range of '{name}': low < high expected, not {first:g} and {last:g}")
        dofs = edit.matching_dofs(m, name)
        dofs = dofs[m.dof_kind[dofs] != BALL]
        low[dofs], high[dofs] = first, last
    return low, high


def _named_dofs(m: Mechanism, joints: str | Iterable[str], low: Floats, high: Floats) -> Ints:
    dofs = edit.matching_dofs(m, [joints] if isinstance(joints, str) else joints)
    for d in dofs.tolist():
        if m.dof_kind[d] == BALL:
            raise InputError(
                f"'{m.dof_names[d]}' is part of a ball joint: only hinges and slides are sampled"
            )
        if not np.isfinite(high[d] - low[d]):
            raise InputError(f"slide '{m.dof_names[d]}' has no limits: give its range")
        if not low[d] < high[d]:
            raise InputError(f"'{m.dof_names[d]}' is locked by its limits: give its range, or leave it out")
    return dofs


def _default_dofs(m: Mechanism, connected: NDArray[np.bool_], tied: bool, low: Floats, high: Floats) -> Ints:
    """Hinges and slides that move the body and have a range; an independent set of those in loops or couplings."""
    inside = np.flatnonzero(connected[m.dof_joint])
    usable = np.isfinite(high - low) & (low < high)
    if not tied:
        return inside[usable[inside]]
    q = m.reference
    with suppress(ConvergenceError):  # the reference pose may be singular
        q = close_loops(m, kinematics.move(m, q, _NUDGE * np.cos(1.7 * np.arange(1, m.nv + 1)) * m.dof_unit))
    plan = m.elimination
    rows = (
        plan.scale[: plan.hard, None]
        * kinematics.constraint_rows(m, kinematics.link_poses(m, q))
        * m.dof_unit
    )
    sprung = (m.stiffness > 0) | np.any(m.tendons.dense(m.nv), axis=0)
    # Dofs in this order become dependent, if the rows allow it: without a range, without a spring, the last ones.
    order = sorted(inside.tolist(), key=lambda d: (usable[d], sprung[d], -d))
    basis = np.zeros((0, len(rows)))
    independent = []
    for d in order:
        rest = rows[:, d]
        for _ in range(2):  # twice: rounding
            rest = rest - basis.T @ (basis @ rest)
        length = float(np.linalg.norm(rest))
        if length > _DEPENDENT:
            basis = np.concatenate([basis, rest[None] / length])
        elif usable[d]:
            independent.append(d)
    return np.array(sorted(independent), dtype=np.int64)


def _grid(low: Floats, high: Floats, points: int) -> tuple[Floats, tuple[int, ...]]:
    """All combinations of evenly spaced values, the last joint fastest, (samples, joints)."""
    points = whole(points, "points", 2, _MOST)
    if points ** len(low) > _MOST:
        raise InputError(
            f"a grid of {brief(points)} points for {counted(len(low), 'joint')} has more than {_MOST} samples: "
            "name fewer joints, or draw samples"
        )
    axes = np.meshgrid(*np.linspace(low, high, points).T, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1), (points,) * len(low)


def _draw(low: Floats, high: Floats, samples: int, seed: int) -> tuple[Floats, tuple[int, ...]]:
    """Scrambled Sobol' points between `low` and `high`, (samples, joints)."""
    from scipy.stats import qmc

    samples, seed = whole(samples, "samples", 1, _MOST), whole(seed, "seed")
    if len(low) > qmc.Sobol.MAXDIM:
        raise InputError(f"{len(low)} joints are too many to sample: name those that matter with `joints`")
    make: Any = qmc.Sobol
    # `seed` is deprecated, but older scipy has no `rng`; a power of two, since scipy warns of others
    drawn = make(len(low), seed=np.random.default_rng(seed)).random_base2(max(0, (samples - 1).bit_length()))
    return low + (high - low) * drawn[:samples], (samples,)


# --- samples


@dataclass(frozen=True, eq=False)
class _Setting:
    """What is computed: of which body, over which dofs; which dofs move; whether loops or couplings tie them."""

    mechanism: Mechanism
    body: str
    sampled: Ints
    moving: Ints
    tied: bool
    load: tuple[float, ...] | None
    frequency: bool


class _Part(NamedTuple):
    """Results of some samples, arrays as in `ComplianceMap`.

    Attributes:
        kept: whether each sample has a result, (samples in this part,); the arrays hold those that do.
        dropped: number of the others by reason.
        problem: why no spring holds the body at one of them, or None.
    """

    kept: NDArray[np.bool_]
    dropped: dict[str, int]
    problem: str | None
    q: Floats
    poses: Floats
    compliance: Floats
    frequency: Floats
    margin: Floats
    margin_dof: Ints
    sag: Floats


class _Worker:
    """Work space of one thread."""

    def __init__(self, setting: _Setting):
        m = setting.mechanism
        self._setting, self._m = setting, m
        self._holder = Holder(m, setting.body, setting.frequency)
        self._closer = None
        if setting.tied:
            held = np.zeros(m.nv, dtype=bool)
            held[setting.sampled] = True
            self._closer = LoopCloser(m, held)
        self._low, self._high = m.lower.copy(), m.upper.copy()
        for p in m.ball_primitives.tolist():  # the angle of a ball stands at its first dof
            part = slice(int(m.primitive_dof[p]), int(m.primitive_dof[p]) + 3)
            largest = float(m.upper[part].min())
            self._high[part] = np.inf
            self._high[part.start] = largest if largest < np.pi else np.inf
            self._low[part] = -self._high[part]

    def __call__(self, values: Floats) -> _Part:
        """Results of samples, given the coordinates of the dofs that are sampled, (samples, dofs)."""
        m, setting = self._m, self._setting
        if self._closer is None:
            q, kept = np.tile(m.reference, (len(values), 1)), np.ones(len(values), dtype=bool)
            q[:, m.dof_coordinate[setting.sampled]] = values
        else:
            q, kept = self._closer.follow(values)
        dropped = {_OPEN: int((~kept).sum())}
        inside, margin, nearest = self._limits(q)
        dropped[_LIMITS] = int((kept & ~inside).sum())
        kept &= inside
        found = self._holder.at(q[kept])
        firm = np.isfinite(found.compliance).all(axis=(1, 2))
        dropped[_FREE] = int((~firm).sum())
        kept[kept] = firm
        return _Part(
            kept=kept,
            dropped=dropped,
            problem=None if firm.all() else self._holder.problem,
            q=q[kept],
            poses=found.pose[firm],
            compliance=found.compliance[firm],
            frequency=found.frequency[firm],
            margin=margin[kept],
            margin_dof=nearest[kept],
            sag=self._sag(q[kept], found.pose[firm]),
        )

    def _limits(self, q: Floats) -> tuple[NDArray[np.bool_], Floats, Ints]:
        """Whether dofs that move are within limits; room to the nearest limit as a fraction of the range; its dof."""
        m, dofs = self._m, self._setting.moving
        value = q[:, m.dof_coordinate]
        for p in m.ball_primitives.tolist():
            c = int(m.primitive_coordinate[p])
            value[:, m.primitive_dof[p]] = np.linalg.norm(spatial.quat_log(q[:, c : c + 4]), axis=1)
        low, high, value = self._low[dofs], self._high[dofs], value[:, dofs]
        room = np.minimum(value - low, high - value)
        inside = np.all(room >= -_BEYOND * m.dof_unit[dofs], axis=1)
        bounded = np.flatnonzero(np.isfinite(high - low) & (high > low))
        if not len(bounded):
            return inside, np.full(len(q), np.nan), np.full(len(q), -1)
        part = np.maximum(room[:, bounded] / (high - low)[bounded], 0.0)
        return inside, part.min(axis=1), dofs[bounded][part.argmin(axis=1)]

    def _sag(self, q: Floats, pose: Floats) -> Floats:
        """Displacements of the body under the load, m, (samples, 3); NaN without a load or an equilibrium."""
        m, body, load = self._m, self._setting.body, self._setting.load
        if load is None or not len(q):
            return np.full((len(q), 3), np.nan)
        there, found = solve_held(m, {body: np.tile(load, (len(q), 1))}, q)
        poses = kinematics.body_poses(m, there, np.array([m.body_index(body)]))[:, 0]
        return np.where(found[:, None], poses[:, :3, 3] - pose[:, :3, 3], np.nan)


def _run(
    setting: _Setting, values: Floats, threads: int, progress: Callable[[int, int], None]
) -> Iterator[_Part]:
    """Results chunk by chunk, in order; kernels release the GIL."""
    size = max(1, min(_CHUNK, _CHUNK_NUMBERS // max(setting.mechanism.nv, 1) ** 2))
    chunks = [np.ascontiguousarray(values[i : i + size]) for i in range(0, len(values), size)]
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    for _ in range(min(threads, len(chunks))):
        idle.put(_Worker(setting))

    def compute(chunk: Floats) -> _Part:
        worker = idle.get()
        try:
            return worker(chunk)
        finally:
            idle.put(worker)

    done = 0
    progress(done, len(values))
    pool = ThreadPoolExecutor(min(threads, len(chunks))) if threads > 1 and len(chunks) > 1 else None
    try:
        for part in map(compute, chunks) if pool is None else pool.map(compute, chunks):
            done += len(part.kept)
            progress(done, len(values))
            yield part
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _gather(setting: _Setting, parts: Sequence[_Part], shape: tuple[int, ...]) -> ComplianceMap:
    m = setting.mechanism
    dropped = {reason: sum(part.dropped[reason] for part in parts) for reason in (_OPEN, _LIMITS, _FREE)}
    names = tuple(m.dof_names[d] for d in setting.sampled.tolist())
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _Part._fields[3:]}
    nearest = joined.pop("margin_dof")
    kept = np.concatenate([part.kept for part in parts])
    if not kept.any():
        raise _nothing(setting, dropped, names, parts)
    labels = np.array([*m.dof_names, ""])
    return ComplianceMap(
        mechanism=m,
        end_effector=setting.body,
        joints=names,
        shape=shape,
        dropped=dropped,
        index=np.flatnonzero(kept),
        margin_joint=labels[nearest],
        load=setting.load,
        **joined,
    )


def _nothing(
    setting: _Setting, dropped: dict[str, int], names: Sequence[str], parts: Sequence[_Part]
) -> PliantError:
    """The error where every sample was dropped."""
    problem = next((part.problem for part in parts if part.problem is not None), None)
    if problem is not None:
        return InputError(problem)
    counts = ", ".join(f"{n} {reason}" for reason, n in dropped.items() if n)
    return ConvergenceError(
        f"no sample of {listed(names, 5)} is usable: {counts}; narrow the ranges of these joints, or name others"
    )
