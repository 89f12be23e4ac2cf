"""The assembly tree: every joint once, at most two handles, logarithmic depth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.engines.quasistatic.arrays import LEAF, MERGE, ROOT, SUM, WELD
from pliant.engines.quasistatic.assembly_tree import assembly


def chain(n):
    return np.arange(n) - 1


def star(n):
    return np.concatenate([[-1], np.zeros(n - 1, int)])


def comb(n):
    """A spine with a tooth of ten bodies on each of its bodies."""
    parent = np.arange(n) - 1
    spine = n // 11
    for i in range(spine):
        parent[spine + 10 * i] = i
    return parent


def brush(n):
    """A chain that ends in a star."""
    return np.where(np.arange(n) < n // 2, np.arange(n) - 1, n // 2 - 1)


def forest(n):
    return np.full(n, -1)


def random_tree(n, seed=0, local=False):
    rng = np.random.default_rng(seed)
    low = np.maximum(np.arange(n) - 5, 0) if local else np.zeros(n, int)
    return np.array([-1, *(int(rng.integers(low[i], i)) for i in range(1, n))])


def check(parent):
    """Every cluster is connected and touches the rest at its handles only."""
    tree = assembly(parent)
    n = len(tree)
    inside: list[set[int]] = [set() for _ in range(n)]
    closed = []
    for k in range(n):
        left, right, kind = tree.left[k], tree.right[k], tree.kind[k]
        assert k == n - 1 or tree.parent[k] > k
        if kind == LEAF:
            inside[k] = {int(tree.body[k])}
            continue
        a, b = inside[left] if left >= 0 else set(), inside[right]
        inside[k] = a | b
        if kind == WELD:
            assert a & b == {int(tree.top[k])}
            assert tree.top[left] == tree.top[right] == tree.top[k]
            assert tree.handles[left] == tree.handles[right] == 1
        elif kind == MERGE:
            body = tree.body[k]
            closed.append(int(body))
            assert not a & b
            assert tree.top[right] == body
            assert tree.bottom[left] == parent[body]
            assert tree.top[left] == tree.top[k]
            assert tree.bottom[k] in (tree.bottom[right], tree.top[k])
        elif kind == ROOT:
            closed.append(int(tree.body[k]))
            assert parent[tree.body[k]] == -1
            assert tree.top[right] == tree.body[k]
            assert tree.handles[right] == 1
        else:
            assert kind == SUM
            assert not a & b
            assert tree.handles[left] == tree.handles[right] == 0
        assert tree.handles[k] == len({int(tree.top[k]), int(tree.bottom[k])} - {-1}) <= 2
    assert sorted(closed) == list(range(len(parent)))
    assert inside[n - 1] == set(range(len(parent)))
    for k in range(n):
        # A body whose children are not all inside is a handle, unless another share of it has them.
        for v in inside[k]:
            outside = [w for w in np.flatnonzero(parent == v) if w not in inside[k]]
            if outside and tree.shares[v] == 1:
                # Nothing but light subtrees, raked further up, may be missing.
                assert v in (tree.top[k], tree.bottom[k])
    return tree


@pytest.mark.parametrize("make", [chain, star, comb, brush, forest, random_tree])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 60])
def test_clusters(make, n):
    check(make(n))


@given(st.integers(1, 40), st.integers(0, 10_000), st.booleans())
def test_random_clusters(n, seed, local):
    check(random_tree(n, seed, local))


@pytest.mark.parametrize("make", [chain, star, comb, brush, forest, random_tree])
@pytest.mark.parametrize("n", [1000, 20_000])
def test_depth(make, n):
    assert assembly(make(n)).depth.max() <= 2 * math.log2(n) + 6


def test_at_most_as_many_leaves_as_bodies_and_shares():
    tree = assembly(star(1000))
    assert tree.leaves == tree.shares.sum() <= 1500
