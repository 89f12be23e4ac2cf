"""`Study`: what is varied, what is computed, where results go; all checked before anything runs."""

from __future__ import annotations

import math
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pliant.errors import FormatError, InputError
from pliant.formats.paths import as_path, read_bytes
from pliant.mechanism import Mechanism
from pliant.mechanism.edit import suggestion
from pliant.study.checks import check_keys, number, whole
from pliant.study.design import SAMPLINGS, make_design
from pliant.study.outputs import parse_outputs
from pliant.study.parameters import parse_parameters
from pliant.study.source import find_mechanism

if TYPE_CHECKING:
    from pliant.study.cases import Row
    from pliant.study.results import Results

__all__ = ["Study", "read"]

_MAX_FILE = 10_000_000
_KEYS = ("mechanism", "parameters", "outputs", "results", "seed", "samples", "sampling", "time_limit")


class Study:
    """Many variants of a mechanism, and what is to be known of each.

    Attributes:
        parameters, outputs: as parsed.
        source: where mechanisms come from.
        design: the values of the parameters in every case.
        results: the Parquet file of the results.
        seed: of everything random.
        time_limit: of a case, s, or None.
        folder: what paths are relative to, and where modules of functions are found.

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
            seed: of everything random.
            samples: how often to draw the parameters that are drawn.
            sampling: "random", "latin" (Latin hypercube) or "sobol".
            time_limit: a case that takes longer is stopped, s.
            folder: what paths are relative to, and where modules of functions are found.

        Raises:
            PliantError: something is missing, misspelt or does not fit.
        """
        self.folder = as_path(folder, "folder").resolve()
        if str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))  # where 'module:function' is looked for
        self.seed = whole(seed, "seed")
        if samples is not None:
            samples = whole(samples, "samples", 1)
        if sampling not in SAMPLINGS:
            raise InputError(f"sampling: unknown '{sampling}'{suggestion(sampling, SAMPLINGS)}")
        self.sampling = sampling
        self.time_limit = None if time_limit is None else number(time_limit, "time_limit", above=0.0)
        self.results = _table(self.folder, results)
        self.parameters = parse_parameters(parameters)
        self.outputs = parse_outputs(outputs, [p.name for p in self.parameters])
        self._check_use()
        self.source = find_mechanism(mechanism, self.parameters, self.folder)
        self.design = make_design(self.parameters, samples, sampling, self.seed)
        self._check_first()

    def _check_use(self) -> None:
        """Refuse a parameter that nothing depends on: most often a word is missing."""
        if any(output.function for output in self.outputs):
            return  # it may ask for any
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

    def _check_first(self) -> None:
        """Names of joints and bodies, on the mechanism of the first case."""
        values = dict(zip(self.design.names, self.design[0], strict=True))
        try:
            bare = self.source.mechanism or self.source.build(
                [p for p in self.parameters if p.target == "argument"], values
            )
        except InputError as error:
            raise InputError(f"the mechanism of the first case: {error}") from None
        for p in self.parameters:
            if p.target in ("stiffness", "damping"):
                from pliant.mechanism.edit import matching_dofs

                try:
                    matching_dofs(bare, p.where)
                except InputError as error:
                    raise InputError(f"parameter '{p.name}': {error}") from None
        for output in self.outputs:
            output.check(bare)

    def __len__(self) -> int:
        """How many cases there are."""
        return len(self.design)

    def __repr__(self) -> str:
        names = ", ".join(self.design.names)
        return f"<Study of '{self.source.text}': {len(self)} cases of {names}>"

    def definition(self) -> dict[str, Any]:
        """All that results depend on, as plain values: two studies with the same one have the same results."""
        return _plain(
            {
                "mechanism": self.source.identity(),
                "parameters": [asdict(p) for p in self.parameters],
                "outputs": [_output(asdict(o), o.function) for o in self.outputs],
                "seed": self.seed,
                "samples": len(self.design.samples) if self.design.drawn else None,
                "sampling": self.sampling,
            }
        )

    def run(
        self,
        *,
        resume: bool = False,
        workers: int | None = None,
        scheduler: str | None = None,
        progress: Callable[[int, int, int], Any] | None = None,
        watch: Callable[[Row], Any] | None = None,
    ) -> Results:
        """Compute all cases and leave the table at `results`.

        Args:
            resume: go on with the results that are there; only what is missing or failed is computed.
            workers: processes on this machine; as many as it has cores by default.
            scheduler: address of a Dask scheduler to use instead, such as `tcp://host:8786`.
            progress: called as `progress(done, failed, total)` now and then.
            watch: called as `watch(row)` for every case as it comes; a row has `index`, `outputs`, `duration`, `error`.

        Raises:
            PliantError: there are results already, or of another study; they cannot be written; no worker starts.
        """
        from pliant.study.running import run

        return run(self, resume=resume, workers=workers, scheduler=scheduler, progress=progress, watch=watch)


def _table(folder: Path, given: str | os.PathLike[str]) -> Path:
    if as_path(given, "results").suffix != ".parquet":
        raise InputError(f"results: a name that ends in .parquet expected, not '{given}'")
    return folder / as_path(given, "results")


def _output(fields: dict[str, Any], function: Any) -> dict[str, Any]:
    del fields["goal"]  # of pictures only
    return {**fields, "function": None if function is None else str(function)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    assert value is None or isinstance(value, str | bool | int) or math.isfinite(value)
    return value


def read(path: str | os.PathLike[str], results: str | os.PathLike[str] | None = None) -> Study:
    """A study from a TOML or Python file; `results` puts the table elsewhere (relative to the current folder).

    A Python file makes one `Study` at its top level.

    Raises:
        PliantError: it cannot be read, or something in it is missing, misspelt or does not fit.
    """
    path = as_path(path)
    if path.suffix == ".py":
        from pliant.study.scripts import study_in

        study = study_in(path)
        if results is not None:
            study.results = _table(Path.cwd(), results)
        return study
    data = read_bytes(path, _MAX_FILE)
    try:
        given = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"'{path}' is not TOML: {error}") from None
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
