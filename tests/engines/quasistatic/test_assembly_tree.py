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


def nested(tree, k=None):
    """An assembly tree as nested tuples: kind, body, children."""
    k = len(tree) - 1 if k is None else k
    children = (nested(tree, int(c)) for c in (tree.left[k], tree.right[k]) if c >= 0)
    return (int(tree.kind[k]), int(tree.body[k]), *children)


def by_recursion(parent):
    """The same, by recursion as in the module's description: heavy paths by halves, light subtrees two at a time."""
    children = {v: [w for w in range(len(parent)) if parent[w] == v] for v in range(-1, len(parent))}

    def weight(v):
        return 1 + sum(weight(w) for w in children[v])

    def halves(items, weights, join):
        if len(items) == 1:
            return items[0]
        total = sum(weights)
        # the cut nearest to half the weight; of two as near, the latter
        cut = min(range(len(items) - 1, 0, -1), key=lambda i: abs(2 * sum(weights[:i]) - total))
        return join(halves(items[:cut], weights[:cut], join), halves(items[cut:], weights[cut:], join))

    def subtree(v):
        path = [v]
        while children[path[-1]]:
            path.append(max(children[path[-1]], key=weight))
        merged, weights = [], []
        for here, following in zip(path, [*path[1:], None], strict=True):
            light = sorted((w for w in children[here] if w != following), key=weight)
            shares, sizes = [], []
            for pair in [light[i : i + 2] for i in range(0, len(light), 2)] or [[]]:
                share = (LEAF, here)
                for w in pair:
                    share = (MERGE, w, share, subtree(w))
                shares.append(share)
                sizes.append(1 + sum(weight(w) for w in pair))
            merged.append((halves(shares, sizes, lambda a, b: (WELD, -1, a, b)), here))
            weights.append(sum(sizes) - len(sizes) + 1)
        return halves(merged, weights, lambda a, b: ((MERGE, b[1], a[0], b[0]), a[1]))[0]

    roots = children[-1]
    closed = [(ROOT, v, subtree(v)) for v in roots]
    return halves(closed, [weight(v) for v in roots], lambda a, b: (SUM, -1, a, b))


@given(st.integers(1, 30), st.integers(0, 10_000), st.booleans(), st.booleans())
def test_order_of_merges(n, seed, local, rooted):
    parent = random_tree(n, seed, local)
    if not rooted:
        parent[np.random.default_rng(seed).random(n) < 0.2] = -1
    assert nested(assembly(parent)) == by_recursion(parent)
