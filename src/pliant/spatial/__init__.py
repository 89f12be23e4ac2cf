"""Rotations, rigid displacements and their Lie algebras, in numpy, batched over leading axes.

Conventions: twists and wrenches have their linear part first. A pose ``T_a_b`` is a 4x4 matrix that takes
coordinates in frame b to frame a. Quaternions are unit, in the order w, x, y, z. Twists are in the body
frame: ``T exp(ξ)``. Functions take anything array-like and return float64. All hold to a few units in the
last place at all angles, from zero through exact half turns. The same functions for use inside numba code are
in `pliant.spatial.kernels`.
"""

from ._quaternion import (
    quat_conjugate,
    quat_exp,
    quat_from_matrix,
    quat_log,
    quat_multiply,
    quat_normalize,
    quat_rotate,
    quat_to_matrix,
)
from ._se3 import (
    ad,
    adjoint,
    pose,
    se3_exp,
    se3_inverse,
    se3_log,
    se3_right_jacobian,
    se3_right_jacobian_inverse,
    transform_points,
)
from ._so3 import hat, so3_exp, so3_log, so3_right_jacobian, so3_right_jacobian_inverse, vee

__all__ = [
    "ad",
    "adjoint",
    "hat",
    "pose",
    "quat_conjugate",
    "quat_exp",
    "quat_from_matrix",
    "quat_log",
    "quat_multiply",
    "quat_normalize",
    "quat_rotate",
    "quat_to_matrix",
    "se3_exp",
    "se3_inverse",
    "se3_log",
    "se3_right_jacobian",
    "se3_right_jacobian_inverse",
    "so3_exp",
    "so3_log",
    "so3_right_jacobian",
    "so3_right_jacobian_inverse",
    "transform_points",
    "vee",
]
