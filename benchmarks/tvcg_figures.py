"""TVCG Figs. 5 and 7: how far single and blended models are from the truth, and how far joints come apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pushed import Floats, gaps, settle
from results import Figure, Progress, Row, Series, Table

import pliant
from pliant.spatial import se3_inverse, se3_log

__all__ = ["figure_5", "figure_7"]

g = pliant.gallery
SLOW = 1 / 60
LEAP = 0.6  # relative displacement between two loads that no smooth curve has
Model = pliant.ReducedModel | pliant.BlendedModel


def _rest(
    model: Model, load: dict[str, Floats], slowest: float, reconstruction: str
) -> pliant.ReducedSimulation:
    """A simulation that has come to rest under loads."""
    s = pliant.ReducedSimulation(model, SLOW, reconstruction)
    for body, force in load.items():
        s.apply_wrench(body, force=force)
    settle(s, slowest)
    return s


def figure_5(quick: bool, progress: Progress) -> list[Table]:
    """100 N on helix, ladder and Y: where the reduced model comes to rest, against the nonlinear equilibrium."""
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
            s = _rest(model, {tip: force}, slowest, "joint")
            error = float(np.linalg.norm(s.poses[index, :3, 3] - exact.poses[index, :3, 3]))
            rows.append(
                Row(
                    case,
                    100 * error / moved,
                    stable="yes" if exact.stability == "stable" else f"equilibrium is {exact.stability}",
                    values={
                        "tip moves, of radius": moved / m.radius,
                        "error, of radius": error / m.radius,
                        "widest joint, of radius": float(gaps(m, s.poses).max() / m.radius),
                    },
                )
            )
    return [
        Table(
            "reduced",
            "tvcg-fig-5",
            "One model at rest under 100 N, against the nonlinear equilibrium",
            "% of the motion",
            rows,
            source="TVCG Fig. 5",
            settings="Error of the tip. The paper shows pictures, of FORK⁻¹S and of Vortex, and calls them alike.",
        )
    ]


def figure_7(quick: bool, progress: Progress) -> list[Table]:
    """How far joints come apart, added up, as a tip is pulled: one model and a blend, by twists and by joints."""
    distances = np.linspace(0.25, 1.5, 5 if quick else 11)
    rows, figures = [], []
    for name, m, axes in (("y()", g.y(), "xyz"), ("ladder(12)", g.ladder(12), "x")):
        series = []
        for axis in axes:
            progress(f"joints of {name} pulled along {axis}")
            found = _pull(m, np.eye(3)["xyz".index(axis)], distances)
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
    return [
        Table(
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
    ]


def _pull(
    m: pliant.Mechanism, axis: Floats, distances: Floats
) -> dict[str, tuple[list[float], list[float]]] | None:
    """Relative displacement of the tip and sum of gaps over the radius, by kind; None without equilibria to blend."""
    tip = m.end_effectors[0]
    index, one = m.body_index(tip), pliant.reduce(m)
    turn = m.reference_poses[index, :3, :3]
    scale = np.repeat([1 / m.radius, 1.0], 3)
    unit = axis / np.linalg.norm(
        scale * (one.compliance[:6, :3] @ turn.T @ axis)
    )  # moves by 1, to first order
    try:
        there = [pliant.reduce(m, at=_moved(m, tip, unit, d, scale)) for d in (0.5, 1.0)]
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
            s = _rest(model, {tip: distance * unit}, slowest, reconstruction)
            moved = float(np.linalg.norm(scale * s.displacement(tip)))
            if not x[-1] < moved < x[-1] + LEAP:
                break  # from here on it comes to no steady rest
            x.append(moved)
            y.append(float(gaps(m, s.poses).sum() / m.radius))
    return out


def _moved(
    m: pliant.Mechanism, tip: str, unit: Floats, distance: float, scale: Floats
) -> pliant.Configuration:
    """The equilibrium at which the tip has moved by a relative displacement, by bisection on the force."""
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
