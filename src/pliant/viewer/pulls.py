"""`Pull`: a spring from a point of a body to a point in the world, as a mouse or a target pulls.

The force is explicit: it is computed before a step and stays during it. How stiff such a spring may be depends on what
hangs on its end: with W, the change of the point's velocity per impulse in a step of length h, it is stable below
about `1 / (h² W)`; a fraction of that is the most, so heavy bodies may be pulled harder than light ones. Where the
mechanism's own springs are softer than that, three times their stiffness is enough: the point then follows most of the
way, and a target that it cannot reach does not tear it apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.reduced import ReducedSimulation
from pliant.errors import InputError, PliantError
from pliant.mechanism import Mechanism
from pliant.statics import Configuration, equilibrium

__all__ = ["Pull", "balance", "loads", "mobility", "settle", "softness", "vector"]

Floats = NDArray[np.float64]
_SHARE = 0.25  # of the stiffest stable spring
_FOLLOW = 3.0  # times the softest stiffness at the point
_PACE = 30.0  # rad/s: how fast a body that no spring holds follows
_DAMPING = 0.5  # of critical
_FAR = 1e9  # m: no place to pull to
_ROUNDS = 8  # of springs and equilibrium
_LARGE = 100_000  # dofs: up to this, softness is computed: 40 ms for 13,000
_DENSE = 300  # dofs: up to this, mobility is computed exactly


@dataclass
class Pull:
    """A spring on a point of a body.

    Attributes:
        body, index: what is pulled.
        point: where, in the body's frame.
        target: where to, world.
        reach: the spring does not pull harder than when stretched by this much, m.
        stiffness, damping: N/m and N s/m.
        place: where the point is, world.
        force: on the point, N, world.
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
        """Choose stiffness and damping for what hangs on the point; no damping where nothing has a velocity.

        Args:
            mobility: see there, 1/kg.
            softness: see there, m/N.
            h: length of a step, s.
            strength: by what to multiply, at most 2.
            moving: whether there are velocities.
        """
        wanted = _FOLLOW / softness if softness > 0 else _PACE**2 / mobility
        self.stiffness = strength * min(wanted, _SHARE / (h * h * mobility))
        self.damping = 2 * _DAMPING * np.sqrt(self.stiffness / mobility) if moving else 0.0

    def at(self, poses: Floats) -> Floats:
        """Where the point is when bodies are at these poses."""
        return poses[self.index, :3, :3] @ self.point + poses[self.index, :3, 3]

    def update(self, poses: Floats, h: float | None) -> None:
        """The force at these poses, `h` after the last; None: at rest there."""
        before, self.place = self.place, self.at(poses)
        velocity = np.zeros(3) if h is None else (self.place - before) / h
        stretch = self.target - self.place
        stretch *= min(1.0, self.reach / max(float(np.linalg.norm(stretch)), 1e-300))
        self.force = self.stiffness * stretch - self.damping * velocity


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
    """Forces of pulls as wrenches, one per body."""
    out: dict[str, dict[str, Any]] = {}
    for pull in pulls:
        if pull.body not in out:
            out[pull.body] = {"force": pull.force, "point": pull.point}
            continue
        # Several on one body: their sum, at the origin, and their torque.
        first = out[pull.body]
        turn = poses[pull.index, :3, :3]
        torque = first.get("torque", np.zeros(3)) + np.cross(turn @ first["point"], first["force"])
        torque = torque + np.cross(turn @ pull.point, pull.force)
        out[pull.body] = {"force": first["force"] + pull.force, "torque": torque, "point": np.zeros(3)}
    return out


def mobility(simulation: Any, m: Mechanism, body: str, point: Floats) -> float:
    """Largest change of a point's velocity at the end of the next step per impulse during it, 1/kg."""
    if isinstance(simulation, ReducedSimulation):
        found = simulation.impulse_response(body, point)
    elif m.nv <= _DENSE:
        found = _response(simulation.configuration, body, point, simulation.timestep)
    else:
        found = np.zeros((3, 3))
    value = float(np.linalg.eigvalsh((found + found.T) / 2).max()) if np.isfinite(found).all() else 0.0
    if value > 0:
        return value
    # Too large to ask. A rod hit at its end is a third as heavy as it is; and what springs hold gives way in a step no
    # more than it does at rest: J (M + h D + h² K)^-1 J^T <= J K^-1 J^T / h².
    light = 3.0 / max(float(m.mass[m.body_index(body)]), 1e-9 * m.total_mass, 1e-12)
    soft = softness(simulation, m, body, point)
    return min(light, soft / simulation.timestep**2) if soft > 0 else light


def softness(simulation: Any, m: Mechanism, body: str, point: Floats) -> float:
    """Largest displacement of a point at rest per force on it, m/N; 0 if not known, or if no springs hold it."""
    if m.nv > _LARGE:
        return 0.0
    try:
        compliance = simulation.configuration.compliance(body)
    except PliantError:
        return 0.0
    lever = np.hstack([np.eye(3), -spatial.hat(point)])
    found = lever @ compliance @ lever.T
    return float(np.linalg.eigvalsh((found + found.T) / 2).max()) if np.isfinite(found).all() else 0.0


def _response(at: Configuration, body: str, point: Floats, h: float) -> Floats:
    """`J (M + h D + h² K)^-1 J^T` with loops kept closed, world axes, (3, 3)."""
    m = at.mechanism
    jacobian = at.jacobian(body, "world")
    arm = at.pose(body)[:3, :3] @ point
    rows = jacobian[:3] - spatial.hat(arm) @ jacobian[3:]
    matrix = at.mass_matrix() + h * m.damping_matrix + h * h * m.stiffness_matrix
    matrix += 1e-9 * np.diag(matrix).max() * np.eye(m.nv)  # pins of loops move no mass of their own
    constraints = at.loop_jacobian
    both = np.linalg.solve(matrix, np.concatenate([rows, constraints]).T)
    out = rows @ both[:, :3]
    if len(constraints):
        across = constraints @ both[:, :3]
        out -= across.T @ np.linalg.lstsq(constraints @ both[:, 3:], across, rcond=1e-9)[0]
    return out


def balance(pulls: list[Pull], found: Configuration) -> float:
    """One Newton step towards forces that agree with where an equilibrium under them puts the points.

    Springs give way as the mechanism does; its compliance tells how much. Returns the relative change of the forces.
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
    """The true equilibrium of a mechanism with springs pulling at it, from where it is. The pulls stay as they are.

    Springs let go as the mechanism follows, so forces and equilibrium are found together.
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
