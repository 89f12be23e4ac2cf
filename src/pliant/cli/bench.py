"""`pliant bench`: pliant beside its peers and the papers."""

from __future__ import annotations

import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import pliant
from pliant.cli.output import destination, say, stdout
from pliant.errors import FormatError, PliantError

__all__ = ["bench"]


class Suite(StrEnum):
    """What is measured."""

    start = "start"
    statics = "statics"
    reduced = "reduced"
    blended = "blended"
    constrained = "constrained"
    quasistatic = "quasistatic"
    contact = "contact"
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
    suites = _folder()
    destination(json, ".json")
    if plot is not None:
        _make(plot)
    if str(suites) not in sys.path:
        sys.path.insert(0, str(suites))
    run, printing = import_module("run"), import_module("printing")
    names = [s.value for s in suite or [Suite.all]]
    names = run.SUITES if Suite.all in names else [n for n in run.SUITES if n in names]

    from rich.console import Console
    from rich.text import Text

    screen = stdout()
    status = Console(stderr=True).status("starting")  # shows on terminals only
    found: list[Any] = []

    def keep(record: Any) -> None:
        found[:] = [record]
        if json is not None:
            record.save(json)
        name, last = list(record.suites.items())[-1]
        if last.state != "running":
            status.stop()
            if len(record.suites) == 1:
                printing.print_machine(record, screen)
            printing.print_suite(name, last, screen)
            status.start()

    interrupted = False
    try:
        with status:
            run.run(names, quick, lambda words: status.update(Text(words)), keep)
    except KeyboardInterrupt:
        interrupted = True
    if found and json is not None:
        say(f"wrote {json}")
    if found and plot is not None:
        for path in import_module("figures").save(found[0], plot):
            say(f"wrote {path}")
    if interrupted:
        say("interrupted")
        raise typer.Exit(130)
    failed = [f"{name} {s.state}" for name, s in found[0].suites.items() if s.state != "complete"]
    if failed:
        raise PliantError("; ".join(failed))


def _folder() -> Path:
    """Where the suites are: part of an installation, or beside the sources of a checkout."""
    package = Path(pliant.__file__).parent
    for folder in (package / "benchmarks", package.parent.parent / "benchmarks"):
        if (folder / "run.py").is_file():
            return folder
    raise FormatError(
        "the benchmarks are not part of this installation; run `pliant bench` in a checkout of the sources"
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"'{folder}' cannot be made: {error.strerror or error}") from None
    destination(folder / "figure.png")
