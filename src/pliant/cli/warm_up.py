"""`pliant warm-up`: compile all kernels into the cache."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pliant.cli.output import progress_bar, say

__all__ = ["warm_up"]


def warm_up(
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes at once; one per core.")
    ] = None,
) -> None:
    """Compile all kernels into the cache, so that nothing has to be compiled later.

    A wheel with machine code for this Python, numba and processor needs no warm-up.

    \b
    Examples:
      pliant warm-up
      pliant warm-up --jobs 8
    """
    import time

    from pliant import warm_up as work
    from pliant.compilation import places
    from pliant.errors import PliantError

    if places.local() is None and places.shipped().folder is None:
        raise PliantError("there is no writable folder for compiled kernels: set NUMBA_CACHE_DIR to one")
    begin = time.monotonic()
    with progress_bar() as bar:
        task = bar.add_task("starting", total=len(work.PARTS) + 1)

        def started(part: str) -> None:
            bar.update(task, description=f"compiling {part}", advance=1)
            if not sys.stderr.isatty():
                say(f"compiling {part}")

        work.warm_up(jobs, started)
    say(
        f"all kernels are compiled ({time.monotonic() - begin:.0f} s), in {places.local() or places.shipped().folder}"
    )
