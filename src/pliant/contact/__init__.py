"""Contact: where bodies touch, and what they do to each other there."""

from pliant.contact.detection import Collider, Contacts
from pliant.contact.filters import adjacent_pairs, colliding_shapes, overlapping_pairs, static_bodies
from pliant.contact.materials import Material

__all__ = [
    "Collider",
    "Contacts",
    "Material",
    "adjacent_pairs",
    "colliding_shapes",
    "overlapping_pairs",
    "static_bodies",
]
