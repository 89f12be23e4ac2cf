"""Text for people: counts, lists of names, tables, suggestions, round numbers, units, progress bars."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

__all__ = [
    "FORCES",
    "LENGTHS",
    "LONGEST_NAME",
    "brief",
    "counted",
    "escape_markdown",
    "is_name",
    "listed",
    "round_down",
    "suggestion",
    "table",
    "track",
    "unique_name",
    "unit_for",
]

LONGEST_NAME = 1000  # characters
# Units: smallest quantity shown in the unit, size of the unit in SI units, name.
LENGTHS = ((0.1, 1.0, "m"), (1e-3, 1e-3, "mm"), (0.0, 1e-6, "µm"))
FORCES = ((1e4, 1e3, "kN"), (0.01, 1.0, "N"), (0.0, 1e-3, "mN"))


def counted(n: int, one: str, many: str | None = None) -> str:
    """A count and its noun: "1 loop", "2 loops"."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int, *, quoted: bool = True) -> str:
    """The first `most` names, separated by commas; ", ..." if there are more."""
    shown = ", ".join(f"'{name}'" if quoted else name for name in names[:most])
    return shown + (", ..." if len(names) > most else "")


def is_name(text: str) -> bool:
    """Whether a text can be a name: printable, so that it stays on its line in tables, logs and terminals."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable()


def brief(value: Any) -> str:
    """A value as messages show it: the start of its `repr`, or its type if it has none."""
    try:
        return f"{value!r:.80}"
    except Exception:  # an integer of thousands of digits, a list nested too deep, a faulty class
        return f"a value of type {type(value).__name__}"


def escape_markdown(text: str) -> str:
    """Text with Markdown's special characters escaped: names from files are shown in web pages."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]()#+-.!|<>&" else c for c in text)


def suggestion(name: Any, known: Iterable[str]) -> str:
    """ "; did you mean ...?" with the names closest to an unknown one, or else a few of the names there are."""
    names = list(known)
    close = difflib.get_close_matches(name[:200], names[:5000], n=3) if isinstance(name, str) else []
    if close:
        return "; did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    return f"; there are {listed(names, 5)}" if names else "; there are none"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Columns padded to their widest entry; columns of words to the left, of numbers to the right."""
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
    numeric = [all(_is_number(row[c]) for row in rows) for c in range(len(header))]

    def line(row: list[str]) -> str:
        cells = (
            cell.rjust(w) if right else cell.ljust(w)
            for cell, w, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), "  ".join("-" * w for w in widths), *(line(row) for row in rows)])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("", "-")
    return True


def round_down(value: float, steps: Sequence[int] = (1, 2, 5)) -> float:
    """The largest of 1, 2, 5, 10, ... (`steps` times powers of ten) not above a positive value."""
    power = 10.0 ** math.floor(math.log10(value))
    return float(max(step * power for step in steps if step * power <= value * (1 + 1e-9)))


def unit_for(size: float, units: Sequence[tuple[float, float, str]]) -> tuple[float, str]:
    """The unit for a quantity of this size (SI): the unit's own size in SI units, and its name."""
    return next((factor, name) for least, factor, name in units if size >= 0.999 * least)


def track(items: Iterable[Any], what: str, progress: bool = True) -> Iterator[Any]:
    """The items, with a progress bar on stderr if `progress` is true."""
    if not progress:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as bar

    yield from bar(list(items), what, console=Console(stderr=True), transient=True)


def unique_name(wish: str, taken: set[str]) -> str:
    """The wished name, with a number appended if it is in `taken`, to which the result is added."""
    name, n = wish, 1
    while name in taken:
        n += 1
        name = f"{wish}_{n}"
    taken.add(name)
    return name
