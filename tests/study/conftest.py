"""Studies in a folder of their own, with functions that do what cases may do."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import pytest

from pliant.study import Study

# What other processes import: plain numbers, so that tests are about running and not about mechanics.
FUNCTIONS = """
import ctypes, os, sys, time, warnings
from pathlib import Path
from types import SimpleNamespace

def square(mechanism, parameters, rng):
    return {"square": parameters["x"] ** 2, "noise": rng.normal(), "k": mechanism.stiffness[0]}

def slow(mechanism, parameters, rng):
    time.sleep(0.05)
    with open("calls", "a") as file:
        file.write(f"{parameters['x']}\\\\n")
    return square(mechanism, parameters, rng)

def raises(mechanism, parameters):
    if parameters["x"] == 3 and not os.path.exists("mended"):
        raise ValueError("three\\\\nis too many")
    return parameters["x"]

def diverges(mechanism, parameters):
    return float("inf") if parameters["x"] == 2 else 1.0

def leaves(mechanism, parameters):
    if parameters["x"] == 2:
        sys.exit(7)
    return 1.0

def loops(mechanism, parameters):
    while parameters["x"] == 3:
        pass
    return parameters["x"]

def crashes(mechanism, parameters):
    if parameters["x"] == 3:
        ctypes.string_at(0)
    return parameters["x"]

def crashes_once(mechanism, parameters):
    if parameters["x"] == 3 and not os.path.exists("crashed"):
        Path("crashed").touch()
        os.kill(os.getpid(), 9)
    return parameters["x"]

def prints(mechanism, parameters):
    print("in the way", flush=True)
    return parameters["x"]

def interrupts(mechanism, parameters):
    if parameters["x"] == 3 and not os.path.exists("mended"):
        raise KeyboardInterrupt
    return parameters["x"]

def threads(mechanism, parameters):
    from pliant.study.workers import _openblas
    return [read() for read, _ in _openblas()]

def warns(mechanism, parameters):
    warnings.warn("not finite")
    return parameters["x"]

def misspells(mechanism, parameters):
    return parameters["stifness"]

def text(mechanism, parameters):
    return "soft"

def three_too_many(a, b, c, d):
    return 1.0
""".replace("\\\\n", "\\n")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where studies are, where their functions are, and where their processes run. Modules differ by test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "functions_of_study", raising=False)
    (tmp_path / "functions_of_study.py").write_text(FUNCTIONS, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("functions_of_study", None)


@pytest.fixture
def make():
    """A study of a function of the module above, `x` from 0 to `count` - 1."""

    def study(function: str = "square", count: int = 6, **options) -> Study:
        given = {
            "mechanism": "gallery:two_link",
            "parameters": {"x": {"values": list(range(count))}, "k": {"stiffness": "*", "values": [50.0]}},
            "outputs": {"y": {"function": f"functions_of_study:{function}"}},
            "results": "study.parquet",
            **options,
        }
        return Study(**given)

    return study


@pytest.fixture
def same():
    """Whether two tables are the same, bit for bit, durations apart."""

    def check(a, b) -> None:
        assert list(a.columns) == list(b.columns)
        for name in a.columns:
            if name != "duration":
                x, y = a.columns[name], b.columns[name]
                assert x.dtype == y.dtype
                if x.dtype.kind == "f":
                    x, y = x.view(np.int64), y.view(np.int64)
                assert (x == y).all(), name

    return check


@pytest.fixture
def clusters(folder):
    """A function that starts a cluster like `cluster`, as a context."""
    return lambda: dask_cluster(folder)


@pytest.fixture
def cluster(folder):
    """A real Dask scheduler on loopback, its address, and its two worker processes."""
    with dask_cluster(folder) as one:
        yield one


@contextmanager
def dask_cluster(folder):
    """A scheduler and two workers."""
    path = os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    environment = {**os.environ, "PYTHONPATH": path, "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"}
    file = Path(f"scheduler-{uuid4().hex}.json")
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    started = []

    def start(*arguments: str) -> None:
        with open("dask.log", "ab") as log:
            process = subprocess.Popen(
                arguments, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        started.append(process)

    start(*command, "--no-dashboard", "--scheduler-file", str(file))
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
    for _ in range(2):
        start(
            *worker,
            "--no-nanny",
            "--no-dashboard",
            "--nthreads",
            "1",
            "--host",
            "127.0.0.1",
            "--memory-limit",
            "0",
        )
    from distributed import Client

    with Client(scheduler_file=str(file), timeout=30, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        assert client.scheduler is not None
        address = client.scheduler.address
    try:
        yield SimpleNamespace(address=address, scheduler=started[0], workers=started[1:])
    finally:
        for process in reversed(started):
            process.kill()
            process.wait(20)
