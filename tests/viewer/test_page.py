"""The live view of a mechanism and of a world in a real browser: what is seen, dragged, clicked and typed."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import pliant
from pliant import spatial
from pliant.source import gallery_names
from pliant.viewer import page as live_page
from pliant.viewer.opening import LARGEST_FILE

TIP = "index_tip"


@pytest.fixture(scope="module")
def shown():
    with pytest.MonkeyPatch.context() as patch:
        # No shadows: they take seconds a frame in software.
        patch.setattr("pliant.viewer.stage._MANY", 0)
        view = pliant.view(pliant.gallery.hand(), port=0, block=False)
    yield view
    view.stop()


@pytest.fixture(scope="module")
def client(chromium, shown, look):
    """A page that shows the view; all tests share it."""
    page = connect(chromium, shown)
    until(lambda: dark(look(page)) > 0.01)
    yield page
    page.context.close()


@pytest.fixture
def page(client, shown):
    """That page, with the view at its start; it rests after the test, since drawing takes time of others."""

    def start(session):
        session.set_engine("reduced")
        session.reset()
        session.playing = True

    ask(shown, start)
    shown.runner.ask(lambda: shown.page.show_controls())
    client.get_by_role("button", name="Pause").wait_for()
    yield client
    ask(shown, lambda session: setattr(session, "playing", False))


def connect(chromium, shown):
    known = set(shown._server.get_clients())
    page = chromium.new_context(viewport={"width": 900, "height": 560}).new_page()
    page.goto(shown.url)
    page.get_by_text("Add a model here").wait_for()
    until(lambda: set(shown._server.get_clients()) - known)
    page.wait_for_timeout(300)
    page.client = shown._server.get_clients()[max(shown._server.get_clients())]
    return page


def holds(condition, seconds):
    """Whether a condition comes to hold within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def until(condition, seconds=20.0):
    assert holds(condition, seconds), "it did not come about"


def ask(shown, question):
    return shown.runner.ask(lambda: question(shown.session))


def tip(shown):
    return ask(shown, lambda s: s.simulation.pose(TIP)[:3, 3])


def on_screen(page, point):
    """Where a point of the world is in the page, pixels."""
    camera = page.client.camera
    x, y, z = spatial.quat_to_matrix(np.array(camera.wxyz)).T @ (point - camera.position)
    scale = camera.image_height / 2 / np.tan(camera.fov / 2)
    return camera.image_width / 2 + scale * x / z, camera.image_height / 2 + scale * y / z


def drag(page, start, by):
    """Press the mouse at a point and move it; it stays pressed."""
    x, y = on_screen(page, start)
    page.mouse.move(x, y)
    page.mouse.down()
    for part in (0.3, 0.6, 1.0):
        page.mouse.move(x + part * by[0], y + part * by[1])
        page.wait_for_timeout(60)


def green(image):
    """Fraction of pixels that are as green as contact forces."""
    return float(((image[..., 1] - image[..., 0] > 0.08) & (image[..., 1] - image[..., 2] > 0.03)).mean())


def dark(image):
    """Fraction of pixels that are neither background nor floor."""
    return float((image.min(axis=2) < 0.7).mean())


def overlap(a, b):
    """By how much the dark parts of two images cover each other, 1 if they are the same.

    Each page draws as finely as it has time for, so images may differ in size.
    """
    small = []
    for image in (a, b):
        rows, columns = ((np.arange(150) + 0.5) * n / 150 for n in image.shape[:2])
        small.append(image[rows.astype(int)][:, columns.astype(int)].min(axis=2) < 0.7)
    return float((small[0] & small[1]).sum() / (small[0] | small[1]).sum())


def test_the_mechanism_is_seen(page, shown, look):
    ask(shown, lambda s: setattr(s, "playing", False))
    until(lambda: dark(look(page)) > 0.01)
    full = look(page)
    handles = shown.page.stage.handles
    for handle in handles:
        handle.visible = False
    try:
        until(lambda: dark(look(page)) < 0.003)
        assert overlap(full, look(page)) < 0.2
    finally:
        for handle in handles:
            handle.visible = True


def test_dark_bodies_are_dark(page, look):
    """The forearm is as dark as in still pictures, where it was a light grey."""
    until(lambda: dark(look(page)) > 0.01)
    brightest = look(page).max(axis=2)
    assert (brightest < 0.4).mean() > 0.01


def test_dragging_pulls_and_shows_a_force(page, shown):
    start = tip(shown)
    drag(page, start, (0, -60))
    until(lambda: ask(shown, lambda s: s.pulls))
    until(lambda: tip(shown)[2] > start[2] + 0.005)
    (pull,) = ask(shown, lambda s: list(s.pulls.values()))
    assert pull.body == TIP
    assert np.linalg.norm(pull.force) > 0.1
    # The value, in newtons, beside the arrow and in the panel.
    page.locator("strong", has_text=TIP).wait_for()
    assert " N" in page.locator("strong", has_text=TIP).locator("..").inner_text()
    page.mouse.up()
    until(lambda: not ask(shown, lambda s: s.pulls))
    until(lambda: np.linalg.norm(tip(shown) - start) < 1e-3)


def test_another_engine_keeps_the_pose(page, shown):
    start = tip(shown)
    drag(page, start, (0, -60))
    until(lambda: tip(shown)[2] > start[2] + 0.005)
    page.mouse.up()
    page.get_by_role("button", name="Pause").click()
    until(lambda: not ask(shown, lambda s: s.playing))
    before = ask(shown, lambda s: s.poses.copy())
    choose(page, "Engine", "constrained")
    until(lambda: ask(shown, lambda s: s.engine) == "constrained")
    after, stopped = ask(shown, lambda s: (s.poses.copy(), s.time))
    np.testing.assert_allclose(after, before, atol=1e-6)
    page.get_by_role("button", name="Step").click()
    # The click has been handled: the next test starts anew.
    until(lambda: ask(shown, lambda s: s.time) > stopped)
    assert np.abs(ask(shown, lambda s: s.poses) - after).max() > 0


def choose(page, label, option):
    page.get_by_role("textbox", name=label).or_(page.get_by_role("combobox", name=label)).first.click()
    page.get_by_role("option", name=option).click()


def test_adding_a_model(page, shown):
    start = tip(shown)
    drag(page, start, (0, -90))
    until(lambda: tip(shown)[2] > start[2] + 0.01)
    time.sleep(0.5)
    assert ask(shown, lambda s: s.violation) < 1e-9  # a single model closes its loops
    # The mouse is busy: the button is pressed from the keyboard.
    page.get_by_role("button", name="Add a model here").focus()
    page.keyboard.press("Enter")
    page.get_by_text("from the truth").wait_for()
    assert ask(shown, lambda s: (s.engine, s.model_count)) == ("reduced", 2)
    page.mouse.up()


def test_two_clients_see_the_same_and_one_may_leave(page, shown, chromium, look):
    guest = connect(chromium, shown)
    until(lambda: dark(look(guest)) > 0.01)
    start = tip(shown)
    drag(guest, start, (0, -60))
    until(lambda: tip(shown)[2] > start[2] + 0.005)
    page.get_by_role("button", name="Pause").click()
    guest.get_by_role("button", name="Play").wait_for()
    until(lambda: overlap(look(page), look(guest)) > 0.85)
    # It leaves with the mouse pressed: its pull goes with it, the other stays.
    guest.context.close()
    until(lambda: len(shown._server.get_clients()) == 1)
    until(lambda: not ask(shown, lambda s: s.pulls))
    page.get_by_role("button", name="Play").click()
    before = ask(shown, lambda s: s.time)
    until(lambda: ask(shown, lambda s: s.time) > before)


def test_mistakes_are_told_and_change_nothing(page, shown):
    field = page.get_by_role("textbox").nth(3)  # after those of three sliders
    before = ask(shown, lambda s: s.end_effectors)
    field.fill("index_tip, index_tpi")
    page.get_by_role("button", name="Apply").click()
    page.get_by_text("did you mean").first.wait_for()
    assert ask(shown, lambda s: s.end_effectors) == before
    until(lambda: field.input_value() == ", ".join(before))
    field.fill("thumb_tip")
    page.get_by_role("button", name="Apply").click()
    until(lambda: ask(shown, lambda s: s.end_effectors) == ("thumb_tip",))
    page.get_by_role("button", name="Add a model here").click()
    page.get_by_text("nothing is pulled").first.wait_for()
    assert ask(shown, lambda s: s.playing)
    ask(shown, lambda s: s.set_end_effectors(before))


def test_target_and_ellipsoid(page, shown):
    for label in ("Ellipsoid", "Target"):
        page.get_by_role("checkbox", name=label).check()
    page.get_by_text("Stiffness of").wait_for()
    until(lambda: "target" in ask(shown, lambda s: s.pulls))
    page.get_by_role("button", name="Reset").click()
    until(lambda: not ask(shown, lambda s: s.pulls))
    until(lambda: not page.get_by_role("checkbox", name="Target").is_checked())
    page.get_by_role("checkbox", name="Ellipsoid").uncheck()


def test_a_joint_is_set_and_made_the_rest_pose(page, shown):
    page.get_by_text("Joints", exact=True).click()
    label = page.get_by_text("index_knuckle.1 (°)")
    row = label.locator("xpath=ancestor::*[.//input[@type='text']][1]").get_by_role("textbox")
    row.fill("30")
    row.press("Enter")
    until(lambda: ask(shown, lambda s: s.posed))
    assert ask(shown, lambda s: s.joint("index_knuckle.1")) == pytest.approx(np.pi / 6, abs=1e-6)
    page.get_by_role("button", name="Play").wait_for()  # it is paused
    page.get_by_role("button", name="Make this the rest pose").click()
    until(lambda: not ask(shown, lambda s: s.posed))
    dof = pliant.gallery.hand().dof_index("index_knuckle.1")
    assert ask(shown, lambda s: s.mechanism.rest[dof]) == pytest.approx(np.pi / 6, abs=1e-6)
    page.get_by_text("Joints", exact=True).click()
    shown.open(pliant.gallery.hand())
    page.get_by_role("button", name="Pause").wait_for()


def test_shift_turns(page, shown):
    start = tip(shown)
    page.keyboard.down("Shift")
    drag(page, start, (0, -60))
    until(lambda: ask(shown, lambda s: s.turns))
    page.locator("strong", has_text=TIP).wait_for()
    page.keyboard.up("Shift")
    page.mouse.up()
    until(lambda: not ask(shown, lambda s: s.turns or s.simulation.wrenches))


def test_cameras_frames_and_inertia(page, shown, look):
    assert page.title() == "pliant"
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Top", exact=True).click()
    until(lambda: abs(page.client.camera.position[0] - page.client.camera.look_at[0]) < 1e-3)
    assert page.client.camera.position[2] > page.client.camera.look_at[2] + 0.1
    page.get_by_role("button", name="Corner", exact=True).click()
    plain = look(page)
    for label in ("Frames", "Inertia"):
        page.get_by_role("checkbox", name=label).check()
    until(lambda: red(look(page)) > red(plain) + 0.001)  # x axes
    for label in ("Frames", "Inertia"):
        page.get_by_role("checkbox", name=label).uncheck()
    until(lambda: red(look(page)) <= red(plain) + 1e-4)


def red(image):
    """Fraction of pixels that are as red as x axes."""
    return float((image[..., 0] - image[..., 1:].max(axis=2) > 0.4).mean())


def test_plots_do_not_show_rounding():
    """Energies, forces and gaps of less than a billionth of weight and radius are zero."""
    m = pliant.gallery.hand()
    length, force, energy = live_page._least(m)
    assert length == 1e-9 * m.radius
    assert force == pytest.approx(1e-9 * 9.81 * m.total_mass)
    assert energy == pytest.approx(force * m.radius)
    history = [
        SimpleNamespace(energy=(1e-25, 2e-3, -1e-22), violation=1e-17),
        SimpleNamespace(energy=(-1e-26, 1e-3, -0.5), violation=2e-3),
    ]
    np.testing.assert_array_equal(live_page._energies(history, energy), [[0, 0], [2e-3, 1e-3], [0, -0.5]])
    np.testing.assert_array_equal(live_page._series(history, "violation", 1000, length), [0, 2])


def test_a_recording_is_sent(page, shown):
    page.get_by_role("button", name="Record").click()
    page.get_by_role("button", name="Stop and save").wait_for()
    until(lambda: ask(shown, lambda s: len(s.recorder)) > 5)
    page.get_by_role("button", name="Stop and save").click()
    for name, start in (("hand.html", b"<!doctype html>"), ("hand.glb", b"glTF")):
        with page.expect_download() as download:
            page.get_by_text(name).click()
        assert download.value.suggested_filename == name
        assert Path(download.value.path()).read_bytes().startswith(start)
    assert ask(shown, lambda s: s.recorder) is None


def test_a_model_is_opened_with_its_meshes(page, shown, tmp_path):
    """Several files by the button, or dropped, come as one archive that the page packs; too large ones are told."""
    model = """<mujoco model="{}"><asset><mesh name="part" file="part.obj"/></asset><worldbody><body name="rod">
      <joint axis="0 1 0" stiffness="5"/><geom type="mesh" mesh="part"/></body></worldbody></mujoco>"""
    part = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "mödel.xml").write_text(model.format("chosen"), encoding="utf-8")
    (tmp_path / "part.obj").write_text(part)
    page.get_by_text("Open", exact=True).click()
    page.wait_for_timeout(600)  # until the folder is open
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Files").click()
    assert chooser.value.is_multiple()
    chooser.value.set_files([tmp_path / "mödel.xml", tmp_path / "part.obj"])
    until(lambda: ask(shown, lambda s: s.mechanism.name) == "chosen")
    assert len(ask(shown, lambda s: s.mechanism.shapes("rod"))[0].mesh.vertices) == 4
    button = ask(shown, lambda _: shown.page._upload._impl.uuid)  # of the page that has come since
    page.wait_for_selector(f'[id="file_upload_{button}"]', state="attached")
    drop = """files => {
        const data = new DataTransfer();
        for (const [name, text] of files) data.items.add(new File([text], name));
        document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
    }"""
    page.evaluate(drop, [["dropped.xml", model.format("dropped")], ["part.obj", part]])
    until(lambda: ask(shown, lambda s: s.mechanism.name) == "dropped")
    button = ask(shown, lambda _: shown.page._upload._impl.uuid)
    page.wait_for_selector(f'[id="file_upload_{button}"]', state="attached")
    with page.expect_event("dialog") as told:
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.evaluate(
            """size => {
                const data = new DataTransfer();
                data.items.add(new File([new Uint8Array(size)], "large.xml"));
                document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
            }""",
            LARGEST_FILE + 1,
        )
    assert "up to 64 MB can be opened here" in told.value.message
    shown.open(pliant.gallery.hand())
    page.get_by_text("17 bodies").wait_for()


def test_a_file_is_opened_by_the_button_or_dropped(page, shown, tmp_path):
    model = """<mujoco model="two rods"><worldbody><body><joint axis="0 1 0" stiffness="5"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></worldbody>
      <keyframe><key name="raised" qpos="-0.7"/></keyframe></mujoco>"""
    (tmp_path / "rods.xml").write_text(model)
    page.set_input_files("input[type=file]", str(tmp_path / "rods.xml"))
    page.get_by_text("1 body, 1 joint").wait_for()
    page.get_by_text("Open", exact=True).click()
    page.wait_for_timeout(600)  # until the folder is open
    choose(page, "Keyframe", "raised")
    until(lambda: ask(shown, lambda s: s.mechanism.reference[0]) == -0.7)
    button = ask(shown, lambda _: shown.page._upload._impl.uuid)  # of the page that has come since
    page.wait_for_selector(f'[id="file_upload_{button}"]', state="attached")
    # dropped, and refused: what is there stays
    drop = """([name, text]) => {
        const data = new DataTransfer();
        data.items.add(new File([text], name));
        document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
    }"""
    page.evaluate(drop, ["broken.urdf", "<robot"])
    page.get_by_text("That did not work").first.wait_for()
    assert ask(shown, lambda s: s.mechanism.reference[0]) == -0.7
    page.evaluate(drop, ["dropped.xml", model.replace("two rods", "dropped")])
    until(lambda: ask(shown, lambda s: s.mechanism.name) == "dropped")
    shown.open(pliant.gallery.hand())
    page.get_by_text("17 bodies").wait_for()


def test_the_gallery_is_seen_and_opens(page, shown):
    page.get_by_text("Open", exact=True).click()
    page.wait_for_timeout(600)  # until the folder is open
    page.get_by_role("button", name="Gallery").click()
    page.locator(".pliant-gallery img").first.wait_for()
    assert page.locator(".pliant-gallery img").count() == len(gallery_names())
    loaded = "[...document.querySelectorAll('.pliant-gallery img')].every(i => i.complete && i.naturalWidth === 240)"
    page.wait_for_function(loaded)
    page.get_by_role("button", name="Close").click()
    page.locator(".pliant-gallery").wait_for(state="detached")
    page.get_by_role("button", name="Gallery").click()
    page.locator(".pliant-gallery label", has_text="two_link").click()
    until(lambda: ask(shown, lambda s: s.mechanism.body_count) == 2)
    page.locator(".pliant-gallery").wait_for(state="detached")
    shown.open(pliant.gallery.hand())
    page.get_by_text("17 bodies").wait_for()


# --- an adaptive engine: what moves is coloured, the tolerance is set while it runs


@pytest.fixture(scope="module")
def shown_molecule():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pliant.viewer.stage._MANY", 0)
        view = pliant.view(pliant.gallery.molecule(300), port=0, block=False)
    ask(view, lambda s: setattr(s, "playing", False))
    yield view
    view.stop()


def moving(image):
    """Fraction of pixels in the colour of what moves, shaded or not."""
    red, green, blue = np.moveaxis(image, -1, 0)
    return float(((red - green > 0.35) & (blue - green > 0.15) & (red > blue)).mean())


def vivid(image):
    """Fraction of pixels with a colour."""
    return float((image.max(axis=2) - image.min(axis=2) > 0.25).mean())


@pytest.mark.parametrize("engine", ["adaptive", pytest.param("quasistatic", marks=pytest.mark.slow)])
def test_what_moves_is_seen_and_a_tolerance_is_typed(shown_molecule, chromium, look, engine):
    shown, page = shown_molecule, connect(chromium, shown_molecule)
    ask(shown, lambda s: (s.set_engine("constrained"), s.reset()))
    ask(shown, lambda _: shown.page.show_controls())
    until(lambda: vivid(look(page)) > 5e-3)
    assert page.get_by_text("Tolerance 1e").count() == 0
    assert page.get_by_text("allowed").count() == 0
    assert moving(look(page)) < 1e-4
    choose(page, "Engine", engine)
    page.get_by_text("Tolerance 1e").wait_for()
    page.get_by_text("0 of 300 joints move").wait_for()
    until(lambda: vivid(look(page)) < 1e-3)  # nothing moves, so that all is pale
    assert moving(look(page)) < 1e-4
    usual = ask(shown, lambda s: s.adaptivity.tolerance)

    def pull(session):
        bond = session.mechanism.body_names[-1]
        start = session.pose(bond)[:3, 3]
        session.pull("test", bond, start, start + np.array([0, 0, 0.05]))
        session.step(3)

    ask(shown, pull)
    until(lambda: moving(look(page)) > 2e-3)
    many = ask(shown, lambda s: int(s.adaptivity.active.sum()))
    page.get_by_text(f"{many} of 300 joints move").wait_for()
    # The colours can be switched off.
    coloured = moving(look(page))
    page.get_by_role("checkbox", name="Colour").uncheck()
    until(lambda: moving(look(page)) < 1e-4)
    page.get_by_role("checkbox", name="Colour").check()
    until(lambda: moving(look(page)) > 0.5 * coloured)
    # A power of ten is typed, and the same simulation goes on.
    before = ask(shown, lambda s: (s.simulation, s.time))
    row = page.get_by_text("Tolerance 1e").locator("xpath=ancestor::*[.//input[@type='text']][1]")
    power = round(np.log10(usual)) + 3
    row.get_by_role("textbox").fill(str(power))
    row.get_by_role("textbox").press("Enter")
    until(lambda: ask(shown, lambda s: s.adaptivity.tolerance) == pytest.approx(10.0**power))
    assert ask(shown, lambda s: (s.simulation, s.time)) == before
    ask(shown, lambda s: s.step(400))
    few = ask(shown, lambda s: int(s.adaptivity.active.sum()))
    assert few < many / 2
    page.get_by_text(f"of {10.0**power:.2g} m").wait_for()
    page.get_by_text(f"{few} of 300 joints move").wait_for()
    until(lambda: moving(look(page)) < 0.5 * coloured)
    choose(page, "Engine", "constrained")
    page.get_by_text("Tolerance 1e").wait_for(state="detached")
    page.get_by_text("allowed").wait_for(state="detached")
    until(lambda: moving(look(page)) < 1e-4 < 5e-3 < vivid(look(page)))  # its own colours
    page.context.close()


# --- a world: it waits for somebody to look, contact forces are seen, bodies are dragged


@pytest.fixture(scope="module")
def shown_world():
    world = pliant.World(1 / 100)
    world.add_static("floor", pliant.shapes.plane(0.5, 0.5))
    grey = (0.3, 0.3, 0.3, 1.0)
    world.add_body("box", pliant.shapes.box((0.1, 0.1, 0.1), rgba=grey), mass=2.0, position=(0, 0, 0.1))
    with pytest.MonkeyPatch.context() as patch:
        # No shadows: they take seconds a frame in software.
        patch.setattr("pliant.viewer.stage._MANY", 0)
        view = pliant.view(world, port=0, block=False)
    yield view
    view.stop()


@pytest.fixture
def world_page(chromium):
    context = chromium.new_context(viewport={"width": 700, "height": 440})
    yield context.new_page()
    context.close()


def test_a_world_is_seen_and_pulled(shown_world, world_page, look):
    shown, page = shown_world, world_page

    def soon(condition):
        until(condition, 40.0)

    assert ask(shown, lambda s: (s.playing, s.time)) == (False, 0.0)  # nobody looks
    page.goto(shown.url)
    page.get_by_role("button", name="Pause").wait_for()
    soon(lambda: ask(shown, lambda s: s.time) > 0.5)
    page.get_by_text("contacts, the longest arrow is").wait_for()
    # Contact forces are seen through the box, until they are not wanted.
    page.get_by_role("checkbox", name="See through").check()
    soon(lambda: green(look(page)) > 0.0005)
    page.get_by_role("checkbox", name="Forces").uncheck()
    soon(lambda: green(look(page)) == 0.0)
    page.get_by_role("checkbox", name="See through").uncheck()
    # A drag lifts the box and shows the force, which carries most of it at last.
    (client,) = shown._server.get_clients().values()
    camera = client.camera
    start = ask(shown, lambda s: s.world["box"].position)
    x, y, z = spatial.quat_to_matrix(np.array(camera.wxyz)).T @ (start - camera.position)
    scale = camera.image_height / 2 / np.tan(camera.fov / 2)
    at = camera.image_width / 2 + scale * x / z, camera.image_height / 2 + scale * y / z
    look(page)  # a picture was drawn since
    for _ in range(3):  # a page that is busy drawing may miss a press
        page.mouse.move(at[0] + 1, at[1])
        page.mouse.move(*at)
        page.mouse.down()
        for part in (0.3, 0.6, 1.0):
            page.mouse.move(at[0], at[1] - 180 * part)
            page.wait_for_timeout(100)
        if holds(lambda: ask(shown, lambda s: s.pulls), 5.0):
            break
        page.mouse.up()
    lifted = holds(lambda: ask(shown, lambda s: s.world["box"].position[2]) > 0.15, 40.0)
    assert lifted, ask(shown, lambda s: (s.pulls, s.poses))
    soon(lambda: 15 < ask(shown, lambda s: s.pulls[client.client_id].force[2]) < 20)
    page.locator("strong", has_text="box").last.wait_for()
    page.mouse.up()
    soon(lambda: not ask(shown, lambda s: s.pulls))
    # A click selects it, and its contacts are told.
    page.get_by_role("button", name="Reset").click()
    soon(lambda: abs(ask(shown, lambda s: s.world["box"].position[2]) - 0.1) < 1e-3)
    page.mouse.click(*at)
    page.get_by_text("contacts act with").wait_for()
    page.get_by_role("button", name="Pause").click()
    soon(lambda: not ask(shown, lambda s: s.playing))
    before = ask(shown, lambda s: s.time)
    page.get_by_role("button", name="Step").click()
    soon(lambda: ask(shown, lambda s: s.time) == pytest.approx(before + 0.01))
    page.close()
    soon(lambda: not shown._server.get_clients())
    assert shown.running
