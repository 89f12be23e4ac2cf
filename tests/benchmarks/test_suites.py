"""The benchmark suites: the smallest piece of each has the right shape, and a run that fails is never timed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

import pliant
from pliant.engines.constrained.gs17 import inverse as engine
from pliant_benchmarks import SUITES, models, peers, statics
from pliant_benchmarks.constrained import chain, pendulum
from pliant_benchmarks.constrained.inverses import build_problem, invert_by_blocks
from pliant_benchmarks.contact import grasp, hexapod
from pliant_benchmarks.harness.timing import Timing, time_steps
from pliant_benchmarks.peers import mujoco
from pliant_benchmarks.quasistatic import linkages, places
from pliant_benchmarks.quasistatic import loops as quasistatic_loops
from pliant_benchmarks.quasistatic.scaling import measure_molecule
from pliant_benchmarks.reduced import far_from_rest, largest_step
from pliant_benchmarks.reduced.articulated import check_step
from pliant_benchmarks.systems import Chain, Pushed, RandomPushes, StaticCase, measure_gaps, settle

PEERS = ("dartpy", "drake", "pydrake", "exudyn", "pinocchio")


def quiet(text: str) -> None:
    """Nobody is told."""


def test_suites_have_parts_and_import_no_peer():
    """In a process in which importing a peer fails."""
    code = f"""
import sys
from importlib import import_module
sys.modules.update(dict.fromkeys({PEERS}))
from pliant_benchmarks import SUITES
for suite in SUITES:
    parts = import_module("pliant_benchmarks." + suite).PARTS
    assert parts and all(callable(part) for part in parts)
print(*SUITES)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert tuple(done.stdout.split()) == SUITES


def test_tables_are_plain_data():
    table = pendulum.work(True, quiet)
    assert (table.suite, table.key, table.source) == ("constrained", "gs17-figure-3", "GS17 Fig. 3")
    # About principal axes the diagonal bounds the work of the geometric stiffness; as printed it does not.
    for row in table.rows:
        assert row.ours == 100.0
        assert row.peer is not None
        assert 0 < row.peer < 100.0
    assert [len(figure.series) for figure in table.figures] == [3, 3]
    assert len(json.dumps(asdict(table))) > 1000


def test_ladders_in_quasi_statics():
    table = quasistatic_loops.loops(True, quiet)
    assert [row.values["loops"] for row in table.rows] == [16, 64]
    assert all(row.ours is not None and row.ours > 0 for row in table.rows)


def test_displacement_errors_of_rigid_and_zeroed_joints():
    found = {(3, power): [one] for power, one in places.measure_errors(1500, 3, 5, 40, (3, 7)).items()}
    table = places.make_table(found, 1500, 40)
    assert [row.case for row in table.rows] == ["3 forces, 2^-3", "3 forces, 2^-7"]
    for row in table.rows:
        assert row.ours is not None
        assert row.peer is not None
        assert 0 < 5 * row.ours < row.peer
        assert row.values["error at the end"] == pytest.approx(40 * row.ours)
    ends = [row.values["error at the end"] for row in table.rows]
    assert ends[1] < 0.2 * ends[0]
    assert 10 < table.rows[0].values["joints computed"] < table.rows[1].values["joints computed"] < 200


def test_inverses_agree_and_low_rank_wins():
    p = build_problem(10, 0.01)
    full = engine.effective_inverse_full(*p)
    np.testing.assert_allclose(
        engine.effective_inverse_low_rank(*p), full, rtol=0, atol=1e-12 * abs(full).max()
    )
    for i, block in enumerate(invert_by_blocks(*p)):
        at = slice(6 * i + 3, 6 * i + 6)
        np.testing.assert_allclose(block, full[at, at], rtol=0, atol=1e-12 * abs(full).max())


def test_a_chain_that_blows_up_is_not_timed():
    heavy = Chain(ratio=1e6)
    assert chain.holds("mujoco", "Euler", heavy, 1 / 60, 1.0, 10.0) in ("energy", "not finite")
    assert chain.holds("pliant", "newmark", heavy, 1 / 60, 1.0, 10.0) == ""
    times = {
        "pliant newmark": Timing(1e-5, 1e-6, 9e-6),
        "mujoco Euler": Timing(1e-6, 1e-7, 9e-7),
    }
    row = chain._compare_best("MuJoCo", 10, times["pliant newmark"].scaled(1e6), times, {"mujoco Euler"})
    assert (row.peer, row.ratio) == (None, None)
    assert "blows up" in row.stable
    row = chain._compare_best("MuJoCo", 10, times["pliant newmark"].scaled(1e6), times, set())
    assert row.ratio == pytest.approx(0.1)  # the peer wins, and the table says so


def test_a_run_that_fails_while_it_is_timed_is_left_out():
    taken = []

    def diverges(n):
        taken.append(n)
        if len(taken) > 3:
            raise pliant.errors.ConvergenceError("left the finite numbers")

    runs = {"good": lambda n: None, "raises": diverges, "warns": lambda n: None}
    times = time_steps(runs, 3, most=2, failed=lambda name: name == "warns")
    assert set(times) == {"good"}
    assert len(taken) == 4


def test_a_missing_peer_is_named(monkeypatch):
    def missing(name):
        raise ImportError("No module named 'dartpy'")

    monkeypatch.setattr(peers, "import_module", missing)
    there, words = peers.find_all(("dart",))
    assert there == {}
    assert words == ["DART is left out: No module named 'dartpy' (`make peers` installs the peers)"]


def test_powers_of_the_mass_ratio(monkeypatch):
    monkeypatch.setattr(
        chain, "holds", lambda name, setting, system, *rest: "gap" if system.ratio > 50 else ""
    )
    assert chain.find_highest("dart", "Euler", "ball", ".01", range(2), 1.0, 1.0) == (1, "gap")
    monkeypatch.setattr(chain, "holds", lambda *rest: "energy")
    assert chain.find_highest("dart", "Euler", "ball", ".01", range(2), 1.0, 1.0) == (None, "energy")
    monkeypatch.setattr(chain, "holds", lambda *rest: "")
    assert chain.find_highest("dart", "Euler", "ball", ".01", range(2), 1.0, 1.0) == (8, "")


def test_a_small_molecule():
    found = measure_molecule(1000, rounds=1)
    assert set(found["times"]) == {"2^-3", "2^-7", "ABA", "DCA"}
    assert 0 < found["joints computed"] < 100
    assert found["depth of the tree"] < 25
    assert found["missing"] == []


def test_the_chosen_bodies_are_neighbours():
    m = linkages.build_linkage("molecule", 200)
    bodies = linkages.choose_bodies(m, 20, neighbours=True)
    assert len(set(bodies)) == 20
    parent = m.topology.parent
    assert all(any(parent[a] == b or parent[b] == a for b in bodies if b != a) for a in bodies)
    assert linkages.choose_bodies(m, 20, neighbours=False) == sorted(
        linkages.choose_bodies(m, 20, neighbours=False)
    )


def test_a_grasp_holds_or_has_no_time():
    setting = mujoco.Setting("implicitfast", "elliptic", 100, 0)
    found = grasp.find_holding(grasp.Ours, (1 / 10,))
    assert [h for h, _ in found] == [1 / 10]
    assert found[0][1].ball[2] == pytest.approx(0.13, abs=3e-3)
    # MuJoCo loses the ball in steps of a tenth of a second: no step counts.
    assert grasp.find_holding(lambda h: mujoco.Grasp(h, setting), (1 / 10,)) == []
    timing = Timing(80.0, 1.0, 79.0)
    row = grasp._row("full hand", "full", {("discrete", 1 / 20): timing})
    assert (row.ours, row.peer, row.ratio) == (None, 80.0, None)
    assert "holds at no step" in row.stable
    row = grasp._row("reduced hand", "reduced", {("reduced", 1 / 5): timing})
    assert (row.ours, row.peer, row.ratio) == (80.0, None, None)
    assert "MuJoCo: holds at no" in row.stable


def test_both_engines_hold_the_ball_alike():
    """The same hand, ball and forces; MuJoCo with contacts as good as rigid."""
    ours = grasp.Ours(1 / 500)
    other = mujoco.Grasp(1 / 2000, mujoco.Setting("implicitfast", "elliptic", 100, 20), rigid=True)
    for run in (ours, other):
        run.run(3.0)
    assert np.linalg.norm(ours.ball - other.ball) < 5e-4
    assert ours.squeeze == pytest.approx(other.squeeze, rel=0.02)


def test_both_hexapods_come_down_on_the_same_place():
    ours = hexapod.Ours(1 / 60, "reduced", walks=False)
    other = mujoco.Walk(1 / 1000, mujoco.Setting("implicitfast", "elliptic", 10), walks=False, rigid=True)
    for run in (ours, other):
        run.run(2.0)
        assert not run.failed
    assert np.linalg.norm(ours.place - other.place) < 2e-3


def test_exudyn_bends_a_helix_as_pliant_does():
    pytest.importorskip("exudyn", reason="peers come with `make peers`")
    from pliant_benchmarks.peers import exudyn

    case = Pushed("helix(10)", lambda: pliant.gallery.helix(10))
    run = exudyn.PushedTree(case)
    assert np.abs(run.displacement).max() < 1e-12
    run.step(15_000)
    assert not run.failed
    rest = pliant.equilibrium(case.m, {case.tip: {"force": case.force, "point": case.point}})
    np.testing.assert_allclose(run.displacement, case.displacement(rest.poses), atol=1e-5 * case.m.radius)


@pytest.mark.parametrize(
    ("name", "ways"),
    [("chain", ("tree", "EP")), ("planar loops", ("planar", "EP", "Rxyz")), ("loop", ("EP",))],
)
def test_exudyn_settles_where_pliant_does(name, ways):
    """Every way to say a mechanism in Exudyn is the same mechanism: all bodies end in the same places."""
    pytest.importorskip("exudyn", reason="peers come with `make peers`")
    from pliant_benchmarks.peers import exudyn

    case = {
        "chain": StaticCase("helix(10)", pliant.gallery.helix(10), "link10", np.array([0.0, 60, -80])),
        "planar loops": StaticCase("ladder(3)", pliant.gallery.ladder(3), "rung3", np.array([80.0, 0, -60])),
        "loop": StaticCase("tangle()", statics.build_tangle(), "branch6", np.array([0.0, 10, -10])),
    }[name]
    assert case.planar == (name == "planar loops")
    found = pliant.equilibrium(case.m, {case.body: case.force})
    assert found.displacement.max() > 0.01 * case.m.radius
    for way in ways:
        static = exudyn.Static(case, way)
        assert static.error(case.m.reference_poses) < 1e-12
        assert static.solve(exudyn.Setting(way, "EigenSparse", 2, False, 1e-8))
        assert static.error(found.poses) < 1e-7


def test_exudyn_that_agrees_at_no_setting_has_no_time():
    pytest.importorskip("exudyn", reason="peers come with `make peers`")
    from pliant_benchmarks.peers import exudyn

    case = StaticCase("stage", pliant.gallery.flexure_stage(), "stage", np.array([40.0, 0, 0]))
    elsewhere = case.m.reference_poses + 1.0
    nothing = exudyn.find_fastest(case, elsewhere, patience=0.2)
    assert (nothing.static, nothing.setting, nothing.agreed) == (None, None, 0)
    assert nothing.tried > 1
    row = statics.solve_beside(case, 1, patience=0.2)
    assert "planar" in row.peer_name
    assert row.values["apart, of radius"] < exudyn.TOLERANCE


def test_articulated_bodies_agree_with_a_dense_solve():
    case = Pushed("helix(8)", lambda: pliant.gallery.helix(8))
    assert check_step(case, None)["own kernels"] < 1e-9


def test_the_push_moves_the_tip_as_far_as_it_says():
    case = Pushed("helix(8)", lambda: pliant.gallery.helix(8), 0.01)
    there = case.displacement(settle(case.simulation(1 / 60), float(case.model.frequencies()[0])))
    assert np.linalg.norm(there) == pytest.approx(0.01 * case.m.radius, rel=0.02)


def test_gaps_are_distances_between_anchors():
    m = pliant.gallery.ladder(3)
    assert measure_gaps(m, m.reference_poses).max() < 1e-12
    poses = m.reference_poses.copy()
    poses[m.body_index(m.end_effectors[0]), 2, 3] += 0.25
    found = measure_gaps(m, poses)
    touching = (m.joint_parents == m.body_index(m.end_effectors[0])) | (
        m.joint_children == m.body_index(m.end_effectors[0])
    )
    assert found[touching] == pytest.approx(0.25)
    assert found[~touching].max() < 1e-12


@pytest.fixture
def coarse(monkeypatch):
    """A coarser truth: quicker, good enough for a slow push."""
    monkeypatch.setattr(largest_step, "FINE", 5e-4)


def test_a_diverging_run_has_no_time(coarse):
    case = RandomPushes("helix(8)", pliant.gallery.helix(8), 2)
    reference = largest_step.Reference(case, "slow", 0.02)
    assert not reference.failure
    entries = {
        name: make
        for name, make in largest_step.list_contenders(case).items()
        if name in ("reduced", "MuJoCo RK4", "MuJoCo discrete")
    }
    found = largest_step.find_steps(reference, entries, [0.05, 0.01])
    found = largest_step._time(reference, "slow", entries, found, 1)
    diverged = next(o for o in found if o.contender == "MuJoCo RK4")
    assert diverged.h == 0.05
    assert diverged.cost is None
    assert diverged.failure
    assert np.isnan(diverged.error)
    for name in ("reduced", "MuJoCo discrete"):
        last = [o for o in found if o.contender == name][-1]
        assert last.cost is not None
        assert last.error < 0.02


def test_all_pushes_have_to_hold(coarse):
    """The error of a step is that of its worst push, and the search ends at the first step that holds."""
    case = RandomPushes("helix(8)", pliant.gallery.helix(8), 3)
    reference = largest_step.Reference(case, "slow", 0.02)
    make = largest_step.list_contenders(case, ())["constrained"]
    paths = reference._traces(make(0.01), 0.01, 0.5)
    errors = [reference.error(k, path) for k, path in enumerate(paths)]
    assert reference.judge("", 0.01, make(0.01)).error == pytest.approx(max(errors), rel=1e-9)
    assert reference.error(0, reference.paths[0]) == 0.0
    assert reference.error(0, 1.01 * reference.paths[0]) < 0.01
    found = largest_step.find_steps(reference, {"constrained": make}, [0.25, 0.01, 0.005])
    assert [o.holds for o in found] == [False] * (len(found) - 1) + [True]


def test_references_of_a_loop_agree(coarse):
    case = RandomPushes("gripper", pliant.gallery.gripper(), 1)
    reference = largest_step.Reference(case, "slow", 0.1)
    assert 0 < reference.apart < 1e-3
    assert len(largest_step.list_contenders(case)) == 4 + 2 * len(mujoco.INTEGRATORS)


@pytest.mark.parametrize("name", ["arm", "gripper"])
def test_random_pushes_move_by_their_size(name):
    m = pliant.gallery.make(name)
    case = RandomPushes(name, m)
    for forces in case.pushes(1e-5):
        c = pliant.equilibrium(m, case.wrenches(forces))
        moved = case.displacement(c.poses)
        assert np.linalg.norm(moved, axis=1).max() == pytest.approx(1e-5 * m.radius, rel=5e-3)
        assert far_from_rest.static_error(case, c, forces) < 5e-3
        points = np.einsum("eij,ej->ei", c.poses[case.bodies, :3, :3], m.com[case.bodies])
        before = np.einsum("eij,ej->ei", m.reference_poses[case.bodies, :3, :3], m.com[case.bodies])
        work = (forces * (moved + points - before)).sum()
        assert case.work(forces) == pytest.approx(work, rel=5e-3)


def test_undamped_swings_are_compared():
    table = far_from_rest.free_swing(True, quiet)
    assert [row.case for row in table.rows] == ["gripper(): reduced", "gripper(): constrained"]
    for row in table.rows:
        assert row.ours is not None
        assert 0 <= row.values["least energy, %"] <= 100 <= row.values["most energy, %"] < 200


def test_one_model_at_rest():
    table = far_from_rest.far_statics(True, quiet)
    assert [row.target for row in table.rows] == ["0.2 %", "0.5 %"]
    assert all(row.ours is not None and row.ours >= 0 for row in table.rows)


def test_a_missing_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "MENAGERIE", tmp_path)
    with pytest.raises(FileNotFoundError, match="2f85"):
        models.MODELS["Robotiq 2F-85"]()


def test_real_files_rest_at_their_reference_pose():
    for name, make in models.MODELS.items():
        try:
            m = make()
        except FileNotFoundError:
            continue
        s = pliant.ConstrainedSimulation(m, 1e-3, (0, 0, 0))
        s.step(10)
        assert np.abs(s.poses - m.reference_poses).max() < 1e-10, name


def test_only_what_is_within_the_bound_counts():
    def outcome(contender, h, error, cost):
        timing = Timing(cost, 0.0, cost) if cost else None
        return largest_step.Outcome(contender, h, error, cost=timing, failure="" if cost else "x")

    found = largest_step._rows(
        "helix",
        [
            outcome("reduced", 0.1, 0.02, 2e-5),
            outcome("reduced", 0.01, 0.009, 2e-4),
            outcome("constrained", 0.01, float("nan"), None),
            outcome("constrained", 0.001, 0.03, 1e-2),
            outcome("MuJoCo Euler", 0.001, 0.001, 4e-2),
            outcome("MuJoCo Euler", 0.01, float("nan"), None),
            outcome("MuJoCo discrete", 0.1, 0.5, 1e-5),
        ],
        "100x",
        0.002,
    )
    reduced, full = found
    assert reduced.ours == pytest.approx(0.2)
    assert reduced.peer == pytest.approx(40.0)
    assert reduced.ratio == pytest.approx(200.0)
    assert reduced.peer_name == "MuJoCo Euler, 1 ms, error 0.1 %"
    assert (reduced.target, reduced.values) == ("100x", {"references apart, %": 0.2})
    assert (full.ours, full.ratio, full.note) == (None, None, "not within 1 %: 3 % at 1 ms")
    assert (full.stable, full.target) == ("not at 10 ms: x", "")
