"""What moves when one bond of a molecule of 50,000 joints is pulled? As many joints as the tolerance asks for."""

from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

from pliant import scenes

OUT = Path("out")
STEPS = 50
CHAIN_STEPS = 10_000  # as in RL05
TOLERANCES = tuple(2.0**-power for power in (1, 3, 5, 7, 11, 15, 19))


def molecule() -> None:
    """Joints, time and error for several tolerances, beside the solution of all joints."""
    scene = scenes.molecule()
    m = scene.mechanism
    exact = scene.simulate(tolerance=2.0**-40)
    start = exact.poses[:, :3, 3].copy()
    exact.step(STEPS)
    moved = exact.poses[:, :3, 3] - start
    size = np.linalg.norm(moved, axis=1)
    print(f"{m.name}: {m.joint_count} joints, one force, {STEPS} steps")
    print("tolerance   joints   time of a step   error of displacements")
    rows, patches = [], {}
    for tolerance in TOLERANCES:
        simulation = scene.simulate(tolerance=tolerance)
        simulation.refine()
        began = perf_counter()
        simulation.step(STEPS)
        took = (perf_counter() - began) / STEPS
        error = np.linalg.norm(simulation.poses[:, :3, 3] - start - moved, axis=1).max() / size.max()
        rows.append((tolerance, len(simulation.active), error))
        patches[tolerance] = [m.body_index(name) for name in simulation.active]
        print(f"{tolerance:9.1e} {len(simulation.active):8} {1e6 * took:13.0f} µs {error:24.0e}")
    draw(start, size, patches, np.array(rows))


def places() -> None:
    """Joints for displacements within a bound that is guaranteed, of all bodies and of the bond at the end."""
    scene = scenes.molecule()
    exact = scene.simulate(tolerance=2.0**-40)
    start = exact.poses[:, :3, 3].copy()
    exact.step()
    largest = np.linalg.norm(exact.poses[:, :3, 3] - start, axis=1).max()
    print("guaranteed error of places   joints, all bodies   joints, one end")
    for part in (1e-1, 1e-2, 1e-4):
        counts = []
        for bodies in (None, scene.mechanism.end_effectors[:1]):
            simulation = scene.simulate(tolerance=part * largest, measure="world", bodies=bodies)
            simulation.refine()
            counts.append(len(simulation.active))
        print(f"{part:26.0e} {counts[0]:20} {counts[1]:17}")


def draw(at: np.ndarray, size: np.ndarray, patches: dict[float, list[int]], rows: np.ndarray) -> None:
    """The molecule with the joints that moved, and how errors fall with tolerances."""
    figure = Figure(figsize=(12, 5), dpi=90)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    left.scatter(at[:, 0], at[:, 2], s=0.4, c="#c9ced6", linewidths=0)
    for tolerance, colour in ((2.0**-19, "#3566c4"), (2.0**-7, "#2a9d8f"), (2.0**-3, "#d9822b")):
        chosen = patches[tolerance]
        left.scatter(
            at[chosen, 0],
            at[chosen, 2],
            s=14,
            c=colour,
            linewidths=0,
            label=f"{len(chosen)} at {tolerance:.0e}",
        )
    left.set_aspect("equal")
    left.set_title("50,000 joints: those computed", fontsize=10)
    left.legend(frameon=False, title="joints, tolerance", fontsize=9)
    left.set_xlabel("x (m)")
    left.set_ylabel("z (m)")
    right.loglog(rows[:, 0], rows[:, 2], "o-", color="#222222", markersize=4)
    right.invert_xaxis()
    right.set_xlabel("tolerance of joint accelerations")
    right.set_ylabel("relative error of displacements")
    right.set_title(f"after {STEPS} steps", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "pulled.png")


def chain() -> None:
    """RL05's bicycle chain: of so few joints all are computed, by the articulated-body algorithm."""
    scene = scenes.bicycle_chain()
    simulation, end = scene.simulate(), scene.mechanism.body_names[-1]
    start, began = simulation.pose(end)[:3, 3], perf_counter()
    simulation.step(CHAIN_STEPS)
    took = perf_counter() - began
    moved = np.linalg.norm(simulation.pose(end)[:3, 3] - start)
    print(
        f"{scene.mechanism.name}: {CHAIN_STEPS} steps in {took:.2f} s, its end has moved by {1e3 * moved:.1f} mm"
    )


def main() -> None:
    OUT.mkdir(exist_ok=True)
    molecule()
    places()
    chain()
    print(f"The picture is {OUT / 'pulled.png'}.")


if __name__ == "__main__":
    main()
