"""Mechanisms that are the same in every bit."""

from dataclasses import fields

import numpy as np

import pliant

__all__ = ["assert_identical"]


def assert_identical(a: pliant.Mechanism, b: pliant.Mechanism) -> None:
    """The same in every bit."""
    for field in fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if field.name in ("couplings", "tendons", "shape_table"):
            for part in fields(x):
                u, v = getattr(x, part.name), getattr(y, part.name)
                if part.name == "meshes":
                    assert len(u) == len(v)
                    for one, other in zip(u, v, strict=True):
                        assert one.vertices.tobytes() == other.vertices.tobytes()
                        assert one.faces.tobytes() == other.faces.tobytes()
                        assert one.faces.dtype == other.faces.dtype
                else:
                    assert u.dtype == v.dtype
                    assert u.shape == v.shape
                    assert u.tobytes() == v.tobytes(), (field.name, part.name)
        elif isinstance(x, np.ndarray):
            assert x.dtype == y.dtype, field.name
            assert x.shape == y.shape, field.name
            assert x.tobytes() == y.tobytes(), field.name
        else:
            assert x == y, field.name
