"""The suite of statics: how cost grows with the number of links, and what MuJoCo needs to come to rest there.

No peer at hand has a static solver for compliant linkages, so the peer is MuJoCo integrated to rest, at the largest
step and with the damping that were found to get it there soonest, until it agrees to a millionth of the radius.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from measure import compared, interleaved
from results import Figure, Progress, Series, Table

import pliant

SUITE = "statics"
FORCE = (0.0, 60.0, -80.0)
CALL = 10  # steps that MuJoCo takes at once, so that Python costs it nothing to speak of
mujoco.set_mju_user_warning(lambda _: None)  # settings that blow up are tried on purpose


class _ToRest:
    """MuJoCo, compiled once: only its integration is timed."""

    def __init__(self, m: pliant.Mechanism, target: np.ndarray):
        self.target, self.tolerance = target, 1e-6 * m.radius
        self.model = mujoco.MjModel.from_xml_string(m.to_mjcf())
        self.model.opt.gravity[:] = 0
        self.data = mujoco.MjData(self.model)
        self.tip = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, m.end_effectors[0])
        self.setting = "", 0.0, 0.0

    def choose(self, integrators: tuple[str, ...]) -> bool:
        """Take the setting that comes to rest in the fewest steps; False if none does."""
        found = []
        for integrator in integrators:
            for timestep in (2e-3, 5e-3, 1e-2, 3e-2):
                for relaxation in (1e-3, 5e-3, 2e-2, 1e-1):
                    self.setting = integrator, timestep, relaxation
                    steps = self.settle(2000)
                    if steps is not None:
                        found.append((steps, self.setting))
        if found:
            _, self.setting = min(found)
        return bool(found)

    def settle(self, limit: int = 100_000) -> int | None:
        """Steps from the reference pose to within a millionth of the radius of `target`; None if that fails."""
        model, data, tip = self.model, self.data, self.tip
        integrator, model.opt.timestep, relaxation = self.setting
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        model.dof_damping[:] = relaxation * 1000.0
        mujoco.mj_resetData(model, data)
        mujoco.mj_forward(model, data)
        there = 0
        for steps in range(0, limit, CALL):
            data.xfrc_applied[tip] = [*FORCE, *np.cross(data.xpos[tip] - data.xipos[tip], FORCE)]
            mujoco.mj_step(model, data, nstep=CALL)
            if any(warning.number for warning in data.warning):
                return None
            there = there + 1 if np.abs(data.xpos[tip] - self.target).max() < self.tolerance else 0
            if there == 2:  # it stays, rather than passes by
                return steps
        return None


def chains(quick: bool, progress: Progress) -> list[Table]:
    """Helices of growing length."""
    sizes = (50, 400) if quick else (50, 100, 200, 400, 800, 1600, 3200, 10_000)
    largest = 50 if quick else 200
    rows = []
    for links in sizes:
        progress(f"equilibrium of helix({links:,})")
        m = pliant.gallery.helix(links)
        tip = m.end_effectors[0]
        c = pliant.equilibrium(m, {tip: FORCE})
        peer = _ToRest(m, c.pose(tip)[:3, 3]) if links <= largest else None
        integrators = ("discrete",) if quick else ("discrete", "implicitfast", "implicit")
        rests = peer is not None and peer.choose(integrators)
        calls: dict[str, Callable[[], object]] = {
            "pliant": lambda m=m, tip=tip: pliant.equilibrium(m, {tip: FORCE})
        }
        if peer is not None and rests:
            calls["MuJoCo"] = peer.settle
        times = interleaved(calls, 3 if quick else 7)
        row = compared(
            f"helix({links:,})", times["pliant"].scaled(1e3), times["MuJoCo"].scaled(1e3) if rests else None
        )
        if peer is not None and rests:
            integrator, timestep, damping = peer.setting
            row.peer_name = (
                f"MuJoCo {integrator} to rest, {1e3 * timestep:g} ms, damping {1e3 * damping:g} N m s/rad"
            )
        elif peer is not None:
            row.stable = "MuJoCo: comes to rest at no setting tried"
        row.target = "under 100" if links == 400 else ""
        row.values = {
            "moved, of radius": float(c.displacement.max() / m.radius),
            "iterations": c.iterations,
            "residual": c.residual,
            "µs a link": 1e6 * times["pliant"].median / links,
        }
        rows.append(row)
    found = [(float(n), row.peer) for n, row in zip(sizes, rows, strict=True) if row.peer is not None]
    figure = Figure(
        "statics-scaling",
        "Equilibrium of a helix at 100 N",
        "links",
        "ms",
        [
            Series("pliant", list(map(float, sizes)), [row.ours or 0.0 for row in rows]),
            Series("MuJoCo to rest", [n for n, _ in found], [t for _, t in found], ours=False),
        ],
        log_x=True,
        log_y=True,
    )
    return [
        Table(
            SUITE,
            "equilibrium",
            "Equilibrium of a helix at 100 N",
            "ms",
            rows,
            settings="One thread, processor time. MuJoCo has no static solver: it is integrated until it is within a "
            "millionth of the radius, at the best of sixteen to forty-eight settings of integrator, step and damping, "
            f"up to {largest} links.",
            figures=[figure],
        )
    ]


def loops(quick: bool, progress: Progress) -> list[Table]:
    """Ladders with many closed loops."""
    rows = []
    for form in ("cells", "rails"):
        for rungs in (4, 16) if quick else (4, 16, 64):
            progress(f"equilibrium of ladder({rungs}, {form})")
            m = pliant.gallery.ladder(rungs, form=form)
            load = {m.end_effectors[0]: (80.0, 0, -60.0)}
            c = pliant.equilibrium(m, load)
            ours = interleaved({"": lambda m=m, load=load: pliant.equilibrium(m, load)}, 3 if quick else 7)[
                ""
            ]
            row = compared(f"ladder({rungs}, {form})", ours.scaled(1e3))
            row.values = {
                "links": m.body_count,
                "loops": m.topology.loops,
                "iterations": c.iterations,
                "closed to": float(np.abs(c.loop_residual).max()),
            }
            rows.append(row)
    missing = ["no peer: MuJoCo's loops are soft constraints, which close to no such bound"]
    return [Table(SUITE, "equilibrium-loops", "Equilibrium with closed loops", "ms", rows, missing=missing)]


PARTS = (chains, loops)
