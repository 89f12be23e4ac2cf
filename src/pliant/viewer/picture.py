"""`picture`: a mechanism or configuration as a still picture. Needs no display.

The projection is parallel, so that lengths compare, onto ordinary two-dimensional matplotlib axes. Faces go through a
depth buffer: matplotlib's own 3-D axes sort whole faces, which goes wrong wherever bodies meet.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.checks import flag, vector
from pliant.errors import InputError
from pliant.extras import require
from pliant.mechanism import Mechanism
from pliant.plotting import save, target_path
from pliant.statics.loads import Load
from pliant.text import LENGTHS, brief, round_down, unit_for
from pliant.viewer.meshes import Triangles, triangulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pliant.statics import Configuration

__all__ = [
    "HUGE",
    "VIEW",
    "Bounds",
    "Camera",
    "draw",
    "fit_axes",
    "paint_faces",
    "picture",
    "png",
    "shade_faces",
]

Floats = NDArray[np.float64]

HUGE = 1500  # bodies: beyond this, lines instead of shapes
_FEW = 100  # joints: up to this, their anchors are marked
VIEW = (20.0, -60.0)  # elevation, azimuth, degrees
_SIZE = (900, 700)  # pixels
_DPI = 150
_OUTLINE = 0.65  # brightness of the line around every body
_LIGHT = np.array([-0.35, 0.55, 0.76])  # right, up, towards the viewer
_FORCE, _ANCHOR, _LOOP, _EFFECTOR = "#c62828", "#30343a", "#8e24aa", "#111111"
_AXES = (("x", "#d14a3f"), ("y", "#3a9a4c"), ("z", "#3566c4"))


def picture(
    what: Mechanism | Configuration,
    path: str | os.PathLike[str] | None = None,
    *,
    forces: Mapping[str, Any] | None = None,
    reference: bool = True,
    view: tuple[float, float] = VIEW,
    title: str | None = None,
    size: tuple[int, int] = _SIZE,
) -> Figure:
    """Draw a mechanism at its reference pose, or a configuration at its own.

    Small dots are joints (purple: those that close loops), rings end effectors, red arrows forces. The bar shows
    the scale, the triad the world axes. More than 1,500 bodies are drawn as lines from body to parent.

    Args:
        what: a `Mechanism` or a `Configuration`.
        path: where to save it; the suffix decides the format (.png, .svg, .pdf), PNG without one. Not saved if None.
        forces: `{body: force}`, world axes, drawn at the bodies' origins. By default the forces a configuration is
            in equilibrium with, gravity left out. Torques are not drawn.
        reference: show the reference pose behind a configuration, in pale colours.
        view: where to look from: elevation and azimuth, degrees. (0, -90) looks along y, (90, -90) down on x and y.
        title: above the picture.
        size: width and height in pixels.

    Returns:
        The matplotlib figure.

    Raises:
        InputError: an argument is unusable, or the file cannot be written.

    Example:
        >>> import pliant
        >>> from pliant.viewer import picture
        >>> arm = pliant.gallery.helix(50)
        >>> figure = picture(pliant.equilibrium(arm, {"link50": (0, 0, -100)}), "helix.png")  # doctest: +SKIP
    """
    require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    target = None if path is None else target_path(path)
    width, height = _pair(size, "size")
    if not (16 <= width <= 20_000 and 16 <= height <= 20_000):
        raise InputError(f"size: a width and height from 16 to 20000 pixels expected, not {brief(size)}")
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98 if title is None else 0.91))
    draw(what, axes, forces=forces, reference=reference, view=view, title=title)
    if target is not None:
        save(figure, target)
    return figure


def png(what: Any) -> bytes:
    """Picture as the bytes of a PNG file, for notebooks; of anything with a `mechanism` and `poses`."""
    out = io.BytesIO()
    picture(what, size=(640, 480)).savefig(out, format="png", dpi=_DPI)
    return out.getvalue()


def draw(
    what: Mechanism | Configuration,
    axes: Axes,
    *,
    forces: Mapping[str, Any] | None = None,
    reference: bool = True,
    view: tuple[float, float] = VIEW,
    title: str | None = None,
    around: Floats | None = None,
) -> Camera:
    """Draw into existing two-dimensional matplotlib axes, for figures of several panels.

    Arguments as in `picture`; axes also make room for the points `around`, world, (n, 3). Returns the camera, for
    further drawing.
    """
    m, poses = _subject(what)
    reference = flag(reference, "reference")
    if title is not None and not isinstance(title, str):
        raise InputError(f"title: a text expected, not {brief(title)}")
    camera = Camera.at(*_pair(view, "view"))
    acting = _load_forces(what) if forces is None else _given_forces(m, poses, forces)
    ghost = reference and not isinstance(what, Mechanism)
    bounds, layers = Bounds(), []
    if around is not None:
        bounds.add(camera(around))
    if m.body_count > HUGE or not len(m.shape_table):  # bodies without shapes still have a skeleton
        if ghost:
            _draw_lines(axes, m, m.reference_poses, camera, bounds, pale=True)
        _draw_lines(axes, m, poses, camera, bounds, pale=False)
    else:
        if ghost:
            pale = shade_faces(m, m.reference_poses, camera, unlike=poses)
            pale.rgba[:, :3] = 0.80 + 0.14 * pale.rgba[:, :3].mean(axis=1, keepdims=True)
            layers.append(pale)
        layers.append(shade_faces(m, poses, camera))
        for layer in layers:
            bounds.add(layer.corners)
    _draw_marks(axes, m, poses, camera, bounds)
    _draw_arrows(axes, *acting, camera, bounds)
    low, high, inches = fit_axes(axes, bounds)
    if layers:
        paint_faces(axes, layers, low, high, inches)
    _draw_triad(axes, camera, low, high)
    _draw_scale_bar(axes, low, high)
    if title is not None:
        axes.set_title(title, fontsize=10, pad=4)
    return camera


# --- projection


@dataclass
class Camera:
    """Parallel projection.

    Attributes:
        rows: unit vectors to the right, up and towards the viewer, world axes, (3, 3).
    """

    rows: Floats

    @staticmethod
    def at(elevation: float, azimuth: float) -> Camera:
        """Camera that looks at the origin from an elevation and azimuth, degrees."""
        (c, s), (x, y) = ((np.cos(angle), np.sin(angle)) for angle in np.radians([elevation, azimuth]))
        towards, right = np.array([c * x, c * y, s]), np.array([-y, x, 0.0])
        return Camera(np.stack([right, np.cross(towards, right), towards]))

    def __call__(self, points: Floats) -> Floats:
        """Right, up and depth of points (..., 3)."""
        return points @ self.rows.T


class Bounds:
    """Bounding box in the picture's plane, m."""

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


def shade_faces(m: Mechanism, poses: Floats, camera: Camera, unlike: Floats | None = None) -> Triangles:
    """Visible faces in the camera's axes, with shaded colours; with `unlike`, only of bodies not at those poses."""
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
    lifted = 0.10 + 0.90 * t.rgba[:, :3]  # black surfaces show their shading, too
    t.rgba[:, :3] = np.clip(lifted * (0.55 + 0.5 * light) + 0.12 * light**12, 0.0, 1.0)
    return t.only((normal[:, 2] > 0) & (length > 0))


def _draw_lines(axes: Axes, m: Mechanism, poses: Floats, camera: Camera, bounds: Bounds, pale: bool) -> None:
    """Bodies as lines from the parent's origin to their own; those on the world start at their joint's anchor."""
    from matplotlib.collections import LineCollection

    parent = m.topology.parent
    roots = (m.reference_poses @ m.child_frames[m.topology.tree_joint])[:, :3, 3]
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


def _draw_marks(axes: Axes, m: Mechanism, poses: Floats, camera: Camera, bounds: Bounds) -> None:
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


def _draw_arrows(axes: Axes, points: Floats, forces: Floats, camera: Camera, bounds: Bounds) -> None:
    """Forces as arrows from their points of application, the largest a fifth of the picture long."""
    from matplotlib.patheffects import withStroke

    size = np.linalg.norm(forces, axis=1)
    if size.max(initial=0.0) == 0:
        return
    extent = bounds.size
    start, end = camera(points), camera(points + 0.2 * extent / size.max() * forces)
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
                _force_text(newtons), (head[0], head[1]), (4 * side, 2), color=_FORCE, zorder=6, **style
            )
            text.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _force_text(newtons: float) -> str:
    return f"{newtons / 1000:.4g} kN" if newtons >= 10_000 else f"{newtons:.4g} N"


# --- layers, axes and scale


def fit_axes(axes: Axes, bounds: Bounds) -> tuple[Floats, Floats, Floats]:
    """Set axis limits of equal scale around the bounds; returns their low and high corners and the size in inches."""
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


def paint_faces(axes: Axes, layers: list[Triangles], low: Floats, high: Floats, inches: Floats) -> None:
    """Draw layers of faces as one image between axis limits `low` and `high`, each layer over the ones before."""
    from pliant.viewer._raster import downsample, rasterize

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
                rasterize(corners[chosen], nearest, owner)
                downsample(owner, layer.rgba[chosen], layer.body[chosen], 2, _OUTLINE, part)
                image = part + (1 - part[..., 3:]) * image
    alpha = image[..., 3:]
    image[..., :3] /= np.where(alpha > 0, alpha, 1.0)
    axes.imshow(np.clip(image, 0, 1), extent=(low[0], high[0], low[1], high[1]), origin="lower", zorder=2,
                interpolation="antialiased", aspect="equal")  # fmt: skip


def _draw_triad(axes: Axes, camera: Camera, low: Floats, high: Floats) -> None:
    """World axes, in the lower left corner."""
    unit = 0.06 * float((high - low).min())
    origin = low + 1.4 * unit
    for i in np.argsort(camera.rows[2]):  # the axis that points away is drawn first
        name, colour = _AXES[i]
        tip = origin + unit * camera.rows[:2, i]
        axes.plot([origin[0], tip[0]], [origin[1], tip[1]], color=colour, linewidth=1.3, zorder=7)
        if np.linalg.norm(camera.rows[:2, i]) > 0.2:
            label = origin + 1.45 * unit * camera.rows[:2, i]
            axes.text(label[0], label[1], name, color=colour, fontsize=7, ha="center", va="center", zorder=7)


def _draw_scale_bar(axes: Axes, low: Floats, high: Floats) -> None:
    """Scale bar of 1, 2 or 5 times a power of ten metres, up to a fifth of the width."""
    length = round_down(float(high[0] - low[0]) / 5)
    factor, name = unit_for(length, LENGTHS)
    unit = 0.06 * float((high - low).min())
    right, height = high[0] - 0.6 * unit, low[1] + 0.7 * unit
    ends = [right - length, right]
    axes.plot(ends, [height, height], color="#555555", linewidth=1.5, zorder=7, solid_capstyle="butt")
    style = {"color": "#555555", "fontsize": 7, "ha": "center", "va": "bottom", "zorder": 7}
    axes.text(right - length / 2, height + 0.25 * unit, f"{length / factor:g} {name}", **style)


# --- arguments


def _subject(what: Any) -> tuple[Mechanism, Floats]:
    """Mechanism and world poses of its bodies, (bodies, 4, 4)."""
    if isinstance(what, Mechanism):
        return what, what.reference_poses
    mechanism, poses = getattr(what, "mechanism", None), getattr(what, "poses", None)
    if not isinstance(mechanism, Mechanism) or not isinstance(poses, np.ndarray):
        raise InputError(f"a Mechanism or a Configuration expected, not {type(what).__name__}")
    if not np.isfinite(poses).all():
        raise InputError("the configuration has poses that are not finite")
    return mechanism, poses


def _pair(value: Any, what: str) -> Floats:
    return vector(value, what, 2, kind="two numbers", expected="two finite numbers")


def _given_forces(m: Mechanism, poses: Floats, forces: Any) -> tuple[Floats, Floats]:
    """Origins of bodies and forces on them, world axes, (n, 3) each."""
    if not isinstance(forces, Mapping):
        raise InputError("forces: a mapping {body: force} expected")
    points, vectors = [], []
    for body, value in forces.items():
        vectors.append(
            vector(value, f"force on '{body}'", kind="three numbers", expected="three finite numbers")
        )
        index = m.body_index(body)
        points.append(np.zeros(3) if index < 0 else poses[index, :3, 3])
    return np.array(points).reshape(-1, 3), np.array(vectors).reshape(-1, 3)


def _load_forces(what: Any) -> tuple[Floats, Floats]:
    """Points and forces of a configuration's loads, world axes, (n, 3) each; gravity left out."""
    points, vectors = [], []
    for body, wrench in getattr(what, "wrenches", {}).items():
        force, _, point, frame = Load.parse(wrench, body)
        pose = what.pose(body)
        if force.any():
            points.append(pose[:3, :3] @ point + pose[:3, 3])
            vectors.append(pose[:3, :3] @ force if frame == "body" else force)
    return np.array(points).reshape(-1, 3), np.array(vectors).reshape(-1, 3)
