"""What a run of benchmarks leaves behind: its tables and what they were measured on, in one JSON file."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from results import Figure, Row, Series, Table

from pliant.errors import FormatError

__all__ = ["Record", "SuiteRecord"]

VERSION = 1


@dataclass
class SuiteRecord:
    """One suite.

    Attributes:
        tables: what it found.
        seconds: how long it took.
        load_before, load_after: of the machine.
        compiled: how many functions numba had to compile; 0: the compile cache was warm.
        state: "complete", "interrupted", or why it failed.
    """

    tables: list[Table] = field(default_factory=list)
    seconds: float = 0.0
    load_before: float | None = None
    load_after: float | None = None
    compiled: int = 0
    state: str = "running"


@dataclass
class Record:
    """A run.

    Attributes:
        machine: processor, versions, threads, date.
        quick: whether it was a quick one.
        suites: by name, in the order they ran.
    """

    machine: dict[str, Any]
    quick: bool = False
    suites: dict[str, SuiteRecord] = field(default_factory=dict)

    @property
    def tables(self) -> list[Table]:
        """Of all suites."""
        return [table for suite in self.suites.values() for table in suite.tables]

    def save(self, path: Path) -> None:
        """Write it, complete or not at all: a reader never sees half a file."""
        text = json.dumps({"version": VERSION, **_plain(asdict(self))}, indent=1, ensure_ascii=False) + "\n"
        try:
            with tempfile.TemporaryDirectory(prefix=".bench.", dir=path.parent) as folder:
                written = Path(folder) / path.name
                written.write_text(text, encoding="utf-8")
                os.replace(written, path)
        except OSError as error:
            raise FormatError(f"'{path}' cannot be written: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
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
    tables = [
        Table(
            **{
                **table,
                "rows": [Row(**row) for row in table["rows"]],
                "figures": [
                    Figure(**{**figure, "series": [Series(**series) for series in figure["series"]]})
                    for figure in table["figures"]
                ],
            }
        )
        for table in data["tables"]
    ]
    return SuiteRecord(**{**data, "tables": tables})


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's, what is not finite as None: JSON knows no NaN."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
