"""Models and figures as notebooks show them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from pliant.engines.reduced.report import summarize
from pliant.text import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pliant.engines.reduced.blended import BlendedModel
    from pliant.engines.reduced.model import ReducedModel

__all__ = ["blend_html", "model_html", "png"]

_MOST = 12  # end effectors, or models of a blend, shown
_MOTIONS = [f"{word} {axis}" for word in ("moves", "turns") for axis in "xyz"]
_EFFORTS = [f"{word} {axis}" for word in ("force", "torque") for axis in "xyz"]


def model_html(model: ReducedModel) -> str:
    """Rank, frequencies and principal stiffnesses; the compliance of every end effector, folded."""
    bodies = model.end_effectors[:_MOST]
    rows, blocks = [], []
    for e, body in enumerate(bodies):
        push, turn = (model.stiffness_ellipsoid(body, of).stiffness for of in ("translation", "rotation"))
        rows.append([body, *(f"{k:.4g}" for k in (*push, *turn))])
        block = model.compliance[6 * e : 6 * e + 6, 6 * e : 6 * e + 6]
        least = 1e-12 * np.abs(block).max()  # below this it is rounding
        lines = [
            [word, *(f"{value:.3g}" if abs(value) > least else "0" for value in row)]
            for word, row in zip(_MOTIONS, block.tolist(), strict=True)
        ]
        title = f"compliance of {escape(body)}, its own frame: m and rad per N and N m"
        blocks.append(f"<details><summary>{title}</summary>{_table(['', *_EFFORTS], lines)}</details>")
    columns = ["end effector", *["N/m"] * 3, *["N m/rad"] * 3]
    head = _paragraph(summarize(model).partition("\n\n")[0])
    return head + _table(columns, rows) + _more(len(model.end_effectors)) + "".join(blocks)


def blend_html(model: BlendedModel) -> str:
    """The models of a blend: under what they were made, how soft and how slow they are."""
    rows = []
    for i, one in enumerate(model.models[:_MOST]):
        forces = one.wrench.reshape(-1, 6)[:, :3]
        softest = min(one.stiffness_ellipsoid(body).stiffness[0] for body in one.end_effectors)
        numbers = np.linalg.norm(forces), softest, one.frequencies()[0]
        rows.append([str(i + 1), *(f"{number:.4g}" for number in numbers)])
    mixed = "a polynomial of the wrench" if model.polynomial else f"mixed by distance^-{model.exponent:g}"
    head = (
        f"{model.mechanism.name}: {counted(len(model.models), 'model')} of "
        f"{counted(len(model.end_effectors), 'end effector')}, {mixed}"
    )
    columns = ["model", "made under, N", "softest, N/m", "slowest, Hz"]
    return _paragraph(head) + _table(columns, rows) + _more(len(model.models))


def png(figure: Figure) -> bytes:
    """A figure as PNG."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()


# --- HTML; names come from files, and files are not trusted


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>".replace("\n", "<br>")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [("th", header), *(("td", row) for row in rows)]
    cells = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in lines)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def _more(count: int) -> str:
    return f"<p>... and {count - _MOST} more</p>" if count > _MOST else ""
