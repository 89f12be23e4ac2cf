"""Runs suites one after another and keeps what they find, also when one of them fails or is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from time import monotonic

import machine
from record import Record, SuiteRecord
from results import Progress, Table

__all__ = ["SUITES", "run"]

Part = Callable[[bool, Progress], Table | Iterable[Table]]

SUITES = ("start", "statics", "reduced", "blended", "constrained", "quasistatic", "contact")


def run(
    suites: Iterable[str],
    quick: bool,
    progress: Progress,
    keep: Callable[[Record], None] = lambda record: None,
) -> Record:
    """Run suites.

    Args:
        suites: their names.
        quick: less of the same.
        progress: told what is measured now.
        keep: called with what there is whenever something was added, also before an interruption goes on its way.
    """
    record = Record(machine.describe(), quick)
    for name in suites:
        found = record.suites[name] = SuiteRecord(load_before=machine.load())
        start, problems = monotonic(), []
        with machine.compilations() as compiled:
            try:
                for part in _parts(name, problems):
                    for table in part(quick, lambda words, name=name: progress(f"{name}: {words}")):
                        found.tables.append(table)
                        found.seconds = round(monotonic() - start, 1)
                        keep(record)
                found.state = f"failed: {'; '.join(problems)}" if problems else "complete"
            except KeyboardInterrupt:
                found.state = "interrupted"
                raise
            finally:
                found.compiled = len(compiled())
                found.seconds = round(monotonic() - start, 1)
                found.load_after = machine.load()
                keep(record)
    return record


def _parts(name: str, problems: list[str]) -> list[Callable[[bool, Progress], Iterator[Table]]]:
    """The parts of a suite; one that fails is among the problems and the others go on."""

    def careful(part: Part) -> Callable[[bool, Progress], Iterator[Table]]:
        def tables(quick: bool, progress: Progress) -> Iterator[Table]:
            try:
                found = part(quick, progress)
                yield from [found] if isinstance(found, Table) else found
            except Exception as error:
                problems.append(f"{type(error).__name__}: {' '.join(str(error).split())}")

        return tables

    try:
        suite = import_module(name)
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
        return []
    return [careful(part) for part in suite.PARTS]
