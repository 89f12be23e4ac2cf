"""Kernels that borrow their arrays: what they may not return, and that references stay as they were."""

import sys

import numba
import numpy as np
import pytest

from pliant.compilation import njit


def first_row(x):
    """A view of an argument."""
    return x[0]


def with_a_number(x):
    """An argument in a tuple."""
    return 1.0, x


def scale_row(x, factor):
    """Change a row by way of a view."""
    row = x[0]
    for i in range(row.shape[0]):
        row[i] *= factor


def test_a_kernel_that_borrows_arrays_returns_none():
    with pytest.raises(numba.TypingError, match="Only accept returning of array passed into the function"):
        njit(first_row)(np.ones((2, 3)))
    with pytest.raises(TypeError, match="with_a_number returns an array: give it counts_references=True"):
        njit(with_a_number)(np.ones(3))


def test_a_kernel_that_counts_references_may_return_arrays():
    rows = np.arange(6.0).reshape(2, 3)
    assert (njit(first_row, counts_references=True)(rows) == (0, 1, 2)).all()


def test_references_are_the_same_after_a_call():
    kernel, x = njit(scale_row), np.ones((2, 3))
    kernel(x, 2.0)
    before = sys.getrefcount(x)
    for _ in range(100):
        kernel(x, 1.0)
    assert sys.getrefcount(x) == before
    assert (x == ((2, 2, 2), (1, 1, 1))).all()
