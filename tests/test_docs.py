"""Every Python block of README.md and docs/ runs, every link leads somewhere, the site has all pages; the citation."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import pliant
from pliant.source import gallery_names

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)]
BLOCK = re.compile(r"(?P<skip><!-- skip -->\s*)?^```python\n(?P<code>.*?)^```", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,3} (?P<text>.+)$", re.M)
FORMULA = re.compile(r"``(.+?)``", re.DOTALL)  # in a docstring
PICTURES = 1_500_000  # bytes of all pictures together: a repository is no album
MOVING, SECONDS = 1_500_000, (3.0, 7.0)  # bytes and length of a moving picture
WORDS = 900  # of the README


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    """Line number and code of the blocks that are to be run."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start("code")), found["code"])
        for found in BLOCK.finditer(text)
        if not found["skip"]
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for line, code in blocks(page):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile("\n" * line + code, str(page), "exec"), namespace)


def test_blocks_are_found():
    assert sum(len(blocks(page)) for page in PAGES) > 20
    assert ".plot(" in blocks(ROOT / "README.md")[0][1]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for found in LINK.finditer(page.read_text(encoding="utf-8")):
        target, _, anchor = found["target"].partition("#")
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.exists(), f"{name(page)}: no '{found['target']}'"
        if anchor:
            headings = (found["text"] for found in HEADING.finditer(file.read_text(encoding="utf-8")))
            assert anchor in {anchored(text) for text in headings}, f"{name(page)}: no heading '{anchor}'"


def anchored(heading):
    """The name of a heading in links, as forges and Sphinx make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_every_page_is_reached_from_the_index():
    """By a link that a forge shows, and by the site's table of contents."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {
        line for block in re.findall(r"```{toctree}\n.*?```", index, re.S) for line in block.split("\n")
    }
    for page in PAGES[1:]:
        path = page.relative_to(DOCS).as_posix()
        assert path == "index.md" or (f"({path})" in index and path.removesuffix(".md") in listed)


def test_the_reference_has_all_public_names():
    """Whatever `pliant` offers is on a page, and every page of the reference is listed."""
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.rst")}
    text = "".join(pages.values())
    missing = [word for word in pliant.__all__ if not re.search(rf":: pliant\.{word}\b", text)]
    assert missing == []
    listed = (DOCS / "api" / "index.md").read_text(encoding="utf-8").splitlines()
    assert set(pages) <= set(listed)


def test_formulas_are_mathematics():
    """No line of a page is a formula in typewriter letters: those are between dollars."""
    for page in PAGES:
        outside = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        indented = [line for line in outside.splitlines() if re.match(r"    \S.*[=+·⁻ᵀ]", line)]
        assert indented == [], name(page)
        spans = re.findall(r"`([^`]*)`", outside)
        assert [span for span in spans if re.search("[⁻ᵀ½²³×·←]", span)] == [], name(page)


def docstrings():
    """Docstrings of the package, with their modules."""
    for path in sorted((ROOT / "src" / "pliant").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
                text := ast.get_docstring(node)
            ):
                yield path, text


def test_formulas_of_docstrings_are_mathematics(monkeypatch):
    """Between double backticks stands no code; in the reference, between single ones no formula."""
    monkeypatch.syspath_prepend(str(DOCS))
    from formulas import mathematics, tex  # pyright: ignore[reportMissingImports]

    for plain, expected in {
        "J⁻ᵀ M⁻¹ J": "J^{-T} M^{-1} J",
        "I + sinθ/θ r^ + r^²": r"I + \sin \theta /\theta \hat{r} + \hat{r}^{2}",
        "[[Rᵀ, -Rᵀ p], [0, 1]]": r"\begin{bmatrix} R^{T} & -R^{T} p \\ 0 & 1 \end{bmatrix}",
        "T_a_b": r"T_{a\,b}",
        "T_parent_child <= C^T": r"T_{\mathrm{parent}\,\mathrm{child}} \le C^{T}",
        "mass φ' + exp(dξ)": r"\mathrm{mass}\, \varphi ' + \exp (d\xi )",
    }.items():
        assert tex(plain) == expected
    with pytest.raises(ValueError, match="is code"):
        tex("adjoint(T_a_b).T @ f")
    spans = [tex(" ".join(span.split())) for _, text in docstrings() for span in FORMULA.findall(text)]
    assert len(spans) > 100
    for path, text in docstrings():
        single = re.findall(r"(?<!`)`([^`]+)`(?!`)", text) if "spatial" in path.parts else []
        assert not [span for span in single if re.search("[⁻ᵀ½²³×·θπξ]", span)], path
    for thing in (getattr(pliant, word) for word in pliant.__all__):
        mathematics((inspect.getdoc(thing) or "").split("\n"))  # refuses indented code, too
    made = mathematics((inspect.getdoc(pliant.ReducedModel) or "").split("\n"))
    assert made[made.index(".. math::") + 2].lstrip().startswith(r"\mathrm{mass}\, \varphi '")
    assert mathematics(["So", "", "    a² = b", "", "Example:", "    >>> 1", "", "    >>> 2"]) == [
        "So", "", ".. math::", "", "    a^{2} = b", "", "Example:", "    >>> 1", "", "    >>> 2"
    ]  # fmt: skip


def test_formulas_are_drawn_by_the_browser(monkeypatch):
    converter = pytest.importorskip("latex2mathml.converter", reason="`make docs` installs it")
    monkeypatch.syspath_prepend(str(DOCS))
    from formulas import tex  # pyright: ignore[reportMissingImports]

    for _, text in docstrings():
        for formula in FORMULA.findall(text):
            drawn = converter.convert(tex(" ".join(formula.split())))
            assert drawn.startswith("<math")
            assert "\\" not in drawn  # every command is known


def test_the_site_begins_with_the_quick_start_and_a_picture():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    first = re.search(r"```{toctree}\n(?:.*\n)*?\n(.*)\n", index)
    assert first is not None
    assert first[1] == "quick-start"
    assert index.index("![") < index.index("## ")


def test_the_gallery_shows_everything_and_leads_to_it():
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(
        r"\[!\[([\w.]+)\]\(\.\./src/pliant/viewer/thumbnails/\1\.webp\)\]\(#([\w-]+)\) `\1`", text
    )
    assert sorted(name for name, _ in shown) == sorted(gallery_names())
    mechanisms = {name for name, target in shown if target == name}
    assert mechanisms == set(pliant.gallery.names())


def test_pictures_are_used_and_small():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = sorted((DOCS / "pictures").glob("*"))
    assert all(f"pictures/{picture.name}" in text for picture in pictures)
    assert sum(picture.stat().st_size for picture in pictures) < PICTURES


def test_readme_names_the_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(command in text for command in ("make demo", "make test", "make setup"))


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= WORDS


def test_the_moving_picture_moves_and_is_small():
    """Every moving picture is on a page; frames differ, it plays for some seconds and for ever."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    films = sorted((DOCS / "moving").glob("*"))
    assert [film.name for film in films] == ["pull.gif"]
    assert "docs/moving/pull.gif" in (ROOT / "README.md").read_text(encoding="utf-8")
    for film in films:
        assert f"moving/{film.name}" in text
        assert film.stat().st_size < MOVING
        with Image.open(film) as image:
            assert image.info["loop"] == 0
            assert 600 <= image.width <= 700
            length, frames = 0.0, []
            for i in range(image.n_frames):  # pyright: ignore[reportAttributeAccessIssue]
                image.seek(i)
                length += image.info["duration"] / 1000
                frames.append(np.asarray(image.convert("L"), float))
        assert len(frames) > 40
        assert SECONDS[0] < length < SECONDS[1]
        assert max(np.abs(frame - frames[0]).mean() for frame in frames) > 2.0


def citation():
    """The top level of CITATION.cff, and the titles of its references: enough of YAML for that file."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "\t" not in text
    top = dict(re.findall(r"^([a-z-]+): *(.*)$", text, re.M))
    return {key: value.strip('"') for key, value in top.items()}, text


def test_citation_agrees_with_the_package():
    found, text = citation()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert found["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "abstract", "keywords", "references"} <= set(found)
    assert (found["title"], found["version"], found["license"]) == (
        project["name"],
        project["version"],
        project["license"],
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date-released"])
    assert re.findall(r"^  - name: \"(.*)\"$", text, re.M) == [
        author["name"] for author in project["authors"]
    ]
    keywords = re.search(r"^keywords:\n((?:  - .*\n)+)", text, re.M)
    assert keywords is not None
    assert re.findall(r"- (.*)", keywords[1]) == project["keywords"]


def test_citation_names_the_papers():
    """The references are those of docs/papers.md, title by title."""
    _, text = citation()
    titles = re.findall(r"^    title: \"(.*)\"$", text, re.M)
    assert titles == re.findall(
        r"\*([A-Z][^*]+)\*", re.sub(r"\*\*.*?\*\*", "", (DOCS / "papers.md").read_text(encoding="utf-8"))
    )
