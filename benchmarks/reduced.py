"""The suite of the reduced engine: TVCG's tables and figures for single models, and what the paper lacks."""

from __future__ import annotations

from largest_step import largest_step
from linear_time import articulated_bodies
from reduced_engine import batches, calls, frequencies, large_steps, reducing
from tvcg_figures import figure_5
from tvcg_table_1 import scaling, table_1

SUITE = "reduced"
PARTS = (
    table_1,
    articulated_bodies,
    scaling,
    figure_5,
    largest_step,
    large_steps,
    calls,
    reducing,
    batches,
    frequencies,
)
