"""GS17 Figs. 9 and 11: cable that snaps taut, dropped boom; Figs. 1 and 5 are pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant import scenes
from pliant.engines.constrained import ConstrainedSimulation
from pliant.errors import PliantError

from ..harness.results import Figure, Progress, Row, Series, Table

__all__ = ["boom", "vibrations"]

METHODS = ("inertial", "constraint", "full", "none")
TORN = 0.2  # m, elongation at which a cable counts as torn; the hardest stable impact stretches it by 7 cm


def vibrations(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 9: lateral vibration of a cable after the drop of its load of 5,000 kg."""
    time, fine = (0.4, 2e-4) if quick else (1.0, 1e-5)
    scene, rows, curves = scenes.dropped_load(), [], []
    progress(f"GS17 Fig. 9, h = {fine:g}")
    exact = _trace_vibration(scene.simulate(fine), time)
    if isinstance(exact, str):
        raise RuntimeError(f"the reference run fails: {exact}")
    middle = scene.mechanism.body_count // 2
    for h in (0.01, 0.001):
        ours, own = None, ""
        for method in ("newmark", *METHODS):
            progress(f"GS17 Fig. 9, {method}, h = {h:g}")
            found = _trace_vibration(scene.simulate(h, stabilization=method), time)
            title = "pliant" if method == "newmark" else f"GS17 {method}"
            if not isinstance(found, str):
                size = 1e3 * float(np.sqrt((found**2).mean()))
                if h == 0.01:
                    curves.append(_curve(f"{title}, .01 s", found[:, middle], time, method == "newmark"))
            if method == "newmark":
                ours, own = (None, found) if isinstance(found, str) else (size, "")
            row = Row(f"{title}, h = {h:g} s", ours=ours, paper="shown as frames, no numbers")
            row.values["reference, mm"] = 1e3 * float(np.sqrt((exact**2).mean()))
            if isinstance(found, str):
                row.stable = f"{title}: {found}"
            elif method != "newmark":
                row.peer, row.peer_name = size, title
            if own and method != "newmark":
                row.note = f"pliant: {own}"
            rows.append(row)
    curves.append(_curve(f"pliant, {fine:g} s", exact[:, middle], time, True))
    return Table(
        "constrained",
        "gs17-figure-9",
        "A cable shaken by 5,000 kg",
        "mm aside of the straight line, rms",
        rows,
        "GS17 Fig. 9",
        f"`scenes.dropped_load()`, {time:g} s; the nearer to the reference (pliant at {fine:g} s; GS17: 1e-5 s without "
        f"damping) the better. A run fails if numbers are not finite or the cable is {100 * TORN:g} cm too long.",
        figures=[Figure("gs17-figure-9", "The middle of the cable", "s", "mm aside", curves)],
    )


def _trace(
    simulation: ConstrainedSimulation,
    time: float,
    frame: float,
    elongation: Callable[[], float],
    measure: Callable[[], Any],
) -> np.ndarray | str:
    """Values of `measure` at the end of every frame; or how the run failed. Frame and duration in s."""
    every = max(1, round(frame / simulation.timestep))
    digits = 2 if frame < 0.1 else 1
    out = []
    for _ in range(round(time / simulation.timestep / every)):
        try:
            simulation.step(every)
        except PliantError:
            return f"not finite after {simulation.time:.{digits}f} s"
        if elongation() > TORN:
            return f"cable torn after {simulation.time:.{digits}f} s"
        out.append(measure())
    return np.array(out)


def _trace_vibration(simulation: ConstrainedSimulation, time: float) -> np.ndarray | str:
    """Distances of bodies from the line between anchor and load, m, (frames of .01 s, bodies); or how it failed."""
    length = -simulation.mechanism.reference_poses[-1, 2, 3]  # the cable hangs from the origin

    def aside() -> np.ndarray:
        places = simulation.poses[:, :3, 3]
        along = places[-1] / np.linalg.norm(places[-1])
        return np.linalg.norm(places - np.outer(places @ along, along), axis=1)

    return _trace(
        simulation, time, 0.01, lambda: float(np.linalg.norm(simulation.poses[-1, :3, 3])) - length, aside
    )


def _curve(label: str, values: np.ndarray, time: float, ours: bool) -> Series:
    """Series of displacements, in mm."""
    t = np.linspace(time / len(values), time, len(values))
    return Series(label, t.tolist(), (1e3 * values).tolist(), ours)


def boom(quick: bool, progress: Progress) -> Table:
    """GS17 Fig. 11: drop of a boom of 100,000 kg, at three time steps."""
    time = 1.5 if quick else 4.0
    scene, rows, curves = scenes.boom_drop(), [], []
    rows += [
        Row(
            f"GS17 Fig. {figure}",
            stable="",
            note=f"a rendered picture: `scenes.{name}()` is that scene, no numbers to compare",
        )
        for figure, name in (("1", "crane_lift"), ("5", "tank"))
    ]
    for h in (0.1, 0.01, 0.001):
        ours = None
        for method in ("newmark", *METHODS):
            if quick and method != "newmark" and h < 0.01:
                continue
            if method == "full" and h < 0.01:
                continue  # minutes, and it fails at ten times the step
            progress(f"GS17 Fig. 11, {method}, h = {h:g}")
            found = _trace_drop(scene.simulate(h, stabilization=method), time)
            title = "pliant" if method == "newmark" else f"GS17 {method}"
            row = Row(f"{title}, h = {h:g} s", paper="stable at all three, with inertial damping")
            if isinstance(found, str):
                row.stable = f"{title}: {found}"
            elif method == "newmark":
                ours = float(found.min())
                t = np.linspace(time / len(found), time, len(found))
                curves.append(Series(f"pliant, {h:g} s", t.tolist(), found.tolist()))
            else:
                row.peer, row.peer_name = float(found.min()), title
            row.ours = ours
            rows.append(row)
    return Table(
        "constrained",
        "gs17-figure-11",
        "The lowest point of a dropped boom",
        "degrees over level",
        rows,
        "GS17 Fig. 11",
        f"`scenes.boom_drop()`, {time:g} s: cable segments of 0.2 kg, 15 t on it, the cable goes slack and snaps taut. "
        f"A run fails if numbers are not finite or the cable is {100 * TORN:g} cm too long.",
        figures=[Figure("gs17-figure-11", "A dropped boom", "s", "degrees over level", curves)],
    )


def _trace_drop(simulation: ConstrainedSimulation, time: float) -> np.ndarray | str:
    """Elevation of the boom every 0.1 s, degrees, starting from 20; or how the run failed."""

    def span() -> float:  # from the vehicle to the first segment of the cable, m
        return float(np.linalg.norm((simulation.pose("vehicle") - simulation.pose("segment1"))[:3, 3]))

    def elevation() -> float:
        return 20.0 + np.degrees(np.arcsin(simulation.pose("boom")[2, 0]))

    cable = span()
    return _trace(simulation, time, 0.1, lambda: span() - cable, elevation)
