"""What a picture is made of: projection, shaded faces, lines, marks, arrows, scale.

Everything is projected in parallel, so that lengths compare, onto ordinary two-dimensional matplotlib axes. Faces go
through a depth buffer: matplotlib's own 3-D axes sort whole faces, which goes wrong wherever bodies meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism import Mechanism
from pliant.viewer.triangles import Triangles, triangulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HUGE", "Bounds", "Camera", "arrows", "bar", "faces", "frame", "lines", "marks", "paint", "triad"]

Floats = NDArray[np.float64]

HUGE = 1500  # bodies: beyond this, lines instead of shapes
_FEW = 100  # joints: up to this, their anchors are marked
_OUTLINE = 0.65  # brightness of the line around every body
_LIGHT = np.array([-0.35, 0.55, 0.76])  # right, up, towards the viewer
_FORCE, _ANCHOR, _LOOP, _EFFECTOR = "#c62828", "#30343a", "#8e24aa", "#111111"
_AXES = (("x", "#d14a3f"), ("y", "#3a9a4c"), ("z", "#3566c4"))


@dataclass
class Camera:
    """Rows: right, up, towards the viewer."""

    rows: Floats

    @staticmethod
    def at(elevation: float, azimuth: float) -> Camera:
        """The camera at these angles, degrees."""
        (c, s), (x, y) = ((np.cos(angle), np.sin(angle)) for angle in np.radians([elevation, azimuth]))
        towards, right = np.array([c * x, c * y, s]), np.array([-y, x, 0.0])
        return Camera(np.stack([right, np.cross(towards, right), towards]))

    def __call__(self, points: Floats) -> Floats:
        """Right, up and depth of points (..., 3)."""
        return points @ self.rows.T


class Bounds:
    """The part of the picture's plane that must be seen."""

    def __init__(self) -> None:
        self.low, self.high = np.full(2, np.inf), np.full(2, -np.inf)

    def add(self, points: Floats) -> None:
        """Include points (..., 2 or more)."""
        if points.size:
            flat = points[..., :2].reshape(-1, 2)
            self.low = np.minimum(self.low, flat.min(axis=0))
            self.high = np.maximum(self.high, flat.max(axis=0))

    @property
    def size(self) -> float:
        """Width or height, whichever is larger."""
        extent = float((self.high - self.low).max())
        return extent if np.isfinite(extent) and extent > 0 else 1.0


def faces(m: Mechanism, poses: Floats, camera: Camera, unlike: Floats | None = None) -> Triangles:
    """Faces that look at the camera, shaded, in its axes; with `unlike`, only those of bodies that moved from there."""
    t = triangulate(m, poses, reach=1.2 * m.radius)
    if unlike is not None:
        still = np.abs(poses - unlike).reshape(len(poses), -1).max(axis=1) < 1e-3 * min(1.0, m.radius)
        t = t.only(~np.append(still, True)[t.body])
    t.corners = camera(t.corners)
    normal = np.cross(t.corners[:, 1] - t.corners[:, 0], t.corners[:, 2] - t.corners[:, 0])
    length = np.linalg.norm(normal, axis=1)
    normal /= np.where(length > 0, length, 1.0)[:, None]
    normal[(normal[:, 2] < 0) & t.two_sided] *= -1
    light = np.clip(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0.0, 1.0)[:, None]
    lifted = 0.10 + 0.90 * t.rgba[:, :3]  # or black robots would have no form
    t.rgba[:, :3] = np.clip(lifted * (0.55 + 0.5 * light) + 0.12 * light**12, 0.0, 1.0)
    return t.only((normal[:, 2] > 0) & (length > 0))


def lines(axes: Axes, m: Mechanism, poses: Floats, camera: Camera, bounds: Bounds, pale: bool) -> None:
    """Draw every body as a line from its parent's origin to its own."""
    from matplotlib.collections import LineCollection

    parent = m.topology.parent
    roots = (m.reference_poses @ m.child_frames[m.topology.tree_joint])[
        :, :3, 3
    ]  # where bodies on the world start
    start = np.where(parent[:, None] >= 0, poses[parent, :3, 3], roots)
    flat = camera(np.stack([start, poses[:, :3, 3]], axis=1))
    bounds.add(flat)
    colours = np.tile((0.26, 0.47, 0.76, 1.0), (m.body_count, 1))
    own = m.shape_table.body >= 0
    colours[m.shape_table.body[own]] = m.shape_table.rgba[own]
    if pale:
        colours[:] = (0.87, 0.87, 0.87, 1.0)
    order = np.argsort(flat[:, :, 2].mean(axis=1), kind="stable")
    width = 1.0 if m.body_count > HUGE else 2.5
    axes.add_collection(
        LineCollection(
            list(flat[order, :, :2]), colors=colours[order], linewidths=width, zorder=1 if pale else 2
        ),
        autolim=False,
    )


def marks(axes: Axes, m: Mechanism, poses: Floats, camera: Camera, bounds: Bounds) -> None:
    """Joint anchors as dots, end effectors as rings."""
    kind = np.array(m.joint_types)
    chord = np.zeros(m.joint_count, dtype=bool)
    chord[m.topology.chords] = True
    if m.joint_count < _FEW:
        anchors = camera((poses[m.joint_children] @ m.child_frames)[:, :3, 3])
        bounds.add(anchors)
        moving = (kind != "fixed") & (kind != "free")
        for chosen, colour in ((moving & ~chord, _ANCHOR), (chord, _LOOP)):
            axes.scatter(anchors[chosen, 0], anchors[chosen, 1], s=5, color=colour, linewidths=0, zorder=4)
    if len(m.end_effectors) <= _FEW:
        tips = camera(poses[[m.body_index(body) for body in m.end_effectors], :3, 3])
        bounds.add(tips)
        for colour, width in (("white", 2.0), (_EFFECTOR, 0.9)):
            axes.scatter(
                tips[:, 0], tips[:, 1], s=30, facecolors="none", edgecolors=colour, linewidths=width, zorder=5
            )


def arrows(axes: Axes, places: Floats, forces: Floats, camera: Camera, bounds: Bounds) -> None:
    """Forces as arrows from where they act, the largest a fifth of the picture long."""
    from matplotlib.patheffects import withStroke

    size = np.linalg.norm(forces, axis=1)
    if size.max(initial=0.0) == 0:
        return
    extent = bounds.size
    start, end = camera(places), camera(places + 0.2 * extent / size.max() * forces)
    for tail, head, newtons in zip(start, end, size, strict=True):
        if newtons == 0:
            continue
        bounds.add(head)
        axes.annotate("", xy=(head[0], head[1]), xytext=(tail[0], tail[1]), zorder=6, annotation_clip=False,
                      arrowprops={"arrowstyle": "-|>", "color": _FORCE, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0,
                                  "mutation_scale": 9})  # fmt: skip
        if len(forces) <= 12:
            side = 1 if head[0] >= tail[0] else -1
            bounds.add(head[:2] + np.array([0.13 * side, 0.04]) * extent)  # room for the label
            style = {"textcoords": "offset points", "ha": "left" if side > 0 else "right", "fontsize": 7}
            text = axes.annotate(
                _number(newtons), (head[0], head[1]), (4 * side, 2), color=_FORCE, zorder=6, **style
            )
            text.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _number(newtons: float) -> str:
    return f"{newtons / 1000:.4g} kN" if newtons >= 10_000 else f"{newtons:.4g} N"


# --- putting it together


def frame(axes: Axes, bounds: Bounds) -> tuple[Floats, Floats, Floats]:
    """Set limits of equal scale around the bounds; returns their low and high corners and the size in inches."""
    if not np.isfinite(bounds.low).all():
        bounds.low, bounds.high = np.full(2, -0.5), np.full(2, 0.5)
    centre, half = (bounds.low + bounds.high) / 2, (bounds.high - bounds.low) / 2
    half = np.maximum(half, 0.02 * half.max()) if half.max() > 0 else np.full(2, 0.5)
    figure = axes.get_figure(root=True)
    assert figure is not None
    box = axes.get_position()
    inches = figure.get_size_inches() * (box.width, box.height)
    # A margin of 5 percent, and room for triad and bar below; then the shorter side grows to equal scale.
    scale = max(half[0] / inches[0], half[1] / (0.90 * inches[1])) * 1.05
    low = centre - scale * inches - (0, 0.10 * scale * inches[1])
    high = low + 2 * scale * inches
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal", adjustable="box")
    axes.set_axis_off()
    return low, high, inches


def paint(axes: Axes, layers: list[Triangles], low: Floats, high: Floats, inches: Floats) -> None:
    """Draw layers of faces as one image, the first layer behind the next."""
    from pliant.viewer import _kernels

    figure = axes.get_figure(root=True)
    assert figure is not None
    # Twice the resolution of the figure, each pixel the mean of 2 x 2.
    columns, rows = (int(n) for n in np.clip(2 * figure.dpi * inches, 8, 8000))
    image = np.zeros((rows, columns, 4))
    to_pixels = np.array([2 * columns, 2 * rows]) / (high - low)
    part = np.zeros_like(image)
    for layer in layers:
        corners = layer.corners.copy()
        corners[..., :2] = (corners[..., :2] - low) * to_pixels
        nearest = np.full((2 * rows, 2 * columns), -np.inf)
        for chosen in (layer.rgba[:, 3] >= 1, layer.rgba[:, 3] < 1):  # translucent faces over the opaque ones
            if chosen.any():
                owner = np.full(nearest.shape, -1, dtype=np.int64)
                _kernels.rasterize(corners[chosen], nearest, owner)
                _kernels.resolve(owner, layer.rgba[chosen], layer.body[chosen], 2, _OUTLINE, part)
                image = part + (1 - part[..., 3:]) * image
    alpha = image[..., 3:]
    image[..., :3] /= np.where(alpha > 0, alpha, 1.0)
    axes.imshow(np.clip(image, 0, 1), extent=(low[0], high[0], low[1], high[1]), origin="lower", zorder=2,
                interpolation="antialiased", aspect="equal")  # fmt: skip


def triad(axes: Axes, camera: Camera, low: Floats, high: Floats) -> None:
    """The world axes, in the lower left corner."""
    unit = 0.06 * float((high - low).min())
    origin = low + 1.4 * unit
    for i in np.argsort(camera.rows[2]):  # what points away is drawn first
        name, colour = _AXES[i]
        tip = origin + unit * camera.rows[:2, i]
        axes.plot([origin[0], tip[0]], [origin[1], tip[1]], color=colour, linewidth=1.3, zorder=7)
        if np.linalg.norm(camera.rows[:2, i]) > 0.2:
            label = origin + 1.45 * unit * camera.rows[:2, i]
            axes.text(label[0], label[1], name, color=colour, fontsize=7, ha="center", va="center", zorder=7)


def bar(axes: Axes, low: Floats, high: Floats) -> None:
    """A bar of a round length, up to a fifth of the width."""
    wish = float(high[0] - low[0]) / 5
    power = 10.0 ** np.floor(np.log10(wish))
    length = float(power * max(step for step in (1, 2, 5) if step * power <= wish))
    unit = 0.06 * float((high - low).min())
    right, height = high[0] - 0.6 * unit, low[1] + 0.7 * unit
    ends = [right - length, right]
    axes.plot(ends, [height, height], color="#555555", linewidth=1.5, zorder=7, solid_capstyle="butt")
    axes.text(right - length / 2, height + 0.25 * unit, _metres(length), color="#555555", fontsize=7, ha="center",
              va="bottom", zorder=7)  # fmt: skip


def _metres(length: float) -> str:
    for least, factor, unit in ((0.1, 1.0, "m"), (1e-3, 1e-3, "mm"), (1e-6, 1e-6, "µm")):
        if length > 0.999 * least:
            return f"{length / factor:g} {unit}"
    return f"{length:g} m"
