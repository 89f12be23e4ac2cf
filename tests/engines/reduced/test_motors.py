"""Motor torques against the same torques as pairs of wrenches on the whole mechanism."""

import copy

import numpy as np
import pytest

import pliant
from pliant.errors import InputError, UnknownNameError

# --- motion under torques


def pair(m, dof, torque):
    """Wrenches on the two bodies of a hinge equivalent to a torque in it, at the reference pose."""
    joint = m.dof_joint[dof]
    link = int(np.flatnonzero(m.links.dof == dof)[-1])
    turn = m.reference_poses[m.links.body[link]][:3, :3] if m.links.body[link] >= 0 else None
    assert turn is not None
    axis = torque * turn @ m.links.screw[dof, 3:]
    out = {m.body_names[m.joint_children[joint]]: {"torque": axis}}
    if m.joint_parents[joint] >= 0:
        out[m.body_names[m.joint_parents[joint]]] = {"torque": -axis}
    return out


@pytest.mark.parametrize("modes", [0, 3])
@pytest.mark.parametrize("name", ["arm", "hand", "ladder", "gripper"])
def test_end_effectors_go_where_torques_put_them(name, modes):
    """Displacements of end effectors are exact to first order, loops included: errors are of second order."""
    m = pliant.gallery.make(name)
    hinges = [j for j in range(m.joint_count) if m.joint_dofs(j).stop - m.joint_dofs(j).start == 1]
    joint = hinges[len(hinges) // 2]
    dof = m.joint_dofs(joint).start
    model = pliant.reduce(m, modes=modes)
    errors = []
    for angle in (0.02, 0.01):
        torque = angle * m.stiffness[dof]
        simulation = pliant.ReducedSimulation(model, 1.0)
        simulation.set_motor(m.joint_names[joint], torque=torque)
        simulation.step(20_000)
        truth = pliant.equilibrium(m, pair(m, dof, torque))
        moved = max(
            np.abs(truth.pose(e) - m.reference_poses[m.body_index(e)]).max() for e in model.end_effectors
        )
        off = max(np.abs(truth.pose(e) - simulation.pose(e)).max() for e in model.end_effectors)
        assert moved > 1e-5
        errors.append(off / moved)
    assert errors[0] < 0.05
    assert errors[1] < 0.6 * errors[0] or errors[1] < 1e-7  # relative to a motion that is half as large


def test_a_single_hinge_turns_by_torque_over_stiffness():
    b = pliant.Builder("one")
    b.body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.hinge("post", "world", "arm", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=10.0, damping=1.0)
    simulation = pliant.ReducedSimulation(pliant.reduce(b.build(), "arm"), 0.05)
    simulation.set_motor("post", torque=4.0)
    simulation.step(2000)
    assert simulation.configuration["post"] == pytest.approx(0.4, rel=1e-9)
    simulation.reset()
    assert not simulation.motors
    simulation.set_motor("post", torque=4.0)
    simulation.step(2000)
    assert simulation.configuration["post"] == pytest.approx(0.4, rel=1e-9)
    simulation.clear_motors()
    simulation.step(2000)
    assert simulation.configuration["post"] == pytest.approx(0.0, abs=1e-9)


def test_torques_do_not_move_a_floating_base():
    """Motors are internal forces: momentum is conserved, and joints move relative to the base."""
    model = pliant.reduce(pliant.gallery.hexapod())
    for method in ("tvcg", "auto"):
        simulation = pliant.ReducedSimulation(model, 0.01, gravity=(0, 0, 0), method=method)
        centre = simulation.base_centre + simulation.pose("body")[:3, 3]
        simulation.set_motor("*_*", torque=np.linspace(-0.5, 0.5, 18))
        simulation.step(50)
        assert np.abs(simulation.base_momentum).max() == 0.0
        moved, pose = simulation.q - simulation.mechanism.reference, simulation.pose("body")
        assert pose[:3, :3] @ simulation.base_centre + pose[:3, 3] == pytest.approx(centre, abs=1e-12)
        assert (np.abs(moved[:7]).max() < 1e-9) == (method == "tvcg")  # the rigid whole
        assert np.abs(moved[7:]).max() > 1e-3


def test_against_the_whole_mechanism_in_motion():
    """Tips of a hand driven by torques, with enough modes, move as in the constrained engine."""
    m = pliant.gallery.hand()
    torque = 0.01 * np.random.default_rng(0).uniform(-1, 1, m.nv) * m.stiffness
    full = pliant.ConstrainedSimulation(m, 1e-3, gravity=(0, 0, 0))
    reduced = pliant.ReducedSimulation(pliant.reduce(m, modes=10), 1e-3)
    for simulation in (full, reduced):
        simulation.set_motor("*", torque=torque)
        simulation.step(200)
    tips = [m.body_index(tip) for tip in m.end_effectors]
    way = np.linalg.norm(full.poses[tips, :3, 3] - m.reference_poses[tips, :3, 3], axis=1).max()
    off = np.linalg.norm(full.poses[tips, :3, 3] - reduced.poses[tips, :3, 3], axis=1).max()
    assert off < 0.05 * way


# --- setting, clearing, copying


def test_motors_carry_over():
    m = pliant.gallery.hand()
    one, other = pliant.reduce(m), pliant.reduce(m, modes=2)
    simulation = pliant.ReducedSimulation(one, 0.01)
    simulation.set_motor("*", torque=0.01)
    twin = copy.deepcopy(simulation)
    straight = pliant.ReducedSimulation(other, 0.01)
    straight.set_motor("*", torque=0.01)
    simulation.switch(other)
    simulation.step(400)
    straight.step(400)
    assert simulation.poses == pytest.approx(straight.poses, abs=1e-6)
    twin.step(10)
    assert np.abs(twin.poses - m.reference_poses).max() > 1e-5


def test_what_cannot_be_driven():
    m = pliant.gallery.helix(6)
    simulation = pliant.ReducedSimulation(pliant.reduce(m), 0.01)
    before = simulation._packed.constants.copy()
    joint = m.joint_names[2]
    for call, message in (
        (lambda: simulation.set_motor(joint, torque=float("nan")), "not all numbers are finite"),
        (lambda: simulation.set_motor(joint, torque=(1, 2, 3)), "one torque or one per dof"),
        (lambda: simulation.set_motor(joint, torque="much"), "numbers expected"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    with pytest.raises(UnknownNameError, match="nowhere"):
        simulation.set_motor("nowhere", torque=1.0)
    np.testing.assert_array_equal(simulation._packed.constants, before)
    tip = m.end_effectors[0]
    loaded = pliant.reduce(m, at=pliant.equilibrium(m, {tip: (0, 0, -0.5)}))
    blend = pliant.blend([pliant.reduce(m), loaded])
    mixed = pliant.ReducedSimulation(blend, 0.01, method="tvcg")
    with pytest.raises(InputError, match="take no motors"):
        mixed.set_motor(joint, torque=1.0)
    mixed.clear_motors()
    linear = pliant.ReducedSimulation(blend.models[0], 0.01, method="tvcg")
    linear.set_motor(joint, torque=0.1)
    with pytest.raises(InputError, match="take no motors"):
        linear.switch(blend)
    assert linear.model is not blend


def test_blends_take_motors():
    """On the manifold of a blend: the end effector goes where torques put it, and they go along to another model."""
    m = pliant.gallery.helix(20)
    blend = pliant.blend([pliant.reduce(m, at=pliant.equilibrium(m, {"link20": (0, 0, f)})) for f in (0, 40)])
    one = pliant.ReducedSimulation(blend.models[0], 0.01, method="full")
    other = pliant.ReducedSimulation(blend, 0.01, method="full")
    for simulation in (one, other):
        simulation.set_motor("*", torque=0.02 * m.stiffness)
        simulation.step(3000)
    truth = pliant.Configuration(m, np.full(20, 0.02)).pose("link20")[:3, 3]
    moved = np.linalg.norm(truth - m.reference_poses[-1, :3, 3])
    assert np.linalg.norm(other.pose("link20")[:3, 3] - truth) < 0.02 * moved
    one.switch(blend)
    one.step(3000)
    np.testing.assert_allclose(one.q, other.q, atol=1e-8)


# --- loads that outgrow their arrays, under a motor


@pytest.mark.parametrize("name", ["arm", "gripper", "hexapod"])
def test_arrays_that_grow_for_more_loads_change_no_motion(name):
    """Six loads of nothing make the arrays grow after the motor was set: the motion stays, bit for bit."""
    m = pliant.gallery.make(name)
    one, two = (pliant.ReducedSimulation(pliant.reduce(m), 1 / 240) for _ in range(2))
    joint = m.joint_names[int(m.dof_joint[-1])]
    for simulation in (one, two):
        simulation.set_motor(joint, torque=0.01)
        simulation.apply_wrench(m.body_names[-1], force=(0.1, 0, 0.2))
        simulation.step(5)
    ends = one.model.end_effectors
    for body in [name for name in m.body_names if name not in ends][:6]:
        two.apply_wrench(body, force=(0, 0, 0))
    for simulation in (one, two):
        simulation.step(5)
        simulation.set_motor(joint, torque=0.0)
        simulation.step(5)
    assert np.array_equal(one.q, two.q)
    assert np.array_equal(one.velocity, two.velocity)
    assert np.abs(one.q - m.reference).max() > 1e-6
