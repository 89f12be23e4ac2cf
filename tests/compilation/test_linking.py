"""Kernels that other kernels call: code for linking, without machine code until Python calls them."""

import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

from pliant.compilation import linking, njit


@njit
def _square(x):
    return x * x


@njit
def add_square(x, out):
    for i in range(out.shape[0]):
        out[i] += _square(x)


@njit
def add_squares(x, y, out):
    add_square(x, out)
    add_square(y, out)


@njit(counts_references=True)
def check(x):
    if x < 0:
        raise ValueError("negative", x)
    return x


@njit(counts_references=True)
def checked_sum(x):
    return sum([check(value) for value in x])


@njit
def factorial(n):
    if n < 2:
        return 1
    return n * factorial(n - 1)


@njit
def even(n):
    if n == 0:
        return True
    return odd(n - 1)


@njit
def odd(n):
    if n == 0:
        return False
    return even(n - 1)


@njit
def twice_factorial(n):
    return 2 * factorial(n)


def linked(kernel):
    """Whether the only overload of a kernel is code for linking."""
    (result,) = kernel.overloads.values()
    return linking.is_linked(result)


def address(kernel):
    """Address of the machine code of a kernel's only overload; zero if it has none."""
    (result,) = kernel.overloads.values()
    return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)


def test_machine_code_comes_with_the_first_call_from_python():
    out = np.zeros(3)
    add_squares(3.0, 4.0, out)
    assert (out == 25.0).all()
    kernels = _square, add_square, add_squares
    assert [linked(kernel) for kernel in kernels] == [True, True, False]
    assert [address(kernel) > 0 for kernel in kernels] == [False, False, True]
    add_square(2.0, out)
    assert (out == 29.0).all()
    assert [linked(kernel) for kernel in kernels] == [True, False, False]
    assert [address(kernel) > 0 for kernel in kernels] == [False, True, True]


def test_errors_come_through_with_their_values():
    assert checked_sum(np.ones(3)) == 3.0
    assert linked(check)
    with pytest.raises(ValueError, match="negative") as raised:
        checked_sum(np.array([1.0, -2.0]))
    assert raised.value.args == ("negative", -2.0)


def test_recursion():
    assert twice_factorial(5) == 240
    assert factorial(5) == 120
    with pytest.raises(TypeError, match="odd: kernels that call one another in a circle"):
        even(4)


def test_a_kernel_that_does_not_compile_leaves_nothing_behind():
    @njit
    def wrong(x):
        return x.no_such_attribute

    @njit
    def caller(x):
        return wrong(x)

    for _ in range(2):
        with pytest.raises(numba.TypingError, match="no_such_attribute"):
            caller(1.0)
        assert not linking.is_for_callers()


def test_threads_do_not_meet():
    seen = []
    with linking.for_callers():
        thread = threading.Thread(target=lambda: seen.append(linking.is_for_callers()))
        thread.start()
        thread.join()
    assert seen == [False]


RUN = """
import numpy as np
from pliant.compilation import njit, progress
from pliant.spatial import kernels
@njit
def caller(a, b, out):
    kernels.quat_multiply(a, b, out)
out = np.zeros(4)
caller(np.array([.5, .5, .5, .5]), np.array([.1, .7, -.7, .1]), out)
print(out.tobytes().hex(), *(line.split()[0].rpartition(".")[2] for line in progress.compiled()))
"""


def test_code_for_linking_is_kept(tmp_path):
    """A second process links what the first one compiled, and gives the same bits."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    (bits, *compiled), again = (
        subprocess.run(
            [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    )
    assert compiled == ["quat_multiply"]
    assert again == [bits]
    assert [path.suffix for path in tmp_path.rglob("*quat_multiply*")] == [".linked"]
