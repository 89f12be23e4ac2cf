"""`Camera`: no displacement within the error that it allows is seen as more pixels than it was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from pliant.errors import InputError

CAMERA = pliant.Camera((1.0, -5.0, 2.0), (1.0, 5.0, 2.0), fov=np.pi / 2, height=200, width=300)


def test_places_in_the_image():
    """Along the axis of view, to the right of it and above it."""
    assert CAMERA.focal == pytest.approx(100.0)
    np.testing.assert_allclose(CAMERA.axes, [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=1e-15)
    places = [(1, 0, 2), (2, 0, 2), (1, 0, 3), (1, 5, 2), (3, 5, 2)]
    np.testing.assert_allclose(
        CAMERA.project(places), [(150, 100), (170, 100), (150, 80), (150, 100), (170, 100)], atol=1e-12
    )
    assert np.isnan(CAMERA.project((1, -6, 2))).all()


def test_metres_of_a_pixel():
    """A pixel at 10 m is a hundredth of that here, less what the depth loses; in proportion to distance and pixels."""
    assert CAMERA.metres((1, 5, 2)) == pytest.approx(0.1 * 10 / 10.1, rel=1e-12)
    allowed = CAMERA.metres([(1, 5, 2), (1, 15, 2), (1, 995, 2)], pixels=0.01)
    np.testing.assert_allclose(allowed, [0.001, 0.002, 0.1], rtol=2e-4)
    assert CAMERA.metres((1, -6, 2)) == np.inf
    assert CAMERA.metres((1, -5, 2)) == 0.0
    assert CAMERA.metres((1, -5.5, 2), radius=0.6) == 0.0
    assert CAMERA.metres((1, -5.5, 2), radius=0.4) == np.inf


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6))
def test_the_bound_holds_and_is_not_wasteful(seed):
    """Random cameras, places in a ball, and displacements as long as allowed, in the worst directions, too."""
    rng = np.random.default_rng(seed)
    camera = pliant.Camera(
        rng.normal(size=3),
        rng.normal(size=3) * 10,
        fov=rng.uniform(0.1, 2.5),
        height=int(rng.integers(10, 3000)),
    )
    seen = np.array([*(rng.uniform(-1, 1, 2)), 1.0]) * rng.uniform(0.1, 100)
    place = camera.position + seen @ camera.axes
    pixels, radius = 10 ** rng.uniform(-2, 1), rng.choice([0.0, 0.3]) * seen[2]
    allowed = float(camera.metres(place, pixels, radius))
    inside = rng.normal(size=(100, 3))
    inside *= radius * rng.uniform(0, 1, (100, 1)) / np.linalg.norm(inside, axis=1)[:, None]
    ways = rng.normal(size=(2000, 3))
    ways *= allowed / np.linalg.norm(ways, axis=1)[:, None]
    points = np.repeat(place + inside, 20, axis=0)
    moved = np.linalg.norm(camera.project(points + ways) - camera.project(points), axis=1)
    assert moved.max() <= pixels * (1 + 1e-9)
    if radius == 0.0:
        assert moved.max() > 0.85 * pixels


def test_errors_allowed_serve_engines():
    """The tolerance of a quasi-static engine with the measure "world", and the error of a level of detail."""
    helix = pliant.gallery.helix(30)
    camera = pliant.Camera((0, -3, 0), (0, 0, 0), fov=0.7, height=1080)
    allowed = float(camera.metres(helix.reference_poses[-1, :3, 3], 0.5))
    assert 5e-4 < allowed < 2e-3
    simulation = pliant.QuasistaticSimulation(helix, 1.0, (0, 0, 0), tolerance=allowed, measure="world")
    simulation.step()
    world = pliant.World(1 / 60)
    world.add(helix, "helix")
    world.detail("helix", [pliant.reduce(helix), helix], error=allowed)
    world.step()


BAD = [
    ({"target": (0, 0, 0)}, "target: a point other"),
    ({"up": (0, 1, 0)}, "up: a direction across"),
    ({"up": (0, 0, 0)}, "up: a direction across"),
    ({"position": (0, np.nan, 0)}, "position"),
    ({"fov": 0}, "fov"),
    ({"fov": 4}, "fov"),
    ({"height": 0}, "height"),
    ({"width": 1.5}, "width"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_cameras(change, message):
    with pytest.raises(InputError, match=message):
        pliant.Camera(**({"position": (0, 0, 0), "target": (0, 1, 0)} | change))


def test_bad_places():
    for places in ((1, 2), "x", [(0, 0, np.inf)], np.zeros((3, 2))):
        with pytest.raises(InputError, match="places"):
            CAMERA.metres(places)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="pixels: a number above 0"):
        CAMERA.metres((0, 0, 0), 0)
    for radius in (-1, [1, 2], np.nan):
        with pytest.raises(InputError, match="radius"):
            CAMERA.metres(np.zeros((3, 3)), radius=radius)
