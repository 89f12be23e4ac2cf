"""Levels of detail: from a reduced or blended model to the whole mechanism and back, in the middle of a motion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.constrained import ConstrainedSimulation
from pliant.engines.constrained.midpoint import Midpoint
from pliant.engines.reduced import BlendedModel, ReducedModel, ReducedSimulation
from pliant.engines.violation import Violation
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.assembly import close_loops
from pliant.statics import Configuration

__all__ = ["Detail", "Level", "Simulation", "carry_over", "mechanism_of"]

Floats = NDArray[np.float64]
Simulation = ReducedSimulation | ConstrainedSimulation
Level = ReducedModel | BlendedModel | Mechanism


@dataclass(eq=False)
class Detail:
    """Levels of one mechanism from coarse to fine, and how they are chosen.

    Attributes:
        levels: models or mechanisms.
        error: allowed, m.
        every: steps between two looks.
        now: the level in use.
        wait: steps until the next look.
    """

    levels: tuple[Level, ...]
    error: float
    every: int
    now: int = 0
    wait: int = 0
    violation: Violation = field(default_factory=Violation)
    trial: Simulation | None = None


def mechanism_of(what: Level | Simulation) -> Mechanism:
    """The mechanism of a level; of a model with a floating base, with that fixed."""
    if isinstance(what, ReducedSimulation):
        return what.model.mechanism
    return what if isinstance(what, Mechanism) else what.mechanism


def carry_over(old: Simulation, new: Simulation) -> None:
    """Let `new` go on where `old` is: time, joints, velocities, a floating base, wrenches, motors.

    Raises:
        InputError: they are of different mechanisms, or a wrench or motor has no place in `new`.
    """
    a, b = mechanism_of(old), mechanism_of(new)
    if (a.body_names, a.joint_names) != (b.body_names, b.joint_names):
        raise InputError(f"switch: '{b.name}' is another mechanism than '{a.name}'")
    wrenches, torques = _wrenches(old), _torques(old)
    if isinstance(new, ReducedSimulation):
        _check_loads(wrenches, torques, new)
        _into_model(old, new)
    else:
        _into_mechanism(old, new)
    new.clear_wrenches()
    new.clear_motors()
    for body, words in wrenches.items():
        new.apply_wrench(body, **words)
    for dof, torque in torques.items():
        new.set_motor(dof, torque=torque)


def _wrenches(simulation: Simulation) -> dict[str, dict[str, Any]]:
    """What `apply_wrench` was told, per body."""
    if isinstance(simulation, ConstrainedSimulation):
        return dict(simulation._given)
    out: dict[str, dict[str, Any]] = {}
    for body, given in zip(simulation.model.end_effectors, simulation._wrenches.copy(), strict=True):
        if given[:9].any():
            out[body] = {"force": given[:3], "torque": given[3:6], "point": given[6:9]}
        elif given[15]:
            out[body] = {"force": given[9:12], "torque": given[12:15], "frame": "body"}
    return out


def _torques(simulation: Simulation) -> dict[str, float]:
    """Of motors, per dof."""
    if isinstance(simulation, ReducedSimulation):
        found: Floats | None = simulation._motors.torque
    else:
        stepper = simulation._stepper
        found = stepper.torques if isinstance(stepper, Midpoint) else np.zeros(0)
    if found is None:
        raise InputError(
            "switch: motors that hold a target or a velocity cannot go along: clear_motors first"
        )
    names = mechanism_of(simulation).dof_names
    return {names[i]: float(found[i]) for i in np.flatnonzero(found)}


def _check_loads(wrenches: dict[str, Any], torques: dict[str, float], new: ReducedSimulation) -> None:
    for body in wrenches:
        if body not in new.model.end_effectors:
            raise InputError(
                f"switch: a wrench acts on '{body}', which is no end effector of the model: clear it first"
            )
    if torques and isinstance(new.model, BlendedModel):
        raise InputError("switch: a blend takes no motors: clear_motors first")
    for dof in torques:
        if dof not in new.model.mechanism.dof_names:
            raise InputError(f"switch: a motor drives '{dof}', which the model has not: clear it first")


def _motion(simulation: Simulation) -> tuple[Floats, Floats]:
    """Joint coordinates and velocities."""
    if isinstance(simulation, ConstrainedSimulation):
        return simulation.q, simulation.velocity
    c, y = simulation._coordinates, simulation._y
    return c.joints(y), c.joint_rates(y, simulation._v)


def _match(
    a: Mechanism, q: Floats, rates: Floats, b: Mechanism, out_q: Floats, out_rates: Floats
) -> list[int]:
    """Copy what joints of `a` do to those of `b`; returns those that move in `b` alone, or in `a` alone."""
    other = []
    for j in range(b.joint_count):
        here, there = a.joint_coordinates(j), b.joint_coordinates(j)
        if here.stop - here.start == there.stop - there.start:
            out_q[there], out_rates[b.joint_dofs(j)] = q[here], rates[a.joint_dofs(j)]
        else:
            other.append(j)
    return other


def _into_model(old: Simulation, new: ReducedSimulation) -> None:
    """Coordinates of the model that come nearest."""
    m = new.model.mechanism
    q, rates = m.reference.copy(), np.zeros(m.nv)
    other = _match(mechanism_of(old), *_motion(old), m, q, rates)
    base = new.model.base
    if other and (base is None or any(m.body_names[m.joint_children[j]] != base.body for j in other)):
        raise InputError("switch: the base of the model is fixed, and that of the mechanism moves")
    new._y[:], new._v[:] = new._coordinates.from_joints(q, rates)
    new._state[0] = old.time
    if base is not None:
        new.move_base(old.pose(base.body), *_base_velocity(old, base.body, new))
    new._reconstruct()


def _base_velocity(old: Simulation, body: str, new: ReducedSimulation) -> tuple[Floats, Floats]:
    """Velocity of the centre of mass that `new` keeps, were it fixed to the base, and angular velocity."""
    if isinstance(old, ReducedSimulation):
        return old.base_velocity[:3], old.base_velocity[3:]
    twist = old.twist(body)
    arm = old.pose(body)[:3, :3] @ new.base_centre
    return twist[:3] + np.cross(twist[3:], arm), twist[3:]


def _into_mechanism(old: Simulation, new: ConstrainedSimulation) -> None:
    """Joints as they are, loops closed."""
    m = new.mechanism
    q, rates = m.reference.copy(), np.zeros(m.nv)
    other = _match(mechanism_of(old), *_motion(old), m, q, rates)
    for j in other:
        pose = old.pose(m.body_names[m.joint_children[j]]) @ m.child_frames[j]
        inner = spatial.se3_inverse(m.parent_frames[j]) @ pose
        q[m.joint_coordinates(j)] = np.concatenate([inner[:3, 3], spatial.quat_from_matrix(inner[:3, :3])])
    new.q = close_loops(m, q)
    if other and isinstance(old, ReducedSimulation) and old.model.base is not None:
        body = old.model.base.body
        pose, v = old.pose(body), old.base_velocity
        velocity = v[:3] + np.cross(v[3:], pose[:3, 3] - old._base[:3])
        twist = np.concatenate([velocity @ pose[:3, :3], v[3:] @ pose[:3, :3]])
        dofs = np.concatenate([np.arange(m.nv)[m.joint_dofs(j)] for j in other])
        rates[dofs] = np.linalg.lstsq(Configuration(m, new.q).jacobian(body)[:, dofs], twist, rcond=None)[0]
    new.velocity = rates
    new._time = old.time
