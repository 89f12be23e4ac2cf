"""Linear-time elimination along the tree: articulated inertia with transverse Newmark inertia and joint springs.

The matrix is that of `Δu -> N^T (M + S) N Δu + G Δu`: bodies' inertia M and tension's share S (block diagonal in the
links' absolute velocities), springs' share G (block diagonal in joint velocities). It is symmetric and positive
definite, so elimination needs no pivots: tip to root, m x m per joint (m its degrees of freedom).
"""

import math

from pliant.compilation import njit
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_inline = njit(inline="always", error_model="numpy", fastmath={"contract"})

HALF_TURN = 1.5  # rad^2: from here on the gyroscopic torque of a fast turn grows no more than in proportion


@_inline
def add_tension(work, k, x, y, z, fx, fy, fz, t):
    """Inertia of link k against turning an arm that a force pulls: `t/2 (|F||s| - F.s)(I - s s^T / s^2)`.

    The force is in residual convention, opposite to what acts. The exact derivative has this as an upper bound
    (equal when the force is along the arm, in tension), which keeps the matrix positive and iterations contracting.
    """
    square = x * x + y * y + z * z
    if square > 0.0:
        g = 0.5 * t * (math.sqrt(square * (fx * fx + fy * fy + fz * fz)) - (x * fx + y * fy + z * fz))
        s = g / square
        work[k, 51] += g - s * x * x
        work[k, 52] -= s * x * y
        work[k, 53] -= s * x * z
        work[k, 54] += g - s * y * y
        work[k, 55] -= s * y * z
        work[k, 56] += g - s * z * z


@_jit
def residual(first, last, links, constants, momentum, impulse, at_middle, t, work):
    """Start of the elimination: residual of every body's equations of motion, inertia, tension in its own arm.

    Half-step form, `t` half the step: `M N u - p - t f`, with Euler's gyroscopic torque at the midpoint. Returns the
    square of the largest half turn.
    """
    largest = 0.0
    for k in range(first, last):
        m = constants[k, 12]
        cx, cy, cz = work[k, 15], work[k, 16], work[k, 17]
        fx = at_middle[k, 0] - momentum[k, 0] - impulse[k, 0]
        fy = at_middle[k, 1] - momentum[k, 1] - impulse[k, 1]
        fz = at_middle[k, 2] - momentum[k, 2] - impulse[k, 2]
        px, py, pz = momentum[k, 3], momentum[k, 4], momentum[k, 5]
        jx, jy, jz = at_middle[k, 3], at_middle[k, 4], at_middle[k, 5]
        wx, wy, wz = t * work[k, 24], t * work[k, 25], t * work[k, 26]
        # tan(x) / x of half the turn: then a free body that turns by the whole keeps its angular momentum exactly
        x = min(wx * wx + wy * wy + wz * wz, HALF_TURN)
        largest = max(largest, x)
        s = (15.0 - x) / (15.0 - 6.0 * x)
        wx, wy, wz = s * wx, s * wy, s * wz
        tx = jx - impulse[k, 3] - (work[k, 0] * px + work[k, 1] * py + work[k, 2] * pz) + wy * jz - wz * jy
        ty = jy - impulse[k, 4] - (work[k, 3] * px + work[k, 4] * py + work[k, 5] * pz) + wz * jx - wx * jz
        tz = jz - impulse[k, 5] - (work[k, 6] * px + work[k, 7] * py + work[k, 8] * pz) + wx * jy - wy * jx
        work[k, 30], work[k, 31], work[k, 32] = fx, fy, fz
        work[k, 33], work[k, 34], work[k, 35] = fx, fy, fz
        tx, ty, tz = tx + cy * fz - cz * fy, ty + cz * fx - cx * fz, tz + cx * fy - cy * fx
        work[k, 57], work[k, 58], work[k, 59] = tx, ty, tz
        work[k, 90], work[k, 91], work[k, 92] = tx, ty, tz
        work[k, 36], work[k, 37], work[k, 38], work[k, 39], work[k, 40], work[k, 41] = m, 0.0, 0.0, m, 0.0, m
        work[k, 42], work[k, 43], work[k, 44] = 0.0, m * cz, -m * cy
        work[k, 45], work[k, 46], work[k, 47] = -m * cz, 0.0, m * cx
        work[k, 48], work[k, 49], work[k, 50] = m * cy, -m * cx, 0.0
        work[k, 51] = work[k, 18] + m * (cy * cy + cz * cz)
        work[k, 52] = work[k, 19] - m * cx * cy
        work[k, 53] = work[k, 20] - m * cx * cz
        work[k, 54] = work[k, 21] + m * (cx * cx + cz * cz)
        work[k, 55] = work[k, 22] - m * cy * cz
        work[k, 56] = work[k, 23] + m * (cx * cx + cy * cy)
        g = links[k, 5]  # what turns with the body
        if g >= 0 and m > 0.0:
            x, y, z = work[k, 9] - work[g, 9], work[k, 10] - work[g, 10], work[k, 11] - work[g, 11]
            add_tension(work, g, cx + x, cy + y, cz + z, fx, fy, fz, t)
    return largest


@_jit
def factor(links, t, work):
    """Eliminate tip to root what `residual` and `springs` set up, right side included.

    Returns the first link whose joint meets no inertia, or -1.
    """
    for k in range(links.shape[0] - 1, -1, -1):
        p, kind = links[k, 0], links[k, 1]
        lxx, lxy, lxz = work[k, 36], work[k, 37], work[k, 38]
        lyy, lyz, lzz = work[k, 39], work[k, 40], work[k, 41]
        c00, c01, c02 = work[k, 42], work[k, 43], work[k, 44]
        c10, c11, c12 = work[k, 45], work[k, 46], work[k, 47]
        c20, c21, c22 = work[k, 48], work[k, 49], work[k, 50]
        hxx, hxy, hxz = work[k, 51], work[k, 52], work[k, 53]
        hyy, hyz, hzz = work[k, 54], work[k, 55], work[k, 56]
        fx, fy, fz = work[k, 33], work[k, 34], work[k, 35]
        tx, ty, tz = work[k, 57], work[k, 58], work[k, 59]
        if kind == LINK_BALL:
            sprung = links[k, 4]
            dxx, dxy, dxz, dyy, dyz, dzz = hxx, hxy, hxz, hyy, hyz, hzz
            rx, ry, rz = tx, ty, tz
            if sprung:
                dxx, dxy, dxz = dxx + work[k, 75], dxy + work[k, 76], dxz + work[k, 77]
                dyy, dyz, dzz = dyy + work[k, 78], dyz + work[k, 79], dzz + work[k, 80]
                rx, ry, rz = rx + work[k, 81], ry + work[k, 82], rz + work[k, 83]
            # L D L^T. An inverse by minors would lose all digits: a slim rod under a heavy load turns about its
            # own axis a hundred billion times more easily than across.
            l10, l20 = dxy / dxx, dxz / dxx
            dyz -= l10 * dxz
            dyy -= l10 * dxy
            l21 = dyz / dyy
            dzz -= l20 * dxz + l21 * dyz
            if not (dxx > 0.0 and dyy > 0.0 and dzz > 0.0):
                return k
            i0, i1, i2 = 1.0 / dxx, 1.0 / dyy, 1.0 / dzz
            work[k, 60], work[k, 61], work[k, 62] = l10, l20, l21
            work[k, 63], work[k, 64], work[k, 65] = i0, i1, i2
            work[k, 72], work[k, 73], work[k, 74] = rx, ry, rz
            rx, ry, rz = _lower(l10, l20, l21, rx, ry, rz)
            y00, y10, y20 = _lower(l10, l20, l21, c00, c01, c02)
            y01, y11, y21 = _lower(l10, l20, l21, c10, c11, c12)
            y02, y12, y22 = _lower(l10, l20, l21, c20, c21, c22)
            g00, g01, g02 = i0 * y00, i1 * y10, i2 * y20
            g10, g11, g12 = i0 * y01, i1 * y11, i2 * y21
            g20, g21, g22 = i0 * y02, i1 * y12, i2 * y22
            lxx -= g00 * y00 + g01 * y10 + g02 * y20
            lxy -= g00 * y01 + g01 * y11 + g02 * y21
            lxz -= g00 * y02 + g01 * y12 + g02 * y22
            lyy -= g10 * y01 + g11 * y11 + g12 * y21
            lyz -= g10 * y02 + g11 * y12 + g12 * y22
            lzz -= g20 * y02 + g21 * y12 + g22 * y22
            fx -= g00 * rx + g01 * ry + g02 * rz
            fy -= g10 * rx + g11 * ry + g12 * rz
            fz -= g20 * rx + g21 * ry + g22 * rz
            if sprung:
                z00, z10, z20 = _lower(l10, l20, l21, hxx, hxy, hxz)
                z01, z11, z21 = _lower(l10, l20, l21, hxy, hyy, hyz)
                z02, z12, z22 = _lower(l10, l20, l21, hxz, hyz, hzz)
                q00, q01, q02 = i0 * z00, i1 * z10, i2 * z20
                q10, q11, q12 = i0 * z01, i1 * z11, i2 * z21
                q20, q21, q22 = i0 * z02, i1 * z12, i2 * z22
                tx -= q00 * rx + q01 * ry + q02 * rz
                ty -= q10 * rx + q11 * ry + q12 * rz
                tz -= q20 * rx + q21 * ry + q22 * rz
                c00 -= g00 * z00 + g01 * z10 + g02 * z20
                c01 -= g00 * z01 + g01 * z11 + g02 * z21
                c02 -= g00 * z02 + g01 * z12 + g02 * z22
                c10 -= g10 * z00 + g11 * z10 + g12 * z20
                c11 -= g10 * z01 + g11 * z11 + g12 * z21
                c12 -= g10 * z02 + g11 * z12 + g12 * z22
                c20 -= g20 * z00 + g21 * z10 + g22 * z20
                c21 -= g20 * z01 + g21 * z11 + g22 * z21
                c22 -= g20 * z02 + g21 * z12 + g22 * z22
                hxx -= q00 * z00 + q01 * z10 + q02 * z20
                hxy -= q00 * z01 + q01 * z11 + q02 * z21
                hxz -= q00 * z02 + q01 * z12 + q02 * z22
                hyy -= q10 * z01 + q11 * z11 + q12 * z21
                hyz -= q10 * z02 + q11 * z12 + q12 * z22
                hzz -= q20 * z02 + q21 * z12 + q22 * z22
            else:
                # A free ball passes on no torque and resists no turn.
                c00, c01, c02, c10, c11, c12, c20, c21, c22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                hxx, hxy, hxz, hyy, hyz, hzz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                tx, ty, tz = 0.0, 0.0, 0.0
        elif kind != LINK_FIXED:
            ax, ay, az = work[k, 2], work[k, 5], work[k, 8]
            if kind == LINK_HINGE:
                ux, uy, uz = _times(c00, c01, c02, c10, c11, c12, c20, c21, c22, ax, ay, az)
                wx, wy, wz = _times(hxx, hxy, hxz, hxy, hyy, hyz, hxz, hyz, hzz, ax, ay, az)
                own = ax * wx + ay * wy + az * wz
                r = ax * tx + ay * ty + az * tz + work[k, 81]
            else:
                ux, uy, uz = _times(lxx, lxy, lxz, lxy, lyy, lyz, lxz, lyz, lzz, ax, ay, az)
                wx, wy, wz = _times(c00, c10, c20, c01, c11, c21, c02, c12, c22, ax, ay, az)
                own = ax * ux + ay * uy + az * uz
                r = ax * fx + ay * fy + az * fz + work[k, 81]
            own += work[k, 75]
            if kind == LINK_HINGE:
                # A torque across the hinge couples its turn with its parent's, by half (a x T); with as much
                # inertia in both as keeps the matrix positive.
                mx, my, mz = work[k, 90], work[k, 91], work[k, 92]
                nx, ny, nz = ay * mz - az * my, az * mx - ax * mz, ax * my - ay * mx
                size = math.sqrt(nx * nx + ny * ny + nz * nz)
                if size > 0.0:
                    half = 0.5 * t
                    wx, wy, wz = wx + half * nx, wy + half * ny, wz + half * nz
                    own += half * size
                    half /= size
                    hxx, hxy, hxz = hxx + half * nx * nx, hxy + half * nx * ny, hxz + half * nx * nz
                    hyy, hyz, hzz = hyy + half * ny * ny, hyz + half * ny * nz, hzz + half * nz * nz
            if not own > 0.0:
                return k
            i = 1.0 / own
            gx, gy, gz, ox, oy, oz = i * ux, i * uy, i * uz, i * wx, i * wy, i * wz
            work[k, 60], work[k, 72] = i, r
            work[k, 66], work[k, 67], work[k, 68] = gx, gy, gz
            work[k, 69], work[k, 70], work[k, 71] = ox, oy, oz
            fx, fy, fz = fx - gx * r, fy - gy * r, fz - gz * r
            tx, ty, tz = tx - ox * r, ty - oy * r, tz - oz * r
            lxx, lxy, lxz = lxx - gx * ux, lxy - gx * uy, lxz - gx * uz
            lyy, lyz, lzz = lyy - gy * uy, lyz - gy * uz, lzz - gz * uz
            c00, c01, c02 = c00 - gx * wx, c01 - gx * wy, c02 - gx * wz
            c10, c11, c12 = c10 - gy * wx, c11 - gy * wy, c12 - gy * wz
            c20, c21, c22 = c20 - gz * wx, c21 - gz * wy, c22 - gz * wz
            hxx, hxy, hxz = hxx - ox * wx, hxy - ox * wy, hxz - ox * wz
            hyy, hyz, hzz = hyy - oy * wy, hyz - oy * wz, hzz - oz * wz
        if p >= 0:
            # Shift by the arm s: L stays, X -= L s^, H += s^ (X - L s^) + (its transpose's missing part)
            sx, sy, sz = work[k, 12], work[k, 13], work[k, 14]
            k00, k01, k02 = -lxy * sz + lxz * sy, lxx * sz - lxz * sx, -lxx * sy + lxy * sx
            k10, k11, k12 = -lyy * sz + lyz * sy, lxy * sz - lyz * sx, -lxy * sy + lyy * sx
            k20, k21, k22 = -lyz * sz + lzz * sy, lxz * sz - lzz * sx, -lxz * sy + lyz * sx
            # s^ X, to be made symmetric
            e00, e01, e02 = sy * c20 - sz * c10, sy * c21 - sz * c11, sy * c22 - sz * c12
            e10, e11, e12 = sz * c00 - sx * c20, sz * c01 - sx * c21, sz * c02 - sx * c22
            e20, e21, e22 = sx * c10 - sy * c00, sx * c11 - sy * c01, sx * c12 - sy * c02
            work[p, 36] += lxx
            work[p, 37] += lxy
            work[p, 38] += lxz
            work[p, 39] += lyy
            work[p, 40] += lyz
            work[p, 41] += lzz
            work[p, 42] += c00 + k00
            work[p, 43] += c01 + k01
            work[p, 44] += c02 + k02
            work[p, 45] += c10 + k10
            work[p, 46] += c11 + k11
            work[p, 47] += c12 + k12
            work[p, 48] += c20 + k20
            work[p, 49] += c21 + k21
            work[p, 50] += c22 + k22
            work[p, 51] += hxx + sy * k20 - sz * k10 + 2.0 * e00
            work[p, 52] += hxy + sy * k21 - sz * k11 + e01 + e10
            work[p, 53] += hxz + sy * k22 - sz * k12 + e02 + e20
            work[p, 54] += hyy + sz * k01 - sx * k21 + 2.0 * e11
            work[p, 55] += hyz + sz * k02 - sx * k22 + e12 + e21
            work[p, 56] += hzz + sx * k12 - sy * k02 + 2.0 * e22
            work[p, 33] += fx
            work[p, 34] += fy
            work[p, 35] += fz
            work[p, 57] += tx + sy * fz - sz * fy
            work[p, 58] += ty + sz * fx - sx * fz
            work[p, 59] += tz + sx * fy - sy * fx
            fx, fy, fz = work[k, 30], work[k, 31], work[k, 32]
            work[p, 30] += fx
            work[p, 31] += fy
            work[p, 32] += fz
            work[p, 90] += work[k, 90] + sy * fz - sz * fy
            work[p, 91] += work[k, 91] + sz * fx - sx * fz
            work[p, 92] += work[k, 92] + sx * fy - sy * fx
            g = links[p, 5]
            if g >= 0 and links[k, 5] == k:
                sx, sy, sz = work[k, 9] - work[g, 9], work[k, 10] - work[g, 10], work[k, 11] - work[g, 11]
                add_tension(work, g, sx, sy, sz, fx, fy, fz, t)
    return -1


@_jit
def _times(a00, a01, a02, a10, a11, a12, a20, a21, a22, x, y, z):
    return a00 * x + a01 * y + a02 * z, a10 * x + a11 * y + a12 * z, a20 * x + a21 * y + a22 * z


@_jit
def _lower(l10, l20, l21, x, y, z):
    """Forward substitution."""
    y -= l10 * x
    return x, y, z - l20 * x - l21 * y


@_jit
def ball(work, k, x, y, z):
    """Solve with the factors of a ball."""
    l10, l20, l21 = work[k, 60], work[k, 61], work[k, 62]
    x, y, z = _lower(l10, l20, l21, x, y, z)
    z = work[k, 65] * z
    y = work[k, 64] * y - l21 * z
    return work[k, 63] * x - l10 * y - l20 * z, y, z


@_jit
def solve(links, work, out):
    """Root to tip: minus the solution for the right side that `factor` or `load` eliminated."""
    for k in range(links.shape[0]):
        p, kind, d = links[k, 0], links[k, 1], links[k, 2]
        vx, vy, vz, wx, wy, wz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if p >= 0:
            sx, sy, sz = work[k, 12], work[k, 13], work[k, 14]
            wx, wy, wz = work[p, 87], work[p, 88], work[p, 89]
            vx = work[p, 84] + wy * sz - wz * sy
            vy = work[p, 85] + wz * sx - wx * sz
            vz = work[p, 86] + wx * sy - wy * sx
        if kind == LINK_BALL:
            # X^T v, and H w if springs act; without them a ball simply does not follow its parent's turn
            x = work[k, 72] + work[k, 42] * vx + work[k, 45] * vy + work[k, 48] * vz
            y = work[k, 73] + work[k, 43] * vx + work[k, 46] * vy + work[k, 49] * vz
            z = work[k, 74] + work[k, 44] * vx + work[k, 47] * vy + work[k, 50] * vz
            if links[k, 4]:
                x += work[k, 51] * wx + work[k, 52] * wy + work[k, 53] * wz
                y += work[k, 52] * wx + work[k, 54] * wy + work[k, 55] * wz
                z += work[k, 53] * wx + work[k, 55] * wy + work[k, 56] * wz
            x, y, z = ball(work, k, -x, -y, -z)
            if not links[k, 4]:
                x, y, z = x - wx, y - wy, z - wz
            out[d] = work[k, 0] * x + work[k, 3] * y + work[k, 6] * z
            out[d + 1] = work[k, 1] * x + work[k, 4] * y + work[k, 7] * z
            out[d + 2] = work[k, 2] * x + work[k, 5] * y + work[k, 8] * z
            wx, wy, wz = wx + x, wy + y, wz + z
        elif kind != LINK_FIXED:
            x = -work[k, 60] * work[k, 72]
            x -= work[k, 66] * vx + work[k, 67] * vy + work[k, 68] * vz
            x -= work[k, 69] * wx + work[k, 70] * wy + work[k, 71] * wz
            out[d] = x
            if kind == LINK_HINGE:
                wx, wy, wz = wx + x * work[k, 2], wy + x * work[k, 5], wz + x * work[k, 8]
            else:
                vx, vy, vz = vx + x * work[k, 2], vy + x * work[k, 5], vz + x * work[k, 8]
        work[k, 84], work[k, 85], work[k, 86] = vx, vy, vz
        work[k, 87], work[k, 88], work[k, 89] = wx, wy, wz


@_jit
def load(links, force, work):
    """Eliminate another right side, generalised forces in joints, with the factors at hand; then `solve`."""
    for k in range(links.shape[0]):
        work[k, 33], work[k, 34], work[k, 35] = 0.0, 0.0, 0.0
        work[k, 57], work[k, 58], work[k, 59] = 0.0, 0.0, 0.0
    for k in range(links.shape[0] - 1, -1, -1):
        p, kind, d = links[k, 0], links[k, 1], links[k, 2]
        fx, fy, fz = work[k, 33], work[k, 34], work[k, 35]
        tx, ty, tz = work[k, 57], work[k, 58], work[k, 59]
        if kind == LINK_BALL:
            x, y, z = force[d], force[d + 1], force[d + 2]
            rx = tx + work[k, 0] * x + work[k, 1] * y + work[k, 2] * z
            ry = ty + work[k, 3] * x + work[k, 4] * y + work[k, 5] * z
            rz = tz + work[k, 6] * x + work[k, 7] * y + work[k, 8] * z
            work[k, 72], work[k, 73], work[k, 74] = rx, ry, rz
            x, y, z = ball(work, k, rx, ry, rz)
            fx -= work[k, 42] * x + work[k, 43] * y + work[k, 44] * z
            fy -= work[k, 45] * x + work[k, 46] * y + work[k, 47] * z
            fz -= work[k, 48] * x + work[k, 49] * y + work[k, 50] * z
            if links[k, 4]:
                tx -= work[k, 51] * x + work[k, 52] * y + work[k, 53] * z
                ty -= work[k, 52] * x + work[k, 54] * y + work[k, 55] * z
                tz -= work[k, 53] * x + work[k, 55] * y + work[k, 56] * z
            else:
                tx, ty, tz = tx - rx, ty - ry, tz - rz
        elif kind != LINK_FIXED:
            if kind == LINK_HINGE:
                r = force[d] + work[k, 2] * tx + work[k, 5] * ty + work[k, 8] * tz
            else:
                r = force[d] + work[k, 2] * fx + work[k, 5] * fy + work[k, 8] * fz
            work[k, 72] = r
            fx, fy, fz = fx - work[k, 66] * r, fy - work[k, 67] * r, fz - work[k, 68] * r
            tx, ty, tz = tx - work[k, 69] * r, ty - work[k, 70] * r, tz - work[k, 71] * r
        if p >= 0:
            sx, sy, sz = work[k, 12], work[k, 13], work[k, 14]
            work[p, 33] += fx
            work[p, 34] += fy
            work[p, 35] += fz
            work[p, 57] += tx + sy * fz - sz * fy
            work[p, 58] += ty + sz * fx - sx * fz
            work[p, 59] += tz + sx * fy - sy * fx
