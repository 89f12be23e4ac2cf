"""Articulated-body elimination: solves with inertia, transverse Newmark inertia of tension and springs, in linear time.

The matrix is that of `Δu -> Nᵀ (M + S) N Δu + G Δu`: bodies' inertia M and the inertia S of tension (block diagonal in
the links' absolute velocities), derivative G of springs, dampers and rotors (block diagonal in joint velocities). It is
symmetric and positive definite, so elimination needs no pivots: tip to root, m x m per joint (m its dofs).
"""

import math

from pliant.compilation import njit
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained._links import (
    add_vector,
    axis,
    between,
    matrix,
    put_vector,
    rotate,
    symmetric,
    vector,
)
from pliant.mechanism.links import LINK_BALL, LINK_FIXED, LINK_HINGE

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})
_inline = njit(inline="always", error_model="numpy", fastmath={"contract"})

HALF_TURN = 1.5  # rad²: squared half turn beyond which the factor tan(x) / x is held constant


@_inline
def add_tension(work, k, x, y, z, fx, fy, fz, t):
    """Add the inertia of link k against turning an arm under tension: `t/2 (|F||s| - F·s)(I - s sᵀ / s²)`.

    The force is in residual convention, opposite to the one that acts. This is an upper bound of the exact derivative,
    equal where the force is along the arm, in tension: so the matrix stays positive and iterations contract.
    """
    square = x * x + y * y + z * z
    if square > 0.0:
        g = 0.5 * t * (math.sqrt(square * (fx * fx + fy * fy + fz * fz)) - (x * fx + y * fy + z * fz))
        s = g / square
        work[k, col.W_ANGULAR] += g - s * x * x
        work[k, col.W_ANGULAR + 1] -= s * x * y
        work[k, col.W_ANGULAR + 2] -= s * x * z
        work[k, col.W_ANGULAR + 3] += g - s * y * y
        work[k, col.W_ANGULAR + 4] -= s * y * z
        work[k, col.W_ANGULAR + 5] += g - s * z * z


@_jit
def residual(first, last, links, constants, momentum, impulse, at_middle, t, work):
    """Residual of bodies' equations of motion, `M N u - p - t f`, their inertia, and tension in their own arms.

    `t` is half the step; Euler's gyroscopic torque is that at the midpoint. Returns the largest half turn, squared.
    """
    largest = 0.0
    for k in range(first, last):
        m = constants[k, col.C_MASS]
        cx, cy, cz = vector(work, k, col.W_COM)
        jx, jy, jz = vector(at_middle, k, col.LINEAR)
        px, py, pz = vector(momentum, k, col.LINEAR)
        gx, gy, gz = vector(impulse, k, col.LINEAR)
        fx, fy, fz = jx - px - gx, jy - py - gy, jz - pz - gz
        px, py, pz = vector(momentum, k, col.ANGULAR)
        jx, jy, jz = vector(at_middle, k, col.ANGULAR)
        wx, wy, wz = vector(work, k, col.W_SPIN)
        wx, wy, wz = t * wx, t * wy, t * wz
        # tan(x) / x of half the turn: a free body that turns about one axis keeps its angular momentum exactly
        x = min(wx * wx + wy * wy + wz * wz, HALF_TURN)
        largest = max(largest, x)
        s = (15.0 - x) / (15.0 - 6.0 * x)
        wx, wy, wz = s * wx, s * wy, s * wz
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(work, k, col.W_ROTATION)
        px, py, pz = rotate(r00, r01, r02, r10, r11, r12, r20, r21, r22, px, py, pz)
        gx, gy, gz = vector(impulse, k, col.ANGULAR)
        tx = jx - gx - px + wy * jz - wz * jy
        ty = jy - gy - py + wz * jx - wx * jz
        tz = jz - gz - pz + wx * jy - wy * jx
        put_vector(work, k, col.W_FORCE, fx, fy, fz)
        put_vector(work, k, col.W_RIGHT_FORCE, fx, fy, fz)
        tx, ty, tz = tx + cy * fz - cz * fy, ty + cz * fx - cx * fz, tz + cx * fy - cy * fx
        put_vector(work, k, col.W_RIGHT_TORQUE, tx, ty, tz)
        put_vector(work, k, col.W_TORQUE, tx, ty, tz)
        put_vector(work, k, col.W_LINEAR, m, 0.0, 0.0)
        put_vector(work, k, col.W_LINEAR + 3, m, 0.0, m)
        put_vector(work, k, col.W_COUPLING, 0.0, m * cz, -m * cy)
        put_vector(work, k, col.W_COUPLING + 3, -m * cz, 0.0, m * cx)
        put_vector(work, k, col.W_COUPLING + 6, m * cy, -m * cx, 0.0)
        ixx, ixy, ixz, iyy, iyz, izz = symmetric(work, k, col.W_INERTIA)
        hxx, hxy, hxz = ixx + m * (cy * cy + cz * cz), ixy - m * cx * cy, ixz - m * cx * cz
        hyy, hyz, hzz = iyy + m * (cx * cx + cz * cz), iyz - m * cy * cz, izz + m * (cx * cx + cy * cy)
        put_vector(work, k, col.W_ANGULAR, hxx, hxy, hxz)
        put_vector(work, k, col.W_ANGULAR + 3, hyy, hyz, hzz)
        g = links[k, col.TURNING]  # the body turns with this link
        if g >= 0 and m > 0.0:
            x, y, z = between(work, k, g)
            add_tension(work, g, cx + x, cy + y, cz + z, fx, fy, fz, t)
    return largest


@_jit
def factor(links, t, work):
    """Eliminate links tip to root, after `residual` and `springs`; right-hand side included.

    Returns the first link whose joint meets no inertia, or -1.
    """
    for k in range(links.shape[0] - 1, -1, -1):
        p, kind = links[k, col.PARENT], links[k, col.KIND]
        lxx, lxy, lxz, lyy, lyz, lzz = symmetric(work, k, col.W_LINEAR)
        c00, c01, c02, c10, c11, c12, c20, c21, c22 = matrix(work, k, col.W_COUPLING)
        hxx, hxy, hxz, hyy, hyz, hzz = symmetric(work, k, col.W_ANGULAR)
        fx, fy, fz = vector(work, k, col.W_RIGHT_FORCE)
        tx, ty, tz = vector(work, k, col.W_RIGHT_TORQUE)
        if kind == LINK_BALL:
            sprung = links[k, col.SPRUNG]
            dxx, dxy, dxz, dyy, dyz, dzz = hxx, hxy, hxz, hyy, hyz, hzz
            rx, ry, rz = tx, ty, tz
            if sprung:
                sxx, sxy, sxz, syy, syz, szz = symmetric(work, k, col.W_SPRING)
                sx, sy, sz = vector(work, k, col.W_SPRING_TORQUE)
                dxx, dxy, dxz, dyy, dyz, dzz = (
                    dxx + sxx,
                    dxy + sxy,
                    dxz + sxz,
                    dyy + syy,
                    dyz + syz,
                    dzz + szz,
                )
                rx, ry, rz = rx + sx, ry + sy, rz + sz
            # L D Lᵀ. An inverse by minors would lose all digits: a slim rod under a heavy load turns about its
            # own axis a hundred billion times more easily than across.
            l10, l20 = dxy / dxx, dxz / dxx
            dyz -= l10 * dxz
            dyy -= l10 * dxy
            l21 = dyz / dyy
            dzz -= l20 * dxz + l21 * dyz
            if not (dxx > 0.0 and dyy > 0.0 and dzz > 0.0):
                return k
            i0, i1, i2 = 1.0 / dxx, 1.0 / dyy, 1.0 / dzz
            put_vector(work, k, col.W_LOWER, l10, l20, l21)
            put_vector(work, k, col.W_PIVOTS, i0, i1, i2)
            put_vector(work, k, col.W_RIGHT, rx, ry, rz)
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
            ax, ay, az = axis(work, k, 2)
            if kind == LINK_HINGE:
                ux, uy, uz = rotate(c00, c01, c02, c10, c11, c12, c20, c21, c22, ax, ay, az)
                wx, wy, wz = rotate(hxx, hxy, hxz, hxy, hyy, hyz, hxz, hyz, hzz, ax, ay, az)
                own = ax * wx + ay * wy + az * wz
                r = ax * tx + ay * ty + az * tz + work[k, col.W_SPRING_TORQUE]
            else:
                ux, uy, uz = rotate(lxx, lxy, lxz, lxy, lyy, lyz, lxz, lyz, lzz, ax, ay, az)
                wx, wy, wz = rotate(c00, c10, c20, c01, c11, c21, c02, c12, c22, ax, ay, az)
                own = ax * ux + ay * uy + az * uz
                r = ax * fx + ay * fy + az * fz + work[k, col.W_SPRING_TORQUE]
            own += work[k, col.W_SPRING]
            if kind == LINK_HINGE:
                # A torque across the hinge couples its turn with its parent's, by half (a x T); with as much
                # inertia in both as keeps the matrix positive.
                mx, my, mz = vector(work, k, col.W_TORQUE)
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
            work[k, col.W_RECIPROCAL], work[k, col.W_RIGHT] = i, r
            put_vector(work, k, col.W_GAIN_FORCE, gx, gy, gz)
            put_vector(work, k, col.W_GAIN_TORQUE, ox, oy, oz)
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
            # Shift by the arm s: L stays, X -= L ŝ, H += ŝ (X - L ŝ) + (ŝ X)ᵀ
            sx, sy, sz = vector(work, k, col.W_ARM)
            k00, k01, k02 = -lxy * sz + lxz * sy, lxx * sz - lxz * sx, -lxx * sy + lxy * sx
            k10, k11, k12 = -lyy * sz + lyz * sy, lxy * sz - lyz * sx, -lxy * sy + lyy * sx
            k20, k21, k22 = -lyz * sz + lzz * sy, lxz * sz - lzz * sx, -lxz * sy + lyz * sx
            # ŝ X, to be made symmetric
            e00, e01, e02 = sy * c20 - sz * c10, sy * c21 - sz * c11, sy * c22 - sz * c12
            e10, e11, e12 = sz * c00 - sx * c20, sz * c01 - sx * c21, sz * c02 - sx * c22
            e20, e21, e22 = sx * c10 - sy * c00, sx * c11 - sy * c01, sx * c12 - sy * c02
            add_vector(work, p, col.W_LINEAR, lxx, lxy, lxz)
            add_vector(work, p, col.W_LINEAR + 3, lyy, lyz, lzz)
            add_vector(work, p, col.W_COUPLING, c00 + k00, c01 + k01, c02 + k02)
            add_vector(work, p, col.W_COUPLING + 3, c10 + k10, c11 + k11, c12 + k12)
            add_vector(work, p, col.W_COUPLING + 6, c20 + k20, c21 + k21, c22 + k22)
            hxx, hxy = hxx + sy * k20 - sz * k10 + 2.0 * e00, hxy + sy * k21 - sz * k11 + e01 + e10
            hxz, hyy = hxz + sy * k22 - sz * k12 + e02 + e20, hyy + sz * k01 - sx * k21 + 2.0 * e11
            hyz, hzz = hyz + sz * k02 - sx * k22 + e12 + e21, hzz + sx * k12 - sy * k02 + 2.0 * e22
            add_vector(work, p, col.W_ANGULAR, hxx, hxy, hxz)
            add_vector(work, p, col.W_ANGULAR + 3, hyy, hyz, hzz)
            add_vector(work, p, col.W_RIGHT_FORCE, fx, fy, fz)
            tx, ty, tz = tx + sy * fz - sz * fy, ty + sz * fx - sx * fz, tz + sx * fy - sy * fx
            add_vector(work, p, col.W_RIGHT_TORQUE, tx, ty, tz)
            fx, fy, fz = vector(work, k, col.W_FORCE)
            add_vector(work, p, col.W_FORCE, fx, fy, fz)
            tx, ty, tz = vector(work, k, col.W_TORQUE)
            tx, ty, tz = tx + sy * fz - sz * fy, ty + sz * fx - sx * fz, tz + sx * fy - sy * fx
            add_vector(work, p, col.W_TORQUE, tx, ty, tz)
            g = links[p, col.TURNING]
            if g >= 0 and links[k, col.TURNING] == k:
                sx, sy, sz = between(work, k, g)
                add_tension(work, g, sx, sy, sz, fx, fy, fz, t)
    return -1


@_jit
def _lower(l10, l20, l21, x, y, z):
    """Forward substitution with the unit lower factor of L D Lᵀ."""
    y -= l10 * x
    return x, y, z - l20 * x - l21 * y


@_jit
def solve_ball(work, k, x, y, z):
    """Solve with the factors of a ball joint, world axes."""
    l10, l20, l21 = vector(work, k, col.W_LOWER)
    i0, i1, i2 = vector(work, k, col.W_PIVOTS)
    x, y, z = _lower(l10, l20, l21, x, y, z)
    z = i2 * z
    y = i1 * y - l21 * z
    return i0 * x - l10 * y - l20 * z, y, z


@_jit
def solve(links, work, out):
    """Substitute root to tip, after `factor` or `load`: `out` (nv,) is minus the solution."""
    for k in range(links.shape[0]):
        p, kind, d = links[k, col.PARENT], links[k, col.KIND], links[k, col.DOF]
        vx, vy, vz, wx, wy, wz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if p >= 0:
            sx, sy, sz = vector(work, k, col.W_ARM)
            wx, wy, wz = vector(work, p, col.W_DELTA_SPIN)
            vx, vy, vz = vector(work, p, col.W_DELTA_VELOCITY)
            vx, vy, vz = vx + wy * sz - wz * sy, vy + wz * sx - wx * sz, vz + wx * sy - wy * sx
        if kind == LINK_BALL:
            # Xᵀ v, and H w if springs act; without them a ball does not follow its parent's turn
            c00, c01, c02, c10, c11, c12, c20, c21, c22 = matrix(work, k, col.W_COUPLING)
            x, y, z = vector(work, k, col.W_RIGHT)
            x = x + c00 * vx + c10 * vy + c20 * vz
            y = y + c01 * vx + c11 * vy + c21 * vz
            z = z + c02 * vx + c12 * vy + c22 * vz
            if links[k, col.SPRUNG]:
                hxx, hxy, hxz, hyy, hyz, hzz = symmetric(work, k, col.W_ANGULAR)
                x += hxx * wx + hxy * wy + hxz * wz
                y += hxy * wx + hyy * wy + hyz * wz
                z += hxz * wx + hyz * wy + hzz * wz
            x, y, z = solve_ball(work, k, -x, -y, -z)
            if not links[k, col.SPRUNG]:
                x, y, z = x - wx, y - wy, z - wz
            ax, ay, az = axis(work, k, 0)
            out[d] = ax * x + ay * y + az * z
            ax, ay, az = axis(work, k, 1)
            out[d + 1] = ax * x + ay * y + az * z
            ax, ay, az = axis(work, k, 2)
            out[d + 2] = ax * x + ay * y + az * z
            wx, wy, wz = wx + x, wy + y, wz + z
        elif kind != LINK_FIXED:
            ax, ay, az = axis(work, k, 2)
            gx, gy, gz = vector(work, k, col.W_GAIN_FORCE)
            ox, oy, oz = vector(work, k, col.W_GAIN_TORQUE)
            x = -work[k, col.W_RECIPROCAL] * work[k, col.W_RIGHT]
            x -= gx * vx + gy * vy + gz * vz
            x -= ox * wx + oy * wy + oz * wz
            out[d] = x
            if kind == LINK_HINGE:
                wx, wy, wz = wx + x * ax, wy + x * ay, wz + x * az
            else:
                vx, vy, vz = vx + x * ax, vy + x * ay, vz + x * az
        put_vector(work, k, col.W_DELTA_VELOCITY, vx, vy, vz)
        put_vector(work, k, col.W_DELTA_SPIN, wx, wy, wz)


@_jit
def load(links, force, work):
    """Eliminate another right-hand side, generalised forces (nv,), by the factors of `factor`; `solve` follows."""
    for k in range(links.shape[0]):
        put_vector(work, k, col.W_RIGHT_FORCE, 0.0, 0.0, 0.0)
        put_vector(work, k, col.W_RIGHT_TORQUE, 0.0, 0.0, 0.0)
    for k in range(links.shape[0] - 1, -1, -1):
        p, kind, d = links[k, col.PARENT], links[k, col.KIND], links[k, col.DOF]
        fx, fy, fz = vector(work, k, col.W_RIGHT_FORCE)
        tx, ty, tz = vector(work, k, col.W_RIGHT_TORQUE)
        if kind == LINK_BALL:
            x, y, z = force[d], force[d + 1], force[d + 2]
            r00, r01, r02, r10, r11, r12, r20, r21, r22 = matrix(work, k, col.W_ROTATION)
            rx, ry, rz = (
                tx + r00 * x + r01 * y + r02 * z,
                ty + r10 * x + r11 * y + r12 * z,
                tz + r20 * x + r21 * y + r22 * z,
            )
            put_vector(work, k, col.W_RIGHT, rx, ry, rz)
            x, y, z = solve_ball(work, k, rx, ry, rz)
            c00, c01, c02, c10, c11, c12, c20, c21, c22 = matrix(work, k, col.W_COUPLING)
            fx -= c00 * x + c01 * y + c02 * z
            fy -= c10 * x + c11 * y + c12 * z
            fz -= c20 * x + c21 * y + c22 * z
            if links[k, col.SPRUNG]:
                hxx, hxy, hxz, hyy, hyz, hzz = symmetric(work, k, col.W_ANGULAR)
                tx -= hxx * x + hxy * y + hxz * z
                ty -= hxy * x + hyy * y + hyz * z
                tz -= hxz * x + hyz * y + hzz * z
            else:
                tx, ty, tz = tx - rx, ty - ry, tz - rz
        elif kind != LINK_FIXED:
            ax, ay, az = axis(work, k, 2)
            gx, gy, gz = vector(work, k, col.W_GAIN_FORCE)
            ox, oy, oz = vector(work, k, col.W_GAIN_TORQUE)
            if kind == LINK_HINGE:
                r = force[d] + ax * tx + ay * ty + az * tz
            else:
                r = force[d] + ax * fx + ay * fy + az * fz
            work[k, col.W_RIGHT] = r
            fx, fy, fz = fx - gx * r, fy - gy * r, fz - gz * r
            tx, ty, tz = tx - ox * r, ty - oy * r, tz - oz * r
        if p >= 0:
            sx, sy, sz = vector(work, k, col.W_ARM)
            tx, ty, tz = tx + sy * fz - sz * fy, ty + sz * fx - sx * fz, tz + sx * fy - sy * fx
            add_vector(work, p, col.W_RIGHT_FORCE, fx, fy, fz)
            add_vector(work, p, col.W_RIGHT_TORQUE, tx, ty, tz)
