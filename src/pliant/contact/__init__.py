"""Contact: where bodies touch."""

from pliant.contact.detection import Collider, Contacts
from pliant.contact.filters import adjacent_pairs, colliding_shapes, overlapping_pairs, static_bodies

__all__ = [
    "Collider",
    "Contacts",
    "adjacent_pairs",
    "colliding_shapes",
    "overlapping_pairs",
    "static_bodies",
]
