"""Blended models: what a step costs beside a single model, and how near to the truth they come on fresh wrenches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measure import interleaved, show

import pliant

STEPS = 2000


def _models(m: pliant.Mechanism, loads: list[np.ndarray]) -> list[pliant.ReducedModel]:
    tip = m.end_effectors[0]
    return [pliant.reduce(m), *(pliant.reduce(m, at=pliant.equilibrium(m, {tip: load})) for load in loads)]


def _stepping(
    model: pliant.ReducedModel | pliant.BlendedModel, force: np.ndarray, reconstruction: str = "joint"
) -> Callable[[], object]:
    simulation = pliant.ReducedSimulation(model, 1e-3, reconstruction)
    simulation.apply_wrench(model.end_effectors[0], force)
    return lambda: simulation.step(STEPS)


def _speed() -> dict[str, dict[str, float]]:
    out, rows = {}, []
    three = list(np.eye(3))
    cases = {
        "helix(200)": (pliant.gallery.helix(200), [60 * d for d in three]),
        "ladder(12), 36 links": (
            pliant.gallery.ladder(12),
            [np.array([f, 0, 0]) for f in (-100.0, 50.0, 100.0)],
        ),
        "arm()": (pliant.gallery.arm(), [10 * d for d in three]),
    }
    for name, (m, loads) in cases.items():
        models = _models(m, loads)
        more = [load * s for load in loads for s in (0.3, 0.55, 0.8, -0.45)]
        fitted = (
            pliant.blend(_models(m, [*loads, *more]), joints="polynomial")
            if len(m.end_effectors) == 1
            else None
        )
        contenders = {
            "one": _stepping(models[0], 0.3 * loads[0]),
            "blend of one": _stepping(pliant.blend(models[:1]), 0.3 * loads[0]),
            "blend of 4": _stepping(pliant.blend(models), 0.3 * loads[0]),
            "eigenvectors": _stepping(pliant.blend(models, matrices="eigen"), 0.3 * loads[0]),
            "twists": _stepping(pliant.blend(models), 0.3 * loads[0], reconstruction="twist"),
        }
        if fitted is not None:
            polynomial = pliant.BlendedModel(models, polynomial=fitted.polynomial)
            contenders["polynomial"] = _stepping(polynomial, 0.3 * loads[0])
        times = {key: 1e6 * t / STEPS for key, t in interleaved(contenders, rounds=9).items()}
        out[name] = times
        cells = [
            f"{times[key]:.2f}" if key in times else "-" for key in (*list(contenders)[:5], "polynomial")
        ]
        rows.append([name, *cells, f"{times['blend of 4'] / times['one']:.2f}x", "1.6x"])
    columns = [
        "mechanism",
        "one model",
        "blend of 1",
        "blend of 4",
        "eigenvectors",
        "twists",
        "polynomial",
        "4 to 1",
        "target",
    ]
    show("a step with all poses, weights computed every step (µs)", columns, rows)
    return out


def _accuracy() -> dict[str, dict[str, float]]:
    out, rows = {}, []
    for name, m, size, kind, target in (
        ("helix(50)", pliant.gallery.helix(50), 300.0, "blend", "-"),
        ("helix(50)", pliant.gallery.helix(50), 300.0, "polynomial", "0.03"),
        ("y()", pliant.gallery.y(), 300.0, "polynomial", "0.03"),
        ("ladder(12), cells", pliant.gallery.ladder(12), 300.0, "blend", "0.01"),
        ("ladder(12), rails", pliant.gallery.ladder(12, "rails"), 300.0, "blend", "0.01"),
    ):
        found = pliant.sample(m, wrenches=size, tolerance=0.0, kind=kind, candidates=59, progress=False)
        single = found.model.models[0].error(found.accuracy.wrenches)
        out[f"{name}, {kind}"] = {
            "rms": found.accuracy.rms,
            "worst": found.accuracy.worst,
            "rest": single.rms,
        }
        numbers = (single.rms, found.accuracy.rms, found.accuracy.worst)
        rows.append(
            [name, kind, f"{size:g} N", len(found.model.models), *(f"{x:.5f}" for x in numbers), target]
        )
    columns = ["mechanism", "kind", "force", "models", "rms, rest model", "rms", "worst", "target (rms)"]
    show("tip error on 40 fresh random wrenches, in radii", columns, rows)
    return out


def run() -> dict[str, dict[str, dict[str, float]]]:
    """Both tables."""
    return {"speed": _speed(), "accuracy": _accuracy()}
