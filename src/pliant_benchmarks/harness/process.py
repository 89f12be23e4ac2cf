"""Measurements in processes of their own, and the peak memory of a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["call_apart", "peak_memory"]


def call_apart(function: Callable[..., dict[str, Any]], *arguments: float) -> dict[str, Any] | str:
    """Result of a module's function in a fresh process, as plain data; or why it failed."""
    given = ", ".join(repr(a) for a in arguments)
    code = f"import json; from {function.__module__} import {function.__name__} as f; print(json.dumps(f({given})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        words = done.stderr.strip().splitlines()
        return words[-1] if words else f"killed ({done.returncode}): out of memory, perhaps"
    return json.loads(done.stdout.strip().splitlines()[-1])


def peak_memory() -> float | None:
    """Peak memory of this process, MiB; None where the system has no such number.

    `resource` would report the parent's peak, if that is larger.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)
