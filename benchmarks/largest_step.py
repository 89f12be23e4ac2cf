"""What a simulated second costs where the error stays within 1 %, and error against cost at all time steps."""

from __future__ import annotations

import numpy as np
from motion import LOADS, Model, Outcome, contenders, sampled, sweep
from pushed import Pushed
from results import Figure, Progress, Row, Series, Table

import pliant

__all__ = ["largest_step"]

BOUND = 0.01
STEPS = [
    1e-4,
    2e-4,
    5e-4,
    1e-3,
    2e-3,
    5e-3,
    1e-2,
    2e-2,
    5e-2,
    0.1,
    0.25,
]  # multiples of the truth's, parts of its time
QUICK_STEPS = [1e-3, 2e-2]
MODES = 6


def largest_step(quick: bool, progress: Progress) -> list[Table]:
    """Single, modal, blended and polynomial models, the constrained engine, and MuJoCo by all its integrators."""
    rows, figures = [], []
    g = pliant.gallery
    mechanisms = {"helix(50)": lambda: g.helix(50), "arm()": g.arm}
    for name in ["helix(50)"] if quick else mechanisms:
        for size in (0.02,) if quick else (0.02, 0.3):
            case = Pushed(name, mechanisms[name], size)
            extra: dict[str, Model] = {f"{MODES} modes": pliant.reduce(case.m, modes=MODES)}
            if not quick:
                progress(f"{name}: sampling equilibria")
                extra |= sampled(case, 59)
            for load in LOADS:
                label = f"{name}, {load} push by {size:g} of the radius"
                progress(label)
                entries = (
                    contenders(case, extra, ("implicitfast", "discrete"))
                    if quick
                    else contenders(case, extra)
                )
                steps = QUICK_STEPS if quick else STEPS
                found = sweep(case, load, entries, steps, 3 if quick else 7)
                rows += _rows(label, found)
                key = f"pareto-{name.partition('(')[0]}-{load}-{'small' if size < 0.1 else 'large'}"
                figures.append(_figure(key, label, found))
    return [
        Table(
            "reduced",
            "largest-step",
            "A simulated second at the largest step with an error within 1 %",
            "ms per simulated second",
            rows,
            settings="One thread, processor time. Error: root mean square distance of the pushed body from the truth "
            "over 0.5 s, on straight lines between steps, over its largest displacement; the truth is MuJoCo at 0.1 "
            "and 0.05 ms, extrapolated. A slow push swells over the 0.5 s. Time steps from 0.1 ms to 0.25 s and all of "
            "MuJoCo's integrators are tried (with --quick few of them); the cheapest within 1 % counts, for pliant and "
            "for MuJoCo.",
            figures=figures,
        )
    ]


def _rows(label: str, found: list[Outcome]) -> list[Row]:
    """One per kind of model, all beside the cheapest of MuJoCo's."""
    peer = _cheapest([o for o in found if o.contender.startswith("MuJoCo")])
    rows = []
    for kind in dict.fromkeys(o.contender for o in found if not o.contender.startswith("MuJoCo")):
        own = [o for o in found if o.contender == kind]
        best = _cheapest(own)
        row = Row(f"{label}: {kind}", stable=_stability(own))
        if peer is not None and peer.cost is not None:
            row.peer, row.peer_spread = 1e3 * peer.cost.median, 1e3 * peer.cost.spread
            row.peer_name = f"{peer.contender}, {_step(peer.h)}, error {100 * peer.error:.2g} %"
        else:
            row.peer_name = "MuJoCo: not within 1 % at any step"
        if best is not None and best.cost is not None:
            row.ours, row.ours_spread = 1e3 * best.cost.median, 1e3 * best.cost.spread
            row.note = f"{_step(best.h)}, error {100 * best.error:.2g} %"
            row.ratio = None if row.peer is None else row.peer / row.ours
        else:
            nearest = min((o for o in own if o.cost is not None), key=lambda o: o.error, default=None)
            row.note = "not within 1 %" + (
                "" if nearest is None else f": {100 * nearest.error:.2g} % at {_step(nearest.h)}"
            )
        rows.append(row)
    return rows


def _cheapest(outcomes: list[Outcome]) -> Outcome | None:
    within = [o for o in outcomes if o.cost is not None and o.error <= BOUND]
    return min(within, key=lambda o: o.cost.median if o.cost else np.inf, default=None)


def _stability(outcomes: list[Outcome]) -> str:
    failed = [_step(o.h) for o in outcomes if o.failure]
    return f"not at {', '.join(failed)}" if failed else "yes"


def _step(h: float) -> str:
    return f"{1e3 * h:g} ms"


def _figure(key: str, title: str, found: list[Outcome]) -> Figure:
    series = []
    for name in dict.fromkeys(o.contender for o in found):
        held = [o for o in found if o.contender == name and o.cost is not None]
        if held:
            costs = [1e3 * o.cost.median for o in held if o.cost is not None]
            errors = [100 * o.error for o in held]
            series.append(Series(name, costs, errors, ours=not name.startswith("MuJoCo")))
    return Figure(key, title, "ms per simulated second", "error, %", series, log_x=True, log_y=True)
