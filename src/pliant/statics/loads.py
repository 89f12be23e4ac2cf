"""Loads: wrenches on bodies, gravity, springs and their rest positions.

`Load` is one wrench on one body, parsed once from what the caller gave; its row of numbers is what kernels of all
engines take. `Loads` holds all loads of a static problem as arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics.limit_springs import Stops, make_stops

__all__ = [
    "LOAD_SIZE",
    "Load",
    "Loads",
    "chart",
    "collect_loads",
    "coordinate_difference",
    "spring_coordinates",
    "tendon_lengths",
]

Floats = NDArray[np.float64]
# Columns of a row: force and torque fixed in the world, the point where the force acts (body frame), force and torque
# at the origin that turn with the body (body axes), and whether any of these is not zero.
FORCE, TORQUE, POINT, FOLLOWER_FORCE, FOLLOWER_TORQUE, ACTS, LOAD_SIZE = 0, 3, 6, 9, 12, 15, 16
_WORDS = frozenset(("force", "torque", "point", "frame"))
_ZERO = np.zeros(3)
_ZERO.flags.writeable = False


class Load(NamedTuple):
    """A wrench on a body.

    Attributes:
        force, torque: N and N m, (3,); or one per copy of a batch, (copies, 3).
        point: where the force acts, body frame, m.
        frame: axes of force and torque: "world", and they keep their direction; or "body", and they turn with it.
    """

    force: Floats
    torque: Floats
    point: Floats
    frame: str = "world"

    @classmethod
    def of(
        cls,
        body: str,
        force: Any = None,
        torque: Any = None,
        point: Any = None,
        frame: str = "world",
        copies: int | None = None,
    ) -> Load:
        """A load from the words of `apply_wrench`; three numbers go to all `copies`.

        Raises:
            InputError: a word has another shape, or is not finite; the message names the body.
        """
        if frame not in ("world", "body"):
            raise InputError(f"wrench on '{body}': frame is 'world' or 'body', not {frame!r}")
        return cls(
            _vector(force, "force", body, copies),
            _vector(torque, "torque", body, copies),
            _vector(point, "point", body, copies),
            frame,
        )

    @classmethod
    def parse(cls, value: Any, body: str) -> Load:
        """A load from 3 or 6 numbers (force, torque; world axes, at the origin) or a mapping of the words above."""
        if isinstance(value, Load):
            return value
        if not isinstance(value, Mapping):
            numbers = _numbers(value, (3,) if np.shape(value) == (3,) else (6,), f"wrench on '{body}'")
            return cls(numbers[:3], numbers[3:] if len(numbers) == 6 else _ZERO, _ZERO)
        unknown = value.keys() - _WORDS
        if unknown:
            raise InputError(
                f"wrench on '{body}': unknown word {min(map(str, unknown))!r}; use force, torque, point, frame"
            )
        return cls.of(body, **value)

    def row(self) -> Floats:
        """Numbers as kernels take them, (LOAD_SIZE,); see the columns above."""
        out = np.zeros(LOAD_SIZE)
        self.write(out)
        return out

    def write(self, out: Floats) -> None:
        """Put the row into `out`, (LOAD_SIZE,) or (copies, LOAD_SIZE)."""
        out[...] = 0.0
        f, t, p = self.force, self.torque, self.point
        if self.frame == "world":
            out[..., FORCE:TORQUE], out[..., TORQUE:POINT], out[..., POINT:FOLLOWER_FORCE] = f, t, p
        else:
            out[..., FOLLOWER_FORCE:FOLLOWER_TORQUE] = f
            out[..., FOLLOWER_TORQUE:ACTS] = t if p is _ZERO else t + np.cross(p, f)
        out[..., ACTS] = out.any(axis=-1)

    @property
    def acts(self) -> bool:
        """Whether force or torque is not zero."""
        return bool(self.force.any() or self.torque.any())


def _vector(value: Any, word: str, body: str, copies: int | None) -> Floats:
    if value is None:
        return _ZERO
    what = f"{word} on '{body}'"
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: numbers expected, not {value!r:.80}") from None
    if numbers.shape != (3,) and (copies is None or numbers.shape != (copies, 3)):
        expected = "3 numbers" if copies is None else f"3 numbers, or {copies} times 3,"
        raise InputError(f"{what}: {expected} expected, got shape {numbers.shape}")
    # Python floats: several times faster than numpy for three numbers
    if not all(map(isfinite, numbers.ravel().tolist())):
        raise InputError(f"{what} is not finite")
    return numbers


@dataclass(frozen=True, eq=False)
class Loads:
    """Loads and spring rest positions as arrays.

    Attributes:
        point_link, point, force: forces fixed in the world, at points of links (gravity among them).
        torque_link, torque: torques fixed in the world.
        follower_link, follower: wrenches that turn with their link, in its frame.
        rest, tendon_rest: where springs are slack.
        scale: size of the loads as a force, to judge residuals by.
        stops: what enforces joint limits; None if nothing does.
    """

    point_link: NDArray[np.int64]
    point: Floats
    force: Floats
    torque_link: NDArray[np.int64]
    torque: Floats
    follower_link: NDArray[np.int64]
    follower: Floats
    rest: Floats
    tendon_rest: Floats
    scale: float
    stops: Stops | None = None

    def at(self, m: Mechanism, fraction: float) -> Loads:
        """These loads partly applied: 0 is the reference pose in balance, 1 all of them."""
        if fraction == 1.0:
            return self
        rest = m.reference + fraction * (self.rest - m.reference)
        balls = _quaternions(m)
        turn = fraction * spatial.quat_log(_relative(m.reference[balls], self.rest[balls]))
        rest[balls] = spatial.quat_multiply(m.reference[balls], spatial.quat_exp(turn))
        start = tendon_lengths(m, m.reference, rest)
        return Loads(
            self.point_link,
            self.point,
            fraction * self.force,
            self.torque_link,
            fraction * self.torque,
            self.follower_link,
            fraction * self.follower,
            rest,
            start + fraction * (self.tendon_rest - start),
            self.scale,
            self.stops,
        )


def tendon_lengths(m: Mechanism, q: Floats, rest: Floats) -> Floats:
    """`sum(coefficient * coordinate)` of every tendon; a ball's coordinates are its rotation vector from rest."""
    return m.tendons.dense(m.nv) @ spring_coordinates(m, q, rest) if len(m.tendons) else np.zeros(0)


def spring_coordinates(m: Mechanism, q: Floats, rest: Floats) -> Floats:
    """Per dof: the coordinate of a hinge or slide, the rotation vector from rest of a ball."""
    x = q[m.dof_coordinate]
    balls = _quaternions(m)
    x[m.dof_kind == BALL] = spatial.quat_log(_relative(rest[balls], q[balls])).ravel()
    return x


def coordinate_difference(m: Mechanism, start: Floats, end: Floats) -> Floats:
    """The tangent vector that moves `start` to `end`, (nv,)."""
    straight = end[m.dof_coordinate] - start[m.dof_coordinate]
    return np.where(m.dof_kind == BALL, spring_coordinates(m, end, start), straight)


def chart(m: Mechanism, start: Floats, end: Floats, motions: Floats) -> tuple[Floats, Floats]:
    """The tangent vector from `start` to `end`, and how it changes with motions at `end`, (nv, columns).

    For hinges and slides that is the motion itself; the rotation vector of a ball that has turned already changes by
    the inverse right Jacobian.
    """
    shift, change = coordinate_difference(m, start, end), motions.copy()
    for d in m.primitive_dof[m.ball_primitives].tolist():
        change[d : d + 3] = spatial.so3_right_jacobian_inverse(shift[d : d + 3]) @ motions[d : d + 3]
    return shift, change


def _quaternions(m: Mechanism) -> NDArray[np.int64]:
    """Where the quaternions of all balls are in q, (balls, 4)."""
    return m.primitive_coordinate[m.ball_primitives][:, None] + np.arange(4)


def _relative(a: Floats, b: Floats) -> Floats:
    return spatial.quat_multiply(spatial.quat_conjugate(a), b)


def _numbers(value: Any, shape: tuple[int, ...], what: str) -> Floats:
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: numbers expected, not {value!r}") from None
    if numbers.shape != shape:
        raise InputError(f"{what}: {shape[0]} numbers expected, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise InputError(f"{what} is not finite")
    return numbers


def collect_loads(
    m: Mechanism, wrenches: Mapping[str, Any] | None, gravity: ArrayLike | None, limits: bool = False
) -> Loads:
    """Loads from public arguments; see `pliant.equilibrium`."""
    if wrenches is not None and not isinstance(wrenches, Mapping):
        raise InputError("wrenches: a mapping {body: wrench} expected")
    point_link, point, force, torque_link, torque, follower_link, follower = [], [], [], [], [], [], []
    for body, value in (wrenches or {}).items():
        index = m.body_index(body)
        if index < 0:
            raise InputError("a wrench on the world moves nothing: name a body")
        link = int(m.links.body_link[index])
        f, t, at, frame = Load.parse(value, body)
        if frame == "body":
            follower_link.append(link)
            follower.append(np.concatenate([f, t + np.cross(at, f)]))
            continue
        if f.any():
            point_link.append(link)
            point.append(at)
            force.append(f)
        if t.any():
            torque_link.append(link)
            torque.append(t)
    scale = sum(float(np.linalg.norm(f)) for f in force)
    scale += sum(float(np.linalg.norm(t)) for t in torque) / m.radius
    scale += sum(float(np.linalg.norm(w[:3]) + np.linalg.norm(w[3:]) / m.radius) for w in follower)
    rest, tendon_rest = m.reference, tendon_lengths(m, m.reference, m.reference)
    if gravity is not None:
        g = _numbers(gravity, (3,), "gravity")
        heavy = np.flatnonzero(m.mass > 0) if g.any() else np.zeros(0, dtype=int)
        point_link += m.links.body_link[heavy].tolist()
        point += list(m.com[heavy])
        force += list(m.mass[heavy, None] * g)
        rest, tendon_rest = m.rest, m.tendon_rest
        scale += m.total_mass * float(np.linalg.norm(g)) + _preload(m)
    return Loads(
        np.array(point_link, dtype=np.int64),
        np.array(point).reshape(-1, 3),
        np.array(force).reshape(-1, 3),
        np.array(torque_link, dtype=np.int64),
        np.array(torque).reshape(-1, 3),
        np.array(follower_link, dtype=np.int64),
        np.array(follower).reshape(-1, 6),
        rest,
        tendon_rest,
        float(scale),
        make_stops(m) if limits else None,
    )


def _preload(m: Mechanism) -> float:
    """Size of the spring forces at the reference pose, as a force."""
    x = spring_coordinates(m, m.reference, m.rest)
    stretch = x - np.where(m.dof_kind == BALL, 0.0, m.rest[m.dof_coordinate])
    lever = np.where(m.dof_kind == 1, 1.0, m.radius)
    own = float(np.abs(m.stiffness * stretch / lever).max(initial=0.0))
    rows = m.tendons.dense(m.nv) if len(m.tendons) else np.zeros((0, m.nv))
    tension = m.tendon_stiffness * (rows @ x - m.tendon_rest)
    return own + float(np.abs(rows * tension[:, None] / lever).max(initial=0.0))
