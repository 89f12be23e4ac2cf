"""Twigs: clusters of a few bodies whose inner records are computed when they are needed.

Most clusters of an assembly tree are small: half of them have two bodies. Their records would take most of the memory,
and most of them are read only once, when the tree is assembled. A *twig* is a cluster of a few leaves; its own record
is kept, those of the clusters and leaves inside it exist only while it is *open*. Nodes without a record have START -1:
a twig is closed if its right child has none. When the whole tree is assembled, all twigs are computed in the same
place, one after the other, and closed. A refinement that reaches a twig opens it, and it stays open for the steps that
follow. Mechanisms with loops have no twigs.
"""

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._merge import fill_leaf, merge, update_span

_jit = njit(error_model="numpy", nogil=True, fastmath=False)


@_jit
def record_length(k, nodes, handles):
    """Length of a cluster's record without its prefix of closures and forces; `handles` with ends of loops."""
    usual = nodes[k, col.HANDLES]
    length = col.METRIC[0] if usual == 0 else (col.METRIC[1] if usual == 1 else col.METRIC[2])
    return length + (nodes[k, col.ROWS] * (6 * usual + 1) if handles == usual else 0)


@_jit
def is_closed(k, nodes):
    """Whether node k, above the leaves, has a record and its children have none."""
    return nodes[nodes[k, col.RIGHT], col.START] < 0


@_jit
def open_twig(k, clusters, leaves):
    """Give room to the records inside a closed twig; returns its number of nodes, itself first, 0 if there is no room.

    The nodes are listed in `leaves.twig`, parents before children.
    """
    nodes, order, place = clusters.nodes, leaves.twig, leaves.free[0]
    size, done = 1, 0
    order[0] = k
    while done < size:
        for side in range(2):
            child = nodes[order[done], col.LEFT + side]
            if child >= 0:
                order[size] = child
                size += 1
        done += 1
    for i in range(1, size):
        k = order[i]
        place += _lead(k, clusters)
        nodes[k, col.START] = place
        place += record_length(k, nodes, nodes[k, col.HANDLES])
    if place > clusters.data.shape[0]:
        _forget(size, clusters, leaves)
        return 0
    leaves.free[0] = place
    return size


@_jit
def _forget(size, clusters, leaves):
    """Take away the records inside the twig listed in `leaves.twig`."""
    for i in range(1, size):
        clusters.nodes[leaves.twig[i], col.START] = -1


@_jit
def close_twig(size, clusters, leaves):
    """Close the twig that was opened last, which is listed in `leaves.twig`."""
    leaves.free[0] = clusters.nodes[leaves.twig[1], col.START] - _lead(leaves.twig[1], clusters)
    _forget(size, clusters, leaves)


@_jit
def close_twigs(clusters, leaves):
    """Close all twigs."""
    nodes = clusters.nodes
    for k in range(nodes.shape[0]):
        if nodes[k, col.START] >= leaves.kept:
            nodes[k, col.START] = -1
    leaves.free[0] = leaves.kept


@_jit
def _lead(k, clusters):
    """Length of the prefix of the record of node k."""
    return col.BEFORE + (0 if clusters.nodes[k, col.KIND] == col.LEAF else clusters.closure)


@_jit
def place_twig(size, joints, clusters, leaves, spare):
    """Geometry of an open twig and of the clusters inside it, listed in `leaves.twig`."""
    for i in range(size - 1, -1, -1):
        k = leaves.twig[i]
        if clusters.nodes[k, col.KIND] != col.LEAF:
            update_span(k, clusters.nodes, joints.poses, clusters.data, leaves.extent, spare)


@_jit
def fill_twig(size, joints, clusters, leaves, scratch, marks):
    """Records of an open twig and of all inside it, listed in `leaves.twig`; returns a node that fails, or -1."""
    for i in range(size - 1, -1, -1):
        k = leaves.twig[i]
        marks[k] = 0
        if clusters.nodes[k, col.KIND] == col.LEAF:
            fill_leaf(k, clusters, leaves, scratch)
        else:
            update_span(k, clusters.nodes, joints.poses, clusters.data, leaves.extent, scratch.poses[0])
    return merge(leaves.twig, 0, size, joints, clusters, scratch)
