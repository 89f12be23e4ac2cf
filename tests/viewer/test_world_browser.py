"""A world in a real browser: it waits for somebody to look, contact forces are seen, bodies are dragged."""

from __future__ import annotations

import time

import numpy as np
import pytest

import pliant
from pliant import spatial


@pytest.fixture(scope="module")
def shown():
    world = pliant.World(1 / 100)
    world.add_static("floor", pliant.shapes.plane(0.5, 0.5))
    grey = (0.3, 0.3, 0.3, 1.0)
    world.add_body("box", pliant.shapes.box((0.1, 0.1, 0.1), rgba=grey), mass=2.0, position=(0, 0, 0.1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pliant.viewer.scene._MANY", 0)  # no shadows: they take seconds a frame in software
        view = pliant.view(world, port=0, block=False)
    yield view
    view.stop()


def holds(condition, seconds):
    """Whether a condition comes to hold within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def until(condition, seconds=40.0):
    assert holds(condition, seconds), "it did not come about"


def ask(shown, question):
    return shown.runner.ask(lambda: question(shown.session))


def green(image):
    """Fraction of pixels that are as green as contact forces."""
    return float(((image[..., 1] - image[..., 0] > 0.08) & (image[..., 1] - image[..., 2] > 0.03)).mean())


@pytest.fixture
def page(chromium):
    context = chromium.new_context(viewport={"width": 700, "height": 440})
    yield context.new_page()
    context.close()


def test_a_world_is_seen_and_pulled(shown, page, look):
    assert ask(shown, lambda s: (s.playing, s.time)) == (False, 0.0)  # nobody looks
    page.goto(shown.url)
    page.get_by_role("button", name="Pause").wait_for()
    until(lambda: ask(shown, lambda s: s.time) > 0.5)
    page.get_by_text("contacts, the longest arrow is").wait_for()
    # Contact forces are seen through the box, until they are not wanted.
    page.get_by_role("checkbox", name="See through").check()
    until(lambda: green(look(page)) > 0.0005)
    page.get_by_role("checkbox", name="Forces").uncheck()
    until(lambda: green(look(page)) == 0.0)
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
    until(lambda: 15 < ask(shown, lambda s: s.pulls[client.client_id].force[2]) < 20)
    page.locator("strong", has_text="box").last.wait_for()
    page.mouse.up()
    until(lambda: not ask(shown, lambda s: s.pulls))
    # A click selects it, and its contacts are told.
    page.get_by_role("button", name="Reset").click()
    until(lambda: abs(ask(shown, lambda s: s.world["box"].position[2]) - 0.1) < 1e-3)
    page.mouse.click(*at)
    page.get_by_text("contacts act with").wait_for()
    page.get_by_role("button", name="Pause").click()
    until(lambda: not ask(shown, lambda s: s.playing))
    before = ask(shown, lambda s: s.time)
    page.get_by_role("button", name="Step").click()
    until(lambda: ask(shown, lambda s: s.time) == pytest.approx(before + 0.01))
    page.close()
    until(lambda: not shown._server.get_clients())
    assert shown.running
