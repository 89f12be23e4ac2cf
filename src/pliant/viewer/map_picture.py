"""`plot_map`: a compliance map as a figure: the workspace in colours, the mechanism, ellipsoids, curves or grids."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.plotting import LEAST, figure, keep_range, label_axis, logarithmic, save, target_path
from pliant.text import FORCES, LENGTHS, round_down, unit_for
from pliant.viewer.picture import VIEW, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from pliant.workspace import ComplianceMap

__all__ = ["PALETTE", "ellipsoid_force", "plot_map", "spread_out"]

Floats = NDArray[np.float64]
PALETTE = "viridis"
_ELLIPSOIDS = 14
_LONGEST = 0.07  # longest semi-axis of an ellipsoid, of the workspace's size
_FLAT = 1e-6  # thickness of a plane workspace, of its size
_NARROW = (
    1.05  # ratio of the largest to the smallest value up to which colours are not worth a scale of their own
)


def plot_map(
    found: ComplianceMap,
    path: str | os.PathLike[str] | None = None,
    *,
    view: tuple[float, float] | None = None,
) -> Figure:
    """A picture of a map; see `ComplianceMap.plot`."""
    target = None if path is None else target_path(path)
    made = figure(10.4, 6.0, layout=None)
    factor, unit = unit_for(float(found.worst.max()), LENGTHS)
    scale = _colour_scale(found.worst / factor)
    main = made.add_axes((0.01, 0.13, 0.60, 0.79))
    points = _draw_workspace(found, main, found.worst / factor, scale, view)
    bar = made.colorbar(points, cax=made.add_axes((0.09, 0.085, 0.44, 0.022)), orientation="horizontal")
    bar.set_label(f"compliance in the softest direction ({unit}/N)", fontsize=8)
    label_axis(bar.ax.xaxis, found.worst / factor, log=type(scale).__name__ == "LogNorm", most=8)
    bar.ax.tick_params(labelsize=8, which="both")
    made.text(
        0.02,
        0.955,
        f"{found.end_effector} of {found.mechanism.name}: {len(found)} of {found.total} samples",
        fontsize=11,
    )
    top, bottom = made.add_axes((0.69, 0.57, 0.28, 0.35)), made.add_axes((0.69, 0.09, 0.28, 0.35))
    _draw_quantity(found, top, found.worst / factor, f"compliance ({unit}/N)", scale)
    if np.isfinite(found.frequency).any():
        _draw_quantity(found, bottom, found.frequency, "first frequency (Hz)", None)
    else:
        bottom.set_axis_off()
    save(made, target)
    return made


def _colour_scale(values: Floats) -> Normalize:
    from matplotlib.colors import LogNorm, Normalize

    low, high = float(values.min()), float(values.max())
    if low > 0 and high > 3 * low:
        return LogNorm(low, high)
    # Rounding is no difference worth a colour.
    return Normalize(low, high) if high > _NARROW * low else Normalize(0.5 * low, 1.5 * high or 1.0)


def spread_out(points: Floats, count: int) -> list[int]:
    """Indices of points far from each other: the first, then always the one farthest from all chosen."""
    chosen, distance = [0], np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < min(count, len(points)) and distance.max() > 0:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return chosen


def ellipsoid_force(found: ComplianceMap, longest: float) -> float:
    """Force whose displacements fill an ellipsoid with a semi-axis of about `longest` m at the softest sample, N."""
    most = float(found.worst.max())
    return round_down(longest / most) if most > 0 else 0.0


def _draw_workspace(
    found: ComplianceMap, axes: Axes, values: Floats, scale: Normalize, view: tuple[float, float] | None
) -> Any:
    """The mechanism among the samples, seen from `view`, and ellipses, the outlines of ellipsoids; the samples."""
    from matplotlib.patches import Polygon

    points = found.position
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    force = ellipsoid_force(found, _LONGEST * size) if size > 0 else 0.0
    camera = draw(found.mechanism, axes, view=view or _face_on(points), around=points)
    flat = camera(points)
    order = np.argsort(flat[:, 2], kind="stable")
    drawn = axes.scatter(
        *flat[order, :2].T,
        c=values[order],
        norm=scale,
        cmap=PALETTE,
        s=float(np.clip(9000 / len(points), 2, 26)),
        linewidths=0,
        alpha=0.9,
        zorder=1.5,
    )
    if force > 0:
        angle = np.linspace(0, 2 * np.pi, 73)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        from_softest = np.argsort(-values, kind="stable")
        for sample in from_softest[spread_out(points[from_softest], _ELLIPSOIDS)].tolist():
            moved = (
                force * camera.rows[:2] @ found.compliance[sample, :3, :3]
            )  # in the plane, per unit of force
            left, stretch, _ = np.linalg.svd(moved)
            outline = flat[sample, :2] + (left @ (np.maximum(stretch, 1e-3 * size)[:, None] * circle)).T
            axes.add_patch(
                Polygon(outline, facecolor="#ff980055", edgecolor="#c05800", linewidth=0.9, zorder=6)
            )
        factor, unit = unit_for(force, FORCES)
        axes.text(
            0.5,
            0.015,
            f"ellipsoids: displacement under {force / factor:g} {unit}",
            transform=axes.transAxes,
            fontsize=7,
            color="#c05800",
            ha="center",
        )
    return drawn


def _face_on(points: Floats) -> tuple[float, float]:
    """Elevation and azimuth, degrees, from which a plane workspace is seen face on; the usual ones of any other."""
    _, extent, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    if len(extent) < 3 or not extent[2] < _FLAT * extent[0] < _FLAT * 1e3 * max(extent[1], 1e-300):
        return VIEW
    x, y, z = axes[2] * (1 if axes[2] @ (0.3, -0.8, 0.5) > 0 else -1)  # from the front or from above
    return float(np.degrees(np.arcsin(np.clip(z, -1, 1)))), float(np.degrees(np.arctan2(y, x)))


def _draw_quantity(
    found: ComplianceMap, axes: Axes, values: Floats, label: str, scale: Normalize | None
) -> None:
    """A quantity over the joint, over the grid of two joints, or over the distance from the first joint."""
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    if len(found.shape) == 2:
        x, y = (np.degrees(found.coordinates(name)) if _turns(found, name) else found.coordinates(name)
                for name in found.joints)  # fmt: skip
        grid = found.grid(values)
        (left, right), (low, high) = (_cell_edges(v, n) for v, n in zip((x, y), found.shape, strict=True))
        mesh = axes.imshow(
            grid.T,
            origin="lower",
            aspect="auto",
            cmap=PALETTE if scale is not None else "cividis",
            norm=scale or _colour_scale(values[np.isfinite(values)]),
            extent=(left, right, low, high),
        )
        axes.set_xlabel(_joint_label(found, found.joints[0]), fontsize=8)
        axes.set_ylabel(_joint_label(found, found.joints[1]), fontsize=8)
        axes.set_title(label, fontsize=9)
        bar = axes.get_figure(root=True).colorbar(mesh, ax=axes, pad=0.03)  # pyright: ignore[reportOptionalMemberAccess]
        label_axis(bar.ax.yaxis, values[np.isfinite(values)], log=type(mesh.norm).__name__ == "LogNorm")
        bar.ax.tick_params(labelsize=7, which="both")
        return
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if len(found.joints) == 1:
        x = found.coordinates(found.joints[0])
        x = np.degrees(x) if _turns(found, found.joints[0]) else x
        order = np.argsort(x)
        axes.plot(x[order], values[order], color="#1f6fb4", linewidth=1.4)
        axes.set_xlabel(_joint_label(found, found.joints[0]), fontsize=8)
    else:
        m = found.mechanism
        joint = int(m.dof_joint[m.dof_index(found.joints[0])])
        anchor = (m.reference_poses[m.joint_children[joint]] @ m.child_frames[joint])[:3, 3]
        reach = np.linalg.norm(found.position - anchor, axis=1)
        axes.scatter(reach, values, s=5, color="#1f6fb4", linewidths=0, alpha=0.6)
        axes.set_xlabel(f"distance from {m.joint_names[joint]} (m)", fontsize=8)
    axes.set_ylabel(label, fontsize=8)
    known = values[np.isfinite(values)]
    if known.min() > 0 and known.max() > 3 * known.min():
        logarithmic(axes)
    elif known.max() <= _NARROW * known.min():
        axes.set_ylim(0, 1.5 * float(known.max()) or 1.0)
    else:
        keep_range(axes, "y", LEAST * float(np.abs(known).max()))


def _cell_edges(values: Floats, points: int) -> tuple[float, float]:
    """Outer edges of cells around evenly spaced points."""
    low, high = float(values.min()), float(values.max())
    half = (high - low) / (2 * points - 2)
    return low - half, high + half


def _turns(found: ComplianceMap, name: str) -> bool:
    from pliant.mechanism.joints import SLIDE

    m = found.mechanism
    return bool(m.dof_kind[m.dof_index(name)] != SLIDE)


def _joint_label(found: ComplianceMap, name: str) -> str:
    return f"{name} ({'°' if _turns(found, name) else 'm'})"
