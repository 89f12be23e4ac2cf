"""Random mechanisms of every joint type, for property tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import pliant
from pliant.mechanism.joints import BALL
from pliant.mechanism.mechanism import Rows

KINDS = ("hinge", "slide", "ball", "universal", "cylindrical", "planar", "bushing", "stack", "fixed", "free")


def random_mechanism(
    seed: int,
    bodies: int = 6,
    loops: int = 0,
    kinds: tuple[str, ...] = KINDS,
    stiffness: float = 50.0,
    isotropic: bool = False,
    reference: bool = False,
    floating: bool = False,
) -> pliant.Mechanism:
    """A random graph: bodies anywhere, each joined to an earlier one, `loops` further joints between any two.

    Args:
        seed: of the random numbers.
        bodies: how many.
        loops: how many loop-closing joints, at any place in the graph.
        kinds: joint types to draw from.
        stiffness: scale of the springs, 0 for none.
        isotropic: the same stiffness for all dofs of a joint.
        reference: give joints random coordinates at the reference pose, and random rest positions.
        floating: the first body is free, without springs, and no loop goes through the world.
    """
    rng = np.random.default_rng(seed)
    b = pliant.Builder(f"random{seed}")
    for i in range(bodies):
        root = rng.normal(size=(3, 3))
        second = root @ root.T + 0.1 * np.eye(3)
        inertia = 0.05 * (np.trace(second) * np.eye(3) - second)
        b.body(
            f"b{i}",
            mass=rng.uniform(0.5, 2),
            com=0.2 * rng.normal(size=3),
            inertia=inertia,
            position=rng.normal(size=3),
            orientation=unit(rng, 4),
        )
    for i in range(bodies):
        parent = "world" if i == 0 else f"b{rng.integers(i)}"
        if floating and i == 0:
            b.free("j0", "world", "b0")
            continue
        _add_joint(b, rng, f"j{i}", parent, f"b{i}", kinds, stiffness, isotropic, reference)
    for i in range(loops):
        child = int(rng.integers(bodies))
        others = [] if floating else ["world"]
        others += [f"b{k}" for k in range(bodies) if k != child]
        parent = others[rng.integers(len(others))]
        _add_joint(b, rng, f"loop{i}", parent, f"b{child}", kinds, stiffness, isotropic, reference)
    return b.build()


def tied(
    m: pliant.Mechanism, seed: int, couplings: int, tendons: int, balls: bool = True
) -> pliant.Mechanism:
    """The mechanism with couplings over random dofs that hold at its reference, and tendons that are stretched.

    Args:
        m: the mechanism; returned as it is if it has neither hinges nor slides.
        seed: of the random numbers.
        couplings, tendons: how many.
        balls: whether tendons act on balls, too.
    """
    rng = np.random.default_rng(seed)

    straight = np.flatnonzero(m.dof_kind != BALL)
    if not len(straight):
        return m

    def rows(count, dofs):
        sizes = rng.integers(1, min(4, len(dofs)) + 1, size=count)
        return Rows.pack([(rng.choice(dofs, size=n, replace=False), rng.normal(size=n)) for n in sizes])

    given, elastic = rows(couplings, straight), rows(tendons, np.arange(m.nv) if balls else straight)
    return replace(
        m,
        couplings=given,
        coupling_names=tuple(f"c{i}" for i in range(couplings)),
        coupling_offset=given.sums(m.reference[m.dof_coordinate]),
        tendons=elastic,
        tendon_names=tuple(f"t{i}" for i in range(tendons)),
        tendon_stiffness=np.full(tendons, 30.0),
        tendon_damping=np.zeros(tendons),
        tendon_rest=np.zeros(tendons),
    )


def unit(rng: np.random.Generator, size: int) -> np.ndarray:
    v = rng.normal(size=size)
    return v / np.linalg.norm(v)


def _add_joint(b, rng, name, parent, child, kinds, stiffness, isotropic, reference):
    kind = kinds[rng.integers(len(kinds))]
    a = unit(rng, 3)
    c = np.cross(a, unit(rng, 3))
    c /= np.linalg.norm(c)
    count = {
        "hinge": 1,
        "slide": 1,
        "ball": 3,
        "universal": 2,
        "cylindrical": 2,
        "planar": 3,
        "bushing": 6,
        "free": 6,
        "stack": 4,
        "fixed": 0,
    }[kind]
    springs = {}
    if count:
        k = stiffness * rng.uniform(0.5, 2, size=() if isotropic else count)
        springs = {
            "stiffness": k,
            "damping": 0.01 * k,
            "armature": 0.01 if kind not in ("ball", "free", "bushing", "stack") else 0.0,
        }
        if kind in ("ball", "bushing", "free") and not isotropic:
            springs["orientation"] = unit(rng, 4)
        if reference:
            for label in ("reference", "rest"):
                springs[label] = _coordinates(rng, kind)
    anchor = rng.normal(size=3)
    if kind == "fixed":
        b.fixed(name, parent, child)
    elif kind == "slide":
        b.slide(name, parent, child, axis=a, **springs)
    elif kind == "free":
        b.free(name, parent, child, **springs)
    elif kind in ("hinge", "cylindrical"):
        getattr(b, kind)(name, parent, child, anchor=anchor, axis=a, **springs)
    elif kind in ("universal", "planar"):
        getattr(b, kind)(name, parent, child, anchor=anchor, axes=(a, c), **springs)
    elif kind == "stack":
        b.stack(
            name,
            parent,
            child,
            [
                ("hinge", a, anchor),
                ("slide", c, (0, 0, 0)),
                ("hinge", c, rng.normal(size=3)),
                ("hinge", unit(rng, 3), rng.normal(size=3)),
            ],
            **springs,
        )
    else:
        getattr(b, kind)(name, parent, child, anchor=anchor, **springs)


def _coordinates(rng, kind):
    straight = {
        "hinge": 1,
        "slide": 1,
        "universal": 2,
        "cylindrical": 2,
        "planar": 3,
        "stack": 4,
        "ball": 0,
    }.get(kind, 3)
    values = list(0.5 * rng.normal(size=straight))
    if kind in ("ball", "bushing", "free"):
        turn = np.concatenate([[1.0], 0.4 * rng.normal(size=3)])
        values += list(turn / np.linalg.norm(turn))
    return values


def random_q(m: pliant.Mechanism, seed: int, size: float = 1.0) -> np.ndarray:
    """Coordinates away from the reference, loops not respected."""
    from pliant.mechanism import kinematics

    return kinematics.move(m, m.reference.copy(), size * np.random.default_rng(seed).normal(size=m.nv))
