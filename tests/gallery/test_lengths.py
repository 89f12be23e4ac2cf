"""Mechanisms whose links may have other lengths."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.errors import InputError

USUAL = {
    "hand": dict.fromkeys(("index", "middle", "ring", "little", "thumb", "proximal", "medial", "tip"), 1.0),
    "gripper": {"driver": 0.06, "follower": 0.06, "spacing": 0.02, "pad": 0.072},
    "flexure_stage": {
        "left": 0.05,
        "right": 0.05,
        "width": 0.01,
        "thickness": 0.0005,
        "apart": 0.06,
        "young": 207e9,
    },
    "scissor_lift": {"arm": 0.6, "angle": 0.6},
    "stewart_platform": {"base": 0.25, "platform": 0.15, "height": 0.3, "stiffness": 1e5},
    "delta_robot": {"base": 0.12, "platform": 0.05, "arm": 0.2, "rod": 0.42, "stiffness": 30.0},
    "miura_ori": {"side": 0.05, "sector": 1.05, "fold": 0.7},
    "bistable": {"span": 0.05, "rise": 0.008, "bending": 0.02, "axial": 4e4},
    "tensegrity": {"bottom": 0.2, "top": 0.15, "height": 0.35},
}


@pytest.mark.parametrize("name", USUAL)
def test_every_length_counts_and_is_checked(name):
    usual = gallery.make(name)
    for argument, value in USUAL[name].items():
        same = gallery.make(name, **{argument: value})
        np.testing.assert_array_equal(same.reference_poses, usual.reference_poses)
        np.testing.assert_array_equal(same.inertia, usual.inertia)
        other = gallery.make(name, **{argument: 1.1 * value})
        assert not all(
            np.array_equal(getattr(other, part), getattr(usual, part))
            for part in ("reference_poses", "inertia", "stiffness")
        )
        assert other.topology.loops == usual.topology.loops
        for bad in (0, -1.0, float("nan"), "long"):
            with pytest.raises(InputError, match=argument):
                gallery.make(name, **{argument: bad})


@pytest.mark.parametrize(("left", "right"), [(0.05, 0.05), (0.04, 0.06), (0.07, 0.05)])
def test_blades(left, right):
    """Howell's springs: each blade resists with 2 K / (γ L)², whether or not they are of one length."""
    m = gallery.flexure_stage(left=left, right=right, thickness=0.0004)
    second_moment = 0.01 * 0.0004**3 / 12
    k = sum(
        2 * (2 * 0.8517 * 2.65 * 207e9 * second_moment / length) / (0.8517 * length) ** 2
        for length in (left, right)
    )
    assert pliant.Configuration(m).compliance("stage")[0, 0] == pytest.approx(1 / k, rel=1e-9)
    at = pliant.equilibrium(m, {"stage": (2, 0, 0)})
    turned = at.pose("stage")[0, 2]
    assert (abs(turned) < 1e-12) == (left == right)


@pytest.mark.parametrize(("driver", "follower"), [(0.06, 0.06), (0.08, 0.08), (0.05, 0.07)])
def test_bars(driver, follower):
    """The servos are felt at a pad through (L cos 20°)², both because of the gears; it turns if bars differ."""
    m = gallery.gripper(driver=driver, follower=follower)
    expected = (driver * np.cos(np.radians(20))) ** 2 / 40
    assert pliant.Configuration(m).compliance("left_pad")[0, 0] == pytest.approx(expected, rel=1e-9)
    at = pliant.equilibrium(m, {"left_pad": (-20, 0, 0), "right_pad": (20, 0, 0)})
    assert (abs(at.pose("left_pad")[0, 2]) < 1e-9) == (driver == follower)


def test_bars_must_not_meet():
    with pytest.raises(InputError, match=r"spacing: at most 0\.05 m"):
        gallery.gripper(spacing=0.06)


def test_fingers():
    def reach(m, name):
        knuckle = m.joint_index(f"{name}_knuckle")
        start = (m.reference_poses[m.joint_children[knuckle]] @ m.child_frames[knuckle])[:3, 3]
        return m.reference_poses[m.body_index(f"{name}_tip"), :3, 3] - start

    usual, long = gallery.hand(), gallery.hand(ring=1.25)
    np.testing.assert_allclose(reach(long, "ring"), 1.25 * reach(usual, "ring"))
    np.testing.assert_array_equal(reach(long, "index"), reach(usual, "index"))
    every = gallery.hand(proximal=0.8, medial=0.8, tip=0.8)
    for name in ("index", "middle", "ring", "little", "thumb"):
        np.testing.assert_allclose(reach(every, name), 0.8 * reach(usual, name))
