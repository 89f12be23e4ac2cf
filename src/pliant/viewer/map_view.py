"""`view_map`: a compliance map in the browser: samples in colours, ellipsoids, the mechanism at the chosen sample."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.extras import require
from pliant.mechanism import kinematics
from pliant.text import FORCES, LENGTHS, escape_markdown, unit_for
from pliant.viewer.live import Served
from pliant.viewer.map_picture import PALETTE, ellipsoid_force, spread_out
from pliant.viewer.meshes import sphere_mesh
from pliant.viewer.stage import Stage, copy_colours

if TYPE_CHECKING:
    from pliant.workspace import ComplianceMap

__all__ = ["MapView", "view_map"]

Floats = NDArray[np.float64]
_ELLIPSOIDS = 40
_LONGEST = 0.07  # longest semi-axis of an ellipsoid, of the workspace's size
_THINNEST = 0.03  # least semi-axis, of the longest: flat ellipsoids stay visible
_DOT = 0.008  # radius of a sample, of the workspace's size
_FAR = 0.85  # of the distance from which the workspace just fits
_SOFT, _CHOSEN = (255, 152, 0), (214, 39, 40)


class _Quantity(NamedTuple):
    """A quantity that samples are coloured by."""

    values: Floats
    unit: str
    logarithmic: bool


def view_map(
    found: ComplianceMap, *, host: str = "127.0.0.1", port: int = 8080, block: bool = True
) -> MapView:
    """Show a map in the browser; arguments as for `pliant.view`."""
    shown = MapView(found, host, port)
    if block:
        shown.block()
    return shown


class MapView(Served):
    """A compliance map in the browser; made by `ComplianceMap.view`.

    Attributes:
        map: the map.
        stage: the mechanism.
        sample: the chosen sample, at which the mechanism is shown.
    """

    def __init__(self, found: ComplianceMap, host: str, port: int):
        require("matplotlib")
        super().__init__(f"{found.mechanism.name}: {found.end_effector}", host, port)
        self.map = found
        self.sample = int(found.worst.argmax())
        self._lock = threading.Lock()  # viser calls from several threads
        self.stage = Stage(self._server, found.mechanism, self._poses(self.sample))
        self._size = float(np.linalg.norm(np.ptp(found.position, axis=0))) or 2 * self.stage.size
        self._quantities = _quantities(found)
        self._step_back()
        self._add_samples()
        self._add_ellipsoids()
        self._add_panel()
        self.choose(self.sample)

    def choose(self, sample: int) -> None:
        """Show the mechanism at a sample, and the numbers there."""
        with self._lock, self._server.atomic():
            self.sample = sample
            self.stage.update(self._poses(sample))
            self._place(self._ellipsoid, [sample])
            self._facts.content = _facts(self.map, sample)
            self._slider.value = sample

    def colour(self, name: str) -> None:
        """Colour samples by a quantity: "compliance", "turning compliance", "frequency", "room to limits", "sag"."""
        shown = self._quantities[name]
        low, high = float(np.nanmin(shown.values)), float(np.nanmax(shown.values))
        self._dots.batched_colors = _colours(shown)
        self._legend.content = f"dark {low:.3g} to bright {high:.3g} {shown.unit}" + (
            ", logarithmic" if shown.logarithmic else ""
        )

    def _poses(self, sample: int) -> Floats:
        m = self.map.mechanism
        return kinematics.link_poses(m, self.map.q[sample])[m.links.body_link]

    def _step_back(self) -> None:
        """Move the camera away until all samples are seen."""
        points, centre = self.map.position, self.stage.centre
        reach = float(np.linalg.norm(points - centre, axis=1).max())
        camera = self._server.initial_camera
        camera.position = centre + max(1.0, _FAR * reach / self.stage.size) * (
            np.asarray(camera.position) - centre
        )

    def _add_samples(self) -> None:
        found = self.map
        vertices, faces = sphere_mesh(8)
        count = len(found)
        self._dots = self._server.scene.add_batched_meshes_simple(
            "/samples",
            vertices,
            faces,
            np.tile([1.0, 0, 0, 0], (count, 1)).astype(np.float32),
            found.position.astype(np.float32),
            batched_scales=np.full(count, _DOT * self._size, dtype=np.float32),
            batched_colors=_colours(self._quantities["compliance"]),
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
        )
        self._dots.on_click(
            lambda event: None if event.instance_index is None else self.choose(event.instance_index)
        )

    def _add_ellipsoids(self) -> None:
        """Ellipsoids of samples far from each other, and that of the chosen sample."""
        found = self.map
        self._force = ellipsoid_force(found, _LONGEST * self._size)
        softest = np.argsort(-found.worst, kind="stable")
        few = softest[spread_out(found.position[softest], _ELLIPSOIDS)].tolist()
        self._others = self._add_ellipsoid("/ellipsoids/others", _SOFT, len(few))
        self._ellipsoid = self._add_ellipsoid("/ellipsoids/chosen", _CHOSEN, 1)
        self._place(self._others, few)

    def _add_ellipsoid(self, name: str, colour: tuple[int, ...], count: int) -> Any:
        vertices, faces = sphere_mesh(24)
        return self._server.scene.add_batched_meshes_simple(
            name,
            vertices,
            faces,
            np.tile([1.0, 0, 0, 0], (count, 1)).astype(np.float32),
            np.zeros((count, 3), dtype=np.float32),
            batched_scales=np.ones((count, 3), dtype=np.float32),
            batched_colors=copy_colours(np.array(colour) / 255),
            opacity=0.5,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
        )

    def _place(self, handle: Any, samples: list[int]) -> None:
        """Ellipsoids of displacement under the force, in all directions, at samples."""
        found = self.map.translation
        lengths = self._force * found.compliance[samples]
        axes = found.axes[samples].copy()
        axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]  # right-handed
        handle.batched_positions = self.map.position[samples].astype(np.float32)
        handle.batched_wxyzs = spatial.quat_from_matrix(axes).astype(np.float32)
        handle.batched_scales = np.maximum(lengths, _THINNEST * _LONGEST * self._size).astype(np.float32)

    def _add_panel(self) -> None:
        gui, found = self._server.gui, self.map
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(31, 111, 180))
        gui.main_panel.dock_right()
        gui.add_markdown(f"```\n{found.summary()}\n```\nClick a sample to see the mechanism there.")
        with gui.add_folder("Samples"):
            by = gui.add_dropdown("Colour", tuple(self._quantities), initial_value="compliance")
            self._legend = gui.add_markdown("")
            self._slider = gui.add_slider("Sample", 0, max(1, len(found) - 1), 1, self.sample)
            self._facts = gui.add_markdown("")
        with gui.add_folder("Ellipsoids"):
            factor, unit = unit_for(self._force, FORCES)
            gui.add_markdown(f"Displacement under {self._force / factor:g} {unit} in all directions.")
            others = gui.add_checkbox("Show", True)
        self.colour("compliance")
        _on_update(by, self.colour)
        _on_update(self._slider, lambda value: self.choose(min(int(value), len(found) - 1)))
        _on_update(others, lambda on: setattr(self._others, "visible", on))


def _on_update(control: Any, change: Callable[[Any], None]) -> None:
    """Call `change` with the control's value whenever a client, and not the server, has set it."""
    control.on_update(lambda event: None if event.client is None else change(event.target.value))


def _quantities(found: ComplianceMap) -> dict[str, _Quantity]:
    """Quantities by name; those that are known of some sample."""
    every = {
        "compliance": _Quantity(found.worst, "m/N", True),
        "turning compliance": _Quantity(found.rotation.compliance[:, 0], "rad/(N m)", False),
        "frequency": _Quantity(found.frequency, "Hz", False),
        "room to limits": _Quantity(found.margin, "of the range", False),
        "sag": _Quantity(np.linalg.norm(found.sag, axis=1), "m", True),
    }
    return {name: shown for name, shown in every.items() if np.isfinite(shown.values).any()}


def _colours(shown: _Quantity) -> NDArray[np.uint8]:
    """Colours of samples, (samples, 3); grey where the quantity is not known."""
    from matplotlib import colormaps

    known = np.isfinite(shown.values)
    values = np.where(known, shown.values, np.nanmin(shown.values))
    values = (
        np.log(np.maximum(values, 1e-6 * values.max())) if shown.logarithmic and values.max() > 0 else values
    )
    extent = float(np.ptp(values))
    share = (
        (values - values.min()) / extent
        if extent > 1e-9 * np.abs(values).max()
        else np.full(len(values), 0.5)
    )
    colours = colormaps[PALETTE](share)[:, :3]
    colours[~known] = 0.59
    return copy_colours(colours)


def _facts(found: ComplianceMap, sample: int) -> str:
    """Numbers of a sample, as a list in Markdown."""
    factor, unit = unit_for(float(found.worst[sample]), LENGTHS)
    softest, stiffest = (
        " ".join(f"{x:+.2f}" for x in axes[sample]) for axes in (found.worst_direction, found.best_direction)
    )
    lines = [
        f"sample {found.index[sample]} at " + ", ".join(f"{x:.4g}" for x in found.position[sample]) + " m",
        f"softest {found.worst[sample] / factor:.4g} {unit}/N along {softest}",
        f"stiffest {found.best[sample] / factor:.4g} {unit}/N along {stiffest}",
    ]
    if np.isfinite(found.frequency[sample]):
        lines.append(f"first frequency {found.frequency[sample]:.4g} Hz")
    if np.isfinite(found.margin[sample]):
        joint = escape_markdown(found.margin_joint[sample])
        lines.append(f"{100 * found.margin[sample]:.3g} % of the range of {joint} to its limit")
    if np.isfinite(found.sag[sample]).all():
        lines.append(f"sags by {np.linalg.norm(found.sag[sample]) / factor:.4g} {unit}")
    lines += [f"{escape_markdown(name)} {found.coordinates(name)[sample]:.4g}" for name in found.joints[:12]]
    return "\n".join(f"- {line}" for line in lines)
