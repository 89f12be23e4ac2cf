"""Steps of a blended model and the poses of all its links; arrays as in `kernels`, those of all models side by side.

Coordinates are static wrenches in body axes, torques divided by the unit of length, so that all are forces.
"""

from math import inf, sqrt

from pliant.compilation import njit
from pliant.engines.reduced._intrinsics import PARENT, PLACE, POSE_SIZE, five_arrays, matrix
from pliant.engines.reduced.kernels import (
    BASE,
    BASE_STATE,
    COORDINATES,
    EFFECTORS,
    FREE,
    LARGEST,
    LINKS,
    ROWS,
    SIZES,
    TIME,
    TIMESTEP,
    TWIST,
    WORK,
    WRENCH,
    WRENCH_WORK,
    Y,
    add_columns,
    add_to_base,
    base_displacement,
    by_joints,
    move_base,
)
from pliant.spatial import kernels as se3
from pliant.statics.load_kernels import ACTS, LOAD_SIZE, body_wrench

_inline = njit(error_model="numpy", nogil=True, inline="always")
_jit = njit(error_model="numpy", nogil=True, fastmath={"contract", "reassoc", "nsz", "arcp"})

# Further entries of `sizes`: number of models, whether spectra are mixed; where arrays start in `constants`.
MODELS, EIGEN, SAMPLES, METRICS, COMPLIANCE, MASS, DAMPING, SHIFTS, MAPS = range(SIZES, SIZES + 9)
BLEND_SIZES = SIZES + 9
# Further first numbers of `constants`: exponent of the weights, least compliance, unit of length.
EXPONENT, RIGID, LENGTH = range(TIMESTEP + 1, TIMESTEP + 4)
MEAN_WORK = 12 + POSE_SIZE  # work space of `by_twists` besides a pose per model: two twists and a pose


@_jit
def advance(count, ends, sizes, links, constants, state, poses):
    """Take up to `count` steps, poses included, as `kernels.advance`; `ends` is ignored."""
    moving = sizes[WRENCH]
    work = state[sizes[WORK] :]
    for done in range(count):
        for i in range(moving):
            work[i] = state[i]
        step(sizes, links, constants, state, poses, work[moving:])
        total = 0.0
        for i in range(moving):
            total += abs(state[i])
        if not total < inf:
            for i in range(moving):
                state[i] = work[i]
            return done
        if not reconstruct(sizes, links, constants, state, poses, work[moving:]):
            for i in range(moving):
                state[i] = work[i]
            reconstruct(sizes, links, constants, state, poses, work[moving:])
            return done
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
def power(x, exponent):
    """`x ** exponent`; by multiplication, ten times as fast, if the exponent is a whole number up to 16."""
    whole = int(exponent)
    if whole != exponent or whole > 16:
        return x**exponent
    out = 1.0
    for _ in range(whole):
        out *= x
    return out


@_inline
def weigh(sizes, constants, u, weight, work):
    """Shepard weights, TVCG Eq. 25, from distances relative to the nearest model's: neither overflow nor 0/0."""
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
        weight[k] = power(nearest / weight[k], constants[EXPONENT]) if weight[k] > nearest else 1.0
        total += weight[k]
    for k in range(models):
        weight[k] /= total


@_inline
def mix(models, weight, stack, out):
    """Weighted sum of flat matrices: `out = sum(weight_k stack_k)`."""
    size = out.shape[0]
    for i in range(size):
        out[i] = 0.0
    for k in range(models):
        a, one = weight[k], stack[k * size : (k + 1) * size]
        for i in range(size):
            out[i] += a * one[i]


@_jit
def mix_spectra(models, n, weight, stack, row, out):
    """Weighted means of eigenvectors and eigenvalues, TVCG Algorithm 3: `out = sum(value vector vector^T)`, flat."""
    square = n * n
    for i in range(square):
        out[i] = 0.0
    for j in range(n):
        value, size = 0.0, 0.0
        for i in range(n):
            row[i] = 0.0
        for k in range(models):
            value += weight[k] * stack[models * square + k * n + j]
            for i in range(n):
                row[i] += weight[k] * stack[k * square + j * n + i]
        for i in range(n):
            size += row[i] * row[i]
        for i in range(n):
            for c in range(n):
                out[i * n + c] += value / size * row[i] * row[c]


@_inline
def eliminate_transposed(A, x):
    """Solve A^T x = b in place, by elimination without pivots; A is overwritten, x holds b.

    A is the sum of symmetric positive matrices and a compliance, which is nearly symmetric: its pivots are positive.
    Elimination by columns of A^T, the rows of A, so that all inner loops run along memory.
    """
    n = x.shape[0]
    for k in range(n):
        inverse = 1.0 / A[k, k]
        for i in range(k + 1, n):
            A[k, i] *= inverse  # multipliers, one per row of A^T below the pivot
        for j in range(k + 1, n):
            head = A[j, k]
            for i in range(k + 1, n):
                A[j, i] -= head * A[k, i]
        head = x[k]
        for i in range(k + 1, n):
            x[i] -= head * A[k, i]
    for k in range(n - 1, -1, -1):
        x[k] /= A[k, k]
        tail = x[k]
        for i in range(k):
            x[i] -= tail * A[k, i]


@_inline
def step(sizes, links, constants, state, poses, work):
    """Backward Euler: (C'MC + h C'DC + h² C') v' = C'MC v + h C' (w - u), matrices blended where the step starts.

    The last reconstruction left the weights at the start of the work space. In directions that do not give way C is
    zero: RIGID times the identity is added, so that there the static wrench follows the applied one.
    """
    n, models = sizes[COORDINATES], sizes[MODELS]
    h, length = constants[TIMESTEP], constants[LENGTH]
    square = n * n
    u, v = state[Y : Y + n], state[Y + n : Y + 2 * n]
    weight, applied = work[:models], work[models : models + n]
    at = models + n
    wrench, net = work[at : at + 6], work[at + 6 : at + WRENCH_WORK]
    at += WRENCH_WORK
    C, M, D = (
        work[at : at + square],
        work[at + square : at + 2 * square],
        work[at + 2 * square : at + 3 * square],
    )
    rest = work[at + 3 * square :]
    if sizes[EIGEN] == 1:
        mix_spectra(models, n, weight, constants[sizes[COMPLIANCE] :], rest, C)
        mix_spectra(models, n, weight, constants[sizes[MASS] :], rest, M)
        mix_spectra(models, n, weight, constants[sizes[DAMPING] :], rest, D)
    else:
        mix(models, weight, constants[sizes[COMPLIANCE] :], C)
        mix(models, weight, constants[sizes[MASS] :], M)
        mix(models, weight, constants[sizes[DAMPING] :], D)
    for i in range(n):
        applied[i] = 0.0
        C[i * n + i] += constants[RIGID]
    for i in range(6):
        net[i] = 0.0
    for e in range(sizes[EFFECTORS]):
        given = state[sizes[WRENCH] + LOAD_SIZE * e :]
        if given[ACTS] == 0.0:
            continue
        pose = poses[links[sizes[LINKS] + e, PLACE]]
        body_wrench(given, pose, wrench)
        for i in range(3):
            applied[6 * e + i] = wrench[i]
            applied[6 * e + 3 + i] = wrench[3 + i] / length
        if sizes[FREE] == 1:
            add_to_base(wrench, pose, net)
    # The equation has C^T, and M and D are symmetric: built by rows of C, the matrix is A^T.
    rates = rest[:n]
    for i in range(n):
        rates[i] = 0.0
    for j in range(n):
        rate, impulse = v[j], h * (applied[j] - u[j])
        for i in range(n):
            rates[i] += M[j * n + i] * rate + C[j * n + i] * impulse
    A = matrix(D, 0, n, n)
    for j in range(n):
        for i in range(n):
            A[j, i] = M[j * n + i] + h * (A[j, i] + h * C[j * n + i])
    eliminate_transposed(A, rates)
    for i in range(n):
        rate = rates[i] if abs(rates[i]) > 1e-200 else 0.0
        v[i] = rate
        u[i] += h * rate
    if sizes[FREE] == 1:
        move_base(constants[sizes[BASE] :], state[sizes[BASE_STATE] :], h, net, rest[n:])
    state[TIME] += h


@_jit
def by_twists(sizes, links, constants, u, weight, work, poses):
    """Pose of every body: weighted Karcher mean over the models of H exp(T (u - b)), TVCG Eq. 28.

    Two iterations from the pose of the model with the largest weight make the result independent of that choice.
    Returns a bound of all twists.
    """
    largest = 0.0
    n, models, count = sizes[COORDINATES], sizes[MODELS], sizes[LINKS]
    samples = matrix(constants, sizes[SAMPLES], models, n)
    maps = matrix(constants, sizes[MAPS], models * count * 6, n)
    reference = matrix(constants, sizes[SHIFTS], models * count * 4, 4)
    each, at = matrix(work, 0, 4 * models, 4), POSE_SIZE * models
    twist, mean, step = work[at:], work[at + 6 :], matrix(work, at + 12, 4, 4)
    nearest = 0
    for m in range(models):
        if weight[m] > weight[nearest]:
            nearest = m
    for k in range(count):
        for m in range(models):
            for i in range(6):
                total = 0.0
                for j in range(n):
                    total += maps[(m * count + k) * 6 + i, j] * (u[j] - samples[m, j])
                twist[i] = total
                largest += abs(total)
            one = each[4 * m : 4 * m + 4]
            se3.se3_exp(twist, one)
            row = 4 * (m * count + k)
            se3.compose(reference[row : row + 4], one, one)
        pose = poses[links[k, PLACE]]
        for i in range(4):
            for j in range(4):
                pose[i, j] = each[4 * nearest + i, j]
        for _ in range(2):
            for i in range(6):
                mean[i] = 0.0
            for m in range(models):
                if weight[m] > 1e-12:
                    se3.se3_inverse(pose, step)
                    se3.compose(step, each[4 * m : 4 * m + 4], step)
                    se3.se3_log(step, twist)
                    for i in range(6):
                        mean[i] += weight[m] * twist[i]
            se3.se3_exp(mean, step)
            se3.compose(pose, step, pose)
        if sizes[FREE] == 1:
            se3.compose(poses[links[k, PARENT]], pose, pose)
    return largest


@_jit
def reconstruct(sizes, links, constants, state, poses, work):
    """Poses of all links, from the weighted mean of the models' joint displacements. False: some are beyond LARGEST."""
    n, models, rows = sizes[COORDINATES], sizes[MODELS], sizes[ROWS]
    base_displacement(sizes, constants, state, poses)
    u = state[Y : Y + n]
    weight, motion = work[:models], work[models : models + rows]
    scaled = work[rows + models : rows + models + models * n]
    rest = work[rows + models + models * n :]
    weigh(sizes, constants, u, weight, rest)
    if sizes[TWIST] == 1:
        return by_twists(sizes, links, constants, u, weight, rest, poses) <= LARGEST
    for i in range(rows):
        motion[i] = 0.0
    samples = matrix(constants, sizes[SAMPLES], models, n)
    for k in range(models):
        for j in range(n):
            scaled[k * n + j] = weight[k] * (u[j] - samples[k, j])
    add_columns(matrix(constants, sizes[SHIFTS], models, rows), weight, motion)
    add_columns(matrix(constants, sizes[MAPS], models * n, rows), scaled, motion)
    # A sum of eighth powers below 1 bounds all displacements by 1; unlike a maximum it is vectorised.
    powers = 0.0
    for i in range(rows):
        square = motion[i] * motion[i]
        square *= square
        powers += square * square
    by_joints(powers <= 1.0, sizes, links, constants, motion, rest, poses)
    return powers <= LARGEST**8
