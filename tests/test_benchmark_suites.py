"""The benchmark suites: the smallest piece of each has the right shape, and a run that fails is never timed."""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np
import pytest

import pliant

SUITES = ("start", "statics", "reduced", "blended", "constrained", "quasistatic", "contact")
PEERS = ("dartpy", "drake", "pydrake", "exudyn", "pinocchio")


@pytest.fixture
def bench(benchmarks):
    """Imports a module of benchmarks/."""
    return importlib.import_module


def quiet(text: str) -> None:
    """Nobody is told."""


@pytest.mark.parametrize("suite", SUITES)
def test_suites_have_a_name_and_import_no_peer(bench, suite, monkeypatch):
    for peer in PEERS:
        monkeypatch.setitem(sys.modules, peer, None)  # importing it fails
    module = bench(suite)
    assert suite == module.SUITE
    assert all(callable(part) for part in module.PARTS)


def test_tables_are_plain_data(bench):
    table = bench("gs17_pendulum").work(True, quiet)
    assert (table.suite, table.key, table.source) == ("constrained", "gs17-figure-3", "GS17 Fig. 3")
    # About principal axes the diagonal bounds the work of the geometric stiffness; as printed it does not.
    for row in table.rows:
        assert row.ours == 100.0
        assert 0 < row.peer < 100.0
    assert [len(figure.series) for figure in table.figures] == [3, 3]
    assert len(json.dumps(bench("results").as_json([table]))) > 1000


def test_inverses_agree_and_low_rank_wins(bench):
    ways, engine = bench("peers.lowrank"), bench("pliant.engines.constrained.inverses")
    p = ways.problem(10, 0.01)
    full = engine.effective_inverse_full(*p)
    np.testing.assert_allclose(
        engine.effective_inverse_low_rank(*p), full, rtol=0, atol=1e-12 * abs(full).max()
    )
    for i, block in enumerate(ways.by_blocks(*p)):
        at = slice(6 * i + 3, 6 * i + 6)
        np.testing.assert_allclose(block, full[at, at], rtol=0, atol=1e-12 * abs(full).max())


def test_a_chain_that_blows_up_is_not_timed(bench):
    chains, speed, peers = bench("chains"), bench("chain_speed"), bench("peers")
    heavy = peers.Chain(ratio=1e6)
    assert chains.holds("mujoco", "Euler", heavy, 1 / 60, 1.0, 10.0) in ("energy", "not finite")
    assert chains.holds("pliant", "newmark", heavy, 1 / 60, 1.0, 10.0) == ""
    measure = bench("measure")
    times = {
        "pliant newmark": measure.Timing(1e-5, 1e-6, 9e-6),
        "mujoco Euler": measure.Timing(1e-6, 1e-7, 9e-7),
    }
    row = speed._best("MuJoCo", 10, times["pliant newmark"].scaled(1e6), times, {"mujoco Euler"})
    assert (row.peer, row.ratio) == (None, None)
    assert "blows up" in row.stable
    row = speed._best("MuJoCo", 10, times["pliant newmark"].scaled(1e6), times, set())
    assert row.ratio == pytest.approx(0.1)  # the peer wins, and the table says so


def test_a_run_that_fails_while_it_is_timed_is_left_out(bench):
    errors, turns = bench("pliant.errors"), bench("turns")
    taken = []

    def diverges(n):
        taken.append(n)
        if len(taken) > 3:
            raise errors.ConvergenceError("left the finite numbers")

    runs = {"good": lambda n: None, "raises": diverges, "warns": lambda n: None}
    times = turns.per_step(runs, 3, most=2, failed=lambda name: name == "warns")
    assert set(times) == {"good"}
    assert len(taken) == 4


def test_a_missing_peer_is_named(bench, monkeypatch):
    peers = bench("peers")

    def missing(name):
        raise ImportError("No module named 'dartpy'")

    monkeypatch.setattr(peers, "import_module", missing)
    there, words = peers.found(("dart",))
    assert there == {}
    assert words == ["DART is left out: No module named 'dartpy' (`make peers` installs the peers)"]


def test_powers_of_the_mass_ratio(bench, monkeypatch):
    ratios = bench("gs17_ratios")
    monkeypatch.setattr(
        ratios, "holds", lambda name, setting, system, *rest: "gap" if system.ratio > 50 else ""
    )
    assert ratios.highest("dart", "Euler", "ball", ".01", range(2), 1.0, 1.0) == (1, "gap")
    monkeypatch.setattr(ratios, "holds", lambda *rest: "energy")
    assert ratios.highest("dart", "Euler", "ball", ".01", range(2), 1.0, 1.0) == (None, "energy")
    monkeypatch.setattr(ratios, "holds", lambda *rest: "")
    assert ratios.highest("dart", "Euler", "ball", ".01", range(2), 1.0, 1.0) == (8, "")


def test_a_small_molecule(bench):
    found = bench("scaling").one(1000, rounds=1)
    assert set(found["times"]) == {"2^-3", "2^-7", "ABA", "DCA"}
    assert 0 < found["joints computed"] < 100
    assert found["depth of the tree"] < 25
    assert found["missing"] == []


def test_the_chosen_bodies_are_neighbours(bench):
    rl05 = bench("rl05")
    m = rl05.linkage("molecule", 200)
    bodies = rl05.chosen(m, 20, neighbours=True)
    assert len(set(bodies)) == 20
    parent = m.topology.parent
    assert all(any(parent[a] == b or parent[b] == a for b in bodies if b != a) for a in bodies)
    assert rl05.chosen(m, 20, neighbours=False) == sorted(rl05.chosen(m, 20, neighbours=False))


def test_a_grasp_holds_or_has_no_time(bench):
    grasp = bench("contact_grasp")
    theirs = bench("grasp_mujoco")
    setting = theirs.Setting("implicitfast", "elliptic", 100, 0)
    found = grasp.holding(grasp.Ours, (1 / 10,))
    assert [h for h, _ in found] == [1 / 10]
    assert found[0][1].ball[2] == pytest.approx(0.13, abs=3e-3)
    # MuJoCo loses the ball in steps of a tenth of a second: no step counts.
    assert grasp.holding(lambda h: theirs.Grasp(h, setting), (1 / 10,)) == []
    timing = bench("measure").Timing(80.0, 1.0, 79.0)
    row = grasp._row("full hand", "full", {("discrete", 1 / 20): timing}, tried=True)
    assert (row.ours, row.peer, row.ratio) == (None, 80.0, None)
    assert "holds at no step" in row.stable
    row = grasp._row("reduced hand", "reduced", {("reduced", 1 / 5): timing}, tried=True)
    assert (row.ours, row.peer, row.ratio) == (80.0, None, None)
    assert "MuJoCo: holds at no" in row.stable


def test_both_engines_hold_the_ball_alike(bench):
    """The same hand, ball and forces; MuJoCo with contacts as good as rigid."""
    ours, theirs = bench("contact_grasp").Ours(1 / 500), bench("grasp_mujoco")
    other = theirs.Grasp(1 / 2000, theirs.Setting("implicitfast", "elliptic", 100, 20), rigid=True)
    for run in (ours, other):
        run.run(3.0)
    assert np.linalg.norm(ours.ball - other.ball) < 5e-4
    assert ours.squeeze == pytest.approx(other.squeeze, rel=0.02)


def test_both_hexapods_come_down_on_the_same_place(bench):
    walk, theirs = bench("contact_walk"), bench("hexapod_mujoco")
    ours = walk.Ours(1 / 60, "reduced", walks=False)
    other = theirs.Walk(1 / 1000, theirs.Setting("implicitfast", "elliptic", 10), walks=False, rigid=True)
    for run in (ours, other):
        run.run(2.0)
        assert not run.failed
    assert np.linalg.norm(ours.place - other.place) < 2e-3


def test_exudyn_bends_a_helix_as_pliant_does(bench):
    pytest.importorskip("exudyn", reason="peers come with `make peers`")
    pushed, peer = bench("pushed"), bench("exudyn_tree")
    case = pushed.Pushed("helix(10)", lambda: pliant.gallery.helix(10))
    run = peer.Exudyn(case)
    assert np.abs(run.displacement).max() < 1e-12
    run.step(15_000)
    assert not run.failed
    rest = pliant.equilibrium(case.m, {case.tip: {"force": case.force, "point": case.point}})
    np.testing.assert_allclose(run.displacement, case.displacement(rest.poses), atol=1e-5 * case.m.radius)


@pytest.mark.parametrize(
    ("name", "ways"),
    [("chain", ("tree", "EP")), ("planar loops", ("planar", "EP", "Rxyz")), ("loop", ("EP",))],
)
def test_exudyn_settles_where_pliant_does(bench, name, ways):
    """Every way to say a mechanism in Exudyn is the same mechanism: all bodies end in the same places."""
    pytest.importorskip("exudyn", reason="peers come with `make peers`")
    peer, statics = bench("exudyn_statics"), bench("statics")
    case = {
        "chain": peer.Case("helix(10)", pliant.gallery.helix(10), "link10", np.array([0.0, 60, -80])),
        "planar loops": peer.Case("ladder(3)", pliant.gallery.ladder(3), "rung3", np.array([80.0, 0, -60])),
        "loop": peer.Case("tangle()", statics.tangle(), "branch6", np.array([0.0, 10, -10])),
    }[name]
    assert case.planar == (name == "planar loops")
    found = pliant.equilibrium(case.m, {case.body: case.force})
    assert found.displacement.max() > 0.01 * case.m.radius
    for way in ways:
        static = peer.Static(case, way)
        assert static.error(case.m.reference_poses) < 1e-12
        assert static.solve(peer.Setting(way, "EigenSparse", 2, False, 1e-8))
        assert static.error(found.poses) < 1e-7


def test_exudyn_that_agrees_at_no_setting_has_no_time(bench):
    pytest.importorskip("exudyn", reason="peers come with `make peers`")
    peer, statics = bench("exudyn_statics"), bench("statics")
    case = peer.Case("stage", pliant.gallery.flexure_stage(), "stage", np.array([40.0, 0, 0]))
    elsewhere = case.m.reference_poses + 1.0
    nothing = peer.best(case, elsewhere, patience=0.2)
    assert (nothing.static, nothing.setting, nothing.agreed) == (None, None, 0)
    assert nothing.tried > 1
    row = statics._beside(case, 1, patience=0.2)
    assert "planar" in row.peer_name
    assert row.values["apart, of radius"] < peer.TOLERANCE
