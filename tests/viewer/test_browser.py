"""The live view in a real browser: what is seen, dragged, clicked and typed."""

from __future__ import annotations

import time

import numpy as np
import pytest

import pliant
from pliant import spatial

TIP = "index_tip"


@pytest.fixture(scope="module")
def shown():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pliant.viewer.scene._MANY", 0)  # no shadows: they take seconds a frame in software
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
    """That page, with the view at its start."""

    def start(session):
        session.set_engine("reduced")
        session.reset()
        session.playing = True

    ask(shown, start)
    shown.runner.ask(lambda: shown.page.panel.state(shown.session))
    client.get_by_role("button", name="Pause").wait_for()
    return client


def connect(chromium, shown):
    known = set(shown._server.get_clients())
    page = chromium.new_context(viewport={"width": 900, "height": 560}).new_page()
    page.goto(shown.url)
    page.get_by_text("Add a model here").wait_for()
    until(lambda: set(shown._server.get_clients()) - known)
    page.wait_for_timeout(300)
    page.client = shown._server.get_clients()[max(shown._server.get_clients())]
    return page


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


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
    handles = shown.page.scene.handles
    for handle in handles:
        handle.visible = False
    try:
        until(lambda: dark(look(page)) < 0.003)
        assert overlap(full, look(page)) < 0.2
    finally:
        for handle in handles:
            handle.visible = True


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
    np.testing.assert_allclose(ask(shown, lambda s: s.poses), before, atol=1e-6)
    page.get_by_role("button", name="Step").click()
    until(lambda: np.abs(ask(shown, lambda s: s.poses) - before).max() > 0)


def choose(page, label, option):
    page.get_by_role("textbox", name=label).or_(page.get_by_role("combobox", name=label)).first.click()
    page.get_by_role("option", name=option).click()


def test_adding_a_model_reduces_the_violation(page, shown):
    start = tip(shown)
    drag(page, start, (0, -90))
    until(lambda: tip(shown)[2] > start[2] + 0.01)
    time.sleep(0.5)
    before = ask(shown, lambda s: s.violation)
    # The mouse is busy: the button is pressed from the keyboard.
    page.get_by_role("button", name="Add a model here").focus()
    page.keyboard.press("Enter")
    until(lambda: ask(shown, lambda s: s.engine) == "blended")
    page.get_by_text("2 models blended").wait_for()
    until(lambda: ask(shown, lambda s: s.violation) < 0.2 * before)
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
