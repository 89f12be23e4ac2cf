"""`Bundle`: all arrays of a world's compiled steps as one argument.

A compiled function looks at every array it is called with: a hundred of them take longer than a step of a small world.
"""

from typing import Any

from numba import types
from numba.experimental import structref

from pliant.compilation import njit

__all__ = ["Bundle", "bundle"]

FIELDS = (
    "settings", "report", "residual", "native", "scene", "contacts", "blocks", "memory", "bodies", "loose", "model",
    "saved",
)  # fmt: skip


@structref.register
class _BundleType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Bundle(structref.StructRefProxy):
    """See `_march_kernels.march` for what each field holds. It keeps its arrays alive."""


structref.define_boxing(_BundleType, Bundle)
structref.define_constructor(Bundle, _BundleType, FIELDS)


@njit
def bundle(
    settings, report, residual, native, scene, contacts, blocks, memory, bodies, loose, model, saved
):  # the fields, in their order
    """A bundle of arrays and tuples of arrays."""
    return Bundle(
        settings, report, residual, native, scene, contacts, blocks, memory, bodies, loose, model, saved
    )
