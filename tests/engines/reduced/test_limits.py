"""Reduced and blended models of mechanisms whose joint limits are enforced."""

import json

import numpy as np
import pytest

import pliant
from pliant.engines.reduced.sampling import sample
from pliant.errors import FormatError, InputError

# Around 4.8 N the first joint reaches its stop, around 10.5 N the third.
DOWN = [{"tip": (0, 0, -f)} for f in (0.0, 4.0, 5.0, 10.0, 11.0, 16.0, 30.0)]


@pytest.fixture(scope="module")
def arm():
    """Four links; under 30 N at the tip both joints that bend down are at their limit."""
    b = pliant.Builder("arm")
    parent = "world"
    for i in range(4):
        body = "tip" if i == 3 else f"link{i}"
        b.body(body, mass=0.5, inertia=(0.01, 0.01, 0.01), position=(0.3 * (i + 1), 0, 0))
        b.hinge(
            f"joint{i}",
            parent,
            body,
            anchor=(0.3 * i, 0, 0),
            axis=((0, 1, 0), (0, 0, 1))[i % 2],
            stiffness=20.0,
            damping=4.0,
            limits=(-0.4, 0.3),
        )
        parent = body
    return b.build()


def model(m, load, limits=True, **options):
    return pliant.reduce(m, at=pliant.equilibrium(m, load, limits=limits), **options)


def test_a_model_at_a_stop_has_its_stiffness(arm):
    at = pliant.equilibrium(arm, DOWN[-1], limits=True)
    stiff = pliant.reduce(arm, at=at)
    assert stiff.limits
    # A force that turns with the tip, as a model holds its wrench while it moves.
    wrench, h = stiff.wrench, 1e-4
    for axis in np.eye(3):
        ends = []
        for sign in (-1, 1):
            force = wrench[:3] + sign * h * axis
            c = pliant.equilibrium(arm, {"tip": {"force": force, "frame": "body"}}, limits=True, start=at)
            ends.append(c.pose("tip")[:3, 3])
        seen = at.pose("tip")[:3, :3].T @ (ends[1] - ends[0]) / (2 * h)
        assert seen == pytest.approx(
            stiff.compliance[:3, :3] @ axis, abs=1e-6 * np.abs(stiff.compliance).max()
        )
    free = model(arm, DOWN[-1], limits=False)
    assert not free.limits
    assert stiff.compliance[2, 2] < 0.05 * free.compliance[2, 2]
    assert stiff.frequencies()[0] == pytest.approx(at.frequencies(1)[0], rel=0.01)


def test_at_rest_limits_change_nothing_but_the_flag(arm):
    plain, limited = pliant.reduce(arm), model(arm, {})
    assert (plain.limits, limited.limits) == (False, True)
    assert limited.compliance == pytest.approx(plain.compliance, rel=1e-12)
    assert limited.reduced_mass == pytest.approx(plain.reduced_mass, rel=1e-9)


def test_a_blend_is_exact_at_samples_and_near_between(arm):
    blend = pliant.blend([model(arm, load) for load in DOWN])
    assert blend.limits
    at = blend.error(DOWN)
    assert at.problems == (None,) * len(DOWN)
    assert at.position.max() < 1e-8
    for load in DOWN:
        there, truth = blend.configuration(load), pliant.equilibrium(arm, load, limits=True)
        assert np.abs(there.poses - truth.poses).max() < 1e-8 * arm.radius
    between = blend.error([{"tip": (0, 0, -f)} for f in np.linspace(1, 29, 15)])
    assert between.rms < 0.01
    assert between.worst < 0.03
    alone = model(arm, {}).error([{"tip": (0, 0, -f)} for f in (5.0, 10.0, 15.0)])
    assert alone.worst > 0.3  # one model does not include limits that are not reached yet
    simulation = pliant.ReducedSimulation(blend, 1 / 60)
    simulation.apply_wrench("tip", force=DOWN[-1]["tip"])
    simulation.step(1200)
    assert np.abs(simulation.poses - pliant.equilibrium(arm, DOWN[-1], limits=True).poses).max() < 1e-6
    assert simulation.configuration.beyond_limits == ()


def test_errors_are_judged_by_equilibria_of_the_same_kind(arm):
    held, free = model(arm, DOWN[-1]), model(arm, DOWN[-1], limits=False)
    for each in (held, free, pliant.blend([held]), pliant.blend([free])):
        assert each.error([DOWN[-1]]).worst < 1e-8
    moved = held.error([DOWN[-1]]).moved[0], free.error([DOWN[-1]]).moved[0]
    assert moved[0] < 0.7 * moved[1]


def test_with_and_without_do_not_mix(arm):
    held = model(arm, DOWN[-1])
    with pytest.raises(InputError, match=r"equilibrium\(\.\.\., limits=True\)"):
        pliant.blend([pliant.reduce(arm), held])
    blend = pliant.blend([model(arm, {}), held])
    grown = blend.add(pliant.equilibrium(arm, DOWN[2], limits=True))
    assert grown.limits
    assert grown.error([DOWN[2]]).worst < 1e-8
    with pytest.raises(InputError, match="joint limits"):
        blend.add(pliant.equilibrium(arm, DOWN[2]))


@pytest.mark.parametrize("limits", [False, True])
def test_files_keep_the_flag(arm, tmp_path, limits):
    path = tmp_path / "model.npz"
    model(arm, DOWN[2], limits).save(path)
    assert pliant.ReducedModel.load(path).limits is limits
    arrays = dict(np.load(path))
    about = json.loads(arrays["about"].tobytes())
    for value, expected in ((None, False), (1, FormatError), ("yes", FormatError)):
        if value is None:
            about.pop("limits")  # older files have no limits
        else:
            about["limits"] = value
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        np.savez(path, allow_pickle=False, **arrays)
        if expected is FormatError:
            with pytest.raises(FormatError, match="limits"):
                pliant.ReducedModel.load(path)
        else:
            assert pliant.ReducedModel.load(path).limits is expected


def test_sampling_into_a_limit(arm):
    """One direction: 12 models leave a hundredth of the error of one."""
    options = {"wrenches": [DOWN[-1]], "tolerance": 0.0, "limits": True, "progress": False}
    one, many = (sample(arm, budget=budget, **options) for budget in (1, 12))
    assert one.model.limits
    assert many.model.limits
    assert all(each.limits for each in many.model.models)
    assert many.model.error(many.wrenches).worst < 1e-8
    assert one.accuracy.rms > 0.3
    assert many.accuracy.rms < 0.003
    assert many.accuracy.worst < 0.01
    assert not many.problems


def test_sampling_in_two_directions(arm):
    options = {"tolerance": 0.0, "limits": True, "progress": False}
    found = sample(arm, wrenches=[{"tip": (0, 0, -15)}, {"tip": (0, 15, 0)}], budget=12, **options)
    assert found.accuracy.rms < 0.02
    truths = [pliant.equilibrium(arm, load, limits=True) for load in found.accuracy.wrenches]
    assert found.accuracy.moved == pytest.approx(
        [truth.displacement[arm.body_index("tip")] / arm.radius for truth in truths], rel=1e-9
    )
    assert all(truth.beyond_limits == () for truth in truths)
    assert any(pliant.equilibrium(arm, load).beyond_limits for load in found.accuracy.wrenches)


def test_resumed_with_the_same_limits_only(arm, tmp_path):
    path = tmp_path / "samples.npz"
    options = {"wrenches": 8.0, "candidates": 8, "held_out": 4, "budget": 3, "progress": False}
    first = sample(arm, **options, limits=True, resume=path)
    again = sample(arm, **options, limits=True, resume=path)
    assert np.array_equal(first.curve, again.curve)
    with pytest.raises(FormatError, match="limits"):
        sample(arm, **options, resume=path)
    other = tmp_path / "without.npz"
    plain = sample(arm, **options, resume=other)
    assert not np.array_equal(plain.curve, first.curve)
    with pytest.raises(FormatError, match="limits"):
        sample(arm, **options, limits=True, resume=other)
    arrays = dict(np.load(other))
    about = json.loads(arrays["about"].tobytes())
    del about["limits"]  # older files have no limits
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez(other, allow_pickle=False, **arrays)
    assert np.array_equal(sample(arm, **options, resume=other).curve, plain.curve)
