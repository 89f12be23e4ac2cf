"""Loads: wrenches on bodies, gravity, springs and their rest positions.

`Load` is one wrench on one body, parsed once from the caller's argument; kernels of all engines take it as a row of
numbers (`load_kernels`). `Loads` holds all loads of a static problem as arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.checks import flag, length, mapping
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.statics.arrays import Given
from pliant.statics.limit_springs import Stops, make_stops
from pliant.statics.load_kernels import (
    ACTS,
    FOLLOWER_FORCE,
    FOLLOWER_TORQUE,
    FORCE,
    LINK,
    LOAD_SIZE,
    POINT,
    TORQUE,
    carry_rows,
)
from pliant.statics.per_mechanism import per_mechanism
from pliant.text import brief

__all__ = [
    "LOAD_SIZE",
    "Load",
    "Loads",
    "chart",
    "collect_loads",
    "coordinate_difference",
    "load_rows",
    "loaded_body",
    "loads_without_wrenches",
    "parse_wrenches",
    "row_sizes",
    "spring_coordinates",
    "tendon_lengths",
]

Floats = NDArray[np.float64]
_WORDS = frozenset(("force", "torque", "point", "frame"))
_ZERO = np.zeros(3)
_ZERO.flags.writeable = False
_THREE = (3,)
_array, _FLOAT, _tuple = np.array, np.float64, tuple.__new__
_WORLD_ROW = Struct(f"=24s24s24s{8 * (ACTS - FOLLOWER_FORCE)}s2d")  # bytes of vectors, then numbers
_NO_FOLLOWER = bytes(8 * (ACTS - FOLLOWER_FORCE))


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
        if not (isinstance(frame, str) and (frame == "world" or frame == "body")):
            raise InputError(f"wrench on {_quoted(body)}: frame is 'world' or 'body', not {brief(frame)}")
        parts = (
            _ZERO if force is None else _vector(force, "force", body, copies),
            _ZERO if torque is None else _vector(torque, "torque", body, copies),
            _ZERO if point is None else _vector(point, "point", body, copies),
            frame,
        )
        return _tuple(cls, parts)  # as `cls(*parts)`, in two thirds of the time

    @classmethod
    def parse(cls, value: Any, body: str) -> Load:
        """A load from 3 or 6 numbers (force, torque; world axes, at the origin) or a mapping of the words above."""
        if isinstance(value, Load):
            return cls.of(body, *value)
        if not isinstance(value, Mapping):
            numbers = _numbers(value, (3,) if length(value) == 3 else (6,), f"wrench on {_quoted(body)}")
            return cls(numbers[:3], numbers[3:] if len(numbers) == 6 else _ZERO, _ZERO)
        unknown = value.keys() - _WORDS
        if unknown:
            raise InputError(
                f"wrench on {_quoted(body)}: unknown word {min(map(str, unknown))!r}; use force, torque, point, frame"
            )
        return cls.of(body, **value)

    def combined(self, share: float, other: Load, its_share: float) -> Load:
        """Sum of shares of this load and of another one at the same point, in the same axes."""
        force, torque = (
            share * self.force + its_share * other.force,
            share * self.torque + its_share * other.torque,
        )
        return Load(force, torque, self.point, self.frame)

    def row(self) -> Floats:
        """Row of the load in the body's frame, (LOAD_SIZE,); columns: `load_kernels`."""
        out = np.zeros(LOAD_SIZE)
        self.write(out)
        return out

    def write(self, out: Floats, link: int = 0) -> None:
        """Write the row of a load on this link into `out`, (LOAD_SIZE,) or (copies, LOAD_SIZE)."""
        f, t, p, frame = self
        if frame == "world" and out.ndim == 1:
            self.write_world(out.data, link, self.acts)
            return
        out[...] = 0.0
        if frame == "world":
            out[..., FORCE:TORQUE], out[..., TORQUE:POINT], out[..., POINT:FOLLOWER_FORCE] = f, t, p
        else:
            out[..., FOLLOWER_FORCE:FOLLOWER_TORQUE] = f
            out[..., FOLLOWER_TORQUE:ACTS] = t if p is _ZERO else t + np.cross(p, f)
        out[..., ACTS] = self.acts if out.ndim == 1 else out.any(axis=-1)
        out[..., LINK] = link

    def write_world(self, out: memoryview, link: int, acts: bool) -> None:
        """Write the row of a load in world axes, which `acts` or not, to the numbers of a row: 0.2 µs."""
        f, t, p, _ = self
        _WORLD_ROW.pack_into(out, 0, f.tobytes(), t.tobytes(), p.tobytes(), _NO_FOLLOWER, acts, link)

    @property
    def acts(self) -> bool:
        """Whether force or torque of one load is not zero."""
        force, torque, _, _ = self
        return any(force.tolist()) or (torque is not _ZERO and any(torque.tolist()))


def _quoted(body: Any) -> str:
    """A body's name in quotes; of what is no name, what can be shown."""
    return f"'{body}'" if isinstance(body, str) else brief(body)


def _vector(value: Any, word: str, body: str, copies: int | None) -> Floats:
    try:
        numbers = _array(value, _FLOAT)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{word} on {_quoted(body)}: numbers expected, not {brief(value)}") from None
    if numbers.shape == _THREE:
        x, y, z = numbers.tolist()  # Python floats: several times faster than numpy for three numbers
        finite = isfinite(x + y + z) or (isfinite(x) and isfinite(y) and isfinite(z))
    elif copies is not None and numbers.shape == (copies, 3):
        finite = bool(np.isfinite(numbers).all())
    else:
        expected = "3 numbers" if copies is None else f"3 numbers, or {copies} times 3,"
        raise InputError(f"{word} on {_quoted(body)}: {expected} expected, got shape {numbers.shape}")
    if not finite:
        raise InputError(f"{word} on {_quoted(body)} is not finite")
    return numbers


@dataclass(frozen=True, eq=False)
class Loads:
    """Loads and spring rest positions as arrays.

    Attributes:
        rows: loads on links and weights of bodies, in link frames, (loads, LOAD_SIZE).
        rest, tendon_rest: joint coordinates (nq,) and tendon lengths at which springs are slack.
        scale: size of the loads as a force, N: the unit of residuals.
        stops: springs that enforce joint limits, or None.
    """

    rows: Floats
    rest: Floats
    tendon_rest: Floats
    scale: float
    stops: Stops | None = None

    def with_rows(self, rows: Floats, scale: float) -> Loads:
        """These loads and others, (loads, LOAD_SIZE), of this size, N."""
        rows = np.concatenate([rows, self.rows]) if len(self.rows) else rows
        return Loads(rows, self.rest, self.tendon_rest, self.scale + scale, self.stops)

    @cached_property
    def arrays(self) -> Given:
        """For kernels."""
        stops = np.zeros((0, 0)) if self.stops is None else self.stops.arrays
        return Given(self.rows, np.array(self.rest), np.array(self.tendon_rest), stops)


def load_rows(loads: Mapping[int, Load], link: NDArray[np.int64], frames: Floats | None = None) -> Floats:
    """Rows of loads by number of body, (loads, LOAD_SIZE), in frames that an engine keeps for its links.

    Args:
        loads: by number of body.
        link: per body, the number for column LINK.
        frames: per body, the pose of its frame in the frame of its row, (bodies, 4, 4); the same frame if None.
    """
    out = np.zeros((len(loads), LOAD_SIZE))
    for row, load in zip(out, loads.values(), strict=True):
        load.write(row)
    body = np.fromiter(loads, dtype=np.int64, count=len(loads))
    out[:, LINK] = link[body]
    if frames is not None:
        carry_rows(out, body, np.ascontiguousarray(frames))
    return out


def tendon_lengths(m: Mechanism, q: Floats, rest: Floats) -> Floats:
    """Lengths of tendons, `sum(coefficient * coordinate)`; a ball's coordinates are its rotation vector from rest."""
    return m.tendons.dense(m.nv) @ spring_coordinates(m, q, rest) if len(m.tendons) else np.zeros(0)


def spring_coordinates(m: Mechanism, q: Floats, rest: Floats) -> Floats:
    """Per dof: the coordinate of a hinge or slide, the rotation vector from rest of a ball."""
    x = q[m.dof_coordinate]
    balls = _quaternions(m)
    x[m.dof_kind == BALL] = spatial.quat_log(_relative(rest[balls], q[balls])).ravel()
    return x


def coordinate_difference(m: Mechanism, start: Floats, end: Floats) -> Floats:
    """Tangent vector from coordinates `start` to `end`, (nv,)."""
    straight = end[m.dof_coordinate] - start[m.dof_coordinate]
    return np.where(m.dof_kind == BALL, spring_coordinates(m, end, start), straight)


def chart(m: Mechanism, start: Floats, end: Floats, motions: Floats) -> tuple[Floats, Floats]:
    """Tangent vector from coordinates `start` to `end`, (nv,), and its change along motions at `end`, (nv, columns).

    For hinges and slides the change is the motion itself, for the rotation vector of a ball the motion times the
    inverse right Jacobian.
    """
    shift, change = coordinate_difference(m, start, end), motions.copy()
    for d in m.primitive_dof[m.ball_primitives].tolist():
        change[d : d + 3] = spatial.so3_right_jacobian_inverse(shift[d : d + 3]) @ motions[d : d + 3]
    return shift, change


def _quaternions(m: Mechanism) -> NDArray[np.int64]:
    """Indices in q of the quaternions of all balls, (balls, 4)."""
    return m.primitive_coordinate[m.ball_primitives][:, None] + np.arange(4)


def _relative(a: Floats, b: Floats) -> Floats:
    return spatial.quat_multiply(spatial.quat_conjugate(a), b)


def _numbers(value: Any, shape: tuple[int, ...], what: str) -> Floats:
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: numbers expected, not {brief(value)}") from None
    if numbers.shape != shape:
        raise InputError(f"{what}: {shape[0]} numbers expected, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise InputError(f"{what} is not finite")
    return numbers


def collect_loads(
    m: Mechanism, wrenches: Mapping[str, Any] | None, gravity: ArrayLike | None, limits: bool = False
) -> Loads:
    """Loads from public arguments; see `pliant.equilibrium`."""
    rows = load_rows(parse_wrenches(m, {} if wrenches is None else wrenches), m.links.body_link)
    always = loads_without_wrenches(m, gravity, limits)
    return always.with_rows(rows, float(row_sizes(m, rows).sum()))


def parse_wrenches(m: Mechanism, wrenches: Mapping[str, Any]) -> dict[int, Load]:
    """Loads by number of body, from `{body: wrench}`."""
    given = {}
    for body, value in mapping(wrenches, "wrenches", "{body: wrench}").items():
        given[loaded_body(m, body)] = Load.parse(value, body)
    return given


def loaded_body(m: Mechanism, body: str) -> int:
    """Number of a body that a wrench acts on."""
    index = m.body_index(body)
    if index < 0:
        raise InputError("a wrench on the world moves nothing: name a body")
    return index


def row_sizes(m: Mechanism, rows: Floats) -> Floats:
    """Size of every load as a force, N, (loads,): torques act at the radius."""
    x, y, z = np.moveaxis(rows[:, :ACTS].reshape(-1, 5, 3), 2, 0)
    with np.errstate(over="ignore"):  # an infinite size is refused
        size = np.hypot(np.hypot(x, y), z)
        return size[:, 0] + size[:, 3] + (size[:, 1] + size[:, 4]) / m.radius


def loads_without_wrenches(m: Mechanism, gravity: ArrayLike | None, limits: bool) -> Loads:
    """Loads that act beside wrenches: weights of bodies, springs under tension, joint limits."""
    stops = make_stops(m) if flag(limits, "limits") else None
    if gravity is None:
        return Loads(np.zeros((0, LOAD_SIZE)), m.reference, _slack_lengths(m), 0.0, stops)
    g = _numbers(gravity, (3,), "gravity")
    heavy = np.flatnonzero(m.mass > 0) if g.any() else np.zeros(0, dtype=int)
    weights = np.zeros((len(heavy), LOAD_SIZE))
    weights[:, FORCE:TORQUE] = m.mass[heavy, None] * g
    weights[:, POINT:FOLLOWER_FORCE] = m.com[heavy]
    weights[:, ACTS], weights[:, LINK] = 1.0, m.links.body_link[heavy]
    scale = m.total_mass * float(np.linalg.norm(g)) + _preload(m)
    return Loads(weights, m.rest, m.tendon_rest, scale, stops)


@per_mechanism
def _slack_lengths(m: Mechanism) -> Floats:
    """Lengths of tendons at the reference pose, where gravity is compensated."""
    return tendon_lengths(m, m.reference, m.reference)


@per_mechanism
def _preload(m: Mechanism) -> float:
    """Size of the spring forces at the reference pose, as a force."""
    x = spring_coordinates(m, m.reference, m.rest)
    stretch = x - np.where(m.dof_kind == BALL, 0.0, m.rest[m.dof_coordinate])
    lever = m.radius / m.dof_unit
    own = float(np.abs(m.stiffness * stretch / lever).max(initial=0.0))
    rows = m.tendons.dense(m.nv) if len(m.tendons) else np.zeros((0, m.nv))
    tension = m.tendon_stiffness * (rows @ x - m.tendon_rest)
    return own + float(np.abs(rows * tension[:, None] / lever).max(initial=0.0))
