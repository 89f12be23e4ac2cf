"""`dress`: the web page of viser, with pliant's title, and files and folders that can be dropped on it."""

from __future__ import annotations

import gzip
from functools import lru_cache

from pliant.viewer.opening import LARGEST_FILE

__all__ = ["dress"]

# What is dropped or chosen goes where the button for files sends it; several files, or a folder, as one archive.
_SCRIPT = """<script>
(() => {
const LARGEST = %d, UTF8 = 0x800;
const TABLE = Uint32Array.from({length: 256}, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n>>>1) : n>>>1;
  return n;
});
const crc = bytes => {
  let c = -1;
  for (const b of bytes) c = TABLE[(c ^ b) & 255] ^ (c>>>8);
  return ~c>>>0;
};
// Numbers of 2 or 4 bytes, the lowest byte first: [bytes, number, bytes, number, ...]
const record = (...pairs) => {
  const out = [];
  for (let i = 0; i < pairs.length; i += 2)
    for (let k = 0; k < pairs[i]; k++) out.push((pairs[i + 1]>>>(8 * k)) & 255);
  return new Uint8Array(out);
};
// A ZIP archive of [path, file], without compression.
const pack = async files => {
  const parts = [], directory = [];
  let offset = 0, size = 0;
  for (const [path, file] of files) {
    const data = new Uint8Array(await file.arrayBuffer()), name = new TextEncoder().encode(path);
    const common = record(2, 20, 2, UTF8, 2, 0, 2, 0, 2, 33, 4, crc(data), 4, data.length, 4, data.length,
                          2, name.length, 2, 0);
    parts.push(record(4, 0x04034b50), common, name, data);
    directory.push(record(4, 0x02014b50, 2, 20), common, record(2, 0, 2, 0, 2, 0, 4, 0, 4, offset), name);
    offset += 30 + name.length + data.length;
    size += 46 + name.length;
  }
  const n = files.length;
  const end = record(4, 0x06054b50, 2, 0, 2, 0, 2, n, 2, n, 4, size, 4, offset, 2, 0);
  return new File([...parts, ...directory, end], "files.zip");
};
const put = (input, file) => {
  const list = new DataTransfer();
  list.items.add(file);
  input.files = list.files;
  input.dispatchEvent(new Event("change", {bubbles: true}));
};
const send = async (input, files) => {
  const size = files.reduce((sum, [, file]) => sum + file.size, 0);
  if (size > LARGEST) alert(`${Math.ceil(size / 1e6)} MB: up to ${LARGEST / 1e6} MB can be opened here.`);
  else put(input, files.length > 1 ? await pack(files) : files[0][1]);
};
const entries = async folder => {
  const reader = folder.createReader(), found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    found.push(...some);
  }
};
const walk = async (entry, above) => {
  if (entry.isFile) return [[above + entry.name, await new Promise((resolve, reject) => entry.file(resolve, reject))]];
  const inner = (await entries(entry)).map(one => walk(one, above + entry.name + "/"));
  return (await Promise.all(inner)).flat();
};
addEventListener("dragover", e => {
  if (e.dataTransfer && [...e.dataTransfer.types].includes("Files")) e.preventDefault();
});
addEventListener("drop", async e => {
  const input = document.querySelector("input[type=file]");
  if (!input || !e.dataTransfer || !e.dataTransfer.files.length) return;
  e.preventDefault();
  const plain = [...e.dataTransfer.files].map(file => [file.name, file]);
  const dropped = [...e.dataTransfer.items].map(item => item.webkitGetAsEntry());
  const folders = dropped.some(entry => entry && entry.isDirectory);
  const found = folders ? (await Promise.all(dropped.map(entry => walk(entry, "")))).flat() : plain;
  if (found.length) await send(input, found);
});
addEventListener("click", e => { if (e.target.matches("input[type=file]")) e.target.multiple = true; }, true);
addEventListener("change", e => {
  const input = e.target;
  if (!input.matches("input[type=file]") || input.files.length < 2) return;
  e.stopImmediatePropagation();
  send(input, [...input.files].map(file => [file.name, file]));
}, true);
})();
</script>""".replace("%d", str(LARGEST_FILE))


@lru_cache(maxsize=4)
def dress(body: bytes, compressed: bool) -> bytes:
    """The page of viser as bytes, gzipped or not, with title and script of pliant; other files as they are."""
    page = gzip.decompress(body) if compressed else body
    if b"<title>Viser</title>" not in page:
        return body
    page = page.replace(b"<title>Viser</title>", b"<title>pliant</title>", 1)
    page = page.replace(b"</head>", _SCRIPT.encode() + b"</head>", 1)
    return gzip.compress(page) if compressed else page
