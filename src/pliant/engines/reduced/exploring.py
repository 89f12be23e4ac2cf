"""What `sample` explores: random wrenches and the true equilibria under them, kept in a file as they are found."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced.accuracy import NO_EQUILIBRIUM, UNSTABLE, Truth, describe, settle, track
from pliant.engines.reduced.blended import BlendedModel
from pliant.engines.reduced.file import read_about, read_arrays
from pliant.engines.reduced.model import ReducedModel
from pliant.engines.reduced.reduce import reduce
from pliant.errors import FormatError, InputError
from pliant.files import replacing
from pliant.formats.json_file import pieces
from pliant.statics import Configuration
from pliant.statics.loads import Load

__all__ = ["Equilibria", "Space", "explored", "lowest_frequency"]

Floats = NDArray[np.float64]

FORMAT, VERSION = "pliant-sampling", 1
_STATES = (None, NO_EQUILIBRIUM, UNSTABLE)  # problems as numbers in a file, from 1; 0 is not known yet
_BUCKLING = 0.2  # of the lowest frequency at rest: below this little is left of the stiffness
_REACH = 0.5  # of the radius: how far the default force moves the softest end effector, to first order
_SECONDS = 5.0  # between two writes of a file: large mechanisms take long to write


@dataclass(frozen=True, eq=False)
class Space:
    """Forces and torques on bodies (b, 6), all with one point and frame per body, that may be mixed."""

    bodies: tuple[str, ...]
    points: Floats
    frames: tuple[str, ...]
    size: float = 0.0
    corners: Floats | None = None

    def draw(self, rng: np.random.Generator, count: int, corners: bool = False) -> Floats:
        if self.corners is None:
            force = rng.normal(size=(count, len(self.bodies), 3))
            force *= (
                self.size
                * rng.uniform(size=(count, len(self.bodies), 1))
                / np.linalg.norm(force, axis=2, keepdims=True)
            )
            return np.concatenate([force, np.zeros_like(force)], axis=2)
        k = len(self.corners)
        # Few large weights rather than many middling ones: means of many directions would all be small.
        mix = rng.dirichlet(np.full(k, 1 / k), count) * rng.uniform(size=(count, 1))
        out = np.tensordot(mix, self.corners, axes=1)
        if corners:
            out[: min(k, count)] = self.corners[:count]
        return out

    def wrench(self, values: Floats) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for body, point, frame, value in zip(self.bodies, self.points, self.frames, values, strict=True):
            if frame == "body" or point.any():
                parts = {"force": value[:3].tolist(), "torque": value[3:].tolist(), "point": point.tolist()}
                out[body] = {**parts, "frame": frame}
            else:
                out[body] = tuple((value if value[3:].any() else value[:3]).tolist())
        return out


def explored(rest: ReducedModel, given: Any) -> Space:
    """The wrenches to explore, from what `sample` was given."""
    bodies = rest.end_effectors
    plain = np.zeros((len(bodies), 3)), ("world",) * len(bodies)
    if given is None:
        softest = min(float(rest.stiffness_ellipsoid(body).stiffness[0]) for body in bodies)
        if not np.isfinite(softest):
            raise InputError("no end effector gives way to a force at its origin: give `wrenches`")
        return Space(bodies, *plain, size=softest * _REACH * rest.mechanism.radius)
    if isinstance(given, int | float | np.number) and not isinstance(given, bool):
        if not 0 < given < np.inf:
            raise InputError(f"wrenches: a force above 0 N expected, not {given!r}")
        return Space(bodies, *plain, size=float(given))
    if isinstance(given, Mapping | str | bool) or not isinstance(given, Iterable):
        raise InputError(
            f"wrenches: a force in N, or a sequence of mappings {{end effector: wrench}} expected, not {given!r:.80}"
        )
    corners, held = [], {}
    for i, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise InputError(f"wrenches: item {i} is no mapping {{end effector: wrench}} but {each!r:.80}")
        corners.append(np.zeros((len(bodies), 6)))
        for body, value in each.items():
            force, torque, point, frame = Load.parse(value, body)
            if frame == "body":  # all of it turns with the body, so the point can be left out
                torque, point = torque + np.cross(point, force), np.zeros(3)
            corners[i][rest.index(body)] = *force, *torque
            at, how = held.setdefault(body, (point, frame))
            if how != frame or not np.array_equal(at, point):
                raise InputError(
                    f"wrenches on '{body}' act at different points or frames: they cannot be mixed"
                )
    if not corners or not np.any(corners):
        raise InputError("wrenches: at least one that is not zero expected")
    loaded = [i for i, body in enumerate(bodies) if body in held]
    named = tuple(bodies[i] for i in loaded)
    points, frames = zip(*(held[body] for body in named), strict=True)
    return Space(named, np.array(points), frames, corners=np.array(corners)[:, loaded])


# --- equilibria


class Equilibria:
    """True equilibria under all the wrenches drawn, found so far, and the file that keeps them."""

    def __init__(self, rest: ReducedModel, space: Space, drawn: Floats, settings: dict[str, int]):
        self.rest, self.space, self.drawn = rest, space, drawn
        m, n = rest.mechanism, len(drawn)
        self.state = np.zeros(n, dtype=np.uint8)
        self.q, self.multipliers = np.zeros((n, m.nq)), np.zeros((n, len(rest.at.multipliers)))
        self.path: Path | None = None
        self.saved = -np.inf
        digest = hashlib.sha256("".join(pieces(m)).encode()).hexdigest()
        self.about = {
            "format": FORMAT,
            **settings,
            "mechanism": digest,
            "end_effectors": list(rest.end_effectors),
            "limits": rest.limits,
            "wrenches": [list(space.bodies), list(space.frames), space.points.tolist()],
        }

    def open(self, path: Path | None) -> None:
        """Take over what a file holds; if there is none, begin one now, while nothing is lost if that fails."""
        self.path = path
        if path is None:
            return
        if not os.path.lexists(path):
            self.save()
            return
        arrays = read_arrays(path)
        hint = "holds no samples: `sample(resume=...)` writes such files"
        about = read_about(arrays, path, FORMAT, VERSION, hint)
        about.setdefault("limits", False)  # files from before limits have no such word
        hint = "give the same arguments as before, or another file"
        for word, value in self.about.items():
            if about.get(word) != value:
                raise FormatError(f"'{path}' was written with another setting of '{word}': {hint}")
        kept = {"state": self.state, "q": self.q, "multipliers": self.multipliers, "drawn": self.drawn}
        for name, mine in kept.items():
            array = arrays.get(name)
            if array is None or array.shape != mine.shape or array.dtype != mine.dtype:
                raise FormatError(
                    f"'{path}': array '{name}' is missing or of another shape: the file is damaged"
                )
        if not np.array_equal(arrays["drawn"], self.drawn):
            raise FormatError(f"'{path}' was written with other wrenches: {hint}")
        if arrays["state"].max() > len(_STATES):
            raise FormatError(f"'{path}': array 'state': unknown numbers: the file is damaged")
        self.state, self.q, self.multipliers = (arrays[name] for name in ("state", "q", "multipliers"))
        try:
            self.truths(np.flatnonzero(self.state))
        except InputError as error:
            raise FormatError(f"'{path}': array 'q': {error}: the file is damaged") from None

    def save(self) -> None:
        if self.path is None:
            return
        text = np.frombuffer(json.dumps({**self.about, "version": VERSION}).encode(), dtype=np.uint8)
        with replacing(self.path) as file:
            arrays = {"state": self.state, "q": self.q, "multipliers": self.multipliers, "drawn": self.drawn}
            np.savez(file, allow_pickle=False, about=text, **arrays)
        self.saved = time.monotonic()

    def wrenches(self, which: NDArray[np.int64]) -> list[dict[str, Any]]:
        return [self.space.wrench(values) for values in self.drawn[which]]

    def search(self, which: NDArray[np.int64], what: str, progress: bool) -> None:
        """Find those that are not known yet, each from the reference pose, so that their order does not matter."""
        missing = which[self.state[which] == 0].tolist()
        try:
            for i in track(missing, what, progress):
                found, problem = settle(
                    self.rest.mechanism, self.space.wrench(self.drawn[i]), limits=self.rest.limits
                )
                if found is not None:
                    self.q[i], self.multipliers[i] = found.q, found.multipliers
                self.state[i] = 1 + _STATES.index(problem)  # last: only what is complete counts as found
                if time.monotonic() > self.saved + _SECONDS:
                    self.save()
        finally:
            if missing:
                self.save()

    def truths(self, which: NDArray[np.int64]) -> list[Truth]:
        """What was found, from what a file would hold: a run that goes on sees the same numbers to the bit."""
        return [(self._configuration(i), _STATES[self.state[i] - 1]) for i in which.tolist()]

    def _configuration(self, i: int) -> Configuration | None:
        if _STATES[self.state[i] - 1] == NO_EQUILIBRIUM:
            return None
        out = Configuration(self.rest.mechanism, self.q[i])
        out.multipliers = self.multipliers[i].copy()
        return out

    def model(self, i: int, blended: BlendedModel, slow: float, problems: list[str]) -> ReducedModel | None:
        """A model at a candidate; None, and a word about it, if there can be none."""
        wrench = self.space.wrench(self.drawn[i])
        found, problem = settle(
            self.rest.mechanism, wrench, start=self._configuration(i), limits=self.rest.limits
        )
        if found is None or problem is not None:
            problems.append(f"{problem} under {describe(wrench)}")
            return None
        try:
            model = reduce(found.mechanism, self.rest.end_effectors, at=found, inertia=self.rest.inertia)
            blended.add(model)
        except InputError as error:
            problems.append(f"no model under {describe(wrench)}: {error}")
            return None
        left = lowest_frequency(found) / slow
        if left < _BUCKLING:
            problems.append(
                f"near buckling under {describe(wrench)}: lowest frequency {left:.2g} of that at rest"
            )
        return model


def lowest_frequency(at: Configuration) -> float:
    """The lowest natural frequency, NaN if some motion meets no stiffness."""
    try:
        found = at.frequencies(1)
    except InputError:
        return float("nan")
    return float(found[0]) if len(found) else float("nan")
