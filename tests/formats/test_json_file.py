"""pliant's own file: lossless, atomic, and picky about what it reads."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import pliant
from oracles.random_mechanisms import random_mechanism
from pliant.errors import FormatError, InputError, MechanismError
from pliant.formats import load, save

from . import samples
from .identity import assert_identical


@pytest.mark.parametrize("seed", range(8))
def test_round_trip_of_random_mechanisms(seed, tmp_path):
    m = random_mechanism(seed, bodies=8, loops=seed % 3, reference=seed % 2 == 1)
    m.save(tmp_path / "m.json")
    assert_identical(m, load(tmp_path / "m.json"))


def test_awkward_values(tmp_path):
    b = pliant.Builder('nämé "quoted" 中')
    b.body("a\\b", mass=5e-324, inertia=(1e-300, 1e-300, 1.5e-300), com=(-0.0, 1 / 3, 1e-310 / 3))
    b.hinge(
        "j/é",
        "world",
        "a\\b",
        anchor=(0.1, 0.2, 0.3),
        axis=(0, 0, 1),
        stiffness=0.1 + 0.2,
        limits=(-np.inf, np.pi),
    )
    m = b.build()
    save(m, str(tmp_path / "m.json"))
    n = load(str(tmp_path / "m.json"))
    assert_identical(m, n)
    assert np.signbit(n.com[0, 0])
    assert n.lower[0] == -np.inf
    text = (tmp_path / "m.json").read_text()
    assert "Infinity" not in text
    assert json.loads(text)["dofs"]["lower"] == [None]


def test_a_huge_chain(tmp_path):
    b = pliant.Builder("chain")
    for i in range(50_000):
        parent = f"b{i - 1}" if i else "world"
        b.body(f"b{i}", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(i * 0.123, 0.0, 0.0))
        b.hinge(f"j{i}", parent, f"b{i}", anchor=(i * 0.123 - 0.05, 0.0, 0.0), axis=(0, 0, 1), stiffness=1.0)
    m = b.build()
    save(m, tmp_path / "m.json")
    n = load(tmp_path / "m.json")
    assert_identical(m, n)


@pytest.fixture
def document(tmp_path):
    (tmp_path / "arm.urdf").write_text(samples.ARM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load(tmp_path / "arm.urdf").save(tmp_path / "arm.json")
    return json.loads((tmp_path / "arm.json").read_text())


def put(path, value):
    def change(document):
        *way, last = path
        for step in way:
            document = document[step]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (put(["version"], 2), FormatError, "newer pliant.*update"),
        (put(["version"], "1"), FormatError, "version"),
        (put(["version"], True), FormatError, "version"),
        (put(["format"], "other"), FormatError, "no pliant mechanism"),
        (put(["extra"], 1), FormatError, "unknown key 'extra'"),
        (put(["bodies", "colour"], []), FormatError, "bodies: unknown key 'colour'"),
        (put(["name"], 7), FormatError, "name: a string"),
        (put(["bodies"], []), FormatError, "bodies: an object"),
        (put(["bodies", "mass"], 3), FormatError, "bodies.mass: a list"),
        (put(["bodies", "mass", 1], "1.5"), FormatError, "bodies.mass: only numbers"),
        (put(["bodies", "mass", 1], True), FormatError, "bodies.mass: only numbers"),
        (put(["bodies", "mass", 1], None), FormatError, "bodies.mass: only numbers"),
        (put(["bodies", "mass", 1], 10**400), FormatError, "bodies.mass: a number is too large"),
        (put(["bodies", "com", 1], [0, 0]), FormatError, "bodies.com: lists of 3"),
        (put(["joints", "parent", 0], -1.0), FormatError, "joints.parent: only whole numbers"),
        (put(["bodies", "name", 0], 4), FormatError, "bodies.name: only strings"),
        (
            put(["meshes"], [{"vertices": [[0, 0, 0]], "faces": [[0, 0, 1]]}]),
            FormatError,
            "vertex that is not there",
        ),
        (put(["meshes"], [{"vertices": [[0, 0]], "faces": []}]), FormatError, r"meshes\[0\].vertices"),
        (put(["bodies", "mass", 1], -1.5), MechanismError, "'upper': mass must be positive"),
        (put(["bodies", "mass", 1], 1e999), MechanismError, "'upper': mass is not finite"),
        (put(["bodies", "mass"], [1.0]), MechanismError, "mass: shape"),
        (put(["joints", "parent", 1], 17), MechanismError, "points to no body"),
        (put(["coordinates", "reference", 0], 0.5), MechanismError, "coupling|apart"),
        (put(["end_effectors"], ["nobody"]), MechanismError, "'nobody'"),
    ],
)
def test_what_is_wrong_is_named(document, tmp_path, change, error, message):
    change(document)
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(document).replace("Infinity", "1e999"))
    with pytest.raises(error, match=message) as caught:
        load(file)
    assert str(file) in str(caught.value)


def test_text_that_is_not_json(document, tmp_path):
    file = tmp_path / "m.json"
    text = json.dumps(document)
    cases = {
        text[: len(text) // 2]: "cut short",
        text.replace('"version": 1', '"version": NaN'): "NaN",
        text.replace('"version": 1', '"version": -Infinity'): "Infinity",
        text.replace('"version": 1', '"version": 1, "version": 1'): "'version' appears twice",
        '{"format": ' + "[" * 100_000: "nested too deep",
        '{"format": ' + "1" * 10_000 + "}": "digits|no pliant",
        "{": "not JSON",
        "{} {}": "not JSON",
        "": "is empty",
        "  \n ": "is empty",
    }
    for content, message in cases.items():
        file.write_text(content)
        with pytest.raises(FormatError, match=message):
            load(file)
    file.write_bytes(b'{"name": "\xff\xfe"}')
    with pytest.raises(FormatError, match="UTF-8"):
        load(file)
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())  # a byte order mark is fine
    assert load(file).body_count == 4
    with pytest.raises(FormatError, match="no keyframes"):
        load(file, keyframe=0)


def test_one_key_of_a_hundred_thousand_appears_twice(tmp_path):
    """It is found among all of them at once: a comparison of each with each would take a minute."""
    path = tmp_path / "m.json"
    keys = ", ".join(f'"k{i}": 0' for i in range(100_000))
    path.write_text(f'{{"format": "pliant-mechanism", {keys}, "k5": 1}}')
    with pytest.raises(FormatError, match="the key 'k5' appears twice"):
        load(path)


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    m = random_mechanism(1)
    file = tmp_path / "m.json"
    m.save(file)
    before = file.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pliant.formats.json_file.pieces", fail)
    with pytest.raises(FormatError, match="No space left"):
        m.save(file)
    assert file.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["m.json"]


def test_saving_to_impossible_places(tmp_path):
    m = random_mechanism(1)
    with pytest.raises(FormatError, match="cannot be written"):
        m.save(tmp_path / "nowhere" / "m.json")
    with pytest.raises(FormatError, match="cannot be written"):
        m.save(tmp_path)
    with pytest.raises(InputError):
        save("m", tmp_path / "m.json")  # type: ignore[arg-type]
