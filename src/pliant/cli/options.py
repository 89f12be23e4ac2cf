"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AllowOption",
    "BodiesOption",
    "Engine",
    "JsonOption",
    "KeyframeOption",
    "PlotOption",
    "RepairOption",
    "SeedOption",
    "SourceArgument",
    "StiffnessOption",
    "WrenchesOption",
    "complete_gallery",
]


class Engine(StrEnum):
    """What computes the motion."""

    reduced = "reduced"
    blended = "blended"
    constrained = "constrained"
    quasistatic = "quasistatic"


def complete_gallery(incomplete: str) -> list[str]:
    """Names of the gallery that go on like this; worlds, which take seconds to import, only if no others do."""
    from pliant.cli.sources import gallery_names, world_names

    found = [name for name in gallery_names(worlds=False) if name.startswith(incomplete)]
    return found or [name for name in world_names() if name.startswith(incomplete)]


def _complete_source(incomplete: str) -> list[str]:
    from pliant.cli.sources import PREFIX

    if not PREFIX.startswith(incomplete[: len(PREFIX)]):
        return []  # a file
    return [PREFIX + name for name in complete_gallery(incomplete.removeprefix(PREFIX[: len(incomplete)]))]


SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="MJCF, URDF or pliant file, saved model (.npz), or gallery:NAME, with arguments as in "
        "gallery:helix:100 or gallery:ladder:16,form=rails.",
        autocompletion=_complete_source,
        show_default=False,
    ),
]
BodiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--end-effector",
        "-e",
        metavar="BODY",
        help="A body to act on and to watch; repeat it for several. By default those the mechanism suggests.",
        show_default=False,
    ),
]
WrenchesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--wrench",
        "-w",
        metavar="BODY:FX,FY,FZ",
        help="Force on a body in N, world axes; six numbers for force and torque. Repeat it for several.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="PNG", help="Leave a picture there (.png, .svg or .pdf).")
]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Of the loads a blend is sampled at; the same seed, the same result.")
]
StiffnessOption = Annotated[
    float | None,
    typer.Option(
        "--default-stiffness",
        metavar="K",
        help="For degrees of freedom without a spring, N m/rad or N/m.",
    ),
]
KeyframeOption = Annotated[str | None, typer.Option(help="MJCF keyframe to take as reference pose.")]
AllowOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="DIR",
        help="A folder outside the model's own from which it may read meshes and includes.",
    ),
]
RepairOption = Annotated[
    bool,
    typer.Option("--repair", help="Raise moments of inertia that no solid can have (URDF)."),
]
