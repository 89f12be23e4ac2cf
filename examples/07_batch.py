"""A thousand hands with random forces on their fingertips: where they go, beside what compliance predicts."""

import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import pliant

OUT = Path("out")
COPIES, STEPS, STEP = 1000, 300, 1 / 200  # seconds
SPREAD = 1.0  # newtons: standard deviation of each component of each force
COLOURS = "#3566c4", "#d9822b", "#3a9a4c", "#8e44ad", "#c0392b"


def main() -> None:
    OUT.mkdir(exist_ok=True)
    model = pliant.reduce(pliant.gallery.hand())
    batch = pliant.ReducedBatch(model, STEP, COPIES)
    random = np.random.default_rng(0)
    for finger in model.end_effectors:
        batch.apply_wrench(finger, force=random.normal(0, SPREAD, (COPIES, 3)))
    batch.step()  # compiles the kernels, or loads them
    start = time.perf_counter()
    batch.step(STEPS)
    spent = time.perf_counter() - start
    print(f"{COPIES} hands, {STEPS} steps each, all {model.mechanism.body_count} poses of each: "
          f"{COPIES * STEPS / spent:,.0f} steps/s\n")  # fmt: skip

    # Forces of covariance s² I on all fingertips give displacements of covariance s² F F^T, with F the columns of the
    # compliance that belong to forces: no samples needed. The samples also see fingers turn under the forces.
    forces = np.tile([True] * 3 + [False] * 3, len(model.end_effectors))
    predicted = SPREAD**2 * model.compliance[:, forces] @ model.compliance[:, forces].T
    figure = Figure(figsize=(10, 6.4), dpi=120)
    cloud, reach = figure.subplots(2, 1, height_ratios=(1, 1.5))
    cloud.set(xlabel="y (mm)", ylabel="z (mm)", aspect="equal")
    reach.set(xlabel="moved (mm)", ylabel="hands that moved no further (%)", ylim=(0, 100))
    print("standard deviation along y and z, mm      sampled         predicted    95 % stay within")
    for e, (finger, colour) in enumerate(zip(model.end_effectors, COLOURS, strict=True)):
        rest = model.at.pose(finger)
        places = batch.pose(finger)[:, :3, 3]
        moved = np.sort(np.linalg.norm(places - rest[:3, 3], axis=1))
        block = predicted[6 * e : 6 * e + 3, 6 * e : 6 * e + 3]  # in the fingertip's axes
        covariance = (rest[:3, :3] @ block @ rest[:3, :3].T)[1:, 1:]
        seen, expected = 1000 * places[:, 1:].std(axis=0), 1000 * np.sqrt(np.diag(covariance))
        print(f"  {finger:38} {seen[0]:5.2f}  {seen[1]:5.2f}     {expected[0]:5.2f}  {expected[1]:5.2f}"
              f"     {1000 * moved[int(0.95 * COPIES)]:7.2f} mm")  # fmt: skip
        cloud.scatter(*(1000 * places[:, 1:].T), s=2, alpha=0.35, color=colour, linewidths=0)
        values, axes = np.linalg.eigh(covariance)
        width, height = 2 * 1000 * 2 * np.sqrt(values)  # two standard deviations to either side
        angle = np.degrees(np.arctan2(axes[1, 0], axes[0, 0]))
        y, z = 1000 * rest[1:3, 3]
        cloud.add_patch(Ellipse((y, z), width, height, angle=angle, fill=False, color="#222222", lw=0.9))
        reach.plot(1000 * moved, 100 * np.arange(1, COPIES + 1) / COPIES, color=colour,
                   label=finger.replace("_tip", ""))  # fmt: skip
    cloud.set_title(
        f"fingertips of {COPIES} hands under random forces, {SPREAD:g} N in each direction; "
        "ellipses: two standard deviations, by compliance alone",
        fontsize=10,
    )
    reach.set_xlim(left=0)
    reach.legend(frameon=False, loc="lower right")
    for axes in (cloud, reach):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "batch.png")
    print(f"\nThe picture is {OUT / 'batch.png'}.")


if __name__ == "__main__":
    main()
