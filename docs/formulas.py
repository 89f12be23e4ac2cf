"""Formulas of docstrings as TeX: docstrings write them between double backticks, or as indented paragraphs."""

from __future__ import annotations

import re

__all__ = ["mathematics", "tex"]

_SIGNS = {
    "γ": r"\gamma ",
    "θ": r"\theta ",
    "ξ": r"\xi ",
    "π": r"\pi ",
    "τ": r"\tau ",
    "φ": r"\varphi ",
    "ω": r"\omega ",
    "λ": r"\lambda ",
    "μ": r"\mu ",
    "Θ": r"\Theta ",
    "Φ": r"\Phi ",
    "Ψ": r"\Psi ",
    "×": r"\times ",
    "·": r"\cdot ",
    "∘": r"\circ ",
    "±": r"\pm ",
    "½": r"\tfrac{1}{2}",
    "<=": r"\le ",
    ">=": r"\ge ",
}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀ", "0123456789+-nT")
_FUNCTION = r"(?<![A-Za-z\\])(?:sin|cos|cot|tan|exp|log)(?![a-z])"
_NOT_FORMULA = re.compile(r"[@\[\]\\`\"]|[a-z]\w+_\w+\(")
# In this order; each leaves alone what those before it have made, which stands between braces or has a backslash.
_RULES = (
    (r"([A-Za-z])\^(?![-\dT])", r"\\hat{\1}"),  # r^: the skew matrix of r
    (r"\^(-?\d+|T)", r"^{\1}"),
    (r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀ]+", lambda found: f"^{{{found[0].translate(_RAISED)}}}"),
    (_FUNCTION, lambda found: f"\\{found[0]} "),
    (r"(?<![A-Za-z\\{])([A-Za-z])((?:_[a-zΘ]+)+)", lambda found: f"{found[1]}_{{{_lower(found[2])}}}"),
    (r"(?<![A-Za-z\\{])d([a-zA-Z])(?![A-Za-z{])", r"d \1"),  # a small change
    (r"(?<![A-Za-z\\{])([A-Za-z]{2,})(?![A-Za-z{}])( (?=[\w\\]))?", lambda found: _word(*found.groups())),
    ("|".join(map(re.escape, _SIGNS)), lambda found: _SIGNS[found[0]]),
)


def _lower(names: str) -> str:
    """Subscripts: letters as they are, words upright."""
    return r"\,".join(part if len(part) == 1 else rf"\mathrm{{{part}}}" for part in names.split("_")[1:])


def _word(letters: str, space: str | None) -> str:
    """A name of several letters, upright, apart from what it multiplies."""
    return rf"\mathrm{{{letters}}}" + (r"\, " if space else "")


def tex(formula: str) -> str:
    """A formula in plain letters, such as `J⁻ᵀ [[Rᵀ, p], [0, 1]] + sin θ / θ r^²`, as TeX.

    Raises:
        ValueError: it is code, which stands between single backticks.
    """

    def matrix(found: re.Match[str]) -> str:
        upper, lower = (" & ".join(tex(entry) for entry in row.split(", ")) for row in found.groups())
        kept.append(rf"\begin{{bmatrix}} {upper} \\ {lower} \end{{bmatrix}}")
        return chr(0xE000 + len(kept) - 1)  # a private character, so that no rule sees it

    kept: list[str] = []
    out = re.sub(r"\[\[([^]]*)\], \[([^]]*)\]\]", matrix, formula)
    if _NOT_FORMULA.search(out):
        raise ValueError(f"``{formula}`` in a docstring is code: single backticks")
    for pattern, made in _RULES:
        out = re.sub(pattern, made, out)
    for i, rows in enumerate(kept):
        out = out.replace(chr(0xE000 + i), rows)
    return re.sub(r" +", " ", out).strip()


def mathematics(lines: list[str]) -> list[str]:
    """Lines of a docstring with its formulas as mathematics of reStructuredText; indented examples stay code."""
    text = re.sub(
        r"``(.+?)``", lambda found: f":math:`{tex(' '.join(found[1].split()))}`", "\n".join(lines), flags=re.S
    )
    out: list[str] = []
    around: int | None = None  # indentation of the text around a formula; None: no formula
    for line in text.split("\n"):
        indent, last = (
            len(line) - len(line.lstrip()),
            next((one for one in reversed(out) if one.strip()), None),
        )
        if around is not None and line.strip() and indent <= around:
            around = None
        if (
            around is None
            and line.strip()
            and last is not None
            and not out[-1].strip()
            and not last.endswith("::")
        ):
            above = len(last) - len(last.lstrip())
            if indent >= above + 4:
                code = line.lstrip().startswith(">>>")
                out += [" " * above + ("::" if code else ".. math::"), ""]
                around = None if code else above
        out.append(line if around is None or not line.strip() else " " * indent + tex(line.strip()))
    return out
