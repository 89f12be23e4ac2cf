"""What FILE means: a mechanism file, a saved model or trajectory, or `gallery:NAME`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.errors import FormatError, InputError
from pliant.gallery.catalogue import PREFIX, parse_arguments

if TYPE_CHECKING:
    from pliant.engines.reduced import BlendedModel, ReducedModel
    from pliant.engines.trajectory import Trajectory
    from pliant.mechanism import Mechanism
    from pliant.scenes import Scene

__all__ = ["PREFIX", "Source", "gallery_maker", "gallery_names", "parse_wrenches", "resolve", "world_names"]

_WORLDS = "worlds."  # before the name of a world that a mechanism or scene has too


@dataclass(frozen=True)
class Source:
    """A mechanism, and what else came with it.

    Attributes:
        text: as the user wrote it.
        mechanism: the mechanism; of a world, all its bodies, each on its own.
        scene, play, model, trajectory: what it is part of, if it is.
    """

    text: str
    mechanism: Mechanism
    scene: Scene | None = None
    play: Scene | None = None
    model: ReducedModel | BlendedModel | None = None
    trajectory: Trajectory | None = None

    @property
    def kind(self) -> str:
        """What it is, in a word."""
        model = "blended model" if hasattr(self.model, "models") else "reduced model"
        parts = {"scene": self.scene, "world": self.play, model: self.model, "trajectory": self.trajectory}
        return next((word for word, part in parts.items() if part is not None), "mechanism")


def resolve(
    text: str,
    *,
    keyframe: str | None = None,
    allow: Sequence[Path] | None = None,
    repair: bool = False,
    default_stiffness: float | None = None,
    worlds: bool = False,
) -> Source:
    """The source a FILE argument names; most other arguments as the options of the same names.

    Args:
        text: what the user wrote.
        keyframe, allow, repair, default_stiffness: see the options.
        worlds: whether a world will do.

    Raises:
        PliantError: there is no such file or gallery name, or it cannot be read.
    """
    if text.startswith(PREFIX):
        found = _from_gallery(text)
    else:
        found = _from_file(text, keyframe, allow, repair)
    if found.play is not None and not worlds:
        raise InputError(f"'{text}' is a world, not one mechanism: `pliant run` and `pliant view` take it")
    if default_stiffness is None:
        return found
    if found.play is not None:
        raise InputError(f"'{text}' is a world, its springs are fixed: leave --default-stiffness out")
    if found.model is not None:
        raise InputError(f"'{text}' is a model, its springs are fixed: give the mechanism's own file")
    m = found.mechanism
    soft = m.with_stiffness(m.springless, default_stiffness) if m.springless else m
    return replace(found, mechanism=soft, scene=found.scene and replace(found.scene, what=soft))


# --- files


def _from_file(text: str, keyframe: str | None, allow: Sequence[Path] | None, repair: bool) -> Source:
    from pliant.formats import load

    path = Path(text)
    if text.isidentifier() and not path.exists() and text in gallery_names():
        raise FormatError(f"'{text}': there is no such file; did you mean '{PREFIX}{text}'?")
    try:
        with path.open("rb") as file:
            packed = path.is_file() and file.read(4) == b"PK\x03\x04"
    except OSError:
        packed = False  # `load` says what is wrong
    if packed:
        return _from_npz(text, path)
    return Source(text, load(path, keyframe=_keyframe(keyframe), allow=allow or (), repair=repair))


def _keyframe(given: str | None) -> str | int | None:
    return int(given) if given is not None and given.isdigit() else given


def _from_npz(text: str, path: Path) -> Source:
    from pliant.engines.reduced.blended_file import load_model
    from pliant.engines.trajectory import FORMAT, Trajectory

    try:
        with np.load(path, allow_pickle=False) as archive:
            trajectory = FORMAT.encode() in archive["about"].tobytes()
    except Exception:  # whatever is wrong with it, loading says so
        trajectory = False
    if trajectory:
        path_over_time = Trajectory.load(path)
        return Source(text, path_over_time.mechanism, trajectory=path_over_time)
    model = load_model(path)
    return Source(text, model.mechanism, model=model)


# --- gallery


def gallery_names(worlds: bool = True) -> tuple[str, ...]:
    """Names of all mechanisms, then of all scenes, then of all worlds, which take a while to import."""
    from pliant import gallery, scenes

    return (*gallery.names(), *scenes.names("constrained"), *(world_names() if worlds else ()))


def world_names() -> tuple[str, ...]:
    """Names of all worlds; where there is a mechanism of the same name, with `worlds.` before it."""
    from pliant import scenes

    others = gallery_names(worlds=False)
    return tuple(f"{_WORLDS}{name}" if name in others else name for name in scenes.names("world"))


def gallery_maker(name: str) -> Callable[..., Any]:
    """The function behind a name.

    Raises:
        InputError: there is none; the nearest names are suggested.
    """
    from pliant import gallery, scenes
    from pliant.text import suggestion

    for known, module in ((gallery.names(), gallery), (scenes.names("constrained"), scenes)):
        if name in known:
            return getattr(module, name)
    bare, known = name.removeprefix(_WORLDS), world_names()
    if bare in known or f"{_WORLDS}{bare}" in known:
        return getattr(scenes, bare)
    raise InputError(f"the gallery has no '{name}'{suggestion(name, gallery_names())}")


def _from_gallery(text: str) -> Source:
    from pliant.mechanism import Mechanism

    name, _, given = text.removeprefix(PREFIX).partition(":")
    maker = gallery_maker(name)
    made = maker(**parse_arguments(name, maker, given))
    if isinstance(made, Mechanism):
        return Source(text, made)
    if made.engine != "world":
        return Source(text, made.mechanism, scene=made)
    title = name.removeprefix(_WORLDS).replace("_", " ")
    return Source(text, made.world.scene.replace(name=title), play=made)


# --- wrenches


def parse_wrenches(given: Sequence[str] | None, mechanism: Mechanism) -> dict[str, tuple[float, ...]]:
    """`BODY:FX,FY,FZ` as `{body: numbers}`, three or six.

    Raises:
        InputError: one is malformed or not finite, or names no body.
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
        if not np.isfinite(values).all():
            raise InputError(f"wrench '{text}': not all numbers are finite")
        if mechanism.body_index(body) < 0:
            raise InputError(f"wrench '{text}': the world does not move: name a body")
        if body in found:
            raise InputError(f"wrench '{text}': there is one on '{body}' already; add them up")
        found[body] = values
    return found
