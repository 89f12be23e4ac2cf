"""TVCG Table 1: a step of a single model with the poses of all links, beside full simulations of every link."""

from __future__ import annotations

import numpy as np
from measure import Timing, compared, interleaved
from mujoco_tree import QUICK, MuJoCo
from pushed import STEP, Pushed
from results import Figure, Progress, Row, Series, Table

import pliant

__all__ = ["CASES", "scaling", "table_1"]

g = pliant.gallery
CASES = {  # mechanism, how many times faster than MuJoCo was asked for, TVCG: Vortex and FORK⁻¹S at its best
    "helix(50)": (lambda: g.helix(50), 40, "240 against 12 µs: 20x"),
    "helix(100)": (lambda: g.helix(100), 90, "470 against 16 µs: 29.4x"),
    "helix(400)": (lambda: g.helix(400), 900, "2150 against 76 µs: 28.3x"),
    "ladder(16), 48 links": (lambda: g.ladder(16), 100, "334 against 14 µs: 23.9x"),
    "arm(), 5 end effectors": (g.arm, 5, "121 against 18 µs: 6.7x"),
}
CHUNK = 0.01  # seconds of processor time that a turn takes, whoever's it is
SETTINGS = (
    "One thread, processor time, steps of 1 ms, pushed by a tenth of the radius. MuJoCo on the same mechanism "
    "(to_mjcf), contacts off, all steps in one call, by its fastest integrator that holds for a second (with --quick a "
    "tenth of one) without warnings or energy from nowhere."
)


def table_1(quick: bool, progress: Progress) -> list[Table]:
    """The table: pliant and MuJoCo today, Vortex and FORK⁻¹S then."""
    rows = []
    for name, (make, target, paper) in CASES.items():
        progress(f"a step of {name}")
        case = Pushed(name, make)
        row = _row(case, quick)
        row.target, row.paper = f"{target}x", paper
        row.values["by twists, µs"] = _alone(case.simulation(reconstruction="twist"), 3).median
        rows.append(row)
    return [
        Table(
            "reduced",
            "tvcg-table-1",
            "A step of a reduced model with the poses of all links",
            "µs a step",
            rows,
            source="TVCG Table 1",
            missing=[
                "DART and Pinocchio: in the next table; Exudyn and Drake: in the suite constrained, on chains"
            ],
            settings=f"{SETTINGS} The paper's figures: Vortex against FORK⁻¹S with 1, 4 or 8 threads, the best.",
        )
    ]


def _row(case: Pushed, quick: bool) -> Row:
    """Pliant beside MuJoCo."""
    peer = MuJoCo(case)
    integrator, failed = peer.fastest(0.1, QUICK) if quick else peer.fastest()
    ours = case.simulation()
    if integrator is None:
        return compared(case.name, _alone(ours, 7), stable=f"MuJoCo: none of {', '.join(failed)} holds")
    ours.step(round(peer.data.time / STEP))
    apart = np.linalg.norm(case.displacement(ours.poses) - peer.displacement) / case.m.radius
    steps = _steps(case.m.body_count)
    few = max(3, round(CHUNK / peer.seconds(integrator, 5)))
    calls = {"pliant": lambda: ours.step(steps), "MuJoCo": lambda: peer.step(few)}
    times = interleaved(calls, 5 if quick else 15)
    return compared(
        case.name,
        times["pliant"].scaled(1e6 / steps),
        times["MuJoCo"].scaled(1e6 / few),
        peer_name=f"MuJoCo {integrator}",
        note=f"faster but unstable: MuJoCo {', '.join(failed)}" if failed else "",
        values={"tips apart afterwards, of radius": float(apart)},
    )


def _alone(simulation: pliant.ReducedSimulation, rounds: int) -> Timing:
    """µs a step."""
    steps = _steps(len(simulation.poses))
    return interleaved({"": lambda: simulation.step(steps)}, rounds)[""].scaled(1e6 / steps)


def _steps(links: int) -> int:
    """How many take about `CHUNK` seconds."""
    return max(2, round(CHUNK / (0.5e-6 + 1e-8 * links)))


def scaling(quick: bool, progress: Progress) -> list[Table]:
    """How cost grows with the number of links."""
    sizes = (10, 100, 1000) if quick else (10, 20, 50, 100, 200, 400, 1000, 3000)
    largest = 100 if quick else 400  # beyond, MuJoCo's steps take too long to wait for
    rows = []
    for links in sizes:
        progress(f"scaling: helix({links:,})")
        case = Pushed(f"helix({links:,})", lambda n=links: g.helix(n))
        row = compared(case.name, _alone(case.simulation(), 5)) if links > largest else _row(case, quick)
        row.values["ns a link"] = 1e3 * (row.ours or 0.0) / links
        rows.append(row)
    links = list(map(float, sizes))
    theirs = [(n, row.peer) for n, row in zip(links, rows, strict=True) if row.peer is not None]
    figure = Figure(
        "reduced-scaling",
        "A step with the poses of all links",
        "links",
        "µs",
        [
            Series("pliant, reduced", links, [row.ours or 0.0 for row in rows]),
            Series("MuJoCo, fastest stable", [n for n, _ in theirs], [t for _, t in theirs], ours=False),
        ],
        log_x=True,
        log_y=True,
    )
    return [
        Table(
            "reduced",
            "reduced-scaling",
            "A step of a reduced model against the number of links",
            "µs a step",
            rows,
            settings=f"{SETTINGS} MuJoCo up to {largest} links.",
            figures=[figure],
        )
    ]
