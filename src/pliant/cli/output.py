"""What commands print and write: words to stderr, results to stdout, files complete or not at all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.extras import check
from pliant.files import check_writable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["destination", "print_json", "print_table", "progress_bar", "say", "stdout"]

_DRAWN_BY = {".png": "matplotlib", ".svg": "matplotlib", ".pdf": "matplotlib", ".html": "viser"}
_PIPE_WIDTH = 120  # columns of a table where there is no terminal to ask


def say(message: str) -> None:
    """One line on stderr."""
    print("pliant:", " ".join(message.split()), file=sys.stderr)


def stdout() -> Console:
    """Where results go."""
    from rich.console import Console

    terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(file=sys.stdout, highlight=False, width=None if terminal else _PIPE_WIDTH)


def print_json(value: Any) -> None:
    """A result as JSON, the only thing on stdout; what is not finite becomes null."""
    print(json.dumps(_plain(value), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    """Arrays as lists, infinite numbers and NaN as None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return None
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str | None = None,
    left: Sequence[int] = (0,),
) -> None:
    """A table on stdout.

    Args:
        columns: headings. One that ends in `...` is the column that wraps where the terminal is narrow.
        rows: cells.
        title: above it.
        left: which columns are of words; the others are of numbers, except one that wraps.
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


def destination(path: Path | None, *suffixes: str) -> Path | None:
    """Refuse, before any work is done, a place where a file cannot be written.

    Args:
        path: where to; None for nowhere.
        suffixes: what the name may end in; anything if there are none.

    Raises:
        FormatError: there is no such folder, it is not writable, or something else is in the way.
        MissingPackageError: the package that draws such a file is not installed.
    """
    if path is None:
        return None
    check_writable(path, *suffixes)
    if path.suffix.lower() in _DRAWN_BY:
        check(_DRAWN_BY[path.suffix.lower()])
    return path
