"""Suite of blended models: TVCG Table 2 and Fig. 7, and errors at rest under loads that no model was made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import pliant
from pliant.spatial import se3_inverse, se3_log

from .harness.results import Figure, Progress, Row, Series, Table
from .harness.timing import compare, time_in_turns
from .peers.mujoco import PushedMechanism
from .systems import Floats, Model, Pushed, measure_gaps, rest_under

__all__ = ["PARTS", "figure_7", "fresh_wrenches", "sampled_directions", "table_2"]

g = pliant.gallery
STEPS = 2000
ROUNDING = 1e-9  # errors below are rounding
LEAP = 0.6  # of the relative displacement between two loads: no smooth curve
SPEED: dict[str, tuple[Callable[[], pliant.Mechanism], list[Floats], str, str]] = {
    # mechanism, loads of three models, target of a step with four, TVCG: Vortex, with 1 and with 4 models
    "helix(200)": (
        lambda: g.helix(200),
        list(60 * np.eye(3)),
        "at most 1.6 times one model",
        "1048; 78, 160 µs: 2.05 times",
    ),
    "ladder(12), 36 links": (
        lambda: g.ladder(12),
        [np.array([f, 0, 0]) for f in (-100.0, 50.0, 100.0)],
        "reported",
        "302; 37, 99 µs: 2.7 times",
    ),
    "arm(), 5 end effectors": (g.arm, list(10 * np.eye(3)), "reported", "121; 26, 86 µs: 3.3 times"),
}


def _reduce_at(m: pliant.Mechanism, loads: list[Floats]) -> list[pliant.ReducedModel]:
    """Models at rest and at the equilibria under forces on the first end effector."""
    tip = m.end_effectors[0]
    return [pliant.reduce(m), *(pliant.reduce(m, at=pliant.equilibrium(m, {tip: load})) for load in loads)]


def _stepping(
    model: Model, force: Floats, method: str = "tvcg", reconstruction: str = "joint"
) -> Callable[[], object]:
    """Function that advances a simulation of a model under a force by `STEPS` steps."""
    simulation = pliant.ReducedSimulation(model, 1e-3, reconstruction, method=method)
    simulation.apply_wrench(model.end_effectors[0], force)
    return lambda: simulation.step(STEPS)


def table_2(quick: bool, progress: Progress) -> Table:
    """TVCG Table 2: a step of a blend, weights computed every step, beside one model and beside MuJoCo."""
    rows = []
    for name, (make, loads, target, paper) in SPEED.items():
        progress(f"a step of a blend, {name}")
        case = Pushed(name, make)
        models, force = _reduce_at(case.m, loads), 0.3 * loads[0]
        calls = {
            "one": _stepping(models[0], force),
            "2 models": _stepping(pliant.blend(models[:2]), force),
            "4 models": _stepping(pliant.blend(models), force),
            "4 by eigenvectors": _stepping(pliant.blend(models, matrices="eigen"), force),
            "4 by twists": _stepping(pliant.blend(models), force, reconstruction="twist"),
            "4 on their manifold": _stepping(pliant.blend(models), force, "full"),
        }
        peer = PushedMechanism(case)
        integrator, failed = peer.fastest(quick)
        few = 0
        if integrator is not None:
            few = max(3, round(0.01 / peer.seconds(integrator, 5)))
            calls["MuJoCo"] = lambda peer=peer, few=few: peer.step(few)
        times = {
            key: t.scaled(1e6 / (few if key == "MuJoCo" else STEPS))
            for key, t in time_in_turns(calls, 5 if quick else 11).items()
        }
        row = compare(f"{name}, 4 models", times["4 models"], times.get("MuJoCo"), target=target, paper=paper)
        row.peer_name = f"MuJoCo {integrator}" if integrator is not None else ""
        row.stable = "yes" if integrator is not None else f"MuJoCo: none of {', '.join(failed)} holds"
        row.values = {"4 models, times one": times["4 models"].median / times["one"].median}
        row.values |= {
            f"{key}, µs": t.median for key, t in times.items() if key not in ("4 models", "MuJoCo")
        }
        rows.append(row)
    return Table(
        "blended",
        "tvcg-table-2",
        "A step of a blended model with the poses of all links",
        "µs a step",
        rows,
        source="TVCG Table 2",
        settings="One thread, processor time, 1 ms, models mixed as in the paper with weights computed every step; "
        "beside it a full step on the manifold they span. The paper's figures: Vortex; FORK⁻¹S with 1 and with 4 "
        "models, on 4 threads.",
    )


def figure_7(quick: bool, progress: Progress) -> Table:
    """TVCG Fig. 7: sum of joint gaps over the tip's displacement, of one model and a blend, by twists and by joints."""
    distances = np.linspace(0.25, 1.5, 5 if quick else 11)
    rows, figures = [], []
    for name, m, axes in (("y()", g.y(), "xyz"), ("ladder(12)", g.ladder(12), "x")):
        series = []
        for axis in axes:
            progress(f"joints of {name} pulled along {axis}")
            found = _pull_tip(m, np.eye(3)["xyz".index(axis)], distances)
            if found is None:
                rows.append(Row(f"{name} along {axis}", stable="no equilibrium found on the way"))
                continue
            for label, (x, y) in found.items():
                if label.endswith("twists"):  # by joints nothing comes apart
                    series.append(Series(f"{label}, along {axis}", x, y))
            at = {
                label: float(np.interp(1.0, x, y)) if max(x) >= 1 else None for label, (x, y) in found.items()
            }
            ends = [max(x) for x, _ in found.values() if max(x) < 1]
            rows.append(
                Row(
                    f"{name} along {axis}",
                    at["one, by joints"],
                    at["one, by twists"],
                    stable=f"no steady rest beyond {min(ends):.2f}" if ends else "yes",
                    peer_name="one model by twists, the paper's way",
                    paper="0.1 to 0.15 (one model)",
                    values={
                        "blend of 3, by twists": at["blend, by twists"],
                        "by joints": at["blend, by joints"],
                    },
                )
            )
        key = f"tvcg-fig-7-{name.partition('(')[0]}"
        figures.append(
            Figure(key, f"{name}: joints apart", "displacement of the tip", "sum, of radius", series)
        )
    return Table(
        "blended",
        "tvcg-fig-7",
        "Joints apart, summed over all joints, where the tip has moved by a relative displacement of 1",
        "of radius",
        rows,
        source="TVCG Fig. 7",
        settings="Displacement: norm of the tip's twist, lengths over the radius. One model made at rest; the "
        "blend has three, at rest and at equilibria of relative displacement 0.5 and 1. By joints, "
        "pliant's default, nothing of a tree comes apart. The ladder is 24 m high and has 48 joints: where rails "
        "turn and rungs do not, twists part them by an eighth of the height.",
        figures=figures,
    )


def _pull_tip(
    m: pliant.Mechanism, axis: Floats, distances: Floats
) -> dict[str, tuple[list[float], list[float]]] | None:
    """Relative displacement of the tip and sum of gaps over the radius, by kind; None where an equilibrium fails."""
    tip = m.end_effectors[0]
    index, one = m.body_index(tip), pliant.reduce(m)
    turn = m.reference_poses[index, :3, :3]
    scale = np.repeat([1 / m.radius, 1.0], 3)
    # A relative displacement of 1, to first order.
    unit = axis / np.linalg.norm(scale * (one.compliance[:6, :3] @ turn.T @ axis))
    try:
        there = [pliant.reduce(m, at=_equilibrium_at(m, tip, unit, d, scale)) for d in (0.5, 1.0)]
    except pliant.errors.ConvergenceError:
        return None
    blend = pliant.blend([one, *there])
    slowest = float(one.frequencies()[0])
    kinds: Sequence[tuple[str, Model, str]] = (
        ("one, by twists", one, "twist"),
        ("one, by joints", one, "joint"),
        ("blend, by twists", blend, "twist"),
        ("blend, by joints", blend, "joint"),
    )
    out: dict[str, tuple[list[float], list[float]]] = {label: ([0.0], [0.0]) for label, *_ in kinds}
    for label, model, reconstruction in kinds:
        x, y = out[label]
        for distance in distances:
            s = rest_under(model, {tip: distance * unit}, slowest, reconstruction)
            moved = float(np.linalg.norm(scale * s.displacement(tip)))
            if not x[-1] < moved < x[-1] + LEAP:
                break  # no steady rest from here on
            x.append(moved)
            y.append(float(measure_gaps(m, s.poses).sum() / m.radius))
    return out


def _equilibrium_at(
    m: pliant.Mechanism, tip: str, unit: Floats, distance: float, scale: Floats
) -> pliant.Configuration:
    """Equilibrium at a relative displacement of the tip, by bisection on the force."""
    start = se3_inverse(m.reference_poses[m.body_index(tip)])
    low, high = 0.0, 3.0
    for _ in range(12):
        middle = (low + high) / 2
        found = pliant.equilibrium(m, {tip: middle * unit})
        if np.linalg.norm(scale * se3_log(start @ found.pose(tip))) < distance:
            low = middle
        else:
            high = middle
    return pliant.equilibrium(m, {tip: (low + high) / 2 * unit})


def sampled_directions(quick: bool, progress: Progress) -> Table:
    """Error at rest of four models, under loads between their samples."""
    rows = []
    for name, m, size, target in (
        ("helix(50)", g.helix(50), 300.0, 0.007),
        ("y()", g.y(), 300.0, 0.007),
        ("loop()", g.loop(), 400.0, 0.009),
        ("ladder(12)", g.ladder(12), 400.0, 0.012),
    ):
        progress(f"four models between samples, {name}")
        along = np.array([[1.0, 0, 0], [-1, 0, 0], [0.5, 0, 0]]) if name.startswith("ladder") else np.eye(3)
        models = _reduce_at(m, list(size * along))
        loads = [{m.end_effectors[0]: s * size * a} for a in along for s in (0.1, 0.3, 0.5, 0.7, 0.9)]
        blend = pliant.blend(models)
        found, one, mixed = blend.error(loads), models[0].error(loads), blend.error(loads, method="tvcg")
        rows.append(
            Row(
                f"{name}, {size:g} N",
                found.rms,
                one.rms,
                peer_name="one model, at rest",
                ratio=one.rms / found.rms if found.rms > ROUNDING else None,
                target=f"at most {target}",
                stable="yes"
                if not any(found.problems)
                else f"{sum(map(bool, found.problems))} loads without an error",
                values={"worst": found.worst, "mixed as in the paper": mixed.rms},
            )
        )
    title = "Error of four models at rest, for loads along their samples"
    settings = (
        "Root mean square error of the tip against the equilibrium, at a tenth to nine tenths of their loads."
    )
    return Table("blended", "sampled-directions", title, "of radius", rows, settings=settings)


def fresh_wrenches(quick: bool, progress: Progress) -> Table:
    """Error at rest of automatically sampled blends, under random forces that were not sampled."""
    rows = []
    for name, m, target in (
        ("helix(50)", g.helix(50), 0.03),
        ("y()", g.y(), 0.03),
        ("ladder(12), cells", g.ladder(12), 0.01),
        ("ladder(12), rails", g.ladder(12, "rails"), 0.01),
    ):
        if quick and name != "helix(50)":
            continue
        progress(f"sampling {name}")
        found = pliant.sample(
            m, wrenches=300.0, tolerance=0.0, candidates=30 if quick else 59, progress=False
        )
        single = found.model.models[0].error(found.accuracy.wrenches)
        rows.append(
            Row(
                name,
                found.accuracy.rms,
                single.rms,
                peer_name="one model, at rest",
                ratio=single.rms / found.accuracy.rms if found.accuracy.rms > ROUNDING else None,
                target=f"at most {target}",
                values={
                    "worst": found.accuracy.worst,
                    "models": len(found.model.models),
                    "coordinates": found.model.spanned.basis.shape[1],
                    "mixed as in the paper": found.model.error(found.accuracy.wrenches, method="tvcg").rms,
                },
            )
        )
    title = "Error at rest on random forces up to 300 N that a model was not made from"
    settings = (
        "Root mean square error of the tip; `pliant.sample` with 59 equilibria (30 with --quick), 12 models."
    )
    return Table("blended", "fresh-wrenches", title, "of radius", rows, settings=settings)


PARTS = (table_2, figure_7, sampled_directions, fresh_wrenches)
