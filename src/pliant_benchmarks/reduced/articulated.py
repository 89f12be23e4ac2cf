"""A step of a reduced model beside O(n) articulated-body algorithms on trees of hinges, the fastest on long chains.

Springs and dampers are implicit, as in the reduced engine: (M + hD + h²K) dv = h (Jᵀw - bias - K (q + hv) - D v).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

import pliant
from pliant.compilation import njit
from pliant.mechanism import kernels as kinematics
from pliant.spatial import kernels as se3
from pliant.statics import tree_kernels
from pliant.statics.inertia import Inertia

from ..harness.results import Progress, Row, Table
from ..harness.timing import compare, time_in_turns
from ..peers.mujoco import PushedMechanism
from ..systems import STEP, Pushed

if TYPE_CHECKING:
    from ..peers import pinocchio

__all__ = ["Articulated", "articulated_bodies", "check_step"]

NAMES = {
    "own kernels": "articulated bodies on pliant's kernels, whole step",
    "Pinocchio": "Pinocchio aba (C++), accelerations and poses only",
    "DART": "DART, whole step",
    "Exudyn": "Exudyn's kinematic tree, generalized-alpha, whole step",
}
SETTLED = 2000  # steps


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def _accelerate(parent, screw, local, diagonal, tangent, columns, inverse, right, out, force, twist, moved):
    """Articulated-body algorithm in link frames: inertias (minus `tangent`) tip to root, accelerations root to tip."""
    n = parent.shape[0]
    for k in range(n):
        for i in range(6):
            force[k, i] = 0.0
    for k in range(n - 1, -1, -1):
        P, s, u = tangent[k], screw[k], columns[k]
        pivot, total = diagonal[k], right[k]
        for i in range(6):
            u[i] = 0.0
            for j in range(6):
                u[i] += P[i, j] * s[j]
            pivot -= s[i] * u[i]
            total += s[i] * force[k, i]
        inverse[k] = 1.0 / pivot
        out[k] = total * inverse[k]
        for i in range(6):
            force[k, i] += u[i] * out[k]
            scaled = u[i] * inverse[k]
            for j in range(6):
                P[i, j] += scaled * u[j]
        if parent[k] >= 0:
            tree_kernels.congruence_add(local[k], P, moved, tangent[parent[k]])
            se3.force_to_parent_add(local[k], force[k], force[parent[k]])
    for k in range(n):
        if parent[k] >= 0:
            se3.motion_to_child(local[k], twist[parent[k]], twist[k])
        else:
            for i in range(6):
                twist[k, i] = 0.0
        for i in range(6):
            out[k] += inverse[k] * columns[k, i] * twist[k, i]
        for i in range(6):
            twist[k, i] += screw[k, i] * out[k]


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def articulated_steps(count, h, links, inertia, springs, push, state, work):
    """`count` steps of (M + hD + h²K) dv = h (Jᵀw - bias - K (q + hv) - D v) on a tree of hinges, a link per dof."""
    parent, screw = links.parent, links.screw
    stiffness, damping, rest, diagonal = springs
    tip, point, force = push
    q, v, local, poses = state
    twist, bias, wrench, columns, tangent, residual, dv, inverse, momentum, spare, moved = work
    n = parent.shape[0]
    for _ in range(count):
        kinematics.forward(links, q, local, poses)
        for k in range(n):
            x, a, s, f, p, u = twist[k], bias[k], screw[k], wrench[k], momentum[k], v[k]
            if parent[k] >= 0:
                se3.motion_to_child(local[k], twist[parent[k]], x)
                se3.motion_to_child(local[k], bias[parent[k]], a)
            else:
                for i in range(6):
                    x[i] = 0.0
                    a[i] = 0.0
            a[0] += u * (x[4] * s[2] - x[5] * s[1] + x[1] * s[5] - x[2] * s[4])
            a[1] += u * (x[5] * s[0] - x[3] * s[2] + x[2] * s[3] - x[0] * s[5])
            a[2] += u * (x[3] * s[1] - x[4] * s[0] + x[0] * s[4] - x[1] * s[3])
            a[3] += u * (x[4] * s[5] - x[5] * s[4])
            a[4] += u * (x[5] * s[3] - x[3] * s[5])
            a[5] += u * (x[3] * s[4] - x[4] * s[3])
            for i in range(6):
                x[i] += u * s[i]
            for i in range(6):
                pull = 0.0
                carried = 0.0
                for j in range(6):
                    pull += inertia[k, i, j] * a[j]
                    carried += inertia[k, i, j] * x[j]
                    tangent[k, i, j] = -inertia[k, i, j]
                f[i] = -pull
                p[i] = carried
            f[0] -= x[4] * p[2] - x[5] * p[1]
            f[1] -= x[5] * p[0] - x[3] * p[2]
            f[2] -= x[3] * p[1] - x[4] * p[0]
            f[3] -= x[1] * p[2] - x[2] * p[1] + x[4] * p[5] - x[5] * p[4]
            f[4] -= x[2] * p[0] - x[0] * p[2] + x[5] * p[3] - x[3] * p[5]
            f[5] -= x[0] * p[1] - x[1] * p[0] + x[3] * p[4] - x[4] * p[3]
            residual[k] = stiffness[k] * (q[k] - rest[k]) + (damping[k] + h * stiffness[k]) * u
        T, f = poses[tip], wrench[tip]
        x = T[0, 0] * force[0] + T[1, 0] * force[1] + T[2, 0] * force[2]
        y = T[0, 1] * force[0] + T[1, 1] * force[1] + T[2, 1] * force[2]
        z = T[0, 2] * force[0] + T[1, 2] * force[1] + T[2, 2] * force[2]
        f[0] += x
        f[1] += y
        f[2] += z
        f[3] += point[1] * z - point[2] * y
        f[4] += point[2] * x - point[0] * z
        f[5] += point[0] * y - point[1] * x
        tree_kernels.accumulate(links, local, wrench, residual)
        for k in range(n):
            residual[k] *= -h
        _accelerate(
            parent, screw, local, diagonal, tangent, columns, inverse, residual, dv, momentum, spare, moved
        )
        for k in range(n):
            v[k] += dv[k]
            q[k] += h * v[k]


class Articulated:
    """Tree of hinges under the push, by the articulated-body algorithm on pliant's kernels."""

    def __init__(self, case: Pushed, h: float = STEP):
        m, n = case.m, case.m.nv
        k = m.links
        each = np.arange(n)
        if not all(np.array_equal(a, each) for a in (k.dof, k.coordinate, k.body)) or (k.kind != 1).any():
            raise ValueError("a tree of single hinges expected")
        self.h, self.v, self.q = h, np.zeros(n), m.reference.copy()
        local, self.poses = np.tile(np.eye(4), (2, n, 1, 1))
        self._links, self._inertia = k.arrays, Inertia(m, m.reference).links
        diagonal = m.armature + h * m.damping + h * h * m.stiffness
        self._springs = m.stiffness, m.damping, m.rest, diagonal
        self._push = case.index, m.com[case.index], case.force
        self._state = self.q, self.v, local, self.poses
        shapes = (6,), (6,), (6,), (6,), (6, 6), (), (), (), (6,), (6,)
        self._work = (*(np.zeros((n, *shape)) for shape in shapes), np.zeros((6, 6)))

    def step(self, n: int) -> None:
        """Advance by n steps in one call."""
        arrays = self._links, self._inertia, self._springs, self._push, self._state, self._work
        articulated_steps(n, self.h, *arrays)


def check_step(case: Pushed, theirs: pinocchio.Tree | None) -> dict[str, float]:
    """Relative errors of a step from a random state, against a dense solve with MuJoCo's bias forces."""
    m = case.m
    ours, reference = Articulated(case), PushedMechanism(case)
    random = np.random.default_rng(0)
    ours.q += 0.05 * random.standard_normal(m.nv)
    ours.v += random.standard_normal(m.nv)
    q, v = ours.q.copy(), ours.v.copy()
    reference.restart("Euler")
    reference.data.qpos[:], reference.data.qvel[:] = q, v
    mujoco.mj_forward(reference.model, reference.data)
    at = pliant.Configuration(m, q)
    jacobian = at.jacobian(case.tip, "world")
    lever = at.pose(case.tip)[:3, :3] @ m.com[case.index]
    push = jacobian[:3].T @ case.force + jacobian[3:].T @ np.cross(lever, case.force)
    springs = m.stiffness * (m.rest - q - STEP * v) - m.damping * v
    dense = at.mass_matrix() + np.diag(STEP * m.damping + STEP**2 * m.stiffness)
    expected = np.linalg.solve(dense, push + springs - reference.data.qfrc_bias)
    ours.step(1)
    found = {"own kernels": (ours.v - v) / STEP}
    if theirs is not None:
        found["Pinocchio"] = theirs.acceleration(q, v, push + springs)
    return {name: float(np.abs(a - expected).max() / np.abs(expected).max()) for name, a in found.items()}


def articulated_bodies(quick: bool, progress: Progress) -> Table:
    """Helices, beside articulated bodies on pliant's kernels, Pinocchio, DART and Exudyn."""
    rows: list[Row] = []
    missing: dict[str, None] = {}
    for links in (100,) if quick else (50, 100, 400):
        progress(f"articulated bodies on helix({links})")
        case = Pushed(f"helix({links})", lambda n=links: pliant.gallery.helix(n))
        rows += _rows(case, quick, missing)
    return Table(
        "reduced",
        "articulated-bodies",
        "A step of a reduced model beside O(n) articulated bodies",
        "µs a step",
        rows,
        settings="One thread, processor time, 1 ms, springs and dampers implicit everywhere; the reduced model as "
        'printed (`method="tvcg"`).',
        missing=list(missing),
    )


def _find(peer: str, kind: str, given: Any, missing: dict[str, None]) -> Any:
    """Simulation of a peer, `peers.PEER.KIND(given)`; None, and a line in `missing`, if it is not installed."""
    try:
        return getattr(import_module(f"pliant_benchmarks.peers.{peer}"), kind)(given)
    except ImportError as error:
        missing[f"{'DART' if peer == 'dart' else peer.title()}: {error} (`make peers`)"] = None
        return None


def _rows(case: Pushed, quick: bool, missing: dict[str, None]) -> list[Row]:
    """Rows of a helix by peer; peers that are not installed are added to `missing`."""
    ours, own = case.simulation(method="tvcg"), Articulated(case)
    theirs = _find(
        "pinocchio", "Tree", case.m, missing
    )  # its data grow with the cube of the joints: 4 GB for 400
    dart = _find("dart", "PushedTree", case, missing)
    exudyn = (
        _find("exudyn", "PushedTree", case, missing) if case.m.body_count <= 100 else None
    )  # minutes for 400
    errors = check_step(case, theirs)
    if max(errors.values()) > 1e-6:
        raise RuntimeError(f"the peers compute something else: {errors}")
    counts = {"reduced": 2000, "own kernels": 50, "Pinocchio": 50, "DART": 50, "Exudyn": 5}
    calls: dict[str, Callable[[], object]] = {
        "reduced": lambda: ours.step(counts["reduced"]),
        "own kernels": lambda: own.step(counts["own kernels"]),
    }
    settled = case.simulation()
    for run in (settled, own, dart, exudyn):
        if run is not None:
            run.step(SETTLED)
    at_rest = {"own kernels": case.displacement(own.poses)}
    if dart is not None:
        at_rest["DART"] = dart.displacement
        calls["DART"] = lambda: dart.step(counts["DART"])
    if exudyn is not None and not exudyn.failed:
        at_rest["Exudyn"] = exudyn.displacement
        calls["Exudyn"] = lambda: exudyn.step(counts["Exudyn"])
    if theirs is not None:
        q, v, torque = own.q.copy(), own.v.copy(), np.zeros(case.m.nv)

        def pinocchio_steps() -> None:
            # Without springs, push and integration, which would take numpy's time.
            for _ in range(counts["Pinocchio"]):
                theirs.acceleration(q, v, torque)

        calls["Pinocchio"] = pinocchio_steps
    times = {
        name: t.scaled(1e6 / counts[name]) for name, t in time_in_turns(calls, 5 if quick else 11).items()
    }
    rest = case.displacement(settled.poses)
    rows = []
    for name in (name for name in NAMES if name in times):
        row = compare(f"{case.name} beside {name}", times["reduced"], times[name], peer_name=NAMES[name])
        row.target = "25x" if case.m.body_count == 400 else ""
        if name in errors:
            row.values["error of a step against a dense solve"] = errors[name]
        if name in at_rest:
            row.values["tips apart at rest, of radius"] = float(
                np.linalg.norm(at_rest[name] - rest) / case.m.radius
            )
        rows.append(row)
    return rows
