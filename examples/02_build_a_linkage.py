"""Describe a mechanism with the Builder: a sprung four-bar linkage that drives a second arm through an elastic belt."""

from pathlib import Path

import numpy as np

import pliant
from pliant.shapes import box, rod
from pliant.viewer import picture

OUT = Path("out")
BLUE, ORANGE = (0.26, 0.47, 0.76, 1), (0.93, 0.55, 0.22, 1)
GREEN, DARK = (0.36, 0.65, 0.42, 1), (0.26, 0.28, 0.32, 1)


def link(b: pliant.Builder, name: str, start, end, rgba) -> None:
    """A round bar between two points of the world; its frame is at its end."""
    start, end = np.array(start, float), np.array(end, float)
    b.body(name, position=end, density=2700, shapes=[rod(start - end, (0, 0, 0), 0.006, rgba=rgba)])


def four_bar() -> pliant.Mechanism:
    a, d, elbow_a, elbow_d = (0, 0, 0), (0.20, 0, 0), (0.02, 0, 0.08), (0.23, 0, 0.14)
    b = pliant.Builder("four-bar")
    link(b, "crank", a, elbow_a, BLUE)
    link(b, "coupler", elbow_a, elbow_d, ORANGE)
    link(b, "rocker", d, elbow_d, BLUE)
    link(b, "arm", (0.34, 0, 0), (0.34, 0, 0.10), GREEN)
    # Anchors and axes are world coordinates at the reference pose. The fourth hinge closes the loop.
    b.hinge("drive", "world", "crank", anchor=a, axis=(0, 1, 0), stiffness=2.0, damping=0.01)
    b.hinge("pin_a", "crank", "coupler", anchor=elbow_a, axis=(0, 1, 0), stiffness=0.1)
    b.hinge("pivot", "world", "rocker", anchor=d, axis=(0, 1, 0), stiffness=0.5)
    b.hinge("pin_d", "coupler", "rocker", anchor=elbow_d, axis=(0, 1, 0))
    b.hinge("shoulder", "world", "arm", anchor=(0.34, 0, 0), axis=(0, 1, 0), stiffness=0.2)
    # An elastic belt: a spring on (angle of the rocker - angle of the arm).
    b.tendon("belt", {"pivot": 1.0, "shoulder": -1.0}, stiffness=5.0)
    b.world_shape(box((0.2, 0.03, 0.008), position=(0.17, 0, -0.016), rgba=DARK))
    b.end_effectors("coupler", "arm")
    return b.build()


def main() -> None:
    OUT.mkdir(exist_ok=True)
    mechanism = four_bar()
    print(mechanism.summary(), "\n")
    found = pliant.equilibrium(mechanism, {"coupler": (8, 0, 0)})
    print(found.summary(), "\n")
    for joint in ("drive", "pivot", "shoulder"):
        print(f"{joint:9} turned by {np.degrees(found[joint]):7.2f} degrees")
    print(f"pin_d carries {np.linalg.norm(found.loop_forces['pin_d'][:3]):.2f} N")
    stiffer = pliant.equilibrium(mechanism.with_stiffness("shoulder", 5.0), {"coupler": (8, 0, 0)})
    print(f"with a stiffer shoulder the arm turns by {np.degrees(stiffer['shoulder']):.2f} degrees")
    picture(found, OUT / "linkage.png", view=(12, -75), title="a four-bar linkage with an elastic belt")
    print(f"\nThe picture is {OUT / 'linkage.png'}.")


if __name__ == "__main__":
    main()
