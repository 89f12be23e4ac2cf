"""Studies in Python files, for `pliant sweep study.py`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pliant.errors import FormatError, InputError

if TYPE_CHECKING:
    from pliant.study.definition import Study

__all__ = ["study_in"]


def study_in(path: Path) -> Study:
    """The one study that a Python file makes at its top level.

    The file is imported by its name, so that other processes find its functions.

    Raises:
        PliantError: it cannot be imported, or makes no study, or several.
    """
    from pliant.study.definition import Study

    place = path.resolve()
    if not place.is_file():
        raise FormatError(f"'{path}': there is no such file")
    if str(place.parent) not in sys.path:
        sys.path.insert(0, str(place.parent))
    try:
        module = importlib.import_module(place.stem)
    except Exception as error:  # whatever the file does
        raise InputError(f"'{path}' cannot be imported: {type(error).__name__}: {error}") from None
    if Path(module.__file__ or "").resolve() != place:
        raise InputError(f"'{path}': another module is called '{place.stem}'; rename the file")
    found = {id(value): value for value in vars(module).values() if isinstance(value, Study)}
    if len(found) != 1:
        raise InputError(
            f"'{path}': one study expected at its top level, as in study = Study(...), not {len(found)}"
        )
    return found.popitem()[1]
