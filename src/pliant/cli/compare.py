"""`pliant compare`: errors, energies and times of several engines under one load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pliant
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
from pliant.errors import InputError
from pliant.files import replacing_path
from pliant.text import LENGTHS, brief, listed, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pliant.compare import Comparison

__all__ = ["compare", "plot_paths"]

_COLOURS = {
    "reduced": "#d9822b",
    "blended": "#3a9a4c",
    "constrained": "#3566c4",
    "quasistatic": "#8a4fb3",
    "adaptive": "#b8366b",
}
_EXACT = 1e-6  # of the motion: smaller errors are rounding


def compare(
    file: options.File,
    end_effectors: options.Bodies = None,
    wrenches: options.Wrenches = None,
    pull: Annotated[
        float,
        typer.Option(help="Without --wrench: pull the softest end effector by this fraction of the radius."),
    ] = 0.1,
    engines: Annotated[
        list[options.Engine] | None,
        typer.Option(
            "--engine",
            help="One to compare; repeat it. By default reduced, blended, constrained.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", "-s", help="How long the motion is.")] = 1.0,
    timestep: Annotated[float, typer.Option("--timestep", "-t", help="Seconds a step.")] = 1e-3,
    plot: options.Plot = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    default_stiffness: options.Stiffness = None,
    damping_ratio: options.Damping = None,
    keyframe: options.Keyframe = None,
    allow: options.Allow = None,
    repair: options.Repair = False,
    skip_meshes: options.SkipMeshes = False,
) -> None:
    """Pull a mechanism in several engines: error at rest and in motion, energy, time per step.

    At rest engines are compared with the nonlinear equilibrium, in motion with the constrained engine. Gravity is
    compensated.

    \b
    Examples:
      pliant compare gallery:hand -e index_tip --plot hand.png
      pliant compare hand.xml -e ff_tip -w ff_tip:0,0,5 --json
      pliant compare gallery:bicycle_chain --engine reduced --engine quasistatic
    """
    from pliant import compare as library
    from pliant.source import resolve

    check_target(plot, *PICTURES)
    found = resolve(
        file,
        keyframe=keyframe,
        allow=allow,
        repair=repair,
        meshes=not skip_meshes,
        default_stiffness=default_stiffness,
        damping_ratio=damping_ratio,
    )
    m = found.mechanism
    loads: Any = options.parse_wrenches(wrenches, m)
    bodies = options.observed_bodies(found, end_effectors, loads)
    if not 0 < pull < 1:
        raise InputError(f"pull: a number between 0 and 1 expected, not {brief(pull)}")
    with progress_bar() as bar:
        task = bar.add_task("linearising", total=None)
        model = pliant.reduce(m, bodies)
        if model.base is not None:
            bar.console.print(
                f"pliant: '{model.base.body}' floats; it is held for the comparison", highlight=False
            )
            m = m.with_fixed_base()
        loads = loads or library.default_pull(model, pull)
        chosen = list(dict.fromkeys(engine.value for engine in engines or list(options.Engine)[:3]))
        result = library.compare(
            m, bodies, loads, chosen, seconds, timestep, seed, lambda name: bar.update(task, description=name)
        )
    if plot is not None:
        with replacing_path(plot) as place:
            _plot(result, place)
    if as_json:
        print_json({**_facts(result), "files": {"plot": plot}})
        return
    _report(result)
    if plot is not None:
        say(f"wrote {plot}")


def _facts(found: Comparison) -> dict[str, Any]:
    return {
        "mechanism": found.name,
        "wrenches": found.wrenches,
        "equilibrium": {
            "body": found.body,
            "moved": found.moved,
            "elastic": found.elastic,
            "limits": found.limits,
            "stops": found.stops,
        },
        "timestep": found.timestep,
        "fractions": found.fractions,
        "engines": {
            row.engine: {
                "rest_error": row.rest,
                "motion_error": row.motion,
                "elastic": row.elastic,
                "problem": row.problem,
                "timing": {"setup": row.setup, "step": row.step},
            }
            for row in found.rows
        },
    }


def _report(found: Comparison) -> None:
    from pliant.compare import NO_LIMITS, one_way

    print(f"{found.name}: {found.load}, gravity compensated, steps of {found.timestep:.6g} s")
    limits = f", held by the limits of {listed(found.stops, 4)}" if found.stops else ""
    print(
        f"equilibrium: '{found.body}' moves by {found.moved:.5g} m, springs hold {found.elastic:.5g} J{limits}\n"
    )
    rows = []
    for row in found.rows:
        if row.problem is None:
            rest = (None, None) if row.rest is None else (float(row.rest[1]), float(row.rest[-1]))
            errors = [percent(value) for value in (*rest, row.motion)]
            times = [f"{1000 * row.setup:.1f}", f"{1e6 * row.step:.3g}"]
            rows.append([row.engine, *times, *errors, f"{row.elastic:.5g}"])
    columns = ["engine", "set-up ms", "µs a step", "at half load", "at full load", "in motion", "springs J"]
    print_table(columns, rows)
    print(
        "\nErrors as parts of the motion: at rest against the equilibrium, in motion (rms) against constrained."
    )
    if found.stops:
        engines = {row.engine for row in found.rows}
        if "blended" in engines:
            print("Blends know limits as springs that stiffen over the last 5 % of the range or less.")
        if "quasistatic" in engines:
            print(NO_LIMITS)
    if found.from_beyond and any(row.engine == "constrained" for row in found.rows):
        print(one_way(found.from_beyond))
    for row in found.rows:
        if row.problem is not None:
            say(f"{row.engine}: {row.problem}")


# --- plots


def _plot(found: Comparison, place: Path) -> None:
    """Error at rest against the load, and the path of the end effector that moves most, engine by engine."""
    from pliant.plotting import panels, save

    drawn, (left, right) = panels(1, 2, 5.2, 4.2, grid=True)
    _plot_errors(found, left)
    plot_paths(found, right)
    drawn.suptitle(f"{found.name}: {found.load}", fontsize=11)
    save(drawn, place)


def _plot_errors(found: Comparison, axes: Axes) -> None:
    """Error at rest as a percentage of the motion, against the load."""
    import numpy as np

    from pliant.plotting import logarithmic

    for row in found.rows:
        if row.rest is None:
            continue
        exact = float(np.nanmax(row.rest)) < _EXACT  # only in the legend: the scale is logarithmic
        shown = np.full(len(found.fractions), np.nan) if exact else 100 * np.maximum(row.rest, _EXACT)
        axes.plot(
            100 * found.fractions,
            shown,
            "o--" if row.engine == "blended" else "o-",
            markersize=4,
            linewidth=1.2,
            color=_COLOURS[row.engine],
            label=f"{row.engine} (exact)" if exact else row.engine,
        )
    logarithmic(axes, 100 * _EXACT)
    axes.set_xlabel("load (% of the whole)")
    axes.set_ylabel("error at rest (% of the motion)")
    axes.set_title("against the nonlinear equilibrium", fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**LEGEND)


def plot_paths(found: Comparison, axes: Axes) -> None:
    """Distance of the end effector that moves most from its start, over time."""
    from pliant.plotting import LEAST, keep_range

    paths = {row.engine: row.path for row in found.rows if row.path is not None}
    least = LEAST * found.radius
    factor, unit = unit_for(max(least, found.moved, *(float(path.max()) for path in paths.values())), LENGTHS)
    # The reference first, wide and pale, so that it stays visible below the others.
    for engine, path in sorted(paths.items(), key=lambda one: one[0] != "constrained"):
        reference = engine == "constrained"
        axes.plot(
            found.time,
            path / factor,
            color=_COLOURS[engine],
            linewidth=3.0 if reference else 1.2,
            linestyle="--" if engine == "blended" else "-",
            alpha=0.45 if reference else 1.0,
            label=engine,
        )
    axes.set_xlim(0, found.time[-1])
    axes.axhline(found.moved / factor, color="#777777", linewidth=1, linestyle="--", label="equilibrium")
    axes.set_ylim(bottom=0)
    keep_range(axes, "y", least / factor)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(f"'{found.body}' from rest ({unit})")
    axes.set_title("pulled from rest", fontsize=10)
    axes.legend(**LEGEND)
