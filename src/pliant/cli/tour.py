"""What `pliant demo` shows. A part of it runs in a second process, so that two cores compile at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import pliant
from pliant.cli import driving
from pliant.cli.compare import percent
from pliant.cli.comparison import Comparison, compare
from pliant.cli.output import progress_bar, say
from pliant.cli.plots import paths
from pliant.cli.tour_grasp import Held, draw, hold
from pliant.cli.tour_millipede import crawl
from pliant.compilation.progress import QUIET
from pliant.engines.trajectory import Trajectory
from pliant.errors import PliantError
from pliant.files import replacing_path
from pliant.plotting import panels, save

__all__ = ["Entry", "Tour", "take"]

_PULL = {"index_tip": (0.0, 0.0, 3.0)}
_SQUEEZE = {"left_pad": (60.0, 0.0, 0.0), "right_pad": (-60.0, 0.0, 0.0)}
_RATIO = 1e6  # mass of the load over that of a segment of 0.1 kg


class Entry(NamedTuple):
    """A row of the table; `step` in seconds."""

    mechanism: str
    links: int
    loops: int
    what: str
    engine: str
    accuracy: str
    step: float


@dataclass
class Tour:
    """What was found, the files left behind with a word on each, and the grasp by engine."""

    out: Path
    quick: bool
    rows: list[Entry] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)

    def picture(self, name: str, what: str, draw: Callable[[Path], Any]) -> None:
        """Leave a picture behind."""
        with replacing_path(self.out / name) as place:
            draw(place)
        self.files[str(self.out / name)] = what

    def recording(self, name: str, what: str, path: Trajectory) -> None:
        """Leave a 3-D recording behind."""
        from pliant.viewer.recording import record_html

        record_html(path, self.out / name)
        self.files[str(self.out / name)] = what

    def compared(self, m: Any, what: str, found: Comparison) -> None:
        """Two rows: the reduced model beside the full engine."""
        for row in found.rows:
            if row.problem is not None:
                raise PliantError(f"{m.name}, {row.engine}: {row.problem}")
            full = row.engine == "constrained"
            rest = percent(None if row.rest is None else float(row.rest[-1]))
            accuracy = (
                "all links, nonlinear"
                if full
                else f"{rest} of the motion off at rest, {percent(row.motion)} on the way"
            )
            self.rows.append(
                Entry(m.name, m.body_count, m.topology.loops, what, row.engine, accuracy, row.step)
            )


def take(out: Path, quick: bool = False) -> Tour:
    """Take the tour.

    Args:
        out: folder for pictures and recordings; made if it is not there.
        quick: everything smaller.
    """
    out.mkdir(parents=True, exist_ok=True)
    found = Tour(out, quick)
    stages: list[tuple[str, Callable[[Tour], None]]] = [
        ("a hand, reduced to its fingertips and pulled", _hand),
        ("a gripper with closed loops, squeezed", _gripper),
        ("100 t on a cable of 2 kg", _cable),
        ("a hand that picks a ball up, in full", _full_grasp),
    ]
    # Started, not forked: a fresh process has no threads of ours.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    other = context.Process(target=_elsewhere, args=(theirs, str(out), quick), daemon=True)
    with progress_bar() as bar:
        task = bar.add_task("starting", total=len(stages))
        beside = bar.add_task(f"{next(iter(_BESIDE))} (second core)", total=None)
        with _deaf():
            other.start()
        theirs.close()
        try:
            for name, stage in stages:
                bar.update(task, description=name)
                _announce(name)
                stage(found)
                bar.advance(task)
            bar.update(task, description="waiting for the second core")
            other_half = _received(ours, lambda name: bar.update(beside, description=name))
        finally:
            if other.is_alive():
                other.terminate()
            other.join()
    found.rows += other_half.rows
    found.files |= other_half.files
    found.held |= other_half.held
    _compare_grasps(found)
    return found


def _announce(name: str) -> None:
    """The bar says so on a terminal; elsewhere a line does."""
    if not sys.stderr.isatty():
        say(name)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C reaches all processes; one started here does not hear it from its first moment, and the first ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _elsewhere(connection: Connection, out: str, quick: bool) -> None:
    """The second process: rows and files, or what went wrong."""
    os.environ[QUIET] = "1"  # the terminal is the first process's
    found = Tour(Path(out), quick)
    try:
        for name, stage in _BESIDE.items():
            connection.send(("stage", name))
            stage(found)
        connection.send(("done", found))
    except (PliantError, OSError) as error:
        connection.send(("error", str(error)))


def _received(connection: Connection, stage: Callable[[str], None]) -> Tour:
    try:
        word, value = connection.recv()
        while word == "stage":
            stage(f"{value} (second core)")
            word, value = connection.recv()
    except EOFError:
        raise PliantError("the second process ended without a word: is there enough memory?") from None
    if word == "error":
        raise PliantError(value)
    return value


# --- the stages


def _hand(tour: Tour) -> None:
    m = pliant.gallery.hand()
    model = pliant.reduce(m)
    found = compare(m, m.end_effectors, _PULL, ["reduced", "constrained"], 0.2 if tour.quick else 1.0)
    tour.compared(m, "3 N pull on a finger", found)
    tour.picture(
        "hand.png", "how soft every fingertip is, in every direction", lambda p: model.plot(p, view=(28, -35))
    )
    tour.picture("pull.png", "the pull, reduced and in full", lambda place: _pull(m, found, place))
    simulation = pliant.ReducedSimulation(model, 1e-3)
    path = _held_and_let_go(simulation, m, _PULL, 0.6)
    tour.recording("hand.html", "the hand, pulled and let go, in 3-D", path)


def _pull(m: Any, found: Comparison, place: Path) -> None:
    drawn, _ = panels(1, 2, 5.2, 4.2, grid=True)
    left, right = drawn.axes
    _draw(pliant.equilibrium(m, found.wrenches), left, (20, -50), found.load)
    paths(found, right)
    save(drawn, place)


def _gripper(tour: Tour) -> None:
    m = pliant.gallery.gripper()
    found = compare(m, m.end_effectors, _SQUEEZE, ["reduced", "constrained"], 0.05 if tour.quick else 0.1)
    tour.compared(m, "60 N on either pad", found)
    tour.picture(
        "squeeze.png", "the gripper, squeezed by opposed forces", lambda place: _squeezed(m, found, place)
    )
    simulation = pliant.ConstrainedSimulation(m, 1e-3, (0.0, 0.0, 0.0))
    path = _held_and_let_go(simulation, m, _SQUEEZE, 0.3)
    tour.recording("gripper.html", "the gripper, squeezed and let go", path)


def _squeezed(m: Any, found: Comparison, place: Path) -> None:
    drawn, _ = panels(1, 2, 5.2, 4.2, grid=True)
    picture, right = drawn.axes
    _draw(pliant.equilibrium(m, found.wrenches), picture, (12, -75), "60 N on either pad")
    paths(found, right)
    save(drawn, place)


def _millipede(tour: Tour) -> None:
    rows, files = crawl(tour.out, tour.quick)
    tour.rows += [Entry(*row) for row in rows]
    tour.files |= files


def _grasp(tour: Tour) -> None:
    tour.held["reduced"], path = hold("reduced")
    tour.picture("grasp.png", "a hand takes a ball and lifts it", lambda place: draw(path, place, _draw))
    tour.recording("grasp.html", "the same in 3-D", path)


def _full_grasp(tour: Tour) -> None:
    tour.held["constrained"], _ = hold("full")


def _compare_grasps(tour: Tour) -> None:
    m, full = pliant.scenes.lifting_hand(), tour.held["constrained"]
    for engine, held in sorted(tour.held.items(), reverse=True):
        apart, forces = held.off(full)
        words = f"ball {1e3 * apart:.2g} mm from where the full hand has it, forces within {percent(forces)}"
        accuracy = "all links, nonlinear" if held is full else words
        what = "a ball of 100 g grasped and lifted"
        tour.rows.append(Entry(m.name, m.body_count, 0, what, engine, accuracy, held.step))


def _cable(tour: Tour) -> None:
    scene = pliant.scenes.heavy_ball(_RATIO)
    m, simulation = scene.mechanism, scene.simulate()
    before, height = simulation.energy.total, simulation.pose("load")[2, 3]
    path, step = _recorded(simulation, m, 2.0 if tour.quick else 10.0, 60)
    swing = m.total_mass * 9.81 * float(np.ptp(np.append(path.pose("load")[:, 2, 3], height)))
    lost = abs(simulation.energy.total - before) / swing
    words = f"energy kept to {percent(lost)} of the swing in {path.time[-1]:.0f} s"
    what = f"{_RATIO:,.0f} : 1 in mass, steps of 1/60 s"
    tour.rows.append(Entry("heavy cable", m.body_count, 0, what, "constrained", words, step))
    tour.picture("cable.png", "100 t on a cable of 2 kg", lambda place: _swing(path, place))
    tour.recording("cable.html", "the same in 3-D", path)


def _swing(path: Trajectory, place: Path) -> None:
    drawn, _ = panels(1, 3, 5.2, 4.2, grid=True)
    for axes, at in zip(drawn.axes, (0.0, 0.5, 1.0), strict=True):
        frame = int(np.searchsorted(path.time, at))
        at_frame = SimpleNamespace(mechanism=path.mechanism, poses=path.poses[frame])
        _draw(at_frame, axes, (10, -80), f"{path.time[frame]:.2f} s")
    save(drawn, place)


# What the second process does, quasi-statics first: it shares least with the stages above.
_BESIDE = {
    "a millipede of 13,000 links": _millipede,
    "a hand that picks a ball up": _grasp,
}


class _Silent:
    """In place of a progress bar: the tour has one already."""

    def add_task(self, *_: Any, **__: Any) -> int:
        return 0

    def update(self, *_: Any, **__: Any) -> None:
        pass


def _draw(what: Any, axes: Any, view: tuple[float, float], title: str) -> None:
    from pliant.viewer import draw

    axes.grid(False)
    draw(what, axes, view=view, title=title, reference=isinstance(what, pliant.Configuration))


def _recorded(simulation: Any, m: Any, seconds: float, fps: float) -> tuple[Trajectory, float]:
    """Step by step: a simulation's own `record` would be one more thing to compile. And seconds a step."""
    done = driving.record(simulation, m, seconds, fps, "", bar=_Silent())
    if done.stopped is not None:
        raise done.stopped
    return done.trajectory, done.seconds_per_step


def _held_and_let_go(simulation: Any, m: Any, wrenches: Mapping[str, Any], seconds: float) -> Trajectory:
    driving.apply(simulation, wrenches)
    held, _ = _recorded(simulation, m, seconds, 60)
    simulation.clear_wrenches()
    free, _ = _recorded(simulation, m, seconds, 60)
    time, poses = ((a, b[1:]) for a, b in ((held.time, free.time), (held.poses, free.poses)))
    return Trajectory(m, np.concatenate(time), np.concatenate(poses))
