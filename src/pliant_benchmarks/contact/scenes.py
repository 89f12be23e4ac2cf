"""Cost of a step of every scene of the gallery, and overhead of a world without contacts."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import pliant
from pliant.errors import PliantError

from ..harness.results import Progress, Row, Table
from ..harness.timing import compare, summarize, time_steps

__all__ = ["alone", "scenes"]

STEPS = 10  # in a turn
SCENES: dict[str, tuple[Callable[[], pliant.scenes.Scene], float]] = {  # scene, start of the timing in s
    "grasp, reduced": (lambda: pliant.scenes.grasp("reduced"), 3.0),
    "grasp, blended": (lambda: pliant.scenes.grasp("blended"), 3.0),
    "grasp, full": (lambda: pliant.scenes.grasp("full"), 3.0),
    "grasp of a box, reduced": (lambda: pliant.scenes.grasp("reduced", "box"), 3.0),
    "grasp of a bunny, reduced": (lambda: pliant.scenes.grasp("reduced", "mesh"), 3.0),
    "peg in hole, reduced": (lambda: pliant.scenes.peg_in_hole("reduced"), 2.5),
    "peg in hole, full": (lambda: pliant.scenes.peg_in_hole("full"), 2.5),
    "trampoline, reduced": (lambda: pliant.scenes.trampoline("reduced"), 3.0),
    "trampoline, full": (lambda: pliant.scenes.trampoline("full"), 3.0),
    "hexapod, reduced": (lambda: pliant.scenes.hexapod("reduced"), 2.0),
    "hexapod, full": (lambda: pliant.scenes.hexapod("full"), 2.0),
    "suspension, full": (lambda: pliant.scenes.suspension(), 1.0),
    "crane and wall, full": (lambda: pliant.scenes.crane_and_wall(), 2.5),
}


def scenes(quick: bool, progress: Progress) -> Table:
    """A step in the middle of each scene."""
    plays, rows = {}, []
    for name, (make, time) in SCENES.items():
        if quick and not name.endswith("reduced"):
            continue
        progress(f"scene {name}")
        play = make()
        try:
            play.run(time)
            plays[name] = play
        except PliantError as error:
            rows.append(Row(name, stable=f"pliant: {error}"))
    times: dict[str, list[float]] = {name: [] for name in plays}
    for _ in range(5 if quick else 11):
        for name in list(plays):
            try:
                times[name].append(_time_play(plays[name]))
            except PliantError as error:
                rows.append(Row(name, stable=f"pliant: {error}"))
                del plays[name]
    still = time_steps({name: play.world.step for name, play in plays.items()}, 3, most=20, turn=0.01)
    for name, play in plays.items():
        h, t = play.world.timestep, summarize(times[name])
        note = f"{len(play.world.contacts)} contacts in the end, h = 1/{1 / h:.0f} s: {100 * t.median / h:.2g} % of it"
        rows.append(compare(name, t.scaled(1e6), note=note))
        if name in still:
            rows[-1].values["many in one call, µs"] = 1e6 * still[name].median
    return Table(
        "contact",
        "scenes",
        "A step of every scene with contact",
        "µs a step",
        rows,
        settings=f"From the middle of the scene on, at its own step, in turns of {STEPS} steps, a call for each, "
        "without what drives it. Many steps in one call, forces and motors held still, cost less.",
    )


def _time_play(play: pliant.scenes.Scene) -> float:
    """Mean wall-clock time of `STEPS` steps, s, without computing their forces."""
    took = 0.0
    for _ in range(STEPS):
        if play.act is not None:
            play.act(play.world, play.world.time)
        start = perf_counter()
        play.world.step()
        took += perf_counter() - start
    return took / STEPS


def alone(quick: bool, progress: Progress) -> Table:
    """World with one actor that touches nothing, beside the actor's own simulation."""
    progress("an actor alone")
    arm = pliant.gallery.arm()
    model = pliant.reduce(arm)
    ladder = pliant.gallery.ladder(12)
    cases = {
        "arm, reduced": (model, lambda: pliant.ReducedSimulation(model, 1 / 60)),
        "arm, full": (arm, lambda: pliant.ConstrainedSimulation(arm, 1 / 60)),
        "ladder(12), full": (ladder, lambda: pliant.ConstrainedSimulation(ladder, 1 / 60)),
    }
    contenders, rows = {}, []
    for name, (thing, own) in cases.items():
        world = pliant.World(1 / 60)
        world.add(thing, "alone")
        contenders[f"{name}: world"], contenders[f"{name}: own"] = world.step, own().step
    times = time_steps(contenders, 7 if quick else 15)
    for name in cases:
        ours, own = times[f"{name}: world"].scaled(1e6), times[f"{name}: own"].scaled(1e6)
        rows.append(compare(name, ours, own, peer_name="its own simulation", target="within 10 %"))
        rows[-1].note = f"{100 * (ours.median / own.median - 1):+.1f} %"
    return Table(
        "contact",
        "alone",
        "A world in which nothing touches",
        "µs a step",
        rows,
        settings="One thing in a `World`, against its own simulation: gravity, no wrenches, steps of 1/60 s, in turns.",
    )
