"""`pliant info`: summary of a mechanism, a world, a saved model or trajectory."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pliant.cli import options
from pliant.cli.output import print_json, print_table, show
from pliant.cli.reduce import reach_facts

__all__ = ["info", "mechanism_facts", "print_things", "world_facts"]


def info(
    file: options.File,
    as_json: options.Json = False,
    keyframe: options.Keyframe = None,
    allow: options.Allow = None,
    repair: options.Repair = False,
    skip_meshes: options.SkipMeshes = False,
) -> None:
    """Summarise a mechanism, a world, a saved model or a saved trajectory.

    \b
    Examples:
      pliant info hand.xml
      pliant info gallery:gripper --json
      pliant info model.npz
    """
    from pliant.engines.reduced import BlendedModel
    from pliant.source import resolve

    found = resolve(file, keyframe=keyframe, allow=allow, repair=repair, meshes=not skip_meshes, worlds=True)
    m, model, path = found.mechanism, found.model, found.trajectory
    if found.play is not None:
        things = world_facts(found.play.world)
        if as_json:
            print_json(
                {"kind": found.kind, "name": m.name, "timestep": found.play.world.timestep, "things": things}
            )
        else:
            print(f"{m.name}: a world, steps of {found.play.world.timestep:.6g} s\n")
            print_things(things)
        return
    if as_json:
        facts: dict[str, Any] = {"kind": found.kind, **mechanism_facts(m, joints=True)}
        facts["keyframes"] = found.keyframes
        facts["left_out"] = [asdict(part) for part in found.left_out]
        if isinstance(model, BlendedModel):
            facts["blend"] = _blend_facts(model)
        elif model is not None:
            facts["model"] = {
                "end_effectors": model.end_effectors,
                "rank": model.rank,
                "modes": model.modes,
                **reach_facts(model),
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
    if isinstance(model, BlendedModel):
        _print_blend(_blend_facts(model))
    elif model is not None:
        show(f"{model.summary()}\n")
    show(m.summary())
    if found.keyframes:
        print(f"\nkeyframes, for --keyframe: {', '.join(found.keyframes)}")
    if found.left_out:
        print("\nleft out:")
        for part in found.left_out:
            where = f": {', '.join(part.places)}" if part.places else ""
            show(f"  {part.count} x {part.kind}, which acts on {part.acts_on}{where}")


def mechanism_facts(m: Any, joints: bool = False) -> dict[str, Any]:
    """Name, counts, mass and size of a mechanism; with `joints`, also a table of its bodies and of its joints."""
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


# --- worlds


def world_facts(world: Any) -> list[dict[str, Any]]:
    """Name, kind, number of bodies and mass (kg) of everything in a world."""
    kinds = {"reduced": "reduced model", "blended": "blended model", "constrained": "mechanism"}
    out = []
    for name in world:
        thing = world[name]
        facts: dict[str, Any] = {"name": name, "kind": "never moves", "bodies": 0, "mass": None}
        m = getattr(thing, "mechanism", None)
        if m is not None:
            kind = kinds.get(getattr(thing, "engine", ""), "body")
            facts |= {"kind": kind, "bodies": m.body_count, "mass": m.total_mass}
        out.append(facts)
    return out


def print_things(things: list[dict[str, Any]]) -> None:
    """Print the contents of a world as a table."""
    rows = [
        [t["name"], t["kind"], str(t["bodies"]), "" if t["mass"] is None else f"{t['mass']:.4g}"]
        for t in things
    ]
    print_table(["thing", "moves as", "bodies", "mass (kg)"], rows, left=(0, 1))


# --- blends


def _blend_facts(blend: Any) -> dict[str, Any]:
    return {
        "end_effectors": blend.end_effectors,
        "exponent": blend.exponent,
        "distance": blend.distance,
        "matrices": blend.matrices,
        "floating_base": blend.base and blend.base.body,
        "models": [
            {"wrench": one.wrench, "rank": one.rank, "frequencies": one.frequencies()} for one in blend.models
        ],
    }


def _print_blend(facts: dict[str, Any]) -> None:
    words = ", ".join(f"{word} {facts[word]}" for word in ("distance", "exponent", "matrices"))
    print(
        f"blend of {len(facts['models'])} models, end effectors {', '.join(facts['end_effectors'])}: {words}\n"
    )
    rows = []
    for i, one in enumerate(facts["models"]):
        w = one["wrench"].reshape(-1, 6)
        force, torque = (float((w[:, part] ** 2).sum() ** 0.5) for part in (slice(0, 3), slice(3, 6)))
        lowest = one["frequencies"][0] if len(one["frequencies"]) else float("nan")
        rows.append([str(i), f"{force:.4g}", f"{torque:.4g}", str(one["rank"]), f"{lowest:.4g}"])
    print_table(["model", "force (N)", "torque (N m)", "rank", "lowest frequency (Hz)"], rows)
    print()
