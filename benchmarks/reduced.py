"""Reduced models: cost of a step with all poses against MuJoCo and articulated bodies, stability, and errors.

Every mechanism is pushed at its first end effector, at the centre of mass, so that the push moves it by a tenth of
the radius to first order. MuJoCo gets contacts switched off, one call for many steps, and the integrator that is
fastest among those that hold for a second; the articulated bodies get springs and dampers implicitly, as ours do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

import mujoco
import numpy as np
from measure import show
from numba import njit
from numpy.typing import NDArray

import pliant
from pliant.mechanism import _kernels as kinematics
from pliant.spatial import _kernels as se3
from pliant.statics import _kernels as elimination
from pliant.statics.inertia import Inertia

mujoco.set_mju_user_warning(lambda _: None)  # integrators that blow up are tried on purpose

Floats = NDArray[np.float64]
pin: Any = import_module("pinocchio")  # its classes are made at run time: a type checker finds none

STEP = 1e-3
SLOW = 1 / 60
INTEGRATORS = ("Euler", "implicit", "implicitfast", "RK4", "discrete")
TOWARDS = np.array([0.6, 0.5, -0.62]) / np.linalg.norm([0.6, 0.5, -0.62])
SIZE = 0.1  # of the radius: how far the push moves the tip
CASES: dict[str, tuple[Callable[[], pliant.Mechanism], float]] = {  # and how many times faster than MuJoCo
    "helix(50)": (lambda: pliant.gallery.helix(50), 40.0),
    "helix(100)": (lambda: pliant.gallery.helix(100), 90.0),
    "helix(400)": (lambda: pliant.gallery.helix(400), 900.0),
    "ladder(16)": (lambda: pliant.gallery.ladder(16), 100.0),
    "arm()": (pliant.gallery.arm, 5.0),
}


class _Case:
    """A mechanism, its reduced model and the push."""

    def __init__(self, name: str, m: pliant.Mechanism):
        self.name, self.m, self.model = name, m, pliant.reduce(m)
        self.tip = m.end_effectors[0]
        self.index = m.body_index(self.tip)
        turn = m.reference_poses[self.index, :3, :3]
        moved = turn @ self.model.compliance[:3, :3] @ turn.T @ TOWARDS
        self.force: Floats = TOWARDS * SIZE * m.radius / np.linalg.norm(moved)

    def simulation(self, h: float = STEP, reconstruction: str = "joint") -> pliant.ReducedSimulation:
        out = pliant.ReducedSimulation(self.model, h, reconstruction)
        out.apply_wrench(self.tip, force=self.force, point=self.m.com[self.index])
        return out

    def displacement(self, poses: Floats) -> Floats:
        return poses[..., self.index, :3, 3] - self.m.reference_poses[self.index, :3, 3]


def _turns(contenders: dict[str, Callable[[], object]], rounds: int = 9) -> dict[str, tuple[float, float]]:
    """Median and least seconds of each; they take turns. On a machine in use the least say more."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(rounds):
        for name, call in contenders.items():
            start = perf_counter()
            call()
            times[name].append(perf_counter() - start)
    return {name: (median(values), min(values)) for name, values in times.items()}


# --- MuJoCo


class _MuJoCo:
    """MuJoCo on the same mechanism under the same push."""

    def __init__(self, case: _Case):
        self.case = case
        self.model = mujoco.MjModel.from_xml_string(case.m.to_mjcf())
        self.model.opt.gravity[:] = 0
        self.model.opt.timestep = STEP
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
        self.data = mujoco.MjData(self.model)
        self.tip = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, case.tip)

    def restart(self, integrator: str) -> None:
        self.model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        mujoco.mj_resetData(self.model, self.data)
        self.data.xfrc_applied[self.tip, :3] = self.case.force

    def step(self, n: int) -> None:
        mujoco.mj_step(self.model, self.data, nstep=n)

    def seconds(self, integrator: str, n: int) -> float:
        """Least seconds per step of three short runs."""
        times = []
        for _ in range(3):
            self.restart(integrator)
            self.step(1)
            start = perf_counter()
            self.step(n)
            times.append((perf_counter() - start) / n)
        return min(times)

    def holds(self, integrator: str) -> bool:
        """Whether a second passes without warnings, with all in place, and no more energy than the push put in."""
        self.restart(integrator)
        mujoco.mj_forward(self.model, self.data)
        start = self.data.xipos.copy()
        work = 0.0
        for _ in range(50):
            self.step(round(0.02 / STEP))
            mujoco.mj_energyPos(self.model, self.data)
            mujoco.mj_energyVel(self.model, self.data)
            moved = self.data.xipos - start
            far = np.abs(moved).max()
            work = max(work, abs(float(self.case.force @ moved[self.tip])))
            warned = any(warning.number for warning in self.data.warning)
            if warned or not far < 2 * self.case.m.radius or not self.data.energy.sum() < 1.1 * work:
                return False
        return True

    def fastest(self) -> tuple[str, list[str]]:
        """The fastest integrator that holds, and the faster ones that do not; slower ones cannot count."""
        known = [i for i in INTEGRATORS if hasattr(mujoco.mjtIntegrator, f"mjINT_{i.upper()}")]
        few = 4 if self.model.nv > 200 else 50
        failed = []
        for name in sorted(known, key=lambda name: self.seconds(name, few)):
            if self.holds(name):
                return name, failed
            failed.append(name)
        raise RuntimeError(f"no integrator of MuJoCo holds on {self.case.name}")


def _against_mujoco(cases: list[_Case]) -> list[dict[str, Any]]:
    results = []
    for case in cases:
        peer = _MuJoCo(case)
        integrator, failed = peer.fastest()
        after_second = case.simulation()
        after_second.step(round(1 / STEP))
        apart = np.linalg.norm(after_second.poses[case.index, :3, 3] - peer.data.xpos[peer.tip])
        joint, twist = case.simulation(), case.simulation(reconstruction="twist")
        steps = round(10_000 / (1 + case.m.body_count / 50))
        few = max(3, round(0.01 / peer.seconds(integrator, 5)))  # about as long as ours
        times = _turns(
            {
                "MuJoCo": lambda peer=peer, few=few: peer.step(few),
                "joint": lambda s=joint, n=steps: s.step(n),
                "twist": lambda s=twist, n=steps: s.step(n),
            }
        )
        us = {name: 1e6 * t[0] / (few if name == "MuJoCo" else steps) for name, t in times.items()}
        least = {name: 1e6 * t[1] / (few if name == "MuJoCo" else steps) for name, t in times.items()}
        results.append(
            {
                "mechanism": case.name,
                "links": case.m.body_count,
                "end effectors": len(case.model.end_effectors),
                "integrator": integrator,
                "faster but unstable": failed,
                "us": us,
                "least us": least,
                "ratio": us["MuJoCo"] / us["joint"],
                "ratio of least": least["MuJoCo"] / least["joint"],
                "target": CASES[case.name][1],
                "apart after 1 s, of radius": float(apart / case.m.radius),
            }
        )
    show(
        "whole step with all poses, 1 ms, one thread (µs)",
        [
            "mechanism",
            "links",
            "ends",
            "MuJoCo",
            "integrator",
            "joint",
            "twist",
            "ratio",
            "of least",
            "target",
            "tips apart / radius",
        ],
        [
            [
                r["mechanism"],
                r["links"],
                r["end effectors"],
                f"{r['us']['MuJoCo']:.1f}",
                r["integrator"],
                f"{r['us']['joint']:.2f}",
                f"{r['us']['twist']:.2f}",
                f"{r['ratio']:.1f}x",
                f"{r['ratio of least']:.1f}x",
                f"{r['target']:.0f}x",
                f"{r['apart after 1 s, of radius']:.1e}",
            ]
            for r in results
        ],
    )
    return results


# --- articulated bodies


@njit(error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp"})
def _articulated(count, h, links, springs, push, state, work):
    """`count` steps of (M + hD + h²K) dv = h (Jᵀw - bias - K (q + hv) - D v) on a tree of hinges, a link per dof."""
    parent, kind, offset, screw, anchor, dof, coordinate, inertia = links
    stiffness, damping, rest, diagonal = springs
    tip, point, force = push
    q, v, local, poses = state
    twist, bias, wrench, zero, ball, tangent, left, right, inverse, residual, dv, momentum, spare = work
    n = parent.shape[0]
    for _ in range(count):
        kinematics.forward(parent, kind, offset, screw, anchor, dof, coordinate, q, local, poses)
        for k in range(n):
            x, a, s, f, p, u = twist[k], bias[k], screw[k], wrench[k], momentum[k], v[k]
            if parent[k] >= 0:
                se3.motion_to_child(local[k], twist[parent[k]], x)
                se3.motion_to_child(local[k], bias[parent[k]], a)
            else:
                for i in range(6):
                    x[i] = 0.0
                    a[i] = 0.0
            a[0] += u * (x[4] * s[2] - x[5] * s[1] + x[1] * s[5] - x[2] * s[4])
            a[1] += u * (x[5] * s[0] - x[3] * s[2] + x[2] * s[3] - x[0] * s[5])
            a[2] += u * (x[3] * s[1] - x[4] * s[0] + x[0] * s[4] - x[1] * s[3])
            a[3] += u * (x[4] * s[5] - x[5] * s[4])
            a[4] += u * (x[5] * s[3] - x[3] * s[5])
            a[5] += u * (x[3] * s[4] - x[4] * s[3])
            for i in range(6):
                x[i] += u * s[i]
            for i in range(6):
                pull = 0.0
                carried = 0.0
                for j in range(6):
                    pull += inertia[k, i, j] * a[j]
                    carried += inertia[k, i, j] * x[j]
                    tangent[k, i, j] = -inertia[k, i, j]
                f[i] = -pull
                p[i] = carried
            f[0] -= x[4] * p[2] - x[5] * p[1]
            f[1] -= x[5] * p[0] - x[3] * p[2]
            f[2] -= x[3] * p[1] - x[4] * p[0]
            f[3] -= x[1] * p[2] - x[2] * p[1] + x[4] * p[5] - x[5] * p[4]
            f[4] -= x[2] * p[0] - x[0] * p[2] + x[5] * p[3] - x[3] * p[5]
            f[5] -= x[0] * p[1] - x[1] * p[0] + x[3] * p[4] - x[4] * p[3]
            residual[k] = stiffness[k] * (q[k] - rest[k]) + (damping[k] + h * stiffness[k]) * u
        T, f = poses[tip], wrench[tip]
        x = T[0, 0] * force[0] + T[1, 0] * force[1] + T[2, 0] * force[2]
        y = T[0, 1] * force[0] + T[1, 1] * force[1] + T[2, 1] * force[2]
        z = T[0, 2] * force[0] + T[1, 2] * force[1] + T[2, 2] * force[2]
        f[0] += x
        f[1] += y
        f[2] += z
        f[3] += point[1] * z - point[2] * y
        f[4] += point[2] * x - point[0] * z
        f[5] += point[0] * y - point[1] * x
        elimination.accumulate(parent, kind, screw, dof, local, wrench, residual)
        for k in range(n):
            residual[k] *= -h
        elimination.factor(
            parent, kind, screw, dof, local, zero, diagonal, ball, tangent, left, right, inverse
        )
        elimination.solve(
            parent, kind, screw, dof, local, left, right, inverse, residual, dv, momentum, spare
        )
        for k in range(n):
            v[k] += dv[k]
            q[k] += h * v[k]


class _Articulated:
    """The articulated-body algorithm on pliant's own kernels."""

    def __init__(self, case: _Case, h: float = STEP):
        m, n = case.m, case.m.nv
        k = m.links
        each = np.arange(n)
        if not all(np.array_equal(a, each) for a in (k.dof, k.coordinate, k.body)) or (k.kind != 1).any():
            raise ValueError("a tree of single hinges expected")
        self.h, self.v, self.q = h, np.zeros(n), m.reference.copy()
        local, self.poses = np.tile(np.eye(4), (2, n, 1, 1))
        inertia = Inertia(m, m.reference).links
        self._links = k.parent, k.kind, k.offset, k.screw, k.anchor, k.dof, k.coordinate, inertia
        diagonal = m.armature + h * m.damping + h * h * m.stiffness
        self._springs = m.stiffness, m.damping, m.rest, diagonal
        self._push = case.index, m.com[case.index], case.force
        self._state = self.q, self.v, local, self.poses
        shapes = (6,), (6,), (6,), (6,), (3,), (6, 6), (6,), (6,), (3,), (), (), (6,), (6,)
        self._work = tuple(np.zeros((n, *shape)) for shape in shapes)

    def step(self, n: int) -> None:
        _articulated(n, self.h, self._links, self._springs, self._push, self._state, self._work)


class _Pinocchio:
    """The articulated-body algorithm of Pinocchio, in C++; implicit springs go where it takes rotor inertias."""

    def __init__(self, case: _Case, h: float = STEP):
        m, k = case.m, case.m.links
        self.model = pin.Model()
        for i in range(m.nv):
            above = int(k.parent[i])
            place = k.offset[i][:3, 3] + k.offset[i][:3, :3] @ k.anchor[i]
            place = place - (k.anchor[above] if above >= 0 else 0.0)  # frames are on the axes there
            joint = self.model.addJoint(
                above + 1,
                pin.JointModelRevoluteUnaligned(k.screw[i, 3:]),
                pin.SE3(k.offset[i][:3, :3], place),
                str(i),
            )
            inertia = pin.Inertia(m.mass[i], m.com[i] - k.anchor[i], m.inertia[i])
            self.model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        self.model.gravity.setZero()
        self.model.armature = m.armature + h * m.damping + h * h * m.stiffness
        self.data = self.model.createData()

    def acceleration(self, q: Floats, v: Floats, torque: Floats) -> Floats:
        """With world poses on the way, which this convention computes."""
        return pin.aba(self.model, self.data, q, v, torque, pin.Convention.WORLD)


def _check_articulated(case: _Case, theirs: _Pinocchio) -> dict[str, float]:
    """One step from a random state: ours and Pinocchio's against a dense solve with the bias MuJoCo computes."""
    m = case.m
    ours, reference = _Articulated(case), _MuJoCo(case)
    random = np.random.default_rng(0)
    ours.q += 0.05 * random.standard_normal(m.nv)
    ours.v += random.standard_normal(m.nv)
    q, v = ours.q.copy(), ours.v.copy()
    reference.restart("Euler")
    reference.data.qpos[:], reference.data.qvel[:] = q, v
    mujoco.mj_forward(reference.model, reference.data)
    at = pliant.Configuration(m, q)
    jacobian = at.jacobian(case.tip, "world")
    lever = at.pose(case.tip)[:3, :3] @ m.com[case.index]
    push = jacobian[:3].T @ case.force + jacobian[3:].T @ np.cross(lever, case.force)
    springs = m.stiffness * (m.rest - q - STEP * v) - m.damping * v
    dense = at.mass_matrix() + np.diag(STEP * m.damping + STEP**2 * m.stiffness)
    expected = np.linalg.solve(dense, push + springs - reference.data.qfrc_bias)
    found = theirs.acceleration(q, v, push + springs)
    ours.step(1)
    size = np.abs(expected).max()
    return {
        "own kernels": float(np.abs((ours.v - v) / STEP - expected).max() / size),
        "Pinocchio": float(np.abs(found - expected).max() / size),
    }


def _against_articulated(case: _Case) -> dict[str, Any]:
    theirs = _Pinocchio(
        case
    )  # built once: adding joints takes time that grows with the square of their number
    errors = _check_articulated(case, theirs)
    if max(errors.values()) > 1e-6:
        raise RuntimeError(f"the peers compute something else: {errors}")
    ours, own = case.simulation(), _Articulated(case)
    own.step(20)
    q, v, torque = own.q.copy(), own.v.copy(), np.zeros(case.m.nv)
    counts = {"reduced": 2000, "own kernels": 50, "Pinocchio": 50}

    def pinocchio_steps() -> None:  # springs, push and integration are left out: they would cost numpy's time
        for _ in range(counts["Pinocchio"]):
            theirs.acceleration(q, v, torque)

    times = _turns(
        {
            "reduced": lambda: ours.step(counts["reduced"]),
            "own kernels": lambda: own.step(counts["own kernels"]),
            "Pinocchio": pinocchio_steps,
        }
    )
    us = {name: 1e6 * t[0] / counts[name] for name, t in times.items()}
    least = {name: 1e6 * t[1] / counts[name] for name, t in times.items()}
    own.step(2000)
    settled = case.simulation()
    settled.step(2000)
    apart = np.linalg.norm(case.displacement(own.poses) - case.displacement(settled.poses)) / case.m.radius
    rows: list[list[object]] = [
        [
            name,
            f"{us[name]:.1f}",
            f"{us[name] / us['reduced']:.1f}x",
            f"{least[name] / least['reduced']:.1f}x",
            "25x",
            f"{errors[name]:.0e}",
        ]
        for name in errors
    ]
    show(
        f"articulated bodies on {case.name}; ours {us['reduced']:.2f} µs; settled tips {apart:.1e} radii apart",
        ["peer", "µs", "ratio", "of least", "target", "error of a step"],
        rows,
    )
    return {
        "us": us,
        "least us": least,
        "ratio": min(us["own kernels"], us["Pinocchio"]) / us["reduced"],
        "target": 25.0,
        "error of a step": errors,
        "settled apart, of radius": float(apart),
    }


# --- the engine by itself


def _settle(s: pliant.ReducedSimulation, slowest: float) -> Floats:
    """Poses at rest: velocities are dropped every quarter of the slowest period, when it is at its fastest."""
    quarter = max(1, round(0.25 / slowest / s.timestep))
    count = (len(s.state) - 1) // 2
    for _ in range(30):
        s.step(quarter)
        state = s.state
        state[1 + count :] = 0.0
        s.state = state
    return s.poses.copy()


def _large_steps(cases: list[_Case]) -> list[dict[str, Any]]:
    results = []
    for case in cases:
        slowest = float(case.model.frequencies()[0])
        large = case.simulation(SLOW)
        start = case.displacement(large.record(600).poses)  # raises if the motion is not finite
        large.step(
            40_000
        )  # eleven minutes, for the ladder swings once in five seconds with hardly any damping
        slow = case.displacement(large.poses)
        fine = case.displacement(_settle(case.simulation(1e-4), slowest))
        size = np.linalg.norm(fine)
        results.append(
            {
                "mechanism": case.name,
                "moved, of radius": float(size / case.m.radius),
                "difference": float(np.linalg.norm(slow - fine) / size),
                "overshoot": float(np.linalg.norm(start, axis=1).max() / size),
                "finite": bool(np.isfinite(start).all() and np.isfinite(large.poses).all()),
            }
        )
    show(
        "settled at 1/60 s against settled at 0.1 ms",
        ["mechanism", "moved / radius", "difference / moved", "target", "farthest / moved", "finite"],
        [
            [
                r["mechanism"],
                f"{r['moved, of radius']:.3f}",
                f"{r['difference']:.1e}",
                "2e-02",
                f"{r['overshoot']:.2f}",
                r["finite"],
            ]
            for r in results
        ],
    )
    return results


def _call_cost(cases: list[_Case]) -> list[dict[str, Any]]:
    results = []
    for case in cases:
        s, n = case.simulation(), 2000

        def calls(s: pliant.ReducedSimulation = s, n: int = n) -> None:
            for _ in range(n):
                s.step()

        times = _turns({"calls": calls, "inside": lambda s=s, n=n: s.step(n)}, 15)
        us = {name: 1e6 * t[0] / n for name, t in times.items()}
        least = (times["calls"][1] - times["inside"][1]) / n * 1e6
        results.append(
            {"mechanism": case.name, **us, "cost": us["calls"] - us["inside"], "cost of least": least}
        )
    show(
        "what a call from Python adds (µs)",
        ["mechanism", "step()", "a step within step(n)", "cost of the call", "of least", "target"],
        [
            [
                r["mechanism"],
                *(f"{r[key]:.2f}" for key in ("calls", "inside", "cost", "cost of least")),
                "1.5",
            ]
            for r in results
        ],
    )
    return results


def _reducing() -> list[dict[str, Any]]:
    g = pliant.gallery
    given = {
        "helix(400)": (g.helix(400), 0, 20.0),
        "hand()": (g.hand(), 0, 20.0),
        "helix(50), 6 modes": (g.helix(50), 6, None),
    }
    times = _turns(
        {name: lambda m=m, k=k: pliant.reduce(m, modes=k) for name, (m, k, _) in given.items()}, 11
    )
    results = [
        {"mechanism": name, "ms": 1e3 * times[name][0], "least ms": 1e3 * times[name][1], "target": target}
        for name, (*_, target) in given.items()
    ]
    show(
        "reduce, compiled (ms)",
        ["mechanism", "ms", "least", "target"],
        [
            [
                r["mechanism"],
                f"{r['ms']:.1f}",
                f"{r['least ms']:.1f}",
                "-" if r["target"] is None else f"{r['target']:.0f}",
            ]
            for r in results
        ],
    )
    return results


def _batches() -> list[dict[str, Any]]:
    """Two unrelated simulations on two threads tell what the machine has to give while others use it."""
    copies, n, results = 1000, 20, []
    for name, m in (("hand()", pliant.gallery.hand()), ("helix(50)", pliant.gallery.helix(50))):
        case = _Case(name, m)
        batches = {}
        for threads in (1, 2):
            batch = pliant.ReducedBatch(case.model, STEP, copies, threads=threads)
            batch.apply_wrench(case.tip, force=np.outer(np.linspace(0.0, 1.0, copies), case.force))
            batches[threads] = batch
        pair = [case.simulation(), case.simulation()]
        half = copies * n // 2

        def apart(pair: list[pliant.ReducedSimulation] = pair, half: int = half) -> None:
            for s in pair:
                s.step(half)

        def together(pair: list[pliant.ReducedSimulation] = pair, half: int = half) -> None:
            list(pool.map(lambda s: s.step(half), pair))

        calls: dict[str, Callable[[], object]] = {str(t): lambda b=b: b.step(n) for t, b in batches.items()}
        with ThreadPoolExecutor(2) as pool:
            times = _turns({**calls, "apart": apart, "together": together})
        rate = {t: copies * n / times[str(t)][0] for t in batches}
        best = times["1"][1] / times["2"][1]
        results.append(
            {
                "mechanism": name,
                "steps/s, 1 thread": rate[1],
                "steps/s, 2 threads": rate[2],
                "speed-up": rate[2] / rate[1],
                "speed-up of least": best,
                "speed-up of two unrelated simulations": times["apart"][0] / times["together"][0],
            }
        )
    show(
        f"{copies} copies, all poses (million steps/s)",
        ["mechanism", "1 thread", "2 threads", "speed-up", "of least", "unrelated simulations"],
        [
            [
                r["mechanism"],
                f"{1e-6 * r['steps/s, 1 thread']:.2f}",
                f"{1e-6 * r['steps/s, 2 threads']:.2f}",
                f"{r['speed-up']:.2f}x",
                f"{r['speed-up of least']:.2f}x",
                f"{r['speed-up of two unrelated simulations']:.2f}x",
            ]
            for r in results
        ],
    )
    return results


# --- errors


def _gap(m: pliant.Mechanism, poses: Floats) -> float:
    """Largest distance between a hinge's anchor as its parent carries it and as its child does."""
    if not all(kind == "hinge" for kind in m.joint_types):
        raise ValueError("hinges expected: other joints may move their anchors apart")
    world = np.concatenate([poses, np.eye(4)[None]])  # index -1 is the world
    anchor = np.concatenate([m.primitive_anchor, np.ones((m.joint_count, 1))], axis=1)[..., None]
    sides = (m.joint_parents, m.parent_frames), (m.joint_children, m.child_frames)
    ours, theirs = (world[body] @ frames @ anchor for body, frames in sides)
    return float(np.linalg.norm((ours - theirs)[:, :3, 0], axis=1).max())


def _errors() -> list[dict[str, Any]]:
    g, results = pliant.gallery, []
    for name, m in (("helix(50)", g.helix(50)), ("y()", g.y()), ("ladder(12)", g.ladder(12))):
        model, tip = pliant.reduce(m), m.end_effectors[0]
        index = m.body_index(tip)
        for axis, force in zip("xyz", 100.0 * np.eye(3), strict=True):
            row: dict[str, Any] = {"mechanism": name, "force": f"100 N along {axis}"}
            results.append(row)
            try:
                exact = pliant.equilibrium(m, {tip: force})
            except pliant.errors.ConvergenceError:
                row["failed"] = "no equilibrium found"
                continue
            row["stability"] = exact.stability
            row["moved"] = float(exact.displacement[index] / m.radius)
            for reconstruction in ("joint", "twist"):
                s = pliant.ReducedSimulation(model, SLOW, reconstruction)
                s.apply_wrench(tip, force=force)
                try:
                    s.step(40_000)
                except pliant.errors.ConvergenceError:
                    row["failed"] = f"{reconstruction}: left the finite numbers"
                    continue
                still = s.poses[index, :3, 3].copy()
                s.step(100)
                row[reconstruction] = {
                    "error": float(np.linalg.norm(still - exact.poses[index, :3, 3]) / m.radius),
                    "gap": _gap(m, s.poses) / m.radius,
                    "still moving": float(np.linalg.norm(s.poses[index, :3, 3] - still) / m.radius),
                }
    rows = []
    for r in results:
        cells = [r["mechanism"], r["force"], f"{r['moved']:.3f}" if "moved" in r else "-"]
        for reconstruction in ("joint", "twist"):
            found = r.get(reconstruction)
            cells += ["-", "-"] if found is None else [f"{found['error']:.4f}", f"{found['gap']:.1e}"]
        note = r.get("failed") or (r["stability"] if r["stability"] != "stable" else "")
        note = note or ("rigid that way" if r["moved"] < 1e-9 else "")
        swinging = any(r[key]["still moving"] > 1e-6 for key in ("joint", "twist") if key in r)
        rows.append([*cells, note or ("swings on" if swinging else "")])
    show(
        "one model against equilibrium, in radii",
        [
            "mechanism",
            "force",
            "tip moves",
            "joint: tip error",
            "joint: gap",
            "twist: tip error",
            "twist: gap",
            "",
        ],
        rows,
    )
    return results


def _frequencies() -> list[dict[str, Any]]:
    g, results = pliant.gallery, []
    kinds: dict[str, dict[str, Any]] = {
        "condensed": {},
        "condensed, 6 modes": {"modes": 6},
        "operational": {"inertia": "operational"},
        "accelerability": {"inertia": "accelerability"},
    }
    for name, m in (
        ("helix(50)", g.helix(50)),
        ("arm()", g.arm()),
        ("y()", g.y()),
        ("ladder(12)", g.ladder(12)),
    ):
        exact = float(pliant.Configuration(m).frequencies(1)[0])
        row: dict[str, Any] = {"mechanism": name, "Hz": exact}
        for kind, options in kinds.items():
            try:
                row[kind] = float(pliant.reduce(m, **options).frequencies()[0]) / exact - 1
            except pliant.errors.PliantError as error:
                row[kind] = str(error)
        results.append(row)
    show(
        "error of the first natural frequency",
        ["mechanism", "Hz", *kinds],
        [
            [
                r["mechanism"],
                f"{r['Hz']:.4g}",
                *(f"{100 * r[k]:+.2f} %" if isinstance(r[k], float) else "refused" for k in kinds),
            ]
            for r in results
        ],
    )
    return results


FRESH = """
import time
import pliant
m = pliant.gallery.helix(50)
times = [time.perf_counter()]
model = pliant.reduce(m)
times.append(time.perf_counter())
simulation = pliant.ReducedSimulation(model, 0.001)
simulation.step()
times.append(time.perf_counter())
print(times[1] - times[0], times[2] - times[1])
"""


def _starting() -> dict[str, dict[str, float]]:
    """Fresh processes: one that finds nothing compiled, then the best of three that find everything."""
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for name, rounds in (("everything to compile", 1), ("compiled code cached", 3)):
            found = []
            for _ in range(rounds):
                command = [sys.executable, "-c", FRESH]
                done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
                found.append([float(word) for word in done.stdout.split()])
            reducing, stepping = np.min(found, axis=0).tolist()
            results[name] = {"reduce": reducing, "first step": stepping}
    show(
        "helix(50) in a fresh process (s)",
        ["", "reduce", "first step"],
        [[name, r["reduce"], r["first step"]] for name, r in results.items()],
    )
    return results


def run() -> dict[str, Any]:
    """Medians of interleaved runs; minima beside them."""
    cases = [_Case(name, make()) for name, (make, _) in CASES.items()]
    return {
        "step": _against_mujoco(cases),
        "articulated bodies": _against_articulated(cases[2]),
        "large steps": _large_steps(cases),
        "call": _call_cost(cases),
        "reduce": _reducing(),
        "batch": _batches(),
        "errors": _errors(),
        "frequencies": _frequencies(),
        "start": _starting(),
    }
