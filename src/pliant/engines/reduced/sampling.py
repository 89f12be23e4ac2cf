"""`sample`: where to linearise, found by exploring wrenches and adding a model where the blend is worst."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.accuracy import (
    NO_EQUILIBRIUM,
    UNSETTLED,
    UNSTABLE,
    Accuracy,
    Truth,
    compare,
    describe,
    figure,
    logarithmic,
    save,
    settle,
    track,
)
from pliant.engines.reduced.arguments import whole
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.file import _read
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.reduce import reduce
from pliant.errors import FormatError, InputError
from pliant.formats.json_file import check_version, pieces
from pliant.formats.paths import as_path, replacing
from pliant.mechanism import Mechanism
from pliant.mechanism.summary import counted, table
from pliant.statics import Configuration
from pliant.statics.loads import parse_wrench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Sampled", "sample"]

Floats = NDArray[np.float64]

FORMAT, VERSION = "pliant-sampling", 1
_STATES = (None, NO_EQUILIBRIUM, UNSTABLE)  # problems as numbers in a file, from 1; 0 is not known yet
_BUCKLING = 0.2  # of the lowest frequency at rest: below this little is left of the stiffness
_REACH = 0.5  # of the radius: how far the default force moves the softest end effector, to first order
_MOST = 15  # problems listed
_SECONDS = 5.0  # between two writes of a file: large mechanisms take long to write


@dataclass(frozen=True, eq=False)
class Sampled:
    """A blend and how good it is; made by `sample`.

    Attributes:
        model: the blend; its first model is the one at rest.
        wrenches: per model, the wrenches it was made under.
        curve: rms and worst position error of the candidates after each model, fractions of the radius,
            (models, 2); infinite where the blend does not settle under a candidate.
        accuracy: errors under wrenches that were not used to choose models.
        tolerance: what was asked for.
        problems: candidates without a stable equilibrium, and models near buckling, in words.
    """

    model: BlendedModel
    wrenches: tuple[Mapping[str, Any], ...]
    curve: Floats
    accuracy: Accuracy
    tolerance: float
    problems: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether every candidate came out as well as was asked for."""
        return bool(self.curve[-1, 1] <= self.tolerance)

    def summary(self) -> str:
        """How the error fell with the models, the error under fresh wrenches, and what went wrong; readable."""
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

    def plot(self, path: str | os.PathLike[str] | None = None, title: str | None = None) -> Figure:
        """Error of the candidates against the number of models, and errors under fresh wrenches (TVCG Fig. 7)."""
        from matplotlib.ticker import MaxNLocator

        out = figure(2)
        left, right = out.axes
        count = np.arange(1, len(self.curve) + 1)
        for values, label, marker, colour in (
            (self.curve[:, 0], "rms", "o", "#1f6fb4"),
            (self.curve[:, 1], "worst", "s", "#b3313b"),
        ):
            shown = np.where(np.isfinite(values), 100 * values, np.nan)
            left.plot(count, shown, marker=marker, markersize=4, linewidth=1.3, color=colour, label=label)
        if self.tolerance > 0:
            left.axhline(100 * self.tolerance, color="#555555", linewidth=1, linestyle=":", label="tolerance")
        logarithmic(left)
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
    progress: bool = True,
    resume: str | os.PathLike[str] | None = None,
) -> Sampled:
    """Blend reduced models at equilibria chosen where they are needed most (TVCG sections 7 and 8, Fig. 7).

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
        candidates: how many wrenches to choose from.
        held_out: how many other ones to judge the result by.
        inertia: as for `pliant.reduce`.
        exponent: as for `pliant.blend`.
        progress: show progress bars.
        resume: an `.npz` file that keeps the equilibria found. If it is there, they are not sought again: after an
            interruption the same call goes on, and tolerance, budget, inertia and exponent may be others.

    Raises:
        InputError: an argument is unusable.
        FormatError: the `resume` file is damaged, or belongs to another mechanism, other wrenches or another seed.

    Example:
        >>> import pliant
        >>> from pliant.engines.reduced.sampling import sample
        >>> found = sample(pliant.gallery.helix(12), wrenches=200, candidates=20, held_out=10, progress=False)
        >>> found.reached
        True
    """
    if (
        isinstance(tolerance, bool)
        or not isinstance(tolerance, int | float | np.number)
        or not 0 <= tolerance < 1
    ):
        raise InputError(f"tolerance: a number from 0 to below 1 expected, not {tolerance!r}")
    budget, seed = whole(budget, "budget", 1), whole(seed, "seed", 0)
    counts = whole(candidates, "candidates", 1), whole(held_out, "held_out", 1)
    rest = reduce(mechanism, end_effectors, inertia=inertia)
    if rest.base is not None:
        raise InputError(f"sample: '{rest.base.body}' floats: hold it first, with `with_fixed_base`")
    blended = BlendedModel([rest], exponent)
    space = _space(rest, wrenches)
    # Two streams, so that fresh wrenches stay the same with more candidates.
    first, second = np.random.default_rng(seed).spawn(2)
    drawn = np.concatenate([space.draw(first, counts[0], corners=True), space.draw(second, counts[1])])
    found = _Equilibria(rest, space, drawn, {"seed": seed, "candidates": counts[0], "held_out": counts[1]})
    found.open(None if resume is None else as_path(resume, "resume"))
    choose, judge = np.arange(counts[0]), np.arange(counts[0], sum(counts))
    found.search(choose, "equilibria", progress)
    loads, truths = found.wrenches(choose), found.truths(choose)
    problems = [
        f"{problem} under {describe(load)}"
        for load, (_, problem) in zip(loads, truths, strict=True)
        if problem
    ]
    slow = _lowest(rest.configuration)
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
        float(tolerance),
        tuple(problems),
    )


# --- wrenches


@dataclass(frozen=True, eq=False)
class _Space:
    """Forces and torques on bodies (b, 6), all with one point and frame per body, that may be mixed."""

    bodies: tuple[str, ...]
    points: Floats
    frames: tuple[str, ...]
    size: float = 0.0
    corners: Floats | None = None

    def draw(self, rng: np.random.Generator, count: int, corners: bool = False) -> Floats:
        if self.corners is None:
            force = rng.normal(size=(count, len(self.bodies), 3))
            force *= (
                self.size
                * rng.uniform(size=(count, len(self.bodies), 1))
                / np.linalg.norm(force, axis=2, keepdims=True)
            )
            return np.concatenate([force, np.zeros_like(force)], axis=2)
        k = len(self.corners)
        # Few large weights rather than many middling ones: means of many directions would all be small.
        mix = rng.dirichlet(np.full(k, 1 / k), count) * rng.uniform(size=(count, 1))
        out = np.tensordot(mix, self.corners, axes=1)
        if corners:
            out[: min(k, count)] = self.corners[:count]
        return out

    def wrench(self, values: Floats) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for body, point, frame, value in zip(self.bodies, self.points, self.frames, values, strict=True):
            if frame == "body" or point.any():
                parts = {"force": value[:3].tolist(), "torque": value[3:].tolist(), "point": point.tolist()}
                out[body] = {**parts, "frame": frame}
            else:
                out[body] = tuple((value if value[3:].any() else value[:3]).tolist())
        return out


def _space(rest: ReducedModel, given: Any) -> _Space:
    bodies = rest.end_effectors
    plain = np.zeros((len(bodies), 3)), ("world",) * len(bodies)
    if given is None:
        softest = min(float(rest.stiffness_ellipsoid(body).stiffness[0]) for body in bodies)
        if not np.isfinite(softest):
            raise InputError("no end effector gives way to a force at its origin: give `wrenches`")
        return _Space(bodies, *plain, size=softest * _REACH * rest.mechanism.radius)
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        if not 0 < given < np.inf:
            raise InputError(f"wrenches: a force above 0 N expected, not {given!r}")
        return _Space(bodies, *plain, size=float(given))
    if isinstance(given, Mapping | str | bool) or not isinstance(given, Iterable):
        raise InputError(
            f"wrenches: a force in N, or a sequence of mappings {{end effector: wrench}} expected, not {given!r:.80}"
        )
    corners, held = [], {}
    for i, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise InputError(f"wrenches: item {i} is no mapping {{end effector: wrench}} but {each!r:.80}")
        corners.append(np.zeros((len(bodies), 6)))
        for body, value in each.items():
            force, torque, point, frame = parse_wrench(value, body)
            if frame == "body":  # all of it turns with the body, so the point can be left out
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
    return _Space(named, np.array(points), frames, corners=np.array(corners)[:, loaded])


# --- equilibria


class _Equilibria:
    """True equilibria under all the wrenches drawn, found so far, and the file that keeps them."""

    def __init__(self, rest: ReducedModel, space: _Space, drawn: Floats, settings: dict[str, int]):
        self.rest, self.space, self.drawn = rest, space, drawn
        m, n = rest.mechanism, len(drawn)
        self.state = np.zeros(n, dtype=np.uint8)
        self.q, self.multipliers = np.zeros((n, m.nq)), np.zeros((n, len(rest.configuration.multipliers)))
        self.path: Path | None = None
        self.saved = -np.inf
        digest = hashlib.sha256("".join(pieces(m)).encode()).hexdigest()
        self.about = {
            "format": FORMAT,
            **settings,
            "mechanism": digest,
            "end_effectors": list(rest.end_effectors),
            "wrenches": [list(space.bodies), list(space.frames), space.points.tolist()],
        }

    def open(self, path: Path | None) -> None:
        """Take over what a file holds; if there is none, begin one now, while nothing is lost if that fails."""
        self.path = path
        if path is None:
            return
        if not os.path.lexists(path):
            self.save()
            return
        arrays = _read(path)
        try:
            about = json.loads(arrays["about"].tobytes())
            if about["format"] != FORMAT:
                raise KeyError("format")
        except (KeyError, ValueError, TypeError, RecursionError):
            raise FormatError(f"'{path}' holds no samples: `sample(resume=...)` writes such files") from None
        check_version(about.get("version"), VERSION, path)
        hint = "give the same arguments as before, or another file"
        for word, value in self.about.items():
            if about.get(word) != value:
                raise FormatError(f"'{path}' was written with another setting of '{word}': {hint}")
        kept = {"state": self.state, "q": self.q, "multipliers": self.multipliers, "drawn": self.drawn}
        for name, mine in kept.items():
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

    def save(self) -> None:
        if self.path is None:
            return
        text = np.frombuffer(json.dumps({**self.about, "version": VERSION}).encode(), dtype=np.uint8)
        with replacing(self.path) as file:
            arrays = {"state": self.state, "q": self.q, "multipliers": self.multipliers, "drawn": self.drawn}
            np.savez(file, allow_pickle=False, about=text, **arrays)
        self.saved = time.monotonic()

    def wrenches(self, which: NDArray[np.int64]) -> list[dict[str, Any]]:
        return [self.space.wrench(values) for values in self.drawn[which]]

    def search(self, which: NDArray[np.int64], what: str, progress: bool) -> None:
        """Find those that are not known yet, each from the reference pose, so that their order does not matter."""
        missing = which[self.state[which] == 0].tolist()
        try:
            for i in track(missing, what, progress):
                found, problem = settle(self.rest.mechanism, self.space.wrench(self.drawn[i]))
                if found is not None:
                    self.q[i], self.multipliers[i] = found.q, found.multipliers
                self.state[i] = 1 + _STATES.index(problem)  # last: only what is complete counts as found
                if time.monotonic() > self.saved + _SECONDS:
                    self.save()
        finally:
            if missing:
                self.save()

    def truths(self, which: NDArray[np.int64]) -> list[Truth]:
        """What was found, from what a file would hold: a run that goes on sees the same numbers to the bit."""
        return [(self._configuration(i), _STATES[self.state[i] - 1]) for i in which.tolist()]

    def _configuration(self, i: int) -> Configuration | None:
        if _STATES[self.state[i] - 1] == NO_EQUILIBRIUM:
            return None
        out = Configuration(self.rest.mechanism, self.q[i])
        out.multipliers = self.multipliers[i].copy()
        return out

    def model(self, i: int, blended: BlendedModel, slow: float, problems: list[str]) -> ReducedModel | None:
        """A model at a candidate; None, and a word about it, if there can be none."""
        wrench = self.space.wrench(self.drawn[i])
        found, problem = settle(self.rest.mechanism, wrench, start=self._configuration(i))
        if found is None or problem is not None:
            problems.append(f"{problem} under {describe(wrench)}")
            return None
        try:
            model = reduce(found.mechanism, self.rest.end_effectors, at=found, inertia=self.rest.inertia)
            blended.add(model)
        except InputError as error:
            problems.append(f"no model under {describe(wrench)}: {error}")
            return None
        left = _lowest(found) / slow
        if left < _BUCKLING:
            problems.append(
                f"near buckling under {describe(wrench)}: lowest frequency {left:.2g} of that at rest"
            )
        return model


def _lowest(at: Configuration) -> float:
    """The lowest natural frequency, NaN if some motion meets no stiffness."""
    try:
        found = at.frequencies(1)
    except InputError:
        return float("nan")
    return float(found[0]) if len(found) else float("nan")
