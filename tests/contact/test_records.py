"""MuJoCo's records: offsets from its headers, their check, and the slower way that gives the same contacts."""

from __future__ import annotations

import ctypes
import shutil
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import pliant
from pliant.contact import records
from pliant.errors import PliantWarning

HEADERS = Path(mujoco.__file__).parent / "include" / "mujoco"


@pytest.fixture(autouse=True)
def _fresh():
    """Neither what other tests found, nor what these find, is remembered."""
    for function in (records.offsets, records._tell):
        function.cache_clear()
    yield
    for function in (records.offsets, records._tell):
        function.cache_clear()


def pile() -> pliant.World:
    """A reduced hand, boxes and balls that fall onto a floor and a height field."""
    world = pliant.World(1 / 100)
    world.add_static("floor", pliant.shapes.plane(), position=(0, 0, -0.3))
    heights = 0.02 * np.random.default_rng(0).random((6, 6))
    world.add_static("field", pliant.shapes.height_field(heights, (0.3, 0.3)), position=(1, 0, -0.2))
    world.add(pliant.reduce(pliant.gallery.hand(), "index_tip"), "hand")
    for i in range(6):
        shape = pliant.shapes.box((0.03, 0.02, 0.04)) if i % 2 else pliant.shapes.sphere(0.03)
        world.add_body(f"body{i}", shape, position=(1 + 0.01 * i, 0.02 * i, 0.1 * i))
    return world


def test_both_ways_give_the_same_contacts(monkeypatch):
    quick = pile()
    quick.step()
    assert quick._build().stepper.compiled
    monkeypatch.setattr(records, "offsets", lambda: None)
    slow = pile()
    with pytest.warns(PliantWarning, match="worlds with contact are slower"):
        slow.step()
    assert not slow._build().stepper.compiled
    seen = 0
    for _ in range(60):
        quick.step()
        slow.step()
        a, b = quick.contacts, slow.contacts
        assert a.bodies == b.bodies
        for word in ("points", "normals", "distances", "forces"):
            assert np.array_equal(getattr(a, word), getattr(b, word)), word
        seen += len(a.points)
    assert seen > 200
    assert np.array_equal(quick.poses, slow.poses)


def test_users_are_told_once(monkeypatch):
    monkeypatch.setattr(records, "symbols", lambda: False)
    with pytest.warns(PliantWarning, match="slower"):
        pile().step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pile().step()


def test_the_quick_way_is_found_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert records.offsets() is not None
        pile().step()


def test_offsets_are_those_of_arrays_that_mujoco_hands_out():
    """An oracle: addresses of arrays in Python."""
    found = records.read_offsets(HEADERS)
    model = mujoco.MjModel.from_xml_string(records._PROBE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    contact, address = data.contact, lambda array: array.__array_interface__["data"][0]
    first = address(contact.dist)
    assert found.stride == contact.pos.strides[0]
    assert found.point == address(contact.pos) - first
    assert found.frame == address(contact.frame) - first
    assert found.geoms == address(contact.geom) - first
    assert ctypes.c_int.from_address(data._address + found.count).value == data.ncon == 3


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """Headers in which a line of `mjdata.h` is another one."""
    for name in records._HEADERS:
        shutil.copy(HEADERS / name, tmp_path / name)
    text = (tmp_path / "mjdata.h").read_text()
    assert old in text
    (tmp_path / "mjdata.h").write_text(text.replace(old, new, 1))
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int     ne; ", "int     more; int     ncon2; int     ne; "),
        ("int     ncon; ", "int     other; int     ncon; "),
        ("mjtNum  dist; ", "mjtNum  other; mjtNum  dist; "),
        ("mjtNum  pos[3]; ", "mjtNum  other; mjtNum  pos[3]; "),
        ("mjtNum  frame[9]; ", "mjtNum  frame[12]; "),
        ("int     geom[2]; ", "int     other; int     geom[2]; "),
        ("void*   arena; ", "void*   other; void*   arena; "),
    ],
)
def test_headers_of_another_version_are_not_believed(tmp_path, old, new):
    found = records.read_offsets(changed(tmp_path, old, new))
    assert records._is_right(found) == (found == records.read_offsets(HEADERS))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int     ncon; ", "int     count; "),
        ("int     ncon; ", "strange ncon; "),
        ("int     ncon; ", "int     ncon : 3; "),
        ("solver_fwdinv[2]", "solver_fwdinv[mjUNKNOWN]"),
        ("} mjContact;", "} mjTouch;"),
    ],
)
def test_headers_that_are_not_understood(tmp_path, old, new):
    with pytest.raises((LookupError, ValueError, AttributeError)):
        records.read_offsets(changed(tmp_path, old, new))


def test_no_headers(tmp_path, monkeypatch):
    monkeypatch.setattr(records.mujoco, "__file__", str(tmp_path / "mujoco" / "__init__.py"))
    assert records.offsets() is None
