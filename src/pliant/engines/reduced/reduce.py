"""`reduce`: from a mechanism to a model of its end effectors, after all checks of the input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.checks import choice, number, whole
from pliant.engines.reduced.condensation import (
    INERTIAS,
    admissible_directions,
    condense,
    length_unit,
    static_shapes,
    twist_scale,
)
from pliant.engines.reduced.model import FreeBase, ReducedModel
from pliant.engines.reduced.projection import project, project_recursively
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.statics import Configuration
from pliant.statics.loads import Load
from pliant.text import brief

__all__ = ["reduce"]

_PROJECTIONS = ("exact", "recursive")
_LOCKED = 1e-13  # of the compliance without loops: an end effector with less cannot move
_OPEN = 1e-6  # of the radius: largest opening of loops at a configuration
_LEAST_REACH = 1e-6  # radii: smaller motions are near the rounding of places


def reduce(
    mechanism: Mechanism,
    end_effectors: str | Sequence[str] | None = None,
    at: Configuration | None = None,
    projection: str = "exact",
    inertia: str = "condensed",
    modes: int = 0,
    *,
    reach: float | None = None,
    tolerance: float = 0.01,
    default_stiffness: float | None = None,
    rank_tolerance: float | None = None,
    progress: bool = False,
) -> ReducedModel:
    """Reduce a mechanism to compliance, inertia and damping at its end effectors (FORK⁻¹S, TVCG sections 3 to 6).

    Args:
        mechanism: the mechanism, in balance at its reference pose. A free joint to the world that carries the end
            effectors makes a floating base.
        end_effectors: one body or several; those the mechanism suggests if None.
        at: linearise here instead of at the reference pose. An equilibrium brings its loads along: their geometric
            stiffness, and the wrenches on end effectors as the model's `wrench`; gravity, wrenches on other bodies
            and stiffness near joint limits keep acting. Any other configuration is taken as held by its springs,
            without loads.
        projection: "exact", any topology; or "recursive", TVCG's construction link by link, where that is exact.
        inertia: "condensed", links follow statically; "operational", right at the first instant of an impact;
            "accelerability", TVCG's.
        modes: number of fixed-interface modes to add to a condensed model: inner vibrations.
        reach: add vectors to the basis, chosen from sampled equilibria, until the error at rest is within `tolerance`
            for forces on the end effectors that move them by this many radii to first order. With several end
            effectors the basis is compressed to as few coordinates as that takes. `ReducedModel.reach` is what was
            reached.
        tolerance: with `reach`: error of the positions of end effectors at rest, as a fraction of their displacement.
        default_stiffness: for degrees of freedom that no spring holds, N m/rad or N/m.
        rank_tolerance: singular values of the compliance (lengths in radii) below this fraction of the largest
            count as zero; rounding decides if None (TVCG Eq. 9).
        progress: show a progress bar while vectors are chosen.

    Raises:
        InputError: an argument is unusable, an end effector cannot move at all, or one is held by no spring.

    Example:
        >>> import pliant
        >>> model = pliant.reduce(pliant.gallery.helix(50), "link50")
        >>> model.rank
        6
    """
    _check(mechanism, projection, inertia, modes, default_stiffness, rank_tolerance)
    _check_reach(reach, tolerance, inertia)
    bodies = _end_effectors(mechanism, end_effectors)
    if at is not None:
        _check_configuration(mechanism, at)
    m, at, base = _fix_base(mechanism, bodies, at)
    if default_stiffness is not None and m.springless:
        if at is not None and at.residual is not None:
            raise InputError(
                "default_stiffness would change the springs of an equilibrium: "
                "use `with_stiffness` first, then `equilibrium`"
            )
        m = m.with_stiffness(m.springless, default_stiffness)
        at = None if at is None else Configuration(m, at.q)
    found = (
        project(m, bodies, at)
        if projection == "exact"
        else project_recursively(m, bodies, at, rank_tolerance)
    )
    if not np.isfinite(found.compliance).all():
        raise InputError(
            f"the compliance of {', '.join(bodies)} is not finite: the configuration is singular"
        )
    length = length_unit(Configuration(m, found.q))
    scale = twist_scale(length, len(bodies))
    _check_mobility(m, bodies, scale[:, None] * found.compliance * scale, scale[:, None] * found.rows)
    directions = admissible_directions(found.compliance, scale, m.nv, rank_tolerance)
    shapes = static_shapes(found, directions, scale)
    condensed = condense(m, found, shapes, directions, scale, inertia, modes)
    held = None if at is None or at.residual is None else at
    model = ReducedModel(
        mechanism=m,
        end_effectors=bodies,
        q=found.q,
        compliance=found.compliance,
        wrench=found.wrench,
        load_stiffness=found.load_stiffness,
        length=length,
        joint_map=found.joint_map,
        multipliers=found.multipliers,
        directions=directions,
        basis=condensed.basis,
        reduced_stiffness=condensed.stiffness,
        reduced_mass=condensed.mass,
        reduced_damping=condensed.damping,
        base=base,
        projection=projection,
        inertia=inertia,
        limits=at is not None and at.limits,
        gravity=held and held.gravity,
        wrenches={body: Load.parse(value, body) for body, value in held.wrenches.items()} if held else {},
    )
    if reach is None:
        return model
    from pliant.engines.reduced.reach import reaching  # it builds on models and blends

    return reaching(model, found, modes, reach, tolerance, progress)


def _check(
    m: object, projection: str, inertia: str, modes: int, default: float | None, rank_tolerance: float | None
) -> None:
    if not isinstance(m, Mechanism):
        raise InputError(f"reduce: a Mechanism expected, not {brief(m)}")
    choice(projection, "projection", _PROJECTIONS)
    choice(inertia, "inertia", INERTIAS)
    if whole(modes, "modes") and inertia != "condensed":
        raise InputError(f'modes go with inertia="condensed": with {inertia!r} they would count mass twice')
    if default is not None:
        number(default, "default_stiffness", above=0.0)
    if rank_tolerance is not None:
        number(rank_tolerance, "rank_tolerance", least=0.0, below=1.0)


def _check_reach(reach: float | None, tolerance: float, inertia: str) -> None:
    if reach is None:
        return
    number(reach, "reach", least=_LEAST_REACH, most=10.0, expected="a number of radii from 1e-6 to 10")
    number(tolerance, "tolerance", above=0.0, below=1.0)
    if inertia != "condensed":
        raise InputError(
            f'reach goes with inertia="condensed": with {inertia!r} vectors would count mass twice'
        )


def _end_effectors(m: Mechanism, given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is not None and not isinstance(given, str | Sequence):
        raise InputError(f"end effectors: a name or a list of names expected, not {brief(given)}")
    bodies = m.end_effectors if given is None else (given,) if isinstance(given, str) else tuple(given)
    if not bodies:
        raise InputError(
            f"'{m.name}' suggests no end effectors: name some bodies, as in `reduce(m, ['tip'])`"
        )
    for i, body in enumerate(bodies):
        if m.body_index(body) < 0:
            raise InputError("the world cannot be an end effector: name a body")
        if body in bodies[:i]:
            raise InputError(f"end effector '{body}' is named twice: name every body once")
    return bodies


def _check_configuration(m: Mechanism, at: object) -> None:
    if not isinstance(at, Configuration):
        raise InputError(f"at: a Configuration expected, as `pliant.equilibrium` gives it, not {brief(at)}")
    if at.mechanism is not m:
        raise InputError(
            f"at: a configuration of this very '{m.name}' expected; after an edit, find the equilibrium again"
        )
    if at.stability == "unstable":
        raise InputError("at: the equilibrium is unstable, so no small force holds the end effectors near it")
    if m.topology.loops:
        gap = np.abs(at.loop_residual / ([m.radius] * 3 + [1] * 3)).max()
        if gap > _OPEN:
            raise InputError(
                f"at: loops are open by {gap:.1e} of the radius; close them with `pliant.assemble`"
            )


def _fix_base(
    m: Mechanism, bodies: Sequence[str], at: Configuration | None
) -> tuple[Mechanism, Configuration | None, FreeBase | None]:
    """Mechanism with free joints to the world fixed, its configuration, and the floating base if there is one."""
    loose = list(m.floating)
    if not loose:
        return m, at, None
    carriers = sorted({_root(m, m.body_index(body)) for body in bodies})
    floating = [j for j in loose if m.joint_children[j] in carriers]
    if floating and len(carriers) > 1:
        names = ", ".join(f"'{m.body_names[b]}'" for b in carriers)
        raise InputError(
            f"the end effectors hang on different bases ({names}): reduce one mechanism at a time"
        )
    held = at is not None and at.residual is not None
    if held and floating:
        raise InputError("a floating base is in no equilibrium: `with_fixed_base` first, or give no `at`")
    if held:
        return m, at, None
    free = m if at is None else m.with_pose(at.q)
    fixed = free.with_fixed_base()
    if not floating:
        return fixed, None, None
    base = int(m.joint_children[floating[0]])
    for j in m.topology.chords.tolist():
        if m.joint_parents[j] < 0 and _root(m, int(m.joint_children[j])) == base:
            raise InputError(
                f"joint '{m.joint_names[j]}' ties the floating '{m.body_names[base]}' to the world: "
                "remove it, or fix the base with `with_fixed_base`"
            )
    return fixed, None, FreeBase(m.body_names[base], _total_inertia(fixed, base), free)


def _root(m: Mechanism, body: int) -> int:
    while m.topology.parent[body] >= 0:
        body = int(m.topology.parent[body])
    return body


def _total_inertia(m: Mechanism, base: int) -> NDArray[np.float64]:
    """Spatial inertia of all bodies that `base` carries, at the reference pose, about its origin, (6, 6)."""
    from pliant.statics.inertia import Inertia

    inertias = Inertia(m, m.reference).links[m.links.body_link]
    total = np.zeros((6, 6))
    for body in range(m.body_count):
        if _root(m, body) == base:
            # Twist of the body per twist of the base, both in their own frames.
            motion = spatial.adjoint(spatial.se3_inverse(m.reference_poses[body]) @ m.reference_poses[base])
            total += motion.T @ inertias[body] @ motion
    return total


def _check_mobility(
    m: Mechanism, bodies: Sequence[str], compliance: NDArray[np.float64], rows: NDArray[np.float64]
) -> None:
    """Refuse end effectors that cannot move; compliance and Jacobian of the end effectors with lengths scaled."""
    sprung = m.stiffness > 0
    for e, body in enumerate(bodies):
        part = slice(6 * e, 6 * e + 6)
        own = np.abs(compliance[part, part]).max()
        # Compliance of the springs without loops: below its rounding an end effector does not move.
        loose = (rows[part, sprung] ** 2 / m.stiffness[sprung]).sum(axis=1).max(initial=0.0)
        if own > _LOCKED * loose and own > 0:
            continue
        path, at = [], m.body_index(body)
        while at >= 0:
            joint = int(m.topology.tree_joint[at])
            path.append(f"'{m.joint_names[joint]}'")
            at = int(m.topology.parent[at])
        through = ", ".join(path[:5]) + (" ..." if len(path) > 5 else "")
        if not m.nv:
            raise InputError(f"nothing in '{m.name}' can move: all its joints are fixed")
        loops = " and closed loops" if m.topology.loops else ""
        raise InputError(
            f"end effector '{body}' cannot move: held to the world by {through}{loops}; "
            "name a body beyond a joint that gives way"
        )
