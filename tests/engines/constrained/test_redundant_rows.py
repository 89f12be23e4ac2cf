"""Redundant rows of loops and couplings: chosen by geometry, so that nothing hangs on rounding."""

import mujoco
import numpy as np
import pytest

import pliant
from formats import corpus
from oracles import dense, linkages, motion, newton
from oracles.random_mechanisms import unit
from pliant.mechanism import elimination_kernels as kernels
from pliant.mechanism.joints import BALL

pytestmark = [
    pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning"),
    pytest.mark.filterwarnings("ignore::pliant.errors.RepairedWarning"),
]
G = np.array([0.0, 0.0, -9.81])
FILES = {
    "cassie": "models/agility_cassie/cassie.xml",
    "2f85": "models/robotiq_2f85/2f85.xml",
    "2f85 v4": "more-models/robotiq_2f85_v4/2f85.xml",
    "softfoot": "more-models/iit_softfoot/softfoot.xml",
}
FETCH = {
    f"fetch {task}": f"envs/assets/fetch/{task}.xml" for task in ("reach", "push", "slide", "pick_and_place")
}


def file_of(name):
    if name in FETCH:
        return corpus.folder("gymnasium_robotics") / FETCH[name]
    file = corpus.folder("shared").parent / FILES[name]
    if not file.is_file():
        pytest.skip("the models of the folder shared are not beside the project")
    return file


def load(name, keyframe=None):
    file = file_of(name)
    return pliant.load(file, allow=[file.parents[1]], keyframe=keyframe, repair=name in FETCH)


def planar(seed, cells=3):
    """A ladder turned anyhow in space, of random masses, springs and proportions, with a coupling said twice."""
    rng = np.random.default_rng(seed)
    axis, along = unit(rng, 3), unit(rng, 3)
    up = np.cross(axis, along)
    up /= np.linalg.norm(up)
    along = np.cross(up, axis)
    b = pliant.Builder(f"planar{seed}")
    feet = [np.zeros(3), rng.uniform(0.3, 0.6) * along]
    below = "world"
    for i in range(cells):
        heads = [foot + rng.uniform(0.2, 0.5) * up + rng.uniform(-0.2, 0.2) * along for foot in feet]
        b.body(f"rung{i}", mass=rng.uniform(0.2, 2), inertia=(0.01,) * 3, position=sum(heads) / 2)
        for side, foot, head in zip("lr", feet, heads, strict=True):
            springs = {"stiffness": rng.uniform(0, 20), "damping": 0.1}
            b.body(f"{side}{i}", mass=rng.uniform(0.2, 2), inertia=(0.01,) * 3, position=(foot + head) / 2)
            b.hinge(f"{side}{i}_foot", below, f"{side}{i}", anchor=foot, axis=axis, **springs)
            b.hinge(f"{side}{i}_head", f"{side}{i}", f"rung{i}", anchor=head, axis=axis)
        feet, below = heads, f"rung{i}"
    if seed % 2:
        b.couple({"l0_foot": 1.0, "l1_foot": -0.5})
        b.couple({"l0_foot": -2e-3, "l1_foot": 1e-3})
    return b.build()


def stiffened(m, factor=1e9):
    """Every other spring `factor` times as stiff."""
    return m.replace(stiffness=m.stiffness * np.where(np.arange(m.nv) % 2, factor, 1.0))


def scaled(m, ratio, seed):
    """Masses and rotor inertias spread over the ratio, no springs, no dampers."""
    rng = np.random.default_rng(seed)
    factor = ratio ** rng.uniform(-0.5, 0.5, m.body_count)
    armature = 1e-3 * ratio ** rng.uniform(-0.5, 0.5, m.nv)
    free = m.replace(stiffness=np.zeros(m.nv), damping=np.zeros(m.nv), armature=armature)
    return free.replace(mass=m.mass * factor, inertia=m.inertia * factor[:, None, None])


SMALL = {
    "bennett": linkages.bennett,
    "sarrus": linkages.sarrus,
    "parallelogram": lambda: linkages.parallelogram(0.5),
    "flat parallelogram": linkages.parallelogram,
    "toggle": linkages.toggle,
    "spinning rod": linkages.spinning_rod,
    "firefighters": pliant.gallery.firefighters,
    "suspension": pliant.gallery.suspension,
    "ladder": lambda: pliant.gallery.ladder(4),
    "rails": lambda: pliant.gallery.ladder(4, "rails"),
    "stiff ladder": lambda: stiffened(pliant.gallery.ladder(4)),
    "planar0": lambda: planar(0),
    "planar1": lambda: planar(1),
    "heavy planar": lambda: scaled(planar(2), 1e8, 2),
}


# --- the choice of rows


def choose(rows, couplings=0, tendons=0, gap=0.0, before=()):
    """Rows kept among those of a matrix: one hinge on the world per column. Couplings have length 1."""
    m, nv = rows.shape
    hard = m - tendons
    rows = rows.copy()
    rows[hard - couplings : hard] /= np.linalg.norm(rows[hard - couplings : hard], axis=1)[:, None]
    b = pliant.Builder("star")
    for d in range(nv):
        b.body(f"b{d}", mass=1.0, inertia=(1, 1, 1))
        b.hinge(f"j{d}", "world", f"b{d}", anchor=(0, 0, 0), axis=(0, 0, 1))
    for r in range(m):
        b.couple({f"j{d}": 1.0 for d in range(nv)}, name=f"c{r}")
    star = b.build()
    plan = star.elimination
    tree = plan.tree._replace(entry_value=np.ascontiguousarray(rows.T).ravel())
    fronts, _ = plan.allocate()
    fronts.kept[:] = 0
    fronts.kept[list(before)] = 1
    soft = np.zeros(m, dtype=np.int64)
    soft[hard:] = 1
    tolerance = min(max(10 * gap, 1e-9), 1e-3)
    faithful = min(tolerance, 1e-6)
    shape = np.zeros((nv, 3)), np.zeros((nv, 6)), np.ones(nv)
    kernels.choose_rows(tree, fronts, *shape, tolerance, faithful, hard, soft)
    return np.flatnonzero(fronts.kept).tolist()


def rank(rows):
    return np.linalg.matrix_rank(rows, tol=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_chosen_rows_are_independent_and_span_all(seed):
    rng = np.random.default_rng(seed)
    m, nv, independent = rng.integers(4, 40), rng.integers(4, 30), rng.integers(1, 12)
    rows = rng.normal(size=(m, independent)) @ rng.normal(size=(independent, nv))
    rows[rng.random(m) < 0.3] = 0.0
    rows += 1e-16 * rng.normal(size=rows.shape)
    kept = choose(rows)
    assert kept == sorted(set(kept))
    assert len(kept) == rank(rows) == rank(rows[kept])
    # not only independent, but nearly as well as the best choice would be
    least = np.linalg.svd(rows, compute_uv=False)[len(kept) - 1] if kept else 0.0
    assert not kept or np.linalg.svd(rows[kept], compute_uv=False)[-1] > 1e-3 * least


def test_equally_good_rows_are_taken_in_their_order():
    rows = np.repeat(np.eye(4), 3, axis=0)
    for seed in range(50):
        noise = 1e-13 * np.random.default_rng(seed).normal(size=rows.shape)
        assert choose(rows + noise) == [0, 3, 6, 9]


def test_rows_of_rounding_noise_are_redundant():
    rows = np.array([[1.0, 0, 0], [1e-17, -2e-17, 1e-17], [0, 1, 0], [0, 0, 1e-5]])
    assert choose(rows) == [0, 2, 3]
    assert choose(rows, gap=1e-5) == [0, 2]


def test_couplings_count_whatever_their_scale_and_tendons_always():
    rows = np.array([[1.0, 0, 0], [0, 1e-12, 0], [0, -3e-12, 0], [0, 1, 0], [0, 1, 0]])
    assert choose(rows, couplings=2, tendons=2) == [0, 1, 3, 4]


def test_a_row_with_a_small_share_of_its_own_is_kept_behind_a_better_one():
    rows = np.array([[1.0, 0, 0], [1.0, 1e-6, 0], [0, 1.0, 0]])
    assert choose(rows) == [0, 2]


def test_rows_kept_before_stay_while_loops_are_open():
    rows = np.array([[1.0, 0, 0], [1.0, 1e-4, 0], [0, 0, 1.0]])
    assert choose(rows, gap=1e-3) == [0, 2]
    assert choose(rows, gap=1e-3, before=(0, 1)) == [0, 1, 2]
    assert choose(rows, gap=1e-3, before=(1,)) == [1, 2]


# --- rounding decides nothing


def perturbed(m, h, trials, steps=1):
    """Largest change of poses (radii) and velocities (of what gravity gives) if state and gravity change by 1e-13."""
    rng = np.random.default_rng(0)
    nq = len(m.reference)
    s = pliant.ConstrainedSimulation(m, h, gravity=G)
    s.step(steps)
    poses, velocity, worst = s.poses.copy(), s.velocity, np.zeros(2)
    unit_ = max(9.81 * h / m.radius, np.abs(velocity).max())
    for _ in range(trials):
        s = pliant.ConstrainedSimulation(m, h, gravity=G * (1 + 1e-13 * rng.normal()))
        if h > 0.01:  # what is open is closed within a step, at a velocity of 1e-13 / h
            s._stepper.q[:] += 1e-13 * rng.normal(size=nq) * np.abs(s._stepper.q)
        s.step(steps)
        worst = np.maximum(worst, np.abs(s.poses - poses).max() / m.radius)
        worst[1] = max(worst[1], np.abs(s.velocity - velocity).max() / unit_)
    return worst


@pytest.mark.parametrize("name", SMALL)
def test_small_linkages_do_not_feel_a_change_of_the_last_digits(name):
    poses, velocity = perturbed(SMALL[name](), 1 / 60, 64)
    assert poses < 1e-11
    assert velocity < 1e-9


@pytest.mark.parametrize("h", [1 / 60, 1e-3])
@pytest.mark.parametrize("name", FILES)
def test_real_robots_do_not_feel_a_change_of_the_last_digits(name, h):
    poses, velocity = perturbed(load(name), h, 24)
    assert poses < 1e-11
    assert velocity < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("h", [1 / 60, 1e-3])
@pytest.mark.parametrize("name", FILES)
def test_real_robots_hardly_feel_it_after_many_steps(name, h):
    poses, _ = perturbed(load(name), h, 60, steps=60)
    assert poses < 1e-9


def fifth_of_a_second(m, h, gravity):
    """Poses after 0.2 s, loops closed all the way."""
    s = pliant.ConstrainedSimulation(m, h, gravity=gravity)
    for _ in range(4):
        s.step(round(0.05 / h))
        assert s.violation < 1e-6 * m.radius
    return s.poses.copy()


def never_by_luck(name, h, trials):
    """From the file's pose and each keyframe: the same motion if gravity changes by 1e-13, no loop opens."""
    keyframes = mujoco.MjModel.from_xml_path(str(file_of(name))).nkey
    rng = np.random.default_rng(0)
    for keyframe in (None, *range(keyframes)):
        m = load(name, keyframe)
        poses = fifth_of_a_second(m, h, G)
        for _ in range(trials):
            other = fifth_of_a_second(m, h, G * (1 + 1e-13 * rng.normal()))
            assert np.abs(other - poses).max() < 1e-6 * m.radius


@pytest.mark.parametrize("h", [1 / 60, 1e-3])
@pytest.mark.parametrize("name", [*FILES, "fetch reach"])
def test_real_robots_move_alike_for_a_fifth_of_a_second(name, h):
    never_by_luck(name, h, 3)


@pytest.mark.slow
@pytest.mark.parametrize("h", [1 / 60, 1 / 240, 1e-3, 1e-5])
@pytest.mark.parametrize("name", [*FILES, *FETCH])
def test_real_robots_always_move_alike(name, h):
    never_by_luck(name, h, 20)


def small_never_by_luck(name, h, trials):
    """A small linkage: passive joints, symmetric poses, links in line."""
    m, rng = SMALL[name](), np.random.default_rng(0)
    poses = fifth_of_a_second(m, h, G)
    for _ in range(trials):
        other = fifth_of_a_second(m, h, G * (1 + 1e-13 * rng.normal(size=3)))
        assert np.abs(other - poses).max() < 1e-6 * m.radius


@pytest.mark.parametrize("h", [1 / 60, 1e-3])
@pytest.mark.parametrize("name", SMALL)
def test_small_linkages_move_alike_for_a_fifth_of_a_second(name, h):
    small_never_by_luck(name, h, 2)


@pytest.mark.slow
@pytest.mark.parametrize("h", [1 / 60, 1 / 240, 1e-3, 1e-5])
@pytest.mark.parametrize("name", SMALL)
def test_small_linkages_always_move_alike(name, h):
    small_never_by_luck(name, h, 20)


@pytest.mark.parametrize("h", [1 / 60, 1e-3])
def test_a_parallelogram_swings_through_its_flat_pose(h):
    swing_through_the_flat_pose(h, (0.0, 1e-13, -1e-13))


@pytest.mark.slow
@pytest.mark.parametrize("h", [1 / 60, 1 / 240, 1e-3, 1e-5])
def test_a_parallelogram_always_swings_through_its_flat_pose(h):
    swing_through_the_flat_pose(h, np.r_[0.0, 1e-13 * np.random.default_rng(0).normal(size=20)])


def swing_through_the_flat_pose(h, changes):
    """Where rows become redundant in motion: links in line, from either side, loops closed and energy kept."""
    ends = []
    for change in changes:
        m = linkages.parallelogram(0.4 + change)
        s = pliant.ConstrainedSimulation(m, h, gravity=(-9.81, 0.0, 0.0))
        had, height = s.energy.total, []
        for _ in range(round(1.0 / h)):
            s.step()
            height.append(s.pose("left")[2, 3])
            assert s.violation < 1e-7
        assert min(height) < -0.05  # it went through the pose in line
        assert max(height) > 0.05
        assert s.energy.total == pytest.approx(had, abs=0.01 * 9.81)
        ends.append(s.poses.copy())
    assert max(np.abs(end - ends[0]).max() for end in ends) < 1e-6


def test_forces_of_redundant_loops_do_not_hang_on_rounding():
    m = planar(0)
    s = pliant.ConstrainedSimulation(m, 1 / 60)
    s.step()
    before = s.joint_forces
    rng = np.random.default_rng(0)
    for _ in range(30):
        t = pliant.ConstrainedSimulation(m, 1 / 60, gravity=G * (1 + 1e-13 * rng.normal()))
        t.step()
        assert np.abs(t.joint_forces - before).max() < 1e-9 * np.abs(before).max()


# --- motion


def accelerations(m, gravity):
    """From rest, by Gauss' principle: of all that loops and couplings allow, nearest to free fall."""
    q = m.reference
    turned = dense.body_poses(m, q)[:, :3, :3]
    J = dense.gradient(lambda p: newton.body_coordinates(m, p, turned), m, q, 1e-3)
    _, size, axes = np.linalg.svd(newton.constraint_jacobian(m, q))
    allowed = axes[(size > 1e-8 * size[0]).sum() :].T
    rows, right = [np.sqrt(m.armature)[:, None] * allowed], [np.zeros(m.nv)]
    for b in range(m.body_count):
        moments, frame = np.linalg.eigh(m.inertia[b])
        root = np.sqrt(np.maximum(moments, 0))[:, None] * (turned[b] @ frame).T
        rows += [np.sqrt(m.mass[b]) * J[:, b, :3].T @ allowed, root @ J[:, b, 3:].T @ allowed]
        right += [np.sqrt(m.mass[b]) * gravity, np.zeros(3)]
    return allowed @ np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=1e-15)[0]


@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e9])
@pytest.mark.parametrize(
    "name", [n for n in SMALL if n not in ("stiff ladder", "heavy planar", "suspension")]
)
def test_redundant_loops_accelerate_by_gauss(name, ratio):
    gravity, h = np.array([3.0, 1.0, -9.81]), 1e-5
    for seed in range(2):
        m = scaled(SMALL[name](), ratio, seed)
        s = pliant.ConstrainedSimulation(m, h, gravity=gravity, tolerance=1e-12)
        s.step()
        expected = accelerations(m, gravity)
        assert np.abs(s.velocity / h - expected).max() < 3e-5 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["bennett", "sarrus", "toggle", "planar0", "planar1"])
def test_long_steps_move_overconstrained_linkages_as_short_ones_do(name):
    m = SMALL[name]()
    far, near = (pliant.ConstrainedSimulation(m, h) for h in (1 / 120, 1 / 1200))
    found = motion.run(far, 0.5)
    near.step(600)
    assert found.gain < 1e-4
    assert found.apart < 1e-7
    assert far.effort.unsettled == 0
    moved = np.abs(near.poses - pliant.ConstrainedSimulation(m, 1.0).poses).max()
    assert moved > 0.003
    assert np.abs(far.poses - near.poses).max() < 0.02 * moved


@pytest.mark.parametrize(("name", "h"), [("2f85 v4", 1 / 60), ("2f85 v4", 1e-3), ("softfoot", 1 / 60)])
def test_real_loops_come_to_rest_where_statics_says(name, h):
    m = load(name)
    s = pliant.ConstrainedSimulation(m, h)
    found = motion.run(s, 4.0, every=4)
    assert found.gain < 1e-9
    assert found.apart < 1e-7
    assert s.effort.unsettled == 0
    expected = pliant.equilibrium(m, gravity=G)
    assert np.abs(s.poses - expected.poses)[:, :3, 3].max() < 1e-8 * m.radius


def hung(name):
    """Cassie with its pelvis held, or a gripper."""
    m = load(name)
    return m.with_fixed_base() if name == "cassie" else m


# Cassie's hips yaw by a factor of e in 26 s: 1 N m s/rad of damping beside 0.04 N m/rad.
@pytest.mark.parametrize(("name", "seconds"), [("2f85", 20.0), ("cassie", 500.0)])
def test_real_robots_without_stops_come_to_rest_where_statics_says(name, seconds):
    m = hung(name)
    endless = np.full(m.nv, np.inf)
    m = m.replace(lower=-endless, upper=endless, damping=np.maximum(m.damping, 0.002))
    s = pliant.ConstrainedSimulation(m, 1 / 60, gravity=G)
    s.step(round(60 * seconds))
    expected = pliant.equilibrium(m, gravity=G)
    assert s.violation < 1e-7 * m.radius
    assert np.abs(s.poses - expected.poses)[:, :3, 3].max() < 1e-8 * m.radius


@pytest.mark.parametrize(("name", "seconds", "stopped"), [("2f85", 20.0, 2), ("cassie", 500.0, 4)])
def test_real_robots_come_to_rest_on_their_stops_where_statics_says(name, seconds, stopped):
    """Stops of a simulation are hard, those of statics yield: here joints on stops are held there by stiff springs."""
    m = hung(name)
    s = pliant.ConstrainedSimulation(m, 1 / 60, gravity=G)
    s.step(round(60 * seconds))
    reference, x = m.reference[m.dof_coordinate], s.q[m.dof_coordinate]
    low, high = np.minimum(m.lower, reference), np.maximum(m.upper, reference)  # poses of files may be beyond
    on = np.flatnonzero(((x < low) | (x > high)) & (m.dof_kind != BALL))
    assert len(on) == stopped
    place = np.where(x > high, high, low)
    assert np.abs(x - place)[on].max() < 1e-5
    rest, stiffness = m.rest.copy(), m.stiffness.copy()
    rest[m.dof_coordinate[on]], stiffness[on] = place[on], 1e7
    found = pliant.equilibrium(m.replace(rest=rest, stiffness=stiffness), gravity=G, start=s.q)
    pushed = found.q[m.dof_coordinate] - place
    assert (pushed[on] * np.where(x > high, 1.0, -1.0)[on] > 0).all()  # stops push, and do not pull
    assert np.abs(s.poses - found.poses)[:, :3, 3].max() < 1e-4 * m.radius


def test_a_rod_that_spins_about_itself_comes_to_rest_where_statics_says():
    """Its spin meets neither spring nor damper: the equilibrium is neutral, and the rod may go on spinning."""
    m = SMALL["spinning rod"]()
    s = pliant.ConstrainedSimulation(m, 1 / 60, gravity=G)
    s.step(1800)
    expected = pliant.equilibrium(m, gravity=G)
    assert expected.stability == "neutral"
    assert s.violation < 1e-7 * m.radius
    assert np.abs(s.poses - expected.poses)[:, :3, 3].max() < 1e-8 * m.radius


@pytest.mark.parametrize("name", ["2f85 v4", "softfoot"])
def test_real_loops_move_as_in_mujoco(name):
    m = load(name)
    model = mujoco.MjModel.from_xml_string(m.to_mjcf())
    model.opt.gravity[:], model.opt.timestep = G, 1e-3
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.iterations, model.opt.tolerance = 100, 1e-14
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.eq_solref[:], model.eq_solimp[:, :2] = [2.1e-3, 1], 0.9999
    data = mujoco.MjData(model)
    s = pliant.ConstrainedSimulation(m, 1e-3)
    start = s.poses[:, :3, 3].copy()
    mujoco.mj_step(model, data, 500)
    mujoco.mj_kinematics(model, data)
    s.step(500)
    there = np.array([data.body(b).xpos for b in m.body_names])
    moved = np.abs(there - start).max()
    assert moved > 5e-4 * m.radius
    assert np.abs(s.poses[:, :3, 3] - there).max() < 2e-3 * moved


# --- contact


def dropped_on(m, at, gravity, steps):
    """A ball falls on a mechanism: its height, and how far loops are open."""
    world = pliant.World(1 / 120, gravity=gravity)
    world.add(m, "linkage")
    world.add_body("ball", pliant.shapes.sphere(0.03), mass=0.2, position=at)
    world.step(steps)
    return world["ball"].position, world["linkage"].violation


@pytest.mark.parametrize("name", ["2f85 v4", "ladder"])
def test_contacts_on_redundant_loops_do_not_hang_on_rounding(name):
    m = load(name) if name in FILES else SMALL[name]()
    if name in FILES:
        poses = pliant.ConstrainedSimulation(m, 0.01).poses
        at = poses[m.body_index("right_pad"), :3, 3] + (0, 0, 0.2)
    else:
        at = np.array([0.0, 0.0, 8.2])
    rng = np.random.default_rng(0)
    place, apart = dropped_on(m, at, G, 30)
    assert apart < 1e-6 * m.radius
    free = at[2] - 9.81 / 2 * (30 / 120) ** 2
    assert place[2] > free + 0.01  # it was held up
    for _ in range(10):
        other, _ = dropped_on(m, at, G * (1 + 1e-13 * rng.normal()), 30)
        assert np.abs(other - place).max() < 1e-7
