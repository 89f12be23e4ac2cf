"""Contact: detection, friction, and the steps of worlds in which bodies touch."""

from pliant.contact.collider import Collider, Contacts
from pliant.contact.contents import adjacent_pairs, colliding_shapes, overlapping_pairs, static_bodies
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
