"""The command line: `pliant --help`. Every command is thin; the library does the work."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any, NoReturn

__all__ = ["main"]


def main() -> None:
    """Run the command line with the arguments of this process; exits with 0, 1 (error), 2 (usage) or 130 (Ctrl-C)."""
    _prepare_streams()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        from pliant.cli.app import app

        app(prog_name="pliant")
    except KeyboardInterrupt:  # outside of a command, for instance while modules are imported
        print("pliant: interrupted", file=sys.stderr)
        sys.exit(130)


def _prepare_streams() -> None:
    """Make stdout and stderr take any text: a closed one is discarded, characters it does not know are escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _terminate(*_: Any) -> NoReturn:
    """SIGTERM ends a command as Ctrl-C does: what is finished is kept."""
    raise KeyboardInterrupt
