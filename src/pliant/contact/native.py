"""MuJoCo's collider without Python in between: where its library keeps what compiled code needs.

`mj_collision` is a public function of MuJoCo's library, and compiled code may call it by name. What it reads and writes
besides arrays (the number of contacts, and where they are) has no array in Python: its place in MuJoCo's
records is looked for in a small scene whose answers are known. If anything is not where it is looked for, there is
`None`, and contacts are detected by way of Python.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ["Native", "attach", "symbols"]

_SCENE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .1"><freejoint/><geom size=".1"/></body><body pos="1 0 .1"><freejoint/><geom size=".1"/></body>
<body pos="2 0 .1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
_FAR = 64  # bytes in which something is looked for, from the last array before it


@dataclass(frozen=True)
class _Places:
    """Offsets in bytes.

    Attributes:
        count: number of contacts, in the data.
        contacts: address of the memory that contacts are the first to take, past `data.energy`.
        stride, position, frame, geom: of a contact, from its distance on.
    """

    count: int
    contacts: int
    stride: int
    position: int
    frame: int
    geom: int


@dataclass(frozen=True, eq=False)
class Native:
    """What compiled code needs of one model and its data, which have to outlive it.

    Attributes:
        model, data: addresses.
        count: of contacts, an array of one number.
        real, whole: records of contacts, as numbers of 8 and of 4 bytes.
        layout: where in a record position, frame and geoms are; the distance comes first.
    """

    model: int
    data: int
    count: NDArray[np.int32]
    real: NDArray[np.float64]
    whole: NDArray[np.int32]
    layout: NDArray[np.int64]


@cache
def symbols() -> bool:
    """Let compiled code find MuJoCo's functions by name; False if its library cannot be found."""
    folder = Path(mujoco.__file__).parent
    for pattern in ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll"):
        for library in sorted(folder.glob(pattern)):
            try:
                llvm.load_library_permanently(str(library))
            except RuntimeError:
                continue
            return llvm.address_of_symbol("mj_collision") is not None
    return False


def attach(model: mujoco.MjModel, data: mujoco.MjData, most: int) -> Native | None:
    """Places for a model and its data, with `most` contacts; None if they cannot be told."""
    places = _places() if symbols() else None
    if places is None:
        return None
    count = _view(data._address + places.count, np.int32, 1)
    start = ctypes.c_size_t.from_address(_address(data.energy) + places.contacts).value
    if count[0] != data.ncon or not start:
        return None
    if data.ncon and _address(data.contact.dist) != start:
        return None
    size = places.stride
    return Native(
        model._address,
        data._address,
        count,
        _view(start, np.float64, most * size // 8).reshape(most, size // 8),
        _view(start, np.int32, most * size // 4).reshape(most, size // 4),
        np.array([places.position // 8, places.frame // 8, places.geom // 4], dtype=np.int64),
    )


@cache
def _places() -> _Places | None:
    model = mujoco.MjModel.from_xml_string(_SCENE)
    data = mujoco.MjData(model)
    try:
        found = _search(model, data)
    except AttributeError:  # no such name in this version
        return None
    return found


def _search(model: mujoco.MjModel, data: mujoco.MjData) -> _Places | None:
    start, end = data._address, _address(data.energy)  # both within one record, which is longer than that
    if not 0 < end - start < 1 << 20:
        return None
    counts = np.ones((end - start) // 4, dtype=bool)
    starts = np.ones(_FAR // 8, dtype=bool)
    for lifted in range(4):
        data.qpos[2::7] = np.where(np.arange(3) < lifted, 5.0, 0.1)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        if data.ncon != 3 - lifted:
            return None
        counts &= _view(start, np.int32, len(counts)) == data.ncon
        if data.ncon:
            contact: Any = data.contact
            first = _address(contact.dist)
            starts &= _view(end, np.uint64, len(starts)) == first
            stride, position = contact.pos.strides[0], _address(contact.pos) - first
            frame, geom = _address(contact.frame) - first, _address(contact.geom) - first
    if (counts.sum(), starts.sum()) != (1, 1) or stride % 8 or geom % 4:
        return None
    return _Places(
        4 * int(counts.argmax()),
        8 * int(starts.argmax()),
        stride,
        position,
        frame,
        geom,
    )


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _view(address: int, kind: Any, count: int) -> NDArray[Any]:
    memory: Any = (ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(address)
    return np.frombuffer(memory, dtype=kind)
