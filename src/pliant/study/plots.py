"""Plots of results; they need no display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import FormatError, PliantError
from pliant.plotting import LEAST, keep_range, label_axis, panels, save, widened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pliant.study.results import Results

__all__ = ["pareto_front", "plot_results"]

Floats = NDArray[np.float64]
BLUE, ORANGE, GREY = "#3566c4", "#d9822b", "#b9c0ca"
_PANELS = 9  # outputs in one figure
_FRONTS = 3  # outputs plotted against each other
_ROWS, _COLUMNS = 4, 8  # outputs and parameters in a matrix of responses
_AXES, _OUTPUTS = 16, 6  # axes of parallel coordinates, and outputs among them at most
_LINES = 2000  # of parallel coordinates at most
_BINS = 16  # along a parameter
_TWO = 2  # different values of a yes-or-no output


def plot_results(results: Results, folder: Path) -> list[Path]:
    """Write all plots that apply to a study; their files.

    Raises:
        PliantError: the folder cannot be written, or no case has succeeded.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"'{folder}' cannot be written: {error.strerror or error}") from None
    data = _numbers(results)
    outputs = [name for name in results.outputs if name in data]
    parameters = [name for name in results.parameters if name in data and len(set(data[name])) > 1]
    if not outputs or not len(data[outputs[0]]):
        raise PliantError(f"'{results.path}': no case has succeeded, there is nothing to plot")
    made: dict[str, Figure] = {}
    if len(parameters) == 1:
        made["response"] = _response(results, data, parameters[0], outputs)
    elif len(results.parameters) == 2 == len(parameters):
        made["heatmap"] = _heat_maps(results, data, parameters, outputs)
    elif parameters:
        made["response"] = _responses(results, data, parameters, outputs)
    many = [name for name in _representatives(outputs, data) if len(set(data[name])) > _TWO]
    if len(many) >= 2:
        made["pareto"] = _pareto(results, data, many)
    if len(parameters) + len(outputs) >= 3:
        made["parallel"] = _parallel(results, data, parameters, outputs)
    written = []
    for name, drawn in made.items():
        written.append(folder / f"{results.path.stem}-{name}.png")
        save(drawn, written[-1])
    return written


def _numbers(results: Results) -> dict[str, Floats]:
    """Numeric columns of the cases without an error; columns with missing values are left out."""
    good = np.array([error is None for error in results.arrow["error"].to_pylist()], dtype=bool)
    found = {}
    for name in (*results.parameters, *results.outputs):
        values = results.columns[name][good]
        if values.dtype.kind in "iufb":
            values = values.astype(np.float64)
            if np.isfinite(values).all():
                found[name] = values
    return found


def _representatives(outputs: Sequence[str], data: dict[str, Floats]) -> list[str]:
    """One column per output, for Pareto plots; all columns if there is a single output."""
    found: dict[str, str] = {}
    for name in outputs:
        output = name.partition(".")[0]
        if output not in found or len(set(data[found[output]])) <= _TWO:
            found[output] = name
    return list(found.values()) if len(found) > 1 else list(outputs)


def _logarithmic(results: Results, name: str) -> bool:
    return any(p.name == name and p.logarithmic for p in results.axes)


def _response(results: Results, data: dict[str, Floats], parameter: str, outputs: Sequence[str]) -> Figure:
    made, found = _panels(outputs)
    order = np.argsort(data[parameter], kind="stable")
    for axes, name in found:
        x, y = data[parameter][order], data[name][order]
        axes.plot(x, y, "." if results.design.drawn else "o-", color=BLUE, markersize=3, linewidth=1.2)
        _scale(axes, "x", _logarithmic(results, parameter), x)
        _scale(axes, "y", _spans_decades(y), y)
        axes.grid(True, color="#dddddd", linewidth=0.6)
        _label(axes, parameter, name)
    return made


def _responses(
    results: Results, data: dict[str, Floats], parameters: Sequence[str], outputs: Sequence[str]
) -> Figure:
    """Every output over every parameter: all cases, and their median; the rate of outputs that are 0 or 1."""
    parameters, outputs = parameters[:_COLUMNS], outputs[:_ROWS]
    made, found = panels(len(outputs), len(parameters), 2.2, 2.0)
    for i, axes in enumerate(found):
        output, parameter = divmod(i, len(parameters))
        x, y = data[parameters[parameter]], data[outputs[output]]
        few = len(set(y)) <= _TWO
        axes.plot(x, y, ".", color=GREY, markersize=2 if len(x) <= 2000 else 1)
        axes.plot(
            *_middle(x, y, np.mean if few else np.median),
            "-" if results.design.drawn else "o-",
            color=ORANGE,
            markersize=3,
            linewidth=1.5,
        )
        _scale(axes, "x", _logarithmic(results, parameters[parameter]), x, 3)
        _scale(axes, "y", not few and _spans_decades(y), y, 4)
        axes.grid(True, color="#dddddd", linewidth=0.6)
        _label(axes, parameters[parameter], outputs[output])
        axes.label_outer()
    count = len(data[outputs[0]])
    made.suptitle(f"{count} cases; the line is their median, or the rate of what is 0 or 1", fontsize=9)
    return made


def _middle(x: Floats, y: Floats, middle: Callable[[Floats], Any]) -> tuple[Floats, Floats]:
    """x and middle of y in bins with equally many cases, or at every value of x if there are few."""
    values = np.unique(x)
    if len(values) <= _BINS:
        return values, np.array([middle(y[x == value]) for value in values])
    parts = np.array_split(np.argsort(x, kind="stable"), min(_BINS, max(4, len(x) // 30)))
    return np.array([np.median(x[p]) for p in parts]), np.array([middle(y[p]) for p in parts])


def _heat_maps(
    results: Results, data: dict[str, Floats], parameters: Sequence[str], outputs: Sequence[str]
) -> Figure:
    from matplotlib.colors import LogNorm, Normalize

    made, found = _panels(outputs)
    a, b = parameters
    for axes, name in found:
        z = data[name]
        low, high = float(z.min()), float(z.max())
        least = LEAST * max(abs(low), abs(high))
        norm = LogNorm() if _spans_decades(z) else Normalize(*widened(low, high, least))
        look: dict[str, Any] = {"cmap": "viridis", "norm": norm}
        if results.design.drawn:
            size = float(np.clip(8000 / len(z), 4, 50))
            drawn = axes.scatter(data[a], data[b], c=z, s=size, linewidths=0, **look)
        else:
            x, y = (np.array(results.design.axes[p], dtype=np.float64) for p in (a, b))
            i, j = (np.argsort(v) for v in (x, y))
            drawn = axes.pcolormesh(x[i], y[j], results.grid(name)[i][:, j].T, shading="nearest", **look)
        _scale(axes, "x", _logarithmic(results, a), data[a])
        _scale(axes, "y", _logarithmic(results, b), data[b])
        _label(axes, a, b)
        axes.set_title(name, fontsize=9)
        bar = made.colorbar(drawn, ax=axes)
        bar.ax.tick_params(labelsize=8)
        label_axis(bar.ax.yaxis, z, log=_spans_decades(z))
    return made


def pareto_front(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Indices of the Pareto front of points (x, y) where less is better, in the order of x."""
    order = np.lexsort((y, x))
    best = np.minimum.accumulate(y[order])
    better = np.append(True, y[order][1:] < best[:-1])
    return order[better]


def _pareto(results: Results, data: dict[str, Floats], outputs: Sequence[str]) -> Figure:
    """Pareto fronts of pairs of the first outputs, where they conflict."""
    signs = {name: -1.0 if results.goal(name) == "max" else 1.0 for name in outputs}
    pairs = list(combinations(outputs[:_FRONTS], 2))
    fronts = {(a, b): pareto_front(signs[a] * data[a], signs[b] * data[b]) for a, b in pairs}
    pairs = [pair for pair in pairs if len(fronts[pair]) > 1] or pairs[:1]
    made, found = panels(1, len(pairs), *((6.4, 4.2) if len(pairs) == 1 else (4.6, 3.8)))
    for axes, (a, b) in zip(found, pairs, strict=True):
        front = fronts[a, b]
        axes.plot(data[a], data[b], ".", color=GREY, markersize=3, label=f"{len(data[a])} cases")
        label = f"front: {len(front)}" if len(front) > 1 else "one is best in both"
        line = "o-" if len(front) <= 40 else "-"
        axes.plot(
            data[a][front], data[b][front], line, color=ORANGE, markersize=4, linewidth=1.4, label=label
        )
        for name, sign, axis in ((a, signs[a], axes.xaxis), (b, signs[b], axes.yaxis)):
            axis.set_label_text(f"{name} ({'less' if sign > 0 else 'more'} is better)", fontsize=9)
        _scale(axes, "x", _spans_decades(data[a]), data[a])
        _scale(axes, "y", _spans_decades(data[b]), data[b])
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.legend(fontsize=8, frameon=False)
    return made


def _parallel(
    results: Results, data: dict[str, Floats], parameters: Sequence[str], outputs: Sequence[str]
) -> Figure:
    """Parallel coordinates: one line per case through its parameters and outputs, coloured by the first output."""
    from matplotlib.collections import LineCollection

    colour = outputs[0]
    outputs = outputs[:_OUTPUTS]
    names = [*parameters[: _AXES - len(outputs)], *outputs]
    count = len(data[colour])
    chosen = np.linspace(0, count - 1, min(count, _LINES)).astype(int)
    heights, ends = {}, {}
    for name in names:
        values = data[name][chosen]
        logarithmic = _logarithmic(results, name) or _spans_decades(values)
        shown = np.log(values) if logarithmic and values.min() > 0 else values
        low, high = shown.min(), shown.max()
        heights[name] = (shown - low) / (high - low) if high > low else np.full(len(shown), 0.5)
        ends[name] = f"{values.min():.3g}", f"{values.max():.3g}"
    order = np.argsort(heights[colour], kind="stable")
    order = order[::-1] if results.goal(colour) == "min" else order  # the best on top
    made, (axes,) = panels(1, 1, max(6.4, 0.95 * len(names)), 4.2)
    places = np.arange(len(names), dtype=np.float64)
    lines = LineCollection(
        [np.column_stack([places, [heights[name][i] for name in names]]) for i in order],
        array=heights[colour][order],
        cmap="viridis",
        linewidths=0.8,
        alpha=max(0.1, min(0.8, 80 / len(chosen))),
    )
    axes.add_collection(lines)
    axes.set_xlim(-0.4, len(names) - 0.6)
    axes.set_ylim(-0.12, 1.12)
    slanted = sum(map(len, names)) > 9 * len(names)
    axes.set_xticks(
        places, names, fontsize=8, rotation=25 if slanted else 0, ha="right" if slanted else "center"
    )
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    for i, name in enumerate(names):
        axes.axvline(i, color=ORANGE if name in outputs else "#777777", linewidth=1.0, ymin=0.1, ymax=0.9)
        axes.text(i, -0.03, ends[name][0], ha="center", va="top", fontsize=7)
        axes.text(i, 1.03, ends[name][1], ha="center", va="bottom", fontsize=7)
    less = f", {len(chosen)} of {count} cases" if len(chosen) < count else ""
    axes.set_title(f"colour: {colour}, from blue (low) to yellow (high){less}", fontsize=9)
    return made


# --- panels, scales, ticks


def _panels(names: Sequence[str]) -> tuple[Figure, list[tuple[Axes, str]]]:
    """A figure with one panel per name, in rows of three; four in rows of two."""
    names = names[:_PANELS]
    columns = 2 if len(names) == 4 else min(3, len(names))
    wide = columns == 1
    made, found = panels(-(-len(names) // columns), columns, 6.4 if wide else 4.2, 4.2 if wide else 3.2)
    for spare in found[len(names) :]:
        spare.set_visible(False)
    return made, list(zip(found, names, strict=False))


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)


def _spans_decades(values: Floats) -> bool:
    """Whether values need a logarithmic scale: positive, over one and a half to six decades.

    Over more, the least are rounding errors, such as the slip of an object that sticks.
    """
    return bool(values.min() > 0 and 30 * values.min() < values.max() < 1e6 * values.min())


def _scale(axes: Axes, which: str, logarithmic: bool, values: Floats, ticks: int = 5) -> None:
    """Set scale and ticks of the axis "x" or "y"."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log" if logarithmic else "linear")
    if not logarithmic:
        keep_range(axes, which, LEAST * float(np.abs(values).max(initial=0.0)))
    label_axis(getattr(axes, f"{which}axis"), values, log=logarithmic, most=ticks)
