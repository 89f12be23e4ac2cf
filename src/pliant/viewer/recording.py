"""`record_html`: a trajectory as one web page that plays by itself, from a file, without a network."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.engines.trajectory import Trajectory
from pliant.errors import InputError
from pliant.extras import require
from pliant.formats.paths import as_path, replacing

__all__ = ["check_trajectory", "frames", "record_html"]

_LAST = 0.5  # s: how long the last pose stays before the recording starts again


def record_html(trajectory: Trajectory, path: str | os.PathLike[str], *, fps: float = 30) -> Path:
    """Write a trajectory as a web page that shows it in 3-D: turn it with the mouse, stop it, play it again.

    The page holds everything it needs, viewer included: it opens from a file and loads nothing from anywhere.

    Args:
        trajectory: poses over time, from `simulation.record`.
        path: where to write it, usually `*.html`. A file that is there is replaced, once the new one is complete.
        fps: frames a second, at most; poses in between are left out.

    Returns:
        The path.

    Raises:
        InputError: an argument is unusable.
        FormatError: the file cannot be written.

    Example:
        >>> import pliant
        >>> simulation = pliant.ConstrainedSimulation(pliant.gallery.cable(5), 1 / 60)
        >>> pliant.viewer.record_html(simulation.record(120), "cable.html")  # doctest: +SKIP
    """
    viser: Any = require("viser")

    from pliant.viewer.scene import Scene, quiet

    target = as_path(path)
    chosen = frames(check_trajectory(trajectory), fps)
    with quiet():
        # Nobody connects to this server; it only knows how scenes are written down.
        server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
        try:
            scene = Scene(server, trajectory.mechanism, trajectory.poses[chosen[0]])
            recording = server.get_scene_serializer()
            for before, now in pairwise(chosen.tolist()):
                recording.insert_sleep(float(trajectory.time[now] - trajectory.time[before]))
                scene.update(trajectory.poses[now])
            recording.insert_sleep(_LAST)
            text = recording.as_html()
        finally:
            server.stop()
    title = f"<title>{_escaped(trajectory.mechanism.name)}</title>"
    text = text.replace("<title>Viser</title>", title, 1)
    with replacing(target) as file:
        file.write(text.encode("utf-8"))
    return target


def check_trajectory(trajectory: Any) -> Trajectory:
    """The trajectory, if it can be shown."""
    if not isinstance(trajectory, Trajectory):
        raise InputError(
            f"a Trajectory expected, not {type(trajectory).__name__}: `simulation.record` gives one"
        )
    time, poses = trajectory.time, trajectory.poses
    if not len(time):
        raise InputError("the trajectory is empty: record at least one step")
    if poses.shape != (len(time), trajectory.mechanism.body_count, 4, 4):
        raise InputError(
            f"the trajectory's poses have the shape {poses.shape}: frames x bodies x 4 x 4 expected"
        )
    if not (np.isfinite(time).all() and np.isfinite(poses).all()):
        raise InputError("the trajectory holds numbers that are not finite")
    if (np.diff(time) <= 0).any():
        raise InputError("the trajectory's times do not increase")
    return trajectory


def frames(trajectory: Trajectory, fps: Any) -> NDArray[np.int64]:
    """Which poses to show: the first, the last, and in between those nearest to every 1/fps s."""
    if isinstance(fps, bool) or not isinstance(fps, int | float | np.number) or not 0 < fps <= 1000:
        raise InputError(f"fps: a number of frames a second above 0, at most 1000, expected, not {fps!r}")
    time = trajectory.time - trajectory.time[0]
    wanted = np.arange(int(time[-1] * float(fps) + 1e-9) + 1) / float(fps)
    after = np.clip(np.searchsorted(time, wanted), 0, len(time) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(wanted - time[before] < time[after] - wanted, before, after)
    return np.unique(np.concatenate([[0], nearest, [len(time) - 1]]))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
