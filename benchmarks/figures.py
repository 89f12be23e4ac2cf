"""Figures as small pictures: a palette of few colours, pliant in colour, peers in grey."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from record import Record
from results import Figure

from pliant.errors import FormatError

__all__ = ["draw", "save", "write"]

OURS = ("#d9822b", "#3566c4", "#3a9a4c", "#8a4fb3", "#b3313b", "#2a9d9d", "#c2a11c", "#222222")
PEERS = ("#555555", "#8c8c8c", "#b0b0b0", "#707070", "#9e9e9e")
MARKS = "osD^vP*X"
COLOURS = 48  # of a picture


def draw(figure: Figure) -> Any:
    """As a matplotlib figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    out = Canvas(figsize=(6.4, 3.4), dpi=100, layout="constrained")
    FigureCanvasAgg(out)
    axes = out.add_subplot()
    counts = {True: 0, False: 0}
    for series in figure.series:
        colours = OURS if series.ours else PEERS
        i = counts[series.ours]
        counts[series.ours] += 1
        axes.plot(
            series.x,
            series.y,
            ("-" if series.ours else "--") if series.line else "",
            marker=MARKS[i % len(MARKS)],
            markersize=4,
            linewidth=1.3,
            color=colours[i % len(colours)],
            label=series.label,
        )
    if figure.log_x:
        axes.set_xscale("log")
        _ticks(axes.xaxis, *axes.get_xlim())
    if figure.log_y:
        axes.set_yscale("log")
        _ticks(axes.yaxis, *axes.get_ylim())
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    axes.set_title(figure.title, fontsize=10)
    axes.grid(True, color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        out.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    return out


def _ticks(axis: Any, low: float, high: float) -> None:
    """Plain numbers; also at twos and fives where there are hardly two powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    narrow = high < 60 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.10g}" if value < 1e6 else f"{value:.0e}")
    )
    axis.set_minor_formatter(NullFormatter())


def write(figure: Figure, path: Path) -> Path:
    """As a PNG file of some kilobytes."""
    from PIL import Image  # comes with matplotlib

    buffer = BytesIO()
    draw(figure).savefig(buffer, format="png")
    try:
        with Image.open(buffer) as image:
            image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    except OSError as error:
        raise FormatError(f"'{path}' cannot be written: {error.strerror or error}") from None
    return path


def save(record: Record, folder: Path) -> list[Path]:
    """All figures of a run, named by their keys."""
    return [
        write(figure, folder / f"{figure.key}.png") for table in record.tables for figure in table.figures
    ]
