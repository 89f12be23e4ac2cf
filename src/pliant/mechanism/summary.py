"""`Mechanism.summary()`: a table a person can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pliant.mechanism.model import Mechanism

__all__ = ["counted", "summarize", "table"]

_MOST = 60  # joints shown before the table is cut


def table(header: list[str], rows: list[list[str]]) -> str:
    """Columns padded to their widest entry; the first column to the left, numbers to the right."""
    widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
    numeric = [all(_is_number(row[c]) for row in rows) for c in range(len(header))]

    def line(row: list[str]) -> str:
        cells = (
            cell.rjust(w) if right else cell.ljust(w)
            for cell, w, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), "  ".join("-" * w for w in widths), *(line(row) for row in rows)])


def counted(n: int, one: str, many: str | None = None) -> str:
    """ "1 loop", "2 loops"."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("", "-")
    return True


def _per_dof(values: np.ndarray) -> str:
    """One number if all are the same, else up to three."""
    if len(values) == 0:
        return "-"
    if np.ptp(values) == 0:
        return f"{values[0]:.4g}"
    return " ".join(f"{v:.4g}" for v in values[:3]) + (" ..." if len(values) > 3 else "")


def summarize(m: Mechanism) -> str:
    topology = m.topology
    chords = set(topology.chords.tolist())
    constraints = 6 * topology.loops + len(m.couplings)
    soft = m.springless
    lines = [
        f"{m.name}: {counted(m.body_count, 'body', 'bodies')}, {m.total_mass:.6g} kg, radius {m.radius:.4g} m",
        f"{counted(m.joint_count, 'joint')}, {counted(m.nv, 'degree')} of freedom, {counted(topology.loops, 'loop')}, "
        f"depth {int(topology.depth.max())}"
        + (f", {counted(len(m.couplings), 'coupling')}" if len(m.couplings) else "")
        + (f", {counted(len(m.tendons), 'tendon')}" if len(m.tendons) else "")
        + (f" ({counted(constraints, 'constraint row')})" if constraints else ""),
    ]
    if soft:
        shown = ", ".join(soft[:6]) + (", ..." if len(soft) > 6 else "")
        lines.append(f"without a spring ({len(soft)}; with_stiffness gives them one): {shown}")
    effectors = m.end_effectors
    if effectors:
        lines.append("end effectors: " + ", ".join(effectors[:8]) + (", ..." if len(effectors) > 8 else ""))
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
                f"{m.mass[child]:.4g}",
                str(dofs.stop - dofs.start),
                _per_dof(m.stiffness[dofs]),
                _per_dof(m.damping[dofs]),
            ]
        )
    lines += ["", table(["joint", "type", "parent", "child", "mass", "dofs", "stiffness", "damping"], rows)]
    if m.joint_count > _MOST:
        lines.append(f"... and {m.joint_count - _MOST} more joints")
    for r in range(min(len(m.couplings), 10)):
        dofs, c = m.couplings.row(r)
        terms = " + ".join(f"{v:.4g} {m.dof_names[d]}" for d, v in zip(dofs, c, strict=True))
        lines.append(f"coupling {m.coupling_names[r]}: {terms} = {m.coupling_offset[r]:.4g}")
    for r in range(min(len(m.tendons), 10)):
        dofs, c = m.tendons.row(r)
        terms = " + ".join(f"{v:.4g} {m.dof_names[d]}" for d, v in zip(dofs, c, strict=True))
        lines.append(f"tendon {m.tendon_names[r]}: stiffness {m.tendon_stiffness[r]:.4g} on {terms}")
    return "\n".join(lines)
