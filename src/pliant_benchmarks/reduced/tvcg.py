"""TVCG Table 1 and Fig. 5: speed of a reduced model beside simulations of every link, and its error at rest."""

from __future__ import annotations

import numpy as np

import pliant

from ..harness.results import Progress, Row, Table, log_figure
from ..harness.timing import Timing, compare, time_in_turns
from ..peers.mujoco import PushedMechanism
from ..systems import STEP, Pushed, measure_gaps, rest_under

__all__ = ["CASES", "figure_5", "scaling", "table_1"]

g = pliant.gallery
CASES = {  # mechanism, target ratio to MuJoCo, TVCG: Vortex and the fastest FORK⁻¹S
    "helix(50)": (lambda: g.helix(50), 40, "240 against 12 µs: 20x"),
    "helix(100)": (lambda: g.helix(100), 90, "470 against 16 µs: 29.4x"),
    "helix(400)": (lambda: g.helix(400), 900, "2150 against 76 µs: 28.3x"),
    "ladder(16), 48 links": (lambda: g.ladder(16), 100, "334 against 14 µs: 23.9x"),
    "arm(), 5 end effectors": (g.arm, 5, "121 against 18 µs: 6.7x"),
}
CHUNK = 0.01  # processor time of a turn, s
SETTINGS = (
    'One thread, processor time, steps of 1 ms as printed (`method="tvcg"`), pushed by a tenth of the radius; beside '
    "them steps on the manifold of the model, of small motion and full ones. MuJoCo on the same mechanism "
    "(to_mjcf), contacts off, all steps in one call, by its fastest integrator that holds for a second (with --quick a "
    "tenth of one) without warnings or energy from nowhere."
)


def table_1(quick: bool, progress: Progress) -> Table:
    """TVCG Table 1: a step with the poses of all links, beside MuJoCo; Vortex and FORK⁻¹S in the paper."""
    rows = []
    for name, (make, target, paper) in CASES.items():
        progress(f"a step of {name}")
        case = Pushed(name, make)
        row = _row(case, quick)
        row.target, row.paper = f"{target}x", paper
        row.values["by twists, µs"] = _alone(case.simulation(reconstruction="twist"), 3).median
        rows.append(row)
    return Table(
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


def _row(case: Pushed, quick: bool) -> Row:
    """Row of pliant beside MuJoCo."""
    peer = PushedMechanism(case)
    integrator, failed = peer.fastest(quick)
    ours = case.simulation(method="tvcg")
    if integrator is None:
        return compare(case.name, _alone(ours, 7), stable=f"MuJoCo: none of {', '.join(failed)} holds")
    ours.step(round(peer.data.time / STEP))
    apart = np.linalg.norm(case.displacement(ours.poses) - peer.displacement) / case.m.radius
    steps = _steps(case.m.body_count)
    few = max(3, round(CHUNK / peer.seconds(integrator, 5)))
    calls = {"pliant": lambda: ours.step(steps), "MuJoCo": lambda: peer.step(few)}
    times = time_in_turns(calls, 5 if quick else 15)
    return compare(
        case.name,
        times["pliant"].scaled(1e6 / steps),
        times["MuJoCo"].scaled(1e6 / few),
        peer_name=f"MuJoCo {integrator}",
        note=f"faster but unstable: MuJoCo {', '.join(failed)}" if failed else "",
        values={"tips apart afterwards, of radius": float(apart), **_levels(case)},
    )


def _levels(case: Pushed) -> dict[str, float]:
    """Steps of the same model on its manifold, µs."""
    return {f"{level}, µs": _alone(case.simulation(method=level), 3).median for level in ("small", "full")}


def _alone(simulation: pliant.ReducedSimulation, rounds: int) -> Timing:
    """Timing of a simulation by itself, µs a step."""
    steps = _steps(len(simulation.poses))
    return time_in_turns({"": lambda: simulation.step(steps)}, rounds)[""].scaled(1e6 / steps)


def _steps(links: int) -> int:
    """Number of steps that take about `CHUNK` seconds."""
    return max(2, round(CHUNK / (0.5e-6 + 1e-8 * links)))


def scaling(quick: bool, progress: Progress) -> Table:
    """A step over the number of links, beside MuJoCo."""
    sizes = (10, 100, 1000) if quick else (10, 20, 50, 100, 200, 400, 1000, 3000)
    largest = 100 if quick else 400  # beyond, MuJoCo's steps take too long to wait for
    rows = []
    for links in sizes:
        progress(f"scaling: helix({links:,})")
        case = Pushed(f"helix({links:,})", lambda n=links: g.helix(n))
        row = (
            compare(case.name, _alone(case.simulation(method="tvcg"), 5))
            if links > largest
            else _row(case, quick)
        )
        row.values["ns a link"] = 1e3 * (row.ours or 0.0) / links
        rows.append(row)
    curves = {
        "pliant, reduced": [(n, row.ours) for n, row in zip(sizes, rows, strict=True)],
        "MuJoCo, fastest stable": [(n, row.peer) for n, row in zip(sizes, rows, strict=True)],
    }
    figure = log_figure("reduced-scaling", "A step with the poses of all links", "links", "µs", curves)
    return Table(
        "reduced",
        "reduced-scaling",
        "A step of a reduced model against the number of links",
        "µs a step",
        rows,
        settings=f"{SETTINGS} MuJoCo up to {largest} links.",
        figures=[figure],
    )


def figure_5(quick: bool, progress: Progress) -> Table:
    """TVCG Fig. 5: tip of a reduced model at rest under 100 N, against the nonlinear equilibrium."""
    rows = []
    for name, m in (("helix(50)", g.helix(50)), ("ladder(12)", g.ladder(12)), ("y()", g.y())):
        progress(f"100 N on {name}")
        model, tip = pliant.reduce(m), m.end_effectors[0]
        index = m.body_index(tip)
        slowest = float(model.frequencies()[0])
        for axis, force in zip("xyz", 100.0 * np.eye(3), strict=True):
            case = f"{name}, 100 N along {axis}"
            try:
                exact = pliant.equilibrium(m, {tip: force})
            except pliant.errors.ConvergenceError:
                rows.append(Row(case, stable="no equilibrium found"))
                continue
            moved = float(exact.displacement[index])
            if moved < 1e-9 * m.radius:
                rows.append(Row(case, note="rigid that way"))
                continue
            s = rest_under(model, {tip: force}, slowest)
            error = float(np.linalg.norm(s.poses[index, :3, 3] - exact.poses[index, :3, 3]))
            rows.append(
                Row(
                    case,
                    100 * error / moved,
                    stable="yes" if exact.stability == "stable" else f"equilibrium is {exact.stability}",
                    values={
                        "tip moves, of radius": moved / m.radius,
                        "error, of radius": error / m.radius,
                        "widest joint, of radius": float(measure_gaps(m, s.poses).max() / m.radius),
                    },
                )
            )
    return Table(
        "reduced",
        "tvcg-fig-5",
        "One model at rest under 100 N, against the nonlinear equilibrium",
        "% of the motion",
        rows,
        source="TVCG Fig. 5",
        settings="Error of the tip. The paper shows pictures, of FORK⁻¹S and of Vortex, and calls them alike.",
    )
