"""Tables of results: reading them, putting them together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.errors import FormatError
from pliant.extras import require

if TYPE_CHECKING:
    from pyarrow import Table

__all__ = ["arrow", "column", "merged", "read_table", "values_of"]

LAST = ("seed", "version", "duration", "error")


def arrow() -> Any:
    """pyarrow, if it is installed."""
    return require("pyarrow")


def column(values: Sequence[Any] | np.ndarray, kind: type | None = None) -> Any:
    """A column of bool, int, float or str, in which None stands for nothing; the kind is that of the values if None.

    From buffers: `pyarrow.array` would import pandas if it is there, which takes longer than many a study.
    """
    pa = arrow()
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    if kind is None:
        found = {type(value) for value in values}
        kind = found.pop() if len(found) == 1 else float
    there = np.array([value is not None for value in values], dtype=bool)
    if kind is str:
        words = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
        buffers = [pa.py_buffer(ends), pa.py_buffer(b"".join(words))]
    else:
        numbers = np.array([0 if value is None else value for value in values], dtype=kind)
        buffers = [pa.py_buffer(_bits(numbers) if kind is bool else numbers)]
    return pa.Array.from_buffers(kinds[kind], len(there), [pa.py_buffer(_bits(there)), *buffers])


def values_of(column: Any) -> np.ndarray:
    """A column as an array: NaN or None where there is nothing. Again without pandas, which `to_numpy` would import."""
    pa = arrow()
    array = column.combine_chunks()
    kind = {pa.int64(): np.int64, pa.float64(): np.float64}.get(array.type)
    if kind is None or (array.null_count and kind is np.int64):
        found = array.to_pylist()
        return np.array(found, dtype=bool if array.type == pa.bool_() and None not in found else object)
    if not len(array):
        return np.empty(0, dtype=kind)
    out = np.frombuffer(array.buffers()[1], dtype=kind, count=len(array), offset=8 * array.offset).copy()
    if array.null_count:
        out[np.array(array.is_null().to_pylist(), dtype=bool)] = np.nan
    return out


def _bits(flags: np.ndarray) -> np.ndarray:
    return np.packbits(flags, bitorder="little")


def read_table(path: Path) -> Table:
    """A Parquet file.

    Raises:
        FormatError: it cannot be read.
    """
    pa = arrow()
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            return file.read()
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"'{path}' cannot be read: {' '.join(str(error).split())[:200]}") from None


def merged(tables: Sequence[Table], outputs: Mapping[str, Sequence[str]]) -> Table:
    """One table, sorted by index, every case once: the last row without an error, or else the last one.

    Columns of outputs, names and parts, come in the order of the study, whichever case was the first to have them.
    """
    pa = arrow()
    if not tables:
        return pa.table({"index": column([], int), "error": column([], str)})
    table = pa.concat_tables([t.replace_schema_metadata(None) for t in tables], promote_options="permissive")
    index = values_of(table["index"])
    good = values_of(table["error"].is_null())
    order = np.lexsort((np.arange(len(index)), good, index))
    last = np.append(np.diff(index[order]) != 0, True) if len(order) else np.zeros(0, dtype=bool)
    names = sorted(table.column_names, key=lambda name: _place(name, outputs))
    return table.take(column(order[last], int)).select(names).combine_chunks()


def _place(name: str, outputs: Mapping[str, Sequence[str]]) -> tuple[Any, ...]:
    """Where a column belongs: index, parameters as they are, outputs, the rest."""
    head, _, part = name.partition(".")
    if name == "index":
        return (0,)
    if name in LAST:
        return (3, LAST.index(name))
    if head not in outputs:
        return (1,)
    known = list(outputs[head])
    if part in known:
        return (2, list(outputs).index(head), known.index(part), [])
    pieces = re.findall(r"\d+|\D+", part)  # "10" comes after "9"
    natural = [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in pieces]
    return (2, list(outputs).index(head), len(known), natural)
