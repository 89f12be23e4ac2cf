"""Grasps as an output: fingers close on an object that is then let go and pushed about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.errors import InputError
from pliant.mechanism.edit import suggestion
from pliant.study.checks import number
from pliant.study.loads import Entry, Load, entry_value, parse_entry

if TYPE_CHECKING:
    from pliant.statics import Configuration
    from pliant.world import World

__all__ = ["COLUMNS", "KEYS", "Grasp", "parse_grasp"]

COLUMNS = ("success", "slip", "squeeze")
KEYS = ("size", "mass", "friction", "offset", "shake", "close", "seconds", "timestep", "engine")
_SIZES = {"sphere": 1, "box": 3, "cylinder": 2, "capsule": 2, "ellipsoid": 3}  # numbers that `size` takes
_ENGINES = ("reduced", "constrained")
_STILL = 5.0  # Hz, of the spring that keeps the object in place while fingers close
_LOOK = 0.05  # seconds between looks at where it is
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grasp:
    """What is grasped, and how it is tried. An entry is a number or the name of a parameter.

    Attributes:
        shape: of the object.
        size: what its shape takes, m.
        mass, friction: of the object; the mechanism's surfaces have the same friction.
        offset: of the object from the middle between the bodies that grasp it, m.
        shake: acceleration that it is pushed with along all axes in turn, m/s².
        close, seconds: how long fingers close, and how long it must be held, s.
        timestep: of the world, s.
        engine: "reduced" or "constrained".
    """

    shape: str
    size: tuple[Entry, ...]
    mass: Entry
    friction: Entry
    offset: tuple[Entry, ...]
    shake: Entry
    close: float
    seconds: float
    timestep: float
    engine: str

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All that may be parameters."""
        return (*self.size, *self.offset, self.mass, self.friction, self.shake)

    def play(self, at: Configuration, load: Load, values: Mapping[str, Any]) -> dict[str, float]:
        """Grasp with the bodies that the load acts on, from where the mechanism rests.

        Returns:
            success: 1 if it is still held in the end, else 0.
            slip: how far it moved with respect to the middle of those bodies since it was let go, m.
            squeeze: all contact forces on it added up, without regard to direction, as it was let go, N.
        """
        size = [entry_value(entry, values) for entry in self.size]
        mass, friction, shake = (entry_value(e, values) for e in (self.mass, self.friction, self.shake))
        hands = list(load.wrenches(values))
        world = self._world(at, hands, load.gravity, friction)
        offset = [entry_value(entry, values) for entry in self.offset]
        make = getattr(shapes, self.shape)
        place = np.mean([world["hand"].pose(body)[:3, 3] for body in hands], axis=0) + offset
        world.add_body(
            "object",
            make(size) if len(size) == 3 else make(*size),
            mass=mass,
            position=place,
            friction=friction,
        )
        for body, wrench in load.wrenches(values).items():
            world["hand"].apply_wrench(body, force=wrench[:3], torque=wrench[3:] or None)
        lift = 0.0 if load.gravity is None else np.array(load.gravity) / (2 * np.pi * _STILL) ** 2
        world.pull("object", place - lift, frequency=_STILL)  # the spring carries its weight where it is
        world.step(max(1, round(self.close / self.timestep)))
        squeeze = _pressed(world)
        world.release("object")
        slip, lost = self._try(world, hands, mass * shake, min(size))
        return {"success": float(not lost), "slip": slip, "squeeze": squeeze}

    def _world(
        self, at: Configuration, hands: Sequence[str], gravity: Sequence[float] | None, friction: float
    ) -> World:
        from pliant.engines.reduced import reduce
        from pliant.world import World

        world, m = World(self.timestep, gravity or (0, 0, 0)), at.mechanism
        if self.engine == "reduced":
            effectors = list(dict.fromkeys((*hands, *m.end_effectors)))
            world.add(reduce(m, effectors, at=at), "hand", friction=friction)
        else:
            world.add(m, "hand", friction=friction, start=at)
        return world

    def _try(self, world: World, hands: Sequence[str], push: float, most: float) -> tuple[float, bool]:
        """Hold it, at first in peace; the slip, and whether it was lost."""
        thing = world["object"]

        def place() -> Floats:
            return thing.position - np.mean([world["hand"].pose(body)[:3, 3] for body in hands], axis=0)

        first, slip = place(), 0.0
        pushes = push * np.vstack([np.zeros(3), np.kron(np.eye(3), [[1.0], [-1.0]])]) if push else [None]
        for force in pushes:
            if force is not None:
                thing.apply_wrench(force=force)
            left = max(1, round(self.seconds / len(pushes) / self.timestep))
            while left:
                count = min(left, max(1, round(_LOOK / self.timestep)))
                world.step(count)
                left -= count
                slip = float(np.linalg.norm(place() - first))
                if slip > most:
                    return slip, True
        return slip, _pressed(world) == 0


def _pressed(world: World) -> float:
    """Sizes of all contact forces on the object, added up."""
    touching = world.contacts
    on = ["object" in pair for pair in touching.bodies]
    return float(np.linalg.norm(touching.forces[on], axis=1).sum())


def parse_grasp(given: Mapping[str, Any], parameters: Sequence[str], where: str) -> Grasp:
    """The grasp that an output's `grasp` and its keys describe.

    Raises:
        InputError: something is missing or does not fit.
    """
    shape = given["grasp"]
    if not isinstance(shape, str) or shape not in _SIZES:
        raise InputError(
            f"{where}: grasp takes the shape of the object, not {shape!r:.80}{suggestion(shape, _SIZES)}"
        )
    if "size" not in given:
        raise InputError(f"{where}: 'size' is missing: that of the {shape}, {_SIZES[shape]} in m")
    engine = given.get("engine", "reduced")
    if engine not in _ENGINES:
        raise InputError(f"{where}: engine: unknown '{engine}'{suggestion(engine, _ENGINES)}")

    def entry(key: str, default: float) -> Entry:
        return parse_entry(given.get(key, default), parameters, f"{where}: {key}")

    def entries(key: str, value: Any, count: int) -> tuple[Entry, ...]:
        value = list(value) if isinstance(value, list | tuple) else [value]
        if len(value) != count:
            raise InputError(f"{where}: {key}: {count} numbers or parameters expected, not {value!r:.80}")
        return tuple(parse_entry(one, parameters, f"{where}: {key}") for one in value)

    def positive(key: str, default: float) -> float:
        return number(given.get(key, default), f"{where}: {key}", above=0.0)

    return Grasp(
        shape,
        entries("size", given["size"], _SIZES[shape]),
        entry("mass", 0.1),
        entry("friction", 0.8),
        entries("offset", given.get("offset", (0, 0, 0)), 3),
        entry("shake", 0.0),
        positive("close", 0.5),
        positive("seconds", 1.0),
        positive("timestep", 1 / 120),
        engine,
    )
