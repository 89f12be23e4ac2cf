"""The suite of blended models: TVCG Table 2 and Fig. 7, and how near to the truth they come on fresh wrenches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measure import compared, interleaved
from mujoco_tree import QUICK, MuJoCo
from pushed import Floats, Pushed
from results import Progress, Row, Table
from tvcg_figures import figure_7

import pliant

SUITE = "blended"
g = pliant.gallery
STEPS = 2000
SPEED: dict[str, tuple[Callable[[], pliant.Mechanism], list[Floats], str, str]] = {
    # mechanism, loads of three models, what a step with four may cost, TVCG: Vortex, with 1 and with 4 models
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


def _models(m: pliant.Mechanism, loads: list[Floats]) -> list[pliant.ReducedModel]:
    tip = m.end_effectors[0]
    return [pliant.reduce(m), *(pliant.reduce(m, at=pliant.equilibrium(m, {tip: load})) for load in loads)]


def _stepping(
    model: pliant.ReducedModel | pliant.BlendedModel, force: Floats, reconstruction: str = "joint"
) -> Callable[[], object]:
    simulation = pliant.ReducedSimulation(model, 1e-3, reconstruction)
    simulation.apply_wrench(model.end_effectors[0], force)
    return lambda: simulation.step(STEPS)


def table_2(quick: bool, progress: Progress) -> list[Table]:
    """A step with several models, weights computed every step, beside one model and beside MuJoCo."""
    rows = []
    for name, (make, loads, target, paper) in SPEED.items():
        progress(f"a step of a blend, {name}")
        case = Pushed(name, make)
        models, force = _models(case.m, loads), 0.3 * loads[0]
        calls = {
            "one": _stepping(models[0], force),
            "2 models": _stepping(pliant.blend(models[:2]), force),
            "4 models": _stepping(pliant.blend(models), force),
            "4 by eigenvectors": _stepping(pliant.blend(models, matrices="eigen"), force),
            "4 by twists": _stepping(pliant.blend(models), force, "twist"),
        }
        if len(case.m.end_effectors) == 1:
            more = [load * s for load in loads for s in (0.3, 0.55, 0.8, -0.45)]
            fitted = pliant.blend(_models(case.m, [*loads, *more]), joints="polynomial")
            calls["polynomial"] = _stepping(pliant.BlendedModel(models, polynomial=fitted.polynomial), force)
        peer = MuJoCo(case)
        integrator, failed = peer.fastest(0.1, QUICK) if quick else peer.fastest()
        few = 0
        if integrator is not None:
            few = max(3, round(0.01 / peer.seconds(integrator, 5)))
            calls["MuJoCo"] = lambda peer=peer, few=few: peer.step(few)
        times = {
            key: t.scaled(1e6 / (few if key == "MuJoCo" else STEPS))
            for key, t in interleaved(calls, 5 if quick else 11).items()
        }
        row = compared(
            f"{name}, 4 models", times["4 models"], times.get("MuJoCo"), target=target, paper=paper
        )
        row.peer_name = f"MuJoCo {integrator}" if integrator is not None else ""
        row.stable = "yes" if integrator is not None else f"MuJoCo: none of {', '.join(failed)} holds"
        row.values = {"4 models, times one": times["4 models"].median / times["one"].median}
        row.values |= {
            f"{key}, µs": t.median for key, t in times.items() if key not in ("4 models", "MuJoCo")
        }
        rows.append(row)
    return [
        Table(
            SUITE,
            "tvcg-table-2",
            "A step of a blended model with the poses of all links",
            "µs a step",
            rows,
            source="TVCG Table 2",
            settings="One thread, processor time, 1 ms, weights computed every step. The paper's figures: Vortex; "
            "FORK⁻¹S with 1 and with 4 models, on 4 threads.",
        )
    ]


def sampled_directions(quick: bool, progress: Progress) -> list[Table]:
    """Four models on loads between their samples."""
    rows = []
    for name, m, size, target in (
        ("helix(50)", g.helix(50), 300.0, 0.007),
        ("y()", g.y(), 300.0, 0.007),
        ("loop()", g.loop(), 400.0, 0.009),
        ("ladder(12)", g.ladder(12), 400.0, 0.012),
    ):
        progress(f"four models between samples, {name}")
        along = np.array([[1.0, 0, 0], [-1, 0, 0], [0.5, 0, 0]]) if name.startswith("ladder") else np.eye(3)
        models = _models(m, list(size * along))
        loads = [{m.end_effectors[0]: s * size * a} for a in along for s in (0.1, 0.3, 0.5, 0.7, 0.9)]
        found, one = pliant.blend(models).error(loads), models[0].error(loads)
        rows.append(
            Row(
                f"{name}, {size:g} N",
                found.rms,
                one.rms,
                peer_name="one model, at rest",
                ratio=one.rms / found.rms,
                target=f"at most {target}",
                stable="yes"
                if not any(found.problems)
                else f"{sum(map(bool, found.problems))} loads without an error",
                values={"worst": found.worst},
            )
        )
    title = "Error of four models at rest, for loads along their samples"
    settings = (
        "Root mean square error of the tip against the equilibrium, at a tenth to nine tenths of their loads."
    )
    return [Table(SUITE, "sampled-directions", title, "of radius", rows, settings=settings)]


def fresh_wrenches(quick: bool, progress: Progress) -> list[Table]:
    """Automatic sampling, judged by random wrenches it has not seen."""
    rows = []
    for name, m, kind, target in (
        ("helix(50)", g.helix(50), "blend", ""),
        ("helix(50)", g.helix(50), "polynomial", "at most 0.03"),
        ("y()", g.y(), "polynomial", "at most 0.03"),
        ("ladder(12), cells", g.ladder(12), "blend", "at most 0.01"),
        ("ladder(12), rails", g.ladder(12, "rails"), "blend", "at most 0.01"),
    ):
        if quick and name != "helix(50)":
            continue
        progress(f"sampling {name}, {kind}")
        found = pliant.sample(
            m, wrenches=300.0, tolerance=0.0, kind=kind, candidates=30 if quick else 59, progress=False
        )
        single = found.model.models[0].error(found.accuracy.wrenches)
        rows.append(
            Row(
                f"{name}, {kind}",
                found.accuracy.rms,
                single.rms,
                peer_name="one model, at rest",
                ratio=single.rms / found.accuracy.rms,
                target=target,
                values={"worst": found.accuracy.worst, "models": len(found.model.models)},
            )
        )
    title = "Error at rest on random forces up to 300 N that a model was not made from"
    settings = (
        "Root mean square error of the tip; `pliant.sample` with 59 equilibria (30 with --quick), 12 models."
    )
    return [Table(SUITE, "fresh-wrenches", title, "of radius", rows, settings=settings)]


PARTS = (table_2, figure_7, sampled_directions, fresh_wrenches)
