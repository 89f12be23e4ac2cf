"""`Overlay`: what is drawn besides the mechanism: arrows of pulls and contacts, an ellipsoid, a target."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.viewer import triangles
from pliant.viewer.measures import Ellipsoid
from pliant.viewer.parts import _indexed
from pliant.viewer.pulls import Pull

if TYPE_CHECKING:
    from pliant.viewer.world_session import Contacts

__all__ = ["Overlay", "newtons"]

Floats = NDArray[np.float64]
_FORCE, _TOUCH, _SOFT = (198, 40, 40), (46, 139, 87), (255, 152, 0)
_LONGEST = 0.3  # of the scene's size: the longest axis of an ellipsoid
_REACH = 0.5  # of the scene's size: the largest contact force
_FORGET = 0.02  # a picture: how soon contact forces that were larger once no longer make the others short
_SHORTEST = 0.03  # of the longest: shorter contact forces are not drawn


class Overlay:
    """Arrows, labels, an ellipsoid and a target in a viser server."""

    def __init__(self, server: Any, size: float):
        """Prepare, for a scene of this radius."""
        self._scene, self._size = server.scene, size
        self._arrows = self._scene.add_arrows(
            "/pulls/arrows",
            np.zeros((1, 2, 3)),
            _FORCE,
            shaft_radius=0.008 * size,
            head_radius=0.022 * size,
            head_length=0.06 * size,
            visible=False,
        )
        self._contacts = self._scene.add_arrows(
            "/contacts",
            np.zeros((1, 2, 3)),
            _TOUCH,
            shaft_radius=0.01 * size,
            head_radius=0.028 * size,
            head_length=0.07 * size,
            visible=False,
        )
        self._largest = 0.0
        self._labels: dict[Hashable, Any] = {}
        vertices, faces = _indexed(triangles._ball(32), "sphere")
        self._ellipsoid = self._scene.add_batched_meshes_simple(
            "/ellipsoid",
            vertices,
            faces,
            np.array([[1.0, 0, 0, 0]]),
            np.zeros((1, 3)),
            batched_scales=np.ones((1, 3), dtype=np.float32),
            batched_colors=_SOFT,
            opacity=0.45,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
            visible=False,
        )
        self.target = self._scene.add_transform_controls(
            "/target", scale=0.35 * size, disable_rotations=True, depth_test=False, visible=False
        )

    def pulls(self, pulls: Mapping[Hashable, Pull]) -> None:
        """Show arrows from where springs pull to where they pull to, with their forces."""
        for key in [key for key in self._labels if key not in pulls]:
            self._labels.pop(key).remove()
        if pulls:
            # An arrow without length has no direction.
            ends = [
                (p.place, np.where(p.target == p.place, p.target + 1e-6, p.target)) for p in pulls.values()
            ]
            self._arrows.points = np.array(ends, dtype=np.float32)
        self._arrows.visible = bool(pulls)
        for i, (key, pull) in enumerate(pulls.items()):
            text = f"{pull.body}  {newtons(pull.force)}"
            if key not in self._labels:
                self._labels[key] = self._scene.add_label(
                    f"/pulls/label{i}_{abs(hash(key))}", text, position=pull.target, anchor="bottom-center"
                )
            label = self._labels[key]
            label.text, label.position = text, pull.target

    def contacts(self, found: Contacts | None) -> None:
        """Show contact forces as arrows from where they act, or none; the largest of late has the full length."""
        now = 0.0 if found is None else found.largest
        self._largest = max(now, self._largest + _FORGET * (now - self._largest))
        if found is None or not now > 0:
            self._contacts.visible = False
            return
        arrows = found.forces * (_REACH * self._size / self._largest)
        long = np.linalg.norm(arrows, axis=1) > _SHORTEST * _REACH * self._size
        self._contacts.points = np.stack([found.points, found.points + arrows], axis=1)[long].astype(
            np.float32
        )
        self._contacts.visible = bool(long.any())

    def ellipsoid(self, shape: Ellipsoid | None, pose: Floats | None) -> float:
        """Show how a body at a pose gives way, or nothing; returns the force that moves it onto the ellipsoid, N."""
        if shape is None or pose is None or not shape.compliance[0] > 0:
            self._ellipsoid.visible = False
            return 0.0
        force = _round(_LONGEST * self._size / float(shape.compliance[0]))
        lengths = np.maximum(force * shape.compliance, 0.004 * self._size)  # what is rigid is a thin sheet
        self._ellipsoid.batched_scales = lengths[None].astype(np.float32)
        self._ellipsoid.batched_positions = pose[None, :3, 3].astype(np.float32)
        turn = spatial.quat_from_matrix(pose[:3, :3] @ shape.axes)
        self._ellipsoid.batched_wxyzs = turn[None].astype(np.float32)
        self._ellipsoid.visible = True
        return force


def newtons(force: Floats) -> str:
    """The size of a force, readable."""
    size = float(np.linalg.norm(force))
    if size >= 10_000:
        return f"{size / 1000:.4g} kN"
    return f"{size:.3g} N" if size >= 0.01 else f"{1000 * size:.3g} mN"


def _round(value: float) -> float:
    """The largest of 1, 2, 5, 10, ... below a value: a force one can remember."""
    decade = 10.0 ** np.floor(np.log10(value))
    return float(max(step * decade for step in (1, 2, 5) if step * decade <= value * (1 + 1e-9)))
