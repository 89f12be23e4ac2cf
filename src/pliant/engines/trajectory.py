"""`Trajectory`: poses over time, from any engine."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pliant.checks import instance, numbers
from pliant.errors import FormatError, InputError
from pliant.files import as_path
from pliant.mechanism import Mechanism
from pliant.read_only import read_only
from pliant.text import counted

__all__ = ["FORMAT", "VERSION", "Trajectory", "loads_over_time"]

FORMAT, VERSION = "pliant-trajectory", 1
_LARGE = 16 * 200_000  # numbers: longer trajectories are not shown in notebooks
_ROTATION = 1e-6  # largest entry of R R^T - 1 that is accepted in a file


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """Poses of all bodies at successive times.

    Attributes:
        mechanism: the mechanism of the bodies.
        time: seconds, (frames,).
        poses: world poses, (frames, bodies, 4, 4).
        loads: points and forces of wrenches and pulls, world, m and N, (frames, loads, 2, 3), for pictures; a load
            that does not act has no force.
    """

    mechanism: Mechanism
    time: NDArray[np.float64]
    poses: NDArray[np.float64]
    loads: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0, 2, 3)))

    def __post_init__(self) -> None:
        instance(self.mechanism, Mechanism, "trajectory: mechanism")
        for word in ("time", "poses", "loads"):
            object.__setattr__(self, word, read_only(numbers(getattr(self, word), f"trajectory: {word}")))
        frames = len(self.time) if self.time.ndim == 1 else -1
        if self.poses.shape != (frames, self.mechanism.body_count, 4, 4):
            raise InputError(
                f"trajectory: times (frames,) and poses (frames, {self.mechanism.body_count}, 4, 4) expected, got "
                f"{self.time.shape} and {self.poses.shape}"
            )
        if not self.loads.size:
            object.__setattr__(self, "loads", read_only(np.zeros((frames, 0, 2, 3))))
        if self.loads.ndim != 4 or self.loads.shape[::2] != (frames, 2) or self.loads.shape[3] != 3:
            raise InputError(f"trajectory: loads (frames, loads, 2, 3) expected, got {self.loads.shape}")

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

    def _repr_html_(self) -> str:
        from pliant.viewer.recording import html_frame

        return escape(repr(self)) if self.poses.size > _LARGE else html_frame(self)

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
        if self.loads.size:
            arrays["loads"] = np.asarray(self.loads, dtype=np.float64)
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
        loads = arrays.get("loads", np.zeros((len(time), 0, 2, 3)))
        _check_loads(path, len(time), loads)
        return Trajectory(mechanism, time, poses, loads)


def loads_over_time(frames: Sequence[Mapping[Hashable, NDArray[np.float64]]]) -> NDArray[np.float64]:
    """`Trajectory.loads` from point and force (2, 3) of every load by name, frame by frame."""
    names = {name: i for i, name in enumerate(dict.fromkeys(name for frame in frames for name in frame))}
    out = np.zeros((len(frames), len(names), 2, 3))
    for row, frame in zip(out, frames, strict=True):
        for name, ends in frame.items():
            row[names[name]] = ends
    return out


def _check_loads(path: Path, frames: int, loads: NDArray[np.float64]) -> None:
    """Refuse loads of the wrong shape, or that are not finite."""
    sound = loads.dtype == np.float64 and loads.ndim == 4 and loads.shape[::2] == (frames, 2)
    if not sound or loads.shape[3] != 3 or not np.isfinite(loads).all():
        raise FormatError(f"'{path}': 'loads' are no finite points and forces, ({frames}, loads, 2, 3)")


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
