"""Words of the library in the words of the command line: options in place of arguments and functions."""

from __future__ import annotations

import re

__all__ = ["WORDS", "as_options"]

# Patterns of text that errors, warnings and summaries of the library hold, and what a user of commands does instead.
WORDS = (
    (
        r"`mechanism\.with_stiffness\([^`]*\)` or `pliant\.reduce\(\.\.\., default_stiffness=\.\.\.\)`",
        "`--default-stiffness 100`",
    ),
    (
        r"give them less different stiffness with `mechanism\.with_stiffness`",
        "give them less different stiffness",
    ),
    (r"give them stiffness with `with_stiffness`", "give them stiffness, `--default-stiffness 100`"),
    (r"give it stiffness with `with_stiffness`", "give it stiffness, `--default-stiffness 100`"),
    (r"give joints stiffness first", "give joints stiffness, `--default-stiffness 100`"),
    (r"; with_stiffness gives them one\)", "; `--default-stiffness 100` gives them one)"),
    (r" with `with_fixed_base`", " in the file"),
    (r"none with `gravity=\(0, 0, 0\)`", "none with `--no-gravity`"),
    (r"load it with allow=\['([^']*)'\]", r"allow it with `--allow '\1'`"),
    (r"load\(\.\.\., meshes=False\) leaves it out", "`--skip-meshes` leaves it out"),
    (r"come from meshes: read them, or give", "come from meshes: leave `--skip-meshes` out, or give"),
    (r"load a URDF with repair=True", "use `--repair` for a URDF"),
    (r"`pliant\.reduce\(\.\.\., reach=\.\.\.\)`", "`pliant reduce --reach RADII`"),
    (r"`model\.extend` with an equilibrium nearby, ", ""),
    (r"a blend \(`pliant\.sample`\)", "`--engine blended`"),
    (r"`pliant\.ConstrainedSimulation`", "`--engine constrained`"),
    (r"compare with `pliant\.equilibrium`", "see how far with `pliant compare`"),
    (r"`pliant\.equilibrium`", "`pliant compare`"),
    (r"name some bodies, as in `reduce\(m, \['tip'\]\)`", "name some bodies, as in `-e tip`"),
    (r": give the mechanism, or `pliant\.blend` several models", ": give the mechanism"),
    (r"name those that matter with `joints`", "name those that matter with `-j`"),
    (r"\(frequency=False, or --no-frequency\)", "(`--no-frequency`)"),
    (r"host='([^']*)' and a port", r"`--host \1` and a port"),
    (r"\(port=(\d+)\), or let one be found \(port=0\)", r"(`--port \1`), or let one be found (`--port 0`)"),
)
_PATTERNS = tuple((re.compile(pattern), words) for pattern, words in WORDS)


def as_options(text: str) -> str:
    """The text with options of commands in place of arguments and functions of the library."""
    for pattern, words in _PATTERNS:
        text = pattern.sub(words, text)
    return text
