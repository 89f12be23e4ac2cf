"""Loops, couplings and tendons for `to_mjcf`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.errors import FormatError
from pliant.formats.mjcf_elements import STIFF, Draft, element, opened
from pliant.formats.names import unique
from pliant.mechanism.joints import BALL

__all__ = ["close_loop", "write_coupling", "write_tendon"]


def close_loop(draft: Draft, chord: int) -> None:
    """An equality constraint for a loop-closing joint; between sites, so that it means the same at any pose."""
    m = draft.m
    name, child, parent = m.joint_names[chord], int(m.joint_children[chord]), int(m.joint_parents[chord])
    part, dofs = m.joint_primitives(chord), m.joint_dofs(chord)
    kinds = m.primitive_kind[part].tolist()
    label = unique(name, draft.equality_names)
    if kinds == [] or (kinds == [BALL] and _is_bare(draft, dofs)):
        inner = spatial.pose(m.primitive_anchor[part.start]) if kinds else np.eye(4)
        draft.add_site(parent, f"{name}.parent", m.parent_frames[chord] @ inner)
        draft.add_site(child, f"{name}.child", m.child_frames[chord] @ inner)
        tag, ends = "connect" if kinds else "weld", (f"{name}.parent", f"{name}.child")
    else:
        copy = unique(f"{m.body_names[child]}.{name}", draft.body_names)
        draft.copies.setdefault(parent, []).append((chord, copy))
        draft.share[child] = 1.0 / (
            1.0 / draft.share[child] + 1.0
        )  # 1/2, 1/3, ...: the body and its copies alike
        draft.add_site(child, f"{copy}.body", np.eye(4))
        tag, ends = "weld", (f"{copy}.body", f"{copy}.weld")
    draft.equalities.append(element(tag, name=label, site1=ends[0], site2=ends[1], **STIFF))


def _is_bare(draft: Draft, dofs: slice) -> bool:
    """Whether a joint has neither springs nor limits."""
    m = draft.m
    loaded = any(getattr(m, label)[dofs].any() for label in ("stiffness", "damping", "armature"))
    pulled = np.isin(m.tendons.dof, np.arange(dofs.start, dofs.stop)).any()
    return not loaded and not pulled and bool(np.isinf(m.upper[dofs]).all())


def write_coupling(draft: Draft, r: int) -> None:
    """A coupling: of up to two joints directly, of more through a tendon of constant length."""
    m = draft.m
    dofs, coefficients = m.couplings.row(r)
    name, offset = unique(m.coupling_names[r], draft.equality_names), float(m.coupling_offset[r])
    at = m.reference[m.dof_coordinate[dofs]]
    used = coefficients != 0
    dofs, coefficients, at = dofs[used].tolist(), coefficients[used], at[used]
    if len(dofs) > 2:
        tendon = unique(f"{name}.sum", draft.tendon_names)
        draft.tendons += [opened("fixed", name=tendon), *_terms(draft, dofs, coefficients), "</fixed>"]
        constant = [offset - coefficients @ at, 0, 0, 0, 0]
        draft.equalities.append(element("tendon", name=name, tendon1=tendon, polycoef=constant, **STIFF))
        return
    # y - y0 = a0 + a1 (x - x0), where y0 and x0 are the reference.
    slope = -coefficients[1] / coefficients[0] if len(dofs) == 2 else 0.0
    constant = offset / coefficients[0] - at[0] + (slope * at[1] if len(dofs) == 2 else 0.0)
    second = draft.dof_name[dofs[1]] if len(dofs) == 2 else None
    draft.equalities.append(
        element(
            "joint",
            name=name,
            joint1=draft.dof_name[dofs[0]],
            joint2=second,
            polycoef=[constant, slope, 0, 0, 0],
            **STIFF,
        )
    )


def write_tendon(draft: Draft, r: int) -> None:
    """A spring on a sum of coordinates, as a fixed tendon."""
    m = draft.m
    dofs, coefficients = m.tendons.row(r)
    name = m.tendon_names[r]
    turning = m.dof_kind[dofs] == BALL
    if turning.any():
        raise FormatError(
            f"tendon '{name}' acts on '{m.dof_names[dofs[turning][0]]}' of a ball; MuJoCo's tendons act on hinges "
            "and slides only: use those, or a plain stiffness on the ball"
        )
    rest = float(m.tendon_rest[r])
    if rest == -1:
        rest = float(np.nextafter(-1.0, 0.0))  # to MuJoCo, -1 means "as in the reference pose"
    stiffness, damping = m.tendon_stiffness[r], m.tendon_damping[r]
    draft.tendons += [
        opened("fixed", name=name, stiffness=stiffness, damping=damping, springlength=rest),
        *_terms(draft, dofs.tolist(), coefficients),
        "</fixed>",
    ]


def _terms(draft: Draft, dofs: list[int], coefficients: NDArray) -> list[str]:
    names = [draft.dof_name[dof] for dof in dofs]
    return [element("joint", joint=name, coef=c) for name, c in zip(names, coefficients, strict=True)]
