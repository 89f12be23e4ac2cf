"""RL05 Table 1 and Figs. 7 and 8: a molecule of 50,000 joints under 1 to 1,000 forces."""

from __future__ import annotations

import numpy as np
from measure import compared
from results import Figure, Progress, Row, Series, Table
from rl05 import AFTERWARDS, TURN, Turns, add_steps, chosen, exact, linkage, pushed

import pliant

__all__ = ["table"]

POWERS = (3, 7, 11, 15, 19)  # tolerances are powers of 1/2
PAPER = {  # milliseconds, joints computed, displacement error; the DCA takes 875 ms
    1: ((0.6, 0.9, 1.4, 1.9, 2.4), (25, 37, 47, 59, 73), (6e-5, 2e-6, 1e-7, 4e-9, 2e-9)),
    10: ((0.9, 1.3, 1.8, 2.6, 3.1), (32, 45, 56, 75, 85), (1e-4, 1e-4, 4e-7, 4e-8, 1e-8)),
    100: ((2.7, 4.1, 6.4, 7.8, 8.4), (39, 80, 145, 189, 206), (8e-4, 6e-4, 7e-5, 3e-6, 1e-7)),
    1000: ((17.8, 21.4, 42.6, 49.2, 49.9), (41, 149, 830, 1060, 1086), (6e-3, 2e-3, 7e-5, 2e-6, 6e-8)),
}
TARGETS = {7: "60x ABA, 500x DCA", 19: "20x ABA, 250x DCA"}  # under one force
WARM = 3  # steps before those that are timed: the tree is assembled, the method chosen


def table(quick: bool, progress: Progress) -> Table:
    """Time of a step, joints computed, and how far bodies are off in the end."""
    size, rounds = (5_000, 5) if quick else (50_000, 11)
    m = linkage("molecule", size)
    rows: list[Row] = []
    curves: dict[str, list[tuple[int, Row]]] = {}
    for place in ("neighbouring",) if quick else ("neighbouring", "random"):
        for count in (1, 100) if quick else (1, 10, 100, 1000):
            progress(f"RL05 Table 1, {count} {place} forces")
            found = _rows(m, count, place, rounds, full=not quick)
            rows += found.values()
            if place == "neighbouring":
                curves[f"{count} forces" if count > 1 else "1 force"] = list(found.items())
    rows.append(_worst(rows))
    return Table(
        "quasistatic",
        "rl05-table-1",
        f"A molecule of {size:,} joints",
        "ms a step",
        rows,
        "RL05 Table 1, Figs. 7 and 8",
        f"One thread, {rounds} turns of {TURN} steps after {WARM} (of which the first assembles the tree, as much work "
        "as eight steps of ABA); the first of a turn finds the caches swept by the others, and is counted by itself. "
        "Peer: this engine's own O(n) articulated-body algorithm; the DCA, RL05's baseline, is on the same tree. "
        "Displacement errors: largest difference from the exact motion over the largest motion.",
        figures=_figures(curves),
    )


def _rows(m: pliant.Mechanism, count: int, place: str, rounds: int, full: bool) -> dict[int, Row]:
    """By tolerance. Targets are for the whole molecule."""
    bodies = chosen(m, count, place == "neighbouring")
    true = pushed(m, 2.0**-40, bodies)
    start = true.poses[:, :3, 3].copy()
    true.step(WARM + rounds * TURN)
    moved = true.poses[:, :3, 3] - start
    turns, sims, joints = Turns(), {}, {power: [] for power in POWERS}
    for name, call in exact(m, bodies).items():
        call()
        turns.add(name, call, every=1 if name == "ABA" else 3)
    for power in POWERS:
        s = sims[power] = pushed(m, 2.0**-power, bodies)
        s.step(WARM)
        add_steps(turns, str(power), s)
    for number in range(rounds):
        turns.round(number)
        for power, s in sims.items():
            joints[power].append(len(s.active))
    out = {}
    for column, (power, s) in enumerate(sims.items()):
        off = np.abs(s.poses[:, :3, 3] - start - moved).max() / np.abs(moved).max()
        ms, number, error = (PAPER[count][k][column] for k in range(3))
        row = compared(
            f"{count} {place}, 2^-{power}",
            turns[str(power)].scaled(1e3),
            turns["ABA"].scaled(1e3),
            peer_name="ABA, all joints",
            paper=f"{ms:g} ms, {number} joints, error {error:.0e}, DCA 875 ms; at 50,000 joints",
            target=TARGETS.get(power, "") if count == 1 and full else "",
        )
        dca = turns["DCA"]
        row.values = {
            "joints computed": float(np.mean(joints[power])),
            "displacement error": float(off),
            "DCA, ms": 1e3 * dca.median,
            "over the DCA": dca.median / turns[str(power)].median,
            AFTERWARDS: 1e6 * turns[str(power) + AFTERWARDS].median,
            "steps of ABA": s.effort.full_steps,
        }
        out[power] = row
    return out


def _worst(rows: list[Row]) -> Row:
    """The setting at which adaptive steps pay least."""
    worst = min(rows, key=lambda row: row.ratio or 0.0)
    return Row(
        "slowest against ABA",
        ours=worst.ours,
        peer=worst.peer,
        peer_name="ABA, all joints",
        ratio=worst.ratio,
        target="1/1.15x",
        note=f"at {worst.case}",
    )


def _figures(curves: dict[str, list[tuple[int, Row]]]) -> list[Figure]:
    tolerances = [2.0**-power for power in POWERS]
    label = "tolerance, relative joint acceleration"

    def figure(key: str, title: str, y: str, value) -> Figure:
        lines = [
            Series(name, tolerances, [float(value(row)) for _, row in found])
            for name, found in curves.items()
        ]
        return Figure(key, title, label, y, lines, log_x=True, log_y=True)

    return [
        figure("rl05-figure-7-time", "Time of a step", "ms", lambda row: row.ours),
        figure(
            "rl05-figure-7-joints", "Joints computed", "joints", lambda row: row.values["joints computed"]
        ),
        figure(
            "rl05-figure-8",
            "Error of displacements",
            "relative displacement error",
            lambda row: row.values["displacement error"],
        ),
    ]
