"""Timing that is fair: contenders take turns, medians are compared."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table


def interleaved(contenders: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Median seconds of each contender; they take turns so that a slow spell of the machine hits all."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()  # compile and warm up
    for _ in range(rounds):
        for name, call in contenders.items():
            start = perf_counter()
            call()
            times[name].append(perf_counter() - start)
    return {name: median(values) for name, values in times.items()}


def show(title: str, columns: list[str], rows: list[list[object]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=130).print(table)
