"""The command line: `pliant --help`. Every command is thin; the library does the work."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line with the arguments of this process; exits with 0, 1 (error), 2 (usage) or 130 (Ctrl-C)."""
    try:
        from pliant.cli.app import app

        app(prog_name="pliant")
    except KeyboardInterrupt:  # outside of a command, for instance while modules are imported
        print("pliant: interrupted", file=sys.stderr)
        sys.exit(130)
