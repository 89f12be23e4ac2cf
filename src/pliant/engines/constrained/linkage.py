"""`Linkage`: the midpoint step of any tree of links, for engines that choose the links themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from pliant.engines.constrained import _links, _packing, _step
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained.arrays import Border, Model, Scratch, State
from pliant.engines.constrained.contact_step import ContactStep
from pliant.engines.constrained.packing import pack
from pliant.mechanism import Builder

__all__ = ["Linkage", "new_info"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_CLOSE = 1e-7  # gap of loops: there are none


def new_info(tolerance: float) -> Floats:
    """Counts of steps and solves, which linkages may share, for iterations that end at this tolerance."""
    info = np.zeros(col.INFO)
    info[col.INFO_TOLERANCE], info[col.INFO_CLOSE] = tolerance, _CLOSE
    return info


class Linkage:
    """A tree of links without loops, couplings and tendons, its state, and steps of it.

    Attributes:
        model, state: as in `arrays`; entries of both may be written to.
        loads: rows of loads as in `Model`.
        work: kinematics after `evaluate`.
        momenta: after `evaluate`, world axes, about centres of mass, (n, 6).
    """

    __slots__ = ("_arrays", "_info", "_scratch", "loads", "model", "momenta", "state", "work")

    def __init__(
        self,
        links: Ints,
        constants: Floats,
        dofs: Floats,
        rest: Floats,
        where: Ints,
        acting: NDArray[np.bool_],
        gravity: Floats,
        info: Floats,
    ):
        """Everything at rest at zero coordinates.

        Args:
            links: PARENT to COORDINATE; other columns are filled in here.
            constants, dofs, rest, where: as in `Model`, the columns of `dofs` up to UNIT.
            acting: per dof, whether a spring, damper, rotor, motor or limit acts on it.
            gravity: m/s².
            info: as in `Scratch`; its counts go on.
        """
        n, nv, nq = len(links), len(dofs), len(rest)
        _packing.mark_links(acting, links)
        bare = np.zeros(dofs.shape)
        bare[:, col.UNIT] = 1.0
        bare[:, col.LOWER], bare[:, col.UPPER] = -np.inf, np.inf
        border, tendons = _no_border()
        self.model = Model(
            links=links,
            constants=constants,
            dofs=dofs,
            rest=rest,
            gravity=gravity,
            loads=np.zeros((0, col.LOAD_COLUMNS)),
            loops=np.zeros((0, col.LOOP_COLUMNS)),
            offsets=np.zeros(0),
            tendons=tendons,
            where=where,
            bare=bare,
        )
        self.state = State(
            q=np.zeros(nq),
            u=np.zeros(nv),
            v=np.zeros(nv),
            momentum=np.zeros((n, 6)),
            multipliers=np.zeros(0),
            earlier=np.zeros(nv),
            past=np.zeros(col.PAST),
            chosen=np.zeros(nq + 1),
        )
        info[col.INFO_LENGTH] = 0.0
        scratch = Scratch(
            work=np.zeros((n, col.WORK_COLUMNS)),
            ahead=np.zeros((n, col.KINEMATIC_COLUMNS)),
            at_middle=np.zeros((n, 6)),
            impulse=np.zeros((n, 6)),
            du=np.zeros(nv),
            backup=np.zeros(nv),
            wanted=np.zeros(0),
            change=np.zeros((3, 0)),
            spare=np.zeros(0),
            force=np.zeros((2, nv)),
            border=border,
            small=np.zeros((4, 3)),
            history=np.zeros((2 * col.DEPTH + 2, nv)),
            gram=np.zeros((col.DEPTH + 1, col.DEPTH)),
            info=info,
        )
        self._info, self._scratch = info, scratch
        self.work, self.momenta = scratch.work, scratch.at_middle
        self.loads = self.model.loads
        try:
            self._arrays = _step.join_arrays(self.model, self.state, scratch)
        except SystemError as error:  # numba's way to pass on a Ctrl-C while it hands over an object
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise error.__cause__ from None
            raise

    def advance(self, n: int, timestep: float) -> int:
        """Take `n` steps; returns how many were taken before the motion left the finite numbers."""
        return _step.advance(n, timestep, self.loads, self._arrays)

    def contact_step(self, timestep: float, first: int, body_link: Ints, at_link: Floats) -> ContactStep:
        """Steps in contact, of bodies from number `first` on that links hold; see `ContactStep`."""
        asked = np.zeros(self._scratch.ahead.shape), np.zeros(self.momenta.shape)
        parts = self.state, self._scratch, asked
        return ContactStep(timestep, self._prepare, *parts, first, body_link, at_link)

    def _prepare(self) -> Model:
        """The model, with the present loads."""
        return self.model._replace(loads=self.loads)

    def set_pull(self, pull: Floats, acting: NDArray[np.bool_]) -> None:
        """Set constant torques of dofs, springs included, and on which dofs anything acts."""
        self.model.dofs[:, col.PULL] = pull
        _packing.mark_links(acting, self.model.links)
        self._info[col.INFO_LENGTH] = 0.0

    def move(self, v: Floats) -> None:
        """Set joint velocities, and the momenta to those of this motion."""
        self.state.v[:] = self.state.u[:] = v
        self.evaluate(self.state.v)
        _links.set_momentum(self.work, self.momenta, self.state.momentum)

    def evaluate(self, velocity: Floats) -> None:
        """Kinematics and momenta at the present coordinates and these joint velocities, into `work` and `momenta`."""
        _step.evaluate_motion(velocity, self._arrays)

    def project(self) -> bool:
        """Set velocities and momenta to the motion nearest to the momenta; False if joints meet no inertia."""
        return _step.set_nearest_motion(self._arrays)

    @property
    def kinetic(self) -> float:
        """Kinetic energy, rotors included, J."""
        rotors = 0.5 * float(self.model.dofs[:, col.ARMATURE] @ self.state.v**2)
        return _links.kinetic(self.model.constants, self.state.momentum) + rotors


@cache
def _no_border() -> tuple[Border, Floats]:
    """Arrays of bordering rows, and tendons, of mechanisms that have none."""
    b = Builder("hinge")
    b.body("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.hinge("h", "world", "a", anchor=(0, 0, 0), axis=(0, 0, 1))
    packed = pack(b.build(), np.zeros(3))
    return packed.scratch.border, packed.model.tendons
