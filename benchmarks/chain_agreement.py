"""Do all engines simulate the same chain? Where its load is after half a second of small steps."""

from __future__ import annotations

import numpy as np
import peers
from peers import Chain
from peers.system import KINDS
from results import Progress, Row, Table

__all__ = ["agreement"]

H, TIME = 1e-4, 0.5  # s


def agreement(quick: bool, progress: Progress) -> Table:
    """Distances from the most accurate of them: Drake's radau3, else MuJoCo's RK4."""
    there, missing = peers.found()
    if quick:
        for name in ("exudyn", "drake"):
            there.pop(name, None)
        missing.append("Exudyn and Drake are left out of the quick run")
    rows = []
    for kind in ("ball",) if quick else KINDS:
        for seed in (None, 3):
            system = Chain(kind, ratio=10.0, seed=seed)
            tips = {}
            for name, adaptor in there.items():
                progress(f"agreement, {kind}, {name}")
                run = adaptor.build(system, H, getattr(adaptor, "EXACT", adaptor.SETTINGS[0]))
                run.step(round(TIME / H))
                if run.finite():
                    tips[name] = run.tip()
            best = next((name for name in ("drake", "mujoco") if name in tips), None)
            row = Row(f"{kind}, {'in a plane' if seed is None else 'pushed'}")
            rows.append(row)
            if "pliant" not in tips:
                row.stable = "pliant: not finite"
            elif best is None:
                row.stable = "no reference: neither Drake nor MuJoCo finished"
            else:
                away = {
                    peers.TITLES[name]: float(np.linalg.norm(tip - tips[best])) / system.total_length
                    for name, tip in tips.items()
                }
                row.ours = away.pop("pliant")
                row.values = {title: distance for title, distance in away.items() if distance}
                row.note = f"reference: {peers.TITLES[best]} {there[best].SETTINGS[0]}"
    return Table(
        "constrained",
        "chain-agreement",
        "Where the load of a chain is, after half a second",
        "distance from the reference, chain lengths",
        rows,
        settings=f"10 links, a load of 10 links, let go at 45 degrees, steps of {H:g} s; every engine at its most "
        "accurate setting. What differs here is the integrators' error alone.",
        missing=missing,
    )
