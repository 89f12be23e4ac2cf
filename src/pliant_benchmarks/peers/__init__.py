"""Peers: one module per engine, imported when it is asked for, since it may not be installed.

Every engine that simulates the chain of `systems` has a class `ChainRun`; `find` looks it up by the engine's name.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import ClassVar

import numpy as np

from ..systems import Chain

__all__ = ["NAMES", "TITLES", "ChainRun", "build", "find", "find_all"]

TITLES = {"pliant": "pliant", "mujoco": "MuJoCo", "dart": "DART", "exudyn": "Exudyn", "drake": "Drake"}
NAMES = tuple(TITLES)


class ChainRun(ABC):
    """Simulation of a chain in one engine, at one time step and setting.

    Attributes:
        SETTINGS: names of integrators or stabilizations, best first.
        EXACT: setting for comparing positions; the best by default.
        LARGEST: number of links beyond which a step takes too long to wait for.
    """

    SETTINGS: ClassVar[tuple[str, ...]]
    EXACT: ClassVar[str | None] = None
    LARGEST: ClassVar[int]

    @abstractmethod
    def __init__(self, system: Chain, h: float, setting: str): ...

    @abstractmethod
    def step(self, n: int = 1) -> None:
        """Advance by n steps."""

    @abstractmethod
    def energy(self) -> tuple[float, float]:
        """Kinetic and potential energy, J."""

    @abstractmethod
    def tip(self) -> np.ndarray:
        """World position of the end of the last link, m."""

    @abstractmethod
    def finite(self) -> bool:
        """Whether the simulation has not diverged."""

    def violation(self) -> float:
        """Largest distance between the two sides of a joint, m; none where joint coordinates are the unknowns."""
        return 0.0


def find(name: str) -> tuple[type[ChainRun] | None, str]:
    """Chain of an engine, or None and why it is left out."""
    logging.getLogger("drake").setLevel(logging.ERROR)  # warns at every start that no license is set
    try:
        return import_module(f"{__name__}.{name}").ChainRun, ""
    except ImportError as error:
        return None, f"{TITLES[name]} is left out: {error} (`make peers` installs the peers)"
    except AttributeError as error:  # an old version
        return None, f"{TITLES[name]} is left out: {error}"


def find_all(
    names: Sequence[str] = NAMES, skipped: Sequence[str] = ()
) -> tuple[dict[str, type[ChainRun]], list[str]]:
    """Chains of the installed engines by name, and a sentence about each that is missing.

    Args:
        names: of the engines.
        skipped: those that a quick run leaves out.
    """
    found = {name: find(name) for name in names}
    there = {name: chain for name, (chain, _) in found.items() if chain is not None and name not in skipped}
    missing = [why for chain, why in found.values() if chain is None]
    if skipped:
        titles, verb = " and ".join(TITLES[name] for name in skipped), "is" if len(skipped) == 1 else "are"
        missing.append(f"{titles} {verb} left out of the quick run")
    return there, missing


def build(name: str, system: Chain, h: float, setting: str) -> ChainRun:
    """Chain in the named engine.

    Raises:
        ImportError: the engine is not installed.
    """
    chain, why = find(name)
    if chain is None:
        raise ImportError(why)
    return chain(system, h, setting)
