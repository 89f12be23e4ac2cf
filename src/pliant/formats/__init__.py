"""Model files: MJCF and URDF in (through MuJoCo's compiler), our own JSON and arrays in and out, MJCF out."""

from pliant.formats.load import load
from pliant.formats.save import save
from pliant.formats.to_mjcf import to_mjcf

__all__ = ["load", "save", "to_mjcf"]
