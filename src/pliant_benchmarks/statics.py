"""Suite of statics: equilibria over the number of links, beside MuJoCo integrated to rest and Exudyn's static solver.

MuJoCo has no static solver: it is integrated to rest, at the time step and damping that get it there soonest, until it
agrees to a millionth of the radius. Exudyn's `SolveStatic` takes turns with `pliant.equilibrium`, at the fastest of its
settings that agrees as closely.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

import pliant
from pliant.text import counted

from .harness.results import Progress, Row, Table, log_figure
from .harness.timing import compare, time_in_turns
from .peers import find_all
from .peers.mujoco import Relaxation
from .systems import StaticCase, force_that_moves

__all__ = ["PARTS", "build_tangle", "chains", "loops", "many", "small", "solve_beside", "static_solvers"]

Force = tuple[float, float, float]
FORCE = (0.0, 60.0, -80.0)  # N


def chains(quick: bool, progress: Progress) -> Table:
    """Helices of growing length, beside MuJoCo."""
    sizes = (50, 400) if quick else (50, 100, 200, 400, 800, 1600, 3200, 10_000)
    largest = 50 if quick else 200
    rows = []
    for links in sizes:
        progress(f"equilibrium of helix({links:,})")
        row = _beside_mujoco(f"helix({links:,})", pliant.gallery.helix(links), FORCE, links <= largest, quick)
        row.target = "under 100" if links == 400 else ""
        row.values["µs a link"] = 1e3 * (row.ours or np.nan) / links
        rows.append(row)
    curves = {
        "pliant": [(n, row.ours) for n, row in zip(sizes, rows, strict=True)],
        "MuJoCo to rest": [(n, row.peer) for n, row in zip(sizes, rows, strict=True)],
    }
    figure = log_figure("statics-scaling", "Equilibrium of a helix at 100 N", "links", "ms", curves)
    return Table(
        "statics",
        "equilibrium",
        "Equilibrium of a helix at 100 N",
        "ms",
        rows,
        settings="One thread, processor time. MuJoCo has no static solver: it is integrated until it is within a "
        "millionth of the radius, at the best of sixteen to forty-eight settings of integrator, step and damping, "
        f"up to {largest} links.",
        figures=[figure],
    )


def _beside_mujoco(name: str, m: pliant.Mechanism, force: Force, beside: bool, quick: bool) -> Row:
    """Row of an equilibrium under a force on the first end effector, beside MuJoCo integrated to rest on request."""
    tip = m.end_effectors[0]
    c = pliant.equilibrium(m, {tip: force})
    peer = Relaxation(m, force, c.pose(tip)[:3, 3]) if beside else None
    integrators = ("discrete",) if quick else ("discrete", "implicitfast", "implicit")
    rests = peer is not None and peer.choose(integrators)
    calls: dict[str, Callable[[], object]] = {"pliant": lambda: pliant.equilibrium(m, {tip: force})}
    if peer is not None and rests:
        calls["MuJoCo"] = peer.settle
    times = time_in_turns(calls, 3 if quick else 7)
    row = compare(name, times["pliant"].scaled(1e3), times["MuJoCo"].scaled(1e3) if rests else None)
    if peer is not None and rests:
        integrator, timestep, damping = peer.setting
        row.peer_name = (
            f"MuJoCo {integrator} to rest, {1e3 * timestep:g} ms, damping {1e3 * damping:g} N m s/rad"
        )
    elif peer is not None:
        row.stable = "MuJoCo: comes to rest at no setting tried"
    row.values = {
        "moved, of radius": float(c.displacement.max() / m.radius),
        "iterations": c.iterations,
        "residual": c.residual,
    }
    return row


def small(quick: bool, progress: Progress) -> Table:
    """Small mechanisms, where what surrounds the arithmetic decides, beside MuJoCo."""
    make = pliant.gallery
    cases = (("hand()", make.hand(), (0.0, 0.0, 1.0)), ("gripper()", make.gripper(), (-10.0, 0.0, 0.0)))
    rows = []
    for name, m, force in cases:
        progress(f"equilibrium of {name}")
        row = _beside_mujoco(name, m, force, not m.topology.loops, quick)
        row.target = "under 0.3"
        rows.append(row)
    missing = ["MuJoCo: the gripper's loops are soft constraints there, so it rests elsewhere"]
    return Table(
        "statics", "equilibrium-small", "Equilibrium of small mechanisms", "ms", rows, missing=missing
    )


def many(quick: bool, progress: Progress) -> Table:
    """Thousands of load cases of one mechanism, on one core and on all."""
    count = 500 if quick else 10_000
    m = pliant.gallery.gripper()
    angle, size = np.linspace(0, 40 * np.pi, count), np.linspace(2, 20, count)
    path = np.stack([size * np.cos(angle), 0 * angle, size * np.sin(angle)], axis=1)
    random = np.random.default_rng(0).uniform(-20, 20, (count, 3))
    rows = []
    for name, forces in (("along a spiral", path), ("at random", random)):
        progress(f"{count:,} equilibria of gripper() {name}")
        calls = {
            str(threads): lambda threads=threads, forces=forces: pliant.equilibria(
                m, {"left_pad": forces}, threads=threads
            )
            for threads in (1, os.cpu_count() or 1)
        }
        times = time_in_turns(calls, 3 if quick else 7, perf_counter)
        found = pliant.equilibria(m, {"left_pad": forces})
        for threads, taken in times.items():
            row = compare(f"gripper(), {name}, {counted(int(threads), 'thread')}", taken)
            row.values = {
                "µs a case": 1e6 * taken.median / count,
                "iterations a case": float(found.iterations.mean()),
                "found": f"{int(found.converged.sum()):,} of {count:,}",
            }
            rows.append(row)
    return Table(
        "statics",
        "equilibria-many",
        f"{count:,} load cases of one mechanism",
        "s",
        rows,
        settings="`pliant.equilibria`, arrays of forces, wall-clock time. Along a spiral every case starts from the "
        "one before it, except for one in 64; at random most start from the reference pose.",
    )


def loops(quick: bool, progress: Progress) -> Table:
    """Ladders with closed loops."""
    rows = []
    for form in ("cells", "rails"):
        for rungs in (4, 16) if quick else (4, 16, 64):
            progress(f"equilibrium of ladder({rungs}, {form})")
            m = pliant.gallery.ladder(rungs, form=form)
            load = {m.end_effectors[0]: (80.0, 0, -60.0)}
            c = pliant.equilibrium(m, load)
            ours = time_in_turns({"": lambda m=m, load=load: pliant.equilibrium(m, load)}, 3 if quick else 7)[
                ""
            ]
            row = compare(f"ladder({rungs}, {form})", ours.scaled(1e3))
            row.values = {
                "links": m.body_count,
                "loops": m.topology.loops,
                "iterations": c.iterations,
                "closed to": float(np.abs(c.loop_residual).max()),
            }
            rows.append(row)
    missing = [
        "MuJoCo: its loops are soft constraints, which close to no such bound. Exudyn is in the next table"
    ]
    return Table("statics", "equilibrium-loops", "Equilibrium with closed loops", "ms", rows, missing=missing)


def build_tangle(seed: int = 1) -> pliant.Mechanism:
    """Random closed chain in space with a branch: 30 hinges, 1 loop. No solver was tuned on it.

    A loop of 23 links between two points of the ground, along a circle of half a metre radius from which joints are off
    by some centimetres; from its middle a branch of 6 links. Random axes, springs of 50 to 500 N m/rad.
    """
    random = np.random.default_rng(seed)
    b = pliant.Builder(f"tangle {seed}")

    def link(name: str, start: np.ndarray, end: np.ndarray, parent: str) -> str:
        b.body(
            name,
            mass=1.0,
            inertia=(0.01, 0.01, 0.01),
            position=tuple((start + end) / 2),
            shapes=[pliant.shapes.sphere(0.02)],
        )
        hinge(name, parent, name, start)
        return name

    def hinge(name: str, parent: str, child: str, anchor: np.ndarray) -> None:
        axis = random.normal(size=3)
        axis = tuple(axis / np.linalg.norm(axis))
        stiffness = float(50 * 10 ** random.uniform())
        b.hinge(name, parent, child, anchor=tuple(anchor), axis=axis, stiffness=stiffness)

    angle = np.linspace(0.3, 2 * np.pi - 0.3, 24)
    points = 0.5 * np.column_stack([np.sin(angle), 0 * angle, -np.cos(angle)]) + random.normal(
        scale=0.04, size=(24, 3)
    )
    above = "world"
    for i in range(23):
        above = link(f"loop{i + 1}", points[i], points[i + 1], above)
    hinge("closing", "world", above, points[-1])
    above, place = "loop12", points[12]
    for i in range(6):
        end = place + random.normal((0.0, 0.1, 0.0), 0.03)
        above, place = link(f"branch{i + 1}", place, end, above), end
    b.end_effectors(above)
    return b.build()


def _pushed(name: str, m: pliant.Mechanism, direction: tuple[float, float, float], size: float) -> StaticCase:
    """Case with a force on the first end effector that moves it by `size` radii, to first order."""
    towards = np.array(direction) / np.linalg.norm(direction)
    return StaticCase(name, m, m.end_effectors[0], force_that_moves(m, pliant.reduce(m), towards, size))


def static_solvers(quick: bool, progress: Progress) -> Table:
    """Open chains, planar and spatial loops and random mechanisms, beside Exudyn's static solver."""
    make = pliant.gallery
    cases = [
        StaticCase(f"helix({n})", make.helix(n), f"link{n}", np.array(FORCE))
        for n in ((50,) if quick else (50, 100, 400))
    ]
    cases += [
        StaticCase(f"ladder({n}, {form})", make.ladder(n, form=form), f"rung{n}", np.array([80.0, 0, -60.0]))
        for form in ("cells", "rails")
        for n in ((4,) if quick else (4, 16, 64))
    ]
    cases.append(StaticCase("flexure_stage()", make.flexure_stage(), "stage", np.array([40.0, 0, 0])))
    cases.append(StaticCase("loop()", make.loop(), "plate", np.array([0, 150.0, -100.0])))
    for size in (0.1,) if quick else (0.1, 0.5, 1.0):
        cases.append(
            _pushed(f"tangle(), pushed by {size:g} of the radius", build_tangle(), (0.6, 0.5, -0.62), size)
        )
    if not quick:
        cases.append(_pushed("helix(50), pushed by 1 of the radius", make.helix(50), (0, 0.6, -0.8), 1.0))
    rows = []
    _, missing = find_all(("exudyn",))
    for case in cases:
        progress(f"static solvers: {case.name}")
        rows.append(solve_beside(case, 3 if quick else 11, 0.0 if missing else 1.0 if quick else 15.0))
    return Table(
        "statics",
        "equilibrium-exudyn",
        "Equilibrium beside Exudyn's static solver",
        "ms",
        rows,
        settings="`pliant.equilibrium` and `SolveStatic` take turns, one thread, processor time, from the "
        "reference pose; mechanisms are assembled once. Exudyn: kinematic tree, planar bodies, Euler parameters or "
        "Tait-Bryan angles, whichever can express the case; sparse and dense solvers; 1 to 30 load steps; full "
        "and modified Newton; tolerances 1e-4 to 1e-8. The fastest setting whose bodies are all within a "
        "millionth of the radius of pliant's counts. pliant goes on to 1e-12 of the load, and says whether the "
        "equilibrium is stable.",
        missing=missing,
    )


def solve_beside(case: StaticCase, rounds: int, patience: float) -> Row:
    """Row of a case; `patience` is the processor time for each of Exudyn's models, s; 0: without Exudyn."""
    m, load = case.m, {case.body: case.force}
    c = pliant.equilibrium(m, load)
    calls: dict[str, Callable[[], object]] = {"pliant": lambda: pliant.equilibrium(m, load)}
    found = None
    if patience:
        from .peers import exudyn

        found = exudyn.find_fastest(case, c.poses, patience)
    if found is not None and found.static is not None and found.setting is not None:
        calls["Exudyn"] = partial(found.static.solve, found.setting)
    times = time_in_turns(calls, rounds)
    theirs = times.get("Exudyn")
    row = compare(case.name, times["pliant"].scaled(1e3), None if theirs is None else theirs.scaled(1e3))
    row.values = {
        "links": m.body_count,
        "loops": m.topology.loops,
        "moved, of radius": float(c.displacement.max() / m.radius),
    }
    if found is None:
        return row
    row.values["Exudyn's settings that agree"] = f"{found.agreed} of {found.tried}"
    if found.static is None:
        row.stable = f"Exudyn: agrees at none of {found.tried} settings"
    else:
        row.peer_name = f"Exudyn, {found.setting}"
        row.values["apart, of radius"] = found.error
    return row


PARTS = (chains, small, many, loops, static_solvers)
