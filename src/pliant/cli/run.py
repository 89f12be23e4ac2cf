"""`pliant run`: simulate a mechanism or a world, and write a trajectory, a plot or a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pliant.cli import options
from pliant.cli.output import LEGEND, PICTURES, check_target, print_json, print_table, progress_bar, say
from pliant.errors import ConvergenceError, InputError
from pliant.files import replacing_path
from pliant.text import LENGTHS, brief, counted, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pliant.engines.simulation import Simulation
    from pliant.engines.trajectory import Trajectory
    from pliant.mechanism import Mechanism
    from pliant.source import Source

__all__ = ["Recorded", "draw_frame", "record", "run"]

_STEPS = 1e10  # that a run may take
_MOST = 4e9  # bytes of poses in memory
_LINES = ("#3566c4", "#d9822b", "#3a9a4c", "#b3313b", "#8a4fb3", "#2a9d9d", "#777777", "#c2a11c")


def run(
    file: options.File,
    engine: Annotated[
        options.Engine | None,
        typer.Option(
            help="What computes the motion. By default reduced; constrained for a scene; a world has its own.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", "-s", help="How long.")] = 1.0,
    timestep: Annotated[
        float | None,
        typer.Option(
            "--timestep",
            "-t",
            help="Seconds a step. By default 1/1000 for reduced and blended, 1/60 for the others, a scene's own.",
            show_default=False,
        ),
    ] = None,
    wrenches: options.Wrenches = None,
    end_effectors: options.Bodies = None,
    gravity: Annotated[
        bool | None,
        typer.Option(
            "--gravity/--no-gravity",
            help="By default on for constrained and quasistatic, compensated for reduced and blended.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Quasistatic: error of accelerations that is allowed, as a fraction.")
    ] = 0.01,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="NPZ", help="Leave the trajectory there, also after Ctrl-C."),
    ] = None,
    plot: options.Plot = None,
    html: Annotated[
        Path | None,
        typer.Option("--record", metavar="HTML", help="Leave a 3-D recording for a browser there."),
    ] = None,
    fps: Annotated[float, typer.Option(help="Poses to keep per second.")] = 120.0,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    default_stiffness: options.Stiffness = None,
    keyframe: options.Keyframe = None,
    allow: options.Allow = None,
    repair: options.Repair = False,
) -> None:
    """Simulate a mechanism from rest under constant wrenches, or a world with what is done to it.

    \b
    Examples:
      pliant run gallery:hand -w index_tip:0,0,2 --plot hand.png
      pliant run hand.xml --engine constrained -w ff_tip:0,0,5 -s 2 -o trajectory.npz --record hand.html
      pliant run gallery:heavy_ball:1e6 -s 5
      pliant run gallery:grasp -s 3 --record grasp.html
      pliant run gallery:millipede --engine quasistatic --no-gravity -w leg501_10:0,0,1 -s 0.5
    """
    from pliant.source import resolve

    check_target(output, ".npz")
    check_target(plot, *PICTURES)
    check_target(html, ".html")
    found = resolve(
        file, keyframe=keyframe, allow=allow, repair=repair, default_stiffness=default_stiffness, worlds=True
    )
    loads = options.parse_wrenches(wrenches, found.mechanism)
    bodies = options.observed_bodies(found, end_effectors, loads)
    start = time.perf_counter()
    if found.play is not None:
        _refuse(found, {"--engine": engine, "--timestep": timestep, "-w": wrenches, "--gravity": gravity})
        simulation, advance, kind = found.play.world, found.play.step, "world"
    else:
        engine = engine or _usual(found)
        simulation = _simulate(found, engine, timestep, bodies, loads, gravity, tolerance, seed)
        advance, kind = simulation.step, engine.value
    setup = time.perf_counter() - start
    name = f"{found.mechanism.name}, {kind}"
    with progress_bar() as bar:
        task = bar.add_task(f"{name}: first step (compiles once)")

        def tell(steps: int, total: int) -> None:
            bar.update(task, completed=steps, total=total, description=name)

        done = record(simulation, found.mechanism, seconds, fps, advance, tell)
    path = done.trajectory
    files = _write(path, output, plot, html, bodies or path.mechanism.body_names[-1:], loads)
    facts = {
        "mechanism": path.mechanism.name,
        "engine": kind,
        "timestep": simulation.timestep,
        "steps": done.steps,
        "time": path.time[-1],
        "frames": len(path),
        "bodies": _bodies(path, bodies),
        **(
            _extra(simulation, found) if done.stopped is None else {}
        ),  # else they may belong to a later step than the last frame
        "interrupted": isinstance(done.stopped, KeyboardInterrupt),
        "files": files,
        "timing": {"setup": setup, "step": done.seconds_per_step},
    }
    if as_json:
        print_json(facts)
    else:
        _report(facts)
    saved = (
        f"what there was is in {', '.join(map(str, files.values()))}" if files else "nothing was to be saved"
    )
    if isinstance(done.stopped, KeyboardInterrupt):
        say(f"interrupted at {path.time[-1]:.6g} s of {seconds:g} s; {saved}")
        raise typer.Exit(130)
    if done.stopped is not None:
        say(f"error: {done.stopped}; {saved}")
        raise typer.Exit(1)
    if files and not as_json:
        say(f"wrote {', '.join(map(str, files.values()))}")


def _usual(found: Source) -> options.Engine:
    if found.scene is not None:
        return options.Engine.constrained
    return options.Engine.blended if found.kind == "blended model" else options.Engine.reduced


def _refuse(found: Source, given: dict[str, Any]) -> None:
    """Refuse options that only mechanisms have."""
    for option, value in given.items():
        if value not in (None, []):
            raise InputError(
                f"'{found.text}' is a world, with engines and forces of its own: leave {option} out; "
                f"`pliant gallery {found.text.removeprefix('gallery:')}` lists arguments it takes"
            )


def _simulate(
    found: Source,
    engine: options.Engine,
    timestep: float | None,
    end_effectors: Sequence[str],
    wrenches: Mapping[str, Sequence[float]],
    gravity: bool | None,
    tolerance: float,
    seed: int,
) -> Simulation:
    """A simulation at its start, with the wrenches applied; a scene brings its start, motors and wrenches along."""
    from pliant.checks import EARTH
    from pliant.compare import apply_wrenches
    from pliant.engines.simulate import simulate

    if found.scene is not None:
        if engine is not options.Engine.constrained:
            raise InputError(f"'{found.text}' is a scene: it runs in the constrained engine only")
        if gravity is False:
            raise InputError(f"'{found.text}' is a scene: it has its own gravity")
        simulation = found.scene.simulate(timestep)
    else:
        if found.kind == "blended model" and engine is options.Engine.reduced:
            raise InputError(f"'{found.text}' is a blend of models: --engine blended, or leave it out")
        words: dict[str, Any] = {} if gravity is None else {"gravity": EARTH if gravity else (0.0, 0.0, 0.0)}
        if engine is options.Engine.quasistatic:
            words["tolerance"] = tolerance
        elif engine is not options.Engine.constrained and found.model is None:
            words["end_effectors"] = end_effectors
        if engine is options.Engine.blended:
            loads = [dict(wrenches)] if wrenches else None
            few = {"budget": 6, "candidates": 24, "held_out": 8}
            words["sampling"] = {"wrenches": loads, "seed": seed, **few}
        simulation = simulate(found.model or found.mechanism, engine.value, timestep, **words)
    apply_wrenches(simulation, wrenches)
    return simulation


class Recorded(NamedTuple):
    """Results of a run.

    Attributes:
        trajectory: poses at the start and after every frame that was completed.
        steps: number of steps up to the last frame.
        seconds_per_step: wall-clock time, without the first frame, which may compile; NaN if there is no other.
        stopped: the exception that ended the run early, or None.
    """

    trajectory: Trajectory
    steps: int
    seconds_per_step: float
    stopped: BaseException | None = None


def record(
    simulation: Any,
    mechanism: Mechanism,
    seconds: float,
    fps: float,
    advance: Callable[[int], None] | None = None,
    progress: Callable[[int, int], None] = lambda steps, total: None,
) -> Recorded:
    """Trajectory of a simulation or world over `seconds`, `fps` frames a second; Ctrl-C and divergence keep it.

    Args:
        simulation: at its start.
        mechanism: whose poses are kept.
        seconds: of motion.
        fps: frames a second, about.
        advance: advances by a number of steps; by default `simulation.step`.
        progress: called with the steps done and their total after every frame.
    """
    import numpy as np

    from pliant.engines.trajectory import Trajectory, loads_over_time

    if not 0 < seconds < np.inf or not 0 < fps < np.inf:
        raise InputError(f"seconds and fps: numbers above 0 expected, not {brief(seconds)} and {brief(fps)}")
    h, count = simulation.timestep, mechanism.body_count
    if seconds / h > _STEPS:
        raise InputError(
            f"{seconds:g} s in steps of {h:g} s are {seconds / h:.2g} steps: lengthen --timestep"
        )
    steps = max(1, round(seconds / h))
    every = max(1, round(1 / (fps * h)))
    frames = -(-steps // every)
    size = (frames + 1) * count * 128
    if size > _MOST:
        raise InputError(f"{frames} frames of all poses take {size / 1e9:.1f} GB: lower --fps or --seconds")
    take_steps = advance or simulation.step
    poses, times, acting = [simulation.poses[:count].copy()], [simulation.time], [simulation.acting]
    done, spent, stopped = 0, 0.0, None
    try:
        while done < steps:
            n = min(every, steps - done)
            start = time.perf_counter()
            take_steps(n)
            if done:
                spent += time.perf_counter() - start
            poses.append(simulation.poses[:count].copy())
            times.append(simulation.time)
            acting.append(simulation.acting)
            done += n
            progress(done, steps)
    except (KeyboardInterrupt, ConvergenceError) as error:
        stopped = error
    kept = min(len(poses), len(times), len(acting))  # Ctrl-C may come between two of them
    loads = loads_over_time(acting[:kept])
    found = Trajectory(mechanism, np.array(times[:kept]), np.array(poses[:kept]), loads)
    timed = done - min(every, steps)
    return Recorded(found, done, spent / timed if timed > 0 else float("nan"), stopped)


def _write(
    path: Any, output: Path | None, plot: Path | None, html: Path | None, bodies: Sequence[str], loads: Any
) -> dict[str, Path]:
    """Write the files that were asked for; their paths by kind."""
    files = {}
    if output is not None:
        path.save(output)
        files["trajectory"] = output
    if plot is not None:
        with replacing_path(plot) as place:
            _plot(path, bodies, loads, place)
        files["plot"] = plot
    if html is not None:
        from pliant.viewer.recording import record_html

        record_html(path, html)
        files["recording"] = html
    return files


def _plot(path: Trajectory, bodies: Sequence[str], forces: Mapping[str, Any], place: Path) -> None:
    """Distance of bodies from their start over time, beside a picture of the end."""
    import numpy as np

    from pliant.plotting import panels, save

    drawn, (left, right) = panels(1, 2, 5.2, 4.2, grid=True)
    moved = [
        np.linalg.norm(path.pose(b)[:, :3, 3] - path.pose(b)[0, :3, 3], axis=1) for b in bodies[: len(_LINES)]
    ]
    factor, unit = unit_for(max(float(m.max()) for m in moved), LENGTHS)
    for body, distance, colour in zip(bodies, moved, _LINES, strict=False):
        left.plot(path.time, distance / factor, color=colour, linewidth=1.3, label=body)
    left.set_xlim(path.time[0], path.time[-1])
    left.set_ylim(bottom=0)
    left.set_xlabel("time (s)")
    left.set_ylabel(f"distance from the start ({unit})")
    left.legend(**LEGEND)
    forces = {body: force[:3] for body, force in forces.items()}
    draw_frame(path, -1, right, forces=forces, title=f"at {path.time[-1]:.4g} s")
    drawn.suptitle(path.mechanism.name, fontsize=11)
    save(drawn, place)


def draw_frame(path: Trajectory, frame: int, axes: Axes, **look: Any) -> None:
    """Draw one frame of a trajectory into axes; further arguments as in `pliant.viewer.draw`."""
    from pliant.viewer import draw

    axes.grid(False)
    at: Any = SimpleNamespace(mechanism=path.mechanism, poses=path.poses[frame])
    draw(at, axes, **look)


def _bodies(path: Any, bodies: Sequence[str]) -> dict[str, Any]:
    """Pose of bodies at the end, and their distance (m) and rotation (rad) from the start."""
    import numpy as np

    from pliant import spatial

    found = {}
    for body in bodies:
        poses = path.pose(body)
        first, last = poses[0], poses[-1]
        turned = np.linalg.norm(spatial.so3_log(first[:3, :3].T @ last[:3, :3]))
        found[body] = {
            "pose": last,
            "moved": float(np.linalg.norm(last[:3, 3] - first[:3, 3])),
            "turned": float(turned),
            "farthest": float(np.linalg.norm(poses[:, :3, 3] - first[:3, 3], axis=1).max()),
        }
    return found


def _extra(simulation: Any, found: Source) -> dict[str, Any]:
    """Contacts of a world; energy and constraint violation of a simulation; error bound of the quasi-static engine."""
    extra: dict[str, Any] = {}
    if found.play is not None:
        at = found.play.world.contacts
        columns = zip(at.bodies, at.points, at.forces, at.distances, strict=True)
        words = ("bodies", "point", "force", "distance")
        return {"contacts": [dict(zip(words, contact, strict=True)) for contact in columns]}
    if hasattr(simulation, "energy"):
        energy = simulation.energy
        extra["energy"] = {word: getattr(energy, word) for word in ("kinetic", "elastic", "gravity", "total")}
        extra["violation"] = simulation.violation
    if hasattr(simulation, "error_bound"):
        extra["active_joints"] = len(simulation.active)
        extra["error_bound"] = simulation.error_bound
    return extra


def _report(facts: dict[str, Any]) -> None:
    step = facts["timing"]["step"]
    speed = f", {1e6 * step:.3g} µs a step" if step == step else ""
    engine = facts["engine"] if facts["engine"] == "world" else f"{facts['engine']} engine"
    print(
        f"{facts['mechanism']}, {engine}: {facts['steps']} steps of {facts['timestep']:.6g} s"
        f" to {facts['time']:.6g} s{speed}"
    )
    if "energy" in facts:
        words = ", ".join(f"{word} {value:.6g} J" for word, value in facts["energy"].items())
        print(f"energy: {words}; joints open by at most {facts['violation']:.1e} m")
    if "active_joints" in facts:
        print(f"last step: {facts['active_joints']} joints moved, error at most {facts['error_bound']:.3g}")
    if "contacts" in facts:
        acting = [contact for contact in facts["contacts"] if contact["force"].any()]
        pairs = sorted({" on ".join(contact["bodies"]) for contact in acting})
        said = f": {', '.join(pairs[:6])}{' ...' if len(pairs) > 6 else ''}" if pairs else ""
        print(f"last step: {counted(len(acting), 'contact')}{said}")
    rows = []
    for body, at in facts["bodies"].items():
        numbers = (*at["pose"][:3, 3], at["moved"], at["farthest"])
        rows.append([body, *(f"{v:.5f}" for v in numbers), f"{57.29577951308232 * at['turned']:.3f}"])
    if rows:
        print()
        print_table(["body", "x (m)", "y (m)", "z (m)", "moved (m)", "farthest (m)", "turned (deg)"], rows)
