"""`Holder`: compliance and natural frequency of a mechanism that its springs hold at each of many configurations.

Springs are slack and weights compensated at every configuration: a robot under position servos, with the stiffness of
the servos. It is what `Configuration.compliance` and `frequencies` give at the reference pose of
`mechanism.with_pose(q)`, by one kernel for all configurations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.mechanism import Mechanism, kinematics
from pliant.mechanism.elimination_kernels import Matrix
from pliant.statics.inertia import Inertia
from pliant.statics.limit_springs import typical_stiffness
from pliant.statics.loads import collect_loads, tendon_lengths
from pliant.statics.modes import lowest_frequencies
from pliant.statics.servo_kernels import Servo, respond
from pliant.statics.tangent import PASSIVE, Tangent, static_response

__all__ = ["Held", "Holder"]

Floats = NDArray[np.float64]
_REDUNDANT = 1e-9  # remainder of a dependent row, radians and sizes of loops
_ROUNDS = 30  # of refinement; where more are needed, motions are so soft that it takes another method


class Held(NamedTuple):
    """A body of a mechanism held by its springs, at each of several configurations.

    Attributes:
        pose: world pose of the body, (samples, 4, 4).
        compliance: its twist per wrench at its origin, world axes, linear part first, (samples, 6, 6); NaN where no
            spring holds it.
        frequency: the lowest natural frequency of the mechanism, Hz, (samples,); NaN if not asked for, or where no
            spring holds some motion.
    """

    pose: Floats
    compliance: Floats
    frequency: Floats


class Holder:
    """A mechanism held by its springs, wherever it is; not for several threads at once.

    Attributes:
        mechanism, body: the mechanism, and the name of the body.
        problem: message of the first configuration at which no spring holds the body, or None.
    """

    def __init__(self, mechanism: Mechanism, body: str, frequency: bool = True):
        """Set up the work space; `frequency` computes natural frequencies, at a cost cubic in the number of dofs."""
        m = self.mechanism = mechanism
        self.body, self.problem = body, None
        self._frequency = frequency
        self._link = int(m.links.body_link[m.body_index(body)])
        self._slack = collect_loads(m, None, None)
        rights, n, rows = m.nv if frequency else 6, len(m.links), len(m.elimination.scale)
        lent = np.where(m.stiffness == 0, PASSIVE * typical_stiffness(m) / m.dof_unit**2, 0.0)
        poses = kinematics.link_poses(m, m.reference)
        plan = m.elimination
        fronts, motion = plan.allocate()
        held = m.tendon_stiffness > 0
        soft, give = np.zeros(rows, dtype=np.int64), np.zeros(rows)
        soft[plan.hard :] = held
        give[plan.hard :][held] = plan.scale[plan.hard :][held] ** 2 / m.tendon_stiffness[held]
        stiffness = np.zeros((m.nv, 3))
        stiffness[np.arange(m.nv), np.arange(m.nv) - m.links.dof[plan.owner]] = m.stiffness + lent
        matrix = Matrix(
            position=np.zeros((n, 3)),
            screw=np.zeros((m.nv, 6)),
            column=np.zeros((m.nv, 6)),
            row=np.zeros((m.nv, 6)),
            tangent=np.zeros((n, 6, 6)),
            stiffness=stiffness,
            give=give,
        )
        self._rounds = _ROUNDS if lent.any() else 0
        self._servo = Servo(
            tree=plan.with_tendons(m.tendons.dense(m.nv)),
            fronts=fronts,
            matrix=matrix,
            motion=motion,
            unit=m.dof_unit,
            lent=lent,
            soft=soft,
            inertia=Inertia(m, m.reference).links,
            armature=m.armature,
            wrench=np.zeros((n, 6)),
            tangent=np.zeros((n, 6, 6)),
            local=poses.copy(),
            poses=poses,
            composite=np.zeros((n, 6, 6)),
            gap=np.zeros((rights, rows)),
            multipliers=np.empty((rights, rows)),
            miss=np.empty((3, rows)),
            correction=np.empty((2, m.nv)),
            force=np.empty((rights, m.nv)),
            previous=np.empty((rights, m.nv)),
        )

    def at(self, q: Floats) -> Held:
        """Pose, compliance and frequency at configurations with closed loops, (samples, nq)."""
        m, servo = self.mechanism, self._servo
        samples, nv, rights = len(q), m.nv, len(servo.force)
        pose, jacobian = np.zeros((samples, 4, 4)), np.zeros((samples, 6, nv))
        response = np.empty((samples, rights, nv))
        mass = np.zeros((samples if self._frequency else 0, nv, nv))
        exact = np.zeros(samples, dtype=np.int64)
        q = np.array(q, dtype=np.float64, order="C")
        settings = self._link, m.elimination.hard, _REDUNDANT, self._rounds
        respond(servo, m.links.arrays, q, *settings, pose, jacobian, response, mass, exact)
        frequency = np.full(samples, np.nan)
        if self._frequency:
            sound = np.flatnonzero(exact)
            frequency[sound] = lowest_frequencies(mass[sound], response[sound])
        moved = jacobian @ response if self._frequency else response
        compliance = moved @ jacobian.transpose(0, 2, 1)
        for s in np.flatnonzero(exact == 0).tolist():
            compliance[s], frequency[s] = self._soft(q[s], jacobian[s], mass[s : s + 1])
        return Held(pose, (compliance + compliance.transpose(0, 2, 1)) / 2, frequency)

    def _soft(self, q: Floats, jacobian: Floats, mass: Floats) -> tuple[Floats, float]:
        """Compliance and frequency where some motion meets hardly any stiffness; NaN where it meets none."""
        m = self.mechanism
        loads = replace(self._slack, rest=q, tendon_rest=tendon_lengths(m, q, q))
        tangent = Tangent(m, q, loads)
        compliance, frequency = np.full((6, 6), np.nan), np.nan
        try:
            compliance = static_response(tangent, jacobian)[0] @ jacobian.T
            if self._frequency:
                response = static_response(tangent, np.eye(m.nv))[0]
                frequency = float(lowest_frequencies(mass, response[None])[0])
        except InputError as error:
            self.problem = self.problem or str(error)
        return compliance, frequency
