"""Row of a load: its columns, and the wrench it stands for. The only place that decodes rows, for all engines.

A row is in a frame fixed to the loaded body: the body's own, or one that an engine prefers (`load_rows`).
This module imports no more of pliant than the compiler, so that machine code of engines depends on little.
"""

from pliant.compilation import njit

# Columns: force and torque that keep their world direction, N and N m, world axes; point where that force acts, m;
# force and torque at the frame's origin that turn with the body, in the frame's axes; 1 if any of these is not zero;
# number of the loaded link, leaf or body where rows are listed, set by the engine.
FORCE, TORQUE, POINT, FOLLOWER_FORCE, FOLLOWER_TORQUE, ACTS, LINK, LOAD_SIZE = 0, 3, 6, 9, 12, 15, 16, 17

_inline = njit(inline="always", error_model="numpy", nogil=True)


@_inline
def dead_wrench(row, pose):
    """World-fixed force and torque of a row in the axes of its frame, which has the rotation of `pose`: six numbers.

    `pose` is (3, 3) or (4, 4).
    """
    x, y, z = row[FORCE], row[FORCE + 1], row[FORCE + 2]
    a, b, c = row[TORQUE], row[TORQUE + 1], row[TORQUE + 2]
    return (
        pose[0, 0] * x + pose[1, 0] * y + pose[2, 0] * z,
        pose[0, 1] * x + pose[1, 1] * y + pose[2, 1] * z,
        pose[0, 2] * x + pose[1, 2] * y + pose[2, 2] * z,
        pose[0, 0] * a + pose[1, 0] * b + pose[2, 0] * c,
        pose[0, 1] * a + pose[1, 1] * b + pose[2, 1] * c,
        pose[0, 2] * a + pose[1, 2] * b + pose[2, 2] * c,
    )


@_inline
def wrench_in_body(row, pose):
    """Force and torque of a row at the origin of its frame, in the frame's axes: six numbers."""
    fx, fy, fz, tx, ty, tz = dead_wrench(row, pose)
    x, y, z = row[POINT], row[POINT + 1], row[POINT + 2]
    return (
        fx + row[FOLLOWER_FORCE],
        fy + row[FOLLOWER_FORCE + 1],
        fz + row[FOLLOWER_FORCE + 2],
        tx + y * fz - z * fy + row[FOLLOWER_TORQUE],
        ty + z * fx - x * fz + row[FOLLOWER_TORQUE + 1],
        tz + x * fy - y * fx + row[FOLLOWER_TORQUE + 2],
    )


@_inline
def body_wrench(row, pose, out):
    """`wrench_in_body`, written to `out`, (6,)."""
    out[0], out[1], out[2], out[3], out[4], out[5] = wrench_in_body(row, pose)


@_inline
def wrench_in_world(row, pose):
    """Force and torque of a row at the origin of its frame, in world axes: six numbers."""
    fx, fy, fz, tx, ty, tz = wrench_in_body(row, pose)
    return (
        pose[0, 0] * fx + pose[0, 1] * fy + pose[0, 2] * fz,
        pose[1, 0] * fx + pose[1, 1] * fy + pose[1, 2] * fz,
        pose[2, 0] * fx + pose[2, 1] * fy + pose[2, 2] * fz,
        pose[0, 0] * tx + pose[0, 1] * ty + pose[0, 2] * tz,
        pose[1, 0] * tx + pose[1, 1] * ty + pose[1, 2] * tz,
        pose[2, 0] * tx + pose[2, 1] * ty + pose[2, 2] * tz,
    )


@njit(error_model="numpy", nogil=True)
def carry_rows(rows, body, frames):
    """Bring rows of loads on bodies into frames in which the frames of the bodies have the poses `frames`, in place."""
    for i in range(rows.shape[0]):
        row, T = rows[i], frames[body[i]]
        for at in (POINT, FOLLOWER_FORCE, FOLLOWER_TORQUE):
            x, y, z = row[at], row[at + 1], row[at + 2]
            for c in range(3):
                row[at + c] = T[c, 0] * x + T[c, 1] * y + T[c, 2] * z
        x, y, z = T[0, 3], T[1, 3], T[2, 3]
        a, b, c = row[FOLLOWER_FORCE], row[FOLLOWER_FORCE + 1], row[FOLLOWER_FORCE + 2]
        row[POINT] += x
        row[POINT + 1] += y
        row[POINT + 2] += z
        row[FOLLOWER_TORQUE] += y * c - z * b
        row[FOLLOWER_TORQUE + 1] += z * a - x * c
        row[FOLLOWER_TORQUE + 2] += x * b - y * a
