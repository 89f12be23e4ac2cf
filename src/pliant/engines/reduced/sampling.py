"""`sample`: where to linearise, found by exploring wrenches and adding a model where the blend is worst."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.arguments import whole
from pliant.engines.reduced.accuracy import (
    UNSETTLED,
    Accuracy,
    compare,
    describe,
    track,
)
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.exploring import Equilibria, explored, lowest_frequency
from pliant.engines.reduced.polynomial import fit_polynomial
from pliant.engines.reduced.reduce import reduce
from pliant.errors import InputError
from pliant.files import as_path
from pliant.mechanism import Mechanism
from pliant.plotting import logarithmic, panels, save
from pliant.text import counted, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Sampled", "sample"]

Floats = NDArray[np.float64]

KINDS = {"blend": 12, "polynomial": 4}  # and how many models by default
_MOST = 15  # problems listed


@dataclass(frozen=True, eq=False, repr=False)
class Sampled:
    """A blend and how good it is; made by `sample`.

    Attributes:
        model: the blend; its first model is the one at rest.
        wrenches: per model, the wrenches it was made under.
        curve: rms and worst position error of the candidates after each model, fractions of the radius,
            (models, 2); infinite where the blend does not settle under a candidate. Of a polynomial, the last row is
            its own.
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

    def _repr_png_(self) -> bytes:
        from pliant.engines.reduced.notebook import png

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
    budget: int | None = None,
    kind: str = "blend",
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
        budget: stop at this many models, that at rest included; 12 by default, 4 for a polynomial.
        kind: "blend"; or "polynomial", where joint displacements are a cubic polynomial of the wrench fitted to all
            candidates, and only compliance, mass and damping are blended.
        seed: of the random wrenches.
        candidates: how many wrenches to choose from.
        held_out: how many other ones to judge the result by.
        inertia: as for `pliant.reduce`.
        exponent: as for `pliant.blend`.
        limits: enforce joint limits, as for `pliant.equilibrium`, in all equilibria and models.
        progress: show progress bars.
        resume: an `.npz` file that keeps the equilibria found. If it is there, they are not sought again: after an
            interruption the same call goes on, and tolerance, budget, inertia and exponent may be others.

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
    if (
        isinstance(tolerance, bool)
        or not isinstance(tolerance, int | float | np.number)
        or not 0 <= tolerance < 1
    ):
        raise InputError(f"tolerance: a number from 0 to below 1 expected, not {tolerance!r}")
    if kind not in KINDS:
        raise InputError(f"kind is one of {', '.join(map(repr, KINDS))}, not {kind!r}")
    budget = whole(KINDS[kind] if budget is None else budget, "budget", 1)
    seed = whole(seed, "seed", 0)
    counts = whole(candidates, "candidates", 1), whole(held_out, "held_out", 1)
    # At the reference pose limits add neither force nor stiffness, so there it is enough to say so.
    rest = replace(reduce(mechanism, end_effectors, inertia=inertia), limits=bool(limits))
    if rest.base is not None:
        raise InputError(f"sample: '{rest.base.body}' floats: hold it first, with `with_fixed_base`")
    blended = BlendedModel([rest], exponent)
    space = explored(rest, wrenches)
    # Two streams, so that fresh wrenches stay the same with more candidates.
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
    if kind == "polynomial":
        usable = [i for i, (_, problem) in enumerate(truths) if problem is None]
        every = [
            found.model(i, BlendedModel([rest], exponent), slow, [])
            for i in track(usable, "slopes", progress)
        ]
        fitted = fit_polynomial([rest, *(model for model in every if model is not None)])
        blended = BlendedModel(blended.models, exponent, polynomial=fitted)
        errors = compare(blended, loads, truths)
        curve[-1] = [errors.rms, errors.worst]
    found.search(judge, "fresh equilibria", progress)
    return Sampled(
        blended,
        tuple({} if i < 0 else loads[i] for i in chosen),
        np.array(curve),
        compare(blended, found.wrenches(judge), found.truths(judge)),
        float(tolerance),
        tuple(problems),
    )
