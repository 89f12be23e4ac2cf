"""Structures of named tuples of arrays that kernels take as one argument, and read without counting references.

A compiled function examines every array it is called with from Python, and passes every array on by value to the
functions it calls, which takes long to compile. A structure is a single address instead: in a kernel `structure.rows`
is the address of a named tuple, `structure.rows.J` an array without owner, and `structure.rows.whole` the named tuple
itself, for functions that take one. The structure keeps its arrays alive.

    @structref.register
    class _StepType(views.StructureType): ...

    class Step(views.Structure): ...

    views.define(_StepType, Step, ("rows", "bodies"))

    @njit(counts_references=True)
    def make_step(rows, bodies):
        return Step(rows, bodies)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr, lower_getattr_generic
from numba.core.runtime.nrtdynmod import _meminfo_struct_type
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.experimental import structref
from numba.extending import models, register_model

__all__ = ["Structure", "StructureType", "define"]

_DATA = 3  # number of the field of a reference-counted block that has the address of its content


class StructureType(types.StructRef):
    """Base of the types of structures; each is to be registered with `structref.register`."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Fields of plain types: a constant makes no further type of structure."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Structure(structref.StructRefProxy):
    """Base of structures as Python sees them."""

    # The slot itself: numba drops a Ctrl-C that is handled inside the Python property of the base class.
    _numba_type_ = structref.StructRefProxy._type  # pyright: ignore


class _View(types.Type):
    """Address of a named tuple of arrays and numbers."""

    def __init__(self, fields: Any):
        self.fields = fields
        super().__init__(name=f"View({fields})")


@register_model(_View)
class _ViewModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, cgutils.voidptr_t)


@infer_getattr
class _ViewFields(AttributeTemplate):
    key = _View

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        names = typ.fields.fields
        if attr == "whole":
            return typ.fields
        return typ.fields.types[names.index(attr)] if attr in names else None


def _address_of(name: str, context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Code for the address of a field of a structure."""
    owner = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    payload = context.data_model_manager[kind.get_data_type()]
    # as `context.nrt.meminfo_data` does, which kernels that count no references may not call
    header = builder.bitcast(owner.meminfo, _meminfo_struct_type.as_pointer())
    data = builder.load(cgutils.gep_inbounds(builder, header, 0, _DATA))
    data = builder.bitcast(data, payload.get_value_type().as_pointer())
    field = cgutils.gep_inbounds(builder, data, 0, payload.get_field_position(f"own_{name}"))
    return builder.bitcast(field, cgutils.voidptr_t)


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Code for an array, number or named tuple of these without owners."""
    if not context.enable_nrt:
        return value
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        for i, part in enumerate(parts.types):
            value = builder.insert_value(
                value, _borrowed(context, builder, part, builder.extract_value(value, i)), i
            )
    elif isinstance(kind, types.Array):
        model = context.data_model_manager[kind]
        null = cgutils.get_null_value(cgutils.voidptr_t)
        for part in ("meminfo", "parent"):
            value = builder.insert_value(value, null, model.get_field_position(part))
    return value


@lower_getattr_generic(_View)
def _borrow(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    """Code that reads a member of a named tuple, or all of them."""
    data = builder.bitcast(value, context.get_value_type(kind.fields).as_pointer())
    if name == "whole":
        return _borrowed(context, builder, kind.fields, builder.load(data))
    index = kind.fields.fields.index(name)
    member = builder.load(cgutils.gep_inbounds(builder, data, 0, index))
    return _borrowed(context, builder, kind.fields.types[index], member)


def define(kind: type[StructureType], structure: type[Structure], names: Sequence[str]) -> None:
    """Give a structure its fields, all named tuples; kernels make one by calling it with these, in this order."""

    @infer_getattr
    class Fields(AttributeTemplate):
        key = kind

        def generic_resolve(self, typ: Any, attr: str) -> Any:
            return _View(typ.field_dict[f"own_{attr}"]) if attr in names else None

    for name in names:
        lower_getattr(kind, name)(partial(_address_of, name))
    structref.define_boxing(kind, structure)
    structref.define_constructor(structure, kind, [f"own_{name}" for name in names])
