"""A reduced model in words and in a picture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.errors import InputError
from pliant.text import counted, table

if TYPE_CHECKING:
    from pliant.engines.reduced.model import ReducedModel

__all__ = ["plot", "summarize"]

Floats = NDArray[np.float64]

_MOST = 20  # end effectors shown before the table is cut
_RADIUS = 0.3  # of the mechanism's: how large the largest ellipsoid is drawn at most
_APART = 1.5  # of the distance between end effectors: likewise, as far as that leaves it
_LEAST = 0.22  # of the mechanism's radius, however close they are
_THIN = 0.06  # of the largest: flat ellipsoids keep some thickness, so that they can be seen
_SHADE = (1.0, 0.5, 0.34, 0.75)


def summarize(model: ReducedModel) -> str:
    """See `ReducedModel.summary`."""
    m = model.mechanism
    rows = []
    for body in model.end_effectors[:_MOST]:
        push, turn = (model.stiffness_ellipsoid(body, of).stiffness for of in ("translation", "rotation"))
        rows.append([body, *(f"{k:.4g}" for k in (*push, *turn))])
    head = [
        f"{m.name}: reduced from {counted(m.body_count, 'body', 'bodies')} and {counted(m.nv, 'dof')} to "
        f"{counted(len(model.end_effectors), 'end effector')}",
        f"rank {model.rank} of {len(model.compliance)}, {model.projection} projection, {model.inertia} inertia"
        + (f", {counted(model.modes, 'fixed-interface mode')}" if model.modes else "")
        + (f", floating on '{model.base.body}' ({model.base.inertia[0, 0]:.4g} kg)" if model.base else ""),
    ]
    found = model.frequencies()
    listed = ", ".join(f"{f:.4g}" for f in found[:6]) + (", ..." if len(found) > 6 else "")
    head.append(f"natural frequencies: {listed} Hz")
    if model.wrench.any():
        head.append(f"linearised under a load of {np.linalg.norm(model.wrench.reshape(-1, 6)[:, :3]):.4g} N")
    columns = ["end effector", "N/m", "", "", "N m/rad", "", ""]
    more = len(model.end_effectors) - _MOST
    tail = f"\n... and {more} more" if more > 0 else ""
    title = "principal stiffnesses at the origin, softest first; inf where it does not give way"
    return "\n".join(head) + f"\n\n{title}\n" + table(columns, rows) + tail


def plot(model: ReducedModel, path: str | os.PathLike[str] | None, **options: Any) -> Any:
    """See `ReducedModel.plot`."""
    from pliant.statics import Configuration
    from pliant.viewer import picture

    m = model.mechanism
    found = [model.stiffness_ellipsoid(body) for body in model.end_effectors]
    softest = min(float(e.stiffness[0]) for e in found)
    if not np.isfinite(softest):
        raise InputError("no end effector gives way to a force at its origin: there is nothing to draw")
    largest = m.radius * _RADIUS
    if len(found) > 1:
        largest = min(largest, max(_APART * _spacing(np.array([e.centre for e in found])), m.radius * _LEAST))
    force = _round(softest * largest)
    drawn = []
    for e in found:
        pose = np.eye(4)
        pose[:3, :3] = e.axes * [1, 1, np.sign(np.linalg.det(e.axes))]
        pose[:3, 3] = e.centre
        size = force * np.maximum(1 / e.stiffness, _THIN / softest)
        drawn.append(shapes.Shape("ellipsoid", tuple(size.tolist()), pose, _SHADE))
    shown = m.replace(shape_table=m.shape_table.with_shapes(-1, drawn))
    end = "an end effector" if len(found) > 1 else f"'{model.end_effectors[0]}'"
    title = f"{force:g} N in any direction moves {end} to its ellipsoid"
    return picture(Configuration(shown, model.q), path, **{"reference": False, "title": title, **options})


def _spacing(points: Floats) -> float:
    """Median distance from a point to the nearest other."""
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1)))


def _round(value: float) -> float:
    """The next number of the form 1, 2, 3 or 5 times a power of ten, downwards."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(step for step in (1, 2, 3, 5) if step * power <= value))
