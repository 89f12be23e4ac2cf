"""Peptides of ideal bonds and angles as PDB files, made by the example on proteins."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

__all__ = ["MIXED", "hetero", "peptide", "random_peptide"]

_EXAMPLE = Path(__file__).parents[2] / "examples" / "22_protein.py"
_SPEC = importlib.util.spec_from_file_location("protein_example", _EXAMPLE)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
peptide = _MODULE.peptide
MIXED = "AGSVLKEFPC"  # every residue that the example has


def random_peptide(sequence: str = MIXED, seed: int = 0, chain: str = "A") -> str:
    """A peptide with random torsions, those of proline as its ring needs them."""
    rng = np.random.default_rng(seed)
    shape = [(-65.0 if code == "P" else rng.uniform(-180, 180), rng.uniform(-180, 180)) for code in sequence]
    return peptide(sequence, shape, chain)


def hetero(name: str, atom: str, element: str, number: int, at=(50.0, 0.0, 0.0), chain: str = "A") -> str:
    """A line with one atom that is no protein's."""
    x, y, z = at
    return (
        f"HETATM 9000 {atom:^4s} {name:>3s} {chain}{number:4d}    {x:8.3f}{y:8.3f}{z:8.3f}"
        f"  1.00  0.00          {element:>2s}\n"
    )
