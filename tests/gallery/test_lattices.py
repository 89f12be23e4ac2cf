"""Lattices and nets: counts, mobility, Poisson's ratio, stiffness of frames and membranes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import pliant
from oracles.one_variable import minimum
from pliant import gallery

from .test_compliance import Linear

WEIGHTLESS = (0.0, 0.0, 0.0)
GAMMA = 0.8517  # length of the rigid link of a fixed-guided beam over that of the beam (Howell)


# --- counts


@pytest.mark.parametrize(("nx", "ny"), [(1, 1), (1, 3), (3, 1), (4, 3)])
def test_counts_and_mobility_of_grids(nx, ny):
    m = gallery.lattice(nx, ny)
    nodes = (nx + 1) * ny
    flexures = nx * ny + nodes
    assert (m.body_count, m.joint_count, m.topology.loops) == (nodes + flexures, 2 * flexures, nx * ny)
    model = Linear(m)
    assert model.mobility == (nx + 2) * ny
    assert m.nv - model.mobility == 3 * nx * ny  # of 6: every loop is planar


@pytest.mark.parametrize(("nx", "ny"), [(2, 2), (4, 3), (2, 5)])
def test_counts_and_mobility_of_rotating_squares(nx, ny):
    m = gallery.lattice(nx, ny, form="auxetic")
    assert (m.body_count, m.joint_count, m.topology.loops) == (nx * ny, (2 * nx - 1) * ny, (nx - 1) * ny)
    assert Linear(m).mobility == 1


@pytest.mark.parametrize("form", ["grid", "auxetic"])
def test_joints_point_right_and_up(form):
    """World-aligned frames, every child to the right of or above its parent."""
    m = gallery.lattice(3, 3, form=form)
    assert (m.reference_poses[:, :3, :3] == np.eye(3)).all()
    inner = m.joint_parents >= 0
    ways = (
        m.reference_poses[m.joint_children[inner], :3, 3] - m.reference_poses[m.joint_parents[inner], :3, 3]
    )
    right, up = ways[:, 0] > 1e-9, ways[:, 2] > 1e-9
    assert (right ^ up).all()
    assert (ways > -1e-12).all()


@pytest.mark.parametrize(("nx", "ny", "nz"), [(1, 1, 1), (2, 1, 3)])
def test_counts_and_mobility_of_spatial_lattices(nx, ny, nz):
    m = gallery.lattice3d(nx, ny, nz)
    nodes = (nx + 1) * (ny + 1) * nz
    struts = nodes + (nx * (ny + 1) + (nx + 1) * ny) * nz
    assert (m.body_count, m.joint_count, m.topology.loops) == (nodes + struts, 2 * struts, struts - nodes)
    assert Linear(m).mobility == 6 * nodes == m.nv - 6 * m.topology.loops


@pytest.mark.parametrize("n", [2, 3, 4])
def test_counts_and_mobility_of_nets(n):
    m = gallery.trampoline_net(n)
    knots, links = (n - 1) ** 2, 2 * n * (n - 1)
    assert (m.body_count, m.joint_count, m.topology.loops) == (knots + links, 2 * links, links - knots)
    assert Linear(m).mobility == 4 * knots + 2 * (n - 1) == m.nv - 6 * m.topology.loops


# --- frames of nodes and struts


def frame_compliance(shape, cell, arm, stiffness, loaded, free):
    """Compliance of a node of a frame of rigid struts, from displacements and turns of its nodes alone.

    A strut w (unit) from node a to node b is held `arm` away from either centre by balls of the given stiffness. Its
    length is constant; its turn across w follows from its ends, that about w is halfway between the nodes'.

    Args:
        shape: number of nodes along x, y, z; the lowest layer is the ground.
        free: components of a node's displacement and turn (of 6) that are not held.
    """
    index = {node: k for k, node in enumerate((i, j, k) for i, j, k in np.ndindex(*shape) if k > 0)}

    def picked(node, part):
        """(3, unknowns): displacement (0) or turn (1) of a node."""
        out = np.zeros((3, 6 * len(index)))
        if node in index:
            out[:, 6 * index[node] + 3 * part : 6 * index[node] + 3 * part + 3] = np.eye(3)
        return out

    def cross(w):
        return np.cross(np.eye(3), w)  # cross(w) @ phi = w x phi

    K = np.zeros((6 * len(index),) * 2)
    rows = []
    for tail in np.ndindex(*shape):
        for axis in range(3):
            head = tuple(np.add(tail, np.eye(3, dtype=int)[axis]))
            if head[axis] == shape[axis] or (tail[2] == 0 and axis < 2):
                continue
            w = np.eye(3)[axis]
            # phi x (arm w) = -arm w x phi
            ends = [
                picked(tail, 0) - arm * cross(w) @ picked(tail, 1),
                picked(head, 0) + arm * cross(w) @ picked(head, 1),
            ]
            rows.append(w @ (ends[1] - ends[0]))
            spin = np.outer(w, w) @ (picked(tail, 1) + picked(head, 1)) / 2
            turn = cross(w) @ (ends[1] - ends[0]) / (cell - 2 * arm) + spin
            for node in (tail, head):
                bend = (picked(node, 1) - turn)[[f - 3 for f in free if f >= 3]]
                K += stiffness * bend.T @ bend
    kept = np.isin(np.arange(6 * len(index)) % 6, free)
    Z = scipy.linalg.null_space(np.array(rows)[:, kept])
    unit = np.zeros((6, 6 * len(index)))
    unit[:, 6 * index[loaded] : 6 * index[loaded] + 6] = np.eye(6)
    J = unit[:, kept] @ Z
    return J @ np.linalg.solve(Z.T @ K[np.ix_(kept, kept)] @ Z, J.T)


def test_planar_frame():
    m = gallery.lattice(3, 4, cell=0.02)
    arm = (0.02 - GAMMA * 0.012) / 2
    expected = frame_compliance((4, 1, 5), 0.02, arm, m.stiffness[0], (3, 0, 4), free=[0, 2, 4])
    found = pliant.Configuration(m).compliance("node3_4")
    unit = np.array([0.01] * 3 + [1.0] * 3)  # lengths of a cell's size
    np.testing.assert_allclose(found / np.outer(unit, unit), expected / np.outer(unit, unit), atol=1e-9)
    assert found[0, 0] > 1e-4


def test_spring_of_a_planar_frame():
    """2 γ K_Θ E I / L with L = 12 mm, 10 mm x 0.8 mm, E = 1.7 GPa."""
    expected = 2 * GAMMA * 2.65 * 1.7e9 * (0.010 * 0.0008**3 / 12) / 0.012
    np.testing.assert_allclose(gallery.lattice(1, 1).stiffness, expected, rtol=1e-12)


def test_one_storey_against_the_formula():
    """A row of columns between rigid floors: 2 hinges each, k / (γ L)^2; nodes held by stiff flexures across."""
    m = gallery.lattice(2, 1)
    k = m.stiffness[0]
    stiff = m.with_stiffness("across*", 1e9 * k)
    # Nodes cannot turn: across flexures that do not bend keep three nodes one rigid floor.
    expected = (GAMMA * 0.012) ** 2 / (3 * 2 * k)
    assert pliant.Configuration(stiff).compliance("node2_1")[0, 0] == pytest.approx(expected, rel=1e-6)


def test_spatial_frame():
    m = gallery.lattice3d(2, 1, 2, cell=0.03)
    expected = frame_compliance((3, 2, 3), 0.03, 0.006, 0.2, (2, 1, 2), free=range(6))
    found = pliant.Configuration(m).compliance("node2_1_2")
    unit = np.array([0.01] * 3 + [1.0] * 3)
    np.testing.assert_allclose(found / np.outer(unit, unit), expected / np.outer(unit, unit), atol=1e-8)
    assert min(found[0, 0], found[1, 1]) > 1e-4


# --- rotating squares


class Squares:
    """Closed form of n x n rotating squares: distance of centres and energy over the turn θ of the squares."""

    def __init__(self, m, n, cell=0.02):
        self.n, self.start = n, np.radians(20)
        self.side = cell / (np.cos(self.start) + np.sin(self.start))
        self.hinge = m.stiffness[m.dof_index("right2_1")]
        self.roller = m.stiffness[m.joint_dofs(m.joint_index("up2_1"))][0]

    def pitch(self, turn):
        return self.side * (np.cos(turn) + np.sin(turn))

    def feet(self, turn):
        i = np.arange(1, self.n + 1)
        return (i - 1) * self.pitch(turn) + np.where(i % 2, 0.0, self.side * (np.cos(turn) - np.sin(turn)))

    def energy(self, turn):
        """Hinges between squares turn twice, those to the ground once."""
        n, by = self.n, turn - self.start
        slides = self.feet(turn) - self.feet(self.start)
        return self.hinge * by**2 / 2 * (4 * 2 * n * (n - 1) + n) + self.roller * slides @ slides / 2

    def loaded(self, force):
        """Turn under an upward force on the last square."""
        height = self.n - 0.5
        found = minimum(lambda t: self.energy(t) - force * height * self.pitch(t), 0, np.pi / 4)
        return found


@pytest.mark.parametrize("force", [-60.0, -5.0, 40.0, 300.0])
def test_rotating_squares(force):
    """Poisson's ratio is -1 at any strain, and the strain is that of the closed form."""
    m = gallery.lattice(4, 4, form="auxetic")
    found = pliant.equilibrium(m, {"square4_4": (0, 0, force)})
    assert found.stability == "stable"

    def way(a, b):
        return found.pose(b)[:3, 3] - found.pose(a)[:3, 3]

    across, along = way("square1_2", "square3_2"), way("square2_1", "square2_3")  # two cells
    across_strain, strain = across[0] / 0.04 - 1, along[2] / 0.04 - 1
    assert abs(strain) > 1e-3
    assert -across_strain / strain == pytest.approx(-1, abs=1e-9)
    np.testing.assert_allclose([across[2], along[0]], 0, atol=1e-14)  # and nothing shears
    squares = Squares(m, 4)
    # A minimiser knows its place to the square root of rounding.
    assert along[2] / 2 == pytest.approx(squares.pitch(squares.loaded(force)), abs=1e-7 * 0.02)


# --- net


def softened(m):
    """Ropes that bend as they please."""
    return m.with_stiffness(["*_tail", "*_head", "*_rim.0", "*_rim.1"], 1e-5)


@pytest.mark.parametrize("n", [2, 4, 5])
def test_taut_net_is_a_membrane(n):
    """Small deflections: tension over mesh width times the graph Laplacian of the knots."""
    m = softened(gallery.trampoline_net(n, tension=300.0))
    middle = m.end_effectors[0]
    found = pliant.equilibrium(m, gravity=WEIGHTLESS)
    np.testing.assert_allclose(found.poses[:, :3, 3], m.reference_poses[:, :3, 3], atol=1e-9)
    line = 2 * np.eye(n - 1) - np.eye(n - 1, k=1) - np.eye(n - 1, k=-1)
    laplacian = np.kron(line, np.eye(n - 1)) + np.kron(np.eye(n - 1), line)
    i = n // 2 - 1
    expected = 2.0 / n / 300.0 * np.linalg.inv(laplacian)[i * (n - 1) + i, i * (n - 1) + i]
    assert found.compliance(middle)[2, 2] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("force", [50.0, 1000.0])
def test_one_knot_pushed_far(force):
    """Four ropes of 1 m, tension 200 N and 2 kN/m: F = 4 (T + k (l - 1)) w / l with l = sqrt(1 + w^2)."""
    m = softened(gallery.trampoline_net(2))
    found = pliant.equilibrium(m, {"knot1_1": (0, 0, -force)}, gravity=WEIGHTLESS)
    w = 0.9 - found.pose("knot1_1")[2, 3]
    length = np.hypot(1, w)
    assert 4 * (200 + 2000 * (length - 1)) * w / length == pytest.approx(force, rel=1e-5)
