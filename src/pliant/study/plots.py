"""Pictures of results. They need no display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.accuracy import save
from pliant.errors import FormatError, PliantError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pliant.study.results import Results

__all__ = ["pareto_front", "plot_results"]

_BLUE, _ORANGE, _GREY = "#3566c4", "#d9822b", "#c9ced6"
_PANELS = 9  # outputs in one picture
_LINES = 2000  # of parallel coordinates; more are a blot
Floats = NDArray[np.float64]


def plot_results(results: Results, folder: Path) -> list[Path]:
    """All pictures that make sense of a study; the files they are in.

    Raises:
        PliantError: the folder cannot be written, or no case has succeeded.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"'{folder}' cannot be written: {error.strerror or error}") from None
    data = _numbers(results)
    outputs = [name for name in results.outputs if name in data]
    parameters = [name for name in results.parameters if name in data]
    if not outputs or not len(data[outputs[0]]):
        raise PliantError(f"'{results.path}': no case has succeeded, there is nothing to plot")
    made: dict[str, Figure] = {}
    if len(results.parameters) == 1 and parameters:
        made["response"] = _response(results, data, parameters[0], outputs)
    if len(results.parameters) == 2 == len(parameters):
        made["heatmap"] = _heat_maps(results, data, parameters, outputs)
    if len(outputs) >= 2:
        made["pareto"] = _pareto(results, data, outputs)
    if len(parameters) + len(outputs) >= 3:
        made["parallel"] = _parallel(results, data, [*parameters, *outputs])
    written = []
    for name, figure in made.items():
        written.append(folder / f"{results.path.stem}-{name}.png")
        save(figure, written[-1])
    return written


def _numbers(results: Results) -> dict[str, Floats]:
    """Columns of numbers, of the cases that succeeded; those without a value for some case are left out."""
    good = np.array([error is None for error in results.arrow["error"].to_pylist()], dtype=bool)
    found = {}
    for name in (*results.parameters, *results.outputs):
        values = results.columns[name][good]
        if values.dtype.kind in "iufb":
            values = values.astype(np.float64)
            if np.isfinite(values).all():
                found[name] = values
    return found


def _figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
    for axes in panels:
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _panels(names: Sequence[str]) -> tuple[Figure, list[tuple[Axes, str]]]:
    """One panel per name, in rows of three."""
    names = names[:_PANELS]
    columns = min(3, len(names))
    figure, axes = _figure(
        -(-len(names) // columns), columns, 6.4 if columns == 1 else 4.2, 4.2 if columns == 1 else 3.2
    )
    for spare in axes[len(names) :]:
        spare.set_visible(False)
    return figure, list(zip(axes, names, strict=False))


def _scale(results: Results, name: str) -> str:
    logarithmic = {p.name for p in results.axes if p.logarithmic}
    return "log" if name in logarithmic else "linear"


def _wide(values: Floats) -> bool:
    """Whether values read better on a logarithmic scale: positive, over more than a decade and a half."""
    return bool(values.min() > 0 and values.max() > 30 * values.min())


def _response(results: Results, data: dict[str, Floats], parameter: str, outputs: Sequence[str]) -> Figure:
    figure, panels = _panels(outputs)
    drawn = bool(results.design.drawn)
    order = np.argsort(data[parameter], kind="stable")
    for axes, name in panels:
        x, y = data[parameter][order], data[name][order]
        axes.plot(x, y, "." if drawn else "o-", color=_BLUE, markersize=3, linewidth=1.2)
        axes.set_xscale(_scale(results, parameter))
        axes.set_yscale("log" if _wide(y) else "linear")
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.set_xlabel(parameter, fontsize=9)
        axes.set_ylabel(name, fontsize=9)
    return figure


def _heat_maps(
    results: Results, data: dict[str, Floats], parameters: Sequence[str], outputs: Sequence[str]
) -> Figure:
    from matplotlib.colors import LogNorm

    figure, panels = _panels(outputs)
    a, b = parameters
    for axes, name in panels:
        z = data[name]
        look: dict[str, Any] = {"cmap": "viridis", "norm": LogNorm() if _wide(z) else None}
        if results.design.drawn:
            drawn = axes.scatter(data[a], data[b], c=z, s=9, linewidths=0, **look)
        else:
            x, y = (np.array(results.design.axes[p], dtype=np.float64) for p in (a, b))
            i, j = (np.argsort(v) for v in (x, y))
            drawn = axes.pcolormesh(x[i], y[j], results.grid(name)[i][:, j].T, shading="nearest", **look)
        axes.set_xscale(_scale(results, a))
        axes.set_yscale(_scale(results, b))
        axes.set_xlabel(a, fontsize=9)
        axes.set_ylabel(b, fontsize=9)
        axes.set_title(name, fontsize=9)
        figure.colorbar(drawn, ax=axes).ax.tick_params(labelsize=8)
    return figure


def pareto_front(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Which points no other is better than in both, where less is better; in the order of x."""
    order = np.lexsort((y, x))
    best = np.minimum.accumulate(y[order])
    better = np.append(True, y[order][1:] < best[:-1])
    return order[better]


def _pareto(results: Results, data: dict[str, Floats], outputs: Sequence[str]) -> Figure:
    goals = results.goals
    # Of an output in several columns the first stands for it, so that two different ones meet where there are two.
    heads = list({name.partition(".")[0]: name for name in reversed(outputs)}.values())[::-1]
    a, b = (heads if len(heads) > 1 else outputs)[:2]
    signs = [-1.0 if goals.get(name.partition(".")[0]) == "max" else 1.0 for name in (a, b)]
    front = pareto_front(signs[0] * data[a], signs[1] * data[b])
    figure, (axes,) = _figure(1, 1, 6.4, 4.2)
    axes.scatter(data[a], data[b], s=9, color=_GREY, linewidths=0, label=f"{len(data[a])} cases")
    axes.plot(
        data[a][front],
        data[b][front],
        "o-",
        color=_ORANGE,
        markersize=4,
        linewidth=1.2,
        label=f"front: {len(front)}",
    )
    for name, sign, axis in ((a, signs[0], axes.xaxis), (b, signs[1], axes.yaxis)):
        axis.set_label_text(f"{name} ({'less' if sign > 0 else 'more'} is better)", fontsize=9)
    axes.set_xscale("log" if _wide(data[a]) else "linear")
    axes.set_yscale("log" if _wide(data[b]) else "linear")
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8, frameon=False)
    return figure


def _parallel(results: Results, data: dict[str, Floats], names: Sequence[str]) -> Figure:
    """One line per case through its parameters and outputs; its colour is that of the last output."""
    from matplotlib.collections import LineCollection

    names = names[:12]
    count = len(data[names[0]])
    chosen = np.linspace(0, count - 1, min(count, _LINES)).astype(int)
    columns, ticks = [], []
    for name in names:
        values = data[name][chosen]
        logarithmic = _scale(results, name) == "log" or _wide(values)
        shown = np.log(values) if logarithmic and values.min() > 0 else values
        low, high = shown.min(), shown.max()
        columns.append((shown - low) / (high - low) if high > low else np.full(len(shown), 0.5))
        ticks.append((f"{values.min():.3g}", f"{values.max():.3g}"))
    heights = np.stack(columns, axis=1)
    figure, (axes,) = _figure(1, 1, max(6.4, 1.1 * len(names)), 4.2)
    places = np.broadcast_to(np.arange(len(names), dtype=np.float64), heights.shape)
    lines = LineCollection(
        list(np.stack([places, heights], axis=2)),
        array=heights[:, -1],
        cmap="viridis",
        linewidths=0.8,
        alpha=max(0.08, min(0.8, 60 / len(chosen))),
    )
    axes.add_collection(lines)
    axes.set_xlim(-0.3, len(names) - 0.7)
    axes.set_ylim(-0.12, 1.12)
    axes.set_xticks(range(len(names)), names, fontsize=8, rotation=30 if len(names) > 6 else 0)
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    for i, (low, high) in enumerate(ticks):
        axes.axvline(i, color="#777777", linewidth=0.8, zorder=0)
        axes.text(i, -0.03, low, ha="center", va="top", fontsize=7)
        axes.text(i, 1.03, high, ha="center", va="bottom", fontsize=7)
    return figure
