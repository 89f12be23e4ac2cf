"""`pliant demo`: the tour."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pliant.cli.options import JsonOption
from pliant.cli.output import print_json, print_table

__all__ = ["demo"]


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where pictures and recordings go.")
    ] = Path("pliant-demo"),
    quick: Annotated[bool, typer.Option("--quick", help="A small millipede, short motions.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take the tour: reduce, pull, squeeze, grasp, compare, swing and crawl; leave pictures and 3-D recordings behind.

    The first time everything is compiled, which takes a minute or two; later tours take some ten seconds.

    \b
    Examples:
      pliant demo
      pliant demo --out tour
    """
    from pliant.cli import tour
    from pliant.extras import check

    for package in ("matplotlib", "viser"):
        check(package)

    found = tour.take(out, quick)
    if as_json:
        print_json({"rows": [row._asdict() for row in found.rows], "files": found.files})
        return
    print_table(
        ["mechanism", "links", "loops", "what...", "engine", "accuracy...", "µs a step"],
        [
            [
                row.mechanism,
                f"{row.links:,}",
                str(row.loops),
                row.what,
                row.engine,
                row.accuracy,
                _microseconds(row.step),
            ]
            for row in found.rows
        ],
        left=(0, 4),
    )
    print(f"\nIn {out}:")
    for file, what in found.files.items():
        print(f"  {Path(file).name:<16} {what}")
    print(
        """
Try next:
  pliant gallery                                             what else there is
  pliant reduce gallery:gripper                              stiffness and frequencies at the pads
  pliant run gallery:hand -w index_tip:0,0,2 --plot hand.png
  pliant compare gallery:suspension --plot suspension.png    engines side by side
  pliant info your_robot.xml                                 MJCF and URDF load as they are
In Python: import pliant; help(pliant) begins with an example."""
    )


def _microseconds(step: float) -> str:
    return f"{1e6 * step:,.0f}" if step > 1e-4 else f"{1e6 * step:.3g}"
