"""`pliant gallery`: mechanisms and scenes that come with pliant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pliant.cli.info import mechanism_facts
from pliant.cli.options import JsonOption
from pliant.cli.output import print_json, print_table, progress_bar, stdout

__all__ = ["gallery"]


def _complete(incomplete: str) -> list[str]:
    from pliant.cli.sources import gallery_names

    return [name for name in gallery_names() if name.startswith(incomplete)]


def gallery(
    name: Annotated[
        str | None,
        typer.Argument(help="Details of this one; with arguments as in helix:100.", autocompletion=_complete),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the mechanisms and scenes that come with pliant, or tell more about one.

    \b
    Examples:
      pliant gallery
      pliant gallery ladder
      pliant gallery helix:200 --json
    """
    if name is not None:
        _one(name, as_json)
    else:
        _all(as_json)


def _what(maker: Callable[..., Any]) -> str:
    """The first line of its docstring."""
    return (inspect.getdoc(maker) or "").splitlines()[0]


def _all(as_json: bool) -> None:
    from pliant import gallery as library
    from pliant.cli.sources import gallery_maker

    mechanisms = []
    with progress_bar() as bar:
        for name in bar.track(library.names(), description="building"):
            facts = mechanism_facts(library.make(name))
            mechanisms.append({**facts, "name": name, "what": _what(gallery_maker(name))})
    scenes = [{"name": name, "what": _what(gallery_maker(name))} for name in library.scenes.names()]
    if as_json:
        print_json({"mechanisms": mechanisms, "scenes": scenes})
        return
    columns = ["bodies", "joints", "dofs", "loops"]
    print_table(
        ["mechanism", *columns, "what it is..."],
        [[m["name"], *(f"{m[c]:,}" for c in columns), m["what"]] for m in mechanisms],
    )
    stdout().print()
    print_table(["scene", "what happens..."], [[s["name"], s["what"]] for s in scenes])
    stdout().print(
        "\n`pliant gallery NAME` tells more; every command takes gallery:NAME in place of a file.",
        markup=False,
    )


def _one(text: str, as_json: bool) -> None:
    from pliant.cli.sources import PREFIX, gallery_maker, resolve

    text = text.removeprefix(PREFIX)
    name = text.partition(":")[0]
    maker = gallery_maker(name)
    found = resolve(PREFIX + text)
    m = found.mechanism
    signature = str(inspect.signature(maker)).partition(" ->")[0]
    if as_json:
        defaults = {p.name: p.default for p in inspect.signature(maker).parameters.values()}
        facts = {**mechanism_facts(m), "name": name, "kind": found.kind, "what": _what(maker)}
        print_json({**facts, "arguments": defaults, "description": inspect.getdoc(maker)})
        return
    print(f"{PREFIX}{text}, a {found.kind}: pliant.gallery.{_module(found.kind)}{name}{signature}\n")
    print(inspect.getdoc(maker), "\n")
    print(m.summary())
    body = m.end_effectors[0] if m.end_effectors else m.body_names[-1]
    command = f"pliant reduce {PREFIX}{text} -e {body}"
    print(f"\nTry: {command if found.scene is None else f'pliant run {PREFIX}{text} --seconds 5'}")


def _module(kind: str) -> str:
    return "scenes." if kind == "scene" else ""
