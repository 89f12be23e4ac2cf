"""Kernels of contact with fixed planes and balls: detection, accelerations of contact points, responses, forces.

A segment is the axis of a capsule on a group: two ends and a radius; a sphere is one whose ends coincide. A plane
touches both ends, a ball the point nearest to it. Forces and displacements of a contact have three parts, along its
normal and two tangents.

The assembly tree is searched from the root: a cluster is left out if an obstacle is farther from its top handle than
the cluster reaches.
"""

import math

from pliant.compilation import njit
from pliant.engines.quasistatic import arrays as col
from pliant.engines.quasistatic._hybrid import place_bodies, reduce_linkage, solve_reduced
from pliant.engines.quasistatic._merge import pose_in
from pliant.engines.quasistatic._passes import world_poses
from pliant.engines.quasistatic._twigs import is_closed
from pliant.engines.quasistatic.joints import compose, copy_pose, set_identity, to_child, to_parent
from pliant.mechanism.links import LINK_BALL, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath=False)

# Columns of `obstacles`: plane or ball, a point of the plane or the ball's centre, the plane's normal, radius
PLANE, BALL = 0.0, 1.0
KIND, PLACE, NORMAL, RADIUS, OBSTACLE_SIZE = 0, 1, 4, 7, 8
# Columns of `segments`: both ends in the frame of their group, radius
START, END, THICKNESS, SEGMENT_SIZE = 0, 3, 6, 7
# Columns of contacts: group, end of a segment (twice its number, and 1 for its second end), obstacle, distance of the
# surfaces; the axes, normal first, and the point on the body, in the world; that point in the frame of the group
GROUP, SLOT, OBSTACLE, GAP, AXES, POINT, LOCAL, CONTACT_SIZE = 0, 1, 2, 3, 4, 13, 16, 19


# --- detection


@_jit
def _touch(g, pose, first, segments, obstacles, ahead, count, out):
    """Add the contacts of group g at a world pose; returns the number of contacts, one too many if there is no room."""
    for s in range(first[g], first[g + 1]):
        row = segments[s]
        for o in range(obstacles.shape[0]):
            thing = obstacles[o]
            both = thing[KIND] == PLANE and not (
                row[START] == row[END] and row[START + 1] == row[END + 1] and row[START + 2] == row[END + 2]
            )
            for end in range(2 if both else 1):
                if count > out.shape[0] - 1:
                    return out.shape[0] + 1
                contact = out[count]
                share = float(end)
                if thing[KIND] == BALL:
                    share = _nearest(row, pose, thing)
                if _measure(row, share, pose, thing, contact) < ahead:
                    contact[GROUP], contact[SLOT], contact[OBSTACLE] = g, 2 * s + end, o
                    count += 1
    return count


@_jit
def _nearest(row, pose, thing):
    """Where on a segment, from 0 to 1, the point nearest to the centre of a ball is."""
    along, square = 0.0, 0.0
    for i in range(3):
        # the centre in the frame of the group
        x = 0.0
        for j in range(3):
            x += pose[3 * j + i] * (thing[PLACE + j] - pose[9 + j])
        d = row[END + i] - row[START + i]
        along += d * (x - row[START + i])
        square += d * d
    return min(max(along / square, 0.0), 1.0) if square > 0.0 else 0.0


@_jit
def _measure(row, share, pose, thing, out):
    """Axes, points and distance of a contact at a point of a segment; returns the distance."""
    distance = 0.0
    for i in range(3):
        out[LOCAL + i] = row[START + i] + share * (row[END + i] - row[START + i])
    for i in range(3):
        x = pose[9 + i]
        for j in range(3):
            x += pose[3 * i + j] * out[LOCAL + j]
        out[POINT + i] = x
    if thing[KIND] == PLANE:
        for i in range(3):
            out[AXES + i] = thing[NORMAL + i]
            distance += thing[NORMAL + i] * (out[POINT + i] - thing[PLACE + i])
    else:
        for i in range(3):
            out[AXES + i] = out[POINT + i] - thing[PLACE + i]
            distance += out[AXES + i] * out[AXES + i]
        distance = math.sqrt(distance)
        for i in range(3):
            # from the very centre of a ball, up
            out[AXES + i] = out[AXES + i] / distance if distance > 0.0 else (1.0 if i == 2 else 0.0)
    _set_tangents(out)
    for i in range(3):
        out[POINT + i] -= row[THICKNESS] * out[AXES + i]
    for i in range(3):
        for j in range(3):
            out[LOCAL + i] -= row[THICKNESS] * pose[3 * j + i] * out[AXES + j]
    out[GAP] = distance - row[THICKNESS] - thing[RADIUS]
    return out[GAP]


@_jit
def _set_tangents(out):
    """Two unit vectors across the normal: the first along the world's axis that is most across it."""
    x, y, z = out[AXES], out[AXES + 1], out[AXES + 2]
    i = 0 if abs(x) <= 0.6 else 1 if abs(y) <= 0.6 else 2
    along = x if i == 0 else y if i == 1 else z
    length = math.sqrt(1.0 - along * along)
    for j in range(3):
        out[AXES + 3 + j] = ((1.0 if j == i else 0.0) - along * out[AXES + j]) / length
    u, v, w = out[AXES + 3], out[AXES + 4], out[AXES + 5]
    out[AXES + 6], out[AXES + 7], out[AXES + 8] = y * w - z * v, z * u - x * w, x * v - y * u


@_jit
def _is_far(pose, reach, obstacles):
    """Whether nothing within a distance of a pose's origin touches an obstacle."""
    for o in range(obstacles.shape[0]):
        thing, distance = obstacles[o], 0.0
        if thing[KIND] == PLANE:
            for i in range(3):
                distance += thing[NORMAL + i] * (pose[9 + i] - thing[PLACE + i])
        else:
            for i in range(3):
                distance += (pose[9 + i] - thing[PLACE + i]) ** 2
            distance = math.sqrt(distance) - thing[RADIUS]
        if distance <= reach:
            return False
    return True


@_jit
def find_all(joints, poses, first, segments, obstacles, ahead, out):
    """Contacts of all groups, nearer than `ahead`; one more than there is room for if there are more.

    Args:
        joints: with poses that belong to the coordinates.
        poses: world poses of groups, written here, (groups, 12).
        first, segments: of groups, (groups + 1,) and (segments, SEGMENT_SIZE).
        obstacles: (obstacles, OBSTACLE_SIZE).
        ahead: m.
        out: contacts, (room, CONTACT_SIZE).
    """
    count = 0
    world_poses(joints, poses)
    for g in range(poses.shape[0]):
        count = _touch(g, poses[g], first, segments, obstacles, ahead, count, out)
        if count > out.shape[0]:
            break
    return count


@_jit
def find_in_tree(a, first_leaf, size, first, segments, obstacles, ahead, nodes_left, poses_left, out):
    """Contacts as of `find_all`, in time proportional to the clusters near obstacles; clusters are up to date.

    Args:
        a: arrays.
        first_leaf: per group: of several leaves that share it, the first one touches.
        size: largest distance of a segment's surface from its group's origin, m.
        first, segments, obstacles, ahead, out: as of `find_all`.
        nodes_left, poses_left: scratch, a stack; one row more than the tree is deep, (rows,) and (rows, 12).
    """
    nodes, data, extent = a.clusters.nodes, a.clusters.data, a.leaves.extent
    poses, spare = a.joints.poses, a.scratch.poses
    at, part = spare[0], spare[1]
    left, count = 1, 0
    nodes_left[0] = nodes.shape[0] - 1
    set_identity(poses_left[0])
    while left > 0:
        left -= 1
        k = nodes_left[left]
        copy_pose(poses_left[left], at)
        kind, group = nodes[k, col.KIND], nodes[k, col.GROUP]
        if nodes[k, col.HANDLES] > 0 and _is_far(at, extent[k] + size + ahead, obstacles):
            continue
        if kind == col.LEAF:
            if first_leaf[group] == k:
                count = _touch(group, at, first, segments, obstacles, ahead, count, out)
        elif is_closed(k, nodes):
            count = _touch_twig(k, at, a, first_leaf, first, segments, obstacles, ahead, count, out)
        else:
            right, other = nodes[k, col.RIGHT], nodes[k, col.LEFT]
            if kind == col.ROOT:
                copy_pose(poses[group], poses_left[left])
            elif kind == col.MERGE:
                if nodes[other, col.HANDLES] == 2:
                    o = nodes[other, col.START] + col.SPAN
                    compose(data[o : o + 12], poses[group], part)
                    compose(at, part, poses_left[left])
                else:
                    compose(at, poses[group], poses_left[left])
            else:
                copy_pose(at, poses_left[left])
            nodes_left[left] = right
            left += 1
            if other >= 0:
                nodes_left[left] = other
                copy_pose(at, poses_left[left])
                left += 1
        if count > out.shape[0]:
            break
    return count


@_jit
def _touch_twig(k, at, a, first_leaf, first, segments, obstacles, ahead, count, out):
    """Add the contacts of all bodies in a closed twig, whose top handle is at a world pose."""
    nodes, joints = a.clusters.nodes, a.joints
    order, spare = a.leaves.twig, a.scratch.poses
    pose = spare[1]
    size, done = 1, 0
    order[0] = k
    while done < size:
        n = order[done]
        done += 1
        if nodes[n, col.KIND] != col.LEAF:
            for side in range(2):
                order[size] = nodes[n, col.LEFT + side]
                size += 1
        elif first_leaf[nodes[n, col.GROUP]] == n:
            pose_in(n, k, nodes, a.clusters.data, joints.groups, joints.poses, pose, spare[2])
            compose(at, pose, spare[2])
            g = nodes[n, col.GROUP]
            count = _touch(g, spare[2], first, segments, obstacles, ahead, count, out)
    return count


# --- accelerations and responses


@_jit
def _along_axes(contact, pose, acceleration, world, out):
    """Acceleration of a contact's point along its axes, from that of its group, whose rotation is that of `pose`.

    As everywhere, accelerations of groups are relative to free fall: `world` is what the world has.
    """
    px, py, pz = contact[LOCAL], contact[LOCAL + 1], contact[LOCAL + 2]
    u, v, w = acceleration[3], acceleration[4], acceleration[5]
    x = acceleration[0] + v * pz - w * py
    y = acceleration[1] + w * px - u * pz
    z = acceleration[2] + u * py - v * px
    for i in range(3):
        out[i] = 0.0
    for j in range(3):
        total = pose[3 * j] * x + pose[3 * j + 1] * y + pose[3 * j + 2] * z - world[j]
        for i in range(3):
            out[i] += contact[AXES + 3 * i + j] * total


@_jit
def all_accelerations(contacts, joints, world, poses, spare, out):
    """Accelerations of contacts' points along their axes, (contacts, 3), from those of all joints.

    `poses` are world poses of groups, `spare` is (groups, 6).
    """
    groups, screws, qdd = joints.groups, joints.screws, joints.qdd
    for g in range(groups.shape[0]):
        p, d, k = groups[g, col.PARENT], groups[g, col.DOF], groups[g, col.FIRST]
        own = spare[g]
        to_child(joints.poses[g], world if p < 0 else spare[p], own)
        kind = joints.primitives[k, col.MOTION]
        if groups[g, col.COUNT] > 1:
            for n in range(d, d + groups[g, col.DOFS]):
                for i in range(6):
                    own[i] += screws[n, i] * qdd[n]
        elif kind == LINK_BALL:
            for i in range(3):
                own[3 + i] += qdd[d + i]
        elif groups[g, col.DOFS] == 1:
            own[5 if kind == LINK_HINGE else 2] += qdd[d]
    for i in range(contacts.shape[0]):
        g = int(contacts[i, GROUP])
        _along_axes(contacts[i], poses[g], spare[g], world, out[i])


@_jit
def _holder(k, nodes, top):
    """The rigid cluster that a leaf belongs to; every node above it is computed."""
    found = k
    while k >= 0:
        if top[k] == k:
            found = k
        k = nodes[k, col.ABOVE]
    return found


@_jit
def hold(contacts, first_leaf, a, front, holders, frames):
    """Rigid clusters that contacts belong to, and the poses of contacts' groups in them and in the world.

    Their accelerations follow from those of the joints last computed.
    """
    nodes, joints, data, spare = a.clusters.nodes, a.joints, a.clusters.data, a.scratch.poses[0]
    reduce_linkage(nodes, front)
    place_bodies(False, a, front)
    for i in range(contacts.shape[0]):
        k = first_leaf[int(contacts[i, GROUP])]
        holders[i] = _holder(k, nodes, front.top)
        pose_in(k, holders[i], nodes, data, joints.groups, joints.poses, frames[i, 0], spare)
        pose_in(k, nodes.shape[0] - 1, nodes, data, joints.groups, joints.poses, frames[i, 1], spare)


@_jit
def held_accelerations(contacts, holders, frames, a, out):
    """Accelerations of contacts' points along their axes, (contacts, 3), from those of rigid clusters."""
    nodes, data, world, own = a.clusters.nodes, a.clusters.data, a.clusters.world, a.scratch.poses[0]
    for i in range(contacts.shape[0]):
        k = holders[i]
        if nodes[k, col.HANDLES] == 0:  # part of the world
            for j in range(3):
                out[i, j] = 0.0
            continue
        at = nodes[k, col.START] - col.BEFORE + col.RIGID_BODY + col.ACCELERATION
        to_child(frames[i, 0], data[at : at + 6], own)
        _along_axes(contacts[i], frames[i, 1], own, world, out[i])


@_jit
def held_responses(contacts, parts, holders, frames, before, a, front, spare, out):
    """Accelerations of contacts' points for unit forces at each of them, with the joints that are active now.

    Args:
        contacts, holders, frames: as of `hold`.
        parts: along axes: 3 with friction, 1 without.
        before: their accelerations now, (contacts, 3).
        a, front: arrays.
        spare: scratch, (contacts, 3).
        out: (parts contacts, parts contacts).

    Returns:
        The node whose joint has no inertia, or -1.
    """
    nodes, data = a.clusters.nodes, a.clusters.data
    wrench, carried, kept = a.scratch.poses[1], a.scratch.poses[1, 6:], a.scratch.poses[2]
    for i in range(contacts.shape[0]):
        k = holders[i]
        if nodes[k, col.HANDLES] == 0:
            continue
        at = nodes[k, col.START] - col.BEFORE + col.RIGID_WRENCH
        contact, pose = contacts[i], frames[i, 1]
        for part in range(parts):
            for c in range(3):
                x = 0.0
                for r in range(3):
                    x += pose[3 * r + c] * contact[AXES + 3 * part + r]
                wrench[c] = x
            px, py, pz = contact[LOCAL], contact[LOCAL + 1], contact[LOCAL + 2]
            wrench[3] = py * wrench[2] - pz * wrench[1]
            wrench[4] = pz * wrench[0] - px * wrench[2]
            wrench[5] = px * wrench[1] - py * wrench[0]
            to_parent(frames[i, 0], wrench, carried)
            for c in range(6):
                kept[c] = data[at + c]
                data[at + c] += carried[c]
            failed = solve_reduced(a, front)
            for c in range(6):
                data[at + c] = kept[c]
            if failed >= 0:
                return failed
            held_accelerations(contacts, holders, frames, a, spare)
            for j in range(contacts.shape[0]):
                for c in range(parts):
                    out[parts * j + c, parts * i + part] = spare[j, c] - before[j, c]
    return -1


# --- forces


@_jit
def find_forces(parts, response, shift, friction, sweeps, tolerance, force):
    """Contact forces by Gauss-Seidel: no penetration, no pull, Coulomb's cone of friction.

    Args:
        parts: of a contact's force, 3 or, without friction, 1.
        response: displacement per force, m/N, (parts contacts, parts contacts).
        shift: displacement without contact forces, the gap included, m, (parts contacts,).
        friction: coefficient.
        sweeps, tolerance: most sweeps, and the change of displacement, m, at which they end.
        force: where to start, and the answer, N, (parts contacts,).
    """
    for _ in range(sweeps):
        change = 0.0
        for a in range(0, shift.shape[0], parts):
            own = response[a, a]
            if not own > 0.0:
                continue
            new = max(0.0, force[a] - _displacement(a, response, shift, force) / own)
            change = max(change, abs(new - force[a]) * own)
            force[a] = new
            if parts == 1:
                continue
            b, c = a + 1, a + 2
            half = 0.5 * (response[b, b] - response[c, c])
            own = 0.5 * (response[b, b] + response[c, c]) + math.sqrt(half * half + response[b, c] ** 2)
            if not own > 0.0:
                continue
            y = force[b] - _displacement(b, response, shift, force) / own
            z = force[c] - _displacement(c, response, shift, force) / own
            size, most = math.sqrt(y * y + z * z), friction * new
            if size > most:
                y, z = y * most / size, z * most / size
            change = max(change, (abs(y - force[b]) + abs(z - force[c])) * own)
            force[b], force[c] = y, z
        if change <= tolerance:
            break


@_jit
def _displacement(row, response, shift, force):
    """A part of the displacement of a contact."""
    x = shift[row]
    for j in range(shift.shape[0]):
        x += response[row, j] * force[j]
    return x
