"""Report of a run: tables on the screen, and figures as small pictures with pliant in colour and peers in grey."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from pliant.errors import FormatError

from .results import Figure, Record, Row, SuiteRecord, Table

__all__ = [
    "STABLE",
    "columns",
    "draw_figure",
    "format_number",
    "is_stable",
    "machine_lines",
    "print_machine",
    "print_suite",
    "save_figure",
    "save_figures",
    "suite_line",
]

STABLE = "All runs stayed stable."
OURS = ("#d9822b", "#3566c4", "#3a9a4c", "#8a4fb3", "#b3313b", "#2a9d9d", "#c2a11c", "#222222")
PEERS = ("#555555", "#8c8c8c", "#b0b0b0", "#707070", "#9e9e9e")
MARKS = "osD^vP*X"
COLOURS = 48  # of a picture


# --- text


def format_number(value: float | None) -> str:
    """Three digits, with an exponent below 0.001; "-" for None."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size == 0 or size >= 1e-3 else f"{value:.1e}"


def columns(table: Table) -> list[tuple[str, list[str]]]:
    """Heading and cells of every column that is not empty, as text."""
    rows = table.rows
    every: list[tuple[str, list[str]]] = [
        ("case", [row.case for row in rows]),
        (f"pliant ({table.unit})", [_format_timing(row.ours, row.ours_spread) for row in rows]),
        (f"peer ({table.unit})", [_format_timing(row.peer, row.peer_spread) for row in rows]),
        ("peer", [row.peer_name for row in rows]),
        ("ratio", ["-" if row.ratio is None else f"{format_number(row.ratio)}x" for row in rows]),
        ("asked for", [row.target for row in rows]),
        ("paper", [row.paper for row in rows]),
        ("stable", [] if is_stable(table) else [row.stable for row in rows]),
        ("note", [_format_note(row) for row in rows]),
    ]
    return [(heading, cells) for heading, cells in every if any(cell not in ("", "-") for cell in cells)]


def is_stable(table: Table) -> bool:
    """Whether all runs of a table stayed stable: then the line `STABLE` replaces the column."""
    return all(row.stable == "yes" for row in table.rows)


def _format_timing(median: float | None, spread: float | None) -> str:
    """Median ± spread."""
    return format_number(median) + (f" ± {format_number(spread)}" if spread else "")


def _format_note(row: Row) -> str:
    """The note, then the further numbers."""
    shown = [
        f"{name} {format_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value}"
        for name, value in row.values.items()
        if value is not None
    ]
    return "; ".join([*([row.note] if row.note else []), *shown])


def suite_line(name: str, suite: SuiteRecord) -> str:
    """State, duration, compilation and load of a suite, and where it was measured if elsewhere, in one line."""
    cache = f"{suite.compiled} functions compiled" if suite.compiled else "compile cache warm"
    load = (
        "" if suite.load_before is None else f", load {suite.load_before} before and {suite.load_after} after"
    )
    where = f" ({suite.machine})" if suite.machine else ""
    return f"{name}{where}: {suite.state}, {suite.seconds:.0f} s, {cache}{load}"


def machine_lines(record: Record) -> list[str]:
    """Date, processor, versions and threads of a run."""
    m = record.machine
    there = [f"{name} {version}" for name, version in m["versions"].items() if version != "not installed"]
    absent = [name for name, version in m["versions"].items() if version == "not installed"]
    threads = ", ".join(f"{name} {value}" for name, value in m["threads"].items())
    return [
        f"{m['date']}{', quick' if record.quick else ''}: {m['processor']}, {m['cores']} cores, {m['system']}",
        f"Python {m['python']}, {', '.join(there)}",
        *([f"not installed: {', '.join(absent)}"] if absent else []),
        f"threads: {threads}",
    ]


def print_machine(record: Record, console: Console) -> None:
    """Print date, processor, versions and threads."""
    for line in machine_lines(record):
        console.print(Text(line))
    console.print()


def print_suite(name: str, suite: SuiteRecord, console: Console) -> None:
    """Print all tables of a suite, and its state."""
    for table in suite.tables:
        _print_table(table, console)
    console.print(Text(suite_line(name, suite)))
    console.print()


def _print_table(table: Table, console: Console) -> None:
    """Print a table with its source, settings and missing peers."""
    source = f" ({table.source})" if table.source else ""
    grid = Grid(title=Text(f"{table.title}{source}"), title_justify="left", title_style="bold")
    for heading, _ in columns(table):
        numbers = heading.startswith(("pliant", "peer (")) or heading == "ratio"
        grid.add_column(Text(heading), justify="right" if numbers else "left")
    for cells in zip(*(cells for _, cells in columns(table)), strict=True):
        grid.add_row(*(Text(cell) for cell in cells))
    console.print(grid)
    console.print(Text(" ".join([table.settings, *([STABLE] if is_stable(table) else [])]).strip()))
    for peer in table.missing:
        console.print(Text(f"missing: {peer}"))
    console.print()


# --- pictures


def draw_figure(figure: Figure) -> Any:
    """Plot of a figure, as a matplotlib figure."""
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
        _set_ticks(axes.xaxis, *axes.get_xlim())
    if figure.log_y:
        axes.set_yscale("log")
        _set_ticks(axes.yaxis, *axes.get_ylim())
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    axes.set_title(figure.title, fontsize=10)
    axes.grid(True, color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        out.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=8, frameon=False)
    return out


def _set_ticks(axis: Any, low: float, high: float) -> None:
    """Label a logarithmic axis with plain numbers; less than two decades also get ticks at twos and fives."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    narrow = high < 60 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.10g}" if value < 1e6 else f"{value:.0e}")
    )
    axis.set_minor_formatter(NullFormatter())


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as a PNG file of few colours, some kilobytes."""
    from PIL import Image  # comes with matplotlib

    buffer = BytesIO()
    draw_figure(figure).savefig(buffer, format="png")
    try:
        with Image.open(buffer) as image:
            image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    except OSError as error:
        raise FormatError(f"'{path}' cannot be written: {error.strerror or error}") from None
    return path


def save_figures(record: Record, folder: Path) -> list[Path]:
    """Write all figures of a run, named by their keys."""
    return [
        save_figure(figure, folder / f"{figure.key}.png")
        for table in record.tables
        for figure in table.figures
    ]
