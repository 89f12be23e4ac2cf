"""Other engines on the same chain: one small adaptor each, looked up by name.

Every adaptor has `SETTINGS` (integrator or stabilization names, best first), `LARGEST` (links beyond which a
step takes too long to wait for) and `build(system, h, setting)`, which returns a `Run`. A peer that is not
installed raises `ImportError` at import; `find` turns that into a word for the table.
"""

from __future__ import annotations

import logging
from importlib import import_module
from types import ModuleType
from typing import Protocol

import numpy as np

from peers.system import Chain

__all__ = ["NAMES", "Chain", "Run", "build", "find"]

NAMES = ("pliant", "mujoco", "dart", "exudyn", "drake")


class Run(Protocol):
    """A chain in one engine, at one step size."""

    def step(self, n: int = 1) -> None: ...
    def energy(self) -> tuple[float, float]: ...
    def violation(self) -> float: ...
    def tip(self) -> np.ndarray: ...
    def finite(self) -> bool: ...


def find(name: str) -> tuple[ModuleType | None, str]:
    """The adaptor, or None and why it is left out."""
    logging.getLogger("drake").setLevel(logging.ERROR)  # says at every start that no license is set
    try:
        return import_module(f"peers.{name}_chain"), ""
    except ImportError as error:
        return None, f"{name} left out: {error} (`make peers` installs the peers)"
    except AttributeError as error:  # too old, or pliant without its constrained engine
        return None, f"{name} left out: {error}"


def build(name: str, system: Chain, h: float, setting: str | None = None) -> Run:
    """A run of the named peer; by default with its best setting."""
    adaptor, why = find(name)
    if adaptor is None:
        raise ImportError(why)
    return adaptor.build(system, h, setting or adaptor.SETTINGS[0])
