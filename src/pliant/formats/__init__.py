"""Model files: MJCF and URDF in (through MuJoCo's compiler), our own JSON in and out, MJCF out."""

from pliant.formats.json_file import save
from pliant.formats.load import load
from pliant.formats.to_mjcf import to_mjcf

__all__ = ["load", "save", "to_mjcf"]
