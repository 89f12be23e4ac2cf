"""`Stage` and `Overlay`: the 3-D contents of a viser server.

The stage is a mechanism as a few batched meshes, with a floor, lights and a camera that sees all of it. The overlay is
drawn over it: arrows of pulls and contact forces, a compliance ellipsoid, a target handle.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.mechanism import Mechanism
from pliant.text import FORCES, round_down, unit_for
from pliant.viewer.meshes import Part, bounds, box_mesh, linear, make_parts, place_parts, sphere_mesh

if TYPE_CHECKING:
    from pliant.engines.simulation import Pull
    from pliant.viewer.session import Contacts, Ellipsoid, Turn

__all__ = ["CAMERAS", "Overlay", "Stage", "copy_colours", "floor_cell", "force_text", "silence"]

Floats = NDArray[np.float64]
_MANY = 2000  # copies: beyond this, no shadows
_RESOLVED = 100  # links across the picture that can be told apart
_FADED = 0.45  # opacity
_FIELD_OF_VIEW = 0.75  # rad, vertical
_GRID, _GRID_SECTION = (222, 226, 232), (196, 203, 213)
_SELECTED = np.array([255.0, 67.0, 5.0])  # tint of a selected body, linear
_ACTIVE = np.array([190.0, 5.0, 70.0])  # of a body whose joint moves, linear
_PALE, _PALENESS = np.array([155.0, 162.0, 172.0]), 0.8  # tint of the others, linear, and its share

_PULL, _CONTACT, _TURN = (198, 40, 40), (46, 139, 87), (142, 36, 170)
_SOFT, _INERTIA = np.array([1.0, 0.6, 0.0]), np.array([0.27, 0.43, 0.75])
_MOST_FRAMES = 2000  # bodies: beyond this, frames and inertia are shown of the first
_SHORTEST_BOX = 0.002  # of the stage's size: edges of an inertia box, so that thin ones are seen
CAMERAS = {
    "Corner": (0.62, -0.95, 0.55),
    "Front": (0.0, -1.0, 0.0),
    "Side": (1.0, 0.0, 0.0),
    "Top": (0.0, -1e-3, 1.0),
}  # directions from what is seen to the camera
_LONGEST_AXIS = 0.3  # of the stage's size: the longest axis of an ellipsoid
_LONGEST_ARROW = 0.5  # of the stage's size: the largest contact force
_SHORTEST_ARROW = 0.03  # of the longest: smaller contact forces are not drawn
_DECAY = 0.02  # per frame: decay of the largest contact force, which scales the arrows


class Stage:
    """A mechanism drawn in a viser server.

    Attributes:
        mechanism: the mechanism.
        handles: viser handles of its batched meshes.
        size: radius of a sphere around it at the poses first drawn, m.
        centre: centre of that sphere, world, m.
    """

    def __init__(self, server: Any, mechanism: Mechanism, poses: Floats | None = None, distance: float = 1.0):
        """Draw a mechanism.

        Args:
            server: a `viser.ViserServer`.
            mechanism: the mechanism.
            poses: world poses of its bodies, (bodies, 4, 4); the reference poses if None.
            distance: of the camera at first; 1: the mechanism just fits.
        """
        self.server, self.mechanism = server, mechanism
        at = mechanism.reference_poses if poses is None else poses
        self._parts = make_parts(mechanism)
        low, high = bounds(self._parts, at)
        self.centre, self.size = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
        self._selected = np.zeros(mechanism.body_count)
        self._active: Floats | None = None
        self._many = sum(len(part.body) for part in self._parts) > _MANY
        self.handles = [
            self._add_part(i, part, *placed)
            for i, (part, placed) in enumerate(zip(self._parts, self._placed(at), strict=True))
        ]
        self._add_floor(low[2])
        self._add_lights()
        self._set_camera(distance)

    def _placed(self, poses: Floats) -> list[list[NDArray[np.float32]]]:
        return [[a.astype(np.float32) for a in placed] for placed in place_parts(self._parts, poses)]

    def _add_part(self, i: int, part: Part, position: NDArray[np.float32], wxyz: NDArray[np.float32]) -> Any:
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
            lod="off",  # `make_parts` has chosen the resolution
            flat_shading=part.flat,
            side="double" if part.two_sided else "front",
            cast_shadow=not self._many and not part.ground,
            receive_shadow=False,  # the floor does; round surfaces would be striped
        )

    def update(self, poses: Floats) -> None:
        """Move bodies to poses, (bodies, 4, 4): only arrays are sent, once for all clients."""
        with self.server.atomic():
            for handle, (position, wxyz) in zip(self.handles, self._placed(poses), strict=True):
                handle.batched_positions = position
                handle.batched_wxyzs = wxyz

    def body(self, handle: Any, instance: int | None) -> int:
        """Index of the body that an instance of one of the `handles` belongs to; -1 the world, or none."""
        for part, known in zip(self._parts, self.handles, strict=True):
            if known.name == handle.name and instance is not None and 0 <= instance < len(part.body):
                return int(part.body[instance])
        return -1

    def select(self, shades: Floats) -> None:
        """Tint selected bodies: one shade from 0 to 1 per body, (bodies,)."""
        changed, self._selected = shades != self._selected, shades
        self._colour(changed)

    def highlight(self, shades: Floats | None) -> None:
        """Colour bodies that move by one shade from 0 to 1 per body, (bodies,), others pale; own colours if None.

        Colours of meshes without a change are not sent.
        """
        before, self._active = self._active, shades
        if before is None or shades is None:
            self._colour(np.full(len(self._selected), before is not shades))
        else:
            self._colour(shades != before)

    def _colour(self, changed: NDArray[np.bool_]) -> None:
        """Send colours of the meshes of which copies belong to changed bodies, (bodies,)."""
        if not changed.any():
            return
        changed, selected = (
            np.append(changed, False),
            np.append(self._selected, 0.0),
        )  # body -1, the world, is last
        moves = None if self._active is None else np.append(self._active, 0.0)
        with self.server.atomic():
            for part, handle in zip(self._parts, self.handles, strict=True):
                body = part.body
                if not changed[body].any():
                    continue
                colour = _colours(part).astype(np.float64)
                if moves is not None:
                    pale = np.where(body < 0, 0.0, _PALENESS)[:, None]
                    colour += pale * (_PALE - colour)
                    colour += moves[body][:, None] * (_ACTIVE - colour)
                colour += selected[body][:, None] * (_SELECTED - colour)
                handle.batched_colors = np.round(colour).astype(np.uint8)

    def fade(self, on: bool) -> None:
        """Make opaque bodies translucent, or opaque again."""
        for part, handle in zip(self._parts, self.handles, strict=True):
            if part.rgba[:, 3].min() >= 1:
                handle.opacity = _FADED if on else None

    def _add_floor(self, height: float) -> None:
        cell = floor_cell(self.size)
        self.server.scene.add_grid(
            "/floor",
            cell_size=cell,
            section_size=5 * cell,
            cell_color=_GRID,
            section_color=_GRID_SECTION,
            cell_thickness=0.8,
            section_thickness=1.2,
            shadow_opacity=0.2,
            infinite_grid=True,
            fade_distance=float(16 * self.size),
            fade_strength=1.5,
            position=(*np.round(self.centre[:2] / cell) * cell, height - 0.002 * self.size),
        )

    def _add_lights(self) -> None:
        """Sky and sun; viser's default lights wash out the colours of shapes."""
        scene = self.server.scene
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

    def _set_camera(self, distance: float) -> None:
        """Look from the front, right and above; of thousands of links, only as many are seen as can be told apart."""
        if self._many:
            sizes = [p.scale.max(axis=1) * np.abs(p.vertices).max() for p in self._parts if len(p.vertices)]
            distance *= float(np.clip(_RESOLVED * np.median(np.concatenate(sizes)) / self.size, 0.1, 1.0))
        self._distance = distance
        camera = self.server.initial_camera
        camera.position = self._place("Corner", self.centre, self.size)
        camera.look_at, camera.up = self.centre, (0.0, 0.0, 1.0)
        camera.fov = _FIELD_OF_VIEW
        camera.near, camera.far = 0.002 * self.size, 200.0 * self.size

    def _place(self, name: str, centre: Floats, size: float) -> Floats:
        """Where a camera of `CAMERAS` stands so that a sphere fits into its picture."""
        direction = np.array(CAMERAS[name])
        metres = 1.05 * self._distance * size / np.sin(_FIELD_OF_VIEW / 2)
        return centre + metres * direction / np.linalg.norm(direction)

    def aim(self, client: Any, name: str, poses: Floats) -> None:
        """Move the camera of a client to one of `CAMERAS`, from which all is seen with bodies at poses."""
        low, high = bounds(self._parts, poses)
        centre, size = (low + high) / 2, float(np.linalg.norm(high - low)) / 2
        camera = client.camera
        narrow = min(1.0, camera.image_width / max(camera.image_height, 1))
        place = self._place(name, centre, size)
        with client.atomic():
            camera.near, camera.far, camera.fov = 0.002 * self.size, 200.0 * self.size, _FIELD_OF_VIEW
            camera.up_direction = (0.0, 0.0, 1.0)
            camera.position, camera.look_at = centre + (place - centre) / max(narrow, 0.1), centre


def floor_cell(size: float) -> float:
    """Cell of the floor's grid for a sphere of this radius, m: 1, 0.5, 0.1, ... so that lengths can be read off."""
    cell = 10.0 ** np.floor(np.log10(max(size, 1e-9)))
    return float(cell / 2 if size < 2 * cell else cell)


def _colours(part: Part) -> NDArray[np.uint8]:
    return copy_colours(0.06 + 0.94 * part.rgba[:, :3])  # black surfaces show their shading, too


def copy_colours(colours: Floats) -> NDArray[np.uint8]:
    """Colours of copies of a mesh for viser, which takes them for linear ones, from sRGB colours from 0 to 1."""
    return np.round(255 * linear(colours)).astype(np.uint8)


class Overlay:
    """Arrows, labels, frames, inertia boxes, an ellipsoid and a target handle in a viser server.

    Attributes:
        target: the target handle, a transform control without rotations.
    """

    def __init__(self, server: Any, size: float):
        """Add everything, invisible, for a stage of radius `size`, m."""
        self._scene, self._size = server.scene, size
        self._pulls = self._add_arrows("/pulls/arrows", _PULL, 0.008, 0.022, 0.06)
        self._contacts = self._add_arrows("/contacts", _CONTACT, 0.01, 0.028, 0.07)
        self._turns = self._add_arrows("/turns", _TURN, 0.012, 0.034, 0.08)
        self._frames: Any = None
        self._boxes: Any = None
        self._largest = 0.0  # contact force of the last frames, N
        self._labels: dict[Hashable, Any] = {}
        vertices, faces = sphere_mesh(32)
        self._ellipsoid = self._scene.add_batched_meshes_simple(
            "/ellipsoid",
            vertices,
            faces,
            np.array([[1.0, 0, 0, 0]]),
            np.zeros((1, 3)),
            batched_scales=np.ones((1, 3), dtype=np.float32),
            batched_colors=copy_colours(_SOFT),
            opacity=0.45,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
            visible=False,
        )
        self.target = self._scene.add_transform_controls(
            "/target", scale=0.35 * size, disable_rotations=True, depth_test=False, visible=False
        )

    def _add_arrows(
        self, name: str, colour: tuple[int, ...], shaft: float, head: float, length: float
    ) -> Any:
        """Arrows with radii of shaft and head and length of the head relative to the stage's size."""
        return self._scene.add_arrows(
            name,
            np.zeros((1, 2, 3)),
            colour,
            shaft_radius=shaft * self._size,
            head_radius=head * self._size,
            head_length=length * self._size,
            visible=False,
        )

    def show_pulls(self, pulls: Mapping[Hashable, Pull], poses: Floats) -> None:
        """Show an arrow from the point of every pull to its target, labelled with its force; bodies are at `poses`."""
        for key in [key for key in self._labels if key not in pulls]:
            self._labels.pop(key).remove()
        if pulls:
            # An arrow of zero length has no direction.
            places = [(pull.at(poses), pull.target) for pull in pulls.values()]
            ends = [(at, np.where(target == at, target + 1e-6, target)) for at, target in places]
            self._pulls.points = np.array(ends, dtype=np.float32)
        self._pulls.visible = bool(pulls)
        for i, (key, pull) in enumerate(pulls.items()):
            text = f"{pull.body}  {force_text(pull.force)}"
            if key not in self._labels:
                self._labels[key] = self._scene.add_label(
                    f"/pulls/label{i}_{abs(hash(key))}", text, position=pull.target, anchor="bottom-center"
                )
            label = self._labels[key]
            label.text, label.position = text, pull.target

    def show_turns(self, turns: Mapping[Hashable, Turn], poses: Floats) -> None:
        """Show an arrow along every torque, right-handed, at the origin of its body; the largest is longest."""
        acting = [turn for turn in turns.values() if turn.torque.any()]
        self._turns.visible = bool(acting)
        if acting:
            longest = max(float(np.linalg.norm(turn.torque)) for turn in acting)
            ends = []
            for turn in acting:
                at = poses[turn.index, :3, 3]
                ends.append((at, at + _LONGEST_ARROW * self._size / longest * turn.torque))
            self._turns.points = np.array(ends, dtype=np.float32)

    def show_frames(self, poses: Floats | None) -> None:
        """Show the frames of bodies: x red, y green, z blue; none if None."""
        if poses is None:
            if self._frames is not None:
                self._frames.visible = False
            return
        at = poses[:_MOST_FRAMES]
        wxyz, position = spatial.quat_from_matrix(at[:, :3, :3]), at[:, :3, 3]
        if self._frames is None:
            length = 0.18 * self._size / max(1.0, len(at) / 20) ** (1 / 3)
            self._frames = self._scene.add_batched_axes(
                "/frames", wxyz, position, axes_length=length, axes_radius=0.05 * length
            )
        self._frames.batched_wxyzs, self._frames.batched_positions = (
            wxyz.astype(np.float32),
            position.astype(np.float32),
        )
        self._frames.visible = True

    def show_inertia(self, mechanism: Mechanism, poses: Floats | None) -> None:
        """Show the box of uniform density with mass and inertia of every body; none if poses are None."""
        if poses is None:
            if self._boxes is not None:
                self._boxes.visible = False
            return
        n = min(len(poses), _MOST_FRAMES)
        if self._boxes is None:
            self._box_size, self._box_axes = _inertia_boxes(mechanism, n)
            vertices, faces = box_mesh()
            self._boxes = self._scene.add_batched_meshes_simple(
                "/inertia",
                vertices,
                faces,
                np.tile([1.0, 0, 0, 0], (n, 1)),
                np.zeros((n, 3)),
                batched_scales=np.maximum(self._box_size / 2, _SHORTEST_BOX * self._size).astype(np.float32),
                batched_colors=copy_colours(_INERTIA),
                opacity=0.4,
                lod="off",
                flat_shading=True,
                cast_shadow=False,
                receive_shadow=False,
            )
        turn, at = poses[:n, :3, :3], poses[:n, :3, 3]
        self._boxes.batched_positions = (np.einsum("nij,nj->ni", turn, mechanism.com[:n]) + at).astype(
            np.float32
        )
        self._boxes.batched_wxyzs = spatial.quat_from_matrix(turn @ self._box_axes).astype(np.float32)
        self._boxes.visible = True

    def show_contacts(self, found: Contacts | None) -> None:
        """Show contact forces as arrows from the contact points, scaled by the largest of the last frames, or none."""
        now = 0.0 if found is None else found.largest
        self._largest = max(now, self._largest + _DECAY * (now - self._largest))
        if found is None or not now > 0:
            self._contacts.visible = False
            return
        reach = _LONGEST_ARROW * self._size
        arrows = found.forces * (reach / self._largest)
        long = np.linalg.norm(arrows, axis=1) > _SHORTEST_ARROW * reach
        ends = np.stack([found.points, found.points + arrows], axis=1)[long]
        self._contacts.points = ends.astype(np.float32)
        self._contacts.visible = bool(long.any())

    def show_ellipsoid(self, shape: Ellipsoid | None, pose: Floats | None) -> float:
        """Show the compliance ellipsoid of a body at a pose, or none.

        Returns the force whose displacements in all directions the ellipsoid is, N.
        """
        if shape is None or pose is None or not shape.compliance[0] > 0:
            self._ellipsoid.visible = False
            return 0.0
        force = round_down(_LONGEST_AXIS * self._size / float(shape.compliance[0]))
        lengths = np.maximum(force * shape.compliance, 0.004 * self._size)  # rigid directions stay visible
        self._ellipsoid.batched_scales = lengths[None].astype(np.float32)
        self._ellipsoid.batched_positions = pose[None, :3, 3].astype(np.float32)
        turn = spatial.quat_from_matrix(pose[:3, :3] @ shape.axes)
        self._ellipsoid.batched_wxyzs = turn[None].astype(np.float32)
        self._ellipsoid.visible = True
        return force


def _inertia_boxes(m: Mechanism, n: int) -> tuple[Floats, Floats]:
    """Edges, m, (n, 3), and principal axes, (n, 3, 3), of boxes with the inertia of bodies: I_x = m (b² + c²) / 12."""
    moments, axes = np.linalg.eigh(m.inertia[:n])
    axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]
    squares = 6 * (moments.sum(axis=1, keepdims=True) - 2 * moments) / np.maximum(m.mass[:n, None], 1e-300)
    return np.sqrt(np.maximum(squares, 0.0)), axes


def force_text(force: Floats) -> str:
    """Magnitude of a force vector (3,), with its unit."""
    size = float(np.linalg.norm(force))
    factor, unit = unit_for(size, FORCES)
    return f"{size / factor:.{4 if unit == 'kN' else 3}g} {unit}"


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Suppress viser's banners on standard output."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
