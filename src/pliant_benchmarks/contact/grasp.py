"""Hand that lifts and holds a ball: cost of a simulated second, pliant and MuJoCo at their largest stable steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Protocol

import numpy as np

from pliant import scenes
from pliant.errors import PliantError

from ..harness.results import Progress, Row, Table
from ..harness.timing import Timing, compare, time_steps
from ..peers.mujoco import GRASP_SETTINGS, QUICK_GRASP_SETTINGS, Grasp, Setting

__all__ = ["Ours", "agreement", "find_holding", "grasp"]

KINDS = ("reduced", "blended", "full")

STEPS = (1 / 4, 1 / 5, 1 / 6, 1 / 8, 1 / 10, 1 / 12, 1 / 15, 1 / 20, 1 / 30, 1 / 60, 1 / 120, 1 / 240)
SMALL = 1 / 500  # s, step of the reference
LIFTING, HOLDING = 3.0, 10.0  # s
SLIP, OFF = 1e-3, 2e-3  # m, allowed slip and offset of the ball
RULE = (
    f"A run lifts for {LIFTING:g} s and holds for {HOLDING:g} s. It holds if nothing warns or diverges, the ball slips "
    f"less than {1e3 * SLIP:g} mm against the palm in that time, and once lifted hangs within {1e3 * OFF:g} mm of "
    f"where the same engine has it, at the same setting, in steps of 1/{1 / SMALL:.0f} s."
)


class Held(Protocol):
    """Grasp in one engine."""

    def run(self, seconds: float) -> None: ...
    def step(self, n: int) -> object: ...
    @property
    def failed(self) -> bool: ...
    @property
    def ball(self) -> np.ndarray: ...
    @property
    def palm(self) -> np.ndarray: ...
    @property
    def squeeze(self) -> float: ...


Found = tuple[float, Held]


class Ours:
    """`scenes.grasp` in pliant."""

    def __init__(self, h: float, kind: str = "reduced"):
        self.h, self.failed = h, False
        self.play = scenes.grasp(kind, timestep=h)
        self.step = self.play.world.step

    def run(self, seconds: float) -> None:
        """Close the hand by forces, and after a second lift it."""
        try:
            self.play.run(seconds)
        except PliantError:
            self.failed = True

    @property
    def ball(self) -> np.ndarray:
        """World position of the ball, m."""
        return self.play.world.pose("ball")[:3, 3]

    @property
    def palm(self) -> np.ndarray:
        """World position of the palm, m."""
        return self.play.world.pose("hand/palm")[:3, 3]

    @property
    def squeeze(self) -> float:
        """Sum of the normal forces on the ball, N."""
        touching = self.play.world.contacts
        return float(np.abs((touching.forces * touching.normals).sum()))


def find_holding(make: Callable[[float], Held], steps: Sequence[float] = STEPS, most: int = 3) -> list[Found]:
    """Largest time steps at which the grasp holds, at most `most`, and their runs."""
    small, out = make(SMALL), []
    small.run(LIFTING)
    for h in steps if not small.failed else ():
        held = make(h)
        held.run(LIFTING)
        lifted, before = held.ball, held.ball - held.palm
        if held.failed or not np.linalg.norm(lifted - small.ball) < OFF:
            continue
        try:
            held.step(round(HOLDING / h))
        except PliantError:
            continue
        slipped = np.linalg.norm(held.ball - held.palm - before)
        if not held.failed and slipped < SLIP and held.ball[2] > 0.1:
            out.append((h, held))
            if len(out) == most:
                break
    return out


def grasp(quick: bool, progress: Progress) -> Table:
    """Cost of a simulated second of holding."""
    runs: dict[str, list[Found]] = {}
    for kind in KINDS:
        progress(f"grasp, {kind}")
        runs[kind] = find_holding(lambda h, kind=kind: Ours(h, kind))
    theirs, tried = _scan_mujoco(quick, progress)
    runs |= theirs
    progress("grasp, timing")
    each = {f"{name}, {h}": (name, h, held) for name, found in runs.items() for h, held in found}
    times = time_steps(
        {key: held.step for key, (_, _, held) in each.items()},
        5 if quick else 15,
        turn=0.01,
        failed=lambda key: each[key][2].failed,
    )
    cost = {each[key][:2]: t.scaled(1e6 / each[key][1]) for key, t in times.items()}
    rows = []
    for kind in KINDS:
        rows.append(_row(f"pliant, {kind}, largest steps", kind, _largest(cost)))
    rows.append(_row("pliant, reduced, cheapest steps", "reduced", cost))
    rows[0].target = "5x"
    return Table(
        "contact",
        "grasp",
        "A hand holds a ball of 100 g",
        "µs per simulated second",
        rows,
        settings=f"{RULE} Steps tried: {', '.join(f'1/{1 / h:.0f}' for h in STEPS)} s. `world.step(n)` against "
        f"`mj_step(nstep=n)`, one thread, in turns, during the hold. MuJoCo: {tried}; the fastest that holds counts.",
    )


Costs = dict[tuple[str, float], Timing]


def _largest(cost: Costs) -> Costs:
    """Costs of every contender at its largest step."""
    steps: dict[str, float] = {}
    for name, h in cost:
        steps[name] = max(h, steps.get(name, 0.0))
    return {key: t for key, t in cost.items() if steps[key[0]] == key[1]}


def _row(case: str, kind: str, cost: Costs) -> Row:
    """Row of the cheapest run of pliant beside the cheapest of MuJoCo."""

    def cheapest(ours: bool) -> tuple[str, float] | None:
        mine = [key for key in cost if (key[0] == kind if ours else key[0] not in KINDS)]
        return min(mine, key=lambda key: cost[key].median, default=None)

    own, best = cheapest(True), cheapest(False)
    row = Row(case)
    if own is None:
        row.stable = f"pliant {kind}: holds at no step tried"
    elif best is None:
        row = compare(case, cost[own])
        row.stable = "MuJoCo: holds at no setting and step tried"
    else:
        row = compare(case, cost[own], cost[best])
    if own is not None:
        row.note = f"pliant at 1/{1 / own[1]:.0f} s, {cost[own].median * own[1]:.1f} µs a step"
    if best is not None:
        row.peer, row.peer_spread = cost[best].median, cost[best].spread
        row.peer_name = f"MuJoCo {best[0]}, 1/{1 / best[1]:.0f} s"
        row.note += f"; MuJoCo {cost[best].median * best[1]:.1f} µs a step"
    return row


def _scan_mujoco(quick: bool, progress: Progress) -> tuple[dict[str, list[Found]], str]:
    """MuJoCo's three fastest settings that hold, with their largest time steps; and the settings tried, in words."""
    found = {}
    for setting in QUICK_GRASP_SETTINGS if quick else GRASP_SETTINGS:
        progress(f"grasp, MuJoCo {setting}")
        held = find_holding(lambda h, setting=setting: Grasp(h, setting))
        if held:
            found[str(setting)] = min(_seconds(*each) for each in held), held
    first = sorted(found, key=lambda key: found[key][0])[:3]
    tried = "every integrator, both cones, impratio 1 to 1000, noslip 0, 5, 20"
    if quick:
        tried = f"{len(QUICK_GRASP_SETTINGS)} settings, the best of the whole scan among them"
    return {key: found[key][1] for key in first}, tried


def _seconds(h: float, held: Held) -> float:
    """Wall-clock time of two simulated seconds."""
    start = perf_counter()
    held.step(round(2.0 / h))
    return perf_counter() - start


def agreement(quick: bool, progress: Progress) -> Table:
    """Position of the ball and its normal forces after three seconds of small steps, beside MuJoCo."""
    progress("grasp, agreement")
    best = Setting("implicitfast", "elliptic", 100, 20)
    theirs = {
        "rigid contacts, 1/2000 s": Grasp(1 / 2000, best, rigid=True),
        "its own soft contacts, 1/500 s": Grasp(SMALL, best),
    }
    for run in theirs.values():
        run.run(LIFTING)
    rows = []
    for kind in KINDS:
        run = Ours(SMALL, kind)
        run.run(LIFTING)
        for contacts, other in theirs.items():
            row = Row(f"height of the ball, {kind}", target="2 mm, forces 10 %")
            rows.append(row)
            if run.failed:
                row.stable = f"pliant {kind}: diverges"
                continue
            row.ours = 1e3 * float(run.ball[2])
            row.values["normal forces on the ball, N"] = run.squeeze
            if not other.failed:
                row.peer, row.peer_name = 1e3 * float(other.ball[2]), f"MuJoCo, {contacts}"
                row.values["MuJoCo's, N"] = other.squeeze
                apart = 1e3 * float(np.linalg.norm(run.ball - other.ball))
                row.note = f"{apart:.2f} mm apart, forces {100 * (run.squeeze / other.squeeze - 1):+.1f} %"
    return Table(
        "contact",
        "grasp-agreement",
        "The same grasp in both engines",
        "mm",
        rows,
        settings=f"After {LIFTING:g} s; pliant in steps of 1/{1 / SMALL:.0f} s, its contacts are rigid. MuJoCo: "
        "implicitfast, elliptic cones, impratio 100, noslip 20; its own contacts let the ball sink in by 1.5 mm.",
    )
