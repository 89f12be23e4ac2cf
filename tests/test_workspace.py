"""`compliance_map` against closed forms, dense projections, single configurations and finite differences."""

import csv

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pliant
from formats.corpus import folder
from oracles import reduction
from oracles.linkages import parallelogram
from oracles.random_mechanisms import random_mechanism
from pliant.errors import ConvergenceError, FormatError, InputError, UnknownNameError

L1, L2, K1, K2, M1, M2, I1, I2 = 0.5, 0.3, 200.0, 80.0, 3.0, 1.5, 0.02, 0.01
Y = (0.0, 1.0, 0.0)


def planar_arm(**limits) -> pliant.Mechanism:
    """Two links in the plane of x and z, each a mass at its far end; at rest both point along x."""
    b = pliant.Builder("planar arm")
    b.body("upper", mass=M1, inertia=(I1, I1, I1), position=(L1, 0, 0))
    b.body("tip", mass=M2, inertia=(I2, I2, I2), position=(L1 + L2, 0, 0))
    b.hinge("shoulder", "world", "upper", anchor=(0, 0, 0), axis=Y, stiffness=K1, **limits)
    b.hinge("elbow", "upper", "tip", anchor=(L1, 0, 0), axis=Y, stiffness=K2, **limits)
    return b.build()


def four_bar(crank=0.2, rod=0.6, rocker=0.45, base=0.6, stiffness=30.0) -> pliant.Mechanism:
    """A crank on a spring, a rod and a rocker, in the plane of x and z; the rocker's pins have no springs."""
    pin = crank * np.array([0.0, 0.0, 1.0])
    far = four_bar_pin(0.0, crank, rod, rocker, base)
    b = pliant.Builder("four-bar")
    for name, at in (("crank", pin), ("rod", far), ("rocker", far)):
        b.body(name, mass=1.0, inertia=(0.01, 0.01, 0.01), position=at)
    b.hinge("drive", "world", "crank", anchor=(0, 0, 0), axis=Y, stiffness=stiffness)
    b.hinge("near", "crank", "rod", anchor=pin, axis=Y)
    b.hinge("pivot", "world", "rocker", anchor=(base, 0, 0), axis=Y)
    b.hinge("far", "rod", "rocker", anchor=far, axis=Y)
    b.end_effectors("rod")
    return b.build()


def four_bar_pin(turn, crank=0.2, rod=0.6, rocker=0.45, base=0.6):
    """Where rod and rocker meet, for a crank turned by `turn` from straight up: an intersection of two circles."""
    pin = crank * np.array([np.sin(turn), np.cos(turn)])  # about y, x turns towards -z
    apart = np.array([base, 0.0]) - pin
    distance = np.linalg.norm(apart)
    along = (rod**2 - rocker**2 + distance**2) / (2 * distance)
    up = np.array([-apart[1], apart[0]]) / distance
    x, z = pin + along * apart / distance + np.sqrt(rod**2 - along**2) * up
    return np.array([x, 0.0, z])


def in_world(c: pliant.Configuration, body: str) -> np.ndarray:
    turn = np.kron(np.eye(2), c.pose(body)[:3, :3])
    return turn @ c.compliance(body) @ turn.T


# --- closed forms


def test_planar_arm():
    found = pliant.compliance_map(planar_arm(), "tip", joints=["shoulder", "elbow"], points=9)
    assert found.shape == (9, 9)
    assert len(found) == found.total == 81
    a, b = found.coordinates("shoulder"), found.coordinates("elbow")
    assert a.reshape(9, 9)[:, 0] == pytest.approx(np.linspace(-np.pi, np.pi, 9))
    assert b.reshape(9, 9)[0] == pytest.approx(np.linspace(-np.pi, np.pi, 9))
    x = np.stack([L1 * np.cos(a) + L2 * np.cos(a + b), 0 * a, -L1 * np.sin(a) - L2 * np.sin(a + b)], axis=1)
    assert np.abs(found.position - x).max() < 1e-14
    first = np.stack([x[:, 2], 0 * a, -x[:, 0]], axis=1)  # y cross x
    second = np.stack([-L2 * np.sin(a + b), 0 * a, -L2 * np.cos(a + b)], axis=1)
    expected = np.einsum("ni,nj->nij", first, first) / K1 + np.einsum("ni,nj->nij", second, second) / K2
    assert np.abs(found.compliance[:, :3, :3] - expected).max() < 1e-15
    assert np.abs(found.compliance[:, 3:, 3:] - (1 / K1 + 1 / K2) * np.outer(Y, Y)).max() < 1e-15
    trace = expected[:, 0, 0] + expected[:, 2, 2]
    root = np.sqrt((expected[:, 0, 0] - expected[:, 2, 2]) ** 2 + 4 * expected[:, 0, 2] ** 2)
    assert np.abs(found.worst - (trace + root) / 2).max() < 1e-15
    assert np.abs(found.translation.compliance[:, 1] - (trace - root) / 2).max() < 1e-15
    assert found.best.max() < 1e-15  # across the plane nothing gives way
    along = np.einsum("nij,nj->ni", expected, found.worst_direction)
    assert np.abs(along - found.worst[:, None] * found.worst_direction).max() < 1e-15
    assert np.abs(found.rotation.axes[:, :, 0] - Y).max() < 1e-12
    # frequencies: det(K - w² M) = 0
    M11 = M1 * L1**2 + I1 + M2 * (L1**2 + L2**2 + 2 * L1 * L2 * np.cos(b)) + I2
    M12, M22 = M2 * (L2**2 + L1 * L2 * np.cos(b)) + I2, M2 * L2**2 + I2
    p, q, r = M11 * M22 - M12**2, -(K1 * M22 + K2 * M11), K1 * K2
    lowest = np.sqrt(2 * r / (-q + np.sqrt(q**2 - 4 * p * r)))
    assert found.frequency == pytest.approx(lowest / (2 * np.pi), rel=1e-12)
    assert np.isnan(found.margin).all()
    assert set(found.margin_joint) == {""}


def test_four_bar():
    m = four_bar()
    found = pliant.compliance_map(m, joints="drive", points=41)
    assert found.joints == ("drive",)
    assert found.end_effector == "rod"
    turn, step = found.coordinates("drive"), 1e-5
    expected = np.array([four_bar_pin(t) for t in turn])
    assert np.abs(found.position - expected).max() < 1e-12
    slope = np.array([(four_bar_pin(t + step) - four_bar_pin(t - step)) / (2 * step) for t in turn])
    assert np.abs(found.compliance[:, :3, :3] - np.einsum("ni,nj->nij", slope, slope) / 30.0).max() < 1e-9
    assert found.worst == pytest.approx((slope**2).sum(axis=1) / 30.0, abs=1e-9)


def test_a_parallelogram_stays_one_where_it_is_flat():
    """Its rod goes round in a circle, past two poses in which it could also become an antiparallelogram."""
    m = parallelogram(0.5).with_stiffness("a", 10.0)
    found = pliant.compliance_map(m, "rod", joints="a", points=50)
    start = m.reference_poses[m.body_index("rod"), :3, 3] - 0.3 * np.array([np.cos(0.5), 0, np.sin(0.5)])
    angle = 0.5 - found.coordinates("a")
    circle = start + 0.3 * np.stack([np.cos(angle), 0 * angle, np.sin(angle)], axis=1)
    assert np.abs(found.position - circle).max() < 1e-9
    assert found.worst == pytest.approx(0.3**2 / 10.0, rel=1e-6)


def test_couplings_are_followed():
    b = pliant.Builder("coupled")
    for name, parent, x in (("one", "world", 0.0), ("two", "one", 0.1)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(x + 0.1, 0, 0))
        b.hinge(name, parent, name, anchor=(x, 0, 0), axis=Y, stiffness=1.0, limits=(-1.0, 1.0))
    b.couple({"one": -2.0, "two": 1.0})
    found = pliant.compliance_map(b.build(), "two", joints="one", points=21)
    assert found.dropped == {"loops do not close": 0, "beyond joint limits": 10, "held by no spring": 0}
    assert found.coordinates("two") == pytest.approx(2 * found.coordinates("one"), abs=1e-12)
    assert found.coordinates("one") == pytest.approx(np.linspace(-0.5, 0.5, 11), abs=1e-12)
    assert found.margin == pytest.approx((1 - 2 * np.abs(found.coordinates("one"))) / 2, abs=1e-12)
    assert (found.margin_joint[[0, 3, -1]] == "two").all()
    # turning by 3 times the first joint meets 1 + 2² springs
    assert found.compliance[:, 4, 4] == pytest.approx(9 / 5)


# --- other ways to compute the same


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), loops=st.integers(0, 2))
def test_random_mechanisms(seed, loops):
    m = random_mechanism(
        seed, 5, loops, kinds=("hinge", "slide", "ball", "universal", "cylindrical", "bushing")
    )
    try:
        found = pliant.compliance_map(m, "b3", samples=4, ranges={"*": (-0.4, 0.4)}, seed=seed)
    except InputError as error:  # only balls, or nothing but what loops leave no choice for
        assert "no joint with a range moves 'b3'" in str(error)
        assume(False)
        raise
    except ConvergenceError:
        assume(False)
        raise
    for s in range(len(found)):
        c = found.configuration(s)
        assert np.abs(c.loop_residual).max(initial=0.0) < 1e-10
        assert np.abs(c.pose("b3") - found.poses[s]).max() < 1e-12
        scale = max(1e-3, np.abs(found.compliance[s]).max())
        assert np.abs(in_world(c, "b3") - found.compliance[s]).max() < 1e-9 * scale
        turn = np.kron(np.eye(2), c.pose("b3")[:3, :3])
        dense = turn @ reduction.compliance(c, ["b3"]) @ turn.T
        assert np.abs(dense - found.compliance[s]).max() < 1e-8 * scale
        assert found.frequency[s] == pytest.approx(reduction.frequencies(c)[0], rel=1e-7)


@pytest.mark.parametrize("name", ["arm", "gripper", "suspension", "flexure_stage", "hexapod"])
def test_gallery(name):
    found = pliant.compliance_map(pliant.gallery.make(name), samples=20, ranges={"*": (-0.4, 0.4)})
    body = found.end_effector
    for s in (0, 7, 13):
        c = found.configuration(s)
        scale = np.abs(found.compliance[s]).max()
        assert np.abs(in_world(c, body) - found.compliance[s]).max() < 1e-9 * scale
        assert found.frequency[s] == pytest.approx(c.frequencies(1)[0], rel=1e-9)
    without = pliant.compliance_map(
        pliant.gallery.make(name), samples=20, ranges={"*": (-0.4, 0.4)}, frequency=False
    )
    assert np.isnan(without.frequency).all()
    assert np.abs(without.compliance - found.compliance).max() < 1e-10 * np.abs(found.compliance).max()


@pytest.mark.filterwarnings("ignore::pliant.errors.PliantWarning")
def test_a_real_arm():
    path = next(folder("example-robot-data").rglob("panda.urdf"))
    m = pliant.load(path)
    m = m.with_stiffness(m.springless, 2000.0)
    found = pliant.compliance_map(m, "panda_hand_tcp", samples=50)
    assert found.joints == tuple(f"panda_joint{i}" for i in range(1, 8))
    assert np.abs(in_world(found.configuration(9), "panda_hand_tcp") - found.compliance[9]).max() < 1e-14
    lower, upper = (limit[m.dof_index("panda_joint4")] for limit in (m.lower, m.upper))
    values = found.coordinates("panda_joint4")
    assert lower <= values.min() < lower + 0.2
    assert upper - 0.2 < values.max() <= upper


def test_tendons():
    b = pliant.Builder("tendon")
    for name, parent, x in (("one", "world", 0.0), ("two", "one", 0.1)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(x + 0.1, 0, 0))
        b.hinge(name, parent, name, anchor=(x, 0, 0), axis=Y, stiffness=1.0)
    b.tendon("tendon", {"one": 1.0, "two": 1.0}, stiffness=3.0)
    found = pliant.compliance_map(b.build(), "two", samples=8)
    expected = np.ones(2) @ np.linalg.inv([[4.0, 3.0], [3.0, 4.0]]) @ np.ones(2)
    assert found.compliance[:, 4, 4] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("m", [planar_arm(), four_bar()], ids=lambda m: m.name)
def test_it_is_the_derivative_of_the_equilibrium(m):
    found = pliant.compliance_map(m, samples=3, ranges={m.dof_names[0]: (0.3, 1.2)}, load=(1e-3, 0, 2e-3))
    body = found.end_effector
    for s in range(3):
        at, push = found.configuration(s).mechanism, 1e-3
        for axis, force in enumerate(push * np.eye(3)):
            there, back = (pliant.equilibrium(at, {body: sign * force}).pose(body) for sign in (1, -1))
            slope = (there[:3, 3] - back[:3, 3]) / (2 * push)
            assert np.abs(slope - found.compliance[s, :3, axis]).max() < 1e-11  # of 1e-8 to 2e-3
        assert np.abs(found.sag[s] - found.compliance[s, :3, :3] @ (1e-3, 0, 2e-3)).max() < 1e-8
        moved = (
            pliant.equilibrium(at, {body: (1e-3, 0, 2e-3)}).pose(body)[:3, 3]
            - at.reference_poses[at.body_index(body), :3, 3]
        )
        assert np.abs(found.sag[s] - moved).max() < 1e-15


def tendon_arm():
    """Two hinges under a tendon, and a hand on a ball."""
    b = pliant.Builder("tendon_arm")
    for name, parent, x in (("one", "world", 0.0), ("two", "one", 0.3), ("hand", "two", 0.6)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(x + 0.2, 0.05, 0))
        if name == "hand":
            b.ball(name, parent, name, anchor=(x, 0, 0), stiffness=4.0)
        else:
            b.hinge(name, parent, name, anchor=(x, 0, 0), axis=Y, stiffness=6.0)
    b.tendon("tendon", {"one": 1.0, "two": 0.7}, stiffness=8.0)
    return b.build()


@pytest.mark.parametrize("samples", [1, 7])
@pytest.mark.parametrize(
    ("name", "load"), [("gripper", 30.0), ("suspension", 3e3), ("arm", 40.0), ("tendon", 5.0)]
)
def test_sag_is_that_of_each_configuration_by_itself(name, load, samples):
    m = tendon_arm() if name == "tendon" else pliant.gallery.make(name)
    push = load * np.array([0.3, 0.5, -0.8])
    found = pliant.compliance_map(m, samples=samples, load=push, frequency=False, seed=4)
    for s in range(len(found)):
        at, body = found.configuration(s).mechanism, found.end_effector
        moved = pliant.equilibrium(at, {body: push}).pose(body)[:3, 3] - found.position[s]
        assert np.linalg.norm(moved) > 1e-3 * m.radius
        assert np.abs(found.sag[s] - moved).max() < 1e-9 * m.radius


def test_sag_is_nonlinear():
    found = pliant.compliance_map(planar_arm(), "tip", joints="shoulder", points=3, load=(0, 0, -60, 0, 5, 0))
    at = found.configuration(1).mechanism
    c = pliant.equilibrium(at, {"tip": (0, 0, -60, 0, 5, 0)})
    assert np.abs(found.sag[1] - (c.pose("tip")[:3, 3] - [L1 + L2, 0, 0])).max() < 1e-12
    linear = found.compliance[1, :3] @ (0, 0, -60, 0, 5, 0)
    assert abs(found.sag[1, 0] - linear[0]) > 0.1 * abs(found.sag[1, 2])
    assert "sag (" in found.summary()


def test_result_does_not_depend_on_threads():
    for m in (pliant.gallery.arm(), pliant.gallery.gripper(), pliant.gallery.suspension()):
        one, two, five = (
            pliant.compliance_map(m, samples=200, ranges={"*": (-0.6, 0.6)}, threads=n) for n in (1, 2, 5)
        )
        for other in (two, five):
            for name in ("index", "q", "poses", "compliance", "frequency"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


# --- samples


def test_limits_drop_samples():
    m = planar_arm(limits=(-1.0, 1.5))
    found = pliant.compliance_map(m, "tip", joints=["shoulder", "elbow"], points=11)
    assert sum(found.dropped.values()) == 0  # ends of ranges are at the limits, not beyond
    a, b = found.coordinates("shoulder"), found.coordinates("elbow")
    room = np.minimum.reduce([a + 1, 1.5 - a, b + 1, 1.5 - b]) / 2.5
    assert found.margin == pytest.approx(np.maximum(room, 0), abs=1e-12)
    expected = np.where(np.minimum(a + 1, 1.5 - a) <= np.minimum(b + 1, 1.5 - b), "shoulder", "elbow")
    apart = np.abs(np.minimum(a + 1, 1.5 - a) - np.minimum(b + 1, 1.5 - b)) > 1e-9
    assert (found.margin_joint == expected)[apart].all()
    wide = pliant.compliance_map(
        m, "tip", joints=["shoulder", "elbow"], points=11, ranges={"elbow": (-2.0, 3.0)}
    )
    values = np.linspace(-2, 3, 11)
    outside = int(((values < -1) | (values > 1.5)).sum())
    assert wide.dropped["beyond joint limits"] == 11 * outside
    assert len(wide) == 11 * (11 - outside)
    grid = wide.grid(wide.worst)
    assert np.isnan(grid[:, (values < -1) | (values > 1.5)]).all()
    assert np.isfinite(grid[:, (values >= -1) & (values <= 1.5)]).all()
    assert f"{11 * outside} beyond joint limits" in wide.summary()


def test_loops_that_do_not_close_are_dropped():
    """The rocker of a crank-rocker swings between two dead centres: no farther."""
    m = four_bar().with_stiffness("pivot", 5.0)
    found = pliant.compliance_map(m, "rod", joints="pivot", points=61, ranges={"pivot": (-2.0, 2.0)})
    start = np.arctan2(*(four_bar_pin(0.0) - (0.6, 0, 0))[[0, 2]])
    swing = np.array(
        [np.arctan2(*(four_bar_pin(t) - (0.6, 0, 0))[[0, 2]]) for t in np.linspace(0, 2 * np.pi, 4001)]
    )
    low, high = (swing - start).min(), (swing - start).max()
    values = np.linspace(-2, 2, 61)
    reachable = (values > low) & (values < high)
    assert min(np.abs(values - low).min(), np.abs(values - high).min()) > 1e-3  # none at a dead centre
    assert found.dropped["loops do not close"] == int((~reachable).sum())
    assert found.coordinates("pivot") == pytest.approx(values[reachable])
    with pytest.raises(
        ConvergenceError, match=r"no sample of 'drive', 'pivot' is usable: 9 loops do not close"
    ):
        pliant.compliance_map(
            m, joints=["drive", "pivot"], points=3, ranges={"pivot": (-2.0, -1.5), "drive": (1, 2)}
        )


def test_no_spring():
    b = pliant.Builder("limp")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.body("c", mass=1.0, inertia=(1, 1, 1), position=(1, 0, 0))
    b.hinge("firm", "world", "a", anchor=(0, 0, 0), axis=Y, stiffness=10.0)
    b.hinge("limp", "a", "c", anchor=(0.5, 0, 0), axis=(1, 0, 0))
    m = b.build()
    with pytest.raises(InputError, match="no spring holds 'limp'"):
        pliant.compliance_map(m, "c", samples=4)
    found = pliant.compliance_map(m, "a", samples=4)  # what is loose elsewhere only leaves no frequency
    assert found.compliance[:, 4, 4] == pytest.approx(0.1)
    assert np.isnan(found.frequency).all()
    assert found.dropped["held by no spring"] == 0


def test_default_joints():
    arm = pliant.compliance_map(pliant.gallery.arm(), samples=2)
    assert (len(arm.joints), arm.joints[0], arm.joints[-1]) == (8, "shoulder_yaw", "index_joint3")
    assert pliant.compliance_map(pliant.gallery.gripper(), samples=2).joints == ("left_driver",)
    assert len(pliant.compliance_map(pliant.gallery.ladder(4), samples=2).joints) == 4
    leg = pliant.compliance_map(pliant.gallery.hexapod(), "right2_tibia", samples=2)
    assert leg.joints == ("right2_yaw", "right2_lift", "right2_knee")
    assert leg.mechanism.nv == pliant.gallery.hexapod().nv - 6  # the base is held
    flat = pliant.compliance_map(parallelogram(0.0).with_stiffness("a", 1.0), "rod", samples=2)
    assert flat.joints == ("a",)  # at the reference pose two dofs seem independent


def test_samples_are_spread_and_repeat():
    m = planar_arm()
    one, same, other = (pliant.compliance_map(m, samples=100, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.q, same.q)
    assert np.abs(one.q - other.q).max() > 0.1
    assert one.shape == (100,)
    counts = np.histogram2d(*one.q.T, bins=4, range=[[-np.pi, np.pi]] * 2)[0]
    assert counts.min() >= 5  # of 6.25
    reports = []
    pliant.compliance_map(m, samples=100, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(0, 100), (64, 100), (100, 100)]


# --- tables and words


def test_files(tmp_path):
    found = pliant.compliance_map(planar_arm(limits=(-1, 1)), "tip", samples=10, load=(0, 0, -1))
    for name in ("map.csv", "map.parquet", "map.npz"):
        found.save(tmp_path / name)
    with (tmp_path / "map.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(found.columns)
    assert [float(row["worst"]) for row in rows] == found.worst.tolist()
    assert [row["margin.joint"] for row in rows] == found.margin_joint.tolist()
    with np.load(tmp_path / "map.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["compliance"], found.compliance)
        np.testing.assert_array_equal(archive["sag.z"], found.sag[:, 2])
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(tmp_path / "map.parquet")
    assert table.column_names == list(found.columns)
    assert table["turn.worst"].to_pylist() == found.rotation.compliance[:, 0].tolist()
    assert len(found.table["index"]) == 10
    with pytest.raises(FormatError, match=r"\.csv or \.parquet or \.npz"):
        found.save(tmp_path / "map.txt")


def test_pictures_and_words(tmp_path):
    arm, closed = planar_arm(limits=(-1, 1)), pliant.gallery.gripper()
    for name, found in {
        "grid": pliant.compliance_map(arm, "tip", joints=["shoulder", "elbow"], points=4),
        "curve": pliant.compliance_map(closed, joints="left_driver", points=5),
        "cloud": pliant.compliance_map(pliant.gallery.arm(), samples=20, frequency=False),
    }.items():
        found.plot(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    said = found.summary()
    assert said.startswith("arm: index_tip, 20 samples of shoulder_yaw")
    assert f"softest: sample {found.index[found.worst.argmax()]} at" in said
    assert repr(found) == "<ComplianceMap of 'index_tip' of 'arm': 20 of 20 samples, 8 joints>"
    assert found._repr_png_()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"end_effector": "world"}, "the world does not move"),
        ({"end_effector": "tipp"}, "did you mean 'tip'"),
        ({"points": 5, "samples": 5}, "give one of them"),
        ({"points": 1}, "points: a whole number from 2"),
        ({"points": 10**5000}, "points: a whole number from 2"),
        ({"points": 2000}, "a grid of 2000 points for 2 joints has more than"),
        ({"samples": 0}, "samples: a whole number from 1"),
        ({"joints": "elbo"}, "did you mean 'elbow'"),
        (
            {"joints": "elbow", "ranges": {"shoulder": (0, 1)}},
            "range of 'shoulder': it is not among the joints",
        ),
        ({"ranges": {"elbow": (1, 0)}}, "range of 'elbow': low < high expected"),
        ({"ranges": {"elbow": 1}}, "range of 'elbow': a low and a high end"),
        ({"ranges": [1]}, "ranges: a mapping"),
        ({"load": (1, 2)}, "load: a force"),
        ({"threads": 0}, "threads: a whole number from 1"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        pliant.compliance_map(planar_arm(), **{"end_effector": "tip", **arguments})


def test_errors_of_joints():
    with pytest.raises(InputError, match="a Mechanism expected, not str"):
        pliant.compliance_map("robot.xml")  # pyright: ignore[reportArgumentType]
    b = pliant.Builder("slide and ball")
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.body("c", mass=1.0, inertia=(1, 1, 1), position=(1, 0, 0))
    b.slide("rail", "world", "a", axis=(1, 0, 0), stiffness=10.0)
    b.ball("ball", "a", "c", anchor=(0.5, 0, 0), stiffness=10.0)
    m = b.build()
    with pytest.raises(InputError, match="no joint with a range moves 'c'"):
        pliant.compliance_map(m, "c")
    with pytest.raises(InputError, match="slide 'rail' has no limits: give its range"):
        pliant.compliance_map(m, "c", joints="rail")
    with pytest.raises(InputError, match="part of a ball joint"):
        pliant.compliance_map(m, "c", joints="ball")
    found = pliant.compliance_map(m, "c", ranges={"rail": (0.0, 0.2)}, points=3)
    assert found.position[:, 0] == pytest.approx([1.0, 1.1, 1.2])
    huge = pliant.gallery.helix(2100)
    with pytest.raises(InputError, match=r"2100 dofs, would take too long: leave them out \(frequency=False"):
        pliant.compliance_map(huge, samples=2)
    assert len(pliant.compliance_map(huge, samples=2, frequency=False)) == 2
    locked = m.replace(lower=np.zeros(m.nv), upper=np.where(m.dof_kind == m.dof_kind[0], 0.0, np.pi))
    with pytest.raises(InputError, match="'rail' is locked by its limits"):
        pliant.compliance_map(locked, "c", joints="rail")
