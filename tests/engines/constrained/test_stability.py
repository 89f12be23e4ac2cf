"""Chains with loads of up to 1e8 times a link's mass at steps of up to a tenth of a second: nothing blows up."""

import numpy as np
import pytest

import pliant
from oracles import motion

KINDS = ("ball", "hinge", "universal", "bushing")
FORMS = ("folded", "level", "loop")
STEPS = (0.01, 1 / 60, 0.1)
GAIN = 0.05  # of total weight times length: what energy may grow by
APART = 0.02  # of the length


def check(simulation, seconds=10.0):
    # energy is looked at every hundredth of a second at most
    every = max(1, round(0.01 / simulation.timestep))
    scale = motion.weight_times_length(simulation)
    found = motion.run(simulation, seconds, every, scale)
    assert found.gain < GAIN
    assert found.apart * simulation.mechanism.radius < APART * motion.LINKS * motion.LENGTH
    return found


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize("load", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_swings(kind, load, h):
    found = check(motion.swinging(kind, load, h))
    # and it goes on swinging: a load of weight keeps what it has
    assert found.loss < 0.05


@pytest.mark.parametrize("load", [1.0, 1e4, 1e8])
def test_a_chain_swings_like_a_pendulum(load):
    """A heavy load at the end of ten rods has the period of a rod of that length."""
    s = motion.swinging("planar", load, 1 / 60)
    s.velocity = np.zeros(s.mechanism.nv)
    turns = []
    before = s.pose("load")[0, 3]
    for _ in range(600):
        s.step()
        now = s.pose("load")[0, 3]
        if before > 0 >= now or before < 0 <= now:
            turns.append(s.time - s.timestep * now / (now - before))
        before = now
    half = np.diff(turns)
    if load > 1.0:
        # 2 pi sqrt(l/g) times the series of the complete elliptic integral at 45 degrees
        k = np.sin(np.pi / 8) ** 2
        period = 2 * np.pi * np.sqrt(1.0 / motion.G) * (1 + k / 4 + 9 * k**2 / 64 + 25 * k**3 / 256)
        np.testing.assert_allclose(half, period / 2, rtol=0.01)
    assert len(half) > 5


@pytest.mark.parametrize("h", STEPS)
@pytest.mark.parametrize("load", [500.0, 1e6])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["ball", "planar"])
def test_a_slack_cable_snaps_taut(form, load, h, kind):
    check(motion.slack(form, load, h, 0, kind))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", ["universal", "bushing"])
def test_other_slack_cables_snap_taut(kind, seed):
    for h in STEPS:
        check(motion.slack(FORMS[seed], 1e4, h, seed, kind), 5.0)


def test_a_taut_cable_holds_after_the_snap():
    """The load hangs still in the end, a cable's length below its anchor, and pulls with its weight."""
    s = motion.slack("level", 500.0, 1 / 60, kind="ball")
    m = s.mechanism.replace(damping=np.full(s.mechanism.nv, 20.0))
    s = pliant.ConstrainedSimulation(m, 1 / 60)
    s.step(60 * 1200)
    assert np.linalg.norm(s.pose("load")[:3, 3] - (0, 0, -1)) < 0.01
    force = np.linalg.norm(s.joint_forces[0, :3])
    np.testing.assert_allclose(force, motion.G * m.mass.sum(), rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.001, *STEPS])
@pytest.mark.parametrize("load", [1.0, 1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("kind", [*KINDS, "planar"])
def test_all_chains_swing(kind, load, h):
    for seed in range(8 if h > 0.001 else 2):
        check(motion.swinging(kind, load, h, seed))


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.001, *STEPS])
@pytest.mark.parametrize("load", [1.0, 500.0, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["ball", "planar", "universal", "bushing"])
def test_all_slack_cables_snap_taut(kind, form, load, h):
    for seed in range(8 if h > 0.001 else 2):
        check(motion.slack(form, load, h, seed, kind))
