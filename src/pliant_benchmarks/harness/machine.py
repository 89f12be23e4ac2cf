"""The machine of a run: processor, load, versions, threads, and functions that numba compiled."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["compilations", "describe", "load"]

PACKAGES = {  # distribution: name in tables
    "pliant": "pliant",
    "numpy": "numpy",
    "scipy": "scipy",
    "numba": "numba",
    "mujoco-core": "MuJoCo",
    "pin": "Pinocchio",
    "dartpy": "DART",
    "exudyn": "Exudyn",
    "drake": "Drake",
}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def describe() -> dict[str, Any]:
    """Date, machine, versions of pliant and its peers, threads."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {called: _version(name) for name, called in PACKAGES.items()},
        "threads": {name: os.environ.get(name, "not set") for name in THREADS},
    }


def load() -> float | None:
    """Load average of the last minute; None where the system has none."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


@contextmanager
def compilations() -> Iterator[Callable[[], list[str]]]:
    """Yield a function that lists the functions numba has compiled in this process since; cached ones do not count."""
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        yield lambda: [str(e.data["dispatcher"]) for _, e in recorder.buffer if e.is_start]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
