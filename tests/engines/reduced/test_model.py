"""Properties of reduced models, and errors of `reduce` about bad input."""

import numpy as np
import pytest

import pliant
from pliant.errors import InputError, UnknownNameError
from pliant.spatial import quat_multiply, quat_normalize, quat_rotate

INERTIA = (0.01, 0.01, 0.01)


def stage(kx=100.0, ky=400.0):
    """A table on two crossed slides; z and rotations are locked."""
    b = pliant.Builder("stage")
    b.body("x", mass=1.0, inertia=INERTIA, position=(0.1, 0, 0))
    b.body("table", mass=2.0, inertia=INERTIA, position=(0.1, 0.2, 0.3))
    b.slide("sx", "world", "x", axis=(1, 0, 0), stiffness=kx, damping=2.0)
    b.slide("sy", "x", "table", axis=(0, 1, 0), stiffness=ky, damping=3.0)
    return b.build()


def test_a_stage_by_hand():
    model = pliant.reduce(stage(), "table")
    assert model.rank == 2
    assert np.diag(model.compliance) == pytest.approx([0.01, 0.0025, 0, 0, 0, 0])
    assert model.stiffness == pytest.approx(np.diag([100.0, 400, 0, 0, 0, 0]), abs=1e-9)
    assert model.mass == pytest.approx(np.diag([3.0, 2, 0, 0, 0, 0]), abs=1e-12)
    assert model.damping == pytest.approx(np.diag([2.0, 3, 0, 0, 0, 0]), abs=1e-12)
    assert model.frequencies() == pytest.approx(np.sort(np.sqrt([100 / 3, 400 / 2])) / (2 * np.pi))
    assert np.abs(model.admissible[2:]).max() < 1e-12
    ellipsoid = model.stiffness_ellipsoid("table")
    assert ellipsoid.stiffness == pytest.approx([100, 400, np.inf])
    assert np.abs(ellipsoid.axes) == pytest.approx(np.eye(3))
    assert ellipsoid.centre == pytest.approx([0.1, 0.2, 0.3])
    assert np.isinf(model.stiffness_ellipsoid("table", "rotation").stiffness).all()
    assert model.wrench_map("x")[:3, :3] == pytest.approx(np.eye(3))
    assert not model.twist_map("world").any()


def test_ellipsoid_axes_are_in_the_world():
    m = pliant.gallery.two_link()
    model = pliant.reduce(m)
    ellipsoid = model.stiffness_ellipsoid("right")
    turn = m.reference_poses[m.body_index("right"), :3, :3]
    block = turn @ model.compliance[:3, :3] @ turn.T
    for k, axis in zip(ellipsoid.stiffness[:2], ellipsoid.axes.T, strict=False):
        assert block @ axis == pytest.approx(axis / k)


def finger(digits=None):
    """Four hinges with frames that turn by quarters, their quaternions rounded to a number of digits."""
    turns = [(0.5, 0.5, 0.5, -0.5), (0.5, -0.5, -0.5, 0.5), (1, 0, 0, 0), (1, 0, 0, 0)]
    b, position, turn, parent = pliant.Builder("finger"), np.zeros(3), np.array([1.0, 0, 0, 0]), "world"
    for i, quaternion in enumerate(turns):
        position = position + quat_rotate(turn, np.array([0.04, 0.01 * i, 0.005]))
        shift = 0 if digits is None else 3 * 10.0**-digits
        turn = quat_multiply(turn, quat_normalize(np.add(quaternion, (shift, 0, -shift, 0))))
        b.body(f"b{i}", mass=0.05, inertia=(1e-5, 1e-5, 1e-5), position=position, orientation=turn)
        b.hinge(
            f"j{i}",
            parent,
            f"b{i}",
            anchor=position,
            axis=quat_rotate(turn, np.array([0, 0, 1.0])),
            stiffness=2.0,
        )
        parent = f"b{i}"
    return b.build()


@pytest.mark.parametrize("digits", [5, 6, 8])
def test_directions_that_only_the_rounding_of_a_file_moves_are_held(digits):
    """Compliance there, 1e-9 of the largest and less, means nothing: stiffnesses are as of exact axes."""
    exact, rounded = (pliant.reduce(finger(d), "b3") for d in (None, digits))
    assert np.linalg.matrix_rank(rounded.compliance[3:, 3:], tol=1e-17) > np.linalg.matrix_rank(
        exact.compliance[3:, 3:], tol=1e-17
    )
    for of in ("translation", "rotation"):
        true, found = exact.stiffness_ellipsoid("b3", of), rounded.stiffness_ellipsoid("b3", of)
        assert np.isinf(true.stiffness).sum() == (of == "rotation")
        assert found.stiffness == pytest.approx(true.stiffness, rel=1e-3)
        held = np.isinf(true.stiffness)
        assert np.abs(found.axes[:, held].T @ true.axes[:, held]) == pytest.approx(
            np.eye(held.sum()), abs=1e-3
        )
        assert found.axes.T @ found.axes == pytest.approx(np.eye(3), abs=1e-12)
    assert "e+1" not in rounded.summary()


def test_springs_far_apart_are_stiffness_not_rounding():
    """What gives way little because its spring is stiff has a number, however soft the others are."""
    ellipsoid = pliant.reduce(stage(kx=1e-1, ky=1e10), "table").stiffness_ellipsoid("table")
    assert ellipsoid.stiffness == pytest.approx([0.1, 1e10, np.inf])


def test_words_and_picture(tmp_path):
    model = pliant.reduce(pliant.gallery.hand(), modes=2)
    text = model.summary()
    assert "hand: reduced from 17 bodies and 24 dofs to 5 end effectors" in text
    assert "rank 24 of 30, exact projection, condensed inertia" in text
    assert f"{model.frequencies()[0]:.4g}" in text
    softest = model.stiffness_ellipsoid("thumb_tip").stiffness[0]
    assert f"{softest:.4g}" in text
    assert "index_tip" in repr(model)
    model.plot(tmp_path / "hand.png")
    assert (tmp_path / "hand.png").stat().st_size > 10_000
    floating = pliant.reduce(pliant.gallery.hexapod())
    assert "floating on 'body'" in floating.summary()
    loaded = pliant.gallery.helix(10)
    loaded = pliant.reduce(loaded, at=pliant.equilibrium(loaded, {"link10": (0, 0, -10)}))
    assert "linearised under a load of 10 N" in loaded.summary()


def test_rank_tolerance_decides_the_rank():
    m = stage(ky=1e8)
    assert pliant.reduce(m, "table").rank == 2
    assert pliant.reduce(m, "table", rank_tolerance=1e-4).rank == 1


def test_total_inertia_of_a_floating_base():
    m = pliant.gallery.hexapod()
    model = pliant.reduce(m)
    assert model.base is not None
    assert model.base.body == "body"
    assert model.base.inertia[0, 0] == pytest.approx(m.total_mass)
    # It equals the joint-space inertia of the free joint.
    c = pliant.Configuration(m)
    J = c.jacobian("body")[:, m.joint_dofs(0)]
    inverse = np.linalg.inv(J)
    expected = inverse.T @ c.mass_matrix()[m.joint_dofs(0), m.joint_dofs(0)] @ inverse
    assert model.base.inertia == pytest.approx(expected, abs=1e-12)


def two_arms(**spring):
    b = pliant.Builder("two arms")
    for name, x in (("left", 0.0), ("right", 1.0)):
        b.body(name, mass=1.0, inertia=INERTIA, position=(x, 0, 0))
        b.body(f"{name}_tip", mass=1.0, inertia=INERTIA, position=(x, 0, 1))
        b.free(f"{name}_base", "world", name)
        b.hinge(name, name, f"{name}_tip", anchor=(x, 0, 0), axis=(0, 1, 0), stiffness=5.0)
    return b.build()


def test_bases():
    m = two_arms()
    with pytest.raises(InputError, match=r"different bases \('left', 'right'\).*one mechanism at a time"):
        pliant.reduce(m, ["left_tip", "right_tip"])
    model = pliant.reduce(m, "left_tip")  # the other arm stays where it is
    assert model.base is not None
    assert model.base.inertia[0, 0] == pytest.approx(2.0)
    with pytest.raises(InputError, match="'left' cannot move"):
        pliant.reduce(m, ["left", "left_tip"])
    fixed = m.with_fixed_base()
    assert pliant.reduce(fixed, "left_tip").base is None


def test_bad_input():
    m = pliant.gallery.y()
    left, right = m.end_effectors
    cases = [
        (("nobody",), {}, UnknownNameError, "no body 'nobody'"),
        (([left, right, left],), {}, InputError, f"'{left}' is named twice"),
        (("world",), {}, InputError, "the world cannot be an end effector"),
        (([],), {}, InputError, "suggests no end effectors"),
        ((left,), {"projection": "best"}, InputError, "projection is 'exact' or 'recursive', not 'best'"),
        ((left,), {"inertia": "none"}, InputError, "inertia is one of"),
        ((left,), {"modes": -1}, InputError, "modes: a whole number from 0"),
        ((left,), {"modes": 1.5}, InputError, "modes: a whole number"),
        ((left,), {"modes": 2, "inertia": "operational"}, InputError, "modes go with"),
        ((left,), {"default_stiffness": 0.0}, InputError, "default_stiffness: a number above 0"),
        ((left,), {"default_stiffness": np.nan}, InputError, "default_stiffness"),
        ((left,), {"rank_tolerance": 2.0}, InputError, "rank_tolerance"),
        ((left,), {"at": "rest"}, InputError, "a Configuration expected"),
        ((left,), {"at": pliant.Configuration(pliant.gallery.helix(5))}, InputError, "this very 'y'"),
    ]
    for arguments, words, error, message in cases:
        with pytest.raises(error, match=message):
            pliant.reduce(m, *arguments, **words)
    with pytest.raises(InputError, match="a Mechanism expected"):
        pliant.reduce("y", left)  # type: ignore[arg-type]
    model = pliant.reduce(m, left)
    with pytest.raises(UnknownNameError, match=f"'{right}' is no end effector.*reduce with it among them"):
        model.stiffness_ellipsoid(right)
    with pytest.raises(InputError, match="of is"):
        model.stiffness_ellipsoid(left, "both")
    with pytest.raises(InputError, match="the world passes no wrench"):
        model.wrench_map("world")


def test_rigidly_fixed_and_locked():
    b = pliant.Builder("locked")
    b.body("shelf", mass=1.0, inertia=INERTIA, position=(0, 0, 1))
    b.body("door", mass=1.0, inertia=INERTIA, position=(1, 0, 1))
    b.fixed("bracket", "world", "shelf")
    b.hinge("pin", "shelf", "door", anchor=(0.5, 0, 1), axis=(0, 0, 1), stiffness=1.0)
    m = b.build()
    with pytest.raises(
        InputError,
        match=r"'shelf' cannot move: held to the world by 'bracket'; name a body beyond a joint that gives way",
    ):
        pliant.reduce(m, ["door", "shelf"])
    b.fixed("latch", "world", "door")  # a loop that locks the door
    with pytest.raises(
        InputError, match="'door' cannot move: held to the world by 'pin', 'bracket' and closed loops;"
    ):
        pliant.reduce(b.build(), "door")


def test_infinite_compliance_and_default_stiffness():
    m = pliant.gallery.helix(6).with_stiffness(["link2", "link4"], 0.0)
    with pytest.raises(InputError, match=r"no spring holds 'link[24]', 'link[24]'.*default_stiffness"):
        pliant.reduce(m)
    model = pliant.reduce(m, default_stiffness=1000.0)
    assert model.compliance == pytest.approx(pliant.reduce(pliant.gallery.helix(6)).compliance, rel=1e-12)
    assert pliant.reduce(m, "link1").rank == 1  # springless joints beyond the end effector do not matter
    at = pliant.equilibrium(pliant.gallery.helix(6), {"link6": (0, 0, 1)})
    assert pliant.reduce(at.mechanism, at=at, default_stiffness=3.0).rank == 6  # nothing to change
    limp = m.with_stiffness("link2", 10.0)
    at = pliant.equilibrium(limp, {"link1": (0, 0, 1)})
    with pytest.raises(InputError, match="would change the springs of an equilibrium"):
        pliant.reduce(limp, "link1", at=at, default_stiffness=3.0)


def test_at_checks():
    m = pliant.gallery.loop()
    open_loop = pliant.Configuration(m, m.reference + 0.01)
    with pytest.raises(InputError, match=r"loops are open by.*pliant.assemble"):
        pliant.reduce(m, at=open_loop)
    b = pliant.Builder("column")
    b.body("rod", mass=1.0, inertia=INERTIA, position=(0, 0, 1))
    b.hinge("foot", "world", "rod", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    column = b.build()
    buckled = pliant.Configuration(column)
    buckled.stability = "unstable"
    with pytest.raises(InputError, match="the equilibrium is unstable"):
        pliant.reduce(column, "rod", at=buckled)
