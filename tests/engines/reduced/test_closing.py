"""Closing of loops on reduced coordinates: independent rows, least energy, curvature of the true equilibria."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from formats import corpus
from oracles import linkages
from oracles.manifold import dense_closing, difference
from oracles.random_mechanisms import random_mechanism, tied
from pliant.engines.reduced.closing import Closing, close, independent_rows
from pliant.engines.reduced.projection import held_loads
from pliant.mechanism import kinematics

GRAVITY = (0.0, 0.0, -9.81)
FREE = ("hinge", "slide", "ball", "universal", "cylindrical", "planar", "stack", "bushing")


def spread() -> pliant.Mechanism:
    """A gripper whose pads turn as they close."""
    return pliant.gallery.gripper(follower=0.05)


def two_fingers() -> pliant.Mechanism:
    file = corpus.folder("shared") / "robotiq_2f85" / "2f85.xml"
    if not file.is_file():
        pytest.skip("the folder shared/models is not beside the project")
    return pliant.load(file)


CASES = {
    "loop": pliant.gallery.loop,
    "gripper": spread,
    "suspension": pliant.gallery.suspension,
    "ladder": lambda: pliant.gallery.ladder(4),
    "four-bar": linkages.four_bar,
    "stewart": pliant.gallery.stewart_platform,
    "lattice": lambda: linkages.lattice(3, 2),
    "random": lambda: tied(random_mechanism(12, 6, 2, FREE), 5, 1, 2),
}
RANKS = {"loop": 6, "gripper": 7, "suspension": 18, "ladder": 12, "four-bar": 3, "stewart": 30, "lattice": 18}


class Case:
    """A reduced model, its wrenches per coordinate, and its closing."""

    def __init__(self, m: pliant.Mechanism, bodies=None, at: pliant.Configuration | None = None):
        self.model = model = pliant.reduce(m, bodies, at=at)
        self.m, self.at = model.mechanism, at
        loaded = (
            np.tile([1 / model.length] * 3 + [1.0] * 3, len(model.end_effectors))[:, None] * model.directions
        )
        self.wrench_per_y = loaded @ model.reduced_stiffness
        loads = held_loads(self.m, model.q) if at is None else at.loads
        assert loads is not None
        self.loads = loads
        self.multipliers = np.zeros(self.m.elimination.hard) if at is None else at.multipliers
        self.rows = kinematics.constraint_rows(self.m, kinematics.link_poses(self.m, model.q))

    def close(self) -> Closing:
        model = self.model
        return close(
            self.m, model.q, model.basis, self.loads, self.multipliers, model.end_effectors, self.wrench_per_y
        )

    def equilibrium(self, y) -> np.ndarray:
        """Joint motions from the model's configuration to the true equilibrium under the wrenches of y."""
        here = pliant.Configuration(self.m, self.model.q)
        wrenches, w = {}, (self.wrench_per_y @ y).reshape(-1, 2, 3)
        for body, (force, torque) in zip(self.model.end_effectors, w, strict=True):
            turn = here.pose(body)[:3, :3]
            wrenches[body] = {"force": turn @ force, "torque": turn @ torque}
        gravity = None if self.at is None else self.at.gravity
        found = pliant.equilibrium(self.m, wrenches, gravity=gravity, start=self.at)
        return difference(self.m, self.model.q, found.q)

    def second_difference(self, i: int, j: int, step: float) -> np.ndarray:
        """Second derivative of the true equilibria along coordinates i and j."""
        axes = np.eye(self.model.basis.shape[1])
        axes /= np.abs(self.model.basis / self.m.dof_unit[:, None]).max(axis=0)

        def along(way):
            d1, d2 = (
                (self.equilibrium(h * way) - 2 * self.equilibrium(0 * way) + self.equilibrium(-h * way))
                / h**2
                for h in (step, 2 * step)
            )
            return (4 * d1 - d2) / 3

        a, b = axes[i], axes[j]
        scale = a.max() * b.max()
        return (along(a) if i == j else (along(a + b) - along(a) - along(b)) / 2) / scale


@pytest.mark.parametrize("name", CASES)
def test_rows_are_independent_and_all_there_are(name):
    m = CASES[name]()
    rows = independent_rows(m, m.reference)
    scale = m.elimination.scale[: m.elimination.hard, None]
    every = scale * kinematics.constraint_rows(m, kinematics.link_poses(m, m.reference)) * m.dof_unit
    size = np.linalg.svd(every, compute_uv=False)
    assert len(rows) == (size > 1e-9).sum()
    if name in RANKS:
        assert len(rows) == RANKS[name]
    own = np.linalg.svd(every[rows], compute_uv=False)
    assert own[-1] > 0.05 * size[len(rows) - 1]
    assert np.array_equal(rows, np.unique(rows))


@pytest.mark.parametrize("name", CASES)
def test_rounding_chooses_no_rows(name):
    m = CASES[name]()
    expected = independent_rows(m, m.reference)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = kinematics.move(m, m.reference, 1e-13 * rng.normal(size=m.nv) * m.dof_unit)
        assert np.array_equal(independent_rows(m, q), expected)


@pytest.mark.parametrize("name", CASES)
def test_one_unit_closes_one_row_with_the_least_energy(name):
    case = Case(CASES[name]())
    found, m, basis = case.close(), case.m, case.model.basis
    assert np.abs(case.rows[found.rows] @ found.closing - np.eye(len(found.rows))).max() < 1e-10
    K = m.stiffness_matrix
    energy = np.sqrt(np.diag(basis.T @ K @ basis)[:, None] * np.diag(found.closing.T @ K @ found.closing))
    assert np.abs(basis.T @ K @ found.closing).max() < 1e-9 * energy.max()
    if name in ("loop", "suspension", "ladder", "four-bar", "stewart", "random"):
        _, expected = dense_closing(m, case.model.q, K)
        if len(expected.T) == len(found.rows):
            expected = expected @ np.linalg.inv(case.rows[found.rows] @ expected)
            np.testing.assert_allclose(found.closing, expected, atol=1e-8 * np.abs(expected).max())


def test_trees_have_nothing_to_close():
    found = Case(pliant.gallery.helix(6)).close()
    assert len(found.rows) == 0
    assert found.closing.shape == (6, 0)
    assert found.curvature is None


def check_curvature(case: Case, pairs, step: float, tolerance: float) -> None:
    found = case.close()
    basis, unit = case.model.basis, case.m.dof_unit
    assert found.curvature is not None
    assert np.abs(found.curvature - found.curvature.transpose(1, 0, 2)).max() == 0
    stiff = basis.T @ static_tangent(case)
    for i, j in pairs:
        expected = case.second_difference(i, j, step)
        expected -= basis @ np.linalg.solve(stiff @ basis, stiff @ expected)
        error = np.abs((found.curvature[i, j] - expected) / unit).max()
        assert error < tolerance * max(np.abs(expected / unit).max(), 0.01)


def static_tangent(case: Case) -> np.ndarray:
    """Symmetric part of the derivative of all forces at the configuration, (nv, nv), by differences."""
    from pliant.statics.tangent import Tangent

    columns = []
    for e in np.diag(1e-4 * case.m.dof_unit):
        ends = [kinematics.move(case.m, case.model.q, sign * e) for sign in (1, -1)]
        there, back = (Tangent(case.m, q, case.loads, case.multipliers).residual for q in ends)
        columns.append((there - back) / (2 * e.max()))
    return (np.array(columns) + np.array(columns).T) / 2


@pytest.mark.parametrize("name", ["loop", "gripper", "suspension", "ladder", "four-bar", "stewart", "random"])
def test_curvature_is_that_of_the_true_equilibria(name):
    case = Case(CASES[name]())
    k = case.model.basis.shape[1]
    check_curvature(case, {(0, 0), (0, k - 1), (k // 2, k - 1)}, 1e-3, 1e-6)


@pytest.mark.parametrize("name", ["four-bar", "suspension", "loop"])
def test_curvature_of_a_mechanism_under_its_weight(name):
    """Constraint forces are not zero: their part in the second derivative of forces counts."""
    m = CASES[name]()
    at = pliant.equilibrium(m, gravity=GRAVITY)
    assert np.abs(at.multipliers).max() > 1.0
    case = Case(m, at=at)
    k = case.model.basis.shape[1]
    check_curvature(case, {(0, 0), (0, k - 1)}, 1e-3, 1e-5)


def test_curvature_of_a_gripper_that_is_stiff_and_soft():
    """Stiff coordinates need wrenches that buckle soft ones soon: the second order ends at 1e-4 rad."""
    case = Case(two_fingers(), ["right_pad", "left_pad"])
    stiffness = np.linalg.eigvalsh(case.model.reduced_stiffness)
    assert stiffness[-1] > 1000 * stiffness[0]
    check_curvature(case, {(0, 0), (0, 1)}, 1e-3, 1e-6)
    check_curvature(case, {(2, 2), (0, 2), (1, 2)}, 1e-5, 1e-3)
