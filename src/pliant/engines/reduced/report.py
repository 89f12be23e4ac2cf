"""Reports on reduced models: rows of text, which summaries, notebooks and the command line print, and a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import shapes
from pliant.errors import InputError
from pliant.text import counted, listed, round_down, table

if TYPE_CHECKING:
    from pliant.engines.reduced.blended import BlendedModel
    from pliant.engines.reduced.model import ReducedModel

__all__ = [
    "EFFORTS",
    "beyond_known",
    "blend_html",
    "blend_rows",
    "compliance_rows",
    "facts",
    "model_html",
    "plot",
    "reach_words",
    "stiffness_rows",
    "summarize",
]

Floats = NDArray[np.float64]

EFFORTS = tuple(
    f"{word} {axis}" for word in ("force", "torque") for axis in "xyz"
)  # columns of `compliance_rows`
_MOTIONS = tuple(f"{word} {axis}" for word in ("moves", "turns") for axis in "xyz")
_MOST = 20  # end effectors in a summary
_MOST_HTML = 12  # end effectors, or models of a blend, in a notebook
_RADIUS = 0.3  # of the mechanism's radius: largest semi-axis of an ellipsoid
_APART = 1.5  # of the distance between end effectors: the same, whichever is smaller
_LEAST = 0.22  # of the mechanism's radius: but not below this
_THIN = 0.06  # of the largest semi-axis: the smallest that is drawn, so that flat ellipsoids can be seen
_SHADE = (1.0, 0.5, 0.34, 0.75)


# --- rows of text


def facts(model: ReducedModel) -> list[str]:
    """Lines on size, rank, construction, natural frequencies and load of a model."""
    m = model.mechanism
    found = model.frequencies()
    held = f" with '{model.base.body}' held" if model.base else ""
    lines = [
        f"{m.name}: reduced from {counted(m.body_count, 'body', 'bodies')} and {counted(m.nv, 'dof')} to "
        f"{counted(len(model.end_effectors), 'end effector')}",
        f"rank {model.rank} of {len(model.compliance)}, {model.projection} projection, {model.inertia} inertia"
        + (f", {counted(model.modes, 'fixed-interface mode')}" if model.modes else "")
        + (f", floating on '{model.base.body}' ({model.base.inertia[0, 0]:.4g} kg)" if model.base else ""),
        f"natural frequencies{held}: {listed([f'{f:.4g}' for f in found], 6, quoted=False)} Hz",
    ]
    if model.vectors or np.isfinite(model.reach):
        lines.append(reach_words(model))
    elif not model.limits:
        lines.append(_unmeasured(model))
    if model.wrench.any():
        lines.append(f"linearised under a load of {_force(model):.4g} N")
    if model.at.passed_limits and not model.limits:
        lines.append(made_beyond(model.at.passed_limits))
    return lines


def made_beyond(names: Sequence[str]) -> str:
    """Statement that the load a model was made under takes dofs beyond their limits."""
    limits = "its limit" if len(names) == 1 else "their limits"
    return f"made where the load takes {listed(names, 4)} beyond {limits}: `pliant.ConstrainedSimulation` holds limits"


def beyond_known(model: ReducedModel, distance: float) -> str:
    """Warning that an end effector went farther than a model is known to hold, by its largest distance in radii."""
    m = model.mechanism
    where = (
        f"an end effector of '{m.name}' went {distance:.3g} radii ({distance * m.radius:.3g} m) from where its reduced "
        "model was made, "
    )
    if np.isfinite(model.reach):
        return (
            f"{where}beyond the model's reach of {model.reach:.3g}: errors may be larger than "
            f"{100 * model.tolerance:.3g} % there; use `pliant.reduce(..., reach=...)` with a larger reach, "
            "`model.extend` with an equilibrium nearby, or `pliant.ConstrainedSimulation`"
        )
    return (
        f"{where}with {counted(model.basis.shape[1], 'coordinate')} for "
        f"{model.freedom or 'many'} ways to move: beyond {model.known:.3g} radii such models may be off by ten per "
        "cent and more; compare with `pliant.equilibrium`, or use `pliant.reduce(..., reach=...)`, a blend "
        "(`pliant.sample`), or `pliant.ConstrainedSimulation`"
    )


def reach_words(model: ReducedModel) -> str:
    """How far a model reaches, and what that took."""
    out = "reach: not measured"
    if np.isfinite(model.reach):
        out = f"reach: {model.reach:.3g} radii at {100 * model.tolerance:.3g} % static error"
    took = [
        f"{counted(model.basis.shape[1], 'coordinate')} ({counted(model.vectors, 'vector')})",
        counted(model.samples, "sampled equilibrium", "sampled equilibria"),
    ]
    if model.failures:
        took.append(f"{counted(model.failures, 'load')} without a stable one nearby")
    return f"{out}; {', '.join(took)}"


def _unmeasured(model: ReducedModel) -> str:
    """How many of the mechanism's independent motions the coordinates are, of a model whose reach is not known."""
    n = model.basis.shape[1]
    if n == model.freedom:
        return f"{counted(n, 'coordinate')}: all ways in which the mechanism can move"
    free = "" if model.freedom is None else f" for {model.freedom} ways to move"
    return (
        f"{counted(n, 'coordinate')}{free}: beyond {model.known:.3g} radii ({model.known * model.mechanism.radius:.3g} "
        "m) shapes may be missing; `pliant.reduce(..., reach=...)` adds them and measures how far the model holds"
    )


def stiffness_rows(model: ReducedModel, most: int | None = None) -> list[list[str]]:
    """Per end effector, its name, three principal stiffnesses in N/m and three in N m/rad, softest first."""
    rows = []
    for body in model.end_effectors[:most]:
        push, turn = (model.stiffness_ellipsoid(body, of).stiffness for of in ("translation", "rotation"))
        rows.append([body, *(f"{k:.4g}" for k in (*push, *turn))])
    return rows


def compliance_rows(model: ReducedModel, body: str, digits: str = ".3g") -> list[list[str]]:
    """Compliance of an end effector in its frame, m and rad per N and N m: a motion, then a number per `EFFORTS`."""
    e = 6 * model.index(body)
    block = model.compliance[e : e + 6, e : e + 6]
    least = 1e-12 * np.abs(block).max()  # entries below are rounding
    return [
        [motion, *(f"{value:{digits}}" if abs(value) > least else "0" for value in row)]
        for motion, row in zip(_MOTIONS, block.tolist(), strict=True)
    ]


def blend_rows(blend: BlendedModel, most: int | None = None) -> list[list[str]]:
    """Per model of a blend, its number, the force it was made under, N, softest N/m and slowest Hz."""
    rows = []
    for i, model in enumerate(blend.models[:most]):
        softest = min(model.stiffness_ellipsoid(body).stiffness[0] for body in model.end_effectors)
        rows.append(
            [str(i + 1), *(f"{number:.4g}" for number in (_force(model), softest, model.frequencies()[0]))]
        )
    return rows


def _force(model: ReducedModel) -> float:
    """Norm of the forces on all end effectors at the linearisation, N."""
    return float(np.linalg.norm(model.wrench.reshape(-1, 6)[:, :3]))


def _more(count: int, most: int) -> str:
    return f"... and {count - most} more" if count > most else ""


# --- text


def summarize(model: ReducedModel) -> str:
    """See `ReducedModel.summary`."""
    title = "principal stiffnesses at the origin, softest first; inf where it does not give way"
    columns = ["end effector", "N/m", "", "", "N m/rad", "", ""]
    lines = [*facts(model), "", title, table(columns, stiffness_rows(model, _MOST))]
    more = _more(len(model.end_effectors), _MOST)
    return "\n".join([*lines, more] if more else lines)


# --- notebooks; names come from files, which are not trusted


def model_html(model: ReducedModel) -> str:
    """Facts and principal stiffnesses; the compliance of every end effector, folded."""
    columns = ["end effector", *["N/m"] * 3, *["N m/rad"] * 3]
    out = _paragraph(*facts(model)) + _table(columns, stiffness_rows(model, _MOST_HTML))
    out += _paragraph(_more(len(model.end_effectors), _MOST_HTML))
    for body in model.end_effectors[:_MOST_HTML]:
        title = f"compliance of {escape(body)}, its own frame: m and rad per N and N m"
        rows = _table(["", *EFFORTS], compliance_rows(model, body))
        out += f"<details><summary>{title}</summary>{rows}</details>"
    return out


def blend_html(blend: BlendedModel) -> str:
    """Size of a blend; load, softest stiffness and lowest frequency of its models."""
    head = (
        f"{blend.mechanism.name}: {counted(len(blend.models), 'model')} of "
        f"{counted(len(blend.end_effectors), 'end effector')}"
    )
    columns = ["model", "made under, N", "softest, N/m", "slowest, Hz"]
    rows = _table(columns, blend_rows(blend, _MOST_HTML))
    return _paragraph(head) + rows + _paragraph(_more(len(blend.models), _MOST_HTML))


def _paragraph(*lines: str) -> str:
    return f"<p>{'<br>'.join(map(escape, lines))}</p>" if any(lines) else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [("th", header), *(("td", row) for row in rows)]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in lines)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


# --- picture


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
    force = round_down(softest * largest, (1, 2, 3, 5))
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
