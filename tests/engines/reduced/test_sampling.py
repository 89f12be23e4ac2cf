"""Errors of reduced models against true equilibria, and models sampled where the error is largest."""

from typing import Any

import numpy as np
import pytest

import pliant
from pliant.engines.reduced import accuracy, sampling
from pliant.engines.reduced.accuracy import Accuracy, measure
from pliant.engines.reduced.sampling import sample
from pliant.errors import ConvergenceError, FormatError, InputError, UnknownNameError

QUIET: dict[str, Any] = {"progress": False}
SMALL: dict[str, Any] = {"candidates": 16, "held_out": 8, "progress": False}


def column(stiffness=5.0):
    """Five links on top of each other, hinged about x; buckles under a little less than 5 N."""
    b = pliant.Builder("column")
    for i in range(5):
        b.body(f"b{i}", mass=0.1, inertia=(1e-3,) * 3, position=(0, 0, 0.1 * (i + 1)))
        b.hinge(
            f"j{i}",
            f"b{i - 1}" if i else "world",
            f"b{i}",
            anchor=(0, 0, 0.1 * i),
            axis=(1, 0, 0),
            stiffness=stiffness,
        )
    return b.build()


def same(a, b):
    """Two results are the same, bit for bit."""
    assert a.wrenches == b.wrenches
    assert a.problems == b.problems
    assert np.array_equal(a.curve, b.curve)
    assert a.accuracy.wrenches == b.accuracy.wrenches
    for name in ("moved", "position", "violation"):
        assert np.array_equal(getattr(a.accuracy, name), getattr(b.accuracy, name), equal_nan=True)
    for one, other in zip(a.model.models, b.model.models, strict=True):
        assert np.array_equal(one.q, other.q)
        assert np.array_equal(one.compliance, other.compliance)


# --- accuracy


def test_errors_of_a_helix_by_hand():
    m = pliant.gallery.helix(12)
    model = pliant.reduce(m)
    wrenches = [{"link12": (0, 0, -f)} for f in (1.0, 50.0, 200.0)]
    found = measure(model, wrenches, method="tvcg")
    tip, rest = m.body_index("link12"), m.reference_poses[-1, :3, 3]
    for i, each in enumerate(wrenches):
        truth = pliant.equilibrium(m, each).poses[tip, :3, 3]
        # The force is fixed in the world: its components in body axes change until the tip no longer turns.
        turn = m.reference_poses[tip, :3, :3]
        for _ in range(60):
            wrench = np.concatenate([turn.T @ each["link12"], np.zeros(3)])
            at = pliant.Configuration(m, m.reference + model.joint_map @ wrench)
            turn = at.poses[tip, :3, :3]
        assert found.position[i] == pytest.approx(
            np.linalg.norm(at.poses[tip, :3, 3] - truth) / m.radius, rel=1e-9
        )
        assert found.moved[i] == pytest.approx(np.linalg.norm(truth - rest) / m.radius, rel=1e-12)
    assert not found.violation.any()
    assert found.problems == (None,) * 3
    assert found.rms == pytest.approx(np.sqrt(np.mean(found.position**2)), rel=1e-12)
    assert found.worst == found.position[2] == found.position.max()


def test_several_end_effectors_and_open_loops_by_hand():
    hand = pliant.gallery.hand()
    model = pliant.reduce(hand, modes=2)  # modes are no part of statics
    wrench = {"index_tip": (0.0, 1.0, -2.0), "thumb_tip": {"force": (1.0, 0, 0), "frame": "body"}}
    truth, at = (
        pliant.equilibrium(hand, wrench),
        pliant.blend([pliant.reduce(hand)]).configuration(wrench, "tvcg"),
    )
    apart = [np.linalg.norm((at.pose(b) - truth.pose(b))[:3, 3]) for b in model.end_effectors]
    assert measure(model, [wrench], method="tvcg").position[0] == pytest.approx(
        np.mean(apart) / hand.radius, rel=1e-9
    )

    loop = pliant.gallery.loop()
    body = loop.end_effectors[0]
    wrench = {body: (300.0, 200.0, -300.0)}
    at = pliant.blend([pliant.reduce(loop)]).configuration(wrench, "tvcg")
    gaps = sum(np.linalg.norm(gap[:3]) for gap in at.loop_residual) / loop.radius
    assert gaps > 1e-4
    assert measure(pliant.reduce(loop), [wrench], method="tvcg").violation[0] == pytest.approx(
        gaps, rel=1e-12
    )


@pytest.mark.parametrize("name", ["helix", "loop"])
def test_no_error_at_samples(name):
    m = pliant.gallery.make(name)
    body = m.end_effectors[0]
    wrenches = [{body: force} for force in ((0, 0, 0), (100, 50, 0), (0, -80, 120))]
    blended = pliant.blend([pliant.reduce(m, at=pliant.equilibrium(m, each)) for each in wrenches])
    for method, most in (("exact", 1e-4), ("tvcg", 1e-8)):
        found = measure(blended, wrenches, method=method)
        assert found.position.max() < most
        assert found.violation.max() < 1e-8
    assert measure(blended, [{body: (50, 25, 0)}], method="tvcg").position[0] > 1e-6


def test_rows_without_an_error(monkeypatch):
    m = column()
    model = pliant.reduce(m, "b4")
    wrenches = [{"b4": (0, 0.1, 0)}, {"b4": (0, 0, -10.0)}, {"b4": (0, 0, 1.0)}, {"b4": (0, 0.2, 0)}]
    solve, settle = accuracy.solve_cases, pliant.BlendedModel.configuration

    def sometimes(mechanism, loads, **options):
        found = solve(mechanism, loads, **options)
        found.converged = found.converged & np.array([each["b4"] != (0, 0, 1.0) for each in loads])
        return found

    def seldom(self, wrenches, method):
        if wrenches["b4"] == (0, 0.2, 0):
            raise ConvergenceError("none")
        return settle(self, wrenches, method)

    monkeypatch.setattr(accuracy, "solve_cases", sometimes)
    monkeypatch.setattr(pliant.BlendedModel, "configuration", seldom)
    found = measure(model, wrenches, method="tvcg")
    assert found.problems == (None, "unstable", "no equilibrium", "model does not settle")
    assert (
        np.isnan(found.position).tolist() == np.isnan(found.violation).tolist() == [False, True, True, True]
    )
    assert found.rms == pytest.approx(found.position[0])
    assert found.worst == found.position[0]
    rows = found.summary().splitlines()
    assert "no equilibrium: 1" in rows
    first = next(i for i, row in enumerate(rows) if row.startswith("---")) + 1
    assert rows[first].startswith("b4 (0, 0.2, 0) N")  # it does not settle, so it comes first
    assert rows[first + 1].startswith("b4 (0, 0.1, 0) N")
    only = measure(model, wrenches[1:], method="tvcg")
    assert np.isnan(only.rms)
    assert np.isnan(only.worst)
    assert "rms" not in only.summary()
    only.plot()


def test_words_and_picture_of_accuracy(tmp_path):
    wrenches = tuple({"tip": (float(i), 0, 0, 0, 0, 1.0)} for i in range(20))
    errors = np.linspace(0.001, 0.02, 20)
    found = Accuracy(wrenches, 10 * errors, errors, errors / 2, (None,) * 20, "thing")
    text = found.summary()
    assert text.startswith("thing: 20 wrenches, errors as fractions of the radius\nposition error 0.0")
    assert "tip (19, 0, 0) N (0, 0, 1) N m" in text
    assert text.index("(19, 0, 0)") < text.index("(5, 0, 0)")
    assert "(4, 0, 0)" not in text
    assert text.endswith("... and 5 more")
    figure = found.plot(tmp_path / "errors.png", title="errors")
    assert (tmp_path / "errors.png").stat().st_size > 10_000
    assert figure.axes[0].get_title() == "errors"
    with pytest.raises(InputError, match="no folder"):
        found.plot(tmp_path / "none" / "errors.png")


# --- sampling


def test_a_helix_to_a_tolerance():
    m = pliant.gallery.helix(12)
    found = sample(m, wrenches=200, tolerance=5e-6, **QUIET)
    assert found.reached
    assert 2 < len(found.model.models) == len(found.curve) == len(found.wrenches) < 12
    assert (found.curve[:-1, 1] > 5e-6).all()
    assert found.curve[-1, 1] <= 5e-6
    assert found.accuracy.rms < 0.1 * measure(pliant.reduce(m), found.accuracy.wrenches).rms
    assert len(found.accuracy.wrenches) == 40
    assert found.problems == ()
    # `measure` gives the same errors.
    assert measure(found.model, found.accuracy.wrenches).position == pytest.approx(
        found.accuracy.position, rel=1e-6
    )
    assert measure(found.model, found.wrenches).worst < 5e-6
    forces = np.array([each["link12"] for each in found.accuracy.wrenches])
    assert np.linalg.norm(forces, axis=1).max() <= 200
    assert not {str(each) for each in found.wrenches} & {str(each) for each in found.accuracy.wrenches}
    repeated = sample(m, "link12", wrenches=200, tolerance=5e-6, **QUIET)
    same(found, repeated)
    other = sample(m, wrenches=200, tolerance=5e-6, seed=1, **QUIET)
    assert other.wrenches != found.wrenches


def test_a_ladder_within_a_budget(tmp_path):
    m = pliant.gallery.ladder(4)
    body = m.end_effectors[0]
    largest = [{body: (300, 0, 0)}, {body: (-300.0, 0, 0)}]
    found = sample(m, wrenches=largest, tolerance=0.0, budget=8, **SMALL)
    assert len(found.model.models) == 8
    assert not found.reached
    # It has one way to move: any model is exact.
    assert found.curve.max() < 1e-9
    assert found.accuracy.worst < 1e-9
    for each in found.accuracy.wrenches:
        assert abs(each[body][0]) < 300
        assert each[body][1:] == (0, 0)
    text = found.summary()
    assert text.startswith(f"{m.name}: 8 models, tolerance 0 of the radius not reached\n8 fresh wrenches: ")
    found.plot(tmp_path / "ladder.png")
    assert (tmp_path / "ladder.png").stat().st_size > 10_000
    # One model is the budget: nothing is chosen. More than there are candidates: all are.
    assert len(sample(m, wrenches=300, tolerance=0.0, budget=1, **SMALL).curve) == 1
    few = sample(m, wrenches=300, tolerance=0.0, candidates=3, held_out=2, **QUIET)
    assert len(few.model.models) == 4
    assert few.curve[-1, 1] < 1e-8


def test_wrenches_of_other_kinds():
    m = pliant.gallery.helix(12)
    turning = {"force": (0, 0, -100), "point": (0, 0.01, 0), "frame": "body"}
    found = sample(m, wrenches=[{"link12": turning}], tolerance=0.0, budget=3, **SMALL)
    for each in found.accuracy.wrenches:
        wrench = each["link12"]
        assert wrench["frame"] == "body"
        assert wrench["torque"] == pytest.approx(np.cross((0, 0.01, 0), wrench["force"]))
    pushed = {"force": (0, 0, -100), "point": (0, 0.01, 0)}
    found = sample(m, wrenches=[{"link12": pushed}], tolerance=0.0, budget=3, **SMALL)
    assert found.wrenches[-1]["link12"]["point"] == [0, 0.01, 0]
    # By default the softest end effector moves by half the radius, to first order.
    size = 0.5 * m.radius * pliant.reduce(m).stiffness_ellipsoid("link12").stiffness[0]
    same(*(sample(m, wrenches=given, tolerance=0.0, budget=2, **SMALL) for given in (None, size)))


def test_problems_are_told():
    m = column()
    found = sample(m, "b4", wrenches=[{"b4": (0, 0.001, -3.95)}, {"b4": (0, 0, -20)}], tolerance=0.0, **SMALL)
    assert found.problems[0] == "unstable under b4 (0, 0, -20) N"  # the straight chain
    near = [problem for problem in found.problems if problem.startswith("near buckling")]
    at = pliant.equilibrium(m, {"b4": (0, 0.001, -3.95)})
    left = at.frequencies(1)[0] / pliant.Configuration(m).frequencies(1)[0]
    assert f"near buckling under b4 (0, 0.001, -3.95) N: lowest frequency {left:.2g} of that at rest" in near
    assert "problems:\n  unstable under" in found.summary()
    assert np.isfinite(found.curve).all()
    assert found.curve[-1, 1] < 1e-3
    found.plot()
    straight = sample(m, "b4", wrenches=[{"b4": (0, 0, -20)}], tolerance=0.0, **SMALL)
    assert len(straight.problems) > 5
    assert "unstable" in straight.accuracy.problems
    hopeless = sample(m, "b4", wrenches=[{"b4": (0, 0, -20)}], candidates=1, held_out=1, seed=3, **QUIET)
    assert np.isnan(hopeless.curve).all()
    assert not hopeless.reached
    hopeless.summary()
    hopeless.plot()


# --- going on after an interruption


@pytest.mark.parametrize("last", [0, 8, 16, 20])
def test_interrupted_and_resumed(tmp_path, monkeypatch, last):
    m = pliant.gallery.ladder(4)
    arguments = {"wrenches": 300, "tolerance": 0.0, "budget": 4, **SMALL}
    whole = sample(m, **arguments)
    path, solve, calls = tmp_path / "samples.npz", accuracy.solve_cases, []
    monkeypatch.setattr(sampling, "_PART", 4)

    def until(mechanism, loads, **options):
        if len(calls) == last:
            raise KeyboardInterrupt
        calls.extend(loads)
        return solve(mechanism, loads, **options)

    monkeypatch.setattr(accuracy, "solve_cases", until)
    with pytest.raises(KeyboardInterrupt):
        sample(m, **arguments, resume=path)
    kept = np.load(path)
    assert (kept["state"] > 0).sum() == last

    def counting(mechanism, loads, **options):
        calls.extend(loads)
        return solve(mechanism, loads, **options)

    monkeypatch.setattr(accuracy, "solve_cases", counting)
    same(sample(m, **arguments, resume=path), whole)
    assert len(calls) == 24  # none was searched twice
    same(sample(m, **arguments, resume=path), whole)
    assert len(calls) == 24
    more = sample(m, **{**arguments, "budget": 6}, resume=path)
    assert len(more.curve) == 6
    assert np.array_equal(more.curve[:4], whole.curve)
    assert len(calls) == 24
    assert [file.name for file in tmp_path.iterdir()] == ["samples.npz"]


def test_files_that_do_not_fit(tmp_path):
    m = pliant.gallery.helix(12)
    path = tmp_path / "samples.npz"
    arguments = {"wrenches": 200.0, "budget": 2, **SMALL}
    sample(m, **arguments, resume=path)
    whole = path.read_bytes()
    for change, culprit in (
        ({"seed": 1}, "'seed'"),
        ({"candidates": 17}, "'candidates'"),
        ({"wrenches": 100}, "other wrenches"),
        ({"end_effectors": "link6"}, "'end_effectors'"),
    ):
        with pytest.raises(FormatError, match=culprit):
            sample(m, **{**arguments, **change}, resume=path)
    with pytest.raises(FormatError, match="'mechanism'"):
        sample(m.with_stiffness(m.dof_names[:1], 3.0), **arguments, resume=path)
    for damaged in (b"", whole[: len(whole) // 2], b"x" * 500):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match="damaged"):
            sample(m, **arguments, resume=path)
        assert path.read_bytes() == damaged
    path.write_bytes(whole)
    arrays = dict(np.load(path))
    for name, value, words in (
        ("state", arrays["state"] + 9, "unknown numbers"),
        ("q", arrays["q"][:, :-1], "'q'"),
        ("q", np.full_like(arrays["q"], np.nan), "finite"),
        ("about", np.zeros(3, dtype=np.uint8), "no samples"),
    ):
        np.savez(path, **{**arrays, name: value})
        with pytest.raises(FormatError, match=words):
            sample(m, **arguments, resume=path)
    cable = pliant.gallery.cable(3)
    sample(cable, wrenches=1.0, **SMALL, resume=tmp_path / "balls.npz")
    arrays = dict(np.load(tmp_path / "balls.npz"))
    np.savez(tmp_path / "balls.npz", **{**arrays, "q": 0 * arrays["q"]})
    with pytest.raises(FormatError, match="damaged"):
        sample(cable, wrenches=1.0, **SMALL, resume=tmp_path / "balls.npz")
    pliant.reduce(m).save(path)
    with pytest.raises(FormatError, match="no samples"):
        sample(m, **arguments, resume=path)
    with pytest.raises(FormatError, match="cannot be written"):
        sample(m, **arguments, resume=tmp_path / "none" / "samples.npz")


# --- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tolerance": -0.1}, "tolerance: a number from 0"),
        ({"tolerance": "small"}, "tolerance: a number from 0"),
        ({"budget": 0}, "budget: a whole number from 1"),
        ({"budget": 2.5}, "budget: a whole number from 1"),
        ({"seed": -1}, "seed: a whole number from 0"),
        ({"candidates": 0}, "candidates: a whole number from 1"),
        ({"held_out": True}, "held_out: a whole number from 1"),
        ({"inertia": "none"}, "inertia is one of"),
        ({"exponent": 0}, "exponent: a number above 0"),
        ({"wrenches": -3}, "a force above 0 N"),
        ({"wrenches": float("nan")}, "a force above 0 N"),
        ({"wrenches": True}, "a force in N, or a sequence"),
        ({"wrenches": {"link12": (1, 0, 0)}}, "a force in N, or a sequence"),
        ({"wrenches": [3]}, "item 0 is no mapping"),
        ({"wrenches": []}, "at least one"),
        ({"wrenches": [{"link12": (0, 0, 0)}]}, "at least one"),
        ({"wrenches": [{"link12": (0, 0)}]}, "wrench on 'link12'"),
        ({"wrenches": [{"link12": (1, 0, 0)}, {"link12": {"force": (1, 0, 0), "frame": "body"}}]}, "mixed"),
        ({"wrenches": 1, "resume": 3}, "resume: a string or a path"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(InputError, match=words):
        sample(pliant.gallery.helix(12), **{"progress": False, **arguments})


def test_bad_bodies_and_models():
    m = pliant.gallery.helix(12)
    with pytest.raises(UnknownNameError, match="'link3' is no end effector"):
        sample(m, wrenches=[{"link3": (1, 0, 0)}], **QUIET)
    with pytest.raises(UnknownNameError, match="'link3' is no end effector"):
        measure(pliant.reduce(m), [{"link3": (1, 0, 0)}])
    with pytest.raises(InputError, match="a ReducedModel or a BlendedModel expected"):
        measure(m, [])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="a sequence of mappings"):
        measure(pliant.reduce(m), {"link12": (1, 0, 0)})  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="item 1 is no mapping"):
        measure(pliant.reduce(m), [{}, 3])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="floats: hold it first"):
        sample(pliant.gallery.hexapod(), wrenches=1.0, **QUIET)


def test_progress_bars(capsys):
    sample(pliant.gallery.helix(12), wrenches=200, candidates=2, held_out=1, budget=2)
    measure(pliant.reduce(pliant.gallery.helix(12)), [{}], progress=True)
    assert capsys.readouterr().out == ""
