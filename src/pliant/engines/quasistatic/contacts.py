"""Contact of a quasi-static mechanism with fixed planes and balls, with Coulomb friction.

The forces of a step are those with which no body is inside of an obstacle where it ends. They act as wrenches on
bodies, so that joints are opened for them as for any other load. Two algorithms give the response of contacts to each
other, as in `solver`: on the joints that are active, or on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.engines.quasistatic import _contacts as kernels
from pliant.engines.quasistatic.solver import Solver
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import Mechanism
from pliant.shapes import KINDS, ROLES, Shape
from pliant.statics.load_kernels import ACTS, FORCE, LINK, LOAD_SIZE, POINT
from pliant.text import brief

__all__ = ["Contact", "Contacts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROOM = 256  # contacts that there is room for at first
_MOST = 1000  # contacts that may carry forces at a time
_AHEAD = (
    1e-3  # of the radius: distance up to which contacts are expected, at least; else the largest thickness
)
_ROUNDS = 4  # times that forces are found in a step, for joints that they open
_SWEEPS = 2000
_EXACT = 1e-12  # of the radius: displacement up to which forces are found
_SETTLED = 1e-9  # of the radius: change of displacement, by a round, that needs no other one
_INSIDE = 1e-9  # of the radius: depth in the reference pose from which on shapes overlap from the start


class Contact(NamedTuple):
    """A body that touches an obstacle.

    Attributes:
        body: its name.
        obstacle: number of the obstacle.
        point: on the body's surface, m, world.
        normal: of the obstacle there, outwards, world.
        distance: of the surfaces, m; negative where they overlap.
        force: on the body, N, world.
    """

    body: str
    obstacle: int
    point: Floats
    normal: Floats
    distance: float
    force: Floats


class Contacts:
    """Obstacles, the shapes that touch them, and the forces between them.

    Attributes:
        forces: of the last step, N, world, per end of every segment and obstacle, (2 segments, obstacles, 3).
    """

    def __init__(self, m: Mechanism, solver: Solver, obstacles: Sequence[Shape], friction: float):
        """Args:
        m: the mechanism.
        solver: its solver.
        obstacles: planes and spheres, fixed to the world.
        friction: coefficient of all contacts.
        """
        md = solver.tree.model
        self._m, self._friction, self._first_leaf = m, friction, md.tree.first_leaf.astype(np.int64)
        self._obstacles = np.array([_row(shape, i) for i, shape in enumerate(obstacles)])
        balls = bool((self._obstacles[:, kernels.KIND] == kernels.BALL).any())
        bodies, group, segments = _segments(m, md.group, md.local, balls)
        order = np.argsort(group, kind="stable")
        self._bodies, self._segments = bodies[order], np.ascontiguousarray(segments[order])
        self._first = np.searchsorted(group[order], np.arange(len(md.groups) + 1))
        ends = self._segments[:, : kernels.THICKNESS].reshape(-1, 2, 3)
        far = np.sqrt((ends**2).sum(axis=2)).max(axis=1) + self._segments[:, kernels.THICKNESS]
        # extents of clusters are those of some bodies only where not all count
        self._size = float(far.max()) if np.isfinite(solver.tree.arrays.leaves.extent).all() else np.inf
        self._ahead = max(_AHEAD * m.radius, float(self._segments[:, kernels.THICKNESS].max()))
        self._found = np.zeros((_ROOM, kernels.CONTACT_SIZE))
        self._poses = np.zeros((len(md.groups), 12))
        self._stack = np.zeros(int(md.tree.depth.max()) + 2, dtype=np.int64)
        self._stacked = np.zeros((len(self._stack), 12))
        self.forces = np.zeros((2 * len(self._segments), len(obstacles), 3))
        self._ignored = np.zeros(self.forces.shape[:2], dtype=bool)
        solver.tree.update_joints(0, len(md.groups))
        inside = self._found_all(solver, -_INSIDE * m.radius)
        self._ignored[_slots(inside)] = True

    # --- which bodies touch

    def _found_all(self, solver: Solver, ahead: float) -> Floats:
        """Contacts of all groups nearer than `ahead`, with poses of joints that belong to the coordinates."""
        joints = solver.tree.arrays.joints
        while True:
            count = kernels.find_all(
                joints, self._poses, self._first, self._segments, self._obstacles, ahead, self._found
            )
            if count <= len(self._found):
                return self._found[:count]
            self._found = np.zeros((2 * len(self._found), kernels.CONTACT_SIZE))

    def _near(self, solver: Solver, everything: bool) -> Floats:
        """Contacts to reckon with in a step; of all groups, or of those near obstacles in the assembly tree."""
        if everything:
            found = self._found_all(solver, self._ahead)
            return found[~self._ignored[_slots(found)]]
        while True:
            count = kernels.find_in_tree(
                solver.tree.arrays,
                self._first_leaf,
                self._size,
                self._first,
                self._segments,
                self._obstacles,
                self._ahead,
                self._stack,
                self._stacked,
                self._found,
            )
            if count <= len(self._found):
                break
            self._found = np.zeros((2 * len(self._found), kernels.CONTACT_SIZE))
        found = self._found[:count]
        return found[~self._ignored[_slots(found)]]

    # --- steps

    def load(self, solver: Solver, rows: Floats) -> None:
        """Set loads, in rows, and the contact forces of the last step."""
        slots = np.argwhere(self.forces.any(axis=2))
        if not len(slots):
            solver.set_loads(rows)
            return
        everything = _computes_all(solver)
        _update(solver, everything)
        near = self._near(solver, everything)
        solver.set_loads(np.concatenate([rows, _load_rows(near, self._kept(near), self._first_leaf)]))

    def step(self, solver: Solver, rows: Floats, scale: float) -> int:
        """A step under loads, in rows, and contact forces; returns the number of whole steps, 0 or 1."""
        everything = _computes_all(solver)
        solver.set_loads(rows)
        _update(solver, everything)
        near = self._near(solver, everything)
        if not len(near):
            done = solver.step(1, scale)
            if done:
                self.forces[:] = 0.0
            return done
        force, radius, parts = self._kept(near), self._m.radius, 3 if self._friction > 0 else 1
        for _ in range(_ROUNDS):
            solver.set_loads(np.concatenate([rows, _load_rows(near, force, self._first_leaf)]))
            system = _Everything(self, solver, near, rows) if everything else _Active(self, solver, near)
            shift = scale * system.accelerations
            shift[:, 0] += near[:, kernels.GAP]
            busy = np.flatnonzero((force[:, 0] > 0) | (shift[:, 0] < 0))
            if not len(busy):
                break
            if len(busy) > _MOST:
                raise ConvergenceError(
                    f"{len(busy)} contacts at a time: {_MOST} are possible; leave the collision shapes of some bodies "
                    "out, by with_role('visual'), or use pliant.World"
                )
            response = scale * system.responses(busy, force, parts)
            old = force[busy, :parts].ravel()
            new, free = old.copy(), shift[busy, :parts].ravel() - response @ old
            kernels.find_forces(parts, response, free, self._friction, _SWEEPS, _EXACT * radius, new)
            moved = np.abs(response @ (new - old)).max()
            force[busy, :parts] = new.reshape(-1, parts)
            if moved <= _SETTLED * radius:
                break
        solver.set_loads(np.concatenate([rows, _load_rows(near, force, self._first_leaf)]))
        done = solver.step(1, scale)
        if done:
            self.forces[:] = 0.0
            self.forces[_slots(near)] = _in_world(near, force)
        return done

    def _kept(self, near: Floats) -> Floats:
        """Forces of the last step along the axes of contacts, within the cone of friction, (contacts, 3)."""
        axes = near[:, kernels.AXES : kernels.POINT].reshape(-1, 3, 3)
        out = np.einsum("nij,nj->ni", axes, self.forces[_slots(near)])
        out[:, 0] = np.maximum(out[:, 0], 0.0)
        size = np.sqrt((out[:, 1:] ** 2).sum(axis=1))
        most = self._friction * out[:, 0]
        out[:, 1:] *= np.where(size > most, most / np.maximum(size, 1e-300), 1.0)[:, None]
        return out

    def table(self, solver: Solver) -> tuple[Contact, ...]:
        """Contacts that carry a force, by the forces of the last step."""
        everything = _computes_all(solver)
        _update(solver, everything)
        near = self._near(solver, everything)
        forces = self.forces[_slots(near)]
        return tuple(
            Contact(
                self._m.body_names[self._bodies[int(row[kernels.SLOT]) // 2]],
                int(row[kernels.OBSTACLE]),
                row[kernels.POINT : kernels.LOCAL].copy(),
                row[kernels.AXES : kernels.AXES + 3].copy(),
                float(row[kernels.GAP]),
                force.copy(),
            )
            for row, force in zip(near, forces, strict=True)
            if force.any()
        )


class _Active:
    """Accelerations and responses of contacts on the joints that a refinement to the tolerance computes."""

    def __init__(self, contacts: Contacts, solver: Solver, near: Floats):
        solver.refine()
        arrays, front, count = solver.tree.arrays, solver.front, len(near)
        self._arrays, self._front, self._near = arrays, front, near
        self._holders, self._frames = np.zeros(count, dtype=np.int64), np.zeros((count, 2, 12))
        kernels.hold(near, contacts._first_leaf, arrays, front, self._holders, self._frames)
        self.accelerations = np.zeros((count, 3))
        kernels.held_accelerations(near, self._holders, self._frames, arrays, self.accelerations)

    def responses(self, which: Ints, force: Floats, parts: int) -> Floats:
        """Accelerations of some contacts per unit force at each, (parts contacts, parts contacts)."""
        near, n = self._near[which], parts * len(which)
        out, spare = np.zeros((n, n)), np.zeros((len(which), 3))
        kernels.held_responses(
            near,
            parts,
            self._holders[which],
            self._frames[which],
            self.accelerations[which],
            self._arrays,
            self._front,
            spare,
            out,
        )
        return out


class _Everything:
    """Accelerations and responses of contacts with all joints computed."""

    def __init__(self, contacts: Contacts, solver: Solver, near: Floats, rows: Floats):
        self._contacts, self._solver, self._near, self._rows = contacts, solver, near, rows
        self._spare = np.zeros((len(contacts._poses), 6))
        self.accelerations = self._solve()

    def _solve(self) -> Floats:
        arrays, out = self._solver.tree.arrays, np.zeros((len(self._near), 3))
        self._solver.step_aba()
        world = arrays.clusters.world
        kernels.all_accelerations(self._near, arrays.joints, world, self._contacts._poses, self._spare, out)
        return out

    def responses(self, which: Ints, force: Floats, parts: int) -> Floats:
        """Accelerations of some contacts per unit force at each, (parts contacts, parts contacts)."""
        out = np.zeros((parts * len(which), parts * len(which)))
        for column, i in enumerate(which.tolist()):
            for part in range(parts):
                pushed = force.copy()
                pushed[i, part] += 1.0
                loads = _load_rows(self._near, pushed, self._contacts._first_leaf)
                self._solver.set_loads(np.concatenate([self._rows, loads]))
                out[:, parts * column + part] = (self._solve() - self.accelerations)[which, :parts].ravel()
        return out


def _computes_all(solver: Solver) -> bool:
    """Whether the next step begins with all joints computed."""
    return solver.small or solver.whole or solver.tree.wide is not None


def _update(solver: Solver, everything: bool) -> None:
    """Bring the poses of joints up to date, or all clusters."""
    if everything:
        solver.tree.update_joints(0, len(solver.tree.model.groups))
    elif not solver.current:
        solver.begin()


def _slots(near: Floats) -> tuple[Ints, Ints]:
    """Numbers of ends and of obstacles of contacts."""
    return near[:, kernels.SLOT].astype(np.int64), near[:, kernels.OBSTACLE].astype(np.int64)


def _in_world(near: Floats, force: Floats) -> Floats:
    """Contact forces in world axes, (contacts, 3), from those along the axes of contacts."""
    axes = near[:, kernels.AXES : kernels.POINT].reshape(-1, 3, 3)
    return np.einsum("nij,ni->nj", axes, force)


def _load_rows(near: Floats, force: Floats, first_leaf: Ints) -> Floats:
    """Rows of loads, on leaves, of contact forces along the axes of contacts."""
    out = np.zeros((len(near), LOAD_SIZE))
    out[:, FORCE : FORCE + 3] = _in_world(near, force)
    out[:, POINT : POINT + 3] = near[:, kernels.LOCAL :]
    out[:, ACTS] = 1.0
    out[:, LINK] = first_leaf[near[:, kernels.GROUP].astype(np.int64)]
    return out[force.any(axis=1)]


def _row(shape: Any, i: int) -> Floats:
    """Row of an obstacle."""
    if not isinstance(shape, Shape):
        raise InputError(f"obstacles: shapes expected, such as pliant.shapes.plane(), not {brief(shape)}")
    if shape.kind not in ("plane", "sphere") or shape.role == "visual":
        raise InputError(
            f"obstacles: number {i} is a {shape.role if shape.role == 'visual' else ''} {shape.kind}; "
            "planes and spheres that touch expected".replace("  ", " ")
        )
    out = np.zeros(kernels.OBSTACLE_SIZE)
    out[kernels.KIND] = kernels.PLANE if shape.kind == "plane" else kernels.BALL
    out[kernels.PLACE : kernels.NORMAL] = shape.pose[:3, 3]
    out[kernels.NORMAL : kernels.RADIUS] = shape.pose[:3, 2]
    out[kernels.RADIUS] = 0.0 if shape.kind == "plane" else shape.size[0]
    return out


def _segments(m: Mechanism, group: NDArray[Any], local: Floats, balls: bool) -> tuple[Ints, Ints, Floats]:
    """Bodies and groups of the segments of all shapes that touch, and the segments, (segments, SEGMENT_SIZE).

    A box has its four long edges, without thickness.
    """
    t, names = m.shape_table, np.array(KINDS)
    touching = (t.body >= 0) & (t.role != ROLES.index("visual"))
    touching[touching] = group[t.body[touching]] >= 0
    kinds = ("sphere", "capsule") if balls else ("sphere", "capsule", "box")
    strange = touching & ~np.isin(names[t.kind], kinds)
    if strange.any():
        i = int(np.flatnonzero(strange)[0])
        raise InputError(
            f"body '{m.body_names[t.body[i]]}' has a {names[t.kind[i]]}: {', '.join(kinds)} expected where bodies may "
            "touch obstacles; give it one of these, and make the other shape with_role('visual')"
        )
    if not touching.any():
        raise InputError(f"'{m.name}' has no body with a shape that touches: give some a sphere or a capsule")
    bodies, rows = [], []
    for kind in kinds:
        i = np.flatnonzero(touching & (names[t.kind] == kind))
        axis = np.zeros((len(i), 3))
        if kind == "capsule":
            axis[:, 2] = t.size[i, 1]
        for corner in ((1, 1), (1, -1), (-1, 1), (-1, -1)) if kind == "box" else ((0, 0),):
            middle = np.zeros((len(i), 3))
            if kind == "box":
                middle[:, :2] = corner * t.size[i, :2]
                axis[:, 2] = t.size[i, 2]
            placed = local[t.body[i], :3] @ t.pose[i]
            ends = [
                np.einsum("nij,nj->ni", placed[:, :, :3], middle + sign * axis) + placed[:, :, 3]
                for sign in (1, -1)
            ]
            thickness = np.zeros(len(i)) if kind == "box" else t.size[i, 0]
            rows.append(np.concatenate([*ends, thickness[:, None]], axis=1))
            bodies.append(t.body[i])
    body = np.concatenate(bodies)
    return body, group[body].astype(np.int64), np.concatenate(rows)
