"""Run of suites one after another; results are kept when a part fails or the run is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from time import monotonic

from . import machine
from .results import Progress, Record, SuiteRecord, Table

__all__ = ["Part", "run"]

Part = Callable[[bool, Progress], Table | Iterable[Table]]  # of a suite: quick, progress


def run(
    suites: Iterable[str],
    quick: bool,
    progress: Progress,
    keep: Callable[[Record], None] = lambda record: None,
) -> Record:
    """Run suites.

    Args:
        suites: their names.
        quick: measure fewer and smaller cases.
        progress: receives the name of the present measurement.
        keep: receives the record after every table and suite, also before an interruption is raised.
    """
    record = Record(machine.describe(), quick)
    for name in suites:
        suite = record.suites[name] = SuiteRecord(load_before=machine.load())
        start, problems = monotonic(), []
        with machine.compilations() as compiled:
            try:
                for part in _parts(name, problems):
                    for table in part(quick, lambda words, name=name: progress(f"{name}: {words}")):
                        suite.tables.append(table)
                        suite.seconds = round(monotonic() - start, 1)
                        keep(record)
                suite.state = f"failed: {'; '.join(problems)}" if problems else "complete"
            except KeyboardInterrupt:
                suite.state = "interrupted"
                raise
            finally:
                suite.compiled = len(compiled())
                suite.seconds = round(monotonic() - start, 1)
                suite.load_after = machine.load()
                keep(record)
    return record


def _parts(name: str, problems: list[str]) -> list[Callable[[bool, Progress], Iterator[Table]]]:
    """Parts of a suite that append their errors to `problems` instead of raising them."""

    def guard(part: Part) -> Callable[[bool, Progress], Iterator[Table]]:
        def tables(quick: bool, progress: Progress) -> Iterator[Table]:
            try:
                found = part(quick, progress)
                yield from [found] if isinstance(found, Table) else found
            except Exception as error:
                problems.append(f"{type(error).__name__}: {' '.join(str(error).split())}")

        return tables

    try:
        suite = import_module(f"pliant_benchmarks.{name}")
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
        return []
    return [guard(part) for part in suite.PARTS]
