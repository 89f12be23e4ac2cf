"""The description every engine works on: bodies, joints, springs, the graph and its spanning tree."""

from pliant.mechanism.builder import Builder
from pliant.mechanism.model import Mechanism
from pliant.mechanism.tables import Rows, ShapeTable
from pliant.mechanism.topology import Topology

__all__ = ["Builder", "Mechanism", "Rows", "ShapeTable", "Topology"]
