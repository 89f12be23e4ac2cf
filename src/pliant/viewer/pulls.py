"""`Pull` and `Springs`: springs from points of bodies to points in the world, as a mouse or a target pulls.

The force is explicit: it is computed before a step and stays constant during it. With W, the change of the point's
velocity per impulse in a step of length h, such a spring is stable up to about `1 / (h² W)`; a fraction of that is the
limit, so that heavy bodies are pulled harder than light ones. Where the mechanism's own springs are softer, three times
their stiffness is enough: the point follows most of the way, and an unreachable target does not tear the body off.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.errors import InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.statics import Configuration, equilibrium

__all__ = ["Pull", "Springs", "balance", "loads", "mobility", "settle", "softness", "vector"]

Floats = NDArray[np.float64]
_SHARE = 0.25  # of the stability limit
_FOLLOW = 3.0  # times the mechanism's smallest stiffness at the point
_PACE = 30.0  # rad/s: frequency of a body that no joint spring holds
_DAMPING = 0.5  # of critical
_FAR = 1e9  # m: limit of coordinates
_ROUNDS = 8  # Newton steps of forces and equilibrium
_LARGE = 100_000  # dofs: up to this, softness is computed (40 ms for 13,000)


@dataclass
class Pull:
    """A spring on a point of a body.

    Attributes:
        body, index: name and index of the body.
        point: the pulled point in the body's frame, m.
        target: where to, world, m.
        reach: stretch at which the force saturates, m.
        stiffness, damping: N/m and N s/m.
        place: the pulled point, world, m.
        force: on the point, world, N.
    """

    body: str
    index: int
    point: Floats
    target: Floats
    reach: float = np.inf
    stiffness: float = 0.0
    damping: float = 0.0
    place: Floats = field(default_factory=lambda: np.zeros(3))
    force: Floats = field(default_factory=lambda: np.zeros(3))

    def fit(self, mobility: float, softness: float, h: float, strength: float, moving: bool) -> None:
        """Choose stiffness and damping.

        Args:
            mobility: of the point, 1/kg; see `mobility`.
            softness: of the point, m/N; see `softness`.
            h: length of a step, s.
            strength: factor on the stiffness, at most 2.
            moving: whether the engine has velocities; else there is no damping.
        """
        wanted = _FOLLOW / softness if softness > 0 else _PACE**2 / mobility
        self.stiffness = strength * min(wanted, _SHARE / (h * h * mobility))
        self.damping = 2 * _DAMPING * np.sqrt(self.stiffness / mobility) if moving else 0.0

    def at(self, poses: Floats) -> Floats:
        """The pulled point in the world, m, with bodies at `poses`."""
        return poses[self.index, :3, :3] @ self.point + poses[self.index, :3, 3]

    def update(self, poses: Floats, h: float | None) -> None:
        """Compute the force at poses a time `h` (s) after the last ones; None: at rest."""
        before, self.place = self.place, self.at(poses)
        velocity = np.zeros(3) if h is None else (self.place - before) / h
        stretch = self.target - self.place
        stretch *= min(1.0, self.reach / max(float(np.linalg.norm(stretch)), 1e-300))
        self.force = self.stiffness * stretch - self.damping * velocity


class Springs(dict[Hashable, Pull]):
    """Pulls by key, fitted to a simulation and applied to it as wrenches before every step.

    Attributes:
        at_rest: velocities of the pulled points are unknown and taken as zero in the next step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.at_rest = True

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the pulled bodies."""
        return tuple(dict.fromkeys(pull.body for pull in self.values()))

    def fit(self, simulation: Any, m: Mechanism, strength: float, anew: bool = False) -> None:
        """Choose stiffness and damping for a simulation; a stiffness nearly as good is kept unless `anew`."""
        h, moving = simulation.timestep, simulation.has_velocities
        for pull in self.values():
            point = simulation, m, pull.body, pull.point
            before = pull.stiffness
            pull.fit(mobility(*point), softness(*point), h, strength, moving)
            if not anew and 0.5 < before / pull.stiffness < 1.5:
                pull.stiffness = before
            pull.update(simulation.poses, None)

    def apply(self, simulation: Any) -> None:
        """Compute the forces of all pulls at the present poses and apply them."""
        poses, h = simulation.poses, None if self.at_rest else simulation.timestep
        for pull in self.values():
            pull.update(poses, h)
        self.at_rest = False
        for body, wrench in loads(list(self.values()), poses).items():
            simulation.apply_wrench(body, **wrench)

    def release(self, key: Hashable, simulation: Any) -> None:
        """End a pull, if it exists."""
        pull = self.pop(key, None)
        if pull is not None and pull.body not in self.bodies:
            simulation.apply_wrench(pull.body, (0, 0, 0))


def vector(value: Any, what: str) -> Floats:
    """Three finite numbers."""
    try:
        out = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what}: three numbers expected, not {value!r:.80}") from None
    if out.shape != (3,) or not (np.abs(out) < _FAR).all():
        raise InputError(f"{what}: three numbers below {_FAR:g} m expected, not {value!r:.80}")
    return out


def loads(pulls: list[Pull], poses: Floats) -> dict[str, dict[str, Any]]:
    """Wrenches of pulls by body, as arguments of `apply_wrench`."""
    out: dict[str, dict[str, Any]] = {}
    for pull in pulls:
        if pull.body not in out:
            out[pull.body] = {"force": pull.force, "point": pull.point}
            continue
        # Several pulls on one body: total force and torque at its origin.
        first = out[pull.body]
        turn = poses[pull.index, :3, :3]
        torque = first.get("torque", np.zeros(3)) + np.cross(turn @ first["point"], first["force"])
        torque = torque + np.cross(turn @ pull.point, pull.force)
        out[pull.body] = {"force": first["force"] + pull.force, "torque": torque, "point": np.zeros(3)}
    return out


def mobility(simulation: Any, m: Mechanism, body: str, point: Floats) -> float:
    """Largest change of a point's velocity over a step per impulse during it, 1/kg."""
    found = simulation.mobility(body, point)
    value = float(np.linalg.eigvalsh((found + found.T) / 2).max()) if np.isfinite(found).all() else 0.0
    if value > 0:
        return value
    return 3.0 / max(float(m.mass[m.body_index(body)]), 1e-9 * m.total_mass, 1e-12)


def softness(simulation: Any, m: Mechanism, body: str, point: Floats) -> float:
    """Largest static displacement of a point per force on it, m/N; 0 if unknown, or if no springs hold it."""
    if m.nv > _LARGE:
        return 0.0
    try:
        compliance = simulation.configuration.compliance(body)
    except PliantError:
        return 0.0
    lever = np.hstack([np.eye(3), -spatial.hat(point)])
    found = lever @ compliance @ lever.T
    return float(np.linalg.eigvalsh((found + found.T) / 2).max()) if np.isfinite(found).all() else 0.0


def balance(pulls: list[Pull], found: Configuration) -> float:
    """Newton step of the pulls' forces towards consistency with the equilibrium under them.

    The mechanism's compliance gives the displacement of the points with the forces. Returns the relative change.
    """
    bodies = list(dict.fromkeys(pull.body for pull in pulls))
    compliance = found.compliance(*bodies)
    rows = np.zeros((3 * len(pulls), 6 * len(bodies)))
    for i, pull in enumerate(pulls):
        turn, e = found.poses[pull.index, :3, :3], 6 * bodies.index(pull.body)
        rows[3 * i : 3 * i + 3, e : e + 6] = np.hstack([turn, -turn @ spatial.hat(pull.point)])
    stiffness = np.repeat([pull.stiffness for pull in pulls], 3)
    force = np.concatenate([pull.force for pull in pulls])
    stretch = np.concatenate([pull.target - pull.at(found.poses) for pull in pulls])
    left = np.eye(len(force)) + stiffness[:, None] * (rows @ compliance @ rows.T)
    change = np.linalg.solve(left, stiffness * stretch - force)
    for pull, part in zip(pulls, change.reshape(-1, 3), strict=True):
        pull.force = pull.force + part
        pull.place = pull.at(found.poses)
    size = float(np.abs(force + change).max())
    return float(np.abs(change).max()) / size if size > 0 else 0.0


def settle(
    pulls: list[Pull], m: Mechanism, q: Floats, poses: Floats, gravity: tuple[float, ...] | None, limits: bool
) -> Configuration:
    """Equilibrium of a mechanism with springs pulling at it, started from q. The pulls are not changed.

    Forces drop as the mechanism follows, so forces and equilibrium are found together.
    """
    trial = [replace(pull) for pull in pulls]
    for pull in trial:
        pull.update(poses, None)
    found = equilibrium(m, loads(trial, poses), gravity=gravity, start=q, limits=limits)
    for _ in range(_ROUNDS):
        if balance(trial, found) < 1e-6:
            break
        found = equilibrium(m, loads(trial, found.poses), gravity=gravity, start=found, limits=limits)
    return found
