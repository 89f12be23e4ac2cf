"""What `pliant sweep` shows while it runs: a bar, and a summary of the results so far."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from pliant.cli.output import progress_bar

if TYPE_CHECKING:
    from rich.console import Group

    from pliant.study.workers import Row

__all__ = ["Watch", "watching"]

_OUTPUTS = 12  # in the summary


class Watch:
    """A study as it goes: `Study.run` tells it how many cases are done, and of every row."""

    def __init__(self, total: int):
        self.bar = progress_bar()
        self._task = self.bar.add_task("starting", total=total)
        self._begun = False
        self._start: tuple[float, int] | None = None
        self._failed = ""
        self._outputs: dict[str, tuple[float, float, float, int]] = {}  # lowest, sum, highest, count

    def progress(self, done: int, failed: int, total: int) -> None:
        """So many are done."""
        if not self._begun:
            self._begun = True
            self.bar.update(self._task, completed=done, description=f"{done}/{total} cases, processes start")
            return
        if self._start is None:  # rate and time left are those of new cases, from the first on
            self._start = monotonic(), done
            self.bar.reset(self._task, completed=done)
        took = monotonic() - self._start[0]
        rate = f", {(done - self._start[1]) / took:.3g}/s" if took > 0.5 else ""
        failures = f", {failed} failed" if failed else ""
        self.bar.update(self._task, completed=done, description=f"{done}/{total} cases{rate}{failures}")

    def row(self, row: Row) -> None:
        """One more case."""
        if row.error is not None:
            self._failed = f"case {row.index}: {row.error}"
            return
        for name, value in row.outputs.items():
            low, total, high, count = self._outputs.get(name, (value, 0.0, value, 0))
            self._outputs[name] = min(low, value), total + value, max(high, value), count + 1

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("output", "lowest", "mean", "highest"):
            table.add_column(heading, justify="left" if heading == "output" else "right", no_wrap=True)
        for name, (low, total, high, count) in list(self._outputs.items())[:_OUTPUTS]:
            table.add_row(Text(name), *(f"{value:.5g}" for value in (low, total / count, high)))
        parts = [self.bar, *([table] if self._outputs else [])]
        if self._failed:
            parts.append(
                Text(f"last failure: {self._failed}", style="red", no_wrap=True, overflow="ellipsis")
            )
        return Group(*parts)


@contextmanager
def watching(total: int) -> Iterator[Watch]:
    """On stderr while the study runs, gone when it ends; nothing where stderr is no terminal."""
    watch = Watch(total)
    if not sys.stderr.isatty():
        yield watch
        return
    from rich.live import Live

    with Live(watch, console=watch.bar.console, transient=True, refresh_per_second=5):
        yield watch
