"""Suite of start-up: imports, first results, construction of huge mechanisms, memory."""

from . import processes

__all__ = ["PARTS"]

PARTS = (
    processes.imports,
    processes.first_results,
    processes.building,
    processes.memory,
)
