"""Many equilibria at once: how stiff a gripper's pad is, over a grid of forces in its plane."""

import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
SIDE, LARGEST = 41, 30.0  # forces along each side of the grid; the largest, N


def main() -> None:
    gripper = pliant.gallery.gripper()
    pad = "left_pad"
    sizes = np.linspace(-LARGEST, LARGEST, SIDE)
    x, z = np.meshgrid(sizes, sizes)
    x[1::2] = x[1::2, ::-1]  # back and forth: every force is near the one before it
    forces = np.stack([x.ravel(), np.zeros(x.size), z.ravel()], axis=1)

    pliant.equilibria(gripper, {pad: forces[:1]})  # compiles the kernels, or loads them
    begin = time.perf_counter()
    found = pliant.equilibria(gripper, {pad: forces}, gravity=(0, 0, -9.81))
    seconds = time.perf_counter() - begin
    print(f"{len(found)} load cases in {seconds:.3f} s, {int(found.converged.sum())} with an equilibrium")
    print(
        f"largest residual {found.residual.max():.1e} of the load, {found.iterations.mean():.1f} iterations each"
    )

    moved = np.linalg.norm(
        found.poses(pad)[:, :3, 3] - gripper.reference_poses[gripper.body_index(pad), :3, 3], axis=1
    )
    worst = int(moved.argmax())
    print(f"the pad moves by up to {1e3 * moved[worst]:.1f} mm, under {forces[worst].round(1)} N")
    print(found.configuration(worst).summary())

    grid = moved.reshape(SIDE, SIDE)
    grid[1::2] = grid[1::2, ::-1]
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    shades = axes.pcolormesh(sizes, sizes, 1e3 * grid, shading="nearest")
    figure.colorbar(shades, label="displacement of the pad (mm)")
    axes.set_xlabel("force along x (N)")
    axes.set_ylabel("force along z (N)")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "many_equilibria.png", dpi=150)


if __name__ == "__main__":
    main()
