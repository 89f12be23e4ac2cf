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
from pliant.checks import instance
from pliant.errors import ConvergenceError, InputError, MechanismError
from pliant.mechanism import edit, kinematics, validate
from pliant.mechanism.mechanism import Mechanism
from pliant.text import brief

__all__ = ["LoopCloser", "assemble", "close_loops", "close_reference", "open_loops"]

Floats = NDArray[np.float64]
_PATH_STEP = 0.2  # longest step of held joints along a path, radians and fractions of the radius
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
    from pliant.mechanism.border import make_system
    from pliant.mechanism.border_kernels import close

    free = np.ones(m.nv) if held is None else np.where(held, 0.0, 1.0)
    system, _ = make_system(m, np.zeros(len(m.tendons), dtype=bool), free)
    out, gaps = np.array(q), np.zeros(m.elimination.hard)
    if not close(system, free, out, *kinematics.allocate_poses(m), np.empty((3, 3)), gaps):
        raise open_loops(m, float(np.abs(gaps).max()))
    return out


class LoopCloser:
    """Loop closure at many configurations of one mechanism with loops or couplings; not for several threads at once."""

    def __init__(self, m: Mechanism, held: NDArray[np.bool_]):
        """Set up the work space; `held` are hinges and slides that must not move, (nv,)."""
        from pliant.mechanism.border import make_system

        self._m, self._held, self._free = m, np.flatnonzero(held), np.where(held, 0.0, 1.0)
        self._system, _ = make_system(m, np.zeros(len(m.tendons), dtype=bool), self._free)

    def follow(self, values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Configurations with the held hinges and slides at given values, each along a path from the reference pose.

        Args:
            values: of the held dofs in their order, (samples, held).

        Returns:
            q, (samples, nq), and whether all loops close there, (samples,). Paths stay on the branch of the reference
            pose as long as they pass no singular one.
        """
        from pliant.mechanism.border_kernels import follow

        m, held = self._m, self._held
        out, closed = np.empty((len(values), m.nq)), np.zeros(len(values), dtype=np.int64)
        path = (
            np.array(m.reference),
            m.dof_coordinate[held],
            np.array(values, float),
            m.dof_unit[held],
            _PATH_STEP,
        )
        scratch = *kinematics.allocate_poses(m), np.empty((3, 3)), np.zeros(m.elimination.hard)
        follow(self._system, self._free, *path, np.empty((2, m.nq)), *scratch, out, closed)
        return out, closed == 1


def open_loops(m: Mechanism, error: float) -> ConvergenceError:
    """The error that says that loops do not close; `error` is the largest gap, radians or fractions of the size."""
    return ConvergenceError(
        f"the loops of '{m.name}' do not close: still {error:.2g} (radians, or fractions of its size) apart; "
        "hold fewer joints, or start nearer to a closed pose",
        residual=error,
    )


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
    instance(mechanism, Mechanism, "assemble")
    held = np.zeros(mechanism.nv, dtype=bool)
    if isinstance(coordinates, Mapping):
        for name in coordinates:
            held[_dofs(mechanism, name)] = True
    q = edit.coordinates(mechanism, {} if coordinates is None else coordinates)
    return edit.with_pose(mechanism, close_loops(mechanism, q, held))


def _dofs(m: Mechanism, name: Any) -> Any:
    if not isinstance(name, str):
        raise InputError(f"{brief(name)} is not a joint's name")
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
