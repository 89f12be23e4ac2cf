"""`Study`: definition of a parameter study, all checked before anything runs, and its run."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Any

from pliant.checks import MOST_THREADS, number, whole
from pliant.errors import FormatError, InputError
from pliant.files import as_path, read_bytes
from pliant.mechanism import Mechanism
from pliant.mechanism.edit import matching_dofs
from pliant.study.outputs import Function, parse_outputs
from pliant.study.parameters import MAX_CASES, SAMPLINGS, check_keys, make_design, parse_parameters
from pliant.study.results import Results, load
from pliant.study.source import find_mechanism
from pliant.study.store import Store
from pliant.study.workers import INSIDE, Case, Pool, Row, core_count, pack, run_here
from pliant.text import brief, suggestion

__all__ = ["Study", "read"]

Progress = Callable[[int, int, int], Any]
_MAX_FILE = 10_000_000
_KEYS = ("mechanism", "parameters", "outputs", "results", "seed", "samples", "sampling", "time_limit")
_SHOW = 0.1  # seconds between calls of `progress`


class Study:
    """Many variants of a mechanism, and the outputs to compute for each.

    Attributes:
        parameters, outputs: as parsed.
        source: of the mechanisms.
        design: the values of the parameters in every case.
        results: the Parquet file of the results.
        seed: of all random numbers.
        time_limit: of a case, s, or None.
        folder: that paths are relative to, and where modules of functions are found.

    Example:
        >>> study = pliant.study.Study(  # doctest: +SKIP
        ...     "gallery:ladder",
        ...     parameters={"k": {"stiffness": "*", "log": [100, 10000, 9]}},
        ...     outputs={"f": {"frequencies": 1}},
        ...     results="ladder.parquet",
        ... )
        >>> study.run().table  # doctest: +SKIP
    """

    def __init__(
        self,
        mechanism: str | os.PathLike[str] | Mechanism,
        parameters: Mapping[str, Any],
        outputs: Mapping[str, Any],
        results: str | os.PathLike[str],
        *,
        seed: int = 0,
        samples: int | None = None,
        sampling: str = "random",
        time_limit: float | None = None,
        folder: str | os.PathLike[str] = ".",
    ):
        """Check everything; the keys of parameters and outputs are those of a study's file (docs/studies.md).

        Args:
            mechanism: a file, `gallery:NAME` with arguments, or a mechanism.
            parameters: `{name: {...}}`.
            outputs: `{name: {...}}`, or a function of the mechanism and the parameters instead of the dictionary.
            results: a file whose name ends in `.parquet`.
            seed: of all random numbers.
            samples: number of samples of the parameters that are drawn.
            sampling: "random", "latin" (Latin hypercube) or "sobol".
            time_limit: a case that takes longer is stopped, s.
            folder: that paths are relative to, and where modules of functions are found.

        Raises:
            PliantError: something is missing, misspelt or does not fit.
        """
        self.folder = as_path(folder, "folder").resolve()
        _import_from(self.folder)
        self.seed = whole(seed, "seed")
        if samples is not None:
            samples = whole(samples, "samples", 1, MAX_CASES)
        if not isinstance(sampling, str) or sampling not in SAMPLINGS:
            raise InputError(f"sampling: unknown {brief(sampling)}{suggestion(sampling, SAMPLINGS)}")
        self.sampling = sampling
        self.time_limit = None if time_limit is None else number(time_limit, "time_limit", above=0.0)
        self.results = _table(self.folder, results)
        self.parameters = parse_parameters(parameters)
        self.outputs = parse_outputs(outputs, [p.name for p in self.parameters])
        self._check_use()
        self.source = find_mechanism(mechanism, self.parameters, self.folder)
        self.design = make_design(self.parameters, samples, sampling, self.seed)
        self._check_names()

    def _check_use(self) -> None:
        """Refuse parameters that nothing depends on: most often a key is missing."""
        if any(isinstance(output, Function) for output in self.outputs):
            return  # functions may use any parameter
        used = set().union(*(output.parameters for output in self.outputs))
        for p in self.parameters:
            if p.target is None and p.name not in used:
                raise InputError(
                    f"parameter '{p.name}' changes nothing: say stiffness = 'JOINTS', damping = 'JOINTS' or "
                    "argument = 'NAME', or use its name in a wrench or grasp"
                )
        for p in self.parameters:
            if p.name in used and any(isinstance(value, str | bool) for value in p.given):
                raise InputError(f"parameter '{p.name}' is used in a wrench or grasp: numbers expected")

    def _check_names(self) -> None:
        """Refuse names of joints and bodies that the mechanism of the first case does not have."""
        values = dict(zip(self.design.names, self.design[0], strict=True))
        try:
            bare = self.source.mechanism or self.source.build(
                [p for p in self.parameters if p.target == "argument"], values
            )
        except InputError as error:
            raise InputError(f"the mechanism of the first case: {error}") from None
        for p in self.parameters:
            if p.target in ("stiffness", "damping"):
                try:
                    matching_dofs(bare, p.where)
                except InputError as error:
                    raise InputError(f"parameter '{p.name}': {error}") from None
        for output in self.outputs:
            output.check(bare)

    def __len__(self) -> int:
        """Number of cases."""
        return len(self.design)

    def __repr__(self) -> str:
        names = ", ".join(self.design.names)
        return f"<Study of '{self.source.text}': {len(self)} cases of {names}>"

    def definition(self) -> dict[str, Any]:
        """Everything that results depend on, as plain values: the same definition gives the same results."""
        found = {
            "mechanism": self.source.identity(),
            "parameters": [asdict(p) for p in self.parameters],
            "outputs": [output.record() for output in self.outputs],
            "seed": self.seed,
            "samples": len(self.design.samples) if self.design.drawn else None,
            "sampling": self.sampling,
        }
        return json.loads(json.dumps(found, allow_nan=False))

    def run(
        self,
        *,
        resume: bool = False,
        workers: int | None = None,
        scheduler: str | None = None,
        progress: Progress | None = None,
        watch: Callable[[Row], Any] | None = None,
    ) -> Results:
        """Compute all cases and write the table to `results`.

        Args:
            resume: continue existing results; only missing and failed cases are computed.
            workers: processes on this machine, by default one per core. 0 starts none: cases are computed in this
                process, one after the other, with the same results; then `time_limit` does not apply, and a crash
                of a case ends this process.
            scheduler: address of a Dask scheduler to use instead, such as `tcp://host:8786`.
            progress: called as `progress(done, failed, total)` now and then.
            watch: called as `watch(row)` for every finished case; a row has `index`, `outputs`, `duration`, `error`.

        Raises:
            PliantError: there are results already, or of another study; they cannot be written; no worker starts.
        """
        if os.environ.get(INSIDE):
            raise InputError(
                "a study was started by one of its own processes: put `run` below `if __name__ == '__main__':`"
            )
        if scheduler is not None and workers is not None:
            raise InputError(
                "workers are processes on this machine; a scheduler has its own: give one of them"
            )
        count = core_count() if workers is None else whole(workers, "workers", 0, MOST_THREADS)
        client = None
        if scheduler is not None:
            from pliant.study.cluster import connect

            client = connect(scheduler)  # before anything is written
        try:
            store = Store(self, resume)
            try:
                missing = [i for i in range(len(self)) if i not in store.done]
                with closing(self._rows(missing, count, client)) as rows:
                    _collect(rows, store, len(self), progress, watch)
                store.finish()
            finally:
                store.close()
        finally:
            if client is not None:
                client.close()
        return load(self.results)

    def _rows(self, missing: list[int], count: int, client: Any) -> Generator[Row, None, None]:
        """Rows of the missing cases, from this process, `count` workers, or the cluster of a Dask client."""
        cases = [Case(index, self.design[index]) for index in missing]
        if not cases:
            return
        payload = pack(self)
        if client is not None:
            from pliant.study.cluster import run_on_cluster

            about = json.dumps(self.definition()).encode() + os.urandom(8)
            key = f"pliant-study-{hashlib.sha256(about).hexdigest()[:16]}"
            yield from run_on_cluster(client, key, payload, cases, self.time_limit)
        elif count == 0:
            yield from run_here(payload, cases)
        else:
            with closing(Pool(payload, count, self.time_limit)) as pool:
                yield from pool.run(cases)


def _collect(
    rows: Iterator[Row],
    store: Store,
    total: int,
    progress: Progress | None,
    watch: Callable[[Row], Any] | None,
) -> None:
    """Write rows in parts: one a second at first, later seldom enough that a long study has few of them."""
    done, failed = len(store.done), 0
    buffer: list[Row] = []
    begin = written = monotonic()
    shown = 0.0
    try:
        if progress is not None:
            progress(done, failed, total)
        for row in rows:
            if watch is not None:
                watch(row)
            buffer.append(row)
            done, failed, now = done + 1, failed + (row.error is not None), monotonic()
            if progress is not None and now - shown > _SHOW:
                progress(done, failed, total)
                shown = now
            if now - written > min(1.0 + (now - begin) / 100, 30.0):
                full, buffer = buffer, []
                store.append(full)
                written = monotonic()
    except FormatError as error:
        raise _unwritten(error) from None
    except BaseException:
        store.append(buffer)  # Ctrl-C, or no worker is left: keep the rows so far
        raise
    try:
        store.append(buffer)
    except FormatError as error:
        raise _unwritten(error) from None
    if progress is not None:
        progress(done, failed, total)


def _unwritten(error: FormatError) -> FormatError:
    return FormatError(f"{error}; the results so far are kept: make room, then resume")


def _table(folder: Path, given: str | os.PathLike[str]) -> Path:
    if as_path(given, "results").suffix != ".parquet":
        raise InputError(f"results: a name that ends in .parquet expected, not '{given}'")
    return folder / as_path(given, "results")


def _import_from(folder: Path) -> None:
    """Look for modules in this folder first."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


# --- studies in files


def read(path: str | os.PathLike[str], results: str | os.PathLike[str] | None = None) -> Study:
    """A study from a TOML or Python file; `results` puts the table elsewhere (relative to the current folder).

    A Python file makes one `Study` at its top level.

    Raises:
        PliantError: it cannot be read, or something in it is missing, misspelt or does not fit.
    """
    path = as_path(path)
    if path.suffix == ".py":
        study = _read_script(path)
        if results is not None:
            study.results = _table(Path.cwd(), results)
        return study
    data = read_bytes(path, _MAX_FILE)
    try:
        given = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"'{path}' is not TOML: {error}") from None
    except RecursionError:
        raise FormatError(f"'{path}' is nested too deep for a study") from None
    try:
        check_keys(given, _KEYS, "study")
        given.setdefault("results", f"{path.stem}.parquet")
        if results is not None:
            given["results"] = as_path(results, "results").resolve()
        for key in ("mechanism", "parameters", "outputs"):
            if key not in given:
                raise InputError(f"'{key}' is missing")
        return Study(**given, folder=path.parent)
    except InputError as error:
        raise InputError(f"'{path}': {error}") from None


def _read_script(path: Path) -> Study:
    """The one study at the top level of a Python file, which is imported by its name so that workers can, too."""
    place = path.resolve()
    if not place.is_file():
        raise FormatError(f"'{path}': there is no such file")
    _import_from(place.parent)
    try:
        module = importlib.import_module(place.stem)
    except Exception as error:  # the file may raise anything
        raise InputError(f"'{path}' cannot be imported: {type(error).__name__}: {error}") from None
    if Path(module.__file__ or "").resolve() != place:
        raise InputError(f"'{path}': another module is called '{place.stem}'; rename the file")
    found = {id(value): value for value in vars(module).values() if isinstance(value, Study)}
    if len(found) != 1:
        raise InputError(
            f"'{path}': one study expected at its top level, as in study = Study(...), not {len(found)}"
        )
    return found.popitem()[1]
