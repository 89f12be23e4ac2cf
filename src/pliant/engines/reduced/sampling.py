"""`sample`: reduced models at equilibria that are chosen where the blend is worst.

Random wrenches are drawn from a `WrenchSpace`; `Equilibria` finds the true equilibria under them, and keeps them in a
file on request.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.checks import flag, number, whole
from pliant.engines.reduced.accuracy import (
    NO_EQUILIBRIUM,
    UNSETTLED,
    UNSTABLE,
    Accuracy,
    Truth,
    compare,
    describe,
    settle,
    settle_all,
)
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.reduce import reduce
from pliant.errors import FormatError, InputError
from pliant.files import as_path
from pliant.formats.archive import mechanism_bytes, read_archive, write_archive
from pliant.mechanism import Mechanism
from pliant.plotting import LEAST_ERROR, logarithmic, panels, png, save
from pliant.statics import Configuration
from pliant.statics.loads import Load
from pliant.text import brief, counted, table, track

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Sampled", "sample"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FORMAT, VERSION = "pliant-sampling", 1
_STATES = (None, NO_EQUILIBRIUM, UNSTABLE)  # problem of state 1, 2, 3 in a file; state 0: not searched yet
_BUCKLING = 0.2  # of the lowest frequency at rest: an equilibrium with a lower one is near buckling
_REACH = 0.5  # of the radius: displacement of the softest end effector by the default force, to first order
_SECONDS = 5.0  # between two writes of a file: large mechanisms take long to write
_MOST_CASES = 1_000_000  # equilibria that may be asked for
_MOST = 15  # problems listed
_PART = 20  # equilibria that are searched at once


@dataclass(frozen=True, eq=False, repr=False)
class Sampled:
    """A blend and its errors; made by `sample`.

    Attributes:
        model: the blend; its first model is the one at rest.
        wrenches: per model, the wrenches it was made under.
        curve: rms and worst position error of the candidates after each model, fractions of the radius,
            (models, 2); infinite where the blend does not settle under a candidate.
        accuracy: errors under wrenches that were not used to choose models.
        tolerance: largest position error asked for, as a fraction of the radius.
        problems: candidates without a stable equilibrium, and models near buckling, one sentence each.
    """

    model: BlendedModel
    wrenches: tuple[Mapping[str, Any], ...]
    curve: Floats
    accuracy: Accuracy
    tolerance: float
    problems: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether the position errors of all candidates are within the tolerance."""
        return bool(self.curve[-1, 1] <= self.tolerance)

    def summary(self) -> str:
        """Readable: errors after each model, errors under fresh wrenches, problems."""
        m = self.model.mechanism
        word = "reached" if self.reached else "not reached"
        rows = [
            [str(i + 1), f"{rms:.3g}", f"{worst:.3g}", describe(wrench) if i else "rest"]
            for i, ((rms, worst), wrench) in enumerate(zip(self.curve, self.wrenches, strict=True))
        ]
        lines = [
            f"{m.name}: {counted(len(rows), 'model')}, tolerance {self.tolerance:g} of the radius {word}",
            f"{counted(len(self.accuracy.wrenches), 'fresh wrench', 'fresh wrenches')}: position error "
            f"{self.accuracy.rms:.3g} rms, {self.accuracy.worst:.3g} at worst",
            "",
            table(["models", "rms", "worst", "the last one made under"], rows),
        ]
        if self.problems:
            lines += ["", "problems:", *(f"  {problem}" for problem in self.problems[:_MOST])]
        if len(self.problems) > _MOST:
            lines.append(f"  ... and {len(self.problems) - _MOST} more")
        return "\n".join(lines)

    def _repr_png_(self) -> bytes:
        return png(self.plot())

    def __repr__(self) -> str:
        return f"<Sampled {self.model!r}: position error {self.accuracy.rms:.3g} rms under fresh wrenches>"

    def plot(self, path: str | os.PathLike[str] | None = None, title: str | None = None) -> Figure:
        """Error of the candidates against the number of models, and errors under fresh wrenches (TVCG Fig. 7)."""
        from matplotlib.ticker import MaxNLocator

        out, _ = panels(1, 2, 5.2, 4.2, grid=True)
        left, right = out.axes
        count = np.arange(1, len(self.curve) + 1)
        for values, label, marker, colour in (
            (self.curve[:, 0], "rms", "o", "#1f6fb4"),
            (self.curve[:, 1], "worst", "s", "#b3313b"),
        ):
            shown = np.where(np.isfinite(values), 100 * np.maximum(values, LEAST_ERROR), np.nan)
            left.plot(count, shown, marker=marker, markersize=4, linewidth=1.3, color=colour, label=label)
        if self.tolerance > 0:
            left.axhline(100 * self.tolerance, color="#555555", linewidth=1, linestyle=":", label="tolerance")
        logarithmic(left, 100 * LEAST_ERROR)
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_xlabel("models")
        left.set_ylabel("position error (% of the radius)")
        left.set_title("candidates", fontsize=10)
        left.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
        self.accuracy.draw(right)
        right.set_title("fresh wrenches", fontsize=10)
        out.suptitle(self.model.mechanism.name if title is None else title, fontsize=11)
        save(out, path)
        return out


def sample(
    mechanism: Mechanism,
    end_effectors: str | Sequence[str] | None = None,
    wrenches: float | Sequence[Mapping[str, Any]] | None = None,
    tolerance: float = 0.01,
    budget: int = 12,
    *,
    seed: int = 0,
    candidates: int = 60,
    held_out: int = 40,
    inertia: str = "condensed",
    exponent: float = 6.0,
    limits: bool = False,
    progress: bool = True,
    resume: str | os.PathLike[str] | None = None,
) -> Sampled:
    """Blend of reduced models at equilibria chosen where the blend is worst (TVCG sections 7 and 8, Fig. 7).

    The true equilibria under random wrenches, the candidates, are found once. Beginning with the model at rest, the
    candidate where the blend is farthest from the truth becomes the next model. The same seed gives the same result.

    Args:
        mechanism: what to reduce, without a floating base.
        end_effectors: as for `pliant.reduce`.
        wrenches: the largest force in N on every end effector: candidates act on all of them at once, with random
            directions and sizes up to it. Or the largest wrenches, mappings `{end effector: wrench}`: they are the
            first candidates, random mixtures and fractions of them the others. If None, the force that moves the
            softest end effector by half the radius, to first order.
        tolerance: stop when no candidate has a larger position error, as a fraction of the radius.
        budget: stop at this many models, that at rest included.
        seed: of the random wrenches.
        candidates: number of wrenches to choose from.
        held_out: number of other wrenches under which the result is judged.
        inertia: as for `pliant.reduce`.
        exponent: as for `pliant.blend`.
        limits: enforce joint limits, as for `pliant.equilibrium`, in all equilibria and models.
        progress: show progress bars.
        resume: an `.npz` file that keeps the equilibria found. If it exists, they are not searched again: the same
            call continues after an interruption; tolerance, budget, inertia and exponent may change.

    Raises:
        InputError: an argument is unusable.
        FormatError: the `resume` file is damaged, or belongs to another mechanism, other wrenches, limits or
            another seed.

    Example:
        >>> import pliant
        >>> found = pliant.sample(
        ...     pliant.gallery.helix(12), wrenches=200, candidates=20, held_out=10, progress=False
        ... )
        >>> found.reached
        True
    """
    tolerance = number(tolerance, "tolerance", least=0.0, below=1.0)
    progress = flag(progress, "progress")
    budget = whole(budget, "budget", 1, _MOST_CASES)
    seed = whole(seed, "seed", 0)
    counts = whole(candidates, "candidates", 1, _MOST_CASES), whole(held_out, "held_out", 1, _MOST_CASES)
    # At the reference pose joint limits add neither force nor stiffness: the model itself stays the same.
    rest = replace(reduce(mechanism, end_effectors, inertia=inertia), limits=bool(limits))
    if rest.base is not None:
        raise InputError(f"sample: '{rest.base.body}' floats: hold it first, with `with_fixed_base`")
    blended = BlendedModel([rest], exponent)
    space = wrench_space(rest, wrenches)
    # Two random streams: the fresh wrenches do not depend on the number of candidates.
    first, second = np.random.default_rng(seed).spawn(2)
    drawn = np.concatenate([space.draw(first, counts[0], corners=True), space.draw(second, counts[1])])
    found = Equilibria(rest, space, drawn, {"seed": seed, "candidates": counts[0], "held_out": counts[1]})
    found.open(None if resume is None else as_path(resume, "resume"))
    choose, judge = np.arange(counts[0]), np.arange(counts[0], sum(counts))
    found.search(choose, "equilibria", progress)
    loads, truths = found.wrenches(choose), found.truths(choose)
    problems = [
        f"{problem} under {describe(load)}"
        for load, (_, problem) in zip(loads, truths, strict=True)
        if problem
    ]
    slow = lowest_frequency(rest.at)
    chosen, curve = [-1], []
    open_to = np.array([problem is None for _, problem in truths])
    for _ in track(range(budget), "models", progress):
        now = compare(blended, loads, truths)
        errors = np.where([problem == UNSETTLED for problem in now.problems], np.inf, now.position)
        known = errors[~np.isnan(errors)]
        curve.append([float(np.sqrt((known**2).mean())), known.max()] if len(known) else [np.nan, np.nan])
        if len(curve) == budget or not curve[-1][1] > tolerance:
            break
        model = None
        while model is None and open_to.any():
            worst = int(np.argmax(np.where(open_to, errors, -np.inf)))
            open_to[worst] = False
            model = found.model(worst, blended, slow, problems)
            chosen += [] if model is None else [worst]
        if model is None:
            break
        blended = blended.add(model)
    found.search(judge, "fresh equilibria", progress)
    return Sampled(
        blended,
        tuple({} if i < 0 else loads[i] for i in chosen),
        np.array(curve),
        compare(blended, found.wrenches(judge), found.truths(judge)),
        tolerance,
        tuple(problems),
    )


# --- wrenches


@dataclass(frozen=True, eq=False)
class WrenchSpace:
    """Set of wrenches on b bodies from which random ones are drawn, as forces and torques, (b, 6).

    Attributes:
        bodies: names of the bodies.
        points, frames: point where the force acts and axes, per body, the same for all wrenches.
        size: largest force, N, for random directions; unless there are corners.
        corners: the largest wrenches, (n, b, 6): those drawn are random mixtures of them.
    """

    bodies: tuple[str, ...]
    points: Floats
    frames: tuple[str, ...]
    size: float = 0.0
    corners: Floats | None = None

    def draw(self, rng: np.random.Generator, count: int, corners: bool = False) -> Floats:
        """`count` random wrenches, (count, b, 6); the first ones are the corners themselves on request."""
        if self.corners is None:
            force = rng.normal(size=(count, len(self.bodies), 3))
            force *= (
                self.size
                * rng.uniform(size=(count, len(self.bodies), 1))
                / np.linalg.norm(force, axis=2, keepdims=True)
            )
            return np.concatenate([force, np.zeros_like(force)], axis=2)
        k = len(self.corners)
        # Dirichlet(1/k) gives few large weights: means of many directions with equal weights would all be small.
        mix = rng.dirichlet(np.full(k, 1 / k), count) * rng.uniform(size=(count, 1))
        out = np.tensordot(mix, self.corners, axes=1)
        if corners:
            out[: min(k, count)] = self.corners[:count]
        return out

    def wrench(self, values: Floats) -> dict[str, Any]:
        """Forces and torques, (b, 6), as `{body: wrench}`, the form that `pliant.equilibrium` takes."""
        out: dict[str, Any] = {}
        for body, point, frame, value in zip(self.bodies, self.points, self.frames, values, strict=True):
            if frame == "body" or point.any():
                parts = {"force": value[:3].tolist(), "torque": value[3:].tolist(), "point": point.tolist()}
                out[body] = {**parts, "frame": frame}
            else:
                out[body] = tuple((value if value[3:].any() else value[:3]).tolist())
        return out


def wrench_space(rest: ReducedModel, given: Any) -> WrenchSpace:
    """Wrenches to draw from, as given by the argument `wrenches` of `sample`."""
    bodies = rest.end_effectors
    plain = np.zeros((len(bodies), 3)), ("world",) * len(bodies)
    if given is None:
        softest = min(float(rest.stiffness_ellipsoid(body).stiffness[0]) for body in bodies)
        if not np.isfinite(softest):
            raise InputError("no end effector gives way to a force at its origin: give `wrenches`")
        return WrenchSpace(bodies, *plain, size=softest * _REACH * rest.mechanism.radius)
    kind = "a force in N, or a sequence of mappings {end effector: wrench}"
    if not isinstance(given, Iterable) or isinstance(given, np.ndarray):
        size = number(given, "wrenches", above=0.0, kind=kind, expected="a force above 0 N")
        return WrenchSpace(bodies, *plain, size=size)
    if isinstance(given, Mapping | str):
        raise InputError(f"wrenches: {kind} expected, not {brief(given)}")
    corners, held = [], {}
    for i, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise InputError(f"wrenches: item {i} is no mapping {{end effector: wrench}} but {brief(each)}")
        corners.append(np.zeros((len(bodies), 6)))
        for body, value in each.items():
            force, torque, point, frame = Load.parse(value, body)
            if frame == "body":  # force and lever turn together: a torque replaces the lever
                torque, point = torque + np.cross(point, force), np.zeros(3)
            corners[i][rest.index(body)] = *force, *torque
            at, how = held.setdefault(body, (point, frame))
            if how != frame or not np.array_equal(at, point):
                raise InputError(
                    f"wrenches on '{body}' act at different points or frames: they cannot be mixed"
                )
    if not corners or not np.any(corners):
        raise InputError("wrenches: at least one that is not zero expected")
    loaded = [i for i, body in enumerate(bodies) if body in held]
    named = tuple(bodies[i] for i in loaded)
    points, frames = zip(*(held[body] for body in named), strict=True)
    return WrenchSpace(named, np.array(points), frames, corners=np.array(corners)[:, loaded])


# --- equilibria


class Equilibria:
    """True equilibria under the wrenches drawn, as far as they were found, and the file that keeps them.

    Attributes:
        rest: the model at rest; its mechanism, end effectors, inertia and limits hold for all equilibria.
        space, drawn: the wrenches, (n, b, 6).
        state: 0 if not searched yet, else 1 + index of the problem in `_STATES`, (n,).
        q, multipliers: the equilibria found, (n, nq) and (n, rows).
    """

    def __init__(self, rest: ReducedModel, space: WrenchSpace, drawn: Floats, settings: dict[str, int]):
        self.rest, self.space, self.drawn = rest, space, drawn
        m, n = rest.mechanism, len(drawn)
        self.state = np.zeros(n, dtype=np.uint8)
        self.q, self.multipliers = np.zeros((n, m.nq)), np.zeros((n, len(rest.at.multipliers)))
        self.path: Path | None = None
        self.saved = -np.inf
        digest = hashlib.sha256(mechanism_bytes(m).tobytes()).hexdigest()
        self.about = {
            "format": FORMAT,
            **settings,
            "mechanism": digest,
            "end_effectors": list(rest.end_effectors),
            "limits": rest.limits,
            "wrenches": [list(space.bodies), list(space.frames), space.points.tolist()],
        }

    def open(self, path: Path | None) -> None:
        """Take over the equilibria in a file; begin one if there is none, to find out now if that fails."""
        self.path = path
        if path is None:
            return
        if not os.path.lexists(path):
            self.save()
            return
        hint = "holds no samples: `sample(resume=...)` writes such files"
        about, arrays = read_archive(path, {FORMAT: VERSION}, hint)
        about.setdefault("limits", False)  # older files do not say
        hint = "give the same arguments as before, or another file"
        for word, value in self.about.items():
            if about.get(word) != value:
                raise FormatError(f"'{path}' was written with another setting of '{word}': {hint}")
        for name, mine in self._arrays().items():
            array = arrays.get(name)
            if array is None or array.shape != mine.shape or array.dtype != mine.dtype:
                raise FormatError(
                    f"'{path}': array '{name}' is missing or of another shape: the file is damaged"
                )
        if not np.array_equal(arrays["drawn"], self.drawn):
            raise FormatError(f"'{path}' was written with other wrenches: {hint}")
        if arrays["state"].max() > len(_STATES):
            raise FormatError(f"'{path}': array 'state': unknown numbers: the file is damaged")
        self.state, self.q, self.multipliers = (arrays[name] for name in ("state", "q", "multipliers"))
        try:
            self.truths(np.flatnonzero(self.state))
        except InputError as error:
            raise FormatError(f"'{path}': array 'q': {error}: the file is damaged") from None

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"state": self.state, "q": self.q, "multipliers": self.multipliers, "drawn": self.drawn}

    def save(self) -> None:
        """Write the file, if there is one."""
        if self.path is not None:
            write_archive(self.path, {**self.about, "version": VERSION}, self._arrays())
            self.saved = time.monotonic()

    def wrenches(self, which: Ints) -> list[dict[str, Any]]:
        """Wrenches of these numbers, each as `{body: wrench}`."""
        return [self.space.wrench(values) for values in self.drawn[which]]

    def search(self, which: Ints, what: str, progress: bool) -> None:
        """Find the missing ones of these equilibria, each from the reference pose: the result depends on no order."""
        missing = which[self.state[which] == 0]
        parts = [missing[i : i + _PART] for i in range(0, len(missing), _PART)]
        try:
            for part in track(parts, what, progress):
                truths = settle_all(self.rest.mechanism, self.wrenches(part), self.rest.limits)
                for i, (found, problem) in zip(part.tolist(), truths, strict=True):
                    if found is not None:
                        self.q[i], self.multipliers[i] = found.q, found.multipliers
                    self.state[i] = 1 + _STATES.index(problem)  # last: an interrupted entry stays unknown
                if time.monotonic() > self.saved + _SECONDS:
                    self.save()
        finally:
            if len(missing):
                self.save()

    def truths(self, which: Ints) -> list[Truth]:
        """Equilibria and their problems, rebuilt from the stored arrays: a resumed run sees the same bits."""
        return [(self._configuration(i), _STATES[self.state[i] - 1]) for i in which.tolist()]

    def _configuration(self, i: int) -> Configuration | None:
        if _STATES[self.state[i] - 1] == NO_EQUILIBRIUM:
            return None
        out = Configuration(self.rest.mechanism, self.q[i])
        out.multipliers = self.multipliers[i].copy()
        return out

    def model(self, i: int, blended: BlendedModel, slow: float, problems: list[str]) -> ReducedModel | None:
        """Reduced model at equilibrium `i`; None, with the reason added to `problems`, if there is none.

        Args:
            i: number of the equilibrium.
            blended: the blend that the model must fit into.
            slow: lowest frequency at rest, Hz.
            problems: reasons, and a note if the model is near buckling.
        """
        wrench = self.space.wrench(self.drawn[i])
        found, problem = settle(
            self.rest.mechanism, wrench, start=self._configuration(i), limits=self.rest.limits
        )
        if found is None or problem is not None:
            problems.append(f"{problem} under {describe(wrench)}")
            return None
        try:
            model = reduce(found.mechanism, self.rest.end_effectors, at=found, inertia=self.rest.inertia)
            blended.add(model)
        except InputError as error:
            problems.append(f"no model under {describe(wrench)}: {error}")
            return None
        left = lowest_frequency(found) / slow
        if left < _BUCKLING:
            problems.append(
                f"near buckling under {describe(wrench)}: lowest frequency {left:.2g} of that at rest"
            )
        return model


def lowest_frequency(at: Configuration) -> float:
    """Lowest natural frequency, Hz; NaN if a motion meets no stiffness."""
    try:
        found = at.frequencies(1)
    except InputError:
        return float("nan")
    return float(found[0]) if len(found) else float("nan")
