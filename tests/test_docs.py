"""Every Python block of README.md and docs/ runs, and every link between files leads somewhere."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?P<skip><!-- skip -->\s*)?^```python\n(?P<code>.*?)^```", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
PICTURES = 1_500_000  # bytes of all pictures together: a repository is no album


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
            assert f"\n## {anchor}\n" in file.read_text(encoding="utf-8"), (
                f"{name(page)}: no heading '{anchor}'"
            )


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert page.name == "index.md" or f"({page.name})" in index


def test_pictures_are_used_and_small():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = sorted((ROOT / "docs" / "pictures").glob("*"))
    assert all(f"pictures/{picture.name}" in text for picture in pictures)
    assert sum(picture.stat().st_size for picture in pictures) < PICTURES


def test_readme_names_the_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(command in text for command in ("make demo", "make test", "make setup"))
