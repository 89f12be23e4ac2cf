"""Model files: MJCF and URDF (through MuJoCo's compiler), proteins; our own JSON and arrays in and out, MJCF out."""

from pliant.formats.load import load
from pliant.formats.protein import read_molecule
from pliant.formats.save import save
from pliant.formats.to_mjcf import to_mjcf

__all__ = ["load", "read_molecule", "save", "to_mjcf"]
