"""Arrays of the quasi-static engine: their columns by name, and the named tuples in which kernels take them.

This module imports nothing of pliant: a change elsewhere does not make kernels compile again.

A pose is 12 numbers: rotation, row by row, and translation. Motions and wrenches have their linear part first. Bodies
held together by fixed joints are a *group*; a *cluster* is a node of the assembly tree (`assembly_tree.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]  # of groups, primitives and nodes

# --- joints

# `primitives`: kind of link (hinge, slide, ball), first dof, first coordinate
MOTION, MOTION_DOF, COORDINATE = range(3)
# `groups`: parent group (-1 the world), first primitive of its joint, number of primitives, first dof, number of dofs
PARENT, FIRST, COUNT, DOF, DOFS = range(5)
GROUP_COLUMNS = 5


class Joints(NamedTuple):
    """Joints, one per group.

    Attributes:
        groups, primitives: integers, see the columns above.
        offsets: pose of a primitive's frame at zero in the frame before it, (primitives, 12).
        resist: per dof, resistance to acceleration: armature, and springs and dampers that act implicitly.
        weights: per dof, its weight in the total acceleration.
        q: coordinates, (nq,).
        poses: of groups in their parents' frames, (groups, 12).
        screws: joint axes of joints with several primitives, in the group's frame, (nv, 6).
        torque: of springs and motors, (nv,).
        qdd: accelerations, (nv,).
        taken: number of whole steps since the start, (1,); counted where they are taken, so that Ctrl-C loses none.
    """

    groups: Indices
    primitives: Indices
    offsets: Floats
    resist: Floats
    weights: Floats
    q: Floats
    poses: Floats
    screws: Floats
    torque: Floats
    qdd: Floats
    taken: Ints


class Springs(NamedTuple):
    """Per dof: stiffness, torque of the spring at q = 0 (hinges and slides), motor torque; rest coordinates, (nq,)."""

    stiffness: Floats
    pull: Floats
    rest: Floats
    motor: Floats


# --- clusters

# Kinds of nodes: a rigid body, a joint, a weld of shares of a body, a joint to the world, a sum of separate trees, a
# closed loop.
LEAF, MERGE, WELD, ROOT, SUM, LOOP = range(6)
# `nodes`: kind, children, parent, group whose joint it closes (of a leaf, its group; else -1), handles; start of its
# record in `data` (-1 for none, see `_twigs.py`), rows of its total acceleration, primitives in series at most, row in
# `Wide.table` (-1 for none)
KIND, LEFT, RIGHT, ABOVE, GROUP, HANDLES, START, ROWS, LEVELS, WIDE = range(10)
NODE_COLUMNS = 10
# `inertia`, of a rigid body in its frame: mass, first moment of mass, lower triangle of the moment of inertia
MASS, MOMENT, TURNING = 0, 1, 4
INERTIA_COLUMNS = 10
# A cluster's record: inverse inertia Phi1 and bias b1 of the top handle; Phi2 and b2 of the bottom handle, Phi12, pose
# of the bottom handle in the top one. The rows of the total acceleration follow: they start at METRIC[handles].
PHI, BIAS, PHI2, BIAS2, PHI12, SPAN = 0, 36, 42, 78, 84, 120
METRIC = (0, 42, 132)
HANDLE_STRIDE = PHI2 - PHI
# In front of it stand BEFORE numbers: forces on its handles, top and bottom; of the cluster as one rigid body, its
# inertia (INERTIA_COLUMNS) and the wrench on it, in the frame of its top handle; its energy without forces on handles,
# and the size of the terms that this is the sum of (see `_composite.py`); a row of `ArticulatedBodies.body`, for the
# recursion over rigid clusters (see `_hybrid.py`). Before these stands its closure, for back-substitution: W, U^T Q, r
# without forces on handles; for every freedom an entry of s Q and a row of U (see `_merge.py`); where joints have
# several freedoms, a row of `ArticulatedBodies.gain`. A leaf has no closure.
RIGID_INERTIA, RIGID_WRENCH, ENERGY, ENERGY_TERMS, RIGID_BODY, BEFORE = 12, 22, 28, 29, 30, 86
W_AT, UTQ_AT, R_AT, SQ_AT, U_AT = 0, 36, 42, 48, 49
FREEDOM_STRIDE = 7


class Clusters(NamedTuple):
    """Clusters, one per node of the assembly tree, leaves first.

    Attributes:
        nodes: integers, see the columns above.
        world: acceleration of the world: minus gravity, (6,).
        data: records of clusters, see above: those that are always there, then those of open twigs.
        closure: length of a closure, for the most freedoms of a joint.
        bounds: whether merging also computes what bounds errors: rows of total accelerations, rigid bodies, energies.
    """

    nodes: Indices
    world: Floats
    data: Floats
    closure: int
    bounds: bool


class Leaves(NamedTuple):
    """Rigid bodies and twigs (see `_twigs.py`), and the size of clusters.

    Attributes:
        inertia: of groups, see the columns above, (groups, INERTIA_COLUMNS).
        shares: per group, the number of leaves that share its inertia.
        wrenches: on leaves, in their groups' frames, (leaves, 6).
        extent: per node, the largest distance of any body in it from its top handle, m; only of bodies whose places
            count in an error, minus infinity without any.
        mobility: per node, the largest square of the acceleration of such a body, over twice its energy, 1/kg; empty
            unless errors of places are bounded.
        kept: length of the records that are always there.
        free: first place in `Clusters.data` that no record takes, (1,).
        twig: scratch, nodes of a twig.
    """

    inertia: Floats
    shares: Indices
    wrenches: Floats
    extent: Floats
    mobility: Floats
    kept: int
    free: Ints
    twig: Indices


# `Scratch.matrices`: D, s, W, U of the joint at hand, a vector, and five for `_merge.eliminate`
D_MATRIX, S_MATRIX, W_MATRIX, U_MATRIX, VECTOR, SPARE = range(6)
MATRICES = 10
# `Scratch.rows`: rows of both children and of the joint, then r and f as functions of the forces on handles, a pose
R_ROWS, F_ROWS, POSE_ROW = 34, 40, 46
ROW_SPACE = 47


class Scratch(NamedTuple):
    """Scratch: matrices (MATRICES, 6, 6), rows (ROW_SPACE, WIDTH), a Householder vector, poses (3, 12)."""

    matrices: Floats
    rows: Floats
    reflector: Floats
    poses: Floats


class Arrays(NamedTuple):
    """All arrays of a mechanism but those of its loops."""

    joints: Joints
    springs: Springs
    clusters: Clusters
    leaves: Leaves
    scratch: Scratch


# --- loops

# `Wide.table`: handles; 1 if its record is in `Wide.data`; handles of the left and the right child at the joint (of a
# LOOP both in the right child, -1 the world); starts of its record, its rows of the total acceleration, its closure
# (all in `Wide.data`), its forces (in `Wide.forces`) and the origin of its handles (in `Wide.source`); its loop
ALL_HANDLES, IS_WIDE, AT_LEFT, AT_RIGHT, RECORD, METRIC_AT, CLOSURE, FORCES, SOURCE, LOOP_NUMBER = range(10)
TABLE_COLUMNS = 10
OF_RIGHT = 1000  # in `source`, added to the number of a handle of the right child
# `Wide.limits`: round-off of a pivot; smallest pivot and largest diagonal left when the rank was found (the first -1
# before that)
ROUND_OFF, PIVOT, REMAINDER = range(3)


class Wide(NamedTuple):
    """Clusters with ends of open loops as further handles. None without loops: then none of it is compiled.

    Attributes:
        table, source, handle_leaves, ring: see `assembly_tree.LoopHandles`.
        data, forces: records and closures; forces on handles.
        leaves: leaves of the two bodies that a loop joins (-1 the world), (2 loops,).
        ends: poses of the frames that coincide in a closed loop, in their groups' frames, (2 loops, 12).
        rate: one over the factor from accelerations to displacements: loops close their gaps in one step.
        unit: one over the length that counts as much as a radian, 1/m.
        rank: of loops.
        limits: of pivots, (loops, 3), see the columns above.
        stale: 1 if pivots have left their limits, so that ranks are to be computed again, (1,).

    Scratch, n rows for the handles of both children, at least two:
        phi, bias: of both children, (n, n) and (n,).
        relative: J Phi, (6, n).
        force: f as a function of [g, 1], (6, n + 1).
        result: inverse inertia and bias of the merged cluster, (n, n + 1).
        rows: of the total acceleration, (n + 8, n + 1).
        position: per handle left, its first row among those of both children.
        transforms: motion transforms of both sides, (2, 8, 6): rows 6 and 7 are scratch.
        frames: poses, (5, 12).
        gap: a pose, (4, 4).
        vector, given: (6,).
        order: of pivots, (6,).
    """

    table: Ints
    source: Ints
    handle_leaves: Ints
    ring: NDArray[np.int8]
    data: Floats
    forces: Floats
    leaves: Ints
    ends: Floats
    rate: float
    unit: float
    rank: Ints
    limits: Floats
    stale: Ints
    phi: Floats
    bias: Floats
    relative: Floats
    force: Floats
    result: Floats
    rows: Floats
    position: Ints
    transforms: Floats
    frames: Floats
    gap: Floats
    vector: Floats
    given: Floats
    order: Ints


class Rigid(NamedTuple):
    """Records of clusters as if joints that are not computed were rigid (see `_hybrid_wide.py`). None without loops."""

    clusters: Clusters
    wide: Wide


# `RankPlan.nodes`: the children's rows in it (FREE for a cluster that floats on one handle) and their handles, the two
# handles compared, rows held; start of its F, handles left, start of their list in `kept`
CHILDREN, CHILD_HANDLES, COMPARED, HELD, FACTOR_AT, KEPT, KEPT_AT = 0, 2, 4, 6, 7, 8, 9
PLAN_COLUMNS = 10
FREE = -1


class RankPlan(NamedTuple):
    """Nodes on which ranks of loops depend, children first, and room for their square roots F (see `loop_ranks.py`).

    Attributes:
        nodes: integers, see the columns above.
        kept: handles left, as numbers among the handles of both children.
        factors, columns: F of every node, and its number of columns.
        both, left, held: scratch: F of both children, F at the handles left, rows held.
    """

    nodes: Ints
    kept: Ints
    factors: Floats
    columns: Ints
    both: Floats
    left: Floats
    held: Floats


# --- refinement

RELATIVE_JOINT, RELATIVE_LINKAGE, ABSOLUTE_JOINT, ABSOLUTE_LINKAGE, WORLD, ENERGY_NORM = range(6)


class Criterion(NamedTuple):
    """Measure of the error, its tolerance, the length in metres that counts as much as a radian, and whether joints
    that are not computed are rigid, not only at rest."""

    measure: int
    tolerance: float
    unit: float
    rigid: bool


# `Front.numbers`: clusters in the heap, computed nodes; sum of total accelerations in the heap, sum and largest of
# those of computed joints; largest terms of an acceleration, 1 if the tolerance is reached, error at the last step,
# nodes of twigs that were opened; computed nodes at the next test of an error in places or energy, and at the first one
# of the next step
HEAP_SIZE, COMPUTED, UNCOMPUTED_SUM, COMPUTED_SUM, LARGEST, TERMS, DONE, ERROR, OPENED, TEST, FIRST_TEST = (
    range(11)
)
NUMBERS = 11
# Outcome of steps, in place of the node or group that fails: done; accelerations not finite, or absurd; ranks of
# loops out of date; no room for the records of a twig, before and during a refinement
FINE, INFINITE, STALE, FULL, FULL_AHEAD = -1, -2, -3, -4, -5
FARTHEST = 1e9  # rad or m that joints may turn in a step: no spring bends a joint by a hundred million turns


class Front(NamedTuple):
    """Front of a refinement.

    Attributes:
        keys, items: heap of clusters whose joints are not computed, the largest key first.
        totals: per node, its total acceleration.
        computed: nodes in the order they were computed.
        marks: per node, 1 if its cluster is out of date.
        stack: nodes to assemble.
        top, bottom: per computed node, the clusters that are not computed in which its handles are; of the latter, they
            themselves.
        free: accelerations of computed joints as if all joints were free, (nv,): those of `Joints` unless others are
            rigid.
        bounds, bounded: heap of rigid clusters, the one in which a body may miss most first; empty unless errors of
            places are bounded.
        numbers: see above.
    """

    keys: Floats
    items: Indices
    totals: Floats
    computed: Indices
    marks: NDArray[np.int8]
    stack: Indices
    top: Indices
    bottom: Indices
    free: Floats
    bounds: Floats
    bounded: Indices
    numbers: Floats


# --- articulated-body algorithm

# `ArticulatedBodies.body`: articulated inertia, bias force, acceleration; of a hinge or slide also its row of the
# inertia, its torque less bias, and one over its inertia
INERTIA, FORCE, ACCELERATION, AXIS_ROW, AXIS_TORQUE, AXIS_INVERSE = 0, 36, 42, 48, 54, 55
BODY_COLUMNS = 56
# `ArticulatedBodies.gain`, of joints with several dofs: columns of I S, torques less bias, Cholesky factor
INERTIA_SCREWS, TORQUES, FACTOR = 0, 36, 42
GAIN_COLUMNS = 78


class ArticulatedBodies(NamedTuple):
    """Arrays of the articulated-body algorithm, one row per group.

    Attributes:
        leaf: leaf of the group, whose wrench acts on it.
        poses: world poses, (groups, 12).
        wrenches: in the group's frame, (groups, 6).
        body: see the columns above.
        slot: row of `gain`, -1 for a hinge or slide.
        gain: see the columns above.
        spare: scratch, (6, 6).
    """

    leaf: Indices
    poses: Floats
    wrenches: Floats
    body: Floats
    slot: Indices
    gain: Floats
    spare: Floats
