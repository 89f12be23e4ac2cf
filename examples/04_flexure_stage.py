"""The stiffness of a parallel-guiding flexure: a force sweep beside the formulas of small deflections.

The stage stands on two steel blades, modelled as pseudo-rigid bodies: a stiff link between two torsion springs.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant
from pliant.viewer import draw

OUT = Path("out")
# The blades of `gallery.flexure_stage`: length, width, thickness (m), Young's modulus (Pa).
L, WIDTH, THICKNESS, E = 0.050, 0.010, 0.0005, 207e9
GAMMA, K_THETA = 0.8517, 2.65  # Howell's fixed-guided beam: rigid length over L, stiffness coefficient
I = WIDTH * THICKNESS**3 / 12


def main() -> None:
    OUT.mkdir(exist_ok=True)
    stage = pliant.gallery.flexure_stage()
    forces = np.linspace(0, 60, 25)
    travel, drop, state = [], [], pliant.equilibrium(stage)
    for force in forces:  # each equilibrium starts from the one before
        state = pliant.equilibrium(stage, {"stage": (force, 0, 0)}, start=state)
        dx, _, dz = state.pose("stage")[:3, 3] - stage.reference_poses[stage.body_index("stage"), :3, 3]
        travel.append(dx)
        drop.append(dz)
    small = pliant.equilibrium(stage, {"stage": (0.01, 0, 0)}).displacement[stage.body_index("stage")]
    # Four torsion springs of 2 γ K E I / L on links of γ L; and two fixed-guided Euler beams.
    prbm = 4 * (2 * GAMMA * K_THETA * E * I / L) / (GAMMA * L) ** 2
    beam = 24 * E * I / L**3
    print(f"stiffness for small loads   {0.01 / small / 1000:8.4f} N/mm")
    print(f"pseudo-rigid-body formula   {prbm / 1000:8.4f} N/mm")
    print(f"Euler beams, 24 E I / L^3   {beam / 1000:8.4f} N/mm")
    print(f"at {forces[-1]:.0f} N: {1000 * travel[-1]:.2f} mm along x, {-1000 * drop[-1]:.2f} mm down, "
          f"stiffness {forces[-1] / travel[-1] / 1000:.2f} N/mm")  # fmt: skip

    figure = Figure(figsize=(10, 4.2), dpi=120)
    draw(state, figure.add_subplot(1, 2, 1), view=(10, -75), title="60 N on the stage")
    axes = figure.add_subplot(1, 2, 2, xlabel="travel along x (mm)", ylabel="force (N)")
    axes.plot(1000 * np.array(travel), forces, color="#3566c4", label="equilibria")
    axes.plot(1000 * forces / prbm, forces, "--", color="#888888", linewidth=1, label="small deflections")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "flexure.png")
    print(f"The picture is {OUT / 'flexure.png'}.")


if __name__ == "__main__":
    main()
