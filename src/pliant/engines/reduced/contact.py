"""`ContactStep`: a step of a `ReducedSimulation` in two halves, with rows for a contact solver in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.engines.reduced import _contact_kernels as contact
from pliant.engines.reduced import _kernels
from pliant.engines.reduced.coordinates import Amplitudes
from pliant.engines.reduced.packing import link_places
from pliant.engines.reduced.simulation import ReducedSimulation

__all__ = ["ContactStep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ContactStep:
    """Steps of a reduced model in contact, by the simulation's own step.

    That step is linear in impulses (TVCG Eq. 23): so it is taken without contacts, and what they add is added after.
    Velocities are those of coordinates, then of a floating base's centre of mass, and its angular velocity. Blocks are
    as for the constrained engine's.

    Args:
        simulation: whose poses come by joints: contacts act where links are seen.
        first: number of the mechanism's first body among all bodies.
    """

    def __init__(self, simulation: ReducedSimulation, first: int):
        self._simulation, self._first = simulation, first
        m = simulation.model.mechanism
        self._body_link = np.ascontiguousarray(m.links.body_link, dtype=np.int64)
        self._screw = np.ascontiguousarray(m.links.screw)
        place = link_places(simulation.model)
        self._links = np.stack([m.links.parent, m.links.kind, m.links.dof, place], axis=1).astype(np.int64)
        self.count = simulation._coordinates.count
        self.free = simulation.model.base is not None
        self.size = self.count + 6 * self.free
        self._maps: tuple[Floats, Floats] | None = None
        if isinstance(simulation._coordinates, Amplitudes):
            nothing = np.zeros(0)
            self._maps = self._at(nothing)
        self._work = np.zeros(20)
        self._fixed = np.zeros(0)
        if self.free:
            start = int(simulation._packed.sizes[_kernels.BASE])
            self._fixed = simulation._packed.constants[start : start + _kernels.BASE_CONSTANTS].copy()
            self._fixed[29:32] = 0.0  # what gravity does is in the momentum already

    def _at(self, y: Floats) -> tuple[Floats, Floats]:
        """Joint velocities per rate, rates per impulse on coordinates."""
        coordinates = self._simulation._coordinates
        return np.ascontiguousarray(coordinates.joint_map(y)), np.ascontiguousarray(coordinates.inverse_at(y))

    def _velocity(self, turn: Floats, out: Floats) -> None:
        s, n = self._simulation, self.count
        out[:n] = s._v
        if self.free:
            out[n : n + 3] = s._base[7:10]
            out[n + 3 :] = turn @ s._base[10:13]

    def begin(
        self,
        count: int,
        turning: Bools,
        body: Ints,
        point: Floats,
        axes: Floats,
        side: Ints,
        J: Floats,
        Y: Floats,
        before: Floats,
        u: Floats,
    ) -> None:
        """First half: rows, and the velocities `before` and, without contacts, after the step: `u`."""
        s = self._simulation
        basis, inverse = self._at(s._y) if self._maps is None else self._maps
        turn, mass = _NONE, 1.0
        base = s.model.base
        if base is not None:
            turn, mass = s._spin_map(), float(base.inertia[0, 0])
        contact.contact_rows(
            count,
            turning,
            body,
            point,
            axes,
            side,
            J,
            Y,
            self._first,
            self._body_link,
            self._links,
            self._screw,
            s._packed.poses,
            basis,
            inverse,
            self.free,
            s._base,
            mass,
            turn,
        )
        self._velocity(turn, before)
        self._start = s._base[:7].copy()
        s.step()
        self._velocity(turn, u)
        self._turn = turn

    def finish(self, u: Floats, w: Floats) -> None:
        """Second half: velocities are `u` instead; positions move by `w` besides."""
        s, n = self._simulation, self.count
        h = s._timestep
        s._y += h * (u[:n] - s._v + w[:n])
        s._v[:] = u[:n]
        if self.free:
            s._base[:7] = self._start
            s._base[7:10] = u[n : n + 3]
            s._base[10:13] = np.linalg.solve(self._turn, u[n + 3 :])
            if w[n:].any():
                s._base[:3] += h * w[n : n + 3]
                turned = spatial.quat_multiply(spatial.quat_exp(h * w[n + 3 :]), s._base[3:7])
                s._base[3:7] = turned
            _kernels.move_base(self._fixed, s._base, h, _STILL, self._work)
        s._reconstruct()


_NONE, _STILL = np.zeros((3, 3)), np.zeros(6)
