"""`picture`: a mechanism or configuration as a still picture. Needs no display."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.extras import require
from pliant.mechanism import Mechanism
from pliant.statics.loads import parse_wrench
from pliant.viewer.drawing import HUGE, Bounds, Camera, arrows, bar, faces, frame, lines, marks, paint, triad

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pliant.statics import Configuration

__all__ = ["draw", "picture", "png"]

Floats = NDArray[np.float64]

_VIEW = (20.0, -60.0)
_SIZE = (900, 700)
_DPI = 150


def picture(
    what: Mechanism | Configuration,
    path: str | os.PathLike[str] | None = None,
    *,
    forces: Mapping[str, Any] | None = None,
    reference: bool = True,
    view: tuple[float, float] = _VIEW,
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

    target = None if path is None else _target(path)
    width, height = _pair(size, "size")
    if not (16 <= width <= 20_000 and 16 <= height <= 20_000):
        raise InputError(f"size: a width and height from 16 to 20000 pixels expected, not {size!r}")
    figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98 if title is None else 0.91))
    draw(what, axes, forces=forces, reference=reference, view=view, title=title)
    if target is not None:
        _save(figure, target)
    return figure


def png(what: Mechanism | Configuration) -> bytes:
    """A picture as the bytes of a PNG file: what notebooks show."""
    out = io.BytesIO()
    picture(what, size=(640, 480)).savefig(out, format="png", dpi=_DPI)
    return out.getvalue()


def draw(
    what: Mechanism | Configuration,
    axes: Axes,
    *,
    forces: Mapping[str, Any] | None = None,
    reference: bool = True,
    view: tuple[float, float] = _VIEW,
    title: str | None = None,
) -> None:
    """Draw into existing two-dimensional matplotlib axes, for figures of several panels. Arguments as in `picture`."""
    m, poses = _subject(what)
    camera = Camera.at(*_pair(view, "view"))
    acting = _load_forces(what) if forces is None else _given_forces(m, poses, forces)
    ghost = reference and not isinstance(what, Mechanism)
    bounds, layers = Bounds(), []
    if m.body_count > HUGE or not len(m.shape_table):  # bodies without shapes still have a skeleton
        if ghost:
            lines(axes, m, m.reference_poses, camera, bounds, pale=True)
        lines(axes, m, poses, camera, bounds, pale=False)
    else:
        if ghost:
            pale = faces(m, m.reference_poses, camera, unlike=poses)
            pale.rgba[:, :3] = 0.80 + 0.14 * pale.rgba[:, :3].mean(axis=1, keepdims=True)
            layers.append(pale)
        layers.append(faces(m, poses, camera))
        for layer in layers:
            bounds.add(layer.corners)
    marks(axes, m, poses, camera, bounds)
    arrows(axes, *acting, camera, bounds)
    low, high, inches = frame(axes, bounds)
    if layers:
        paint(axes, layers, low, high, inches)
    triad(axes, camera, low, high)
    bar(axes, low, high)
    if title is not None:
        axes.set_title(title, fontsize=10, pad=4)


# --- arguments


def _subject(what: Any) -> tuple[Mechanism, Floats]:
    if isinstance(what, Mechanism):
        return what, what.reference_poses
    mechanism, poses = getattr(what, "mechanism", None), getattr(what, "poses", None)
    if not isinstance(mechanism, Mechanism) or not isinstance(poses, np.ndarray):
        raise InputError(f"a Mechanism or a Configuration expected, not {type(what).__name__}")
    if not np.isfinite(poses).all():
        raise InputError("the configuration has poses that are not finite")
    return mechanism, poses


def _pair(value: Any, what: str) -> tuple[float, float]:
    try:
        first, second = (float(v) for v in value)
    except (TypeError, ValueError):
        raise InputError(f"{what}: two numbers expected, not {value!r}") from None
    if not np.isfinite([first, second]).all():
        raise InputError(f"{what}: two finite numbers expected, not {value!r}")
    return first, second


def _target(path: Any) -> Path:
    if (
        not isinstance(path, (str, os.PathLike))
        or not isinstance(os.fspath(path), str)
        or not os.fspath(path)
    ):
        raise InputError(f"path: a file name expected, not {path!r}")
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(
            f"'{target}' cannot be written: there is no folder '{target.parent}'; create it first"
        )
    if target.is_dir():
        raise InputError(f"'{target}' cannot be written: it is a folder; add a file name")
    return target


def _save(figure: Figure, target: Path) -> None:
    suffix = target.suffix.lower().lstrip(".") or "png"
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InputError(f"'{target}': pictures cannot be written as '.{suffix}'; use .png, .svg or .pdf")
    try:
        figure.savefig(target, format=suffix, dpi=_DPI)
    except OSError as error:
        raise InputError(f"'{target}' cannot be written: {error.strerror or error}") from None


def _given_forces(m: Mechanism, poses: Floats, forces: Any) -> tuple[Floats, Floats]:
    if not isinstance(forces, Mapping):
        raise InputError("forces: a mapping {body: force} expected")
    points, vectors = [], []
    for body, value in forces.items():
        try:
            vector = np.asarray(value, float)
        except (TypeError, ValueError):
            raise InputError(f"force on '{body}': three numbers expected, not {value!r}") from None
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise InputError(f"force on '{body}': three finite numbers expected, not {value!r}")
        index = m.body_index(body)
        points.append(np.zeros(3) if index < 0 else poses[index, :3, 3])
        vectors.append(vector)
    return np.array(points).reshape(-1, 3), np.array(vectors).reshape(-1, 3)


def _load_forces(what: Any) -> tuple[Floats, Floats]:
    """Where forces act on a configuration and what they are; weights left out."""
    points, vectors = [], []
    for body, wrench in getattr(what, "wrenches", {}).items():
        force, _, point, frame = parse_wrench(wrench, body)
        pose = what.pose(body)
        if force.any():
            points.append(pose[:3, :3] @ point + pose[:3, 3])
            vectors.append(pose[:3, :3] @ force if frame == "body" else force)
    return np.array(points).reshape(-1, 3), np.array(vectors).reshape(-1, 3)
