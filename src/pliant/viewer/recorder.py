"""`Recorder`: frames of a live view, for `record_html` and `export_gltf`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pliant.engines.trajectory import Trajectory, loads_over_time
from pliant.errors import InputError
from pliant.mechanism import Mechanism

__all__ = ["Recorded", "Recorder"]

Floats = NDArray[np.float64]
_INTERVAL = 1 / 30  # s of simulated time between two frames
_MOST_FRAMES = 3600
_MOST_POSES = 1_000_000  # frames times bodies, 48 MB


class Recorded(Protocol):
    """What a recorder asks a session for."""

    @property
    def mechanism(self) -> Mechanism: ...
    @property
    def time(self) -> float: ...
    @property
    def poses(self) -> Floats: ...
    @property
    def loads(self) -> dict[Hashable, Floats]: ...


class Recorder:
    """Frames of a session, thirty for a second of simulated time; after a reset they go on.

    Attributes:
        mechanism: the bodies that are recorded.
    """

    def __init__(self, session: Recorded):
        """Begin with the present frame."""
        self.mechanism = session.mechanism
        self._before, self._elapsed = session.time, 0.0
        self._times: list[float] = []
        self._poses: list[NDArray[np.float32]] = []
        self._loads: list[dict[Hashable, Floats]] = []
        self._most = min(_MOST_FRAMES, max(2, _MOST_POSES // max(1, self.mechanism.body_count)))
        self.note(session)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def full(self) -> bool:
        """Whether no further frame fits."""
        return len(self) >= self._most

    @property
    def seconds(self) -> float:
        """Simulated time so far, s."""
        return self._elapsed

    def rewind(self, session: Recorded) -> None:
        """Go on after the session's time has been set back."""
        self._before = session.time

    def note(self, session: Recorded) -> None:
        """Keep the present frame if it is time for one."""
        if self.full:
            return
        self._elapsed += max(session.time - self._before, 0.0)
        self._before = session.time
        if self._times and self._elapsed < self._times[-1] + _INTERVAL * (1 - 1e-9):
            return
        self._times.append(self._elapsed)
        self._poses.append(session.poses[:, :3].astype(np.float32))
        self._loads.append(session.loads)

    def trajectory(self) -> Trajectory:
        """The frames so far.

        Raises:
            InputError: nothing has moved yet.
        """
        if len(self) < 2:
            raise InputError("no time has passed while recording: press Play, then record")
        poses = np.zeros((len(self), self.mechanism.body_count, 4, 4))
        poses[..., :3, :], poses[..., 3, 3] = np.array(self._poses), 1.0
        return Trajectory(self.mechanism, np.array(self._times), poses, loads_over_time(self._loads))
