"""`pliant sweep`: run a parameter study, on the cores of this machine or on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pliant.cli import options
from pliant.cli.output import print_json, print_table, progress_bar, say

if TYPE_CHECKING:
    from rich.console import Group

    from pliant.study import Results, Study
    from pliant.study.workers import Row

__all__ = ["sweep"]

_SHOWN = 20  # errors in the JSON, at most
_OUTPUTS = 12  # outputs in the live summary, at most


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="STUDY", help="The study, a TOML or Python file.", show_default=False)
    ],
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with results that are there: only what is missing or failed."),
    ] = False,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler to use, such as tcp://host:8786.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Processes on this machine, by default one per core; 0: none, cases are computed in this one, "
            "without a time limit.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="PARQUET", help="Put the results there, not where the study says."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Leave pictures of the results in this folder.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Run a study: many variants of a mechanism, one table of results.

    Cases that fail are rows with their error. Ctrl-C keeps what is there; --resume goes on.

    \b
    Examples:
      pliant sweep study.toml
      pliant sweep study.toml --resume --plot pictures
      pliant sweep study.toml --scheduler tcp://host:8786
    """
    from pliant.study import load, read

    study = read(file, output)
    start = monotonic()
    try:
        with watching(len(study)) as watch:
            results = study.run(
                resume=resume, workers=workers, scheduler=scheduler, progress=watch.progress, watch=watch.row
            )
    except KeyboardInterrupt:
        kept = _kept(study)
        say(f"interrupted: {kept} of {len(study)} results are kept in '{study.results}'; --resume goes on")
        raise typer.Exit(130) from None
    took = monotonic() - start
    pictures = load(study.results).plot(plot) if plot is not None else []
    if as_json:
        print_json(_facts(results, took, pictures))
        return
    _report(results, took)
    for path in (results.path, *pictures):
        say(f"wrote {path}")


def _kept(study: Study) -> int:
    from pliant.errors import PliantError
    from pliant.study import load

    try:
        return len(load(study.results))
    except PliantError:
        return 0


def _facts(results: Results, took: float, pictures: list[Path]) -> dict[str, Any]:
    errors = results.errors
    return {
        "results": results.path,
        "cases": results.total,
        "failed": len(errors),
        "errors": {str(index): errors[index] for index in list(errors)[:_SHOWN]},
        "parameters": results.parameters,
        "outputs": {name: _spread(results, name) for name in results.outputs},
        "seconds": took,
        "pictures": pictures,
    }


def _spread(results: Results, name: str) -> dict[str, float]:
    import numpy as np

    values = results.columns[name]
    values = values[np.isfinite(values)]
    if not len(values):
        return {}
    low, middle, high = np.quantile(values, (0.0, 0.5, 1.0))
    return {"lowest": low, "median": middle, "highest": high}


def _report(results: Results, took: float) -> None:
    rows = []
    for name in results.outputs:
        spread = _spread(results, name)
        rows.append(
            [name, *(f"{spread[key]:.5g}" if spread else "-" for key in ("lowest", "median", "highest"))]
        )
    print(f"{results.total} cases of {', '.join(results.parameters)} in {took:.1f} s")
    if rows:
        print()
        print_table(["output", "lowest", "median", "highest"], rows)
    errors = results.errors
    if errors:
        index = next(iter(errors))
        say(f"{len(errors)} of {results.total} cases failed, the first is case {index}: {errors[index]}")


# --- while it runs


class Watch:
    """Live display of a running study: a progress bar, and the range of every output so far."""

    def __init__(self, total: int):
        self.bar = progress_bar()
        self._task = self.bar.add_task("starting", total=total)
        self._begun = False
        self._start: tuple[float, int] | None = None
        self._failed = ""
        self._outputs: dict[str, tuple[float, float, float, int]] = {}  # lowest, sum, highest, count

    def progress(self, done: int, failed: int, total: int) -> None:
        """Show the number of finished and failed cases."""
        if not self._begun:
            self._begun = True
            self.bar.update(self._task, completed=done, description=f"{done}/{total} cases, processes start")
            return
        if self._start is None:  # rate and remaining time are estimated from new cases only
            self._start = monotonic(), done
            self.bar.reset(self._task, completed=done)
        took = monotonic() - self._start[0]
        rate = f", {(done - self._start[1]) / took:.3g}/s" if took > 0.5 else ""
        failures = f", {failed} failed" if failed else ""
        self.bar.update(self._task, completed=done, description=f"{done}/{total} cases{rate}{failures}")

    def row(self, row: Row) -> None:
        """Add the result of one case to the summary."""
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
    """Show the display on stderr while the study runs; nothing where stderr is no terminal."""
    watch = Watch(total)
    if not sys.stderr.isatty():
        yield watch
        return
    from rich.live import Live

    with Live(watch, console=watch.bar.console, transient=True, refresh_per_second=5):
        yield watch
