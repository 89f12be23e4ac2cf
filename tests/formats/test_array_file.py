"""Mechanisms as archives of arrays: lossless, told apart from other archives, and picky about what is read."""

import json
import random
import re
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pliant
from oracles.random_mechanisms import random_mechanism
from pliant.errors import FormatError, MechanismError, PliantError
from pliant.formats import load
from pliant.source import resolve

from .identity import assert_identical
from .mutation import damaged_bytes


@pytest.mark.parametrize("seed", range(8))
def test_round_trip_of_random_mechanisms(seed, tmp_path):
    m = random_mechanism(seed, bodies=8, loops=seed % 3, reference=seed % 2 == 1)
    m.save(tmp_path / "m.npz")
    assert_identical(m, load(tmp_path / "m.npz"))


def test_round_trip_of_meshes_names_and_limits(tmp_path):
    b = pliant.Builder("Schöne Grüße")
    tetrahedron = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    b.body(
        "größe 1", shapes=[pliant.shapes.mesh(*tetrahedron), pliant.shapes.sphere(0.1).with_role("visual")]
    )
    b.body("b", mass=1, inertia=(1, 1, 1))
    b.world_shape(pliant.shapes.height_field(np.arange(6.0).reshape(2, 3), (1.0, 2.0)))
    b.hinge("j", "world", "größe 1", anchor=(0, 0, 0), axis=(0, 0, 1), limits=(-np.inf, 1.0), rest=0.1)
    b.ball("s", "größe 1", "b", anchor=(1, 0, 0), stiffness=np.diag([1.0, 2.0, 3.0]))
    m = b.build()
    m.save(tmp_path / "m.NPZ")
    assert_identical(m, load(tmp_path / "m.NPZ"))
    assert [file.name for file in tmp_path.iterdir()] == ["m.NPZ"]


def test_files_say_what_they_hold(tmp_path):
    """The content decides, not the name; other archives name the function that reads them."""
    m = pliant.gallery.helix(5)
    m.save(tmp_path / "m.npz")
    m.save(tmp_path / "m.json")
    (tmp_path / "m.npz").rename(tmp_path / "arrays.json")
    (tmp_path / "m.json").rename(tmp_path / "text.npz")
    assert_identical(load(tmp_path / "arrays.json"), load(tmp_path / "text.npz"))
    model = pliant.reduce(m)
    model.save(tmp_path / "model.npz")
    simulation = pliant.ConstrainedSimulation(m, 0.01)
    simulation.record(2).save(tmp_path / "path.npz")
    kinds = {
        file: resolve(str(tmp_path / file)).kind
        for file in ("arrays.json", "text.npz", "model.npz", "path.npz")
    }
    assert list(kinds.values()) == ["mechanism", "mechanism", "reduced model", "trajectory"]
    for file in ("model.npz", "path.npz"):
        with pytest.raises(FormatError, match=f"{file}' holds no mechanism: .*`ReducedModel.load`"):
            load(tmp_path / file)
    with pytest.raises(FormatError, match="holds no reduced model"):
        pliant.ReducedModel.load(tmp_path / "arrays.json")
    with pytest.raises(FormatError, match="has no keyframes"):
        load(tmp_path / "arrays.json", keyframe="home")


def test_names_are_shared(tmp_path):
    """A chain whose bodies, hinges and dofs have the same names holds them once."""
    pliant.gallery.helix(5).save(tmp_path / "m.npz")
    m = load(tmp_path / "m.npz")
    assert m.body_names is m.joint_names is m.dof_names


def rewritten(path, **changes):
    """Replace arrays of an archive (None: leave them out); `about` is merged."""
    arrays = dict(np.load(path))
    about = json.loads(arrays.pop("about").tobytes())
    about.update(changes.pop("about", {}))
    arrays.update({name.replace("_at_", "."): value for name, value in changes.items()})
    arrays = {name: value for name, value in arrays.items() if value is not None}
    np.savez(path, **arrays, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8))


def text(words):
    return np.frombuffer(words, dtype=np.uint8)


REFUSED = {
    "'bodies.mass' is missing": {"bodies_at_mass": None},
    "unknown array 'bodies.colour'": {"bodies_at_colour": np.zeros(3)},
    "bodies.mass: float64 of shape .n. expected, not int64": {"bodies_at_mass": np.ones(3, dtype=np.int64)},
    "bodies.com: float64 of shape .n, 3. expected": {"bodies_at_com": np.zeros((3, 2))},
    "bodies.pose: float64 of shape .n, 3, 4. expected": {"bodies_at_pose": np.zeros((3, 4, 4))},
    "joints.parent: int64 of shape .n. expected, not float64": {"joints_at_parent": np.zeros(3)},
    "bodies.name: not UTF-8": {"bodies_at_name": text(b"\xff\n")},
    "bodies.name: the last name is cut short": {"bodies_at_name": text(b"link1\nlink2\nlink3")},
    "bodies.mass.npy: not all numbers are finite": {"bodies_at_mass": np.array([1, np.nan, 1])},
    "limits are NaN": {"dofs_at_lower": np.array([1, np.nan, 1])},
    "name: a string expected": {"about": {"name": 3}},
    "meshes: their number expected": {"about": {"meshes": -1}},
    r"'meshes\[0\].faces' is missing": {"about": {"meshes": 1}},
    "newer pliant": {"about": {"version": 2}},
    "damaged, or of a kind no mechanism has": {"bodies_at_mass": np.zeros(3, dtype=np.float32)},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message, tmp_path):
    path = tmp_path / "m.npz"
    pliant.gallery.helix(3).save(path)
    rewritten(path, **REFUSED[message])
    with pytest.raises((FormatError, MechanismError), match=f"m.npz'.*{message}"):
        load(path)


def test_unsound_mechanisms_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    pliant.gallery.helix(3).save(path)
    rewritten(path, joints_at_parent=np.array([-1, 7, 1]))
    with pytest.raises(MechanismError, match=r"m\.npz'.*'link2'.*points to no body"):
        load(path)


def test_meshes_are_checked(tmp_path):
    path = tmp_path / "m.npz"
    b = pliant.Builder("m")
    tetrahedron = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    b.body("a", shapes=[pliant.shapes.mesh(*tetrahedron)])
    b.fixed("j", "world", "a")
    b.build().save(path)
    rewritten(path, **{"meshes[0].faces": np.array([[0, 1, 4]])})
    with pytest.raises(FormatError, match=r"meshes\[0\]\.faces: a face refers to a vertex that is not there"):
        load(path)


def test_entries_larger_than_the_file(tmp_path):
    """Entries that share their bytes would make a small file fill the memory."""
    path = tmp_path / "m.npz"
    pliant.gallery.helix(3).save(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")  # the first entry of the directory: its two sizes
    data[at + 20 : at + 28] = (10**9).to_bytes(4, "little") * 2
    path.write_bytes(data)
    with pytest.raises(FormatError, match="larger than the file"):
        load(path)


HOSTILE = (
    "(1,)*65",
    "(" + "1, " * 65 + ")",
    "(0, 1180591620717411303424)",
    "(True,)",
    "(-3,)",
    "(3.0,)",
    "3",
    "(3",
    "",
)


@pytest.mark.parametrize("shape", HOSTILE)
@pytest.mark.parametrize("what", ["mechanism", "model", "trajectory"])
def test_shapes_that_are_none(shape, what, tmp_path):
    path, m = tmp_path / "m.npz", pliant.gallery.helix(3)
    model = pliant.reduce(m)
    simulation = pliant.ReducedSimulation(model, 0.01)
    {"mechanism": m, "model": model}.get(what, simulation.record(2)).save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    name = {"mechanism": "bodies.mass.npy", "model": "q.npy", "trajectory": "time.npy"}[what]
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    entries[name] = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24)
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in entries.items():
            archive.writestr(entry, data)
    read = {"mechanism": load, "model": pliant.ReducedModel.load, "trajectory": pliant.Trajectory.load}[what]
    with pytest.raises(FormatError, match="damaged"):
        read(path)


def test_entries_of_one_name(tmp_path):
    path = tmp_path / "m.npz"
    pliant.gallery.helix(3).save(path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("about.npy", archive.read("about.npy"))
    with pytest.raises(FormatError, match="two of its entries have one name"):
        load(path)


def test_entries_that_share_their_bytes(tmp_path):
    """Each is smaller than the file, and so is their sum."""
    path = tmp_path / "m.npz"
    pliant.gallery.helix(3).save(path)
    with zipfile.ZipFile(path, "a") as archive:
        twin = zipfile.ZipInfo("twin.npy")
        known = archive.getinfo("bodies.mass.npy")
        for word in ("header_offset", "file_size", "compress_size", "CRC"):
            setattr(twin, word, getattr(known, word))
        archive.filelist.append(twin)
        archive._didModify = True  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FormatError, match="its entries overlap"):
        load(path)


def test_one_reader_for_all_archives():
    """numpy's own would unpack entries, and run through headers that are programs."""
    package = Path(pliant.__file__).parent
    users = [
        p.name for p in package.rglob("*.py") if re.search(r"\bnp\.load\b|zipfile\.ZipFile", p.read_text())
    ]
    assert users == ["archive.py"]


def test_packed_archives_are_refused(tmp_path):
    path = tmp_path / "m.npz"
    pliant.gallery.helix(3).save(path)
    arrays = dict(np.load(path))
    np.savez_compressed(path, **arrays)
    with pytest.raises(FormatError, match="packed in a way"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FormatError, match="holds no mechanism"):
        load(path)


def outcome(path):
    try:
        load(path)
    except PliantError as error:
        return type(error).__name__
    return "loaded"


def test_damaged_bytes(tmp_path):
    """Whatever byte is wrong, loading gives a mechanism or an error of ours."""
    path = tmp_path / "m.npz"
    random_mechanism(1, bodies=4, loops=1).save(path)
    data, count = path.read_bytes(), Counter()
    for seed in range(300):
        path.write_bytes(damaged_bytes(data, random.Random(seed)))
        count[outcome(path)] += 1
    assert count["FormatError"] > 200, count


def test_damaged_arrays(tmp_path):
    """Archives that are sound themselves, with numbers that are not."""
    path, rng = tmp_path / "m.npz", np.random.default_rng(0)
    random_mechanism(1, bodies=4, loops=1).save(path)
    original, count = dict(np.load(path)), Counter()
    for _ in range(300):
        name = str(rng.choice([name for name, array in original.items() if array.size]))
        array = original[name].copy()
        for _ in range(rng.integers(1, 4)):
            array.flat[rng.integers(array.size)] = rng.choice([-1, 0, 1, 5, 100, 255])
        if rng.random() < 0.2:
            array = array[: rng.integers(len(array))]
        np.savez(path, **{**original, name: array})
        count[outcome(path)] += 1
    assert min(count["loaded"], count["MechanismError"], count["FormatError"]) > 10, count
