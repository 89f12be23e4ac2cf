"""`ContactStep`: a step of a tree of links in two halves, with rows for a contact solver in between."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import SPRING, Rows
from pliant.engines.constrained import _contact, _links
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained.arrays import Model, Scratch, State

__all__ = ["ContactStep"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class ContactStep:
    """A step of backward Euler in two halves, on the arrays of the links that move.

    Attributes:
        first: number of the first body of these links among all bodies.
        body_link: link that holds a body, -1 for one that is fixed to the world.
        at_link: origin and centre of mass of a body there, in the link's joint frame, m, (bodies, 6): they carry its
            contact points along, which do not turn. Entries of both may be written to between steps.
    """

    def __init__(
        self,
        timestep: float,
        prepare: Callable[[], Model],
        state: State,
        scratch: Scratch,
        asked: tuple[Floats, Floats],
        first: int,
        body_link: Ints,
        at_link: Floats,
    ):
        """Args:
        timestep: seconds.
        prepare: gives the links with the loads of the next step, and is told by it that this step begins.
        state, scratch: of the links, as in `arrays`.
        asked: kinematics and momenta of links, written whenever they are needed.
        first, body_link, at_link: see above.
        """
        self.first, self.body_link, self.at_link = first, body_link, at_link
        self._timestep, self._prepare, self._state, self._scratch = timestep, prepare, state, scratch
        self._asked = asked
        self._start = np.zeros_like(asked[0])
        self._force = np.zeros(len(state.u))
        self._loads = np.zeros((0, col.LOAD_COLUMNS))

    @property
    def velocity(self) -> Floats:
        """Joint velocities at the start of the step."""
        return self._state.v

    @property
    def start(self) -> Floats:
        """Kinematics of links at the start of the step, after `begin`."""
        return self._start

    def begin(self, count: int, rows: Rows, u: Floats) -> bool:
        """First half: `u`, joint velocities at the end of a step without these blocks, their rows J and response Y.

        The impulses of the blocks are a guess: forces that depend on the final poses are evaluated with it. False if
        the motion leaves the finite numbers.
        """
        r, state = rows, self._state
        self._own = self._prepare()
        links, constants = self._own.links, self._own.constants
        work, moving = self._asked
        _links.forward(links, constants, state.q, state.v, 0.0, work)
        _links.momenta(0, len(links), constants, work, moving)
        self._start[:] = work
        model = self._loaded(count, r)
        if not _contact.begin(self._timestep, model, state, self._scratch):
            return False
        u[:] = state.u
        _contact.contact_rows(
            count,
            r.angular,
            r.body,
            r.point,
            r.axes,
            r.side,
            r.J,
            r.Y,
            self.first,
            self.body_link,
            self.at_link,
            model,
            self._scratch,
            self._start,
            self._force,
            r.impulse,
            u,
        )
        return True

    def withdraw(self) -> None:
        """Undo the first half."""
        self._state.u[:] = self._scratch.backup

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> bool:
        """Second half: go on with the velocities `u` that impulses lead to; positions move by `w` besides.

        Springs and compliant contacts may bring energy, contacts with fixed bodies may not. False if the motion leaves
        the finite numbers.
        """
        r, h, state, scratch = rows, self._timestep, self._state, self._scratch
        own, model = len(self._own.loads), self._loaded(count, r)
        elastic = (r.kind == SPRING) | (r.softness[:, 0] > 0.0)
        first, last = self.first, self.first + len(self.body_link)
        brought = _contact.energy_brought(count, elastic, r.body, r.side, r.J, r.impulse, first, last, u)
        state.u[:] = u
        done = _contact.finish(h, model, state, scratch, own, brought)
        if done and w.any():
            lift = _contact.correction_work(
                count, r.body, r.side, r.J, r.impulse, r.correction, first, last, w
            )
            _contact.shift(h, w, lift, self._own, state, scratch, *self._asked)
        return done

    def _loaded(self, count: int, rows: Rows) -> Model:
        """The links with impulses of blocks as loads, after those of the step."""
        r, own = rows, self._own.loads
        if len(self._loads) < len(own) + 2 * count:
            self._loads = np.zeros((2 * (len(own) + 2 * count), col.LOAD_COLUMNS))
        self._loads[: len(own)] = own
        end = _contact.contact_loads(
            count,
            r.angular,
            r.body,
            r.point,
            r.axes,
            r.impulse,
            self.first,
            self.body_link,
            self.at_link,
            self._own.constants,
            self._start,
            self._timestep,
            len(own),
            self._loads,
        )
        return self._own._replace(loads=self._loads[:end])
