"""`pliant info`: what is in a file."""

from __future__ import annotations

from typing import Any

from pliant.cli.options import AllowOption, JsonOption, KeyframeOption, RepairOption, SourceArgument
from pliant.cli.output import print_json

__all__ = ["info", "mechanism_facts"]


def info(
    file: SourceArgument,
    as_json: JsonOption = False,
    keyframe: KeyframeOption = None,
    allow: AllowOption = None,
    repair: RepairOption = False,
) -> None:
    """Summarise a mechanism, a saved model or a saved trajectory.

    \b
    Examples:
      pliant info hand.xml
      pliant info gallery:gripper --json
      pliant info model.npz
    """
    from pliant.cli.sources import resolve

    found = resolve(file, keyframe=keyframe, allow=allow, repair=repair)
    m, model, path = found.mechanism, found.model, found.trajectory
    if as_json:
        facts: dict[str, Any] = {"kind": found.kind, **mechanism_facts(m, joints=True)}
        if model is not None:
            facts["model"] = {
                "end_effectors": model.end_effectors,
                "rank": model.rank,
                "modes": model.modes,
                "projection": model.projection,
                "inertia": model.inertia,
                "frequencies": model.frequencies(),
                "floating_base": model.base and model.base.body,
            }
        if path is not None:
            facts["trajectory"] = {"frames": len(path), "start": path.time[0], "end": path.time[-1]}
        print_json(facts)
        return
    if path is not None:
        print(f"trajectory: {len(path)} frames from {path.time[0]:.6g} s to {path.time[-1]:.6g} s, of\n")
    print(m.summary() if model is None else f"{model.summary()}\n\n{m.summary()}")


def mechanism_facts(m: Any, joints: bool = False) -> dict[str, Any]:
    """The facts of a mechanism; with `joints`, one entry per body and joint too."""
    facts: dict[str, Any] = {
        "name": m.name,
        "bodies": m.body_count,
        "joints": m.joint_count,
        "dofs": m.nv,
        "loops": m.topology.loops,
        "couplings": len(m.couplings),
        "tendons": len(m.tendons),
        "mass": m.total_mass,
        "radius": m.radius,
        "end_effectors": m.end_effectors,
    }
    if joints:
        facts["without_spring"] = m.springless
        facts["body_table"] = [
            {"name": name, "mass": mass} for name, mass in zip(m.body_names, m.mass.tolist(), strict=True)
        ]
        facts["joint_table"] = [
            {
                "name": m.joint_names[j],
                "type": m.joint_types[j],
                "parent": m.body_names[m.joint_parents[j]] if m.joint_parents[j] >= 0 else "world",
                "child": m.body_names[m.joint_children[j]],
                "stiffness": m.stiffness[m.joint_dofs(j)],
                "damping": m.damping[m.joint_dofs(j)],
            }
            for j in range(m.joint_count)
        ]
    return facts
