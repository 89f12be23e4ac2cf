"""Random shapes, scenes and poses for the tests of contact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial import ConvexHull

from pliant import shapes, spatial
from pliant.contact import Collider

CONVEX = ("sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh")
KINDS = (*CONVEX, "plane", "height field")
MOVING = np.zeros(2, dtype=bool)


def pose(rng, reach=1.0):
    """A random pose."""
    return spatial.pose(rng.uniform(-reach, reach, 3), spatial.quat_normalize(rng.normal(size=4)))


def cube(half, **options):
    """A box as a mesh."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    return shapes.mesh(corners, ConvexHull(corners).simplices, **options)


def shape(rng, kind, scale=0.3):
    """A random shape of a kind, in the frame of its body."""
    a, b, c = rng.uniform(0.3, 1.0, 3) * scale
    if kind == "sphere":
        return shapes.sphere(a)
    if kind == "plane":
        return shapes.plane()
    if kind == "mesh":
        points = rng.normal(size=(12, 3))
        points *= scale / np.linalg.norm(points, axis=1)[:, None]
        return shapes.mesh(points, ConvexHull(points).simplices)
    if kind == "height field":
        return shapes.height_field(rng.uniform(0, 0.3 * scale, (5, 6)), (3 * a, 3 * b), depth=c)
    if kind in ("box", "ellipsoid"):
        return getattr(shapes, kind)((a, b, c))
    return getattr(shapes, kind)(a, b)


def on_body(rng, kind, reach=0.3):
    """A random shape somewhere on its body."""
    return replace(shape(rng, kind), pose=pose(rng, reach))


def detect(first, second, pose_first, pose_second, margin=0.0):
    """The contacts of two bodies of one shape each."""
    collider = Collider([(0, first), (1, second)], 2, static=MOVING, margin=margin)
    return collider.detect(np.stack([pose_first, pose_second]))


def by_mujoco(collider):
    """The collider, from now on by MuJoCo's for all shapes."""
    collider.scene = collider.scene._replace(pairs=collider.scene.pairs[:0])
    return collider


def touching(rng, first, second, gap):
    """Poses of two shapes, about so far apart; from deep inside each other MuJoCo may not find the shortest way out."""
    here, there = pose(rng, 0.1), pose(rng, 0.1)
    there[:3, 3] += here[:3, 2] * 1.2  # above a plane or a field
    for margin in (3.0, 0.03):  # a margin larger than the shapes spoils the depth
        collider = Collider([(0, first), (1, second)], 2, static=MOVING, margin=margin)
        for _ in range(10):
            found = collider.detect(np.stack([here, there]))
            if found.count:
                nearest = np.argmin(found.distance)
                there[:3, 3] -= found.normal[nearest] * (found.distance[nearest] - gap)
    return here, there


def at(*position):
    return spatial.pose(position)
