"""The quasi-static engine beside exact algorithms: what RL05 shows, and linkages of up to a million joints."""

from __future__ import annotations

from results import Progress, Table

__all__ = ["SUITE", "run"]

SUITE = "quasistatic"


def run(quick: bool, progress: Progress) -> list[Table]:
    """All tables; a million joints need 8 GB of memory and minutes, and are left out of the quick run."""
    import rl05_figures
    import rl05_table
    import scaling

    parts = (
        rl05_table.table,
        rl05_figures.bicycle,
        rl05_figures.millipede,
        rl05_figures.springs,
        scaling.scaling,
    )
    return [part(quick, progress) for part in parts]
