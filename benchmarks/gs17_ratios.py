"""GS17's claim of 1,000,000:1 at steps up to 0.1 s: the highest mass ratio that holds, by joints, step and method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import peers
from chains import GAIN, GAP, STEPS, holds
from peers import Chain
from peers.system import KINDS
from results import Progress, Row, Table

__all__ = ["highest", "ratios"]

LARGEST = 8  # power of ten
# What each peer and GS17 have to offer; settings that are never better than these are left out.
METHODS = {
    "pliant": ("inertial", "full", "constraint", "none"),
    "mujoco": ("RK4", "implicit", "implicitfast", "Euler", "discrete"),
    "dart": ("Euler",),
    "exudyn": ("springs",),
    "drake": ("radau3",),
}
COSTLY = ("exudyn", "drake")  # balls only: seconds for every run


def ratios(quick: bool, progress: Progress) -> Table:
    """The mass-ratio x time-step table."""
    kinds = ("ball",) if quick else KINDS
    steps = ("1/60", ".1") if quick else tuple(STEPS)
    seeds, time, patience = (range(1), 1.0, 2.0) if quick else (range(2), 3.0, 10.0)
    there, missing = peers.found()
    rows = []
    for kind in kinds:
        for step in steps:
            progress(f"mass ratios, {kind}, h = {step}")
            ours, why = highest("pliant", "newmark", kind, step, seeds, time, patience)
            row = Row(
                f"{kind}, h = {step} s",
                ours=ours,
                stable="yes" if ours is not None else f"pliant: {why}",
                paper="6 at steps up to .1 s",
                target="8",
                note="" if not why else f"pliant stopped by: {why}",
            )
            for name, setting in _methods(there, kind, quick):
                progress(f"mass ratios, {kind}, h = {step}, {name} {setting}")
                power, why = highest(name, setting, kind, step, seeds, time, patience)
                title = f"{'GS17' if name == 'pliant' else peers.TITLES[name]} {setting}"
                row.values[title] = power if not why else f"{'-' if power is None else power} ({why})"
                if power is not None and (row.peer is None or power > row.peer):
                    row.peer, row.peer_name = power, title
            if row.peer is None:
                row.stable = "no peer holds even at 1"
            rows.append(row)
    if quick:
        missing.append("Exudyn and Drake are left out of the quick run")
    return Table(
        "constrained",
        "gs17-ratios",
        "Highest mass ratio of load and link that holds",
        "power of ten",
        rows,
        "GS17 abstract and section 5.3",
        f"10 links of 0.1 m, let go at 45 degrees with a random push in 3-D, {time:g} s, {len(seeds)} seeds. A run "
        f"holds if energy grows by less than {100 * GAIN:g} % of lifting the load by the chain's length, joints stay "
        f"together within {100 * GAP:g} % of it, and it takes less than {patience:g} s. Exudyn and Drake: balls alone.",
        missing,
    )


def _methods(there: dict, kind: str, quick: bool) -> Iterator[tuple[str, str]]:
    for name, settings in METHODS.items():
        if name not in there or (name in COSTLY and (quick or kind != "ball")):
            continue
        for setting in settings:
            if setting in there[name].SETTINGS:
                yield name, setting


def highest(
    name: str, setting: str, kind: str, step: str, seeds: Sequence[int], time: float, patience: float
) -> tuple[int | None, str]:
    """The highest power of ten up to which all seeds hold (None: not even at 1), and what stopped it."""
    best = None
    for power in range(LARGEST + 1):
        for seed in seeds:
            system = Chain(kind, ratio=10.0**power, seed=seed)
            why = holds(name, setting, system, STEPS[step], time, patience)
            if why:
                return best, why
        best = power
    return best, ""
