"""Kernels of a review: clusters brought up to date, forces in the free motion, nodes to open and to close."""

from pliant.compilation import njit
from pliant.engines import heap
from pliant.engines.adaptive import arrays as col
from pliant.engines.adaptive._clusters import (
    DRIVEN,
    FACTOR,
    MISSING,
    close,
    close_root,
    expand,
    free_bias,
    join_open,
    open_record,
    products,
    record,
    rigid_forms,
    solve,
)
from pliant.engines.adaptive._geometry import place_joint, turn_back
from pliant.engines.adaptive._linkage import place_in_body
from pliant.engines.adaptive._twigs import close_all, close_last, is_closed, open_twig, open_visited
from pliant.engines.constrained import arrays as linkage
from pliant.engines.quasistatic import arrays as qs
from pliant.engines.quasistatic.joints import compose, set_identity, to_child, to_parent
from pliant.statics.load_kernels import LINK, wrench_in_body

_jit = njit(error_model="numpy", nogil=True, fastmath=False)
F = col.FORMS
_ROUND_OFF = 1e-10  # of the terms of a defect: less is zero

# --- up to date


@_jit
def mark(k, opened, clusters):
    """Mark node k, unless it is a leaf, and the closed clusters around it as out of date."""
    nodes, marks = clusters.nodes, clusters.marks
    if k < clusters.wrenches.shape[0]:
        k = nodes[k, qs.ABOVE]
    while k >= 0 and opened[k] == 0 and marks[k] == 0:
        marks[k] = 1
        k = nodes[k, qs.ABOVE]


@_jit
def _refresh(k, world, joints, clusters, none, order, s):
    """Records of closed node k and all marked nodes in it."""
    nodes, marks = clusters.nodes, clusters.marks
    leaves = clusters.wrenches.shape[0]
    order[0], size, done = k, 1, 0
    while done < size:
        k = order[done]
        marks[k] = 0
        done += 1
        if is_closed(k, clusters):
            open_twig(k, joints, clusters, none, s)
            continue
        for side in range(2):
            child = nodes[k, qs.LEFT + side]
            if child >= leaves and marks[child]:
                order[size] = child
                size += 1
    for i in range(size - 1, -1, -1):
        k = order[i]
        kind = nodes[k, qs.KIND]
        if kind == qs.SUM:
            clusters.defect[k] = clusters.defect[nodes[k, qs.LEFT]] + clusters.defect[nodes[k, qs.RIGHT]]
        elif kind == qs.ROOT:
            close_root(k, world, joints, clusters, none, s)
        else:
            close(k, joints, clusters, none, s)


@_jit
def update(
    opened,
    loads,
    joints,
    rates,
    drag,
    clusters,
    walk,
    visited,
    components,
    bodies,
    work,
    world,
    none,
    order,
    front,
    s,
):
    """Bring joints, wrenches, angular velocities and records up to date, in the motion of a linkage that is evaluated.

    Args:
        opened: per node, 1 if it is open.
        loads: rows on leaves, sorted by leaf.
        joints, rates, drag, clusters: coordinates and rates of open joints are up to date.
        walk, visited, components, bodies: of the linkage.
        work: kinematics of its links.
        world: acceleration of the world, gravity left out.
        none: zeros, (nv,).
        order: scratch, a list of nodes.
        front: `spin` out.
        s: scratch.
    """
    nodes, leaves = clusters.nodes, clusters.wrenches.shape[0]
    for b in range(bodies):
        place_joint(components.group[b], joints, s.poses)
    row = 0
    pose, at, wrench = s.poses[3], s.poses[4], s.vectors[3]
    while row < loads.shape[0]:
        k = int(loads[row, LINK])
        b = place_in_body(k, joints, clusters, walk, at, s.poses)
        set_identity(pose)
        if b >= 0:
            for i in range(9):
                pose[i] = work[components.link[b], linkage.W_ROTATION + i]
        other = s.poses[5]
        compose(pose, at, other)
        turn = other[:9].reshape(3, 3)
        for i in range(6):
            wrench[i] = 0.0
        while row < loads.shape[0] and int(loads[row, LINK]) == k:
            fx, fy, fz, tx, ty, tz = wrench_in_body(loads[row], turn)
            wrench[0] += fx
            wrench[1] += fy
            wrench[2] += fz
            wrench[3] += tx
            wrench[4] += ty
            wrench[5] += tz
            row += 1
        same = True
        for i in range(6):
            if clusters.wrenches[k, i] != wrench[i]:
                same = False
                clusters.wrenches[k, i] = wrench[i]
        if not same:
            mark(k, opened, clusters)
    first_a, second_a, first_b, second_b = s.vectors[4], s.vectors[5], s.vectors[6], s.vectors[7]
    missing, spin = s.vectors[11], s.vectors[3]
    for i in range(visited):
        b = walk.component[i]
        for j in range(3):
            front.spin[i, j] = 0.0
        if b >= 0:
            _spin_in(work[components.link[b]], walk.pose[i], front.spin[i])
    for i in range(visited - 1, -1, -1):
        k = walk.node[i]
        if not opened[k]:
            if k >= leaves and clusters.marks[k]:
                _refresh(k, world, joints, clusters, none, order, s)
            continue
        if nodes[k, qs.KIND] not in (qs.MERGE, qs.WELD):
            continue
        left, right = nodes[k, qs.LEFT], nodes[k, qs.RIGHT]
        a, b = record(left, 0, clusters, s), record(right, 1, clusters, s)
        free_bias(left, a, opened[left], front.spin[walk.slot[left]], clusters, first_a, second_a)
        row = walk.slot[right]
        free_bias(right, b, opened[right], front.spin[row], clusters, first_b, second_b)
        for j in range(3):
            spin[j] = front.spin[i, j]
        if nodes[k, qs.GROUP] >= 0:
            body = walk.component[row]
            p = components.parent[body]
            for j in range(3):
                spin[j] = 0.0
            if p >= 0:
                _spin_in(work[components.link[p]], components.pose[body], spin)
        count = join_open(k, a, b, second_a, first_b, spin, joints, rates, clusters, drag, s, missing)
        open_record(k, a, b, first_a, first_b, second_b, count, missing, clusters, s)


@_jit
def _spin_in(row, pose, out):
    """Angular velocity of a link, `row` of its work, in the axes of a frame at this pose in the link's."""
    x, y, z = row[linkage.W_SPIN], row[linkage.W_SPIN + 1], row[linkage.W_SPIN + 2]
    for i in range(3):
        out[i] = row[i] * x + row[3 + i] * y + row[6 + i] * z
    turn_back(pose, out, out)


# --- forces and defects


@_jit
def defect(k, at, force, spin, clusters, s):
    """Twice the energy of acceleration that a closed cluster misses by being rigid, under forces on its handles.

    It is the largest value of `2 e.a - |a|²` over its free motions, e what drives its joints: by Gauss's principle the
    squared distance of the rigid motion from the free one, in the metric of inertia and resistance.
    """
    nodes, data = clusters.nodes, clusters.data
    if k < clusters.wrenches.shape[0]:
        return 0.0
    if nodes[k, qs.KIND] in (qs.SUM, qs.ROOT):
        return clusters.defect[k]
    two = nodes[k, qs.HANDLES] == 2
    p, net, a, forms = s.forms[0, 0], s.vectors[0], s.system, s.forms[1]
    products(spin, p)
    out, terms = 0.0, 0.0
    for c in range(F):
        for e in range(F):
            x = p[c] * data[at + col.GAUSS + F * c + e] * p[e]
            out += x
            terms += abs(x)
    for i in range(6):
        for j in range(6):
            x = force[i] * data[at + col.PHI + 6 * i + j] * force[j]
            if two:
                x += 2.0 * force[i] * data[at + col.PHI12 + 6 * i + j] * force[6 + j]
                x += force[6 + i] * data[at + col.PHI2 + 6 * i + j] * force[6 + j]
            out += x
            terms += abs(x)
        for c in range(F):
            x = 2.0 * force[i] * data[at + col.BIAS + F * i + c] * p[c]
            if two:
                x += 2.0 * force[6 + i] * data[at + col.BIAS2 + F * i + c] * p[c]
            out += x
            terms += abs(x)
    rigid_forms(data, at + col.INERTIA, forms)
    if two:
        to_parent(data[at + col.SPAN : at + col.SPAN + 12], force[6:12], net)
    for i in range(6):
        x = data[at + col.WRENCH + i] + force[i]
        if two:
            x += net[i]
        for c in range(1, F):
            x += forms[i, c] * p[c]
        net[i] = x
    expand(data, at + col.INERTIA, a)
    for i in range(6):
        a[i, 6] = net[i]
    solve(a, 6, 1)
    for i in range(6):
        x = net[i] * a[i, 6]
        out -= x
        terms += abs(x)
    return max(out - _ROUND_OFF * terms, 0.0)


@_jit
def _hand_down(k, a, force, wrench, clusters, joints, out_a, out_b):
    """Forces on the handles of k's children from those on k's and the wrench through its joint."""
    nodes = clusters.nodes
    left, right, g = nodes[k, qs.LEFT], nodes[k, qs.RIGHT], nodes[k, qs.GROUP]
    two = nodes[k, qs.HANDLES] == 2
    for i in range(6):
        out_b[i], out_b[6 + i] = wrench[i], 0.0
        if two:
            if nodes[right, qs.HANDLES] == 2:
                out_b[6 + i] = force[6 + i]
            else:
                out_b[i] += force[6 + i]
    if left < 0:
        return
    if g >= 0:
        to_parent(joints.poses[g], wrench, out_a[6:12])
    else:
        for i in range(6):
            out_a[6 + i] = wrench[i]
    for i in range(6):
        out_a[i] = force[i]
        if nodes[left, qs.HANDLES] == 2:
            out_a[6 + i] = -out_a[6 + i]
        else:
            out_a[i] -= out_a[6 + i]
            out_a[6 + i] = 0.0


@_jit
def _coupled(k, a, force, clusters, joints, s, out):
    """Acceleration missing at k's joint because of forces on its handles: E Phi21 f1 - Phi12 f2, added to `out`."""
    nodes, data = clusters.nodes, clusters.data
    left, right, g = nodes[k, qs.LEFT], nodes[k, qs.RIGHT], nodes[k, qs.GROUP]
    column, moved = s.vectors[0], s.vectors[1]
    o = a + (col.PHI12 if nodes[left, qs.HANDLES] == 2 else col.PHI)
    for i in range(6):
        x = 0.0
        for j in range(6):
            x += data[o + 6 * j + i] * force[j]
        column[i] = x
    if g >= 0:
        to_child(joints.poses[g], column, moved)
    else:
        for i in range(6):
            moved[i] = column[i]
    for i in range(6):
        out[i] += moved[i]
    if nodes[k, qs.HANDLES] == 2:
        b = record(right, 1, clusters, s)
        o = b + (col.PHI12 if nodes[right, qs.HANDLES] == 2 else col.PHI)
        for i in range(6):
            x = 0.0
            for j in range(6):
                x += data[o + 6 * i + j] * force[6 + j]
            out[i] -= x


@_jit
def _look_into(k, force, spin, world, joints, clusters, none, s, out_a, out_b, spin_b):
    """Forces on the handles of a closed cluster's children if its joint were free, and right's angular velocity."""
    nodes, data = clusters.nodes, clusters.data
    left, right, g = nodes[k, qs.LEFT], nodes[k, qs.RIGHT], nodes[k, qs.GROUP]
    first, second, first_b, missing = s.vectors[4], s.vectors[5], s.vectors[6], s.vectors[11]
    a, turned = -1, s.vectors[3]
    for i in range(3):
        turned[i] = spin[i]
    if left >= 0:
        a = record(left, 0, clusters, s)
        free_bias(left, a, 0, spin, clusters, first, second)
        if nodes[left, qs.HANDLES] == 2:
            turn_back(data[a + col.SPAN : a + col.SPAN + 12], turned, turned)
    else:
        for i in range(6):
            second[i] = world[i]
    for i in range(3):
        spin_b[i] = turned[i]
    if g >= 0:
        turn_back(joints.poses[g], spin_b, spin_b)
    b = record(right, 1, clusters, s)
    free_bias(right, b, 0, spin_b, clusters, first_b, s.vectors[7])
    count = join_open(k, a, b, second, first_b, turned, joints, none, clusters, none, s, missing)
    n, wrench = 6 + count, s.vectors[2]
    if left >= 0:
        _coupled_in_join(k, b, force, clusters, s, missing)
    for i in range(6):
        x = s.system[i, n + 6]
        for j in range(6):
            x += s.system[i, n + j] * missing[j]
        wrench[i] = x
    _hand_down(k, a, force, wrench, clusters, joints, out_a, out_b)


@_jit
def _coupled_in_join(k, b, force, clusters, s, out):
    """`_coupled` right after `join_open`, whose scratch holds E Phi21."""
    nodes, data = clusters.nodes, clusters.data
    right, coupled = nodes[k, qs.RIGHT], s.matrices[0]
    two = nodes[k, qs.HANDLES] == 2
    o = b + (col.PHI12 if nodes[right, qs.HANDLES] == 2 else col.PHI)
    for i in range(6):
        for j in range(6):
            out[i] += coupled[i, j] * force[j]
            if two:
                out[i] -= data[o + 6 * i + j] * force[6 + j]


# --- the heap


@_jit
def _push(row, key, front):
    """Put a closed cluster into the heap."""
    numbers = front.numbers
    heap.push(key, row, int(numbers[col.HEAP]), front.keys, front.items)
    numbers[col.HEAP] += 1.0
    numbers[col.LEFT_OVER] += key


@_jit
def _pop(front):
    """Row of the closed cluster with the largest key, removed from the heap."""
    numbers = front.numbers
    numbers[col.LEFT_OVER] -= front.keys[0]
    out = heap.pop(int(numbers[col.HEAP]), front.keys, front.items)
    numbers[col.HEAP] -= 1.0
    return out


@_jit
def _offer(row, clusters, front, s):
    """Put a closed cluster with its forces and angular velocity into the heap."""
    k = front.node[row]
    front.missed[row] = defect(k, clusters.start[k], front.force[row], front.spin[row], clusters, s)
    if k >= clusters.wrenches.shape[0]:
        _push(row, front.missed[row], front)


# --- what to open, what to close


@_jit
def choose(opened, kept, limits, joints, rates, drag, clusters, walk, visited, world, none, front, s):
    """Nodes to open and to close, after `update`: into `front.change`, their numbers into `front.numbers`.

    A cluster is opened while its defect is above the limit, the worst first. A node whose children are both closed is
    closed if little kinetic energy is lost by it, its joint adds little to the defects of the children, and its defect
    is then below half the limit.

    Args:
        kept: per node, 1 if it is to stay open.
        limits: `Limits`.
        Others as of `update`.
    """
    nodes, numbers = clusters.nodes, front.numbers
    for i in range(col.NUMBERS):
        numbers[i] = 0.0
    missing, wrench = s.vectors[11], s.vectors[2]
    count, room = 0, front.node.shape[0]
    for i in range(visited):
        front.node[i] = walk.node[i]
    for i in range(12):
        front.force[0, i] = 0.0
    for i in range(visited):
        k = walk.node[i]
        if not opened[k]:
            _offer(i, clusters, front, s)
            continue
        count += nodes[k, qs.GROUP] >= 0
        left, right, kind = nodes[k, qs.LEFT], nodes[k, qs.RIGHT], nodes[k, qs.KIND]
        row_b = walk.slot[right]
        if kind == qs.SUM:
            continue
        if kind == qs.ROOT:
            b = record(right, 1, clusters, s)
            free_bias(right, b, opened[right], front.spin[row_b], clusters, s.vectors[6], s.vectors[7])
            n = 6 + join_open(
                k, -1, b, world, s.vectors[6], front.spin[i], joints, rates, clusters, drag, s, missing
            )
            for j in range(6):
                x = s.system[j, n + 6]
                for e in range(6):
                    x += s.system[j, n + e] * missing[e]
                wrench[j] = x
            _hand_down(k, -1, front.force[i], wrench, clusters, joints, front.force[i], front.force[row_b])
            continue
        at, a = clusters.start[k], record(left, 0, clusters, s)
        data = clusters.data
        for j in range(6):
            missing[j] = data[at + MISSING + j]
        _coupled(k, a, front.force[i], clusters, joints, s, missing)
        for j in range(6):
            x = data[at + DRIVEN + j]
            for e in range(6):
                x += data[at + FACTOR + 6 * j + e] * missing[e]
            wrench[j] = x
        row_a = walk.slot[left]
        _hand_down(k, a, front.force[i], wrench, clusters, joints, front.force[row_a], front.force[row_b])
    rows, opening = visited, 0
    while numbers[col.HEAP] > 0.0 and front.keys[0] > limits.open and count < limits.most:
        if rows + 2 > room or opening == room // 2:
            numbers[col.FULL] = 1.0
            break
        i = _pop(front)
        k = front.node[i]
        left, right, kind = nodes[k, qs.LEFT], nodes[k, qs.RIGHT], nodes[k, qs.KIND]
        if is_closed(k, clusters):
            open_twig(k, joints, clusters, none, s)
        front.change[opening] = k
        opening += 1
        count += nodes[k, qs.GROUP] >= 0
        row_a, row_b = rows, rows + 1
        rows += 2
        front.node[row_a], front.node[row_b] = left, right
        for j in range(3):
            front.spin[row_a, j] = front.spin[i, j]
        if kind == qs.SUM:
            for j in range(12):
                front.force[row_a, j] = front.force[row_b, j] = 0.0
            for j in range(3):
                front.spin[row_b, j] = 0.0
        else:
            _look_into(
                k,
                front.force[i],
                front.spin[i],
                world,
                joints,
                clusters,
                none,
                s,
                front.force[row_a],
                front.force[row_b],
                front.spin[row_b],
            )
        if left >= 0:
            _offer(row_a, clusters, front, s)
        _offer(row_b, clusters, front, s)
    numbers[col.ROWS], numbers[col.OPENED] = rows, opening
    numbers[col.WORST] = front.keys[0] if numbers[col.HEAP] > 0.0 else 0.0
    for i in range(opening):
        opened[front.change[i]] = 1
    _choose_closed(opened, kept, limits, joints, rates, clusters, walk, visited, world, none, front, s)
    for i in range(opening):
        opened[front.change[i]] = 0


@_jit
def _choose_closed(opened, kept, limits, joints, rates, clusters, walk, visited, world, none, front, s):
    """Nodes to close, from the end of `front.change` on; `opened` marks those to open already, and stays as it is."""
    nodes, numbers = clusters.nodes, front.numbers
    closing, room = 0, front.change.shape[0]
    for i in range(visited - 1, -1, -1):
        k = walk.node[i]
        front.content[i] = 0.0 if opened[k] == 0 else -1.0
        if opened[k] == 0 or kept[k]:
            continue
        left, right, g = nodes[k, qs.LEFT], nodes[k, qs.RIGHT], nodes[k, qs.GROUP]
        if walk.slot[right] < 0:  # opened just now
            continue
        content, before = 0.0, front.missed[walk.slot[right]]
        if left >= 0:
            content = front.content[walk.slot[left]]
            before += front.missed[walk.slot[left]]
        if content < 0.0 or front.content[walk.slot[right]] < 0.0:
            continue
        content += front.content[walk.slot[right]]
        if g >= 0:
            content += _lost(g, right, joints, rates, clusters, s)
        if content > limits.slow:
            continue
        kind = nodes[k, qs.KIND]
        if kind == qs.SUM:
            clusters.defect[k] = clusters.defect[left] + clusters.defect[right]
        elif kind == qs.ROOT:
            close_root(k, world, joints, clusters, none, s)
        else:
            close(k, joints, clusters, none, s)
        missed = defect(k, clusters.start[k], front.force[i], front.spin[i], clusters, s)
        if not (missed <= limits.closed and missed - before <= limits.close):
            continue
        front.content[i], front.missed[i] = content, missed
        closing += 1
        front.change[room - closing] = k
    numbers[col.CLOSED] = closing


@_jit
def _lost(g, right, joints, rates, clusters, s):
    """Energy of motion that is lost at most when group g's joint, before the rigid cluster `right`, is stopped, J.

    Dampers and springs count as the inertia that they are worth in a step: slow motion against them is no rest.
    """
    d, count = joints.groups[g, qs.DOF], joints.groups[g, qs.DOFS]
    twist, inertia = s.vectors[0], s.matrices[3]
    for i in range(6):
        x = 0.0
        for j in range(d, d + count):
            x += joints.screws[j, i] * rates[j]
        twist[i] = x
    at = record(right, 1, clusters, s)
    expand(clusters.data, at + col.INERTIA, inertia)
    out = 0.0
    for i in range(6):
        for j in range(6):
            out += 0.5 * twist[i] * inertia[i, j] * twist[j]
    for j in range(d, d + count):
        out += 0.5 * joints.resist[j] * rates[j] * rates[j]
    return out


@_jit
def start_all(joints, clusters, world, none, s):
    """Joints and records of all clusters, everything closed, twigs too."""
    nodes = clusters.nodes
    for g in range(joints.groups.shape[0]):
        place_joint(g, joints, s.poses)
    close_all(clusters)
    for k in range(clusters.wrenches.shape[0], nodes.shape[0]):
        kind = nodes[k, qs.KIND]
        clusters.marks[k] = 0
        if kind == qs.SUM:
            clusters.defect[k] = clusters.defect[nodes[k, qs.LEFT]] + clusters.defect[nodes[k, qs.RIGHT]]
        elif kind == qs.ROOT:
            close_root(k, world, joints, clusters, none, s)
        elif clusters.start[k] >= 0:
            place = clusters.free[0]
            if is_closed(k, clusters):
                open_twig(k, joints, clusters, none, s)
            close(k, joints, clusters, none, s)
            close_last(place, clusters, s)


@_jit
def restart(opened, walk, visited, world, joints, clusters, none, s):
    """`start_all` under a linkage: twigs in which nodes are open stay open."""
    start_all(joints, clusters, world, none, s)
    open_visited(opened, walk, visited, joints, clusters, none, s)
