"""`Molecule`: rings, groups, masses, torsions and loops, beside slow independent ways to find them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from pliant.errors import MechanismError, UnknownNameError


def joined(n: int, bonds, start: int) -> set[int]:
    """Atoms that bonds join to one, by trying until nothing is new."""
    found = {start}
    while True:
        more = {x for a, b in bonds for x in (a, b) if (a in found) != (b in found)} - found
        if not more:
            return found
        found |= more


def rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def turned(at: np.ndarray, bonds, torsion: tuple[int, int], angle: float) -> np.ndarray:
    """Atoms with those beyond a bond turned about it, from its first atom on."""
    a, b = torsion
    beyond = sorted(joined(len(at), [x for x in bonds if set(x) != {a, b}], b))
    assert a not in beyond
    out = at.copy()
    out[beyond] = (at[beyond] - at[b]) @ rotation(at[b] - at[a], angle).T + at[b]
    return out


def random_bonds(rng: np.random.Generator, n: int, rings: int) -> list[tuple[int, int]]:
    """A tree, perhaps two, with a few bonds more."""
    bonds = [(int(rng.integers(max(0, i - 4), i)), i) for i in range(1, n) if rng.random() > 0.05]
    for _ in range(rings):
        a, b = sorted(rng.choice(n, 2, replace=False).tolist())
        if (a, b) not in bonds:
            bonds.append((a, b))
    order = rng.permutation(len(bonds))
    return [bonds[i] if rng.random() < 0.5 else bonds[i][::-1] for i in order]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(0, 4))
def test_groups_torsions_and_masses(seed, n, rings):
    """Rings, groups, masses and inertias as by trying everything; torsions turn what is beyond them."""
    rng = np.random.default_rng(seed)
    at, mass, radius = rng.normal(size=(n, 3)), rng.uniform(1, 32, n), rng.uniform(0.03, 0.1, n)
    bonds = random_bonds(rng, n, rings)
    rotatable = rng.random(len(bonds)) < 0.7
    molecule = pliant.Molecule(at, mass, bonds, rotatable, radii=radius)
    m = molecule.mechanism

    loose = [
        (a, b)
        for (a, b), free in zip(bonds, rotatable, strict=True)
        if free and b not in joined(n, [x for x in bonds if x != (a, b)], a)
    ]
    stiff = [x for x in bonds if x not in loose]
    for i in range(n):
        group = sorted(joined(n, stiff, i))
        assert np.flatnonzero(molecule.body == molecule.body[i]).tolist() == group
        body = molecule.body[i]
        assert m.mass[body] == pytest.approx(mass[group].sum(), rel=1e-14)
        centre = (mass[group, None] * at[group]).sum(axis=0) / mass[group].sum()
        inertia = np.zeros((3, 3))
        for j in group:
            d = at[j] - centre
            inertia += mass[j] * ((d @ d + 0.4 * radius[j] ** 2) * np.eye(3) - np.outer(d, d))
        pose = m.reference_poses[body]
        np.testing.assert_allclose(pose[:3, 3] + m.com[body], centre, atol=1e-12)
        np.testing.assert_allclose(m.inertia[body], inertia, atol=1e-12 * inertia.max())
        np.testing.assert_array_equal(pose[:3, :3], np.eye(3))
    assert m.joint_types.count("hinge") == len(loose)
    assert m.joint_types.count("free") == m.body_count - len(loose)
    assert m.topology.loops == 0

    q, expected = m.reference.copy(), at
    names = {name: i for i, name in enumerate(molecule.names)}
    for j, name in enumerate(m.joint_names):
        if m.joint_types[j] == "hinge":
            angle = rng.uniform(-np.pi, np.pi)
            a, b = (names[word] for word in name.split("-"))
            q[m.joint_coordinates(j)] += angle
            expected = turned(expected, bonds, (a, b), angle)
    places = molecule.places(pliant.Configuration(m, q).poses)
    np.testing.assert_allclose(places, expected, atol=1e-12 * max(1, np.abs(expected).max()))


def test_bonds_that_turn_by_themselves():
    """Butane-like chain on a ring: neither its bonds nor those to a last atom turn."""
    rng = np.random.default_rng(0)
    bonds = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5)]
    m = pliant.Molecule(rng.normal(size=(6, 3)), 12.0, bonds).mechanism
    assert m.joint_names == ("atom1:base", "atom3-atom4", "atom4-atom5")
    assert m.body_names == ("atom1", "atom4", "atom5")
    assert m.stiffness[-2:].tolist() == [50.0, 50.0]
    assert m.damping[-2:].tolist() == [5.0, 5.0]
    assert set(m.shape_table.role.tolist()) == {1}  # only drawn
    assert m.with_fixed_base().nv == 2


def test_coordinates_are_dihedral_angles():
    """With outer atoms coordinates are the angles that other formulas give, and stay so."""
    rng = np.random.default_rng(1)
    at = np.cumsum(rng.normal(size=(7, 3)), axis=0)
    bonds = [(0, 1), (2, 1), (2, 3), (4, 3), (4, 5), (5, 6)]
    outer = [(-1, -1), (3, 0), (1, 4), (5, 2), (3, 6), (-1, -1)]
    molecule = pliant.Molecule(at, 12.0, bonds, outer=outer)
    m = molecule.mechanism
    q = m.reference + np.concatenate([np.zeros(7), rng.uniform(-1, 1, 4)])
    for coordinates in (m.reference, q):
        places = molecule.places(pliant.Configuration(m, coordinates).poses)
        for k in range(4):
            a, b, c, d = places[k : k + 4]
            n1, n2 = np.cross(b - a, c - b), np.cross(c - b, d - c)
            angle = np.arccos(n1 @ n2 / np.linalg.norm(n1) / np.linalg.norm(n2)) * np.sign(n1 @ (d - c))
            assert np.cos(coordinates[7 + k] - angle) == pytest.approx(1, abs=1e-12)
            assert np.sin(coordinates[7 + k] - angle) == pytest.approx(0, abs=1e-9)


def ring(n: int, closing: bool) -> pliant.Molecule:
    """A wavy ring of n atoms."""
    turn = 2 * np.pi * np.arange(n) / n
    at = np.column_stack([np.cos(turn), np.sin(turn), 0.2 * np.cos(3 * turn)]) * n / 40
    bonds = [(i, (i + 1) % n) for i in range(n)]
    return pliant.Molecule(at, 12.0, bonds, closing=np.arange(n) == n - 1 if closing else None)


def test_rings_are_rigid_unless_a_bond_closes_a_loop():
    assert ring(12, False).mechanism.body_count == 1
    molecule = ring(12, True)
    m = molecule.mechanism
    assert (m.joint_types.count("hinge"), m.topology.loops) == (12, 1)
    held = m.with_fixed_base()
    last = held.body_names[6]
    moved = pliant.equilibrium(held, {last: (0.0, 0.0, 50.0)})
    at = molecule.places(moved.poses)
    assert np.linalg.norm(at - molecule.positions, axis=1).max() > 0.01
    for one, other in ((1, molecule.positions), (2, molecule.positions)):  # bonds, and angles between them
        before = np.linalg.norm(other - np.roll(other, one, axis=0), axis=1)
        np.testing.assert_allclose(np.linalg.norm(at - np.roll(at, one, axis=0), axis=1), before, atol=1e-9)


def test_a_closing_bond_between_two_parts_is_a_bond_of_the_tree():
    rng = np.random.default_rng(2)
    bonds = [(0, 1), (1, 2), (3, 4), (4, 5), (1, 4), (2, 5)]
    closing = [False, False, False, False, True, True]
    m = pliant.Molecule(rng.normal(size=(6, 3)), 12.0, bonds, closing=np.array(closing)).mechanism
    assert (m.joint_types.count("free"), m.topology.loops) == (1, 1)
    m = pliant.Molecule(rng.normal(size=(6, 3)), 12.0, bonds[:5], closing=np.array(closing[:5])).mechanism
    assert (m.joint_types.count("free"), m.topology.loops) == (1, 0)


def test_where_atoms_are():
    molecule = pliant.Molecule(
        [(0, 0, 0), (1, 0, 0), (1, 1, 0), (2, 1, 0)], 12.0, [(0, 1), (1, 2), (2, 3)], ends=[3]
    )
    body, place = molecule.where("atom4")
    assert (body, place.tolist()) == ("atom3", [1, 0, 0])
    assert molecule.mechanism.end_effectors == ("atom3",)
    with pytest.raises(UnknownNameError, match="did you mean 'atom4'"):
        molecule.where("atom5")
    with pytest.raises(MechanismError, match="those of 2 bodies"):
        molecule.places(np.eye(4))


def test_a_long_ring_and_a_long_chain_take_no_recursion():
    n = 50_000
    at = np.column_stack([np.arange(n) * 0.1, np.sin(np.arange(n)), np.cos(np.arange(n))])
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    assert pliant.Molecule(at, 12.0, chain).mechanism.joint_types.count("hinge") == n - 3
    assert pliant.Molecule(at, 12.0, np.concatenate([chain, [[0, n - 1]]])).mechanism.body_count == 1


GOOD = {"positions": [(0, 0, 0), (1, 0, 0), (1, 1, 0)], "masses": 12.0, "bonds": [(0, 1), (1, 2)]}
BAD = [
    ({"positions": []}, "positions: one row"),
    ({"positions": [(0, 0)]}, "positions: one row"),
    ({"positions": "x"}, "positions: numbers expected"),
    ({"positions": [(0, 0, 0), (np.nan, 0, 0), (1, 1, 0)]}, "'atom2': its position is not finite"),
    ({"positions": [(0, 0, 0), (0, 0, 0), (1, 1, 0)]}, "'atom1'-'atom2': its atoms lie at the same place"),
    ({"masses": 0.0}, "masses: finite numbers above 0"),
    ({"masses": [1.0, 2.0]}, "masses: one number or 3"),
    ({"masses": [1.0, np.inf, 2.0]}, "number 1 is inf"),
    ({"bonds": [(0, 3)]}, "numbers of atoms go from 0 to 2"),
    ({"bonds": [(0, 0)]}, "'atom1'-'atom1': its atoms lie at the same place"),
    ({"bonds": [(0, 1), (1, 0)]}, "'atom2'-'atom1' is listed twice"),
    ({"bonds": [(0.5, 1)]}, "bonds: pairs of numbers"),
    ({"bonds": 3}, "bonds: pairs of numbers"),
    ({"bonds": [(0, 1), (1,)]}, "bonds: pairs of numbers"),
    ({"rotatable": [1, 0]}, "rotatable: True or False for each of 2 bonds"),
    ({"closing": [True]}, "closing: True or False"),
    ({"names": ["a", "b"]}, "names: a list of 3 strings"),
    ({"names": ["a", "b", "a"]}, "two atoms are called 'a'"),
    ({"joints": "ab"}, "joints: a list of 2 strings"),
    ({"radii": -0.1}, "radii: finite numbers 0 or more"),
    ({"radii": 0.0, "rotatable": [True, True]}, "principal moments of inertia"),
    ({"stiffness": -1.0}, "stiffness: finite numbers 0 or more"),
    ({"damping": np.nan}, "damping: finite numbers"),
    ({"outer": [(0, 5), (0, 0)]}, "outer: two numbers"),
    ({"ends": [7]}, "ends: numbers of atoms from 0 to 2"),
    ({"colours": (1, 0)}, "colours: four numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_arguments(change, message):
    with pytest.raises(MechanismError, match=message):
        pliant.Molecule(**(GOOD | change))  # pyright: ignore[reportArgumentType]
