"""Cost over the number of loops: equilibrium, reduction and a step of ladders and lattices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

import pliant

from .. import statics
from ..harness.results import Progress, Row, Table, log_figure
from ..harness.timing import compare, time_in_turns
from ..peers import find_all
from ..systems import Floats, Pushed, StaticCase
from .pushes import SIDEWAYS, Ours, Trial, follow

__all__ = ["equilibria", "reductions", "steps"]

STEP, TURN = 1 / 60, 10  # s, and steps in a turn
SMALL, LARGE = 1e-3, 0.1  # radii, to first order: displacement of the end effector
EXUDYN = 256  # loops of the largest mechanism in Exudyn
FAMILIES = {"ladder": "ladder({})", "rails": 'ladder({}, "rails")', "lattice": "lattice({0}, {0})"}
INWARDS = {"lattice": "lattice({0}, {0}) pushed inwards"}  # of 32 x 32 cells the row that is pushed buckles
SIZES = {"ladder": (64, 256, 1024, 4096), "rails": (64,), "lattice": (8, 16, 32)}
QUICK_SIZES = {"ladder": (64, 256), "rails": (64,), "lattice": (8,)}


@cache
def _build(family: str, size: int) -> pliant.Mechanism:
    """Mechanism of a family, built once for all tables."""
    if family == "lattice":
        return pliant.gallery.lattice(size, size)
    return pliant.gallery.ladder(size, form="rails" if family == "rails" else "cells")


def _cases(
    quick: bool, size: float, families: dict[str, str] = FAMILIES, towards: Floats = SIDEWAYS
) -> list[tuple[str, Pushed]]:
    """Labels of families, and mechanisms, pushed sideways at the end effector."""
    sizes = QUICK_SIZES if quick else SIZES
    return [
        (label, Pushed(label.format(n), partial(_build, family, n), size, towards))
        for family, label in families.items()
        for n in sizes[family]
    ]


def _flatness(found: Sequence[tuple[str, Row]], loops: Callable[[Row], int]) -> list[Row]:
    """Rows of pliant's cost per loop over the sizes of a family, with the ratio of the largest and smallest."""
    out = []
    for label in dict(found):
        rows = [row for name, row in found if name == label and row.ours is not None]
        if len(rows) < 2:
            continue
        cost = [1e3 * float(row.ours or 0.0) / loops(row) for row in rows]
        out.append(
            Row(
                f"per loop, {rows[0].case} to {rows[-1].case}",
                ours=float(np.mean(cost)) / 1e3,
                note=f"from {min(cost):.3g} to {max(cost):.3g} µs a loop: largest over smallest "
                f"{max(cost) / min(cost):.2f}",
            )
        )
    return out


def _table(
    key: str, title: str, found: list[tuple[str, Row]], settings: str, missing: Sequence[str] = ()
) -> Table:
    """Table and figure of rows by family, flatness at the end."""
    curves = {}
    for label, row in found:
        row.values["µs a loop"] = None if row.ours is None else 1e3 * row.ours / row.values["loops"]
        curves.setdefault("pliant, " + label.format("n"), []).append((row.values["loops"], row.ours))
        if row.peer is not None:
            curves.setdefault("Exudyn, " + label.format("n"), []).append((row.values["loops"], row.peer))
    rows = [row for _, row in found] + _flatness(found, lambda row: row.values["loops"])
    return Table(
        "loops",
        key,
        title,
        "ms",
        rows,
        settings=settings,
        missing=list(missing),
        figures=[log_figure(key, title, "loops", "ms", curves)],
    )


def equilibria(quick: bool, progress: Progress) -> list[Table]:
    """Equilibrium under a large and a small sideways force, beside Exudyn's static solver."""
    _, missing = find_all(("exudyn",))
    out = []
    for key, size in (("loops-equilibrium", LARGE), ("loops-equilibrium-small", SMALL)):
        found = []
        cases = _cases(quick, size)
        if size == LARGE:
            cases += _cases(quick, size, INWARDS, -SIDEWAYS)
        for label, case in cases:
            m = case.m
            progress(f"equilibrium of {case.name}, moved by {size:g} radii")
            wanted = m.topology.loops <= 64 and size == LARGE if quick else m.topology.loops <= EXUDYN
            patience = 0.0 if missing or label != FAMILIES["ladder"] or not wanted else 0.3 if quick else 5.0
            static = StaticCase(case.name, m, case.tip, case.force)
            row = statics.solve_beside(static, 3 if quick else 7, patience)
            c = pliant.equilibrium(m, {case.tip: case.force})
            row.values["iterations"] = c.iterations
            row.values["closed to, m"] = float(np.abs(c.loop_residual).max())
            found.append((label, row))
        out.append(
            _table(
                key,
                f"Equilibrium of closed loops, moved by {size:g} radii",
                found,
                f"A sideways force on the end effector that moves it by {size:g} radii, to first order, from the "
                "reference pose, to the right unless a row says otherwise; one thread, processor time. pliant goes on "
                f"to 1e-12 of the load. Exudyn, up to {EXUDYN} loops: the fastest setting whose bodies are all within "
                "a millionth of the radius.",
                missing,
            )
        )
    return out


def reductions(quick: bool, progress: Progress) -> Table:
    """Reduction to the end effector at rest; its compliance is compared with an equilibrium."""
    cases = _cases(quick, SMALL)
    progress("reduction")
    times = time_in_turns({case.name: partial(pliant.reduce, case.m) for _, case in cases}, 3 if quick else 7)
    found = []
    for label, case in cases:
        progress(f"reduction of {case.name}: equilibrium")
        c = pliant.equilibrium(case.m, {case.tip: {"force": case.force, "point": case.point}})
        apart = float(np.linalg.norm(case.displacement(c.poses)) / (SMALL * case.m.radius) - 1)
        row = compare(case.name, times[case.name].scaled(1e3))
        row.values = {"loops": case.m.topology.loops, "apart from an equilibrium": abs(apart)}
        if not abs(apart) < 0.01:
            row.stable = f"pliant: compliance is off by {100 * apart:.2g} %"
        found.append((label, row))
    return _table(
        "loops-reduce",
        "Reduction of closed loops",
        found,
        "`pliant.reduce` at rest, one thread, processor time, all sizes in turns. The model's compliance is within 1 % "
        f"of the equilibrium that moves the end effector by {SMALL:g} radii.",
    )


def steps(quick: bool, progress: Progress) -> Table:
    """A step of the constrained engine at 1/60 s."""
    cases = _cases(quick, 0.02)
    trials, holding = {}, {}
    for _, case in cases:
        progress(f"a step of {case.name}: accuracy")
        trials[case.name] = trial = Trial(case, STEP, run := Ours(case, STEP))
        if trial.judge(follow(case, STEP)):
            holding[case.name] = run
    progress("a step, all sizes in turns")
    # The same number of steps for all: all go through the same motion.
    times = time_in_turns({name: partial(run.step, TURN) for name, run in holding.items()}, 3 if quick else 7)
    found = []
    for label, case in cases:
        trial, row = trials[case.name], Row(case.name)
        if case.name in holding and trial.holds():
            row = compare(case.name, times[case.name].scaled(1e3 / TURN))
            solves = holding[case.name].simulation.effort.solves / TURN
            row.values = {"error, %": 100 * trial.error, "solves a step": solves}
        else:
            row.stable = f"pliant: {trial.problem}"
        row.values["loops"] = case.m.topology.loops
        found.append((label, row))
    return _table(
        "loops-step",
        "A constrained step of closed loops at 1/60 s",
        found,
        "A sideways force swells for half a second to what would move the end effector by 0.02 radii, then stays; "
        f"timed from then on, {TURN} steps in a turn, one thread, all sizes in turns. All bodies are within 5 % of the "
        "largest displacement of a run at an eighth of the step, loops closed, energy no larger than the force's work.",
    )
