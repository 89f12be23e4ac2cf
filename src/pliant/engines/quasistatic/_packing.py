"""Kernels of packing: the assembly tree of a tree of bodies, the layout of its records, groups of links, inverses."""

from typing import NamedTuple

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._twigs import record_length
from pliant.engines.quasistatic.arrays import Indices
from pliant.engines.quasistatic.joints import invert_inertia
from pliant.mechanism.links import LINK_FIXED
from pliant.spatial import kernels as se3

_jit = njit(error_model="numpy")


@_jit
def group_links(parent, kind, ends, local, group, slot, base, firsts, owners):
    """Group of every link; first and last link of every group; returns the number of groups.

    Args:
        parent, kind: of links.
        ends: whether a link is the last one of a joint.
        local: pose of a link's joint frame in its parent's, (links, 4, 4).
        group: out, of every link that ends a joint; -1 for the world.
        slot: per fixed link, its row of `base`.
        base: out, poses of the joint frames of fixed links in their groups' frames.
        firsts, owners: out, first and last link of every group.
    """
    count, first = 0, -1
    for k in range(len(parent)):
        p = parent[k]
        if kind[k] == LINK_FIXED:
            if p >= 0 and kind[p] == LINK_FIXED:
                se3.compose(base[slot[p]], local[k], base[slot[k]])
            else:
                for i in range(4):
                    for j in range(4):
                        base[slot[k], i, j] = local[k, i, j]
            group[k] = group[p] if p >= 0 else -1
            continue
        if first < 0:
            first = k
        if ends[k]:
            group[k], firsts[count], owners[count] = count, first, k
            count += 1
            first = -1
    return count


# --- assembly tree


@_jit
def weigh(parent, weight, heavy):
    """Number of bodies of every subtree, and the child with the most, the first of several (-1 for none)."""
    n = len(parent)
    for v in range(n):
        weight[v], heavy[v] = 1, -1
    for v in range(n - 1, -1, -1):
        if parent[v] >= 0:
            weight[parent[v]] += weight[v]
    for v in range(n):
        p = parent[v]
        if p >= 0 and (heavy[p] < 0 or weight[v] > weight[heavy[p]]):
            heavy[p] = v


@_jit
def _halve(count, prefix, steps):
    """Binary tree over `count` neighbours, by halves of nearly equal weight; returns the number of its nodes.

    Args:
        count: at least 1.
        prefix: sums of the weights before each neighbour, and of all.
        steps: out, nodes (begin, middle, end), each before its children, the right child first: in reverse, children
            come before their parents and left ones first. The middle of a single neighbour is -1.
    """
    # Nodes that wait for their turn are at the end of `steps`.
    last = len(steps) - 1
    steps[last, 0], steps[last, 2] = 0, count
    waiting, done = 1, 0
    while waiting > 0:
        top = last - waiting + 1
        lo, hi = steps[top, 0], steps[top, 2]
        waiting -= 1
        mid = -1
        if hi - lo > 1:
            half = 0.5 * (prefix[lo] + prefix[hi])
            below, above = lo + 1, hi
            while below < above:  # the first place whose sum is not below half
                middle = (below + above) // 2
                if prefix[middle] < half:
                    below = middle + 1
                else:
                    above = middle
            mid = below
            if mid >= hi or (mid - 1 > lo and half - prefix[mid - 1] < prefix[mid] - half):
                mid -= 1
        steps[done, 0], steps[done, 1], steps[done, 2] = lo, mid, hi
        done += 1
        if mid >= 0:
            top = last - waiting
            steps[top, 0], steps[top, 2] = lo, mid
            steps[top - 1, 0], steps[top - 1, 2] = mid, hi
            waiting += 2
    return done


class Nodes(NamedTuple):
    """Columns of an assembly tree, see `assembly_tree.Assembly`; leaves first."""

    kind: Indices
    left: Indices
    right: Indices
    body: Indices
    top: Indices
    bottom: Indices


class Halving(NamedTuple):
    """Scratch of merges by halves: prefix sums of weights, nodes of `_halve`, a stack of clusters."""

    prefix: Indices
    steps: Indices
    stack: Indices


class Paths(NamedTuple):
    """Tree of bodies: parents, sizes of subtrees, heavy children, light ones (those of body v start at `start[v]`)."""

    parent: Indices
    weight: Indices
    heavy: Indices
    start: Indices
    light: Indices


@_jit
def assemble(paths, raked, leaves, nodes, cluster, path, along, across, count):
    """Fill in the nodes of an assembly tree.

    Args:
        paths: the tree of bodies.
        raked: light subtrees merged in series with one share of a body.
        leaves: number of leaves.
        nodes: out.
        cluster, path: scratch, (bodies,): per first body of a path the node of its subtree; the bodies of a path.
        along, across: scratch for a path, and for the shares of a body.
        count: scratch, leaves and nodes so far, (2,).
    """
    count[0], count[1] = 0, leaves
    parent, weight, heavy = paths.parent, paths.weight, paths.heavy
    n, roots = len(parent), 0
    for head in range(n - 1, -1, -1):
        if parent[head] >= 0 and heavy[parent[head]] == head:
            continue
        roots += parent[head] < 0
        length, v = 0, head
        along.prefix[0] = 0
        while v >= 0:
            following = heavy[v]
            own = weight[v] - (weight[following] if following >= 0 else 0)
            along.prefix[length + 1] = along.prefix[length] + own
            path[length] = v
            length += 1
            v = following
        depth = 0
        for step in range(_halve(length, along.prefix, along.steps) - 1, -1, -1):
            lo, mid, hi = along.steps[step, 0], along.steps[step, 1], along.steps[step, 2]
            if mid < 0:
                node = _rake(path[lo], paths, raked, count, nodes, cluster, across)
            else:
                depth -= 2
                left, right = along.stack[depth], along.stack[depth + 1]
                top, bottom = path[lo], path[hi - 1] if hi < length else path[lo]
                node = _join(count, nodes, col.MERGE, left, right, path[mid], top, bottom)
            along.stack[depth] = node
            depth += 1
        cluster[head] = along.stack[0]
    first, i = count[1], 0
    for v in range(n):
        if parent[v] < 0:
            _join(count, nodes, col.ROOT, -1, cluster[v], v, -1, -1)
            along.prefix[i + 1] = along.prefix[i] + weight[v]
            i += 1
    depth = 0
    for step in range(_halve(roots, along.prefix, along.steps) - 1, -1, -1):
        node = first + along.steps[step, 0]
        if along.steps[step, 1] >= 0:
            depth -= 2
            node = _join(count, nodes, col.SUM, along.stack[depth], along.stack[depth + 1], -1, -1, -1)
        along.stack[depth] = node
        depth += 1


@_jit
def _rake(v, paths, raked, count, nodes, cluster, scratch):
    """Merge body v with its light subtrees; the body remains the only handle."""
    prefix, steps, stack, light = scratch.prefix, scratch.steps, scratch.stack, paths.light
    begin, end = paths.start[v], paths.start[v + 1]
    shares = max(1, (end - begin + raked - 1) // raked)
    prefix[0] = 0
    for i in range(shares):
        prefix[i + 1] = prefix[i] + 1
        for c in range(begin + i * raked, min(begin + (i + 1) * raked, end)):
            prefix[i + 1] += paths.weight[light[c]]
    depth = 0
    for step in range(_halve(shares, prefix, steps) - 1, -1, -1):
        lo, mid = steps[step, 0], steps[step, 1]
        if mid < 0:
            node = count[0]
            count[0] += 1
            nodes.kind[node] = col.LEAF
            nodes.body[node] = nodes.top[node] = nodes.bottom[node] = v
            for c in range(begin + lo * raked, min(begin + (lo + 1) * raked, end)):
                node = _join(count, nodes, col.MERGE, node, cluster[light[c]], light[c], v, v)
        else:
            depth -= 2
            node = _join(count, nodes, col.WELD, stack[depth], stack[depth + 1], -1, v, v)
        stack[depth] = node
        depth += 1
    return stack[0]


@_jit
def _join(count, nodes, kind, left, right, body, top, bottom):
    """Add a node above the leaves; returns its number."""
    node = count[1]
    count[1] += 1
    nodes.kind[node], nodes.left[node], nodes.right[node] = kind, left, right
    nodes.body[node], nodes.top[node], nodes.bottom[node] = body, top, bottom
    return node


@_jit
def find_parents(left, right, parent, depth):
    """Parent and depth of every node of a binary tree whose root comes last, from children (-1 for none)."""
    n = len(left)
    parent[n - 1], depth[n - 1] = -1, 0
    for k in range(n - 1, -1, -1):
        for child in (left[k], right[k]):
            if child >= 0:
                parent[child], depth[child] = k, depth[k] + 1


@_jit
def lay_out(groups, counts, closure, most, weight, nodes):
    """START, ROWS and LEVELS of all nodes (see `arrays`), with no records inside of twigs.

    Returns the lengths of all records that are kept, of those inside the largest twig, and of those inside all twigs.

    Args:
        groups: see `arrays`.
        counts: handles of every cluster, ends of loops included.
        closure: length of a closure.
        most: leaves of a twig at most; 0 for no twigs.
        weight: scratch, per node, its number of leaves, then the length of the records inside a twig.
        nodes: other columns in, these out.
    """
    n = len(nodes)
    for k in range(n):
        columns, kind, group = 6 * counts[k] + 1, nodes[k, col.KIND], nodes[k, col.GROUP]
        rows, levels, leaves = 0, 0, 1
        if kind != col.LEAF:
            left, right = nodes[k, col.LEFT], nodes[k, col.RIGHT]
            rows, leaves = nodes[right, col.ROWS], weight[right]
            upper, lower = 0, nodes[right, col.LEVELS]
            if left >= 0:
                rows += nodes[left, col.ROWS]
                leaves += weight[left]
                upper = nodes[left, col.LEVELS]
            if group >= 0:
                rows += groups[group, col.DOFS]
                lower += groups[group, col.COUNT]
            rows = min(rows, columns)
            # primitives in series at most: the length of a chain of error bounds
            beside = kind in (col.WELD, col.SUM, col.ROOT, col.LOOP) or nodes[left, col.HANDLES] == 1
            levels = max(upper, lower) if beside else upper + lower
        nodes[k, col.ROWS], nodes[k, col.LEVELS], weight[k] = rows, levels, leaves
    for k in range(n):  # inside of a twig: 0 for START
        above = nodes[k, col.ABOVE]
        inner = above >= 0 and weight[above] <= most
        nodes[k, col.START] = 0 if inner and nodes[above, col.KIND] in (col.MERGE, col.WELD) else 1
    kept, largest, inside = 0, 0, 0
    for k in range(n):
        lead, kind, left, right = col.BEFORE, nodes[k, col.KIND], nodes[k, col.LEFT], nodes[k, col.RIGHT]
        within = 0
        if kind != col.LEAF:
            lead += closure
            within = weight[right] if nodes[right, col.START] < 0 else 0
            if left >= 0 and nodes[left, col.START] < 0:
                within += weight[left]
        size = lead + record_length(k, nodes, counts[k])
        if nodes[k, col.START] == 0:
            nodes[k, col.START], weight[k] = -1, within + size
        else:
            nodes[k, col.START] = kept + lead
            kept += size
            inside += within
            largest = max(largest, within)
    return kept, largest, inside


@_jit
def carry_up(nodes, leaves, values):
    """Values of leaves in, the largest of every cluster out."""
    for k in range(leaves, len(nodes)):
        values[k] = values[nodes[k, col.RIGHT]]
        if nodes[k, col.LEFT] >= 0:
            values[k] = max(values[k], values[nodes[k, col.LEFT]])


# --- inverse inertias


@_jit
def invert_inertias(inertia, which, shares, whole, low, out):
    """Inverses of shares of the inertias numbered `which`, 36 numbers per row; see `joints.invert_inertia`."""
    for row in range(len(which)):
        n = which[row]
        invert_inertia(inertia[n], shares[n], whole, low, out[row])
