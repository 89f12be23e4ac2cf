"""Suite of blended models: TVCG's table and figure of blends, and errors of blends at rest."""

from . import models

__all__ = ["PARTS"]

PARTS = (
    models.table_2,
    models.figure_7,
    models.sampled_directions,
    models.fresh_wrenches,
)
