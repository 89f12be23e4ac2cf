"""Parts of a file that a mechanism does not have: where they are, and which answers they act on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["LeftOut", "Part"]

_ALL = "compliance and motion"
_REST = "motion and on where it comes to rest, not on compliance"
_SEEN = "contact and pictures"
_FREE = "forces between atoms without a bond, of which a linkage has none"
_ACTS_ON = {
    "actuator that is neither a motor nor a servo": "motion while it is driven",
    "actuator with negative stiffness or damping": _ALL,
    "alternative location of an atom": "where those atoms are: the first location is taken",
    "amino acid without its atoms N, CA and C": "which residues there are",
    "atom listed twice": "nothing, if they are the same",
    "atom of an unknown element": "mass",
    "atom that no bond holds": "mass",
    "body with gravity compensation": "sag under gravity, not on compliance or where gravity is compensated for all",
    "bond across a gap in a chain": "what holds its parts together: each is a molecule of its own",
    "constraint on a flex": _ALL,
    "coupling of spatial tendons": _ALL,
    "fluid": "motion, not on statics",
    "gravity other than (0, 0, -9.81) m/s²": "sag and falling: pliant takes 9.81 m/s² downwards, or "
    "none with `gravity=(0, 0, 0)`",
    "wind": "motion and on where it comes to rest, not on compliance",
    "flex": "compliance, motion and contact",
    "further model": "nothing: the first is taken",
    "height field": _SEEN,
    "joint with dry friction": _REST,
    "keyframe of a model with flex": "the reference pose, if that keyframe is asked for",
    "ligand, ion or nucleotide": _FREE,
    "mesh": _SEEN,
    "muscle": "compliance and motion while it is active",
    "nonlinear coupling": _ALL,
    "nonlinear damper": "fast motion, not on statics",
    "nonlinear spring": "how far it gives way to large loads",
    "plugin": "what it computes",
    "servo that acts through a site, slider-crank, spatial tendon or free joint": _ALL,
    "signed distance field": _SEEN,
    "skin": "pictures",
    "spatial tendon": _ALL,
    "spring that yields": "how far it gives way to large loads",
    "tendon spring with a dead band": _ALL,
    "tendon with a length limit": "motion and loads that reach the limit",
    "tendon with armature": "motion, not on statics",
    "tendon with dry friction": _REST,
    "water": _FREE,
}


@dataclass(frozen=True)
class Part:
    """All parts of one kind that were left out.

    Attributes:
        kind: in words, such as "joint with dry friction".
        count: how many.
        acts_on: answers that they act on, in words.
        places: names of their joints, bodies or tendons, some with a size; empty where they have none.
    """

    kind: str
    count: int
    acts_on: str
    places: tuple[str, ...]


class LeftOut:
    """Collects parts that are left out; iterates over them, one `Part` for each kind, in order of their names."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}

    def add(self, kind: str, count: int = 1) -> None:
        """Add parts without names."""
        self._count[kind] = self._count.get(kind, 0) + count

    def name(self, kind: str, places: Iterable[str]) -> None:
        """Add parts with names."""
        names = list(places)
        self.add(kind, len(names))
        self._places.setdefault(kind, []).extend(names)

    def __iter__(self) -> Iterator[Part]:
        for kind, count in sorted(self._count.items()):
            if count:
                acts_on = _ACTS_ON["mesh" if kind.startswith("mesh") else kind]
                yield Part(kind, count, acts_on, tuple(self._places.get(kind, ())))

    def warning(self) -> str:
        """The parts with their counts and what they act on, those of one effect together; empty if there are none."""
        parts = list(self)
        if not parts:
            return ""
        kinds: dict[str, list[str]] = {}
        for part in parts:
            kinds.setdefault(part.acts_on, []).append(f"{part.count} x {part.kind}")
        return "; ".join(
            f"{' and '.join(found)}, which {'acts' if len(found) == 1 else 'act'} on {acts_on}"
            for acts_on, found in kinds.items()
        )
