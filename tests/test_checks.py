"""Checks of arguments: what passes, and the exact words about what does not."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import pliant
from pliant import checks, text
from pliant.errors import InputError, MechanismError, PliantWarning


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (lambda v: checks.whole(v, "n", 1), np.int64(3), 3),
        (lambda v: checks.whole(v, "n", 0, 5), 5, 5),
        (lambda v: checks.number(v, "x"), -2, -2.0),
        (checks.seconds, 1, 1.0),
        (lambda v: checks.number(v, "x", above=0), Fraction(1, 2), 0.5),
        (lambda v: checks.number(v, "x", least=0, most=1), np.float32(1), 1.0),
        (lambda v: checks.number(v, "x"), np.array(2.5), 2.5),
        (lambda v: checks.choice(v, "kind", ("a", "b")), "b", "b"),
    ],
)
def test_values_pass_in_their_type(check, value, expected):
    found = check(value)
    assert found == expected
    assert type(found) is type(expected)


def test_arrays_pass():
    given = np.arange(3.0)
    assert checks.numbers(given, "x") is given
    found = checks.vector(given, "x")
    assert found is not given
    assert found.tolist() == [0, 1, 2]
    assert checks.vector([1, 2], "size", 2).dtype == np.float64


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: checks.whole(0, "n", 1), "n: a whole number from 1 expected, not 0"),
        (lambda: checks.whole(True, "n"), "n: a whole number from 0 expected, not True"),
        (lambda: checks.whole(1.0, "n"), "n: a whole number from 0 expected, not 1.0"),
        (lambda: checks.whole(9, "n", 0, 8), "n: a whole number from 0 to 8 expected, not 9"),
        (lambda: checks.whole("1", "n", kind="a count", expected="some"), "n: a count expected, not '1'"),
        (lambda: checks.whole(-1, "n", kind="a count", expected="some"), "n: some expected, not -1"),
        (lambda: checks.number(math.nan, "x"), "x: a finite number expected, not nan"),
        (lambda: checks.number(True, "x"), "x: a finite number expected, not True"),
        (lambda: checks.number("1", "x"), "x: a finite number expected, not '1'"),
        (lambda: checks.number(1j, "x"), "x: a finite number expected, not 1j"),
        (lambda: checks.number([1.0], "x"), "x: a finite number expected, not [1.0]"),
        (lambda: checks.number(np.ones(1), "x"), "x: a finite number expected, not array([1.])"),
        (lambda: checks.number(0, "x", above=0), "x: a number above 0 expected, not 0"),
        (
            lambda: checks.number(1, "x", above=0, most=0.1),
            "x: a number above 0, at most 0.1, expected, not 1",
        ),
        (lambda: checks.number(1, "x", least=0, below=1), "x: a number from 0 to below 1 expected, not 1"),
        (lambda: checks.number(9, "x", least=0.5, most=5), "x: a number from 0.5 to 5 expected, not 9"),
        (lambda: checks.number(math.inf, "x", least=0), "x: a number from 0 on expected, not inf"),
        (lambda: checks.number(None, "x", least=0, kind="a number"), "x: a number expected, not None"),
        (lambda: checks.numbers("far", "x"), "x: numbers expected, not 'far'"),
        (lambda: checks.vector("far", "x"), "x: 3 numbers expected, not 'far'"),
        (lambda: checks.vector([1, 2], "x"), "x: 3 finite numbers expected, not [1, 2]"),
        (lambda: checks.vector([1, 2, math.nan], "x"), "x: 3 finite numbers expected, not [1, 2, nan]"),
        (
            lambda: checks.vector([1, 2, 3e9], "x", below=1e9),
            "x: 3 finite numbers below 1e+09 expected, not [1, 2, 3",
        ),
        (lambda: checks.choice("c", "kind", ("a", "b")), "kind is 'a' or 'b', not 'c'"),
        (lambda: checks.choice(1, "kind", ("a", "b", "c")), "kind is one of 'a', 'b', 'c', not 1"),
        (
            lambda: checks.choice("c", "kind", ("a", "b"), colon=True),
            "kind: one of 'a', 'b' expected, not 'c'",
        ),
    ],
)
def test_others_are_refused(check, message):
    with pytest.raises(InputError) as refused:
        check()
    assert str(refused.value).startswith(message)


def test_the_error_may_be_another():
    with pytest.raises(MechanismError, match="mass: numbers expected, not 'heavy'"):
        checks.numbers("heavy", "mass", MechanismError)


# --- values in messages, names, counts


class Mute:
    """Something without a text."""

    def __repr__(self):
        raise RuntimeError("no text")


def test_values_without_a_text_are_shown_by_their_type():
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    for value, kind in ((10**5000, "int"), (deep, "list"), (Mute(), "Mute")):
        assert text.brief(value) == f"a value of type {kind}"
        with pytest.raises(InputError, match=f"not a value of type {kind}"):
            checks.number(value, "stiffness")
    assert text.brief("x" * 10**6) == "'" + 79 * "x"


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "\0", "\u202eb", "\ud800", "x" * 1001])
def test_names_stay_on_their_line(name):
    m = pliant.gallery.two_link()
    with pytest.raises(MechanismError, match="1 to 1000 characters, all printable"):
        m.replace(name=name)
    with pytest.raises(MechanismError, match="1 to 1000 characters, all printable"):
        m.replace(body_names=(name, "right"), end_effectors=())
    for add in (pliant.World(0.01).add_body, pliant.World(0.01).add_static):
        with pytest.raises(InputError, match="a printable text"):
            add(name, pliant.shapes.sphere(0.1))


COUNTS = (10**12, 2**63, 10**400)


@pytest.mark.parametrize("n", COUNTS)
def test_what_does_not_fit_into_memory_is_refused(n):
    model = pliant.reduce(pliant.gallery.two_link())
    simulation = pliant.ReducedSimulation(model, 0.01)
    for call in (simulation.record, lambda n: pliant.ReducedBatch(model, 0.01, n)):
        with pytest.raises(InputError, match="do not fit into memory: take fewer"):
            call(n)
    assert simulation.time == 0
    with pytest.raises(InputError, match="threads: a whole number from 1 to 1024"):
        pliant.ReducedBatch(model, 0.01, 2, threads=n)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("helix", ["links"]),
        ("molecule", ["links"]),
        ("ladder", ["rungs"]),
        ("lattice", ["nx"]),
        ("lattice", ["nx", "ny"]),
        ("lattice3d", ["nz"]),
        ("millipede", ["spine"]),
        ("millipede", ["legs", "leg_links"]),
        ("cable", ["joints"]),
        ("trampoline_net", ["n"]),
        ("miura_ori", ["rows", "columns"]),
    ],
)
def test_the_gallery_refuses_more_than_ten_million_bodies(name, given):
    for n in COUNTS if len(given) == 1 else (10_000,):
        with pytest.raises(InputError, match=r"at most 10000000 expected|a whole number from \d to"):
            pliant.gallery.make(name, **dict.fromkeys(given, n))


def test_long_time_steps_are_noticed():
    """A time step of 60 is usually one of 1/60."""
    with pytest.warns(PliantWarning, match=r"a time step of 60 s .* was 0.0167 s meant"):
        assert checks.seconds(60) == 60.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checks.seconds(1.0) == 1.0
        assert checks.seconds(60, motion=False) == 60.0


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([1, 2], [1, 2]),
        ((), []),
        (np.array([1]), [1]),
        ("ab", None),
        (b"ab", None),
        (3, None),
        (np.array(3), None),
    ],
)
def test_entries_of_what_has_some(value, found):
    assert checks.entries(value) == found
    assert checks.length(value) == (
        2 if isinstance(value, str | bytes) else None if found is None else len(found)
    )
