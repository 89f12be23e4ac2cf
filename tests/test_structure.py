"""The structure of the package, read from its syntax trees: imports point one way, packages keep out of each other."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pliant"
# Packages from the floor up: a package imports from itself and from those before it.
ORDER = [
    (
        "errors",
        "extras",
        "compilation",
        "checks",
        "camera",
        "chunks",
        "text",
        "files",
        "plotting",
        "child",
        "one_thread",
        "read_only",
        "threads",
    ),
    ("spatial", "shapes"),
    ("mechanism",),
    ("formats", "gallery"),
    ("statics",),
    ("engines",),
    ("contact", "continuation"),
    ("world",),
    ("scenes",),
    ("viewer", "study", "source", "compare", "workspace"),
    ("cli", "warm_up", "__main__", "__init__"),
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
ENGINES = {"ReducedSimulation", "ConstrainedSimulation", "QuasistaticSimulation", "AdaptiveSimulation"}
# Known exceptions, imported in a method or for types only: things draw, save and load themselves, handles know their
# world, a mechanism its first natural frequency, which dampers follow. None may be added.
UPWARD = {
    ("mechanism", "statics"),
    ("mechanism", "formats"),
    ("mechanism", "viewer"),
    ("statics", "viewer"),
    ("engines", "viewer"),
    ("contact", "world"),
}


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if "__pycache__" not in p.parts)


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST):
    """Modules of pliant that are imported, and names taken from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "pliant":
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("pliant."):
                    yield alias.name, []


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    own = package(path)
    assert own in RANK, f"{own} has no place in ORDER"
    for module, names in imports(syntax(path)):
        parts = module.split(".")
        targets = [parts[1]] if len(parts) > 1 else [name for name in names if name in RANK]
        for target in targets:
            if (own, target) not in UPWARD:
                assert RANK[target] <= RANK[own], f"{own} imports from {target}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_private_names_across_packages(path):
    """Neither private modules nor private functions of another package; engines are packages of their own."""
    own = home(path.relative_to(SOURCE).with_suffix("").parts)
    for module, names in imports(syntax(path)):
        parts = module.split(".")[1:]
        for full in [[*parts, name] for name in names] or [parts]:
            private = [name for name in full if name.startswith("_") and not name.endswith("__")]
            assert not private or home(full) == own, f"{path.name} takes {'.'.join(full)}"


def home(parts) -> tuple[str, ...]:
    """The package that a module or name belongs to: of the engines, each its own."""
    return tuple(parts[: 2 if parts[0] == "engines" and len(parts) > 2 else 1])


def private_names(tree: ast.AST) -> set[str]:
    """Private functions, methods and attributes of `self` that a module defines."""
    out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            out.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            out.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            out.add(node.value)  # slots, and attributes set by name
    return {name for name in out if name.startswith("_")}


def test_no_private_attributes_across_packages():
    """`thing._x` only where the package itself defines `_x`."""
    trees = {path: syntax(path) for path in modules()}
    own: dict[str, set[str]] = {}
    for path, tree in trees.items():
        own.setdefault(package(path), set()).update(private_names(tree))
    found = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if (
                not isinstance(node, ast.Attribute)
                or not node.attr.startswith("_")
                or node.attr.startswith("__")
            ):
                continue
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                continue
            if node.attr not in own[package(path)] | FOREIGN | OTHERS.get(package(path), set()):
                found.append(f"{path.relative_to(SOURCE)}, line {node.lineno}: {node.attr}")
    assert found == []


# Of other packages, where there is no public way: numba's compiler; MuJoCo's records; viser's controls.
OTHERS = {
    "compilation": {"_engine", "_reload_init"},
    "contact": {"_address"},
    "viewer": {"_gui_input_handle_from_uuid"},
}
# of named tuples; of os, sys and numba
FOREIGN = {"_type", "_replace", "_asdict", "_make", "_fields", "_exit", "_getframe", "_rebuild", "_reduce"}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_nobody_asks_which_engine_it_is(path):
    """Outside of an engine's own package, simulations are used by their protocol, not by `isinstance`."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)} & ENGINES
            inside = path.relative_to(SOURCE).parts[:2] in (
                ("engines", "reduced"), ("engines", "constrained"), ("engines", "quasistatic"))  # fmt: skip
            assert inside or not asked, f"{path.name}, line {node.lineno} asks for {asked}"
