"""What benchmarks find, in one shape: tables and figures that can be printed, saved, drawn and put into a page.

A suite is a module with

    SUITE = "constrained"
    PARTS = (speed, accuracy)  # functions (quick: bool, progress: Progress) -> Table or several

What a part has found is kept when a later one fails or is interrupted. `quick` measures less of the same, so that all
quick suites together take less than three minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Figure", "Progress", "Row", "Series", "Table", "as_json"]

Progress = Callable[[str], None]  # told what is measured now


@dataclass
class Row:
    """One case, pliant beside its best peer. Numbers are in the table's unit; None: not measured, and `note` says why.

    Attributes:
        case: what was measured.
        ours, peer: medians.
        ours_spread, peer_spread: half the range between the quartiles.
        peer_name: which peer, at which setting: "MuJoCo discrete, 1/30 s".
        ratio: how many times better pliant is than the peer; below 1 the peer wins.
        paper: the paper's figure, as it stands there, with its unit.
        target: the ratio or number that was asked for.
        stable: "yes", or how a run failed and whose: a run that diverged has no time.
        note: what else there is to say.
        values: further numbers of this case, by name.
    """

    case: str
    ours: float | None = None
    peer: float | None = None
    ours_spread: float | None = None
    peer_spread: float | None = None
    peer_name: str = ""
    ratio: float | None = None
    paper: str = ""
    target: str = ""
    stable: str = "yes"
    note: str = ""
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Series:
    """A curve: label, numbers, and whether it is pliant's."""

    label: str
    x: list[float]
    y: list[float]
    ours: bool = True
    line: bool = True


@dataclass
class Figure:
    """A plot of curves."""

    key: str
    title: str
    x: str
    y: str
    series: list[Series]
    log_x: bool = False
    log_y: bool = False


@dataclass
class Table:
    """Rows that belong together.

    Attributes:
        suite, key: where it belongs, and a short name of its own: "reduced", "tvcg-table-2".
        title: one line.
        source: what it reproduces: "TVCG Table 2", or "" for what the papers lack.
        unit: of `ours` and `peer`: "µs a step".
        rows: cases.
        settings: how it was measured, in a sentence or two.
        missing: peers that are not installed, or cannot express it.
        figures: plots.
    """

    suite: str
    key: str
    title: str
    unit: str
    rows: list[Row]
    source: str = ""
    settings: str = ""
    missing: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def as_json(tables: list[Table]) -> list[dict[str, Any]]:
    """As plain data."""
    return [asdict(table) for table in tables]
