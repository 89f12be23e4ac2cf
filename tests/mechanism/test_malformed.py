"""Thousands of malformed descriptions: each is built, or refused with one of pliant's own errors."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.errors import PliantError

DEEP: list[Any] = []
for _ in range(70):  # numpy's arrays have 64 dimensions
    DEEP = [DEEP]
JUNK = [
    DEEP,
    np.array(1.0),
    None,
    np.nan,
    np.inf,
    -np.inf,
    -1.0,
    0,
    1e308,
    1e-320,
    "",
    "x",
    "world",
    (),
    (1,),
    (1, 2, 3),
    (0, 0, 0),
    (np.nan, 0, 0),
    (1, 2, 3, 4),
    [[1]],
    np.ones((3, 3)),
    np.zeros((4, 4)),
    {},
    {"a": 1},
    {"j0": np.nan},
    object(),
    True,
    3 + 4j,
    b"bytes",
    "\x00",
    ("hinge", (0, 0, 1), (0, 0, 0)),
    [("hinge", (0, 0, 1))],
    10**400,
    -(10**400),
    np.array(["a"]),
]


def calls(rng: random.Random) -> list[tuple[str, list, dict]]:
    """The calls that build a sound mechanism."""
    out: list[tuple[str, list, dict]] = []
    for i in range(4):
        body = {
            "mass": 1.0,
            "inertia": (0.1, 0.1, 0.1),
            "position": (float(i), 0.0, 0.0),
            "com": (0.0, 0.0, 0.0),
            "orientation": (1.0, 0.0, 0.0, 0.0),
            "shapes": [pliant.shapes.sphere(0.1)],
            "density": 1000.0,
        }
        out.append(("body", [f"b{i}"], body))
    for i in range(4):
        parent = "world" if i == 0 else f"b{i - 1}"
        kind = rng.choice(
            [
                "hinge",
                "slide",
                "ball",
                "universal",
                "planar",
                "cylindrical",
                "bushing",
                "free",
                "fixed",
                "stack",
            ]
        )
        extra: dict = {"stiffness": 10.0, "damping": 0.1, "limits": (-1.0, 1.0), "armature": 0.0}
        if kind in ("hinge", "cylindrical"):
            extra |= {"anchor": (i - 0.5, 0.0, 0.0), "axis": (0.0, 0.0, 1.0)}
        elif kind in ("universal", "planar"):
            extra |= {"anchor": (i - 0.5, 0.0, 0.0), "axes": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0))}
        elif kind in ("ball", "bushing"):
            extra |= {"anchor": (i - 0.5, 0.0, 0.0), "orientation": (1.0, 0.0, 0.0, 0.0)}
        elif kind == "slide":
            extra |= {"axis": (0.0, 0.0, 1.0)}
        elif kind == "fixed":
            extra = {}
        args: list = [f"j{i}", parent, f"b{i}"]
        if kind == "stack":
            args.append(
                [("hinge", (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)), ("slide", (1.0, 0.0, 0.0), (0.0, 0.0, 0.0))]
            )
        if kind in ("hinge", "slide"):
            extra |= {"rest": 0.1, "reference": 0.0}
        out.append((kind, args, extra))
    out.append(("hinge", ["close", "world", "b3"], {"anchor": (1.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0)}))
    scalar = [c[1][0] for c in out if c[0] in ("hinge", "slide")]
    out.append(("couple", [dict.fromkeys(scalar, 1.0)], {"name": "c"}))
    out.append(("tendon", ["t", dict.fromkeys(scalar, 2.0)], {"stiffness": 1.0, "damping": 0.0}))
    out.append(("end_effectors", ["b3"], {}))
    return out


def spoil(rng: random.Random, sound: list[tuple[str, list, dict]]) -> list[tuple[str, list, dict]]:
    """One or two random faults."""
    sound = [(name, list(args), dict(kwargs)) for name, args, kwargs in sound]
    for _ in range(rng.choice([1, 1, 2])):
        where = rng.randrange(len(sound))
        _name, args, kwargs = sound[where]
        fault = rng.randrange(6)
        if fault == 0 and kwargs:
            kwargs[rng.choice(sorted(kwargs))] = rng.choice(JUNK)
        elif fault == 1 and args:
            args[rng.randrange(len(args))] = rng.choice([*JUNK, "b0", "b1", "j0"])
        elif fault == 2:
            del sound[where]
        elif fault == 3:
            sound.insert(rng.randrange(len(sound)), sound[where])
        elif fault == 4 and kwargs:
            key = rng.choice(sorted(kwargs))
            value = kwargs[key]
            if isinstance(value, tuple) and value:
                spoiled = list(value)
                spoiled[rng.randrange(len(spoiled))] = rng.choice(JUNK)
                kwargs[key] = tuple(spoiled)
        else:
            rng.shuffle(sound)
    return sound


def outcome(seed: int) -> str:
    """What becomes of one spoiled description: built or refused; anything else is raised."""
    rng = random.Random(seed)
    name: Any = rng.choice(["m", "", "\x00", 3, None]) if rng.random() < 0.02 else "m"
    try:
        b = pliant.Builder(name)
        for method, args, kwargs in spoil(rng, calls(rng)):
            required = {"hinge": {"anchor", "axis"}, "slide": {"axis"}}.get(method, set())
            if required <= kwargs.keys():  # Python itself refuses a call without its required arguments
                getattr(b, method)(*args, **kwargs)
        b.build().summary()
    except PliantError as error:
        assert str(error)
        return "refused"
    return "built"


@pytest.mark.parametrize("runs", [1500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_spoiled_descriptions(runs):
    """The faults are neither all fatal nor all harmless, or this would show little."""
    count = Counter(outcome(seed) for seed in range(runs))
    assert count["built"] > 0.06 * runs
    assert count["refused"] > 0.6 * runs


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_arrays(seed):
    """Faults straight in the arrays of a sound mechanism."""
    rng = random.Random(seed)
    b = pliant.Builder("m")
    for name, args, kwargs in calls(random.Random(0)):
        getattr(b, name)(*args, **kwargs)
    sound = b.build()
    labels = [
        name for name in sound.__dataclass_fields__ if name not in ("couplings", "tendons", "shape_table")
    ]
    refused = 0
    for _ in range(250):
        label = rng.choice(labels)
        value = getattr(sound, label)
        if isinstance(value, np.ndarray) and value.size and rng.random() < 0.7:
            value = value.copy()
            with np.errstate(all="ignore"):
                faults = [np.nan, np.inf, -1.0, 0.0, 1e300, 2.0] if value.dtype.kind == "f" else [-9, 2**40]
                value.flat[rng.randrange(value.size)] = rng.choice(faults)
        else:
            value = rng.choice(JUNK)
        try:
            sound.replace(**{label: value})
        except PliantError as error:
            assert str(error)
            refused += 1
    assert refused > 60
