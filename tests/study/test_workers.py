"""Running studies: the same table whoever computes it, and faults that cost their own case only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant.errors import PliantError
from pliant.study import load, workers
from pliant.study.workers import Case, Pool, _openblas, pack

REAL = {
    "mechanism": "gallery:hand",
    "parameters": {
        "soft": {"stiffness": "index*", "loguniform": [0.5, 2], "relative": True},
        "wrist": {"stiffness": "wrist*", "values": [10, 20]},
        "pull": {"uniform": [0.1, 1]},
    },
    "outputs": {
        "c": {"compliance": "index_tip", "entries": ["z.z", "z.ry"]},
        "f": {"frequencies": 2},
        "d": {"displacement": "index_tip", "wrench": {"index_tip": [0, 0, "pull"]}},
    },
    "samples": 8,
    "sampling": "latin",
    "seed": 5,
}

GRASPS = {
    "mechanism": "gallery:gripper",
    "parameters": {
        "bar": {"argument": "driver", "uniform": [0.05, 0.08]},
        "servo": {"stiffness": "left_driver", "uniform": [5, 20]},
        "grip": {"uniform": [20, 80]},
    },
    "outputs": {
        "held": {
            "grasp": "sphere",
            "size": 0.025,
            "wrench": {"left_pad": ["grip", 0, 0], "right_pad": ["-grip", 0, 0]},
        }
    },
    "samples": 4,
}


def test_this_process_one_process_two_processes_and_a_cluster_agree(make, cluster, same):
    here, one, two = ({"workers": count} for count in range(3))
    dask = {"scheduler": cluster.address}

    def agree(name, given, *ways):
        first, *others = (
            make(**given, results=f"{name}{i}.parquet").run(**way) for i, way in enumerate(ways)
        )
        for other in others:
            same(first, other)
        return first

    real = agree("real", REAL, here, one, two, dask)
    assert real.complete
    assert len(real) == 16
    noisy = agree("noisy", {}, here, {}, dask)
    assert len(set(noisy.columns["y.noise"])) == 6
    agree("grasps", GRASPS, here, one, dask)
    agree("raises", {"function": "raises"}, here, dask)
    # On the cluster, too, a case that loops or kills its process costs only itself.
    for function, says in (("loops", "TimeLimit"), ("crashes", "SIGSEGV")):
        results = make(function, results=f"{function}.parquet", time_limit=2.0).run(scheduler=cluster.address)
        assert list(results.errors) == [3]
        assert says in results.errors[3]

    # A worker that is killed loses nothing: its cases go to the other one.
    def kill(done, failed, total):
        if done >= 10:
            cluster.workers[0].kill()

    results = make("slow", 40, results="killed.parquet").run(scheduler=cluster.address, progress=kill)
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    assert results.complete
    assert results.columns["index"].tolist() == list(range(40))


def test_no_workers_no_processes(make, monkeypatch):
    """Cases come in order; a time limit does not apply."""
    monkeypatch.setattr(subprocess, "Popen", None)
    seen = []
    results = make("slow", time_limit=0.01).run(workers=0, watch=seen.append)
    assert results.complete
    assert [row.index for row in seen] == list(range(6))
    with pytest.raises(PliantError, match="workers: a whole number from 0 to 1024 expected, not -1"):
        make(results="other.parquet").run(workers=-1)


def test_ctrl_c_in_this_process_can_be_resumed(make, folder):
    with pytest.raises(KeyboardInterrupt):
        make("interrupts").run(workers=0)
    assert load("study.parquet").columns["y"].tolist() == [0, 1, 2]
    (folder / "mended").touch()
    assert make("interrupts").run(workers=0, resume=True).columns["y"].tolist() == [0, 1, 2, 3, 4, 5]


def test_cases_in_this_process_have_one_thread(make):
    """With several, OpenBLAS adds up large matrices in another order than workers do."""
    libraries = _openblas()
    before = [read() for read, _ in libraries]
    try:
        for _, write in libraries:
            write(2)
        results = make("threads").run(workers=0)
        assert [read() for read, _ in libraries] == [2] * len(libraries)
    finally:
        for (_, write), threads in zip(libraries, before, strict=True):
            write(threads)
    assert len(results.outputs) == len(libraries)
    assert all((results.columns[name] == 1).all() for name in results.outputs)


def test_warnings_of_cases_are_ignored_and_no_others(make, recwarn):
    assert make("warns").run(workers=0).complete
    assert not recwarn
    with pytest.warns(UserWarning, match="here"):
        warnings.warn("here", stacklevel=1)


def test_results_are_those_of_plain_calls(make):
    results = make(**REAL).run(workers=0)
    hand = pliant.gallery.hand()
    for i in (0, 9):
        row = {name: column[i] for name, column in results.columns.items()}
        m = hand.with_stiffness("wrist*", row["wrist"])
        index = np.array([name.startswith("index") for name in m.joint_names])[m.dof_joint]
        m = m.replace(stiffness=np.where(index, row["soft"], 1.0) * m.stiffness)
        compliance = pliant.reduce(m, "index_tip").compliance
        assert row["c.z.z"] == pytest.approx(compliance[2, 2], rel=1e-9)
        assert row["c.z.ry"] == pytest.approx(compliance[2, 4], rel=1e-9)
        at = pliant.equilibrium(m, {"index_tip": (0, 0, row["pull"])})
        assert row["d"] == pytest.approx(at.displacement[m.body_index("index_tip")], rel=1e-9)
        assert row["f.1"] == pytest.approx(pliant.Configuration(m).frequencies(2)[0], rel=1e-9)


def test_a_killed_worker_loses_nothing(make):
    study = make("slow", 30)
    rows, killed = [], []
    with closing(Pool(pack(study), 2)) as pool:
        for row in pool.run([Case(i, study.design[i]) for i in range(30)]):
            rows.append(row)
            if len(rows) in (5, 12):
                killed.append(pool._workers[0].process.pid)
                os.kill(killed[-1], signal.SIGKILL)
    assert len(set(killed)) == 2
    assert sorted(row.index for row in rows) == list(range(30))
    assert all(row.error is None for row in rows)


def test_a_case_whose_process_was_killed_is_tried_again(make):
    results = make("crashes_once").run(workers=2)
    assert results.complete
    assert results.columns["y"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("function", "says", "bad", "workers"),
    [
        ("raises", "ValueError: three is too many", 3, 0),
        ("crashes", "ProcessDied: the process was ended by SIGSEGV, 2 times", 3, 2),
        ("loops", "TimeLimit: stopped after 1 s", 3, 2),
        ("diverges", "'y' is inf", 2, 0),
        ("leaves", "SystemExit: 7", 2, 0),
        ("leaves", "SystemExit: 7", 2, 2),
    ],
)
def test_a_bad_case_is_one_row(make, function, says, bad, workers):
    results = make(function, time_limit=1.0).run(workers=workers)
    assert results.errors == {bad: says}
    assert results.columns["index"].tolist() == list(range(6))
    good = np.arange(6) != bad
    assert np.isfinite(results.columns["y"][good]).all()


def test_failed_cases_are_run_again(make, folder):
    first = make("raises").run(workers=0)
    (folder / "mended").touch()
    again = make("raises").run(workers=0, resume=True)
    assert again.complete
    assert again.columns["y"].tolist() == [0, 1, 2, 3, 4, 5]
    assert (again.columns["duration"][:3] == first.columns["duration"][:3]).all()  # those are not


@pytest.mark.parametrize("workers", [0, 1])
def test_what_functions_print_goes_to_stderr(make, capfd, workers):
    """Not among the rows, nor into what `pliant sweep --json` prints."""
    assert make("prints").run(workers=workers).complete
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.count("in the way") == 6


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("misspells", "InputError: there is no parameter 'stifness'; there are 'x', 'k'"),
        ("text", "InputError: a number expected, not 'soft'"),
    ],
)
def test_mistakes_in_functions_are_explained(make, function, says):
    assert make(function, 2).run(workers=0).errors == {0: says, 1: says}


def test_a_function_of_a_script(folder):
    """Without a module of its own, and without `if __name__` below which to run."""
    script = folder / "script.py"
    script.write_text(
        "from pliant.study import Study\n"
        "def double(mechanism, parameters):\n    return 2 * parameters['x']\n"
        "if __name__ == '__main__':\n"
        "    study = Study('gallery:two_link', {'x': [1, 2, 3]}, {'y': double}, 'script.parquet')\n"
        "    print(study.run(workers=1).columns['y'].tolist())\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[2.0, 4.0, 6.0]\n", done.stderr


def client(folder: Path, *more: str) -> subprocess.Popen:
    """`pliant sweep` of a slow study, in a process."""
    (folder / "slow.toml").write_text(
        'mechanism = "gallery:two_link"\n'
        "[parameters.x]\nlinear = [0, 79, 80]\n"
        '[outputs.y]\nfunction = "functions_of_study:slow"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pliant", "sweep", "slow.toml", "--workers", "2", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_parts(folder: Path, process: subprocess.Popen) -> None:
    while not list(folder.glob("slow.parquet.parts/*.parquet")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_is_stopped_can_be_resumed(folder, how):
    process = client(folder)
    wait_for_parts(folder, process)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    kept = len(load("slow.parquet"))
    assert 0 < kept < 80
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert f"interrupted: {kept} of 80 results are kept in" in said
        assert said.count("\n") == 1
    time.sleep(0.3)  # its processes end with it
    before = len((folder / "calls").read_text().split())
    time.sleep(0.3)
    assert len((folder / "calls").read_text().split()) == before
    again = client(folder, "--resume")
    again.communicate(timeout=60)
    assert again.returncode == 0
    results = load("slow.parquet")
    assert results.complete
    assert not (folder / "slow.parquet.parts").exists()
    assert (results.columns["y.square"] == np.arange(80) ** 2).all()
    calls = (folder / "calls").read_text().split()
    assert len(calls) - before == 80 - kept  # nothing is computed again that was there


def test_two_clients_do_not_mix(make, folder):
    study = make("slow", 40)
    said = []

    def progress(done, failed, total):
        if done > 3 and not said:
            with pytest.raises(PliantError, match="being written by another run") as caught:
                make("slow", 40).run(resume=True)
            said.append(caught.value)

    study.run(workers=0, progress=progress)
    assert said


def test_processes_that_cannot_start(make, monkeypatch):
    monkeypatch.setattr("pliant.study.workers.CODE", "raise SystemExit(3)")
    with pytest.raises(
        PliantError, match="before they have computed anything: the process ended with code 3"
    ):
        make().run(workers=1)


def test_a_killed_scheduler_loses_no_row(make, cluster, folder):
    seen = []

    def kill(done, failed, total):
        seen.append(done)
        if done >= 10:
            cluster.scheduler.kill()

    study = make("slow", 60, results="lost.parquet")
    with pytest.raises(PliantError, match=r"the Dask scheduler was lost .* resume"):
        study.run(scheduler=cluster.address, progress=kill)
    kept = load("lost.parquet")
    assert len(kept) >= max(seen) >= 10
    assert not kept.complete
    results = make("slow", 60, results="lost.parquet").run(workers=0, resume=True)
    assert results.complete


KILLS = 10


@pytest.mark.slow
def test_ten_killed_schedulers_lose_no_row(make, clusters, folder):
    before = 0
    for _ in range(KILLS):
        with clusters() as cluster:
            seen = []

            def kill(done, failed, total, cluster=cluster, seen=seen):
                seen.append(done)
                if len(seen) == 4:
                    cluster.scheduler.kill()

            study = make("slow", 200, results="lost.parquet")
            with pytest.raises(PliantError, match=r"the Dask scheduler was lost .* resume"):
                study.run(scheduler=cluster.address, progress=kill, resume=before > 0)
        found = load("lost.parquet")
        assert len(found) >= before + 4
        assert len(found) >= max(seen)
        assert not found.complete
        before = len(found)
    results = make("slow", 200, results="lost.parquet").run(workers=0, resume=True)
    assert results.complete
    assert results.columns["index"].tolist() == list(range(200))


def test_no_scheduler(make, folder, monkeypatch):
    monkeypatch.setattr("pliant.study.cluster._CONNECT", 1)
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "junk", "", "tcp://", "tcp://127.0.0.1:not a port"):
        with pytest.raises(PliantError, match="no Dask scheduler answers at"):
            make().run(scheduler=address)
    assert not list(folder.glob("study.parquet*"))
    with pytest.raises(PliantError, match="give one of them"):
        make().run(scheduler="tcp://127.0.0.1:9", workers=2)


def test_equilibria_of_cases_that_differ_in_loads_are_found_together(make, same, monkeypatch):
    """To the last bit those of `pliant.equilibrium`, one by one; a case without one is a row with its error."""
    calls = []
    solve = workers.solve_cases
    monkeypatch.setattr(workers, "solve_cases", lambda *a, **k: calls.append(len(a[1])) or solve(*a, **k))
    b = pliant.Builder("rod")
    b.body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.5, 0, 0))
    b.hinge(
        "pin", "world", "rod", anchor=(0, 0, 0), axis=(0, 1, 0)
    )  # without a spring: gravity alone holds it
    given = {
        "mechanism": b.build(),
        "parameters": {"push": {"linear": [-4.0, 5.0, 7]}, "turn": {"values": [0.0, 1e3]}},
        "outputs": {
            "d": {
                "displacement": "rod",
                "components": ["x", "z"],
                "wrench": {"rod": ["push", 0, 1, 0, "turn", 0]},
                "gravity": True,
            },
            "f": {"frequencies": 1, "gravity": True},
        },
    }
    found = make(**given).run(workers=0)
    assert sum(calls) == 2 * 14
    assert max(calls) > 1
    same(found, make(**given, results="limited.parquet", time_limit=100.0).run(workers=0))
    assert sum(calls) == 2 * 14  # a time limit is one of single cases
    assert sorted(found.errors) == list(range(1, 14, 2))
    assert all("the load drives 'pin'" in error for error in found.errors.values())
    for i in range(0, 14, 2):
        row = {name: column[i] for name, column in found.columns.items()}
        weight = np.array([row["push"], 0, 1 - 9.81])
        assert row["d.x"] == pytest.approx(0.5 * weight[0] / np.linalg.norm(weight) - 0.5, abs=1e-9)
        assert row["d.z"] == pytest.approx(0.5 * weight[2] / np.linalg.norm(weight), abs=1e-9)
