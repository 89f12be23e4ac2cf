"""`Camera`: errors in pixels of an image as errors in metres, for levels of detail."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.checks import number, numbers, vector, whole
from pliant.errors import InputError
from pliant.text import brief

__all__ = ["Camera"]

Floats = NDArray[np.float64]


class Camera:
    """A pinhole camera, by which errors in pixels become errors in metres.

    What `metres` gives is meant for whatever takes an error in metres: the tolerance of a `QuasistaticSimulation` with
    the measure "world", `World.detail`, the tolerance of a reduced model.

    Attributes:
        position: of the camera, m, (3,).
        axes: to the right, down and ahead in the image, unit vectors, (3, 3).
        focal: focal length, pixels.
        size: width and height of the image, pixels.

    Example:
        >>> import pliant
        >>> camera = pliant.Camera((0, -10, 2), target=(0, 0, 1), fov=0.8, height=1080)
        >>> print(f"{1000 * camera.metres((0, 0, 1)):.1f} mm")
        7.9 mm
    """

    __slots__ = ("axes", "focal", "position", "size")

    def __init__(
        self,
        position: ArrayLike,
        target: ArrayLike,
        *,
        fov: float = 0.8,
        height: int = 1080,
        width: int | None = None,
        up: ArrayLike = (0.0, 0.0, 1.0),
    ):
        """Look from a point at another.

        Args:
            position: of the camera, m.
            target: the point in the middle of the image, m.
            fov: angle that the height of the image takes, rad.
            height: of the image, pixels.
            width: of the image, pixels; 16/9 of the height by default.
            up: direction that is up in the image.
        """
        self.position = vector(position, "position", below=1e50)
        ahead = vector(target, "target", below=1e50) - self.position
        sky = vector(up, "up", below=1e50)
        angle = number(fov, "fov", above=0.0, below=math.pi)
        pixels = whole(height, "height", 1, 1_000_000)
        wide = round(pixels * 16 / 9) if width is None else whole(width, "width", 1, 1_000_000)
        length, right = math.sqrt(ahead @ ahead), np.cross(ahead, sky)
        if not length > 0:
            raise InputError(
                f"target: a point other than the position {brief(self.position.tolist())} expected"
            )
        span = math.sqrt(right @ right)
        if not span > 1e-9 * length * math.sqrt(sky @ sky):
            raise InputError("up: a direction across the view expected: give another one, such as (0, 1, 0)")
        ahead, right = ahead / length, right / span
        self.axes = np.array([right, np.cross(ahead, right), ahead])
        self.focal = pixels / 2 / math.tan(angle / 2)
        self.size = wide, pixels

    def metres(self, places: ArrayLike, pixels: float = 1.0, radius: ArrayLike = 0.0) -> Floats:
        """Largest displacement, m, that moves nothing at a place by more than `pixels` in the image.

        Whatever its direction, and for points anywhere in a ball around the place. It is infinite where the ball lies
        behind the camera, and zero where the camera is inside of it.

        Args:
            places: (..., 3), m.
            pixels: allowed error.
            radius: of the balls, m, one or (...).

        Returns:
            Displacements, (...).
        """
        allowed = number(pixels, "pixels", above=0.0)
        at = self._seen(places, "places")
        ball = numbers(radius, "radius")
        try:
            ball = np.broadcast_to(ball, at.shape[:-1])
        except ValueError:
            raise InputError(
                f"radius: one number or {at.shape[:-1]} expected, not shape {ball.shape}"
            ) from None
        if not (ball >= 0).all():
            raise InputError("radius: numbers from 0 on expected")
        # A point at depth z and distance r that moves by e, to depth z - e or more, moves by at most
        # f e r / (z (z - e)) in the image: with x its place across the axis, x'/z' - x/z is the cross product of
        # displacement and place over z z'.
        depth, distance = at[..., 2] - ball, np.sqrt((at**2).sum(axis=-1)) + ball
        near = np.maximum(depth, 0.0)
        found = allowed * near**2 / np.where(near > 0, self.focal * distance + allowed * near, 1.0)
        return np.where(at[..., 2] + ball < 0, np.inf, found)

    def project(self, places: ArrayLike) -> Floats:
        """Places in the image, pixels from its upper left corner, (..., 2); NaN for what is not ahead of the camera."""
        at = self._seen(places, "places")
        depth = np.where(at[..., 2] > 0, at[..., 2], np.nan)
        return self.focal * at[..., :2] / depth[..., None] + np.array(self.size) / 2

    def _seen(self, places: ArrayLike, what: str) -> Floats:
        """Places in the axes of the camera."""
        at = numbers(places, what)
        if at.shape[-1:] != (3,) or not np.isfinite(at).all():
            raise InputError(f"{what}: finite points (..., 3) expected, not {brief(places)}")
        return (at - self.position) @ self.axes.T
