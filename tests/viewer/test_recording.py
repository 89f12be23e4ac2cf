"""Recordings: frames taken, files complete, played by a browser without a network; glTF read by another reader."""

from __future__ import annotations

import json
import re
import struct

import numpy as np
import pytest

import pliant
from pliant.errors import FormatError, InputError
from pliant.viewer import export_gltf, record_html
from pliant.viewer.meshes import triangulate
from pliant.viewer.recording import frames

TO_Y_UP = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1.0]])
WIDTH = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}
KIND = {5125: "<u4", 5126: "<f4"}


@pytest.fixture(scope="module")
def swing():
    simulation = pliant.ReducedSimulation(pliant.reduce(pliant.gallery.helix(10)), 1 / 120)
    simulation.apply_wrench("link10", force=(0, 0, -60))
    return simulation.record(60)


def test_frames_are_the_nearest(swing):
    m = swing.mechanism

    def at(*times):
        n = len(times)
        return pliant.Trajectory(m, np.array(times), np.tile(m.reference_poses, (n, 1, 1, 1)))

    assert frames(at(0.0), 30).tolist() == [0]
    assert frames(at(*np.arange(0, 1.001, 0.1)), 5).tolist() == [0, 2, 4, 6, 8, 10]
    assert frames(at(*np.arange(0, 1.001, 0.1)), 1000).tolist() == list(range(11))
    assert frames(at(5.0, 5.01, 5.02, 6.0), 10).tolist() == [0, 2, 3]
    assert frames(swing, 30).tolist()[:3] == [0, 4, 8]
    assert frames(swing, 30).tolist()[-1] == 59


@pytest.mark.parametrize("fps", [0, -1, float("nan"), 1e9, "30", None, True])
def test_frames_a_second_that_are_none(swing, fps, tmp_path):
    with pytest.raises(InputError, match="fps"):
        record_html(swing, tmp_path / "swing.html", fps=fps)
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused(swing, tmp_path):
    m = swing.mechanism
    path = tmp_path / "swing.html"
    poses = np.tile(m.reference_poses, (2, 1, 1, 1))
    bad = poses.copy()
    bad[1, 0, 0, 3] = np.nan
    for trajectory, words in (
        (m, "Trajectory expected"),
        (pliant.Trajectory(m, np.zeros(0), poses[:0]), "empty"),
        (pliant.Trajectory(m, np.array([0.0, 1.0]), poses[:, 1:]), "shape"),
        (pliant.Trajectory(m, np.array([0.0, 1.0]), bad), "finite"),
        (pliant.Trajectory(m, np.array([1.0, 1.0]), poses), "increase"),
    ):
        with pytest.raises(InputError, match=words):
            record_html(trajectory, path)
    with pytest.raises(FormatError):
        record_html(swing, tmp_path / "nowhere" / "swing.html")
    with pytest.raises(InputError):
        record_html(swing, "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_when_the_new_one_is_complete(swing, tmp_path, monkeypatch, capsys):
    path = tmp_path / "swing.html"
    path.write_text("old")

    def fail(*_):
        raise RuntimeError("stopped on the way")

    with monkeypatch.context() as patch:
        patch.setattr("pliant.viewer.stage.Stage.update", fail)
        with pytest.raises(RuntimeError):
            record_html(swing, path)
    assert path.read_text() == "old"
    assert record_html(swing, path) == path
    assert path.stat().st_size > 500_000
    assert [file.name for file in tmp_path.iterdir()] == ["swing.html"]
    assert "<title>helix 10</title>" in path.read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""


def test_a_recording_plays_from_a_file_without_a_network(swing, tmp_path, chromium, look, monkeypatch):
    # No shadows: they take seconds a frame in software.
    monkeypatch.setattr("pliant.viewer.stage._MANY", 0)
    path = record_html(swing, tmp_path / "swing.html", fps=10)
    # The only address in it is the name of a format, inside a picture.
    assert set(re.findall(r"https?://[\w./-]+", path.read_text(encoding="utf-8"))) <= {
        "http://www.w3.org/2000/svg"
    }
    context = chromium.new_context(viewport={"width": 420, "height": 320}, offline=True)
    page = context.new_page()
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("canvas")
    seen = []
    for _ in range(60):
        image = look(page)
        if dark(image) > 0.005:
            seen.append(image)
            if np.abs(image - seen[0]).max() > 0.1:
                break
        page.wait_for_timeout(200)
    context.close()
    assert seen, "nothing is drawn"
    assert np.abs(seen[-1] - seen[0]).max() > 0.1, "nothing moves"
    assert not problems
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def dark(image):
    """Fraction of pixels that are neither background nor floor."""
    return float((image.min(axis=2) < 0.7).mean())


# --- glTF, read again by a small independent reader: the format, and poses at given times


class Reader:
    """A binary glTF file, taken apart."""

    def __init__(self, path):
        data = path.read_bytes()
        magic, version, total = struct.unpack_from("<4sII", data)
        assert (magic, version, total) == (b"glTF", 2, len(data))
        size, kind = struct.unpack_from("<I4s", data, 12)
        assert kind == b"JSON"
        assert size % 4 == 0
        self.json = json.loads(data[20 : 20 + size])
        length, kind = struct.unpack_from("<I4s", data, 20 + size)
        assert kind == b"BIN\0"
        self.binary = data[28 + size :]
        assert len(self.binary) == length == self.json["buffers"][0]["byteLength"]

    def array(self, number):
        accessor = self.json["accessors"][number]
        view = self.json["bufferViews"][accessor["bufferView"]]
        assert view["byteOffset"] % 4 == 0
        width = WIDTH[accessor["type"]]
        count = accessor["count"] * width
        values = np.frombuffer(self.binary, KIND[accessor["componentType"]], count, view["byteOffset"])
        assert view["byteLength"] == values.nbytes
        values = values.reshape(-1, width)
        if "min" in accessor:
            np.testing.assert_array_equal(values.min(axis=0), np.float32(accessor["min"]))
            np.testing.assert_array_equal(values.max(axis=0), np.float32(accessor["max"]))
        return values

    def local(self, node, time):
        """Pose of a node in its parent's frame at a time, animated or not."""
        found = self.json["nodes"][node]
        place = {
            word: np.array(found.get(word, rest))
            for word, rest in (("translation", [0, 0, 0]), ("rotation", [0, 0, 0, 1]), ("scale", [1, 1, 1]))
        }
        animation = self.json["animations"][0]
        for channel in animation["channels"]:
            if channel["target"]["node"] == node:
                sampler = animation["samplers"][channel["sampler"]]
                t, values = self.array(sampler["input"])[:, 0], self.array(sampler["output"])
                place[channel["target"]["path"]] = np.array(
                    [np.interp(time, t, column) for column in values.T]
                )
        x, y, z, w = place["rotation"] / np.linalg.norm(place["rotation"])
        turn = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        out = np.eye(4)
        out[:3, :3], out[:3, 3] = turn * place["scale"], place["translation"]
        return out

    def world(self, time):
        """World poses of all nodes."""
        out = {}

        def visit(node, above):
            out[node] = above @ self.local(node, time)
            for child in self.json["nodes"][node].get("children", []):
                visit(child, out[node])

        for root in self.json["scenes"][0]["nodes"]:
            visit(root, np.eye(4))
        assert len(out) == len(self.json["nodes"])
        return out


@pytest.fixture(scope="module")
def moved():
    simulation = pliant.ConstrainedSimulation(pliant.gallery.hexapod(), 1 / 60)
    simulation.velocity = (
        {"base": (1, 0, 0, 3, 2, 1)}
        if "base" in simulation.mechanism.joint_names
        else np.full(simulation.mechanism.nv, 0.5)
    )
    return simulation.record(20, every=3)


def test_poses_at_given_times(moved, tmp_path):
    path = export_gltf(moved, tmp_path / "moved.glb")
    reader, m = Reader(path), moved.mechanism
    names = {node.get("name"): i for i, node in enumerate(reader.json["nodes"])}
    for frame in (0, 1, 7, 19):
        found = reader.world(moved.time[frame] - moved.time[0])
        for i, body in enumerate(m.body_names):
            np.testing.assert_allclose(found[names[body]], TO_Y_UP @ moved.poses[frame, i], atol=1e-5)


def test_shapes_are_where_they_belong(moved, tmp_path):
    """Every vertex of every mesh, in the world, is within the box of its body's triangles."""
    reader, m = Reader(export_gltf(moved, tmp_path / "moved.glb")), moved.mechanism
    found = reader.world(0.0)
    drawn = triangulate(m, moved.poses[0], reach=1.2 * m.radius)
    low, high = (f(drawn.corners.reshape(-1, 3), axis=0) for f in (np.min, np.max))
    points = []
    for i, node in enumerate(reader.json["nodes"]):
        if "mesh" in node:
            primitive = reader.json["meshes"][node["mesh"]]["primitives"][0]
            vertices = reader.array(primitive["attributes"]["POSITION"])
            faces = reader.array(primitive["indices"])
            assert faces.max() < len(vertices)
            if "NORMAL" in primitive["attributes"]:
                normals = reader.array(primitive["attributes"]["NORMAL"])
                np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-5)
            points.append(vertices @ found[i][:3, :3].T + found[i][:3, 3])
    everything = np.concatenate(points) @ TO_Y_UP[:3, :3]  # back to z up
    np.testing.assert_allclose(everything.min(axis=0), low, atol=0.01 * m.radius)
    np.testing.assert_allclose(everything.max(axis=0), high, atol=0.01 * m.radius)


def test_another_reader_agrees(moved, tmp_path):
    """trimesh, which viser brings along, reads the file and finds the same box."""
    trimesh = pytest.importorskip("trimesh")
    scene = trimesh.load(export_gltf(moved, tmp_path / "moved.glb"))
    assert len(scene.geometry) > 0
    assert np.isfinite(scene.bounds).all()


def test_quaternions_do_not_jump(tmp_path):
    """A body that turns all the way around passes through no sudden flip between two samples."""
    m = pliant.gallery.two_link()
    angles = np.linspace(0, 4 * np.pi, 60)
    poses = np.tile(m.reference_poses, (60, 1, 1, 1))
    for i, angle in enumerate(angles):
        poses[i, :, :3, :3] = [
            [np.cos(angle), -np.sin(angle), 0],
            [np.sin(angle), np.cos(angle), 0],
            [0, 0, 1],
        ]
    path = export_gltf(pliant.Trajectory(m, np.arange(60.0), poses), tmp_path / "turning.glb")
    reader = Reader(path)
    turns = [
        reader.array(s["output"])
        for s in reader.json["animations"][0]["samplers"]
        if reader.json["accessors"][s["output"]]["type"] == "VEC4"
    ]
    assert all(((t[1:] * t[:-1]).sum(axis=1) > 0.9).all() for t in turns)


def test_nothing_is_left_of_a_file_that_cannot_be_written(moved, tmp_path):
    with pytest.raises(FormatError):
        export_gltf(moved, tmp_path / "nowhere" / "moved.glb")
    with pytest.raises((FormatError, InputError)):
        export_gltf(moved, tmp_path)
    with pytest.raises(InputError):
        export_gltf(moved, 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="Trajectory"):
        export_gltf(moved.mechanism, tmp_path / "moved.glb")
    assert list(tmp_path.iterdir()) == []
