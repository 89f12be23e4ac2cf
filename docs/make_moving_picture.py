"""Make the moving picture of README.md anew: python docs/make_moving_picture.py [cassie.xml]

Someone pulls a foot of Cassie, a walking robot with four closed loops, and lets go. The file is `agility_cassie` of
MuJoCo Menagerie; without an argument it is looked for where the tests look, in ../shared/models.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import NDArray
from PIL import Image

import pliant
from pliant.viewer.meshes import Triangles
from pliant.viewer.picture import Bounds, Camera, fit_axes, paint_faces, shade_faces

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT.parent / "shared" / "models" / "agility_cassie" / "cassie.xml"
OUT = ROOT / "docs" / "moving" / "pull.gif"
FOOT, FORCE = "left-foot", np.array([45.0, 0.0, 0.0])  # N
STIFFNESS, DAMPING = 150.0, 0.02  # PD control of hips and knees: N m/rad, and s: damping over stiffness
PULL, HOLD, RING = 0.6, 1.4, 2.8  # s: the force grows, is held, is gone
STEP, EVERY, REST = 1 / 250, 15, 4  # s a time step, steps a frame, frames at rest in the beginning
SIZE, DPI, COLOURS = (660, 400), 100, 48
VIEW = (8, -68)
RED, BLUE, GREY = "#c62828", "#2f6fb7", "#5a5f66"
TINT = np.array([0.58, 0.76, 1.0])  # of the leg that is pulled
ARROW = 0.006  # m/N
CURSOR = np.array([(0, 0), (0, -17), (4, -13), (7, -19.5), (9.6, -18.2), (6.6, -12), (12, -12)])  # pixels

Floats = NDArray[np.float64]


def robot(path: Path) -> pliant.Mechanism:
    """Cassie on a stand, its hips and knees under PD control about the pose "home"; its leaf springs are the file's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a simulation of compliance does without
        m = pliant.load(path, keyframe="home").with_fixed_base()
    before = m.stiffness
    for joints, gain in {
        "*-hip-*": STIFFNESS,
        "*-knee": STIFFNESS,
        "left-foot": 40.0,
        "right-foot": 40.0,
    }.items():
        m = m.with_stiffness(joints, gain)
    driven = np.flatnonzero(m.stiffness != before)
    damping = m.damping.copy()
    damping[driven] = np.maximum(damping[driven], DAMPING * m.stiffness[driven])
    m = m.replace(damping=damping)
    m = m.with_rest([m.dof_names[d] for d in driven], m.reference[m.dof_coordinate[driven]])
    return m.with_stiffness("*-achilles-rod", 1.0)  # or the rods would turn freely about their own axes


def motion(m: pliant.Mechanism) -> tuple[Floats, Floats, list[Floats]]:
    """Time, force and poses of all links, frame by frame."""
    simulation = pliant.ConstrainedSimulation(m, STEP, gravity=(0, 0, 0))
    times, sizes, poses = [0.0] * REST, [0.0] * REST, [simulation.poses] * REST
    while simulation.time < PULL + HOLD + RING:
        for _ in range(EVERY):
            share = min(1.0, simulation.time / PULL) * (simulation.time < PULL + HOLD)
            simulation.apply_wrench(FOOT, force=share * FORCE)
            simulation.step()
        times.append(simulation.time)
        sizes.append(share)
        poses.append(simulation.poses)
    return np.array(times), np.array(sizes), poses


class Film:
    """Draws frames: the robot on the left, how far its foot moves on the right."""

    def __init__(self, m: pliant.Mechanism):
        self.m, self.camera, self.foot = m, Camera.at(*VIEW), m.body_index(FOOT)
        self.times, self.sizes, self.poses = motion(m)
        self.moved = np.array([1000 * self.along(poses) for poses in self.poses])
        found = pliant.equilibrium(m, {FOOT: FORCE}, gravity=(0, 0, 0))
        self.settled = 1000 * self.along(found.poses)
        self.frequency = _frequency(self.times, self.moved, PULL + HOLD)
        self.pale = shade_faces(m, m.reference_poses, self.camera)
        self.pale.rgba[:, :3] = 0.9
        self.bounds = Bounds()
        for poses in self.poses[::3]:
            self.bounds.add(self.faces(poses).corners)
        self.bounds.add(self.camera(found.poses[self.foot, :3, 3] + ARROW * FORCE))

    def faces(self, poses: Floats) -> Triangles:
        """Shaded faces of the robot, those of the pulled leg tinted."""
        found = shade_faces(self.m, poses, self.camera)
        leg = np.array([name.startswith("left") for name in (*self.m.body_names, "world")])
        found.rgba[leg[found.body], :3] *= TINT
        return found

    def along(self, poses: Floats) -> float:
        """Displacement of the foot along the force, m."""
        moved = poses[self.foot, :3, 3] - self.m.reference_poses[self.foot, :3, 3]
        return float(moved @ FORCE / np.linalg.norm(FORCE))

    def draw(self, i: int) -> Image.Image:
        figure = Figure(figsize=(SIZE[0] / DPI, SIZE[1] / DPI), dpi=DPI)
        canvas = FigureCanvasAgg(figure)
        self._robot(figure.add_axes((0.0, 0.0, 0.56, 0.9)), i)
        self._curve(figure.add_axes((0.65, 0.14, 0.33, 0.7)), i)
        figure.text(0.02, 0.94, "Cassie: 25 bodies, 4 closed loops", fontsize=11, color="#222222")
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())

    def _robot(self, axes: Any, i: int) -> None:
        low, high, inches = fit_axes(axes, self.bounds)
        paint_faces(axes, [self.pale, self.faces(self.poses[i])], low, high, inches)
        place = self.poses[i][self.foot, :3, 3]
        start = self.camera(place)[:2]
        head = self.camera(place + ARROW * self.sizes[i] * FORCE)[:2]
        pixel = float(high[0] - low[0]) / (DPI * inches[0])
        if self.sizes[i] > 0:
            style = {"arrowstyle": "-|>", "color": RED, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", head, start, zorder=6, arrowprops={**style, "mutation_scale": 14})
            label = f"{self.sizes[i] * np.linalg.norm(FORCE):.0f} N"
            axes.annotate(
                label, (start + head) / 2, (0, 7), textcoords="offset points", color=RED, ha="center"
            )
        gone = self.times[i] >= PULL + HOLD and self.sizes[i] == 0
        if gone:  # the hand stays where it let go
            head = self.camera(self.poses[self._last][self.foot, :3, 3] + ARROW * FORCE)[:2]
        axes.add_patch(
            Polygon(
                head + pixel * CURSOR, facecolor="white" if gone else "black", edgecolor="black", zorder=8
            )
        )

    @property
    def _last(self) -> int:
        return int(np.flatnonzero(self.sizes)[-1])

    def _curve(self, axes: Any, i: int) -> None:
        end = float(self.times[-1])
        axes.set_xlim(0, end)
        axes.set_ylim(1.15 * self.moved.min(), 1.3 * self.moved.max())
        axes.axhline(0, color="#cccccc", linewidth=0.8)
        axes.plot([0, PULL + HOLD], [self.settled] * 2, color=GREY, linewidth=1, dashes=(4, 3))
        axes.text(0.1, 1.1 * self.settled, f"settles at {self.settled:.0f} mm", fontsize=9, color=GREY)
        axes.plot(self.times[: i + 1], self.moved[: i + 1], color=BLUE, linewidth=1.8)
        axes.plot(self.times[i], self.moved[i], "o", color=BLUE, markersize=4)
        if self.times[i] > PULL + HOLD:
            axes.text(
                end,
                0.7 * self.settled,
                f"rings at {self.frequency:.1f} Hz",
                color=BLUE,
                ha="right",
                fontsize=9,
            )
        axes.set_title("foot, mm", fontsize=9, loc="left", color=GREY)
        axes.set_xlabel("s", fontsize=9, color=GREY, labelpad=1)
        axes.tick_params(labelsize=8, colors=GREY, length=3)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("bottom", "left"):
            axes.spines[side].set_color("#bbbbbb")


def _frequency(times: Floats, moved: Floats, since: float) -> float:
    """Of a ringing, Hz, from where it passes zero."""
    t, x = times[times >= since], moved[times >= since]
    at = np.flatnonzero(np.sign(x[1:]) != np.sign(x[:-1]))
    zeros = t[at] - x[at] * (t[at + 1] - t[at]) / (x[at + 1] - x[at])
    return float((len(zeros) - 1) / (zeros[-1] - zeros[0]) / 2)


def save(frames: list[Image.Image], path: Path) -> None:
    """Write a GIF: one palette for all frames, so that what does not move does not flicker and takes no room."""
    shown = frames[:: max(1, len(frames) // 8)]
    sheet = Image.new("RGB", (SIZE[0], SIZE[1] * len(shown) + 60))
    for k, picture in enumerate(shown):
        sheet.paste(picture, (0, SIZE[1] * k))
    sheet.paste(RED, (0, SIZE[1] * len(shown), SIZE[0], sheet.height))  # rare, but to be kept
    palette = sheet.quantize(COLOURS, method=Image.Quantize.MEDIANCUT)
    flat = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in frames]
    table = np.reshape(flat[0].getpalette() or [], (-1, 3))
    table[flat[0].getpixel((0, 0))] = 255  # the background is white, not nearly so  # pyright: ignore[reportArgumentType, reportCallIssue]
    for picture in flat:
        picture.putpalette(table.ravel().tolist())
    flat[0].save(
        path,
        save_all=True,
        append_images=flat[1:],
        duration=round(1000 * STEP * EVERY),
        loop=0,
        optimize=False,
    )


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else MODEL
    if not given.is_file():
        sys.exit(f"no file '{given}': name cassie.xml of MuJoCo Menagerie's agility_cassie")
    film = Film(robot(given))
    save([film.draw(i) for i in range(len(film.times))], OUT)
    print(f"{len(film.times)} frames, {OUT.stat().st_size / 1e6:.2f} MB: {OUT}")
