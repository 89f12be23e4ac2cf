"""Loop closure: joint coordinates at which all loops close and all couplings hold, near given ones.

`assemble` is for users, `close_loops` for solvers, `LoopCloser` for many configurations, `close_reference` for files:
keyframes are rounded, and a weld or coupling may ask for another relative pose than the one drawn. The reference pose
is then the nearest one at which everything holds, as MuJoCo's constraints would pull it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import spatial
from pliant.errors import ConvergenceError, InputError, MechanismError
from pliant.mechanism import edit, kinematics, validate
from pliant.mechanism.mechanism import Mechanism

__all__ = ["LoopCloser", "assemble", "close_loops", "close_reference"]

Floats = NDArray[np.float64]
_ROUNDS = 100
_ROUNDING = 1e-13  # gaps of closed loops, radians and fractions of sizes
_PATH_ROUNDS = 25  # at each step of a path
_PATH_STEP = (
    0.2  # longest step of held joints on the way to a configuration, radians and fractions of the radius
)
_CLOSED = 1e-9  # radians and fractions of the radius: gaps up to this are left as a file has them


def close_loops(m: Mechanism, q: Floats, held: NDArray[np.bool_] | None = None) -> Floats:
    """The nearby q with closed loops: Gauss-Newton with least-norm steps, lengths in units of the radius.

    Args:
        m: the mechanism.
        q: the start.
        held: dofs that must not move.

    Raises:
        ConvergenceError: loops do not close.
    """
    if not m.topology.loops and not len(m.couplings):
        return q
    plan = m.elimination
    gaps = plan.scale[: plan.hard] * kinematics.constraint_gaps(m, q, kinematics.link_poses(m, q))
    if np.abs(gaps).max() < _ROUNDING:
        return q  # usual at the reference pose: the kernel need not be compiled for it
    return LoopCloser(m, held).close(q)


class LoopCloser:
    """Loop closure at many configurations of one mechanism with loops or couplings; not for several threads at once."""

    def __init__(self, m: Mechanism, held: NDArray[np.bool_] | None = None):
        """Set up the work space; `held` are dofs that must not move."""
        from pliant.mechanism import elimination_kernels as kernels
        from pliant.mechanism.loop_closure_kernels import Closure

        plan, links = m.elimination, m.links
        n, nv, count = len(links), m.nv, len(plan.scale)
        free = np.ones(nv) if held is None else np.where(held, 0.0, 1.0)
        value = plan.tree.entry_value * np.repeat(free, np.diff(plan.tree.entry_start))
        fronts, motion = plan.allocate()
        matrix = kernels.Matrix(
            position=np.empty((n, 3)),
            screw=np.empty((nv, 6)),
            column=np.zeros((nv, 6)),
            row=np.zeros((nv, 6)),
            tangent=np.zeros((n, 6, 6)),
            stiffness=np.zeros((nv, 3)),
            give=np.zeros(count),
        )
        matrix.stiffness[np.arange(nv), np.arange(nv) - links.dof[plan.owner]] = 1 / m.dof_unit**2
        step, q = np.empty((1, nv)), np.empty(m.nq)
        local, poses = np.zeros((2, n, 4, 4))
        local[:, 3, 3] = poses[:, 3, 3] = 1.0
        self._m, self._held = m, np.flatnonzero(free == 0)
        self._q, self._seen = q, kinematics.read_only(q)
        self._closure = Closure(
            copy=links.loop_copy,
            body=links.loop_body,
            start=m.couplings.start,
            dof=m.couplings.dof,
            coefficient=m.couplings.coefficient,
            offset=m.coupling_offset,
            coordinate=m.dof_coordinate,
            owner=plan.owner,
            unit=m.dof_unit,
            free=free,
            scale=plan.scale[: plan.hard],
            tree=plan.tree._replace(entry_value=value),
            fronts=fronts,
            matrix=matrix,
            motion=motion,
            soft=np.zeros(count, dtype=np.int64),
            gap=np.zeros((1, count)),
            force=np.zeros((1, nv)),
            multipliers=np.empty((1, count)),
            miss=np.empty((3, count)),
            correction=np.empty((2, nv)),
            step=step,
            moved=kinematics.read_only(step[0]),
            local=local,
            poses=poses,
            turn=np.empty((3, 3)),
            vector=np.empty(3),
        )

    def close(self, q: Floats) -> Floats:
        """The nearby q with closed loops.

        Raises:
            ConvergenceError: loops do not close.
        """
        none = np.zeros(0, dtype=np.int64)
        found, gap = self._run(q, none, np.zeros((1, 0)), _ROUNDS, np.inf)
        if gap[0] == 0:
            return found[0]
        raise ConvergenceError(
            f"the loops of '{self._m.name}' do not close: still {gap[0]:.2g} (radians, or fractions of its size) "
            "apart; hold fewer joints, or start nearer to a closed pose",
            residual=float(gap[0]),
        )

    def follow(self, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Configurations with the held hinges and slides at given values, each along a path from the reference pose.

        Args:
            values: of the held dofs in their order, (samples, held).

        Returns:
            q, (samples, nq), and whether all loops close there, (samples,). Paths stay on the branch of the reference
            pose as long as they pass no singular one.
        """
        found, gap = self._run(self._m.reference, self._held, values, _PATH_ROUNDS, _PATH_STEP)
        return found, gap == 0

    def _run(
        self, start: Floats, held: NDArray[np.int64], values: Floats, rounds: int, step: float
    ) -> tuple[Floats, Floats]:
        from pliant.mechanism import loop_closure_kernels as kernels

        m = self._m
        out, gap = np.empty((len(values), m.nq)), np.zeros(len(values))
        path = kinematics.read_only(start), m.dof_coordinate[held], values, m.dof_unit[held], step
        kernels.close(self._closure, m.links.arrays, self._q, self._seen, rounds, *path, out, gap)
        return out, gap


def assemble(
    mechanism: Mechanism, coordinates: Mapping[str, ArrayLike] | ArrayLike | None = None
) -> Mechanism:
    """The mechanism at another reference pose, with loops closed and couplings met.

    Args:
        mechanism: the mechanism.
        coordinates: `{joint or dof: value}`: these are held exactly and all others adapt. Or a whole q (or a
            `Configuration`): the nearest assembled pose.

    Returns:
        A mechanism whose reference pose is the assembled one.

    Raises:
        ConvergenceError: no assembled pose was found.
    """
    held = np.zeros(mechanism.nv, dtype=bool)
    if isinstance(coordinates, Mapping):
        for name in coordinates:
            held[_dofs(mechanism, name)] = True
    q = edit.coordinates(mechanism, {} if coordinates is None else coordinates)
    return edit.with_pose(mechanism, close_loops(mechanism, q, held))


def _dofs(m: Mechanism, name: Any) -> Any:
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not a joint's name")
    joint = m._joint_index.get(name)
    return m.dof_index(name) if joint is None else m.joint_dofs(joint)


def close_reference(attributes: dict[str, Any], rests_at_reference: NDArray[np.bool_]) -> Mechanism:
    """The mechanism of these attributes, its reference pose moved so that loops close and couplings hold.

    Args:
        attributes: those of a `Mechanism`, joints of the tree first; loops are fixed joints, or balls at the identity.
        rests_at_reference: coordinates whose rest follows the reference, (nq,).

    Raises:
        MechanismError: it is not sound, or its loops do not close.
    """
    if len(attributes["joint_names"]) == len(attributes["body_names"]) and not len(attributes["couplings"]):
        return Mechanism(**attributes)  # a tree
    loose = _unchecked(attributes)
    # Check all but the closure: with loop frames and coupling offsets as they are at the given reference pose.
    world = np.concatenate([loose.reference_poses, np.eye(4)[None]])
    frames, loops = loose.parent_frames.copy(), slice(loose.body_count, None)
    child = world[loose.joint_children[loops]] @ loose.child_frames[loops]
    frames[loops] = spatial.se3_inverse(world[loose.joint_parents[loops]]) @ child
    drawn: dict[str, Any] = {
        "parent_frames": frames,
        "coupling_offset": loose.couplings.sums(loose.reference[loose.dof_coordinate]),
    }
    radius = Mechanism(**attributes | drawn).radius
    if _largest_gap(loose, radius) <= _CLOSED:
        return Mechanism(**attributes)
    try:
        with np.errstate(all="ignore"):
            q = close_loops(loose, loose.reference)
            poses = kinematics.link_poses(loose, q)[loose.links.body_link]
    except (ConvergenceError, np.linalg.LinAlgError) as error:
        raise MechanismError(f"the reference pose cannot be assembled: {error}") from None
    rest = np.where(rests_at_reference, q, attributes["rest"])
    return Mechanism(**attributes | {"reference": q, "rest": rest, "reference_poses": poses})


def _unchecked(attributes: dict[str, Any]) -> Mechanism:
    """A mechanism whose loops may be open, only for the solver that closes them."""
    m = object.__new__(Mechanism)
    for field in fields(Mechanism):
        default = field.default_factory() if callable(field.default_factory) else field.default
        object.__setattr__(m, field.name, attributes.get(field.name, default))
    validate.normalize(m)
    return m


def _largest_gap(m: Mechanism, radius: float) -> float:
    """Largest gap of joints and couplings at the reference pose, radians and fractions of the radius."""
    gap = validate.joint_gaps(m)
    distance = np.sqrt((gap[:, :3, 3] ** 2).sum(axis=1)).max(initial=0) / radius
    angle = np.sqrt((spatial.so3_log(gap[:, :3, :3]) ** 2).sum(axis=1)).max(initial=0)
    coupling = np.abs(m.couplings.sums(m.reference[m.dof_coordinate]) - m.coupling_offset).max(initial=0)
    return float(max(distance, angle, coupling))
