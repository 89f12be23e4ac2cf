"""Still pictures, live views in the browser, and recordings of mechanisms."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant.viewer.picture import draw, picture

if TYPE_CHECKING:
    from pliant.viewer.live import View, view
    from pliant.viewer.recording import export_gltf, record_html

__all__ = ["View", "draw", "export_gltf", "picture", "record_html", "view"]

# Engines import `picture`: modules that import engines are loaded on first use.
_LAZY = {
    "View": "pliant.viewer.live",
    "export_gltf": "pliant.viewer.recording",
    "record_html": "pliant.viewer.recording",
    "view": "pliant.viewer.live",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'pliant.viewer' has no attribute '{name}'")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
