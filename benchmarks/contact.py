"""Worlds with contact beside MuJoCo: a grasp, a hexapod, and what every scene costs."""

from __future__ import annotations

from results import Progress, Table

__all__ = ["SUITE", "run"]

SUITE = "contact"


def run(quick: bool, progress: Progress) -> list[Table]:
    """All tables."""
    import contact_grasp
    import contact_scenes
    import contact_walk

    parts = (
        contact_grasp.grasp,
        contact_grasp.agreement,
        contact_walk.hexapod,
        contact_walk.agreement,
        contact_scenes.scenes,
        contact_scenes.alone,
    )
    return [part(quick, progress) for part in parts]
