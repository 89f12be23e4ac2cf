"""Chain with a load in every engine: cost of a step and of an accurate second, agreement, highest mass ratio."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from time import perf_counter, process_time

import numpy as np

from .. import peers
from ..harness.results import Progress, Row, Table, log_figure
from ..harness.timing import Timing, compare, time_steps
from ..peers import ChainRun
from ..systems import KINDS, Chain

__all__ = ["GAIN", "TIME_STEPS", "accurate", "agreement", "find_highest", "holds", "ratios", "speed"]

TIME_STEPS = {".001": 0.001, ".01": 0.01, "1/60": 1 / 60, ".1": 0.1}  # s
COSTLY = ("exudyn", "drake")  # seconds per run: not in the quick run, mass ratios of ball joints only
GAIN, GAP = 0.05, 0.02  # allowed energy gain and joint separation, of the chain's scale and length

# --- cost of a step

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
H = 1e-3  # s
PATIENCE = 2.0  # s; runs with slower steps are left out


def speed(quick: bool, progress: Progress) -> Table:
    """A step of a chain of ball joints at mass ratio 1, in every engine."""
    sizes = (10, 100, 1000) if quick else (10, 50, 100, 500, 1000, 5000)
    there, missing = peers.find_all(skipped=("drake",) if quick else ())
    rows, curves, flat = [], {}, {}
    for links in sizes:
        progress(f"a step of {links} joints")
        runs = _build_runs(there, links, quick)
        before = {key: sum(run.energy()) for key, run in runs.items()}
        times = time_steps(
            {key: run.step for key, run in runs.items()}, 3 if quick else 7, least=10, most=100
        )
        fell = {
            key for key, run in runs.items() if key not in times or not _is_stable(run, links, before[key])
        }
        ours = times["pliant newmark"].scaled(1e6)
        if "pliant newmark" not in fell:
            flat[links] = ours.median / links
        for title in dict.fromkeys(peers.TITLES[key.split()[0]] for key in times):
            rows.append(_compare_best(title, links, ours, times, fell))
        for key, t in times.items():
            if key not in fell:
                curves.setdefault(key, []).append((links, 1e6 * t.median))
    rows.append(_summarize_linearity({n: cost for n, cost in flat.items() if n >= 50}))
    return Table(
        "constrained",
        "chain-speed",
        "A step of a chain of balls",
        "µs a step",
        rows,
        settings=f"Mass ratio 1, h = {H:g} s, one thread, in turns. Of several settings of a peer the fastest that "
        f"stayed stable counts. {_sizes(there, quick)}",
        missing=missing,
        figures=[log_figure("chain-speed", "A step of a chain", "joints", "µs", curves)],
    )


def _sizes(there: dict[str, type[ChainRun]], quick: bool) -> str:
    """Largest chains of the engines, as a sentence."""
    if quick:
        return "Peers: up to 100 joints."
    return (
        "Up to " + ", ".join(f"{a.LARGEST} joints: {peers.TITLES[name]}" for name, a in there.items()) + "."
    )


def _build_runs(there: dict[str, type[ChainRun]], links: int, quick: bool) -> dict[str, ChainRun]:
    """Runs by engine and setting, without those whose step takes longer than `PATIENCE`."""
    out = {}
    for name, adaptor in there.items():
        if links > adaptor.LARGEST or (quick and links > 100 and name != "pliant"):  # seconds to set up
            continue
        settings = FASTEST[name][:1] if links > 100 else FASTEST[name]  # beyond, settings cost and fail alike
        for setting in settings:
            if setting not in adaptor.SETTINGS:
                continue
            run = adaptor(Chain(links=links), H, setting)
            start = perf_counter()
            run.step(1)
            if name == "pliant" or perf_counter() - start < PATIENCE:
                out[f"{name} {setting}"] = run
    return out


def _is_stable(run: ChainRun, links: int, before: float) -> bool:
    """Whether a run is finite and has gained no energy."""
    return run.finite() and sum(run.energy()) - before < GAIN * Chain(links=links).scale


def _compare_best(title: str, links: int, ours: Timing, times: dict[str, Timing], fell: set[str]) -> Row:
    """Row of pliant beside the fastest stable setting of a peer."""
    keys = [key for key in times if peers.TITLES[key.split()[0]] == title]
    standing = [key for key in keys if key not in fell]
    case = f"{links} joints, {title}"
    if title == "pliant":
        if fell & set(keys):
            return Row(case, stable="pliant newmark: blows up")
        return compare(case, ours)
    if not standing:
        names = ", ".join(key.split(maxsplit=1)[1] for key in keys)
        return Row(
            case, ours.median, ours_spread=ours.spread, peer_name=title, stable=f"{title} {names}: blows up"
        )
    key = min(standing, key=lambda key: times[key].median)
    lost = [key.split(maxsplit=1)[1] for key in keys if key in fell]
    return compare(
        case,
        ours,
        times[key].scaled(1e6),
        peer_name=f"{title} {key.split(maxsplit=1)[1]}",
        target=TARGETS.get((title, links), ""),
        note=f"blows up: {', '.join(lost)}" if lost else "",
    )


def _summarize_linearity(cost: dict[int, float]) -> Row:
    """Row of pliant's cost per joint, µs, over the number of joints."""
    spread = max(cost.values()) / min(cost.values()) - 1
    return Row(
        f"pliant per joint, {min(cost)} to {max(cost)} joints",
        ours=sum(cost.values()) / len(cost),
        target="flat within 25 %",
        note=f"from {min(cost.values()):.3f} to {max(cost.values()):.3f} µs: within {100 * spread:.0f} %",
    )


# --- cost of an accurate second

TRIED = (0.1, 0.05, 1 / 30, 1 / 60, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4)  # s
GOOD = 0.01  # error of the load, of the chain's length


def accurate(quick: bool, progress: Progress) -> Table:
    """Cost of a simulated second, each engine at its largest step within 1 % of the true motion."""
    there, missing = peers.find_all(skipped=COSTLY if quick else ())
    cases = ((10, 1.0), (10, 1000.0)) if quick else ((10, 1.0), (10, 1000.0), (10, 1e6), (100, 1.0))
    rows = []
    for links, ratio in cases:
        system = Chain(links=links, ratio=ratio, seed=0)
        progress(f"a second of {links} joints, ratio {ratio:g}: reference")
        truth = _trace(peers.build("pliant", system, 2e-5, "newmark"), 2e-5)
        if truth is None:
            raise RuntimeError("the reference run fails")
        best: dict[str, tuple[str, float]] = {}
        for name, adaptor in there.items():
            for setting in adaptor.SETTINGS if name != "pliant" else ("newmark",):
                if links > 10 and (name, setting) in (("drake", "implicit_euler"), ("exudyn", "constraints")):
                    continue  # minutes
                progress(f"a second of {links} joints, ratio {ratio:g}: {name} {setting}")
                h = _find_largest_step(adaptor, system, setting, truth)
                if h is not None:
                    best[f"{name} {setting}"] = (setting, h)
        rows += _time_seconds(there, system, best, 3 if quick else 7)
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


def _trace(run: ChainRun, h: float) -> np.ndarray | None:
    """World positions of the load every 0.1 s for a second; None if the run diverges."""
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


def _find_largest_step(
    adaptor: type[ChainRun], system: Chain, setting: str, truth: np.ndarray
) -> float | None:
    """Largest time step at which the load follows the reference; None if there is none or it takes too long."""
    for h in TRIED:
        start = perf_counter()
        path = _trace(adaptor(system, h, setting), h)
        if path is not None and np.linalg.norm(path - truth, axis=1).max() < GOOD * system.total_length:
            return h
        if perf_counter() - start > 10:
            return None
    return None


def _time_seconds(
    there: dict[str, type[ChainRun]], system: Chain, best: dict[str, tuple[str, float]], rounds: int
) -> list[Row]:
    """Rows of a simulated second, by engine; `best` has setting and time step by engine and setting."""
    case = f"{system.links} joints, ratio {system.ratio:g}"
    runs = {key: peers.build(key.split()[0], system, h, setting) for key, (setting, h) in best.items()}
    times = time_steps({key: run.step for key, run in runs.items()}, rounds, least=10, most=100)
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
            out.append(compare(f"{case}, pliant", cost[key], note=f"h = {best[key][1]:.3g} s"))
        else:
            label = f"{title} {best[key][0]}, {best[key][1]:.3g} s"
            row = Row(
                f"{case}, {title}", peer=cost[key].median, peer_spread=cost[key].spread, peer_name=label
            )
            if ours is not None:
                row = compare(f"{case}, {title}", ours, cost[key], peer_name=label)
            out.append(row)
    return out


# --- agreement

FINE, TIME = 1e-4, 0.5  # s


def agreement(quick: bool, progress: Progress) -> Table:
    """Position of the load after half a second of small steps, against Drake's radau3, else MuJoCo's RK4."""
    there, missing = peers.find_all(skipped=COSTLY if quick else ())
    rows = []
    for kind in ("ball",) if quick else KINDS:
        for seed in (None, 3):
            system = Chain(kind, ratio=10.0, seed=seed)
            tips = {}
            for name, adaptor in there.items():
                progress(f"agreement, {kind}, {name}")
                run = adaptor(system, FINE, adaptor.EXACT or adaptor.SETTINGS[0])
                run.step(round(TIME / FINE))
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
        settings=f"10 links, a load of 10 links, let go at 45 degrees, steps of {FINE:g} s; every engine at its most "
        "accurate setting. What differs here is the integrators' error alone.",
        missing=missing,
    )


# --- highest mass ratio

HIGHEST = 8  # power of ten
# Settings of each engine and of GS17, without those that are never the best.
METHODS = {
    "pliant": ("inertial", "full", "constraint", "none"),
    "mujoco": ("RK4", "implicit", "implicitfast", "Euler", "discrete"),
    "dart": ("Euler",),
    "exudyn": ("springs",),
    "drake": ("radau3",),
}


def ratios(quick: bool, progress: Progress) -> Table:
    """Highest mass ratio that holds, by joints, time step and method; GS17 claims 1e6 at steps up to 0.1 s."""
    kinds = ("ball",) if quick else KINDS
    steps = ("1/60", ".1") if quick else tuple(TIME_STEPS)
    seeds, time, patience = (range(1), 1.0, 2.0) if quick else (range(2), 3.0, 10.0)
    there, missing = peers.find_all(skipped=COSTLY if quick else ())
    rows = []
    for kind in kinds:
        for step in steps:
            progress(f"mass ratios, {kind}, h = {step}")
            ours, why = find_highest("pliant", "newmark", kind, step, seeds, time, patience)
            row = Row(
                f"{kind}, h = {step} s",
                ours=ours,
                stable="yes" if ours is not None else f"pliant: {why}",
                paper="6 at steps up to .1 s",
                target="8",
                note="" if not why else f"pliant stopped by: {why}",
            )
            for name, setting in _methods(there, kind):
                progress(f"mass ratios, {kind}, h = {step}, {name} {setting}")
                power, why = find_highest(name, setting, kind, step, seeds, time, patience)
                title = f"{'GS17' if name == 'pliant' else peers.TITLES[name]} {setting}"
                row.values[title] = power if not why else f"{'-' if power is None else power} ({why})"
                if power is not None and (row.peer is None or power > row.peer):
                    row.peer, row.peer_name = power, title
            if row.peer is None:
                row.stable = "no peer holds even at 1"
            rows.append(row)
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


def _methods(there: dict[str, type[ChainRun]], kind: str) -> Iterator[tuple[str, str]]:
    """Engines and settings to try for a kind of joints."""
    for name, settings in METHODS.items():
        if name not in there or (name in COSTLY and kind != "ball"):
            continue
        for setting in settings:
            if setting in there[name].SETTINGS:
                yield name, setting


def find_highest(
    name: str, setting: str, kind: str, step: str, seeds: Sequence[int], time: float, patience: float
) -> tuple[int | None, str]:
    """Highest power of ten up to which all seeds hold (None: not even at 1), and the reason of the first failure."""
    best = None
    for power in range(HIGHEST + 1):
        for seed in seeds:
            system = Chain(kind, ratio=10.0**power, seed=seed)
            why = holds(name, setting, system, TIME_STEPS[step], time, patience)
            if why:
                return best, why
        best = power
    return best, ""


def holds(name: str, setting: str, system: Chain, h: float, time: float, patience: float) -> str:
    """Reason why a run does not hold: "not finite", "energy", "gap" or "slow"; "" if it does."""
    run = peers.build(name, system, h, setting)
    before = sum(run.energy())
    run.step(1)  # may compile
    start = process_time()
    chunk = max(1, round(0.1 / h))
    for _ in range(math.ceil(time / h / chunk)):
        run.step(chunk)
        if not run.finite():
            return "not finite"
        after = sum(run.energy())
        if not after - before < GAIN * system.scale:  # or is not a number
            return "energy"
        if not run.violation() < GAP * system.total_length:
            return "gap"
        if process_time() - start > patience:
            return "slow"
    return ""
