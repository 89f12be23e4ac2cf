"""Seeded damage to XML and JSON text."""

from __future__ import annotations

import copy
import json
import random
import xml.etree.ElementTree as ET
from typing import Any

JUNK = (
    "", " ", "nan", "inf", "-inf", "-1", "0", "1e308", "1e-308", "-1e308", "1e20", "999999999999", "2147483648",
    "-2147483648", "1 2", "1 2 3", "1 2 3 4", "0 0 0", "0 0 0 0", "true", "false", "x", "../x", "é中", "1,2,3", "0x10",
    "a" * 3000, "1 " * 500, "%s%n%s", "world", "auto", "mesh", "ball",
    "free", "hinge", "slide", "plane", "hfield", "sdf",
    "1e-12", "1000000", "65536", "-0", "/etc/passwd", "file:///etc/passwd", "package://a/b.stl",
)  # fmt: skip
NUMBERS = ("nan", "inf", "-1", "0", "1e300", "-5", "1e-300", "1e10", "abc", "3.7")
TAGS = [
    "body",
    "geom",
    "joint",
    "site",
    "freejoint",
    "inertial",
    "camera",
    "light",
    "flexcomp",
    "plugin",
    "frame",
    "replicate",
    "attach",
    "mesh",
    "texture",
    "material",
    "hfield",
    "skin",
    "model",
    "default",
    "tendon",
    "fixed",
    "spatial",
    "equality",
    "connect",
    "weld",
    "flex",
    "actuator",
    "position",
    "motor",
    "general",
    "muscle",
    "damper",
    "cylinder",
    "adhesion",
    "pid",
    "sensor",
    "keyframe",
    "key",
    "compiler",
    "option",
    "size",
    "contact",
    "pair",
    "exclude",
    "worldbody",
    "asset",
    "custom",
    "numeric",
    "tuple",
    "pulley",
    "include",
    "link",
    "robot",
    "limit",
    "mimic",
    "origin",
    "collision",
    "visual",
    "geometry",
    "box",
]
KEYS = ("name", "type", "count", "size", "file", "joint", "body1", "class", "pos", "filename", "meshdir")


def damaged_xml(text: str, seed: int) -> bytes:
    """The text with a few random edits: values, attributes, elements, or bytes."""
    rng = random.Random(seed)
    if rng.random() < 0.12:
        return damaged_bytes(text.encode(), rng)
    root = ET.fromstring(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        _edit(root, rng)
    return ET.tostring(root, encoding="utf-8")


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, cut out, put in, or cut off."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        i, kind = rng.randrange(len(out)), rng.random()
        if kind < 0.4:
            out[i] = rng.randrange(256)
        elif kind < 0.6:
            del out[i : i + rng.choice([1, 1, 5, 50])]
        elif kind < 0.8:
            out[i:i] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 3])))
        else:
            del out[i:]
        out = out or bytearray(b"<")
    return bytes(out)


def _edit(root: ET.Element, rng: random.Random) -> None:
    nodes = list(root.iter())
    node = rng.choice(nodes)
    rich = [n for n in nodes if n.attrib] or [root]
    other = rng.choice(rich)
    keys = sorted(other.attrib)
    kind = rng.random()
    if kind < 0.45 and keys:
        key = rng.choice(keys)
        other.set(key, _value(other.get(key, ""), rich, rng))
    elif kind < 0.55 and keys:
        del other.attrib[rng.choice(keys)]
    elif kind < 0.65 and keys:
        key = rng.choice(keys)
        node.set(key, other.get(key, ""))
    elif kind < 0.75 and len(node):
        node.remove(rng.choice(list(node)))
    elif kind < 0.83 and len(nodes) > 1:
        node.insert(rng.randrange(len(node) + 1), copy.deepcopy(rng.choice(nodes[1:])))
    elif kind < 0.9:
        parent = rng.choice(nodes)
        if len(parent):
            child = rng.choice(list(parent))
            parent.remove(child)
            if node not in list(child.iter()):
                node.append(child)
    elif kind < 0.96:
        node.tag = rng.choice(TAGS) if rng.random() < 0.7 else rng.choice(nodes).tag
    else:
        node.append(ET.Element(rng.choice(TAGS), {rng.choice(KEYS): rng.choice(JUNK)}))


def _value(old: str, rich: list[ET.Element], rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(JUNK)
    if kind < 0.75:
        words = old.split() or ["0"]
        words[rng.randrange(len(words))] = rng.choice(NUMBERS)
        return " ".join(words)
    if kind < 0.9:
        donor = rng.choice(rich)
        return donor.get(rng.choice(sorted(donor.attrib)), "") if donor.attrib else ""
    return old[: rng.randrange(len(old) + 1)]


SCRAP: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2**70,
    1e300,
    -1e300,
    0.5,
    "",
    "x",
    "world",
    [],
    {},
    [[]],
    [None],
    ["a"],
    [1, 2, 3],
    [[1, 2, 3]],
    {"name": []},
    "NaN",
    10**400,
)
TOKENS = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "null",
    "true",
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "[" * 20_000,
    "\\ud800",
    "1" * 5000,
)


def damaged_json(text: str, seed: int) -> bytes:
    """The text with values, keys or list entries replaced, or characters damaged."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.2:
        return damaged_bytes(text.encode(), rng)
    if kind < 0.35:
        i = rng.randrange(len(text))
        return (text[:i] + rng.choice(TOKENS) + text[i + rng.choice([0, 1, 10]) :]).encode(errors="replace")
    document = json.loads(text)
    for _ in range(rng.choice([1, 1, 2, 4])):
        _edit_json(document, rng)
    return json.dumps(document).encode()


def _edit_json(document: dict, rng: random.Random) -> None:
    holder: Any = document
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.93:
            holder = holder[key]
            continue
        break
    kind = rng.random()
    if kind < 0.6 and isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
        old = max(-1e200, min(holder[key], 1e200))
        holder[key] = type(old)(rng.choice([-old, old + 1, old - 1, old * 1e6, old * 1e-9, 1e300, 0, -1]))
    elif kind < 0.75:
        holder[key] = copy.deepcopy(rng.choice(SCRAP))
    elif kind < 0.85:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(rng.choice([holder[key], rng.choice(SCRAP)])))
    elif isinstance(holder, dict):
        holder[rng.choice(["unknown", "mass", "name", "dofs"])] = copy.deepcopy(rng.choice(SCRAP))
