"""Scissor lift, Stewart platform and delta robot against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from oracles.one_variable import minimum
from pliant import gallery

from .test_compliance import Linear

# --- scissor lift


def lift_energy(angle, start, stages, arm=0.6):
    """Energy of all springs: pins of 2 N m/rad, the drive of 40 kN/m, the roller of 100 N/m."""
    turns = 4 * stages + 4 * 2 * (stages - 1) + 4  # squares of the turns of crossings, sides, both ends
    slide = arm * (np.cos(angle) - np.cos(start))
    return 2.0 * turns * (angle - start) ** 2 / 2 + (4e4 + 100.0) * slide**2 / 2


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_counts_and_mobility_of_lifts(stages):
    m = gallery.scissor_lift(stages)
    assert (m.body_count, m.joint_count, m.nv) == (2 * stages + 1, 3 * stages + 2, 3 * stages + 4)
    assert m.topology.loops == stages + 1
    assert Linear(m).mobility == 1 == m.nv - 3 * m.topology.loops


@pytest.mark.parametrize("stages", [1, 4])
@pytest.mark.parametrize("force", [-120.0, 300.0])
def test_lift_under_load(stages, force):
    """One degree of freedom: the angle of all arms minimises energy; the platform stays level."""
    start = 0.6
    found = pliant.equilibrium(gallery.scissor_lift(stages), {"platform": (0, 0, force)})
    best = minimum(lambda a: lift_energy(a, start, stages) - force * stages * 0.6 * np.sin(a), 0.05, 1.5)
    pose = found.pose("platform")
    assert pose[2, 3] == pytest.approx(stages * 0.6 * np.sin(best), abs=1e-6)
    assert abs(pose[2, 3] - stages * 0.6 * np.sin(start)) > 1e-3
    np.testing.assert_allclose(pose[:3, :3], np.eye(3), atol=1e-12)
    assert found["foot"] == pytest.approx(start - best, abs=1e-6)  # about y: negative lifts


# --- Stewart platform


def legs(m, pose):
    """Ends of the legs (6, 3) on the ground and on the platform at that pose."""
    at = [m.joint_index(f"foot{i}") for i in range(1, 7)]
    feet = m.parent_frames[at, :3, 3]
    at = [m.joint_index(f"head{i}") for i in range(1, 7)]
    heads = m.child_frames[at, :3, 3]
    return feet, heads @ pose[:3, :3].T + pose[:3, 3]


def leg_jacobian(m, pose):
    """Lengthening of the legs per twist of the platform, world axes, (6, 6)."""
    feet, heads = legs(m, pose)
    ways = (heads - feet) / np.linalg.norm(heads - feet, axis=1)[:, None]
    return np.concatenate([ways, np.cross(heads - pose[:3, 3], ways)], axis=1)


@pytest.mark.parametrize(("stiffness", "rel"), [(0.0, 1e-6), (0.05, 0.03)])
def test_compliance_of_the_stewart_platform(stiffness, rel):
    """J⁻¹ K⁻¹ J⁻ᵀ of the legs alone; flexures at their ends add a few per cent."""
    m = gallery.stewart_platform().with_stiffness(["foot*", "head*"], stiffness)
    J = leg_jacobian(m, m.reference_poses[m.body_index("platform")])
    expected = np.linalg.inv(J) @ np.linalg.inv(J).T / 1e5
    found = pliant.Configuration(m).compliance("platform")
    unit = np.array([0.15] * 3 + [1.0] * 3)
    np.testing.assert_allclose(
        found / np.outer(unit, unit),
        expected / np.outer(unit, unit),
        atol=rel * np.abs(expected / np.outer(unit, unit)).max(),
    )


def test_stewart_platform_moved_far():
    """Legs are as long as inverse kinematics says, and their springs balance the wrench."""
    m = gallery.stewart_platform(stiffness=2e4).with_stiffness(["foot*", "head*"], 0.0)
    wrench = np.array([300.0, -200.0, 100.0, 5.0, 10.0, 30.0])
    found = pliant.equilibrium(m, {"platform": wrench})
    pose, start = found.pose("platform"), m.reference_poses[m.body_index("platform")]
    assert np.linalg.norm(pose[:3, 3] - start[:3, 3]) > 0.01
    longer = [np.linalg.norm(b - a, axis=1) for a, b in (legs(m, start), legs(m, pose))]
    slides = [found[f"leg{i}"] for i in range(1, 7)]
    np.testing.assert_allclose(slides, longer[1] - longer[0], atol=1e-12)
    np.testing.assert_allclose(2e4 * leg_jacobian(m, pose).T @ slides, wrench, rtol=1e-7, atol=1e-6)


# --- delta robot


def motor_angles(platform, base=0.12, end=0.05, arm=0.2, rod=0.42, top=0.8):
    """Inverse kinematics: turns of the motors from 15 degrees below the horizontal, positive downwards."""
    out = []
    for k in range(3):
        about = np.radians(120 * k + 90)
        radial = np.array([np.cos(about), np.sin(about)])
        tangent = np.array([-np.sin(about), np.cos(about)])
        # The rod's lower end from the motor, in the arm's plane (outwards, down) and across it.
        x, y = platform[:2] @ radial + end - base, platform[:2] @ tangent
        z = top - platform[2]
        # arm (cos a, sin a) is `rod` away from (x, z), y across: x cos a + z sin a = c.
        c = (x * x + z * z + y * y + arm**2 - rod**2) / (2 * arm)
        angles = np.arctan2(z, x) + np.array([-1, 1]) * np.arccos(c / np.hypot(x, z))
        out.append(angles[0] - np.radians(15))  # the elbow outside
    return np.array(out)


@pytest.mark.parametrize("force", [(20.0, 0.0, 0.0), (-10.0, 15.0, 12.0), (5.0, 5.0, -30.0)])
def test_delta_robot(force):
    """The platform moves, but never turns; motors stand where inverse kinematics says, and balance the force."""
    m = gallery.delta_robot().with_stiffness(["upper*", "lower*"], 0.0)
    found = pliant.equilibrium(m, {"platform": force})
    pose, start = found.pose("platform"), m.reference_poses[m.body_index("platform"), :3, 3]
    assert np.linalg.norm(pose[:3, 3] - start) > 0.02
    np.testing.assert_allclose(pose[:3, :3], np.eye(3), atol=1e-11)
    np.testing.assert_allclose(motor_angles(start), 0, atol=1e-12)
    np.testing.assert_allclose([found[f"motor{k}"] for k in (1, 2, 3)], motor_angles(pose[:3, 3]), atol=1e-11)
    step = 1e-6 * np.eye(3)
    rates = np.array([(motor_angles(pose[:3, 3] + d) - motor_angles(pose[:3, 3] - d)) / 2e-6 for d in step])
    np.testing.assert_allclose(30.0 * rates @ motor_angles(pose[:3, 3]), force, atol=1e-6)


def test_delta_robot_never_turns_with_springs_either():
    m = gallery.delta_robot()
    for torque in ((1.0, 0.5, 0.0), (0.0, 0.0, 2.0)):
        found = pliant.equilibrium(m, {"platform": (10.0, 5.0, -8.0, *torque)})
        np.testing.assert_allclose(found.pose("platform")[:3, :3], np.eye(3), atol=1e-11)
