"""A four-bar that swings under gravity: how far its loop opens, and how its energy drifts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from chains import STEPS
from results import Progress, Row, Table

import pliant

__all__ = ["four_bar", "loops"]

CRANK = 0.4
SWING = 10.0  # J, about what the four-bar can turn into motion; only a scale for the drift


def four_bar() -> pliant.Mechanism:
    """A crank of 0.4 m, a coupler of 1 m and a rocker of 0.8 m on a ground of 0.9 m; a ball closes the loop.

    The fourth joint is a ball because that is what MuJoCo's <connect> is; the motion is planar all the same.
    """
    a, d = np.zeros(3), np.array([0.9, 0, 0])
    b = CRANK * np.array([math.cos(1.2), 0, math.sin(1.2)])
    gap = d - b
    span = float(np.linalg.norm(gap))
    along = (1.0 + span**2 - 0.8**2) / (2 * span)
    side = np.array([-gap[2], 0, gap[0]]) / span
    c = b + along / span * gap + math.sqrt(1 - along**2) * side
    builder = pliant.Builder("four-bar")
    for name, p, q in (("crank", a, b), ("coupler", b, c), ("rocker", d, c)):
        rod = pliant.shapes.rod((0, 0, 0), q - p, 0.02)
        builder.body(name, position=p, shapes=[rod], density=2000)
    builder.hinge("a", "world", "crank", anchor=a, axis=(0, 1, 0))
    builder.hinge("b", "crank", "coupler", anchor=b, axis=(0, 1, 0))
    builder.hinge("d", "world", "rocker", anchor=d, axis=(0, 1, 0))
    builder.ball("c", "coupler", "rocker", anchor=c)
    builder.end_effectors("coupler")
    return builder.build()


def loops(quick: bool, progress: Progress) -> Table:
    """The largest gap of the closing joint, over the crank's length."""
    time = 2.0 if quick else 60.0
    theirs, integrators, missing = _mujoco()
    rows = []
    for label in ("1/60",) if quick else (".001", ".01", "1/60"):
        h = STEPS[label]
        progress(f"four-bar, h = {label}")
        gap, drift = _ours(h, time)
        row = Row(f"four-bar, h = {label} s", ours=gap / CRANK, target="1e-4")
        row.values["energy drift over 10 J"] = drift / SWING
        for name in integrators:
            found = theirs(name, h, time)
            if found is None:
                row.values[f"MuJoCo {name}"] = "warns of numbers too large"
                continue
            row.values[f"MuJoCo {name}: energy drift over 10 J"] = found[1] / SWING
            if row.peer is None or found[0] / CRANK < row.peer:
                row.peer, row.peer_name = found[0] / CRANK, f"MuJoCo {name}"
        if row.peer is not None:
            row.ratio = row.peer / row.ours if row.ours else None
        rows.append(row)
    return Table(
        "constrained",
        "loops",
        "How far a four-bar comes apart",
        "gap over the crank's length, largest",
        rows,
        settings=f"Swings under gravity for {time:g} s. MuJoCo closes the loop by a soft constraint; of its "
        "integrators the one with the smallest gap counts.",
        missing=missing,
    )


def _ours(h: float, time: float) -> tuple[float, float]:
    simulation = pliant.ConstrainedSimulation(four_bar(), h)
    start, gap, drift = simulation.energy.total, 0.0, 0.0
    for _ in range(round(time / h)):
        simulation.step()
        gap = max(gap, float(simulation.violation))
        drift = max(drift, abs(simulation.energy.total - start))
    return gap, drift


def _mujoco() -> tuple[Callable[[str, float, float], tuple[float, float] | None], tuple[str, ...], list[str]]:
    """A function of integrator, step and time, the integrators, and what is missing."""
    import mujoco
    from peers import find

    adaptor, why = find("mujoco")
    text = four_bar().to_mjcf()

    def run(integrator: str, h: float, time: float) -> tuple[float, float] | None:
        model = mujoco.MjModel.from_xml_string(text)
        model.opt.timestep = h
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        data = mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        mujoco.mj_forward(model, data)
        start, gap, drift = float(data.energy.sum()), 0.0, 0.0
        for _ in range(round(time / h)):
            mujoco.mj_step(model, data)
            mujoco.mj_forward(model, data)
            gap = max(gap, float(np.linalg.norm(data.efc_pos[:3])))
            drift = max(drift, abs(float(data.energy.sum()) - start))
        return None if data.warning.number.any() else (gap, drift)

    return run, adaptor.SETTINGS if adaptor else (), [why] if why else []
