"""`pliant sweep`: run a study, on the cores here or on a cluster."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pliant.cli.options import JsonOption
from pliant.cli.output import print_json, print_table, say
from pliant.cli.sweeping import watching

if TYPE_CHECKING:
    from pliant.study import Results, Study

__all__ = ["sweep"]

_SHOWN = 20  # errors in the JSON


def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="STUDY", help="The study, a TOML or Python file.", show_default=False)
    ],
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with results that are there: only what is missing or failed."),
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler to use, such as tcp://host:8786."),
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
    as_json: JsonOption = False,
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
                resume=resume,
                workers=workers,
                scheduler=scheduler,
                progress=watch.progress,
                watch=watch.row,
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
