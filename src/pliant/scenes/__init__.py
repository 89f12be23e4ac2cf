"""Scenes of mechanisms and worlds in motion, each a function that returns a `Scene`.

    >>> import pliant
    >>> scene = pliant.scenes.grasp()
    >>> scene.run(3.0)
    >>> bool(scene.world["ball"].position[2] > 0.1)
    True
    >>> simulation = pliant.scenes.heavy_ball(ratio=1e6).simulate(1 / 30)
    >>> simulation.step(60)

Cables and cranes are GS17's, pulled linkages RL05's, both listed in docs/papers.md; the others are worlds, in which
mechanisms touch things.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant.gallery.catalogue import call

if TYPE_CHECKING:
    from pliant.scenes.cables import boom_drop, crane_lift, dropped_load, heavy_ball, slack_snap, tank
    from pliant.scenes.impacts import crane_and_wall, trampoline
    from pliant.scenes.linkages import bicycle_chain, millipede, molecule
    from pliant.scenes.locomotion import car, hexapod, suspension
    from pliant.scenes.manipulation import grasp, lifting_hand, peg_in_hand, peg_in_hole
    from pliant.scenes.meshes import bunny
    from pliant.scenes.scene import Scene

__all__ = [
    "Scene",
    "bicycle_chain",
    "boom_drop",
    "bunny",
    "car",
    "crane_and_wall",
    "crane_lift",
    "dropped_load",
    "grasp",
    "heavy_ball",
    "hexapod",
    "lifting_hand",
    "make",
    "millipede",
    "molecule",
    "names",
    "peg_in_hand",
    "peg_in_hole",
    "slack_snap",
    "suspension",
    "tank",
    "trampoline",
]

# Scenes by engine and module. Modules are imported on first use: worlds need the collider, which takes time.
_SCENES = {
    "constrained": {
        "cables": ("heavy_ball", "dropped_load", "slack_snap", "crane_lift", "boom_drop", "tank")
    },
    "quasistatic": {"linkages": ("bicycle_chain", "millipede", "molecule")},
    "world": {
        "manipulation": ("grasp", "peg_in_hole"),
        "locomotion": ("hexapod", "suspension"),
        "impacts": ("crane_and_wall", "trampoline"),
    },
}
_MODULES = {name: module for parts in _SCENES.values() for module, names in parts.items() for name in names}
_LAZY = {
    **_MODULES,
    "Scene": "scene",
    "bunny": "meshes",
    "car": "locomotion",
    "lifting_hand": "manipulation",
    "peg_in_hand": "manipulation",
}


def names(engine: str | None = None) -> tuple[str, ...]:
    """The names of all scenes, or of those of one engine: "constrained", "quasistatic" or "world"."""
    chosen = _SCENES.values() if engine is None else [_SCENES[engine]]
    return tuple(name for parts in chosen for found in parts.values() for name in found)


def make(name: str, **arguments: Any) -> Scene:
    """The scene of that name: `make("heavy_ball", ratio=1e6)` is `heavy_ball(ratio=1e6)`."""
    makers: dict[str, Any] = dict.fromkeys(_MODULES)
    if isinstance(name, str) and name in makers:
        makers[name] = __getattr__(name)
    return call(makers, "there is no scene", name, arguments)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'pliant.scenes' has no attribute '{name}'")
    return getattr(import_module(f"pliant.scenes.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
