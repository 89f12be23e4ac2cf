"""Random calls of the entries that work with addresses, from a seed: `python driver.py SURFACE SEED COUNT`.

The process runs by itself: it dies of a crash, and of a call that takes too long. It prints a line of JSON with the
number of calls by name and outcome, and fails at the first exception that is not pliant's own, or at poses that are not
finite. The same seed makes the same calls; `--tell` prints each before it is made.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import math
import sys
import tempfile
import time
import warnings
from collections import Counter
from os import chdir
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import archives, arguments, surfaces
from pliant.errors import PliantError

SURFACES = surfaces.SURFACES | archives.SURFACES | arguments.SURFACES
PATIENCE = 60  # s for a single call, on a busy machine
WATCH = 5  # s after which the watch over calls starts anew


def main() -> None:
    """Run the calls that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("surface", choices=sorted(SURFACES))
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--tell", action="store_true")
    asked = parser.parse_args()
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        chdir(folder)
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        run(asked.surface, asked.seed, asked.count, asked.tell)


def run(name: str, seed: int, count: int, tell: bool) -> None:
    """Make `count` calls on a surface and print what came of them."""
    rng = np.random.default_rng([seed, *name.encode()])
    surface = SURFACES[name](rng)
    try:
        outcomes = call(surface, rng, seed, count, tell)
    finally:
        surface.end()
    print(json.dumps(dict(sorted(outcomes.items()))))


def call(
    surface: surfaces.Surface, rng: np.random.Generator, seed: int, count: int, tell: bool
) -> Counter[str]:
    """Make `count` calls; returns their number by name and outcome."""
    outcomes = Counter[str]()
    weights = np.array([surface.WEIGHTS.get(name, 1.0) for name in surface.calls])
    weights /= weights.sum()
    watched = -math.inf
    for i in range(count):
        name = surface.calls[int(rng.choice(len(weights), p=weights))]
        if tell:
            print(i, name, file=sys.stderr, flush=True)
        if time.monotonic() > watched + WATCH:  # a watch costs milliseconds
            faulthandler.dump_traceback_later(PATIENCE + WATCH, exit=True)
            watched = time.monotonic()
        try:
            getattr(surface, name)()
            outcomes[f"{name}: done"] += 1
        except PliantError as error:
            outcomes[f"{name}: {type(error).__name__}"] += 1
        except BaseException:
            print(f"seed {seed}, call {i}: {name}", file=sys.stderr)
            raise
        try:
            surface.check()
        except BaseException:
            print(f"seed {seed}, after call {i}: {name}", file=sys.stderr)
            raise
    faulthandler.cancel_dump_traceback_later()
    return outcomes


if __name__ == "__main__":
    main()
