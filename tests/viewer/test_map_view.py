"""The view of a compliance map, with no browser: what it draws, what a click and the controls change."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import pliant
from pliant.viewer.map_picture import spread_out
from pliant.viewer.map_view import _facts


@pytest.fixture(scope="module")
def found():
    ranges = {"*": (-1.0, 1.0)}
    return pliant.compliance_map(pliant.gallery.two_link(), samples=60, ranges=ranges, load=(0, 0, -10))


@pytest.fixture
def shown(found):
    with found.view(port=0, block=False) as view:
        yield view


def test_samples_and_ellipsoids(shown, found):
    assert np.abs(shown._dots.batched_positions - found.position).max() < 1e-6
    assert shown._dots.batched_colors.shape == (60, 3)
    order = np.argsort(found.worst)
    darkest, brightest = (shown._dots.batched_colors[s].astype(int).sum() for s in (order[0], order[-1]))
    assert darkest < brightest
    # an ellipsoid holds the displacements under one force in all directions
    scales, turns = shown._others.batched_scales, shown._others.batched_wxyzs
    for at, scale, turn in zip(shown._others.batched_positions, scales, turns, strict=True):
        sample = int(np.linalg.norm(found.position - at, axis=1).argmin())
        axes = pliant.spatial.quat_to_matrix(turn)
        longest = shown._force * found.compliance[sample, :3, :3] @ axes[:, 0]
        assert np.abs(longest - scale[0] * axes[:, 0]).max() < 1e-5 * shown._size
    assert "two_link: right" in repr(shown)


def test_a_click_moves_the_mechanism(shown, found):
    assert shown.sample == int(found.worst.argmax())
    shown.choose(17)
    expected = pliant.Configuration(found.mechanism, found.q[17])
    assert np.abs(shown._poses(17) - expected.poses).max() < 1e-12
    assert np.abs(shown._ellipsoid.batched_positions[0] - found.position[17]).max() < 1e-6
    assert f"sample {found.index[17]} at" in shown._facts.content
    assert f"first frequency {found.frequency[17]:.4g} Hz" in shown._facts.content
    assert "sags by" in shown._facts.content
    assert shown._slider.value == 17


def test_colours(shown, found):
    assert list(shown._quantities) == ["compliance", "turning compliance", "frequency", "sag"]
    before = shown._dots.batched_colors.copy()
    shown.colour("frequency")
    assert (shown._dots.batched_colors != before).any()
    assert f"{found.frequency.min():.3g} to bright {found.frequency.max():.3g} Hz" in shown._legend.content


def test_only_clients_change_controls(shown):
    from pliant.viewer.map_view import _on_update

    seen, registered = [], []
    _on_update(SimpleNamespace(on_update=registered.append), seen.append)
    for client, value in ((None, 1), ("someone", 2)):
        registered[0](SimpleNamespace(client=client, target=SimpleNamespace(value=value)))
    assert seen == [2]


def test_spread_out():
    points = np.array([[0.0, 0, 0], [0.1, 0, 0], [1.0, 0, 0], [0.5, 0, 0], [0.0, 0, 0]])
    assert spread_out(points, 3) == [0, 2, 3]
    assert spread_out(points, 10) == [0, 2, 3, 1]  # the last is where the first is


def test_names_are_text_not_html():
    m = pliant.gallery.two_link()
    evil = ('<img src=x onerror="alert(1)">', "elbow")
    m = m.replace(joint_names=evil, dof_names=evil)
    found = pliant.compliance_map(m, joints=list(m.joint_names), points=2)
    text = _facts(found, 0)
    assert "img src" in text
    assert "\\<img" in text
    assert "<img" not in text.replace("\\<", "")
