"""`equilibrium`: the nonlinear static solution, by a globalised Newton method with geometric stiffness.

Equilibria are minima of energy among configurations with closed loops. Each iteration takes a Newton step on
the exact derivative of forces (`Tangent`), stiffened until every allowed direction has positive stiffness,
limited in length, put back onto closed loops, and shortened until energy falls. Loads are applied in steps,
as many as it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.loop_closure import close_loops
from pliant.statics.configuration import Configuration
from pliant.statics.inertia import link_twists
from pliant.statics.limit_springs import typical_stiffness
from pliant.statics.load_kernels import ACTS, FOLLOWER_FORCE, FORCE, LINK, POINT, TORQUE
from pliant.statics.loads import Loads, collect_loads
from pliant.statics.tangent import PASSIVE, Tangent

__all__ = ["equilibrium"]

Floats = NDArray[np.float64]

_GOAL = 1e-12  # residual aimed at, as a fraction of the load
_ACCEPTED = 1e-9  # residual accepted when no further progress is possible
_CLOSED = 1e-13  # loop closure aimed at, radians and fractions of the radius
_LONGEST = 0.5  # longest Newton step, radians and fractions of the radius
_FARTHEST = 2.0  # largest rotation of a body per Newton step, rad
_KICK = 0.05  # step along the softest motion at a saddle point, radians and fractions of the radius
_SMALLEST_INCREMENT = 1 / 256  # load increments are not halved below this
_ITERATIONS = 60  # per load step
_LAST_ITERATIONS = 400  # for the last attempt, at full load


@dataclass
class _State:
    """Iterate of the solver."""

    q: Floats
    multipliers: Floats
    iterations: int = 0


class _Solver:
    def __init__(self, m: Mechanism, loads: Loads):
        self.m, self.loads = m, loads
        self.lever = m.radius / m.dof_unit  # torques count as forces at this lever
        self.gap_unit = np.ones(6 * m.topology.loops + len(m.couplings))
        self.gap_unit[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] = m.radius
        self.fallback = loads.scale * m.radius  # typical stiffness of a mechanism without springs

    def error(self, t: Tangent) -> float:
        """Largest unbalanced force as a fraction of the load."""
        return float(np.abs(t.residual / self.lever).max(initial=0.0)) / self.loads.scale

    def open(self, gaps: Floats) -> float:
        """Largest gap, radians and fractions of the radius."""
        return float(np.abs(gaps / self.gap_unit).max(initial=0.0))

    def minimise(self, state: _State, fraction: float, limit: int, guarded: bool) -> bool:
        """Newton's method to the equilibrium under a fraction of the load; False if it does not converge.

        A guarded run fails at once if its first step is longer than _LONGEST, since a smaller load increment
        converges better, and changes `state` on success only.
        """
        m = self.m
        loads = self.loads.at(m, fraction)
        q, multipliers = state.q, state.multipliers
        t = Tangent(m, q, loads, multipliers)
        shift, passive, best, stalled = 0.0, PASSIVE, np.inf, 0
        for iteration in range(limit):
            error, gap = self.error(t), self.open(t.gaps)
            if error <= _GOAL and gap <= _CLOSED:
                break
            stalled = 0 if error + gap < 0.5 * best else stalled + 1
            best = min(best, error + gap)
            if stalled >= 4 and error <= _ACCEPTED and gap <= 1e-11:
                break
            if guarded and stalled > 10:
                return False
            if stalled and shift == 0.0 and error < 1e-4:
                # Near the end, a motion softer than the regularization of spring-less dofs slows convergence.
                passive = max(passive / 10, 1e-9)
            shift = self._factor(t, shift, passive)
            step, change = t.solve(-t.residual, -t.gaps)
            longest = self._length(t, step)
            if not np.isfinite(longest):
                return False
            if guarded and iteration == 0 and longest > _LONGEST:
                return False
            state.iterations += 1
            escape = self._escape(t) if stalled in (4, 8) and shift > 0 else None
            found = escape or self._search(t, step, change, min(1.0, _LONGEST / max(longest, 1e-300)), shift)
            if found is None:
                if error <= _ACCEPTED and gap <= 1e-11:
                    break
                if shift > 1e6:
                    return False
                shift = max(10 * shift, 1e-3)  # shorter, safer steps
                continue
            q, multipliers, t = found
            shift = 0.0 if shift < 1e-4 else shift / 10
            if not guarded:
                state.q, state.multipliers = q, multipliers
        else:
            return False
        state.q, state.multipliers = q, multipliers
        return True

    def _length(self, t: Tangent, step: Floats) -> float:
        """Length of a step: the largest joint motion or body rotation in it, as fractions of the allowed ones."""
        own = float(np.abs(step / self.m.dof_unit).max(initial=0.0))
        twists = link_twists(self.m, t.local, np.ascontiguousarray(step)[None])[0]
        turn = float(np.sqrt((twists[:, 3:] ** 2).sum(axis=1).max(initial=0.0)))
        return max(own, turn * _LONGEST / _FARTHEST)

    def _factor(self, t: Tangent, shift: float, passive: float = PASSIVE) -> float:
        """Factor, stiffened until no allowed direction has negative stiffness."""
        while t.factor(shift, passive, self.fallback) > 0 and shift < 1e8:
            shift = max(4 * shift, 1e-3)
        return shift

    def _search(
        self, t: Tangent, step: Floats, change: Floats, length: float, shift: float
    ) -> tuple[Floats, Floats, Tangent] | None:
        """Line search: the first of 12 halved steps that lowers energy or, near the end, the residual; None if none."""
        m = self.m
        slope = float(t.residual @ step)
        before = self.error(t)
        noise = 1e-13 * (abs(t.energy) + self.loads.scale * m.radius * 1e-3)
        for _ in range(12):
            q = self._close(t, kinematics.move(m, t.q, length * step))
            if q is not None:
                new = Tangent(m, q, t.loads, t.multipliers + length * change)
                gain = new.energy - t.energy - _work(t, new)
                if np.isfinite(gain) and gain <= 1e-4 * length * slope + noise:
                    return q, new.multipliers, new
                # Rounding hides energy differences near the end; there the residual decides.
                if shift == 0.0 and length == 1.0 and self.error(new) < 0.9 * before:
                    return q, new.multipliers, new
            length *= 0.5
        return None

    def _escape(self, t: Tangent) -> tuple[Floats, Floats, Tangent] | None:
        """A small move along the softest motion, if it lowers energy: off a ridge on which symmetry keeps Newton."""
        motion = t.softest_motion()[1]
        for sign in (1.0, -1.0):
            q = self._close(t, kinematics.move(self.m, t.q, sign * _KICK * motion))
            if q is not None:
                new = Tangent(self.m, q, t.loads, t.multipliers)
                if new.energy - t.energy < _work(t, new):
                    return q, new.multipliers, new
        return None

    def _close(self, t: Tangent, q: Floats) -> Floats | None:
        """Close loops and couplings after a finite step, by the last factors; None if they do not close."""
        if not len(t.gaps):
            return q
        previous = np.inf
        for _ in range(12):
            gaps = kinematics.constraint_gaps(self.m, q, kinematics.link_poses(self.m, q))
            gap = self.open(gaps)
            if gap <= _CLOSED or (gap < 1e-11 and gap > 0.3 * previous):
                return q
            if gap > 0.9 * previous or not np.isfinite(gap):
                return None
            previous = gap
            q = kinematics.move(self.m, q, t.solve(np.zeros(self.m.nv), -gaps, refine=False)[0])
        return q if previous < 1e-9 else None

    def run(self, state: _State, warm: bool) -> None:
        """Full load from a warm start, else load steps from the reference pose, else one long last attempt."""
        if warm:
            if self.minimise(state, 1.0, _ITERATIONS, guarded=False):
                return
            state.q, state.multipliers = self.m.reference.copy(), np.zeros_like(state.multipliers)
        done, increment = 0.0, 1.0
        while done < 1.0:
            trial = min(1.0, done + increment)
            if self.minimise(state, trial, _ITERATIONS, guarded=True):
                done, increment = trial, 2 * increment
                continue
            increment = (trial - done) / 4
            if increment < _SMALLEST_INCREMENT:
                break
        if done < 1.0 and not self.minimise(state, 1.0, _LAST_ITERATIONS, guarded=False):
            self._explain(state)

    def _explain(self, state: _State) -> None:
        """Raise the error that says why there is no equilibrium, if it can be told."""
        m = self.m
        t = Tangent(m, state.q, self.loads, state.multipliers)
        error = self.error(t)
        self._factor(t, 0.0)
        loose = t.softest_motion()[1]
        weight = np.abs(loose) / np.abs(loose).max()
        culprits = [
            m.dof_names[d] for d in np.argsort(-weight)[:5] if weight[d] > 0.2 and m.stiffness[d] == 0
        ]
        where = f"the equilibrium of '{m.name}' was not found: the unbalanced force is still {error:.2g} of the load"
        if culprits and float(np.abs(t.residual @ loose)) > 1e-6 * float(np.abs(t.residual) @ np.abs(loose)):
            names = ", ".join(f"'{name}'" for name in culprits)
            where += (
                f"; the load drives {names}, which no spring holds: give them stiffness with `with_stiffness`"
            )
            joint = m.dof_joint[m.dof_index(culprits[0])]
            if m.joint_types[joint] == "free" and m.joint_parents[joint] < 0:
                where += ", or hold the floating base with `with_fixed_base`"
        else:
            where += (
                "; apply less load, stiffen the joints, or start from a configuration nearer to the answer"
            )
        raise ConvergenceError(
            where, residual=error, configuration=_configuration(m, self.loads, state, error)
        )


def _work(old: Tangent, new: Tangent) -> float:
    """Work of the loads from one configuration to the next (along the straightest path, for torques)."""
    rows = old.loads.rows
    link = rows[:, LINK].astype(np.int64)
    change = new.poses[link] - old.poses[link]
    moved = np.einsum("nij,nj->ni", change[:, :3, :3], rows[:, POINT:FOLLOWER_FORCE]) + change[:, :3, 3]
    total = float((rows[:, FORCE:TORQUE] * moved).sum())
    torque, follower = rows[:, TORQUE:POINT], rows[:, FOLLOWER_FORCE:ACTS]
    if torque.any():
        on = torque.any(axis=1)
        turn = new.poses[link[on], :3, :3] @ old.poses[link[on], :3, :3].transpose(0, 2, 1)
        total += float((torque[on] * spatial.so3_log(turn)).sum())
    if follower.any():
        on = follower.any(axis=1)
        relative = spatial.se3_inverse(old.poses[link[on]]) @ new.poses[link[on]]
        total += float((follower[on] * spatial.se3_log(relative)).sum())
    return total


def _stability(m: Mechanism, loads: Loads, state: _State, fallback: float) -> str:
    t = Tangent(m, state.q, loads, state.multipliers, symmetric=True)
    if t.factor(passive=1e-7, fallback=fallback) > 0:
        return "unstable"
    return "stable" if t.free_motion() is None else "neutral"


def _configuration(m: Mechanism, loads: Loads, state: _State, residual: float) -> Configuration:
    found = Configuration(m, state.q)
    t = Tangent(m, state.q, loads, state.multipliers)
    found.residual, found.loads, found.iterations = residual, loads, state.iterations
    found.multipliers = state.multipliers
    found.joint_forces = kinematics.joint_wrenches(m, t.poses, t.wrench)
    return found


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
    m = mechanism
    if not isinstance(m, Mechanism):
        raise InputError(f"a Mechanism expected, not {type(m).__name__}")
    if isinstance(start, Configuration) and start.mechanism.joint_names != m.joint_names:
        raise InputError("start is a configuration of another mechanism")
    loads = collect_loads(m, wrenches, gravity, limits)
    begin = Configuration(m, start.q if isinstance(start, Configuration) else start)
    state = _State(close_loops(m, begin.q.copy()), np.zeros_like(begin.multipliers))
    if isinstance(start, Configuration) and start.multipliers.shape == state.multipliers.shape:
        state.multipliers = start.multipliers.copy()
    if loads.scale == 0.0:
        # Without any load the reference pose is in balance, and springs alone set the scale.
        loads = replace(loads, scale=typical_stiffness(m) / m.radius)
    solver = _Solver(m, loads)
    solver.run(state, warm=start is not None)
    error = solver.error(Tangent(m, state.q, loads, state.multipliers))
    found = _configuration(m, loads, state, error)
    found.stability = _stability(m, loads, state, solver.fallback)
    found.wrenches = dict(wrenches or {})
    found.gravity = None if gravity is None else tuple(np.asarray(gravity, dtype=float).tolist())
    return found
