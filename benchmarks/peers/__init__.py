"""Other engines on the same chain: one small adaptor each, looked up by name.

Every adaptor has `SETTINGS` (integrator or stabilization names, best first), `LARGEST` (links beyond which a
step takes too long to wait for) and `build(system, h, setting)`, which returns a `Run`. A peer that is not
installed raises `ImportError` at import; `find` turns that into a word for the table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Protocol

import numpy as np

from peers.system import Chain

__all__ = ["NAMES", "TITLES", "Chain", "Run", "build", "find", "found"]

TITLES = {"pliant": "pliant", "mujoco": "MuJoCo", "dart": "DART", "exudyn": "Exudyn", "drake": "Drake"}
NAMES = tuple(TITLES)


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
        return None, f"{TITLES[name]} is left out: {error} (`make peers` installs the peers)"
    except AttributeError as error:  # too old
        return None, f"{TITLES[name]} is left out: {error}"


def found(names: Iterable[str] = NAMES) -> tuple[dict[str, ModuleType], list[str]]:
    """The adaptors that are there, and a word about each that is not."""
    looked = {name: find(name) for name in names}
    there = {name: adaptor for name, (adaptor, _) in looked.items() if adaptor is not None}
    return there, [why for adaptor, why in looked.values() if adaptor is None]


def build(name: str, system: Chain, h: float, setting: str | None = None) -> Run:
    """A run of the named peer; by default with its best setting."""
    adaptor, why = find(name)
    if adaptor is None:
        raise ImportError(why)
    return adaptor.build(system, h, setting or adaptor.SETTINGS[0])
