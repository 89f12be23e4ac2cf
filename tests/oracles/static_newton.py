"""The static solver in plain Python: slow, one `Tangent` per point, the same algorithm as the compiled one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from pliant import spatial
from pliant.mechanism import kinematics
from pliant.mechanism.loop_closure import close_loops
from pliant.statics.inertia import link_twists
from pliant.statics.limit_springs import typical_stiffness
from pliant.statics.load_kernels import ACTS, FOLLOWER_FORCE, FORCE, LINK, POINT, TORQUE
from pliant.statics.loads import collect_loads, tendon_lengths
from pliant.statics.tangent import Tangent


def fraction_of(m, loads, fraction):
    """A fraction of loads, springs' rest included."""
    if fraction == 1.0:
        return loads
    rest = m.reference + fraction * (loads.rest - m.reference)
    balls = m.primitive_coordinate[m.ball_primitives][:, None] + np.arange(4)
    relative = spatial.quat_multiply(spatial.quat_conjugate(m.reference[balls]), loads.rest[balls])
    rest[balls] = spatial.quat_multiply(
        m.reference[balls], spatial.quat_exp(fraction * spatial.quat_log(relative))
    )
    start = tendon_lengths(m, m.reference, rest)
    rows = loads.rows.copy()
    rows[:, FORCE:POINT] *= fraction
    rows[:, FOLLOWER_FORCE:ACTS] *= fraction
    slack = start + fraction * (loads.tendon_rest - start)
    return replace(loads, rows=rows, rest=rest, tendon_rest=slack)


def work_of_loads(old, new):
    """Work of the loads from one point to the next, along the straightest path."""
    rows = old.loads.rows
    link = rows[:, LINK].astype(int)
    change = new.poses[link] - old.poses[link]
    moved = np.einsum("nij,nj->ni", change[:, :3, :3], rows[:, POINT:FOLLOWER_FORCE]) + change[:, :3, 3]
    turn = spatial.so3_log(new.poses[link, :3, :3] @ old.poses[link, :3, :3].transpose(0, 2, 1))
    along = spatial.se3_log(spatial.se3_inverse(old.poses[link]) @ new.poses[link])
    parts = rows[:, FORCE:TORQUE] * moved, rows[:, TORQUE:POINT] * turn, rows[:, FOLLOWER_FORCE:ACTS] * along
    return float(sum(part.sum() for part in parts))


class Solver:
    def __init__(self, m, wrenches=None, gravity=None, limits=False):
        self.m, self.loads, self.iterations = m, collect_loads(m, wrenches, gravity, limits), 0
        if self.loads.scale == 0.0:
            self.loads = replace(self.loads, scale=typical_stiffness(m) / m.radius)
        self.gap_unit = np.ones(6 * m.topology.loops + len(m.couplings))
        self.gap_unit[: 6 * m.topology.loops].reshape(-1, 6)[:, :3] = m.radius
        self.fallback = self.loads.scale * m.radius
        typical = typical_stiffness(m, 0.0) or self.fallback
        self.unit_stiffness = typical / m.dof_unit**2
        self.q, self.multipliers = close_loops(m, m.reference.copy()), np.zeros(len(self.gap_unit))

    def error(self, t):
        return float(np.abs(t.residual * self.m.dof_unit / self.m.radius).max(initial=0.0)) / self.loads.scale

    def gap(self, gaps):
        return float(np.abs(gaps / self.gap_unit).max(initial=0.0))

    def solve(self):
        """q and multipliers at full load; None if no equilibrium is found."""
        done, increment = 0.0, 1.0
        while done < 1.0:
            trial = min(1.0, done + increment)
            if self.minimise(trial, 60, True):
                done, increment = trial, 2 * increment
                continue
            increment = (trial - done) / 4
            if increment < 1 / 256:
                break
        return done >= 1.0 or self.minimise(1.0, 400, False)

    def minimise(self, fraction, limit, guarded):
        m, loads = self.m, fraction_of(self.m, self.loads, fraction)
        t = Tangent(m, self.q, loads, self.multipliers)
        shift, passive, best, stalled, before = 0.0, 1e-2, np.inf, 0, np.inf
        radius, gaining = np.inf, False
        for iteration in range(limit):
            error, gap = self.error(t), self.gap(t.gaps)
            if error <= 1e-12 and gap <= 1e-13:
                break
            stalled = 0 if error + gap < 0.5 * best else stalled + 1
            best = min(best, error + gap)
            if stalled >= 4 and error <= 1e-9 and gap <= 1e-11:
                break
            if guarded and stalled > 10 and not gaining:
                return False
            if stalled and shift == 0.0 and error < 1e-4:
                passive = max(passive / 10, 1e-9)
            if error < 1e-2 * before:
                shift = 0.0
            before = error
            known = not len(t.gaps) or self.multipliers.any()
            if iteration == 0 and not known and t.factor(shift, passive, self.fallback) > 0:
                springs = Tangent(m, t.q, replace(loads, rows=loads.rows[:0]))
                t.factor, t.solve = springs.factor, springs.solve
            while t.factor(shift, passive, self.fallback) > 0 and shift < 1e8:
                shift = max(4 * shift, 1e-3)
            step, change = t.solve(-t.residual, -t.gaps)
            longest = self.length(t, step)
            for _ in range(3):
                if not longest > 1.3 * radius:
                    break
                # Newton's method on the inverse of the step's length, as a function of the stiffness added
                slower = t.solve(self.unit_stiffness * step, refine=False)[0]
                ratio = (step @ (step * self.unit_stiffness)) / (step @ (slower * self.unit_stiffness))
                wanted = ratio * (longest / radius - 1)
                shift += min(max(wanted, 0.1 * shift, 1e-6), 100 * max(shift, 1e-2))
                t.factor(shift, passive, self.fallback)
                step, change = t.solve(-t.residual, -t.gaps)
                longest = self.length(t, step)
            if not np.isfinite(longest) or (guarded and iteration == 0 and longest > 0.5):
                return False
            self.iterations += 1
            far = longest > 0.5 * radius
            escape = self.escape(t) if stalled in (4, 8) and shift > 0 and not far else None
            whole = min(1.0, min(0.5, 1.3 * radius) / max(longest, 1e-300))
            found = (escape, whole, 1.0, False) if escape else self.search(t, step, change, whole, shift)
            if found is None:
                if error <= 1e-9 and gap <= 1e-11:
                    break
                if shift > 1e6:
                    return False
                shift = max(10 * shift, 1e-3)
                continue
            t, length, ratio, opened = found
            shortened = radius < np.inf and (length < whole or ratio < 0.1)
            if longest > 1e-4 and (opened or shortened):
                radius = length * longest
            elif far and ratio > 0.25:
                radius = min(2 * radius, 0.5)
            gaining = ratio > 0.25
            shift = 0.0 if shift < 1e-4 else shift / (4 if far else 10)
            if not guarded:
                self.q, self.multipliers = t.q, t.multipliers
        else:
            return False
        self.q, self.multipliers = t.q, t.multipliers
        return True

    def length(self, t, step):
        local, _ = kinematics.link_transforms(self.m, t.q)
        turn = np.linalg.norm(link_twists(self.m, local, step[None])[0, :, 3:], axis=1).max(initial=0.0)
        return max(float(np.abs(step / self.m.dof_unit).max(initial=0.0)), float(turn) * 0.25)

    def search(self, t, step, change, length, shift):
        """The first point that is accepted, its length, gain over predicted gain, and whether loops failed to close."""
        opened = False
        slope, before = float(t.residual @ step), self.error(t)
        curvature = -slope - shift * float(step @ (step * self.unit_stiffness))
        noise = 1e-13 * (abs(t.energy) + self.loads.scale * self.m.radius * 1e-3)
        for _ in range(12):
            q = self.close(t, kinematics.move(self.m, t.q, length * step))
            if q is not None:
                new = Tangent(self.m, q, t.loads, t.multipliers + length * change)
                gain = new.energy - t.energy - work_of_loads(t, new)
                ratio = gain / (length * slope + 0.5 * length**2 * curvature)
                if np.isfinite(gain) and gain <= 1e-4 * length * slope + noise:
                    return new, length, ratio, opened
                if shift == 0.0 and length == 1.0 and self.error(new) < 0.9 * before:
                    return new, length, ratio, opened
            opened = opened or q is None
            length *= 0.5
        return None

    def escape(self, t):
        motion = t.softest_motion()[1]
        for sign in (1.0, -1.0):
            q = self.close(t, kinematics.move(self.m, t.q, sign * 0.05 * motion))
            if q is not None:
                new = Tangent(self.m, q, t.loads, t.multipliers)
                if new.energy - t.energy < work_of_loads(t, new):
                    return new
        return None

    def close(self, t, q):
        """Broyden's method, with the inverse of its matrix as a product of rank-one changes."""
        if not len(t.gaps):
            return q
        unit, previous, moved = self.m.dof_unit, np.inf, []
        for _ in range(12):
            gaps = kinematics.constraint_gaps(self.m, q, kinematics.link_poses(self.m, q))
            gap = self.gap(gaps)
            if gap <= 1e-13 or (gap < 1e-11 and gap > 0.3 * previous):
                return q
            if gap > 2 * previous or not np.isfinite(gap):
                return None
            previous = gap
            motion = t.solve(np.zeros(self.m.nv), -gaps, refine=False)[0] / unit
            for one, following in pairwise(moved):
                motion = motion + following * (one @ motion) / (one @ one)
            if moved:
                motion = motion / max(1 - (moved[-1] @ motion) / (moved[-1] @ moved[-1]), 0.2)
            moved.append(motion)
            q = kinematics.move(self.m, q, motion * unit)
        return q if previous < 1e-9 else None
