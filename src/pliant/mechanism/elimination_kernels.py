"""Kernels that solve for motions of a tree whose rows (loops, couplings, tendons) tie links to each other.

    [ H   Aᵀ ] [ step       ]   [ force ]
    [ A  -c  ] [ multipliers] = [ gap   ]

H is the matrix of a tree, eliminated link by link, tips first. A row is carried up from its ends to the lowest link
that carries all of them, and closed there. What is left of a subtree is the *front* of its link: the equations of
open rows and the force that the link's motion takes, as functions of the multipliers of these rows and of its twist x:

    [ rows  ]   [ C  R ] [ multipliers ]
    [ force ] = [ F  Q ] [ x           ]

Joint motions and closed rows are pivots, blocks B of one to three unknowns; each changes the front by
`-columns B⁻¹ rows`. The cost is the sum of squares of the sizes of fronts. All is in world axes about the origins of
links, so fronts go from a link to its parent by a shift. Derivatives of loads are not symmetric, so in general fronts
are not; where H is known to be symmetric and positive definite, lower triangles suffice, and closing rows need no
search for pivots.

Inner loops run over slices from zero, whose indices the compiler knows not to be negative: two to five times as fast.

Redundant rows are a matter of geometry: `find_redundant` decides by an orthogonal decomposition along the same tree,
in which neither stiffness nor mass appears.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.compilation import njit

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_inline = njit(inline="always", error_model="numpy", nogil=True, fastmath={"contract"})
GENERAL, SYMMETRIC, DEFINITE = range(3)  # of H, for `factor`
_TINY = 1e-200  # in place of a pivot of zero: what follows is not finite, and callers look
_DIAGONAL = (
    0.64  # share of the largest entry of closing rows from which on the largest diagonal one is the pivot
)
_ALIKE = (
    0.1  # remainders of at least this share of the largest one count as alike: their rows keep their order
)
_ROUNDING = 1e-15  # least pivot of a row, as a fraction of what it is the remainder of
_DOWNDATED = 1e-4  # fraction of a squared length below which differences have lost digits: it is summed again
_WIDE = 40  # size of the largest front from which on empty rows are looked for first
CORRECTIONS = 40  # of a solution, at most; each must halve the one before
_CORRECTED = (
    1e-10  # correction, as a fraction of the motion, after which none is needed: the next is its square
)
_MENDED = 1e-13  # gap that counts as closed, as a fraction of the largest motion of a row
_RIGID = 1e-3  # motion of a rigid mechanism, at most, as a fraction of the gap or of what its stiffest joint would do
_NOTHING = 1e-13  # entries of rows, radians and loop sizes, that count as zero; far below any tolerance


class Tree(NamedTuple):
    """Links, rows, and where rows close; n links, m rows. The world is node n.

    Attributes:
        parent: of links, (n,); n for the world.
        dof, dofs: first dof of a link's joint, and their number, (n,).
        order: nodes in the order of elimination, children first, (n + 1,).
        unit: length by which the position rows of a loop are divided, m, (loops,).
        copy: per loop, the link whose frame must coincide with another link's.
        loop_start, loop_at: per link, ends of loops there, compressed: the loop, or -1 - loop if it is no copy.
        end_start, end_link: per row, the links at which it starts, compressed; of a loop, the copy first.
        root: per row, the node at which it closes.
        entry_start, entry_row, entry_value: per dof, its coefficients in couplings and tendons, compressed.
    """

    parent: NDArray[np.int64]
    dof: NDArray[np.int64]
    dofs: NDArray[np.int64]
    order: NDArray[np.int64]
    unit: NDArray[np.float64]
    copy: NDArray[np.int64]
    loop_start: NDArray[np.int64]
    loop_at: NDArray[np.int64]
    end_start: NDArray[np.int64]
    end_link: NDArray[np.int64]
    root: NDArray[np.int64]
    entry_start: NDArray[np.int64]
    entry_row: NDArray[np.int64]
    entry_value: NDArray[np.float64]


class Fronts(NamedTuple):
    """Rows of fronts, numbers of pivots, and work space; see `allocate`.

    Attributes:
        kept, before: 1 for rows that take part, and for those that did before, (m,).
        start: per node, where its rows start in `rows`, (n + 2,): those that close there, then those that stay open.
        closing: per node, how many close there, (n + 1,).
        rows, sign: row, and which end of a loop is in the subtree: 1 for the copy, -1 for the other.
        pivot: for closing rows, in the order of pivots: unknowns of the pivot that starts there, or 0 within one.
        numbers: per pivot its inverse, columns and rows.
        copies: of what is stored beside inverses: 2 for columns and rows, 1 for columns only (symmetric), (1,).
        stack, stack_at, waiting: fronts that wait for their parents, where they start, and their nodes.
        front, block: the front at hand, (s, s), and scratch, (8, s).
        place: per row, its place in the front at hand, (m,).
        seen: scratch, (n + 1,).
    """

    kept: NDArray[np.int64]
    before: NDArray[np.int64]
    start: NDArray[np.int64]
    closing: NDArray[np.int64]
    rows: NDArray[np.int64]
    sign: NDArray[np.float64]
    pivot: NDArray[np.int64]
    numbers: NDArray[np.float64]
    copies: NDArray[np.int64]
    stack: NDArray[np.float64]
    stack_at: NDArray[np.int64]
    waiting: NDArray[np.int64]
    front: NDArray[np.float64]
    block: NDArray[np.float64]
    place: NDArray[np.int64]
    seen: NDArray[np.int64]


class Matrix(NamedTuple):
    """The matrix of a tree, world axes about the origins of links, linear part first.

    Attributes:
        position: origins of links, (n, 3).
        screw: unit twists of dofs, (nv, 6).
        column: change of the force on a link with its own joint's motion, beyond that with its twist, (nv, 6).
        row: the same of the joint's equation with the twist of the link before it, (nv, 6).
        tangent: change of the force on a link with its twist, (n, 6, 6).
        stiffness: of dofs, a row of the joint's block each, (nv, 3).
        give: c of rows, (m,).
    """

    position: NDArray[np.float64]
    screw: NDArray[np.float64]
    column: NDArray[np.float64]
    row: NDArray[np.float64]
    tangent: NDArray[np.float64]
    stiffness: NDArray[np.float64]
    give: NDArray[np.float64]


class Motion(NamedTuple):
    """Work space of `solve`: forces on links, the given ones at first, and their twists, (n + 1, 6); sums of rows."""

    force: NDArray[np.float64]
    twist: NDArray[np.float64]
    sums: NDArray[np.float64]


@_jit
def _arm(position, a, b):
    """Origin of link a from that of link b, m."""
    return position[a, 0] - position[b, 0], position[a, 1] - position[b, 1], position[a, 2] - position[b, 2]


# --- symbolic part


@_jit
def plan(parent, end_start, carrier, order, root, size, depth):
    """Order of elimination, and the node at which every row closes: the lowest that carries all its carriers.

    Parents have smaller numbers than children. `size` and `depth` are scratch, (n + 1,).
    """
    n = parent.shape[0]
    for k in range(n + 1):
        size[k] = 1
    for k in range(n - 1, -1, -1):
        size[parent[k]] += size[k]
    # Places of a subtree are consecutive, its root last; size[k] becomes the place of the next child's root.
    order[n], depth[n], size[n] = n, 0, n - 1
    for k in range(n):
        p, own = parent[k], size[k]
        order[size[p]], depth[k] = k, depth[p] + 1
        size[k] = size[p] - 1
        size[p] -= own
    for r in range(root.shape[0]):
        at = carrier[end_start[r]]
        for e in range(end_start[r] + 1, end_start[r + 1]):
            k = carrier[e]
            while k != at:
                if depth[k] > depth[at]:
                    k = parent[k]
                else:
                    at = parent[at]
        root[r] = at


@_jit
def loop_sizes(parent, copy, body, root, position, out):
    """Size of every loop: largest distance of its links from the origin of its copy, m."""
    for loop in range(copy.shape[0]):
        o, largest = copy[loop], 0.0
        for side in range(2):
            k = copy[loop] if side == 0 else body[loop]
            while k != root[6 * loop]:
                square = 0.0
                for i in range(3):
                    square += (position[k, i] - position[o, i]) ** 2
                largest = max(largest, square)
                k = parent[k]
        out[loop] = math.sqrt(largest)


@_jit
def count_rows(tree, fronts):
    """Number of rows in every front: `start` and `closing`, for the rows that are kept."""
    start, closing, seen = fronts.start, fronts.closing, fronts.seen
    n = tree.parent.shape[0]
    for k in range(n + 1):
        start[k + 1], closing[k], seen[k] = 0, 0, -1
    start[0] = 0
    for r in range(tree.root.shape[0]):
        if fronts.kept[r] == 0:
            continue
        root = tree.root[r]
        start[root + 1] += 1
        closing[root] += 1
        for e in range(tree.end_start[r], tree.end_start[r + 1]):
            k = tree.end_link[e]
            while k != root and seen[k] != r:
                seen[k] = r
                start[k + 1] += 1
                k = tree.parent[k]
    for k in range(n + 1):
        start[k + 1] += start[k]


@_jit
def measure(tree, fronts):
    """Numbers of all pivots, numbers on the stack, and size of the largest front, after `count_rows`."""
    start, closing, place = fronts.start, fronts.closing, fronts.seen
    numbers, stack, largest, height = 0, 0, 0, 0
    n = tree.parent.shape[0]
    for k in range(n + 1):
        place[k] = 0  # numbers of the children's fronts
    for i in range(n + 1):
        k = tree.order[i]
        width = start[k + 1] - start[k] + 6
        rest = width - closing[k]
        for j in range(closing[k]):
            numbers += 1 + 2 * (width - j - 1)
        largest = max(largest, width)
        if k < n:
            m = tree.dofs[k]
            if tree.parent[k] == n:
                rest -= 6
            numbers += m * m + 2 * m * rest
            height += rest * rest - place[k]
            place[tree.parent[k]] += rest * rest
            stack = max(stack, height)
    return numbers, stack, largest


@_jit
def set_rows(tree, fronts):
    """Rows of every front, for the rows that are kept."""
    count_rows(tree, fronts)
    start, closing, seen, rows, sign = fronts.start, fronts.closing, fronts.seen, fronts.rows, fronts.sign
    n = tree.parent.shape[0]
    # Where the next open row goes, and the next closing one; fronts are filled in ascending order of rows.
    opened, closed = fronts.stack_at, fronts.waiting
    for k in range(n + 1):
        opened[k], closed[k], seen[k] = start[k] + closing[k], start[k], -1
    for r in range(tree.root.shape[0]):
        if fronts.kept[r] == 0:
            continue
        root, side = tree.root[r], 1.0
        rows[closed[root]] = r
        closed[root] += 1
        for e in range(tree.end_start[r], tree.end_start[r + 1]):
            k = tree.end_link[e]
            while k != root and seen[k] != r:
                seen[k] = r
                rows[opened[k]], sign[opened[k]] = r, side
                opened[k] += 1
                k = tree.parent[k]
            side = -1.0


# --- elimination


@_jit
def factor(tree, fronts, matrix, kind):
    """Eliminate all joints and rows; returns the number of allowed motions with negative stiffness (if symmetric).

    `kind` is what is known of H. Where it is SYMMETRIC, lower triangles of fronts are computed only, and rows close
    without a search for pivots: the error of solutions, which `solve_many` returns, tells whether one was missed. Where
    H is expected to be positive DEFINITE, too, pivots of rows are kept from being less than rounding, so that no sign
    depends on the last bit, and the first joint without positive stiffness, joints above it held, ends the elimination,
    with a number that is not 0.
    """
    lower, definite = kind != GENERAL, kind == DEFINITE
    order, parent, start, closing, rows = tree.order, tree.parent, fronts.start, fronts.closing, fronts.rows
    place, waiting, stack_at, G = fronts.place, fronts.waiting, fronts.stack_at, fronts.front
    stack, numbers, block = fronts.stack, fronts.numbers, fronts.block
    n = parent.shape[0]
    negative, height, top, at, ready = 0, 0, 0, 0, False
    fronts.copies[0] = 1 if lower else 2
    for i in range(n + 1):
        k = order[i]
        first, c = start[k], closing[k]
        w = start[k + 1] - first
        size = w + (6 if k < n else 0)
        if not ready:
            for a in range(size):
                line = G[a, : a + 1 if lower else size]
                for b in range(line.shape[0]):
                    line[b] = 0.0
            _sort(rows, first, first + c)
            for a in range(w):
                place[rows[first + a]] = a
        if k < n:
            for a in range(6):
                for b in range(a + 1 if lower else 6):
                    G[w + a, w + b] -= matrix.tangent[k, a, b]
            for e in range(tree.loop_start[k], tree.loop_start[k + 1]):
                _add_end(k, tree.loop_at[e], tree, fronts, matrix.position, w)
        for a in range(c):
            G[a, a] -= matrix.give[rows[first + a]]
        while height > 0 and parent[waiting[height - 1]] == k:
            height -= 1
            top = stack_at[waiting[height]]
            _add_child(waiting[height], tree, fronts, w, lower)
        j, begin = 0, at
        for a in range(c):
            block[7, a] = G[a, a]
            fronts.pivot[first + a] = 1
        while lower and j + 4 <= c:
            # Two calls: a single one would be compiled into this loop, which costs small linkages a tenth of a step.
            if definite:
                negative -= _close_four(G, j, size, True, block[7], numbers[at:])
            else:
                negative -= _close_four(G, j, size, False, block[7], numbers[at:])
            at += 4 * (size - j) - 6
            j += 4
        while j < c:
            m = 1
            if definite:
                G[j, j] = min(G[j, j], _ROUNDING * block[7, j])
            elif not lower:
                m = _choose_pivot(fronts, size, j, c, first, begin)
            negative -= _invert_block(G, j, m, block)
            at = _store(G, j, m, j + m, size, block, numbers, at, lower)
            j += m
        if k == n:
            break
        m, high = tree.dofs[k], size if parent[k] < n else w  # the world does not move
        if m > 0:
            if lower:
                _joint_row(k, tree, fronts, matrix, c, w)
            else:
                _joint_pivot(k, tree, fronts, matrix, c, w)
            negative += m - _invert_block(G, size, m, block)
            if definite and negative > 0:
                return negative
            at = _store(G, size, m, c, high, block, numbers, at, lower)
        p = parent[k]
        if p < n:
            x, y, z = _arm(matrix.position, k, p)
            _shift(G, c, w, x, y, z, lower)
            # The front of an only child with the same rows stays where it is.
            ready = order[i + 1] == p and c == 0 and closing[p] == 0 and start[p + 1] - start[p] == w
            ready = ready and (height == 0 or parent[waiting[height - 1]] != p)
            if ready:
                continue
        ready = False
        waiting[height], stack_at[k] = k, top
        height += 1
        for a in range(c, high):
            line = G[a, c : a + 1 if lower else high]
            kept = stack[top : top + line.shape[0]]
            for b in range(line.shape[0]):
                kept[b] = line[b]
            top += line.shape[0]
    return max(negative, 0)  # rounding may turn signs of rows that are almost redundant


@_jit
def _sort(rows, first, last):
    """Sort rows, which earlier pivots have exchanged, so that no result depends on what was factored before."""
    for i in range(first + 1, last):
        r, j = rows[i], i
        while j > first and rows[j - 1] > r:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = r


@_inline
def _add_end(k, end, tree, fronts, position, w):
    """Add an end of a loop to the front of link k: unit wrenches on it, about the copy's origin."""
    loop, side = (end, 1.0) if end >= 0 else (-1 - end, -1.0)
    G, o = fronts.front, tree.copy[loop]
    x, y, z = _arm(position, o, k)
    for i in range(6):
        r = 6 * loop + i
        if fronts.kept[r] == 0:
            continue
        a, s = fronts.place[r], side if i >= 3 else side / tree.unit[loop]
        G[a, w + i] += s
        G[w + i, a] += s
        # r x e_i
        if i == 0:
            p, q, u, v = w + 4, w + 5, s * z, -s * y
        elif i == 1:
            p, q, u, v = w + 5, w + 3, s * x, -s * z
        elif i == 2:
            p, q, u, v = w + 3, w + 4, s * y, -s * x
        else:
            continue
        G[a, p] += u
        G[p, a] += u
        G[a, q] += v
        G[q, a] += v


@_jit
def _shift(G, low, w, x, y, z, lower):
    """Refer force and twist of a front, rows from `low` on, to a point from which its origin is at (x, y, z)."""
    if lower:
        for a in range(6):
            for b in range(a):
                G[w + b, w + a] = G[w + a, w + b]
    for a in range(w if lower else low, w + 6):
        u, v, t = G[a, w], G[a, w + 1], G[a, w + 2]
        G[a, w + 3] += y * t - z * v
        G[a, w + 4] += z * u - x * t
        G[a, w + 5] += x * v - y * u
    high = w + 6
    f0, f1, f2 = G[w, low:high], G[w + 1, low:high], G[w + 2, low:high]
    t0, t1, t2 = G[w + 3, low:high], G[w + 4, low:high], G[w + 5, low:high]
    for b in range(high - low):
        t0[b] += y * f2[b] - z * f1[b]
        t1[b] += z * f0[b] - x * f2[b]
        t2[b] += x * f1[b] - y * f0[b]


@_inline
def _add_child(child, tree, fronts, w, lower):
    """Add the front of a child, which is about the origin of the node at hand, to that node's."""
    G, stack, rows, place = fronts.front, fronts.stack, fronts.rows, fronts.place
    begin = fronts.start[child] + fronts.closing[child]
    count, o = fronts.start[child + 1] - begin, fronts.stack_at[child]
    size = count if tree.parent[child] == tree.parent.shape[0] else count + 6
    for a in range(size):
        p = place[rows[begin + a]] if a < count else w + a - count
        length = a + 1 if lower else size
        line, given = G[p], stack[o : o + length]
        for b in range(min(count, length)):
            q = place[rows[begin + b]]
            if lower and q > p:
                G[q, p] += given[b]
            else:
                line[q] += given[b]
        for b in range(count, length):
            line[w + b - count] += given[b]
        o += length


@_inline
def _choose_pivot(fronts, size, j, c, first, begin):
    """Bring the next pivot among the closing rows j to c to place j: one row, or two; returns how many.

    One row if its diagonal, one of the largest, is large enough beside its other entries; else the largest entry of all
    closing rows decides, which takes longer to find. Both bound the growth of entries alike.
    """
    G, pivot, numbers, rows = fronts.front, fronts.pivot, fronts.numbers, fronts.rows
    own, p, cross, u, v = 0.0, j, 0.0, j, j
    for a in range(j, c):
        own = max(own, abs(G[a, a]))
    while abs(G[p, p]) < _ALIKE * own:
        p += 1
    line = G[p, j:c]
    for b in range(line.shape[0]):
        if j + b != p:
            cross = max(cross, abs(line[b]))
    if abs(G[p, p]) < _ALIKE * _DIAGONAL * cross:
        for a in range(j, c):
            for b in range(a + 1, c):
                if abs(G[a, b]) > cross or u == v:
                    cross, u, v = abs(G[a, b]), a, b
    m = 1
    if own >= _DIAGONAL * cross or j + 1 == c:
        _swap(G, numbers, rows, pivot, fronts.block[7], size, j, p, j, first, begin)
    else:
        m = 2
        _swap(G, numbers, rows, pivot, fronts.block[7], size, j, u, j, first, begin)
        _swap(G, numbers, rows, pivot, fronts.block[7], size, j + 1, v, j, first, begin)
        pivot[first + j + 1] = 0
    pivot[first + j] = m
    return m


@_jit
def _swap(G, numbers, rows, pivot, whole, size, j, p, done, first, begin):
    """Exchange two rows of a front, and the columns of their multipliers, also in the `done` pivots before them."""
    if p == j:
        return
    at, i = begin, 0
    while i < done:
        m = pivot[first + i]
        i += m
        at += m * m
        for _ in range(2 * m):
            numbers[at + j - i], numbers[at + p - i] = numbers[at + p - i], numbers[at + j - i]
            at += size - i
    rows[first + j], rows[first + p] = rows[first + p], rows[first + j]
    whole[j], whole[p] = whole[p], whole[j]
    for b in range(size):
        G[j, b], G[p, b] = G[p, b], G[j, b]
    for a in range(size):
        G[a, j], G[a, p] = G[a, p], G[a, j]


@_inline
def _joint_pivot(k, tree, fronts, matrix, c, w):
    """Rows and columns of the joint's motions, behind those of the front: equations D motion + ... = force."""
    G, place, screw = fronts.front, fronts.place, matrix.screw
    d, m, size = tree.dof[k], tree.dofs[k], w + 6
    for a in range(m):
        for i in range(c, size):
            column, row = 0.0, 0.0
            for j in range(6):
                column += G[i, w + j] * screw[d + a, j]
                row += screw[d + a, j] * G[w + j, i]
            G[i, size + a], G[size + a, i] = column, row
        for j in range(6):
            G[w + j, size + a] -= matrix.column[d + a, j]
        for e in range(tree.entry_start[d + a], tree.entry_start[d + a + 1]):
            r = tree.entry_row[e]
            if fronts.kept[r] == 1:
                G[place[r], size + a] += tree.entry_value[e]
                G[size + a, place[r]] += tree.entry_value[e]
    for a in range(m):
        for b in range(m):
            total = matrix.stiffness[d + a, b]
            for j in range(6):
                total += G[size + a, w + j] * screw[d + b, j]
            G[size + a, size + b] = total
    for a in range(m):
        for j in range(6):
            G[size + a, w + j] -= matrix.row[d + a, j]


@_inline
def _joint_row(k, tree, fronts, matrix, c, w):
    """The same of a symmetric front, whose lower triangle is known: rows only."""
    G, place, screw = fronts.front, fronts.place, matrix.screw
    d, m, size = tree.dof[k], tree.dofs[k], w + 6
    for a in range(m):
        s0, s1, s2 = screw[d + a, 0], screw[d + a, 1], screw[d + a, 2]
        s3, s4, s5 = screw[d + a, 3], screw[d + a, 4], screw[d + a, 5]
        f0, f1, f2, out = G[w, c:w], G[w + 1, c:w], G[w + 2, c:w], G[size + a, c:w]
        t0, t1, t2 = G[w + 3, c:w], G[w + 4, c:w], G[w + 5, c:w]
        for i in range(w - c):
            out[i] = s0 * f0[i] + s1 * f1[i] + s2 * f2[i] + s3 * t0[i] + s4 * t1[i] + s5 * t2[i]
        for i in range(6):
            total = 0.0
            for j in range(i):
                total += screw[d + a, j] * G[w + i, w + j]
            for j in range(i, 6):
                total += screw[d + a, j] * G[w + j, w + i]
            G[size + a, w + i] = total
        for e in range(tree.entry_start[d + a], tree.entry_start[d + a + 1]):
            r = tree.entry_row[e]
            if fronts.kept[r] == 1:
                G[size + a, place[r]] += tree.entry_value[e]
    for a in range(m):
        for b in range(m):
            total = matrix.stiffness[d + a, b]
            for j in range(6):
                total += G[size + a, w + j] * screw[d + b, j]
            G[size + a, size + b] = total
    for a in range(m):
        for j in range(6):
            G[size + a, w + j] -= matrix.row[d + a, j]


@_jit
def _invert_block(G, j, m, block):
    """Inverse of the pivot at j, m x m, in rows of `block`; returns how many of its eigenvalues are positive."""
    if m == 1:
        x = G[j, j]
        if abs(x) < _TINY:
            x = -_TINY
        block[0, 0] = 1.0 / x
        return 1 if x > 0.0 else 0
    # Gauss-Jordan, rows exchanged
    for a in range(m):
        for b in range(m):
            block[3 + a, b] = G[j + a, j + b]
            block[a, b] = 1.0 if a == b else 0.0
    for a in range(m):
        p = a
        for i in range(a + 1, m):
            if abs(block[3 + i, a]) > abs(block[3 + p, a]):
                p = i
        for b in range(m):
            block[3 + a, b], block[3 + p, b] = block[3 + p, b], block[3 + a, b]
            block[a, b], block[p, b] = block[p, b], block[a, b]
        x = block[3 + a, a]
        x = 1.0 / (x if abs(x) >= _TINY else -_TINY)
        for b in range(m):
            block[3 + a, b] *= x
            block[a, b] *= x
        for i in range(m):
            if i != a:
                x = block[3 + i, a]
                for b in range(m):
                    block[3 + i, b] -= x * block[3 + a, b]
                    block[i, b] -= x * block[a, b]
    return _count_positive(G, j, m)


@_jit
def _count_positive(G, j, m):
    """Number of positive eigenvalues of the symmetric part, by Descartes' rule on the characteristic polynomial."""
    a, b, x = G[j, j], G[j + 1, j + 1], 0.5 * (G[j, j + 1] + G[j + 1, j])
    if m == 2:
        determinant = a * b - x * x
        return 1 if determinant < 0.0 else 2 if a + b > 0.0 else 0
    c, y, z = G[j + 2, j + 2], 0.5 * (G[j, j + 2] + G[j + 2, j]), 0.5 * (G[j + 1, j + 2] + G[j + 2, j + 1])
    trace = a + b + c
    minors = a * b - x * x + a * c - y * y + b * c - z * z
    determinant = a * (b * c - z * z) - x * (x * c - y * z) + y * (x * z - y * b)
    # p(t) = t³ - trace t² + minors t - determinant: all roots are real, so changes of sign count positive ones
    positive, previous = 0, 1.0
    for value in (-trace, minors, -determinant):
        if value * previous < 0.0:
            positive += 1
        if value != 0.0:
            previous = value
    return positive


@_jit
def _store(G, j, m, low, high, block, numbers, at, lower):
    """Store the pivot at j with its columns and rows from `low` to `high`, and change the front there.

    Of a symmetric front (`lower`), columns only, which are those below the pivot or its rows.
    """
    rest = high - low
    columns = at + m * m
    across = columns if lower else columns + m * rest
    for a in range(m):
        for b in range(m):
            numbers[at + a * m + b] = block[a, b]
        column, row = numbers[columns + a * rest : columns + (a + 1) * rest], G[j + a, low:high]
        if lower and j > low:
            for i in range(rest):
                column[i] = row[i]
            continue
        for i in range(rest):
            column[i] = G[low + i, j + a]
        if not lower:
            kept = numbers[across + a * rest : across + (a + 1) * rest]
            for i in range(rest):
                kept[i] = row[i]
    for a in range(m):
        row = numbers[across + a * rest : across + (a + 1) * rest]
        for i in range(rest):
            x = 0.0
            for b in range(m):
                x += numbers[columns + b * rest + i] * block[b, a]
            if x != 0.0:
                line = G[low + i, low : low + i + 1 if lower else high]
                for b in range(line.shape[0]):
                    line[b] -= x * row[b]
    return across + m * rest


@_jit
def _close_four(G, j, size, definite, given, numbers):
    """Pivots of four closing rows, from j on, of a symmetric front, as four calls of `_store` would take them.

    The front is read and written once instead of four times. `given` are its diagonal entries before any pivot. Returns
    how many of the four are positive.
    """
    rest, positive = size - j - 4, 0
    # where the numbers of each pivot begin, an inverse before its column
    a1, a2, a3 = size - j, 2 * (size - j) - 1, 3 * (size - j) - 3
    p0 = _row_pivot(G[j, j], definite, given[j])
    c1, c2, c3 = G[j + 1, j], G[j + 2, j], G[j + 3, j]
    m1, m2, m3 = p0 * c1, p0 * c2, p0 * c3
    p1 = _row_pivot(G[j + 1, j + 1] - m1 * c1, definite, given[j + 1])
    d2, d3 = G[j + 2, j + 1] - m2 * c1, G[j + 3, j + 1] - m3 * c1
    n2, n3 = p1 * d2, p1 * d3
    p2 = _row_pivot(G[j + 2, j + 2] - m2 * c2 - n2 * d2, definite, given[j + 2])
    e3 = G[j + 3, j + 2] - m3 * c2 - n3 * d2
    o3 = p2 * e3
    p3 = _row_pivot(G[j + 3, j + 3] - m3 * c3 - n3 * d3 - o3 * e3, definite, given[j + 3])
    numbers[0], numbers[1], numbers[2], numbers[3] = p0, c1, c2, c3
    numbers[a1], numbers[a1 + 1], numbers[a1 + 2] = p1, d2, d3
    numbers[a2], numbers[a2 + 1], numbers[a3] = p2, e3, p3
    for p in (p0, p1, p2, p3):
        positive += 1 if p > 0.0 else 0
    r0, r1, r2 = numbers[4 : 4 + rest], numbers[a1 + 3 : a1 + 3 + rest], numbers[a2 + 2 : a2 + 2 + rest]
    r3 = numbers[a3 + 1 : a3 + 1 + rest]
    for i in range(rest):
        line = G[j + 4 + i, j : j + 5 + i]
        x = line[0]
        y = line[1] - m1 * x
        z = line[2] - m2 * x - n2 * y
        t = line[3] - m3 * x - n3 * y - o3 * z
        r0[i], r1[i], r2[i], r3[i] = x, y, z, t
        if x != 0.0 or y != 0.0 or z != 0.0 or t != 0.0:
            x, y, z, t = p0 * x, p1 * y, p2 * z, p3 * t
            left = line[4 : 5 + i]
            for b in range(left.shape[0]):
                left[b] -= x * r0[b] + y * r1[b] + z * r2[b] + t * r3[b]
    return positive


@_inline
def _row_pivot(x, definite, given):
    """Inverse of the pivot of a row; of a `definite` matrix at least rounding of the diagonal entry `given`."""
    if definite:
        x = min(x, _ROUNDING * given)
    return 1.0 / (x if abs(x) >= _TINY else -_TINY)


# --- substitution


@_jit
def solve(tree, fronts, matrix, force, gap, motion, step, multipliers):
    """Motions (nv,) and multipliers (m,) under generalised forces and `motion.force` on links, rows moving by `gap`.

    Multipliers of rows that are left out are zero.
    """
    order, parent, start, closing, rows = tree.order, tree.parent, fronts.start, fronts.closing, fronts.rows
    numbers, position, screw, pivot = fronts.numbers, matrix.position, matrix.screw, fronts.pivot
    p, sums, twist = motion.force, motion.sums, motion.twist
    n, at, copies = parent.shape[0], 0, fronts.copies[0]
    for r in range(sums.shape[0]):
        sums[r] = multipliers[r] = 0.0
    for i in range(6):
        twist[n, i] = 0.0
    for index in range(n + 1):
        k = order[index]
        first, c, last = start[k], closing[k], start[k + 1]
        moving = 6 if k < n else 0
        j = first
        while j < first + c:
            m = pivot[j]
            rest = last - j - m + moving
            columns = at + m * m
            for a in range(m):
                total = 0.0
                for b in range(m):
                    r = rows[j + b]
                    total += numbers[at + a * m + b] * (gap[r] - sums[r])
                multipliers[rows[j + a]] = total
            for a in range(m):
                x, o = multipliers[rows[j + a]], columns + a * rest
                for i in range(rest - moving):
                    sums[rows[j + m + i]] += numbers[o + i] * x
                for i in range(moving):
                    p[k, i] -= numbers[o + rest - 6 + i] * x
            at = columns + copies * m * rest
            j += m
        if k == n:
            break
        m, d = tree.dofs[k], tree.dof[k]
        if m > 0:
            moving = 6 if parent[k] < n else 0
            rest = last - first - c + moving
            columns = at + m * m
            for a in range(m):
                total = 0.0
                for b in range(m):
                    right = force[d + b]
                    for i in range(6):
                        right += screw[d + b, i] * p[k, i]
                    total += numbers[at + a * m + b] * right
                step[d + a] = total
            for a in range(m):
                x, o = step[d + a], columns + a * rest
                for i in range(rest - moving):
                    sums[rows[first + c + i]] += numbers[o + i] * x
                for i in range(moving):
                    p[k, i] -= numbers[o + rest - 6 + i] * x
            at = columns + copies * m * rest
        q = parent[k]
        if q < n:
            x, y, z = _arm(position, k, q)
            u, v, t = p[k, 0], p[k, 1], p[k, 2]
            p[q, 0] += u
            p[q, 1] += v
            p[q, 2] += t
            p[q, 3] += p[k, 3] + y * t - z * v
            p[q, 4] += p[k, 4] + z * u - x * t
            p[q, 5] += p[k, 5] + x * v - y * u
    for index in range(n, -1, -1):
        k = order[index]
        first, c, last = start[k], closing[k], start[k + 1]
        if k < n:
            q = parent[k]
            if q < n:
                x, y, z = _arm(position, k, q)
                u, v, t = twist[q, 3], twist[q, 4], twist[q, 5]
                twist[k, 0] = twist[q, 0] + v * z - t * y
                twist[k, 1] = twist[q, 1] + t * x - u * z
                twist[k, 2] = twist[q, 2] + u * y - v * x
                twist[k, 3], twist[k, 4], twist[k, 5] = u, v, t
            else:
                for i in range(6):
                    twist[k, i] = 0.0
            m, d = tree.dofs[k], tree.dof[k]
            if m > 0:
                rest = last - first - c + (6 if q < n else 0)
                at -= m * m + copies * m * rest
                _substitute(m, rest, last - first - c, at, fronts, first + c, multipliers, twist[k])
                for a in range(m):
                    step[d + a] -= fronts.block[0, a]
                    for i in range(6):
                        twist[k, i] += screw[d + a, i] * step[d + a]
        j = first + c
        while j > first:
            m = 1 if pivot[j - 1] == 1 else 2
            j -= m
            rest = last - j - m + (6 if k < n else 0)
            at -= m * m + copies * m * rest
            _substitute(m, rest, last - j - m, at, fronts, j + m, multipliers, twist[k])
            for a in range(m):
                multipliers[rows[j + a]] -= fronts.block[0, a]


@_inline
def _substitute(m, rest, count, at, fronts, first, multipliers, twist):
    """Change of a pivot's unknowns with the multipliers of `count` rows from `first` on, and the twist: `block[0]`."""
    numbers, rows, block = fronts.numbers, fronts.rows, fronts.block
    across = at + m * m + (fronts.copies[0] - 1) * m * rest
    for a in range(m):
        o, total = across + a * rest, 0.0
        for i in range(count):
            total += numbers[o + i] * multipliers[rows[first + i]]
        for i in range(rest - count):
            total += numbers[o + count + i] * twist[i]
        block[1, a] = total
    for a in range(m):
        total = 0.0
        for b in range(m):
            total += numbers[at + a * m + b] * block[1, b]
        block[0, a] = total


@_jit
def row_motions(tree, position, twist, step, out):
    """Rows times a motion, (m,): twists of links, (n + 1, 6), those of the same motion."""
    for loop in range(tree.copy.shape[0]):
        o = tree.copy[loop]
        for i in range(6):
            out[6 * loop + i] = 0.0
        side = 1.0
        for e in range(tree.end_start[6 * loop], tree.end_start[6 * loop + 1]):
            k = tree.end_link[e]
            if k < position.shape[0]:
                x, y, z = _arm(position, o, k)
                u, v, t = twist[k, 3], twist[k, 4], twist[k, 5]
                s = side / tree.unit[loop]
                out[6 * loop] += s * (twist[k, 0] + v * z - t * y)
                out[6 * loop + 1] += s * (twist[k, 1] + t * x - u * z)
                out[6 * loop + 2] += s * (twist[k, 2] + u * y - v * x)
                out[6 * loop + 3] += side * u
                out[6 * loop + 4] += side * v
                out[6 * loop + 5] += side * t
            side = -1.0
    for r in range(6 * tree.copy.shape[0], out.shape[0]):
        out[r] = 0.0
    for d in range(step.shape[0]):
        for e in range(tree.entry_start[d], tree.entry_start[d + 1]):
            out[tree.entry_row[e]] += tree.entry_value[e] * step[d]


@_jit
def force_residual(tree, matrix, force, motion, step, multipliers, out):
    """What is left of generalised forces, (nv,): `force - H step - Aᵀ multipliers`; `motion.twist` is that of `step`.

    `motion.force` is scratch.
    """
    parent, dofs, position, screw, twist = tree.parent, tree.dofs, matrix.position, matrix.screw, motion.twist
    n, p = parent.shape[0], motion.force
    for k in range(n):
        for i in range(6):
            total = 0.0
            for j in range(6):
                total += matrix.tangent[k, i, j] * twist[k, j]
            p[k, i] = total
        for e in range(tree.loop_start[k], tree.loop_start[k + 1]):
            end = tree.loop_at[e]
            loop, side = (end, -1.0) if end >= 0 else (-1 - end, 1.0)
            x, y, z = _arm(position, tree.copy[loop], k)
            scale, r = side / tree.unit[loop], 6 * loop
            u, v, t = scale * multipliers[r], scale * multipliers[r + 1], scale * multipliers[r + 2]
            p[k, 0] += u
            p[k, 1] += v
            p[k, 2] += t
            p[k, 3] += side * multipliers[r + 3] + y * t - z * v
            p[k, 4] += side * multipliers[r + 4] + z * u - x * t
            p[k, 5] += side * multipliers[r + 5] + x * v - y * u
    for index in range(n):
        k = tree.order[index]
        q = parent[k]
        for d in range(tree.dof[k], tree.dof[k] + dofs[k]):
            total = force[d]
            for i in range(6):
                total += screw[d, i] * p[k, i]
                before = twist[k, i]
                for e in range(tree.dof[k], tree.dof[k] + dofs[k]):
                    before -= screw[e, i] * step[e]
                total += matrix.row[d, i] * before
            for e in range(dofs[k]):
                total -= matrix.stiffness[d, e] * step[tree.dof[k] + e]
            for e in range(tree.entry_start[d], tree.entry_start[d + 1]):
                total -= tree.entry_value[e] * multipliers[tree.entry_row[e]]
            out[d] = total
        if q == n:
            continue
        for d in range(tree.dof[k], tree.dof[k] + dofs[k]):
            for i in range(6):
                p[k, i] += matrix.column[d, i] * step[d]
        x, y, z = _arm(position, k, q)
        u, v, t = p[k, 0], p[k, 1], p[k, 2]
        p[q, 0] += u
        p[q, 1] += v
        p[q, 2] += t
        p[q, 3] += p[k, 3] + y * t - z * v
        p[q, 4] += p[k, 4] + z * u - x * t
        p[q, 5] += p[k, 5] + x * v - y * u


@_jit
def clear(motion):
    """No forces on links."""
    for k in range(motion.force.shape[0]):
        for i in range(6):
            motion.force[k, i] = 0.0


@_jit
def solve_and_close(tree, fronts, matrix, force, gap, motion, miss, step, multipliers):
    """Motion and multipliers as by `solve`; gaps that rounding leaves are closed by a second solution.

    The generalised forces are `force[0]`. `force` (2, nv) is overwritten, `miss` (3, m) is scratch.
    """
    solve(tree, fronts, matrix, force[0], gap, motion, step, multipliers)
    row_motions(tree, matrix.position, motion.twist, step, miss[0])
    largest, left = 0.0, 0.0
    for r in range(gap.shape[0]):
        if fronts.kept[r] == 1:
            miss[1, r] = gap[r] - miss[0, r] + matrix.give[r] * multipliers[r]
            largest = max(largest, abs(miss[0, r]))
            left = max(left, abs(miss[1, r]))
    if not left > _MENDED * largest:
        return
    for d in range(step.shape[0]):
        force[0, d] = 0.0
    clear(motion)
    solve(tree, fronts, matrix, force[0], miss[1], motion, force[1], miss[2])
    for d in range(step.shape[0]):
        step[d] += force[1, d]
    for r in range(gap.shape[0]):
        multipliers[r] += miss[2, r]


@_jit
def set_twists(tree, matrix, step, twist):
    """Twists of links, (n + 1, 6), under joint motions."""
    n, screw = tree.parent.shape[0], matrix.screw
    for index in range(n - 1, -1, -1):
        k = tree.order[index]
        q = tree.parent[k]
        x, y, z = _arm(matrix.position, k, q) if q < n else (0.0, 0.0, 0.0)
        u, v, t = twist[q, 3], twist[q, 4], twist[q, 5]
        twist[k, 0] = twist[q, 0] + v * z - t * y
        twist[k, 1] = twist[q, 1] + t * x - u * z
        twist[k, 2] = twist[q, 2] + u * y - v * x
        twist[k, 3], twist[k, 4], twist[k, 5] = u, v, t
        for d in range(tree.dof[k], tree.dof[k] + tree.dofs[k]):
            for i in range(6):
                twist[k, i] += screw[d, i] * step[d]


@_jit
def solve_many(
    tree, fronts, matrix, force, gap, motion, miss, correction, unit, corrections, step, multipliers
):
    """Motions and multipliers for right sides in rows; returns how far motions may be off, as a fraction of them.

    Elimination loses digits where pivots are small, so what a solution leaves of its right side is solved for again,
    up to `corrections` times, as long as corrections become smaller. The last one is the error that is returned:
    dofs in their `unit` (nv,), the largest of all right sides; 0 without corrections, or without rows. Motions that are
    nothing beside the gap and what the stiffest joint alone would do under the force are those of a rigid mechanism:
    their error is a fraction of that. `miss` (3, m) and `correction` (2, nv) are scratch.
    """
    nv, m, worst, stiffest = force.shape[1], gap.shape[1], 0.0, 0.0
    for k in range(tree.dof.shape[0] if corrections > 0 else 0):
        for a in range(tree.dofs[k]):
            d = tree.dof[k] + a
            stiffest = max(stiffest, abs(matrix.stiffness[d, a]) * unit[d] * unit[d])
    for right in range(force.shape[0]):
        clear(motion)
        solve(tree, fronts, matrix, force[right], gap[right], motion, step[right], multipliers[right])
        error, previous = 0.0, math.inf
        for _ in range(corrections if m > 0 else 0):
            row_motions(tree, matrix.position, motion.twist, step[right], miss[0])
            for r in range(m):
                miss[1, r] = 0.0
                if fronts.kept[r] == 1:
                    miss[1, r] = gap[right, r] - miss[0, r] + matrix.give[r] * multipliers[right, r]
            force_residual(tree, matrix, force[right], motion, step[right], multipliers[right], correction[0])
            clear(motion)
            solve(tree, fronts, matrix, correction[0], miss[1], motion, correction[1], miss[2])
            change, size, push, total = 0.0, 0.0, 0.0, 0.0
            for d in range(nv):
                total += abs(step[right, d]) + abs(correction[1, d])
                change = max(change, abs(correction[1, d]) / unit[d])
                size = max(size, abs(step[right, d] + correction[1, d]) / unit[d])
                push = max(push, abs(force[right, d]) * unit[d])
            for r in range(m):
                size = max(size, _RIGID * abs(gap[right, r]))
            if stiffest > 0.0:
                size = max(size, _RIGID * push / stiffest)
            if not total < math.inf:  # or not a number
                error = math.inf
                break
            error = change / size if size > 0.0 else 0.0
            if not change < 0.5 * previous:
                break
            previous = change
            for d in range(nv):
                step[right, d] += correction[1, d]
            for r in range(m):
                multipliers[right, r] += miss[2, r]
            set_twists(tree, matrix, step[right], motion.twist)
            if error <= _CORRECTED:
                break
        worst = max(worst, error)
    return worst


# --- redundant rows


@_jit
def find_redundant(tree, fronts, position, screw, unit, tolerance, faithful):
    """Take rows that depend on others out of `kept`, by a QR decomposition of their transpose.

    A row is redundant if what is orthogonal to the rows before it is at most `tolerance` long, in radians and loop
    sizes, dofs in their `unit` (nv,); rows of `before` have the tolerance `faithful`. Rows that close at the same link
    are taken largest remainder first.
    """
    order, parent, start, closing, rows = tree.order, tree.parent, fronts.start, fronts.closing, fronts.rows
    place, waiting, stack_at, stack, T = (
        fronts.place,
        fronts.waiting,
        fronts.stack_at,
        fronts.stack,
        fronts.front,
    )
    row = fronts.block[0]
    set_rows(tree, fronts)
    if T.shape[0] > _WIDE:
        _drop_empty(tree, fronts, position, screw, unit)
        set_rows(tree, fronts)
    n = parent.shape[0]
    height, top = 0, 0
    fronts.block[7, 0] = math.inf  # the smallest remainder
    for index in range(n + 1):
        k = order[index]
        first, c = start[k], closing[k]
        w = start[k + 1] - first
        for a in range(w):
            place[rows[first + a]] = a
            T[a, a] = 0.0  # an empty row: what is beside the diagonal does not count
        fresh = c in (0, w)  # the child's order of columns
        while height > 0 and parent[waiting[height - 1]] == k:
            height -= 1
            child = waiting[height]
            top = stack_at[child]
            begin = start[child] + closing[child]
            count = start[child + 1] - begin
            at = top
            for a in range(count):
                if stack[at] == 0.0:
                    at += 1
                    continue
                if fresh:  # triangular as it is
                    p = place[rows[begin + a]]
                    for b in range(p, w):
                        T[p, b] = 0.0
                    for b in range(a, count):
                        T[p, place[rows[begin + b]]] = stack[at]
                        at += 1
                    continue
                for b in range(w):
                    row[b] = 0.0
                for b in range(a, count):
                    row[place[rows[begin + b]]] = stack[at]
                    at += 1
                _insert(T, row, 0, w)
            fresh = fresh and count == 0
        rank = _triangularise(fronts, c, w, tolerance, faithful, first)
        for a in range(rank, c):
            for b in range(c, w):
                row[b] = T[a, b]
            _insert(T, row, c, w)
        if k == n:
            break
        for d in range(tree.dof[k], tree.dof[k] + tree.dofs[k]):
            if _dof_row(k, d, tree, fronts, position, screw, unit, first, c, w, row):
                _insert(T, row, c, w)
        waiting[height], stack_at[k] = k, top
        height += 1
        for a in range(c, w):
            for b in range(a, w if T[a, a] != 0.0 else a + 1):
                stack[top] = T[a, b]
                top += 1


@_jit
def _drop_empty(tree, fronts, position, screw, unit):
    """Take rows that no dof moves out of `kept`: of planar loops, those out of the plane (if it is one of axes)."""
    start, rows, row, moved = fronts.start, fronts.rows, fronts.block[0], fronts.pivot
    for r in range(fronts.kept.shape[0]):
        moved[r] = 0
    for k in range(tree.parent.shape[0]):
        first = start[k] + fronts.closing[k]
        count = start[k + 1] - first
        for b in range(count):
            fronts.place[rows[first + b]] = b
        for d in range(tree.dof[k], tree.dof[k] + tree.dofs[k]):
            if _dof_row(k, d, tree, fronts, position, screw, unit, first, 0, count, row):
                for b in range(count):
                    if row[b] != 0.0:
                        moved[rows[first + b]] = 1
    for r in range(fronts.kept.shape[0]):
        fronts.kept[r] &= moved[r]


@_jit
def choose_rows(tree, fronts, position, screw, unit, tolerance, faithful, hard, soft):
    """Keep independent rows among the first `hard` ones, and of the others those that `soft` (m,) marks.

    Rows that were kept before come first, and have the tolerance `faithful`: where loops are open, redundant rows are
    known no better than their gaps, but what was independent while they were closed still is. Returns the smallest
    remainder of the rows that are kept.
    """
    for r in range(fronts.kept.shape[0]):
        fronts.before[r] = fronts.kept[r]
        fronts.kept[r] = 1 if r < hard else 0
    find_redundant(tree, fronts, position, screw, unit, tolerance, faithful)
    for r in range(hard, fronts.kept.shape[0]):
        fronts.kept[r] = soft[r]
    set_rows(tree, fronts)
    return fronts.block[7, 0]


@_inline
def _dof_row(k, d, tree, fronts, position, screw, unit, first, c, w, row):
    """Coefficients of a dof in the open rows of its link; False if they are all zero."""
    some = False
    for b in range(c, w):
        row[b] = 0.0
    for b in range(c, w):
        r = fronts.rows[first + b]
        if r < 6 * tree.copy.shape[0]:
            loop, i = r // 6, r % 6
            if i < 3:
                o, p, q = tree.copy[loop], (i + 1) % 3, (i + 2) % 3
                # (v + ω x arm)_i
                x = (
                    screw[d, i]
                    + screw[d, 3 + p] * (position[o, q] - position[k, q])
                    - screw[d, 3 + q] * (position[o, p] - position[k, p])
                ) / tree.unit[loop]
            else:
                x = screw[d, i]
            x *= fronts.sign[first + b] * unit[d]
            if abs(x) > _NOTHING:
                row[b] = x
                some = True
    for e in range(tree.entry_start[d], tree.entry_start[d + 1]):
        r = tree.entry_row[e]
        if fronts.kept[r] == 1:
            row[fronts.place[r]] += tree.entry_value[e] * unit[d]
            some = True
    return some


@_jit
def _insert(T, row, low, high):
    """Add a row to an upper triangular matrix, columns `low` to `high`, by Givens rotations; `row` is overwritten."""
    for j in range(low, high):
        x = row[j]
        if x == 0.0:
            continue
        y = T[j, j]
        if y == 0.0:
            for b in range(j, high):
                T[j, b] = row[b]
            return
        length = math.hypot(x, y)
        cosine, sine = y / length, x / length
        T[j, j] = length
        line, rest = T[j, j + 1 : high], row[j + 1 : high]
        for b in range(line.shape[0]):
            t, u = line[b], rest[b]
            line[b] = cosine * t + sine * u
            rest[b] = cosine * u - sine * t


@_inline
def _triangularise(fronts, c, w, tolerance, faithful, first):
    """Pivoted QR decomposition of the first c columns; returns their rank, and takes the other rows out of `kept`."""
    T, rows, before = fronts.front, fronts.rows, fronts.before
    size, last, sums = (
        fronts.block[1],
        fronts.block[2],
        fronts.block[3],
    )  # squared remainders, now and when summed
    for a in range(c):
        for b in range(a if T[a, a] != 0.0 else w):
            T[a, b] = 0.0
    for b in range(c):
        size[b] = 0.0
    for a in range(c):
        for b in range(a, c):
            size[b] += T[a, b] * T[a, b]
    for b in range(c):
        last[b] = size[b]
    rank = 0
    for j in range(c):
        p = -1
        for turn in range(2):
            least, largest = (faithful, 0.0) if turn == 0 else (tolerance, 0.0)
            for b in range(j, c):
                if before[rows[first + b]] == 1 - turn:
                    largest = max(largest, size[b])
            if largest > least * least:
                p = j
                while before[rows[first + p]] != 1 - turn or size[p] < _ALIKE * _ALIKE * largest:
                    p += 1
                break
        if p < 0:
            break
        rank += 1
        if p != j:
            rows[first + j], rows[first + p] = rows[first + p], rows[first + j]
            size[p], last[p] = size[j], last[j]
            for a in range(c):
                T[a, j], T[a, p] = T[a, p], T[a, j]
        # Householder reflection of rows j to c, row by row
        alpha = math.sqrt(_squared(T, j, j, c))
        fronts.block[7, 0] = min(fronts.block[7, 0], alpha)
        if T[j, j] > 0.0:
            alpha = -alpha
        T[j, j] -= alpha
        beta = 1.0 / (alpha * T[j, j])
        for b in range(j + 1, w):
            sums[b] = 0.0
        total = sums[j + 1 : w]
        for a in range(j, c):
            x, line = T[a, j], T[a, j + 1 : w]
            if x != 0.0:
                for b in range(line.shape[0]):
                    total[b] += x * line[b]
        for a in range(j, c):
            x, line = beta * T[a, j], T[a, j + 1 : w]
            if x != 0.0:
                for b in range(line.shape[0]):
                    line[b] += x * total[b]
        T[j, j] = alpha
        for a in range(j + 1, c):
            T[a, j] = 0.0
        for b in range(j + 1, c):
            size[b] -= T[j, b] * T[j, b]
            if size[b] < _DOWNDATED * last[b]:
                size[b] = last[b] = _squared(T, b, j + 1, c)
    for b in range(rank, c):
        fronts.kept[rows[first + b]] = 0
    return rank


@_inline
def _squared(T, b, low, high):
    """Squared length of column b, rows `low` to `high`."""
    total = 0.0
    for a in range(low, high):
        total += T[a, b] * T[a, b]
    return total
