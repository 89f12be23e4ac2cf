"""`Mechanism.summary()`: sizes, end effectors and a table of joints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pliant.mechanism.joints import BALL, SLIDE
from pliant.text import counted, listed, table

if TYPE_CHECKING:
    from pliant.mechanism.mechanism import Mechanism

__all__ = ["summarize"]

_MOST, _ROWS = 60, 10  # joints, and couplings or tendons, shown before the table is cut
_COLUMNS = [
    "joint",
    "type",
    "parent",
    "child",
    "mass (kg)",
    "dofs",
    "stiffness (N m/rad)",
    "damping (N m s/rad)",
]


def _per_dof(values: np.ndarray) -> str:
    """One number if all are the same, else up to three."""
    if len(values) == 0:
        return "-"
    if np.ptp(values) == 0:
        return f"{values[0]:.4g}"
    return " ".join(f"{v:.4g}" for v in values[:3]) + (" ..." if len(values) > 3 else "")


def _terms(m: Mechanism, dofs: np.ndarray, coefficients: np.ndarray) -> str:
    """A linear function of joint coordinates, such as "2 elbow - wrist"."""
    out = ""
    for d, c in zip(dofs.tolist(), coefficients.tolist(), strict=True):
        sign = (" - " if c < 0 else " + ") if out else "-" if c < 0 else ""
        out += sign + ("" if abs(c) == 1 else f"{abs(c):.4g} ") + m.dof_names[d]
    return out


def _size(m: Mechanism) -> str:
    points = m.landmarks(m.reference_poses)
    extent = float(np.ptp(points, axis=0).max())
    return f"radius {m.radius:.4g} m" if extent > 1e-9 * m.radius else "all in one point"


def _fixed(m: Mechanism) -> list[int]:
    """Joints that hold bodies rigidly to the world."""
    return [j for j, kind in enumerate(m.joint_types) if kind == "fixed" and m.joint_parents[j] < 0]


def summarize(m: Mechanism) -> str:
    """See `Mechanism.summary`."""
    topology = m.topology
    chords = set(topology.chords.tolist())
    constraints = 6 * topology.loops + len(m.couplings)
    soft = m.springless_joints
    lines = [
        f"{m.name}: {counted(m.body_count, 'body', 'bodies')}, {m.total_mass:.6g} kg, {_size(m)}",
        f"{counted(m.joint_count, 'joint')}, {counted(m.nv, 'degree')} of freedom, {counted(topology.loops, 'loop')}, "
        f"depth {int(topology.depth.max())}"
        + (f", {counted(len(m.couplings), 'coupling')}" if len(m.couplings) else "")
        + (f", {counted(len(m.tendons), 'tendon')}" if len(m.tendons) else "")
        + (f" ({counted(constraints, 'constraint row')})" if constraints else ""),
    ]
    if soft:
        shown = listed(soft, _MOST, quoted=False)
        lines.append(f"without a spring ({len(soft)}; with_stiffness gives them one): {shown}")
    for words, joints in (("floats", m.floating), ("fixed to the world", _fixed(m))):
        if joints:
            names = [m.body_names[m.joint_children[j]] for j in joints]
            lines.append(f"{words}: {listed(names, 8, quoted=False)}")
    value = m.reference[m.dof_coordinate]
    outside = (m.dof_kind != BALL) & ((value < m.lower) | (value > m.upper))
    if outside.any():
        names = [m.dof_names[d] for d in np.flatnonzero(outside).tolist()]
        lines.append(f"beyond their limits in this pose: {listed(names, 8, quoted=False)}")
    effectors = m.end_effectors
    if effectors:
        lines.append(f"end effectors: {listed(effectors, 8, quoted=False)}")
    rows = []
    for j in range(min(m.joint_count, _MOST)):
        dofs = m.joint_dofs(j)
        parent, child = m.joint_parents[j], m.joint_children[j]
        rows.append(
            [
                m.joint_names[j],
                m.joint_types[j] + (" (loop)" if j in chords else ""),
                m.body_names[parent] if parent >= 0 else "world",
                m.body_names[child],
                f"{m.mass[child]:.4g}" if j not in chords else "-",
                str(dofs.stop - dofs.start),
                _per_dof(m.stiffness[dofs]),
                _per_dof(m.damping[dofs]),
            ]
        )
    lines += ["", table(_COLUMNS, rows)]
    if (m.dof_kind == SLIDE).any():
        lines.append("of slides, and of the first three dofs of six: N/m and N s/m")
    if m.joint_count > _MOST:
        lines.append(f"... and {m.joint_count - _MOST} more joints")
    for r in range(min(len(m.couplings), _ROWS)):
        terms = _terms(m, *m.couplings.row(r))
        lines.append(f"coupling {m.coupling_names[r]}: {terms} = {m.coupling_offset[r]:.4g}")
    if len(m.couplings) > _ROWS:
        lines.append(f"... and {counted(len(m.couplings) - _ROWS, 'more coupling')}")
    for r in range(min(len(m.tendons), _ROWS)):
        spring = (
            f"stiffness {m.tendon_stiffness[r]:.4g}, damping {m.tendon_damping[r]:.4g}, length "
            f"{_terms(m, *m.tendons.row(r))}"
        )
        lines.append(f"tendon {m.tendon_names[r]}: {spring}")
    if len(m.tendons) > _ROWS:
        lines.append(f"... and {counted(len(m.tendons) - _ROWS, 'more tendon')}")
    if len(m.tendons):
        lines.append(
            "of tendons: N/m and N s/m where the length is in m, N m/rad and N m s/rad where it is in rad"
        )
    return "\n".join(lines)
