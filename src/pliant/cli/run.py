"""`pliant run`: simulate a mechanism or a world, and write a trajectory, a plot or a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pliant.cli import options
from pliant.cli.output import (
    LEGEND,
    PICTURES,
    check_target,
    percent,
    print_json,
    print_table,
    progress_bar,
    say,
)
from pliant.cli.wording import as_options
from pliant.errors import ConvergenceError, InputError
from pliant.files import replacing_path
from pliant.text import LENGTHS, brief, counted, listed, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pliant.engines.simulation import Simulation
    from pliant.engines.trajectory import Trajectory
    from pliant.mechanism import Mechanism
    from pliant.source import Source

__all__ = ["Recorded", "draw_frame", "record", "run"]

_FULL = ("constrained", "quasistatic", "adaptive")  # engines without a reduced model
_STEPS = 1e10  # that a run may take
_STATICS = 20_000  # dofs up to which the static answer is computed beside the motion
_ASTRAY = 0.05  # of the displacement: a model whose rest is farther from the equilibrium is warned of
_LAST, _STILL = (
    0.2,
    0.01,
)  # part of a run at its end; of the largest displacement: motion there that counts as rest
_DAMPED = 0.05  # damping ratio of the first vibration from which more damping is no remedy
_NO_ENERGY = 1e-18  # J: less is rounding
_CLOSED = 1e-9  # of the radius: gaps and distances below are rounding
_LEAST = 1e-6  # of the radius: displacements below are not looked at
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
            help="By default on for constrained, quasistatic and adaptive, compensated for reduced and blended.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            help="Error of accelerations allowed; quasistatic: of joints left out, a fraction; adaptive: m/s²."
        ),
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
    damping_ratio: options.Damping = None,
    keyframe: options.Keyframe = None,
    allow: options.Allow = None,
    repair: options.Repair = False,
    skip_meshes: options.SkipMeshes = False,
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
        file,
        keyframe=keyframe,
        allow=allow,
        repair=repair,
        meshes=not skip_meshes,
        default_stiffness=default_stiffness,
        damping_ratio=damping_ratio,
        worlds=True,
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
    rest = None if found.play is not None else _rest(found, simulation, kind, loads, gravity, bodies)
    name = f"{found.mechanism.name}, {kind}"
    with progress_bar() as bar:
        task = bar.add_task(f"{name}: first step (compiles once)")

        def tell(steps: int, total: int) -> None:
            bar.update(task, completed=steps, total=total, description=name)

        done = record(simulation, found.mechanism, seconds, fps, advance, tell)
    path = done.trajectory
    watched = _bodies(path, bodies)
    moving = _still_moving(path, bodies)
    if rest is not None:
        for body, at in watched.items():
            at["at_rest"] = rest.distance(body, path)
    files = _write(path, output, plot, html, bodies or path.mechanism.body_names[-1:], loads)
    facts = {
        "mechanism": path.mechanism.name,
        "engine": kind,
        "gravity": None if found.play is not None else _weight(found, simulation, kind, gravity),
        "size": found.mechanism.radius,
        "loops": found.mechanism.topology.loops,
        "timestep": simulation.timestep,
        "steps": done.steps,
        "time": path.time[-1],
        "frames": len(path),
        "bodies": watched,
        "rest": rest and {**rest.facts(), "astray": None if moving else rest.astray(bodies, path)},
        "still_moving": moving,
        "undamped": not (found.mechanism.damping.any() or found.mechanism.tendon_damping.any()),
        "radii": _radii(simulation, path),
        "base": _base(simulation),
        "made_beyond": _made_beyond(simulation, [*bodies, *loads]),
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
        _explain(facts, found, loads)
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
        if engine in (options.Engine.quasistatic, options.Engine.adaptive):
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


class Rest(NamedTuple):
    """Static answer beside a motion.

    Attributes:
        poses: of all bodies at the equilibrium; None if there is none.
        reason: for that, in words.
        stops: dofs that watched and loaded bodies hang on and that their limits hold there.
        from_beyond: dofs that begin beyond their limits and move to it.
        error: distance of the model's own rest from it, as a fraction of the largest displacement; None if the motion
            is not that of a model, or the model finds no rest.
    """

    poses: Any
    reason: str = ""
    stops: tuple[str, ...] = ()
    from_beyond: tuple[str, ...] = ()
    error: float | None = None

    def distance(self, body: str, path: Trajectory) -> float | None:
        """Distance of a body from its start, m."""
        import numpy as np

        if self.poses is None:
            return None
        index = path.mechanism.body_index(body)
        return float(np.linalg.norm(self.poses[index, :3, 3] - path.poses[0, index, :3, 3]))

    def astray(self, bodies: Sequence[str], path: Trajectory) -> float | None:
        """Largest distance of bodies at the end from their static places, as a fraction of the largest displacement."""
        import numpy as np

        if self.poses is None or not bodies:
            return None
        m = path.mechanism
        indices = [m.body_index(body) for body in bodies]
        start, end, rest = (at[indices, :3, 3] for at in (path.poses[0], path.poses[-1], self.poses))
        moved = max(float(np.linalg.norm(at - start, axis=1).max()) for at in (end, rest))
        apart = float(np.linalg.norm(end - rest, axis=1).max())
        return apart / moved if moved > _LEAST * m.radius else 0.0

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "found": self.poses is not None,
            "reason": self.reason or None,
            "stops": self.stops,
            "from_beyond": self.from_beyond,
            "model_error": self.error,
        }


def _rest(
    found: Source,
    simulation: Any,
    engine: str,
    loads: Mapping[str, Any],
    gravity: bool | None,
    bodies: Sequence[str],
) -> Rest | None:
    """The equilibrium under the loads of a run; None for scenes, which move by more than constant loads."""
    import warnings

    import numpy as np

    from pliant.checks import EARTH
    from pliant.compare import from_beyond, holding, static_answer
    from pliant.errors import PliantError, PliantWarning

    m = found.mechanism
    if found.scene is not None or m.nv > _STATICS:
        return None
    model = getattr(simulation, "model", None)
    full = engine in _FULL
    down = EARTH if (full if gravity is None else gravity) else ((0.0, 0.0, 0.0) if full else None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PliantWarning)  # the run itself warns
            at = static_answer(found.model or m, loads, down)
            if model is None or at.limits:
                stops = holding(m, [*bodies, *loads], at.at_stops) if at.limits else ()
                beyond = holding(m, [*bodies, *loads], from_beyond(at))
                return Rest(at.poses, stops=stops, from_beyond=beyond)
            own = model.configuration(loads).poses
    except PliantError as error:
        return Rest(None, str(error))
    ends = [m.body_index(body) for body in model.end_effectors]
    moved = np.linalg.norm((at.poses - model.at.poses)[ends, :3, 3], axis=1).max()
    apart = np.linalg.norm((own - at.poses)[ends, :3, 3], axis=1).max()
    return Rest(at.poses, error=float(apart / moved) if moved > _LEAST * m.radius else 0.0)


def _weight(found: Source, simulation: Any, engine: str, gravity: bool | None) -> str:
    """What gravity does in a run, in words."""
    if engine in _FULL:
        if found.scene is not None:
            return ""
        return "no gravity" if gravity is False else "under gravity"
    model = getattr(simulation.model, "models", [simulation.model])[0]
    if model.base is not None and gravity is not False:
        return "base free to fall"
    return "gravity compensated" if model.gravity is None else "under gravity"


def _radii(simulation: Any, path: Trajectory) -> float | None:
    """Largest distance of end effectors of a model from where it was made, radii; None of other simulations."""
    model = getattr(simulation, "model", None)
    if model is None:
        return None
    first = model.models[0] if hasattr(model, "models") else model
    return max(first.distance(poses) for poses in path.poses)


def _base(simulation: Any) -> str | None:
    """Body that the model of a simulation floats on; None if it has none."""
    model = getattr(simulation, "model", None)
    base = None if model is None else model.base
    return base and base.body


def _made_beyond(simulation: Any, bodies: Sequence[str]) -> str | None:
    """Statement that a single model was made beyond limits of joints that bodies hang on; None if it was not."""
    from pliant.compare import holding
    from pliant.engines.reduced import ReducedModel
    from pliant.engines.reduced.report import made_beyond

    model = getattr(simulation, "model", None)
    if not isinstance(model, ReducedModel) or model.limits:
        return None
    passed = holding(model.mechanism, bodies, model.at.passed_limits)
    return made_beyond(passed) if passed else None


def _still_moving(path: Trajectory, bodies: Sequence[str]) -> str | None:
    """The watched body that moves most in the last part of a run, if that is more than rest; else None."""
    import numpy as np

    late = path.time >= path.time[-1] - _LAST * (path.time[-1] - path.time[0])
    late[-3:] = True
    found, most = None, _STILL
    for body in bodies:
        points = path.pose(body)[:, :3, 3]
        largest = np.linalg.norm(points - points[0], axis=1).max()
        if largest <= _LEAST * path.mechanism.radius:
            continue
        share = float(np.linalg.norm(np.ptp(points[late], axis=0)) / largest)
        if share > most:
            found, most = body, share
    return found


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

    from pliant.plotting import LEAST, keep_range, panels, save

    drawn, (left, right) = panels(1, 2, 5.2, 4.2, grid=True)
    moved = [
        np.linalg.norm(path.pose(b)[:, :3, 3] - path.pose(b)[0, :3, 3], axis=1) for b in bodies[: len(_LINES)]
    ]
    least = LEAST * path.mechanism.radius
    factor, unit = unit_for(max(least, *(float(m.max()) for m in moved)), LENGTHS)
    for body, distance, colour in zip(bodies, moved, _LINES, strict=False):
        left.plot(path.time, distance / factor, color=colour, linewidth=1.3, label=body)
    left.set_xlim(path.time[0], path.time[-1])
    left.set_ylim(bottom=0)
    keep_range(left, "y", least / factor)
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
    weight = f", {facts['gravity']}" if facts["gravity"] else ""
    print(
        f"{facts['mechanism']}, {engine}{weight}: {counted(facts['steps'], 'step')} of {facts['timestep']:.6g} s"
        f" to {facts['time']:.6g} s{speed}"
    )
    if "energy" in facts:
        words = ", ".join(
            f"{word} {value if abs(value) > _NO_ENERGY else 0.0:.6g} J"
            for word, value in facts["energy"].items()
        )
        open_by = facts["violation"]
        closed = "all closed" if open_by <= _CLOSED * facts["size"] else f"open by at most {open_by:.1e} m"
        print(f"energy: {words}{f'; loops {closed}' if facts['loops'] else ''}")
    if "active_joints" in facts:
        left = percent(facts["error_bound"]) if facts["error_bound"] else ""
        others = f"; accelerations of the others, at most {left} of the largest, left out" if left else ""
        print(f"last step: {counted(facts['active_joints'], 'joint')} moved{others}")
    if "contacts" in facts:
        acting = [contact for contact in facts["contacts"] if contact["force"].any()]
        pairs = sorted({" on ".join(contact["bodies"]) for contact in acting})
        said = f": {', '.join(pairs[:6])}{' ...' if len(pairs) > 6 else ''}" if pairs else ""
        print(f"last step: {counted(len(acting), 'contact')}{said}")
    if facts["radii"] is not None:
        radii = facts["radii"] if facts["radii"] > _CLOSED else 0.0
        length = radii * facts["size"]
        base = f", as seen from '{facts['base']}'" if facts["base"] else ""
        print(
            f"end effectors went at most {radii:.3g} radii ({length:.3g} m) from where the model was made{base}"
        )
    found = facts["bodies"]
    if not found:
        return
    largest = max(max(at["farthest"], at.get("at_rest") or 0.0) for at in found.values())
    factor, unit = unit_for(largest, LENGTHS)
    rest = any(at.get("at_rest") is not None for at in found.values())
    rows = []
    for body, at in found.items():
        lengths = [at["moved"], at["farthest"], *([at["at_rest"]] if rest else [])]
        lengths = [v if v > 1e-6 * max(factor, largest) else 0.0 for v in lengths]
        row = [f"{round(v, 5) + 0.0:.5f}" for v in at["pose"][:3, 3].tolist()] + [
            f"{v / factor:.5g}" for v in lengths
        ]
        rows.append([body, *row, f"{57.29577951308232 * at['turned']:.3f}"])
    print()
    columns = [f"moved ({unit})", f"farthest ({unit})", *([f"static ({unit})"] if rest else [])]
    print_table(["body", "x (m)", "y (m)", "z (m)", *columns, "turned (deg)"], rows)


def _explain(facts: dict[str, Any], found: Source, loads: Mapping[str, Any]) -> None:
    """Say what the numbers of a run mean: its last instant beside the static answer, and where a model may be wrong."""
    from pliant.compare import NO_LIMITS, UNMOVED, holding, one_way, stopped, unmoved

    rest, m, lines = facts["rest"], found.mechanism, []
    stops = rest["stops"] if rest is not None else ()
    if rest is not None and rest["found"]:
        held = f", held by the limits of {listed(stops, 4)}" if stops else ""
        lines.append(
            f"static: displacement at the equilibrium under these loads, by nonlinear statics{held}."
        )
        if stops and facts["engine"] == "quasistatic":
            lines.append(NO_LIMITS)
    elif rest is not None:
        lines.append(f"no static answer: {as_options(rest['reason'])}")
    if rest is not None and rest["from_beyond"] and facts["engine"] == "constrained":
        lines.append(one_way(rest["from_beyond"]))
    if facts["still_moving"] is not None and not m.floating:
        lines.append(_unsettled(facts, found))
    if lines:
        print()
        for line in lines:
            print(line)
    stops = holding(m, loads, stops)
    moved = [
        max(at["farthest"], 0.0 if stops else at.get("at_rest") or 0.0) for at in facts["bodies"].values()
    ]
    if loads and moved and max(moved) <= UNMOVED * m.radius and not facts["made_beyond"]:
        frames = f" ({', '.join(found.keyframes)})" if found.keyframes else ""
        say(f"warning: {stopped(stops) if stops else unmoved(m, loads)}{frames}")
    if facts["made_beyond"]:
        say(f"warning: the model is {facts['made_beyond']}")
    elif rest is not None:
        _warn_astray(rest, facts["engine"])


def _warn_astray(rest: Mapping[str, Any], engine: str) -> None:
    """Warn of a model, or of a motion, that rests elsewhere than the static answer."""
    error, apart = rest["model_error"], rest["astray"]
    if error is not None and error > _ASTRAY:
        say(
            f"warning: at rest under these loads the model is off by {percent(error)} of the displacement: use "
            "`--engine constrained`, `--engine blended`, or a model of `pliant reduce --reach RADII`"
        )
    elif apart is not None and apart > _ASTRAY and not (rest["from_beyond"] and engine == "constrained"):
        why = "other equilibria may exist"
        if rest["stops"]:
            at = listed(rest["stops"], 4)
            why = f"limits hold {at} there"
            if engine not in _FULL:
                why = f"at the limits of {at} a model of few coordinates stops as a whole; use `--engine constrained`"
        say(
            f"warning: it came to rest {percent(apart)} of the displacement away from the static answer: {why}"
        )


def _unsettled(facts: Mapping[str, Any], found: Source) -> str:
    """Line about a body that still moves at the end, with what lets it settle."""
    from pliant.errors import PliantError
    from pliant.statics.damping import damping_ratio

    m, rest, undamped = found.mechanism, facts["rest"], facts["undamped"]
    about = ""
    if undamped and rest is not None and rest["found"]:
        known = not rest["stops"] and (rest["model_error"] or 0.0) < _ASTRAY
        about = ": it swings about the static answer" if known else ""
    remedies = [] if undamped else ["`--seconds` runs longer"]
    if found.play is None and (m.stiffness.any() or m.tendon_stiffness.any()):
        try:
            weak = undamped or damping_ratio(m) < _DAMPED
        except PliantError:
            weak = True
        if weak:
            remedies.append("`--damping-ratio 0.1` lets it settle")
    remedy = "; ".join(["", *remedies])
    return (
        f"'{facts['still_moving']}' is still moving at {facts['time']:.6g} s{', undamped' * undamped}{about}. moved is "
        f"that of this instant{remedy}."
    )
