"""`Scene`: a mechanism in a viser server: a few batched meshes, a floor, light, a camera that sees all of it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.mechanism import Mechanism
from pliant.viewer.parts import Part, bounds, make_parts

__all__ = ["Scene", "quiet"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
_MANY = 2000  # copies: beyond this, no shadows
_APART = 100  # links across the picture that can be told apart
_FADED = 0.45  # opacity
_FIELD_OF_VIEW = 0.75  # rad, vertical
_GRID, _GRID_SECTION = (222, 226, 232), (196, 203, 213)


class Scene:
    """A mechanism drawn in a viser server.

    Attributes:
        mechanism: what is drawn.
        size: radius of a sphere around all of it where it was first drawn, m.
        centre: of that sphere.
    """

    def __init__(self, server: Any, mechanism: Mechanism, poses: Floats | None = None, room: float = 1.0):
        """Draw a mechanism.

        Args:
            server: a `viser.ViserServer`.
            mechanism: what to draw.
            poses: of its bodies, (bodies, 4, 4); the reference poses if None.
            room: how far away the camera starts; 1: all is just seen.
        """
        self.server, self.mechanism, self._room = server, mechanism, room
        at = mechanism.reference_poses if poses is None else poses
        self._parts = make_parts(mechanism)
        low, high = bounds(self._parts, at)
        self.centre, self.size = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
        self._many = sum(len(part.body) for part in self._parts) > _MANY
        placed = _placed(self._parts, at)
        self.handles = [
            self._add(i, part, *place)
            for i, (part, place) in enumerate(zip(self._parts, placed, strict=True))
        ]
        self._surroundings(low, high)

    def _add(self, i: int, part: Part, position: Singles, wxyz: Singles) -> Any:
        clear = part.rgba[:, 3].min() < 1
        return self.server.scene.add_batched_meshes_simple(
            f"/mechanism/part{i}",
            part.vertices,
            part.faces,
            batched_positions=position,
            batched_wxyzs=wxyz,
            batched_scales=part.scale.astype(np.float32),
            batched_colors=_colours(part),
            batched_opacities=part.rgba[:, 3].astype(np.float32) if clear else None,
            lod="off",  # the meshes are as coarse as their number asks for
            flat_shading=part.flat,
            side="double" if part.two_sided else "front",
            cast_shadow=not self._many and not part.ground,
            receive_shadow=False,  # the floor does; round surfaces would be striped
        )

    def update(self, poses: Floats) -> None:
        """Move bodies to poses, (bodies, 4, 4): only arrays are sent, once for all clients."""
        with self.server.atomic():
            for handle, (position, wxyz) in zip(self.handles, _placed(self._parts, poses), strict=True):
                handle.batched_positions = position
                handle.batched_wxyzs = wxyz

    def body(self, handle: Any, instance: int | None) -> int:
        """Which body a copy of one of the `handles` belongs to; -1 the world, or what is not there."""
        for part, known in zip(self._parts, self.handles, strict=True):
            if known.name == handle.name and instance is not None and 0 <= instance < len(part.body):
                return int(part.body[instance])
        return -1

    def colour(self, bodies: Floats | None) -> None:
        """Tint bodies: one shade from 0 to 1 per body, (bodies,); their own colours if None."""
        for part, handle in zip(self._parts, self.handles, strict=True):
            own = _colours(part)
            if bodies is not None:
                shade = np.append(bodies, 0.0)[part.body][:, None]
                own = np.round(own * (1 - shade) + np.array([255.0, 140.0, 40.0]) * shade).astype(np.uint8)
            handle.batched_colors = own

    def fade(self, on: bool) -> None:
        """Let what is inside bodies or behind them be seen, or not."""
        for part, handle in zip(self._parts, self.handles, strict=True):
            if part.rgba[:, 3].min() >= 1:  # what is clear already stays as it is
                handle.opacity = _FADED if on else None

    def _surroundings(self, low: Floats, high: Floats) -> None:
        scene, camera = self.server.scene, self.server.initial_camera
        cell = 10.0 ** np.floor(np.log10(max(self.size, 1e-9)))  # 1, 0.1, ... m: lengths can be read off
        cell = cell / 2 if self.size < 2 * cell else cell
        floor = (*np.round(self.centre[:2] / cell) * cell, low[2] - 0.002 * self.size)
        scene.add_grid(
            "/floor",
            cell_size=float(cell),
            section_size=float(5 * cell),
            cell_color=_GRID,
            section_color=_GRID_SECTION,
            cell_thickness=0.8,
            section_thickness=1.2,
            shadow_opacity=0.2,
            infinite_grid=True,
            fade_distance=float(16 * self.size),
            fade_strength=1.5,
            position=floor,
        )
        # viser's own light washes out the colours of shapes.
        scene.configure_environment_map(None)
        scene.configure_default_lights(False)
        scene.add_light_hemisphere(
            "/light/sky", sky_color=(255, 255, 255), ground_color=(150, 152, 165), intensity=1.5
        )
        scene.add_light_directional(
            "/light/sun",
            color=(255, 252, 245),
            intensity=1.9,
            cast_shadow=not self._many,
            position=(-0.35, -0.55, 1.0),
        )
        # From the front, right and above, as far as it takes to see everything.
        direction = np.array([0.62, -0.95, 0.55])
        distance = 1.05 * self._room * self.size * self._nearness() / np.sin(_FIELD_OF_VIEW / 2)
        camera.position = self.centre + distance * direction / np.linalg.norm(direction)
        camera.look_at, camera.up = self.centre, (0.0, 0.0, 1.0)
        camera.fov = _FIELD_OF_VIEW
        camera.near, camera.far = 0.002 * self.size, 200.0 * self.size

    def _nearness(self) -> float:
        """How near to look: of thousands of links, only as many as can be told apart."""
        if not self._many:
            return 1.0
        sizes = [
            part.scale.max(axis=1) * np.abs(part.vertices).max() for part in self._parts if len(part.vertices)
        ]
        return float(np.clip(_APART * np.median(np.concatenate(sizes)) / self.size, 0.1, 1.0))


def _placed(parts: list[Part], poses: Floats) -> list[tuple[Singles, Singles]]:
    world = np.concatenate([poses, np.eye(4)[None]])
    turns = spatial.quat_from_matrix(world[:, :3, :3])
    return [tuple(a.astype(np.float32) for a in part.place(world, turns)) for part in parts]  # type: ignore[misc]


def _colours(part: Part) -> NDArray[np.uint8]:
    lifted = 0.06 + 0.94 * part.rgba[:, :3]  # or black robots would have no form
    return np.round(255 * lifted).astype(np.uint8)


# --- viser's own habits


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No banners on standard output: what starts here is announced by whoever starts it."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
