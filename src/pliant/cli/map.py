"""`pliant map`: compliance, natural frequency and room to joint limits over the workspace."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pliant
from pliant.cli import options
from pliant.cli.output import PICTURES, check_target, print_json, progress_bar, say
from pliant.errors import InputError
from pliant.extras import check
from pliant.files import replacing_path

if TYPE_CHECKING:
    from pliant.workspace import ComplianceMap

__all__ = ["map_"]

_TABLES = (".csv", ".parquet", ".npz")


def map_(
    file: options.File,
    end_effector: Annotated[
        str | None,
        typer.Option(
            "--end-effector",
            "-e",
            metavar="BODY",
            help="The body to map. By default the first that moves of those the mechanism suggests.",
            show_default=False,
        ),
    ] = None,
    joints: Annotated[
        list[str] | None,
        typer.Option(
            "--joint",
            "-j",
            metavar="JOINT",
            help="A joint to move, name or pattern; repeat it for several. By default all that move the body; the "
            "others stay at the reference pose.",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(
            help="Points per joint of a grid; 21 by default if one or two joints are named.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", "-n", help="Configurations to draw, evenly spread.", show_default="512"),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            "-r",
            metavar="JOINT:LOW,HIGH",
            help="Range of a joint, rad or m; a pattern will do. By default its limits, or half a turn either way.",
            show_default=False,
        ),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            metavar="FX,FY,FZ",
            help="Force on the body in N, world axes (six numbers: and torque): how far it sags, at every sample.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TABLE", help="Leave the table there (.csv, .parquet or .npz)."
        ),
    ] = None,
    plot: options.Plot = None,
    view: Annotated[bool, typer.Option("--view", help="Show the map in the browser.")] = False,
    port: Annotated[int, typer.Option(help="The port of --view; 0 takes any that is free.")] = 8080,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, help="End --view after so many seconds.", show_default="with Ctrl+C"),
    ] = None,
    frequency: Annotated[
        bool, typer.Option(help="Compute the first natural frequency; slow with hundreds of joints.")
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of the configurations that are drawn.")] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads, by default one per core.", show_default=False)
    ] = None,
    as_json: options.Json = False,
    default_stiffness: options.Stiffness = None,
    keyframe: options.Keyframe = None,
    allow: options.Allow = None,
    repair: options.Repair = False,
    skip_meshes: options.SkipMeshes = False,
) -> None:
    """Map compliance over the workspace: how soft the end effector is at every configuration, and where to stay.

    At each configuration the springs hold the mechanism there, with gravity compensated, as position servos do. Samples
    whose loops do not close or that pass joint limits are dropped and counted.

    \b
    Examples:
      pliant map gallery:arm --plot arm.png
      pliant map robot.xml -e tip -n 5000 -o map.csv
      pliant map robot.xml -e tip -j shoulder -j elbow --points 41 --plot map.png
      pliant map gallery:gripper -r left_driver:-0.5,0.5 --load 0,0,-20 --json
      pliant map gallery:arm --view
    """
    from pliant.source import resolve, with_default_stiffness
    from pliant.workspace import with_held_base

    check_target(output, *_TABLES)
    check_target(plot, *PICTURES)
    if output is not None and output.suffix.lower() == ".parquet":
        check("pyarrow")
    if view:
        from pliant.viewer.live import check_address

        check("viser")
        check("matplotlib")
        check_address("127.0.0.1", port)
        if as_json:
            raise InputError("--json prints a document and ends, --view stays: give one of them")
    found = resolve(file, keyframe=keyframe, allow=allow, repair=repair, meshes=not skip_meshes).mechanism
    m = with_held_base(found)  # first: a base with springs would not be held
    if default_stiffness is not None:
        m = with_default_stiffness(m, default_stiffness)
    given = _parse_ranges(ranges)
    force = None if load is None else _parse_load(load)
    start = perf_counter()
    with progress_bar() as bar:
        task = bar.add_task("sampling", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=f"{done}/{total} samples")

        result = pliant.compliance_map(
            m,
            end_effector,
            joints=joints or None,
            points=points,
            samples=samples,
            ranges=given or None,
            load=force,
            frequency=frequency,
            seed=seed,
            threads=threads,
            progress=progress,
        )
    took = perf_counter() - start
    if len(m.dof_names) < len(found.dof_names):
        say("the base floats; it is held for the map")
    if output is not None:
        result.save(output)
    if plot is not None:
        with replacing_path(plot) as place:
            result.plot(place)
    if as_json:
        print_json({**_facts(result, took), "files": {"table": output, "plot": plot}})
        return
    print(result.summary())
    for path in filter(None, (output, plot)):
        say(f"wrote {path}")
    if view:
        with result.view(port=port, block=False) as shown:
            shown.announce()
            shown.wait(seconds)


def _parse_ranges(given: list[str] | None) -> dict[str, tuple[float, float]]:
    """Ranges by joint from texts `JOINT:LOW,HIGH`."""
    found: dict[str, tuple[float, float]] = {}
    for text in given or ():
        joint, colon, numbers = text.rpartition(":")
        values = _numbers(numbers)
        if not colon or not joint or len(values) != 2:
            raise InputError(f"range '{text}': JOINT:LOW,HIGH expected, as in 'elbow:-1.5,1.5'")
        if joint in found:
            raise InputError(f"range '{text}': there is one of '{joint}' already")
        found[joint] = (values[0], values[1])
    return found


def _parse_load(text: str) -> tuple[float, ...]:
    values = _numbers(text)
    if len(values) not in (3, 6):
        raise InputError(f"load '{text}': FX,FY,FZ expected, or six numbers, as in '0,0,-20'")
    return values


def _numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas; none if one is malformed."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        return ()


def _facts(result: ComplianceMap, took: float) -> dict[str, Any]:
    at = {"softest": int(result.worst.argmax()), "stiffest": int(result.worst.argmin())}
    return {
        "mechanism": result.mechanism.name,
        "end_effector": result.end_effector,
        "joints": result.joints,
        "shape": result.shape,
        "samples": len(result),
        "dropped": result.dropped,
        **{word: {name: values[s] for name, values in result.columns.items()} for word, s in at.items()},
        "columns": result.columns,
        "timing": {"seconds": took},
    }
