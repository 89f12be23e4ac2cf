"""The gallery and real robots fall for a second at 1/60 s: all finite, loops closed, no energy from nowhere."""

import numpy as np
import pytest

import pliant
from formats import corpus
from oracles import motion
from pliant.mechanism.joints import BALL

HUGE = {
    "molecule": {"links": 500},
    "forest": {"plants": 3},
    "millipede": {"legs": 20, "leg_links": 5, "spine": 40},
    "trampoline_net": {"n": 5},
}
DM, GYM, ERD, SHARED = "dm_control", "gymnasium_robotics", "example-robot-data", "shared"
FILES = [
    (DM, "suite/cheetah.xml"),
    (DM, "suite/dog.xml"),
    (DM, "suite/humanoid.xml"),
    (DM, "third_party/kinova/jaco_arm.xml"),
    (GYM, "envs/assets/adroit_hand/adroit_hammer.xml"),
    (GYM, "envs/assets/fetch/reach.xml"),
    (GYM, "envs/assets/hand/reach.xml"),
    (GYM, "envs/mujoco/assets/ant.xml"),
    (ERD, "robots/a1_description/urdf/a1.urdf"),
    (ERD, "robots/panda_description/urdf/panda.urdf"),
    (ERD, "robots/talos_data/robots/talos_full_v2.urdf"),
    (ERD, "robots/ur_description/urdf/ur5_robot.urdf"),
    (SHARED, "agility_cassie/cassie.xml"),
    (SHARED, "google_barkour_vb/barkour_vb.xml"),
    (SHARED, "robotiq_2f85/2f85.xml"),
    (SHARED, "shadow_hand/right_hand.xml"),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning"),
    pytest.mark.filterwarnings("ignore::pliant.errors.RepairedWarning"),
]


def load(wheel, name):
    root = corpus.folder(wheel)
    if not root.is_dir():
        pytest.skip("the folder shared/models is not beside the project")
    return pliant.load(root / name, allow=[root], repair=name in corpus.EXPECTED[wheel][1])


def beyond(m):
    """Which hinges and slides the reference pose has beyond their limits."""
    x = m.reference[m.dof_coordinate]
    return (m.dof_kind != BALL) & ((x < m.lower - 1e-9) | (x > m.upper + 1e-9))


def inside(m):
    """Coordinates within limits; for loops, the mechanism without those limits that it does not respect."""
    out = beyond(m)
    if m.topology.loops:
        free = m.replace(lower=np.where(out, -np.inf, m.lower), upper=np.where(out, np.inf, m.upper))
        return free, None
    q, span = m.reference.copy(), np.nan_to_num(m.upper - m.lower, posinf=1.0)
    low, high = m.lower + 0.01 * span, m.upper - 0.01 * span
    q[m.dof_coordinate[out]] = np.clip(q[m.dof_coordinate[out]], low[out], high[out])
    return m, q


def fall(m, h=1 / 60):
    m, start = inside(m)
    found = motion.run(pliant.ConstrainedSimulation(m, h, start=start), 1.0)
    assert found.gain < 0.01
    assert found.apart < 1e-4
    return found


@pytest.mark.parametrize("name", pliant.gallery.names())
def test_the_gallery_moves(name):
    fall(pliant.gallery.make(name, **HUGE.get(name, {})))


@pytest.mark.parametrize("kind", ["ball", "universal", "hinge", "bushing"])
def test_cables_of_the_gallery_move(kind):
    fall(pliant.gallery.cable(20, load=1e4, kind=kind))


@pytest.mark.parametrize(("wheel", "name"), FILES)
def test_real_robots_move(wheel, name):
    fall(load(wheel, name))


@pytest.mark.parametrize(
    ("wheel", "name"),
    [
        (DM, "third_party/kinova/jaco_arm.xml"),
        (GYM, "envs/mujoco/assets/ant.xml"),
        (ERD, "robots/a1_description/urdf/a1.urdf"),
    ],
)
def test_real_robots_that_start_beyond_their_limits(wheel, name):
    m = load(wheel, name)
    assert beyond(m).any()
    found = motion.run(pliant.ConstrainedSimulation(m, 1 / 60), 1.0)
    assert found.gain < 0.1


def test_a_gripper_that_runs_into_some_limits_keeps_together():
    m = load(SHARED, "robotiq_2f85/2f85.xml")
    x = m.reference[m.dof_coordinate]
    at = (m.dof_kind != BALL) & ~((m.lower < x) & (x < m.upper))
    m = m.replace(lower=np.where(at, -np.inf, m.lower), upper=np.where(at, np.inf, m.upper))
    assert motion.run(pliant.ConstrainedSimulation(m, 1 / 60), 1.0).apart < 1e-4


def test_fetch_moves_from_beyond_a_limit():
    m = load(GYM, "envs/assets/fetch/reach.xml")
    simulation = pliant.ConstrainedSimulation(m, 1 / 60)
    simulation.step(30)
    assert simulation.effort.unsettled < 15
    assert np.abs(simulation.q - m.reference).max() > 1e-4


@pytest.mark.parametrize("name", ["gripper", "hand", "suspension", "loop"])
def test_the_gallery_comes_to_rest_where_statics_says(name):
    m = pliant.gallery.make(name)
    simulation = pliant.ConstrainedSimulation(m, 1 / 60)
    found = simulation.settle()
    assert found.residual < 1e-8
    expected = pliant.equilibrium(m, gravity=(0, 0, -motion.G))
    assert np.abs(found.poses[:, :3, 3] - expected.poses[:, :3, 3]).max() < 1e-6 * m.radius
