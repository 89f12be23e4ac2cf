"""Guard against slowdowns: ratios of peer to pliant in one run, compared with those kept in guard.json.

Ratios hardly depend on the machine or on its load. A row fails when its ratio is less than the kept one over `factor`,
twice: after a first failure its suite runs again, and the better ratio counts.

    python benchmarks/guard.py out/bench-quick.json             # after `pliant bench --quick --json ...`
    python benchmarks/guard.py out/bench-quick.json --update    # keep these ratios from now on
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pliant_benchmarks.harness.results import Record
from pliant_benchmarks.harness.run import run

__all__ = ["Kept", "Verdict", "check", "guard"]

FILE = Path(__file__).with_name("guard.json")


@dataclass
class Kept:
    """Contents of guard.json: ratios by table and case, None where there is none yet, and the factor allowed."""

    factor: float
    rows: dict[str, dict[str, float | None]]

    @classmethod
    def load(cls, path: Path = FILE) -> Kept:
        """Read guard.json."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def save(self, path: Path = FILE) -> None:
        """Write guard.json."""
        text = json.dumps({"factor": self.factor, "rows": self.rows}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Verdict:
    """Kept and measured ratio of a row, None where there is none, and whether it passes."""

    table: str
    case: str
    kept: float | None
    found: float | None
    fine: bool

    def __str__(self) -> str:
        found = "not measured" if self.found is None else f"{self.found:.3g}x"
        kept = "nothing kept" if self.kept is None else f"kept {self.kept:.3g}x"
        return f"{'ok  ' if self.fine else 'FAIL'} {self.table}, {self.case}: {found} ({kept})"


def ratios(record: Record) -> dict[tuple[str, str], float | None]:
    """Ratios by table and case; None for runs that were not stable."""
    return {
        (table.key, row.case): row.ratio if row.stable == "yes" else None
        for table in record.tables
        for row in table.rows
    }


def check(record: Record, kept: Kept, again: Record | None = None) -> list[Verdict]:
    """Verdicts on all kept rows.

    Args:
        record: a run.
        kept: ratios to reach.
        again: a second run; the better ratio counts.
    """
    first, second = ratios(record), ratios(again) if again is not None else {}
    out = []
    for table, rows in kept.rows.items():
        for case, asked in rows.items():
            values = [value for r in (first, second) if (value := r.get((table, case))) is not None]
            found = max(values, default=None)
            fine = found is not None and (asked is None or found * kept.factor >= asked)
            out.append(Verdict(table, case, asked, found, fine))
    return out


def guard(record: Record, kept: Kept, repeat: Callable[[list[str]], Record]) -> list[Verdict]:
    """Verdicts, after a second run of the suites with rows that fail."""
    verdicts = check(record, kept)
    failed = {v.table for v in verdicts if not v.fine}
    suites = [name for name, suite in record.suites.items() if any(t.key in failed for t in suite.tables)]
    return check(record, kept, repeat(suites)) if suites else verdicts


def main(arguments: list[str]) -> int:
    """Check a run, or keep its ratios; exit code 1 if a row has become slower."""
    files = [a for a in arguments if a != "--update"]
    if len(files) != 1:
        print(__doc__)
        return 2
    record, kept = Record.load(Path(files[0])), Kept.load()
    if "--update" in arguments:
        found = ratios(record)
        kept.rows = {
            t: {c: _rounded(found.get((t, c)), v) for c, v in rows.items()} for t, rows in kept.rows.items()
        }
        kept.save()
        return 0
    verdicts = guard(record, kept, lambda suites: run(suites, True, lambda words: None))
    for verdict in verdicts:
        print(verdict)
    return 0 if all(v.fine for v in verdicts) else 1


def _rounded(found: float | None, before: float | None) -> float | None:
    return before if found is None else float(f"{found:.3g}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
