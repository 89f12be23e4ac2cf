"""Results on disk: part files while a study runs, each complete or absent; in the end one Parquet table.

The table is `NAME.parquet`, the parts are in `NAME.parquet.parts/`. No file is ever changed: if the client is killed,
only the rows since the last part are lost.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

import pliant
from pliant.errors import FormatError, PliantError
from pliant.extras import require
from pliant.files import replacing
from pliant.study.parameters import case_seed
from pliant.study.workers import Row

if TYPE_CHECKING:
    from pyarrow import Table

    from pliant.study.study import Study

__all__ = ["LAST", "Store", "arrow", "column", "parts_of", "read_table", "stored", "values_of"]

LAST = ("seed", "version", "duration", "error")  # columns after the outputs
_ABOUT = "study.json"


def _part_files(folder: Path) -> list[Path]:
    """Parts in a folder, by number.

    Raises:
        FormatError: a table there is none of ours.
    """
    for path in folder.glob("*.parquet"):
        if not path.stem.isdecimal():
            raise FormatError(
                f"'{path}' is no part of a study: parts have numbers as names; move it elsewhere"
            )
    return sorted(folder.glob("*.parquet"), key=lambda path: int(path.stem))


def _part(path: Path) -> Table:
    table = read_table(path)
    if not {"index", "error"} <= set(table.column_names):
        raise FormatError(f"'{path}' is a table, but no part of a study")
    return table


def _check_about(about: Any, path: Path) -> None:
    """Refuse a record that is none of a study."""
    study = about.get("study") if isinstance(about, dict) else None
    outputs = study.get("outputs") if isinstance(study, dict) else None
    good = isinstance(outputs, list) and {"version", "cases", "goals"} <= about.keys()
    good = good and all(isinstance(o, dict) and {"name", "parts"} <= o.keys() for o in outputs or ())
    if not good:
        raise FormatError(f"'{path}' has no record of a study: put results elsewhere")


def parts_of(path: Path) -> Path:
    """The folder of a table's parts."""
    return path.with_name(path.name + ".parts")


def stored(path: Path) -> tuple[dict[str, Any], Table] | None:
    """The record of the study and all its rows, from table and parts; None if there are none."""
    about, tables = None, []
    if path.exists():
        tables.append(read_table(path))
        about = json.loads((tables[0].schema.metadata or {}).get(b"pliant", b"null"))
        _check_about(about, path)
    folder = parts_of(path)
    if (folder / _ABOUT).is_file():
        try:
            about = about or json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise FormatError(f"'{folder / _ABOUT}' cannot be read: {error}") from None
        _check_about(about, folder / _ABOUT)
        tables += [_part(path) for path in _part_files(folder)]
    if about is None:
        return None
    return about, _merge(tables, {o["name"]: o["parts"] for o in about["study"]["outputs"]})


class Store:
    """The results of a study while it runs.

    Attributes:
        path: of the table.
        done: indices of the cases computed without an error.
    """

    def __init__(self, study: Study, resume: bool):
        """Check existing results and lock the folder of parts.

        Raises:
            PliantError: there are results, and not to be resumed or of another study; or the folder is unusable.
        """
        arrow()  # raises if it is not installed, before anything is written
        self.path, self._parts = study.results, parts_of(study.results)
        self._design, self._seed = study.design, study.seed
        self._about = {
            "version": pliant.__version__,
            "study": study.definition(),
            "cases": len(study),
            "goals": {name: goal for output in study.outputs for name, goal in output.goals.items()},
        }
        self._lock: IO[bytes] | None = None
        self.done: set[int] = set()
        self._check(resume)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        self._next = 1 + max((int(p.stem) for p in _part_files(self._parts)), default=0)

    def _check(self, resume: bool) -> None:
        found = stored(self.path)
        if found is None:
            return
        about, table = found
        if not resume:
            raise PliantError(
                f"'{self.path}' has {len(table)} of {about['cases']} results already: resume it (--resume), "
                "or put results elsewhere"
            )
        if about["version"] != pliant.__version__:
            raise PliantError(
                f"the results in '{self.path}' are of pliant {about['version']}, this is {pliant.__version__}: "
                "put new ones elsewhere"
            )
        theirs = about["study"]
        other = [key for key, value in self._about["study"].items() if value != theirs.get(key)]
        if other:
            raise PliantError(
                f"the results in '{self.path}' are of another study ({', '.join(other)} differ): "
                "put new ones elsewhere"
            )
        good = values_of(table["error"].is_null())
        self.done = set(values_of(table["index"])[good].tolist())

    def _open(self) -> None:
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
            self._lock = (self._parts / "lock").open("wb")
        except OSError as error:
            raise FormatError(f"'{self._parts}' cannot be written: {error.strerror or error}") from None
        _lock(self._lock, self.path)
        if not (self._parts / _ABOUT).exists():
            _write(self._parts / _ABOUT, json.dumps(self._about, indent=1).encode())

    def append(self, rows: Sequence[Row]) -> None:
        """Write one more part.

        Raises:
            FormatError: it cannot be written, for instance because the disk is full; earlier parts are intact.
        """
        if rows:
            _write(self._parts / f"{self._next:08}.parquet", _parquet(self._table(rows)))
            self._next += 1

    def finish(self) -> None:
        """Write the table of all rows, then remove the parts."""
        found = stored(self.path)
        assert found is not None
        table = found[1].replace_schema_metadata({"pliant": json.dumps(self._about)})
        _write(self.path, _parquet(table))
        self.close()
        shutil.rmtree(self._parts, ignore_errors=True)

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _table(self, rows: Sequence[Row]) -> Table:
        values = [self._design[row.index] for row in rows]
        columns = {"index": column([row.index for row in rows], int)}
        for i, name in enumerate(self._design.names):
            columns[name] = column([value[i] for value in values])
        for name in dict.fromkeys(name for row in rows for name in row.outputs):
            columns[name] = column([row.outputs.get(name) for row in rows], float)
        columns["seed"] = column([case_seed(self._seed, row.index) for row in rows], int)
        columns["version"] = column([pliant.__version__] * len(rows), str)
        columns["duration"] = column([row.duration for row in rows], float)
        columns["error"] = column([row.error for row in rows], str)
        return arrow().table(columns)


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # some file systems report a full disk only here


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep other clients from writing the same results. The system releases the lock of a killed process."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PliantError(f"'{path}' is being written by another run") from None
    except OSError:
        return  # a file system without locks


# --- tables of pyarrow


def arrow() -> Any:
    """The module pyarrow.

    Raises:
        MissingPackageError: it is not installed.
    """
    return require("pyarrow")


def column(values: Sequence[Any] | np.ndarray, kind: type | None = None) -> Any:
    """A column of bool, int, float or str with None for missing values; `kind` defaults to the type of the values.

    Made from buffers: `pyarrow.array` imports pandas if it is installed, which takes longer than many a study.
    """
    pa = arrow()
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    if kind is None:
        found = {type(value) for value in values}
        kind = found.pop() if len(found) == 1 else float
    present = np.array([value is not None for value in values], dtype=bool)
    if kind is str:
        words = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
        buffers = [pa.py_buffer(ends), pa.py_buffer(b"".join(words))]
    else:
        numbers = np.array([0 if value is None else value for value in values], dtype=kind)
        buffers = [pa.py_buffer(_bits(numbers) if kind is bool else numbers)]
    return pa.Array.from_buffers(kinds[kind], len(present), [pa.py_buffer(_bits(present)), *buffers])


def values_of(column: Any) -> np.ndarray:
    """A column as an array, NaN or None for missing values; also without pandas, which `to_numpy` imports."""
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
    """The table in a Parquet file.

    Raises:
        FormatError: it cannot be read.
    """
    pa = arrow()
    from pyarrow import parquet

    if path.exists() and not path.is_file():  # opening a pipe would wait for a writer
        raise FormatError(f"'{path}' cannot be read: it is no file")
    try:
        with parquet.ParquetFile(path) as file:
            return file.read()
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"'{path}' cannot be read: {' '.join(str(error).split())[:200]}") from None


def _parquet(table: Table) -> bytes:
    """The content of a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    out = pyarrow.BufferOutputStream()
    parquet.write_table(table, out, compression="zstd")
    return out.getvalue().to_pybytes()


def _merge(tables: Sequence[Table], outputs: Mapping[str, Sequence[str]]) -> Table:
    """One table, sorted by index, one row per case: the last without an error, or else the last.

    `outputs`, parts by name, gives the order of the output columns.
    """
    pa = arrow()
    if not tables:
        return pa.table({"index": column([], int), "error": column([], str)})
    table = pa.concat_tables([t.replace_schema_metadata(None) for t in tables], promote_options="permissive")
    index = values_of(table["index"])
    good = values_of(table["error"].is_null())
    order = np.lexsort((np.arange(len(index)), good, index))
    last = np.append(np.diff(index[order]) != 0, True) if len(order) else np.zeros(0, dtype=bool)
    names = sorted(table.column_names, key=lambda name: _column_order(name, outputs))
    return table.take(column(order[last], int)).select(names).combine_chunks()


def _column_order(name: str, outputs: Mapping[str, Sequence[str]]) -> tuple[Any, ...]:
    """Sort key of a column: index, parameters in their order, outputs, the rest."""
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
