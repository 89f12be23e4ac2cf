"""Motions that no spring holds and no end effector feels, such as rods that spin about themselves."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from formats import corpus
from oracles.manifold import Kinematics
from pliant.engines.reduced.projection import held_loads
from pliant.mechanism import kinematics
from pliant.statics.tangent import Tangent


def rods(count: int = 3, spin: float = 0.0) -> pliant.Mechanism:
    """A plate on a springy universal joint and slide, tied to levers on springs by rods with a ball at either end.

    Args:
        count: of levers and rods; every rod spins freely about itself.
        spin: stiffness of the balls on the levers, N m/rad.
    """
    b = pliant.Builder("rods")
    b.body("plate", mass=1.0, inertia=(0.02, 0.03, 0.04), position=(0, 0, 0.5))
    heave = [
        ("slide", (0, 0, 1), (0, 0, 0)),
        ("hinge", (1, 0, 0), (0, 0, 0.5)),
        ("hinge", (0, 1, 0), (0, 0, 0.5)),
    ]
    stiffness = np.array([400.0, 30.0, 20.0])
    b.stack("heave", "world", "plate", heave, stiffness=stiffness, damping=0.01 * stiffness)
    for i in range(count):
        angle = 2 * np.pi * i / count + 0.1
        out, side = np.array([np.cos(angle), np.sin(angle), 0]), np.array([-np.sin(angle), np.cos(angle), 0])
        foot, head = 0.6 * out + (0, 0, 0.05), 0.2 * out + 0.02 * side + (0, 0, 0.5)
        b.body(f"lever{i}", mass=0.3, inertia=(0.01, 0.01, 0.01), position=0.8 * out)
        b.body(f"rod{i}", mass=0.1, inertia=(0.002, 0.002, 1e-4), position=(foot + head) / 2)
        b.hinge(f"pivot{i}", "world", f"lever{i}", anchor=out, axis=side, stiffness=15.0, damping=0.1)
        b.ball(f"low{i}", f"lever{i}", f"rod{i}", anchor=foot, stiffness=spin)
        b.ball(f"high{i}", f"rod{i}", "plate", anchor=head)
    b.end_effectors("plate")
    return b.build()


def cassie(keyframe: str | None) -> pliant.Mechanism:
    file = corpus.folder("shared") / "agility_cassie" / "cassie.xml"
    if not file.is_file():
        pytest.skip("the folder shared/models is not beside the project")
    m = pliant.load(file, keyframe=keyframe).with_fixed_base()
    for dofs, stiffness in {
        "*-hip-*": 500.0,
        "*-knee": 500.0,
        "left-foot": 100.0,
        "right-foot": 100.0,
    }.items():
        m = m.with_stiffness(dofs, stiffness)
    return m


def dense_response(m: pliant.Mechanism, q, forces: np.ndarray) -> tuple[np.ndarray, int]:
    """Shortest motions, radians and radii, (nv, m), under generalised forces (nv, m); number of free motions."""
    unit = m.dof_unit
    rows = Kinematics(m, q).rows * unit
    rows[: 6 * m.topology.loops].reshape(-1, 6, m.nv)[:, :3] /= m.radius
    _, size, axes = np.linalg.svd(rows)
    Z = unit[:, None] * axes[int((size > 1e-9).sum()) :].T
    stiffness, shapes = np.linalg.eigh(Z.T @ m.stiffness_matrix @ Z)
    held = stiffness > 1e-9 * stiffness[-1]
    motions = Z @ shapes[:, held]
    return motions @ ((motions.T @ forces) / stiffness[held, None]), int((~held).sum())


CASES = {
    "rods": (rods, "plate", 3),
    "many rods": (lambda: rods(9), "plate", 9),
    "cassie": (lambda: cassie(None), "left-foot", 4),
    "cassie at home": (lambda: cassie("home"), "left-foot", 2),
}


@pytest.mark.parametrize("name", CASES)
def test_joints_move_as_little_as_they_can(name):
    make, body, spins = CASES[name]
    m = make()
    model = pliant.reduce(m, body)
    rows = pliant.Configuration(m).jacobian(body)
    expected, free = dense_response(m, m.reference, rows.T)
    assert free == spins
    unit = m.dof_unit[:, None]
    np.testing.assert_allclose(
        model.joint_map / unit, expected / unit, atol=1e-9 * np.abs(expected / unit).max()
    )
    assert np.abs(model.basis / unit).max() < 20


@pytest.mark.parametrize("name", ["rods", "cassie", "cassie at home"])
def test_forces_on_free_motions_move_nothing_else(name):
    """The pseudo-inverse, for any forces: symmetric, and zero along free motions."""
    m = CASES[name][0]()
    tangent = Tangent(m, m.reference, held_loads(m, m.reference))
    forces = np.random.default_rng(0).normal(size=(5, m.nv)) / m.dof_unit
    found, _ = tangent.respond(forces)
    expected, _ = dense_response(m, m.reference, forces.T)
    np.testing.assert_allclose(found, expected.T, atol=1e-9 * np.abs(expected).max())


def test_the_first_frequency_is_that_of_the_mechanism_above_its_spins():
    free, held = pliant.reduce(rods(), "plate"), rods(spin=1e-6)
    np.testing.assert_allclose(free.compliance, pliant.reduce(held, "plate").compliance, rtol=1e-5, atol=1e-9)
    every = pliant.Configuration(held).frequencies(6)
    assert every[2] < 0.1 < every[3]
    np.testing.assert_allclose(free.frequencies()[0], every[3], rtol=1e-4)


@pytest.mark.parametrize(("keyframe", "first"), [(None, [2.9883, 3.1559]), ("home", [3.1243, 3.3421])])
def test_foot_of_a_real_robot(keyframe, first):
    """The Achilles rods spin; in the file's pose the foot's crank and rod are at a dead centre, too."""
    np.testing.assert_allclose(
        pliant.reduce(cassie(keyframe), "left-foot").frequencies()[:2], first, atol=1e-4
    )


@pytest.mark.parametrize("name", CASES)
def test_rounding_moves_no_result(name):
    make, body, _ = CASES[name]
    m = make()
    expected = pliant.reduce(m, body, modes=2)
    rng = np.random.default_rng(1)
    for _ in range(3):
        stiffness = m.stiffness * (1 + 1e-13 * rng.normal(size=m.nv))
        q = kinematics.move(m, m.reference, 1e-13 * rng.normal(size=m.nv) * m.dof_unit)
        other = m.replace(stiffness=stiffness)
        found = pliant.reduce(other, body, at=pliant.Configuration(other, q), modes=2)
        np.testing.assert_allclose(found.frequencies(), expected.frequencies(), rtol=1e-7)
        scale = np.abs(expected.joint_map / m.dof_unit[:, None]).max()
        moved = (found.joint_map - expected.joint_map) / m.dof_unit[:, None]
        assert np.abs(moved).max() < 1e-8 * scale
