"""Reduced models far from rest: equilibria under large forces, and the energy of an undamped swing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import pliant
from pliant.statics.loads import coordinate_difference

from ..harness.results import Progress, Row, Table
from ..models import MODELS
from ..peers.mujoco import INTEGRATORS, PushedEnds
from ..systems import Floats, RandomPushes

__all__ = ["far_statics", "free_swing", "static_error"]

SIZE = 0.3  # radii, of static pushes
PARTS = 20  # of the load, one after another: a large load at once may lead to another branch
LEAP, SHORTEST = 0.1, 1 / 2000  # rad or radii: largest motion of a joint within a part; the smallest part
REAL = ("Robotiq 2F-85", "Cassie's foot", "Cassie's foot, legs straight", "Fetch's elbow")
SMALLER = {"millipede": {"legs": 20, "leg_links": 10, "spine": 60}, "molecule": {"links": 500}}
RELEASE = 0.1  # radii, of the push that an undamped mechanism is released from
STEP = 1 / 60  # s
SECONDS = 60.0
SWINGS: dict[str, Callable[[], pliant.Mechanism]] = {
    "helix(50)": partial(pliant.gallery.helix, 50),
    "arm()": pliant.gallery.arm,
    "gripper()": pliant.gallery.gripper,
}


# --- statics


def far_statics(quick: bool, progress: Progress) -> Table:
    """Errors of one model at rest, on every mechanism of the gallery and on real files with loops."""
    rows, missing = [], []
    for name, make in _static_cases(quick):
        progress(f"statics of {name}")
        try:
            rows.append(_static_row(name, make))
        except FileNotFoundError as absent:
            missing.append(f"{name}: {absent}")
    return Table(
        "reduced",
        "far-statics",
        f"Error of one reduced model at rest under forces that move it by {SIZE:g} radii",
        "% of the displacement, at worst",
        rows,
        settings="One model, made at the reference pose by default settings, under forces in six random directions at "
        f"its end effectors that move one of them by {SIZE:g} radii to first order. Error: the largest distance of an "
        "end effector from that in `pliant.equilibrium`, over the largest displacement. Loads under which the "
        f"branch of stable equilibria ends, followed in {PARTS} or more parts, are left out and counted. Millipede and "
        "molecule are smaller than the paper's.",
        missing=missing,
    )


def _static_cases(quick: bool) -> Iterator[tuple[str, Callable[[], pliant.Mechanism]]]:
    """Mechanisms by name."""
    names = ("helix", "gripper") if quick else pliant.gallery.names()
    for name in names:
        yield f"{name}()", partial(_from_gallery, name)
    for name in () if quick else REAL:
        yield name, MODELS[name]


def _from_gallery(name: str) -> pliant.Mechanism:
    """A mechanism of the gallery, its base fixed."""
    m = pliant.gallery.make(name, **SMALLER.get(name, {}))
    return m.with_fixed_base() if "free" in m.joint_types else m


def _static_row(name: str, make: Callable[[], pliant.Mechanism]) -> Row:
    m = make()
    try:
        case = RandomPushes(name, m)
    except pliant.errors.InputError as refused:
        return Row(name, note=f"not reduced: {' '.join(str(refused).split())[:80]}")
    closed = bool(m.topology.loops or len(m.couplings))
    row = Row(name, target=f"{0.5 if closed else 0.2:g} %")
    errors, without, failures = [], 0, []
    for forces in case.pushes(SIZE):
        truth = _follow(case, forces)
        if truth is None:
            without += 1
            continue
        try:
            errors.append(static_error(case, truth, forces))
        except pliant.errors.PliantError as failure:
            failures.append(" ".join(str(failure).split())[:80])
    if failures:
        row.stable = f"{len(failures)} of {len(errors) + len(failures)} fail: {failures[0]}"
    elif errors:
        row.ours = 100 * max(errors)
        row.values["mean error, %"] = 100 * float(np.mean(errors))
    row.note = f"no stable equilibrium under {without} of {without + len(errors)}" if without else ""
    return row


def _follow(case: RandomPushes, forces: Floats) -> pliant.Configuration | None:
    """Stable equilibrium on the branch that begins at rest, by parts of the load; None where that ends before.

    Parts are halved while a joint leaps. Where it still does, the branch has ended: the mechanism snaps or buckles.
    """
    m, at, share, part = case.m, pliant.Configuration(case.m), 0.0, 1 / PARTS
    while share < 1.0 - 1e-12:
        try:
            found = pliant.equilibrium(m, case.wrenches(min(1.0, share + part) * forces), start=at)
            leap = np.abs(coordinate_difference(m, at.q, found.q) / m.dof_unit).max()
        except pliant.errors.ConvergenceError:
            found, leap = at, np.inf
        if leap > LEAP:
            part /= 2
            if part < SHORTEST:
                return None
            continue
        if found.stability == "unstable":
            return None
        at, share = found, share + part
    return at


def static_error(case: RandomPushes, truth: pliant.Configuration, forces: Floats) -> float:
    """Largest distance of an end effector of the model at rest from the truth, over the largest displacement."""
    found = case.displacement(case.model.configuration(case.wrenches(forces)).poses)
    there = case.displacement(truth.poses)
    return float(np.linalg.norm(found - there, axis=1).max() / np.linalg.norm(there, axis=1).max())


# --- energy


def free_swing(quick: bool, progress: Progress) -> Table:
    """Energy of undamped mechanisms, released from a push, over a minute at 1/60 s."""
    rows = []
    for name in ("gripper()",) if quick else SWINGS:
        progress(f"free swing of {name}")
        rows += _swing_rows(name, SWINGS[name](), 2.0 if quick else SECONDS)
    return Table(
        "reduced",
        "free-swing",
        "Energy of an undamped swing at 1/60 s",
        "% of the energy, largest change",
        rows,
        settings=f"Released at rest from the equilibrium under a random push of {RELEASE:g} radii, without damping, "
        "for a minute (2 s with --quick). MuJoCo: the best of all integrators. A run that leaves the finite numbers, "
        "warns, or gains its energy once more has failed.",
    )


def _swing_rows(name: str, m: pliant.Mechanism, seconds: float) -> list[Row]:
    """Rows of the reduced and the constrained engine, beside the best of MuJoCo's integrators."""
    m = m.replace(damping=np.zeros_like(m.damping), tendon_damping=np.zeros_like(m.tendon_damping))
    case = RandomPushes(name, m, 1)
    m = case.m
    start = pliant.equilibrium(m, case.wrenches(case.pushes(RELEASE)[0]))
    runs: dict[str, pliant.Simulation | PushedEnds] = {
        "reduced": pliant.ReducedSimulation(case.model, STEP),
        "constrained": pliant.ConstrainedSimulation(m, STEP, (0, 0, 0)),
    }
    kept: dict[str, tuple[float, float] | str] = {}
    for kind, run in runs.items():
        assert isinstance(run, pliant.Simulation)
        run.q = start.q
        kept[kind] = _extremes(run.step, lambda run=run: run.energy.total, seconds)
    for integrator in INTEGRATORS:
        peer = PushedEnds(m, STEP, integrator)
        peer.place(start.q)
        found = _extremes(peer.step, lambda peer=peer: peer.energy, seconds)
        kept[f"MuJoCo {integrator}"] = "warned" if peer.failed else found
    changes = {
        kind: 100 * max(1 - found[0], found[1] - 1)
        for kind, found in kept.items()
        if not isinstance(found, str)
    }
    best = min((kind for kind in changes if kind.startswith("MuJoCo")), key=changes.__getitem__, default=None)
    rows = []
    for kind in runs:
        found = kept[kind]
        row = Row(f"{name}: {kind}", changes.get(kind), target="5 %" if kind == "reduced" else "")
        if isinstance(found, str):
            row.stable = found
        else:
            row.values = {"least energy, %": 100 * found[0], "most energy, %": 100 * found[1]}
        row.peer_name = "MuJoCo: fails with every integrator"
        if best is not None:
            row.peer, row.peer_name = changes[best], best
            row.ratio = None if row.ours is None else row.peer / max(row.ours, 1e-12)
        rows.append(row)
    return rows


def _extremes(
    step: Callable[[int], object], energy: Callable[[], float], seconds: float
) -> tuple[float, float] | str:
    """Least and largest energy of a run over that at its start; or why it failed."""
    start, low, high = energy(), 1.0, 1.0
    for i in range(round(seconds / STEP)):
        try:
            step(1)
        except pliant.errors.PliantError as failure:
            return " ".join(str(failure).split())[:80]
        now = energy() / start
        if not now < 2.0:
            return f"energy doubled within {(i + 1) * STEP:.3g} s"
        low, high = min(low, now), max(high, now)
    return low, high
