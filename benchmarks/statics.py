"""Equilibrium: how cost grows with the number of links, and what MuJoCo needs to come to rest at the same pose.

No peer at hand has a static solver for compliant linkages, so the peer is MuJoCo integrated to rest, at the largest
step and with the damping that were found to get it there soonest, until it agrees to a millionth of the radius.
"""

from __future__ import annotations

import mujoco
import numpy as np
from measure import interleaved, show

import pliant

FORCE = (0.0, 60.0, -80.0)
mujoco.set_mju_user_warning(lambda _: None)  # settings that blow up are tried on purpose


class _Peer:
    """MuJoCo, compiled once: only its integration is timed."""

    def __init__(self, m: pliant.Mechanism, target: np.ndarray):
        self.target, self.tolerance = target, 1e-6 * m.radius
        self.model = mujoco.MjModel.from_xml_string(m.to_mjcf())
        self.model.opt.gravity[:] = 0
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICIT
        self.data = mujoco.MjData(self.model)
        self.tip = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, m.end_effectors[0])
        found = []
        for timestep in (2e-3, 5e-3, 1e-2, 3e-2):
            for relaxation in (1e-3, 5e-3, 2e-2, 1e-1):
                self.setting = timestep, relaxation
                steps = self.settle(2000)
                if steps is not None:
                    found.append((steps, self.setting))
        _, self.setting = min(found)

    def settle(self, limit: int = 100_000) -> int | None:
        """Steps from the reference pose to within a millionth of the radius of `target`; None if that fails."""
        model, data, tip = self.model, self.data, self.tip
        model.opt.timestep, relaxation = self.setting
        model.dof_damping[:] = relaxation * 1000.0
        mujoco.mj_resetData(model, data)
        mujoco.mj_forward(model, data)
        for step in range(limit):
            data.xfrc_applied[tip] = [*FORCE, *np.cross(data.xpos[tip] - data.xipos[tip], FORCE)]
            mujoco.mj_step(model, data)
            if step % 20 == 0 and np.abs(data.xpos[tip] - self.target).max() < self.tolerance:
                return step
        return None


def run() -> list[dict[str, float]]:
    """Medians in one interleaved run."""
    results = []
    for links in (50, 100, 200, 400, 800, 1600, 3200):
        m = pliant.gallery.helix(links)
        tip = m.end_effectors[0]
        c = pliant.equilibrium(m, {tip: FORCE})
        contenders = {"pliant": lambda m=m, tip=tip: pliant.equilibrium(m, {tip: FORCE})}
        if links <= 200:
            contenders["MuJoCo to rest"] = _Peer(m, c.pose(tip)[:3, 3]).settle
        times = interleaved(contenders)
        results.append(
            {
                "links": links,
                "iterations": c.iterations,
                "residual": c.residual or 0.0,
                "moved": float(c.displacement.max() / m.radius),
                **times,
            }
        )
    rows = []
    for r in results:
        peer = r.get("MuJoCo to rest")
        rows.append(
            [
                int(r["links"]),
                f"{r['moved']:.3f}",
                int(r["iterations"]),
                f"{r['residual']:.1e}",
                f"{1e3 * r['pliant']:.2f}",
                f"{1e6 * r['pliant'] / r['links']:.1f}",
                "-" if peer is None else f"{1e3 * peer:.0f}",
                "-" if peer is None else f"{peer / r['pliant']:.0f}x",
            ]
        )
    show(
        "equilibrium of helix(links) at 100 N",
        [
            "links",
            "moved / radius",
            "iterations",
            "residual",
            "ms",
            "us per link",
            "MuJoCo to rest, ms",
            "ratio",
        ],
        rows,
    )
    rows = []
    for form in ("cells", "rails"):
        for rungs in (4, 16, 64):
            m = pliant.gallery.ladder(rungs, form=form)
            load = {m.end_effectors[0]: (80.0, 0, -60.0)}
            c = pliant.equilibrium(m, load)
            seconds = interleaved({"pliant": lambda m=m, load=load: pliant.equilibrium(m, load)})["pliant"]
            gap = float(np.abs(c.loop_residual).max())
            rows.append(
                [
                    f"ladder({rungs}, {form})",
                    m.body_count,
                    m.topology.loops,
                    c.iterations,
                    f"{gap:.1e}",
                    f"{1e3 * seconds:.1f}",
                ]
            )
            results.append({"ladder": rungs, "form": form, "pliant": seconds, "gap": gap})
    show("closed loops", ["mechanism", "links", "loops", "iterations", "loops closed to", "ms"], rows)
    return results
