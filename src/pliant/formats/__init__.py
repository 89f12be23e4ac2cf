"""Model files: MJCF and URDF in (through MuJoCo's compiler), our own JSON in and out, MJCF out."""

from pliant.formats.json_file import save
from pliant.formats.load import load
from pliant.formats.mjcf_writer import to_mjcf

__all__ = ["load", "save", "to_mjcf"]
