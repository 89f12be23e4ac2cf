"""Random things fall on every mechanism of the gallery: nothing leaves the finite numbers or stays below the floor."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from pliant import World, gallery, reduce, shapes, spatial

THINGS = 5  # in a world
AFTER = 1.0  # s, from when the last would be down if nothing were in its way
# A few hundred bodies of what has thousands, and fewer loops.
SMALLER = {
    "forest": {"plants": 3},
    "millipede": {"legs": 20, "leg_links": 5, "spine": 60},
    "molecule": {"links": 150},
    "trampoline_net": {"n": 4},
    "lattice3d": {"nx": 2, "ny": 2, "nz": 2},
}


def random_hull(rng, radius):
    """A convex mesh with its centroid at the origin."""
    points = rng.normal(size=(12, 3))
    points *= radius / np.linalg.norm(points, axis=1).max()
    hull = ConvexHull(points)
    a, b, c = points[hull.simplices].swapaxes(0, 1)
    inwards = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0
    faces = np.where(inwards[:, None], hull.simplices[:, ::-1], hull.simplices)
    centroid = shapes.mesh(points, faces).mass_properties()[1]
    return shapes.mesh(points - centroid, faces)


def random_shape(rng, scale):
    a, b, c = rng.uniform(0.3, 1.0, 3) * scale
    kind = rng.integers(5)
    if kind == 4:
        return random_hull(rng, a)
    return (shapes.sphere(a), shapes.box((a, b, c)), shapes.capsule(a, b), shapes.cylinder(a, b))[kind]


def drop(name, whole, seed):
    """Drop some random things on a mechanism; in how many steps something touched it."""
    m = gallery.make(name, **SMALLER.get(name, {}))
    rng = np.random.default_rng([seed, len(name)])
    mounts = [shape.pose[:3, 3] for shape in m.shapes("world")]
    at = np.vstack([m.reference_poses[:, :3, 3], *mounts])
    low, high = at.min(axis=0), at.max(axis=0)
    size = max(float(np.linalg.norm(high - low)), 0.1)
    free = "free" in m.joint_types
    floor = -0.001 if free else low[2] - 0.5 * size
    world = World(1 / 60)
    world.add(m if whole else reduce(m), "mechanism", friction=rng.uniform(0, 1))
    world.add_static("floor", shapes.plane(position=(0, 0, floor)), friction=rng.uniform(0, 1))
    if not free:
        world.ignore("mechanism", "floor")  # what is mounted is where its joints put it
    height = 0.0
    for i in range(THINGS):
        height = 0.1 + size * (0.6 + 0.45 * i)
        world.add_body(
            f"thing{i}",
            random_shape(rng, 0.1 * size),
            mass=10 ** rng.uniform(-2, 0.5),
            position=(*rng.uniform(low[:2], high[:2]), high[2] + height),
            orientation=spatial.quat_normalize(rng.normal(size=4)),
            spin=rng.normal(size=3),
            friction=rng.uniform(0, 1),
            restitution=rng.choice([0.0, 0.5]),
        )
    seconds = math.sqrt(2 * (height + high[2] - floor) / 9.81) + AFTER
    touched = 0
    for _ in range(round(60 * seconds)):
        world.step()
        touched += any(body.startswith("mechanism") for pair in world.contacts.bodies for body in pair)
    assert np.isfinite(world.poses).all()
    for i in range(THINGS):
        thing = world[f"thing{i}"]
        sunk = floor - thing.position[2]
        assert sunk < 0, f"{name}, seed {seed}: {thing.shapes[0].kind} {i} is {sunk:.3g} m below the floor"
    if free:
        assert world.pose("mechanism/body")[2, 3] > floor
    return touched


@pytest.mark.parametrize("name", gallery.names())
@pytest.mark.parametrize("whole", [False, True])
def test_a_few_drops(name, whole):
    assert drop(name, whole, seed=0) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", gallery.names())
@pytest.mark.parametrize("whole", [False, True])
def test_a_thousand_drops(name, whole):
    touched = [drop(name, whole, seed) for seed in range(1000 // THINGS)]
    assert np.count_nonzero(touched) > 100
