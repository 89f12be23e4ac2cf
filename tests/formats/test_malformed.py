"""Damaged files give pliant's own errors: never another exception, a crash or a hang."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

import pliant
from pliant.errors import PliantError
from pliant.formats import compiler, load, save

from . import corpus, mutation, samples

SUITE = ("humanoid.xml", "fish.xml", "quadruped.xml", "stacker.xml", "ball_in_cup.xml", "point_mass.xml")


XML, MUCH_XML, JSON, MUCH_JSON, MESHES = 1200, 12_000, 1500, 8000, 150  # damaged files; meshes of each format


def xml_texts() -> list[str]:
    suite = corpus.folder("dm_control") / "suite"
    # The dangerous constructs are in our own samples: give them half of the seeds.
    return [*(list(samples.ALL.values()) * 2), *((suite / name).read_text() for name in SUITE)]


def outcomes(file, damage, seeds) -> Counter:
    """What loading damaged files gives; anything but a mechanism or a PliantError escapes."""
    count: Counter = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            file.write_bytes(damage(seed))
            try:
                assert isinstance(load(file), pliant.Mechanism)
                count["loaded"] += 1
            except PliantError as error:
                count["crashed" if "crashed" in str(error) else type(error).__name__] += 1
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return count


def check_xml(tmp_path, monkeypatch, seeds) -> None:
    monkeypatch.setattr(compiler, "TIME_LIMIT", 20.0)
    monkeypatch.chdir(tmp_path)
    texts = xml_texts()
    count = outcomes(
        tmp_path / "model.xml", lambda seed: mutation.damaged_xml(texts[seed % len(texts)], seed), seeds
    )
    print(count)
    # Otherwise the damage is too light, or so heavy that nothing is tested but the parser.
    assert 0.05 < count["loaded"] / len(seeds) < 0.6
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.xml"]  # no log of MuJoCo


def test_damaged_xml(tmp_path, monkeypatch):
    check_xml(tmp_path, monkeypatch, range(XML))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_much_damaged_xml(part, tmp_path, monkeypatch):
    size = MUCH_XML // 6
    check_xml(tmp_path, monkeypatch, range(XML + part * size, XML + (part + 1) * size))


@pytest.mark.parametrize("runs", [JSON, pytest.param(MUCH_JSON, marks=pytest.mark.slow)])
def test_damaged_json(tmp_path, runs):
    texts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text in samples.ALL.items():
            (tmp_path / name).write_text(text)
            save(load(tmp_path / name), tmp_path / "m.json")
            texts.append((tmp_path / "m.json").read_text())
    file = tmp_path / "damaged.json"
    count = outcomes(file, lambda seed: mutation.damaged_json(texts[seed % len(texts)], seed), range(runs))
    print(count)
    assert 0.02 < count["loaded"] / runs < 0.6
    assert count["FormatError"] > 0.1 * runs
    assert count["MechanismError"] > 0.075 * runs


def test_damaged_meshes(tmp_path, monkeypatch):
    """A mesh file is as untrusted as the model."""
    import random
    import struct

    monkeypatch.setattr(compiler, "TIME_LIMIT", 20.0)
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    stl = b"\0" * 80 + struct.pack("<I", len(faces))
    for face in faces:
        stl += struct.pack("<12fH", 0, 0, 0, *(c for i in face for c in corners[i]), 0)
    obj = "".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "".join(
        f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces
    )
    msh = struct.pack("<4i", 4, 0, 0, 4) + struct.pack("<12f", *(x for c in corners for x in c))
    msh += struct.pack("<12i", *(i for f in faces for i in f))
    body = '<worldbody><body><joint/><geom type="mesh" mesh="m"/></body></worldbody>'
    model = '<mujoco><asset><mesh file="m.{0}"/></asset>' + body + "</mujoco>"
    count: Counter = Counter()
    for suffix, data in (("stl", stl), ("obj", obj.encode()), ("msh", msh)):
        (tmp_path / "model.xml").write_text(model.format(suffix))
        for seed in range(MESHES):
            (tmp_path / f"m.{suffix}").write_bytes(
                mutation.damaged_bytes(data, random.Random(seed)) if seed else data
            )
            try:
                load(tmp_path / "model.xml")
                count[suffix, "loaded"] += 1
            except PliantError as error:
                assert seed, error
                count[suffix, "refused"] += 1
    assert all(
        count[suffix, outcome] > 5 for suffix in ("stl", "obj", "msh") for outcome in ("loaded", "refused")
    ), count
