"""Arrays of the midpoint step: columns by name, and the named tuples in which arrays travel.

Links are those of `Mechanism.links`, n of them. Each has a *joint frame*: origin on the joint, z axis along a hinge or
slide, axes of a ball's coordinates; see `packing`. Vectors are in world axes about the origin of the link's joint frame
unless it says otherwise. Symmetric 3 x 3 blocks are stored as xx, xy, xz, yy, yz, zz, other blocks by rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.mechanism.elimination_kernels import Fronts, Matrix, Motion, Tree

# columns of loads: rows in the joint frame's axes about the centre of mass
from pliant.statics.load_kernels import FORCE as LOAD_FORCE
from pliant.statics.load_kernels import LINK as LOAD_LINK
from pliant.statics.load_kernels import LOAD_SIZE as LOAD_COLUMNS
from pliant.statics.load_kernels import POINT as LOAD_POINT
from pliant.statics.load_kernels import TORQUE as LOAD_TORQUE

__all__ = [
    "LOAD_COLUMNS",
    "LOAD_FORCE",
    "LOAD_LINK",
    "LOAD_POINT",
    "LOAD_TORQUE",
    "Model",
    "Scratch",
    "State",
]

# links: parent, kind (`mechanism.links`), first dof and coordinate; whether a ball has springs; the nearest link that
# turns on the way to the root, itself included
PARENT, KIND, DOF, COORDINATE, SPRUNG, TURNING = range(6)
LINK_COLUMNS = 6

# constants of a link
C_ROTATION = 0  # of the joint frame at q = 0, in that of the parent, 3 x 3
C_SHIFT = 9  # its origin there, m
C_MASS = 12  # of the body (a share of it where a loop is cut), kg
C_COM = 13  # centre of mass in the joint frame, m
C_AXES = 16  # principal axes as columns, in the joint frame, 3 x 3
C_MOMENTS = 25  # principal moments, kg m²
CONSTANTS = 28

# dofs and tendons, N m/rad and N m s/rad or N/m and N s/m: as given ...
STIFFNESS, DAMPING = 0, 1
PULL = 2  # constant term: stiffness times rest or target, and torque, N m or N
ARMATURE = 3  # rotor inertia, kg m² or kg
LOWER, UPPER = 4, 5  # limits
INERTIA = 6  # effective inertia at the reference pose with all other joints free
UNIT = 7  # 1 for turns, 1/radius for slides: makes changes comparable
# ... and for the present length of a step, see `_joints.coefficients`
AHEAD, BEHIND, HALF, DRAG, DRAGGED, GIVEN, STOP, REACH, LAG = range(8, 17)
DOF_COLUMNS = 17

# loops
LOOP_COPY, LOOP_BODY = 0, 1  # links of the copy and of the body it must coincide with
LOOP_POINT = 2  # origin of the copy's joint frame in that of the body, m
LOOP_ROTATION = 5  # from the body's joint frame to the copy's, 3 x 3
LOOP_UNIT = 14  # size of the loop, m
LOOP_COLUMNS = 15

# momentum, impulse and reactions: linear and angular part
LINEAR, ANGULAR = 0, 3

# work: kinematics ...
W_ROTATION = 0  # of the joint frame, 3 x 3
W_POSITION = 9  # of its origin, m
W_ARM = 12  # from the parent's origin, m
W_COM = 15  # centre of mass from the origin, m
W_INERTIA = 18  # of the body about its centre of mass, symmetric, kg m²
W_SPIN = 24  # angular velocity, rad/s
W_VELOCITY = 27  # of the origin, m/s
KINEMATIC_COLUMNS = 30
# ... half impulse through the joint, N s and N m s, in residual convention: opposite to the wrench on the link
W_FORCE, W_TORQUE = 30, 69
# ... right-hand side of the elimination: of the link, N s and N m s, and of its joint
W_RIGHT_FORCE, W_RIGHT_TORQUE, W_RIGHT = 33, 57, 84
# ... articulated inertia [L X; Xᵀ H] of linear and angular velocity: L and H symmetric, X 3 x 3
W_LINEAR, W_COUPLING, W_ANGULAR = 36, 42, 51
# ... derivative and half impulse of springs, dampers, rotors and stops: of a ball symmetric and world axes
W_SPRING, W_SPRING_TORQUE = 60, 66
# ... and, of trees that no row borders: (others are eliminated with their rows, in arrays of their own)
BORDERED_COLUMNS = 72
# ... factors of the joint: of a ball l10, l20, l21 and reciprocal pivots of L D Lᵀ; of a hinge or slide the reciprocal
# of its inertia, and that times its column of articulated inertia
W_LOWER, W_PIVOTS = 72, 75
W_RECIPROCAL, W_GAIN_FORCE, W_GAIN_TORQUE = 72, 78, 81
# ... solution: change of the link's velocities
W_DELTA_VELOCITY, W_DELTA_SPIN = 87, 90
WORK_COLUMNS = 93

# past
EXTRAPOLATE = 0  # whether a straight line through the last two midpoint velocities predicted the last one
SINCE_CHECK = 1  # steps since momenta were checked
BAD_CHECKS = 2  # checks in a row that found too much momentum outside the joints' motions
PAST = 3

# info
INFO_LENGTH = 0  # of the steps that coefficients are for, s
INFO_SOLVES, INFO_SUBSTEPS, INFO_UNSETTLED = 1, 2, 3  # counts since the start, see `Effort`
INFO_TOLERANCE = 4  # change of coordinates that ends iterations, rad or radii
INFO_CLOSE = 5  # gap of loops that counts as closed, rad or loop sizes
INFO_HITS, INFO_HELD = 6, 7  # joints that run into a stop, and that are at one or near it
INFO_LAST = 8  # length of the last part of a step, s
INFO_TURN = 9  # largest half turn of a body in a step, squared
INFO_TAKEN = 10  # whole steps since the start
INFO = 11
DEPTH = 4  # of Anderson acceleration


class Model(NamedTuple):
    """A mechanism and its loads.

    Attributes:
        links: PARENT ... TURNING, (n, LINK_COLUMNS).
        constants: C_ROTATION ... C_MOMENTS, (n, CONSTANTS).
        dofs: STIFFNESS ... LAG, (nv, DOF_COLUMNS).
        rest: coordinates at which springs are slack, (nq,).
        gravity: m/s².
        loads: rows in the joint frames' axes about centres of mass, (loads, LOAD_COLUMNS).
        loops: (loops, LOOP_COLUMNS).
        offsets: of couplings and tendons, scaled as their rows.
        tendons: the columns of dofs, (tendons, DOF_COLUMNS).
        where: coordinate of a dof, (nv,).
        bare: dofs with rotors, and without springs: for the projection of momenta.
    """

    links: NDArray[np.int64]
    constants: NDArray[np.float64]
    dofs: NDArray[np.float64]
    rest: NDArray[np.float64]
    gravity: NDArray[np.float64]
    loads: NDArray[np.float64]
    loops: NDArray[np.float64]
    offsets: NDArray[np.float64]
    tendons: NDArray[np.float64]
    where: NDArray[np.int64]
    bare: NDArray[np.float64]


class State(NamedTuple):
    """State of the motion.

    Attributes:
        q: coordinates, (nq,).
        u: midpoint velocity of joints in the last step, (nv,).
        v: joint velocities, (nv,).
        momentum: of bodies about their centres of mass: linear in world axes, angular in joint frames, (n, 6).
        multipliers: of bordering rows, as half impulses.
        earlier: midpoint velocity of the step before the last, (nv,).
        past: EXTRAPOLATE, SINCE_CHECK, BAD_CHECKS.
        chosen: coordinates where bordering rows were chosen, which of them are kept, and their smallest remainder (0
            if they must be chosen anew), (nq + m + 1,).
    """

    q: NDArray[np.float64]
    u: NDArray[np.float64]
    v: NDArray[np.float64]
    momentum: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    earlier: NDArray[np.float64]
    past: NDArray[np.float64]
    chosen: NDArray[np.float64]


class Border(NamedTuple):
    """Loops, couplings and tendons along the tree of links; see `pliant.mechanism.elimination`.

    Attributes:
        tree, fronts, matrix, motion: arguments of its kernels.
        scale: of rows, (m,).
        unit: of dofs, rad and m, (nv,).
        soft: 1 for tendons that act, else 0, (m,).
        none: zeros, (m,).
    """

    tree: Tree
    fronts: Fronts
    matrix: Matrix
    motion: Motion
    scale: NDArray[np.float64]
    unit: NDArray[np.float64]
    soft: NDArray[np.int64]
    none: NDArray[np.int64]


class Scratch(NamedTuple):
    """Work arrays of a step.

    Attributes:
        work: W_ROTATION ... W_DELTA_SPIN at the midpoint, (n, WORK_COLUMNS); where rows border the tree, up to W_TORQUE
            only, (n, BORDERED_COLUMNS).
        ahead: kinematics at another pose, (n, KINEMATIC_COLUMNS).
        at_middle: momentum of the midpoint velocity, world axes, about centres of mass, (n, 6).
        impulse: of gravity and loads in half a step, world axes, at centres of mass, (n, 6).
        du: Newton step of the midpoint velocity, (nv,).
        backup: midpoint velocity before the step, (nv,).
        wanted: right-hand side of the bordering rows: loops, six each, couplings, tendons, (m,).
        change, spare, force: scratch, (3, m), (m,) and (2, nv).
        border: the bordering rows along the tree.
        small: scratch of rotations, (4, 3).
        history, gram: of Anderson acceleration.
        info: INFO_LENGTH ... INFO_TAKEN.
    """

    work: NDArray[np.float64]
    ahead: NDArray[np.float64]
    at_middle: NDArray[np.float64]
    impulse: NDArray[np.float64]
    du: NDArray[np.float64]
    backup: NDArray[np.float64]
    wanted: NDArray[np.float64]
    change: NDArray[np.float64]
    spare: NDArray[np.float64]
    force: NDArray[np.float64]
    border: Border
    small: NDArray[np.float64]
    history: NDArray[np.float64]
    gram: NDArray[np.float64]
    info: NDArray[np.float64]
