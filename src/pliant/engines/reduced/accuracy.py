"""Errors of reduced models at rest under wrenches, against the true equilibria, as fractions of the radius."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.model import ReducedModel
from pliant.errors import ConvergenceError, InputError, PliantWarning
from pliant.mechanism import Mechanism
from pliant.plotting import LEAST, LEAST_ERROR, keep_range, logarithmic, panels, png, save
from pliant.statics import Configuration, equilibrium
from pliant.statics.equilibria import solve_cases
from pliant.statics.loads import Load
from pliant.text import brief, counted, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Accuracy", "compare", "describe", "measure", "settle", "unwatched"]

Floats = NDArray[np.float64]
Truth = tuple[Configuration | None, str | None]

NO_EQUILIBRIUM, UNSTABLE, UNSETTLED = "no equilibrium", "unstable", "model does not settle"
_MOST = 15  # rows of a summary
_ROUNDING = 1e-12  # violations below are rounding
_FLOOR = 1e-4  # of the largest error: smaller ones are drawn there


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy:
    """Errors of a model at rest under n wrenches, as fractions of the mechanism's radius; made by `measure`.

    Attributes:
        wrenches: the wrenches, as they were given.
        moved: mean displacement of the end effectors from the reference pose in the true equilibrium, (n,).
        position: mean distance of the end effectors between model and true equilibrium, (n,).
        violation: sum of the openings of all loops in the model, (n,).
        problems: per wrench the reason for errors of NaN, or None.
        name: of the mechanism.
    """

    wrenches: tuple[Mapping[str, Any], ...]
    moved: Floats
    position: Floats
    violation: Floats
    problems: tuple[str | None, ...]
    name: str = "mechanism"

    @property
    def rms(self) -> float:
        """Root mean square of the position errors; NaN if there are none."""
        return float(np.sqrt((self._known**2).mean())) if len(self._known) else float("nan")

    @property
    def worst(self) -> float:
        """The largest position error; NaN if there is none."""
        return float(self._known.max()) if len(self._known) else float("nan")

    @property
    def _known(self) -> Floats:
        return self.position[np.isfinite(self.position)]

    def summary(self) -> str:
        """A readable table, worst wrenches first."""
        n = len(self.wrenches)
        head = f"{self.name}: {counted(n, 'wrench', 'wrenches')}, errors as fractions of the radius"
        if len(self._known):
            head += f"\nposition error {self.rms:.3g} rms, {self.worst:.3g} at worst"
        for problem, count in sorted(Counter(p for p in self.problems if p).items()):
            head += f"\n{problem}: {count}"
        # Order: models that do not settle first, then by error; wrenches without a true equilibrium last.
        badness = np.nan_to_num(self.position, nan=-1.0)
        badness[[problem == UNSETTLED for problem in self.problems]] = np.inf
        order = np.argsort(-badness, kind="stable")
        rows = [
            [
                describe(self.wrenches[i]),
                *(_number(float(values[i])) for values in (self.moved, self.position, self.violation)),
                self.problems[i] or "",
            ]
            for i in order[:_MOST].tolist()
        ]
        columns = ["wrench", "moved", "position error", "violation", "problem"]
        if not any(row[4] for row in rows):
            columns, rows = columns[:4], [row[:4] for row in rows]
        more = f"\n... and {n - _MOST} more" if n > _MOST else ""
        return f"{head}\n\n{table(columns, rows)}{more}"

    def plot(self, path: str | os.PathLike[str] | None = None, title: str | None = None) -> Figure:
        """Position error and violation of loops against the displacement of the end effectors (TVCG Fig. 7).

        Args:
            path: file to save it to; the suffix decides the format. Not saved if None.
            title: title of the figure.
        """
        out, _ = panels(1, 1, 6.4, 4.2, grid=True)
        axes = out.axes[0]
        self.draw(axes)
        axes.set_title(title if title is not None else f"{self.name}: error at rest", fontsize=10)
        save(out, path)
        return out

    def _repr_png_(self) -> bytes:
        return png(self.plot())

    def __repr__(self) -> str:
        return (
            f"<Accuracy of '{self.name}' under {counted(len(self.wrenches), 'wrench', 'wrenches')}: position error "
            f"{self.rms:.3g} rms, {self.worst:.3g} at worst, of the radius>"
        )

    def draw(self, axes: Axes) -> None:
        """Draw the plot into existing axes."""
        known = np.isfinite(self.position)
        series = [("position error", self.position[known], "o", "#1f6fb4")]
        if self.violation[known].max(initial=0.0) > _ROUNDING:
            series.append(("violation of loops", self.violation[known], "^", "#d9822b"))
        top = max((float(values.max(initial=0.0)) for _, values, _, _ in series), default=0.0)
        for label, values, marker, colour in series:
            shown = 100 * np.maximum(values, max(_FLOOR * top, LEAST_ERROR))
            look = {"s": 22, "alpha": 0.75, "linewidths": 0, "zorder": 3}
            axes.scatter(100 * self.moved[known], shown, marker=marker, color=colour, label=label, **look)
        if len(self._known):
            rms = 100 * max(self.rms, LEAST_ERROR)
            axes.axhline(
                rms, color="#1f6fb4", linewidth=1, linestyle="--", label=f"position error, rms {rms:.2g} %"
            )
        logarithmic(axes, 100 * LEAST_ERROR)
        keep_range(axes, "x", 100 * LEAST)
        axes.set_xlabel("end effectors moved (% of the radius)")
        axes.set_ylabel("error (% of the radius)")
        missing = int((~known).sum())
        if missing:
            words = f"{counted(missing, 'wrench', 'wrenches')} without an error left out"
            axes.text(0.02, 0.98, words, transform=axes.transAxes, va="top", fontsize=8, color="#555555")
        if len(self._known):
            axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)


def measure(
    model: ReducedModel | BlendedModel,
    wrenches: Sequence[Mapping[str, Any]],
    progress: bool = False,
    method: str = "exact",
) -> Accuracy:
    """Compare a model at rest under wrenches with the true equilibria (TVCG Fig. 7).

    Args:
        model: a reduced model, or a blend of them.
        wrenches: mappings `{end effector: wrench}`, as `pliant.equilibrium` takes them. Gravity is left out, even
            that of an equilibrium the model was made at; joint limits hold if the model was made with them.
        progress: show a progress bar.
        method: statics of the model: "exact" or "tvcg"; see `ReducedModel.configuration`.

    Returns:
        The errors. Wrenches without an equilibrium, with an unstable one, or under which the model does not settle
        have none; `Accuracy.problems` has the reason.

    Example:
        >>> import pliant
        >>> from pliant.engines.reduced.accuracy import measure
        >>> model = pliant.reduce(pliant.gallery.helix(20))
        >>> found = measure(model, [{"link20": (0, 0, -f)} for f in (1, 10)])
        >>> bool(found.position[0] < found.position[1])
        True
    """
    if not isinstance(model, ReducedModel | BlendedModel):
        raise InputError(f"measure: a ReducedModel or a BlendedModel expected, not {brief(model)}")
    if isinstance(wrenches, Mapping | str | np.ndarray) or not isinstance(wrenches, Iterable):
        raise InputError("wrenches: a sequence of mappings {end effector: wrench} expected")
    given = tuple(wrenches)
    for i, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise InputError(f"wrenches: item {i} is no mapping {{end effector: wrench}} but {brief(each)}")
        for body, value in each.items():
            model.index(body)
            Load.parse(value, body)
    mechanism = model.mechanism
    truths = settle_all(mechanism, given, model.limits, "equilibria" if progress else "")
    return compare(model, given, truths, method)


def settle_all(
    mechanism: Mechanism, wrenches: Sequence[Mapping[str, Any]], limits: bool, progress: str = ""
) -> list[Truth]:
    """True equilibria and their problems, as of `settle`, each from the reference pose: they depend on no order.

    `progress` is the title of a progress bar, or empty for none.
    """
    found = solve_cases(mechanism, wrenches, limits=limits, progress=progress)
    problem = np.where(~found.converged, 0, np.where(found.stability == "unstable", 1, 2)).tolist()
    return [
        (None if p == 0 else found.configuration(i), (NO_EQUILIBRIUM, UNSTABLE, None)[p])
        for i, p in enumerate(problem)
    ]


def settle(
    mechanism: Mechanism,
    wrenches: Mapping[str, Any],
    start: Configuration | None = None,
    limits: bool = False,
) -> Truth:
    """True equilibrium, if there is one, and its problem, if there is one.

    Neutral equilibria are accepted: a part may swing freely without moving the end effectors.
    """
    try:
        found = equilibrium(mechanism, wrenches, start=start, limits=limits)
    except ConvergenceError:
        return None, NO_EQUILIBRIUM
    return found, UNSTABLE if found.stability == "unstable" else None


def compare(
    model: ReducedModel | BlendedModel,
    wrenches: Sequence[Mapping[str, Any]],
    truths: Sequence[Truth],
    method: str = "exact",
) -> Accuracy:
    """Errors against equilibria that are known already; see `measure`."""
    m = model.mechanism
    bodies = [m.body_index(body) for body in model.end_effectors]
    moved, position, violation = np.full((3, len(wrenches)), np.nan)
    problems: list[str | None] = [problem for _, problem in truths]
    for i, (each, (truth, problem)) in enumerate(zip(wrenches, truths, strict=True)):
        if truth is not None:
            moved[i] = truth.displacement[bodies].mean() / m.radius
        if truth is None or problem is not None:
            continue
        try:
            with unwatched():
                found = model.configuration(each, method)
        except ConvergenceError:
            problems[i] = UNSETTLED
            continue
        apart = found.poses[bodies, :3, 3] - truth.poses[bodies, :3, 3]
        position[i] = np.linalg.norm(apart, axis=1).mean() / m.radius
        violation[i] = np.linalg.norm(found.loop_residual[:, :3], axis=1).sum() / m.radius
    return Accuracy(tuple(wrenches), moved, position, violation, tuple(problems), m.name)


@contextmanager
def unwatched() -> Iterator[None]:
    """Without warnings that models go too far, where their errors are measured."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "an end effector of", PliantWarning)
        yield


def describe(wrenches: Mapping[str, Any]) -> str:
    """Short text of wrenches: the first two, and the number of others."""
    words = []
    for body, value in wrenches.items():
        force, torque, _, _ = Load.parse(value, body)
        parts = [
            f"({', '.join(f'{v:.4g}' for v in part)}) {unit}"
            for part, unit in ((force, "N"), (torque, "N m"))
            if part.any()
        ]
        words.append(f"{body} {' '.join(parts) or '0 N'}")
    shown = ", ".join(words[:2]) or "none"
    return shown + (f" and {len(words) - 2} more" if len(words) > 2 else "")


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "-"
