"""What pictures of results share: figures, scales, numbers along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREY", "ORANGE", "figure", "is_wide", "panels", "scale", "shown_as"]

BLUE, ORANGE, GREY = "#3566c4", "#d9822b", "#b9c0ca"
_PANELS = 9  # outputs in one picture
Floats = NDArray[np.float64]


def figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure that needs no display, and its panels, row by row."""
    require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    FigureCanvasAgg(made)
    found = list(np.ravel(made.subplots(rows, columns, squeeze=False)))
    for axes in found:
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return made, found


def panels(names: Sequence[str]) -> tuple[Figure, list[tuple[Axes, str]]]:
    """One panel per name, in rows of three; four in rows of two."""
    names = names[:_PANELS]
    columns = 2 if len(names) == 4 else min(3, len(names))
    wide = columns == 1
    made, found = figure(-(-len(names) // columns), columns, 6.4 if wide else 4.2, 4.2 if wide else 3.2)
    for spare in found[len(names) :]:
        spare.set_visible(False)
    return made, list(zip(found, names, strict=False))


def is_wide(values: Floats) -> bool:
    """Whether values read better on a logarithmic scale: positive, over more than a decade and a half.

    Over more than six decades the least are rounding errors, as of a thing that has not slipped.
    """
    return bool(values.min() > 0 and 30 * values.min() < values.max() < 1e6 * values.min())


def scale(axes: Axes, which: str, logarithmic: bool, values: Floats, numbers: int = 5) -> None:
    """Scale and numbers of the axis "x" or "y": plain ones, few enough to be read."""
    axis: Axis = getattr(axes, f"{which}axis")
    (axes.set_xscale if which == "x" else axes.set_yscale)("log" if logarithmic else "linear")
    shown_as(axis, logarithmic, values, numbers)


def shown_as(axis: Axis, logarithmic: bool, values: Floats, numbers: int = 5) -> None:
    """So many numbers along an axis, or along that of a colour bar."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

    if not logarithmic:
        plain = ScalarFormatter(useMathText=True)
        plain.set_powerlimits((-3, 4))
        axis.set_major_formatter(plain)
        axis.set_major_locator(MaxNLocator(numbers))
        axis.get_offset_text().set_fontsize(8)
        return
    decades = np.log10(values.max() / values.min())
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    axis.set_minor_formatter(NullFormatter())
