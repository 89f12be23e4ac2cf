"""Blends of reduced models: on the manifold they span, against the truth; mixed as in TVCG, against dense solves."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import pliant
from oracles.random_mechanisms import KINDS, random_mechanism
from pliant.errors import ConvergenceError, InputError
from pliant.mechanism import kinematics


def models(m, loads, tip=None):
    """A model at rest and one under each of the loads on the first end effector."""
    tip = tip or m.end_effectors[0]
    at = [pliant.equilibrium(m, {tip: load}) for load in loads]
    return [pliant.reduce(m), *(pliant.reduce(m, at=c) for c in at)]


def three(size):
    return [size * axis for axis in np.eye(3)]


def settle(simulation, m):
    """Step until 1,000 steps move no entry of a pose by 1e-9 radii; the ladder creeps for 40,000."""
    for _ in range(100):
        before = simulation.poses.copy()
        simulation.step(1000)
        if np.abs(simulation.poses - before).max() < 1e-9 * m.radius:
            return
    raise AssertionError("still moving after 100,000 steps")


SCENES = {"helix": three(100.0), "y": three(100.0), "loop": three(100.0), "hand": three(4.0)}
SCENES["ladder"] = [np.array([x, 0, 0]) for x in (-100.0, 50.0, 100.0)]


@pytest.fixture(scope="module", params=SCENES)
def scene(request):
    m = pliant.gallery.make(request.param)
    return request.param, m, pliant.blend(models(m, SCENES[request.param])), SCENES[request.param]


# --- on the manifold that the models span


def tip_error(m, configuration, load):
    """Distance of the tip from the true equilibrium over its displacement."""
    tip = m.end_effectors[0]
    truth, start = pliant.equilibrium(m, {tip: load}).pose(tip), m.reference_poses[m.body_index(tip)]
    apart = configuration.pose(tip)[:3, 3] - truth[:3, 3]
    return np.linalg.norm(apart) / np.linalg.norm((truth - start)[:3, 3])


def test_at_samples_and_between(scene):
    _, m, blend, loads = scene
    tip, mean = m.end_effectors[0], sum(loads) / len(loads)
    for load in [*loads, *(0.5 * load for load in loads), 0.5 * (loads[0] + loads[1])]:
        there = blend.configuration({tip: load})
        assert tip_error(m, there, load) < 1.5e-4
        assert np.abs(there.loop_residual).max(initial=0) < 1e-9
    for load in (mean, 0.3 * loads[0], 0.8 * loads[-1]):
        assert tip_error(m, blend.configuration({tip: load}), load) < 5e-4
    assert blend.configuration({tip: np.zeros(3)}).poses == pytest.approx(m.reference_poses, abs=1e-9)


def test_no_worse_than_the_best_of_its_models(scene):
    """At rest under fresh loads; forces on other bodies act, too."""
    _, m, blend, loads = scene
    tip, rng = m.end_effectors[0], np.random.default_rng(3)
    worst = np.zeros(1 + len(blend.models))
    for _ in range(8):
        load = rng.dirichlet(np.ones(len(loads))) @ np.array(loads)
        for i, model in enumerate((blend, *blend.models)):
            worst[i] = max(worst[i], tip_error(m, model.configuration({tip: load}), load))
    assert worst[0] <= worst[1:].min() + 1e-4
    inner = m.body_names[len(m.body_names) // 2]
    load = {tip: 0.3 * loads[0], inner: 0.2 * loads[0]}
    truth, there = pliant.equilibrium(m, load), blend.configuration(load)
    moved = np.linalg.norm(truth.pose(tip)[:3, 3] - m.reference_poses[m.body_index(tip), :3, 3])
    assert np.linalg.norm(there.pose(tip)[:3, 3] - truth.pose(tip)[:3, 3]) < 0.01 * moved


@pytest.mark.parametrize(("name", "force"), [("helix", 120.0), ("y", 150.0), ("loop", 100.0)])
def test_motion_is_no_worse_than_that_of_the_best_model(name, force):
    """Sudden pushes in directions that no model was made for, against the constrained engine at 0.2 ms."""
    m = pliant.gallery.make(name).with_end_effectors(pliant.gallery.make(name).end_effectors[0])
    tip = m.end_effectors[0]
    blend = pliant.blend(models(m, three(force)))
    assert blend.spanned.basis.shape[1] < blend.models[0].rank + 12
    worst = np.zeros(1 + len(blend.models))
    for direction in np.random.default_rng(8).normal(size=(3, 3)):
        push = force * direction / np.linalg.norm(direction)
        runs = [pliant.ConstrainedSimulation(m, 2e-4, (0, 0, 0))]
        runs += [pliant.ReducedSimulation(model, 1e-3) for model in (blend, *blend.models)]
        paths = []
        for run in runs:
            run.q = m.reference
            run.apply_wrench(tip, push)
            every = round(5e-3 / run.timestep)
            paths.append(run.record(40, every=every).pose(tip)[:, :3, 3])
        size = np.abs(paths[0] - m.reference_poses[m.body_index(tip), :3, 3]).max()
        for i, path in enumerate(paths[1:]):
            worst[i] = max(worst[i], np.sqrt(((path - paths[0]) ** 2).sum(axis=1).mean()) / size)
    assert worst[0] < min(0.01, worst[1:].min() + 2e-4)


def test_one_model_moves_as_it_does_alone(scene):
    _, m, blend, loads = scene
    tip = m.end_effectors[0]
    for model in blend.models[:2]:
        one, same = (pliant.ReducedSimulation(x, 1 / 60) for x in (model, pliant.blend([model])))
        for simulation in (one, same):
            simulation.apply_wrench(tip, 0.3 * loads[0])
            simulation.step(30)
        assert np.array_equal(same.poses, one.poses)
        assert same.exact


def test_reach_is_measured():
    m = pliant.gallery.helix(20)
    blend = pliant.blend(models(m, [200 * a for a in (*np.eye(3), *-np.eye(3))]))
    alone = pliant.blend(blend.models[:1])
    assert 0.1 < alone.reach < 0.5 * blend.reach
    assert f"reach: {blend.reach:.3g} radii at 1 % static error" in blend.summary()
    pushes = np.random.default_rng(2).normal(size=(6, 3))
    compliance = np.linalg.norm(blend.models[0].compliance[:3, :3], 2)
    for push in pushes:
        load = 0.9 * blend.reach * m.radius / compliance * push / np.linalg.norm(push)
        assert tip_error(m, blend.configuration({"link20": load}), load) < 0.015
    turned = pliant.equilibrium(m, {"link20": {"force": (0, 0, 20.0), "frame": "body"}})
    assert np.isnan(pliant.blend([pliant.reduce(m, at=turned)]).reach)  # no load that is fixed in the world


def test_models_of_different_mechanics_are_mixed():
    m = pliant.gallery.helix(8)
    rest, tip = pliant.reduce(m), m.end_effectors[0]
    heavy = pliant.reduce(m, at=pliant.equilibrium(m, {tip: (5.0, 0, 0)}, gravity=(0, 0, -9.81)))
    pushed = pliant.reduce(m, tip, at=pliant.equilibrium(m, {tip: (5.0, 0, 0), "link4": (0, 2.0, 0)}))
    other = m.replace(stiffness=2 * m.stiffness)
    stiff = pliant.reduce(other, at=pliant.equilibrium(other, {tip: (5.0, 0, 0)}))
    held = pliant.reduce(m, at=pliant.Configuration(m, m.reference + 0.1))
    loaded = pliant.reduce(m, at=pliant.equilibrium(m, {tip: (5.0, 0, 0)}))
    for first, second, why in (
        (rest, heavy, "different gravity"),
        (rest, pushed, "different gravity, or loads"),
        (rest, stiff, "mechanisms that differ"),
        (held, loaded, "held away"),
        (pliant.reduce(m, inertia="operational"), loaded, "inertia='operational'"),
    ):
        blend = pliant.blend([first, second])
        assert not pliant.ReducedSimulation(blend, 0.01).exact
        with pytest.raises(InputError, match=why):
            pliant.ReducedSimulation(blend, 0.01, method="full")
        assert blend.configuration({tip: second.at.wrenches.get(tip, (5.0, 0, 0))}).poses == pytest.approx(
            second.at.poses, abs=1e-6
        )
        assert np.isnan(blend.reach)
        assert "reach: " not in blend.summary()


# --- mixed, as in TVCG


def test_samples_are_exact(scene):
    _, m, blend, loads = scene
    tip = m.end_effectors[0]
    for distance in ("wrench", "twist"):
        other = pliant.blend(blend.models, distance=distance)
        for i, load in enumerate([np.zeros(3), *loads]):
            c, truth = other.configuration({tip: load}, "tvcg"), pliant.equilibrium(m, {tip: load})
            assert np.abs(c.poses - truth.poses).max() < 1e-8 * m.radius
            assert np.abs(c.loop_residual).max(initial=0) < 1e-8
            assert other.weights({tip: load})[i] == pytest.approx(1, abs=1e-12)


LIMITS = {"helix": 0.007, "y": 0.007, "loop": 0.009, "ladder": 0.012, "hand": 0.03}


def test_held_out_loads(scene):
    name, m, blend, loads = scene
    tip = m.end_effectors[0]
    errors = []
    for load in loads:
        for fraction in (0.1, 0.3, 0.5, 0.7, 0.9):
            truth = pliant.equilibrium(m, {tip: fraction * load}).pose(tip)[:3, 3]
            ours = blend.configuration({tip: fraction * load}, "tvcg").pose(tip)[:3, 3]
            errors.append(np.linalg.norm(ours - truth) / m.radius)
    assert np.sqrt(np.mean(np.square(errors))) < LIMITS[name]


def test_small_loads_are_no_worse_than_by_the_rest_model(scene):
    _, m, blend, loads = scene
    tip, alone = m.end_effectors[0], pliant.blend(blend.models[:1])
    for load in loads:
        for fraction in (0.02, 0.05):
            truth = pliant.equilibrium(m, {tip: fraction * load}).pose(tip)[:3, 3]
            blended, single = (
                np.linalg.norm(b.configuration({tip: fraction * load}, "tvcg").pose(tip)[:3, 3] - truth)
                for b in (blend, alone)
            )
            assert blended < 1.01 * single + 1e-9 * m.radius


def test_nothing_jumps(scene):
    """Along a sweep through all samples in 2,000 steps the compliance changes by less than 1 % a step."""
    _, m, blend, loads = scene
    corners = [np.zeros(3), *loads, np.zeros(3)]
    tip = blend.index(m.end_effectors[0])
    before = None
    for a, b in pairwise(corners):
        for t in np.linspace(0, 1, 2000 // (len(corners) - 1)):
            u = np.zeros(6 * len(blend.end_effectors))
            u[6 * tip : 6 * tip + 3] = a + t * (b - a)
            now = blend.compliance_at(u)
            if before is not None:
                assert np.linalg.norm(now - before) < 0.01 * np.linalg.norm(now)
            before = now


def test_eigenvectors_are_matched(scene):
    """At samples both ways of mixing agree; between them eigenvectors stay matched, whatever their signs."""
    _, _, blend, _ = scene
    eigen = pliant.blend(blend.models, matrices="eigen")
    for i, model in enumerate(blend.models):
        weights = np.eye(len(blend.models))[i]
        compliance = (model.compliance + model.compliance.T) / 2
        expected = blend.unit[:, None] * compliance * blend.unit
        assert eigen.mixed(weights)[0] == pytest.approx(expected, abs=1e-12 * np.abs(expected).max())
    for (vectors, _), stack in zip(eigen.spectra, eigen.condensed, strict=True):
        alike = np.einsum("ij,kij->ki", vectors[0], vectors)
        assert (alike >= 0).all()
        assert np.abs(vectors @ vectors.transpose(0, 2, 1) - np.eye(stack.shape[1])).max() < 1e-12
    half = np.full(len(blend.models), 1 / len(blend.models))
    linear, spectral = blend.mixed(half)[0], eigen.mixed(half)[0]
    assert np.linalg.norm(linear - spectral) < 0.3 * np.linalg.norm(linear)


def slow(blend, h, steps, force, tip):
    """Backward Euler on static wrenches by dense solves, as the equation in `blended` says."""
    e, n = blend.index(tip), 6 * len(blend.end_effectors)
    u, v = blend.samples[0].copy(), np.zeros(n)
    for _ in range(steps):
        w = np.zeros(n)
        pose = blend._poses(u)[blend.mechanism.body_index(tip)]
        w[6 * e : 6 * e + 3] = pose[:3, :3].T @ force
        C, M, D = (one / blend.unit / blend.unit[:, None] for one in blend.mixed(blend.weights_at(u)))
        C = C + np.diag(1e-9 * np.abs(blend.condensed[0]).max() / blend.unit**2)
        v = np.linalg.solve(M + h * D + h * h * C.T, M @ v + h * C.T @ (w - u))
        u = u + h * v
    return u, blend._poses(u)


def test_steps(scene):
    _, m, blend, loads = scene
    tip = m.end_effectors[0]
    for distance, matrices in (("wrench", "linear"), ("twist", "linear"), ("wrench", "eigen")):
        other = pliant.blend(blend.models, 4.0, distance, matrices)
        simulation = pliant.ReducedSimulation(other, 0.004, method="tvcg")
        force = 0.4 * loads[0] + 0.2 * loads[1]
        simulation.apply_wrench(tip, force)
        simulation.step(40)
        _, poses = slow(other, 0.004, 40, force, tip)
        # Mixed eigenvectors make nearly singular matrices, which magnify rounding.
        assert simulation.poses == pytest.approx(
            poses, abs=(1e-7 if matrices == "linear" else 1e-4) * m.radius
        )
        assert simulation.poses == pytest.approx(simulation.configuration.poses, abs=1e-12 * m.radius + 1e-13)
        assert simulation.time == pytest.approx(0.16)


def test_twists_are_blended_on_the_group(scene):
    """Karcher means of the poses that the models predict, body by body, iterated to convergence."""
    _, m, blend, loads = scene
    tip = m.end_effectors[0]
    simulation = pliant.ReducedSimulation(blend, 1 / 60, "twist")
    for load in loads:  # at samples the blend is the sample
        simulation.apply_wrench(tip, load)
        settle(simulation, m)
        truth = pliant.equilibrium(m, {tip: load})
        assert simulation.poses == pytest.approx(truth.poses, abs=2e-4 * m.radius)
    u = 0.5 * blend.samples[1] + 0.2 * blend.samples[2]
    simulation.coordinates = u / blend.unit
    weights = blend.weights_at(u)
    each = np.array(
        [one.at.poses @ pliant.spatial.se3_exp(one.twist_maps @ (u - one.wrench)) for one in blend.models]
    )
    mean = each[0].copy()
    for _ in range(50):
        logs = pliant.spatial.se3_log(pliant.spatial.se3_inverse(mean) @ each)
        mean = mean @ pliant.spatial.se3_exp(np.tensordot(weights, logs, axes=1))
    assert simulation.poses == pytest.approx(mean, abs=1e-5 * m.radius)


def test_one_model_blended_is_that_model(scene):
    _, m, blend, loads = scene
    tip = m.end_effectors[0]
    for model in blend.models[:2]:
        one = pliant.ReducedSimulation(model, 1 / 60, method="tvcg")
        same = pliant.ReducedSimulation(pliant.blend([model]), 1 / 60, method="tvcg")
        for simulation in (one, same):
            simulation.apply_wrench(tip, 0.3 * loads[0])
            simulation.step(30)
        assert same.poses == pytest.approx(one.poses, abs=1e-7 * m.radius)
        assert same.twist(tip)[:3] == pytest.approx(one.twist(tip)[:3], rel=1e-5, abs=1e-6)
        assert same.impulse_response(tip) == pytest.approx(one.impulse_response(tip), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("method", ["full", "tvcg"])
def test_it_settles_at_its_own_statics(scene, method):
    name, m, blend, loads = scene
    if method == "full" and name == "ladder":
        pytest.skip("it swings for hours: only backward Euler damps it")
    tip, rest = m.end_effectors[0], "exact" if method == "full" else "tvcg"
    simulation = pliant.ReducedSimulation(blend, 1 / 60, method=method)
    simulation.apply_wrench(tip, 0.6 * loads[0])
    settle(simulation, m)
    assert simulation.poses == pytest.approx(
        blend.configuration({tip: 0.6 * loads[0]}, rest).poses, abs=1e-5 * m.radius
    )
    simulation.clear_wrenches()
    settle(simulation, m)
    assert simulation.poses == pytest.approx(m.reference_poses, abs=1e-6 * m.radius)


@pytest.mark.parametrize(("method", "most"), [("full", 1e-3), ("tvcg", 1e-5)])
def test_a_model_joins_while_it_runs(scene, method, most):
    name, m, blend, loads = scene
    if method == "full" and name == "ladder":
        pytest.skip("it swings for hours: only backward Euler damps it")
    tip, load = m.end_effectors[0], 1.3 * loads[0]
    simulation = pliant.ReducedSimulation(blend, 1 / 60, method=method)
    simulation.apply_wrench(tip, load)
    settle(simulation, m)
    before = simulation.poses.copy()
    truth = pliant.equilibrium(m, {tip: load})
    grown = blend.add(truth)
    assert len(grown.models) == len(blend.models) + 1
    simulation.switch(grown)
    jump = np.abs(simulation.poses - before).max()
    settle(simulation, m)
    assert simulation.poses == pytest.approx(truth.poses, abs=most * m.radius)
    removed = np.abs(before - truth.poses).max()
    assert jump <= removed + most * m.radius


def test_going_between_single_and_blended():
    m = pliant.gallery.helix(20)
    rest = pliant.reduce(m)
    blend = pliant.blend(models(m, three(60.0)))
    simulation = pliant.ReducedSimulation(rest, 0.001)
    simulation.apply_wrench("link20", (0, 5.0, -5.0))
    simulation.step(20)
    pose, rate = simulation.pose("link20"), simulation.twist("link20")[:3]
    simulation.switch(blend)
    assert simulation.pose("link20") == pytest.approx(pose, abs=1e-4 * m.radius)
    assert simulation.twist("link20")[:3] == pytest.approx(rate, rel=0.05, abs=1e-3)
    simulation.switch(rest)
    assert simulation.pose("link20") == pytest.approx(pose, abs=2e-4 * m.radius)


@given(seed=st.integers(0, 10**6))
def test_samples_of_random_mechanisms(seed):
    """Every joint type, balls that have turned among them."""
    m = random_mechanism(seed, 5, kinds=KINDS[:8], stiffness=30.0)
    try:
        at = pliant.equilibrium(m, {"b4": (1.0, -2.0, 1.5)})
        blend = pliant.blend([pliant.reduce(m, "b4"), pliant.reduce(m, "b4", at=at)])
    except (InputError, ConvergenceError):
        reject()  # locked, or too soft
    there = blend.configuration({"b4": (1.0, -2.0, 1.5)}, "tvcg")
    assert np.abs(there.poses - at.poses).max() < 1e-8 * m.radius
    simulation = pliant.ReducedSimulation(blend, 0.01, method="tvcg")
    u = blend.samples[1] * 0.7
    simulation.coordinates = u / blend.unit
    q = kinematics.move(m, blend.models[0].q, blend.displacement_at(u))
    assert simulation.poses == pytest.approx(pliant.Configuration(m, q).poses, abs=1e-9 * m.radius)


def test_no_energy_from_a_closed_loop_of_wrenches():
    """Work done on the end effector along a closed path of wrenches, slowly, without dampers."""
    m = pliant.gallery.helix(50)
    blend = pliant.blend(models(m, three(100.0)))
    corners = 100 * np.array([[0, 0, 0], [0.8, 0, 0], [0.4, 0.7, 0], [0, 0.3, 0.6], [0, 0, 0]])
    work, stored = 0.0, 0.0
    place = blend.configuration({"link50": corners[0]}, "tvcg").pose("link50")[:3, 3]
    for a, b in pairwise(corners):
        for t in np.linspace(0, 1, 40)[1:]:
            force = a + t * (b - a)
            there = blend.configuration({"link50": force}, "tvcg").pose("link50")[:3, 3]
            work += (force - 0.5 * (b - a) / 39) @ (there - place)
            stored = max(stored, work)
            place = there
    assert abs(work) < 0.02 * stored


def test_floating_base():
    m = pliant.gallery.hexapod()
    fixed = m.with_fixed_base()
    foot = m.end_effectors[0]
    blend = pliant.blend([pliant.reduce(m)])
    one, two = (pliant.ReducedSimulation(model, 0.002, method="tvcg") for model in (blend.models[0], blend))
    for simulation in (one, two):
        simulation.apply_wrench(foot, (0, 0, 5.0))
        simulation.step(50)
    assert two.poses == pytest.approx(one.poses, abs=1e-8)
    with pytest.raises(InputError, match="floating base"):
        pliant.blend([pliant.reduce(m), pliant.reduce(fixed, m.end_effectors)])


def test_bad_input():
    m = pliant.gallery.y()
    left, _ = m.end_effectors
    rest = pliant.reduce(m)
    loaded = pliant.reduce(m, at=pliant.equilibrium(m, {left: (10.0, 0, 0)}))
    for arguments, message in [
        (([],), "at least one model"),
        ((m,), "a list of models expected"),
        ((["rest"],), "model 0 is no ReducedModel"),
        (([rest, pliant.reduce(m, left)],), "model 1 has the end effectors"),
        (([rest, pliant.reduce(pliant.gallery.helix(5))],), "model 1 is one of 'helix 5'"),
        (([pliant.reduce(m, modes=2)],), "has modes"),
        (([rest, loaded, rest],), "models 0 and 2 were made under the same wrenches"),
        (([rest], 0.0), "exponent"),
        (([rest], 2.0, "near"), "distance"),
        (([rest], 2.0, "wrench", "cubic"), "matrices"),
    ]:
        with pytest.raises(InputError, match=message):
            pliant.blend(*arguments)
    blend = pliant.blend([rest, loaded])
    with pytest.raises(InputError, match="Configuration or a ReducedModel"):
        blend.add("more")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threads are for a single model"):
        pliant.ReducedSimulation(blend, 0.01, "twist", threads=2)
    with pytest.raises(pliant.errors.UnknownNameError):
        blend.configuration({"stem1": (0, 0, 1)}, "tvcg")
    assert "2 models" in repr(blend)
