"""The quasi-static engine beside exact algorithms: what RL05 shows, and linkages of up to a million joints.

A million joints need 8 GB of memory and minutes, and are left out of the quick run.
"""

from __future__ import annotations

import rl05_figures
import rl05_table
import scaling

SUITE = "quasistatic"
PARTS = (
    rl05_table.table,
    rl05_figures.bicycle,
    rl05_figures.millipede,
    rl05_figures.springs,
    scaling.scaling,
)
