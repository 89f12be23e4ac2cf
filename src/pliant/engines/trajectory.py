"""`Trajectory`: poses over time, from any engine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pliant.checks import instance, numbers
from pliant.errors import FormatError, InputError
from pliant.files import as_path
from pliant.mechanism import Mechanism
from pliant.read_only import read_only
from pliant.text import counted

__all__ = ["FORMAT", "VERSION", "Trajectory"]

FORMAT, VERSION = "pliant-trajectory", 1
_ROTATION = 1e-6  # largest entry of R R^T - 1 that is accepted in a file


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """Poses of all bodies at successive times.

    Attributes:
        mechanism: the mechanism of the bodies.
        time: seconds, (frames,).
        poses: world poses, (frames, bodies, 4, 4).
    """

    mechanism: Mechanism
    time: NDArray[np.float64]
    poses: NDArray[np.float64]

    def __post_init__(self) -> None:
        instance(self.mechanism, Mechanism, "trajectory: mechanism")
        for word in ("time", "poses"):
            object.__setattr__(self, word, read_only(numbers(getattr(self, word), f"trajectory: {word}")))
        frames = len(self.time) if self.time.ndim == 1 else -1
        if self.poses.shape != (frames, self.mechanism.body_count, 4, 4):
            raise InputError(
                f"trajectory: times (frames,) and poses (frames, {self.mechanism.body_count}, 4, 4) expected, got "
                f"{self.time.shape} and {self.poses.shape}"
            )

    def __len__(self) -> int:
        return len(self.time)

    def pose(self, body: str) -> NDArray[np.float64]:
        """World poses of one body, (frames, 4, 4)."""
        index = self.mechanism.body_index(body)
        if index < 0:
            raise InputError("the world does not move: name a body")
        return self.poses[:, index]

    def __repr__(self) -> str:
        end = f" to {self.time[-1]:.4g} s" if len(self) else ""
        return f"<Trajectory of '{self.mechanism.name}': {counted(len(self), 'frame')}{end}>"

    # --- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write times, poses and the mechanism to an `.npz` file that `Trajectory.load` reads back without loss.

        The file appears complete or not at all.

        Raises:
            FormatError: it cannot be written.
        """
        from pliant.formats.archive import mechanism_bytes, write_archive

        arrays = {
            "mechanism": mechanism_bytes(self.mechanism),
            "time": np.asarray(self.time, dtype=np.float64),
            "poses": np.asarray(self.poses[..., :3, :], dtype=np.float64),  # the fourth row is 0 0 0 1
        }
        write_archive(path, {"format": FORMAT, "version": VERSION}, arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trajectory:
        """Read a trajectory that `save` wrote. The file is not trusted: all of it is checked.

        Raises:
            FormatError: the file is no trajectory, is damaged, or is of a newer version.
        """
        from pliant.formats.archive import read_archive, require
        from pliant.formats.json_file import read

        path = as_path(path)
        hint = "holds no trajectory: `Trajectory.save` writes such files"
        _, arrays = read_archive(path, {FORMAT: VERSION}, hint, "trajectory")
        require(arrays, ("mechanism", "time", "poses"), path)
        mechanism = read(arrays["mechanism"].tobytes(), path)
        time, rows = arrays["time"], arrays["poses"]
        _check(path, mechanism, time, rows)
        poses = np.zeros((*rows.shape[:2], 4, 4))
        poses[..., :3, :], poses[..., 3, 3] = rows, 1.0
        return Trajectory(mechanism, time, poses)


def _check(path: Path, m: Mechanism, time: NDArray[np.float64], rows: NDArray[np.float64]) -> None:
    """Refuse times that do not rise, arrays of the wrong shape, and matrices that are no rotations."""
    if time.ndim != 1 or time.dtype != np.float64 or len(time) == 0:
        raise FormatError(f"'{path}': 'time' has the shape {time.shape}, (frames,) expected")
    expected = (len(time), m.body_count, 3, 4)
    if rows.shape != expected or rows.dtype != np.float64:
        raise FormatError(f"'{path}': 'poses' has the shape {rows.shape}, {expected} expected")
    if (np.diff(time) <= 0).any():
        raise FormatError(f"'{path}': 'time' does not rise from frame to frame")
    for frame in rows:  # one at a time: a long trajectory is large
        turn = frame[:, :, :3]
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.abs(turn @ turn.transpose(0, 2, 1) - np.eye(3)).max(initial=0.0)
            proper = (np.linalg.det(turn) > 0).all()
        if not off <= _ROTATION or not proper:
            raise FormatError(f"'{path}': 'poses' holds a matrix that is no rotation")
