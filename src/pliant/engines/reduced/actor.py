"""`ReducedActor`: a reduced or blended model in contact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Rows
from pliant.engines.reduced import contact_kernels as kernels
from pliant.engines.reduced.arrays import link_places
from pliant.engines.reduced.coordinates import Amplitudes
from pliant.engines.reduced.kernels import SIZES
from pliant.engines.single_actor import SingleActor

if TYPE_CHECKING:
    from pliant.engines.reduced.simulation import ReducedSimulation

__all__ = ["NO_MODEL", "ReducedActor"]

Floats = NDArray[np.float64]

# Arrays of a world without a reduced model
_INTS = np.zeros((0, kernels.TREE), dtype=np.int64)
NO_MODEL = kernels.ContactModel(
    sizes=np.zeros(SIZES, dtype=np.int64), links=_INTS, constants=np.zeros(1), state=np.zeros(1),
    poses=np.zeros((0, 4, 4)), body_link=np.zeros(0, dtype=np.int64), tree=_INTS, screw=np.zeros((0, 6)),
    basis=np.zeros((0, 0)), inverse=np.zeros((0, 0)), start=np.zeros(kernels.VELOCITY),
    inverse_inertia=np.zeros((3, 3)), work=np.zeros(kernels.WORK),
)  # fmt: skip


class ReducedActor(SingleActor):
    """A reduced or blended model; its velocities are the rates of its coordinates, then those of a floating base.

    Contacts act at the links as reconstructed by joints.
    """

    def __init__(self, simulation: ReducedSimulation):
        floats = simulation.model.base is not None
        super().__init__(simulation, len(simulation.coordinates) + 6 * floats, floats)
        self._reduced = simulation
        self._constant = isinstance(simulation._map, Amplitudes)  # is the response the same in all poses?
        links = simulation.model.mechanism.links
        tree = np.stack([links.parent, links.kind, links.dof, link_places(simulation.model)], axis=1)
        self._model = kernels.ContactModel(
            *simulation._arrays,
            np.ascontiguousarray(links.body_link, dtype=np.int64),
            tree.astype(np.int64),
            np.ascontiguousarray(links.screw),
            *self._maps(np.zeros(0) if self._constant else simulation._y),
            np.zeros(kernels.VELOCITY),
            np.zeros((3, 3)),
            np.zeros(kernels.WORK),
        )

    def _maps(self, y: Floats) -> tuple[Floats, Floats]:
        """Joint velocities per rate of the coordinates; rates per impulse on the coordinates."""
        coordinates = self._reduced._map
        return np.array(coordinates.joint_map(y)), np.array(coordinates.inverse_at(y))

    def place(self, first: int) -> None:
        """Set the number of the first body."""
        self._first = first

    def compiled(self) -> kernels.ContactModel | None:
        """Arrays for the compiled steps of a world; None for blends, whose response changes with the pose."""
        return self._model if self._constant else None

    def begin(self, count: int, rows: Rows, before: Floats, u: Floats) -> None:
        """First half of a step with contacts: rows, velocities `before` the step and, without contacts, after it."""
        simulation = self._reduced
        if not self._constant:
            basis, inverse = self._maps(simulation._y)
            self._model = self._model._replace(basis=basis, inverse=inverse)
        kernels.begin(count, rows, self._first, self._model, before)
        simulation.step()
        kernels.velocities(self._model, u)

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        kernels.finish(self._model, u, w)
        self._reduced._reconstruct()
