"""`pliant gallery`: mechanisms, scenes and worlds that come with pliant."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pliant.cli import options
from pliant.cli.info import mechanism_facts, print_things, world_facts
from pliant.cli.output import print_json, print_table, progress_bar, say, stdout
from pliant.errors import FormatError
from pliant.files import replacing_path

if TYPE_CHECKING:
    from pliant.mechanism import Mechanism

__all__ = ["gallery"]

_THUMBNAIL = (480, 360)  # pixels


def gallery(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Details of this one; with arguments as in helix:100.",
            autocompletion=options.complete_gallery,
        ),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Leave a picture of each there, NAME.png; of NAME only, if given."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the mechanisms, scenes and worlds that come with pliant, or tell more about one.

    \b
    Examples:
      pliant gallery
      pliant gallery ladder
      pliant gallery helix:200 --json
      pliant gallery --pictures pictures
    """
    if pictures is not None and not pictures.is_dir():
        raise FormatError(f"'{pictures}': there is no such folder; create it first")
    if name is not None:
        _one(name, pictures, as_json)
    else:
        _all(pictures, as_json)


def _what(maker: Callable[..., Any]) -> str:
    """First line of a function's docstring."""
    return (inspect.getdoc(maker) or "").splitlines()[0]


def _all(pictures: Path | None, as_json: bool) -> None:
    from pliant import gallery as library
    from pliant import scenes
    from pliant.source import PREFIX, find_maker, resolve, world_names

    mechanisms = []
    with progress_bar() as bar:
        for name in bar.track(library.names(), description="building"):
            m = library.make(name)
            mechanisms.append({**mechanism_facts(m), "name": name, "what": _what(find_maker(name))})
            _draw(m, pictures, name)
        others = {
            "scenes": [{"name": n, "what": _what(find_maker(n))} for n in scenes.names("constrained")],
            "worlds": [{"name": n, "what": _what(find_maker(n))} for n in world_names()],
        }
        if pictures is not None:
            names = [entry["name"] for entries in others.values() for entry in entries]
            for name in bar.track(names, description="drawing"):
                _draw(resolve(PREFIX + name, worlds=True).mechanism, pictures, name)
    if as_json:
        print_json({"mechanisms": mechanisms, **others})
        return
    columns = ["bodies", "joints", "dofs", "loops"]
    print_table(
        ["mechanism", *columns, "what it is..."],
        [[m["name"], *(f"{m[c]:,}" for c in columns), m["what"]] for m in mechanisms],
    )
    for kind, entries in others.items():
        stdout().print()
        print_table(
            [kind.removesuffix("s"), "what happens..."], [[entry["name"], entry["what"]] for entry in entries]
        )
    stdout().print(
        "\n`pliant gallery NAME` tells more; every command takes gallery:NAME in place of a file.",
        markup=False,
    )
    if pictures is not None:
        say(f"wrote pictures to {pictures}")


def _draw(m: Mechanism, folder: Path | None, name: str) -> None:
    """Write a picture NAME.png to a folder; nothing if there is no folder."""
    from pliant.viewer import picture

    if folder is not None:
        with replacing_path(folder / f"{name}.png") as place:
            picture(m, place, size=_THUMBNAIL)


def _one(text: str, pictures: Path | None, as_json: bool) -> None:
    from pliant.source import PREFIX, find_maker, resolve

    text = text.removeprefix(PREFIX)
    name = text.partition(":")[0]
    maker = find_maker(name)
    found = resolve(PREFIX + text, worlds=True)
    m = found.mechanism
    _draw(m, pictures, name)
    signature = str(inspect.signature(maker)).partition(" ->")[0]
    things = None if found.play is None else world_facts(found.play.world)
    if as_json:
        defaults = {p.name: p.default for p in inspect.signature(maker).parameters.values()}
        facts = mechanism_facts(m) if things is None else {"things": things}
        facts |= {"name": name, "kind": found.kind, "what": _what(maker)}
        print_json({**facts, "arguments": defaults, "description": inspect.getdoc(maker)})
        return
    module = "scenes" if found.kind in ("scene", "world") else "gallery"
    print(f"{PREFIX}{text}, a {found.kind}: pliant.{module}.{maker.__name__}{signature}\n")
    print(inspect.getdoc(maker), "\n")
    _sketch(m)
    if things is None:
        print(m.summary())
    else:
        print_things(things)
    body = m.end_effectors[0] if m.end_effectors else m.body_names[-1]
    command = {"scene": f"run {PREFIX}{text} --seconds 5", "world": f"view {PREFIX}{text}"}
    print(f"\nTry: pliant {command.get(found.kind, f'reduce {PREFIX}{text} -e {body}')}")


def _sketch(m: Mechanism) -> None:
    """Print a sketch in Braille dots, if the encoding of stdout has them."""
    from pliant.viewer.sketch import sketch

    drawn = sketch(m)
    try:
        drawn.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return
    print(drawn, "\n")
