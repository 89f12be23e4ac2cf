"""A step of a reduced model beside algorithms that are linear in the links, the strongest peers on long chains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from articulated import Articulated, Pinocchio, check
from dart_tree import Dart
from exudyn_tree import Exudyn
from measure import compared, interleaved
from pushed import Pushed
from results import Progress, Row, Table

import pliant

__all__ = ["articulated_bodies"]

NAMES = {
    "own kernels": "articulated bodies on pliant's kernels, whole step",
    "Pinocchio": "Pinocchio aba (C++), accelerations and poses only",
    "DART": "DART, whole step",
    "Exudyn": "Exudyn's kinematic tree, generalized-alpha, whole step",
}
SETTLED = 2000  # steps


def articulated_bodies(quick: bool, progress: Progress) -> list[Table]:
    """Helices by pliant's own articulated bodies, Pinocchio's, DART and Exudyn."""
    rows: list[Row] = []
    missing: dict[str, None] = {}
    for links in (100,) if quick else (50, 100, 400):
        progress(f"articulated bodies on helix({links})")
        case = Pushed(f"helix({links})", lambda n=links: pliant.gallery.helix(n))
        rows += _rows(case, quick, missing)
    return [
        Table(
            "reduced",
            "articulated-bodies",
            "A step of a reduced model beside O(n) articulated bodies",
            "µs a step",
            rows,
            settings="One thread, processor time, 1 ms, springs and dampers implicit everywhere.",
            missing=list(missing),
        )
    ]


def _rows(case: Pushed, quick: bool, missing: dict[str, None]) -> list[Row]:
    ours, own = case.simulation(), Articulated(case)
    theirs = dart = exudyn = None
    try:
        theirs = Pinocchio(case)  # its data grow with the cube of the joints: 4 GB for 400
    except ImportError as error:
        missing[f"Pinocchio: {error}"] = None
    try:
        dart = Dart(case)
    except ImportError as error:
        missing[f"DART: {error} (`make peers`)"] = None
    try:
        exudyn = Exudyn(case) if case.m.body_count <= 100 else None  # minutes for 400
    except ImportError as error:
        missing[f"Exudyn: {error} (`make peers`)"] = None
    errors = check(case, theirs)
    if max(errors.values()) > 1e-6:
        raise RuntimeError(f"the peers compute something else: {errors}")
    counts = {"reduced": 2000, "own kernels": 50, "Pinocchio": 50, "DART": 50, "Exudyn": 5}
    calls: dict[str, Callable[[], object]] = {
        "reduced": lambda: ours.step(counts["reduced"]),
        "own kernels": lambda: own.step(counts["own kernels"]),
    }
    settled = case.simulation()
    for run in (settled, own, dart, exudyn):
        if run is not None:
            run.step(SETTLED)
    at_rest = {"own kernels": case.displacement(own.poses)}
    if dart is not None:
        at_rest["DART"] = dart.displacement
        calls["DART"] = lambda: dart.step(counts["DART"])
    if exudyn is not None and not exudyn.failed:
        at_rest["Exudyn"] = exudyn.displacement
        calls["Exudyn"] = lambda: exudyn.step(counts["Exudyn"])
    if theirs is not None:
        q, v, torque = own.q.copy(), own.v.copy(), np.zeros(case.m.nv)

        def pinocchio_steps() -> (
            None
        ):  # springs, push and integration are left out: they would cost numpy's time
            for _ in range(counts["Pinocchio"]):
                theirs.acceleration(q, v, torque)

        calls["Pinocchio"] = pinocchio_steps
    times = {name: t.scaled(1e6 / counts[name]) for name, t in interleaved(calls, 5 if quick else 11).items()}
    rest = case.displacement(settled.poses)
    rows = []
    for name in (name for name in NAMES if name in times):
        row = compared(f"{case.name} beside {name}", times["reduced"], times[name], peer_name=NAMES[name])
        row.target = "25x" if case.m.body_count == 400 else ""
        if name in errors:
            row.values["error of a step against a dense solve"] = errors[name]
        if name in at_rest:
            row.values["tips apart at rest, of radius"] = float(
                np.linalg.norm(at_rest[name] - rest) / case.m.radius
            )
        rows.append(row)
    return rows
