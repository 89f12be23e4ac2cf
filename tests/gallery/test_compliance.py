"""How the gallery's mechanisms move and give, from finite differences of the forward kinematics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg

from pliant import gallery
from pliant.mechanism.joints import BALL, HINGE, SLIDE
from pliant.mechanism.kinematics import link_poses

STEP = 1e-6


def moved(m, dof, step):
    """q with one tangent coordinate changed."""
    q = m.reference.copy()
    start = m.dof_coordinate[dof]
    if m.dof_kind[dof] != BALL:
        q[start] += step
        return q
    first = m.primitive_dof[np.searchsorted(m.primitive_dof, dof, side="right") - 1]
    x = np.zeros(3)
    x[dof - first] = math.sin(step / 2)
    w0, v0, w = q[start], q[start + 1 : start + 4].copy(), math.cos(step / 2)
    q[start] = w0 * w - v0 @ x
    q[start + 1 : start + 4] = w0 * x + w * v0 + np.cross(v0, x)
    return q


def twist(change, pose):
    """World twist (linear first) of poses from their derivative."""
    spin = change[:, :3, :3] @ pose[:, :3, :3].transpose(0, 2, 1)
    return np.concatenate([change[:, :3, 3], spin[:, [2, 0, 1], [1, 2, 0]]], axis=1)


def jacobians(m):
    """World Jacobians of all links at the reference pose, (links, 6, nv)."""
    pose = link_poses(m, m.reference)
    out = np.zeros((len(pose), 6, m.nv))
    for dof in range(m.nv):
        change = link_poses(m, moved(m, dof, STEP)) - link_poses(m, moved(m, dof, -STEP))
        out[:, :, dof] = twist(change / (2 * STEP), pose)
    return out


class Linear:
    """A mechanism linearised at its reference pose: allowed motions Z and their stiffness, Jacobians."""

    def __init__(self, m):
        J = jacobians(m)
        self.loops = J[m.links.loop_copy] - J[m.links.loop_body]
        # Lengths in units of the mechanism's size, and slides too.
        unit = np.where(m.dof_kind == SLIDE, m.radius, 1.0)
        rows = self.loops / np.array([m.radius] * 3 + [1.0] * 3)[:, None]
        rows = np.concatenate([rows.reshape(-1, m.nv), m.couplings.dense(m.nv)]) * unit
        Z = scipy.linalg.null_space(rows, rcond=1e-7) if len(rows) else np.eye(m.nv)
        self.Z = unit[:, None] * Z
        self.stiffness = self.Z.T @ m.stiffness_matrix @ self.Z
        self.J = {e: J[m.links.body_link[m.body_index(e)]] @ self.Z for e in m.end_effectors}
        self.radius = m.radius

    @property
    def mobility(self):
        return self.Z.shape[1]

    def compliance(self, body):
        return self.J[body] @ np.linalg.solve(self.stiffness, self.J[body].T)

    def deflection(self, body, force=100.0):
        """Relative to the mechanism's size, in the softest direction."""
        return force * np.linalg.eigvalsh(self.compliance(body)[:3, :3])[-1] / self.radius


MOBILITY = {
    "helix": 50,
    "ladder": 12,
    "y": 30,
    "loop": 32 - 6,
    "two_link": 2,
    "arm": 20,
    "hand": 24,
    "gripper": 1,
    "flexure_stage": 1,
    "suspension": 2,
    "hexapod": 24,
    "firefighters": 32 - 18,
    "scissor_lift": 1,
    "stewart_platform": 6,
    "delta_robot": 3,
    "bistable": 3,
    "miura_ori": 1,
    "tensegrity": 6,
    "lattice": (8 + 2) * 8,
    "lattice3d": 6 * 4 * 4 * 3,
    "trampoline_net": 4 * 7**2 + 2 * 7,
    "bicycle_chain": 30,
    "cable": 120,
    "crane": 191 - 3,
}


@pytest.fixture(scope="module", params=MOBILITY)
def linear(request):
    return request.param, Linear(gallery.make(request.param))


def test_mobility(linear):
    name, model = linear
    assert model.mobility == MOBILITY[name]


def test_no_direction_is_free(linear):
    """The springs hold every motion the loops allow; only the hexapod's base is free."""
    name, model = linear
    scale = np.sqrt(np.diag(model.stiffness))
    if name == "hexapod":
        values = np.linalg.eigvalsh(model.stiffness)
        assert (values[:6] == 0).all()
        assert values[6] > 1
    else:
        assert (scale > 0).all()
        assert np.linalg.eigvalsh(model.stiffness / np.outer(scale, scale))[0] > 1e-9
        np.linalg.cholesky(model.stiffness)


def test_strong_robot_is_held():
    """All of its joints have springs; its five loops close in space."""
    m = gallery.strong_robot(segments=3)
    assert (m.stiffness > 0).all()
    model = Linear(m)
    # A robot on two feet, both hands on one handle: nothing is overconstrained.
    assert model.mobility == m.nv - 6 * 5
    np.linalg.cholesky(model.stiffness)


@pytest.mark.parametrize("form", ["cells", "rails"])
@pytest.mark.parametrize("rungs", [1, 5])
def test_ladder_leans_but_does_not_stretch(form, rungs):
    m = gallery.ladder(rungs, form=form)
    model = Linear(m)
    assert model.mobility == rungs
    assert np.linalg.matrix_rank(model.loops.reshape(-1, m.nv), tol=1e-6) == 3 * rungs  # of 6
    compliance = model.compliance(f"rung{rungs}")
    assert compliance[0, 0] > 1e-4
    compliance[0, 0] = 0
    np.testing.assert_allclose(compliance, 0, atol=1e-9)


def test_ladder_cells_against_formula():
    m = gallery.ladder(12)
    assert Linear(m).compliance("rung12")[0, 0] == pytest.approx(12 * 2.0**2 / (4 * 1000), rel=1e-6)


def test_ladder_forms_share_links_or_not():
    """Between consecutive loops: one rung ("cells"), rails too ("rails")."""

    def carriers(form):
        m = gallery.ladder(4, form=form)
        return {m.body_names[m.joint_parents[m.joint_index(f"{side}3_foot")]] for side in ("left", "right")}

    assert carriers("cells") == {"rung2"}
    assert carriers("rails") == {"left2", "right2"}


@pytest.mark.parametrize(
    ("links", "low", "high"), [(20, 0.1, 0.3), (50, 0.15, 0.3), (100, 0.2, 0.5), (400, 0.4, 0.8)]
)
def test_helix_gives_visibly_in_all_directions(links, low, high):
    m = gallery.helix(links)
    model = Linear(m)
    assert low < model.deflection(f"link{links}") < high
    unit = np.array([m.radius] * 3 + [1.0] * 3)
    values = np.linalg.eigvalsh(model.compliance(f"link{links}") / np.outer(unit, unit))
    assert values[0] > 1e-3 * values[-1]


@pytest.mark.parametrize(("name", "low", "high"), [("y", 0.1, 0.3), ("loop", 0.04, 0.2), ("arm", 0.1, 0.3),
                                                   ("two_link", 0.1, 0.3)])  # fmt: skip
def test_a_hundred_newtons_are_visible(name, low, high):
    model = Linear(gallery.make(name))
    for body in model.J:
        assert low < model.deflection(body) < high


def test_loop_closes_in_all_six_directions():
    m = gallery.loop()
    rows = Linear(m).loops[0] / np.array([m.radius] * 3 + [1.0] * 3)[:, None]
    assert np.linalg.svd(rows, compute_uv=False)[-1] > 0.1


def test_flexure_stage_against_beam_theory():
    """Two fixed-guided beams: 24 E I / L^3; the pseudo-rigid-body model is 3.7 % above."""
    flexural = 207e9 * 0.010 * 0.0005**3 / 12
    stiffness = 1 / Linear(gallery.flexure_stage()).compliance("stage")[0, 0]
    assert stiffness == pytest.approx(8 * 2.65 / 0.8517 * flexural / 0.05**3, rel=1e-6)
    assert stiffness == pytest.approx(24 * flexural / 0.05**3, rel=0.04)


def test_gripper_pads_move_against_each_other_and_stay_upright():
    model = Linear(gallery.gripper())
    left, right = (model.J[body][:, 0] for body in ("left_pad", "right_pad"))
    np.testing.assert_allclose(left[3:], 0, atol=1e-7)
    np.testing.assert_allclose(right, left * [-1, 1, 1, 1, 1, 1], atol=1e-7)
    assert abs(left[0]) > 0.01


def test_suspension_travels_up():
    model = Linear(gallery.suspension())
    motion = model.J["upright"] @ np.linalg.solve(model.stiffness, model.J["upright"].T @ [0, 0, 1, 0, 0, 0])
    assert motion[2] > 5 * np.abs(motion[:2]).max()
    assert 1e4 < 1 / motion[2] < 3e4  # wheel rate, N/m


def test_two_link_is_soft_along_and_across():
    """Planar: it moves along x and z and not along y."""
    compliance = Linear(gallery.two_link()).compliance("right")
    assert compliance[0, 0] > 1e-5
    assert compliance[2, 2] > 1e-5
    np.testing.assert_allclose(compliance[1], 0, atol=1e-12)


def test_bushings_and_hinges_are_what_they_say():
    m = gallery.cable(3)
    assert m.primitive_kind.tolist() == [SLIDE, SLIDE, SLIDE, BALL] * 3
    assert set(gallery.hand().primitive_kind.tolist()) == {HINGE}
