"""RL05 Table 1 as the paper measures displacement errors, and joints for a guaranteed error of places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import pliant

from ..harness.results import Progress, Row, Table, log_figure
from .linkages import H, build_linkage, choose_bodies, push
from .rl05 import PAPER, POWERS, TOLERANCE

__all__ = ["displacements", "guaranteed", "make_table", "measure_errors"]

SEEDS = (7, 8, 9)  # of molecules, their forces and the bonds they act on
TURN = 1e-3  # rad that the joint turns that turns farthest in the first step
SAMPLES = 20  # times at which joints are counted
EPSILONS = (1e-1, 1e-2, 1e-4)
MOST = {"molecule": (50, 55, 75), "millipede": (40, 500, 6000)}  # joints, the targets of their medians


class Found(NamedTuple):
    """Relative errors of displacements at the end with rigid and zeroed joints, and numbers of joints computed."""

    rigid: float
    zero: float
    joints: float
    joints_zeroed: float


def displacements(quick: bool, progress: Progress) -> Table:
    """Displacement errors after 4,000 steps of molecules under 1 to 1,000 forces, by RL05's protocol."""
    size, steps = (2_000, 200) if quick else (50_000, 4_000)
    found: dict[tuple[int, int], list[Found]] = {}
    for seed in SEEDS[:1] if quick else SEEDS:
        for count in (1, 10) if quick else tuple(PAPER):
            progress(f"RL05 Table 1, molecule {seed}, {count} forces, {steps:,} steps")
            for power, one in measure_errors(size, count, seed, steps).items():
                found.setdefault((count, power), []).append(one)
    return make_table(found, size, steps)


def measure_errors(
    size: int, count: int, seed: int, steps: int, powers: Sequence[int] = POWERS
) -> dict[int, Found]:
    """Errors of a molecule under some forces at tolerances 2^-power, by power."""
    m = build_linkage("molecule", size, seed)
    bodies = choose_bodies(m, count, neighbours=True, seed=seed)
    h = _timestep(m, bodies, seed)
    exact, _ = _move(m, bodies, seed, h, 2.0**-40, "rigid", steps)
    out = {}
    for power in powers:
        rigid, joints = _move(m, bodies, seed, h, 2.0**-power, "rigid", steps)
        zero, others = _move(m, bodies, seed, h, 2.0**-power, "zero", steps)
        out[power] = Found(_off(rigid, exact), _off(zero, exact), joints, others)
    return out


def make_table(found: dict[tuple[int, int], list[Found]], size: int, steps: int) -> Table:
    """Table of errors by number of forces and power, each of several molecules."""
    rows: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for (count, power), several in found.items():
        row = _row(count, power, several, steps)
        rows.append(row)
        name = f"{count} forces" if count > 1 else "1 force"
        lines.setdefault(name, []).append((2.0**-power, row.ours or 0.0))
        if count in PAPER:
            theirs = PAPER[count][2][POWERS.index(power)]
            lines.setdefault(f"{name}, RL05", []).append((2.0**-power, theirs))
    return Table(
        "quasistatic",
        "rl05-table-1-displacements",
        f"Displacement errors of molecules of {size:,} joints over {steps:,} steps",
        "relative error a step",
        rows,
        "RL05 Table 1, Fig. 8",
        "As RL05 section 6.4 says: the error at the end over the number of steps. Molecules without springs, constant "
        "forces on neighbouring bonds, steps in which the joint that turns farthest turns "
        f"{TURN:g} rad at first. Error: largest difference of centres of mass from the exact motion over their largest "
        f"displacement; median of molecules {', '.join(map(str, SEEDS[: len(several)]))}. Peer: the same engine with "
        "the joints that are not computed at zero acceleration, as RL05 prints it, not rigid.",
        figures=[
            log_figure(
                "rl05-figure-8",
                "Displacement error a step",
                TOLERANCE,
                "relative error a step",
                lines,
                lambda name: "RL05" not in name,
            )
        ],
    )


def _row(count: int, power: int, several: list[Found], steps: int) -> Row:
    """Row of errors with rigid joints beside those with zeroed ones and RL05's."""
    paper = PAPER.get(count)
    rigid, zero, computed, others = np.array(several).T
    row = Row(
        f"{count} forces, 2^-{power}" if count > 1 else f"1 force, 2^-{power}",
        ours=float(np.median(rigid)) / steps,
        peer=float(np.median(zero)) / steps,
        peer_name="zeroed",
    )
    if paper:
        joints, theirs = (paper[k][POWERS.index(power)] for k in (1, 2))
        row.paper, row.target = f"error {theirs:.0e}, {joints} joints; at 50,000 joints", f"{theirs:.0e}"
    if rigid.all():
        row.ratio = float(np.median(zero / rigid))
        row.values["zeroed over rigid, least"] = float((zero / rigid).min())
    row.values |= {
        "least": float(rigid.min()) / steps,
        "largest": float(rigid.max()) / steps,
        "error at the end": float(np.median(rigid)),
        "error at the end, zeroed": float(np.median(zero)),
        "joints computed": float(np.median(computed)),
        "joints computed, zeroed": float(np.median(others)),
    }
    return row


def _timestep(m: pliant.Mechanism, bodies: Sequence[int], seed: int) -> float:
    """Time step in which a joint turns `TURN` at first, none more, s."""
    s = push(m, 2.0**-40, bodies, seed)
    s.step()
    return H * float(np.sqrt(TURN / np.abs(s.q - m.reference).max()))


def _move(
    m: pliant.Mechanism,
    bodies: Sequence[int],
    seed: int,
    h: float,
    tolerance: float,
    inactive: str,
    steps: int,
) -> tuple[np.ndarray, float]:
    """Displacements of the centres of mass, m, and the mean number of joints computed."""
    s = push(m, tolerance, bodies, seed, timestep=h, inactive=inactive)
    start, joints = _centres(m, s.poses), []
    for _ in range(SAMPLES):
        s.step(steps // SAMPLES)
        joints.append(len(s.active))
    return _centres(m, s.poses) - start, float(np.mean(joints))


def _centres(m: pliant.Mechanism, poses: np.ndarray) -> np.ndarray:
    """Centres of mass at world poses, m."""
    return np.einsum("nij,nj->ni", poses[:, :3, :3], m.com) + poses[:, :3, 3]


def _off(found: np.ndarray, exact: np.ndarray) -> float:
    """Largest difference of displacements over the largest displacement."""
    return float(np.sqrt(((found - exact) ** 2).sum(1).max() / (exact**2).sum(1).max()))


def guaranteed(quick: bool, progress: Progress) -> Table:
    """Joints for displacement errors that the measure "world" guarantees, and the bound over the true error."""
    rows: list[Row] = []
    for name in ("molecule", "millipede"):
        m = build_linkage(name, *([2_000] if quick and name == "molecule" else []))
        found: dict[float, list[tuple[int, float]]] = {epsilon: [] for epsilon in EPSILONS}
        for seed in range(3 if quick else 10):
            progress(f"joints for a guaranteed error, {name}, force {seed + 1}")
            bodies = choose_bodies(m, 1, neighbours=False, seed=seed)
            for epsilon, joints, over in _guarantee(m, bodies, seed):
                found[epsilon].append((joints, over))
        for epsilon, most in zip(EPSILONS, MOST[name], strict=True):
            joints, over = np.array(found[epsilon]).T
            row = Row(
                f"{name} of {m.joint_count:,}, error {epsilon:g}",
                ours=float(np.median(joints)),
                target=f"at most {most}" if not quick else "",
            )
            row.values = {
                "joints, fewest": float(joints.min()),
                "joints, most": float(joints.max()),
                "bound over truth, median": float(np.median(over)),
                "bound over truth, least": float(over.min()),
                "bound over truth, largest": float(over.max()),
            }
            rows.append(row)
    return Table(
        "quasistatic",
        "guaranteed-places",
        "Joints for a guaranteed displacement error",
        "joints",
        rows,
        settings='The measure "world", one refinement from the reference pose under one random force on a random '
        "body, median of ten; errors relative to the largest displacement in the step, of origins and centres of mass.",
    )


def _guarantee(m: pliant.Mechanism, bodies: Sequence[int], seed: int) -> list[tuple[float, int, float]]:
    """For every error its number of joints, and the bound over the true error."""
    exact = push(m, 2.0**-40, bodies, seed)
    exact._load()
    exact._solver.step_aba()
    all_, out = exact.accelerations, []
    largest = _moved(m, all_)
    for epsilon in EPSILONS:
        s = push(m, epsilon * largest, bodies, seed, measure="world")
        bound = s.refine()
        truth = _moved(m, s.accelerations - all_)
        out.append((epsilon, len(s.active), bound / truth if truth > 0 else np.inf))
    return out


def _moved(m: pliant.Mechanism, accelerations: np.ndarray) -> float:
    """Largest displacement of an origin or centre of mass in a step, to first order in the accelerations, m."""
    small = 1e-6 / max(float(np.abs(accelerations).max()), 1e-300) * accelerations
    ends = [pliant.Configuration(m, m.reference + side * small).poses for side in (1, -1)]
    apart = [ends[0][:, :3, 3] - ends[1][:, :3, 3], _centres(m, ends[0]) - _centres(m, ends[1])]
    most = max(float(np.sqrt((one**2).sum(axis=1).max())) for one in apart)
    return H**2 * most / 2e-6 * float(np.abs(accelerations).max())
