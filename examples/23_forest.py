"""A thousand plants in wind, each as exact as an image shows: an error of at most one pixel, near and far."""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
PLANTS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
PIXELS, FRAMES, FRAME = 1.0, 60, 1 / 30  # allowed error, frames, s
CALM, GUST, FRONT, WIDTH = 3.0, 11.0, 6.0, 5.0  # m/s, m/s, m/s, m: wind, its gusts, the fronts of these
DRAG = 0.5 * 1.2 * 0.25 / 6  # N s²/m²: a sixth of a crown of 0.25 m²
SETTLED = 10.0  # s: a step so long that springs and wind balance
WIND_SHARE = 0.5  # of the allowed error: how far the wind on a plant may be off, the rest is the engine's


def wind(places: np.ndarray, time: float) -> np.ndarray:
    """Force of the wind on a part of a crown, N, along x: fronts 60 m apart that run over the meadow."""
    phase = (places[:, 0] - FRONT * time + 4 * np.sin(places[:, 1] / 9)) % 60 - 30
    return DRAG * (CALM + (GUST - CALM) * np.exp(-((phase / WIDTH) ** 2))) ** 2


class Group:
    """Plants of about the same distance, with one allowed error, m."""

    def __init__(self, numbers: list[int], error: float):
        self.error, self.mechanism = error, pliant.gallery.forest(PLANTS, only=numbers)
        m = self.mechanism
        self.numbers, self.roots = numbers, m.reference_poses[:: m.body_count // len(numbers), :3, 3]
        crown = [name for name in m.body_names if name.endswith(("trunk6", "_3"))]
        self.crowns = np.array(crown).reshape(len(numbers), -1).tolist()
        self.simulation = self.simulate((1 - WIND_SHARE) * error)
        self.force, self.computed = np.zeros(len(numbers)), np.zeros(len(numbers), dtype=int)  # N, frames
        # What a newton moves, from a simulation with a small force on all crowns.
        probe = self.simulate(1e-9)
        self.blow(probe, range(len(numbers)), np.full(len(numbers), 0.01))
        probe.step()
        moved = np.linalg.norm(probe.poses[:, :3, 3] - m.reference_poses[:, :3, 3], axis=1)
        self.compliance = moved.reshape(len(numbers), -1).max(axis=1) / 0.01

    def simulate(self, tolerance: float) -> pliant.QuasistaticSimulation:
        return pliant.QuasistaticSimulation(
            self.mechanism, SETTLED, gravity=(0, 0, 0), tolerance=tolerance, measure="world"
        )

    def blow(self, simulation: pliant.QuasistaticSimulation, plants, force: np.ndarray) -> None:
        """Forces on the crowns of some plants."""
        for i in plants:
            for name in self.crowns[i]:
                simulation.apply_wrench(name, force=(float(force[i]), 0.0, 0.0))

    def step(self, time: float) -> float:
        """Go on to the wind of a time, where it has changed enough to be seen; returns the seconds that it took."""
        began = perf_counter()
        force = wind(self.roots, time)
        changed = np.flatnonzero(self.compliance * np.abs(force - self.force) > WIND_SHARE * self.error)
        self.force[changed] = force[changed]
        self.blow(self.simulation, changed.tolist(), force)
        self.simulation.step()
        return perf_counter() - began

    def active(self) -> np.ndarray:
        """Numbers of the joints that were computed last; every joint has the number of its link."""
        return np.array([self.mechanism.joint_index(name) for name in self.simulation.active], dtype=int)


def grouped(camera: pliant.Camera) -> list[Group]:
    """Plants in groups of like allowed error, from one octave to the next."""
    whole = pliant.gallery.forest(PLANTS)
    roots = whole.reference_poses[[whole.body_index(f"plant{i + 1}_trunk1") for i in range(PLANTS)], :3, 3]
    allowed = camera.metres(roots + np.array([0, 0, 1.0]), PIXELS, radius=1.4)  # all of a plant
    octave = np.floor(np.log2(allowed / allowed.min())).astype(int)
    return [
        Group((np.flatnonzero(octave == k) + 1).tolist(), float(allowed[octave == k].min()))
        for k in np.unique(octave)
    ]


def main() -> None:
    OUT.mkdir(exist_ok=True)
    camera = pliant.Camera((-34, -3, 7), target=(-6, 0, 0), fov=0.6, height=720)
    groups = grouped(camera)
    exact = [Group(group.numbers, 1e-9) for group in groups]
    print(
        f"{PLANTS} plants, {sum(g.mechanism.joint_count for g in groups)} joints, at most {PIXELS:g} pixel off"
    )
    worst = np.zeros(len(groups))
    computed = np.zeros((FRAMES, len(groups)), dtype=int)
    took = np.zeros((2, len(groups)))
    for frame in range(FRAMES):
        for k, (group, truth) in enumerate(zip(groups, exact, strict=True)):
            took[0, k] += group.step(FRAME * frame)
            took[1, k] += truth.step(FRAME * frame)
            active = group.active()
            computed[frame, k] = len(active)
            group.computed[np.unique(active // (group.mechanism.joint_count // len(group.numbers)))] += 1
            seen, right = (camera.project(g.simulation.poses[:, :3, 3]) for g in (group, truth))
            worst[k] = max(worst[k], np.linalg.norm(seen - right, axis=1).max())
    print("error allowed   plants   joints   computed on average   of the time   worst error")
    for k, group in enumerate(groups):
        m = group.mechanism
        print(
            f"{1000 * group.error:10.1f} mm {len(m.end_effectors):8} {m.joint_count:8}"
            f" {computed[:, k].mean():21.0f} {100 * took[0, k] / took[1, k]:11.0f} % {worst[k]:10.2f} px"
        )
    print(
        f"all: {100 * computed.sum() / FRAMES / sum(g.mechanism.joint_count for g in groups):.0f} % of the joints"
    )
    assert worst.max() < PIXELS
    draw(camera, groups)
    print(f"The picture is {OUT / 'forest.png'}.")


def draw(camera: pliant.Camera, groups: list[Group]) -> None:
    """The meadow from above, and the image of the camera with the links whose joints were computed last."""
    figure = Figure(figsize=(13, 5), dpi=100)
    above, image = figure.subplots(1, 2, width_ratios=(2, 3))
    roots = np.concatenate([group.roots for group in groups])
    share = 100 * np.concatenate([group.computed for group in groups]) / FRAMES
    dots = above.scatter(roots[:, 0], roots[:, 1], c=share, s=9, cmap="YlOrBr", vmin=-10, vmax=100)
    figure.colorbar(dots, ax=above, label="frames in which the plant was computed (%)")
    above.plot(*camera.position[:2], "k>", markersize=7)
    above.annotate("camera", camera.position[:2], (0, 8), textcoords="offset points", ha="center", fontsize=8)
    above.set_aspect("equal")
    above.set_xlabel("x, the way of the wind (m)")
    above.set_ylabel("y (m)")
    above.spines[["top", "right"]].set_visible(False)

    width, height = camera.size
    image.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    image.set_title("orange: computed in the last frame", fontsize=10)
    for group in reversed(groups):
        poses, size, active = group.simulation.poses, group.mechanism.shape_table.size, group.active()
        half = poses[:, :3, 2] * size[:, 1, None]
        ends = np.stack([poses[:, :3, 3] - half, poses[:, :3, 3] + half], axis=1)
        depth = (poses[:, :3, 3] - camera.position) @ camera.axes[2]
        thick = np.maximum(400 * camera.focal / height * size[:, 0] / np.maximum(depth, 1), 0.1)
        for these, colour in (
            (np.setdiff1d(np.arange(len(poses)), active), "#a3b18a"), (active, "#c4552d"),
        ):  # fmt: skip
            lines = list(camera.project(ends[these]))
            image.add_collection(LineCollection(lines, colors=colour, linewidths=thick[these].tolist()))
    figure.tight_layout()
    figure.savefig(OUT / "forest.png")


if __name__ == "__main__":
    main()
