"""`Results`: the table of a study, read from its file."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.errors import FormatError, InputError, PliantError
from pliant.files import as_path
from pliant.study.parameters import Design, Parameter, make_design
from pliant.study.store import LAST, stored, values_of
from pliant.text import suggestion

if TYPE_CHECKING:
    from pyarrow import Table

__all__ = ["Results", "load"]


class Results:
    """The table of a study, complete or not.

    Attributes:
        path: of the file.
        arrow: the table, as a pyarrow Table.
        version: of the pliant that computed it.
        definition: of the study, as plain values.
        total: number of cases of the study.
        parameters, outputs: names of their columns.
        goals: the better end, "min" or "max", by output or column.
    """

    def __init__(self, path: Path, about: dict[str, Any], table: Table):
        self.path, self.arrow = path, table
        self.version, self.definition, self.total = about["version"], about["study"], about["cases"]
        self.goals: dict[str, str] = about.get("goals", {})
        self.parameters = tuple(p["name"] for p in self.definition["parameters"])
        self.outputs = tuple(
            name for name in table.column_names if name not in ("index", *self.parameters, *LAST)
        )

    def __len__(self) -> int:
        return len(self.arrow)

    def __repr__(self) -> str:
        return f"<Results '{self.path.name}': {len(self)} of {self.total} cases, {len(self.errors)} failed>"

    @property
    def complete(self) -> bool:
        """Whether all cases are computed and none failed."""
        return len(self) == self.total and not self.errors

    @property
    def errors(self) -> dict[int, str]:
        """Errors of the failed cases, by index."""
        error = self.arrow["error"].to_pylist()
        index = self.arrow["index"].to_pylist()
        return {i: e for i, e in zip(index, error, strict=True) if e is not None}

    def goal(self, column: str) -> str:
        """The better end of an output's column, "min" or "max"."""
        return self.goals.get(column) or self.goals.get(column.partition(".")[0], "min")

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The table as arrays by name; missing values are NaN."""
        return {name: values_of(self.arrow[name]) for name in self.arrow.column_names}

    @cached_property
    def table(self) -> Any:
        """The table as a pandas DataFrame if pandas is installed, else as a dictionary of arrays."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            return self.columns
        return self.arrow.to_pandas()

    @cached_property
    def axes(self) -> tuple[Parameter, ...]:
        """The parameters of the study."""
        return tuple(
            Parameter(**{**p, "given": tuple(p["given"]), "where": tuple(p["where"])})
            for p in self.definition["parameters"]
        )

    @cached_property
    def design(self) -> Design:
        """The values of the parameters in all cases, also in those not computed yet."""
        d = self.definition
        return make_design(self.axes, d["samples"], d["sampling"], d["seed"])

    def grid(self, name: str) -> np.ndarray:
        """An output in the shape of the grid, one axis per listed parameter, samples last; missing values are NaN."""
        if name not in self.outputs:
            raise InputError(f"there is no output '{name}'{suggestion(name, self.outputs)}")
        out = np.full(self.total, np.nan)
        out[self.columns["index"]] = self.columns[name]
        return out.reshape(self.design.shape)

    def to_xarray(self) -> Any:
        """The outputs as an xarray Dataset with a dimension per listed parameter, and `sample` for those drawn.

        Raises:
            PliantError: xarray is not installed.
        """
        try:
            import xarray
        except ImportError:
            raise PliantError("to_xarray needs the package 'xarray': pip install xarray") from None
        design = self.design
        dimensions = (*design.axes, *(["sample"] if design.drawn else []))
        coordinates: dict[str, Any] = dict(design.axes)
        for i, name in enumerate(design.drawn):
            coordinates[name] = ("sample", design.samples[:, i])
        return xarray.Dataset(
            {name: (dimensions, self.grid(name)) for name in self.outputs},
            coords=coordinates,
            attrs={"pliant": self.version},
        )

    def plot(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write plots: response curves or heat maps, Pareto fronts, parallel coordinates, as far as they apply."""
        from pliant.study.plots import plot_results

        return plot_results(self, as_path(folder, "folder"))


def load(path: str | os.PathLike[str]) -> Results:
    """The results of a study, also of one that was interrupted.

    Raises:
        FormatError: there are none, or they cannot be read.
    """
    path = as_path(path)
    found = stored(path)
    if found is None:
        raise FormatError(f"'{path}': there are no results of a study")
    return Results(path, *found)
