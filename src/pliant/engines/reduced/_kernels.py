"""One step of a reduced model and the poses of all its links, on five flat arrays.

`packing` lays the arrays out; they are few, because each costs a tenth of a microsecond per call from Python. Single
steps are called by address.

    sizes      int64    sizes and places, see the constants below
    links      int64    (links, 4): place of the link's pose, of its parent's, whether it is a ball, its rows of motion
    constants  float64  matrices of the step, then what poses are made from
    state      float64  time, coordinates y, velocities, base, wrenches, work space
    poses      float64  (places, 4, 4): bodies, inner links of joints, the world, the world as a moving base carries it
"""

from math import cos, factorial, isfinite, sin

from pliant.compilation import njit
from pliant.engines.reduced._intrinsics import five_arrays, matrix, swing
from pliant.spatial import _kernels as se3
from pliant.statics._load_kernels import ACTS, LOAD_SIZE, body_wrench

# What a step calls once is made part of it: handing arrays over takes longer than many a loop.
_inline = njit(error_model="numpy", nogil=True, inline="always")
# Sums may be reordered, which lets them run on vector units; infinities and NaN keep their meaning.
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

# Places in `sizes`: numbers of things, then where arrays start in `constants` and in `state`.
COORDINATES, EFFECTORS, LINKS, ROWS, FREE, TWIST = range(6)
UPDATE, RESPONSE, STEADY, BASIS, BOUND, LOCAL, HINGE, BASE = range(6, 14)
BASE_STATE, WRENCH, WORK, SIZES = range(14, 18)

BASE_SIZE = 13  # centre of mass, quaternion, velocity of the centre of mass, angular momentum
BASE_CONSTANTS = 32  # mass, centre of mass, inverse inertia about it, inverse reference pose, gravity

# sin x / x and (1 - cos x) / x² in powers of x², good to rounding for |x| <= 1.
_S = tuple((-1) ** n / factorial(2 * n + 1) for n in range(9))
_V = tuple((-1) ** n / factorial(2 * n + 2) for n in range(9))


@_jit
def advance(count, ends, sizes, links, constants, state, poses):
    """Take `count` steps, poses included. Returns how many were taken before the state left the finite numbers.

    With `ends`, only end effectors get their poses, which is all that the next step asks for; by twists alone.
    """
    moving = sizes[WRENCH]  # time, y, velocities and base come before the wrenches
    work = state[sizes[WORK] :]
    for done in range(count):
        for i in range(moving):
            work[i] = state[i]
        _step(sizes, links, constants, state, poses, work[moving:])
        total = 0.0
        for i in range(moving):
            total += abs(state[i])
        if not isfinite(total):
            for i in range(moving):
                state[i] = work[i]
            return done
        if ends:
            place_carrier(sizes, constants, state, poses)
            for e in range(sizes[EFFECTORS]):
                body = links[sizes[LINKS] + e, 0]
                by_twists(body, body + 1, sizes, links, constants, state, poses)
        else:
            reconstruct(sizes, links, constants, state, poses, work[moving:])
    return count


@_jit
def advance_at(count, ends, at):
    """`advance` on the arrays of `five_arrays`."""
    sizes, links, constants, state, poses = five_arrays(at)
    return advance(count, ends, sizes, links, constants, state, poses)


@_jit
def advance_batch(count, sizes, links, constants, states, poses):
    """Take `count` steps of every copy. Returns the copy that took the fewest, and how many it took."""
    worst, least = -1, count
    for copy in range(states.shape[0]):
        done = advance(count, False, sizes, links, constants, states[copy], poses[copy])
        if done < least:
            worst, least = copy, done
    return worst, least


@_jit
def reconstruct_batch(sizes, links, constants, states, poses):
    """Poses of every copy from its state."""
    for copy in range(states.shape[0]):
        work = states[copy, sizes[WORK] + sizes[WRENCH] :]
        reconstruct(sizes, links, constants, states[copy], poses[copy], work)


@_inline
def _step(sizes, links, constants, state, poses, work):
    """Backward Euler, TVCG Eq. 23 with its signs put right: (M + hD + h²K) v' = M v + h (w - b - K y)."""
    n, effectors = sizes[COORDINATES], sizes[EFFECTORS]
    h = constants[0]
    update = matrix(constants, sizes[UPDATE], 2 * n, n)
    response = matrix(constants, sizes[RESPONSE], 6 * effectors, n)
    steady = constants[sizes[STEADY] :]
    faster, wrench, net = work[:n], work[n : n + 6], work[n + 6 : n + 12]
    for i in range(n):
        faster[i] = steady[i]
    for i in range(6):
        net[i] = 0.0
    for e in range(effectors):
        given = state[sizes[WRENCH] + LOAD_SIZE * e :]
        if given[ACTS] == 0.0:
            continue
        pose = poses[links[sizes[LINKS] + e, 0]]
        body_wrench(given, pose, wrench)
        add_columns(response[6 * e : 6 * e + 6], wrench, faster)
        if sizes[FREE] == 1:
            add_to_base(wrench, pose, net)
    moving = state[1:]
    add_columns(update, moving, faster)
    for i in range(n):
        # Velocities that have died away are zero: numbers below 1e-308 take a hundred times as long.
        speed = faster[i] if abs(faster[i]) > 1e-200 else 0.0
        moving[n + i] = speed
        moving[i] += h * speed
    if sizes[FREE] == 1:
        move_base(constants[sizes[BASE] :], state[sizes[BASE_STATE] :], h, net, work[n + 12 :])
    state[0] += h


@_jit
def add_to_base(wrench, pose, net):
    """Add a wrench at the origin of a body to force and torque about the world's origin."""
    f = (
        pose[0, 0] * wrench[0] + pose[0, 1] * wrench[1] + pose[0, 2] * wrench[2],
        pose[1, 0] * wrench[0] + pose[1, 1] * wrench[1] + pose[1, 2] * wrench[2],
        pose[2, 0] * wrench[0] + pose[2, 1] * wrench[1] + pose[2, 2] * wrench[2],
    )
    x, y, z = pose[0, 3], pose[1, 3], pose[2, 3]
    for i in range(3):
        net[i] += f[i]
        net[3 + i] += pose[i, 0] * wrench[3] + pose[i, 1] * wrench[4] + pose[i, 2] * wrench[5]
    net[3] += y * f[2] - z * f[1]
    net[4] += z * f[0] - x * f[2]
    net[5] += x * f[1] - y * f[0]


@_jit
def base_spin(inverse, quaternion, momentum, turn, out):
    """Angular velocity (world) of the base with an angular momentum: R I^-1 R^T L. `turn` is work space, 9 numbers."""
    rotation = matrix(turn, 0, 3, 3)
    se3.quat_to_matrix(quaternion, rotation)
    x, y, z = momentum[0], momentum[1], momentum[2]
    a = rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z
    b = rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z
    c = rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z
    x = inverse[0] * a + inverse[1] * b + inverse[2] * c
    y = inverse[3] * a + inverse[4] * b + inverse[5] * c
    z = inverse[6] * a + inverse[7] * b + inverse[8] * c
    for i in range(3):
        out[i] = rotation[i, 0] * x + rotation[i, 1] * y + rotation[i, 2] * z


@_jit
def move_base(fixed, base, h, net, work):
    """The base as a free rigid body, TVCG section 6.1. Momentum is kept in world axes: gyroscopic terms need no force.

    Args:
        fixed: the constants of the base; base: its state.
        h: time step.
        net: force and torque about the world's origin.
        work: 20 numbers.
    """
    mass, gravity = fixed[0], fixed[29:32]
    spin, turn, half, middle = work[0:3], work[3:12], work[12:16], work[16:20]
    x, y, z = base[0], base[1], base[2]
    base[10] += h * (net[3] - (y * net[2] - z * net[1]))
    base[11] += h * (net[4] - (z * net[0] - x * net[2]))
    base[12] += h * (net[5] - (x * net[1] - y * net[0]))
    for i in range(3):
        base[7 + i] += h * (net[i] / mass + gravity[i])
        base[i] += h * base[7 + i]
    # Midpoint rule: the angular velocity turns with the body while the momentum stays.
    base_spin(fixed[4:13], base[3:7], base[10:13], turn, spin)
    for i in range(3):
        spin[i] *= 0.5 * h
    se3.quat_exp(spin, half)
    se3.quat_multiply(half, base[3:7], middle)
    base_spin(fixed[4:13], middle, base[10:13], turn, spin)
    for i in range(3):
        spin[i] *= h
    se3.quat_exp(spin, half)
    se3.quat_multiply(half, base[3:7], base[3:7])
    se3.quat_normalize(base[3:7])


@_jit
def place_carrier(sizes, constants, state, poses):
    """The world as a moving base carries it: pose of the base now, times the inverse of the one it started from."""
    if sizes[FREE] == 0:
        return
    out = poses[poses.shape[0] - 1]
    fixed, base = constants[sizes[BASE] :], state[sizes[BASE_STATE] :]
    se3.quat_to_matrix(base[3:7], out)
    for i in range(3):
        out[i, 3] = base[i] - (out[i, 0] * fixed[1] + out[i, 1] * fixed[2] + out[i, 2] * fixed[3])
    se3.compose(out, matrix(fixed, 13, 4, 4), out)


@_jit
def reconstruct(sizes, links, constants, state, poses, work):
    """Poses of all links from the coordinates."""
    place_carrier(sizes, constants, state, poses)
    if sizes[TWIST] == 1:
        by_twists(0, sizes[LINKS], sizes, links, constants, state, poses)
        return
    motion = work[: sizes[ROWS]]
    for i in range(sizes[ROWS]):
        motion[i] = 0.0
    basis = matrix(constants, sizes[BASIS], sizes[COORDINATES], sizes[ROWS])
    add_columns(basis, state[1:], motion)
    bound, most = constants[sizes[BOUND] :], 0.0
    for j in range(sizes[COORDINATES]):
        most += bound[j] * abs(state[1 + j])
    by_joints(most <= 1.0, sizes, links, constants, motion, work[sizes[ROWS] :], poses)


@_inline
def add_columns(columns, x, out):
    """`out += columns.T @ x`; four rows of `columns` at a time, since the loop waits for memory."""
    count, size = columns.shape
    for j in range(0, count - 3, 4):
        a, b, c, d = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(size):
            out[i] += (
                columns[j, i] * a + columns[j + 1, i] * b + columns[j + 2, i] * c + columns[j + 3, i] * d
            )
    for j in range(count - count % 4, count):
        a = x[j]
        for i in range(size):
            out[i] += columns[j, i] * a


@_jit
def by_twists(first, last, sizes, links, constants, state, poses):
    """Bodies from `first` up to `last`, each by itself: H exp(T y), TVCG Eq. 6."""
    n, count = sizes[COORDINATES], sizes[LINKS]
    reference = matrix(constants, sizes[LOCAL], 4 * count, 4)
    maps = matrix(constants, sizes[BASIS], 6 * count, n)
    for k in range(first, last):
        pose = poses[links[k, 0]]
        a = b = c = d = e = f = 0.0
        for j in range(n):
            y = state[1 + j]
            a += maps[6 * k, j] * y
            b += maps[6 * k + 1, j] * y
            c += maps[6 * k + 2, j] * y
            d += maps[6 * k + 3, j] * y
            e += maps[6 * k + 4, j] * y
            f += maps[6 * k + 5, j] * y
        twist = matrix(pose, 0, 1, 6)[0]  # six numbers are safe there until they become the pose
        twist[0], twist[1], twist[2], twist[3], twist[4], twist[5] = a, b, c, d, e, f
        se3.se3_exp(twist, pose)
        se3.compose(reference[4 * k : 4 * k + 4], pose, pose)
        if sizes[FREE] == 1:
            se3.compose(poses[links[k, 1]], pose, pose)


@_inline
def by_joints(small, sizes, links, constants, motion, work, poses):
    """Forward kinematics; `small`: no displacement is beyond 1.

    A hinge or slide moves its link by `B0 + s B1 + v B2`, s the sine and v the versine of its displacement (the
    displacement itself and zero for a slide).
    """
    count = sizes[LINKS]
    local = matrix(constants, sizes[LOCAL], count, 36)
    sine, versine = work[:count], work[count : 2 * count]
    _sines(small, motion[:count], constants[sizes[HINGE] :], sine, versine)
    if sizes[ROWS] == count:
        swing(0, count, links, local, sine, versine, poses)
    else:
        _past_balls(links, local, motion, sine, versine, work[2 * count :], poses)


@_jit
def _past_balls(links, local, motion, sine, versine, work, poses):
    """Runs of links on hinges and slides, and the balls between them."""
    first, count = 0, local.shape[0]
    while first < count:
        last = first
        while last < count and links[last, 2] == 0:
            last += 1
        swing(first, last, links, local, sine, versine, poses)
        if last < count:
            pose = poses[links[last, 0]]
            _ball(local[last], motion[links[last, 3] : links[last, 3] + 3], work, pose)
            se3.compose(poses[links[last, 1]], pose, pose)
        first = last + 1


@_inline
def _sines(small, motion, hinge, sine, versine):
    """Sines and versines of displacements, or displacements and zeros where `hinge` is 0; `small`: none beyond 1."""
    if small:
        for k in range(motion.shape[0]):
            x = motion[k]
            t = x * x
            s, v = _S[8], _V[8]
            s, v = s * t + _S[7], v * t + _V[7]
            s, v = s * t + _S[6], v * t + _V[6]
            s, v = s * t + _S[5], v * t + _V[5]
            s, v = s * t + _S[4], v * t + _V[4]
            s, v = s * t + _S[3], v * t + _V[3]
            s, v = s * t + _S[2], v * t + _V[2]
            s, v = s * t + _S[1], v * t + _V[1]
            sine[k] = x + hinge[k] * s * t * x
            versine[k] = hinge[k] * t * (v * t + _V[0])
    else:
        for k in range(motion.shape[0]):
            x = motion[k]
            half = sin(0.5 * x)
            sine[k] = x + hinge[k] * (2.0 * half * cos(0.5 * x) - x)
            versine[k] = hinge[k] * 2.0 * half * half


@_jit
def _ball(B, turn, work, pose):
    """Pose in its parent of a link on a ball: `B0 exp(S turn)`, S the three unit twists that follow B0."""
    twist, offset = work[:6], matrix(work, 6, 4, 4)
    for i in range(6):
        twist[i] = B[16 + i] * turn[0] + B[22 + i] * turn[1] + B[28 + i] * turn[2]
    for i in range(4):
        for j in range(4):
            offset[i, j] = B[4 * i + j]
    se3.se3_exp(twist, pose)
    se3.compose(offset, pose, pose)
