"""End effectors of mechanisms that name none: ends of open chains, what loops carry, and nothing that cannot move."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.shapes import Shape

BAR = {"mass": 0.1, "com": (0, 0, 0), "inertia": (1e-4, 1e-4, 1e-4)}
TURN = {"axis": (0, 0, 1), "stiffness": 1.0}
BALL = Shape("sphere", (0.01, 0.0, 0.0), np.eye(4), (1, 1, 1, 1), role="collision")
LOOK = Shape("sphere", (0.01, 0.0, 0.0), np.eye(4), (1, 1, 1, 1), role="visual")


def bodies(b, *names, shapes=None):
    for i, name in enumerate(names):
        b.body(name, **BAR, position=(0.1 * i, 0, 0), shapes=(shapes or {}).get(name, ()))


def four_bar(shapes=None):
    """Crank, rod and rocker on a frame that turns; a loop joint holds the rocker to the rod."""
    b = pliant.Builder("four-bar")
    bodies(b, "frame", "crank", "rod", "rocker", shapes=shapes)
    b.hinge("j0", "world", "frame", anchor=(0, 0, 0), **TURN)
    b.hinge("j1", "frame", "crank", anchor=(0, 0, 0), **TURN)
    b.hinge("j2", "crank", "rod", anchor=(0, 0.1, 0), **TURN)
    b.hinge("j3", "frame", "rocker", anchor=(0.3, 0, 0), **TURN)
    b.hinge("close", "rod", "rocker", anchor=(0.3, 0.1, 0), axis=(0, 0, 1))
    return b


def test_fixed_bodies_count_with_those_that_carry_them():
    """A tool frame is an end; a sensor half-way, a cover and a body that never moves are none."""
    b = pliant.Builder("arm")
    bodies(b, "base", "pedestal", "upper", "camera", "lower", "tool", "flange")
    for parent, child in (("world", "base"), ("base", "pedestal"), ("upper", "camera"), ("lower", "tool")):
        b.fixed(f"{child}_fixed", parent, child)
    b.fixed("flange_fixed", "lower", "flange")
    b.hinge("shoulder", "base", "upper", anchor=(0, 0, 0), **TURN)
    b.hinge("elbow", "upper", "lower", anchor=(0.3, 0, 0), **TURN)
    assert b.build().end_effectors == ("tool", "flange")


def test_without_a_joint_that_moves_all_leaves_are_ends():
    b = pliant.Builder("rigid")
    bodies(b, "a", "b")
    b.fixed("one", "world", "a")
    b.fixed("two", "a", "b")
    assert b.build().end_effectors == ("b",)


def test_the_end_of_a_chain_that_ends_in_a_loop():
    """The body with which it touches; without shapes the one nearest to the frame."""
    assert four_bar().build().end_effectors == ("rocker",)
    assert four_bar({"rod": (BALL,), "rocker": (LOOK,) * 2}).build().end_effectors == ("rod",)


def test_what_hangs_on_a_loop_is_the_end():
    b = four_bar()
    bodies(b, "pad")
    b.hinge("j4", "rod", "pad", anchor=(0.15, 0.1, 0), **TURN)
    assert b.build().end_effectors == ("pad",)
    b = four_bar()
    bodies(b, "pad")
    b.fixed("grip", "rod", "pad")  # part of the rod: it lies farther out in the loop, but alone touches
    b.end_effectors()
    m = b.build()
    assert m.end_effectors == ("rocker",)
    touching = m.shape_table.with_shapes(m.body_index("pad"), [BALL])
    assert m.replace(shape_table=touching, end_effectors=()).end_effectors == ("pad",)


def test_the_platform_of_a_parallel_robot():
    b = pliant.Builder("tripod")
    bodies(b, "a", "b", "c", "platform")
    for i, leg in enumerate("abc"):
        b.hinge(f"foot_{leg}", "world", leg, anchor=(i, 0, 0), **TURN)
        b.ball(f"knee_{leg}", leg, "platform", anchor=(i, 1, 0), stiffness=1.0)
    assert b.build().end_effectors == ("platform",)


def test_a_weld_that_closes_a_loop_joins_bodies():
    """Two chains welded together: the welded bodies are one, which the loop holds and nothing hangs on."""
    b = pliant.Builder("welded")
    bodies(b, "left", "right", "tip_left", "tip_right")
    for side in ("left", "right"):
        b.hinge(side, "world", side, anchor=(0, 0, 0), **TURN)
        b.hinge(f"elbow_{side}", side, f"tip_{side}", anchor=(0.1, 0, 0), **TURN)
    b.fixed("weld", "tip_left", "tip_right")
    assert b.build().end_effectors == ("tip_left", "tip_right")


def test_a_base_that_is_held_is_no_end():
    b = pliant.Builder("flier")
    bodies(b, "base", "sensor", "arm")
    b.free("flight", "world", "base")
    b.fixed("mount", "base", "sensor")
    b.hinge("root", "base", "arm", anchor=(0, 0, 0), **TURN)
    b.end_effectors("sensor", "arm")
    assert b.build().with_fixed_base().end_effectors == ("arm",)


@pytest.mark.parametrize(
    "name", ["gripper", "ladder", "stewart_platform", "delta_robot", "hand", "suspension"]
)
def test_ends_of_the_gallery_can_move(name):
    m = getattr(pliant.gallery, name)().replace(end_effectors=())
    c = pliant.Configuration(m)
    assert m.end_effectors
    assert all(np.abs(c.jacobian(body)).max() > 0 for body in m.end_effectors)
    pliant.reduce(m)
