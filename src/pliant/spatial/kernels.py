"""The functions of `pliant.spatial` on single small arrays, for use inside numba code.

Results go to the last argument, which must have the right shape; nothing is allocated. Inputs are read into
locals before outputs are written: the output may then be one of the inputs, and the compiler need not reload
what a store might have changed (a factor 2.6 in `compose`). Indices are constant, since possibly negative
ones cost a test each.
"""

from math import atan2, cos, factorial, sin, sqrt

from pliant.compilation import njit

_jit = njit(error_model="numpy")

# Taylor coefficients in y = (θ/2)² of cos h and g = (sin h / h - cos h) / y, h = θ/2; see _trig.py. Up to
# half a turn, y <= (π/2)², they hold to rounding, need no case for zero, and are no slower than libm.
_C = tuple((-1) ** n / factorial(2 * n) for n in range(12))
_G = tuple((-1) ** n * (2 * n + 2) / factorial(2 * n + 3) for n in range(12))
_SERIES_BELOW = 2.4675


@_jit
def half_angle(theta2):
    """``c = cos h``, ``s = sin h / h`` and ``g = (s - c) / h²``, ``h = θ/2``, from ``θ²``."""
    y = 0.25 * theta2
    if y < _SERIES_BELOW:
        # Even and odd powers apart: two short dependency chains instead of a long one.
        z = y * y
        c = ((((_C[10] * z + _C[8]) * z + _C[6]) * z + _C[4]) * z + _C[2]) * z + _C[0]
        c += y * (((((_C[11] * z + _C[9]) * z + _C[7]) * z + _C[5]) * z + _C[3]) * z + _C[1])
        g = ((((_G[10] * z + _G[8]) * z + _G[6]) * z + _G[4]) * z + _G[2]) * z + _G[0]
        g += y * (((((_G[11] * z + _G[9]) * z + _G[7]) * z + _G[5]) * z + _G[3]) * z + _G[1])
        return c, c + y * g, g
    h = sqrt(y)
    c = cos(h)
    s = sin(h) / h
    return c, s, (s - c) / y


@_jit
def _hat_polynomial(x, y, z, linear, quadratic, M):
    """Upper left 3x3 of ``M`` = ``I + linear r^ + quadratic r^²``."""
    xx, yy, zz = quadratic * x * x, quadratic * y * y, quadratic * z * z
    xy, xz, yz = quadratic * x * y, quadratic * x * z, quadratic * y * z
    lx, ly, lz = linear * x, linear * y, linear * z
    M[0, 0] = 1.0 - (yy + zz)
    M[0, 1] = xy - lz
    M[0, 2] = xz + ly
    M[1, 0] = xy + lz
    M[1, 1] = 1.0 - (xx + zz)
    M[1, 2] = yz - lx
    M[2, 0] = xz - ly
    M[2, 1] = yz + lx
    M[2, 2] = 1.0 - (xx + yy)


@_jit
def _last_row(T):
    T[3, 0] = 0.0
    T[3, 1] = 0.0
    T[3, 2] = 0.0
    T[3, 3] = 1.0


@_jit
def log_vector(w, x, y, z):
    """Rotation vector of a quaternion of any length, the same for both signs."""
    if w < 0.0 or (w == 0.0 and (x < 0.0 or (x == 0.0 and (y < 0.0 or (y == 0.0 and z < 0.0))))):
        w, x, y, z = -w, -x, -y, -z
    n = sqrt(x * x + y * y + z * z)
    # n is zero at the identity, and also where its square underflows.
    factor = 2.0 / w if n == 0.0 else 2.0 * atan2(n, w) / n
    return factor * x, factor * y, factor * z


@_jit
def _scaled_quaternion(R):
    """Row of 4 q qᵀ with the largest diagonal: a quaternion of some length and sign, without cancellation."""
    r00, r11, r22 = R[0, 0], R[1, 1], R[2, 2]
    ww, xx = 1.0 + r00 + r11 + r22, 1.0 + r00 - r11 - r22
    yy, zz = 1.0 - r00 + r11 - r22, 1.0 - r00 - r11 + r22
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    if ww >= xx and ww >= yy and ww >= zz:
        return ww, wx, wy, wz
    if xx >= yy and xx >= zz:
        return wx, xx, xy, xz
    if yy >= zz:
        return wy, xy, yy, yz
    return wz, xz, yz, zz


@_jit
def cross(a, b, out):
    """``a × b``."""
    ax, ay, az, bx, by, bz = a[0], a[1], a[2], b[0], b[1], b[2]
    out[0] = ay * bz - az * by
    out[1] = az * bx - ax * bz
    out[2] = ax * by - ay * bx


@_jit
def add_hat(M, row, column, scale, a):
    """Add ``scale a^`` to the 3x3 block of ``M`` at (row, column), counted in blocks."""
    r, c = 3 * row, 3 * column
    M[r, c + 1] -= scale * a[2]
    M[r, c + 2] += scale * a[1]
    M[r + 1, c] += scale * a[2]
    M[r + 1, c + 2] -= scale * a[0]
    M[r + 2, c] -= scale * a[1]
    M[r + 2, c + 1] += scale * a[0]


@_jit
def add_hats(M, row, column, scale, a, b):
    """Add ``scale a^ b^ = scale (b aᵀ - (a·b) I)`` to the 3x3 block of ``M`` at (row, column), counted in blocks."""
    r, c = 3 * row, 3 * column
    inner = scale * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2])
    for k in range(3):
        for l in range(3):
            M[r + k, c + l] += scale * b[k] * a[l]
        M[r + k, c + k] -= inner


@_jit
def adjugate(A, out):
    """Determinant of a 3x3 matrix; ``out`` is that times its inverse."""
    a00, a01, a02 = A[0, 0], A[0, 1], A[0, 2]
    a10, a11, a12 = A[1, 0], A[1, 1], A[1, 2]
    a20, a21, a22 = A[2, 0], A[2, 1], A[2, 2]
    x, y, z = a11 * a22 - a12 * a21, a12 * a20 - a10 * a22, a10 * a21 - a11 * a20
    out[0, 0], out[0, 1], out[0, 2] = x, a02 * a21 - a01 * a22, a01 * a12 - a02 * a11
    out[1, 0], out[1, 1], out[1, 2] = y, a00 * a22 - a02 * a20, a02 * a10 - a00 * a12
    out[2, 0], out[2, 1], out[2, 2] = z, a01 * a20 - a00 * a21, a00 * a11 - a01 * a10
    return a00 * x + a01 * y + a02 * z


@_jit
def so3_exp(r, R):
    """Rotation matrix of a rotation vector; ``R`` may also be 4x4, whose upper left 3x3 is written."""
    x, y, z = r[0], r[1], r[2]
    c, s, _ = half_angle(x * x + y * y + z * z)
    _hat_polynomial(x, y, z, s * c, 0.5 * s * s, R)


@_jit
def so3_log(R, r):
    """Rotation vector of a rotation matrix, ``|r| <= π``."""
    w, x, y, z = _scaled_quaternion(R)
    r[0], r[1], r[2] = log_vector(w, x, y, z)


@_jit
def right_jacobian(r, J):
    """``J`` with ``exp(r + dr) = exp(r) exp(J dr)`` on SO(3)."""
    x, y, z = r[0], r[1], r[2]
    c, s, g = half_angle(x * x + y * y + z * z)
    _hat_polynomial(x, y, z, -0.5 * s * s, 0.25 * (s * s - c * g), J)


@_jit
def right_jacobian_inverse(r, J):
    """Inverse of `right_jacobian`, for ``|r| < 2π``."""
    x, y, z = r[0], r[1], r[2]
    _, s, g = half_angle(x * x + y * y + z * z)
    _hat_polynomial(x, y, z, 0.5, 0.25 * g / s, J)


@_jit
def inverse_transpose_product(x, y, z, a, b, c):
    """``J⁻ᵀ (a, b, c)``, J the right Jacobian at the rotation vector (x, y, z): three numbers."""
    _, s, g = half_angle(x * x + y * y + z * z)
    quadratic = 0.25 * g / s
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    return (
        a - 0.5 * d + quadratic * (y * f - z * e),
        b - 0.5 * e + quadratic * (z * d - x * f),
        c - 0.5 * f + quadratic * (x * e - y * d),
    )


@_jit
def quat_turn(qw, qx, qy, qz, x, y, z):
    """Quaternion times that of the rotation vector (x, y, z), a turn in its own axes: four numbers."""
    c, s, _ = half_angle(x * x + y * y + z * z)
    s *= 0.5
    x, y, z = s * x, s * y, s * z
    return (
        qw * c - qx * x - qy * y - qz * z,
        qw * x + qx * c + qy * z - qz * y,
        qw * y - qx * z + qy * c + qz * x,
        qw * z + qx * y - qy * x + qz * c,
    )


@_jit
def quat_entries(w, x, y, z):
    """Rotation matrix of a unit quaternion, row by row: nine numbers."""
    return (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w),
        2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w),
        2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip


@_jit
def quat_multiply(a, b, out):
    """Hamilton product ``a ∘ b``."""
    aw, ax, ay, az = a[0], a[1], a[2], a[3]
    bw, bx, by, bz = b[0], b[1], b[2], b[3]
    out[0] = aw * bw - ax * bx - ay * by - az * bz
    out[1] = aw * bx + ax * bw + ay * bz - az * by
    out[2] = aw * by - ax * bz + ay * bw + az * bx
    out[3] = aw * bz + ax * by - ay * bx + az * bw


@_jit
def quat_normalize(q):
    """``q / |q|``, in place."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    n = sqrt(w * w + x * x + y * y + z * z)
    q[0], q[1], q[2], q[3] = w / n, x / n, y / n, z / n


@_jit
def quat_exp(r, q):
    """Quaternion of a rotation vector."""
    x, y, z = r[0], r[1], r[2]
    c, s, _ = half_angle(x * x + y * y + z * z)
    s *= 0.5
    q[0], q[1], q[2], q[3] = c, s * x, s * y, s * z


@_jit
def quat_log(q, r):
    """Rotation vector of a quaternion, ``|r| <= π``, the same for ``q`` and ``-q``."""
    r[0], r[1], r[2] = log_vector(q[0], q[1], q[2], q[3])


@_jit
def quat_to_matrix(q, R):
    """Rotation matrix of a unit quaternion; ``R`` may also be 4x4, whose upper left 3x3 is written."""
    # I + 2 w u^ + 2 u^², u = (x, y, z)
    _hat_polynomial(q[1], q[2], q[3], 2.0 * q[0], 2.0, R)


@_jit
def quat_from_matrix(R, q):
    """Unit quaternion of a rotation matrix, ``w >= 0``."""
    w, x, y, z = _scaled_quaternion(R)
    n = sqrt(w * w + x * x + y * y + z * z)
    if w < 0.0 or (w == 0.0 and (x < 0.0 or (x == 0.0 and (y < 0.0 or (y == 0.0 and z < 0.0))))):
        n = -n
    q[0], q[1], q[2], q[3] = w / n, x / n, y / n, z / n


@_jit
def se3_exp(xi, T):
    """Pose of a twist (v, w)."""
    a, b, c = xi[0], xi[1], xi[2]
    x, y, z = xi[3], xi[4], xi[5]
    cosine, s, g = half_angle(x * x + y * y + z * z)
    linear, quadratic = 0.5 * s * s, 0.25 * (s * s - cosine * g)
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    _hat_polynomial(x, y, z, s * cosine, linear, T)
    T[0, 3] = a + linear * d + quadratic * (y * f - z * e)
    T[1, 3] = b + linear * e + quadratic * (z * d - x * f)
    T[2, 3] = c + linear * f + quadratic * (x * e - y * d)
    _last_row(T)


@_jit
def se3_log(T, xi):
    """Twist of a pose, ``|w| <= π``."""
    a, b, c = T[0, 3], T[1, 3], T[2, 3]
    qw, qx, qy, qz = _scaled_quaternion(T)
    x, y, z = log_vector(qw, qx, qy, qz)
    _, s, g = half_angle(x * x + y * y + z * z)
    quadratic = 0.25 * g / s
    d, e, f = y * c - z * b, z * a - x * c, x * b - y * a
    xi[0] = a - 0.5 * d + quadratic * (y * f - z * e)
    xi[1] = b - 0.5 * e + quadratic * (z * d - x * f)
    xi[2] = c - 0.5 * f + quadratic * (x * e - y * d)
    xi[3], xi[4], xi[5] = x, y, z


@_jit
def se3_inverse(T, out):
    """``[[Rᵀ, -Rᵀ p], [0, 1]]``."""
    r00, r01, r02, x = T[0, 0], T[0, 1], T[0, 2], T[0, 3]
    r10, r11, r12, y = T[1, 0], T[1, 1], T[1, 2], T[1, 3]
    r20, r21, r22, z = T[2, 0], T[2, 1], T[2, 2], T[2, 3]
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = r00, r10, r20, -(r00 * x + r10 * y + r20 * z)
    out[1, 0], out[1, 1], out[1, 2], out[1, 3] = r01, r11, r21, -(r01 * x + r11 * y + r21 * z)
    out[2, 0], out[2, 1], out[2, 2], out[2, 3] = r02, r12, r22, -(r02 * x + r12 * y + r22 * z)
    _last_row(out)


@_jit
def compose(A, B, out):
    """`A @ B` for poses."""
    b00, b01, b02, x = B[0, 0], B[0, 1], B[0, 2], B[0, 3]
    b10, b11, b12, y = B[1, 0], B[1, 1], B[1, 2], B[1, 3]
    b20, b21, b22, z = B[2, 0], B[2, 1], B[2, 2], B[2, 3]
    for i in range(3):
        a, b, c = A[i, 0], A[i, 1], A[i, 2]
        out[i, 3] = a * x + b * y + c * z + A[i, 3]
        out[i, 0] = a * b00 + b * b10 + c * b20
        out[i, 1] = a * b01 + b * b11 + c * b21
        out[i, 2] = a * b02 + b * b12 + c * b22
    _last_row(out)


@_jit
def adjoint(T, X):
    """6x6 ``[[R, p^ R], [0, R]]``."""
    x, y, z = T[0, 3], T[1, 3], T[2, 3]
    for j in range(3):
        a, b, c = T[0, j], T[1, j], T[2, j]
        X[0, j], X[1, j], X[2, j] = a, b, c
        X[3, j], X[4, j], X[5, j] = 0.0, 0.0, 0.0
        X[0, j + 3], X[1, j + 3], X[2, j + 3] = y * c - z * b, z * a - x * c, x * b - y * a
        X[3, j + 3], X[4, j + 3], X[5, j + 3] = a, b, c


@_jit
def motion_to_child(T, x, out):
    """Twist from parent to child frame, ``T = T_parent_child``: ``w' = Rᵀ w``, ``v' = Rᵀ (v + w × p)``."""
    p0, p1, p2 = T[0, 3], T[1, 3], T[2, 3]
    w0, w1, w2 = x[3], x[4], x[5]
    v0 = x[0] + w1 * p2 - w2 * p1
    v1 = x[1] + w2 * p0 - w0 * p2
    v2 = x[2] + w0 * p1 - w1 * p0
    for i in range(3):
        a, b, c = T[0, i], T[1, i], T[2, i]
        out[i] = a * v0 + b * v1 + c * v2
        out[i + 3] = a * w0 + b * w1 + c * w2


@_jit
def _parent_wrench(T, f):
    """``R f`` and ``R τ + p × R f``."""
    a, b, c, d, e, g = f[0], f[1], f[2], f[3], f[4], f[5]
    x = T[0, 0] * a + T[0, 1] * b + T[0, 2] * c
    y = T[1, 0] * a + T[1, 1] * b + T[1, 2] * c
    z = T[2, 0] * a + T[2, 1] * b + T[2, 2] * c
    p0, p1, p2 = T[0, 3], T[1, 3], T[2, 3]
    tx = T[0, 0] * d + T[0, 1] * e + T[0, 2] * g + (p1 * z - p2 * y)
    ty = T[1, 0] * d + T[1, 1] * e + T[1, 2] * g + (p2 * x - p0 * z)
    tz = T[2, 0] * d + T[2, 1] * e + T[2, 2] * g + (p0 * y - p1 * x)
    return x, y, z, tx, ty, tz


@_jit
def force_to_parent(T, f, out):
    """Wrench from child to parent frame, ``T = T_parent_child``: ``f' = R f``, ``τ' = R τ + p × R f``."""
    out[0], out[1], out[2], out[3], out[4], out[5] = _parent_wrench(T, f)


@_jit
def force_to_parent_add(T, f, out):
    """`force_to_parent`, added to ``out``."""
    x, y, z, tx, ty, tz = _parent_wrench(T, f)
    out[0] += x
    out[1] += y
    out[2] += z
    out[3] += tx
    out[4] += ty
    out[5] += tz
