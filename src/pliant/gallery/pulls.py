"""Forces on linkages, quasi-statically: RL05's scenes, each a linkage and a pull, ready to be simulated.

    >>> from pliant.gallery import pulls
    >>> simulation = pulls.molecule(2000).simulation(tolerance=2**-7)
    >>> simulation.step(10)
    >>> len(simulation.active) < 200
    True

As in RL05 joints have no springs and nothing is heavy: every step goes `h² q''` further from rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pliant.gallery._parts import count
from pliant.gallery.chains import bicycle_chain as chain_of
from pliant.gallery.huge import millipede as millipede_of
from pliant.gallery.huge import molecule as molecule_of
from pliant.mechanism import Mechanism

if TYPE_CHECKING:
    from pliant.engines.quasistatic import QuasistaticSimulation

__all__ = ["Pull", "bicycle_chain", "millipede", "molecule"]


@dataclass(frozen=True, eq=False)
class Pull:
    """A linkage and the forces on it.

    Attributes:
        mechanism: what moves, without springs.
        timestep: seconds.
        steps: how many RL05 took, 4,000 or 10,000.
        wrenches: `{body: force}`, N, world axes.
    """

    mechanism: Mechanism
    timestep: float
    steps: int
    wrenches: Mapping[str, tuple[float, float, float]]

    def simulation(
        self, tolerance: float = 0.01, measure: str = "relative-joint", **options: object
    ) -> QuasistaticSimulation:
        """A simulation at the start, forces applied; arguments as `pliant.QuasistaticSimulation` takes them."""
        from pliant.engines.quasistatic import QuasistaticSimulation

        out = QuasistaticSimulation(
            self.mechanism,
            self.timestep,
            (0, 0, 0),
            tolerance=tolerance,
            measure=measure,
            **options,  # pyright: ignore[reportArgumentType]
        )
        for body, force in self.wrenches.items():
            out.apply_wrench(body, force=force)
        return out


def _bare(m: Mechanism) -> Mechanism:
    return m.with_stiffness("*", 0.0, 0.0)


def bicycle_chain(links: int = 30) -> Pull:
    """A constant force across the end of a bicycle chain (RL05 section 6.1: 30 links, 10,000 steps)."""
    m = _bare(chain_of(links))
    return Pull(m, 1e-3, 10_000, {m.body_names[-1]: (0.0, 0.0, 0.01)})


def millipede(legs: int = 1000, leg_links: int = 10, spine: int = 3000) -> Pull:
    """A force on the foot of the middle leg of a millipede (RL05 section 6.2: 13,000 links, 4,000 steps)."""
    m = _bare(millipede_of(legs, leg_links, spine))
    return Pull(m, 1e-3, 4_000, {m.end_effectors[-1]: (0.0, 1e-4, 1e-4)})


def molecule(links: int = 50_000, forces: int = 1, seed: int = 0) -> Pull:
    """Random forces on neighbouring bonds of a molecule (RL05 section 6.3: 50,000 joints, 1 to 1,000 forces).

    Args:
        links: number of bonds.
        forces: how many of them are pulled, one after the other along a branch.
        seed: of molecule and forces.
    """
    m = _bare(molecule_of(links, seed))
    rng = np.random.default_rng(seed)
    pulled = min(count("forces", forces), m.body_count)
    first = (m.body_count - pulled) // 2
    directions = rng.normal(size=(pulled, 3))
    directions *= 1e-4 / np.sqrt((directions**2).sum(axis=1))[:, None]
    names = m.body_names[first : first + pulled]
    return Pull(m, 1e-3, 4_000, {name: tuple(f) for name, f in zip(names, directions.tolist(), strict=True)})
