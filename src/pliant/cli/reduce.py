"""`pliant reduce`: compliance, principal stiffnesses and frequencies of end effectors, and a model in a file."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import pliant
from pliant.cli import options
from pliant.cli.output import check_target, print_json, print_table, say, show
from pliant.errors import InputError
from pliant.files import replacing_path

if TYPE_CHECKING:
    from pliant.engines.reduced import ReducedModel

__all__ = ["reach_facts", "reduce"]

_KINDS = (("translation", "push", "N/m", "m/N"), ("rotation", "turn", "N m/rad", "rad/(N m)"))


def reduce(
    file: options.File,
    end_effectors: options.Bodies = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="NPZ", help="Leave the model there.")
    ] = None,
    wrenches: options.Wrenches = None,
    gravity: Annotated[
        bool, typer.Option("--gravity", help="Linearise where it hangs under gravity.")
    ] = False,
    modes: Annotated[int, typer.Option(min=0, help="Fixed-interface modes to keep.")] = 0,
    reach: Annotated[
        float | None,
        typer.Option(
            metavar="RADII", help="Choose vectors so that it is right at rest up to pushes of this size."
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Static error within --reach, as a fraction of the displacement.")
    ] = 0.01,
    matrices: Annotated[
        bool, typer.Option("--matrices", help="Print the compliance matrix of every end effector, too.")
    ] = False,
    plot: options.Plot = None,
    as_json: options.Json = False,
    default_stiffness: options.Stiffness = None,
    keyframe: options.Keyframe = None,
    allow: options.Allow = None,
    repair: options.Repair = False,
    skip_meshes: options.SkipMeshes = False,
) -> None:
    """Reduce a mechanism to its end effectors: compliance, principal directions, natural frequencies.

    With wrenches or gravity it is linearised at the equilibrium under them.

    \b
    Examples:
      pliant reduce gallery:hand
      pliant reduce gallery:arm -e index_tip --matrices
      pliant reduce hand.xml -e ff_tip -e th_tip -o model.npz
      pliant reduce gallery:helix --reach 0.5
      pliant reduce gallery:helix:100 -w link100:0,0,-50 --json
    """
    from pliant.engines.reduced import BlendedModel
    from pliant.source import resolve

    check_target(output, ".npz")
    check_target(plot)
    found = resolve(
        file,
        keyframe=keyframe,
        allow=allow,
        repair=repair,
        meshes=not skip_meshes,
        default_stiffness=default_stiffness,
    )
    loads = options.parse_wrenches(wrenches, found.mechanism)
    if found.model is not None and not (end_effectors or loads or gravity or modes or reach is not None):
        if isinstance(found.model, BlendedModel):
            raise InputError(
                f"'{file}' is a blend of models: `pliant info` tells of it; -e BODY reduces anew"
            )
        model = found.model
    else:
        model = _reduced(
            found.mechanism, end_effectors, loads, gravity, modes=modes, reach=reach, tolerance=tolerance
        )
    if output is not None:
        model.save(output)
    if plot is not None:
        with replacing_path(plot) as place:
            model.plot(place)
    if as_json:
        print_json({**_facts(model), "files": {"model": output, "plot": plot}})
        return
    _report(model, matrices)
    for path in filter(None, (output, plot)):
        say(f"wrote {path}")


def _reduced(
    m: Any, bodies: list[str] | None, loads: dict[str, Any], gravity: bool, **words: Any
) -> ReducedModel:
    from pliant.checks import EARTH

    at = pliant.equilibrium(m, loads, gravity=EARTH if gravity else None) if loads or gravity else None
    return pliant.reduce(m, bodies, at=at, progress=words["reach"] is not None, **words)


def reach_facts(model: ReducedModel) -> dict[str, Any]:
    """Reach of a model and what it took, for JSON; None for what was not measured."""
    measured = isfinite(model.reach)
    return {
        "vectors": model.vectors,
        "reach": model.reach if measured else None,
        "tolerance": model.tolerance if measured else None,
        "samples": model.samples,
        "failures": model.failures,
    }


def _facts(model: ReducedModel) -> dict[str, Any]:
    principal = {
        body: {of: model.stiffness_ellipsoid(body, of)._asdict() for of in ("translation", "rotation")}
        for body in model.end_effectors
    }
    return {
        "mechanism": model.mechanism.name,
        "end_effectors": model.end_effectors,
        "rank": model.rank,
        "modes": model.modes,
        **reach_facts(model),
        "compliance": model.compliance,
        "principal": principal,
        "frequencies": model.frequencies(),
        "wrench": model.wrench,
        "floating_base": model.base and model.base.body,
    }


def _report(model: ReducedModel, matrices: bool) -> None:
    from pliant.engines.reduced.report import EFFORTS, compliance_rows

    show(model.summary().partition("\n\n")[0])
    rows = []
    for body in model.end_effectors:
        for of, word, unit, inverse in _KINDS:
            found = model.stiffness_ellipsoid(body, of)
            for stiffness, axis in zip(found.stiffness, found.axes.T, strict=True):
                if stiffness < float("inf"):
                    sign = -1.0 if axis[abs(axis).argmax()] < 0 else 1.0
                    direction = " ".join(f"{round(sign * value, 3) + 0.0:+.3f}" for value in axis)
                    rows.append(
                        [body, word, f"{stiffness:.4g} {unit}", f"{1 / stiffness:.3e} {inverse}", direction]
                    )
            if not found.stiffness[0] < float("inf"):
                rows.append([body, word, "does not give way", "", ""])
    print()
    print_table(
        ["end effector", "", "stiffness", "compliance", "direction (world)"],
        rows,
        title="principal stiffnesses, softest first",
        left=(0, 1),
    )
    held = f"; '{model.base.body}' is held" if model.base is not None else ""
    print(
        f"\nForces and torques act at the origin of the end effector{held}. "
        "Directions that are missing do not give way."
    )
    if not matrices:
        return
    for body in model.end_effectors:
        print()
        print_table(
            [body, *EFFORTS],
            compliance_rows(model, body, ".3e"),
            title=f"compliance of {body}, its own frame: m and rad per N and N m",
        )
