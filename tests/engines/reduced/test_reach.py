"""Reach of reduced models: statics on the basis, vectors from equilibria, compressed coordinates."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize

import pliant
from oracles.random_mechanisms import random_mechanism
from pliant.engines.reduced import manifold, reach
from pliant.engines.reduced.model import FAR
from pliant.engines.reduced.projection import project
from pliant.errors import ConvergenceError, FormatError, InputError, PliantWarning
from pliant.statics.loads import parse_wrenches


def chain(links=6):
    """Chain of hinges about all axes, bent at the reference pose."""
    b = pliant.Builder("chain")
    for i in range(links):
        parent = f"link{i - 1}" if i else "world"
        b.body(
            f"link{i}",
            mass=0.3,
            com=(0.05, 0, 0),
            inertia=(1e-3, 2e-3, 2e-3),
            position=(0.1 * i, 0.01 * i * i, 0),
        )
        axis = ((0, 0, 1), (0, 1, 0), (0.6, 0.8, 0))[i % 3]
        b.hinge(
            f"j{i}",
            parent,
            f"link{i}",
            anchor=(0.1 * i, 0.01 * i * i, 0),
            axis=axis,
            stiffness=1.0 + 0.1 * i,
            damping=0.02,
        )
    b.end_effectors(f"link{links - 1}")
    return b.build()


def stiffness(m):
    rows = m.tendons.dense(m.nv)
    return np.diag(m.stiffness) + rows.T @ (m.tendon_stiffness[:, None] * rows)


def tips(model, q):
    return np.array(
        [pliant.Configuration(model.mechanism, q).pose(body)[:3, 3] for body in model.end_effectors]
    )


def rest(coordinates, wrenches):
    """Joint coordinates of a model at rest, on its branch of equilibria."""
    found = coordinates.equilibrium(parse_wrenches(coordinates.manifold.mechanism, wrenches), snap=False)
    return coordinates.joints(found)


def held_out(model, size, count, seed=77):
    """Static errors under forces in uniform directions that nothing was chosen on; those that buckle left out."""
    m, rng = model.mechanism, np.random.default_rng(seed)
    out = []
    start = tips(model, model.q)
    turn = np.zeros((6 * len(start), 3 * len(start)))
    for i, body in enumerate(model.end_effectors):
        turn[6 * i : 6 * i + 3, 3 * i : 3 * i + 3] = model.at.pose(body)[:3, :3].T
    compliance = turn.T @ model.at.compliance(*model.end_effectors) @ turn
    for _ in range(count):
        force = rng.standard_normal(len(compliance))
        force *= size * m.radius / np.linalg.norm((compliance @ force).reshape(-1, 3), axis=1).max()
        wrenches = dict(zip(model.end_effectors, map(tuple, force.reshape(-1, 3).tolist()), strict=True))
        try:
            exact = tips(model, pliant.equilibrium(m, wrenches).q)
        except pliant.errors.ConvergenceError:
            continue
        if np.linalg.norm(exact - start, axis=1).max() > 2 * size * m.radius:
            continue
        found = rest(model.natural_coordinates, wrenches)
        out.append(np.linalg.norm(tips(model, found) - exact) / np.linalg.norm(exact - start))
    assert len(out) > 0.5 * count
    return np.array(out)


# --- statics on a basis


@pytest.mark.parametrize("seed", range(4))
def test_on_all_joint_motions_statics_is_that_of_the_mechanism(seed):
    m = random_mechanism(
        seed, 4, kinds=("hinge", "slide", "ball", "universal", "bushing"), isotropic=seed % 2 == 0
    )
    model = pliant.reduce(m, "b3")
    rng = np.random.default_rng(seed)
    wrench = {"b3": 20 * rng.normal(size=3)}
    exact = pliant.equilibrium(m, wrench)
    assert exact.displacement.max() > 0.05 * m.radius
    found = rest(manifold.statics(model, np.linalg.qr(rng.normal(size=(m.nv, m.nv)))[0]), wrench)
    poses = pliant.Configuration(m, found).poses
    np.testing.assert_allclose(poses, exact.poses, atol=1e-7)


@pytest.mark.parametrize("name", ["loop", "gripper", "suspension"])
def test_on_all_motions_that_loops_allow_statics_is_that_of_the_mechanism(name):
    m = pliant.gallery.make(name)
    body, model = m.end_effectors[0], pliant.reduce(m, m.end_effectors[0])
    allowed = null_space(model.at.loop_jacobian, rcond=1e-9)
    softest = model.stiffness_ellipsoid(body)
    wrench = {body: 0.2 * m.radius * softest.stiffness[0] * softest.axes[:, 0]}
    exact = pliant.equilibrium(m, wrench)
    assert exact.displacement.max() > 0.1 * m.radius
    found = rest(manifold.statics(model, allowed), wrench)
    np.testing.assert_allclose(pliant.Configuration(m, found).poses, exact.poses, atol=1e-6 * m.radius)


def test_on_few_joint_motions_it_is_the_least_potential_energy():
    m = chain()
    model = pliant.reduce(m)
    force = np.array([0.3, -2.0, 1.0])

    def energy(y):
        s = model.basis @ y
        tip = pliant.Configuration(m, m.reference + s).pose("link5")[:3, 3]
        return 0.5 * s @ (m.stiffness * s) - force @ tip

    coordinates = manifold.statics(model, model.basis)
    found = coordinates.to_model(coordinates.equilibrium(parse_wrenches(m, {"link5": force})))
    best = minimize(energy, np.zeros(model.rank), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(model.basis @ found, model.basis @ best.x, atol=2e-5)
    assert energy(found) <= best.fun + 1e-12
    assert np.abs(model.basis @ found).max() > 0.2


def test_loads_of_the_equilibrium_keep_acting():
    m = chain()
    acting = {"link2": (0, 0.5, 0), "link5": (0.2, 0, -0.3)}
    at = pliant.equilibrium(m, acting, gravity=(0, 0, -9.81))
    model = pliant.reduce(m, at=at)
    same = parse_wrenches(m, {"link5": acting["link5"]})
    y = model.natural_coordinates.to_model(model.natural_coordinates.equilibrium(same))
    np.testing.assert_allclose(y, 0, atol=1e-7)
    whole = manifold.statics(model, np.eye(m.nv))
    more = {**acting, "link5": (0.8, 0.5, -0.9)}
    exact = pliant.equilibrium(m, more, gravity=(0, 0, -9.81), start=at)
    found = rest(whole, {"link5": more["link5"]})
    np.testing.assert_allclose(found, exact.q, atol=1e-8)


def test_a_snap_is_no_equilibrium_on_the_branch():
    """A lever that its weight has tipped to one side, pushed over to the other: q = 1.2 sin q + push cos q."""
    b = pliant.Builder("lever")
    b.body("tip", mass=1, inertia=(1, 1, 1), position=(0, 0, 1))
    b.hinge("hinge", "world", "tip", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1)
    b.end_effectors("tip")
    m = b.build()
    tipped = pliant.equilibrium(m, {"tip": (0.05, 0, 0)}, gravity=(0, 0, -1.2))
    own = pliant.reduce(m, at=tipped).natural_coordinates
    assert own.joints(np.zeros(1))[0] > 1
    over = parse_wrenches(m, {"tip": (-0.3, 0, 0)})
    with pytest.warns(PliantWarning, match="snaps"):
        found = own.joints(own.equilibrium(over))
    assert found[0] < -1
    np.testing.assert_allclose(found, 1.2 * np.sin(found) - 0.3 * np.cos(found), atol=1e-9)
    with pytest.raises(ConvergenceError, match="branch"):
        own.equilibrium(over, snap=False)
    np.testing.assert_allclose(own.joints(own.equilibrium_near(over, found + 0.1)), found, atol=1e-9)
    with pytest.raises(ConvergenceError, match="nearby"):
        own.equilibrium_near(over, np.array([0.3]))


# --- vectors


@pytest.mark.slow
def test_a_closed_loop_reaches():
    """A platform on two arms: its curvature alone reaches 0.26 radii."""
    m = pliant.gallery.loop()
    model = pliant.reduce(m, reach=0.3)
    assert 0 < model.vectors <= 5
    assert model.reach >= 0.3
    assert 0.2 < reach.measure_reach(pliant.reduce(m), 0.01) < 0.3
    assert held_out(model, 0.3, 10).max() < 0.005
    np.testing.assert_allclose(model.at.loop_jacobian @ model.basis, 0, atol=1e-9 * np.abs(model.basis).max())


@pytest.mark.parametrize(
    ("name", "size", "most"),
    [
        ("helix", 0.3, 4),
        ("helix", 0.6, 7),
        ("helix", 1.0, 8),
        ("arm", 0.3, 0),
        ("arm", 1.0, 1),
        ("y", 0.6, 2),
    ],
)
def test_few_vectors_reach(name, size, most):
    """Bounds on vectors and errors from a prototype: helix 3, 7, 8 vectors, arm 0, 0, 1, y 1, 2, 1."""
    m = pliant.gallery.make(name)
    model = pliant.reduce(m, m.end_effectors[0], reach=size)
    assert model.vectors <= most
    assert model.reach >= size
    errors = held_out(model, size, 30)
    assert errors.max() < 0.007
    assert np.quantile(errors, 0.9) < 0.003


def test_without_vectors_the_helix_does_not_reach():
    model = pliant.reduce(pliant.gallery.helix(50))
    assert np.isnan(model.reach)
    assert held_out(model, 1.0, 20).max() > 0.02
    assert 0.1 < reach.measure_reach(model, 0.01) < 0.6


def test_reach_is_where_the_error_is_the_tolerance():
    model = pliant.reduce(pliant.gallery.helix(20))
    found = [reach.measure_reach(model, tolerance) for tolerance in (0.003, 0.01, 0.03)]
    assert 0.05 < found[0] < found[1] < found[2] < 2
    pushes, own = reach.Pushes(model), model.natural_coordinates
    forces = pushes.directions(np.random.default_rng(1), reach.JUDGES)
    settled = pushes.settle(forces, np.full(len(forces), found[1]))
    errors = [pushes.error(own, w, c) for w, c in zip(*settled, strict=True) if c is not None]
    assert max(errors) == pytest.approx(0.01, rel=1e-5)


def test_a_lever_is_exact_as_far_as_it_goes():
    """Every joint motion is in the basis: the error is zero at any size."""
    model = pliant.reduce(pliant.gallery.two_link(), reach=0.5)
    assert model.vectors == 0
    assert model.reach == reach.FARTHEST


def test_rounding_decides_nothing():
    m = pliant.gallery.helix(20)
    found = pliant.reduce(m, reach=0.6)
    change = 1 + 1e-13 * np.random.default_rng(0).uniform(-1, 1, m.nv)
    other = pliant.reduce(m.replace(stiffness=m.stiffness * change), reach=0.6)
    assert (other.rank, other.vectors, other.samples) == (found.rank, found.vectors, found.samples)
    assert other.reach == pytest.approx(found.reach, abs=1e-6)
    np.testing.assert_allclose(other.basis, found.basis, atol=1e-6 * np.abs(found.basis).max())


@pytest.mark.parametrize("modes", [0, 2])
def test_matrices_of_vectors(modes):
    m = pliant.gallery.helix(20)
    model = pliant.reduce(m, modes=modes, reach=0.6)
    plain = pliant.reduce(m, modes=modes)
    n, K, M = plain.basis.shape[1], stiffness(m), model.at.mass_matrix()
    assert model.vectors > 0
    assert model.modes == modes
    np.testing.assert_array_equal(model.basis[:, :n], plain.basis)
    ours, size = model.basis.T @ K @ model.basis, np.sqrt(np.diag(model.reduced_stiffness))
    np.testing.assert_allclose(
        model.reduced_stiffness / size / size[:, None], ours / size / size[:, None], atol=1e-9
    )
    np.testing.assert_allclose(ours[n:, n:], np.eye(model.vectors), atol=1e-9)
    np.testing.assert_allclose(ours[:n, n:] / size[:n, None], 0, atol=1e-9)
    mass, damping = model.basis.T @ M @ model.basis, model.basis.T @ (m.damping[:, None] * model.basis)
    np.testing.assert_allclose(
        model.reduced_mass[:, n:], mass[:, n:], rtol=1e-9, atol=1e-12 * np.abs(mass).max()
    )
    np.testing.assert_allclose(model.reduced_damping, damping, rtol=1e-9, atol=1e-9 * np.abs(damping).max())
    ends = model.at.jacobian("link20") @ model.basis[:, n:]
    np.testing.assert_allclose(ends, 0, atol=1e-12)


def test_frequencies_with_all_motions_are_those_of_the_mechanism():
    """No inertia is counted twice: the lag of links that vectors express is taken out."""
    m = chain(9)
    model = pliant.reduce(m)
    rng = np.random.default_rng(0)
    full = pliant.Configuration(m).frequencies(9)
    assert model.frequencies()[3] > 1.1 * full[3]
    for _ in range(3):
        model = model.extend(pliant.equilibrium(m, {"link8": 3 * rng.normal(size=3)}))
    assert model.basis.shape[1] == m.nv
    np.testing.assert_allclose(model.frequencies(), full, rtol=1e-6)


def test_linear_motion_with_vectors():
    """Vectors move no end effector at rest: a small push settles where it does without them."""
    m = pliant.gallery.helix(20)
    rest = pliant.equilibrium(m, {"link20": (0, 0, -0.01)}).pose("link20")
    simulation = pliant.reduce(m, reach=0.6).simulate(0.01)
    simulation.apply_wrench("link20", force=(0, 0, -0.01))
    simulation.step(3000)
    np.testing.assert_allclose(simulation.pose("link20"), rest, atol=1e-7)


def test_at_a_loaded_equilibrium():
    m = pliant.gallery.helix(20)
    at = pliant.equilibrium(m, {"link20": (3, 0, -5), "link10": (0, 0.5, 0)}, gravity=(0, 0, -9.81))
    model = pliant.reduce(m, at=at, reach=0.3)
    plain = pliant.reduce(m, at=at)
    assert model.reach >= 0.3
    assert model.vectors > 0
    assert reach.measure_reach(plain, 0.01) < model.reach
    n = plain.rank
    np.testing.assert_allclose(model.reduced_stiffness[:n, n:], model.reduced_stiffness[n:, :n].T, atol=1e-6)
    assert np.linalg.eigvalsh(model.reduced_mass)[0] > 0


# --- beyond reach


def near_and_far():
    """Model that reaches 0.5 radii, and forces on its tip that move it by less, and by more."""
    m = pliant.gallery.helix(20)
    model = replace(pliant.reduce(m), reach=0.5, tolerance=0.01)
    unit = m.radius * model.stiffness_ellipsoid("link20").stiffness[0]
    axis = model.stiffness_ellipsoid("link20").axes[:, 0]
    return model, 0.1 * unit * axis, 0.8 * unit * axis


def warnings_of(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in found if one.category is PliantWarning]


def test_statics_beyond_reach_warns_once():
    model, near, far = near_and_far()
    assert not warnings_of(lambda: model.configuration({"link20": near}))
    (words,) = warnings_of(lambda: model.configuration({"link20": far}))
    moved = tips(model, model.configuration({"link20": far}).q) - tips(model, model.q)
    away = np.linalg.norm(moved) / model.mechanism.radius
    assert away > 0.5
    assert f"went {away:.3g} radii" in words
    assert "reach of 0.5" in words
    for remedy in ("pliant.reduce(..., reach=...)", "model.extend", "pliant.ConstrainedSimulation"):
        assert remedy in words
    assert not warnings_of(lambda: model.configuration({"link20": 1.1 * far}))


@pytest.mark.parametrize("method", ["small", "full"])
def test_motion_beyond_reach_warns_once(method):
    model, near, far = near_and_far()
    simulation = model.simulate(1e-3, method=method)
    simulation.apply_wrench("link20", force=near)
    assert not warnings_of(lambda: simulation.step(100))
    simulation.apply_wrench("link20", force=far)
    paths = []
    (words,) = warnings_of(
        lambda: paths.append(
            simulation.record(200, act=lambda _: None).poses
        )  # largest distance of all steps
    )
    index = model.mechanism.body_index("link20")
    away = (
        np.linalg.norm(paths[0][:, index, :3, 3] - tips(model, model.q)[0], axis=1) / model.mechanism.radius
    )
    assert away.max() > 0.5
    told = float(words.split("went ")[1].split(" radii")[0])
    assert 0.5 < told <= away.max() + 1e-3
    assert "reach of 0.5" in words
    assert not warnings_of(lambda: simulation.step(100))
    simulation.reset()
    simulation.apply_wrench("link20", force=far)
    assert not warnings_of(lambda: simulation.step(200))
    other = model.simulate(1e-3, method=method)
    other.apply_wrench("link20", force=far)
    (words,) = warnings_of(lambda: other.step(300))
    other.switch(replace(model, reach=2.0))
    assert not warnings_of(lambda: other.step(100))


def test_the_warning_tells_the_largest_distance():
    """One call of many steps: the distance is that of the farthest step, not of the last."""
    model, _, far = near_and_far()
    one, other = model.simulate(1e-3), replace(model, reach=2.0).simulate(1e-3)
    one.apply_wrench("link20", force=far)
    other.apply_wrench("link20", force=far)
    (words,) = warnings_of(lambda: one.step(200))
    path = other.record(200).poses[:, model.mechanism.body_index("link20"), :3, 3]
    away = np.linalg.norm(path - tips(model, model.q)[0], axis=1) / model.mechanism.radius
    assert away[-1] < 0.99 * away.max()
    assert f"went {away.max():.3g} radii" in words


def test_models_without_measured_reach_warn_beyond_what_was_measured_for_such_models():
    measured, near, far = near_and_far()
    model = replace(measured, reach=float("nan"))
    assert model.known == FAR
    assert not warnings_of(lambda: model.configuration({"link20": near}))
    assert model.distance(model.configuration({"link20": near}).poses) < FAR
    (words,) = warnings_of(lambda: model.configuration({"link20": far}))
    for part in (
        "6 coordinates for 20 ways to move",
        "0.3 radii",
        "pliant.sample",
        "pliant.ConstrainedSimulation",
    ):
        assert part in words
    assert not warnings_of(lambda: model.configuration({"link20": far}))
    simulation = model.simulate(1e-3)
    simulation.apply_wrench("link20", force=near)
    assert not warnings_of(lambda: simulation.step(50))
    simulation.apply_wrench("link20", force=far)
    (words,) = warnings_of(lambda: simulation.step(300))
    assert "0.3 radii" in words
    assert not warnings_of(lambda: simulation.step(300))
    away = np.linalg.norm(simulation.pose("link20")[:3, 3] - tips(model, model.q)[0]) / model.mechanism.radius
    assert simulation.distance == pytest.approx(away, rel=1e-12)


def test_models_that_can_move_in_all_ways_never_warn():
    """Statics and motion are those of the mechanism then, however far they go; with loops, too."""
    for m in (pliant.gallery.two_link(), pliant.gallery.gripper()):
        model = pliant.reduce(m)
        assert model.basis.shape[1] == model.freedom
        assert model.known == np.inf
    m = pliant.gallery.two_link()
    model, tip = pliant.reduce(m), m.end_effectors[0]
    soft = model.stiffness_ellipsoid(tip)
    far = {tip: 0.8 * m.radius * soft.stiffness[0] * soft.axes[:, 0]}
    found = []
    assert not warnings_of(lambda: found.append(model.configuration(far)))
    assert model.distance(found[0].poses) > FAR
    truth = pliant.equilibrium(m, far)
    np.testing.assert_allclose(found[0].pose(tip), truth.pose(tip), atol=1e-7)


def test_distance_of_a_floating_model_is_relative_to_its_base():
    b = pliant.Builder("flier")
    b.body("base", mass=2.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.body("arm", mass=0.2, com=(0.2, 0, 0), inertia=(1e-3, 1e-3, 1e-3))
    b.free("flight", "world", "base")
    b.hinge("root", "base", "arm", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=5.0)
    b.body("tip", mass=0.1, com=(0, 0, 0), inertia=(1e-4, 1e-4, 1e-4), position=(0.4, 0, 0))
    b.fixed("end", "arm", "tip")
    b.end_effectors("tip")
    m = b.build()
    simulation = pliant.reduce(m).simulate(1e-3, gravity=(0, 0, -9.81))
    simulation.step(500)
    assert abs(simulation.pose("base")[2, 3]) > 1.0  # it falls
    assert simulation.distance < 1e-3
    simulation.apply_wrench("tip", force=(0, 0, 3.0))
    simulation.step(100)
    turned = np.linalg.inv(simulation.pose("base")) @ simulation.pose("tip")
    rest = np.linalg.inv(m.reference_poses[m.body_index("base")]) @ m.reference_poses[m.body_index("tip")]
    assert simulation.distance > 0.01
    assert simulation.distance == pytest.approx(np.linalg.norm((turned - rest)[:3, 3]) / m.radius, rel=1e-9)


# --- extend


def test_extend_adds_what_the_basis_lacks():
    m = pliant.gallery.helix(20)
    model = pliant.reduce(m)
    there = pliant.equilibrium(m, {"link20": (400, 200, -600)})
    more = model.extend(there)
    shift = there.q - model.q
    before, after = (
        np.linalg.lstsq(np.sqrt(m.stiffness)[:, None] * one.basis, np.sqrt(m.stiffness) * shift)[1]
        for one in (model, more)
    )
    assert before > 1e-3 * shift @ (m.stiffness * shift)
    assert after < 1e-16 * shift @ (m.stiffness * shift)
    assert 0 < more.vectors <= 7
    assert more.extend(there).vectors == more.vectors
    assert more.extend(pliant.Configuration(m)).vectors <= more.vectors + 6


def test_extend_while_a_simulation_runs():
    m = pliant.gallery.helix(20)
    model = pliant.reduce(m)
    simulation = model.simulate(1e-3)
    simulation.apply_wrench("link20", force=(0, 0, -5))
    simulation.step(50)
    before = simulation.pose("link20")
    simulation.switch(model.extend(pliant.equilibrium(m, {"link20": (0, 0, -5)})))
    np.testing.assert_allclose(simulation.pose("link20"), before, atol=1e-9)
    simulation.step(50)
    assert np.isfinite(simulation.poses).all()


def test_extend_keeps_loops_closed():
    m = pliant.gallery.loop()
    model = pliant.reduce(m)
    more = model.extend(pliant.equilibrium(m, {"plate": (0, 0, -5)}))
    assert more.vectors > 0
    np.testing.assert_allclose(more.at.loop_jacobian @ more.basis, 0, atol=1e-9 * np.abs(more.basis).max())


def test_extend_refuses():
    m = pliant.gallery.helix(20)
    model = pliant.reduce(m)
    with pytest.raises(InputError, match="a Configuration expected"):
        model.extend(model.q)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="another mechanism"):
        model.extend(pliant.Configuration(pliant.gallery.arm()))
    with pytest.raises(InputError, match="condensed"):
        pliant.reduce(m, inertia="operational").extend(pliant.Configuration(m))


# --- several end effectors


def test_ten_coordinates_express_five_fingertips():
    """Principal axes of static shapes under forces on all tips: nine of ten directions within 0.35 % and 0.03 %."""
    m = pliant.gallery.arm()
    model = pliant.reduce(m)
    pushes, found = reach.Pushes(model), project(m, model.end_effectors, None)
    forces = pushes.directions(np.random.default_rng(5), 80)[::2]
    _, samples = pushes.settle(forces[:16], 0.3 * np.arange(1, 17) / 16)
    axes = reach.static_axes(model, found, [c for c in samples if c is not None])
    fresh = pushes.settle(forces[16:], np.full(24, 0.3))
    for count, bound in ((10, 0.0035), (14, 3e-4)):
        few = manifold.statics(model, axes[:, :count])
        errors = [pushes.error(few, w, c) for w, c in zip(*fresh, strict=True) if c is not None]
        assert len(errors) > 20
        assert np.quantile(errors, 0.9) < bound


def test_compressed_coordinates():
    m = pliant.gallery.arm()
    model = pliant.reduce(m, reach=0.3, tolerance=0.02)
    n = model.rank
    assert n + model.vectors <= 14 < pliant.reduce(m).rank
    assert model.reach >= 0.3
    np.testing.assert_allclose(model.directions.T @ model.directions, np.eye(n), atol=1e-12)
    rows = np.concatenate([model.at.jacobian(body) for body in model.end_effectors])
    np.testing.assert_allclose(rows @ model.basis[:, :n], model.admissible, atol=1e-10)
    M = model.basis.T @ model.at.mass_matrix() @ model.basis
    assert (np.linalg.eigvalsh(model.reduced_mass - M) > -1e-9 * np.abs(M).max()).all()  # links lag behind
    np.testing.assert_allclose(model.frequencies()[0], pliant.Configuration(m).frequencies(1)[0], rtol=1e-4)
    assert held_out(model, 0.3, 15).max() < 0.02
    more = model.extend(pliant.equilibrium(m, {"index_tip": (0, 0, 4)}))
    rows = rows @ more.basis
    np.testing.assert_allclose(rows[:, : more.rank], more.admissible, atol=1e-9)
    np.testing.assert_allclose(rows[:, more.rank :], 0, atol=1e-9)


# --- words and files


def test_summary_and_file(tmp_path):
    m = pliant.gallery.helix(20)
    model = pliant.reduce(m, reach=0.5)
    took = f"{6 + model.vectors} coordinates ({model.vectors} vectors), {model.samples} sampled equilibria"
    words = f"reach: {model.reach:.3g} radii at 1 % static error; {took}"
    assert words in model.summary()
    assert words in model._repr_html_()
    assert f"{model.vectors} vectors" in repr(model)
    model.save(tmp_path / "model.npz")
    again = pliant.ReducedModel.load(tmp_path / "model.npz")
    for word in ("reach", "tolerance", "vectors", "samples", "failures", "gravity", "wrenches"):
        assert getattr(again, word) == getattr(model, word)
    np.testing.assert_array_equal(again.basis, model.basis)
    wrench = {"link20": (400, 200, -600)}
    ours, theirs = (one.extend(pliant.equilibrium(one.mechanism, wrench)) for one in (model, again))
    np.testing.assert_array_equal(ours.basis, theirs.basis)


def test_loads_in_a_file(tmp_path):
    m = chain()
    at = pliant.equilibrium(m, {"link2": {"force": (0, 1, 0), "point": (0, 0, 0.1)}}, gravity=(0, 0, -9.81))
    model = pliant.reduce(m, at=at)
    model.save(tmp_path / "model.npz")
    again = pliant.ReducedModel.load(tmp_path / "model.npz")
    assert again.gravity == (0, 0, -9.81)
    np.testing.assert_array_equal(
        manifold.balanced_loads(again)[0].rows, manifold.balanced_loads(model)[0].rows
    )
    assert np.isnan(again.reach)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"vectors": 9}, "vectors"),
        ({"reach": "far"}, "reach"),
        ({"samples": -1}, "samples"),
        ({"gravity": [0, 1]}, "gravity"),
        ({"wrenches": {"nobody": [0, 0, 1]}}, "nobody"),
        ({"wrenches": [1]}, "wrenches"),
    ],
)
def test_damaged_files(words, message, tmp_path, monkeypatch):
    from pliant.engines.reduced import files

    whole = files._description
    monkeypatch.setattr(files, "_description", lambda model: {**whole(model), **words})
    pliant.reduce(chain()).save(tmp_path / "bad.npz")
    with pytest.raises(FormatError, match=message):
        pliant.ReducedModel.load(tmp_path / "bad.npz")


def test_older_files(tmp_path, monkeypatch):
    from pliant.engines.reduced import files

    whole, new = (
        files._description,
        ("gravity", "wrenches", "vectors", "reach", "tolerance", "samples", "failures"),
    )
    monkeypatch.setattr(
        files,
        "_description",
        lambda model: {k: v for k, v in whole(model).items() if k not in new} | {"version": 1},
    )
    model = pliant.reduce(chain())
    model.save(tmp_path / "old.npz")
    again = pliant.ReducedModel.load(tmp_path / "old.npz")
    assert np.isnan(again.reach)
    assert again.vectors == 0
    with pytest.raises(InputError, match="older version"):
        again.extend(again.at)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"reach": 0}, "reach"),
        ({"reach": 20}, "reach"),
        ({"reach": 1e-200}, "reach: a number of radii from 1e-6 to 10"),
        ({"reach": "far"}, "reach"),
        ({"reach": 0.5, "tolerance": 0}, "tolerance"),
        ({"reach": 0.5, "inertia": "operational"}, "condensed"),
    ],
)
def test_refused(words, message):
    with pytest.raises(InputError, match=message):
        pliant.reduce(chain(), **words)


def test_joint_limits_are_refused():
    m = chain()
    at = pliant.equilibrium(m, {"link5": (0, 0.5, 0)}, limits=True)
    with pytest.raises(InputError, match="joint limits"):
        pliant.reduce(m, at=at, reach=0.3)


def test_a_body_that_only_turns_has_no_reach():
    b = pliant.Builder("wheel")
    b.body("wheel", mass=1, inertia=(1, 1, 1))
    b.hinge("axle", "world", "wheel", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=1)
    with pytest.raises(InputError, match="gives way to a force"):
        pliant.reduce(b.build(), "wheel", reach=0.5)


def test_blends_refuse_vectors():
    m = chain(9)
    model = pliant.reduce(m).extend(pliant.equilibrium(m, {"link8": (0, 3, 1)}))
    assert model.vectors > 0
    with pytest.raises(InputError, match="has vectors"):
        pliant.blend([model])
    assert model.configuration({"link8": (0, 0, 0.1)}).q.shape == model.q.shape
