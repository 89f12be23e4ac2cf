"""The tour's millipede: 13,000 links, of which only those move that matter. Runs in a process of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant.files import replacing_path
from pliant.plotting import figure, save

__all__ = ["crawl"]

_STEP = 1e-3  # s
_TOLERANCE = 0.01  # of the largest acceleration
_FORCE = (0.0, 0.0, 0.5)  # N
_STEPS = 10
_NEAR = 0.05  # m, around the foot


def crawl(out: Path, quick: bool) -> tuple[list[tuple[Any, ...]], dict[str, str]]:
    """Push one foot of a millipede: rows for the table, and the file left behind."""
    m = pliant.gallery.millipede(100, 10, 300) if quick else pliant.gallery.millipede()
    foot = m.end_effectors[-1]
    adaptive, moved, step = _pushed(m, foot, _TOLERANCE)
    exact, _, slow = _pushed(m, foot, 1e-12)
    error = float(np.abs(adaptive - exact).max() / np.abs(exact).max())
    what = f"{_FORCE[2]:g} N under one foot"
    words = (
        f"{len(moved):,} joints computed; off by {100 * error:.2g} %, at most {100 * _TOLERANCE:g} % allowed"
    )
    rows = [
        ("millipede", m.body_count, 0, what, "quasistatic", words, step),
        ("millipede", m.body_count, 0, what, "all joints", f"all {m.nv:,} joints computed", slow),
    ]
    with replacing_path(out / "millipede.png") as place:
        _plot(m, foot, moved, place)
    return rows, {str(out / "millipede.png"): "which of its joints an adaptive step computes"}


def _pushed(m: Any, foot: str, tolerance: float) -> tuple[np.ndarray, tuple[str, ...], float]:
    """Accelerations at the start, the joints that were computed, and seconds a step over the next steps."""
    simulation = pliant.QuasistaticSimulation(m, _STEP, (0.0, 0.0, 0.0), tolerance=tolerance)
    simulation.apply_wrench(foot, force=_FORCE)
    simulation.refine()
    accelerations, active = simulation.accelerations, simulation.active
    simulation.step()
    spent = []
    for _ in range(_STEPS):
        start = time.perf_counter()
        simulation.step()
        spent.append(time.perf_counter() - start)
    return accelerations, active, float(np.median(spent))  # one of them may compile


def _plot(m: Any, foot: str, moved: tuple[str, ...], place: Path) -> None:
    """All of it from above, and the neighbourhood of the foot from the side, with the joints that were computed."""
    drawn = figure(9, 5)
    from matplotlib.collections import LineCollection

    above, side = drawn.subplots(2, 1, height_ratios=(1, 1.7))
    centres = m.reference_poses[:, :3, 3]
    parent = np.full(m.body_count, -1)
    parent[m.joint_children] = m.joint_parents
    linked = np.flatnonzero(parent >= 0)
    segments = np.stack([centres[linked], centres[parent[linked]]], axis=1)
    computed = centres[m.joint_children[[m.joint_index(name) for name in moved]]]
    target = centres[m.body_index(foot)]
    near = (np.abs(segments - target).max(axis=1) < (_NEAR, 3 * _NEAR, 1.0)).all(axis=1)
    for axes, shown, height in ((above, segments, 1), (side, segments[near], 2)):
        across = [0, height]
        axes.add_collection(
            LineCollection(list(shown[:, :, across]), colors="#8fa8d0", linewidths=1.0, zorder=1)
        )
        axes.scatter(
            *computed[:, across].T, s=18, color="#d9822b", zorder=3, linewidths=0, label="joint computed"
        )
        axes.scatter(
            *target[across], s=70, facecolors="none", edgecolors="#b3313b", zorder=4, label="foot pushed up"
        )
        axes.set_xlabel("x (m)", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    above.autoscale()
    above.set_aspect("equal", adjustable="datalim")
    above.set_ylabel("y (m)", fontsize=8)
    above.set_title(
        f"{m.body_count:,} links from above: {len(moved)} joints computed in one step", fontsize=10
    )
    side.set_aspect("equal")
    side.set_xlim(target[0] - _NEAR, target[0] + _NEAR)
    side.set_ylim(0, 0.022)
    side.set_ylabel("z (m)", fontsize=8)
    side.set_title("the pushed leg and its neighbours from the side", fontsize=10)
    side.legend(fontsize=8, frameon=False, loc="upper right")
    save(drawn, place)
