"""Memory of statics: arrays are given back when mechanisms and solvers go, whatever kernels have used them."""

import gc
import tracemalloc

import numpy as np
import pytest

import pliant
from pliant.mechanism.loop_closure import LoopCloser, close_loops


def solve(m):
    pliant.equilibrium(m, {m.end_effectors[0]: (1.0, 0, 0)})


def respond(m):
    pliant.Configuration(m).compliance()


def close(m):
    close_loops(m, m.reference + 1e-3)


def follow(m):
    held = np.zeros(m.nv, dtype=bool)
    held[0] = True
    LoopCloser(m, held).follow(np.array([[1e-3], [2e-3]]))


@pytest.mark.parametrize("work", [solve, respond, close, follow])
def test_memory_is_given_back(work):
    def used(rounds):
        for _ in range(rounds):
            work(pliant.gallery.ladder(40))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = used(3)
        after = used(5)
    finally:
        tracemalloc.stop()
    assert after - before < 50_000  # the arrays of one solver take some 500,000 bytes
