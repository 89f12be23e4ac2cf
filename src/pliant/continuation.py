"""`path`: equilibria along a growing load or a changing parameter, by pseudo-arclength continuation.

A point of a path is joint coordinates q, constraint forces μ and a factor λ with `r(q, μ, λ) = 0` and closed loops. A
step goes along the tangent of the curve and back onto it in the plane across the tangent (Newton's method for q, μ and
λ together), so it passes limit points, where the load has an extremum and no equilibrium at the next larger load is
near. Each iteration solves twice with the factored `Tangent`: for the residual and for `dr/dλ` (bordering).

A *limit point* is where dλ/ds changes its sign: the load of a snap-through. A *branch point* is where the number of
negative stiffnesses changes and dλ/ds does not: the load of buckling. Both are located by bisection. Other branches
leave a branch point along the motion that meets no stiffness there. At a *multiple* branch point several independent
motions meet none (a column that may buckle in two planes); there, branches leave along some of their combinations.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import choice, number, whole
from pliant.engines.trajectory import Trajectory
from pliant.errors import InputError, PliantWarning
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.joints import HINGE, SLIDE
from pliant.plotting import LEAST, keep_range, panels, save
from pliant.statics import Configuration, equilibrium
from pliant.statics.loads import Load, Loads, collect_loads, coordinate_difference
from pliant.statics.tangent import Tangent
from pliant.text import counted

__all__ = ["Path", "Point", "path"]

Floats = NDArray[np.float64]
_AXES = ("x", "y", "z")
_GOAL = 1e-11  # unbalanced force aimed at, as a fraction of the load; loops in radians and radii
_ACCEPTED = 1e-8  # the same where rounding allows no more
_ROUNDS = 12  # Newton iterations of a step; a step that needs more is halved
_EASY = 4  # iterations after which the next step may be longer
_BEND = 0.2  # rad: largest angle between the tangents of successive points
_SHORTEST = 1e-7  # step, radians and radii
_LOCATED = 1e-9  # how well special points are located along the path, radians and radii
_TOGETHER = 1e-5  # special points closer than this along the path are one multiple point, radians and radii
_NEUTRAL = 1e-7  # stiffness lent to all dofs on branches that a symmetry repeats, of the typical one
_HELD = 1e-7  # stiffness lent to spring-less dofs when negative stiffnesses are counted, of the typical one


_COMPASS = (0, 8, 4, 12, 2, 10, 6, 14, *range(1, 16, 2))  # sixteenths of a turn tried in a plane; axes first
_MOST_SIDES = (
    8  # of branches at a double point, if finitely many: two cubics meet in 9 points, one is the path
)
_MULTIPLE = {1: "", 2: "double ", 3: "triple "}


class Point(NamedTuple):
    """A special point of a path.

    Attributes:
        kind: "limit" or "branch".
        factor: load factor or parameter there.
        index: its number among the points of the path.
        configuration: the equilibrium there.
        motions: independent joint motions that meet no stiffness there, (multiplicity, nv); orthonormal in radians and
            radii, and along single joints as far as possible.
    """

    kind: str
    factor: float
    index: int
    configuration: Configuration
    motions: Floats

    @property
    def multiplicity(self) -> int:
        """Number of independent motions without stiffness: 1, or more where several stiffnesses vanish at once."""
        return len(self.motions)


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Equilibria of a mechanism in the order in which the path runs through them.

    Attributes:
        mechanism: the mechanism; of a path over a parameter, the one at the start.
        factor: load factor, or value of the parameter, (points,).
        q: joint coordinates, (points, nq).
        negative: number of independent motions with negative stiffness, (points,); stable equilibria have none.
        points: limit points and branch points, in order.
        branches: further paths that leave its branch points, if they were asked for.
    """

    mechanism: Mechanism
    factor: Floats
    q: Floats
    negative: NDArray[np.int64]
    points: tuple[Point, ...] = ()
    branches: tuple[Path, ...] = ()
    _multipliers: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _problem: Any = None

    def __len__(self) -> int:
        return len(self.factor)

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Whether each equilibrium is stable, (points,)."""
        return self.negative == 0

    @property
    def limit_points(self) -> tuple[Point, ...]:
        """Points at which the load has an extremum: snap-through loads."""
        return tuple(point for point in self.points if point.kind == "limit")

    @property
    def branch_points(self) -> tuple[Point, ...]:
        """Points at which other branches of equilibria meet this one: buckling loads."""
        return tuple(point for point in self.points if point.kind == "branch")

    @property
    def point_texts(self) -> tuple[str, ...]:
        """The special points in words: kind, multiplicity, factor."""
        return tuple(
            f"{_MULTIPLE.get(p.multiplicity, f'{p.multiplicity}-fold ')}{p.kind} point at {p.factor:.6g}"
            for p in self.points
        )

    @property
    def label(self) -> str:
        """Name of the factor: "load factor" or "parameter"."""
        return self._problem.label

    @cached_property
    def poses(self) -> Floats:
        """World poses of all bodies, (points, bodies, 4, 4)."""
        bodies = self.mechanism.links.body_link
        mechanisms = map(self._problem.mechanism, self.factor.tolist())
        return np.array(
            [kinematics.link_poses(m, q)[bodies] for m, q in zip(mechanisms, self.q, strict=True)]
        )

    @property
    def paths(self) -> tuple[Path, ...]:
        """This path, its branches, and their branches, each before those that leave it."""
        return (self, *(path for branch in self.branches for path in branch.paths))

    def at(self, factor: float) -> tuple[Configuration, ...]:
        """All equilibria of the path at a load factor, in order: several where it folds back.

        Each is found by Newton's method from the neighbouring points of the path.
        """
        beyond = self.factor - float(factor)
        found = []
        for i in np.flatnonzero(beyond[:-1] * beyond[1:] <= 0).tolist():
            if beyond[i] == 0.0 and i > 0:
                continue  # counted with the interval before
            share = beyond[i] / (beyond[i] - beyond[i + 1]) if beyond[i] != beyond[i + 1] else 0.0
            shift = coordinate_difference(self.mechanism, self.q[i], self.q[i + 1])
            q = kinematics.move(self.mechanism, self.q[i], share * shift)
            multipliers = self._multipliers[i] + share * (self._multipliers[i + 1] - self._multipliers[i])
            state = self._problem.solve_at(float(factor), q, multipliers)
            if state is not None:
                found.append(self._problem.configuration(state))
        return tuple(found)

    def configuration(self, index: int) -> Configuration:
        """The equilibrium of one point, with its loads, constraint forces and stability."""
        state = _State(self.q[index], self._multipliers[index], float(self.factor[index]))
        return self._problem.configuration(state)

    def displacement(self, body: str, axis: str = "z") -> Floats:
        """How far a body's origin has moved along a world axis from the first point, m, (points,)."""
        values = self._coordinate(body, axis)
        return values - values[0]

    def _coordinate(self, body: str, axis: str) -> Floats:
        """World coordinate of a body's origin, m, (points,)."""
        i = self.mechanism.body_index(body)
        if i < 0:
            raise InputError("the world does not move: name a body")
        return self.poses[:, i, _AXES.index(choice(axis, "axis", _AXES)), 3]

    def trajectory(self, seconds: float = 5.0) -> Trajectory:
        """The path as a motion of this duration, to look at with `pliant.viewer.record_html` or `export_gltf`.

        Time goes in equal parts with the largest motion of a body and with the change of the factor.
        """
        moved = np.abs(np.diff(self.poses[:, :, :3, 3], axis=0)).max(axis=(1, 2))
        changed = np.abs(np.diff(self.factor))
        way = sum(part / max(part.sum(), 1e-300) for part in (moved, changed))
        time = np.concatenate([[0.0], np.cumsum(np.maximum(way, 1e-9))])
        return Trajectory(
            self.mechanism, number(seconds, "seconds", above=0) * (time / max(time[-1], 1e-300)), self.poses
        )

    def plot(
        self, file: str | os.PathLike[str] | None = None, body: str | None = None, axis: str = "z"
    ) -> Any:
        """Factor over the displacement of a body: stable parts solid, unstable ones dashed, special points marked.

        Args:
            file: where to write the picture, such as `path.png`; None only returns the figure.
            body: the body whose displacement is shown; the first end effector by default.
            axis: world axis of the displacement.
        """
        body = self.mechanism.end_effectors[0] if body is None else body
        figure, (axes,) = panels(1, 1, 5.4, 3.8, grid=True)
        start = self._coordinate(body, axis)[0]
        for one in self.paths:
            colour = "#1f6fb4" if one is self else "#d9822b"
            x = 1000 * (one._coordinate(body, axis) - start)
            for stable, line in ((True, "-"), (False, "--")):
                ends = one.stable == stable
                drawn = ends if stable else ends | np.append(ends[1:], False)  # from the special point on
                axes.plot(x, np.where(drawn, one.factor, np.nan), line, color=colour, linewidth=1.6)
            for point in one.points:
                at = 1000 * (point.configuration.pose(body)[_AXES.index(axis), 3] - start)
                axes.plot(at, point.factor, "o" if point.kind == "limit" else "s", color=colour, markersize=5)
        axes.set_xlabel(f"displacement of {body} along {axis} (mm)")
        axes.set_ylabel(self.label)
        keep_range(axes, "x", 1000 * LEAST * self.mechanism.radius)
        keep_range(axes, "y", LEAST * max(float(np.abs(one.factor).max()) for one in self.paths))
        save(figure, file)
        return figure

    def summary(self) -> str:
        """Length, range and special points in words."""
        lines = [repr(self)[1:-1], *self.point_texts]
        lines += [f"branch: {branch!r}"[:-1].replace("<", "") for branch in self.paths[1:]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        unstable = int((~self.stable).sum())
        return (
            f"<Path of '{self.mechanism.name}': {counted(len(self), 'equilibrium', 'equilibria')}, "
            f"{unstable} of them unstable, factor {self.factor[0]:.4g} to {self.factor[-1]:.4g}, "
            f"{counted(len(self.limit_points), 'limit point')}, {counted(len(self.branch_points), 'branch point')}>"
        )


class _State(NamedTuple):
    """A point in the space of the path."""

    q: Floats
    multipliers: Floats
    factor: float


class _Direction(NamedTuple):
    """Unit tangent of a path: joint motion in radians and radii, changes of constraint forces and of the factor."""

    motion: Floats
    multipliers: Floats
    factor: float


class _Problem:
    """Residual of equilibrium as a function of coordinates, constraint forces and factor."""

    def __init__(
        self,
        mechanism: Mechanism,
        wrenches: Mapping[str, Any] | None,
        gravity: ArrayLike | None,
        parameter: Callable[[float], Mechanism] | None,
        limits: bool,
    ):
        self.m, self.gravity, self.parameter, self.limits = mechanism, gravity, parameter, limits
        if wrenches is not None and not isinstance(wrenches, Mapping):
            raise InputError("wrenches: a mapping {body: wrench} expected")
        self.wrenches = {body: Load.parse(value, body) for body, value in (wrenches or {}).items()}
        self.shift = 0.0  # stiffness lent to all dofs, of the typical one
        self.label = "parameter" if parameter is not None else "load factor"
        self.unit = mechanism.dof_unit
        self.lever = np.where(mechanism.dof_kind == SLIDE, 1.0, mechanism.radius)
        loops = mechanism.topology.loops
        self.gap_unit = np.ones(6 * loops + len(mechanism.couplings))
        self.gap_unit[: 6 * loops].reshape(-1, 6)[:, :3] = mechanism.radius
        full = collect_loads(mechanism, self.wrenches, gravity)
        springs = collect_loads(mechanism, None, None)
        self.scale = full.scale if full.scale > 0 else max(springs.scale, 1e-300)
        if full.scale == 0 and parameter is None:
            raise InputError("path: there is no load to follow; give wrenches, gravity or a parameter")

    def mechanism(self, factor: float) -> Mechanism:
        """The mechanism at a factor."""
        if self.parameter is None:
            return self.m
        m = self.parameter(factor)
        if not isinstance(m, Mechanism) or m.joint_names != self.m.joint_names or m.nv != self.m.nv:
            raise InputError(
                "parameter: a function of one number expected that gives the mechanism with other values"
            )
        return m

    def given(self, factor: float) -> tuple[dict[str, Load], Any]:
        """Wrenches and gravity at a factor: wrenches grow and gravity acts in full; gravity grows without wrenches."""
        if self.parameter is not None:
            return self.wrenches, self.gravity
        if self.wrenches:
            grown = {
                b: w._replace(force=factor * w.force, torque=factor * w.torque)
                for b, w in self.wrenches.items()
            }
            return grown, self.gravity
        return {}, factor * np.asarray(self.gravity, dtype=np.float64)

    def loads(self, factor: float) -> tuple[Mechanism, Loads]:
        """Mechanism and loads at a factor."""
        m = self.mechanism(factor)
        return m, collect_loads(m, *self.given(factor), limits=self.limits)

    def tangent(self, state: _State, symmetric: bool = False) -> Tangent:
        """Forces and their derivative at a point."""
        m, loads = self.loads(state.factor)
        return Tangent(m, state.q, loads, state.multipliers, symmetric)

    def slope(self, state: _State, residual: Floats, gaps: Floats) -> tuple[Floats, Floats]:
        """Derivatives of residual and gaps with the factor: exact for loads, by differences for a parameter."""
        if self.parameter is None:
            other = self.tangent(state._replace(factor=state.factor + 1.0))
            return other.residual - residual, other.gaps - gaps
        step = 1e-6 * max(1.0, abs(state.factor))
        a, b = (self.tangent(state._replace(factor=state.factor + s)) for s in (-step, step))
        return (b.residual - a.residual) / (2 * step), (b.gaps - a.gaps) / (2 * step)

    def error(self, t: Tangent) -> float:
        """Largest unbalanced force as a fraction of the load, or largest gap in radians and radii."""
        force = float(np.abs(t.residual / self.lever).max(initial=0.0)) / self.scale
        return max(force, float(np.abs(t.gaps / self.gap_unit).max(initial=0.0)))

    def negative(self, state: _State) -> int:
        """Number of negative stiffnesses among the allowed motions."""
        return self._factor(self.tangent(state, symmetric=True), _HELD)

    def soft_motions(self, state: _State, count: int) -> Floats:
        """The softest motions, (count, nv), orthonormal in radians and radii.

        The first lies as far as possible along the dof that takes the largest part in them, and so on: of a column
        that may buckle in two planes, along the axes of its joints.
        """
        t = self.tangent(state, symmetric=True)
        self._factor(t, _HELD)
        space = t.softest_motions(count)[1] / self.unit
        out = []
        for _ in range(count):
            share = np.sqrt((space**2).sum(axis=0))
            dof = int(np.argmax(share > (1 - 1e-6) * share.max()))  # the first of equals
            out.append(space[:, dof] @ space / share[dof])
            space = space - np.outer(space @ out[-1], out[-1])
        return np.array(out) * self.unit

    def with_shift(self, shift: float) -> _Problem:
        """The same problem with a stiffness lent to all dofs, in its derivatives only."""
        other = copy.copy(self)
        other.shift = shift
        return other

    def _factor(self, t: Tangent, passive: float) -> int:
        return t.factor(self.shift, passive, self.scale * self.m.radius)

    def direction(self, state: _State, last: _Direction | None) -> _Direction:
        """Unit tangent of the path; it goes on like the last one, or else towards larger factors."""
        t = self.tangent(state)
        self._factor(t, 1e-4)
        force, gap = self.slope(state, t.residual, t.gaps)
        motion, multipliers = t.solve(-force, -gap, exact=True)
        motion = motion / self.unit
        size = float(np.sqrt(motion @ motion + 1.0))
        found = _Direction(motion / size, multipliers / size, 1.0 / size)
        if last is not None and found.motion @ last.motion + found.factor * last.factor < 0:
            found = _Direction(-found.motion, -found.multipliers, -found.factor)
        return found

    def move(self, state: _State, along: _Direction, length: float) -> _State:
        """A point some way along a direction."""
        q = kinematics.move(self.m, state.q, length * along.motion * self.unit)
        return _State(q, state.multipliers + length * along.multipliers, state.factor + length * along.factor)

    def correct(self, state: _State, across: _Direction) -> tuple[_State, int] | None:
        """Newton's method onto the path in the plane across a direction, and its iterations; None if it fails."""
        best = np.inf
        for iteration in range(_ROUNDS):
            t = self.tangent(state)
            error = self.error(t)
            if not np.isfinite(error):
                return None
            if error <= _GOAL or (error <= _ACCEPTED and error > 0.5 * best):
                return state, iteration
            if iteration > 3 and error > 2 * best:
                return None
            best = min(best, error)
            self._factor(t, 1e-4)
            force, gap = self.slope(state, t.residual, t.gaps)
            rhs, gaps = np.array([-t.residual, -force]), np.array([-t.gaps, -gap])
            motion, multipliers = t.solve(rhs, gaps, exact=True)
            along = (motion / self.unit) @ across.motion
            below = along[1] + across.factor
            change = -along[0] / below if below != 0 else np.nan
            step = motion[0] + change * motion[1]
            if not np.isfinite(step).all() or np.abs(step / self.unit).max(initial=0.0) > 1.0:
                return None
            q = kinematics.move(self.m, state.q, step)
            multiplier = state.multipliers + multipliers[0] + change * multipliers[1]
            state = _State(q, multiplier, state.factor + change)
        return None

    def solve_at(self, factor: float, q: Floats, multipliers: Floats) -> _State | None:
        """Newton's method at a given factor; None if it fails."""
        found = self.correct(
            _State(q, multipliers, factor), _Direction(np.zeros(self.m.nv), multipliers, 1.0)
        )
        return None if found is None else found[0]._replace(factor=factor)

    def configuration(self, state: _State) -> Configuration:
        """An equilibrium with all that a `Configuration` knows of one."""
        m, loads = self.loads(state.factor)
        t = Tangent(m, state.q, loads, state.multipliers)
        found = Configuration(m, state.q)
        found.residual, found.loads, found.multipliers = self.error(t), loads, state.multipliers
        wrenches, gravity = self.given(state.factor)
        found.wrenches = dict(wrenches)
        found.gravity = None if gravity is None else tuple(np.asarray(gravity, dtype=float).tolist())
        found.stability = "stable" if self.negative(state) == 0 else "unstable"
        return found


class _Step(NamedTuple):
    """A step along a path: the point it reaches, the direction there, its length, and its Newton iterations."""

    state: _State
    along: _Direction
    length: float
    iterations: int


class _Mark(NamedTuple):
    """A place within a step: how far along it, dλ/ds, and the number of negative stiffnesses there."""

    length: float
    slope: float
    negative: int


@dataclass
class _Trace:
    """Points of a path as they are found."""

    states: list[_State]
    negative: list[int]
    points: list[Point]
    reached: bool = False


class _Tracer:
    """Steps along a path from one side of a range of factors to the other."""

    def __init__(self, problem: _Problem, start: float, stop: float, step: float, most: int):
        self.problem, self.step, self.most = problem, step, most
        self.given = start, stop, step, most
        self.forward = 1.0 if stop > start else -1.0
        self.stop, self.turn = stop, 2 * start - stop

    def trace(self, state: _State, along: _Direction) -> _Trace:
        """All points from `state` on; `along` is the direction of the first step."""
        problem = self.problem
        out = _Trace([state], [problem.negative(state)], [])
        length = 0.25 * self.step
        while len(out.states) < self.most and not out.reached:
            found = self._advance(out.states[-1], along, length)
            if found is None:
                self._warn(
                    out,
                    "early",
                    "no equilibrium was found farther on: a joint may have come to an end of its motion",
                )
                break
            new, after, length, iterations = found
            count = problem.negative(new)
            self._note(out, along, _Mark(length, after.factor, count))
            if self._beyond(new.factor):
                out.reached = True
                new = self._end(out.states[-1], new)
            elif len(out.states) > 5 and np.linalg.norm(self._difference(out.states[0], new)) < 0.6 * length:
                out.reached, new = True, out.states[0]  # a closed path
            out.states.append(new)
            out.negative.append(count)
            along = after
            length = min(self.step, 1.6 * length) if iterations <= _EASY else 0.7 * length
        else:
            if not out.reached:
                self._warn(out, f"after {self.most} points", "raise `most` or `step` to follow it farther")
        return out

    def _difference(self, a: _State, b: _State) -> Floats:
        """From a point to another in radians, radii and factor, without whole turns of hinges without springs."""
        m = self.problem.m
        motion = coordinate_difference(m, a.q, b.q) / self.problem.unit
        turning = (m.dof_kind == HINGE) & (m.stiffness == 0)
        motion[turning] -= 2 * np.pi * np.round(motion[turning] / (2 * np.pi))
        return np.append(motion, b.factor - a.factor)

    def _warn(self, out: _Trace, when: str, remedy: str) -> None:
        at = out.states[-1].factor
        text = f"the path of '{self.problem.m.name}' ends {when} at factor {at:.6g}; {remedy}"
        warnings.warn(text, PliantWarning, stacklevel=4)

    def _advance(
        self,
        state: _State,
        along: _Direction,
        length: float,
        bend: float = _BEND,
        shortest: float = _SHORTEST,
    ) -> _Step | None:
        """A step of this length, or the longest of its halves that succeeds; None if none does."""
        while length > shortest:
            found = self.problem.correct(self.problem.move(state, along, length), along)
            if found is not None:
                after = self.problem.direction(found[0], along)
                cosine = after.motion @ along.motion + after.factor * along.factor
                if cosine >= np.cos(bend) or length < 1e-4:
                    return _Step(found[0], after, length, found[1])
            length *= 0.5
        return None

    def _note(self, out: _Trace, along: _Direction, end: _Mark) -> None:
        """Locate the limit points and branch points of the last step, if it passed any."""
        start = out.states[-1]
        for kind, state, before, count in self._locate(
            start, along, _Mark(0.0, along.factor, out.negative[-1]), end
        ):
            motions = self.problem.soft_motions(state, count)
            out.points.append(
                Point(kind, state.factor, len(out.states), self.problem.configuration(state), motions)
            )
            out.states.append(state)
            out.negative.append(before)

    def _locate(
        self, start: _State, along: _Direction, low: _Mark, high: _Mark
    ) -> Iterator[tuple[str, _State, int, int]]:
        """Kind, place, negative stiffnesses before, and multiplicity of the special points between two marks.

        Halves intervals with several of them, down to `_TOGETHER`, and bisects those with one.
        """
        turned, change = low.slope * high.slope < 0, abs(high.negative - low.negative)
        if not turned and change == 0:
            return
        middle = 0.5 * (low.length + high.length)
        if change != 1 and high.length - low.length > _TOGETHER:
            tried = self.problem.correct(self.problem.move(start, along, middle), along)
            if tried is not None:
                slope = self.problem.direction(tried[0], along).factor
                mark = _Mark(middle, slope, self.problem.negative(tried[0]))
                yield from self._locate(start, along, low, mark)
                yield from self._locate(start, along, mark, high)
                return
        found, (least, most) = None, (low.length, high.length)
        while most - least > _LOCATED:
            middle = 0.5 * (least + most)
            tried = self.problem.correct(self.problem.move(start, along, middle), along)
            if tried is None:
                break
            found = tried[0]
            if turned:
                passed = self.problem.direction(found, along).factor * low.slope < 0
            else:
                passed = self.problem.negative(found) != low.negative
            least, most = (least, middle) if passed else (middle, most)
        if found is not None:
            # the count changes by one at a limit point, unless a branch point is there, too
            yield "limit" if turned else "branch", found, low.negative, change or 2

    def _beyond(self, factor: float) -> bool:
        return self.forward * (factor - self.stop) >= 0 or self.forward * (factor - self.turn) <= 0

    def _end(self, last: _State, new: _State) -> _State:
        """The point at the end of the range, between the last two."""
        end = self.stop if self.forward * (new.factor - self.stop) >= 0 else self.turn
        share = (end - last.factor) / (new.factor - last.factor)
        m = self.problem.m
        q = kinematics.move(m, last.q, share * coordinate_difference(m, last.q, new.q))
        multipliers = last.multipliers + share * (new.multipliers - last.multipliers)
        return self.problem.solve_at(end, q, multipliers) or new

    def path(self, trace: _Trace, branches: tuple[Path, ...] = ()) -> Path:
        """A trace as users get it."""
        return Path(
            self.problem.m,
            np.array([state.factor for state in trace.states]),
            np.array([state.q for state in trace.states]),
            np.array(trace.negative, dtype=np.int64),
            tuple(trace.points),
            branches,
            np.array([state.multipliers for state in trace.states]),
            self.problem,
        )

    def branches(self, trace: _Trace, depth: int, known: list[list[_State]]) -> tuple[Path, ...]:
        """Both sides of the branches that leave the special points of a trace, and their branches up to a depth.

        Args:
            trace: the trace.
            depth: generations of branches.
            known: points of paths that are not followed again; the branches found are added.
        """
        if depth == 0:
            return ()
        sides = list[tuple[_Tracer, _Trace]]()
        for point in trace.points:
            if point.kind == "limit" and point.multiplicity == 1:
                continue
            state = _State(point.configuration.q, point.configuration.multipliers, point.factor)
            for tracer, (first, along, length, _) in self._sides(state, point):
                if any(tracer._passes(states, first, 0.3 * length) for states in known):
                    continue
                side = tracer.trace(first, along)
                side.states.insert(0, state)
                side.negative.insert(0, side.negative[0])
                side.points[:] = [p._replace(index=p.index + 1) for p in side.points]
                known.append(side.states)
                sides.append((tracer, side))
        return tuple(tracer.path(side, tracer.branches(side, depth - 1, known)) for tracer, side in sides)

    def _sides(self, state: _State, point: Point) -> Iterator[tuple[_Tracer, _Step]]:
        """First steps along the branches that leave a special point, each with the tracer to follow it."""
        axes, name = point.motions / self.problem.unit, f"the {point.kind} point at factor {point.factor:.6g}"
        still = np.zeros_like(state.multipliers)
        if point.kind == "limit":
            self._warn_of_branches(f"{name} is a branch point, too", "its branches are not followed")
        elif len(axes) != 2:
            if len(axes) > 2:
                text = f"{name} has {len(axes)} motions without stiffness"
                self._warn_of_branches(text, "there may be more branches than the ones along each of them")
            for motion in (sign * axis for axis in axes for sign in (1.0, -1.0)):
                found = self._advance(state, _Direction(motion, still, 0.0), self.step, bend=np.pi)
                if found is not None:
                    yield self, found
        else:
            yield from self._sides_in_plane(state, axes, name)

    def _sides_in_plane(self, state: _State, axes: Floats, name: str) -> Iterator[tuple[_Tracer, _Step]]:
        """The same where two motions have no stiffness: branches near sixteen of their combinations.

        More branches than two cubic equations in two unknowns have solutions are a continuum, to the accuracy of the
        solver: a symmetry turns them into each other, and those along each motion stand for all. On these, that turn
        meets no stiffness, and `_NEUTRAL` keeps it from being counted as unstable.
        """
        neutral = _Tracer(self.problem.with_shift(_NEUTRAL), *self.given)
        still = np.zeros_like(state.multipliers)
        found, angles = list[_Step](), list[float]()
        for sixteenth in _COMPASS:
            angle = np.pi * sixteenth / 8
            away = _Direction(np.cos(angle) * axes[0] + np.sin(angle) * axes[1], still, 0.0)
            step = neutral._advance(state, away, self.step, bend=np.pi, shortest=0.1 * self.step)
            if step is None:
                continue
            motion = coordinate_difference(self.problem.m, state.q, step[0].q) / self.problem.unit
            angle = float(np.arctan2(axes[1] @ motion, axes[0] @ motion))
            if all(abs(np.sin((angle - other) / 2)) > 0.05 for other in angles):
                found.append(step)
                angles.append(angle)
        if len(found) > _MOST_SIDES:
            text = f"{name} is double, and branches leave it along all combinations of its two motions"
            self._warn_of_branches(text, "as far as can be told; those along each of them are followed")
            yield from ((neutral, step) for step in found[:4])
        else:
            if not found:
                self._warn_of_branches(f"{name} is double", "no branch was found near it")
            yield from ((self, step) for step in found)

    def _warn_of_branches(self, what: str, then: str) -> None:
        warnings.warn(f"path of '{self.problem.m.name}': {what}; {then}", PliantWarning, stacklevel=6)

    def _passes(self, states: list[_State], by: _State, near: float) -> bool:
        """Whether the chords between successive points of a path come near a point."""
        a = np.array([self._difference(by, state) for state in states])
        chord = np.diff(a, axis=0)
        size = (chord**2).sum(axis=1)
        real = (size > 0) & (size < (2 * self.step) ** 2)  # others are whole turns
        share = np.clip(-(a[:-1] * chord).sum(axis=1)[real] / size[real], 0.0, 1.0)
        nearest = a[:-1][real] + share[:, None] * chord[real]
        return bool(((nearest**2).sum(axis=1) < near**2).any())


def path(
    mechanism: Mechanism,
    wrenches: Mapping[str, Any] | None = None,
    *,
    gravity: ArrayLike | None = None,
    parameter: Callable[[float], Mechanism] | None = None,
    start: float = 0.0,
    stop: float = 1.0,
    limits: bool = False,
    branches: bool = False,
    depth: int = 1,
    step: float = 0.05,
    most: int = 500,
) -> Path:
    """Equilibria along a growing load or a changing parameter, through limit points, with their stability.

    Args:
        mechanism: the mechanism.
        wrenches: `{body: wrench}` as `pliant.equilibrium` takes them, at factor 1. They grow with the factor, while
            gravity acts in full.
        gravity: as in `pliant.equilibrium`. Without wrenches it is gravity that grows.
        parameter: instead of a load that grows: a function of a number that gives the mechanism with other stiffnesses,
            rest positions, masses or dimensions, such as `lambda k: m.with_stiffness("hinge", k)`. Loads stay as given.
        start, stop: first and last factor, or value of the parameter. A path also ends where it has gone as far beyond
            the start the other way, and where it comes back to its first point.
        limits: enforce joint limits, by joints that stiffen near them.
        branches: follow the branches that leave branch points, both sides of each, too.
        depth: generations of branches: 2 follows the branches of branches, too, and so on.
        step: longest step along the path, in radians and fractions of the mechanism's radius, its change of factor
            included.
        most: number of points after which a path ends, with a warning.

    Returns:
        The `Path`: factors, coordinates, stability, limit points and branch points.

    Raises:
        ConvergenceError: there is no equilibrium to start from.
        InputError: an argument is unusable.

    Example:
        >>> import pliant
        >>> rod = pliant.Builder("rod")
        >>> _ = rod.body("tip", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, 1))
        >>> _ = rod.hinge("pivot", "world", "tip", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=10.0)
        >>> found = pliant.path(rod.build(), {"tip": (0, 0, -20)})
        >>> [round(point.factor, 6) for point in found.branch_points]  # buckles at 10 N
        [0.5]
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"a Mechanism expected, not {type(mechanism).__name__}")
    if parameter is not None and not callable(parameter):
        raise InputError("parameter: a function of one number expected that gives a mechanism")
    begin, end = number(start, "start"), number(stop, "stop")
    if begin == end:
        raise InputError("start and stop are the same: there is nothing to follow")
    step, most = number(step, "step", above=0, most=1.0), whole(most, "most", 2)
    depth = whole(depth, "depth", 1)
    problem = _Problem(mechanism, wrenches, gravity, parameter, limits)
    given, weight = problem.given(begin)
    first = equilibrium(problem.mechanism(begin), given, gravity=weight, limits=limits)
    tracer = _Tracer(problem, begin, end, step, most)
    state = _State(first.q, first.multipliers, begin)
    along = problem.direction(state, None)
    if along.factor * tracer.forward < 0:
        along = _Direction(-along.motion, -along.multipliers, -along.factor)
    trace = tracer.trace(state, along)
    return tracer.path(trace, tracer.branches(trace, depth, [trace.states]) if branches else ())
