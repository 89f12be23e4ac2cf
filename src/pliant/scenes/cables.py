"""GS17's scenes: cables, a crane and a robot with heavy loads, for the constrained engine.

    >>> import pliant
    >>> simulation = pliant.scenes.heavy_ball(ratio=1e6).simulate()
    >>> before = simulation.energy.total
    >>> simulation.step(60)
    >>> bool(abs(simulation.energy.total / before - 1) < 0.01)
    True

Cables and cranes move in three dimensions: many methods hold in a plane and fail outside it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pliant import spatial
from pliant.checks import EARTH, choice, number
from pliant.errors import InputError
from pliant.gallery.cables import KINDS, cable, crane, strong_robot
from pliant.gallery.parts import sizes
from pliant.mechanism import Mechanism
from pliant.mechanism.joints import BALL
from pliant.scenes.scene import Scene
from pliant.statics import equilibrium

__all__ = ["boom_drop", "crane_lift", "dropped_load", "heavy_ball", "slack_snap", "swing_cable", "tank"]

Floats = NDArray[np.float64]
LIMP = ("bushing", "ball")  # joints that can be bent in any direction
_RATIO = 1e8  # the largest that the engine is meant for


# --- cables


def heavy_ball(
    ratio: float = 1000.0,
    joints: int = 20,
    *,
    kind: str = "bushing",
    angle: float = 45.0,
    push: float = 0.5,
    spin: float = 0.0,
) -> Scene:
    """A heavy load on a light cable of 2 m, let go at an angle (GS17 Figs. 3, 8 and 10).

    The load is a cube of steel, a segment has 0.1 kg. The default is GS17's pendulum of 100 kg.

    Args:
        ratio: mass of the load over that of a segment, at most 1e8.
        joints: number of joints, the one at the load included.
        kind: of joint, as `cable` takes it.
        angle: of the straight cable from the vertical, degrees, at most 170.
        push: speed of the load at the start, sideways, m/s.
        spin: angular velocity of the load at the start, about the cable, rad/s; for kinds "bushing" and "ball".
    """
    ratio = number(ratio, "ratio", above=0, most=_RATIO)
    lean = math.radians(number(angle, "angle", least=0, most=170.0))
    push, spin = number(push, "push", least=0), number(spin, "spin", least=0)
    (n,), kind = sizes(2, joints=joints), choice(kind, "kind", KINDS)
    if spin and kind not in LIMP:
        raise InputError(f"spin: a cable of kind '{kind}' does not twist; 'bushing' and 'ball' do")
    m = cable(n, 0.1 * ratio, kind=kind)
    velocity, sideways = np.zeros(m.nv), push / 2.0  # rad/s about x
    if kind in LIMP:
        turned = spatial.quat_exp((0.0, -lean, 0.0))
        start = _posed(m, np.broadcast_to(turned, (n, 4)))
        first, last = m.joint_dofs(0), m.joint_dofs(n - 1)
        velocity[first.stop - 3 : first.stop] = spatial.quat_rotate(
            spatial.quat_conjugate(turned), (sideways, 0.0, 0.0)
        )
        velocity[last.stop - 1] = spin
    else:
        # the first dof about y leans, the first about x is pushed
        about_x, about_y = (1, 0) if kind == "hinge" else (0, 1)
        start = m.reference.copy()
        start[m.dof_coordinate[about_y]] = -lean
        velocity[about_x] = sideways
    return Scene(m, start=start, velocity=velocity)


def dropped_load(
    load: float = 5000.0,
    joints: int = 20,
    *,
    drop: float = 0.2,
    kind: str = "bushing",
    axial: float = 1e8,
    bending: float = 10.0,
) -> Scene:
    """A load falls straight down until its cable of 2 m is taut, and shakes it (GS17 Fig. 9).

    The cable starts as a helix of two turns.

    Args:
        load: its mass, kg; a segment has 0.1 kg. At most 1e7.
        joints: number of joints, the one at the load included.
        drop: height of the fall until the cable is taut, m, at most 1.
        kind: of joint, "bushing" or "ball".
        axial: stiffness of a bushing in all three translations, N/m.
        bending: rotational stiffness of every joint, N m/rad, damped by 0.01 s times it.
    """
    load, drop = number(load, "load", above=0, most=0.1 * _RATIO), number(drop, "drop", above=0, most=1.0)
    (n,), kind = sizes(5, joints=joints), choice(kind, "kind", LIMP)
    m = _rope(cable(n, load, kind=kind, axial=axial), number(bending, "bending", least=0))
    azimuth = 4 * math.pi * np.arange(n - 1) / (n - 1)
    start = _hung(m, np.full(n - 1, math.acos(1 - drop / 2.0)), azimuth)
    return Scene(m, start=start)


def slack_snap(
    ratio: float = 1e4, joints: int = 20, *, kind: str = "ball", slack: float = 0.5, bending: float = 10.0
) -> Scene:
    """A load let go beside the point its cable of 2 m hangs from: it falls, the cable snaps taut.

    The cable starts as an arc from that point down and up again.

    Args:
        ratio: mass of the load over that of a segment, 0.1 kg; at most 1e8.
        joints: number of joints, the one at the load included.
        kind: of joint, "bushing" or "ball".
        slack: half turns of the arc, at most 1: the end of the cable is level at 0.5, points up at 1.
        bending: rotational stiffness of every joint, N m/rad, damped by 0.01 s times it.
    """
    ratio, slack = number(ratio, "ratio", above=0, most=_RATIO), number(slack, "slack", above=0, most=1.0)
    (n,), kind = sizes(3, joints=joints), choice(kind, "kind", LIMP)
    m = _rope(cable(n, 0.1 * ratio, kind=kind), number(bending, "bending", least=0))
    along = (np.arange(n - 1) + 0.5) / (n - 1)
    return Scene(m, start=_hung(m, math.pi * slack * along, 0.3 * along))


# --- cranes and robots


def crane_lift(segments: int = 30, *, swing: float = 15.0, speed: float = 0.2) -> Scene:
    """A crane raises its boom of 100,000 kg while a vehicle of 15,000 kg sways on the cable (after GS17 Fig. 1).

    It starts where the crane rests under gravity, with the cable turned aside. A motor holds the strut's force and
    drives its length; cable segments have 0.2 kg.

    Args:
        segments: number of cable segments.
        swing: angle by which the cable is turned sideways, degrees, at most 60.
        speed: of the strut, m/s, at most 1; 0 for no motor: the strut's spring holds the boom.
    """
    swing, speed = number(swing, "swing", least=0, most=60.0), number(speed, "speed", least=0, most=1.0)
    m = crane(segments)
    start = swing_cable(m, _rest(m), swing)
    motors = {}
    if speed:
        luff = int(m.joint_dofs(m.joint_index("luff")).start)
        held = m.stiffness[luff] * (m.rest - start)[m.dof_coordinate[luff]]
        m = m.with_stiffness("luff", 0.0, 0.0)
        motors["luff"] = {"velocity": speed, "damping": 2e7, "torque": float(held)}
    return Scene(m, start=start, motors=motors)


def boom_drop(segments: int = 30, *, strut: float = 1e7, bending: float = 100.0) -> Scene:
    """A boom of 100,000 kg, raised by 20 degrees, is dropped with a vehicle on its cable (GS17 Fig. 11).

    Its strut is soft. The boom's tip falls faster than a free body, so that the cable goes slack; then it snaps taut,
    and the boom bounces. The cable starts 2 degrees aside. Try time steps from
    1/240 to 1/30 s.

    Args:
        segments: number of cable segments.
        strut: stiffness of the soft strut, N/m. With 1e7 the boom falls to 7 degrees, with 4e6 below level.
        bending: rotational stiffness of the cable's joints, N m/rad, damped by 0.01 s times it.
    """
    strut, bending = number(strut, "strut", above=0), number(bending, "bending", least=0)
    m = _rope(crane(segments).with_stiffness("luff", strut, 0.002 * strut), bending)
    return Scene(m, start=swing_cable(m, m.reference.copy(), 2.0))


def tank(segments: int = 20, *, force: float = 3000.0) -> Scene:
    """A robot with fingers of 0.1 kg holds back a tank of 15,000 kg that drives away (GS17 Figs. 5 and 6).

    Args:
        segments: number of cable segments.
        force: of the tank's drive, N.
    """
    force = number(force, "force", least=0)
    m = strong_robot(segments)
    return Scene(m, start=_rest(m), wrenches={"tank": (force, 0.0, 0.0)})


# --- starts


def _rope(m: Mechanism, bending: float) -> Mechanism:
    """The mechanism with this stiffness, N m/rad, in the rotations of its cable's joints, damped by 0.01 s times it."""
    dofs = [n for n, k in zip(m.dof_names, m.dof_kind, strict=True) if k == BALL and n.startswith("joint")]
    return m.with_stiffness(dofs, bending, 0.01 * bending)


def _rest(m: Mechanism) -> Floats:
    """Joint coordinates at rest under gravity, (nq,)."""
    return equilibrium(m, gravity=EARTH).q.copy()


def swing_cable(m: Mechanism, q: Floats, angle: float) -> Floats:
    """Joint coordinates of a crane, (nq,), with its cable turned sideways by an angle, degrees; changes `q`."""
    first = m.joint_coordinates(m.joint_index("joint1"))
    turned = spatial.quat_exp((math.radians(angle), 0.0, 0.0))
    q[first.stop - 4 : first.stop] = spatial.quat_multiply(turned, q[first.stop - 4 : first.stop])
    return q


def _hung(m: Mechanism, polar: Floats, azimuth: Floats) -> Floats:
    """Joint coordinates of a cable whose segments point in given directions; the load is upright.

    Directions are angles from straight down and about z, rad.
    """
    turns = spatial.quat_exp(
        polar[:, None] * np.stack([np.sin(azimuth), -np.cos(azimuth), 0 * azimuth], axis=1)
    )
    return _posed(m, np.concatenate([turns, [[1.0, 0.0, 0.0, 0.0]]]))


def _posed(m: Mechanism, turns: Floats) -> Floats:
    """Joint coordinates of a cable of balls or bushings, from the world orientations of its bodies, (bodies, 4)."""
    start, before = m.reference.copy(), np.array([1.0, 0.0, 0.0, 0.0])
    for joint, turn in enumerate(turns):
        stop = m.joint_coordinates(joint).stop
        start[stop - 4 : stop] = spatial.quat_multiply(spatial.quat_conjugate(before), turn)
        before = turn
    return start
