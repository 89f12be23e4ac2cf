"""`equilibrium`: the nonlinear static solution, by a globalised Newton method with geometric stiffness.

The method itself is compiled (`newton_kernels`); here are its arguments, its result, and the reason where it fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism
from pliant.mechanism.loop_closure import open_loops
from pliant.statics import newton_kernels as kernels
from pliant.statics.arrays import Cases
from pliant.statics.configuration import Configuration
from pliant.statics.limit_springs import sharper_stops, typical_stiffness
from pliant.statics.loads import Loads, collect_loads
from pliant.statics.newton_kernels import RESULTS
from pliant.statics.tangent import Tangent
from pliant.statics.workspace import borrow_statics

__all__ = [
    "STABILITIES",
    "beside_springs",
    "check_mechanism",
    "check_size",
    "equilibrium",
    "explain",
    "starting_point",
    "unloaded_scale",
    "within_limits",
]

Floats = NDArray[np.float64]
STABILITIES = ("stable", "neutral", "unstable")  # STABLE, NEUTRAL, UNSTABLE of the kernels
_LARGEST = 1e14  # load per stiffness
_NO_ROWS = np.zeros((0, kernels.LOAD_SIZE))


def equilibrium(
    mechanism: Mechanism,
    wrenches: Mapping[str, Any] | None = None,
    *,
    gravity: ArrayLike | None = None,
    start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None = None,
    limits: bool = False,
) -> Configuration:
    """The static equilibrium of a mechanism under load, fully nonlinear: springs, gravity, loops, couplings.

    Args:
        mechanism: the mechanism.
        wrenches: `{body: wrench}`. A wrench is a force (3 numbers), a force and a torque (6), or a mapping
            with `force`, `torque`, `point` (where the force acts, body frame; the body's origin if not given)
            and `frame`. With frame "world" (default) force and torque keep their world directions as the body
            moves; with "body" they turn with it.
        gravity: None (default): gravity is compensated and the reference pose is the rest pose. A vector, for
            instance `(0, 0, -9.81)`: the mechanism sags under its weight, and springs act about their own
            rest positions.
        start: where to start from, such as a nearby equilibrium. By default the load is applied gradually
            from the reference pose. Loops that are open there are closed first.
        limits: enforce joint limits, by joints that stiffen near them: a thousandfold at the limit, beginning 5 % of
            the range before it (see docs/statics.md). Otherwise joints pass them, and
            `Configuration.beyond_limits` names those that did.

    Returns:
        The `Configuration`, which says whether the equilibrium is stable.

    Raises:
        ConvergenceError: no equilibrium was found; the error carries the last residual and configuration.
    """
    m = check_mechanism(mechanism)
    loads = _with_scale(m, collect_loads(m, wrenches, gravity, limits))
    check_size(m, loads.scale)
    found = _settle(m, loads, start)
    found.wrenches = dict(wrenches or {})
    found.gravity = None if gravity is None else tuple(np.asarray(gravity, dtype=float).tolist())
    return found


def _settle(
    m: Mechanism, loads: Loads, start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None
) -> Configuration:
    """The equilibrium with loads that are checked."""
    begin, forces = starting_point(m, start)
    given, results = loads.arrays, np.empty((1, RESULTS))
    cases = Cases(
        given.rows,
        np.array([0, len(given.rows)]),
        _NO_ROWS,
        np.array(m.reference)[None],
        given.rest[None],
        given.tendon_rest[None],
        given.stops,
        np.array([loads.scale]),
    )
    q, multipliers = np.empty((1, m.nq)), np.empty((1, len(forces)))
    answers, room = (q, multipliers, results), np.empty_like(given.rows)
    with borrow_statics(m) as arrays:
        kernels.find_equilibria(*arrays, cases, room, 0, 1, begin, forces, start is not None, False, *answers)
    found = Configuration.known(m, q[0], multipliers[0], loads)
    residual, stability, iterations, state = results[0].tolist()
    found.residual, found.iterations = residual, int(iterations)
    if state != kernels.CONVERGED:
        raise explain(found, state)
    found.stability = STABILITIES[int(stability)]
    return found


def within_limits(
    mechanism: Mechanism,
    wrenches: Mapping[str, Any] | None = None,
    gravity: ArrayLike | None = None,
    start: Configuration | None = None,
) -> Configuration:
    """The equilibrium under load, with joint limits where it would pass some without: almost as hard stops have it.

    Joints go to within some thousandths of the range of their limits; where no such equilibrium is found, to within the
    usual margin, as with `equilibrium(..., limits=True)`. Limits that the reference pose is beyond already, and that
    the load does not take joints farther beyond, do not count as passed.
    """
    free = equilibrium(mechanism, wrenches, gravity=gravity, start=start)
    if not free.passed_limits:
        return free
    soft = found = equilibrium(mechanism, wrenches, gravity=gravity, start=start, limits=True)
    try:
        for stops in sharper_stops(mechanism):
            loads = _with_scale(mechanism, collect_loads(mechanism, wrenches, gravity))
            found = _settle(mechanism, replace(loads, stops=stops), found)
    except ConvergenceError:
        return soft
    found.wrenches, found.gravity = soft.wrenches, soft.gravity
    return found


def check_mechanism(mechanism: Any) -> Mechanism:
    """The mechanism, or an `InputError` if it is none."""
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"a Mechanism expected, not {type(mechanism).__name__}")
    return mechanism


def _with_scale(m: Mechanism, loads: Loads) -> Loads:
    """The loads; without any, the reference pose is in balance, and springs alone set the scale."""
    return loads if loads.scale else replace(loads, scale=unloaded_scale(m))


def unloaded_scale(m: Mechanism) -> float:
    """Unit of residuals of a mechanism without loads, N."""
    return typical_stiffness(m) / m.radius


def check_size(m: Mechanism, load: float, what: str = "the load") -> None:
    """Refuse a load, N, next to which springs vanish in rounding: no answer would mean anything.

    Raises:
        ConvergenceError: it is that large; the message says how many times the springs.
    """
    ratio = load / unloaded_scale(m)
    if not ratio <= _LARGEST:
        raise ConvergenceError(
            f"{what} on '{m.name}', {load:.3g} N, is {ratio:.2g} times what its springs hold at one radian: springs "
            f"vanish in rounding beyond {_LARGEST:.0e} times; are the units newtons and metres?",
            1.0,
        )


def beside_springs(m: Mechanism, load: float) -> str:
    """A load, N, next to the springs of a mechanism, in words."""
    ratio = load / unloaded_scale(m)
    return f"the largest load, {load:.3g} N, is {ratio:.2g} times what its springs hold at one radian"


def starting_point(
    m: Mechanism, start: Configuration | Mapping[str, ArrayLike] | ArrayLike | None
) -> tuple[Floats, Floats]:
    """Coordinates (nq,) and constraint forces (6 loops + couplings,) of the argument `start`."""
    forces = np.zeros(6 * m.topology.loops + len(m.couplings))
    if start is None:
        return np.array(m.reference), forces
    if not isinstance(start, Configuration):
        return np.array(Configuration(m, start).q), forces
    if start.mechanism is not m and start.mechanism.joint_names != m.joint_names:
        raise InputError("start is a configuration of another mechanism")
    if start.multipliers.shape == forces.shape:
        forces[:] = start.multipliers
    q = start.q if start.mechanism is m else Configuration(m, start.q).q
    return np.array(q), forces


def explain(last: Configuration, state: float) -> ConvergenceError:
    """The error that says why there is no equilibrium, if it can be told; `last` is where the search ended."""
    m, error = last.mechanism, last.residual
    assert last.loads is not None
    assert error is not None
    if state == kernels.OPEN_LOOPS:
        return open_loops(m, error)
    t = Tangent(m, last.q, last.loads, last.multipliers)
    shift, fallback = 0.0, last.loads.scale * m.radius
    while t.factor(shift, fallback=fallback) > 0 and shift < 1e8:
        shift = max(4 * shift, 1e-3)
    loose = t.softest_motion()[1]
    weight = np.abs(loose) / np.abs(loose).max()
    culprits = [m.dof_names[d] for d in np.argsort(-weight)[:5] if weight[d] > 0.2 and m.stiffness[d] == 0]
    where = (
        f"the equilibrium of '{m.name}' was not found: the unbalanced force is still {error:.2g} of the load"
    )
    if culprits and float(np.abs(t.residual @ loose)) > 1e-6 * float(np.abs(t.residual) @ np.abs(loose)):
        names = ", ".join(f"'{name}'" for name in culprits)
        joint = int(m.dof_joint[m.dof_index(culprits[0])])
        if joint in m.floating:
            base = m.body_names[m.joint_children[joint]]
            where += f"; the load drives '{base}', which floats: hold it with `with_fixed_base`"
        else:
            where += (
                f"; the load drives {names}, which no spring holds: give them stiffness with `with_stiffness`"
            )
    else:
        where += "; apply less load, stiffen the joints, or start from a configuration nearer to the answer"
    return ConvergenceError(where, residual=error, configuration=last)
