"""Results of benchmarks: tables of cases with their figures, and the record of a run as one JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pliant.errors import FormatError
from pliant.files import json_value, replacing_path

__all__ = ["Figure", "Progress", "Record", "Row", "Series", "SuiteRecord", "Table", "log_figure"]

VERSION = 1  # of the file
Progress = Callable[[str], None]  # receives the name of the present measurement


@dataclass
class Row:
    """One case, pliant beside its best peer. Numbers are in the table's unit; None: not measured, `note` says why.

    Attributes:
        case: name of the case, unique in its table.
        ours, peer: medians.
        ours_spread, peer_spread: half the distance between the quartiles.
        peer_name: peer and its setting: "MuJoCo discrete, 1/30 s".
        ratio: how many times better pliant is than the peer; below 1 the peer wins.
        paper: the paper's figure as printed, with its unit.
        target: ratio or number that pliant was built to reach.
        stable: "yes", or which run diverged and how: a run that diverged has no time.
        note: a remark.
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
    """Curve of a figure: label, coordinates, and whether it is pliant's."""

    label: str
    x: list[float]
    y: list[float]
    ours: bool = True
    line: bool = True


@dataclass
class Figure:
    """Plot of curves, with the labels of its axes."""

    key: str
    title: str
    x: str
    y: str
    series: list[Series]
    log_x: bool = False
    log_y: bool = False


def log_figure(
    key: str,
    title: str,
    x: str,
    y: str,
    curves: Mapping[str, Sequence[tuple[float, float | None]]],
    ours: Callable[[str], bool] = lambda label: label.startswith("pliant"),
) -> Figure:
    """Figure with logarithmic axes, from points by label; points without a value are left out.

    `ours` says by its label whether a curve is pliant's.
    """
    series = []
    for label, points in curves.items():
        there = [(float(a), float(b)) for a, b in points if b is not None]
        series.append(Series(label, [a for a, _ in there], [b for _, b in there], ours(label)))
    return Figure(key, title, x, y, series, log_x=True, log_y=True)


@dataclass
class Table:
    """Cases that are measured in the same way.

    Attributes:
        suite, key: name of the suite, and a short name of the table: "reduced", "tvcg-table-2".
        title: one line.
        unit: of `ours` and `peer`: "µs a step".
        rows: cases.
        source: table or figure of a paper that it reproduces: "TVCG Table 2"; "" for none.
        settings: the rules of the measurement, in a sentence or two.
        missing: peers that are not installed, or cannot express the cases.
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


@dataclass
class SuiteRecord:
    """Tables of one suite and the conditions of its run.

    Attributes:
        tables: results, in order.
        seconds: duration.
        load_before, load_after: load average of the machine.
        compiled: number of functions that numba compiled; 0: the compile cache was warm.
        state: "running", "complete", "interrupted", or "failed: " and the errors.
        machine: date and machine, of a suite that was measured in another run than the record's.
    """

    tables: list[Table] = field(default_factory=list)
    seconds: float = 0.0
    load_before: float | None = None
    load_after: float | None = None
    compiled: int = 0
    state: str = "running"
    machine: str = ""


@dataclass
class Record:
    """A run of suites.

    Attributes:
        machine: processor, versions, threads, date: `machine.describe`.
        quick: whether it measured fewer and smaller cases.
        suites: by name, in the order of the run.
    """

    machine: dict[str, Any]
    quick: bool = False
    suites: dict[str, SuiteRecord] = field(default_factory=dict)

    @property
    def tables(self) -> list[Table]:
        """Tables of all suites."""
        return [table for suite in self.suites.values() for table in suite.tables]

    def with_newer(self, newer: Record) -> Record:
        """The newer record, with the suites that it has not measured from this one."""
        m = self.machine
        where = f"{m['date']}, {m['processor']}, {m['system']}"
        suites = {
            name: newer.suites.get(name) or replace(suite, machine=suite.machine or where)
            for name, suite in (self.suites | newer.suites).items()
        }
        return Record(newer.machine, newer.quick, suites)

    def save(self, path: Path) -> None:
        """Write the JSON file, complete or not at all."""
        text = (
            json.dumps({"version": VERSION, **json_value(asdict(self))}, indent=1, ensure_ascii=False) + "\n"
        )
        with replacing_path(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read a file of `save`.

        Raises:
            FormatError: it cannot be read, or is another file.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["version"] != VERSION:
                raise FormatError(f"'{path}' is of version {data['version']}, not {VERSION}: run it again")
            return cls(data["machine"], data["quick"], {k: _suite(s) for k, s in data["suites"].items()})
        except OSError as error:
            raise FormatError(f"'{path}' cannot be read: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"'{path}' is no result of `pliant bench`: {error!r}") from None


def _suite(data: dict[str, Any]) -> SuiteRecord:
    return SuiteRecord(**{**data, "tables": [_table(table) for table in data["tables"]]})


def _table(data: dict[str, Any]) -> Table:
    figures = [Figure(**{**f, "series": [Series(**s) for s in f["series"]]}) for f in data["figures"]]
    return Table(**{**data, "rows": [Row(**row) for row in data["rows"]], "figures": figures})
