"""Suite of closed loops: cost over the number of loops, motion and rest beside MuJoCo and Exudyn, very long chains.

With `PLIANT_BENCH_HUGE=1` in the environment a run that is not quick also steps a chain of 1,000,000 hinges.
"""

from . import huge, motion, rest, scaling

__all__ = ["PARTS"]

PARTS = (
    scaling.equilibria,
    scaling.reductions,
    scaling.steps,
    motion.steps,
    motion.seconds,
    rest.at_rest,
    huge.chains,
)
