"""`pliant compare`: engines side by side under a pull."""

from __future__ import annotations

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
from pliant.cli.output import destination, print_json, print_table, progress_bar, say
from pliant.files import replacing_path

if TYPE_CHECKING:
    from pliant.cli.comparison import Comparison

__all__ = ["compare", "percent"]


def compare(
    file: SourceArgument,
    end_effectors: BodiesOption = None,
    wrenches: WrenchesOption = None,
    pull: Annotated[
        float,
        typer.Option(help="Without --wrench: pull the softest end effector by this fraction of the radius."),
    ] = 0.1,
    engines: Annotated[
        list[Engine] | None,
        typer.Option(
            "--engine", help="One to compare; repeat it. By default all but quasistatic.", show_default=False
        ),
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", "-s", help="How long the motion is.")] = 1.0,
    timestep: Annotated[float, typer.Option("--timestep", "-t", help="Seconds a step.")] = 1e-3,
    plot: PlotOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    default_stiffness: StiffnessOption = None,
    keyframe: KeyframeOption = None,
    allow: AllowOption = None,
    repair: RepairOption = False,
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
    import pliant
    from pliant.cli import comparison, driving
    from pliant.cli.sources import parse_wrenches, resolve

    destination(plot, ".png", ".svg", ".pdf")
    found = resolve(file, keyframe=keyframe, allow=allow, repair=repair, default_stiffness=default_stiffness)
    m = found.mechanism
    loads: Any = parse_wrenches(wrenches, m)
    bodies = driving.watched(found, end_effectors, loads)
    if not 0 < pull < 1:
        raise pliant.errors.InputError(f"pull: a number between 0 and 1 expected, not {pull!r}")
    with progress_bar() as bar:
        task = bar.add_task("linearising", total=None)
        model = pliant.reduce(m, bodies)
        if model.base is not None:
            bar.console.print(
                f"pliant: '{model.base.body}' floats; it is held for the comparison", highlight=False
            )
            m = m.with_fixed_base()
        loads = loads or comparison.default_pull(model, pull)
        chosen = [engine.value for engine in engines or list(Engine)[:3]]
        chosen = list(dict.fromkeys(chosen))
        result = comparison.compare(
            m,
            bodies,
            loads,
            chosen,
            seconds,
            timestep,
            seed,
            lambda stage: bar.update(task, description=stage),
        )
    if plot is not None:
        from pliant.cli.plots import plot_comparison

        with replacing_path(plot) as place:
            plot_comparison(result, place)
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


def percent(value: float | None) -> str:
    """A fraction, readable."""
    if value is None or value != value:
        return "-"
    return "< 0.0001 %" if value < 1e-6 else f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.1f} %"


def _report(found: Comparison) -> None:
    print(f"{found.name}: {found.load}, gravity compensated, steps of {found.timestep:.6g} s")
    print(
        f"equilibrium: '{found.body}' moves by {found.moved:.5g} m, springs hold {found.elastic:.5g} J"
        + (", joint limits hold it" if found.limits else "")
        + "\n"
    )
    rows = [
        [
            row.engine,
            f"{1000 * row.setup:.1f}",
            f"{1e6 * row.step:.3g}",
            *(
                [percent(float(row.rest[1])), percent(float(row.rest[-1]))]
                if row.rest is not None
                else ["-", "-"]
            ),
            percent(row.motion),
            f"{row.elastic:.5g}",
        ]
        for row in found.rows
        if row.problem is None
    ]
    columns = ["engine", "set-up ms", "µs a step", "at half load", "at full load", "in motion", "springs J"]
    print_table(columns, rows)
    print(
        "\nErrors as parts of the motion: at rest against the equilibrium, in motion (rms) against constrained."
    )
    for row in found.rows:
        if row.problem is not None:
            say(f"{row.engine}: {row.problem}")
