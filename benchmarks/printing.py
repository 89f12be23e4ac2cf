"""Tables on the screen: the paper's figure, the peer's, ours, the ratio, and whether each run stayed stable."""

from __future__ import annotations

from record import Record, SuiteRecord
from results import Row, Table
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

__all__ = [
    "STABLE",
    "columns",
    "machine_lines",
    "number",
    "print_machine",
    "print_suite",
    "print_table",
    "stable",
    "suite_line",
    "timing",
]


STABLE = "All runs stayed stable."


def number(value: float | None) -> str:
    """Three digits, without an exponent where it reads well."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size == 0 or size >= 1e-3 else f"{value:.1e}"


def timing(median: float | None, spread: float | None) -> str:
    """Median ± spread."""
    return number(median) + (f" ± {number(spread)}" if spread else "")


def ratio(value: float | None) -> str:
    """As a factor."""
    return "-" if value is None else f"{number(value)}x"


def columns(table: Table) -> list[tuple[str, list[str]]]:
    """Heading and cells of every column that has something to say; words and numbers as they are shown."""
    rows = table.rows
    every: list[tuple[str, list[str]]] = [
        ("case", [row.case for row in rows]),
        (f"pliant ({table.unit})", [timing(row.ours, row.ours_spread) for row in rows]),
        (f"peer ({table.unit})", [timing(row.peer, row.peer_spread) for row in rows]),
        ("peer", [row.peer_name for row in rows]),
        ("ratio", [ratio(row.ratio) for row in rows]),
        ("asked for", [row.target for row in rows]),
        ("paper", [row.paper for row in rows]),
        ("stable", [] if stable(table) else [row.stable for row in rows]),
        ("note", [_note(row) for row in rows]),
    ]
    return [(heading, cells) for heading, cells in every if any(cell not in ("", "-") for cell in cells)]


def stable(table: Table) -> bool:
    """Whether all runs of a table stayed stable: then a line says so, else a column."""
    return all(row.stable == "yes" for row in table.rows)


def _note(row: Row) -> str:
    """The note, then the further numbers."""
    shown = [
        f"{name} {number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value}"
        for name, value in row.values.items()
        if value is not None
    ]
    return "; ".join([*([row.note] if row.note else []), *shown])


def print_table(table: Table, console: Console) -> None:
    """One table with its source and settings."""
    source = f" ({table.source})" if table.source else ""
    grid = Grid(title=Text(f"{table.title}{source}"), title_justify="left", title_style="bold")
    for heading, _ in columns(table):
        numbers = heading.startswith(("pliant", "peer (")) or heading == "ratio"
        grid.add_column(Text(heading), justify="right" if numbers else "left")
    for cells in zip(*(cells for _, cells in columns(table)), strict=True):
        grid.add_row(*(Text(cell) for cell in cells))
    console.print(grid)
    console.print(Text(" ".join([table.settings, *([STABLE] if stable(table) else [])]).strip()))
    for peer in table.missing:
        console.print(Text(f"missing: {peer}"))
    console.print()


def print_machine(record: Record, console: Console) -> None:
    """What it ran on."""
    for line in machine_lines(record):
        console.print(Text(line))
    console.print()


def print_suite(name: str, suite: SuiteRecord, console: Console) -> None:
    """All tables of a suite, and how it went."""
    for table in suite.tables:
        print_table(table, console)
    console.print(Text(suite_line(name, suite)))
    console.print()


def suite_line(name: str, suite: SuiteRecord) -> str:
    """How a suite went, in one line."""
    cache = f"{suite.compiled} functions compiled" if suite.compiled else "compile cache warm"
    load = (
        "" if suite.load_before is None else f", load {suite.load_before} before and {suite.load_after} after"
    )
    return f"{name}: {suite.state}, {suite.seconds:.0f} s, {cache}{load}"


def machine_lines(record: Record) -> list[str]:
    """What it ran on."""
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
