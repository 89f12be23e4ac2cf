"""Arrays of a contact step as named tuples, and `Step`, which holds them all as one argument of a kernel.

A compiled function examines every array it is called with from Python; for the hundred arrays here that takes longer
than a step of a small world. `Step` is a single reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from pliant.compilation import njit, views
from pliant.engines.actor import Rows

__all__ = ["Bodies", "Found", "Native", "Report", "Saved", "Scene", "Settings", "Velocities", "WarmStart"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FRICTION, RESTITUTION, ROLLING_ARM, COMPLIANCE, MATERIAL = 0, 1, 2, 3, 4  # columns of `Bodies.material`
CONTACTS, ROWS, SWEEPS, RECOVERY, TAKEN, COUNTS = range(6)  # entries of `Report.counts`
RECORD_DISTANCE, RECORD_POINT, RECORD_FRAME, RECORD_GEOMS = (
    0,
    0,
    1,
    2,
)  # column of `reals`; entries of `layout`
PART, KEPT = 0, 1  # entries of `WarmStart.now`
# Why a phase ends a step. A number explains: contacts or numbers in J for which room is needed, or the body.
DONE, MORE_CONTACTS, MORE_NUMBERS, NOT_FINITE, FREE_LOST, MODEL_LOST, FORCES_LOST = range(7)


class Settings(NamedTuple):
    """Parameters of the contact step.

    Attributes:
        timestep: s.
        margin: least detection margin, m: contacts are detected while the distance is below the sum of two margins.
        reach: largest detection margin of a body that moves, m; planes detect free bodies from further away.
        thin: half the thickness of the thinnest shape that moves, m.
        slop: penetration that is not corrected, m.
        near: contacts of two bodies closer than this, and with similar normals, are merged, m.
        fall: speed that gravity adds to a free body in a step, m/s.
        sweeps, tolerance: most sweeps of a step, and the residual at which they end, m/s.
        share: part of the penetration beyond `slop` that a step corrects; all of it beyond `thin`.
        bounce: approach speed below which there is no restitution, m/s.
        ahead: detection margin per displacement of the last step: above 1, since bodies gather speed.
        spare: numbers in J that stops of joints may take.
    """

    timestep: float
    margin: float
    reach: float
    thin: float
    slop: float
    near: float
    fall: float
    sweeps: int
    tolerance: float
    share: float = 0.3
    bounce: float = 0.05
    ahead: float = 1.2
    spare: int = 0


class Report(NamedTuple):
    """Result of the last step.

    Attributes:
        counts: number of CONTACTS and of blocks of ROWS, SWEEPS of the solver, sweeps of RECOVERY from penetration;
            steps TAKEN since the stepper was made.
        residual: largest change of a block's velocity in the last sweep, m/s, (1,).
    """

    counts: Ints
    residual: Floats


class Native(NamedTuple):
    """MuJoCo's model and data for compiled code; both have to outlive it.

    Attributes:
        model, data: addresses.
        count: number of contacts, (1,).
        reals, integers: records of contacts as numbers of 8 and of 4 bytes, a row each; the distance comes first.
        layout: columns in such a row of the point and the frame, in `reals`, and of the geoms, in `integers`.
    """

    model: int
    data: int
    count: NDArray[np.int32]
    reals: Floats
    integers: NDArray[np.int32]
    layout: Ints

    @staticmethod
    def none() -> Native:
        """Arrays of the same types for a world in which contacts are detected from Python."""
        integers = np.zeros((0, 1), dtype=np.int32)
        return Native(
            0, 0, np.zeros(1, dtype=np.int32), np.zeros((0, 1)), integers, np.zeros(3, dtype=np.int64)
        )


class Scene(NamedTuple):
    """Frames and margins of MuJoCo's bodies and geoms, and the bodies and shapes they stand for.

    Attributes:
        margins: detection margin per body, m.
        core_margins: the same of a body's core, which touches planes only.
        body: per MuJoCo body the index of our body; negative: fixed, its frame is written once.
        core: per MuJoCo body, whether it holds the cores of another.
        xipos, ximat, body_margin: frame and margin per MuJoCo body.
        local: pose of each geom in its body's frame, (geoms, 3, 4).
        geom_body, geom_shape, geom_core: body, shape, and whether it is a core, per geom.
        xpos, xmat, geom_margin: frame and margin per geom.
        height_field: per shape, whether it is a height field.
        shape_body: body of each shape.
        pairs, extents, fields, heights: pairs and extents of geoms, height fields and their heights, see `_round`.
    """

    margins: Floats
    core_margins: Floats
    body: Ints
    core: Bools
    xipos: Floats
    ximat: Floats
    body_margin: Floats
    local: Floats
    geom_body: Ints
    geom_shape: Ints
    geom_core: Bools
    xpos: Floats
    xmat: Floats
    geom_margin: Floats
    height_field: Bools
    shape_body: Ints
    pairs: Ints
    extents: Floats
    fields: Floats
    heights: Floats


class Found(NamedTuple):
    """Detected contacts: bodies, shapes, point, normal and distance of each; `mark` is scratch. See `Contacts`."""

    first: Ints
    second: Ints
    shape_first: Ints
    shape_second: Ints
    point: Floats
    normal: Floats
    distance: Floats
    mark: Ints


class WarmStart(NamedTuple):
    """Contact impulses of the last step, from which the solver starts, in arrays of two parts that take turns.

    Attributes:
        now: PART of the last step, and the number of contacts KEPT in it.
        first, second: shapes of a contact, (2, n).
        point, impulse: where and how much, world, (2, n, 3).
        normal: normal impulse, N s, (2, n).
        steady: normal impulse that is expected to last: the lesser one of two steps, N s, (2, n).
        match: for every new contact the matching one of the last step, or -1.
        taken: scratch, per contact of the last step.
    """

    now: Ints
    first: Ints
    second: Ints
    point: Floats
    impulse: Floats
    normal: Floats
    steady: Floats
    match: Ints
    taken: Bools


class Bodies(NamedTuple):
    """Bodies of a world: those of actors first, then those that never move.

    Attributes:
        poses: world, (bodies, 4, 4).
        previous: upper three rows of the poses at the start of the last step, (moving bodies, 12).
        boxes: centre and half extents of a box around all shapes of a body, in its frame, (bodies, 6).
        owner: index of the actor of a body, -1 for none.
        drop: distance by which gravity moves a body in a step if no contact holds its actor, m; 0 if springs hold it.
        held: per actor, whether a contact held it in the last step.
        busy: per actor, whether it has rows in this step.
        strikes: per actor, whether its velocities at the end of a step differ from the mean ones.
        material: FRICTION, RESTITUTION, ROLLING_ARM and COMPLIANCE, (bodies, 4).
        size, offset: number of velocities of a body's actor that move it, and where they start in those of the world.
    """

    poses: Floats
    previous: Floats
    boxes: Floats
    owner: Ints
    drop: Floats
    held: Bools
    busy: Bools
    strikes: Bools
    material: Floats
    size: Ints
    offset: Ints


class Velocities(NamedTuple):
    """Generalised velocities of all actors: `before` the step, `u` at its end, and `w`, for positions only.

    Positions move by h (u + w). Before actors strike, `u` are the mean velocities of the step.
    """

    before: Floats
    u: Floats
    w: Floats


class Saved(NamedTuple):
    """Copies of what a step changes, to return to if it fails: of free bodies, a model, and `WarmStart.now`."""

    free: Floats
    model: Floats
    now: Ints


FIELDS = (
    "settings", "report", "native", "scene", "found", "rows", "warm", "bodies", "velocities", "free", "model", "saved",
)  # fmt: skip


@structref.register
class _StepType(views.StructureType):
    pass


class Step(views.Structure):
    """All arrays of a contact step; the names of the fields are those of the named tuples above.

    `free` is a `_free.FreeArrays`, `model` a `ContactModel` of the reduced engine. Counting references to all these
    arrays would take longer than the step of a small world: see `compilation.views`.
    """


views.define(_StepType, Step, FIELDS)


@njit(counts_references=True)
def make_step(settings, report, native, scene, found, rows, warm, bodies, velocities, free, model, saved):
    """A `Step` of these fields."""
    return Step(settings, report, native, scene, found, rows, warm, bodies, velocities, free, model, saved)


def make_found(capacity: int) -> Found:
    """Room for contacts."""
    first, second, shape_first, shape_second, mark = np.empty((5, capacity), dtype=np.int64)
    point, normal = np.empty((2, capacity, 3))
    return Found(first, second, shape_first, shape_second, point, normal, np.empty(capacity), mark)


def make_rows(capacity: int, numbers: int) -> Rows:
    """Room for `capacity` blocks of rows, with `numbers` numbers in J and Y."""
    kind, partner = np.zeros((2, capacity), dtype=np.int64)
    point, target, softness, impulse, change = np.zeros((5, capacity, 3))
    axes, delassus, inverse = np.zeros((3, capacity, 3, 3))
    bound, gap = np.zeros((2, capacity))
    J, Y = np.zeros((2, numbers))
    return Rows(
        kind=kind, body=np.full((capacity, 2), -1, dtype=np.int64), point=point, axes=axes,
        angular=np.zeros(capacity, dtype=bool), bound=bound, partner=partner, struck=np.zeros(capacity, dtype=bool),
        target=target, softness=softness, gap=gap,
        impulse=impulse, change=change, correction=np.zeros((capacity, 2)),
        side=np.zeros((capacity, 2, 3), dtype=np.int64), J=J, Y=Y, delassus=delassus, inverse=inverse,
    )  # fmt: skip


def make_warm_start(capacity: int) -> WarmStart:
    """Room for the impulses of contacts, of which there are none yet."""
    first, second = np.zeros((2, 2, capacity), dtype=np.int64)
    point, impulse = np.zeros((2, 2, capacity, 3))
    normal, steady = np.zeros((2, 2, capacity))
    match, taken = np.zeros(capacity, dtype=np.int64), np.zeros(capacity, dtype=bool)
    return WarmStart(np.zeros(2, dtype=np.int64), first, second, point, impulse, normal, steady, match, taken)


def kept(warm: WarmStart) -> tuple[NDArray, ...]:
    """Copies of the contacts of the last step: shapes, points, impulses, steady and normal impulses."""
    part, count = warm.now.tolist()
    return tuple(array[part, :count].copy() for array in _kept_arrays(warm))


def keep(warm: WarmStart, values: tuple[NDArray, ...]) -> None:
    """Write contacts of a last step, as `kept` gives them; none if `values` is empty."""
    count = len(values[0]) if values else 0
    warm.now[:] = 0, count
    for array, value in zip(_kept_arrays(warm), values, strict=False):
        array[0, :count] = value


def _kept_arrays(warm: WarmStart) -> tuple[NDArray, ...]:
    return warm.first, warm.second, warm.point, warm.impulse, warm.steady, warm.normal
