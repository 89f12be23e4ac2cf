"""Mechanisms, which every engine works on: bodies, joints, springs, the graph and its spanning tree."""

from pliant.mechanism.bonded import TORSIONS, Molecule
from pliant.mechanism.builder import Builder
from pliant.mechanism.mechanism import Mechanism, Rows, ShapeTable
from pliant.mechanism.tree import Topology

__all__ = ["TORSIONS", "Builder", "Mechanism", "Molecule", "Rows", "ShapeTable", "Topology"]
