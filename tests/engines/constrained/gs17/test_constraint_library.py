"""The constraint library against complex-step derivatives."""

import numpy as np
import pytest

from oracles.constraint_library import (
    AxialLock,
    BallAndSocket,
    Dot1,
    Dot2,
    FlexibleCable,
    Hinge,
    Prismatic,
    Rigid,
    Universal,
)

STEP = 1e-30


def hat(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def moved(pose, direction):
    """Poses of both bodies an imaginary step along one of the 12 directions."""
    xi, Ri, xj, Rj = (part.astype(complex) for part in pose)
    step = 1j * STEP * np.eye(12)[direction]
    return xi + step[:3], Ri + hat(step[3:6]) @ Ri, xj + step[6:9], Rj + hat(step[9:]) @ Rj


def derivative(function, pose):
    return np.stack([np.imag(function(*moved(pose, k))) / STEP for k in range(12)], axis=-1)


def anchors(rng, case):
    si, sj = rng.normal(size=(2, 3))
    return (0 * si if "i" in case else si), (0 * sj if "j" in case else sj)


def library(rng, case):
    si, sj = anchors(rng, case)
    Fi, Fj = rotation(rng), rotation(rng)
    return {
        "ball": BallAndSocket(si, sj),
        "axial": AxialLock(Fi[:, 0], rotation(rng)),
        "dot1": Dot1(Fi[:, 0], Fj[:, 0], offset=0.3),
        "dot2": Dot2(si, sj, Fi[:, 0], offset=0.2),
        "universal": Universal(si, sj, Fi, Fj),
        "hinge": Hinge(si, sj, Fi, Fj),
        "prismatic": Prismatic(si, sj, Fi, Fj),
        "rigid": Rigid(si, sj, Fi, Fj),
        "cable": FlexibleCable(si, sj, Fi, Fj, axial=1e-3, shear=1e-2, bending=0.1, torsion=0.2),
        "round cable": FlexibleCable(si, sj, Fi, Fj, axial=1e-3, shear=1e-3, bending=0.1, torsion=0.2),
    }


NAMES = tuple(library(np.random.default_rng(0), ""))


def pose_of(rng, constraint, case):
    xi, Ri, xj, Rj = rng.normal(size=3), rotation(rng), rng.normal(size=3), rotation(rng)
    if "d" in case and hasattr(constraint, "si"):
        xj = xi + Ri @ constraint.si - Rj @ constraint.sj
    return xi, Ri, xj, Rj


@pytest.mark.parametrize("case", ["", "i", "j", "ij", "d", "ijd"])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_complex_step(name, case):
    """`case` names what is zero: the anchor on i, on j, the gap d."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        c = library(rng, case)[name]
        pose, lam = pose_of(rng, c, case), rng.normal(size=c.size)
        J = c.jacobian(*pose)
        assert J.shape == (c.size, 12)
        if name != "axial":
            np.testing.assert_allclose(J, derivative(c.residual, pose), atol=1e-13, rtol=1e-13)
        K = c.geometric_stiffness(*pose, lam)
        expected = derivative(lambda *p: c.jacobian(*p).T @ lam, pose)  # noqa: B023
        np.testing.assert_allclose(K, expected, atol=1e-12, rtol=1e-12)
        rebuilt = sum(f * np.outer(a, b) for f, a, b in c.low_rank(*pose, lam))
        np.testing.assert_allclose(rebuilt if len(np.shape(rebuilt)) else 0 * K, K, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "axial"])  # an axial row has no potential
def test_the_skew_part_of_the_stiffness_is_half_the_torque(name):
    rng = np.random.default_rng(3)
    c = library(rng, "")[name]
    pose, lam = pose_of(rng, c, ""), rng.normal(size=c.size)
    K, torque = c.geometric_stiffness(*pose, lam), c.jacobian(*pose).T @ lam
    skew = np.zeros((12, 12))
    skew[3:6, 3:6], skew[9:, 9:] = -0.5 * hat(torque[3:6]), -0.5 * hat(torque[9:])
    np.testing.assert_allclose(0.5 * (K - K.T), skew, atol=1e-12)


def test_an_axial_row_is_the_derivative_of_its_residual_where_the_bodies_are_aligned():
    rng = np.random.default_rng(5)
    Ri, Q = rotation(rng), rotation(rng)
    c = AxialLock(rotation(rng)[:, 0], Q)
    pose = rng.normal(size=3), Ri, rng.normal(size=3), Ri @ Q
    np.testing.assert_allclose(c.residual(*pose), 0, atol=1e-15)
    np.testing.assert_allclose(c.jacobian(*pose), derivative(c.residual, pose), atol=1e-13)


@pytest.mark.parametrize(
    ("name", "rank"),
    [("universal", 4), ("hinge", 5), ("prismatic", 5), ("rigid", 6), ("cable", 6), ("round cable", 6)],
)
def test_no_row_of_a_closed_joint_is_redundant(name, rank):
    rng = np.random.default_rng(1)
    c = library(rng, "")[name]
    # Closed: the frames coincide; those of a universal up to any turn about its axes.
    Ri = rotation(rng)
    Rj = Ri @ c.frame_i @ c.frame_j.T
    xi = rng.normal(size=3)
    pose = xi, Ri, xi + Ri @ c.si - Rj @ c.sj, Rj
    np.testing.assert_allclose(c.residual(*pose), 0, atol=1e-14)
    assert np.linalg.svd(c.jacobian(*pose), compute_uv=False)[rank - 1] > 0.1


def test_how_many_terms_each_stiffness_needs():
    rng = np.random.default_rng(2)
    c = library(rng, "")
    pose = pose_of(rng, c["ball"], "")
    terms = {n: len(c[n].low_rank(*pose, np.ones(c[n].size))) for n in ("ball", "axial", "dot1", "dot2")}
    assert terms == {"ball": 4, "axial": 2, "dot1": 5, "dot2": 6}


def test_compliances_of_a_cable_are_in_the_order_of_its_rows():
    c = library(np.random.default_rng(0), "")["cable"]
    np.testing.assert_array_equal(c.compliance, [1e-2, 1e-2, 1e-3, 0.1, 0.1, 0.2])
    assert c.size == len(c.compliance)
