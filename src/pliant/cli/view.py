"""`pliant view`: live view in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

import pliant
from pliant.cli import options

__all__ = ["view"]


def view(
    file: options.File,
    engine: Annotated[
        options.Engine | None,
        typer.Option(help="What computes the motion at first.", show_default="by what FILE is"),
    ] = None,
    bodies: options.Bodies = None,
    port: Annotated[int, typer.Option(help="The port to listen at; 0 takes any that is free.")] = 8080,
    host: Annotated[
        str, typer.Option(help="The address to listen at; whoever can reach it may do anything in the page.")
    ] = "127.0.0.1",
    seconds: Annotated[
        float | None, typer.Option(min=0, help="End after so many seconds.", show_default="with Ctrl+C")
    ] = None,
    stiffness: options.Stiffness = None,
    damping_ratio: options.Damping = None,
    keyframe: options.Keyframe = None,
    allow: options.Allow = None,
    repair: options.Repair = False,
    skip_meshes: options.SkipMeshes = False,
) -> None:
    """Show a mechanism or a world live in the browser: pull it with the mouse, change engines while it runs.

    \b
    Examples:
      pliant view gallery:hand
      pliant view hand.xml --engine constrained
      pliant view gallery:crane_lift --port 0
      pliant view gallery:grasp
    """
    from pliant.errors import InputError
    from pliant.source import PREFIX, Source, resolve
    from pliant.viewer.live import check_address

    check_address(host, port)  # before anything is loaded and compiled

    def read(keyframe: str | None) -> Source:
        return resolve(
            file,
            keyframe=keyframe,
            allow=allow,
            repair=repair,
            meshes=not skip_meshes,
            default_stiffness=stiffness,
            damping_ratio=damping_ratio,
            worlds=True,
        )

    found = read(keyframe)
    if found.play is not None and (bodies or engine is not None):
        raise InputError(f"'{file}' is a world, which has its own engines: leave -e and --engine out")
    what = found.scene or found.play or found.model or found.mechanism
    with pliant.view(what, host=host, port=port, block=False) as shown:
        if not file.startswith(PREFIX):
            shown.offer_keyframes(found.keyframes, lambda name: read(name).mechanism, shown=keyframe)
        session = shown.session
        if bodies:
            shown.runner.ask(lambda: session.set_end_effectors(bodies))
        if engine is not None:
            shown.runner.ask(lambda: session.set_engine(engine.value), timeout=600)
        shown.announce(found.mechanism.name)
        shown.wait(seconds)
