"""The table of equations in docs/papers.md: every function exists and cites its equation."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAPERS = ("TVCG", "GS17", "RL05")
ROW = re.compile(r"^\| ((?:TVCG|GS17|RL05) [^|]+) \|[^|]+\| `([\w.]+)(?::([\w.]+))?` \|$", re.MULTILINE)
WORDS = {"Eqs": "Eq", "Eq": "Eq", "sections": "section", "section": "section", "Figs": "Fig", "Fig": "Fig",
         "Appendices": "Appendix", "Appendix": "Appendix", "Table": "Table", "Tables": "Table"}  # fmt: skip
NUMBER = r"(?:\d+(?:\.\d+)*|[A-Z]\b)"
CITATION = re.compile(rf"({'|'.join(WORDS)})\.?\s+({NUMBER}(?:(?:,\s*|\s+and\s+|\s+to\s+|-){NUMBER})*)")


def cited(text):
    """Equations, sections and so on that a text cites per paper: {(paper, word, number)}."""
    out = set()
    for paper in PAPERS:
        # a citation reaches from the label to the next label
        for part in re.findall(rf"{paper}\b(.*?)(?={'|'.join(PAPERS)}|$)", text, re.DOTALL):
            for word, numbers in CITATION.findall(part):
                found = re.findall(rf"(to\s+|-)?({NUMBER})", numbers)
                last = None
                for through, number in found:
                    if through and last is not None and last.isdigit() and number.isdigit():
                        out |= {(paper, WORDS[word], str(n)) for n in range(int(last), int(number))}
                    out.add((paper, WORDS[word], number))
                    last = number
    return out


def docstrings(module, name):
    """Docstring of a function, class or method, and of its module, from the source."""
    path = ROOT.joinpath("src", "pliant", *module.split("."))
    node = tree = ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))
    for part in name.split(".") if name else ():
        kinds = (ast.FunctionDef, ast.ClassDef)
        found = [n for n in node.body if isinstance(n, kinds) and n.name == part]
        assert found, f"{module} has no {name}"
        node = found[0]
    return (ast.get_docstring(node) or "") + "\n" + (ast.get_docstring(tree) or "")


def rows():
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    return ROW.findall(text)


def test_the_table_covers_all_papers():
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(tuple(f"| {p} " for p in PAPERS))]
    assert len(rows()) == len(lines)  # none is malformed
    for paper in PAPERS:
        assert sum(equation.startswith(paper) for equation, _, _ in rows()) >= 8


@pytest.mark.parametrize(("equation", "module", "name"), rows())
def test_an_equation_is_where_the_table_says(equation, module, name):
    wanted = cited(equation)
    assert wanted
    assert wanted <= cited(docstrings(module, name))


def test_citations_are_read():
    assert cited("by GS17 (Eqs. 4, 23 and 25) and TVCG Eqs. 8-9, section 3.1") == {
        ("GS17", "Eq", "4"), ("GS17", "Eq", "23"), ("GS17", "Eq", "25"),
        ("TVCG", "Eq", "8"), ("TVCG", "Eq", "9"), ("TVCG", "section", "3.1"),
    }  # fmt: skip
    assert cited("GS17 Eqs. 15 to 17, Appendix B") == {
        *(("GS17", "Eq", str(n)) for n in (15, 16, 17)),
        ("GS17", "Appendix", "B"),
    }
