"""`ContactStep`: a step of a `ConstrainedSimulation` in two halves, with rows for a contact solver in between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.engines.constrained import _contact_kernels as contact
from pliant.engines.constrained.midpoint import Midpoint
from pliant.errors import InputError

__all__ = ["ContactStep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ContactStep:
    """Steps of a mechanism in contact, on the simulation's own arrays.

    A block is three rows between two bodies: `body` (blocks, 2), `point` and `axes` in the world where the step starts,
    `turning` if its rows are about angular velocities, `impulse` along the axes on the second body.

    Args:
        stepper: of the simulation.
        first: number of the mechanism's first body among all bodies.
    """

    def __init__(self, stepper: Midpoint | object, first: int):
        if not isinstance(stepper, Midpoint):
            raise InputError('contacts need stabilization="newmark"')
        self._stepper, self._first = stepper, first
        self._body_link = np.ascontiguousarray(stepper.m.links.body_link, dtype=np.int64)
        self._start: Floats = np.zeros((len(stepper.m.links), 30))
        self._force = np.zeros(stepper.m.nv)
        self._loads = np.zeros((0, 16))

    @property
    def velocity(self) -> Floats:
        """Joint velocities at the start of the step."""
        return self._stepper._state.v

    def begin(
        self,
        count: int,
        turning: Bools,
        body: Ints,
        point: Floats,
        axes: Floats,
        side: Ints,
        impulse: Floats,
        J: Floats,
        Y: Floats,
        u: Floats,
    ) -> bool:
        """First half: `u`, the joint velocities at the end of a step without these blocks, and the rows of blocks.

        `impulse` is a guess at what acts: what depends on where links end up is taken there.
        """
        s = self._stepper
        if s._beyond:
            s._set_stops()
        s._moved = True
        self._own = s._model
        self._start[:] = s._kinematics(s._state.v)
        self._set_loads(count, turning, body, point, axes, impulse)
        scratch = s._packed.scratch
        if not contact.begin(s.timestep, s._model, s._state, scratch):
            s._model = self._own
            return False
        u[:] = s._state.u
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
            s._model,
            scratch,
            self._start,
            self._force,
            impulse,
            u,
        )
        return True

    def finish(
        self,
        count: int,
        turning: Bools,
        body: Ints,
        point: Floats,
        axes: Floats,
        side: Ints,
        J: Floats,
        impulse: Floats,
        u: Floats,
        w: Floats,
        spring: Bools,
    ) -> bool:
        """Second half: go on with the velocities `u` that impulses lead to; positions move by `w` besides.

        `spring` says which blocks are springs or compliant: they may bring energy, contacts with fixed bodies may not.
        """
        s, own = self._stepper, len(self._own.loads)
        s._model = self._own
        self._set_loads(count, turning, body, point, axes, impulse)
        last = self._first + len(self._body_link)
        brought = contact.energy_brought(count, spring, body, side, J, impulse, self._first, last, u)
        s._state.u[:] = u
        done = contact.finish(s.timestep, s._model, s._state, s._packed.scratch, own, brought)
        s._model = self._own
        if done and w.any():
            contact.shift(s.timestep, w, s._model, s._state, s._packed.scratch, *s._asked)
        return done

    def _set_loads(
        self, count: int, turning: Bools, body: Ints, point: Floats, axes: Floats, impulse: Floats
    ) -> None:
        s, own = self._stepper, self._own.loads
        if len(self._loads) < len(own) + 2 * count:
            self._loads = np.zeros((2 * (len(own) + 2 * count), 16))
        self._loads[: len(own)] = own
        rows = contact.contact_loads(
            count,
            turning,
            body,
            point,
            axes,
            impulse,
            self._first,
            self._body_link,
            s._model.constants,
            self._start,
            s.timestep,
            len(own),
            self._loads,
        )
        s._model = self._own._replace(loads=self._loads[:rows])
