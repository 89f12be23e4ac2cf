"""`ManifoldActor`, `ReducedActor`: a reduced or blended model in contact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.engines.actor import Rows
from pliant.engines.reduced import contact_kernels as kernels
from pliant.engines.reduced import manifold_contact as on_manifold
from pliant.engines.reduced._intrinsics import LINK_SIZE
from pliant.engines.reduced.arrays import link_places
from pliant.engines.reduced.coordinates import Amplitudes
from pliant.engines.reduced.manifold_arrays import MANIFOLD_SIZES, STOPS, WIDTH
from pliant.engines.single_actor import SingleActor
from pliant.errors import ConvergenceError

if TYPE_CHECKING:
    from pliant.engines.reduced.simulation import ReducedSimulation

__all__ = ["NO_MODEL", "ManifoldActor", "ReducedActor"]

Floats = NDArray[np.float64]

# Arrays of a world without a reduced model
NO_MODEL = on_manifold.ContactModel(
    sizes=np.zeros(MANIFOLD_SIZES, dtype=np.int64), links=np.zeros((0, LINK_SIZE), dtype=np.int64),
    constants=np.zeros(1), state=np.zeros(1), poses=np.zeros((0, 4, 4)), bodies=0,
)  # fmt: skip


class ManifoldActor(SingleActor):
    """A reduced model on its manifold.

    Its velocities are the rates of its natural coordinates, then those of a floating base; see `manifold_contact`.
    """

    strikes = True

    def __init__(self, simulation: ReducedSimulation):
        floats = simulation.model.base is not None
        self._model = on_manifold.ContactModel(*simulation._arrays, simulation.mechanism.body_count)
        self._width = int(self._model.sizes[WIDTH])  # rates of coordinates, padded with zeros
        super().__init__(simulation, self._width + 6 * floats, floats)
        self._reduced = simulation
        self.stops = int(self._model.sizes[STOPS])

    def place(self, first: int) -> None:
        """Set the number of the first body."""
        self._first = first

    def compiled(self) -> on_manifold.ContactModel:
        """Arrays for the compiled steps of a world."""
        return self._model

    def begin(self, count: int, rows: Rows, before: Floats, u: Floats) -> int:
        """First half of a step with contacts: rows, velocities `before` the step, mean ones without contacts."""
        return on_manifold.begin(count, rows, self._first, self._model, before, u)

    def strike(self, count: int, rows: Rows, u: Floats) -> None:
        """Velocities `u` at the end of the step with the impulses of the blocks."""
        on_manifold.strike(count, rows, self._first, self._model, u)

    def respond(self, count: int, rows: Rows) -> None:
        """Y: response of the velocities at the end of the step to the blocks."""
        on_manifold.respond(count, rows, self._first, self._model)

    def mobility(self, J: Floats, mean: Floats) -> Floats:
        """Velocities of rows J, (3, size), right after an impulse on them, 1/kg, (3, 3)."""
        yields = self._reduced._map.yields
        n, base = len(yields), self._reduced._floating
        out = J[:, :n] @ yields @ J[:, :n].T
        if base is not None:
            linear, angular = J[:, self._width : self._width + 3], J[:, self._width + 3 :]
            out += linear @ linear.T / base.mass + angular @ self._reduced._inverse_inertia() @ angular.T
        return out

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        if not on_manifold.finish(self._model, u, w):
            raise ConvergenceError(self._reduced._why())
        self.warn()

    def warn(self) -> None:
        """Warn of steps beyond what the model knows."""
        self._reduced.warn()


class ReducedActor(SingleActor):
    """A reduced or blended model on the linear step.

    Its velocities are the rates of its coordinates, then those of a floating base. Contacts act at the links as
    reconstructed by joints.
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

    def begin(self, count: int, rows: Rows, before: Floats, u: Floats) -> int:
        """First half of a step with contacts: rows, velocities `before` the step and, without contacts, after it."""
        simulation = self._reduced
        if not self._constant:
            basis, inverse = self._maps(simulation._y)
            self._model = self._model._replace(basis=basis, inverse=inverse)
        kernels.begin(count, rows, self._first, self._model, before)
        simulation.step()
        kernels.velocities(self._model, u)
        return count

    def finish(self, count: int, rows: Rows, u: Floats, w: Floats) -> None:
        """Second half: end the step with the velocities `u`; `w`, added for positions only, ends penetration."""
        kernels.finish(self._model, u, w)
        self._reduced._reconstruct()
