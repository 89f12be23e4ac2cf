"""Results on disk: part files as rows come in, each complete or not at all; in the end one table.

The table is `NAME.parquet`, the parts are in `NAME.parquet.parts/`. Killing the client loses only the rows of the
last moment, and no file is ever changed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pliant
from pliant.errors import FormatError, PliantError
from pliant.formats.paths import replacing
from pliant.study.cases import Row
from pliant.study.design import case_seed
from pliant.study.tables import arrow, column, merged, read_table, values_of

if TYPE_CHECKING:
    from pyarrow import Table

    from pliant.study.definition import Study

__all__ = ["Store", "parts_of", "stored"]

_ABOUT = "study.json"


def parts_of(path: Path) -> Path:
    """The folder of a table's parts."""
    return path.with_name(path.name + ".parts")


def stored(path: Path) -> tuple[dict[str, Any], Table] | None:
    """What the results are of, and all rows there are; None if there is nothing."""
    about, tables = None, []
    if path.exists():
        tables.append(read_table(path))
        about = json.loads((tables[0].schema.metadata or {}).get(b"pliant", b"null"))
        if about is None:
            raise FormatError(f"'{path}' is a table, but not of a study")
    folder = parts_of(path)
    if (folder / _ABOUT).exists():
        try:
            about = about or json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FormatError(f"'{folder / _ABOUT}' cannot be read: {error}") from None
        tables += [read_table(part) for part in sorted(folder.glob("*.parquet"))]
    if about is None:
        return None
    return about, merged(tables, {o["name"]: o["parts"] for o in about["study"]["outputs"]})


class Store:
    """The results of one study, while it runs."""

    def __init__(self, study: Study, resume: bool):
        """Look at what is there and make ready for more.

        Raises:
            PliantError: there are results, and not to be resumed or of another study; or the folder is unusable.
        """
        arrow()  # without it there is nothing to begin with
        self.path, self._parts = study.results, parts_of(study.results)
        self._design, self._seed = study.design, study.seed
        self._about = {
            "version": pliant.__version__,
            "study": study.definition(),
            "cases": len(study),
            "goals": {name: goal for output in study.outputs for name, goal in output.goals.items()},
        }
        self._lock: IO[bytes] | None = None
        self.done: set[int] = set()  # computed without an error
        self._check(resume)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        self._next = 1 + max((int(p.stem) for p in self._parts.glob("*.parquet")), default=0)

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
        ours, theirs = json.loads(json.dumps(self._about["study"])), about["study"]
        other = [key for key in ours if ours[key] != theirs.get(key)]
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
            self._write(self._parts / _ABOUT, json.dumps(self._about, indent=1).encode())

    def append(self, rows: Sequence[Row]) -> None:
        """One more part.

        Raises:
            FormatError: it cannot be written, for instance because the disk is full. What was there is there.
        """
        if rows:
            data = self._table(rows)
            self._write(self._parts / f"{self._next:08}.parquet", _bytes(data))
            self._next += 1

    def finish(self) -> None:
        """The table of everything; then the parts can go."""
        found = stored(self.path)
        assert found is not None
        table = found[1].replace_schema_metadata({"pliant": json.dumps(self._about)})
        self._write(self.path, _bytes(table))
        self.close()
        shutil.rmtree(self._parts, ignore_errors=True)

    def close(self) -> None:
        """Let others at it."""
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

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        with replacing(path) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # some file systems say only now that there is no room


def _bytes(table: Table) -> bytes:
    import pyarrow
    from pyarrow import parquet

    out = pyarrow.BufferOutputStream()
    parquet.write_table(table, out, compression="zstd")
    return out.getvalue().to_pybytes()


def _lock(file: IO[bytes], path: Path) -> None:
    """Two clients must not write the same results. The system takes the lock back if this process is killed."""
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
