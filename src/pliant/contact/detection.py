"""Where bodies touch: MuJoCo's collider on a scene of our poses."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import NoReturn

import mujoco
import numpy as np
from numpy.typing import NDArray

from pliant.contact import _kernels
from pliant.contact.native import Native, attach
from pliant.contact.scene import compiled, make_scene, quiet
from pliant.errors import InputError
from pliant.shapes import Shape

__all__ = ["Collider", "Contacts"]

Floats = NDArray[np.float64]
_FULL = int(mujoco.mjtWarning.mjWARN_CONTACTFULL)
_MEMORY = 1 << 24  # bytes at first; the system provides what is touched
_MOST_MEMORY = 1 << 36
_PAIR = 50  # contacts that MuJoCo reports of two geoms at most
_RECORD = 1 << 10  # bytes; a contact takes less
_MOST_KEPT = 1 << 28  # bytes of contacts that are all made room for


class Contacts:
    """Points at which bodies touch, one per row. The next `detect` overwrites them; `copy` keeps them.

    Attributes:
        count: how many.
        first, second: the bodies, (n,); -1 is the world. `first` is the lower index.
        point: midway between the two surfaces, world, (n, 3).
        normal: unit vector from `first` to `second`, world, (n, 3).
        distance: between the surfaces, negative where they penetrate, (n,).
        shape_first, shape_second: which of the collider's shapes, (n,).
    """

    def __init__(self, capacity: int = 64):
        self._reserve(capacity)
        self._show(0)

    def _reserve(self, capacity: int) -> None:
        self._whole = tuple(np.empty((4, capacity), dtype=np.int64))
        self._real = (*np.empty((2, capacity, 3)), np.empty(capacity))
        self._buffers = (*self._whole, *self._real, np.empty(capacity, dtype=np.int64))

    def _show(self, count: int) -> None:
        self.count = count
        first, second, shape_first, shape_second = self._whole
        self.first, self.second = first[:count], second[:count]
        self.shape_first, self.shape_second = shape_first[:count], shape_second[:count]
        point, normal, distance = self._real
        self.point, self.normal, self.distance = point[:count], normal[:count], distance[:count]

    def copy(self) -> Contacts:
        """The same contacts, kept."""
        out = Contacts(self.count)
        for own, other in zip(out._buffers, self._buffers, strict=True):
            own[:] = other[: self.count]
        out._show(self.count)
        return out

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<Contacts: {self.count}>"


class Collider:
    """Finds where shapes touch.

    A mesh touches with its convex hull, a plane with its whole half space whatever its extents. Planes and height
    fields do not touch each other.

    Args:
        shapes: (body, shape) pairs; body -1 is the world. Shapes that are only to look at are skipped.
        bodies: number of bodies.
        static: per body, whether it never moves; such bodies touch neither each other nor the world.
        ignore: pairs of bodies that never touch.
        groups: per body a number; moving bodies with the same one, unless negative, do not touch each other.
        margin: contacts are reported while the distance is below it, m; see `margins`.
        near: contacts of two bodies that are less far apart, m, and alike, are reported once.
        cored: bodies whose middle is not to get into a plane, however fast they turn.
        names: of the bodies, for messages.

    Attributes:
        margins: per body; contacts of two bodies are reported while the distance is below the sum of theirs. May be
            written at any time.
        wanted: the same for the middle of `cored` bodies and planes.

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
        self._names = names
        self.near = float(near)
        self._field = np.array([shape.kind == "height field" for _, shape in shapes], dtype=bool)
        self.shape_body = np.array([body for body, _ in shapes], dtype=np.int64)
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
            raise InputError(f"the margin of contact is a distance of 0 or more, not {margin!r}")
        pairs = [(operator.index(a), operator.index(b)) for a, b in ignore]
        for body in [*(b for b, _ in shapes), *(b for pair in pairs for b in pair)]:
            if not -1 <= body < bodies:
                raise InputError(f"no body {body}: there are {bodies}, and the world, -1")
        self._scene = make_scene(shapes, still, pairs, self._name, groups, cored)
        self._contacts = Contacts()
        self.margins = np.full(bodies, 0.5 * margin)
        self.wanted = np.full(bodies, 0.5 * margin)
        self._of_world = 0.5 * margin
        # Broad phase lists pairs of bodies, in the worst case all of them.
        memory = _MEMORY + 8 * len(self._scene.body) ** 2
        # Compiled code could not be told of a lack of memory: there, all that may touch has to fit in.
        most = _PAIR * self._pairs(still)
        self._most = most if most * _RECORD <= _MOST_KEPT else None
        self._allocate(memory + (most * _RECORD if self._most is not None else 0))

    def _pairs(self, still: NDArray[np.bool_]) -> int:
        """How many pairs of geoms there are in which something moves."""
        body = self._scene.geom_body
        moving = int((~still[body] & (body >= 0)).sum())
        return moving * (len(body) - moving) + moving * (moving - 1) // 2

    def _allocate(self, memory: int) -> None:
        """Compile the scene with an arena of so many bytes."""
        scene = self._scene
        self._memory = memory
        self._model = model = compiled(scene, memory)
        model.geom_margin[:] = model.body_margin[:] = self._of_world
        self._data = data = mujoco.MjData(model)
        self._warned = data.warning.number
        # MuJoCo moves a mesh into its principal axes: where a geom is on its body is the model's to say.
        rotation = np.empty((model.ngeom, 9))
        for g in range(model.ngeom):
            mujoco.mju_quat2Mat(rotation[g], model.geom_quat[g])
        self._local = np.concatenate([rotation.reshape(-1, 3, 3), model.geom_pos[:, :, None]], axis=2)
        # What belongs to the world is placed here, once.
        data.xipos[:], data.ximat[:] = 0.0, np.eye(3).ravel()
        data.geom_xpos[:], data.geom_xmat[:] = model.geom_pos, rotation
        self._frames = (
            scene.core,
            data.xipos,
            data.ximat,
            self._local,
            scene.geom_body,
            scene.geom_core,
            data.geom_xpos,
            data.geom_xmat,
            model.body_margin,
            model.geom_margin,
        )

    def _name(self, body: int) -> str:
        if body < 0:
            return "world"
        return self._names[body] if self._names is not None else str(body)

    def boxes(self) -> Floats:
        """Middle and half extents of a box around all shapes of a body, in its frame, per body, (bodies, 6)."""
        low, high = np.full((self._bodies, 3), np.inf), np.full((self._bodies, 3), -np.inf)
        around, local = self._model.geom_aabb, self._local
        half = (np.abs(local[:, :, :3]) @ around[:, 3:, None])[:, :, 0]
        middle = (local[:, :, :3] @ around[:, :3, None])[:, :, 0] + local[:, :, 3]
        own = self._scene.geom_body >= 0
        np.minimum.at(low, self._scene.geom_body[own], (middle - half)[own])
        np.maximum.at(high, self._scene.geom_body[own], (middle + half)[own])
        bare = ~np.isfinite(low)
        low[bare] = high[bare] = 0.0
        return np.concatenate([0.5 * (low + high), 0.5 * (high - low)], axis=1)

    def detect(self, poses: Floats) -> Contacts:
        """The contacts of bodies at `poses` (bodies, 4, 4), world. They are overwritten by the next call.

        Raises:
            InputError: a pose is not finite, or there are too many contacts for any memory.
        """
        if poses.shape != (self._bodies, 4, 4):
            raise InputError(f"poses of shape {(self._bodies, 4, 4)} expected, got {poses.shape}")
        poses = np.require(poses, np.float64, ["C", "W"])  # kernels are compiled for such arrays
        contacts = self._contacts
        while True:
            bad = _kernels.place(poses, self.margins, self.wanted, self._scene.body, *self._frames)
            if bad >= 0:
                self.refuse(bad)
            if self._collide():
                break
            self._grow()
        data = self._data
        count = data.ncon
        if count:
            self.reserve(count)
            found = data.contact
            _kernels.collect(
                count,
                *(np.ascontiguousarray(part) for part in (found.geom, found.pos, found.frame, found.dist)),
                self._scene.geom_body,
                self._scene.geom_shape,
                *contacts._buffers[:-1],
            )
            count = _kernels.sift(count, self.near, self._field, *contacts._buffers)
        contacts._show(count)
        return contacts

    def refuse(self, body: int) -> NoReturn:
        raise InputError(
            f"body '{self._name(body)}': its pose is not finite, so contact cannot be detected; "
            "a smaller time step or softer springs may help"
        )

    # --- for compiled steps

    @property
    def capacity(self) -> int:
        """Contacts that there is room for."""
        return len(self._contacts._buffers[0])

    def reserve(self, count: int) -> None:
        """Make room for so many contacts."""
        if count > self.capacity:
            self._contacts._reserve(2 * count)

    def native(self) -> Native | None:
        """What compiled code needs to detect contacts; None if it cannot, or might run out of memory."""
        if self._most is None:
            return None
        return attach(self._model, self._data, self._most)

    def scene_arrays(self) -> tuple[NDArray, ...]:
        """What `_kernels.place` takes besides poses, the shapes of geoms, which are height fields, and whose."""
        return (
            self.margins,
            self.wanted,
            self._scene.body,
            *self._frames,
            self._scene.geom_shape,
            self._field,
            self.shape_body,
        )

    def contact_arrays(self) -> tuple[NDArray, ...]:
        """What `_kernels.collect` writes, and room for `sift`."""
        return self._contacts._buffers

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
