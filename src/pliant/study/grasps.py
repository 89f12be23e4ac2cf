"""Grasps as an output: fingers close on an object, which is then released and pushed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.checks import number
from pliant.errors import InputError
from pliant.study.parameters import Entry, entry_value, parse_entry
from pliant.text import brief, suggestion

if TYPE_CHECKING:
    from pliant.statics import Configuration
    from pliant.world import World

__all__ = ["COLUMNS", "KEYS", "Grasp", "parse_grasp"]

COLUMNS = ("success", "slip", "squeeze")
KEYS = ("size", "mass", "friction", "offset", "shake", "close", "seconds", "timestep", "engine")
_SIZES = {"sphere": 1, "box": 3, "cylinder": 2, "capsule": 2, "ellipsoid": 3}  # numbers that `size` takes
_ENGINES = ("reduced", "constrained")
_HOLD = 5.0  # Hz, natural frequency of the spring that holds the object while the fingers close
_CHECK = 0.05  # seconds between checks of the slip
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Grasp:
    """Object and trial of a grasp. An entry is a number or the name of a parameter.

    Attributes:
        shape: of the object.
        size: arguments of the shape, m.
        mass, friction: of the object; the mechanism's surfaces have the same friction.
        offset: of the object from the mean position of the grasping bodies, m.
        shake: acceleration of the pushes along all axes in turn, m/s².
        close, seconds: time for the fingers to close, and time that the object must be held, s.
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
        """All numbers that may be parameters."""
        return (*self.size, *self.offset, self.mass, self.friction, self.shake)

    def simulate(
        self,
        start: Configuration,
        wrenches: Mapping[str, Sequence[float]],
        gravity: Sequence[float] | None,
        values: Mapping[str, Any],
    ) -> dict[str, float]:
        """Grasp with the bodies that wrenches act on (world axes, N and N m), from an equilibrium.

        Returns:
            success: 1 if the object is still held in the end, else 0.
            slip: displacement of the object relative to the mean of the grasping bodies since its release, m.
            squeeze: sum of the magnitudes of all contact forces on the object at its release, N.
        """
        size = [entry_value(entry, values) for entry in self.size]
        mass, friction, shake = (entry_value(e, values) for e in (self.mass, self.friction, self.shake))
        fingers = list(wrenches)
        world = _make_world(start, self.engine, self.timestep, fingers, gravity, friction)
        offset = [entry_value(entry, values) for entry in self.offset]
        make = getattr(shapes, self.shape)
        shape = make(size) if len(size) == 3 else make(*size)
        place = _mean_position(world, fingers) + offset
        world.add_body("object", shape, mass=mass, position=place, friction=friction)
        for body, wrench in wrenches.items():
            world["hand"].apply_wrench(body, force=wrench[:3], torque=wrench[3:] or None)
        sag = 0.0 if gravity is None else np.array(gravity) / (2 * np.pi * _HOLD) ** 2
        world.pull("object", place - sag, frequency=_HOLD)  # in equilibrium with the weight at `place`
        world.step(max(1, round(self.close / self.timestep)))
        squeeze = _squeeze(world)
        world.release("object")
        slip, lost = self._hold(world, fingers, mass * shake, min(size))
        return {"success": float(not lost), "slip": slip, "squeeze": squeeze}

    def _hold(self, world: World, fingers: Sequence[str], push: float, limit: float) -> tuple[float, bool]:
        """Hold the object, first without a push, then pushed by a force (N) along ±x, ±y, ±z in turn.

        Returns the slip (m), and whether the object was lost: a slip above the limit, or no contact in the end.
        """
        held = world["object"]
        first, slip = held.position - _mean_position(world, fingers), 0.0
        pushes = push * np.vstack([np.zeros(3), np.kron(np.eye(3), [[1.0], [-1.0]])]) if push else [None]
        for force in pushes:
            if force is not None:
                held.apply_wrench(force=force)
            left = max(1, round(self.seconds / len(pushes) / self.timestep))
            while left:
                count = min(left, max(1, round(_CHECK / self.timestep)))
                world.step(count)
                left -= count
                slip = float(np.linalg.norm(held.position - _mean_position(world, fingers) - first))
                if slip > limit:
                    return slip, True
        return slip, _squeeze(world) == 0


def _make_world(
    start: Configuration,
    engine: str,
    timestep: float,
    fingers: Sequence[str],
    gravity: Sequence[float] | None,
    friction: float,
) -> World:
    """A world with the mechanism at an equilibrium, called "hand"."""
    from pliant.engines.reduced import reduce
    from pliant.world import World

    world, m = World(timestep, gravity or (0, 0, 0)), start.mechanism
    if engine == "reduced":
        effectors = list(dict.fromkeys((*fingers, *m.end_effectors)))
        world.add(reduce(m, effectors, at=start), "hand", friction=friction)
    else:
        world.add(m, "hand", friction=friction, start=start)
    return world


def _mean_position(world: World, fingers: Sequence[str]) -> Floats:
    return np.mean([world["hand"].pose(body)[:3, 3] for body in fingers], axis=0)


def _squeeze(world: World) -> float:
    """Sum of the magnitudes of all contact forces on the object, N."""
    touching = world.contacts
    on = ["object" in pair for pair in touching.bodies]
    return float(np.linalg.norm(touching.forces[on], axis=1).sum())


def parse_grasp(given: Mapping[str, Any], parameters: Sequence[str], where: str) -> Grasp:
    """The grasp that the keys of an output describe.

    Raises:
        InputError: something is missing or does not fit.
    """
    shape = given["grasp"]
    if not isinstance(shape, str) or shape not in _SIZES:
        raise InputError(
            f"{where}: grasp takes the shape of the object, not {brief(shape)}{suggestion(shape, _SIZES)}"
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
            raise InputError(f"{where}: {key}: {count} numbers or parameters expected, not {brief(value)}")
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
