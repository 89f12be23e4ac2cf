"""`Collider`: contacts between bodies, by MuJoCo's collider on a scene of their shapes, of round ones in closed form.

Compiled code calls `mj_collision`, a public function of MuJoCo's library, by its name, and reads contacts where it
leaves them, see `records`. If these are not found, contacts are detected from Python.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from pliant.contact import _detect, _round, records
from pliant.contact.arrays import Found, Native, Scene, make_found
from pliant.contact.collision_scene import compiled, make_scene, quiet
from pliant.errors import InputError
from pliant.shapes import Shape
from pliant.text import brief

__all__ = ["Collider", "Contacts"]

Floats = NDArray[np.float64]
_PLANE, _HEIGHT_FIELD, _SPHERE, _CAPSULE = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}")) for name in ("PLANE", "HFIELD", "SPHERE", "CAPSULE")
)
_FULL = int(mujoco.mjtWarning.mjWARN_CONTACTFULL)
_MEMORY = 1 << 24  # bytes of the arena at first; pages that are not used take no memory
_MOST_MEMORY = 1 << 36
_PAIR = 50  # most contacts that MuJoCo reports of two geoms
_RECORD = 1 << 10  # bytes; the record of a contact is smaller
_MOST_KEPT = 1 << 28  # bytes up to which the arena has room for the contacts of all pairs of geoms
# Pairs of shapes up to which they are looked at one by one; geoms, and pairs of them, up to which these are counted.
_FEW_PAIRS, _FEW_GEOMS, _COUNTED = 256, 1024, 4096


class Contacts:
    """Points at which bodies touch, one per row. The next `detect` overwrites them; `copy` keeps them.

    Attributes:
        count: number of contacts.
        first, second: the bodies, (n,); -1 is the world. `first` is the lower index.
        point: midway between the two surfaces, world, (n, 3).
        normal: unit vector from `first` to `second`, world, (n, 3).
        distance: between the surfaces, negative where they penetrate, (n,).
        shape_first, shape_second: indices of the collider's shapes, (n,).
    """

    def __init__(self, found: Found, count: int):
        self.count = count
        self.first, self.second = found.first[:count], found.second[:count]
        self.shape_first, self.shape_second = found.shape_first[:count], found.shape_second[:count]
        self.point, self.normal, self.distance = (
            found.point[:count],
            found.normal[:count],
            found.distance[:count],
        )
        self._found = found

    def copy(self) -> Contacts:
        """The same contacts in arrays of their own."""
        return Contacts(Found._make(array[: self.count].copy() for array in self._found), self.count)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<Contacts: {self.count}>"


class Collider:
    """Finds where shapes touch.

    A mesh touches with its convex hull, a plane with its whole half space whatever its extents. Planes and height
    fields do not touch each other.

    Args:
        shapes: (body, shape) pairs; body -1 is the world. Shapes of role "visual" are skipped.
        bodies: number of bodies.
        static: per body, whether it never moves; such bodies touch neither each other nor the world.
        ignore: pairs of bodies that never touch.
        groups: per body a number; moving bodies with the same one, unless negative, do not touch each other.
        margin: contacts are reported while the distance is below it, m; see `margins`.
        near: contacts of two bodies closer than this, m, and with similar normals, are merged.
        cored: bodies with cores, balls inside their shapes that keep their middle out of planes however fast they turn.
        names: of the bodies, for messages.

    Attributes:
        margins: per body; contacts of two bodies are reported while the distance is below the sum of theirs. May be
            written at any time.
        core_margins: the same for the cores of bodies and planes.
        scene, found: arrays of the scene and of the contacts of the last detection, for kernels.

    Raises:
        InputError: an argument is unusable or a shape cannot collide; the message names the body.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, Shape]],
        bodies: int,
        *,
        static: NDArray[np.bool_],
        ignore: Iterable[tuple[int, int]] = (),
        groups: NDArray[np.int64] | None = None,
        margin: float = 0.0,
        near: float = 0.0,
        cored: Collection[int] = (),
        names: Sequence[str] | None = None,
    ):
        self._names, self._near = names, float(near)
        self._shapes = [shape for _, shape in shapes]
        self._height_field = np.array([shape.kind == "height field" for shape in self._shapes], dtype=bool)
        self._shape_body = np.array([body for body, _ in shapes], dtype=np.int64)
        self._bodies = bodies
        still = np.asarray(static, dtype=bool)
        if still.shape != (bodies,):
            raise InputError(
                f"static: one flag for each of {bodies} bodies expected, got shape {still.shape}"
            )
        if groups is not None and np.shape(groups) != (bodies,):
            raise InputError(
                f"groups: one number for each of {bodies} bodies expected, got shape {np.shape(groups)}"
            )
        if names is not None and len(names) != bodies:
            raise InputError(f"{len(names)} names for {bodies} bodies")
        if not 0 <= margin < np.inf:
            raise InputError(f"the margin of contact is a distance of 0 or more, not {brief(margin)}")
        pairs = [(operator.index(a), operator.index(b)) for a, b in ignore]
        for body in [*(b for b, _ in shapes), *(b for pair in pairs for b in pair)]:
            if not -1 <= body < bodies:
                raise InputError(f"no body {body}: there are {bodies}, and the world, -1")
        self._made = make_scene(shapes, still, pairs, self._name, groups, cored)
        self.found = make_found(64)
        self.margins = np.full(bodies, 0.5 * margin)
        self.core_margins = np.full(bodies, 0.5 * margin)
        self._of_world = 0.5 * margin
        # The broad phase lists pairs of bodies, in the worst case all of them.
        memory = _MEMORY + 8 * len(self._made.body) ** 2
        # Compiled code cannot handle a lack of memory: it needs an arena for the contacts of all pairs.
        most = _PAIR * self._pairs(still)
        self._most = most if most * _RECORD <= _MOST_KEPT else None
        self._allocate(memory + (most * _RECORD if self._most is not None else 0))

    def _pairs(self, still: NDArray[np.bool_]) -> int:
        """Number of pairs of geoms of which at least one moves."""
        body = self._made.geom_body
        moving = int((~still[body] & (body >= 0)).sum())
        return moving * (len(body) - moving) + moving * (moving - 1) // 2

    def _allocate(self, memory: int) -> None:
        """Compile the scene with an arena of `memory` bytes."""
        made = self._made
        self._memory = memory
        self._model = model = compiled(made, memory)
        model.geom_margin[:] = model.body_margin[:] = self._of_world
        self._data = data = mujoco.MjData(model)
        self._warned = data.warning.number
        # Poses of geoms are those of the compiled model: MuJoCo moves a mesh into its principal axes.
        rotation = np.empty((model.ngeom, 9))
        for g in range(model.ngeom):
            mujoco.mju_quat2Mat(rotation[g], model.geom_quat[g])
        self._local = np.concatenate([rotation.reshape(-1, 3, 3), model.geom_pos[:, :, None]], axis=2)
        # Frames of what belongs to the world are written once.
        data.xipos[:], data.ximat[:] = 0.0, np.eye(3).ravel()
        data.geom_xpos[:], data.geom_xmat[:] = model.geom_pos, rotation
        self.scene = Scene(
            margins=self.margins, core_margins=self.core_margins, body=made.body, core=made.core, xipos=data.xipos,
            ximat=data.ximat, body_margin=model.body_margin, local=self._local, geom_body=made.geom_body,
            geom_shape=made.geom_shape, geom_core=made.geom_core, xpos=data.geom_xpos, xmat=data.geom_xmat,
            geom_margin=model.geom_margin, height_field=self._height_field, shape_body=self._shape_body,
            **self._single_pairs(),
        )  # fmt: skip

    def _single_pairs(self) -> dict[str, Any]:
        """Pairs of shapes that kernels look at one by one; none of them if there are many.

        The tiles of a height field count as one, the first of them: all their triangles are in the field's heights.
        """
        model, made = self._model, self._made
        kind, size = model.geom_type, model.geom_size
        extents = np.zeros((model.ngeom, _round.EXTENT_SIZE))
        extents[:, _round.HALF], extents[:, _round.RADIUS] = -1.0, model.geom_rbound
        extents[:, _round.MIDDLE :] = model.geom_aabb
        spheres, capsules = kind == _SPHERE, kind == _CAPSULE
        extents[spheres, _round.HALF], extents[capsules, _round.HALF] = 0.0, size[capsules, 1]
        extents[capsules, _round.RADIUS] = size[capsules, 0]
        fields, heights, place = [], [np.zeros(0)], {}
        for g in np.flatnonzero(kind == _HEIGHT_FIELD).tolist():
            shape = self._shapes[made.geom_shape[g]]
            if made.geom_shape[g] not in place:
                place[made.geom_shape[g]] = len(fields)
                own = shape.heights
                offset = shape.pose[:3, :3].T @ (self._local[g, :, 3] - shape.pose[:3, 3])
                start = sum(map(len, heights))
                fields.append([*own.shape, start, *shape.size[:2], own.max(), *offset])
                heights.append(own.ravel())
        pairs = self._touching_pairs(extents, place) if model.ngeom <= _FEW_GEOMS else []
        table = np.array(pairs if len(pairs) <= _FEW_PAIRS else [], dtype=np.int64)
        return {
            "pairs": table.reshape(-1, _round.PAIR_SIZE),
            "extents": extents,
            "fields": np.array(fields, dtype=np.float64).reshape(-1, _round.FIELD_SIZE),
            "heights": np.concatenate(heights),
        }

    def _touching_pairs(self, extents: Floats, place: dict[int, int]) -> list[tuple[int, ...]]:
        """Pairs of geoms that may touch, as `_round` has them, by bodies; a height field is its first geom.

        None if there are too many.
        """
        model, made = self._model, self._made
        kind, body = model.geom_type, model.geom_bodyid
        weld = model.body_weldid[body]
        bits = (model.geom_contype[:, None] & model.geom_conaffinity) != 0
        may = np.triu((bits | bits.T) & (weld[:, None] != weld), 1)
        if may.sum() > _COUNTED:
            return []
        excluded = set(model.exclude_signature.tolist())
        first = {shape: int(np.argmax(made.geom_shape == shape)) for shape in place}
        out = set()
        for a, b in np.argwhere(may).tolist():
            if {(body[a] << 16) + body[b], (body[b] << 16) + body[a]} & excluded:
                continue
            if kind[a] > kind[b] or (
                kind[a] == kind[b] and extents[a, _round.RADIUS] > extents[b, _round.RADIUS]
            ):
                a, b = b, a
            if kind[a] == _PLANE:
                out.add((_round.PLANE, b, a, 0))
            elif kind[a] == _HEIGHT_FIELD:
                shape = int(made.geom_shape[a])
                out.add((_round.GROUND, b, first[shape], place[shape]))
            elif kind[a] == _SPHERE and kind[b] <= _CAPSULE:
                out.add((_round.BALLS, a, b, 0))
            else:
                out.add((_round.OTHERS, a, b, 0))
        own = made.geom_body
        return sorted(out, key=lambda p: (*sorted((own[p[1]], own[p[2]])), *p[1:3]))

    def _name(self, body: int) -> str:
        if body < 0:
            return "world"
        return self._names[body] if self._names is not None else str(body)

    def boxes(self) -> Floats:
        """Centre and half extents of a box around all shapes of each body, in its frame, (bodies, 6)."""
        low, high = np.full((self._bodies, 3), np.inf), np.full((self._bodies, 3), -np.inf)
        around, local = self._model.geom_aabb, self._local
        half = (np.abs(local[:, :, :3]) @ around[:, 3:, None])[:, :, 0]
        middle = (local[:, :, :3] @ around[:, :3, None])[:, :, 0] + local[:, :, 3]
        own = self._made.geom_body >= 0
        np.minimum.at(low, self._made.geom_body[own], (middle - half)[own])
        np.maximum.at(high, self._made.geom_body[own], (middle + half)[own])
        bare = ~np.isfinite(low)
        low[bare] = high[bare] = 0.0
        return np.concatenate([0.5 * (low + high), 0.5 * (high - low)], axis=1)

    def detect(self, poses: Floats) -> Contacts:
        """The contacts of bodies at `poses` (bodies, 4, 4), world. They are overwritten by the next call.

        Raises:
            InputError: a pose is not finite or holds no rotation, or there are too many contacts for any memory.
        """
        if poses.shape != (self._bodies, 4, 4):
            raise InputError(f"poses of shape {(self._bodies, 4, 4)} expected, got {poses.shape}")
        poses = np.require(poses, np.float64, ["C", "W"])  # kernels are compiled for such arrays
        while True:
            self.place(poses)
            count = _detect.find(self.scene, self.found)
            if count > self.capacity:
                self.reserve(count)
            elif count >= 0 or self._collide():
                break
            else:
                self._grow()
        if count < 0:
            count, contact = self._data.ncon, self._data.contact
            self.reserve(count)
            fields = (
                np.ascontiguousarray(x) for x in (contact.geom, contact.pos, contact.frame, contact.dist)
            )
            _detect.collect(count, *fields, self.scene, self.found)
        return Contacts(self.found, _detect.merge(count, self._near, self.scene, self.found))

    def place(self, poses: Floats) -> None:
        """Tell MuJoCo poses and margins of all bodies.

        Raises:
            InputError: a pose is not finite.
        """
        bad = _detect.place(self.scene, poses)
        if bad >= 0:
            raise self.not_finite(bad)

    def not_finite(self, body: int) -> InputError:
        """The error of a body whose pose is not finite, or no rotation."""
        return InputError(
            f"body '{self._name(body)}': its pose is not finite, or holds no rotation, so contact cannot be detected; "
            "a smaller time step or softer springs may help"
        )

    @property
    def capacity(self) -> int:
        """Number of contacts that `found` has room for."""
        return len(self.found.first)

    def reserve(self, count: int) -> None:
        """Make room for `count` contacts."""
        if count > self.capacity:
            self.found = make_found(2 * count)

    def native(self) -> Native | None:
        """MuJoCo's arrays for compiled code; None if they are not found, or memory might not suffice."""
        if self._most is None:
            return None
        return records.attach(self._model, self._data, self._most)

    def _collide(self) -> bool:
        """Run MuJoCo's collider; False if its memory was too small."""
        with quiet():
            try:
                mujoco.mj_collision(self._model, self._data)
            except mujoco.FatalError as error:
                if "out of memory" not in str(error):
                    raise InputError(f"MuJoCo cannot tell where these bodies touch: {error}") from None
                return False
        return not self._warned[_FULL]

    def _grow(self) -> None:
        if self._memory >= _MOST_MEMORY:
            raise InputError(
                f"more contacts than {self._memory >> 30} GiB can hold: are bodies at the same place? "
                "Move them apart, or pass the pairs that may overlap in `ignore`"
            )
        self._allocate(4 * self._memory)
