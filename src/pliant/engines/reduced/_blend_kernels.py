"""One step of a blended model and the poses of all its links; arrays as in `_kernels`, with the models' side by side.

Coordinates are static wrenches in body axes, torques divided by the unit of length, so that all are forces.
"""

from math import isfinite, sqrt

from numba import njit

from pliant.engines.reduced._intrinsics import matrix
from pliant.engines.reduced._kernels import (
    BASE,
    BASE_STATE,
    COORDINATES,
    EFFECTORS,
    FREE,
    LINKS,
    ROWS,
    SIZES,
    WORK,
    WRENCH,
    WRENCH_SIZE,
    add_columns,
    add_to_base,
    body_wrench,
    by_joints,
    move_base,
    place_carrier,
)

_inline = njit(error_model="numpy", nogil=True, inline="always")
_jit = njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

# Further places in `sizes`: number of models, then where their arrays start in `constants`.
MODELS, SAMPLES, METRICS, COMPLIANCE, MASS, DAMPING, SHIFTS, MAPS, BLEND_SIZES = range(SIZES, SIZES + 9)
# First numbers of `constants`.
TIMESTEP, EXPONENT, RIGID, LENGTH = range(4)


@_jit
def advance(count, ends, sizes, links, constants, state, poses):
    """Take `count` steps, poses included; as `_kernels.advance`, and `ends` is not asked for."""
    moving = sizes[WRENCH]
    work = state[sizes[WORK] :]
    for i in range(moving):
        work[i] = state[i]
    for _ in range(count):
        step(sizes, links, constants, state, poses, work[moving:])
        total = 0.0
        for i in range(moving):
            total += abs(state[i])
        if not isfinite(total):
            for i in range(moving):
                state[i] = work[i]
            return 1
        reconstruct(sizes, links, constants, state, poses, work[moving:])
    return 0


@_jit
def weigh(sizes, constants, u, weight, work):
    """Shepard weights, TVCG Eq. 25: distances to a power, the nearest model's first made 1."""
    n, models = sizes[COORDINATES], sizes[MODELS]
    samples = matrix(constants, sizes[SAMPLES], models, n)
    metrics = matrix(constants, sizes[METRICS], models * n, n)
    apart = work[:n]
    nearest = 1e300
    for k in range(models):
        total = 0.0
        for i in range(n):
            apart[i] = 0.0
        for j in range(n):
            x = u[j] - samples[k, j]
            for i in range(n):
                apart[i] += metrics[k * n + j, i] * x
        for e in range(sizes[EFFECTORS]):
            square = 0.0
            for i in range(6 * e, 6 * e + 6):
                square += apart[i] * apart[i]
            total += sqrt(square)
        weight[k] = total
        nearest = min(nearest, total)
    total = 0.0
    for k in range(models):
        weight[k] = (nearest / weight[k]) ** constants[EXPONENT] if weight[k] > nearest else 1.0
        total += weight[k]
    for k in range(models):
        weight[k] /= total


@_jit
def mix(models, weight, stack, out):
    """`out += sum(weight_k stack_k)`, flat."""
    size = out.shape[0]
    for i in range(size):
        out[i] = 0.0
    for k in range(models):
        a, one = weight[k], stack[k * size : (k + 1) * size]
        for i in range(size):
            out[i] += a * one[i]


@_jit
def eliminate(A, x):
    """Solve A x = b in place, by Gaussian elimination with row pivots; A is overwritten, x holds b."""
    n = x.shape[0]
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(k, n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            x[k], x[pivot] = x[pivot], x[k]
        inverse = 1.0 / A[k, k]
        for i in range(k + 1, n):
            factor = A[i, k] * inverse
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                x[i] -= factor * x[k]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, n):
            total -= A[k, j] * x[j]
        x[k] = total / A[k, k]


@_jit
def step(sizes, links, constants, state, poses, work):
    """Backward Euler: (C'MC + h C'DC + h² C') v' = C'MC v + h C' (w - u), matrices blended where the step starts.

    Where nothing gives way C is zero; a little of the identity beside it lets the static wrench follow the applied one.
    """
    n, models = sizes[COORDINATES], sizes[MODELS]
    h, length = constants[TIMESTEP], constants[LENGTH]
    square = n * n
    u, v = state[1 : 1 + n], state[1 + n : 1 + 2 * n]
    weight, applied, wrench, net = work[:models], work[models : models + n], work[:6], work[:6]
    at = models + n
    wrench, net = work[at : at + 6], work[at + 6 : at + 12]
    at += 12
    C, M, D = (
        work[at : at + square],
        work[at + square : at + 2 * square],
        work[at + 2 * square : at + 3 * square],
    )
    rest = work[at + 3 * square :]
    weigh(sizes, constants, u, weight, rest)
    mix(models, weight, constants[sizes[COMPLIANCE] :], C)
    mix(models, weight, constants[sizes[MASS] :], M)
    mix(models, weight, constants[sizes[DAMPING] :], D)
    for i in range(n):
        applied[i] = 0.0
        C[i * n + i] += constants[RIGID]
    for i in range(6):
        net[i] = 0.0
    for e in range(sizes[EFFECTORS]):
        given = state[sizes[WRENCH] + WRENCH_SIZE * e :]
        if given[15] == 0.0:
            continue
        pose = poses[links[sizes[LINKS] + e, 0]]
        body_wrench(given, pose, wrench)
        for i in range(3):
            applied[6 * e + i] = wrench[i]
            applied[6 * e + 3 + i] = wrench[3 + i] / length
        if sizes[FREE] == 1:
            add_to_base(wrench, pose, net)
    faster = rest[:n]
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += M[i * n + j] * v[j] + h * C[j * n + i] * (applied[j] - u[j])
        faster[i] = total
    for i in range(n):
        for j in range(n):
            D[i * n + j] = M[i * n + j] + h * (D[i * n + j] + h * C[j * n + i])
    eliminate(matrix(D, 0, n, n), faster)
    for i in range(n):
        speed = faster[i] if abs(faster[i]) > 1e-200 else 0.0
        v[i] = speed
        u[i] += h * speed
    if sizes[FREE] == 1:
        move_base(constants[sizes[BASE] :], state[sizes[BASE_STATE] :], h, net, rest[n:])
    state[0] += h


@_jit
def reconstruct(sizes, links, constants, state, poses, work):
    """Poses of all links: joint displacements are the weighted mean of what the models predict."""
    n, models, rows = sizes[COORDINATES], sizes[MODELS], sizes[ROWS]
    place_carrier(sizes, constants, state, poses)
    u = state[1 : 1 + n]
    motion, weight = work[:rows], work[rows : rows + models]
    scaled = work[rows + models : rows + models + models * n]
    rest = work[rows + models + models * n :]
    weigh(sizes, constants, u, weight, rest)
    samples = matrix(constants, sizes[SAMPLES], models, n)
    for k in range(models):
        for j in range(n):
            scaled[k * n + j] = weight[k] * (u[j] - samples[k, j])
    for i in range(rows):
        motion[i] = 0.0
    add_columns(matrix(constants, sizes[SHIFTS], models, rows), weight, motion)
    add_columns(matrix(constants, sizes[MAPS], models * n, rows), scaled, motion)
    most = 0.0
    for i in range(rows):
        most = max(most, abs(motion[i]))
    by_joints(most <= 1.0, sizes, links, constants, motion, rest, poses)
