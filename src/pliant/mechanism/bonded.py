"""`Molecule`: atoms and bonds, and the linkage of rigid groups that turn about the bonds between them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant import shapes
from pliant.checks import entries, numbers
from pliant.errors import MechanismError, UnknownNameError
from pliant.mechanism.builder import Builder
from pliant.mechanism.mechanism import Floats, Ints, Mechanism, ShapeTable
from pliant.text import brief, suggestion

__all__ = ["TORSIONS", "Molecule"]

TORSIONS = ("phi", "psi", "chi")  # of proteins, those that turn by default
_GREY = (0.55, 0.57, 0.6, 1.0)
_BALL, _STICK = 0.6, 0.2  # radii as drawn, over the radius of an atom
_RELAX = 0.1  # default damping over stiffness, ps

Bools = NDArray[np.bool_]


class Molecule:
    """Atoms and bonds as a linkage: groups of atoms are rigid and turn about the rotatable bonds between them.

    A bond turns if it is rotatable and in no ring. Atoms that are joined by other bonds form a group: a body with the
    masses of its atoms, each a homogeneous ball of its radius. Its frame lies, parallel to the world's axes, at the
    atom through which the group is carried, whose name it has. A rotatable bond is a hinge along the bond. The atom
    of the lowest number carries its molecule, on a free joint to the world: `mechanism.with_fixed_base()` holds it.

    Units are those of molecular dynamics: nm, ps and u (g/mol), hence kJ/mol for energies and torques and kJ/(mol nm)
    for forces, 1.66 pN. In metres and kilograms all numbers would be far below those that pliant's checks are made for.
    Gravity is nothing at this scale: pass `gravity=(0, 0, 0)` to simulations.

    Attributes:
        mechanism: the linkage.
        names: of the atoms, (n,).
        positions: of the atoms at the reference pose, (n, 3).
        masses, radii: of the atoms, (n,).
        body: the group of every atom, a number of a body, (n,).
        place: of every atom in the frame of its group, (n, 3).

    Example:
        >>> import pliant
        >>> corners = [(0, 0, 0), (0.1, 0.1, 0), (0.25, 0.1, 0), (0.3, 0.2, 0.1)]
        >>> chain = pliant.Molecule(corners, 12.0, [(0, 1), (1, 2), (2, 3)])
        >>> chain.mechanism
        <Mechanism 'molecule': 2 bodies, 2 joints, 7 dofs, 0 loops>
    """

    __slots__ = ("body", "masses", "mechanism", "names", "place", "positions", "radii")

    mechanism: Mechanism
    names: tuple[str, ...]
    positions: Floats
    masses: Floats
    radii: Floats
    body: Ints
    place: Floats

    def __init__(
        self,
        positions: ArrayLike,
        masses: ArrayLike,
        bonds: ArrayLike,
        rotatable: ArrayLike | None = None,
        *,
        name: str = "molecule",
        names: Sequence[str] | None = None,
        radii: ArrayLike = 0.07,
        stiffness: ArrayLike = 50.0,
        damping: ArrayLike | None = None,
        joints: Sequence[str] | None = None,
        outer: ArrayLike | None = None,
        closing: ArrayLike | None = None,
        ends: Iterable[int] = (),
        colours: ArrayLike = _GREY,
    ):
        """Find the groups and build the linkage.

        Args:
            positions: of the atoms, nm, (n, 3).
            masses: of the atoms, u, one or (n,).
            bonds: pairs of atoms, (m, 2).
            rotatable: bonds that may turn, (m,); by default all with more bonds at either end. Those in rings never do.
            name: of the mechanism.
            names: of the atoms; by default "atom1" and so on.
            radii: of the atoms, nm, one or (n,). Without them a single atom between bonds that turn has no inertia.
            stiffness: of torsions, kJ/(mol rad²), one or (m,). They are slack at the given positions.
            damping: of torsions, kJ ps/(mol rad²), one or (m,); by default 0.1 ps times the stiffness.
            joints: names of the hinges, (m,); by default of the two atoms.
            outer: atoms (m, 2) before and after each bond, that make the coordinate of its hinge their dihedral angle,
                rad; -1 for one that is zero at the given positions.
            closing: bonds that close a loop of torsions, (m,). They do not count as rings, and are hinges that close
                loops of the mechanism, or usual ones if nothing else joins their atoms.
            ends: atoms whose groups are suggested as end effectors; by default the mechanism's own choice.
            colours: red, green, blue and opacity, one or (n, 4).

        Raises:
            MechanismError: positions, masses or bonds cannot be used; the message names the first atom or bond.
        """
        at = numbers(positions, "positions", MechanismError)
        if at.ndim != 2 or at.shape[1] != 3 or not len(at):
            raise MechanismError(
                f"positions: one row of three numbers per atom expected, not shape {at.shape}"
            )
        n = len(at)
        self.names = _names(names, n)
        mass = _per(masses, n, "masses")
        radius = _per(radii, n, "radii", least=0.0)
        if not (np.abs(at) < 1e50).all():
            raise MechanismError(
                f"atom '{self.names[_first(~(np.abs(at) < 1e50))]}': its position is not finite"
            )
        pairs = _pairs(bonds, at, self.names)
        m = len(pairs)
        cut = _mask(closing, m, "closing", False)
        turns = ((np.bincount(pairs.ravel(), minlength=n)[pairs] > 1).all(axis=1)
                 if rotatable is None else _mask(rotatable, m, "rotatable", True))  # fmt: skip
        springs = _per(stiffness, m, "stiffness", least=0.0)
        dampers = _RELAX * springs if damping is None else _per(damping, m, "damping", least=0.0)
        ring, entry_of, cut = _spanning(n, pairs, cut)
        turns = (turns | cut) & ~ring
        hinged = turns & ~cut
        _, group = _components(n, pairs[~hinged & ~cut])
        # A hinge's child is the end that the search from the lowest atom reaches last.
        parent = np.where(entry_of[pairs[:, 1]] == pairs[:, 0], pairs[:, 0], pairs[:, 1])
        child = pairs.sum(axis=1) - parent
        roots = np.flatnonzero(entry_of < 0)
        first = np.concatenate([roots, child[hinged]])  # the atom that carries each group
        number = np.empty(len(first), dtype=np.int64)  # of a group's body: in the order of those atoms
        number[group[np.sort(first)]] = np.arange(len(first))
        body, first = number[group], np.sort(first)

        self.positions, self.masses, self.radii, self.body = at.copy(), mass, radius, body
        self.place = at - at[first][body]
        weight, com, inertia = _solids(self.place, mass, radius, body, len(first))
        b = Builder(name)
        b.bodies(
            [self.names[i] for i in first.tolist()], mass=weight, com=com, inertia=inertia, position=at[first]
        )
        b.free_joints([f"{self.names[i]}:base" for i in roots.tolist()], -1, body[roots])
        if joints is None:
            words = [
                f"{self.names[i]}-{self.names[j]}"
                for i, j in zip(parent.tolist(), child.tolist(), strict=True)
            ]
        else:
            words = _texts(joints, m, "joints")
        angle = _angles(at, parent, child, outer, pairs)
        loops = np.flatnonzero(cut & (body[parent] != body[child]))
        for chosen in (np.flatnonzero(hinged)[np.argsort(child[hinged])], loops):
            axis = at[child[chosen]] - at[parent[chosen]]
            b.hinges(
                [words[i] for i in chosen.tolist()],
                body[parent[chosen]],
                body[child[chosen]],
                anchor=at[child[chosen]],
                axis=axis / np.sqrt((axis**2).sum(axis=1))[:, None],
                stiffness=springs[chosen],
                damping=dampers[chosen],
                reference=angle[chosen],
            )
        b.end_effectors(*dict.fromkeys(self.names[first[body[i]]] for i in _atoms(ends, n)))
        colour = numbers(colours, "colours", MechanismError)
        if colour.shape not in ((4,), (n, 4)):
            raise MechanismError(
                f"colours: four numbers, or {n} rows of them, expected, not shape {colour.shape}"
            )
        self.mechanism = b.build().replace(shape_table=self._shapes(pairs, np.broadcast_to(colour, (n, 4))))

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, torsions: Iterable[str] = TORSIONS) -> Molecule:
        """The proteins of a PDB or mmCIF file; needs the package `gemmi`, pliant[pdb].

        `pliant.load` gives the mechanism alone. What is left out, such as water and ligands, is listed in one
        `UnsupportedWarning`.

        Args:
            path: the file.
            torsions: kinds that turn, of "phi", "psi", "omega" and "chi"; names of joints end in them, as in
                "A:12:LEU:chi1".

        Raises:
            FormatError: the file is broken, or has no protein.
            MissingPackageError: `gemmi` is not installed.
        """
        from pliant.formats import read_molecule

        return read_molecule(path, torsions)

    def places(self, poses: ArrayLike) -> Floats:
        """Positions of all atoms, nm, (n, 3), at poses of the bodies (bodies, 4, 4)."""
        given = numbers(poses, "poses", MechanismError)
        if given.shape != (self.mechanism.body_count, 4, 4):
            raise MechanismError(
                f"poses: those of {self.mechanism.body_count} bodies expected, not {given.shape}"
            )
        return np.einsum("nij,nj->ni", given[self.body, :3, :3], self.place) + given[self.body, :3, 3]

    def where(self, atom: str) -> tuple[str, Floats]:
        """Group of an atom, by name, and the atom's place in its frame, as `apply_wrench(body, point=...)` takes it."""
        if not isinstance(atom, str) or atom not in self.names:
            raise UnknownNameError(f"no atom {brief(atom)}{suggestion(atom, self.names)}")
        i = self.names.index(atom)
        return self.mechanism.body_names[self.body[i]], self.place[i].copy()

    def __repr__(self) -> str:
        return f"<Molecule of {len(self.names)} atoms: {self.mechanism!r}>"

    def _shapes(self, pairs: Ints, colour: Floats) -> ShapeTable:
        """Balls of the atoms and, in grey, sticks of the bonds: drawn, without contact."""
        n, m = len(self.names), len(pairs)
        a, c = pairs.T
        along = self.positions[c] - self.positions[a]
        length = np.sqrt((along**2).sum(axis=1))
        pose = np.tile(np.eye(4), (n + m, 1, 1))
        pose[:n, :3, 3] = self.place
        pose[n:, :3, 3] = self.place[c] - along / 2
        pose[n:, :3, :3] = _frames(along / length[:, None])
        size = np.zeros((n + m, 3))
        size[:n, 0] = _BALL * self.radii
        size[n:, 0] = _STICK * np.minimum(self.radii[a], self.radii[c])
        size[n:, 1] = length / 2
        kind = np.repeat([shapes.KINDS.index("sphere"), shapes.KINDS.index("capsule")], [n, m])
        keep = size[:, 0] > 0
        table = {
            "body": np.concatenate([self.body, self.body[c]]),
            "kind": kind,
            "size": size,
            "pose": pose,
            "rgba": np.concatenate([colour, np.tile(_GREY, (m, 1))]),
            "mesh": np.full(n + m, -1),
            "role": np.full(n + m, shapes.ROLES.index("visual")),
        }
        return ShapeTable(**{key: value[keep] for key, value in table.items()})


# --- checks


def _first(bad: Bools) -> int:
    """Index of the first row where `bad` is true."""
    return int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))


def _array(given: Any) -> NDArray[Any]:
    """An array, or one of no use if there is none."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        return np.array(None)


def _texts(given: Any, n: int, what: str) -> list[str]:
    """`n` strings."""
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or len(given) != n
        or set(map(type, given)) - {str}
    ):
        raise MechanismError(f"{what}: a list of {n} strings expected, not {brief(given)}")
    return list(given)


def _names(given: Any, n: int) -> tuple[str, ...]:
    """Names of atoms, all different."""
    if given is None:
        return tuple(f"atom{i + 1}" for i in range(n))
    found = tuple(_texts(given, n, "names"))
    if len(set(found)) != n:
        seen: set[str] = set()
        raise MechanismError(f"two atoms are called '{next(x for x in found if x in seen or seen.add(x))}'")
    return found


def _per(given: Any, n: int, what: str, least: float | None = None) -> Floats:
    """One number per atom or bond, above zero, or from `least` on."""
    values = numbers(given, what, MechanismError)
    if values.shape not in ((), (n,)):
        raise MechanismError(f"{what}: one number or {n} expected, not shape {values.shape}")
    values = np.broadcast_to(values, (n,)).copy()
    fine = (values > 0 if least is None else values >= least) & (values < 1e50)
    if not fine.all():
        i = _first(~fine)
        rule = "above 0" if least is None else "0 or more"
        raise MechanismError(f"{what}: finite numbers {rule} expected, but number {i} is {values[i]:g}")
    return values


def _mask(given: Any, m: int, what: str, default: bool) -> Bools:
    """True or False per bond."""
    if given is None:
        return np.full(m, default)
    found = _array(given)
    if found.shape != (m,) or found.dtype != np.bool_:
        raise MechanismError(f"{what}: True or False for each of {m} bonds expected, not {brief(given)}")
    return found


def _atoms(given: Any, n: int) -> list[int]:
    """Numbers of atoms."""
    found = _array(entries(given))
    if found.size and (
        found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= n
    ):
        raise MechanismError(f"ends: numbers of atoms from 0 to {n - 1} expected, not {brief(given)}")
    return [int(i) for i in found] if found.size else []


def _pairs(given: Any, at: Floats, names: Sequence[str]) -> Ints:
    """Bonds as pairs of atoms (m, 2): different atoms at different places, none twice."""
    found = _array(given)
    if found.size == 0:
        found = np.zeros((0, 2), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise MechanismError(f"bonds: pairs of numbers of atoms expected, not {brief(given)}")
    found = found.astype(np.int64)
    if len(found) and (found.min() < 0 or found.max() >= len(at)):
        raise MechanismError(f"bonds: numbers of atoms go from 0 to {len(at) - 1}")
    with np.errstate(over="ignore"):
        together = (at[found[:, 0]] == at[found[:, 1]]).all(axis=1)
    if together.any():
        a, b = found[_first(together)]
        raise MechanismError(f"bond '{names[a]}'-'{names[b]}': its atoms lie at the same place")
    _, index = np.unique(np.sort(found, axis=1), axis=0, return_index=True)
    if len(index) < len(found):
        a, b = found[int(np.setdiff1d(np.arange(len(found)), index)[0])]
        raise MechanismError(f"bond '{names[a]}'-'{names[b]}' is listed twice")
    return found


# --- graph


def _graph(n: int, pairs: Ints) -> Any:
    from scipy.sparse import coo_array

    return coo_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()


def _components(n: int, pairs: Ints) -> tuple[int, Ints]:
    """Number of connected parts of a graph, and the part of every vertex."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(_graph(n, pairs), directed=False)
    return int(count), label.astype(np.int64)


def _spanning(n: int, pairs: Ints, closing: Bools) -> tuple[Bools, Ints, Bools]:
    """Bonds in rings (m,), atom before each on the way from the lowest of its molecule (n,), bonds that close loops.

    A closing bond between parts that nothing else joins closes none: it is a bond of the tree.
    """
    from scipy.sparse.csgraph import breadth_first_order

    count, part = _components(n, pairs[~closing])
    closing = closing.copy()
    joined = list(range(count))
    for i in np.flatnonzero(closing).tolist():
        a, b = (_top(joined, int(part[atom])) for atom in pairs[i])
        closing[i] = a == b
        joined[a] = b
    tree = np.flatnonzero(~closing)
    _, part = _components(n, pairs[tree])
    _, lowest = np.unique(part, return_index=True)
    start = np.column_stack([np.full(len(lowest), n), lowest])  # one vertex more, joined to all lowest atoms
    order, before = breadth_first_order(
        _graph(n + 1, np.concatenate([pairs[tree], start])), n, directed=False
    )
    before = before[:n].astype(np.int64)
    before[before == n] = -1
    rank = np.empty(n + 1, dtype=np.int64)
    rank[order] = np.arange(n + 1)
    # Every bond beyond the tree of the search closes a ring with the ways of its ends to where they meet. Ways that
    # were walked are contracted, so each is walked once.
    ring = np.zeros(len(pairs), dtype=bool)
    way = np.full(n, -1)
    a, b = pairs[tree].T
    on = (before[a] == b) | (before[b] == a)
    way[np.where(before[b] == a, b, a)[on]] = tree[on]
    top = list(range(n))
    ranks, above, ways = rank.tolist(), before.tolist(), way.tolist()
    for i in tree[~on].tolist():
        ring[i] = True
        u, v = (_top(top, atom) for atom in pairs[i].tolist())
        while u != v:
            if ranks[u] < ranks[v]:
                u, v = v, u
            ring[ways[u]] = True
            top[u] = above[u]
            u = _top(top, u)
    return ring, before, closing


def _top(above: list[int], i: int) -> int:
    """Representative of a set of vertices; ways to it are halved."""
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


# --- geometry


def _solids(
    place: Floats, mass: Floats, radius: Floats, body: Ints, count: int
) -> tuple[Floats, Floats, Floats]:
    """Mass, centre (in the frame of the places) and inertia about it, of every group of balls."""

    def total(values: Floats) -> Floats:
        return np.bincount(body, values, count).astype(np.float64, copy=False)

    weight = total(mass)
    com = np.column_stack([total(mass * x) / weight for x in place.T])
    off = place - com[body]
    inertia = np.empty((count, 3, 3))
    own = total(0.4 * mass * radius**2)
    for i in range(3):
        for j in range(i, 3):
            product = -off[:, i] * off[:, j] + (i == j) * (off**2).sum(axis=1)
            inertia[:, i, j] = inertia[:, j, i] = total(mass * product) + (i == j) * own
    return weight, com, inertia


def _angles(at: Floats, parent: Ints, child: Ints, outer: Any, pairs: Ints) -> NDArray[Any]:
    """Dihedral angles about all bonds, rad; zero for those without outer atoms."""
    m = len(pairs)
    if outer is None:
        return np.zeros(m)
    ends = _array(outer)
    if (
        ends.shape != (m, 2)
        or ends.dtype.kind not in "iu"
        or (m and (ends.min() < -1 or ends.max() >= len(at)))
    ):
        raise MechanismError(
            f"outer: two numbers of atoms per bond expected, -1 for none, not {brief(outer)}"
        )
    swapped = parent != pairs[:, 0]
    before, after = np.where(swapped[:, None], ends[:, ::-1], ends).T
    u, v, w = at[parent] - at[before], at[child] - at[parent], at[after] - at[child]
    normal, other = np.cross(u, v), np.cross(v, w)
    angle = np.arctan2(np.sqrt((v**2).sum(axis=1)) * (u * other).sum(axis=1), (normal * other).sum(axis=1))
    return np.where((ends >= 0).all(axis=1), angle, 0.0)


def _frames(axis: Floats) -> NDArray[Any]:
    """Rotations (m, 3, 3) with the given unit vectors as z axes."""
    side = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis), axis=1)])
    side /= np.sqrt((side**2).sum(axis=1))[:, None]
    return np.stack([np.cross(side, axis), side, axis], axis=2)
