"""Structures whose arrays kernels borrow, and kernels that are called by address."""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref
from numpy.typing import NDArray

from pliant.compilation import njit, views
from pliant.compilation.calls import address_of, call_returning


class Pair(NamedTuple):
    values: NDArray[np.float64]
    factor: float


class Work(NamedTuple):
    out: NDArray[np.float64]
    calls: NDArray[np.int64]


@structref.register
class _ThingType(views.StructureType):
    pass


class Thing(views.Structure):
    """Two named tuples."""


views.define(_ThingType, Thing, ("pair", "work"))
call = call_returning(types.int64)


@njit(counts_references=True)
def make_thing(pair, work):
    return Thing(pair, work)


@njit
def scale(pair, out):
    """A kernel that takes a named tuple."""
    for i in range(out.shape[0]):
        out[i] = pair.factor * pair.values[i]
    return out.shape[0]


@njit
def scale_by_address(thing):
    """The same of a structure; kernels that count no references may read it."""
    return call(thing.work.calls[0], (thing.pair.whole, thing.work.out))


def test_a_kernel_is_called_by_address_with_arrays_of_a_structure():
    pair = Pair(np.arange(5.0), 3.0)
    work = Work(np.zeros(5), np.zeros(1, dtype=np.int64))
    thing = make_thing(pair, work)
    work.calls[0] = address_of(scale, pair, work.out)
    assert scale_by_address(thing) == 5
    assert work.out.tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]
    assert address_of(scale) == work.calls[0]  # known by now


def test_a_structure_keeps_its_arrays_alive():
    work = Work(np.zeros(1000), np.zeros(1, dtype=np.int64))
    work.calls[0] = address_of(scale, Pair(np.zeros(1), 0.0), np.zeros(1))
    thing = make_thing(Pair(np.full(1000, 2.0), 0.5), work)
    others = [np.random.default_rng(i).normal(size=1000) for i in range(200)]  # would reuse freed memory
    assert scale_by_address(thing) == 1000
    assert (work.out == 1.0).all()
    assert len(others) == 200
