"""Joint limits that stiffen: the law itself, its derivatives, closed forms, minima of energy, real robots."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

import pliant
from formats import corpus
from oracles import dense
from oracles.random_mechanisms import KINDS, random_mechanism, random_q
from pliant.errors import ConvergenceError
from pliant.mechanism.joints import BALL, SLIDE
from pliant.spatial import quat_log
from pliant.statics import within_limits
from pliant.statics.limit_springs import make_stops
from pliant.statics.loads import collect_loads
from pliant.statics.tangent import Tangent

INERTIA = (0.01, 0.01, 0.01)
G = 9.81


def with_limits(m, below, above):
    """Limits that far from the reference pose; for balls from no rotation at all."""
    reference = np.where(m.dof_kind == BALL, 0.0, m.reference[m.dof_coordinate])
    return m.replace(lower=reference - below, upper=reference + above)


def stop_force(x, limit, margin, stiffness):
    """The force of an upper stop, as docs/statics.md has it."""
    over = x - (limit - margin)
    if over <= 0:
        return 0.0
    return stiffness * over**2 / (2 * margin) if over < margin else stiffness * (over - margin / 2)


def excess(c):
    """How far joints are beyond their limits, in ranges; those that are within at the reference pose, no balls."""
    m = c.mechanism
    x, reference = c.q[m.dof_coordinate], m.reference[m.dof_coordinate]
    counted = (m.dof_kind != BALL) & (m.lower <= reference) & (reference <= m.upper) & (m.lower < m.upper)
    counted &= np.isfinite(m.upper - m.lower)
    over = np.maximum(x - m.upper, m.lower - x)[counted] / (m.upper - m.lower)[counted]
    return float(over.max(initial=-np.inf))


def single(kind, limits, stiffness=10.0, reference=0.0):
    """One body on one joint about or along y."""
    b = pliant.Builder(kind)
    b.body("tip", mass=0.1, inertia=INERTIA, position=(0, 0, 1))
    options = {"stiffness": stiffness, "limits": limits}
    if kind == "hinge":
        b.hinge("j", "world", "tip", anchor=(0, 0, 0), axis=(0, 1, 0), reference=reference, **options)
    elif kind == "slide":
        b.slide("j", "world", "tip", axis=(0, 1, 0), reference=reference, **options)
    else:
        b.ball("j", "world", "tip", anchor=(0, 0, 1), **options)
    return b.build()


@pytest.mark.parametrize("kind", ["hinge", "slide", "ball"])
@pytest.mark.parametrize("load", [1.0, 4.6, -4.6, 20.0, 120.0, -300.0, 2000.0])
def test_closed_form(kind, load):
    m = single(kind, (-0.5, 0.5))
    wrench = {"tip": (0, load, 0) if kind == "slide" else {"torque": (0, load, 0)}}
    c = pliant.equilibrium(m, wrench, limits=True)
    # weight: 10 times 0.1 kg, 1 m its radius, over a margin of 0.05: less than a thousand times the spring
    stop = (0.5, 0.05, 1e4)
    expected = brentq(lambda x: 10 * x + stop_force(x, *stop) - abs(load), 0, 2, xtol=1e-15)
    found = quat_log(c.q)[1] if kind == "ball" else c["j"]
    assert found == pytest.approx(np.sign(load) * expected, abs=1e-11)
    assert c.stability == "stable"
    assert c.limits
    assert (c.beyond_limits == ()) == (abs(load) < 250)


@pytest.mark.parametrize("load", [4.9, 20.0, -20.0, 120.0])
def test_sharp_stops_hold_at_the_limit(load):
    """Of a twenty-fifth of the usual margin: closed form, and within some thousandths of the range of a hard stop."""
    m = single("hinge", (-0.5, 0.5))
    c = within_limits(m, {"tip": {"torque": (0, load, 0)}})
    expected = brentq(lambda x: 10 * x + stop_force(x, 0.5, 0.002, 1e4) - abs(load), 0, 2, xtol=1e-15)
    assert abs(c["j"]) == pytest.approx(expected, abs=1e-11)
    assert abs(c["j"]) == pytest.approx(min(abs(load) / 10, 0.5), abs=0.012)
    if abs(load) > 5:
        assert c.at_stops == ("j",)
        soft = pliant.equilibrium(m, {"tip": {"torque": (0, load, 0)}}, limits=True)
        assert abs(abs(c["j"]) - 0.5) < abs(abs(soft["j"]) - 0.5)
    else:
        assert not c.limits  # none is passed


def test_a_limit_nearby_does_not_hold_what_stays_inside():
    """The reference pose is 0.0175 from a limit of a wide range; half the way there is free."""
    m = single("hinge", (-0.0175, 3.7))
    for torque in (-0.05, -0.087):
        c = pliant.equilibrium(m, {"tip": {"torque": (0, torque, 0)}}, limits=True)
        assert c["j"] == pytest.approx(torque / 10, rel=1e-12)
        assert c.at_stops == ()
    assert pliant.equilibrium(m, {"tip": {"torque": (0, -1.0, 0)}}, limits=True)["j"] == pytest.approx(
        -0.0175, abs=0.009
    )
    hard = within_limits(m, {"tip": {"torque": (0, -1.0, 0)}})
    assert hard["j"] == pytest.approx(-0.0175, abs=4e-3)


def test_limits_that_are_come_back_to_are_not_passed():
    """Begins 0.2 beyond: back, no limit is passed and none holds; farther out, the stop holds it where it began."""
    m = single("hinge", (0.2, 1.0))
    back = within_limits(m, {"tip": {"torque": (0, 1, 0)}})
    assert (back.beyond_limits, back.passed_limits, back.limits) == (("j",), (), False)
    assert back["j"] == pytest.approx(0.1, rel=1e-12)
    out = {"tip": {"torque": (0, -1, 0)}}
    assert pliant.equilibrium(m, out).passed_limits == ("j",)
    assert within_limits(m, out)["j"] == pytest.approx(0, abs=2e-3)
    b = single("ball", (-0.5, 0.5))
    assert pliant.equilibrium(b, {"tip": {"torque": (0, 8, 0)}}).passed_limits != ()
    assert pliant.equilibrium(b, {"tip": {"torque": (0, 4, 0)}}).passed_limits == ()


def test_passed_without():
    m = single("hinge", (-0.5, 0.5))
    free = pliant.equilibrium(m, {"tip": {"torque": (0, 20, 0)}})
    assert not free.limits
    assert free["j"] == pytest.approx(2.0, rel=1e-12)
    assert free.beyond_limits == ("j",)


def test_what_a_stop_is_made_of():
    b = pliant.Builder("many")
    limits = [(-0.3, 0.5), (0.0, 40.0), (-np.inf, 0.2), (0.1, 0.1), (-1.0, -0.2), (-np.inf, np.inf)]
    for i, each in enumerate(limits):
        b.body(f"b{i}", mass=2.0, inertia=INERTIA, position=(0, 0, i + 1))
        parent = f"b{i - 1}" if i else "world"
        b.hinge(f"j{i}", parent, f"b{i}", anchor=(0, 0, i), axis=(0, 1, 0), limits=each)
    m = b.build()
    stops = make_stops(m)
    assert stops.margin == pytest.approx([0.04, 0.1, 0.1, 0.001, 0.04, 0.1])
    assert stops.high == pytest.approx([0.46, 39.9, 0.1, 0.099, 0.0, np.inf])  # the fifth is beyond at rest
    assert stops.low == pytest.approx([-0.26, 0.0, -np.inf, 0.0, -0.96, -np.inf])
    # no springs: ten times the weight, at the radius, when the limit is reached
    assert stops.stiffness * stops.margin / 2 == pytest.approx(10 * 12 * G * m.radius)
    stiff = make_stops(m.with_stiffness("j0", 1e6).with_stiffness("j1", 2e6))
    assert stiff.stiffness[:3] == pytest.approx([1e9, 2e9, 1e9])


@given(seed=st.integers(0, 10**6), bodies=st.integers(1, 6), loops=st.integers(0, 1))
def test_forces_are_the_gradient_of_energy_and_the_tangent_that_of_forces(seed, bodies, loops):
    m = random_mechanism(seed, bodies, loops, kinds=KINDS[:8], reference=True)
    rng = np.random.default_rng(seed)
    m = with_limits(m, rng.uniform(0, 0.5, m.nv), rng.uniform(0, 0.5, m.nv))
    q = random_q(m, seed, 0.2)
    loads = collect_loads(m, {}, None, limits=True)
    stops = loads.stops
    # Differences across a corner of the stiffness say nothing, nor at balls near half a turn from rest.
    x = q[m.dof_coordinate]
    for p in m.ball_primitives:
        start = m.primitive_coordinate[p]
        x[m.primitive_dof[p] : m.primitive_dof[p] + 3] = np.linalg.norm(quat_log(q[start : start + 4]))
    over = np.array(
        [x - stops.high, x - stops.high - stops.margin, x - stops.low, stops.low - x - stops.margin]
    )
    assume(np.abs(over).min() > 1e-3)
    t = Tangent(m, q, loads)
    step = 1e-4
    gradient = dense.gradient(lambda p: Tangent(m, p, loads).energy, m, q, step)
    assert np.abs(t.residual - gradient).max() < 1e-7 * max(1.0, np.abs(gradient).max())
    if not loops:  # open ones would hold the joints
        t.factor()
        stiffness = dense.gradient(lambda p: Tangent(m, p, loads).residual, m, q, step).T
        product = t.solve(np.eye(m.nv), refine=False)[0].T @ stiffness
        assert np.abs(product - np.eye(m.nv)).max() < 1e-9 * max(1.0, np.linalg.cond(stiffness))
    free = Tangent(m, q, collect_loads(m, {}, None))
    assert t.energy >= free.energy
    assert np.abs(t.residual - free.residual).max() > 0 or not ((x > stops.high) | (x < stops.low)).any()


@given(seed=st.integers(0, 10**6))
def test_the_reference_pose_stays_in_balance(seed):
    """Also where it is near a limit or beyond it; and nothing is stiffer there."""
    m = random_mechanism(seed, 4, kinds=KINDS[:8], reference=True)
    rng = np.random.default_rng(seed)
    m = with_limits(m, rng.uniform(-0.1, 0.3, m.nv), rng.uniform(0.1, 0.3, m.nv))
    c = pliant.equilibrium(m, limits=True)
    assert c.q == pytest.approx(m.reference, abs=1e-14)
    compliance = pliant.Configuration(m).compliance("b3")
    assert c.compliance("b3") == pytest.approx(compliance, abs=1e-9 * np.abs(compliance).max())


def chain(links=4, limits=(-0.3, 0.25)):
    b = pliant.Builder("chain")
    for i in range(links):
        b.body(f"b{i}", mass=0.5, inertia=INERTIA, position=(0.3 * (i + 1), 0, 0))
        b.hinge(
            f"j{i}",
            f"b{i - 1}" if i else "world",
            f"b{i}",
            anchor=(0.3 * i, 0, 0),
            axis=((0, 1, 0), (0, 0, 1))[i % 2],
            stiffness=20.0 + 5 * i,
            rest=0.1,
            limits=limits,
        )
    return b.build()


@pytest.mark.parametrize("force", [(0, 5, -10), (0, -40, -90), (-60, 20, 30)])
def test_a_chain_at_the_minimum_of_its_energy(force):
    """Energy written down again, and minimised without derivatives of ours."""
    m, gravity, margin = chain(), np.array([0, 0, -G]), 0.05 * 0.55
    stiffness = np.maximum(1000 * np.maximum(m.stiffness, 25.0), 2 * 10 * 2.0 * G * m.radius / margin)

    def stop_energy(q):
        over = np.maximum(np.maximum(q - 0.25 + margin, -0.3 + margin - q), 0)
        rising = np.minimum(over, margin)
        past = over - rising
        return float(stiffness @ (rising**3 / (6 * margin) + past * margin / 2 + past**2 / 2))

    def energy(q):
        return dense.energy(m, q, {"b3": np.array(force, dtype=float)}, gravity) + stop_energy(q)

    c = pliant.equilibrium(m, {"b3": force}, gravity=gravity, limits=True)
    assert c.stability == "stable"
    gradient = dense.gradient(energy, m, c.q, 1e-4)
    assert np.abs(gradient).max() < 1e-6 * np.linalg.norm(force)
    found = minimize(energy, m.reference, method="BFGS", options={"gtol": 1e-4})
    assert found.x == pytest.approx(c.q, abs=1e-5)
    assert np.abs(found.x).max() > 0.2


def test_compliance_and_frequencies_know_the_stop():
    m = chain()
    load = np.array([0.0, 20.0, -40.0])
    c = pliant.equilibrium(m, {"b3": load}, limits=True)
    compliance = c.compliance("b3")
    turn, h = c.pose("b3")[:3, :3], 1e-3
    for axis in np.eye(3):
        ends = [
            pliant.equilibrium(m, {"b3": load + s * h * axis}, limits=True, start=c).pose("b3")[:3, 3]
            for s in (-1, 1)
        ]
        assert turn.T @ (ends[1] - ends[0]) / (2 * h) == pytest.approx(
            compliance[:3, :3] @ turn.T @ axis, abs=1e-6 * np.abs(compliance[:3, :3]).max()
        )
    free = pliant.equilibrium(m, {"b3": load})
    assert c.frequencies(1)[0] > 3 * pliant.Configuration(m, free.q).frequencies(1)[0]


def test_start_beyond_a_limit_ends_where_a_cold_one_does():
    m = chain()
    load = {"b3": (0, 30, -80)}
    far = pliant.equilibrium(m, load)
    assert len(far.beyond_limits) >= 2
    cold, warm = pliant.equilibrium(m, load, limits=True), pliant.equilibrium(m, load, limits=True, start=far)
    assert warm.q == pytest.approx(cold.q, abs=1e-9)
    assert cold.beyond_limits == ()


@pytest.mark.parametrize("name", ["helix", "y", "loop", "ladder", "hand", "hexapod"])
def test_gallery_mechanisms_keep_limits_under_large_loads(name):
    """0.1 rad and a hundredth of the radius to either side."""
    m = pliant.gallery.make(name)
    m = m.with_fixed_base() if name == "hexapod" else m
    size = np.where(m.dof_kind == SLIDE, 0.01 * m.radius, 0.1)
    m = with_limits(m, size, size)
    body = m.end_effectors[-1]
    # As much as would move the body by three radii if it were as soft all the way.
    push = 3 * m.radius / np.abs(pliant.Configuration(m).compliance(body)[:3, :3]).max()
    load = {body: push * np.array([0.6, 0.48, -0.64])}
    free, held = pliant.equilibrium(m, load), pliant.equilibrium(m, load, limits=True)
    assert excess(free) > 0.15
    assert excess(held) < 0.01
    assert held.residual < 1e-9
    assert np.abs(held.loop_residual).max(initial=0.0) < 1e-10


ROBOTS = {
    "shared": ["shadow_hand/right_hand.xml", "robotiq_2f85/2f85.xml", "agility_cassie/cassie.xml"],
    "example-robot-data": [
        "robots/panda_description/urdf/panda.urdf",
        "robots/z1_description/urdf/z1.urdf",
        "robots/simple_humanoid_description/urdf/simple_humanoid.urdf",
        "robots/tiago_pro_description/robots/tiago_pro.urdf",
    ],
    "dm_control": [
        "locomotion/walkers/assets/humanoid_CMU_V2019.xml",
        "locomotion/walkers/assets/rodent.xml",
    ],
    "gymnasium_robotics": ["envs/assets/adroit_hand/adroit_relocate.xml", "envs/assets/hand/reach.xml"],
}


def robot(wheel, file):
    """A real robot on a stand, with soft springs where the file has none."""
    m = pliant.load(corpus.folder(wheel) / file, allow=[corpus.folder(wheel)])
    if any(m.joint_types[j] == "free" and m.joint_parents[j] < 0 for j in range(m.joint_count)):
        m = m.with_fixed_base()
    return m.with_stiffness(m.springless, 0.05 * m.total_mass * G * m.radius) if m.springless else m


def robot_loads(m):
    """Gravity or none, and random forces on up to three end effectors, up to five times the weight each."""
    rng = np.random.default_rng(0)
    for gravity in (None, (0, 0, -G)):
        for size in (0.2, 1.0, 5.0):
            forces = rng.normal(size=(3, 3))
            forces *= size * m.total_mass * G / np.linalg.norm(forces, axis=1, keepdims=True)
            yield dict(zip(m.end_effectors[:3], forces, strict=False)), gravity, size


@pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning")
@pytest.mark.parametrize(("wheel", "file"), [(w, f) for w, files in ROBOTS.items() for f in files])
def test_real_robots_keep_limits(wheel, file):
    if wheel == "shared" and not corpus.folder(wheel).is_dir():
        pytest.skip("the folder shared/models is not beside the project")
    m = robot(wheel, file)
    passed = []
    for load, gravity, size in robot_loads(m):
        c = pliant.equilibrium(m, load, gravity=gravity, limits=True)
        assert c.residual < 1e-9
        assert excess(c) < 0.03
        if size < 5:  # without limits the largest loads have no equilibrium on some
            passed.append(excess(pliant.equilibrium(m, load, gravity=gravity)))
    assert max(passed) > 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning")
@pytest.mark.parametrize("wheel", sorted(corpus.EXPECTED))
def test_all_real_robots_keep_limits(wheel):
    """Every file with limits; where there is no equilibrium, there is none without limits either."""
    root = corpus.folder(wheel)
    if not root.is_dir():
        pytest.skip("the folder shared/models is not beside the project")
    tried, found, worst = 0, 0, -np.inf
    for path in corpus.files(wheel):
        name = path.relative_to(root).as_posix()
        if name in corpus.EXPECTED[wheel][1]:
            continue
        m = robot(wheel, name)
        if not np.isfinite(np.concatenate([m.lower, m.upper])).any() or not m.end_effectors:
            continue
        for load, gravity, _ in robot_loads(m):
            tried += 1
            try:
                c = pliant.equilibrium(m, load, gravity=gravity, limits=True)
            except ConvergenceError:
                with pytest.raises(ConvergenceError):
                    pliant.equilibrium(m, load, gravity=gravity)
                continue
            found += 1
            worst = max(worst, excess(c))
            assert excess(c) < 0.05, name
    print(wheel, tried, found, worst)
    assert found > 0.95 * tried
