"""`PathSession`: a path of equilibria and its branches in a live view, without the view."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.checks import number
from pliant.continuation import Path
from pliant.engines.simulation import Pull
from pliant.engines.trajectory import Trajectory
from pliant.errors import InputError
from pliant.mechanism import Mechanism
from pliant.text import suggestion
from pliant.viewer.session import RealTimePlayer

__all__ = ["PathMeasures", "PathSession"]

Floats = NDArray[np.float64]
_SECONDS = 5.0  # duration of a path, played


class _Playhead:
    """Place within a trajectory, which moves in steps like a simulation.

    Attributes:
        trajectory: the trajectory.
        time: seconds from its start; it stays at the end.
    """

    timestep = 1 / 60

    def __init__(self, trajectory: Trajectory):
        self.trajectory, self.time = trajectory, 0.0

    @property
    def end(self) -> float:
        """Duration of the trajectory, s."""
        return float(self.trajectory.time[-1])

    def step(self, n: int = 1) -> None:
        """Advance by n steps."""
        self.time = min(self.time + n * self.timestep, self.end)


@dataclass(frozen=True)
class PathMeasures:
    """The equilibrium shown.

    Attributes:
        time: place along the path, s from its start.
        factor: load factor or parameter.
        negative: number of independent motions with negative stiffness.
    """

    time: float
    factor: float
    negative: int

    @property
    def stability(self) -> str:
        """ "stable" or "unstable"."""
        return "unstable" if self.negative else "stable"


class PathSession(RealTimePlayer):
    """A path of equilibria that is played from its start to its end, or looked at anywhere; so are its branches.

    Attributes:
        paths: the path and its branches by name: "path", "branch 1", "branch 1.1" and so on.
        chosen: name of the one that is shown.
    """

    def __init__(self, path: Path):
        """Start at the beginning of a path, not playing.

        Raises:
            InputError: the path has no second equilibrium.
        """
        super().__init__()
        if len(path) < 2:
            raise InputError(f"view: the path of '{path.mechanism.name}' is a single equilibrium; view that")
        self.paths = {"path": path, **dict(_named(path, ""))}
        self.choose("path")
        self.playing = False

    @property
    def moving(self) -> _Playhead:
        return self._head

    @property
    def path(self) -> Path:
        """The path that is shown."""
        return self.paths[self.chosen]

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism; over a parameter, the one at the start."""
        return self.path.mechanism

    @property
    def poses(self) -> Floats:
        """World poses of all bodies; between two equilibria of the path, on screws from one to the other."""
        i, share = self._place()
        a, b = self._head.trajectory.poses[i : i + 2]
        return a @ spatial.se3_exp(share * spatial.se3_log(spatial.se3_inverse(a) @ b))

    def choose(self, name: str) -> None:
        """Show the path or one of its branches, from its start."""
        if name not in self.paths:
            raise InputError(f"there is no path '{name!s:.80}'{suggestion(name, self.paths)}")
        self.chosen = name
        self._head = _Playhead(self.path.trajectory(_SECONDS))

    def step(self, n: int = 1) -> None:
        """Advance by n steps; the end of the path pauses the session."""
        super().step(n)
        if self.position == 1.0:
            self.playing = False

    def reset(self) -> None:
        """Return to the start of the path."""
        self._restart()
        self._head.time = 0.0

    @property
    def position(self) -> float:
        """Place along the path, from 0 to 1."""
        return self._head.time / self._head.end

    def set_position(self, position: float) -> None:
        """Go to a place along the path, from 0 to 1."""
        self._head.time = number(position, "position", least=0.0, most=1.0) * self._head.end

    def next_point(self) -> None:
        """Go on to the next equilibrium that was computed, if there is one."""
        ahead = self._head.trajectory.time > self._head.time
        self._head.time = (
            float(self._head.trajectory.time[int(np.argmax(ahead))]) if ahead.any() else self._head.end
        )

    def measure(self) -> PathMeasures:
        i, share = self._place()
        path = self.path
        factor = float((1 - share) * path.factor[i] + share * path.factor[i + 1])
        now = PathMeasures(self.time, factor, int(path.negative[i + 1 if share > 0 else i]))
        self._remember(now)
        return now

    def _place(self) -> tuple[int, float]:
        """The equilibrium before the present place, and the share of the way to the next."""
        times = self._head.trajectory.time
        i = int(np.clip(np.searchsorted(times, self._head.time, side="right") - 1, 0, len(times) - 2))
        return i, float((self._head.time - times[i]) / (times[i + 1] - times[i]))

    # --- pulls: an equilibrium is what it is

    def _attach(self, key: Hashable, body: str, point: Floats, target: Floats) -> Pull:
        raise InputError("a path of equilibria cannot be pulled: view its mechanism for that")

    def _detach(self, key: Hashable, pull: Pull) -> None:
        pass

    def _fit(self, pull: Pull) -> None:
        pass

    def _torsion(self, body: str, lever: Floats) -> float:
        raise InputError("a path of equilibria cannot be turned: view its mechanism for that")

    def _carrier(self, body: str) -> tuple[Any, str]:
        raise InputError("a path of equilibria carries its own loads")

    @property
    def loads(self) -> dict[Hashable, Floats]:
        return {}


def _named(path: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    """Branches of a path with their numbers, each before its own branches."""
    for i, branch in enumerate(path.branches, start=1):
        yield f"branch {prefix}{i}", branch
        yield from _named(branch, f"{prefix}{i}.")
