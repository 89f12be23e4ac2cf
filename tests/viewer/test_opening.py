"""Files and keyframes in the live view: what is opened, what is refused, what is left behind."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import pliant
from pliant.errors import FormatError, InputError, PliantError
from pliant.scenes import Scene
from pliant.source import gallery_names
from pliant.viewer import opening
from pliant.viewer.gallery import thumbnail
from pliant.viewer.opening import Opener

ARM = """<mujoco model="arm"><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" stiffness="5"/>
    <geom size=".02" fromto="0 0 0 .3 0 0" type="capsule"/>
    <body name="lower" pos=".3 0 0"><joint name="elbow" axis="0 1 0" stiffness="3"/>
      <geom size=".02" fromto="0 0 0 .2 0 0" type="capsule"/>
  </body></body></worldbody>
  <keyframe><key name="bent" qpos="0.4 -0.9"/><key name="up" qpos="-1 0"/></keyframe></mujoco>"""


@pytest.fixture
def opener():
    made = Opener()
    yield made
    made.close()


def test_a_file_and_its_keyframes(opener):
    found = opener.file("my arm.xml", ARM.encode())
    assert (found.name, found.body_names) == ("arm", ("upper", "lower"))
    assert opener.keyframes == ("as described", "bent", "up")
    bent = opener.at_keyframe("bent")
    np.testing.assert_allclose(bent.reference, (0.4, -0.9))
    assert opener.keyframe == "bent"
    np.testing.assert_array_equal(opener.at_keyframe("as described").reference, found.reference)
    with pytest.raises(InputError, match="did you mean 'bent'"):
        opener.at_keyframe("bend")
    assert opener.keyframe == "as described"


def test_other_kinds_of_files(opener, tmp_path):
    m = pliant.gallery.helix(4)
    for suffix in (".json", ".npz"):
        m.save(tmp_path / f"m{suffix}")
        assert opener.file(f"m{suffix}", (tmp_path / f"m{suffix}").read_bytes()).body_count == 4
        assert opener.keyframes == ()
    pliant.reduce(m).save(tmp_path / "model.npz")
    model = opener.file("model.npz", (tmp_path / "model.npz").read_bytes())
    assert isinstance(model, pliant.ReducedModel)
    urdf = (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
    )
    assert opener.file("r.urdf", urdf.encode()).joint_names[-1] == "j"


def test_what_is_left_out_is_told(opener):
    text = ARM.replace('name="shoulder"', 'name="shoulder" frictionloss="1"')
    opener.file("arm.xml", text.encode())
    assert len(opener.remarks) == 1
    assert "friction" in opener.remarks[0]
    assert "tmp" not in opener.remarks[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("arm.txt", ARM.encode(), "kinds .xml"),
        ("arm", ARM.encode(), "kinds"),
        ("arm.xml", b"", "empty"),
        ("arm.xml", b"<mujoco", "arm.xml"),
        ("arm.npz", b"PK\x03\x04 damaged", "arm.npz"),
        ("arm.json", json.dumps({"format": "other"}).encode(), "arm.json"),
        ("../../arm.xml", b"<html/>", "neither MJCF"),
        ("x" * 500 + ".xml", b"<html/>", "neither MJCF"),
    ],
)
def test_files_that_are_refused(opener, name, content, words):
    opener.file("good.xml", ARM.encode())
    with pytest.raises(PliantError, match=words) as caught, opener.trying():
        opener.file(name, content)
    assert "pliant-view-" not in str(caught.value)  # the folder means nothing to who sent the file
    assert opener.at_keyframe("up").name == "arm"  # the one before is still there


def test_a_file_that_is_too_large(opener, monkeypatch):
    monkeypatch.setattr(opening, "LARGEST_FILE", 100)
    with pytest.raises(FormatError, match="larger than"):
        opener.file("arm.xml", ARM.encode())


@pytest.mark.parametrize("reference", ["/etc/passwd", "../secret.xml", "secret.xml"])
def test_other_files_are_out_of_reach(opener, reference):
    """A file comes alone: nothing it refers to is there, and nothing outside its folder is read."""
    text = ARM.replace("<worldbody>", f'<include file="{reference}"/><worldbody>')
    with pytest.raises(PliantError):
        opener.file("arm.xml", text.encode())


# --- archives

TETRAHEDRON = b"v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MESHED = ARM.replace(
    "<worldbody>", '<asset><mesh name="part" file="meshes/part.obj"/></asset><worldbody>', 1
).replace('<geom size=".02" fromto="0 0 0 .3 0 0" type="capsule"/>', '<geom type="mesh" mesh="part"/>')
LINKED = """<robot name="linked"><link name="base"/><link name="arm"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><geometry><mesh filename="package://linked/meshes/part.obj"/></geometry></visual></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def zipped(files, kind=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_model_comes_with_its_meshes(opener, kind):
    found = opener.file(
        "arm.zip", zipped({"robot/arm.xml": MESHED, "robot/meshes/part.obj": TETRAHEDRON}, kind)
    )
    assert len(found.shapes("upper")[0].mesh.vertices) == 4
    assert opener.keyframes == ("as described", "bent", "up")
    assert opener.at_keyframe("bent").reference[0] == 0.4
    assert not opener.remarks
    folder = Path(opener._folder.name)
    assert (folder / "robot" / "meshes" / "part.obj").exists()
    opener.close()
    assert not folder.exists()


def test_meshes_of_a_urdf_lie_beside_its_folder(opener):
    files = {
        "linked/package.xml": "<package><name>linked</name></package>",
        "linked/urdf/linked.urdf": "<?xml version='1.0'?><!-- <mujoco> -->" + LINKED,
        "linked/meshes/part.obj": TETRAHEDRON,
        "__MACOSX/linked/urdf/._linked.urdf": b"\0\1",
    }
    found = opener.file("linked.zip", zipped(files))
    assert found.name == "linked"
    assert len(found.shapes("arm")[0].mesh.vertices) == 4


def test_a_scene_is_meant_not_the_robot_in_it(opener):
    scene = '<mujoco model="scene"><include file="arm.xml"/></mujoco>'
    found = opener.file("all.zip", zipped({"arm.xml": ARM, "scene.xml": scene, "LICENSE": "free"}))
    assert found.name == "scene"
    assert found.body_names == ("upper", "lower")
    assert opener.keyframes == ("as described", "bent", "up")  # those of the robot
    assert opener.at_keyframe("bent").reference[0] == 0.4
    with pytest.raises(FormatError, match=r"several models, 'arm\.xml', 'my_arm\.xml': send one"):
        opener.file("two.zip", zipped({"arm.xml": ARM, "my_arm.xml": ARM}))
    with pytest.raises(FormatError, match="holds no model"):
        opener.file("none.zip", zipped({"part.obj": TETRAHEDRON, "package.xml": "<package/>"}))


@pytest.mark.parametrize(
    "name",
    ["../arm.xml", "/tmp/arm.xml", "a/../../arm.xml", "..\\arm.xml", "C:\\arm.xml", "a//arm.xml", "./arm.xml",
     "a\narm.xml", "x" * 300 + ".xml", "a/" * 20 + "arm.xml", "arm.xml:stream"],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_refused(opener, name, tmp_path, monkeypatch):
    monkeypatch.setattr(opening.tempfile, "tempdir", str(tmp_path))
    opener.file("good.xml", ARM.encode())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FormatError, match="no plain file below its folder"), opener.trying():
        opener.file("bad.zip", zipped({"part.obj": TETRAHEDRON, name: ARM}))
    assert sorted(tmp_path.rglob("*")) == before
    assert opener.at_keyframe("up").name == "arm"


def test_archives_that_are_refused(opener, monkeypatch):
    link = zipfile.ZipInfo("arm.xml")
    link.external_attr = 0o120777 << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    good = zipped({"arm.xml": ARM, "part.obj": TETRAHEDRON})
    damaged = bytearray(zipped({"arm.xml": ARM}, zipfile.ZIP_STORED))
    damaged[100] ^= 255
    locked = bytearray(good)
    for sign, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        locked[locked.index(sign) + place] |= 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice = io.BytesIO()
        with zipfile.ZipFile(twice, "w") as archive:
            archive.writestr("arm.xml", ARM)
            archive.writestr("arm.xml", ARM)
    for content, words in (
        (out.getvalue(), "no plain file"),
        (b"PK", "cannot be read"),
        (good[:-30], "cannot be read"),
        (bytes(damaged), "cannot be read"),
        (bytes(locked), "cannot be read"),
        (twice.getvalue(), "holds 'arm.xml' twice"),
        (zipped({"a": "", "a/arm.xml": ARM}), "twice"),
        (zipped({"arm.xml": MESHED}), "there is no such file"),
        (zipped({"arm.xml": MESHED.replace("meshes/part.obj", "../../part.obj")}), "outside"),
    ):
        with pytest.raises(PliantError, match=words) as caught:
            opener.file("bad.zip", content)
        assert "pliant-view-" not in str(caught.value)
    monkeypatch.setattr(opening, "_MOST_BYTES", 100)
    with pytest.raises(FormatError, match=r"more than 0\.0001 MB"):
        opener.file("large.zip", good)
    monkeypatch.setattr(opening, "_MOST_FILES", 1)
    monkeypatch.setattr(opening, "_MOST_BYTES", 10**6)
    with pytest.raises(FormatError, match="more than 1 files"):
        opener.file("many.zip", good)


# --- files that were opened


def test_nothing_is_left_behind(opener):
    opener.file("arm.xml", ARM.encode())
    folder = Path(opener._folder.name)
    assert [file.name for file in folder.iterdir()] == ["arm.xml"]
    with opener.trying():
        opener.file("other.xml", ARM.replace('model="arm"', 'model="other"').encode())
    assert not folder.exists()
    folder = Path(opener._folder.name)
    with pytest.raises(InputError), opener.trying():
        opener.file("third.xml", ARM.encode())
        third = Path(opener._folder.name)
        raise InputError("it cannot be shown")
    assert not third.exists()
    assert opener.at_keyframe("bent").name == "other"
    with opener.trying():
        opener.gallery("two_link")
    assert not folder.exists()
    opener.file("arm.xml", ARM.encode())
    folder = Path(opener._folder.name)
    opener.close()
    assert not folder.exists()


def test_the_gallery(opener):
    opener.file("arm.xml", ARM.encode())
    assert opener.gallery("two_link").body_count == 2
    assert opener.keyframes == ()
    scene = opener.gallery("heavy_ball")
    assert isinstance(scene, Scene)
    assert opener.gallery("peg_in_hole").world is not None
    for name in ("helixx", "../helix", "helix:links=4", 3):
        with pytest.raises(InputError, match="gallery has no"):
            opener.gallery(name)


def test_a_view_opens_something_else_and_keeps_what_it_has_if_that_fails():
    with pliant.view(pliant.gallery.two_link(), port=0, block=False) as shown:
        first = shown.session
        shown.open(pliant.scenes.grasp())
        assert shown.session.world is not None
        assert shown.runner.session is shown.session
        assert shown.page._session is shown.session
        assert "hand" in repr(shown)
        shown.open(pliant.gallery.two_link())
        with pytest.raises(InputError):
            shown.open(3)
        assert shown.session.mechanism.name == first.mechanism.name
        before = shown.runner.ask(lambda: shown.session.time)
        shown.wait(0.3)
        assert shown.runner.ask(lambda: shown.session.time) > before
        # a page that cannot be made: the one before comes back
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pliant.viewer.page.WorldPage._add_folders", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                shown.open(pliant.scenes.grasp())
        assert shown.page._session is shown.session
        assert shown.session.mechanism.name == first.mechanism.name
        shown.runner.ask(shown.page.show_controls)
        arm = pliant.gallery.arm()
        shown.offer_keyframes(("home", "home", ""), lambda name: arm)
        assert shown.page._keyframe.options == ("as described", "home")


def test_everything_in_the_gallery_has_a_thumbnail():
    """All move, are as large as the page expects, and small as files; none is left of what is gone."""
    total = 0
    for name in gallery_names():
        data = thumbnail(name)
        total += len(data)
        assert len(data) < 60_000
        with Image.open(io.BytesIO(data)) as image:
            assert image.size == (240, 180)
            assert image.info["loop"] == 0
            frames = []
            for i in range(image.n_frames):  # pyright: ignore[reportAttributeAccessIssue]
                image.seek(i)
                frames.append(np.asarray(image.convert("L"), float))
        assert len(frames) >= 10
        assert max(np.abs(frame - frames[0]).max() for frame in frames) > 60
    assert total < 2_000_000
    folder = Path(pliant.__file__).parent / "viewer" / "thumbnails"
    assert {file.stem for file in folder.iterdir()} == set(gallery_names())
