"""Twigs: clusters of a few bodies whose inner records are computed when they are needed.

Most clusters of an assembly tree are small, and their records would take most of the memory. In a large tree a *twig*,
a cluster of a few leaves, keeps its own record; those of clusters inside it exist only while it is *open*: once a
review looks into it, a wrench in it changes, or a joint in it moves. They are computed from its leaves, as at the
start, and are the same to the last bit. Records of open twigs come after those that are always there, in the order in
which twigs are opened. Clusters without a record have a start of -1.
"""

from pliant.compilation import njit
from pliant.engines.adaptive import arrays as col
from pliant.engines.adaptive._clusters import close
from pliant.engines.quasistatic import arrays as qs

_jit = njit(error_model="numpy", nogil=True, fastmath=False)


@_jit
def _length(k, nodes):
    """Length of the record of a MERGE or WELD."""
    return col.TWO_HANDLES if nodes[k, qs.HANDLES] == 2 else col.ONE_HANDLE


@_jit
def lay_out(nodes, leaves, most, weight):
    """START of the records that are always there, -1 for others; returns their length, and that of all others.

    Args:
        nodes, leaves: of the assembly tree; START out.
        most: leaves of a twig at most; 0 for no twigs.
        weight: scratch, per node, its number of leaves.
    """
    for k in range(nodes.shape[0]):
        left, right = nodes[k, qs.LEFT], nodes[k, qs.RIGHT]
        weight[k] = 1 if k < leaves else weight[right] + (weight[left] if left >= 0 else 0)
    kept, inside = 0, 0
    for k in range(nodes.shape[0]):
        nodes[k, qs.START] = -1
        if nodes[k, qs.KIND] not in (qs.MERGE, qs.WELD):
            continue
        above = nodes[k, qs.ABOVE]
        if above >= 0 and weight[above] <= most and nodes[above, qs.KIND] in (qs.MERGE, qs.WELD):
            inside += _length(k, nodes)
        else:
            nodes[k, qs.START] = kept
            kept += _length(k, nodes)
    return kept, inside


@_jit
def is_closed(k, clusters):
    """Whether node k is a twig without records inside."""
    nodes, start = clusters.nodes, clusters.start
    if start[k] < 0:
        return False
    leaves, left, right = clusters.wrenches.shape[0], nodes[k, qs.LEFT], nodes[k, qs.RIGHT]
    return (left >= leaves and start[left] < 0) or (right >= leaves and start[right] < 0)


@_jit
def open_twig(k, joints, clusters, none, s):
    """Compute the records of all clusters inside the closed twig k, not its own."""
    nodes, start, order = clusters.nodes, clusters.start, s.order
    leaves, place = clusters.wrenches.shape[0], clusters.free[0]
    order[0], size, done = k, 1, 0
    while done < size:
        for side in range(2):
            child = nodes[order[done], qs.LEFT + side]
            if child >= leaves:
                order[size] = child
                start[child] = place
                place += _length(child, nodes)
                size += 1
        done += 1
    clusters.free[0] = place
    for i in range(size - 1, 0, -1):
        clusters.marks[order[i]] = 0
        close(order[i], joints, clusters, none, s)


@_jit
def close_last(place, clusters, s):
    """Close the twig that was opened last, whose records begin at `place`."""
    i = 1
    while clusters.free[0] > place:
        clusters.free[0] -= _length(s.order[i], clusters.nodes)
        clusters.start[s.order[i]] = -1
        i += 1


@_jit
def close_all(clusters):
    """Close all twigs."""
    start, kept = clusters.start, clusters.free[1]
    for k in range(start.shape[0]):
        if start[k] >= kept:
            start[k] = -1
    clusters.free[0] = kept


@_jit
def open_visited(opened, walk, visited, joints, clusters, none, s):
    """Open the twigs in which nodes are open, after `close_all`."""
    for i in range(visited):
        k = walk.node[i]
        if opened[k] and is_closed(k, clusters):
            open_twig(k, joints, clusters, none, s)


@_jit
def tidy(opened, walk, visited, joints, clusters, none, s):
    """Close all twigs but those in which nodes are open."""
    close_all(clusters)
    open_visited(opened, walk, visited, joints, clusters, none, s)
