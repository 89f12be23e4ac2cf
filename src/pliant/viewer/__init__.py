"""Looking at mechanisms: still pictures (the live view comes later)."""

from pliant.viewer.picture import draw, picture

__all__ = ["draw", "picture"]
