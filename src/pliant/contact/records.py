"""MuJoCo's records: where the number of contacts and their members are in memory, from the headers in its wheel.

Compiled code reads contacts where MuJoCo leaves them. C's rules of alignment give the place of every member of a
structure from its text in the headers; `ctypes` knows these rules. The places are checked once, in a small scene: what
is written through MuJoCo's public interface has to be found there. Otherwise contacts are detected from Python.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import mujoco
import numpy as np
from numpy.typing import NDArray

from pliant.contact.arrays import Native
from pliant.errors import PliantWarning

__all__ = ["attach", "symbols"]

_HEADERS = ("mjtype.h", "mjmodel.h", "mjdata.h")
_TYPES: dict[str, Any] = {
    "int": ctypes.c_int,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "uintptr_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "mjtNum": ctypes.c_double,
    "mjtSize": ctypes.c_int64,
    "mjtBool": ctypes.c_bool,
    "mjtByte": ctypes.c_ubyte,
}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINED = re.compile(r"#define\s+(mj\w+)\s+(\d+)\s*$", re.MULTILINE)
_ENUM = re.compile(r"typedef\s+enum\s+\w+\s*\{([^{}]*)\}")
_STRUCTURE = re.compile(r"typedef\s+struct\s+\w+\s*\{([^{}]*)\}\s*(\w+)\s*;")
_MEMBER = re.compile(r"(\w+)\s*(\**)\s*(\w+)\s*(?:\[([\w*\s]+)\])?$")
_PROBE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .1"><freejoint/><geom size=".1"/></body><body pos="1 0 .1"><freejoint/><geom size=".1"/></body>
<body pos="2 0 .1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


class Offsets(NamedTuple):
    """Offsets in bytes.

    Attributes:
        count, arena, contacts: in the data, of the number of contacts, of the address of the arena, which starts with
            the contacts once there are some, and of the address of the contacts.
        stride: length of a contact's record.
        distance, point, frame, geoms: in that record.
    """

    count: int
    arena: int
    contacts: int
    stride: int
    distance: int
    point: int
    frame: int
    geoms: int


def attach(model: mujoco.MjModel, data: mujoco.MjData, most: int) -> Native | None:
    """Addresses and contact records of a model and its data, for up to `most` contacts; None if not found."""
    places = offsets() if symbols() else None
    if places is None or not places_agree(places, data):
        _tell()
        return None
    start, size = _pointer(data._address + places.arena), places.stride
    return Native(
        model._address,
        data._address,
        _view(data._address + places.count, np.int32, 1),
        _view(start, np.float64, most * size // 8).reshape(most, size // 8),
        _view(start, np.int32, most * size // 4).reshape(most, size // 4),
        np.array([places.point // 8, places.frame // 8, places.geoms // 4], dtype=np.int64),
    )


@cache
def symbols() -> bool:
    """Make MuJoCo's functions known to compiled code by name; False if its library is not found."""
    folder = Path(mujoco.__file__).parent
    for pattern in ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll"):
        for library in sorted(folder.glob(pattern)):
            try:
                llvm.load_library_permanently(str(library))
            except RuntimeError:
                continue
            return llvm.address_of_symbol("mj_collision") is not None
    return False


@cache
def offsets() -> Offsets | None:
    """Offsets in MuJoCo's structures, checked; None if the headers are not there, or are of another version."""
    try:
        found = read_offsets(Path(mujoco.__file__).parent / "include" / "mujoco")
        return found if _is_right(found) else None
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return None


@cache
def _tell() -> None:
    """Warn, once, that contacts are detected in the slower way."""
    warnings.warn(
        f"MuJoCo {mujoco.__version__} keeps its contacts where pliant does not find them: worlds with contact are "
        "slower, with the same results; a version of MuJoCo that pliant was tested with is faster",
        PliantWarning,
        stacklevel=2,
    )


# --- headers


def read_offsets(folder: Path) -> Offsets:
    """Offsets from the headers in a folder.

    Raises:
        OSError: a header is not there.
        LookupError, ValueError: a structure, member or type is not as expected.
    """
    text = _COMMENT.sub("", "\n".join((folder / name).read_text(encoding="utf-8") for name in _HEADERS))
    structures, numbers = {found[1]: found[0] for found in _STRUCTURE.findall(text)}, _constants(text)
    data, contact = (_layout(name, structures, numbers) for name in ("mjData", "mjContact"))
    return Offsets(
        data.ncon.offset,
        data.arena.offset,
        data.contact.offset,
        ctypes.sizeof(contact),
        contact.dist.offset,
        contact.pos.offset,
        contact.frame.offset,
        contact.geom.offset,
    )


def _constants(text: str) -> dict[str, int]:
    """Named numbers, of definitions and enumerations; those of expressions are left out."""
    out = {name: int(value) for name, value in _DEFINED.findall(text)}
    for body in _ENUM.findall(text):
        value: int | None = -1
        for entry in body.split(","):
            name, _, given = (part.strip() for part in entry.partition("="))
            if given:
                value = int(given) if given.lstrip("-").isdigit() else None
            elif value is not None:
                value += 1
            if name and value is not None:
                out[name] = value
    return out


def _layout(name: str, structures: dict[str, str], numbers: dict[str, int]) -> Any:
    """A structure as `ctypes` lays it out."""
    fields = []
    for line in structures[name].split(";"):
        if not line.strip():
            continue
        found = _MEMBER.match(line.strip())
        if found is None:
            raise ValueError(f"{name}: {line.strip()!r:.80}")
        kind, stars, member, size = found.groups()
        if stars:
            what: Any = ctypes.c_void_p
        elif kind in _TYPES:
            what = _TYPES[kind]
        else:
            what = _layout(kind, structures, numbers)
        for factor in size.split("*") if size else ():
            word = factor.strip()
            what *= int(word) if word.isdigit() else numbers[word]
        fields.append((member, what))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


# --- checks


def _is_right(found: Offsets) -> bool:
    """Whether values are at these offsets as balls are lifted off a plane one by one, and as they are written."""
    if found.stride % 8 or any(offset % 8 for offset in (found.distance, found.point, found.frame)):
        return False
    if found.distance or found.geoms % 4:
        return False
    model = mujoco.MjModel.from_xml_string(_PROBE)
    data = mujoco.MjData(model)
    for lifted in range(4):
        data.qpos[2::7] = np.where(np.arange(3) < lifted, 5.0, 0.1)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        if data.ncon != 3 - lifted or not places_agree(found, data):
            return False
        start = _pointer(data._address + found.arena)
        for i in range(data.ncon):
            one, at, seed = data.contact[i], start + i * found.stride, 10.0 * (i + 1)
            one.dist, one.pos, one.frame = seed, seed + np.arange(1, 4), seed - np.arange(1, 10)
            one.geom = [i + 3, i + 7]
            read = [_view(at + found.distance, np.float64, 1), _view(at + found.point, np.float64, 3)]
            read += [_view(at + found.frame, np.float64, 9), _view(at + found.geoms, np.int32, 2)]
            written = [[seed], seed + np.arange(1, 4), seed - np.arange(1, 10), [i + 3, i + 7]]
            if not all(np.array_equal(a, b) for a, b in zip(read, written, strict=True)):
                return False
    return True


def places_agree(places: Offsets, data: mujoco.MjData) -> bool:
    """Whether number and address of the contacts of a scene are where they should be."""
    if int(_view(data._address + places.count, np.int32, 1)[0]) != data.ncon:
        return False
    arena = _pointer(data._address + places.arena)
    if not arena or not data.ncon:
        return arena != 0
    first = int(data.contact.dist.__array_interface__["data"][0])
    return first == arena == _pointer(data._address + places.contacts)


def _pointer(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _view(address: int, kind: Any, count: int) -> NDArray[Any]:
    memory: Any = (ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(address)
    return np.frombuffer(memory, dtype=kind)
