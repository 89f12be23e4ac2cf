"""`dress`: the web page of viser, with pliant's title, and files that can be dropped on it."""

from __future__ import annotations

import gzip
from functools import lru_cache

__all__ = ["dress"]

# A file that is dropped goes where the button for files would send it.
_SCRIPT = """<script>
addEventListener("dragover", e => {
  if (e.dataTransfer && [...e.dataTransfer.types].includes("Files")) e.preventDefault();
});
addEventListener("drop", e => {
  const file = e.dataTransfer && e.dataTransfer.files[0];
  const input = document.querySelector("input[type=file]");
  if (!file || !input) return;
  e.preventDefault();
  const list = new DataTransfer();
  list.items.add(file);
  input.files = list.files;
  input.dispatchEvent(new Event("change", {bubbles: true}));
});
</script>"""


@lru_cache(maxsize=4)
def dress(body: bytes, compressed: bool) -> bytes:
    """The page of viser as bytes, gzipped or not, with title and script of pliant; other files as they are."""
    page = gzip.decompress(body) if compressed else body
    if b"<title>Viser</title>" not in page:
        return body
    page = page.replace(b"<title>Viser</title>", b"<title>pliant</title>", 1)
    page = page.replace(b"</head>", _SCRIPT.encode() + b"</head>", 1)
    return gzip.compress(page) if compressed else page
