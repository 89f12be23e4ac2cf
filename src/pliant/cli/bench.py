"""`pliant bench`: run the suites of `pliant_benchmarks`."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from pliant.cli.output import check_target, say, stdout
from pliant.errors import FormatError, PliantError

__all__ = ["bench"]


class Suite(StrEnum):
    """Suite of benchmarks."""

    start = "start"
    statics = "statics"
    reduced = "reduced"
    blended = "blended"
    constrained = "constrained"
    quasistatic = "quasistatic"
    contact = "contact"
    loops = "loops"
    all = "all"


def bench(
    suite: Annotated[
        list[Suite] | None,
        typer.Option("--suite", "-s", help="What to measure; repeat it for several.", show_default="all"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Less of the same: minutes instead of an hour or two.")
    ] = False,
    json: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="Keep the results there, table by table.", show_default=False
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="DIR", help="Leave pictures of the figures there.", show_default=False
        ),
    ] = None,
) -> None:
    """Measure pliant beside other engines and the papers' figures, in the same run, taking turns.

    Each peer at its best setting; a run that diverges has no time; a peer that is not installed is named. Ctrl-C
    prints and keeps what is there.

    \b
    Examples:
      pliant bench --quick
      pliant bench --suite reduced --suite blended
      pliant bench --json results.json --plot pictures
    """
    if find_spec("pliant_benchmarks") is None:
        raise FormatError(
            "the benchmarks are not part of this installation; run `pliant bench` in a checkout of the sources"
        )
    check_target(json, ".json")
    if plot is not None:
        _make_folder(plot)

    from rich.console import Console
    from rich.text import Text

    from pliant_benchmarks import SUITES
    from pliant_benchmarks.harness import report
    from pliant_benchmarks.harness.results import Record
    from pliant_benchmarks.harness.run import run

    chosen = suite or [Suite.all]
    names = SUITES if Suite.all in chosen else [name for name in SUITES if name in chosen]
    screen = stdout()
    status = Console(stderr=True).status("starting")  # on terminals only
    found: list[Record] = []

    def keep(record: Record) -> None:
        found[:] = [record]
        if json is not None:
            record.save(json)
        name, last = list(record.suites.items())[-1]
        if last.state != "running":
            status.stop()
            if len(record.suites) == 1:
                report.print_machine(record, screen)
            report.print_suite(name, last, screen)
            status.start()

    interrupted = False
    try:
        with status:
            run(names, quick, lambda words: status.update(Text(words)), keep)
    except KeyboardInterrupt:
        interrupted = True
    if found and json is not None:
        say(f"wrote {json}")
    if found and plot is not None:
        for path in report.save_figures(found[0], plot):
            say(f"wrote {path}")
    if interrupted:
        say("interrupted")
        raise typer.Exit(130)
    failed = [f"{name} {s.state}" for name, s in found[0].suites.items() if s.state != "complete"]
    if failed:
        raise PliantError("; ".join(failed))


def _make_folder(folder: Path) -> None:
    """Make a folder for pictures, or refuse before anything is measured."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"'{folder}' cannot be made: {error.strerror or error}") from None
    check_target(folder / "figure.png")
