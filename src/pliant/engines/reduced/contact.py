"""`ContactStep`: a step of a `ReducedSimulation` in two halves, with rows for a contact solver in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.engines.reduced import _contact_kernels as contact
from pliant.engines.reduced.arrays import link_places
from pliant.engines.reduced.coordinates import Amplitudes

if TYPE_CHECKING:
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
        self.count = simulation._map.count
        self.free = simulation.model.base is not None
        self.size = self.count + 6 * self.free
        self._maps: tuple[Floats, Floats] | None = None
        if isinstance(simulation._map, Amplitudes):
            self._maps = self._at(np.zeros(0))
        self._turn, self._work, self._start = np.zeros((3, 3)), np.zeros(32), np.zeros(7)

    def _at(self, y: Floats) -> tuple[Floats, Floats]:
        """Joint velocities per rate, rates per impulse on coordinates."""
        coordinates = self._simulation._map
        return np.ascontiguousarray(coordinates.joint_map(y)), np.ascontiguousarray(coordinates.inverse_at(y))

    @property
    def constant(self) -> bool:
        """Whether the answer to impulses is the same wherever the model is."""
        return self._maps is not None

    def arrays(self) -> tuple[NDArray, ...]:
        """What a constant model needs in compiled steps."""
        maps = self._at(np.zeros(0)) if self._maps is None else self._maps
        own = (self._body_link, self._links, self._screw, *maps, self._start, self._turn, self._work)
        return (*self._simulation._arrays, *own)

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
        s, turn = self._simulation, self._turn
        sizes, _, constants, state, poses = s._arrays
        basis, inverse = self._at(s._y) if self._maps is None else self._maps
        contact.spin_map(sizes, constants, state, turn, self._work)
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
            poses,
            basis,
            inverse,
            sizes,
            constants,
            state,
            turn,
        )
        contact.velocities(sizes, state, turn, before)
        if self.free:
            self._start[:] = s._base[:7]
        s.step()
        contact.velocities(sizes, state, turn, u)

    def finish(self, u: Floats, w: Floats) -> None:
        """Second half: velocities are `u` instead; positions move by `w` besides."""
        s = self._simulation
        sizes, _, constants, state, _ = s._arrays
        contact.finish(sizes, constants, state, self._start, self._turn, u, w, self._work)
        s._reconstruct()
