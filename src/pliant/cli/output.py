"""Output of commands: messages on stderr, results on stdout as tables or JSON, checks of files before any work."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.cli.wording import as_options
from pliant.extras import check
from pliant.files import check_writable, json_value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = [
    "LEGEND",
    "PICTURES",
    "check_target",
    "percent",
    "print_json",
    "print_table",
    "progress_bar",
    "say",
    "show",
    "stdout",
]

PICTURES = (".png", ".svg", ".pdf")  # suffixes of plots
LEGEND: dict[str, Any] = {  # below the axes
    "fontsize": 8,
    "frameon": False,
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.14),
    "ncols": 4,
}
_DRAWN_BY: dict[str, str] = dict.fromkeys(PICTURES, "matplotlib")
_PIPE_WIDTH = 120  # columns of text where stdout is no terminal


def say(message: str) -> None:
    """Print a message on stderr, as one line; what a terminal would obey, in names from files, is escaped."""
    line = " ".join(as_options(message).split())
    print("pliant:", "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line), file=sys.stderr)


def show(text: str) -> None:
    """Print text of the library on stdout, in the words of the command line."""
    print(as_options(text))


def stdout() -> Console:
    """Console for results, on stdout."""
    from rich.console import Console

    terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(file=sys.stdout, highlight=False, width=None if terminal else _PIPE_WIDTH)


def print_json(value: Any) -> None:
    """Print a result as JSON, the only text on stdout; numbers that are not finite become null."""
    print(json.dumps(json_value(value), indent=1, allow_nan=False))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str | None = None,
    left: Sequence[int] = (0,),
) -> None:
    """Print a table on stdout.

    Args:
        columns: headings. A column whose heading ends in `...` wraps where the terminal is narrow.
        rows: cells.
        title: above the table.
        left: indices of the columns of words, aligned left like a column that wraps; others are aligned right.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title and Text(title), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for i, heading in enumerate(columns):
        words = heading.endswith("...")
        table.add_column(
            Text(heading.removesuffix("...")),
            justify="left" if i in left or words else "right",
            no_wrap=not words,
            header_style="bold",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    stdout().print(table)


def progress_bar() -> Progress:
    """A bar on stderr that disappears when it is done; nothing where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def percent(value: float | None) -> str:
    """A fraction as a percentage of two or three digits."""
    if value is None or value != value:
        return "-"
    if value > 10:
        return "> 1000 %"
    return "< 0.0001 %" if value < 1e-6 else f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.1f} %"


def check_target(path: Path | None, *suffixes: str) -> None:
    """Refuse, before any work is done, a file that cannot be written; None is no file.

    Args:
        path: the file.
        suffixes: the suffixes it may have; any if none are given.

    Raises:
        FormatError: there is no such folder, it is not writable, or something else is in the way.
        MissingPackageError: the package that draws files of this suffix is not installed.
    """
    if path is None:
        return
    check_writable(path, *suffixes)
    if path.suffix.lower() in _DRAWN_BY:
        check(_DRAWN_BY[path.suffix.lower()])
