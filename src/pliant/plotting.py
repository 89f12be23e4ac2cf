"""matplotlib figures without a display: panels, scales, files. matplotlib is imported when first used."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.errors import InputError
from pliant.extras import require
from pliant.files import as_path, refuse_device

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "DPI",
    "LEAST",
    "LEAST_ERROR",
    "figure",
    "keep_range",
    "label_axis",
    "logarithmic",
    "panels",
    "png",
    "save",
    "target_path",
    "widened",
]

DPI = 150
LEAST = 1e-6  # least range of an axis: of the radius for displacements, of the largest value for others
LEAST_ERROR = 1e-9  # error that is drawn, as a fraction: smaller ones are rounding


def figure(width: float, height: float, *, layout: str | None = "constrained") -> Figure:
    """An empty figure, size in inches."""
    require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), dpi=DPI, layout=layout)  # pyright: ignore[reportArgumentType]
    FigureCanvasAgg(made)
    return made


def panels(
    rows: int, columns: int, width: float, height: float, *, grid: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of rows by columns panels, each `width` by `height` inches, and its axes row by row.

    `grid` draws grid lines behind the data.
    """
    made = figure(width * columns, height * rows)
    found = list(np.ravel(made.subplots(rows, columns, squeeze=False)))
    for axes in found:
        if grid:
            axes.grid(True, which="major", color="#dddddd", linewidth=0.6, zorder=0)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return made, found


def widened(low: float, high: float, least: float) -> tuple[float, float]:
    """A range of at least `least` with the same middle."""
    more = max(least - (high - low), 0.0) / 2
    return low - more, high + more


def keep_range(axes: Axes, which: str, least: float) -> None:
    """Widen the range of the axis "x" or "y" to at least `least`, so that rounding is not drawn as a curve.

    From zero on where the range begins there, else about its middle. A logarithmic axis goes from `least` to ten times
    as much where all values are smaller.
    """
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    scale = axes.get_xscale() if which == "x" else axes.get_yscale()
    if scale == "log":
        low, high = (low, high) if high >= 10 * least else (least / 2, 10 * least)
    else:
        low, high = (0.0, max(high, least)) if low == 0 else widened(low, high, least)
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)


def logarithmic(axes: Axes, least: float = 0.0) -> None:
    """A logarithmic y axis with plain numbers: at every decade, and at 2 and 5 where the range is narrow.

    Values below `least` are rounding; see `keep_range`.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_yscale("log")
    if least > 0:
        keep_range(axes, "y", least)
    low, high = axes.get_ylim()
    narrow = high < 300 * low
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}") if narrow else NullFormatter())
    axes.tick_params(which="both", labelsize=8)


def label_axis(axis: Axis, values: np.ndarray, *, log: bool, most: int = 5) -> None:
    """Ticks of an axis as plain numbers, at most about `most`; `values` are those it shows, `log` tells its scale."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

    if not log:
        plain = ScalarFormatter(useMathText=True)
        plain.set_powerlimits((-3, 4))
        axis.set_major_formatter(plain)
        axis.set_major_locator(MaxNLocator(most))
        axis.get_offset_text().set_fontsize(8)
        return
    decades = np.log10(values.max() / values.min())
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    axis.set_minor_formatter(NullFormatter())


def target_path(path: Any) -> Path:
    """The path of a picture, checked before it is drawn.

    Raises:
        InputError: it is no file name, or its folder is not there.
        FormatError: it is a device or a pipe.
    """
    target = as_path(path)
    refuse_device(target)
    if not target.parent.is_dir():
        raise InputError(
            f"'{target}' cannot be written: there is no folder '{target.parent}'; create it first"
        )
    if target.is_dir():
        raise InputError(f"'{target}' cannot be written: it is a folder; add a file name")
    return target


def save(drawn: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write a figure, unless the path is None; the suffix decides the format, PNG without one.

    Raises:
        InputError: the format is unknown, or the file cannot be written.
    """
    if path is None:
        return
    target = target_path(path)
    suffix = target.suffix.lower().lstrip(".") or "png"
    if suffix not in drawn.canvas.get_supported_filetypes():
        raise InputError(f"'{target}': pictures cannot be written as '.{suffix}'; use .png, .svg or .pdf")
    try:
        drawn.savefig(target, format=suffix, dpi=DPI)
    except OSError as error:
        raise InputError(f"'{target}' cannot be written: {error.strerror or error}") from None


def png(drawn: Figure) -> bytes:
    """A figure as PNG, as notebooks show it."""
    out = io.BytesIO()
    drawn.savefig(out, format="png", dpi=100)
    return out.getvalue()
