"""Sources of mechanisms as users name them: a file, a saved model or trajectory, or `gallery:NAME:ARGUMENTS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.errors import FormatError, InputError
from pliant.gallery.catalogue import PREFIX, parse_arguments

if TYPE_CHECKING:
    from pliant.engines.reduced import BlendedModel, ReducedModel
    from pliant.engines.trajectory import Trajectory
    from pliant.formats.left_out import Part
    from pliant.mechanism import Mechanism
    from pliant.scenes import Scene

__all__ = [
    "PREFIX",
    "Source",
    "find_maker",
    "gallery_names",
    "parse_gallery",
    "resolve",
    "with_default_stiffness",
    "world_names",
]

_WORLDS = "worlds."  # prefix of a world whose name a mechanism or scene has, too


@dataclass(frozen=True)
class Source:
    """A mechanism, and the scene, world, model or trajectory that it comes from.

    Attributes:
        text: as the user wrote it.
        mechanism: of a world, all its bodies, each on its own.
        scene, play, model, trajectory: the thing that has the mechanism; at most one is not None.
        keyframes, left_out: of a model file, as in `pliant.formats.load.Loaded`.
    """

    text: str
    mechanism: Mechanism
    scene: Scene | None = None
    play: Scene | None = None
    model: ReducedModel | BlendedModel | None = None
    trajectory: Trajectory | None = None
    keyframes: tuple[str, ...] = ()
    left_out: tuple[Part, ...] = ()

    @property
    def kind(self) -> str:
        """Its kind: "mechanism", "scene", "world", "reduced model", "blended model" or "trajectory"."""
        model = "blended model" if hasattr(self.model, "models") else "reduced model"
        parts = {"scene": self.scene, "world": self.play, model: self.model, "trajectory": self.trajectory}
        return next((word for word, part in parts.items() if part is not None), "mechanism")

    def with_mechanism(self, m: Mechanism) -> Source:
        """The source with an edited mechanism, also in its scene."""
        return replace(self, mechanism=m, scene=self.scene and replace(self.scene, what=m))


def resolve(
    text: str,
    *,
    keyframe: str | None = None,
    allow: Sequence[Path] | None = None,
    repair: bool = False,
    meshes: bool = True,
    default_stiffness: float | None = None,
    damping_ratio: float | None = None,
    worlds: bool = False,
) -> Source:
    """The source that a text names.

    Args:
        text: a path, or `gallery:NAME` with arguments.
        keyframe, allow, repair, meshes: as `pliant.load` takes them; digits for a keyframe are its number.
        default_stiffness: of degrees of freedom without a spring, N m/rad or N/m; a floating base stays free.
        damping_ratio: of the first vibration, as `Mechanism.with_damping_ratio` takes it.
        worlds: whether worlds are allowed.

    Raises:
        PliantError: there is no such file or gallery name, or it cannot be read.
    """
    if text.startswith(PREFIX):
        found = _from_gallery(text)
    else:
        found = _from_file(text, keyframe, allow, repair, meshes)
    if found.play is not None and not worlds:
        raise InputError(f"'{text}' is a world, not one mechanism: `pliant run` and `pliant view` take it")
    if found.play is not None:
        for option, value in (("default-stiffness", default_stiffness), ("damping-ratio", damping_ratio)):
            if value is not None:
                raise InputError(f"'{text}' is a world, its springs are fixed: leave --{option} out")
    if default_stiffness is not None:
        if found.model is not None:
            raise InputError(f"'{text}' is a model, its springs are fixed: give the mechanism's own file")
        found = found.with_mechanism(with_default_stiffness(found.mechanism, default_stiffness))
    if damping_ratio is not None:
        if found.model is not None:
            model = found.model.with_damping_ratio(damping_ratio)
            return replace(found, model=model, mechanism=model.mechanism)
        found = found.with_mechanism(found.mechanism.with_damping_ratio(damping_ratio))
    return found


def with_default_stiffness(m: Mechanism, stiffness: float) -> Mechanism:
    """The mechanism with springs of this stiffness, N m/rad or N/m, on degrees of freedom without one.

    A floating base stays free.

    Raises:
        InputError: the stiffness is no number above 0, whether any spring is missing or not.
    """
    from pliant.checks import number

    stiffness = number(stiffness, "default stiffness", above=0.0)
    loose = m.springless_joints
    return m.with_stiffness(loose, stiffness) if loose else m


# --- files


def _from_file(
    text: str, keyframe: str | None, allow: Sequence[Path] | None, repair: bool, meshes: bool
) -> Source:
    from pliant.formats.archive import is_archive, read_format
    from pliant.formats.columns import FORMAT
    from pliant.formats.load import read

    path = Path(text)
    if text.isidentifier() and not path.exists() and text in gallery_names():
        raise FormatError(f"'{text}': there is no such file; did you mean '{PREFIX}{text}'?")
    form = read_format(path) if is_archive(path) else FORMAT
    if form != FORMAT:
        return _from_npz(text, path, form)
    frame = int(keyframe) if keyframe is not None and keyframe.isdigit() else keyframe
    content = read(path, keyframe=frame, allow=allow or (), repair=repair, meshes=meshes)
    return Source(text, content.mechanism, keyframes=content.keyframes, left_out=content.left_out)


def _from_npz(text: str, path: Path, form: str | None) -> Source:
    from pliant.engines.reduced.files import load_model
    from pliant.engines.trajectory import FORMAT, Trajectory

    if form == FORMAT:
        recorded = Trajectory.load(path)
        return Source(text, recorded.mechanism, trajectory=recorded)
    model = load_model(path)
    return Source(text, model.mechanism, model=model)


# --- gallery


def gallery_names(worlds: bool = True) -> tuple[str, ...]:
    """Names of all mechanisms, scenes and, unless `worlds` is false, worlds, which take seconds to import."""
    from pliant import gallery, scenes

    return (*gallery.names(), *scenes.names("constrained"), *(world_names() if worlds else ()))


def world_names() -> tuple[str, ...]:
    """Names of all worlds; with the prefix `worlds.` where a mechanism or scene has the same name."""
    from pliant import scenes

    others = gallery_names(worlds=False)
    return tuple(f"{_WORLDS}{name}" if name in others else name for name in scenes.names("world"))


def find_maker(name: str, *, mechanisms: bool = False) -> Callable[..., Any]:
    """The function of the gallery that makes the mechanism, scene or world of a name; `mechanisms` allows no others.

    Raises:
        InputError: there is none; the message suggests similar names.
    """
    from pliant import gallery, scenes
    from pliant.text import suggestion

    if name in gallery.names():
        return getattr(gallery, name)
    if mechanisms:
        raise InputError(f"the gallery has no '{name}'{suggestion(name, gallery.names())}")
    if name in scenes.names("constrained"):
        return getattr(scenes, name)
    bare, known = name.removeprefix(_WORLDS), world_names()
    if bare in known or f"{_WORLDS}{bare}" in known:
        return getattr(scenes, bare)
    raise InputError(f"the gallery has no '{name}'{suggestion(name, gallery_names())}")


def parse_gallery(text: str, *, mechanisms: bool = False) -> tuple[str, Callable[..., Any], dict[str, Any]]:
    """Name, function and keyword arguments of `gallery:NAME:ARGUMENTS`.

    Raises:
        InputError: there is no such name, or its function does not take the arguments.
    """
    name, _, given = text.removeprefix(PREFIX).partition(":")
    maker = find_maker(name, mechanisms=mechanisms)
    return name, maker, parse_arguments(name, maker, given)


def _from_gallery(text: str) -> Source:
    from pliant.mechanism import Mechanism

    name, maker, arguments = parse_gallery(text)
    made = maker(**arguments)
    if isinstance(made, Mechanism):
        return Source(text, made)
    if made.engine != "world":
        return Source(text, made.mechanism, scene=made)
    title = name.removeprefix(_WORLDS).replace("_", " ")
    return Source(text, made.world.scene.replace(name=title), play=made)
