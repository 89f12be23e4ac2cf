"""Steps of a reduced model and forward kinematics of all its links, on five flat arrays.

`arrays` lays them out. Each array costs 0.1 µs per call from Python, so there are few, and single steps get them by
address.

    sizes      int64    counts, flags and offsets, see the constants below
    links      int64    (links + end effectors, LINK_SIZE), see `_intrinsics`; of end effectors the place only
    constants  float64  time step, matrices of the step, then data of forward kinematics
    state      float64  time, coordinates y, rates, base, loads, work space
    poses      float64  (places, 4, 4): bodies, inner links of joints, the world, the displacement of a floating base
"""

from math import cos, factorial, inf, sin

from pliant.compilation import njit
from pliant.engines.reduced._intrinsics import (
    BALL,
    BALL_TWISTS,
    LOCAL_SIZE,
    MOTION,
    PARENT,
    PLACE,
    POSE_ROW,
    five_arrays,
    matrix,
    swing,
)
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import ACTS, LOAD_SIZE, body_wrench

# Functions that a step calls once are inlined: passing arrays takes longer than a short loop.
_inline = njit(error_model="numpy", nogil=True, inline="always")
# Sums may be reordered, so that they are vectorised; infinities and NaN keep their meaning in comparisons, but not in
# `math.isfinite(x)`: numba tests whether x - x is NaN, which reordering may fold to zero.
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

# Entries of `sizes`: number of coordinates, end effectors, links and rows of joint motion; whether the base floats, and
# whether bodies are placed by twists; then where arrays start in `constants`, and in `state`.
COORDINATES, EFFECTORS, LINKS, ROWS, FREE, TWIST = range(6)
UPDATE, RESPONSE, STEADY, BASIS, BOUND, LOCAL, HINGE, BASE = range(6, 14)
BASE_STATE, WRENCH, WORK, SIZES = range(14, 18)
TIMESTEP, HEADER = 0, 8  # of `constants`: the time step, and where its first array starts
TIME, Y = 0, 1  # of `state`: time, and where the coordinates y start; their rates follow
# Floating base in `state`: centre of mass and quaternion, velocity of the centre, angular momentum about it; world.
CENTRE, QUATERNION, VELOCITY, MOMENTUM, BASE_SIZE = 0, 3, 7, 10, 13
# Floating base in `constants`: mass, centre of mass and inverse inertia about it (base frame), inverse of the reference
# pose, gravity.
BASE_MASS, BASE_CENTRE, INVERSE_INERTIA, INVERSE_POSE, GRAVITY, BASE_CONSTANTS = 0, 1, 4, 13, 29, 32
# Sizes of work space: two wrenches; spin, rotation and two quaternions of `move_base`; twist and pose of `_ball`.
WRENCH_WORK, BASE_WORK, BALL_WORK = 12, 20, 22

# Joint displacement, rad or m, beyond which a step fails: no spring bends a joint by a hundred million turns.
LARGEST = 1e9

# Taylor series of sin x / x and (1 - cos x) / x² in x², exact to rounding for |x| <= 1.
_S = tuple((-1) ** n / factorial(2 * n + 1) for n in range(9))
_V = tuple((-1) ** n / factorial(2 * n + 2) for n in range(9))


@_jit
def advance(count, ends, sizes, links, constants, state, poses):
    """Take up to `count` steps, poses included. Returns the number of steps after which the state was still finite.

    With `ends`, for reconstruction by twists, only end effectors get poses: the next step needs no others.
    """
    moving = sizes[WRENCH]  # time, y, rates and base come before the loads
    work = state[sizes[WORK] :]
    for done in range(count):
        for i in range(moving):
            work[i] = state[i]
        _step(sizes, links, constants, state, poses, work[moving:])
        total = 0.0
        for i in range(moving):
            total += abs(state[i])
        if not total < inf or not _displacement_bound(sizes, constants, state) <= LARGEST:
            for i in range(moving):
                state[i] = work[i]
            return done
        if ends:
            base_displacement(sizes, constants, state, poses)
            for e in range(sizes[EFFECTORS]):
                body = links[sizes[LINKS] + e, PLACE]
                by_twists(body, body + 1, sizes, links, constants, state, poses)
        else:
            reconstruct(sizes, links, constants, state, poses, work[moving:])
    return count


@njit(counts_references=True, error_model="numpy", nogil=True)
def advance_at(count, ends, at):
    """`advance` on the arrays of `five_arrays`."""
    sizes, links, constants, state, poses = five_arrays(at)
    return advance(count, ends, sizes, links, constants, state, poses)


@_jit
def advance_batch(count, sizes, links, constants, states, poses):
    """Take `count` steps of every copy. Returns the copy that took the fewest, and their number."""
    worst, least = -1, count
    for copy in range(states.shape[0]):
        done = advance(count, False, sizes, links, constants, states[copy], poses[copy])
        if done < least:
            worst, least = copy, done
    return worst, least


@_jit
def reconstruct_batch(sizes, links, constants, states, poses):
    """Poses of all links of every copy, from its state."""
    for copy in range(states.shape[0]):
        work = states[copy, sizes[WORK] + sizes[WRENCH] :]
        reconstruct(sizes, links, constants, states[copy], poses[copy], work)


@_inline
def _step(sizes, links, constants, state, poses, work):
    """Backward Euler, TVCG Eq. 23 with corrected signs: (M + hD + h²K) v' = M v + h (w - b - K y)."""
    n, effectors = sizes[COORDINATES], sizes[EFFECTORS]
    h = constants[TIMESTEP]
    update = matrix(constants, sizes[UPDATE], 2 * n, n)
    response = matrix(constants, sizes[RESPONSE], 6 * effectors, n)
    steady = constants[sizes[STEADY] :]
    rates, wrench, net = work[:n], work[n : n + 6], work[n + 6 : n + WRENCH_WORK]
    for i in range(n):
        rates[i] = steady[i]
    for i in range(6):
        net[i] = 0.0
    for e in range(effectors):
        given = state[sizes[WRENCH] + LOAD_SIZE * e :]
        if given[ACTS] == 0.0:
            continue
        pose = poses[links[sizes[LINKS] + e, PLACE]]
        body_wrench(given, pose, wrench)
        add_columns(response[6 * e : 6 * e + 6], wrench, rates)
        if sizes[FREE] == 1:
            add_to_base(wrench, pose, net)
    motion = state[Y:]
    add_columns(update, motion, rates)
    for i in range(n):
        # Flush tiny rates to zero: arithmetic on subnormal numbers is a hundred times slower.
        rate = rates[i] if abs(rates[i]) > 1e-200 else 0.0
        motion[n + i] = rate
        motion[i] += h * rate
    if sizes[FREE] == 1:
        move_base(constants[sizes[BASE] :], state[sizes[BASE_STATE] :], h, net, work[n + WRENCH_WORK :])
    state[TIME] += h


@_jit
def add_to_base(wrench, pose, net):
    """Add a wrench at the origin of a body, body axes, to force and torque about the world's origin, world axes."""
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
    """Angular velocity R I^-1 R^T L of the base, world axes, from its angular momentum; `turn` is work space."""
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
    """Step of the base as a free rigid body, TVCG section 6.1; momentum in world axes needs no gyroscopic term.

    Args:
        fixed: constants of the base.
        base: state of the base.
        h: time step.
        net: force and torque about the world's origin.
        work: BASE_WORK numbers.
    """
    mass, gravity = fixed[BASE_MASS], fixed[GRAVITY:BASE_CONSTANTS]
    inverse, quaternion = fixed[INVERSE_INERTIA:INVERSE_POSE], base[QUATERNION:VELOCITY]
    centre, velocity, momentum = base[CENTRE:QUATERNION], base[VELOCITY:MOMENTUM], base[MOMENTUM:BASE_SIZE]
    spin, turn, half, middle = work[0:3], work[3:12], work[12:16], work[16:BASE_WORK]
    x, y, z = centre[0], centre[1], centre[2]
    momentum[0] += h * (net[3] - (y * net[2] - z * net[1]))
    momentum[1] += h * (net[4] - (z * net[0] - x * net[2]))
    momentum[2] += h * (net[5] - (x * net[1] - y * net[0]))
    for i in range(3):
        velocity[i] += h * (net[i] / mass + gravity[i])
        centre[i] += h * velocity[i]
    # Midpoint rule: the angular velocity is that of the orientation after half a step, with the momentum held.
    base_spin(inverse, quaternion, momentum, turn, spin)
    for i in range(3):
        spin[i] *= 0.5 * h
    se3.quat_exp(spin, half)
    se3.quat_multiply(half, quaternion, middle)
    base_spin(inverse, middle, momentum, turn, spin)
    for i in range(3):
        spin[i] *= h
    se3.quat_exp(spin, half)
    se3.quat_multiply(half, quaternion, quaternion)
    se3.quat_normalize(quaternion)


@_jit
def base_displacement(sizes, constants, state, poses):
    """Displacement of a floating base: its pose times the inverse of its reference pose, to the last of `poses`."""
    if sizes[FREE] == 0:
        return
    out = poses[poses.shape[0] - 1]
    fixed, base = constants[sizes[BASE] :], state[sizes[BASE_STATE] :]
    se3.quat_to_matrix(base[QUATERNION:VELOCITY], out)
    x, y, z = fixed[BASE_CENTRE], fixed[BASE_CENTRE + 1], fixed[BASE_CENTRE + 2]
    for i in range(3):
        out[i, 3] = base[CENTRE + i] - (out[i, 0] * x + out[i, 1] * y + out[i, 2] * z)
    se3.compose(out, matrix(fixed, INVERSE_POSE, 4, 4), out)


@_jit
def reconstruct(sizes, links, constants, state, poses, work):
    """Poses of all links from the coordinates."""
    base_displacement(sizes, constants, state, poses)
    if sizes[TWIST] == 1:
        by_twists(0, sizes[LINKS], sizes, links, constants, state, poses)
        return
    motion = work[: sizes[ROWS]]
    for i in range(sizes[ROWS]):
        motion[i] = 0.0
    basis = matrix(constants, sizes[BASIS], sizes[COORDINATES], sizes[ROWS])
    add_columns(basis, state[Y:], motion)
    by_joints(
        _displacement_bound(sizes, constants, state) <= 1.0,
        sizes,
        links,
        constants,
        motion,
        work[sizes[ROWS] :],
        poses,
    )


@_inline
def _displacement_bound(sizes, constants, state):
    """Upper bound of all joint displacements, rad or m; of twists, where bodies are placed by these."""
    bound, most = constants[sizes[BOUND] :], 0.0
    for j in range(sizes[COORDINATES]):
        most += bound[j] * abs(state[Y + j])
    return most


@_inline
def add_columns(columns, x, out):
    """`out += columns.T @ x`, four rows of `columns` at a time: fewer passes over `out`."""
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
    """Poses of bodies `first` to `last` (excluded), each from its own twist: H exp(T y), TVCG Eq. 6."""
    n, count = sizes[COORDINATES], sizes[LINKS]
    reference = matrix(constants, sizes[LOCAL], 4 * count, 4)
    maps = matrix(constants, sizes[BASIS], 6 * count, n)
    for k in range(first, last):
        pose = poses[links[k, PLACE]]
        a = b = c = d = e = f = 0.0
        for j in range(n):
            y = state[Y + j]
            a += maps[6 * k, j] * y
            b += maps[6 * k + 1, j] * y
            c += maps[6 * k + 2, j] * y
            d += maps[6 * k + 3, j] * y
            e += maps[6 * k + 4, j] * y
            f += maps[6 * k + 5, j] * y
        twist = matrix(pose, 0, 1, 6)[0]  # room for six numbers in the pose that they become
        twist[0], twist[1], twist[2], twist[3], twist[4], twist[5] = a, b, c, d, e, f
        se3.se3_exp(twist, pose)
        se3.compose(reference[4 * k : 4 * k + 4], pose, pose)
        if sizes[FREE] == 1:
            se3.compose(poses[links[k, PARENT]], pose, pose)


@_inline
def by_joints(small, sizes, links, constants, motion, work, poses):
    """Poses of all links by forward kinematics; `small`: no displacement is beyond 1.

    The pose of a link on a hinge in its parent is `B0 + s B1 + v B2`, s the sine and v the versine of the displacement;
    on a slide s is the displacement itself, and v zero.
    """
    count = sizes[LINKS]
    local = matrix(constants, sizes[LOCAL], count, LOCAL_SIZE)
    sine, versine = work[:count], work[count : 2 * count]
    _sines(small, motion[:count], constants[sizes[HINGE] :], sine, versine)
    if sizes[ROWS] == count:
        swing(0, count, links, local, sine, versine, poses)
    else:
        _with_balls(links, local, motion, sine, versine, work[2 * count :], poses)


@_jit
def _with_balls(links, local, motion, sine, versine, work, poses):
    """Forward kinematics of links on hinges and slides, run by run, and of the balls between these runs."""
    first, count = 0, local.shape[0]
    while first < count:
        last = first
        while last < count and links[last, BALL] == 0:
            last += 1
        swing(first, last, links, local, sine, versine, poses)
        if last < count:
            pose = poses[links[last, PLACE]]
            _ball(local[last], motion[links[last, MOTION] : links[last, MOTION] + 3], work, pose)
            se3.compose(poses[links[last, PARENT]], pose, pose)
        first = last + 1


@_inline
def _sines(small, motion, hinge, sine, versine):
    """Sines and versines of displacements if `hinge` is 1, displacements and zeros if 0; see `by_joints`."""
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
            sine[k] = 2.0 * half * cos(0.5 * x) if hinge[k] == 1.0 else x
            versine[k] = hinge[k] * 2.0 * half * half


@_jit
def _ball(B, turn, work, pose):
    """Pose of a link on a ball in its parent: `B0 exp(S turn)`; the unit twists S of the dofs follow B0."""
    twist, offset, S = work[:6], matrix(work, 6, 4, 4), matrix(B, BALL_TWISTS, 3, 6)
    for i in range(6):
        twist[i] = S[0, i] * turn[0] + S[1, i] * turn[1] + S[2, i] * turn[2]
    for i in range(4):
        for j in range(4):
            offset[i, j] = B[POSE_ROW * i + j]
    se3.se3_exp(twist, pose)
    se3.compose(offset, pose, pose)
