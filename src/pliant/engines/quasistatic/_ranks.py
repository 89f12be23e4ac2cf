"""Kernel of `redundancy.py`: motions of clusters and ranks of loops, by reflections."""

import math

from pliant.compilation import njit

_jit = njit(error_model="numpy", nogil=True)

REDUNDANT = 1e-7  # a row shorter than this says nothing new, in radians or mean levers per unit motion
# columns of `plan`: the children's rows in it (FREE for a cluster that floats on one handle) and numbers of handles,
# the two handles compared, rows held, where F starts, number of handles left, where their list starts
CHILD, HANDLES, COMPARED, HELD, START, LEFT, LIST = 0, 2, 4, 6, 7, 8, 9
PLAN_COLUMNS = 10
FREE = -1


@_jit
def ranks(plan, kept, operators, store, columns, f, g, c, out):
    """How many of the rows that a node holds are independent of each other and of those held in its children.

    Args:
        plan: a row per node, children first, see the columns above.
        kept: handles left of all nodes, as numbers among the handles of both children.
        operators: what a node's rows see of the motions of the two handles compared, (nodes, 2, 6, 6).
        store, columns: out; F of every node, and its number of columns.
        f, g, c: scratch; F of both children, F at the handles left, and the rows held.
        out: ranks, (nodes,).
    """
    for k in range(plan.shape[0]):
        node = plan[k]
        rows, held, r = 6 * (node[HANDLES] + node[HANDLES + 1]), node[HELD], 0
        for i in range(rows):
            for j in range(rows):
                f[i, j] = 0.0
        for side in range(2):
            child, first = node[CHILD + side], 6 * node[HANDLES] * side
            m = 6
            if child != FREE:
                m = columns[child]
            if node[HANDLES + side] == 0:
                m = 0
            for i in range(6 * node[HANDLES + side]):
                for j in range(m):
                    x = 1.0 if i == j else 0.0
                    if child != FREE:
                        x = store[plan[child, START] + m * i + j]
                    f[first + i, r + j] = x
            r += m
        for i in range(held):
            for j in range(r):
                c[i, j] = 0.0
            for side in range(2):
                at = 6 * node[COMPARED + side]
                if at >= 0:
                    for e in range(6):
                        for j in range(r):
                            c[i, j] += operators[k, side, i, e] * f[at + e, j]
        rank = 0
        while rank < held:
            best, most = rank, -1.0
            for i in range(rank, held):
                size = 0.0
                for j in range(rank, r):
                    size += c[i, j] * c[i, j]
                if size > most:
                    best, most = i, size
            if not most > REDUNDANT * REDUNDANT:
                break
            for j in range(r):
                c[rank, j], c[best, j] = c[best, j], c[rank, j]
            beta, _ = _reflector(c[rank], rank, r)
            _reflect(c[rank], beta, rank, r, c, rank + 1, held)
            _reflect(c[rank], beta, rank, r, f, 0, rows)
            rank += 1
        out[k] = rank
        # F at the handles left: without the columns held, and turned until it is no wider than high
        n, m = 6 * node[LEFT], r - rank
        for i in range(n):
            at = 6 * kept[node[LIST] + i // 6] + i % 6
            for j in range(m):
                g[i, j] = f[at, rank + j]
        if m > n:
            for i in range(n):
                beta, alpha = _reflector(g[i], i, m)
                _reflect(g[i], beta, i, m, g, i + 1, n)
                for j in range(i, m):
                    g[i, j] = 0.0
                g[i, i] = alpha
            m = n
        for i in range(n):
            for j in range(m):
                store[node[START] + m * i + j] = g[i, j]
        columns[k] = m


@_jit
def _reflector(v, k, r):
    """Householder vector of v[k:r], in its place; returns -2 over its squared length, and the first entry after."""
    size = 0.0
    for j in range(k, r):
        size += v[j] * v[j]
    if size == 0.0:
        return 0.0, 0.0
    alpha = -math.sqrt(size) if v[k] > 0.0 else math.sqrt(size)
    v[k] -= alpha
    return 1.0 / (alpha * v[k]), alpha


@_jit
def _reflect(v, beta, k, r, x, first, last):
    """Reflect the rows of x from `first` to `last` by v[k:r]."""
    for i in range(first, last):
        total = 0.0
        for j in range(k, r):
            total += v[j] * x[i, j]
        total *= beta
        for j in range(k, r):
            x[i, j] += total * v[j]
