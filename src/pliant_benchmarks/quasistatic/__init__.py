"""Suite of the quasi-static engine: RL05's table and figures, loops, and linkages of up to a million joints.

A million joints need 8 GB of memory and minutes, and are left out of the quick run.
"""

from . import loops, places, rl05, scaling

__all__ = ["PARTS"]

PARTS = (
    rl05.table,
    places.displacements,
    places.guaranteed,
    rl05.bicycle,
    rl05.millipede,
    rl05.springs,
    loops.loops,
    scaling.scaling,
)
