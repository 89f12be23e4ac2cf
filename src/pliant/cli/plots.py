"""Figures of runs and comparisons. They need no display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.plotting import logarithmic, panels, save
from pliant.viewer import draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pliant.cli.comparison import Comparison
    from pliant.engines.trajectory import Trajectory

__all__ = ["COLOURS", "length_unit", "plot_comparison", "plot_run"]

COLOURS = {"reduced": "#d9822b", "blended": "#3a9a4c", "constrained": "#3566c4", "quasistatic": "#8a4fb3"}
_EXACT = 1e-6  # of the motion: errors below are none
_LINES = ("#3566c4", "#d9822b", "#3a9a4c", "#b3313b", "#8a4fb3", "#2a9d9d", "#777777", "#c2a11c")


def length_unit(largest: float) -> tuple[float, str]:
    """Factor and name of the unit in which a length reads well."""
    return (1e6, "µm") if largest < 1e-4 else (1e3, "mm") if largest < 0.5 else (1.0, "m")


def plot_run(
    path: Trajectory, bodies: Sequence[str], forces: Mapping[str, Sequence[float]], place: Path
) -> None:
    """How far bodies moved over time, beside where everything is at the end."""
    drawn, _ = panels(1, 2, 5.2, 4.2, grid=True)
    left, right = drawn.axes
    moved = [
        np.linalg.norm(path.pose(b)[:, :3, 3] - path.pose(b)[0, :3, 3], axis=1) for b in bodies[: len(_LINES)]
    ]
    factor, unit = length_unit(max(float(m.max()) for m in moved))
    for body, distance, colour in zip(bodies, moved, _LINES, strict=False):
        left.plot(path.time, factor * distance, color=colour, linewidth=1.3, label=body)
    left.set_xlim(path.time[0], path.time[-1])
    left.set_ylim(bottom=0)
    left.set_xlabel("time (s)")
    left.set_ylabel(f"distance from the start ({unit})")
    left.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
    right.grid(False)
    at = SimpleNamespace(mechanism=path.mechanism, poses=path.poses[-1])
    draw(at, right, forces={b: f[:3] for b, f in forces.items()}, title=f"at {path.time[-1]:.4g} s")  # type: ignore[arg-type]
    drawn.suptitle(path.mechanism.name, fontsize=11)
    save(drawn, place)


def plot_comparison(found: Comparison, place: Path) -> None:
    """Error at rest against the load, and the path of the end effector that moves most, engine by engine."""
    drawn, _ = panels(1, 2, 5.2, 4.2, grid=True)
    left, right = drawn.axes
    errors(found, left)
    paths(found, right)
    drawn.suptitle(f"{found.name}: {found.load}", fontsize=11)
    save(drawn, place)


def errors(found: Comparison, axes: Axes) -> None:
    """Error at rest as a fraction of the motion, against the load."""
    for row in found.rows:
        if row.rest is None:
            continue
        # What is exact has no place on a logarithmic scale.
        exact = float(np.nanmax(row.rest)) < _EXACT
        shown = np.full(len(found.fractions), np.nan) if exact else 100 * np.maximum(row.rest, _EXACT)
        axes.plot(
            100 * found.fractions,
            shown,
            "o--" if row.engine == "blended" else "o-",
            markersize=4,
            linewidth=1.2,
            color=COLOURS[row.engine],
            label=f"{row.engine} (exact)" if exact else row.engine,
        )
    logarithmic(axes)
    axes.set_xlabel("load (% of the whole)")
    axes.set_ylabel("error at rest (% of the motion)")
    axes.set_title("against the nonlinear equilibrium", fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)


def paths(found: Comparison, axes: Axes) -> None:
    """Distance from the start over time."""
    moving = [row for row in found.rows if row.path is not None]
    factor, unit = length_unit(max((float(_floats(row.path).max()) for row in moving), default=1.0))
    # The reference goes first, wide and pale, so that it shows where others lie on top.
    for row in sorted(moving, key=lambda row: row.engine != "constrained"):
        reference = row.engine == "constrained"
        axes.plot(
            found.time,
            factor * _floats(row.path),
            color=COLOURS[row.engine],
            linewidth=3.0 if reference else 1.2,
            linestyle="--" if row.engine == "blended" else "-",
            alpha=0.45 if reference else 1.0,
            label=row.engine,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, found.time[-1])
    axes.axhline(factor * found.moved, color="#777777", linewidth=1, linestyle="--", label="equilibrium")
    axes.set_xlabel("time (s)")
    axes.set_ylabel(f"'{found.body}' from rest ({unit})")
    axes.set_title("pulled from rest", fontsize=10)
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)


def _floats(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)
