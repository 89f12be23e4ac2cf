"""The arrays of the midpoint step, in three named tuples."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Model", "Scratch", "State"]


class Model(NamedTuple):
    """A mechanism and what acts on it.

    `where` is the coordinate of a dof, `offsets` those of couplings and tendons, `bare` is for `_clean`: dofs
    with rotors, and without springs.
    """

    links: NDArray[np.int64]
    constants: NDArray[np.float64]
    dofs: NDArray[np.float64]
    rest: NDArray[np.float64]
    gravity: NDArray[np.float64]
    loads: NDArray[np.float64]
    loops: NDArray[np.float64]
    offsets: NDArray[np.float64]
    tendons: NDArray[np.float64]
    where: NDArray[np.int64]
    bare: NDArray[np.float64]


class State(NamedTuple):
    """Coordinates, midpoint velocity of the last step, velocity, momenta of links' bodies, multipliers of rows.

    `earlier` is the midpoint velocity of the step before the last. `past` holds whether a straight line through both
    would have told the last one better than the one before did, the number of steps since momenta
    were looked at, and how often they were bad.
    """

    q: NDArray[np.float64]
    u: NDArray[np.float64]
    v: NDArray[np.float64]
    momentum: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    earlier: NDArray[np.float64]
    past: NDArray[np.float64]


class Scratch(NamedTuple):
    """What a step works in; `info` is numbers by the names above."""

    work: NDArray[np.float64]
    ahead: NDArray[np.float64]
    at_middle: NDArray[np.float64]
    impulse: NDArray[np.float64]
    du: NDArray[np.float64]
    backup: NDArray[np.float64]
    rows: NDArray[np.float64]
    columns: NDArray[np.float64]
    schur: NDArray[np.float64]
    wanted: NDArray[np.float64]
    give: NDArray[np.float64]
    change: NDArray[np.float64]
    kept: NDArray[np.int64]
    small: NDArray[np.float64]
    history: NDArray[np.float64]
    gram: NDArray[np.float64]
    info: NDArray[np.float64]
