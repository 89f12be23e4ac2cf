"""pliant: compliant articulated mechanisms: rigid links, springy joints, closed loops."""

from pliant import errors, shapes, spatial
from pliant.mechanism import Builder, Mechanism

__all__ = ["Builder", "Mechanism", "errors", "shapes", "spatial"]
__version__ = "0.1.0"
