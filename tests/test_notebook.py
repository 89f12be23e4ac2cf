"""What notebooks show: IPython asks things for pictures and tables, and gets them."""

from __future__ import annotations

import io
import re

import matplotlib.image
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

import pliant

TIP = "link20"
LOADS = [{TIP: (f, 0, 0)} for f in (10, 40, 120)]


@pytest.fixture(scope="module")
def helix():
    return pliant.gallery.helix(20)


@pytest.fixture(scope="module")
def model(helix):
    return pliant.reduce(helix)


@pytest.fixture(scope="module")
def blend(helix, model):
    return pliant.blend([model, pliant.reduce(helix, at=pliant.equilibrium(helix, {TIP: (80, 0, 0)}))])


def shown(thing):
    """What a notebook is sent when a cell ends with this, by kind."""
    data, _ = DisplayFormatter().format(thing)
    return data


def ink(data):
    """Fraction of a picture that is not white, and its width."""
    image = matplotlib.image.imread(io.BytesIO(data))[..., :3]
    return float((np.abs(image - 1).max(axis=2) > 0.05).mean()), image.shape[1]


def test_mechanisms_and_configurations_are_pictures(helix):
    for thing in (helix, pliant.Configuration(helix)):
        found = shown(thing)
        part, width = ink(found["image/png"])
        assert 0.01 < part < 0.9
        assert width > 300
        assert found["text/plain"] == repr(thing)


def test_error_curves_are_pictures(model, blend):
    for thing in (model, blend):
        found = shown(thing.error(LOADS))
        part, width = ink(found["image/png"])
        assert 0.01 < part < 0.5
        assert width == 640
        assert found["text/plain"].startswith("<Accuracy of 'helix 20' under 3 wrenches: position error ")


def test_a_model_shows_its_numbers(model):
    text = shown(model)["text/html"]
    assert f"{model.frequencies()[0]:.4g}" in text
    cells = re.findall("<td>([^<]*)</td>", text)
    assert cells[0] == TIP
    for cell, stiffness in zip(cells[1:4], model.stiffness_ellipsoid(TIP).stiffness, strict=True):
        assert float(cell) == pytest.approx(stiffness, rel=1e-3)
    block = np.array([[float(x) for x in cells[8 + 7 * i : 14 + 7 * i]] for i in range(6)])
    np.testing.assert_allclose(block, model.compliance, rtol=6e-3, atol=1e-12 * model.compliance.max())
    assert len(text) < 8000


def test_a_blend_lists_its_models(blend):
    cells = re.findall("<td>([^<]*)</td>", shown(blend)["text/html"])
    assert [cells[1], cells[5]] == ["0", "80"]  # N they were made under
    assert len(cells) == 8


def test_long_lists_are_cut(helix):
    many = pliant.reduce(helix, [f"link{i}" for i in range(1, 16)])
    assert "... and 3 more" in many._repr_html_()


def test_names_from_files_are_text():
    """A name may be anything; in a page it must stay a name."""
    b = pliant.Builder("<script>alert(1)</script>")
    b.body("<img src=x>", mass=1.0, inertia=(1, 1, 1), position=(1, 0, 0))
    b.hinge("j", "world", "<img src=x>", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    found = pliant.reduce(b.build(), "<img src=x>")
    for text in (found._repr_html_(), pliant.blend([found])._repr_html_()):
        assert "<script" not in text
        assert "<img" not in text


def test_a_view_is_embedded(model):
    view = pliant.view(model, port=0, block=False)
    try:
        assert f'<iframe src="{view.url}"' in shown(view)["text/html"]
    finally:
        view.stop()
    assert "stopped" in shown(view)["text/html"]


def test_trajectories_and_samples(model):
    path = pliant.ReducedSimulation(model, 0.01).record(5, every=2)
    assert shown(path)["text/plain"] == "<Trajectory of 'helix 20': 5 frames to 0.1 s>"
    found = pliant.sample(
        pliant.gallery.helix(5), wrenches=50, budget=2, candidates=4, held_out=3, progress=False
    )
    assert repr(found).startswith("<Sampled <BlendedModel of 1 model of 'helix 5'>: position error ")
    assert ink(shown(found)["image/png"])[1] > 600


def test_simulations_and_worlds_are_pictures_and_lines(helix, model):
    batch = pliant.ReducedBatch(model, 1 / 60, 3)
    world = pliant.World(1 / 60)
    world.add_body("ball", pliant.shapes.sphere(0.1), mass=1.0)
    size = "'helix 20': 20 bodies, 20 dofs, steps of 0.01 s, at t = 0.02 s"
    for thing, words in (
        (pliant.ReducedSimulation(model, 0.01), f"<ReducedSimulation of {size}>"),
        (pliant.ConstrainedSimulation(helix, 0.01), f"<ConstrainedSimulation of {size}>"),
        (pliant.QuasistaticSimulation(helix, 0.01), f"<QuasistaticSimulation of {size}>"),
        (world, "<World: 'ball'; steps of 0.0166667 s, at t = 0.0333333 s>"),
    ):
        thing.step(2)
        assert repr(thing) == words
        found = shown(thing)
        assert found["text/plain"] == words
        assert 0.005 < ink(found["image/png"])[0] < 0.9
    assert repr(batch) == (
        "<ReducedBatch of 3 copies of 'helix 20': 20 bodies, steps of 0.0166667 s, at t = 0 s>"
    )
    assert repr(pliant.scenes.heavy_ball()).startswith(
        "<Scene of 'cable 20 bushing': constrained engine, steps of"
    )
    assert repr(pliant.scenes.grasp()).startswith("<Scene of <World: 'hand', 'floor', 'ball'; steps of")
    assert repr(pliant.World(0.1)) == "<World: nothing in it; steps of 0.1 s, at t = 0 s>"


def test_trajectories_play(helix, monkeypatch):
    motion = pliant.ConstrainedSimulation(helix, 1 / 60).record(5)
    text = shown(motion)["text/html"]
    assert text.startswith("<iframe srcdoc=")
    assert text.count("<") == 2  # the page is quoted
    assert "DecompressionStream" in text
    monkeypatch.setattr("pliant.engines.trajectory._LARGE", 10)
    assert shown(motion)["text/html"] == "&lt;Trajectory of &#x27;helix 20&#x27;: 5 frames to 0.08333 s&gt;"
