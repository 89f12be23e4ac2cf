"""A step of a chain in every engine: its cost by the number of joints, and per simulated second within 1 % error."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import peers
from chains import GAIN
from measure import Timing, compared
from peers import Chain
from results import Figure, Progress, Row, Series, Table
from turns import per_step

__all__ = ["accurate", "speed"]

# Each at its fastest setting that holds at mass ratio 1 and 1 ms; Drake's radau3 for its stability as well.
FASTEST = {
    "pliant": ("newmark",),
    "mujoco": ("Euler", "implicitfast", "discrete"),
    "dart": ("Euler",),
    "exudyn": ("springs lazy",),
    "drake": ("SAP", "radau3"),
}
TARGETS = {
    ("MuJoCo", 10): "1x",
    ("MuJoCo", 100): "15x",
    ("DART", 100): "1.5x",
    ("DART", 500): "1.5x",
    ("Exudyn", 100): "10x",
    ("Exudyn", 500): "10x",
}
H = 1e-3
PATIENCE = 2.0  # s; a slower step is not waited for


def speed(quick: bool, progress: Progress) -> Table:
    """Microseconds of a step of a ball chain with an equal load."""
    sizes = (10, 100, 1000) if quick else (10, 50, 100, 500, 1000, 5000)
    there, missing = peers.found()
    if quick:
        there.pop("drake", None)
        missing.append("Drake is left out of the quick run")
    rows, curves, flat = [], {}, {}
    for links in sizes:
        progress(f"a step of {links} joints")
        runs = _runs(there, links, quick)
        before = {key: sum(run.energy()) for key, run in runs.items()}
        times = per_step({key: run.step for key, run in runs.items()}, 3 if quick else 7, least=10, most=100)
        fell = {key for key, run in runs.items() if key not in times or not _held(run, links, before[key])}
        ours = times["pliant newmark"].scaled(1e6)
        if "pliant newmark" not in fell:
            flat[links] = ours.median / links
        for title in dict.fromkeys(peers.TITLES[key.split()[0]] for key in times):
            rows.append(_best(title, links, ours, times, fell))
        for key, t in times.items():
            if key not in fell:
                x, y = curves.setdefault(key, ([], []))
                x.append(float(links))
                y.append(1e6 * t.median)
    rows.append(_flat({n: cost for n, cost in flat.items() if n >= 50}))
    lines = [Series(key, x, y, key.startswith("pliant")) for key, (x, y) in curves.items()]
    return Table(
        "constrained",
        "chain-speed",
        "A step of a chain of balls",
        "µs a step",
        rows,
        settings=f"Mass ratio 1, h = {H:g} s, one thread, in turns. Of several settings of a peer the fastest that "
        f"stayed stable counts. {_waited(there, quick)}",
        missing=missing,
        figures=[Figure("chain-speed", "A step of a chain", "joints", "µs", lines, log_x=True, log_y=True)],
    )


def _waited(there: dict, quick: bool) -> str:
    if quick:
        return "Peers: up to 100 joints."
    return (
        "Up to " + ", ".join(f"{a.LARGEST} joints: {peers.TITLES[name]}" for name, a in there.items()) + "."
    )


def _runs(there: dict, links: int, quick: bool) -> dict[str, peers.Run]:
    """By method; those that are too slow to wait for are left out."""
    out = {}
    for name, adaptor in there.items():
        if links > adaptor.LARGEST or (quick and links > 100 and name != "pliant"):  # seconds to set up
            continue
        settings = FASTEST[name][:1] if links > 100 else FASTEST[name]  # alike in cost there, and in failing
        for setting in settings:
            if setting not in adaptor.SETTINGS:
                continue
            run = adaptor.build(Chain(links=links), H, setting)
            start = perf_counter()
            run.step(1)
            if name == "pliant" or perf_counter() - start < PATIENCE:
                out[f"{name} {setting}"] = run
    return out


def _held(run: peers.Run, links: int, before: float) -> bool:
    """Finite, and without more energy than it started with."""
    return run.finite() and sum(run.energy()) - before < GAIN * Chain(links=links).scale


def _best(title: str, links: int, ours: Timing, times: dict[str, Timing], fell: set[str]) -> Row:
    """The fastest setting of a peer that held; or that none did."""
    keys = [key for key in times if peers.TITLES[key.split()[0]] == title]
    standing = [key for key in keys if key not in fell]
    case = f"{links} joints, {title}"
    if title == "pliant":
        if fell & set(keys):
            return Row(case, stable="pliant newmark: blows up")
        return compared(case, ours)
    if not standing:
        names = ", ".join(key.split(maxsplit=1)[1] for key in keys)
        return Row(
            case, ours.median, ours_spread=ours.spread, peer_name=title, stable=f"{title} {names}: blows up"
        )
    key = min(standing, key=lambda key: times[key].median)
    lost = [key.split(maxsplit=1)[1] for key in keys if key in fell]
    return compared(
        case,
        ours,
        times[key].scaled(1e6),
        peer_name=f"{title} {key.split(maxsplit=1)[1]}",
        target=TARGETS.get((title, links), ""),
        note=f"blows up: {', '.join(lost)}" if lost else "",
    )


def _flat(cost: dict[int, float]) -> Row:
    spread = max(cost.values()) / min(cost.values()) - 1
    return Row(
        f"pliant per joint, {min(cost)} to {max(cost)} joints",
        ours=sum(cost.values()) / len(cost),
        target="flat within 25 %",
        note=f"from {min(cost.values()):.3f} to {max(cost.values()):.3f} µs: within {100 * spread:.0f} %",
    )


# --- what a simulated second costs

TRIED = (0.1, 0.05, 1 / 30, 1 / 60, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4)
GOOD = 0.01  # of the chain's length


def accurate(quick: bool, progress: Progress) -> Table:
    """Processor time per simulated second, each engine at its largest step within 1 % of the true motion."""
    there, missing = peers.found()
    cases = ((10, 1.0), (10, 1000.0)) if quick else ((10, 1.0), (10, 1000.0), (10, 1e6), (100, 1.0))
    if quick:
        for name in ("exudyn", "drake"):
            there.pop(name, None)
        missing.append("Exudyn and Drake are left out of the quick run")
    rows = []
    for links, ratio in cases:
        system = Chain(links=links, ratio=ratio, seed=0)
        progress(f"a second of {links} joints, ratio {ratio:g}: reference")
        truth = _path(peers.build("pliant", system, 2e-5, "newmark"), 2e-5)
        if truth is None:
            raise RuntimeError("the reference run fails")
        best: dict[str, tuple[str, float]] = {}
        for name, adaptor in there.items():
            for setting in adaptor.SETTINGS if name != "pliant" else ("newmark",):
                if links > 10 and (name, setting) in (("drake", "implicit_euler"), ("exudyn", "constraints")):
                    continue  # minutes
                progress(f"a second of {links} joints, ratio {ratio:g}: {name} {setting}")
                h = _largest(adaptor, system, setting, truth)
                if h is not None:
                    best[f"{name} {setting}"] = (setting, h)
        rows += _seconds(there, system, links, ratio, best, 3 if quick else 7)
    return Table(
        "constrained",
        "accurate-second",
        "A simulated second of a chain of balls, within 1 %",
        "ms per simulated second",
        rows,
        settings="Each at the largest step at which its load stays within 1 % of the chain's length of the true "
        "motion (pliant at 2e-5 s) for a second, let go at 45 degrees with a random push. Steps tried: "
        f"{', '.join(f'{h:.3g}' for h in TRIED)} s. Of a peer's settings the fastest counts.",
        missing=missing,
    )


def _path(run: peers.Run, h: float) -> np.ndarray | None:
    """Places of the load every 0.1 s for a second; None if it fails."""
    out = []
    done = 0
    for k in range(1, 11):
        count = round(0.1 * k / h) - done
        run.step(count)
        done += count
        if not run.finite():
            return None
        out.append(run.tip())
    return np.array(out)


def _largest(adaptor, system: Chain, setting: str, truth: np.ndarray) -> float | None:
    for h in TRIED:
        start = perf_counter()
        path = _path(adaptor.build(system, h, setting), h)
        if path is not None and np.linalg.norm(path - truth, axis=1).max() < GOOD * system.total_length:
            return h
        if perf_counter() - start > 10:
            return None
    return None


def _seconds(there, system, links, ratio, best, rounds) -> list[Row]:
    case = f"{links} joints, ratio {ratio:g}"
    runs = {key: peers.build(key.split()[0], system, h, setting) for key, (setting, h) in best.items()}
    times = per_step({key: run.step for key, run in runs.items()}, rounds, least=10, most=100)
    cost = {key: t.scaled(1e3 / best[key][1]) for key, t in times.items()}
    ours = cost.get("pliant newmark")
    out = []
    for name in there:
        title = peers.TITLES[name]
        keys = [key for key in cost if key.split()[0] == name]
        if not keys:
            out.append(Row(f"{case}, {title}", stable=f"{title}: not within 1 % at any step tried"))
            if ours is not None:
                out[-1].ours, out[-1].ours_spread = ours.median, ours.spread
            continue
        key = min(keys, key=lambda key: cost[key].median)
        if name == "pliant":
            out.append(compared(f"{case}, pliant", cost[key], note=f"h = {best[key][1]:.3g} s"))
        else:
            label = f"{title} {best[key][0]}, {best[key][1]:.3g} s"
            row = Row(
                f"{case}, {title}", peer=cost[key].median, peer_spread=cost[key].spread, peer_name=label
            )
            if ours is not None:
                row = compared(f"{case}, {title}", ours, cost[key], peer_name=label)
            out.append(row)
    return out
