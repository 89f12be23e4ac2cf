"""`pliant demo`: a tour through the engines, with a table, pictures and 3-D recordings."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

import pliant
from pliant.cli import options
from pliant.cli.output import percent, print_json, print_table, progress_bar, say
from pliant.cli.run import draw_frame, record
from pliant.errors import PliantError
from pliant.extras import check
from pliant.files import replacing_path

if TYPE_CHECKING:
    from pliant.child import Child
    from pliant.compare import Comparison
    from pliant.engines.trajectory import Trajectory

__all__ = ["Entry", "Tour", "demo", "take"]

_PULL = {"index_tip": (0.0, 0.0, 3.0)}  # N
_SQUEEZE = {"left_pad": (60.0, 0.0, 0.0), "right_pad": (-60.0, 0.0, 0.0)}  # N
_RATIO = 1e6  # mass of the cable's load over that of a segment of 0.1 kg
_GRASP = (0.0, 1.5, 2.5)  # s, in the picture: open, on the way up, lifted
_HELD, _ROUNDS = 30, 5  # steps of the lifted ball that are timed together, and repetitions
_TOLERANCE = 0.01  # of the millipede, as a fraction of the largest acceleration
_FOOT_FORCE = (0.0, 0.0, 0.5)  # N
_NEAR = 0.05  # m, around the foot
_FULL = "all links, nonlinear"


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where pictures and recordings go.")
    ] = Path("pliant-demo"),
    quick: Annotated[bool, typer.Option("--quick", help="A small millipede, short motions.")] = False,
    as_json: options.Json = False,
) -> None:
    """Take the tour: reduce, pull, squeeze, grasp, compare, swing and crawl; leave pictures and 3-D recordings behind.

    The first time everything is compiled, which takes a minute or two; later tours take some ten seconds.

    \b
    Examples:
      pliant demo
      pliant demo --out tour
    """
    check("matplotlib")
    found = take(out, quick)
    if as_json:
        print_json({"rows": [row._asdict() for row in found.rows], "files": found.files})
        return
    print_table(
        ["mechanism", "links", "loops", "what...", "engine", "accuracy...", "µs a step"],
        [
            [r.mechanism, f"{r.links:,}", str(r.loops), r.what, r.engine, r.accuracy, _microseconds(r.step)]
            for r in found.rows
        ],
        left=(0, 4),
    )
    print(f"\nIn {out}:")
    for file, what in found.files.items():
        print(f"  {Path(file).name:<16} {what}")
    print(
        """
Try next:
  pliant gallery                                             what else there is
  pliant reduce gallery:gripper                              stiffness and frequencies at the pads
  pliant run gallery:hand -w index_tip:0,0,2 --plot hand.png
  pliant compare gallery:suspension --plot suspension.png    engines side by side
  pliant info your_robot.xml                                 MJCF and URDF load as they are
In Python: import pliant; help(pliant) begins with an example."""
    )


def _microseconds(step: float) -> str:
    return f"{1e6 * step:,.0f}" if step > 1e-4 else f"{1e6 * step:.3g}"


# --- the tour: six stages, two of them in a second process, so that two cores compile at once


class Entry(NamedTuple):
    """A row of the table; `step` in seconds."""

    mechanism: str
    links: int
    loops: int
    what: str
    engine: str
    accuracy: str
    step: float


class Held(NamedTuple):
    """A lifted ball: its position (m), the forces of the fingertips on it (fingers, 3) in N, and seconds a step."""

    ball: NDArray[np.float64]
    pressed: NDArray[np.float64]
    step: float

    def difference(self, other: Held) -> tuple[float, float]:
        """Distance of the balls, m; and the largest difference of forces, as a fraction of the other's largest."""
        apart = float(np.linalg.norm(self.ball - other.ball))
        largest = np.linalg.norm(other.pressed, axis=1).max()
        return apart, float(np.linalg.norm(self.pressed - other.pressed, axis=1).max() / largest)


@dataclass
class Tour:
    """Results of the tour.

    Attributes:
        out: folder of pictures and recordings.
        quick: whether everything is smaller.
        rows: of the table.
        files: descriptions by path.
        held: the grasp by engine.
    """

    out: Path
    quick: bool
    rows: list[Entry] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)

    def picture(self, name: str, what: str, draw: Callable[[Path], Any]) -> None:
        """Write a picture."""
        with replacing_path(self.out / name) as place:
            draw(place)
        self.files[str(self.out / name)] = what

    def recording(self, name: str, what: str, path: Trajectory, caption: str = "") -> None:
        """Write a 3-D recording, with a caption or the description below its title."""
        from pliant.viewer.recording import record_html

        record_html(path, self.out / name, title=name.partition(".")[0], caption=caption or what)
        self.files[str(self.out / name)] = what

    def comparison(self, m: Any, what: str, found: Comparison) -> None:
        """Add two rows: the reduced model and the full engine."""
        for row in found.rows:
            if row.problem is not None:
                raise PliantError(f"{m.name}, {row.engine}: {row.problem}")
            rest = percent(None if row.rest is None else float(row.rest[-1]))
            words = f"{rest} of the motion off at rest, {percent(row.motion)} on the way"
            accuracy = _FULL if row.engine == "constrained" else words
            self.rows.append(
                Entry(m.name, m.body_count, m.topology.loops, what, row.engine, accuracy, row.step)
            )


def take(out: Path, quick: bool = False) -> Tour:
    """Take the tour.

    Args:
        out: folder of pictures and recordings; made if it does not exist.
        quick: everything smaller.
    """
    from pliant.child import Child
    from pliant.compilation.progress import QUIET

    out.mkdir(parents=True, exist_ok=True)
    found = Tour(out, quick)
    stages: list[tuple[str, Callable[[Tour], None]]] = [
        ("a hand, reduced to its fingertips and pulled", _hand),
        ("a gripper with closed loops, squeezed", _gripper),
        ("100 t on a cable of 2 kg", _cable),
        ("a hand that picks a ball up, in full", _full_grasp),
    ]
    with progress_bar() as bar:
        task = bar.add_task("starting", total=len(stages))
        beside = bar.add_task(f"{next(iter(_BESIDE))} (second core)", total=None)
        # Ctrl-C is for this process alone, which then ends the other; so is the terminal.
        code = "from pliant.cli.demo import run_beside; run_beside()"
        other = Child(
            code, str(out), *(["quick"] * quick), environment={QUIET: "1"}, isolated=True, own_session=True
        )
        try:
            for name, stage in stages:
                bar.update(task, description=name)
                _announce(name)
                stage(found)
                bar.advance(task)
            bar.update(task, description="waiting for the second core")
            rest = _receive(other, lambda name: bar.update(beside, description=f"{name} (second core)"))
        finally:
            other.end()
    found.rows += rest.rows
    found.files |= rest.files
    found.held |= rest.held
    _compare_grasps(found)
    return found


def _announce(name: str) -> None:
    """Print the name of a stage where there is no progress bar."""
    if not sys.stderr.isatty():
        say(name)


def run_beside() -> None:
    """The second process: sends the names of its stages, then the tour or an error message."""
    from pliant.child import take_pipes, write_frame

    _, pipe = take_pipes()
    found = Tour(Path(sys.argv[1]), "quick" in sys.argv[2:])
    try:
        for name, stage in _BESIDE.items():
            write_frame(pipe, pickle.dumps(("stage", name)))
            stage(found)
        write_frame(pipe, pickle.dumps(("done", found)))
    except (PliantError, OSError) as error:
        write_frame(pipe, pickle.dumps(("error", str(error))))


def _receive(other: Child, stage: Callable[[str], None]) -> Tour:
    """The tour of the second process; `stage` is called with the names of its stages."""
    try:
        word, value = pickle.loads(other.receive())
        while word == "stage":
            stage(value)
            word, value = pickle.loads(other.receive())
    except EOFError:
        raise PliantError("the second process ended without a word: is there enough memory?") from None
    if word == "error":
        raise PliantError(value)
    return value


# --- hand and gripper: reduced model and full engine under the same load


def _hand(tour: Tour) -> None:
    from pliant.compare import compare

    m = pliant.gallery.hand()
    model = pliant.reduce(m)
    found = compare(m, m.end_effectors, _PULL, ["reduced", "constrained"], 0.2 if tour.quick else 1.0)
    tour.comparison(m, "3 N pull on a finger", found)
    tour.picture(
        "hand.png", "how soft every fingertip is, in every direction", lambda p: model.plot(p, view=(28, -35))
    )
    tour.picture(
        "pull.png", "the pull, reduced and in full", lambda p: _draw_load(m, found, (20, -50), found.load, p)
    )
    path = _load_and_release(pliant.ReducedSimulation(model, 1e-3), _PULL, 0.6)
    tour.recording("hand.html", "the hand, pulled and let go, in 3-D", path)


def _gripper(tour: Tour) -> None:
    from pliant.compare import compare

    m, load = pliant.gallery.gripper(), "60 N on either pad"
    found = compare(m, m.end_effectors, _SQUEEZE, ["reduced", "constrained"], 0.05 if tour.quick else 0.1)
    tour.comparison(m, load, found)
    tour.picture(
        "squeeze.png",
        "the gripper, squeezed by opposed forces",
        lambda p: _draw_load(m, found, (12, -75), load, p),
    )
    path = _load_and_release(pliant.ConstrainedSimulation(m, 1e-3, (0.0, 0.0, 0.0)), _SQUEEZE, 0.3)
    tour.recording("gripper.html", "the gripper, squeezed and let go", path)


def _draw_load(m: Any, found: Comparison, view: tuple[float, float], title: str, place: Path) -> None:
    """The equilibrium under a load, beside the paths of the engines."""
    from pliant.cli.compare import plot_paths
    from pliant.plotting import panels, save
    from pliant.statics import equilibrium
    from pliant.viewer import draw

    drawn, (left, right) = panels(1, 2, 5.2, 4.2, grid=True)
    left.grid(False)
    draw(equilibrium(m, found.wrenches), left, view=view, title=title)
    plot_paths(found, right)
    save(drawn, place)


def _load_and_release(simulation: Any, wrenches: Mapping[str, Any], seconds: float) -> Trajectory:
    """Trajectory at 60 frames a second: `seconds` under wrenches, then as long without."""
    from pliant.compare import apply_wrenches
    from pliant.engines.trajectory import Trajectory

    apply_wrenches(simulation, wrenches)
    held, _ = _record(simulation, seconds)
    simulation.clear_wrenches()
    free, _ = _record(simulation, seconds)
    loads = np.zeros((len(free) - 1, *held.loads.shape[1:]))
    time, poses, loads = (
        np.concatenate(parts)
        for parts in ((held.time, free.time[1:]), (held.poses, free.poses[1:]), (held.loads, loads))
    )
    return Trajectory(held.mechanism, time, poses, loads)


def _record(simulation: Any, seconds: float) -> tuple[Trajectory, float]:
    """Trajectory at 60 frames a second, and seconds a step."""
    done = record(simulation, simulation.mechanism, seconds, 60)
    if done.stopped is not None:
        raise done.stopped
    return done.trajectory, done.seconds_per_step


# --- grasp


def _grasp(tour: Tour) -> None:
    tour.held["reduced"], path = _hold("reduced")
    frames = {at: max(int(np.searchsorted(path.time, at + 1e-9)) - 1, 0) for at in _GRASP}
    pictures = {f"{at:.1f} s": frame for at, frame in frames.items()}
    tour.picture(
        "grasp.png", "a hand takes a ball and lifts it", lambda p: _draw_frames(path, pictures, (14, -60), p)
    )
    tour.recording("grasp.html", "the same in 3-D", path, "a hand takes a ball and lifts it; reduced model")


def _full_grasp(tour: Tour) -> None:
    tour.held["constrained"], _ = _hold("full")


def _hold(kind: str) -> tuple[Held, Trajectory]:
    """A hand of one engine takes the ball and lifts it."""
    from pliant import scenes

    play = scenes.grasp(kind)
    world = play.world
    path = play.record(round(_GRASP[-1] / world.timestep))
    pressed = np.array([world.contacts.force("ball", f"hand/finger{f}_tip") for f in (1, 2, 3)])
    spent = [_seconds(lambda: world.step(_HELD)) / _HELD for _ in range(_ROUNDS)]
    return Held(path.pose("ball")[-1, :3, 3], pressed, float(np.median(spent))), path


def _compare_grasps(tour: Tour) -> None:
    m, full = pliant.scenes.lifting_hand(), tour.held["constrained"]
    for engine, held in sorted(tour.held.items(), reverse=True):
        apart, forces = held.difference(full)
        words = f"ball {1e3 * apart:.2g} mm from where the full hand has it, forces within {percent(forces)}"
        what, accuracy = "a ball of 100 g grasped and lifted", _FULL if held is full else words
        tour.rows.append(Entry(m.name, m.body_count, 0, what, engine, accuracy, held.step))


# --- cable


def _cable(tour: Tour) -> None:
    scene = pliant.scenes.heavy_ball(_RATIO)
    m, simulation = scene.mechanism, scene.simulate()
    before, height = simulation.energy.total, simulation.pose("load")[2, 3]
    path, step = _record(simulation, 2.0 if tour.quick else 10.0)
    swing = m.total_mass * 9.81 * float(np.ptp(np.append(path.pose("load")[:, 2, 3], height)))
    lost = abs(simulation.energy.total - before) / swing
    words = f"energy kept to {percent(lost)} of the swing in {path.time[-1]:.0f} s"
    what = f"{_RATIO:,.0f} : 1 in mass, steps of 1/60 s"
    tour.rows.append(Entry("heavy cable", m.body_count, 0, what, "constrained", words, step))
    frames = [int(np.searchsorted(path.time, at)) for at in (0.0, 0.5, 1.0)]
    pictures = {f"{path.time[frame]:.2f} s": frame for frame in frames}
    tour.picture(
        "cable.png", "100 t on a cable of 2 kg", lambda p: _draw_frames(path, pictures, (10, -80), p)
    )
    tour.recording(
        "cable.html", "the same in 3-D", path, "100 t swing on a cable of 2 kg, at steps of 1/60 s"
    )


def _draw_frames(path: Trajectory, frames: Mapping[str, int], view: tuple[float, float], place: Path) -> None:
    """Frames of a trajectory side by side, by title."""
    from pliant.plotting import panels, save

    drawn, found = panels(1, len(frames), 5.2, 4.2, grid=True)
    for axes, (title, frame) in zip(found, frames.items(), strict=True):
        draw_frame(path, frame, axes, view=view, title=title, reference=False)
    save(drawn, place)


# --- millipede


def _millipede(tour: Tour) -> None:
    """Push one foot of a millipede of 13,000 links: quasi-static steps that compute some joints, or all."""
    m = pliant.gallery.millipede(100, 10, 300) if tour.quick else pliant.gallery.millipede()
    foot = m.end_effectors[-1]
    adaptive, active, step = _push(m, foot, _TOLERANCE)
    exact, _, slow = _push(m, foot, 1e-12)
    error = np.abs(adaptive - exact) / np.abs(exact).max()
    out = adaptive == 0.0  # not computed
    what = f"{_FOOT_FORCE[2]:g} N under one foot"
    words = (
        f"{len(active):,} joints computed, off by {100 * error[~out].max():.2g} %; others left out, "
        f"{100 * error[out].max():.2g} %, at most {100 * _TOLERANCE:g} % allowed"
    )
    tour.rows += [
        Entry("millipede", m.body_count, 0, what, "quasistatic", words, step),
        Entry("millipede", m.body_count, 0, what, "all joints", f"all {m.nv:,} joints computed", slow),
    ]
    tour.picture(
        "millipede.png",
        "which of its joints an adaptive step computes",
        lambda p: _draw_millipede(m, foot, active, p),
    )


def _push(m: Any, foot: str, tolerance: float) -> tuple[np.ndarray, tuple[str, ...], float]:
    """Joint accelerations at the start, the joints computed there, and seconds a step over the next steps."""
    simulation = pliant.QuasistaticSimulation(m, 1e-3, (0.0, 0.0, 0.0), tolerance=tolerance)
    simulation.apply_wrench(foot, force=_FOOT_FORCE)
    simulation.refine()
    accelerations, active = simulation.accelerations, simulation.active
    simulation.step()
    spent = [_seconds(simulation.step) for _ in range(10)]
    return accelerations, active, float(np.median(spent))  # the median: one of them may compile


def _seconds(call: Callable[[], Any]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _draw_millipede(m: Any, foot: str, active: tuple[str, ...], place: Path) -> None:
    """All links from above, and those near the foot from the side, with the joints that were computed."""
    from pliant.plotting import figure, save

    drawn = figure(9, 5)
    from matplotlib.collections import LineCollection

    above, side = drawn.subplots(2, 1, height_ratios=(1, 1.7))
    centres = m.reference_poses[:, :3, 3]
    parent = np.full(m.body_count, -1)
    parent[m.joint_children] = m.joint_parents
    linked = np.flatnonzero(parent >= 0)
    segments = np.stack([centres[linked], centres[parent[linked]]], axis=1)
    computed = centres[m.joint_children[[m.joint_index(name) for name in active]]]
    target = centres[m.body_index(foot)]
    near = (np.abs(segments - target).max(axis=1) < (_NEAR, 3 * _NEAR, 1.0)).all(axis=1)
    for axes, shown, height in ((above, segments, 1), (side, segments[near], 2)):
        across = [0, height]
        lines = LineCollection(list(shown[:, :, across]), colors="#8fa8d0", linewidths=1.0, zorder=1)
        axes.add_collection(lines)
        axes.scatter(
            *computed[:, across].T, s=18, color="#d9822b", zorder=3, linewidths=0, label="joint computed"
        )
        axes.scatter(
            *target[across], s=70, facecolors="none", edgecolors="#b3313b", zorder=4, label="foot pushed up"
        )
        axes.set_xlabel("x (m)", fontsize=8)
        axes.set_ylabel("yz"[height - 1] + " (m)", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    above.autoscale()
    above.set_aspect("equal", adjustable="datalim")
    above.set_title(
        f"{m.body_count:,} links from above: {len(active)} joints computed in one step", fontsize=10
    )
    side.set_aspect("equal")
    side.set_xlim(target[0] - _NEAR, target[0] + _NEAR)
    side.set_ylim(0, 0.022)
    side.set_title("the pushed leg and its neighbours from the side", fontsize=10)
    side.legend(fontsize=8, frameon=False, loc="upper right")
    save(drawn, place)


# Stages of the second process. Quasi-statics first: it shares the fewest kernels with the stages of the first process.
_BESIDE: dict[str, Callable[[Tour], None]] = {
    "a millipede of 13,000 links": _millipede,
    "a hand that picks a ball up": _grasp,
}
