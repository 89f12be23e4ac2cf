"""Workspace of an arm with servos: where it is soft, where it sags, and where it should drill; a linkage beside it."""

from pathlib import Path

import numpy as np

import pliant
from pliant.shapes import cylinder, rod

OUT = Path("out")
BLUE, ORANGE, DARK = (0.25, 0.45, 0.75, 1), (0.85, 0.55, 0.2, 1), (0.3, 0.32, 0.36, 1)
DRILL = np.array([1.0, 0.0, 0.0])  # direction in which a wall is drilled, world axes


def arm() -> pliant.Mechanism:
    """A yaw, a shoulder, an elbow and a wrist, held by servos; 0.9 m long, limits as real robots have them."""
    shoulder, elbow, wrist, tool = (0, 0, 0.3), (0.35, 0, 0.5), (0.65, 0, 0.3), (0.75, 0, 0.3)
    b = pliant.Builder("arm")
    links = (
        ("turret", (0, 0, 0), shoulder, 0.06, 12.0, DARK),
        ("upper", shoulder, elbow, 0.045, 6.0, BLUE),
        ("fore", elbow, wrist, 0.035, 4.0, BLUE),
        ("tool", wrist, tool, 0.02, 1.0, ORANGE),
    )
    for name, start, end, radius, mass, colour in links:
        middle, half = (np.array(start) + end) / 2, (np.array(end) - start) / 2
        back, forth = ((0, 0, 0) - half, half) if name != "tool" else ((0, 0, 0) - 2 * half, (0, 0, 0))
        b.body(
            name,
            mass=mass,
            position=middle if name != "tool" else end,
            shapes=[rod(back, forth, radius, rgba=colour)],
        )
    b.hinge("yaw", "world", "turret", anchor=(0, 0, 0), axis=(0, 0, 1), stiffness=4e4, limits=(-2.8, 2.8))
    b.hinge("shoulder", "turret", "upper", anchor=shoulder, axis=(0, 1, 0), stiffness=2e4, limits=(-1.2, 1.6))
    b.hinge("elbow", "upper", "fore", anchor=elbow, axis=(0, 1, 0), stiffness=1e4, limits=(-1.1, 1.9))
    b.hinge("wrist", "fore", "tool", anchor=wrist, axis=(0, 1, 0), stiffness=4e3, limits=(-2.0, 2.0))
    b.world_shape(cylinder(0.1, 0.02, position=(0, 0, -0.02), rgba=DARK))
    return b.build()


def main() -> None:
    OUT.mkdir(exist_ok=True)
    robot = arm()
    plane = pliant.compliance_map(robot, "tool", joints=["shoulder", "elbow"], points=41, load=(0, 0, -50))
    print(plane.summary())
    sag = np.linalg.norm(plane.sag, axis=1)
    print(f"\nunder 50 N it sags by {1e3 * sag.min():.2f} to {1e3 * sag.max():.2f} mm")
    plane.plot(OUT / "workspace.png")

    cloud = pliant.compliance_map(robot, "tool", samples=4096)
    along = np.einsum("i,nij,j->n", DRILL, cloud.compliance[:, :3, :3], DRILL)
    x, _, z = cloud.position.T
    usable = (cloud.margin > 0.1) & (x > 0.4) & (z > 0.1)  # room in every joint; in front, above the table
    best = int(np.where(usable, along, np.inf).argmin())
    print(
        f"{usable.sum()} of {len(cloud)} configurations are in front, a tenth of all ranges away from limits"
    )
    where = ", ".join(f"{c:.2f}" for c in cloud.position[best])
    print(f"drilling along x is stiffest at ({where}) m: {1e-6 / along[best]:.3g} N/µm")
    cloud.plot(OUT / "workspace-cloud.png")
    cloud.save(OUT / "workspace.csv")

    gripper = pliant.compliance_map(pliant.gallery.gripper(), "left_pad", ranges={"left_driver": (-0.6, 0.6)})
    turned = gripper.poses[:, :3, :3] @ gripper.poses[0, :3, :3].T
    print(f"the gripper's pad keeps its direction to {np.abs(turned - np.eye(3)).max():.0e}, loops closed")
    print(f"Pictures are in {OUT}: workspace.png, workspace-cloud.png; workspace.csv is the table.")


if __name__ == "__main__":
    main()
