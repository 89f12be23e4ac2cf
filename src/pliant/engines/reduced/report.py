"""A reduced model in words and in a picture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant import shapes
from pliant.errors import InputError
from pliant.mechanism.summary import counted, table

if TYPE_CHECKING:
    from pliant.engines.reduced.model import ReducedModel

__all__ = ["plot", "summarize"]

_MOST = 20  # end effectors shown before the table is cut
_RADIUS = 0.25  # of the mechanism's: how large the largest ellipsoid is drawn
_THIN = 0.06  # of the largest: flat ellipsoids keep some thickness, so that they can be seen
_SHADE = (0.95, 0.35, 0.25, 1.0)


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
    drawn = []
    for e in found:
        pose = np.eye(4)
        pose[:3, :3] = e.axes * [1, 1, np.sign(np.linalg.det(e.axes))]
        pose[:3, 3] = e.centre
        size = m.radius * _RADIUS * np.maximum(softest / e.stiffness, _THIN)
        drawn.append(shapes.Shape("ellipsoid", tuple(size.tolist()), pose, _SHADE))
    shown = m.replace(shape_table=m.shape_table.with_shapes(-1, drawn))
    return picture(Configuration(shown, model.q), path, **{"reference": False, **options})
