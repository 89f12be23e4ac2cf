"""Iterations that help each other: Anderson mixing."""

from pliant.compilation import njit
from pliant.engines.constrained import _border_kernels as border
from pliant.engines.constrained import _kernels as kernels

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def mix(iteration, dofs, u, du, history, gram):
    """u += du, after the third time with Anderson's combination of the last few.

    What the symmetric matrix leaves out, gyroscopic terms and torques across hinges, makes iterations contract slowly
    or turn round; a few of them together show how.
    """
    nv, depth = u.shape[0], gram.shape[1]
    # history: changes of u, changes of du, then the last u and the last du
    now = (iteration - 1) % depth
    if iteration > 0:
        for d in range(nv):
            history[now, d] = u[d] - history[2 * depth, d]
            history[depth + now, d] = du[d] - history[2 * depth + 1, d]
    for d in range(nv):
        history[2 * depth, d] = u[d]
        history[2 * depth + 1, d] = du[d]
    count = min(iteration, depth) if iteration > 1 else 0
    for i in range(count):
        for j in range(i + 1):
            total = 0.0
            for d in range(nv):
                total += dofs[d, kernels.UNIT] ** 2 * history[depth + i, d] * history[depth + j, d]
            gram[i, j] = total
        total = 0.0
        for d in range(nv):
            total += dofs[d, kernels.UNIT] ** 2 * history[depth + i, d] * du[d]
        gram[depth, i] = total
    # Differences that repeat others share their weight: so no pivot is below 1e-10 of its row, far above rounding.
    for i in range(count):
        gram[i, i] *= 1.0 + 1e-10
    if count:
        border.cholesky(gram[:count, :count])
        border.substitute(gram[:count, :count], gram[depth, :count])
    for d in range(nv):
        total = du[d]
        for i in range(count):
            total -= gram[depth, i] * (history[i, d] + history[depth + i, d])
        u[d] += total
