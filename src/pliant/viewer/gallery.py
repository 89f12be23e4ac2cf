"""`thumbnail`: moving pictures of the gallery, made by `docs/make_thumbnails.py`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files

__all__ = ["grid", "thumbnail"]

_STYLE = """<style>
.mantine-Modal-content { flex-basis: 62rem !important; }
.pliant-gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(180px, 1fr)); gap: 12px; }
.pliant-gallery label { cursor: pointer; text-align: center; font-size: 0.9em; }
.pliant-gallery img { width: 100%; aspect-ratio: 4 / 3; border: 1px solid #ddd; border-radius: 6px; display: block; }
.pliant-gallery label:hover img { border-color: #1f6fb4; }
</style>"""


@cache
def thumbnail(name: str) -> bytes:
    """Animated WebP of an entry of the gallery."""
    return (files("pliant.viewer") / "thumbnails" / f"{name}.webp").read_bytes()


def grid(buttons: Mapping[str, str]) -> str:
    """HTML of thumbnails by name, each of which presses the button with its identifier; the buttons are not seen."""
    unseen = ", ".join(f'div:has(> [id="{escape(button)}"])' for button in buttons.values())
    cells = [
        f"<style>{unseen} {{ position: absolute; width: 1px; height: 1px; overflow: hidden; opacity: 0; }}</style>"
    ]
    for name, button in buttons.items():
        source = f"data:image/webp;base64,{base64.b64encode(thumbnail(name)).decode('ascii')}"
        word = escape(name)
        cells.append(f'<label for="{escape(button)}"><img src="{source}" alt="{word}">{word}</label>')
    return f'{_STYLE}<div class="pliant-gallery">{"".join(cells)}</div>'
