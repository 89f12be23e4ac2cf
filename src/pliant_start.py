"""Where the command `pliant` starts: outside of the package, so that Ctrl-C while it is imported is one line, too."""

import sys

__all__ = ["main"]


def main() -> None:
    """As `pliant.cli.main`."""
    try:
        from pliant.cli import main
    except KeyboardInterrupt:
        print("pliant: interrupted", file=sys.stderr)
        sys.exit(130)
    main()
