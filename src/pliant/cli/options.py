"""Options of several commands, and how their texts are parsed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pliant.errors import InputError

if TYPE_CHECKING:
    from pliant.mechanism import Mechanism
    from pliant.source import Source

__all__ = [
    "Allow",
    "Bodies",
    "Damping",
    "Engine",
    "File",
    "Json",
    "Keyframe",
    "Plot",
    "Repair",
    "Seed",
    "SkipMeshes",
    "Stiffness",
    "Wrenches",
    "complete_gallery",
    "observed_bodies",
    "parse_wrenches",
]

_MANY = 20  # bodies of a world that are reported by default, at most


class Engine(StrEnum):
    """Engines that compute motions."""

    reduced = "reduced"
    blended = "blended"
    constrained = "constrained"
    quasistatic = "quasistatic"
    adaptive = "adaptive"


def complete_gallery(incomplete: str) -> list[str]:
    """Names of the gallery that begin so; worlds, which take seconds to import, only if no others do."""
    from pliant.source import gallery_names, world_names

    found = [name for name in gallery_names(worlds=False) if name.startswith(incomplete)]
    return found or [name for name in world_names() if name.startswith(incomplete)]


def _complete_source(incomplete: str) -> list[str]:
    from pliant.source import PREFIX

    if not PREFIX.startswith(incomplete[: len(PREFIX)]):
        return []  # a file
    return [PREFIX + name for name in complete_gallery(incomplete.removeprefix(PREFIX[: len(incomplete)]))]


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="MJCF, URDF or pliant file (.json, .npz), saved model (.npz), or gallery:NAME, with arguments as in "
        "gallery:helix:100 or gallery:ladder:16,form=rails.",
        autocompletion=_complete_source,
        show_default=False,
    ),
]
Bodies = Annotated[
    list[str] | None,
    typer.Option(
        "--end-effector",
        "-e",
        metavar="BODY",
        help="A body to act on and to watch; repeat it for several. By default those the mechanism suggests.",
        show_default=False,
    ),
]
Wrenches = Annotated[
    list[str] | None,
    typer.Option(
        "--wrench",
        "-w",
        metavar="BODY:FX,FY,FZ",
        help="Force on a body in N, world axes; six numbers for force and torque. Repeat it for several.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="PNG", help="Leave a picture there (.png, .svg or .pdf).")
]
Seed = Annotated[
    int, typer.Option(min=0, help="Of the loads a blend is sampled at; the same seed, the same result.")
]
Stiffness = Annotated[
    float | None,
    typer.Option(
        "--default-stiffness", metavar="K", help="For degrees of freedom without a spring, N m/rad or N/m."
    ),
]
Damping = Annotated[
    float | None,
    typer.Option(
        "--damping-ratio",
        metavar="RATIO",
        help="Give springs dampers, for this damping ratio of the first vibration, such as 0.1; faster ones have more.",
    ),
]
Keyframe = Annotated[str | None, typer.Option(help="MJCF keyframe to take as reference pose.")]
Allow = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="DIR", help="A folder outside the model's own from which it may read meshes and includes."
    ),
]
Repair = Annotated[
    bool, typer.Option("--repair", help="Raise moments of inertia that no solid can have (URDF).")
]

SkipMeshes = Annotated[
    bool,
    typer.Option(
        "--skip-meshes", help="Leave mesh files unread: they may be missing, mechanics does not need them."
    ),
]


def parse_wrenches(given: Sequence[str] | None, mechanism: Mechanism) -> dict[str, tuple[float, ...]]:
    """Wrenches by body, N and N m, from texts `BODY:FX,FY,FZ` or `BODY:FX,FY,FZ,TX,TY,TZ`.

    Raises:
        InputError: a text is malformed, its numbers are not finite, or it names no body.
    """
    found: dict[str, tuple[float, ...]] = {}
    for text in given or ():
        body, colon, numbers = text.rpartition(":")
        try:
            values = tuple(float(part) for part in numbers.split(","))
        except ValueError:
            values = ()
        if not colon or len(values) not in (3, 6):
            raise InputError(f"wrench '{text}': BODY:FX,FY,FZ expected, or six numbers, as in 'tip:0,0,-5'")
        if not all(map(math.isfinite, values)):
            raise InputError(f"wrench '{text}': not all numbers are finite")
        if mechanism.body_index(body) < 0:
            raise InputError(f"wrench '{text}': the world does not move: name a body")
        if body in found:
            raise InputError(f"wrench '{text}': there is one on '{body}' already; add them up")
        found[body] = values
    return found


def observed_bodies(
    source: Source, bodies: Sequence[str] | None, wrenches: Mapping[str, Any]
) -> tuple[str, ...]:
    """End effectors: the bodies given, or those the mechanism suggests; and all bodies that wrenches act on.

    Of a world, the bodies given, or those that belong to no mechanism.
    """
    if source.play is not None and not bodies:
        return tuple(name for name in source.mechanism.body_names if "/" not in name)[:_MANY]
    if source.model is not None:
        if bodies:
            raise InputError(
                f"'{source.text}' is a model with end effectors of its own: leave -e out, or give its mechanism"
            )
        return source.model.end_effectors
    for body in bodies or ():
        source.mechanism.body_index(body)
    chosen = tuple(bodies or source.mechanism.end_effectors)
    return (*chosen, *(body for body in wrenches if body not in chosen))
