"""Proteins from PDB and mmCIF files: atoms and bonds with named torsions, read by the package `gemmi`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.checks import entries
from pliant.errors import FormatError, MechanismError, UnsupportedWarning
from pliant.extras import require
from pliant.files import as_path, read_bytes
from pliant.formats.left_out import LeftOut
from pliant.mechanism import TORSIONS, Molecule
from pliant.text import brief, listed

__all__ = ["Protein", "is_structure", "parse", "read_molecule"]

MAX_BYTES = 300_000_000
_KINDS = ("phi", "psi", "omega", "chi")
_STIFFNESS = {"omega": 160.0}  # kJ/(mol rad²): a twofold barrier of 80 kJ/mol
_OTHERS = 50.0  # a threefold one of 11 kJ/mol
_SLACK = 0.04  # nm: a bond is at most the sum of covalent radii and this
_PEPTIDE, _SULFUR, _LINK = 0.2, 0.25, 0.3  # nm: the longest bonds between residues
_MANY = 300  # atoms of a residue: more are no amino acid
_CROWDED = 12  # atoms within the length of a bond: more lie on top of each other

# Atoms along the side chain: torsion k is about the bond from atom k to atom k + 1, counted from 1.
_CHI = {
    "ARG": "N CA CB CG CD NE CZ",
    "ASN": "N CA CB CG OD1",
    "ASP": "N CA CB CG OD1",
    "CYS": "N CA CB SG",
    "GLN": "N CA CB CG CD OE1",
    "GLU": "N CA CB CG CD OE1",
    "HIS": "N CA CB CG ND1",
    "ILE": "N CA CB CG1 CD1",
    "LEU": "N CA CB CG CD1",
    "LYS": "N CA CB CG CD CE NZ",
    "MET": "N CA CB CG SD CE",
    "MSE": "N CA CB CG SE CE",
    "PHE": "N CA CB CG CD1",
    "SER": "N CA CB OG",
    "THR": "N CA CB OG1",
    "TRP": "N CA CB CG CD1",
    "TYR": "N CA CB CG CD1",
    "VAL": "N CA CB CG1",
}
_ALIASES = {  # of programs that name what is protonated or bridged
    "ASH": "ASP", "CYM": "CYS", "CYX": "CYS", "GLH": "GLU", "HID": "HIS", "HIE": "HIS", "HIP": "HIS", "HSD": "HIS",
    "HSE": "HIS", "HSP": "HIS", "LYN": "LYS",
}  # fmt: skip
_NO_CHI = {"ALA", "GLY", "PRO"}
_WATER = {"SOL", "SPC", "TIP", "TIP3", "TIP4", "TP3"}  # names that gemmi does not know
_CAPS = {"ACE", "FOR", "NH2", "NMA", "NME"}
_COLOURS = {
    1: (0.92, 0.92, 0.92, 1.0),
    6: (0.36, 0.38, 0.41, 1.0),
    7: (0.26, 0.47, 0.76, 1.0),
    8: (0.82, 0.31, 0.29, 1.0),
    16: (0.96, 0.78, 0.30, 1.0),
}
_OTHER_COLOUR = (0.93, 0.55, 0.22, 1.0)
_RECORDS = [
    "ANISOU",
    "ATOM",
    "AUTHOR",
    "CAVEAT",
    "CISPEP",
    "COMPND",
    "CONECT",
    "CRYST1",
    "DBREF",
    "DBREF1",
    "DBREF2",
    "END",
    "ENDMDL",
    "EXPDTA",
    "FORMUL",
    "HEADER",
    "HELIX",
    "HET",
    "HETATM",
    "HETNAM",
    "HETSYN",
    "JRNL",
    "KEYWDS",
    "LINK",
    "MASTER",
    "MDLTYP",
    "MODEL",
    "MODRES",
    "MTRIX1",
    "NUMMDL",
    "OBSLTE",
    "ORIGX1",
    "REMARK",
    "REVDAT",
    "SCALE1",
    "SEQADV",
    "SEQRES",
    "SHEET",
    "SITE",
    "SOURCE",
    "SPLIT",
    "SPRSDE",
    "SSBOND",
    "TER",
    "TITLE",
    "USER",
]


class Protein(NamedTuple):
    """Content of a file: the molecule, and what it does not have."""

    molecule: Molecule
    left_out: LeftOut


class _Residue(NamedTuple):
    """A residue: its label, its name, whether it is no cap, and its atoms by name, as numbers."""

    label: str
    name: str
    amino: bool
    atoms: dict[str, int]


class _Atoms:
    """Columns of the atoms that are read, and their residues chain by chain."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.positions: list[tuple[float, float, float]] = []
        self.elements: list[int] = []
        self.masses: list[float] = []
        self.radii: list[float] = []
        self.chains: list[list[_Residue]] = []


class _Bonds:
    """Bonds by their atoms, with the torsion about each."""

    def __init__(self) -> None:
        self.number: dict[tuple[int, int], int] = {}
        self.pairs: list[tuple[int, int]] = []
        self.joint: list[str] = []
        self.kind: list[str] = []  # "" for one that does not turn
        self.outer: list[tuple[int, int]] = []
        self.closing: list[bool] = []

    def add(self, a: int, b: int, *, closing: bool = False, name: str = "") -> None:
        """Add a bond, unless it is there."""
        key = (min(a, b), max(a, b))
        if key not in self.number:
            self.number[key] = len(self.pairs)
            self.pairs.append(key)
            self.joint.append(name)
            self.kind.append("")
            self.outer.append((-1, -1))
            self.closing.append(closing)

    def turn(self, kind: str, name: str, atoms: list[int | None]) -> None:
        """Name the torsion about the bond between the middle ones of four atoms, if all are there and bonded."""
        before, a, b, after = atoms
        if before is None or a is None or b is None or after is None:
            return
        if self.has(before, a) and self.has(a, b) and self.has(b, after):
            i = self.number[min(a, b), max(a, b)]
            self.kind[i], self.joint[i] = kind, name
            self.outer[i] = (before, after) if a < b else (after, before)

    def has(self, a: int, b: int) -> bool:
        """Whether two atoms are bonded."""
        return (min(a, b), max(a, b)) in self.number


def is_structure(head: bytes) -> str | None:
    """The format of a file that begins like this: "pdb", "mmcif", or None for neither."""
    for line in head.splitlines():
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        if text[:5].lower() == b"data_":
            return "mmcif"
        return "pdb" if text[:6].decode("latin-1").strip().split(" ")[0] in _RECORDS else None
    return None


def read_molecule(
    path: str | os.PathLike[str], torsions: Iterable[str] = TORSIONS, level: int = 3
) -> Molecule:
    """See `Molecule.read`; `level` is that of the warning."""
    path = as_path(path)
    data = read_bytes(path, MAX_BYTES)
    found = parse(data, path, torsions)
    warn(found.left_out, path, level)
    return found.molecule


def warn(left_out: LeftOut, path: Path, level: int) -> None:
    """One warning of what was left out, if anything was."""
    if left_out.warning():
        warnings.warn(
            f"'{path}': left out what is no part of a protein's torsions: {left_out.warning()}",
            UnsupportedWarning,
            stacklevel=level + 1,
        )


def parse(data: bytes, path: Path, torsions: Iterable[str] = TORSIONS) -> Protein:
    """The proteins in the content of a file.

    Raises:
        FormatError: the file is broken, or has no protein.
        MissingPackageError: `gemmi` is not installed.
    """
    chosen = _chosen(torsions)
    if len(data) > MAX_BYTES:
        raise FormatError(f"'{path}' is larger than {MAX_BYTES} bytes")
    kind = is_structure(data[:4096].removeprefix(b"\xef\xbb\xbf"))
    if kind is None:
        raise FormatError(f"'{path}' is neither a PDB nor an mmCIF file")
    structure = _structure(data, kind, path)
    report = LeftOut()
    atoms = _collect(structure, report, path)
    at = 0.1 * np.array(atoms.positions).reshape(-1, 3)  # Å to nm
    if not (np.abs(at) < 1e6).all():
        i = int(np.argmax(~(np.abs(at) < 1e6).all(axis=1)))
        raise FormatError(f"'{path}': the position of atom {atoms.names[i]} is no number, or absurdly large")
    bonds = _join(structure, atoms, at, report, path)
    _name_torsions(atoms, bonds)
    keep = _held(len(at), bonds.pairs, atoms)
    report.name("atom that no bond holds", [atoms.names[i] for i in np.flatnonzero(~keep).tolist()])
    turns = np.array([kind in chosen for kind in bonds.kind], dtype=bool)
    if not (turns.any() and keep.any()):
        raise FormatError(
            f"'{path}' has no torsion that could turn: a protein with the atoms N, CA and C of its residues is "
            "expected; for other molecules use pliant.Molecule with a list of bonds"
        )
    return Protein(_molecule(path, atoms, at, bonds, turns, keep), report)


def _chosen(torsions: Any) -> set[str]:
    words = entries(torsions)
    if not words or any(not isinstance(word, str) or word not in _KINDS for word in words):
        raise FormatError(f"torsions: a list of some of {listed(_KINDS, 4)} expected, not {brief(torsions)}")
    return set(words)


def _structure(data: bytes, kind: str, path: Path) -> Any:
    """The file as gemmi reads it. Other characters than ASCII become question marks: names are cut from columns."""
    gemmi = require("gemmi")
    plain = data.removeprefix(b"\xef\xbb\xbf").decode("ascii", "replace").encode("ascii", "replace")
    try:
        if kind == "mmcif":
            structure = gemmi.read_structure_string(plain, format=gemmi.CoorFormat.Mmcif)
        else:
            structure = _read_pdb(gemmi, plain)
    except Exception as error:  # of many types: those of the parser's own language
        line = (str(error).splitlines() or ["it cannot be read"])[0]
        raise FormatError(f"'{path}': {line:.300}") from None
    if not len(structure) or not any(len(chain) for chain in structure[0]):
        raise FormatError(f"'{path}' has no atoms")
    return structure


def _read_pdb(gemmi: Any, data: bytes) -> Any:
    """A PDB file; one older than 1996 has its own number in the columns of element and charge."""
    try:
        return gemmi.read_pdb_string(data)
    except Exception:
        return gemmi.read_pdb_string(data, max_line_length=72)


def _collect(structure: Any, report: LeftOut, path: Path) -> _Atoms:
    """The atoms of amino acids: the first model, the first of alternative locations."""
    gemmi = require("gemmi")
    out = _Atoms()
    used: dict[str, int] = {}
    report.add("further model", len(structure) - 1)
    for chain in structure[0]:
        residues: list[_Residue] = []
        every = first = 0
        for residue in chain:
            every += len(residue)
        for residue in chain.first_conformer():
            label = f"{chain.name.strip() or '_'}:{residue.seqid}:{residue.name}"
            label = "".join(label.split())
            given = list(residue.first_conformer())
            first += len(given)
            if residue.is_water() or residue.name in _WATER:
                report.add("water")
                continue
            by_name = {atom.name: atom for atom in given}
            amino = all(
                name in by_name and by_name[name].element.atomic_number == z
                for name, z in (("N", 7), ("CA", 6), ("C", 6))
            )
            if not amino and residue.name not in _CAPS:
                known = gemmi.find_tabulated_residue(residue.name).is_amino_acid()
                report.name(
                    "amino acid without its atoms N, CA and C" if known else "ligand, ion or nucleotide",
                    [label],
                )
                continue
            if len(given) > _MANY:
                raise FormatError(
                    f"'{path}': residue {label} has {len(given)} atoms: no amino acid has so many"
                )
            used[label] = used.get(label, 0) + 1
            if used[label] > 1:
                label = f"{label}#{used[label]}"
            numbers: dict[str, int] = {}
            for name, atom in by_name.items():
                element, pos = atom.element, atom.pos
                if element.weight <= 0:
                    report.name("atom of an unknown element", [f"{label}:{name}"])
                    continue
                numbers[name] = len(out.names)
                out.names.append(f"{label}:{name}")
                out.positions.append((pos.x, pos.y, pos.z))
                out.elements.append(element.atomic_number)
                out.masses.append(element.weight)
                out.radii.append(0.1 * element.covalent_r)
            report.add("atom listed twice", len(given) - len(by_name))
            residues.append(_Residue(label, residue.name, amino, numbers))
        report.add("alternative location of an atom", every - first)
        out.chains.append(residues)
    return out


def _join(structure: Any, atoms: _Atoms, at: NDArray[np.float64], report: LeftOut, path: Path) -> _Bonds:
    """Bonds by distance within residues, between neighbours in a chain, and across."""
    bonds = _Bonds()
    radius, light = np.array(atoms.radii), np.array(atoms.elements) == 1
    for residues in atoms.chains:
        for residue in residues:
            own = np.array(list(residue.atoms.values()), dtype=np.int64)
            if not _join_residue(own, at, radius, light, bonds):
                raise FormatError(f"'{path}': atoms of residue {residue.label} lie on top of each other")
        for one, other in pairwise(residues):
            c, n = one.atoms.get("C"), other.atoms.get("N")
            if c is not None and n is not None and _apart(at, c, n) < _PEPTIDE:
                bonds.add(c, n)
            elif one.amino and other.amino:
                report.name("bond across a gap in a chain", [f"{one.label}-{other.label}"])
    for a, b in _across(structure, atoms, at):
        bonds.add(a, b, closing=True, name=f"{atoms.names[a]}-{atoms.names[b]}")
    return bonds


def _apart(at: NDArray[np.float64], a: int, b: int) -> float:
    return float(np.linalg.norm(at[a] - at[b]))


def _join_residue(
    own: NDArray[np.int64],
    at: NDArray[np.float64],
    radius: NDArray[np.float64],
    light: NDArray[np.bool_],
    bonds: _Bonds,
) -> bool:
    """Bonds of a residue: atoms at most as far apart as their covalent radii say; a hydrogen has its nearest one.

    False if there are too many.
    """
    heavy, hydrogen = own[~light[own]], own[light[own]]
    if not len(heavy):
        return True
    apart = np.sqrt(((at[heavy, None] - at[heavy]) ** 2).sum(axis=2))
    close = apart <= radius[heavy, None] + radius[heavy] + _SLACK
    if close.sum(axis=1).max() > _CROWDED + 1:
        return False
    for i, j in np.argwhere(np.triu(close, 1)).tolist():
        bonds.add(int(heavy[i]), int(heavy[j]))
    if len(hydrogen):
        apart = np.sqrt(((at[hydrogen, None] - at[heavy]) ** 2).sum(axis=2))
        nearest = apart.argmin(axis=1)
        for h, i, d in zip(
            hydrogen.tolist(), heavy[nearest].tolist(), apart.min(axis=1).tolist(), strict=True
        ):
            if d <= radius[h] + radius[i] + _SLACK:
                bonds.add(h, i)
    return True


def _across(structure: Any, atoms: _Atoms, at: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Disulfide bonds, by distance, and covalent links between residues that the file lists."""
    from scipy.spatial import KDTree

    gemmi = require("gemmi")
    found: list[tuple[int, int]] = []
    sulfur = [r.atoms["SG"] for chain in atoms.chains for r in chain if "SG" in r.atoms]
    if len(sulfur) > 1:
        apart, nearest = (np.asarray(x) for x in KDTree(at[sulfur]).query(at[sulfur], k=2))
        other = nearest[:, 1].tolist()
        for i, j in enumerate(other):
            if i < j and other[j] == i and apart[i, 1] < _SULFUR:
                found.append((sulfur[i], sulfur[j]))
    number = {name: i for i, name in enumerate(atoms.names)}
    wanted = (gemmi.ConnectionType.Covale, gemmi.ConnectionType.Disulf)
    for link in structure.connections:
        if link.type not in wanted or link.asu == gemmi.Asu.Different:
            continue
        ends: Any = [number.get(_address(end)) for end in (link.partner1, link.partner2)]
        if None not in ends and 0 < _apart(at, *ends) < _LINK:
            found.append((ends[0], ends[1]))
    return found


def _address(end: Any) -> str:
    """The name of an atom that a link refers to."""
    return "".join(
        f"{end.chain_name.strip() or '_'}:{end.res_id.seqid}:{end.res_id.name}:{end.atom_name}".split()
    )


def _name_torsions(atoms: _Atoms, bonds: _Bonds) -> None:
    """Name the torsions of backbones and side chains."""
    heavy: dict[int, list[int]] = {}
    for a, b in bonds.pairs:
        if atoms.elements[a] != 1 and atoms.elements[b] != 1:
            heavy.setdefault(a, []).append(b)
            heavy.setdefault(b, []).append(a)
    for residues in atoms.chains:
        for k, residue in enumerate(residues):
            own, label = residue.atoms, residue.label
            before = residues[k - 1].atoms if k else {}
            after = residues[k + 1].atoms if k + 1 < len(residues) else {}
            n, ca, c = own.get("N"), own.get("CA"), own.get("C")
            bonds.turn("phi", f"{label}:phi", [before.get("C"), n, ca, c])
            bonds.turn("psi", f"{label}:psi", [n, ca, c, after.get("N")])
            bonds.turn("omega", f"{label}:omega", [ca, c, after.get("N"), after.get("CA", after.get("C"))])
            known = _ALIASES.get(residue.name, residue.name)
            if known in _CHI:
                path = [own.get(name) for name in _CHI[known].split()]
                for i in range(len(path) - 3):
                    bonds.turn("chi", f"{label}:chi{i + 1}", path[i : i + 4])
            elif residue.amino and residue.name not in _NO_CHI:
                _name_others(residue, bonds, heavy)
    for (a, b), closing in zip(list(bonds.pairs), list(bonds.closing), strict=True):
        if closing:
            _name_bridge(a, b, atoms, bonds, heavy)


def _name_others(residue: _Residue, bonds: _Bonds, heavy: dict[int, list[int]]) -> None:
    """Torsions in the side chain of a residue that no table has: about every bond, named by its atoms."""
    name = {i: word for word, i in residue.atoms.items()}
    spine = {residue.atoms[word] for word in ("N", "CA", "C")}
    for a in name:
        for b in heavy.get(a, ()):
            if a < b and b in name and not {a, b} <= spine:
                ends = [next((x for x in heavy[p] if x != q), None) for p, q in ((a, b), (b, a))]
                bonds.turn("chi", f"{residue.label}:{name[a]}-{name[b]}", [ends[0], a, b, ends[1]])


def _name_bridge(a: int, b: int, atoms: _Atoms, bonds: _Bonds, heavy: dict[int, list[int]]) -> None:
    """Torsions of a bond across: about itself and, in a disulfide, about the bonds before and after it."""
    ends = [next((x for x in heavy.get(p, ()) if x != q), None) for p, q in ((a, b), (b, a))]
    if any(end is None for end in ends):
        return
    bonds.turn("chi", bonds.joint[bonds.number[min(a, b), max(a, b)]], [ends[0], a, b, ends[1]])
    if atoms.elements[a] != 16 or atoms.elements[b] != 16:
        return
    bonds.turn("chi", f"{atoms.names[a].rpartition(':')[0]}:chi3", [ends[0], a, b, ends[1]])
    for sulfur, carbon, other in ((a, ends[0], b), (b, ends[1], a)):
        assert carbon is not None
        first = next((x for x in heavy[carbon] if x != sulfur), None)
        bonds.turn("chi", f"{atoms.names[sulfur].rpartition(':')[0]}:chi2", [first, carbon, sulfur, other])


def _held(n: int, pairs: list[tuple[int, int]], atoms: _Atoms) -> NDArray[np.bool_]:
    """Atoms that bonds join to the backbone of an amino acid, (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    if not n:
        return np.zeros(0, dtype=bool)
    count, part = connected_components(graph, directed=False)
    good = np.zeros(count, dtype=bool)
    good[part[[r.atoms["CA"] for chain in atoms.chains for r in chain if r.amino]]] = True
    return good[part]


def _molecule(
    path: Path,
    atoms: _Atoms,
    at: NDArray[np.float64],
    bonds: _Bonds,
    turns: NDArray[np.bool_],
    keep: NDArray[np.bool_],
) -> Molecule:
    number = np.cumsum(keep) - 1
    pairs = np.array(bonds.pairs, dtype=np.int64).reshape(-1, 2)
    chosen = np.flatnonzero(keep[pairs[:, 0]])  # both ends are kept, or neither
    index = chosen.tolist()
    outer = np.array(bonds.outer, dtype=np.int64)[chosen]
    kept = np.flatnonzero(keep).tolist()
    tails = [next((r.atoms["C"] for r in reversed(chain) if r.amino), None) for chain in atoms.chains]
    try:
        return Molecule(
            at[keep],
            np.array(atoms.masses)[keep],
            number[pairs[chosen]],
            turns[chosen],
            name=path.stem,
            names=[atoms.names[i] for i in kept],
            radii=np.array(atoms.radii)[keep],
            stiffness=np.array([_STIFFNESS.get(bonds.kind[i], _OTHERS) for i in index]),
            joints=[bonds.joint[i] for i in index],
            outer=np.where(outer >= 0, number[outer], -1),
            closing=np.array(bonds.closing, dtype=bool)[chosen],
            ends=[int(number[i]) for i in tails if i is not None],
            colours=np.array([_COLOURS.get(atoms.elements[i], _OTHER_COLOUR) for i in kept]),
        )
    except MechanismError as error:
        raise FormatError(f"'{path}': {error}") from None
