"""RL05 Table 1 as the paper measures displacement errors, and joints for a guaranteed error of places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import pliant

from ..harness.results import Figure, Progress, Row, Table, log_figure
from .linkages import H, build_linkage, choose_bodies, push
from .rl05 import PAPER, POWERS, TOLERANCE

__all__ = ["displacements", "guaranteed"]

SEED = 7  # of the molecule, its forces and the bonds they act on
TURN = 1e-3  # rad that the joint turns that turns farthest in the first step
SAMPLES = 20  # times at which joints are counted
EPSILONS = (1e-1, 1e-2, 1e-4)
MOST = {"molecule": (50, 55, 75), "millipede": (40, 500, 6000)}  # joints, the targets of their medians


def displacements(quick: bool, progress: Progress) -> Table:
    """Displacement errors after 4,000 steps of a molecule under 1 to 1,000 forces, by RL05's protocol."""
    size, steps = (2_000, 200) if quick else (50_000, 4_000)
    m = build_linkage("molecule", size, SEED)
    rows: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for count in (1, 10) if quick else (1, 10, 100, 1000):
        bodies = choose_bodies(m, count, neighbours=True, seed=SEED)
        progress(f"RL05 Table 1, {count} forces, exact motion")
        h = _timestep(m, bodies)
        exact, _ = _move(m, bodies, h, 2.0**-40, "rigid", steps)
        for power in POWERS:
            progress(f"RL05 Table 1, {count} forces, 2^-{power}, {steps:,} steps")
            rigid, joints = _move(m, bodies, h, 2.0**-power, "rigid", steps)
            zero, others = _move(m, bodies, h, 2.0**-power, "zero", steps)
            row = _row(count, power, _off(rigid, exact), _off(zero, exact), steps)
            row.values |= {"joints computed": joints, "joints computed, zeroed": others}
            rows.append(row)
            name = f"{count} forces" if count > 1 else "1 force"
            lines.setdefault(name, []).append((2.0**-power, row.ours or 0.0))
            theirs = PAPER[count][2][POWERS.index(power)]
            lines.setdefault(f"{name}, RL05", []).append((2.0**-power, theirs))
    return Table(
        "quasistatic",
        "rl05-table-1-displacements",
        f"Displacement errors of a molecule of {size:,} joints after {steps:,} steps",
        "relative error a step",
        rows,
        "RL05 Table 1, Fig. 8",
        f"RL05 section 6.4: the error at the end over the number of steps. Molecule of seed {SEED}, without springs; "
        f"constant forces on neighbouring bonds, steps in which the joint that turns farthest turns {TURN:g} rad at "
        "first. Error: largest difference of centres of mass from the exact motion over their largest displacement. "
        "Peer: the same engine with the joints that are not computed at zero acceleration, as RL05 prints it, not "
        "rigid.",
        figures=[_figure(lines)],
    )


def _figure(lines: dict[str, list[tuple[float, float]]]) -> Figure:
    return log_figure(
        "rl05-figure-8",
        "Displacement error a step, over 4,000 steps",
        TOLERANCE,
        "relative error a step",
        lines,
        lambda name: "RL05" not in name,
    )


def _row(count: int, power: int, rigid: float, zero: float, steps: int) -> Row:
    """Row of an error with rigid joints beside that with zeroed ones and RL05's."""
    joints, theirs = (PAPER[count][k][POWERS.index(power)] for k in (1, 2))
    row = Row(
        f"{count} forces, 2^-{power}" if count > 1 else f"1 force, 2^-{power}",
        ours=rigid / steps,
        peer=zero / steps,
        peer_name="zeroed",
        ratio=zero / rigid if rigid else None,
        paper=f"{theirs:.0e}, {joints} joints; at 50,000 joints",
        target=f"{theirs:.0e}",
    )
    row.values = {"error at the end": rigid, "error at the end, zeroed": zero}
    return row


def _timestep(m: pliant.Mechanism, bodies: Sequence[int]) -> float:
    """Time step in which a joint turns `TURN` at first, none more, s."""
    s = push(m, 2.0**-40, bodies, SEED)
    s.step()
    return H * float(np.sqrt(TURN / np.abs(s.q - m.reference).max()))


def _move(
    m: pliant.Mechanism, bodies: Sequence[int], h: float, tolerance: float, inactive: str, steps: int
) -> tuple[np.ndarray, float]:
    """Displacements of the centres of mass, m, and the mean number of joints computed."""
    s = push(m, tolerance, bodies, SEED, timestep=h, inactive=inactive)
    start, joints = centres(m, s.poses), []
    for _ in range(SAMPLES):
        s.step(steps // SAMPLES)
        joints.append(len(s.active))
    return centres(m, s.poses) - start, float(np.mean(joints))


def centres(m: pliant.Mechanism, poses: np.ndarray) -> np.ndarray:
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
    apart = [ends[0][:, :3, 3] - ends[1][:, :3, 3], centres(m, ends[0]) - centres(m, ends[1])]
    most = max(float(np.sqrt((one**2).sum(axis=1).max())) for one in apart)
    return H**2 * most / 2e-6 * float(np.abs(accelerations).max())
