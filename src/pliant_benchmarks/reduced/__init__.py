"""Suite of reduced models: TVCG's table and figure of single models, linear-time peers, and the engine by itself."""

from . import articulated, engine, largest_step, tvcg

__all__ = ["PARTS"]

PARTS = (
    tvcg.table_1,
    articulated.articulated_bodies,
    tvcg.scaling,
    tvcg.figure_5,
    largest_step.largest_step,
    engine.large_steps,
    engine.calls,
    engine.reducing,
    engine.batches,
    engine.frequencies,
)
