"""RL05's scenes: forces on linkages without springs or gravity, for the quasi-static engine.

    >>> import pliant
    >>> simulation = pliant.scenes.molecule(2000).simulate(tolerance=2**-7)
    >>> simulation.step(10)
    >>> len(simulation.active) < 200
    True

As in RL05, every step moves joints by `h² q''`, from rest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pliant import gallery
from pliant.checks import whole
from pliant.mechanism import Mechanism
from pliant.scenes.scene import Scene

__all__ = ["bicycle_chain", "millipede", "molecule"]


def _pulled(m: Mechanism, wrenches: Mapping[str, tuple[float, float, float]]) -> Scene:
    """Forces (N, world axes) on bodies of a linkage whose springs are taken away."""
    bare = m.with_stiffness("*", 0.0, 0.0)
    return Scene(bare, "quasistatic", 1e-3, wrenches=wrenches, gravity=(0.0, 0.0, 0.0))


def bicycle_chain(links: int = 30) -> Scene:
    """A constant force across the end of a bicycle chain (RL05 section 6.1: 30 links, 10,000 steps)."""
    m = gallery.bicycle_chain(links)
    return _pulled(m, {m.body_names[-1]: (0.0, 0.0, 0.01)})


def millipede(legs: int = 1000, leg_links: int = 10, spine: int = 3000) -> Scene:
    """A force on the foot of the middle leg of a millipede (RL05 section 6.2: 13,000 links, 4,000 steps)."""
    m = gallery.millipede(legs, leg_links, spine)
    return _pulled(m, {m.end_effectors[-1]: (0.0, 1e-4, 1e-4)})


def molecule(links: int = 50_000, forces: int = 1, seed: int = 0) -> Scene:
    """Random forces on neighbouring bonds of a molecule (RL05 section 6.3: 50,000 joints, 1 to 1,000 forces).

    RL05 takes 4,000 steps.

    Args:
        links: number of bonds.
        forces: number of bonds that are pulled, one after the other along a branch.
        seed: of molecule and forces.
    """
    m = gallery.molecule(links, seed)
    rng = np.random.default_rng(seed)
    pulled = min(whole(forces, "forces", 1), m.body_count)
    first = (m.body_count - pulled) // 2
    directions = rng.normal(size=(pulled, 3))
    directions *= 1e-4 / np.sqrt((directions**2).sum(axis=1))[:, None]
    names = m.body_names[first : first + pulled]
    return _pulled(m, {name: tuple(f) for name, f in zip(names, directions.tolist(), strict=True)})
