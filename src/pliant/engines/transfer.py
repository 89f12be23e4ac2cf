"""`carry_over`: continue one simulation of a mechanism by another, of any engine."""

from __future__ import annotations

from pliant.checks import instance
from pliant.engines.simulation import Simulation
from pliant.errors import InputError, PliantError

__all__ = ["carry_over"]


def carry_over(old: Simulation, new: Simulation) -> None:
    """Copy time, joint coordinates and rates, wrenches, motors and pulls from `old` to `new`.

    The mechanisms have the same bodies and joints; a base that is fixed in `old` may be free in `new`. The motion is
    the nearest that the engine of `new` can express: loops that a reduced model leaves open are closed.

    Raises:
        InputError: they are of different mechanisms, or `new` cannot take a wrench, motor or pull.
    """
    instance(old, Simulation, "carry_over: old")
    instance(new, Simulation, "carry_over: new")
    a, b = old.mechanism, new.mechanism
    if (a.body_names, a.joint_names) != (b.body_names, b.joint_names):
        raise InputError(f"switch: '{b.name}' is another mechanism than '{a.name}'")
    new.reset()
    for body, load in old.wrenches.items():
        try:
            new.apply_wrench(body, load.force, load.torque, point=load.point, frame=load.frame)
        except PliantError:
            raise InputError(
                f"switch: a wrench acts on '{body}', which cannot take one here: clear it first"
            ) from None
    for dof, motor in old.motors.items():
        if dof not in b.dof_names:
            raise InputError(f"switch: a motor drives '{dof}', which the model has not: clear it first")
        if (motor.stiffness or motor.damping) and not new.holds_targets:
            raise InputError(
                "switch: motors that hold a target or a velocity cannot go along: clear_motors first"
            )
        words = {word: value for word, value in motor._asdict().items() if value}
        try:
            new.set_motor(dof, **words)
        except InputError as error:
            raise InputError(f"switch: {error}; clear_motors first") from None
    new.follow(old)
    for pull in old.pulling:
        new.pull(
            pull.body,
            pull.target,
            pull.point,
            frequency=pull.frequency,
            ratio=pull.ratio,
            stiffness=pull.stiffness,
            damping=pull.damping,
            key=pull.key,
        )
