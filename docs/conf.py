"""Sphinx: `make docs` turns these pages and the docstrings into docs/_build/html, without a network or a display."""

from __future__ import annotations

import inspect
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

import pliant
from pliant.source import gallery_names

sys.path.insert(0, str(Path(__file__).resolve().parent))  # formulas, make_thumbnails

from formulas import mathematics

project = "pliant"
author = copyright = "The pliant developers"
version = release = installed("pliant")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"pliant {version}"
html_show_sourcelink = html_copy_source = False
html_static_path, html_css_files = ["_static"], ["pliant.css"]

# Equations between dollars, links to headings: what a forge shows, too.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Docstrings quote code in single backticks, as Markdown does.
default_role = "code"
autodoc_default_options = {"members": True, "inherited-members": "tuple, Exception"}
autoclass_content = "both"  # what the class is, and what its constructor takes
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Floats": "NDArray"}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
# Annotations name numpy and the standard library, whose indices would need a network, and inner classes of pliant,
# which have no page.
nitpick_ignore_regex = [("py:.*", r"(?!pliant\.\w+$).*")]
suppress_warnings = ["ref.python"]  # `stiffness` among the attributes of one class is not that of another


def formulas(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Formulas between double backticks and in indented paragraphs are mathematics; indented examples stay code."""
    lines[:] = mathematics(lines)


def sentences(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A property's docstring is text. Napoleon takes what is before its first colon for a type."""
    if what == "property":
        lines[:] = [*mathematics((inspect.getdoc(thing) or "").splitlines()), ""]


def public_name(app: Any, env: Any, node: Any, contents: Any) -> Any:
    """`pliant.mechanism.mechanism.Mechanism`, as an annotation has it, is documented as `pliant.Mechanism`."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in pliant.__all__:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"pliant.{name}", node, contents)


def equation(page: Any, node: Any) -> None:
    """MathML, which browsers draw themselves: no script from elsewhere is needed."""
    if isinstance(node, nodes.math):
        page.body.append(convert(node.astext()))
    else:
        drawn = convert(node.astext(), display="block").replace(
            "<math ", '<math style="overflow: visible" ', 1
        )
        page.body.append(f'<div style="overflow: auto hidden; padding: 0.5em 0">{drawn}</div>')
    raise nodes.SkipNode


def thumbnails(app: Any, doctree: Any, page: str) -> None:
    """Thumbnails lead to recordings; on a forge, which has none, they lead to the text."""
    for image in list(doctree.findall(nodes.image)):
        path = Path(image["uri"])
        if (
            path.parent.name == "thumbnails"
            and page == "gallery"
            and isinstance(image.parent, nodes.reference)
        ):
            image.parent.attributes.pop("refid", None)
            image.parent["refuri"] = f"recordings/{path.stem}.html"
            table = image
            while not isinstance(table, nodes.table):
                table = table.parent
            table["classes"] = ["gallery-grid"]


def recordings(app: Any, error: Exception | None) -> None:
    """Write the recording of everything in the gallery, some three megabytes."""
    if error is None and app.builder.name == "html":
        from make_thumbnails import record

        folder = Path(app.outdir) / "recordings"
        folder.mkdir(exist_ok=True)
        for name in gallery_names():
            record(name, folder / f"{name}.html")


def setup(app: Any) -> None:
    app.connect("doctree-resolved", thumbnails)
    app.connect("build-finished", recordings)
    app.connect("autodoc-process-docstring", formulas, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", sentences, priority=600)  # after it
    app.add_html_math_renderer("mathml", (equation, None), (equation, None))
    app.connect("missing-reference", public_name)
