"""Suite of reduced models: TVCG's table and figure, linear-time peers, accuracy in motion, the engine by itself."""

from . import articulated, engine, far_from_rest, largest_step, tvcg

__all__ = ["PARTS"]

PARTS = (
    tvcg.table_1,
    articulated.articulated_bodies,
    tvcg.scaling,
    tvcg.figure_5,
    largest_step.largest_step,
    far_from_rest.far_statics,
    far_from_rest.free_swing,
    engine.large_steps,
    engine.calls,
    engine.reducing,
    engine.batches,
    engine.frequencies,
)
