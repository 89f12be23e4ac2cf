"""The constrained engine beside its peers: stability, energy, speed, closed loops, low-rank updates.

`python benchmarks/constrained.py stability --seeds 8 --time 10` gives the full table (hours); without options
each part takes a few minutes. `make peers` installs the peers; one that is missing is left out, with a word.
"""

# ruff: noqa: E402 - the number of threads is set before numpy comes in
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, process_time

import numpy as np
import peers
from measure import interleaved, show
from peers import Chain
from peers.system import KINDS
from rich.console import Console
from rich.progress import Progress

import pliant

STEPS = {".001": 0.001, ".01": 0.01, "1/60": 1 / 60, ".1": 0.1}
LARGEST_POWER = 8
GAIN, GAP = 0.05, 0.02  # allowed energy gain and joint separation


def _adaptors(names: Iterable[str]) -> dict[str, object]:
    """The installed ones; says which are left out."""
    out = {}
    for name in names:
        adaptor, why = peers.find(name)
        if adaptor is None:
            Console().print(f"[yellow]{why}[/yellow]")
        else:
            out[name] = adaptor
    return out


# --- agreement -----------------------------------------------------------------------------------------------------


def check(names: Sequence[str] = peers.NAMES, kinds: Sequence[str] = KINDS) -> dict[str, dict[str, float]]:
    """Do the adaptors describe the same system? Distance of the loads from each other after 0.5 s of 0.1 ms steps.

    The measure is the distance to the most accurate of them (Drake's radau3, else MuJoCo's RK4), in chain lengths.
    """
    found = _adaptors(names)
    out: dict[str, dict[str, float]] = {}
    for kind in kinds:
        for seed in (None, 3):
            tips = {}
            for name, adaptor in found.items():
                setting = getattr(adaptor, "EXACT", adaptor.SETTINGS[0])
                run = adaptor.build(Chain(kind, ratio=10.0, seed=seed), 1e-4, setting)
                run.step(5000)
                tips[name] = run.tip()
            best = next((tips[name] for name in ("drake", "mujoco") if name in tips), None)
            if best is None:
                continue
            label = f"{kind}, {'planar' if seed is None else 'pushed'}"
            out[label] = {name: float(np.linalg.norm(tip - best)) for name, tip in tips.items()}
    rows = [[label, *(f"{row[name]:.1e}" for name in found)] for label, row in out.items()]
    show("distance of the load from the reference after 0.5 s (chain lengths)", ["chain", *found], rows)
    return out


# --- stability -----------------------------------------------------------------------------------------------------


def holds(name: str, setting: str, system: Chain, h: float, time: float, patience: float) -> str:
    """ "" if the run holds, else what went wrong: "not finite", "energy", "gap" or "slow"."""
    run = peers.build(name, system, h, setting)
    start, before = process_time(), sum(run.energy())
    chunk = max(1, round(0.1 / h))
    for _ in range(math.ceil(time / h / chunk)):
        run.step(chunk)
        if not run.finite():
            return "not finite"
        after = sum(run.energy())
        if not after - before < GAIN * system.scale:  # also when it is not a number
            return "energy"
        if not run.violation() < GAP * system.total_length:
            return "gap"
        if process_time() - start > patience:
            return "slow"
    return ""


def stability(
    names: Sequence[str] = peers.NAMES,
    kinds: Sequence[str] = KINDS,
    steps: Sequence[str] = tuple(STEPS),
    seeds: Sequence[int] = range(2),
    time: float = 3.0,
    settings: Sequence[str] | None = None,
    patience: float = 60.0,
) -> dict[str, dict[str, dict[str, object]]]:
    """Highest power of ten of the mass ratio up to which all seeds hold, for every method, kind and step."""
    methods = [
        (name, setting)
        for name, adaptor in _adaptors(names).items()
        for setting in adaptor.SETTINGS
        if settings is None or setting in settings
    ]
    out: dict[str, dict[str, dict[str, object]]] = {}
    with Progress(transient=True) as progress:
        cells = [(m, kind, label) for m in methods for kind in kinds for label in steps]
        task = progress.add_task("stability", total=len(cells))
        for (name, setting), kind, label in cells:
            progress.update(task, description=f"{name} {setting}, {kind}, h = {label}")
            power, why = -1, ""
            while power < LARGEST_POWER and not why:
                for seed in seeds:
                    system = Chain(kind, ratio=10.0 ** (power + 1), seed=seed)
                    why = holds(name, setting, system, STEPS[label], time, patience)
                    if why:
                        break
                else:
                    power += 1
            row = out.setdefault(f"{name} {setting}", {}).setdefault(kind, {})
            row[label] = {"power": power, "why": why}
            progress.advance(task)
            if label == steps[-1]:  # the whole table may take hours: say what is known
                known = ", ".join(f"{key}: {cell['power']}" for key, cell in row.items())
                progress.console.print(f"{name} {setting}, {kind}: {known}")
    rows = []
    for method, by_kind in out.items():
        for kind, row in by_kind.items():
            shown = [f"{c['power'] if c['power'] >= 0 else '-'} {_MARKS[c['why']]}" for c in row.values()]
            rows.append([method, kind, *shown])
    title = (
        f"highest power of ten of the mass ratio: 10 links, {time:g} s, {len(seeds)} seeds; "
        "what stopped it: e energy, g gap, n not finite, s slow"
    )
    show(title, ["method", "joints", *(f"h = {label}" for label in steps)], rows)
    return out


_MARKS = {"": " ", "energy": "e", "gap": "g", "not finite": "n", "slow": "s"}


# --- energy --------------------------------------------------------------------------------------------------------


def energy(
    names: Sequence[str] = peers.NAMES, time: float = 40.0, h: float = 0.01, patience: float = 300.0
) -> dict[str, object]:
    """Peak kinetic energy that a pendulum of 100 kg on a stiff cable has lost after `time` (GS17 Fig. 8)."""
    system = Chain("cable", links=20, ratio=1000.0, seed=None)  # 2 m, 0.1 kg a link
    out: dict[str, object] = {}
    for name, adaptor in _adaptors(names).items():
        for setting in adaptor.SETTINGS:
            out[f"{name} {setting}"] = _lost(adaptor.build(system, h, setting), system, h, time, patience)
    rows = [[key, f"{100 * v:.3f} %" if isinstance(v, float) else v] for key, v in out.items()]
    show(f"peak kinetic energy lost in {time:g} s, 100 kg on a cable, h = {h:g}", ["method", "lost"], rows)
    return out


def _lost(run: peers.Run, system: Chain, h: float, time: float, patience: float) -> float | str:
    window = 4.0  # s, more than a whole swing: each holds two peaks
    start, before = process_time(), sum(run.energy())
    kinetic = np.empty(round(time / h))
    for i in range(kinetic.size):
        run.step(1)
        now = run.energy()
        if not run.finite() or not sum(now) - before < GAIN * system.scale:
            return f"blows up at {i * h:.2f} s"
        if process_time() - start > patience:
            return f"too slow: {i * h:.2f} s in {patience:g} s"
        kinetic[i] = now[0]
    count = round(window / h)
    first, last = _peak(kinetic[:count]), _peak(kinetic[-count:])
    return float(1 - last / first)


def _peak(values: np.ndarray) -> float:
    """The highest value of the parabola through the largest sample and its neighbours."""
    i = int(np.clip(np.argmax(values), 1, len(values) - 2))
    a, b, c = values[i - 1 : i + 2]
    bend = a - 2 * b + c
    return float(b if bend == 0 else b - (a - c) ** 2 / (8 * bend))


# --- speed ---------------------------------------------------------------------------------------------------------

# Each at its fastest setting that holds at mass ratio 1 and this step; Drake's radau3 for its stability as well.
FASTEST = {
    "pliant": ("newmark",),
    "mujoco": ("Euler",),
    "dart": ("Euler",),
    "exudyn": ("springs lazy",),
    "drake": ("SAP", "radau3"),
}


TOO_LONG = 0.5  # s; a slower step is timed once


def speed(
    names: Sequence[str] = peers.NAMES,
    sizes: Sequence[int] = (10, 50, 100, 500, 1000, 5000),
    h: float = 0.001,
    rounds: int = 5,
) -> dict[str, dict[str, float]]:
    """Microseconds of a whole step of a ball chain with an equal load, one thread, taking turns."""
    found = _adaptors(names)
    out: dict[str, dict[str, float]] = {}
    for links in sizes:
        contenders, counts, runs, slow = {}, {}, {}, {}
        for name, adaptor in found.items():
            for setting in FASTEST[name] if links <= adaptor.LARGEST else ():
                run = adaptor.build(Chain(links=links), h, setting)
                runs[f"{name} {setting}"] = run, sum(run.energy())
                run.step(1)  # compile, and settle what the first step sets up
                start = perf_counter()
                run.step(2)
                took = (perf_counter() - start) / 2
                if took > TOO_LONG:
                    slow[f"{name} {setting}"] = 1e6 * took
                    continue
                # About 20 ms a call, but ten steps at least: some engines keep a factorization from step to step.
                counts[f"{name} {setting}"] = count = min(100, max(10, round(0.02 / took)))
                contenders[f"{name} {setting}"] = _stepping(run, count)
        if contenders:
            times = interleaved(contenders, rounds)
            out[str(links)] = {key: 1e6 * t / counts[key] for key, t in times.items()}
            scale = Chain(links=links).scale
            fell = [
                key
                for key, (run, was) in runs.items()
                if not (run.finite() and sum(run.energy()) - was < GAIN * scale)
            ]
            out[str(links)].update(dict.fromkeys(fell, math.nan))  # a step into nowhere is no step
    methods = [f"{name} {setting}" for name in found for setting in FASTEST[name]]
    rows = []
    for links, times in out.items():
        ours = times.get("pliant newmark")
        cells = []
        for method in methods:
            if method not in times:
                cells.append("-")
            elif math.isnan(times[method]):
                cells.append("blows up")
            elif ours is None or method.startswith("pliant"):
                cells.append(f"{times[method]:.1f}")
            else:
                cells.append(f"{times[method]:.1f} ({times[method] / ours:.1f}x)")
        rows.append([links, *cells])
    show(f"a step of a ball chain, µs (over pliant's), h = {h:g}", ["joints", *methods], rows)
    return out


def _stepping(run: peers.Run, count: int) -> Callable[[], None]:
    return lambda: run.step(count)


# --- loops ---------------------------------------------------------------------------------------------------------


def four_bar() -> pliant.Mechanism:
    """A crank of 0.4 m, a coupler of 1 m and a rocker of 0.8 m on a ground of 0.9 m; a ball closes the loop.

    The fourth joint is a ball because that is what MuJoCo's <connect> is; the motion is planar all the same.
    """
    a, d = np.zeros(3), np.array([0.9, 0, 0])
    b = 0.4 * np.array([math.cos(1.2), 0, math.sin(1.2)])
    gap = d - b
    span = float(np.linalg.norm(gap))
    along = (1.0 + span**2 - 0.8**2) / (2 * span)
    side = np.array([-gap[2], 0, gap[0]]) / span
    c = b + along / span * gap + math.sqrt(1 - along**2) * side
    builder = pliant.Builder("four-bar")
    for name, p, q in (("crank", a, b), ("coupler", b, c), ("rocker", d, c)):
        rod = pliant.shapes.rod((0, 0, 0), q - p, 0.02)
        builder.body(name, position=p, shapes=[rod], density=2000)
    builder.hinge("a", "world", "crank", anchor=a, axis=(0, 1, 0))
    builder.hinge("b", "crank", "coupler", anchor=b, axis=(0, 1, 0))
    builder.hinge("d", "world", "rocker", anchor=d, axis=(0, 1, 0))
    builder.ball("c", "coupler", "rocker", anchor=c)
    builder.end_effectors("coupler")
    return builder.build()


def loops(time: float = 10.0, steps: Sequence[str] = (".001", ".01", "1/60")) -> dict[str, dict[str, float]]:
    """Largest gap of a four-bar's closing joint while it swings under gravity, in crank lengths."""
    methods: dict[str, Callable[[float, float], tuple[float, float]]] = {}
    if peers.find("pliant")[0] is not None:
        methods["pliant newmark"] = _loop_pliant
    methods["mujoco RK4"] = _loop_mujoco
    out: dict[str, dict[str, float]] = {}
    for method, run in methods.items():
        for label in steps:
            gap, drift = run(STEPS[label], time)
            out[f"{method}, h = {label}"] = {"gap": gap / 0.4, "energy drift": drift}
    rows = [[key, f"{v['gap']:.1e}", f"{v['energy drift']:.1e}"] for key, v in out.items()]
    show(f"four-bar in {time:g} s", ["method", "gap / crank", "energy drift / swing"], rows)
    return out


SWING = 10.0  # J, about what the four-bar can turn into motion; only a scale for the drift


def _loop_mujoco(h: float, time: float) -> tuple[float, float]:
    import mujoco

    model = mujoco.MjModel.from_xml_string(four_bar().to_mjcf())
    model.opt.timestep, model.opt.integrator = h, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    start, gap, drift = float(data.energy.sum()), 0.0, 0.0
    for _ in range(round(time / h)):
        mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        gap = max(gap, float(np.linalg.norm(data.efc_pos[:3])))
        drift = max(drift, abs(float(data.energy.sum()) - start))
    if any(data.warning[w].number for w in range(len(data.warning))):
        return math.nan, math.nan
    return gap, drift / SWING


def _loop_pliant(h: float, time: float) -> tuple[float, float]:
    simulation = pliant.ConstrainedSimulation(
        four_bar(), timestep=h, gravity=(0, 0, -9.81), stabilization="newmark"
    )
    start, gap, drift = simulation.energy.total, 0.0, 0.0
    for _ in range(round(time / h)):
        simulation.step(1)
        gap = max(gap, float(simulation.violation))
        drift = max(drift, abs(simulation.energy.total - start))
    return gap, drift / SWING


# --- low rank ------------------------------------------------------------------------------------------------------


def lowrank(sizes: Sequence[int] = (10, 50, 100)) -> dict[str, dict[str, float]]:
    """Inverting the stabilized mass matrix of a ball chain: dense LU, GS17's rank-one updates, a block per link."""
    from peers import lowrank as ways

    out: dict[str, dict[str, float]] = {}
    for links in sizes:
        p = ways.problem(links)
        lu, updates, blocks = ways.by_lu(*p), ways.by_updates(*p), ways.by_blocks(*p)
        corner = np.stack([lu[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] for i in range(links)])
        worst = max(np.abs(updates - lu).max(), np.abs(blocks - corner).max()) / np.abs(lu).max()
        times = interleaved(
            {
                "LU": _repeated(ways.by_lu, p, 5),
                "updates": _repeated(ways.by_updates, p, 50),
                "blocks": _repeated(ways.by_blocks, p, 200),
            }
        )
        out[str(links)] = {
            "LU": times["LU"] / 5,
            "updates": times["updates"] / 50,
            "blocks": times["blocks"] / 200,
            "difference": float(worst),
        }
    paper = {"10": "9.8x", "50": "13x", "100": "19x"}
    rows = []
    for links, t in out.items():
        micros = [f"{1e6 * t[key]:.1f}" for key in ("LU", "updates", "blocks")]
        gain = f"{t['LU'] / t['updates']:.1f}x"
        rows.append([links, *micros, gain, paper.get(links, "-"), f"{t['difference']:.0e}"])
    columns = ["joints", "LU", "rank-one updates", "block per link", "LU / updates", "GS17", "difference"]
    show("inverse of the stabilized mass matrix (µs)", columns, rows)
    return out


def _repeated(call: Callable[..., object], arguments: tuple, count: int) -> Callable[[], None]:
    def repeat() -> None:
        for _ in range(count):
            call(*arguments)

    return repeat


# --- all -----------------------------------------------------------------------------------------------------------

PARTS = {
    "check": check,
    "speed": speed,
    "stability": stability,
    "energy": energy,
    "loops": loops,
    "lowrank": lowrank,
}


def run() -> dict[str, object]:
    """Every part, the long table of stability subsampled: balls only, two seeds, three seconds."""
    return {
        "check": check(kinds=("ball",)),
        "speed": speed(sizes=(10, 50, 100, 500, 1000, 5000), rounds=3),
        "stability": stability(kinds=("ball",), settings=_BEST, patience=20.0),
        "energy": energy(patience=30.0),
        "loops": loops(),
        "lowrank": lowrank(),
    }


_BEST = ("newmark", "RK4", "Euler", "springs", "radau3", "SAP")


def main() -> None:
    """One part, or all."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("part", nargs="?", choices=[*PARTS, "all"], default="all")
    words.add_argument("--peers", help="comma-separated, of " + ", ".join(peers.NAMES))
    words.add_argument("--settings", help="comma-separated; only these integrators or stabilizations")
    words.add_argument("--kinds", help="comma-separated, of " + ", ".join(KINDS))
    words.add_argument("--steps", help="comma-separated, of " + ", ".join(STEPS))
    words.add_argument("--sizes", help="comma-separated numbers of joints")
    words.add_argument("--seeds", type=int, help="how many")
    words.add_argument("--time", type=float, help="seconds to simulate")
    words.add_argument("--patience", type=float, help="seconds to wait for one run")
    given = words.parse_args()
    if given.part == "all":
        run()
        return
    part = PARTS[given.part]
    options: dict[str, object] = {}
    for key, value in (("names", given.peers), ("settings", given.settings), ("kinds", given.kinds)):
        if value:
            options[key] = value.split(",")
    if given.steps:
        options["steps"] = given.steps.split(",")
    if given.sizes:
        options["sizes"] = [int(n) for n in given.sizes.split(",")]
    if given.seeds:
        options["seeds"] = range(given.seeds)
    if given.time:
        options["time"] = given.time
    if given.patience:
        options["patience"] = given.patience
    unused = set(options) - set(part.__code__.co_varnames[: part.__code__.co_argcount])
    if unused:
        words.error(f"{given.part} takes no {', '.join(sorted(unused))}")
    part(**options)


if __name__ == "__main__":
    main()
