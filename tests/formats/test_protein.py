"""Proteins from PDB and mmCIF files: torsions by name, beside gemmi's dihedral angles and independent rotations."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

import pliant
from formats.mutation import damaged_bytes
from formats.peptides import MIXED, hetero, peptide, random_peptide
from pliant.errors import FormatError, PliantError, UnsupportedWarning
from pliant.formats.load import read as read_content

gemmi = pytest.importorskip("gemmi")

FILES, MUCH_FILES = 600, 6_000  # damaged files
CHI = {"A": 0, "G": 0, "S": 1, "V": 1, "L": 2, "K": 4, "E": 3, "F": 2, "P": 0, "C": 1}
THREE = dict(
    zip("AGSCVLKEFP", ["ALA", "GLY", "SER", "CYS", "VAL", "LEU", "LYS", "GLU", "PHE", "PRO"], strict=True)
)


@pytest.fixture
def write(tmp_path):
    """Writes a file; returns its path."""

    def make(text: str, name: str = "protein.pdb"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def quiet(path, **options) -> tuple[pliant.Molecule, str]:
    """The molecule of a file, and its warning, if there is one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        molecule = pliant.Molecule.read(path, **options)
    assert len(caught) <= 1
    if not caught:
        return molecule, ""
    assert caught[0].category is UnsupportedWarning
    assert caught[0].filename == __file__
    return molecule, str(caught[0].message)


def expected_torsions(sequence: str, kinds=("phi", "psi", "chi")) -> set[str]:
    """Names of the torsions of a chain."""
    out = set()
    for i, code in enumerate(sequence):
        label = f"A:{i + 1}:{THREE[code]}"
        if i > 0 and code != "P":
            out.add(f"{label}:phi")
        if i + 1 < len(sequence):
            out |= {f"{label}:psi", f"{label}:omega"}
        out |= {f"{label}:chi{k + 1}" for k in range(CHI[code])}
    return {name for name in out if name.rpartition(":")[2].rstrip("0123456789") in kinds}


def hinges(m: pliant.Mechanism) -> set[str]:
    return {name for name, kind in zip(m.joint_names, m.joint_types, strict=True) if kind == "hinge"}


def test_torsions_of_a_chain(write):
    path = write(random_peptide())
    m = pliant.load(path)
    assert hinges(m) == expected_torsions(MIXED)
    assert m.joint_types.count("free") == 1
    assert m.name == "protein"
    assert m.end_effectors == ("A:10:CYS:CA",)
    assert {"A:1:ALA:N", "A:5:LEU:CA", "A:5:LEU:C", "A:5:LEU:CB", "A:5:LEU:CG"} <= set(m.body_names)
    molecule = pliant.Molecule.read(path, torsions=("phi", "psi", "omega", "chi"))
    assert hinges(molecule.mechanism) == expected_torsions(MIXED, ("phi", "psi", "omega", "chi"))
    stiffness = {name: k for name, k in zip(m.dof_names, m.stiffness, strict=True) if ":base" not in name}
    assert set(stiffness.values()) == {50.0}
    other = molecule.mechanism
    assert other.stiffness[other.dof_index("A:5:LEU:omega")] == 160.0
    spine = pliant.Molecule.read(path, torsions=["psi"]).mechanism
    assert hinges(spine) == expected_torsions(MIXED, ("psi",))
    assert m.total_mass == pytest.approx(sum(atom.element.weight for atom in every(path)), rel=1e-12)


def every(path):
    """All atoms of a file as gemmi reads them."""
    return [x.atom for x in gemmi.read_structure(str(path))[0].all()]


@pytest.mark.parametrize("seed", range(3))
def test_poses_rebuild_the_angles_that_gemmi_measures(write, seed):
    """Coordinates are the dihedral angles, in the file and after torsions have been turned."""
    path = write(random_peptide(seed=seed))
    molecule = pliant.Molecule.read(path, torsions=("phi", "psi", "omega", "chi"))
    m = molecule.mechanism
    structure = gemmi.read_structure(str(path))
    rng = np.random.default_rng(seed)
    q = m.reference.copy()
    names = sorted(hinges(m))
    for turn in (False, True):
        if turn:
            for name in names:
                q[m.joint_coordinates(m.joint_index(name))] = rng.uniform(-np.pi, np.pi)
        places = molecule.places(pliant.Configuration(m, q).poses)
        at = {name: gemmi.Position(*(10 * x)) for name, x in zip(molecule.names, places, strict=True)}
        for found in structure[0].all():
            found.atom.pos = at[f"A:{found.residue.seqid}:{found.residue.name}:{found.atom.name}"]
        chain = structure[0]["A"]
        compared = 0
        for i, residue in enumerate(chain):
            previous = chain[i - 1] if i else None
            following = chain[i + 1] if i + 1 < len(chain) else None
            label = f"A:{residue.seqid}:{residue.name}"
            phi, psi = gemmi.calculate_phi_psi(previous, residue, following)
            angles = {"phi": phi, "psi": psi}
            if following is not None:
                angles["omega"] = gemmi.calculate_omega(residue, following)
            path_of = {"LYS": "N CA CB CG CD CE NZ", "LEU": "N CA CB CG CD1", "VAL": "N CA CB CG1"}
            words = path_of.get(residue.name, "").split()
            for k in range(len(words) - 3):
                four = [residue.find_atom(word, "*").pos for word in words[k : k + 4]]
                angles[f"chi{k + 1}"] = gemmi.calculate_dihedral(*four)
            for kind, angle in angles.items():
                if f"{label}:{kind}" in names:
                    compared += 1
                    mine = q[m.joint_coordinates(m.joint_index(f"{label}:{kind}"))][0]
                    assert abs(np.angle(np.exp(1j * (mine - angle)))) < 1e-11, (label, kind)
        assert compared == 9 + 8 + 9 + 7


def test_a_torsion_turns_what_is_beyond_it(write):
    """The file's atoms with those after residue 5 turned about a bond by hand."""
    path = write(random_peptide(seed=4))
    molecule = pliant.Molecule.read(path)
    m, at = molecule.mechanism, molecule.positions
    names = {name: i for i, name in enumerate(molecule.names)}
    np.testing.assert_allclose(at, [[0.1 * x for x in atom.pos.tolist()] for atom in every(path)], rtol=1e-15)
    number = np.array([int(name.split(":")[1]) for name in molecule.names])
    atom = np.array([name.split(":")[3] for name in molecule.names])
    beyond = {
        "A:5:LEU:psi": (number > 5) | ((number == 5) & np.isin(atom, ["O"])),
        "A:5:LEU:phi": (number > 5) | ((number == 5) & ~np.isin(atom, ["N", "CA"])),
        "A:6:LYS:chi2": (number == 6) & np.isin(atom, ["CD", "CE", "NZ"]),
    }
    ends = {"A:5:LEU:psi": ("CA", "C"), "A:5:LEU:phi": ("N", "CA"), "A:6:LYS:chi2": ("CB", "CG")}
    for joint, chosen in beyond.items():
        label = joint.rpartition(":")[0]
        a, b = (at[names[f"{label}:{word}"]] for word in ends[joint])
        x, y, z = (b - a) / np.linalg.norm(b - a)
        k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        turn = np.eye(3) + np.sin(1.3) * k + (1 - np.cos(1.3)) * k @ k
        expected = at.copy()
        expected[chosen] = (at[chosen] - a) @ turn.T + a
        q = m.reference.copy()
        q[m.joint_coordinates(m.joint_index(joint))] += 1.3
        places = molecule.places(pliant.Configuration(m, q).poses)
        np.testing.assert_allclose(places, expected, atol=1e-12)


def same(a: pliant.Mechanism, b: pliant.Mechanism) -> bool:
    return (
        a.joint_names == b.joint_names
        and a.body_names == b.body_names
        and all(
            np.array_equal(getattr(a, word), getattr(b, word))
            for word in (
                "mass",
                "com",
                "inertia",
                "reference_poses",
                "reference",
                "stiffness",
                "joint_parents",
            )
        )
    )


def test_mmcif_gives_the_same(write):
    path = write(random_peptide())
    text = gemmi.read_structure(str(path)).make_mmcif_document().as_string()
    assert same(pliant.load(path), pliant.load(write(text, "protein.cif")))
    assert same(pliant.load(path), pliant.load(write("# a comment\n\n" + text, "protein.txt")))


def test_what_is_no_protein_is_left_out(write):
    text = random_peptide().replace("END\n", "")
    for i, x in enumerate((50, 60, 70)):
        text += hetero("HOH", "O", "O", 100 + i, (x, 0, 0))
    text += hetero("SOL", "O", "O", 110) + hetero("ZN", "ZN", "ZN", 111) + hetero("CA", "CA", "CA", 112)
    molecule, message = quiet(write(text))
    assert same(molecule.mechanism, pliant.load(write(random_peptide())))
    assert "4 x water" in message
    assert "2 x ligand, ion or nucleotide" in message
    assert "forces between atoms without a bond" in message
    with pytest.warns(UnsupportedWarning):
        parts = {part.kind: part for part in read_content(write(text)).left_out}
    assert parts["ligand, ion or nucleotide"].places == ("A:111:ZN", "A:112:CA")


def test_the_first_model_and_the_first_location_are_taken(write):
    text = random_peptide().removesuffix("END\n")
    models = f"MODEL        1\n{text}ENDMDL\nMODEL        2\n{random_peptide(seed=1)}ENDMDL\nEND\n"
    molecule, message = quiet(write(models))
    assert same(molecule.mechanism, pliant.load(write(random_peptide())))
    assert "1 x further model" in message

    lines = random_peptide().splitlines(keepends=True)
    k = next(i for i, line in enumerate(lines) if " OG " in line)
    other = lines[k][:16] + "B" + lines[k][17:30] + f"{float(lines[k][30:38]) + 0.5:8.3f}" + lines[k][38:]
    lines[k] = lines[k][:16] + "A" + lines[k][17:]
    lines.insert(k + 1, other)
    molecule, message = quiet(write("".join(lines)))
    assert same(molecule.mechanism, pliant.load(write(random_peptide())))
    assert "1 x alternative location of an atom" in message


def without(text: str, *parts: str) -> str:
    """Lines of a file but those with a part."""
    return "".join(line for line in text.splitlines(keepends=True) if not any(part in line for part in parts))


def test_gaps_and_missing_atoms(write):
    """A residue that is missing ends one chain and begins another; side chains without their roots go."""
    text = without(random_peptide("AGSVLKEF"), " VAL A   4 ")
    molecule, message = quiet(write(text))
    m = molecule.mechanism
    assert m.joint_types.count("free") == 2
    assert "1 x bond across a gap in a chain" in message
    assert not hinges(m) & {"A:3:SER:psi", "A:5:LEU:phi"}
    assert {"A:3:SER:phi", "A:5:LEU:psi"} <= hinges(m)

    molecule, message = quiet(write(without(random_peptide("AGKVL"), " CB  LYS ")))
    assert "4 x atom that no bond holds" in message
    assert not {name for name in hinges(molecule.mechanism) if "LYS:chi" in name}
    molecule, message = quiet(write(without(random_peptide("AGKVL"), " NZ  LYS ")))
    assert message == ""
    assert {name for name in hinges(molecule.mechanism) if "LYS:chi" in name} == {
        f"A:3:LYS:chi{i}" for i in (1, 2, 3)
    }
    molecule, message = quiet(write(without(random_peptide("AGKVL"), " CA  LYS ")))
    assert "1 x amino acid without its atoms N, CA and C" in message
    assert molecule.mechanism.joint_types.count("free") == 2


def test_atoms_that_are_too_far_away_make_no_torsion(write):
    """A carbon that was moved away from its residue: no bond to it, no angle measured with it."""
    lines = random_peptide("AGSVL").splitlines(keepends=True)
    k = next(i for i, line in enumerate(lines) if " C   SER" in line)
    lines[k] = lines[k][:30] + f"{float(lines[k][30:38]) + 9:8.3f}" + lines[k][38:]
    m = quiet(write("".join(lines)))[0].mechanism
    assert not hinges(m) & {"A:3:SER:phi", "A:3:SER:psi", "A:4:VAL:phi"}
    assert {"A:2:GLY:phi", "A:3:SER:chi1", "A:4:VAL:psi"} <= hinges(m)


def test_hydrogens_ride_with_their_atoms(write):
    """A hydrogen at every nitrogen and a methyl group change masses and nothing else."""
    text = random_peptide("AGSA")
    structure = gemmi.read_pdb_string(text)
    for residue in structure[0]["A"]:
        n, ca = residue["N"][0].pos, residue["CA"][0].pos
        atom = gemmi.Atom()
        atom.name, atom.element = "H", gemmi.Element("H")
        atom.pos = gemmi.Position(*(np.array(n.tolist()) + 0.6 * (np.array(n.tolist()) - ca.tolist())))
        residue.add_atom(atom)
    plain, full = pliant.load(write(text)), pliant.load(write(structure.make_pdb_string(), "full.pdb"))
    assert plain.joint_names == full.joint_names
    assert full.total_mass - plain.total_mass == pytest.approx(4 * 1.008, rel=1e-3)


def test_chains_and_their_names(write):
    """A chain without a name is "_"; numbers may have insertion codes; several chains are several trees."""
    two = random_peptide("AGS").replace("END\n", "") + random_peptide("VLK", chain=" ").replace(
        "LEU     2 ", "LEU     2B"
    )
    m = pliant.load(write(two))
    assert {"A:2:GLY:phi", "_:2B:LEU:phi", "_:2B:LEU:chi1"} <= hinges(m)
    assert m.joint_types.count("free") == 2
    assert m.end_effectors == ("A:3:SER:CA", "_:3:LYS:CA")
    assert m.with_fixed_base().nv == len(hinges(m))


def test_residues_of_one_name_are_told_apart(write):
    twice = random_peptide("AGS", chain="_").replace("END\n", "") + random_peptide("AGS", 1, chain=" ")
    assert {"_:2:GLY:phi", "_:2:GLY#2:phi"} <= hinges(pliant.load(write(twice)))


def test_other_residues_have_torsions_by_their_atoms(write):
    """Selenomethionine is known; of what no table has every bond in the side chain turns; caps are kept."""
    text = random_peptide("AGLKA").replace("LEU", "XYZ").replace("ATOM  ", "HETATM")
    m = pliant.load(write(text))
    assert {name for name in hinges(m) if "XYZ" in name} == {
        "A:3:XYZ:phi", "A:3:XYZ:psi", "A:3:XYZ:CA-CB", "A:3:XYZ:CB-CG",
    }  # fmt: skip
    capped = (
        without(random_peptide("AGL"), " N   ALA A", " CB  ALA A")
        .replace("ALA", "ACE")
        .replace(" CA  ACE", " CH3 ACE")
    )
    m = pliant.load(write(capped))
    assert hinges(m) >= {"A:2:GLY:phi", "A:2:GLY:psi", "A:3:LEU:phi"}
    assert m.joint_types.count("free") == 1
    assert "A:1:ACE:omega" not in hinges(m)


def bridged(sequence: str, seed: int) -> str:
    """A peptide whose two cysteines meet as in a disulfide: torsions are found by least squares."""
    from scipy.optimize import least_squares

    count = len(sequence)

    def sulfurs(x: np.ndarray) -> tuple[str, dict[str, np.ndarray]]:
        text = peptide(sequence, [(a, b) for a, b in np.degrees(x).reshape(count, 2)])
        found = {}
        for line in text.splitlines():
            if line.startswith("ATOM") and line[17:20] == "CYS":
                found[line[12:16].strip() + line[22:26].strip()] = np.array(
                    [float(line[i : i + 8]) for i in (30, 38, 46)]
                )
        return text, found

    def gap(x: np.ndarray) -> list[np.floating]:
        at = sulfurs(x)[1]
        apart = np.linalg.norm
        last = str(count)
        return [
            apart(at["SG1"] - at["SG" + last]) - 2.03,
            apart(at["CB1"] - at["SG" + last]) - 3.05,
            apart(at["SG1"] - at["CB" + last]) - 3.05,
        ]

    rng = np.random.default_rng(seed)
    start = rng.uniform(-np.pi, np.pi, 2 * count)
    found = least_squares(gap, start, diff_step=1e-3)  # files have three digits
    assert np.abs(found.fun).max() < 0.1
    return sulfurs(found.x)[0]


def test_a_disulfide_closes_a_loop(write):
    """All its torsions turn, and the loop stays closed under load."""
    m = pliant.load(write(bridged("CGGSGC", 3)))
    assert m.topology.loops == 1
    assert {"A:1:CYS:chi1", "A:1:CYS:chi2", "A:6:CYS:chi2"} <= hinges(m)
    (bridge,) = {name for name in hinges(m) if name.endswith("chi3")}
    angle = m.reference[m.joint_coordinates(m.joint_index(bridge))][0]
    assert angle != 0.0
    molecule = pliant.Molecule.read(write(bridged("CGGSGC", 3)))
    held = m.with_fixed_base()
    moved = pliant.equilibrium(held, {"A:4:SER:CA": (0.0, 0.0, 20.0)})
    at = molecule.places(moved.poses)
    one, other = (molecule.names.index(f"A:{i}:CYS:SG") for i in (1, 6))
    assert np.linalg.norm(at - molecule.positions, axis=1).max() > 0.002
    assert np.linalg.norm(at[one] - at[other]) == pytest.approx(
        np.linalg.norm(molecule.positions[one] - molecule.positions[other]), abs=1e-9
    )
    assert pliant.QuasistaticSimulation(held, 1.0, (0, 0, 0)).step() is None


def test_a_disulfide_between_chains_joins_them(write):
    """The second chain is moved until its sulfur is at the first one's: no loop, one tree."""
    first = random_peptide("AGC")
    second = random_peptide("CGA", chain="B")

    def sulfur(text: str) -> np.ndarray:
        line = next(line for line in text.splitlines() if line[13:15] == "SG")
        return np.array([float(line[i : i + 8]) for i in (30, 38, 46)])

    shift = sulfur(first) - sulfur(second) + (0.0, 0.0, 2.03)
    moved = []
    for line in second.splitlines(keepends=True):
        if line.startswith("ATOM"):
            at = shift + [float(line[i : i + 8]) for i in (30, 38, 46)]
            line = line[:30] + "".join(f"{x:8.3f}" for x in at) + line[54:]
        moved.append(line)
    m = pliant.load(write(first.replace("END\n", "") + "".join(moved)))
    assert (m.joint_types.count("free"), m.topology.loops) == (1, 0)
    assert any(name.endswith("chi3") for name in hinges(m))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HEADER    NOTHING\nEND\n", "has no atoms"),
        ("data_nothing\n_cell.length_a 1\n", "has no atoms"),
        (without(random_peptide(), " N  ", " C  ", " O  "), "no torsion that could turn"),
        (hetero("HOH", "O", "O", 1), "no torsion that could turn"),
        (random_peptide().replace(" 1.458", " *****"), r"protein\.pdb'"),
        ("ATOM      1  N   ALA A   1      nan     nan     nan\n", r"protein\.pdb'"),
        ("data_x\nloop_\n_a\n_b\n1 2 3\n", r"protein\.pdb'"),
    ],
)
def test_files_without_a_protein(write, text, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(FormatError, match=message):
            pliant.load(write(text))


def test_options_that_are_none(write):
    path = write(random_peptide("AGS"))
    with pytest.raises(FormatError, match="a protein has no keyframes"):
        pliant.load(path, keyframe=0)
    for torsions in ("phi", [], ["phi", "tau"], 3):
        with pytest.raises(FormatError, match="torsions: a list of some of 'phi'"):
            pliant.Molecule.read(path, torsions=torsions)  # pyright: ignore[reportArgumentType]
    with pytest.raises(FormatError, match="neither a PDB nor an mmCIF file"):
        pliant.Molecule.read(write("<mujoco/>"))
    with pytest.raises(FormatError, match="residue A:2:GLY lie on top of each other"):
        crowd = "".join(
            f"ATOM   {1000 + i:4d} X{i:<3d} GLY A   2       3.000   1.000{i / 1000:8.3f}  1.00  0.00           C\n"
            for i in range(40)
        )
        pliant.load(write(random_peptide("AGS").replace("TER", crowd + "TER")))
    with pytest.raises(FormatError, match="has 301 atoms: no amino acid has so many"):
        extra = "".join(
            f"ATOM   {1000 + i:4d} X{i:<3d} GLY A   2    {i % 20:8.3f}{i // 20:8.3f}{9:8.3f}  1.00  0.00           C\n"
            for i in range(297)
        )
        pliant.load(write(random_peptide("AGS").replace("ATOM", extra + "ATOM", 1)))


def corpus() -> list[bytes]:
    """Small files, some with links, locations and hydrogens."""
    first = random_peptide("AGPKC").replace("END\n", "") + hetero("HOH", "O", "O", 100)
    link = "SSBOND   1 CYS A    1    CYS A    6                          1555   1555  2.03\n"
    bridge = link + bridged("CGGSGC", 3)
    texts = [first, bridge, gemmi.read_pdb_string(bridge).make_mmcif_document().as_string()]
    return [text.encode() for text in texts]


def try_damaged(tmp_path, count: int, start: int) -> dict[str, int]:
    """Load damaged files: a mechanism, or an error of pliant."""
    found = {"loaded": 0, "refused": 0}
    files = corpus()
    for seed in range(start, start + count):
        rng = random.Random(seed)
        data = files[seed % len(files)]
        if rng.random() < 0.5:  # numbers and names within their columns, or words
            data = bytearray(data)
            for _ in range(rng.choice([1, 3, 30])):
                i = rng.randrange(len(data))
                data[i] = rng.choice(b"0123456789.-* AXNCS?'\"")
            data = bytes(data)
        else:
            data = damaged_bytes(data, rng)
        (tmp_path / "damaged").write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsupportedWarning)
                m = pliant.load(tmp_path / "damaged")
            assert np.isfinite(m.inertia).all()
            found["loaded"] += 1
        except PliantError as error:
            assert "damaged" in str(error)
            assert "\n" not in str(error)
            found["refused"] += 1
    return found


def test_damaged_files(tmp_path):
    found = try_damaged(tmp_path, FILES, 0)
    assert min(found.values()) > FILES // 20, found


@pytest.mark.slow
def test_many_damaged_files(tmp_path):
    found = try_damaged(tmp_path, MUCH_FILES, 1_000_000)
    assert min(found.values()) > MUCH_FILES // 20, found
