"""Arrays of the adaptive engine: columns of records by name, and the named tuples in which kernels take them.

Bodies held together by fixed joints are a *group*, a node of the assembly tree is a *cluster*: both as in the
quasi-static engine, whose columns of `groups`, `primitives`, `nodes` and `inertia` are used here. A cluster that is
*closed* is one rigid body. Nodes that are *open* form the top of the assembly tree; the joints that they merge move.
A pose is 12 numbers: rotation, row by row, and translation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Flags = NDArray[np.int8]

# Record of a closed cluster, in the frame of its top handle. FORMS columns stand for 1 and the products of its angular
# velocity, xx, yy, zz, xy, xz, yz: accelerations and forces inside a rigid cluster that turns are linear in them.
FORMS = 7
PHI = 0  # inverse inertia of the top handle with all joints free, 6 x 6
BIAS = 36  # its acceleration without forces on handles, 6 x FORMS
GAUSS = 78  # twice the energy of acceleration of the free motion, FORMS x FORMS
WRENCH = 127  # sum of applied wrenches, (6,)
INERTIA = 133  # composite rigid inertia: columns of `inertia` of the quasi-static engine, (10,)
ONE_HANDLE = 143
PHI2, BIAS2, PHI12 = 143, 179, 221  # of the bottom handle; top by bottom
SPAN = 257  # pose of the bottom handle in the top one
TWO_HANDLES = 269
# Record of an open cluster at its present velocities: the same places, one column; BIAS and BIAS2 are 6 x 1.


class Joints(NamedTuple):
    """Joints, one per group; q, rates and everything that follows from them are those of joints at rest.

    Attributes:
        groups, primitives, offsets: as in the quasi-static engine.
        resist: per dof, resistance to acceleration: rotors, and springs and dampers that act implicitly.
        stiffness, pull, motor: per dof; `pull` is the torque of a hinge's or slide's spring at q = 0.
        rest: coordinates at which springs are slack, (nq,).
        q: coordinates, (nq,).
        poses: of groups in their parents' frames, (groups, 12).
        screws: unit twists of dofs in their groups' frames, (nv, 6).
        torque: of springs and motors, (nv,).
        closing: per group, the node that closes its joint.
    """

    groups: Indices
    primitives: Indices
    offsets: Floats
    resist: Floats
    stiffness: Floats
    pull: Floats
    motor: Floats
    rest: Floats
    q: Floats
    poses: Floats
    screws: Floats
    torque: Floats
    closing: Indices


class Clusters(NamedTuple):
    """Clusters, one per node of the assembly tree.

    Attributes:
        nodes: integers, columns of the quasi-static engine.
        start: of records in `data`, a column of `nodes`; -1 for leaves, for nodes without handles, and inside of closed
            twigs.
        data: records: those that are always there, those of open twigs (see `_twigs.py`), and at the end those of two
            leaves at hand.
        free: first place in `data` that no record takes; length of the records that are always there.
        defect: of nodes without handles, kept rigid: twice the energy of acceleration missed.
        inertia, shares: of groups; the leaves of a group share its inertia.
        wrenches: on leaves, in their groups' frames, (leaves, 6).
        marks: per node, 1 if its record is out of date.
    """

    nodes: Indices
    start: Indices
    data: Floats
    free: Ints
    defect: Floats
    inertia: Floats
    shares: Indices
    wrenches: Floats
    marks: Flags


class Walk(NamedTuple):
    """Open nodes and the closed clusters below them, parents first, left before right.

    Attributes:
        node: visited nodes.
        component: rigid body that holds the top handle of a node, -1 the world.
        pose: of the top handle in the frame of that body.
        slot: per node of the assembly tree, its row in this table, or -1.
    """

    node: Indices
    component: Indices
    pose: Floats
    slot: Indices


class Components(NamedTuple):
    """Rigid bodies of the reduced linkage, one per open joint.

    Attributes:
        group: whose frame is that of the body.
        parent: body before the joint, -1 the world.
        pose: of the parent group of the joint in the frame of that body.
        link: last link of the joint.
        inertia: composite, in its frame.
    """

    group: Indices
    parent: Indices
    pose: Floats
    link: Indices
    inertia: Floats


class Scratch(NamedTuple):
    """Scratch: matrices (8, 6, 6), forms (6, 7, 7), a linear system (12, 19), vectors (12, 6), poses (6, 12).

    `order` lists the clusters of a twig.
    """

    matrices: Floats
    forms: Floats
    system: Floats
    vectors: Floats
    poses: Floats
    order: Indices


class Front(NamedTuple):
    """Visited nodes in a review: the rows of a `Walk`, then those below nodes that it opens.

    Attributes:
        node: of the assembly tree.
        force: wrenches on handles, top and bottom, with all joints free, (rows, 12).
        spin: angular velocity of the top handle in its frame, (rows, 3).
        missed: defects of closed clusters.
        content: of nodes that can be closed, kinetic energy that is lost, J.
        keys, items: heap of closed clusters, the largest defect first; rows.
        change: nodes to open and, from the end, nodes to close.
        numbers: see below.
    """

    node: Indices
    force: Floats
    spin: Floats
    missed: Floats
    content: Floats
    keys: Floats
    items: Indices
    change: Indices
    numbers: Floats


# `Front.numbers`: rows; size of the heap; nodes to open and to close; largest defect left, sum of defects left; whether
# the table was full
ROWS, HEAP, OPENED, CLOSED, WORST, LEFT_OVER, FULL = range(7)
NUMBERS = 7


class Limits(NamedTuple):
    """Limits of a review.

    Attributes:
        open: defect, kg m²/s⁴, above which a cluster is opened.
        close: defect that a joint may add to those of the clusters on both sides when it is closed.
        closed: defect that a cluster may have when it is closed.
        slow: kinetic energy, J, that may be lost when a cluster is closed.
        most: joints that may move.
    """

    open: float
    close: float
    closed: float
    slow: float
    most: int
