"""Recordings: frames taken, files complete, played by a browser without a network; glTF read by another reader."""

from __future__ import annotations

import base64
import io
import json
import re
import struct
import zlib
from typing import Any

import matplotlib.image
import numpy as np
import pytest

import pliant
from pliant import spatial
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
    two = np.array([0.0, 1.0])
    for make, words in (  # by the trajectory itself or by the recording
        (lambda: m, "Trajectory expected"),
        (lambda: pliant.Trajectory(m, np.zeros(0), poses[:0]), "empty"),
        (lambda: pliant.Trajectory(m, two, poses[:, 1:]), "poses .* expected"),
        (lambda: pliant.Trajectory(m, two, bad), "finite"),
        (lambda: pliant.Trajectory(m, np.array([1.0, 1.0]), poses), "increase"),
        (lambda: pliant.Trajectory(m, two, poses, np.zeros((2, 1, 3))), "loads .* expected"),
        (lambda: pliant.Trajectory(m, two, poses, np.zeros((1, 1, 2, 3))), "loads .* expected"),
    ):
        with pytest.raises(InputError, match=words):
            record_html(make(), path)  # pyright: ignore[reportArgumentType]
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
        patch.setattr("pliant.viewer.player.vertex_normals", fail)
        with pytest.raises(RuntimeError):
            record_html(swing, path)
    assert path.read_text() == "old"
    assert record_html(swing, path) == path
    assert 10_000 < path.stat().st_size < 200_000
    assert [file.name for file in tmp_path.iterdir()] == ["swing.html"]
    assert "<title>helix 10</title>" in path.read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""


# --- the page: its data, taken apart, and what is seen of it


def unpack(path):
    """Header of a page's data, and a function that reads an array of it."""
    text = path.read_text(encoding="utf-8")
    data = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert data is not None
    raw = zlib.decompress(base64.b64decode(data[1]))
    (length,) = struct.unpack_from("<I", raw)
    about = json.loads(raw[4 : 4 + length])
    assert about["start"] % 4 == 0
    kinds = {"f": "<f4", "u": "<u4", "h": "<i2"}
    return about, lambda array: np.frombuffer(raw, kinds[array[0]], array[2], about["start"] + array[1])


def test_the_page_holds_poses_to_a_fraction_of_a_pixel(swing, tmp_path):
    about, read = unpack(record_html(swing, tmp_path / "swing.html", fps=1000))
    n, bodies = len(swing), swing.mechanism.body_count
    steps = read(about["poses"]).reshape(n, bodies, 7)
    table = np.cumsum(steps, axis=0, dtype=np.int16).astype(float)  # differences wrap around, and so do sums
    origin, unit = about["quantum"]
    at = np.array(origin) + unit * table[..., :3]
    reach = np.ptp(swing.poses[..., :3, 3], axis=(0, 1)).max()
    np.testing.assert_allclose(at, swing.poses[..., :3, 3], atol=reach / 60_000)
    turns = spatial.quat_to_matrix(
        table[..., [6, 3, 4, 5]] / np.linalg.norm(table[..., 3:], axis=-1)[..., None]
    )
    np.testing.assert_allclose(turns, swing.poses[..., :3, :3], atol=2e-4)
    np.testing.assert_allclose(about["time"], swing.time - swing.time[0], atol=1e-6)
    loads = read(about["loads"]).reshape(n, 1, 2, 3)
    np.testing.assert_allclose(loads, swing.loads, rtol=1e-6)
    np.testing.assert_allclose(loads[:, 0, 0], swing.pose("link10")[:, :3, 3], atol=1e-7)
    np.testing.assert_array_equal(loads[:, 0, 1], np.tile([0, 0, -60], (n, 1)))
    assert about["largest"] == 60.0


def test_the_whole_motion_is_within_bounds(swing, tmp_path):
    """Every vertex of every copy, at every frame, and every arrow."""
    about, _ = unpack(record_html(swing, tmp_path / "swing.html"))
    low, high = np.array(about["bounds"])
    for poses in swing.poses[::6]:
        corners = triangulate(swing.mechanism, poses, reach=0.0).corners.reshape(-1, 3)
        assert (corners >= low - 0.02 * swing.mechanism.radius).all()
        assert (corners <= high + 0.02 * swing.mechanism.radius).all()
    tips = swing.loads[:, 0, 0] - (0, 0, 0.3 * np.linalg.norm(high - low) / 2)
    assert (tips >= low).all()
    assert about["floor"] < low[2]


def test_the_floor_is_the_ground_that_is_there(tmp_path):
    """An endless plane is the floor; a table is drawn, without another floor below; in the air there is a floor."""
    for ground, floor in ((pliant.shapes.plane(), 0.0), (pliant.shapes.plane(0.4, 0.4), None), (None, -1)):
        world = pliant.World(1 / 60)
        if ground is not None:
            world.add_static("ground", ground)
        world.add_body("ball", pliant.shapes.sphere(0.05), mass=1.0, position=(0, 0, 0.1))
        about, _ = unpack(record_html(world.record(5), tmp_path / "ball.html"))
        if floor == -1:
            assert about["floor"] < about["bounds"][0][2]
        else:
            assert about["floor"] == floor
        assert len(about["parts"]) == (2 if floor is None else 1)


def test_texts_of_a_page(swing, tmp_path):
    path = record_html(swing, tmp_path / "a.html", title="<b>&", caption="</script><i>x", view=(10, 200))
    assert "<title>&lt;b&gt;&amp;</title>" in path.read_text(encoding="utf-8")
    about, _ = unpack(path)
    assert (about["name"], about["caption"], about["view"]) == ("<b>&", "</script><i>x", [10, 200])
    about, _ = unpack(record_html(swing, path))
    assert about["caption"] == "10 bodies; arrows are forces"
    wrong: list[dict[str, Any]] = [{"title": 3}, {"caption": b"x"}, {"view": (1,)}, {"view": (np.nan, 0)}]
    for words in wrong:
        with pytest.raises(InputError):
            record_html(swing, path, **words)


@pytest.fixture(scope="module")
def seen(swing, tmp_path_factory, chromium):
    """A recording in a browser without a network: (page, requests, problems)."""
    path = record_html(swing, tmp_path_factory.mktemp("seen") / "swing.html", fps=10)
    # The only address in it is the name of a format, inside a picture.
    assert not re.findall(r"https?://[\w./-]+", path.read_text(encoding="utf-8"))
    context = chromium.new_context(viewport={"width": 420, "height": 320}, offline=True)
    page = context.new_page()
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("document.body.dataset.time > 0")
    yield page, asked, problems
    context.close()


def picture_at(page, time):
    """What is drawn at a time, (rows, columns, 3), without controls."""
    page.evaluate(f"pliant.seek({time})")
    page.wait_for_function(f"document.body.dataset.time == '{time:.4f}'")
    style = "#bar, #caption { visibility: hidden; }"
    return matplotlib.image.imread(io.BytesIO(page.screenshot(style=style)))[..., :3]


def dark(image):
    """Fraction of pixels that are neither background nor floor."""
    return float((image.min(axis=2) < 0.7).mean())


def red(image):
    """Fraction of pixels in the colour of forces."""
    return float(((image[..., 0] > 0.45) & (image[..., 1:].max(axis=2) < 0.35)).mean())


def test_a_recording_plays_from_a_file_without_a_network(seen):
    page, asked, problems = seen
    first, last = picture_at(page, 0.0), picture_at(page, 0.4)
    assert dark(first) > 0.005
    assert np.abs(last - first).max() > 0.1
    np.testing.assert_array_equal(picture_at(page, 0.0), first)
    assert not problems
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_forces_and_everything_else_are_in_the_picture(seen):
    page = seen[0]
    image = picture_at(page, 0.4)
    assert red(image) > 0.001
    assert page.locator("#labels span").first.inner_text() == "60 N"
    for edge in (image[:3], image[-3:], image[:, :3], image[:, -3:]):
        assert dark(edge) == 0.0


def test_dark_bodies_are_dark(chromium, tmp_path):
    """Colours are those of still pictures, also when the motion has started again."""
    world = pliant.World(1 / 60)
    dark_grey = (0.12, 0.12, 0.12, 1.0)
    world.add_body("box", pliant.shapes.box((0.1, 0.1, 0.1), rgba=dark_grey), mass=1.0, position=(0, 0, 0.1))
    world.add_static("floor", pliant.shapes.plane())
    page = chromium.new_page(viewport={"width": 300, "height": 240})
    page.goto(record_html(world.record(12), tmp_path / "box.html").as_uri())
    page.wait_for_function("document.body.dataset.time > 0.1")
    page.wait_for_function("document.body.dataset.time < 0.1")
    image = picture_at(page, 0.1)
    page.close()
    middle = image[100:140, 130:170]
    # 0.10 + 0.90 * 0.12 = 0.21, times 0.5 to 1.1 by its side to the light
    assert 0.08 < middle.mean() < 0.27
    assert image[10:20, 10:20].min() > 0.95


def test_controls_of_a_recording(seen):
    page = seen[0]
    picture_at(page, 0.1)
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("Number(document.body.dataset.time) > 0.2")
    page.get_by_role("button", name="Pause").click()
    stopped = page.evaluate("document.body.dataset.time")
    page.wait_for_timeout(200)
    assert page.evaluate("document.body.dataset.time") == stopped
    page.get_by_role("slider", name="Time").fill("0.3")
    page.wait_for_function("document.body.dataset.time == '0.3000'")
    assert "0.30 of 0.49 s" in page.locator("#clock").inner_text()
    page.get_by_role("combobox", name="Speed").select_option("0.1")
    # the mouse turns the camera, and Fit shows everything again
    before = page.evaluate("[pliant.camera.azimuth, pliant.camera.distance]")
    page.mouse.move(200, 150)
    page.mouse.down()
    page.mouse.move(240, 160)
    page.mouse.up()
    page.mouse.wheel(0, -400)
    page.wait_for_function(f"pliant.camera.distance < {0.8 * before[1]}")
    assert page.evaluate("pliant.camera.azimuth") == pytest.approx(before[0] - 0.32)
    page.get_by_role("button", name="See everything").click()
    page.wait_for_function("pliant.camera.fitted")
    page.keyboard.press("Escape")


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


def test_forces_are_arrows(swing, tmp_path):
    """From the point of every load along its force; loads that do not act have no size."""
    loads = np.tile(swing.loads, (1, 3, 1, 1))
    loads[:, 1, 1] = (1.0, 2.0, -2.0)
    loads[30:, 2, 1] = 0.0
    acting = pliant.Trajectory(swing.mechanism, swing.time, swing.poses, loads)
    reader = Reader(export_gltf(acting, tmp_path / "loaded.glb"))
    names = {node.get("name"): i for i, node in enumerate(reader.json["nodes"])}
    for frame in (0, 17, 59):
        found = reader.world(swing.time[frame] - swing.time[0])
        for k in range(3):
            start, along = (TO_Y_UP[:3, :3] @ part for part in loads[frame, k])
            pose = found[names[f"force {k + 1}"]]
            np.testing.assert_allclose(pose[:3, 3], start, atol=1e-5)
            tip, size = pose[:3, 2], np.linalg.norm(along)
            if size == 0:
                assert np.abs(pose[:3, :3]).max() == 0.0
            else:
                np.testing.assert_allclose(tip / np.linalg.norm(tip), along / size, atol=1e-5)
    assert (
        len(Reader(export_gltf(acting, tmp_path / "loaded.glb")).json["animations"][0]["channels"])
        == 2 * 10 + 9
    )


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
