"""`pliant run`: simulate, and leave a trajectory, a plot or a recording behind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pliant.cli.options import (
    AllowOption,
    BodiesOption,
    Engine,
    JsonOption,
    KeyframeOption,
    PlotOption,
    RepairOption,
    SeedOption,
    SourceArgument,
    StiffnessOption,
    WrenchesOption,
)
from pliant.cli.output import destination, print_json, print_table, say
from pliant.files import replacing_path
from pliant.text import counted

if TYPE_CHECKING:
    from pliant.cli.sources import Source

__all__ = ["run"]


def run(
    file: SourceArgument,
    engine: Annotated[
        Engine | None,
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
    wrenches: WrenchesOption = None,
    end_effectors: BodiesOption = None,
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
    plot: PlotOption = None,
    html: Annotated[
        Path | None,
        typer.Option("--record", metavar="HTML", help="Leave a 3-D recording for a browser there."),
    ] = None,
    fps: Annotated[float, typer.Option(help="Poses to keep per second.")] = 120.0,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    default_stiffness: StiffnessOption = None,
    keyframe: KeyframeOption = None,
    allow: AllowOption = None,
    repair: RepairOption = False,
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
    from pliant.cli import driving
    from pliant.cli.sources import parse_wrenches, resolve
    from pliant.engines.simulate import TIMESTEPS

    destination(output, ".npz")
    destination(plot, ".png", ".svg", ".pdf")
    destination(html, ".html")
    found = resolve(
        file,
        keyframe=keyframe,
        allow=allow,
        repair=repair,
        default_stiffness=default_stiffness,
        worlds=True,
    )
    loads = parse_wrenches(wrenches, found.mechanism)
    bodies = driving.watched(found, end_effectors, loads)
    start = time.perf_counter()
    if found.play is not None:
        given = {"--engine": engine, "--timestep": timestep, "-w": wrenches, "--gravity": gravity}
        simulation, kind = _world(found, given), "world"
    else:
        engine = engine or _usual(found)
        own = TIMESTEPS[engine.value] if found.scene is None else found.scene.timestep
        step, kind = own if timestep is None else timestep, engine.value
        simulation = driving.make(found, engine, step, bodies, loads, gravity, tolerance, seed)
    setup = time.perf_counter() - start
    name = f"{found.mechanism.name}, {kind}"
    done = driving.record(simulation, found.mechanism, seconds, fps, name)
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
        **(_extra(simulation, found) if done.stopped is None else {}),  # a step that was cut off is no state
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


def _usual(found: Source) -> Engine:
    if found.scene is not None:
        return Engine.constrained
    return Engine.blended if found.kind == "blended model" else Engine.reduced


def _world(found: Source, given: dict[str, Any]) -> Any:
    """A world to be run; options that only mechanisms have are refused."""
    from pliant.cli.driving import Played
    from pliant.errors import InputError

    for option, value in given.items():
        if value not in (None, []):
            raise InputError(
                f"'{found.text}' is a world, with engines and forces of its own: leave {option} out; "
                f"`pliant gallery {found.text.removeprefix('gallery:')}` lists arguments it takes"
            )
    return Played(found.play, found.mechanism.body_count)


def _write(
    path: Any, output: Path | None, plot: Path | None, html: Path | None, bodies: Sequence[str], loads: Any
) -> dict[str, Path]:
    """Every file that was asked for."""
    files = {}
    if output is not None:
        path.save(output)
        files["trajectory"] = output
    if plot is not None:
        from pliant.cli.plots import plot_run

        with replacing_path(plot) as place:
            plot_run(path, bodies, loads, place)
        files["plot"] = plot
    if html is not None:
        from pliant.viewer.recording import record_html

        record_html(path, html)
        files["recording"] = html
    return files


def _bodies(path: Any, bodies: Sequence[str]) -> dict[str, Any]:
    """Where bodies are at the end, and how far from the start."""
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
    """What only one engine knows."""
    extra: dict[str, Any] = {}
    if found.play is not None:
        touching = found.play.world.contacts
        extra["contacts"] = [
            {"bodies": pair, "point": point, "force": force, "distance": distance}
            for pair, point, force, distance in zip(
                touching.bodies, touching.points, touching.forces, touching.distances, strict=True
            )
        ]
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
