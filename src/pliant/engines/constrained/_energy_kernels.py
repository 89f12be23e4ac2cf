"""Energies and work, from the arrays of a step."""

from pliant.compilation import njit

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})


@_jit
def kinetic(constants, momentum):
    """Kinetic energy of the bodies."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, 12]
        if m > 0.0:
            total += (momentum[k, 0] ** 2 + momentum[k, 1] ** 2 + momentum[k, 2] ** 2) / m
        for j in range(3):
            i = constants[k, 25 + j]
            if i > 0.0:
                along = (
                    constants[k, 16 + j] * momentum[k, 3]
                    + constants[k, 19 + j] * momentum[k, 4]
                    + constants[k, 22 + j] * momentum[k, 5]
                )
                total += along * along / i
    return 0.5 * total


@_jit
def gained(constants, momentum, at_middle, work):
    """Half the kinetic energy a reflection has brought: `u_m . (p_after - p_m)`, u_m the midpoint's velocities."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, 12]
        x, y, z = momentum[k, 3], momentum[k, 4], momentum[k, 5]
        for i in range(3):
            after = work[k, 3 * i] * x + work[k, 3 * i + 1] * y + work[k, 3 * i + 2] * z
            total += work[k, 24 + i] * (after - at_middle[k, 3 + i])
            if m > 0.0:
                total += at_middle[k, i] * (momentum[k, i] - at_middle[k, i]) / m
    return total


@_jit
def potential(constants, gravity, work):
    """Potential energy of the bodies in gravity, where `forward` put them."""
    total = 0.0
    for k in range(constants.shape[0]):
        m, x, y, z = constants[k, 12], constants[k, 13], constants[k, 14], constants[k, 15]
        for i in range(3):
            at = work[k, 9 + i] + work[k, 3 * i] * x + work[k, 3 * i + 1] * y + work[k, 3 * i + 2] * z
            total -= m * gravity[i] * at
    return total


@_jit
def work_done(constants, gravity, impulse, at_middle, t, work):
    """Work of wrenches during `t`, from the impulses of that time."""
    total = 0.0
    for k in range(constants.shape[0]):
        m = constants[k, 12]
        for i in range(3):
            total += impulse[k, 3 + i] * work[k, 24 + i]
            if m > 0.0:
                total += (impulse[k, i] - t * m * gravity[i]) * at_middle[k, i] / m
    return total


@_jit
def work_of_loads(loads, first, constants, at_middle, t, work):
    """Work during `t` of forces at centres of mass and torques, in world axes: of loads from row `first` on."""
    total = 0.0
    for row in range(first, loads.shape[0]):
        k = int(loads[row, 0])
        m = constants[k, 12]
        for i in range(3):
            total += loads[row, 4 + i] * work[k, 24 + i]
            if m > 0.0:
                total += loads[row, 1 + i] * at_middle[k, i] / m
    return t * total
