"""Kernels of the reduced linkage: its rigid bodies and links from the open nodes, and momenta from one to another."""

from pliant.compilation import njit
from pliant.engines.adaptive import arrays as col
from pliant.engines.adaptive._geometry import add_inertia, principal_axes
from pliant.engines.adaptive._twigs import is_closed, open_twig
from pliant.engines.constrained import arrays as linkage
from pliant.engines.quasistatic import arrays as qs
from pliant.engines.quasistatic.joints import compose, copy_pose, set_identity
from pliant.mechanism.links import LINK_BALL

_jit = njit(error_model="numpy", nogil=True, fastmath=False)

# --- rigid bodies


@_jit
def _bottom(k, opened, clusters, walk, out):
    """Rigid body that holds the bottom handle of a visited node, and its pose in that body's frame, into `out`."""
    nodes = clusters.nodes
    while opened[k] and nodes[k, qs.HANDLES] == 2:
        k = nodes[k, qs.RIGHT]
    row = walk.slot[k]
    if nodes[k, qs.HANDLES] == 2:
        at = clusters.start[k] + col.SPAN
        compose(walk.pose[row], clusters.data[at : at + 12], out)
    else:
        copy_pose(walk.pose[row], out)
    return walk.component[row]


@_jit
def visit(opened, joints, clusters, none, walk, components, stack, s):
    """Fill in `walk` and `components` from the open nodes; returns the numbers of visited nodes and of bodies.

    Twigs in which nodes are open are opened.

    Args:
        opened: per node, 1 if it is open.
        joints: of the mechanism.
        clusters: records of closed clusters.
        none: zeros, (nv,).
        walk, components: with room for them.
        stack: scratch, two integers for each level and node that waits.
        s: scratch.
    """
    nodes, data, start = clusters.nodes, clusters.data, clusters.start
    leaves = clusters.wrenches.shape[0]
    visited, bodies = 0, 0
    stack[0], size = nodes.shape[0] - 1, 1
    while size > 0:
        size -= 1
        k = stack[size]
        above = nodes[k, qs.ABOVE]
        component = -1
        pose = walk.pose[visited]
        if above < 0 or nodes[above, qs.KIND] == qs.SUM:
            set_identity(pose)
        elif nodes[above, qs.RIGHT] == k and nodes[above, qs.GROUP] >= 0:
            # behind the joint that `above` closes: a body of its own
            component = bodies
            components.group[bodies] = nodes[above, qs.GROUP]
            if nodes[above, qs.KIND] == qs.ROOT:
                components.parent[bodies] = -1
                set_identity(components.pose[bodies])
            else:
                components.parent[bodies] = _bottom(
                    nodes[above, qs.LEFT], opened, clusters, walk, components.pose[bodies]
                )
            for i in range(10):
                components.inertia[bodies, i] = 0.0
            bodies += 1
            set_identity(pose)
        else:
            row = walk.slot[above]
            component = walk.component[row]
            copy_pose(walk.pose[row], pose)
        walk.node[visited], walk.component[visited] = k, component
        walk.slot[k] = visited
        visited += 1
        if opened[k]:
            if is_closed(k, clusters):
                open_twig(k, joints, clusters, none, s)
            stack[size] = nodes[k, qs.RIGHT]
            size += 1
            if nodes[k, qs.LEFT] >= 0:
                stack[size] = nodes[k, qs.LEFT]
                size += 1
        elif component >= 0:
            if k < leaves:
                g = nodes[k, qs.GROUP]
                share = 1.0 / clusters.shares[g]
                add_inertia(pose, clusters.inertia[g], 0, share, components.inertia[component])
            else:
                add_inertia(pose, data, start[k] + col.INERTIA, 1.0, components.inertia[component])
    return visited, bodies


@_jit
def forget(visited, walk):
    """Clear the slots of visited nodes."""
    for i in range(visited):
        walk.slot[walk.node[i]] = -1


@_jit
def fill_links(bodies, joints, components, links, constants, dofs, coordinates, spare):
    """Links and their constants for a `Linkage`, and the mechanism's dofs and coordinates that its own stand for."""
    groups, primitives, offsets = joints.groups, joints.primitives, joints.offsets
    n, nv, nq = 0, 0, 0
    for b in range(bodies):
        g = components.group[b]
        first, count = groups[g, qs.FIRST], groups[g, qs.COUNT]
        for j in range(count):
            k = first + j
            for i in range(constants.shape[1]):
                constants[n, i] = 0.0
            for i in range(0, 9, 4):
                constants[n, linkage.C_AXES + i] = 1.0
            pose = spare[0]
            if j == 0:
                p = components.parent[b]
                links[n, linkage.PARENT] = components.link[p] if p >= 0 else -1
                compose(components.pose[b], offsets[k], pose)
            else:
                links[n, linkage.PARENT] = n - 1
                copy_pose(offsets[k], pose)
            for i in range(12):
                constants[n, linkage.C_ROTATION + i] = pose[i]
            kind = primitives[k, qs.MOTION]
            links[n, linkage.KIND], links[n, linkage.DOF], links[n, linkage.COORDINATE] = kind, nv, nq
            ball = kind == LINK_BALL
            for i in range(3 if ball else 1):
                dofs[nv + i] = primitives[k, qs.MOTION_DOF] + i
            for i in range(4 if ball else 1):
                coordinates[nq + i] = primitives[k, qs.COORDINATE] + i
            nv += 3 if ball else 1
            nq += 4 if ball else 1
            n += 1
        components.link[b] = n - 1
        _fill_body(components.inertia[b], constants[n - 1], spare[1])
    return n, nv, nq


@_jit
def _fill_body(inertia, out, moments):
    """Mass, centre of mass, principal axes and moments of a composite body, C_MASS to C_MOMENTS."""
    m = inertia[0]
    x, y, z = inertia[1] / m, inertia[2] / m, inertia[3] / m
    out[linkage.C_MASS] = m
    out[linkage.C_COM], out[linkage.C_COM + 1], out[linkage.C_COM + 2] = x, y, z
    principal_axes(
        inertia[4] - m * (y * y + z * z),
        inertia[5] + m * x * y,
        inertia[7] + m * x * z,
        inertia[6] - m * (x * x + z * z),
        inertia[8] + m * y * z,
        inertia[9] - m * (x * x + y * y),
        out[linkage.C_AXES : linkage.C_AXES + 9],
        moments,
    )
    for i in range(3):
        out[linkage.C_MOMENTS + i] = max(moments[i], 0.0)


@_jit
def holder(k, nodes, walk):
    """Row in `walk` of the visited node that contains node k: of the closed cluster around it, or its own."""
    while walk.slot[k] < 0:
        k = nodes[k, qs.ABOVE]
    return walk.slot[k]


@_jit
def _leave_twig(k, joints, clusters, pose, other):
    """Closed twig around node k, or k without one; `pose` becomes that of k's top handle in the twig's."""
    nodes, start, twig = clusters.nodes, clusters.start, k
    while start[twig] < 0:
        twig = nodes[twig, qs.ABOVE]
        if twig < 0 or nodes[twig, qs.KIND] in (qs.ROOT, qs.SUM):
            return k
    if twig == k or not is_closed(twig, clusters):
        return k
    g, top = _top_group(k, clusters), _top_group(twig, clusters)
    while g != top:
        compose(joints.poses[g], pose, other)
        copy_pose(other, pose)
        g = joints.groups[g, qs.PARENT]
    return twig


@_jit
def _top_group(k, clusters):
    """Group of the top handle of node k."""
    while k >= clusters.wrenches.shape[0]:
        k = clusters.nodes[k, qs.LEFT]
    return clusters.nodes[k, qs.GROUP]


@_jit
def place_in_body(k, joints, clusters, walk, out, spare):
    """Rigid body that holds node k, closed or a leaf, and the pose of its top handle there; (3, 12) `spare`."""
    nodes, start, data = clusters.nodes, clusters.start, clusters.data
    pose, other = spare[0], spare[1]
    set_identity(pose)
    k = _leave_twig(k, joints, clusters, pose, other)
    while walk.slot[k] < 0:
        above = nodes[k, qs.ABOVE]
        g, left = nodes[above, qs.GROUP], nodes[above, qs.LEFT]
        if nodes[above, qs.RIGHT] == k and g >= 0:
            compose(joints.poses[g], pose, other)
            copy_pose(other, pose)
            if left >= 0 and nodes[left, qs.HANDLES] == 2:
                compose(data[start[left] + col.SPAN : start[left] + col.SPAN + 12], pose, other)
                copy_pose(other, pose)
        k = above
    row = walk.slot[k]
    compose(walk.pose[row], pose, out)
    return walk.component[row]


@_jit
def place_all(leaves, joints, clusters, walk, body, pose, spare):
    """`place_in_body` of leaves; results per leaf in `body` and `pose`, (n, 12)."""
    for i in range(leaves.shape[0]):
        body[i] = place_in_body(leaves[i], joints, clusters, walk, pose[i], spare)


# --- momenta


@_jit
def own_bodies(bodies, components, coarse_index, joints, nodes, coarse, out):
    """Per body of a linkage, the body of a coarser one, with fewer open nodes, that holds it; -1 the world.

    Args:
        bodies, components: of the finer linkage.
        coarse_index: per group, its body in the coarser one, or -1.
        joints, nodes: of the mechanism.
        coarse: walk of the coarser one.
        out: per body.
    """
    for b in range(bodies):
        g = components.group[b]
        if coarse_index[g] >= 0:
            out[b] = coarse_index[g]
        else:
            out[b] = coarse.component[holder(joints.closing[g], nodes, coarse)]


@_jit
def split_momenta(owner, fine, coarse, constants, own_constants, work, own_work, own_momentum, momentum):
    """Momenta of bodies that move as the rigid bodies they are parts of.

    Args:
        owner: per body, the one it is part of; -1 the world.
        fine, coarse: per body of either linkage, its link.
        constants, own_constants: of links, of parts and of whole bodies.
        work, own_work: kinematics of both linkages at the same coordinates.
        own_momentum: of whole bodies: linear in world axes, angular in joint frames.
        momentum: of parts, likewise.
    """
    for b in range(owner.shape[0]):
        k = fine[b]
        if owner[b] < 0:
            for i in range(6):
                momentum[k, i] = 0.0
            continue
        c = coarse[owner[b]]
        x, y, z = _rotate(own_work[c], own_momentum[c, 3], own_momentum[c, 4], own_momentum[c, 5])
        x, y, z = _solve_symmetric(own_work[c, linkage.W_INERTIA : linkage.W_INERTIA + 6], x, y, z)
        rx, ry, rz = _between_centres(work[k], own_work[c])
        m, share = (
            constants[k, linkage.C_MASS],
            constants[k, linkage.C_MASS] / own_constants[c, linkage.C_MASS],
        )
        momentum[k, 0] = share * own_momentum[c, 0] + m * (y * rz - z * ry)
        momentum[k, 1] = share * own_momentum[c, 1] + m * (z * rx - x * rz)
        momentum[k, 2] = share * own_momentum[c, 2] + m * (x * ry - y * rx)
        a = work[k, linkage.W_INERTIA : linkage.W_INERTIA + 6]
        x, y, z = (
            a[0] * x + a[1] * y + a[2] * z,
            a[1] * x + a[3] * y + a[4] * z,
            a[2] * x + a[4] * y + a[5] * z,
        )
        momentum[k, 3], momentum[k, 4], momentum[k, 5] = _rotate_back(work[k], x, y, z)


@_jit
def add_momenta(owner, fine, coarse, work, own_work, momentum, own_momentum):
    """Momenta of rigid bodies as the sums of those of their parts; arguments as of `split_momenta`."""
    for b in range(coarse.shape[0]):
        for i in range(6):
            own_momentum[coarse[b], i] = 0.0
    for b in range(owner.shape[0]):
        if owner[b] < 0:
            continue
        k, c = fine[b], coarse[owner[b]]
        x, y, z = _rotate(work[k], momentum[k, 3], momentum[k, 4], momentum[k, 5])
        rx, ry, rz = _between_centres(work[k], own_work[c])
        px, py, pz = momentum[k, 0], momentum[k, 1], momentum[k, 2]
        x, y, z = _rotate_back(
            own_work[c], x + ry * pz - rz * py, y + rz * px - rx * pz, z + rx * py - ry * px
        )
        own_momentum[c, 0] += px
        own_momentum[c, 1] += py
        own_momentum[c, 2] += pz
        own_momentum[c, 3] += x
        own_momentum[c, 4] += y
        own_momentum[c, 5] += z


@_jit
def _between_centres(a, b):
    """Vector from the centre of mass of one link to that of another, from their rows of `work`."""
    o, c = linkage.W_POSITION, linkage.W_COM
    return (
        a[o] - b[o] + a[c] - b[c],
        a[o + 1] - b[o + 1] + a[c + 1] - b[c + 1],
        a[o + 2] - b[o + 2] + a[c + 2] - b[c + 2],
    )


@_jit
def _rotate(row, x, y, z):
    """From the axes of a link's joint frame to world axes; `row` of `work`."""
    return (
        row[0] * x + row[1] * y + row[2] * z,
        row[3] * x + row[4] * y + row[5] * z,
        row[6] * x + row[7] * y + row[8] * z,
    )


@_jit
def _rotate_back(row, x, y, z):
    """From world axes to those of a link's joint frame."""
    return (
        row[0] * x + row[3] * y + row[6] * z,
        row[1] * x + row[4] * y + row[7] * z,
        row[2] * x + row[5] * y + row[8] * z,
    )


@_jit
def _solve_symmetric(a, x, y, z):
    """Solution of a positive definite system, matrix xx, xy, xz, yy, yz, zz."""
    l10, l20 = a[1] / a[0], a[2] / a[0]
    d1 = a[3] - l10 * a[1]
    v = a[4] - l10 * a[2]
    l21 = v / d1
    d2 = a[5] - l20 * a[2] - l21 * v
    y -= l10 * x
    z -= l20 * x + l21 * y
    z /= d2
    y = y / d1 - l21 * z
    x = x / a[0] - l10 * y - l20 * z
    return x, y, z
