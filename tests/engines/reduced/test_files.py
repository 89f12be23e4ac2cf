"""Model files: round trips without loss; damaged or foreign files are refused."""

import io
import json
import zipfile

import numpy as np
import pytest

import pliant
from pliant.engines.reduced import files
from pliant.errors import FormatError, InputError


@pytest.fixture(scope="module", params=["hand", "hexapod", "ladder"])
def model(request):
    return pliant.reduce(pliant.gallery.make(request.param), modes=2)


def test_round_trip(model, tmp_path):
    path = tmp_path / "model.npz"
    model.save(path)
    back = pliant.ReducedModel.load(path)
    for name in files._ARRAYS:
        assert np.array_equal(getattr(back, name), getattr(model, name)), name
    assert back.end_effectors == model.end_effectors
    assert (back.length, back.projection, back.inertia) == (model.length, model.projection, model.inertia)
    assert (back.base is None) == (model.base is None)
    assert np.array_equal(back.mechanism.stiffness, model.mechanism.stiffness)
    a, b = (pliant.ReducedSimulation(m, 0.01) for m in (model, back))
    for simulation in (a, b):
        simulation.apply_wrench(model.end_effectors[0], (0, 0, 1.0))
        simulation.step(10)
    assert np.array_equal(a.poses, b.poses)
    assert [f.name for f in tmp_path.iterdir()] == ["model.npz"]


def rewrite(path, target, change):
    """The same archive with its entries changed by `change(dict of bytes)`."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def as_npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def about(entries, **changes):
    old = json.loads(np.load(io.BytesIO(entries["about.npy"])).tobytes())
    text = json.dumps({**old, **changes}).encode()
    entries["about.npy"] = as_npy(np.frombuffer(text, dtype=np.uint8))


def with_nan(entries):
    array = np.load(io.BytesIO(entries["compliance.npy"]))
    array[0, 0] = np.nan
    entries["compliance.npy"] = as_npy(array)


CHANGES = {
    "newer": (lambda e: about(e, version=3), "newer pliant"),
    "version": (lambda e: about(e, version="one"), "whole number"),
    "other": (lambda e: about(e, format="something"), "holds no reduced model"),
    "no about": (lambda e: e.pop("about.npy"), "holds no reduced model"),
    "nan": (with_nan, "not all numbers are finite"),
    "misshapen": (lambda e: e.update({"wrench.npy": as_npy(np.zeros(5))}), "'wrench' has the shape"),
    "kind": (
        lambda e: e.update({"wrench.npy": as_npy(np.zeros(5, dtype=np.int64))}),
        "of a kind no model has",
    ),
    "missing": (lambda e: e.pop("basis.npy"), "'basis' is missing"),
    "pickle": (
        lambda e: e.update({"wrench.npy": as_npy(np.array([{}], dtype=object), allow_pickle=True)}),
        "of a kind no model has",
    ),
    "no array": (lambda e: e.update({"wrench.npy": b"hello"}), "not an array"),
    "effector": (lambda e: about(e, end_effectors=["nobody"]), "no body 'nobody'"),
    "effectors": (lambda e: about(e, end_effectors=[]), "list of names"),
    "twice": (lambda e: about(e, end_effectors=["thumb_tip"] * 5), "list of names"),
    "projection": (lambda e: about(e, projection="mine"), "unknown projection"),
    "length": (lambda e: about(e, length=-1.0), "length"),
    "base": (lambda e: about(e, base=7), "base"),
    "mass": (
        lambda e: e.update({"reduced_mass.npy": as_npy(-np.eye(24))}),
        "not positive definite",
    ),
    "mechanism": (
        lambda e: e.update({"mechanism.npy": as_npy(np.frombuffer(b"{}", dtype=np.uint8))}),
        "no pliant mechanism",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_refused(name, tmp_path):
    pliant.reduce(pliant.gallery.hand()).save(tmp_path / "good.npz")
    change, message = CHANGES[name]
    rewrite(tmp_path / "good.npz", tmp_path / "bad.npz", change)
    with pytest.raises(FormatError, match=message):
        pliant.ReducedModel.load(tmp_path / "bad.npz")


def test_damaged_files(tmp_path):
    good, bad = tmp_path / "good.npz", tmp_path / "bad.npz"
    pliant.reduce(pliant.gallery.two_link()).save(good)
    data = good.read_bytes()
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(data) - 1, size=60):  # truncated anywhere
        bad.write_bytes(data[:size])
        with pytest.raises(FormatError):
            pliant.ReducedModel.load(bad)
    for _ in range(200):  # a byte changed anywhere: refused, or harmless (unused bytes of the archive)
        broken = bytearray(data)
        broken[rng.integers(len(data))] ^= 1 << rng.integers(8)
        bad.write_bytes(broken)
        try:
            pliant.ReducedModel.load(bad)
        except (FormatError, pliant.errors.MechanismError):
            continue
    np.savez_compressed(bad, a=np.zeros(10**7))  # a small file that unpacks into a large one
    with pytest.raises(FormatError, match="packed in a way"):
        pliant.ReducedModel.load(bad)
    with pytest.raises(FormatError, match="there is no such file"):
        pliant.ReducedModel.load(tmp_path / "nothing.npz")
    with pytest.raises(InputError):
        pliant.ReducedModel.load(3)  # type: ignore[arg-type]
