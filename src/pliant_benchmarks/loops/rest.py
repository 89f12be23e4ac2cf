"""Equilibrium of a hand and a gripper beside MuJoCo integrated to rest."""

from __future__ import annotations

from collections.abc import Callable

import pliant

from ..harness.results import Progress, Table
from ..harness.timing import compare, time_in_turns
from ..peers.mujoco import Relaxation
from ..systems import Pushed

__all__ = ["at_rest"]

NEAR = 1e-5  # radii: MuJoCo's loops are soft and end that far away


def at_rest(quick: bool, progress: Progress) -> Table:
    """Equilibrium under a force that moves the end effector by 0.1 radii."""
    rows = []
    for name in ("hand", "gripper"):
        progress(f"equilibrium of {name}()")
        case = Pushed(f"{name}()", getattr(pliant.gallery, name), 0.1)
        load = {case.tip: case.force}
        c = pliant.equilibrium(case.m, load)
        peer = Relaxation(case.m, case.force.tolist(), c.pose(case.tip)[:3, 3], NEAR)
        rests = peer.choose(("discrete",) if quick else ("discrete", "implicitfast", "implicit"))
        calls: dict[str, Callable[[], object]] = {
            "pliant": lambda m=case.m, load=load: pliant.equilibrium(m, load)
        }
        if rests:
            calls["MuJoCo"] = peer.settle
        times = time_in_turns(calls, 3 if quick else 11)
        row = compare(case.name, times["pliant"].scaled(1e3), times["MuJoCo"].scaled(1e3) if rests else None)
        row.values = {
            "loops": case.m.topology.loops,
            "moved, of radius": float(c.displacement.max() / case.m.radius),
        }
        if rests:
            row.peer_name = str(peer)
        else:
            row.stable = "MuJoCo: comes to rest at no setting tried"
        rows.append(row)
    return Table(
        "loops",
        "loops-rest",
        "Equilibrium of a hand and a gripper",
        "ms",
        rows,
        settings="One thread, processor time, in turns. MuJoCo has no static solver: it is integrated until it is "
        f"within {NEAR:g} radii, at the best of sixteen to forty-eight settings of integrator, step and damping. "
        "helix(50) at 100 N is in the suite of statics.",
    )
