"""`Builder`: describe bodies and joints, one at a time or many at once, in world coordinates at the reference pose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant import shapes as shapes_module
from pliant.checks import entries
from pliant.errors import MechanismError, UnknownNameError
from pliant.mechanism._build import (
    BodyColumns,
    BodyLists,
    JointSpec,
    JointTable,
    ShapeColumns,
    join_bodies,
    join_tables,
    joint_arrays,
    joint_table,
    numbers,
    rotation_matrix,
    row_arrays,
    shape_arrays,
    shape_of,
    solid_properties,
    square_axes,
)
from pliant.mechanism._columns import body_columns, body_numbers, entry_names, joint_columns, shape_columns
from pliant.mechanism.joints import BALL, HINGE, SLIDE
from pliant.mechanism.mechanism import Ints, Mechanism
from pliant.text import brief

__all__ = ["Builder"]

_KIND = {"hinge": HINGE, "slide": SLIDE, "ball": BALL}
_ZERO = (0.0, 0.0, 0.0)
_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_IDENTITY = np.eye(3)
_SIX = ((SLIDE, _X, _ZERO), (SLIDE, _Y, _ZERO), (SLIDE, _Z, _ZERO), (BALL, _Z, _ZERO))
_SPRING = frozenset(("stiffness", "damping", "rest", "limits", "armature", "reference", "orientation"))

_Bodies = str | int | Sequence[str] | Sequence[int] | Ints


class Builder:
    """Collects bodies, joints, couplings and tendons; `build()` checks everything and returns a `Mechanism`.

    Positions, orientations, anchors and axes are in world coordinates at the reference pose. Bodies go by
    name; the fixed frame is "world". Joints may join any two bodies: a second joint to the same child closes
    a loop.

    Springs: every joint takes `stiffness`, `damping`, `rest`, `limits`, `armature`, `reference`. Each is one
    value for all its degrees of freedom or one per degree of freedom. `reference` is the coordinate at the
    reference pose (0 if not given), `rest` the one at which the spring is slack (the reference if not given). A
    stiffness may be a full symmetric matrix.

    `bodies`, `hinges`, `slides`, `balls`, `bushings`, `free_joints` and `fixed_joints` add many at once, from arrays.

        >>> import pliant
        >>> b = pliant.Builder("pendulum")
        >>> b.body("bob", mass=1.0, position=(0, 0, -1), shapes=[pliant.shapes.sphere(0.1)])
        >>> b.hinge("pivot", "world", "bob", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=5.0)
        >>> b.build()
        <Mechanism 'pendulum': 1 body, 1 joint, 1 dof, 0 loops>
    """

    def __init__(self, name: str = "mechanism"):
        self.name = name
        self._bodies: dict[str, int] = {}
        self._body_parts: list[BodyColumns | BodyLists] = []
        self._shape_parts: list[ShapeColumns] = []
        self._joint_names: dict[str, int] = {}
        self._joint_parts: list[JointTable | list[JointSpec]] = []
        self._blocks: list[tuple[int, Any]] = []  # joints with a full stiffness matrix, and that matrix
        self._couplings: list[tuple[str, Mapping[str, float], float]] = []
        self._tendons: list[tuple[str, Mapping[str, float], float, float, float]] = []
        self._end_effectors: tuple[str, ...] = ()

    # --- bodies

    def body(
        self,
        name: str,
        *,
        mass: float | None = None,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        position: ArrayLike = _ZERO,
        orientation: ArrayLike | None = None,
        density: float = 1000.0,
        shapes: Iterable[shapes_module.Shape] = (),
    ) -> None:
        """Add a rigid body.

        Args:
            name: unique name.
            mass: kg; from the shapes and `density` if not given.
            com: centre of mass in the body frame; the shapes' centroid if there are shapes, else the origin.
            inertia: about the centre of mass, body axes: three moments or a 3 x 3 matrix; from the shapes if
                not given.
            position, orientation: the body frame in the world; quaternion (w, x, y, z) or 3 x 3 matrix.
            density: kg/m^3, used only when `mass` is not given.
            shapes: from `pliant.shapes`, in the body frame.
        """
        if not isinstance(name, str):
            raise MechanismError(f"a body's name must be a string, not {brief(name)}")
        _refuse_name(name, self._bodies)
        if not isinstance(shapes, Iterable) or isinstance(shapes, np.ndarray):
            raise MechanismError(f"body '{name}': shapes is a list of shapes, not {brief(shapes)}")
        shapes = tuple(shapes)
        for shape in shapes:
            if not isinstance(shape, shapes_module.Shape):
                raise MechanismError(
                    f"body '{name}': {brief(shape)} is not a shape; make one with pliant.shapes"
                )
        if inertia is None or mass is None:
            mass, com, inertia = solid_properties(name, shapes, mass, com, inertia, density)
        rotation = _IDENTITY
        if orientation is not None:
            rotation = rotation_matrix(orientation, f"body '{name}'")
        index = len(self._bodies)
        self._bodies[name] = index
        part = self._body_parts[-1] if self._body_parts else None
        if not isinstance(part, BodyLists):
            part = BodyLists(index, [], [], [], [], [])
            self._body_parts.append(part)
        part.mass.append(mass)
        part.com.append(_ZERO if com is None else com)
        part.inertia.append(inertia)
        part.position.append(position)
        part.rotation.append(rotation)
        for shape in shapes:
            self._add_shape(index, shape)

    def bodies(
        self,
        names: str | Sequence[str],
        *,
        mass: ArrayLike | None = None,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        position: ArrayLike = _ZERO,
        orientation: ArrayLike | None = None,
        density: float = 1000.0,
        shapes: Sequence[Any] = (),
        look: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> Ints:
        """Add n rigid bodies at once; returns their numbers, (n,), for the joints that follow.

        Every argument is one value for all bodies, or n of them.

        Args:
            names: n names, or a prefix for the numbers from 1 to n, the length of `position`.
            mass: kg; from the shapes and `density` if not given.
            com: centres of mass in the body frames, (n, 3).
            inertia: about the centres of mass: moments (3,) or (n, 3), or matrices (n, 3, 3) or (1, 3, 3).
            position, orientation: the body frames in the world, (n, 3); quaternions (n, 4) or matrices (n, 3, 3).
            density: kg/m^3, used only when `mass` is not given.
            shapes: from `pliant.shapes`, in the body frame, the same for all bodies; with `look`, a list of such lists.
            look: per body, the number of its list in `shapes`, (n,).
            scale: size of the shapes relative to those given.

        Example:
            >>> import numpy as np, pliant
            >>> b = pliant.Builder("fence")
            >>> x = np.arange(1000.0)[:, None]
            >>> posts = b.bodies(
            ...     "post", position=x * (1, 0, 0), shapes=[pliant.shapes.box((0.05, 0.05, 0.5))]
            ... )
            >>> b.hinges("foot", "world", posts, anchor=x * (1, 0, 0), axis=(0, 1, 0), stiffness=100.0)
            >>> b.build()
            <Mechanism 'fence': 1000 bodies, 1000 joints, 1000 dofs, 0 loops>
        """
        shape = shape_of(position)
        made = entry_names(names, shape[0] if len(shape) == 2 else None, "body", "positions (n, 3)")
        index = np.arange(len(self._bodies), len(self._bodies) + len(made))
        if not made:
            return index
        looks, look, scale, rows = shape_columns(made, len(self._bodies), shapes, look, scale)
        columns = body_columns(made, mass, com, inertia, position, orientation, density, looks, look, scale)
        _add_names(self._bodies, made, _refuse_name)
        self._body_parts.append(columns)
        self._shape_parts.append(rows)
        return index

    def world_shape(self, shape: shapes_module.Shape) -> None:
        """Add a shape fixed to the world: a floor, a wall."""
        if not isinstance(shape, shapes_module.Shape):
            raise MechanismError(f"{brief(shape)} is not a shape; make one with pliant.shapes")
        self._add_shape(-1, shape)

    def _add_shape(self, body: int, shape: shapes_module.Shape) -> None:
        part = self._shape_parts[-1] if self._shape_parts else None
        if part is None or not isinstance(part.which, list):
            part = ShapeColumns([], [], [], None)
            self._shape_parts.append(part)
        part.which.append(len(part.shapes))  # type: ignore[union-attr]
        part.shapes.append(shape)  # type: ignore[union-attr]
        part.body.append(body)  # type: ignore[union-attr]

    # --- joints

    def hinge(
        self, name: str, parent: str, child: str, *, anchor: ArrayLike, axis: ArrayLike, **spring: Any
    ) -> None:
        """A rotation about an axis through `anchor`."""
        self._add(name, "hinge", parent, child, anchor, ((HINGE, axis, _ZERO),), spring)

    def slide(
        self,
        name: str,
        parent: str,
        child: str,
        *,
        axis: ArrayLike,
        anchor: ArrayLike | None = None,
        **spring: Any,
    ) -> None:
        """A translation along an axis."""
        self._add(name, "slide", parent, child, anchor, ((SLIDE, axis, _ZERO),), spring)

    def ball(self, name: str, parent: str, child: str, *, anchor: ArrayLike, **spring: Any) -> None:
        """A ball and socket. Its springs act on the rotation vector from rest, in axes set by `orientation`."""
        self._add(name, "ball", parent, child, anchor, ((BALL, _Z, _ZERO),), spring)

    def universal(
        self,
        name: str,
        parent: str,
        child: str,
        *,
        anchor: ArrayLike,
        axes: Sequence[ArrayLike],
        **spring: Any,
    ) -> None:
        """Two hinges through one point; the second axis turns with the first, at right angles to it."""
        self._add(
            name,
            "universal",
            parent,
            child,
            anchor,
            tuple((HINGE, axis, _ZERO) for axis in square_axes(axes, name)),
            spring,
        )

    def cylindrical(
        self, name: str, parent: str, child: str, *, anchor: ArrayLike, axis: ArrayLike, **spring: Any
    ) -> None:
        """A slide along an axis and a hinge about it."""
        self._add(
            name, "cylindrical", parent, child, anchor, ((SLIDE, axis, _ZERO), (HINGE, axis, _ZERO)), spring
        )

    def planar(
        self,
        name: str,
        parent: str,
        child: str,
        *,
        anchor: ArrayLike,
        axes: Sequence[ArrayLike],
        **spring: Any,
    ) -> None:
        """Two slides along `axes`, at right angles, then a hinge about their normal."""
        x, y = square_axes(axes, name)
        self._add(
            name,
            "planar",
            parent,
            child,
            anchor,
            ((SLIDE, x, _ZERO), (SLIDE, y, _ZERO), (HINGE, np.cross(x, y), _ZERO)),
            spring,
        )

    def fixed(self, name: str, parent: str, child: str) -> None:
        """A weld: no dofs."""
        self._add(name, "fixed", parent, child, None, (), {})

    def free(self, name: str, parent: str, child: str, **spring: Any) -> None:
        """Six dofs: three slides along the axes of `orientation`, then a ball about the child's origin."""
        self._six("free", name, parent, child, None, spring)

    def bushing(self, name: str, parent: str, child: str, *, anchor: ArrayLike, **spring: Any) -> None:
        """A six-dof spring (bushing, cable segment): three slides along the axes of `orientation`, then a ball.

        Stiffness and damping are per axis (x, y, z, then rotations about them), one for all, or a 6 x 6 matrix.
        """
        self._six("bushing", name, parent, child, anchor, spring)

    def _six(
        self, kind: str, name: str, parent: str, child: str, anchor: ArrayLike | None, spring: dict[str, Any]
    ) -> None:
        self._add(name, kind, parent, child, anchor, _SIX, spring, local=True)

    def stack(
        self,
        name: str,
        parent: str,
        child: str,
        primitives: Iterable[tuple[str, ArrayLike, ArrayLike]],
        *,
        dof_names: Sequence[str] | None = None,
        **spring: Any,
    ) -> None:
        """An ordered stack of primitives `(kind, axis, anchor)`, kind "hinge", "slide" or "ball", root to tip.

        Later primitives are carried by earlier ones. The axis of a ball and the anchor of a slide are not used.
        """
        members = []
        listed = entries(primitives)
        if listed is None:
            raise MechanismError(f"joint '{name}': a list of primitives expected, not {brief(primitives)}")
        for entry in listed:
            if (
                not isinstance(entry, Sequence)
                or len(entry) != 3
                or not isinstance(entry[0], str)
                or entry[0] not in _KIND
            ):
                raise MechanismError(
                    f"joint '{name}': a primitive is ('hinge' | 'slide' | 'ball', axis, anchor), not {brief(entry)}"
                )
            members.append((_KIND[entry[0]], entry[1], entry[2]))
        self._add(name, "stack", parent, child, _ZERO, tuple(members), spring, dof_names=dof_names)

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        primitives: Iterable[tuple[str, ArrayLike, ArrayLike]],
        *,
        parent_frame: ArrayLike,
        child_frame: ArrayLike,
        dof_names: Sequence[str] | None = None,
        **spring: Any,
    ) -> None:
        """A joint by its frames (4 x 4) on either body; axes and anchors of the primitives are in the joint frame."""
        members = tuple((_KIND[k], axis, anchor) for k, axis, anchor in primitives)
        frames = tuple(numbers(f, f"joint '{name}': frame") for f in (parent_frame, child_frame))
        if any(f.shape != (4, 4) for f in frames):
            raise MechanismError(f"joint '{name}': frames are 4 x 4 matrices")
        self._add(name, kind, parent, child, None, members, spring, dof_names=dof_names, frames=frames)

    def _add(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        anchor: Any,
        members: tuple,
        spring: dict[str, Any],
        *,
        local: bool = False,
        dof_names: Sequence[str] | None = None,
        frames: tuple | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise MechanismError(f"a joint's name must be a string, not {brief(name)}")
        _refuse_joint(name, self._joint_names)
        _check_spring(name, spring)
        if isinstance(child, str) and child == "world":
            raise MechanismError(
                f"joint '{name}': the world can only be a joint's parent; swap parent and child"
            )
        for body in (parent, child):
            if not isinstance(body, str) or (body not in self._bodies and body != "world"):
                raise UnknownNameError(
                    f"joint '{name}': no body {brief(body)}; add the body before its joints"
                )
        stiffness = spring.get("stiffness")
        if not isinstance(stiffness, float) and shape_of(stiffness)[1:]:
            self._blocks.append((len(self._joint_names), stiffness))
        self._joint_names[name] = len(self._joint_names)
        bodies = self._bodies.get(parent, -1), self._bodies[child]
        part = self._joint_parts[-1] if self._joint_parts else None
        if not isinstance(part, list):
            part = []
            self._joint_parts.append(part)
        part.append(JointSpec(name, kind, *bodies, anchor, members, spring, local, dof_names, frames))

    # --- many joints at once

    def hinges(
        self,
        names: str | Sequence[str],
        parents: _Bodies,
        children: _Bodies,
        *,
        anchor: ArrayLike,
        axis: ArrayLike,
        **spring: Any,
    ) -> None:
        """Add n hinges at once. Every argument is one value for all, or n of them.

        Args:
            names: n names, or a prefix for the numbers from 1 to n, the number of children.
            parents, children: bodies, by name or by number as `bodies` returns them; -1 is the world.
            anchor, axis: (n, 3).
            spring: as for `hinge`: stiffness, damping, armature, rest and reference (n,), limits (n, 2), orientation
                (n, 4) or (n, 3, 3). Joints with d dofs take (n,) too, or (n, d), or (1, d) for all. A stiffness
                matrix needs the singular method.
        """
        self._add_many(names, "hinge", parents, children, anchor, (HINGE,), axis, spring)

    def slides(
        self,
        names: str | Sequence[str],
        parents: _Bodies,
        children: _Bodies,
        *,
        axis: ArrayLike,
        anchor: ArrayLike | None = None,
        **spring: Any,
    ) -> None:
        """Add n slides at once; arguments as for `hinges`."""
        self._add_many(names, "slide", parents, children, anchor, (SLIDE,), axis, spring)

    def balls(
        self,
        names: str | Sequence[str],
        parents: _Bodies,
        children: _Bodies,
        *,
        anchor: ArrayLike,
        **spring: Any,
    ) -> None:
        """Add n ball joints at once; arguments as for `hinges`, quaternions (n, 4) for rest and reference."""
        self._add_many(names, "ball", parents, children, anchor, (BALL,), _Z, spring)

    def bushings(
        self,
        names: str | Sequence[str],
        parents: _Bodies,
        children: _Bodies,
        *,
        anchor: ArrayLike,
        **spring: Any,
    ) -> None:
        """Add n six-dof springs at once; arguments as for `hinges`."""
        self._add_six("bushing", names, parents, children, anchor, spring)

    def free_joints(
        self, names: str | Sequence[str], parents: _Bodies, children: _Bodies, **spring: Any
    ) -> None:
        """Add n joints with six dofs at once; arguments as for `hinges`."""
        self._add_six("free", names, parents, children, None, spring)

    def fixed_joints(self, names: str | Sequence[str], parents: _Bodies, children: _Bodies) -> None:
        """Add n welds at once; names and bodies as for `hinges`."""
        self._add_many(names, "fixed", parents, children, None, (), (), {})

    def _add_six(
        self, kind: str, names: Any, parents: Any, children: Any, anchor: Any, spring: dict[str, Any]
    ) -> None:
        kinds = tuple(kind for kind, _, _ in _SIX)
        axes = [axis for _, axis, _ in _SIX]
        self._add_many(names, kind, parents, children, anchor, kinds, axes, spring, local=True)

    def _add_many(
        self,
        names: Any,
        kind: str,
        parents: Any,
        children: Any,
        anchor: Any,
        kinds: tuple[int, ...],
        axes: Any,
        spring: dict[str, Any],
        *,
        local: bool = False,
    ) -> None:
        shape = shape_of(children)
        made = entry_names(names, shape[0] if shape else None, "joint", "a list of children")
        if not made:
            return
        _check_spring(made[0], spring)
        bodies = (
            body_numbers(parents, made, self._bodies, "parent"),
            body_numbers(children, made, self._bodies, "child"),
        )
        table = joint_columns(made, kind, *bodies, anchor, kinds, axes, spring, local)
        _add_names(self._joint_names, made, _refuse_joint)
        self._joint_parts.append(table)

    # --- couplings, tendons, end effectors

    def couple(
        self, coefficients: Mapping[str, float], *, offset: float | None = None, name: str | None = None
    ) -> None:
        """Couple hinge and slide coordinates: `sum(coefficient * coordinate) = offset` (gears, mimic joints).

        Args:
            coefficients: `{joint or dof: coefficient}`.
            offset: the sum; by default its value at the reference pose.
            name: for messages and files.
        """
        label = f"coupling{len(self._couplings)}" if name is None else name
        if not isinstance(label, str):
            raise MechanismError(f"a coupling's name must be a string, not {brief(label)}")
        self._couplings.append((label, _mapping(coefficients, "couple"), offset))  # type: ignore[arg-type]

    def tendon(
        self,
        name: str,
        coefficients: Mapping[str, float],
        *,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest: float | None = None,
    ) -> None:
        """A spring on `sum(coefficient * coordinate)`: a servo or elastic tendon that acts on several joints.

        It adds the block `stiffness * c c^T` to the joint-space stiffness. `rest` defaults to the reference
        pose's value.
        """
        if not isinstance(name, str):
            raise MechanismError(f"a tendon's name must be a string, not {brief(name)}")
        self._tendons.append((name, _mapping(coefficients, f"tendon '{name}'"), stiffness, damping, rest))  # type: ignore[arg-type]

    def end_effectors(self, *bodies: str) -> None:
        """Suggest end effectors; without a suggestion they are the leaves of the spanning tree."""
        self._end_effectors = tuple(bodies)

    # --- build

    def build(self) -> Mechanism:
        """Check everything and return the mechanism."""
        body_names = tuple(self._bodies)
        if not body_names:
            raise MechanismError(f"'{self.name}' has no bodies: add at least one")
        parts = [
            part.columns(body_names) if isinstance(part, BodyLists) else part for part in self._body_parts
        ]
        bodies = join_bodies(parts)
        tables = [joint_table(part) if isinstance(part, list) else part for part in self._joint_parts]
        mechanism = Mechanism(
            name=self.name,
            body_names=body_names,
            mass=bodies.mass,
            com=bodies.com,
            inertia=bodies.inertia,
            reference_poses=bodies.poses,
            **joint_arrays(join_tables(tables or [joint_table([])]), bodies.poses),
            shape_table=shape_arrays(self._shape_parts),
            end_effectors=self._end_effectors,
        )
        if self._couplings or self._tendons or self._blocks:
            mechanism = mechanism.replace(
                **row_arrays(mechanism, self._blocks, self._couplings, self._tendons)
            )
        return mechanism


def _refuse_name(name: str, taken: Mapping[str, int]) -> None:
    """Refuse the name of a body that is taken, or the world's."""
    if name in taken or name == "world":
        raise MechanismError(
            f"body '{name}' is there already" if name != "world" else "a body may not be called 'world'"
        )


def _refuse_joint(name: str, taken: Mapping[str, int]) -> None:
    """Refuse the name of a joint that is taken."""
    if name in taken:
        raise MechanismError(f"joint '{name}' is there already")


def _add_names(
    taken: dict[str, int], names: Sequence[str], refuse: Callable[[str, Mapping[str, int]], None]
) -> None:
    """Number the names from the last one on; `taken` is unchanged if one of them is refused."""
    fresh = dict(zip(names, range(len(taken), len(taken) + len(names)), strict=True))
    if len(fresh) == len(names) and "world" not in fresh and fresh.keys().isdisjoint(taken):
        taken.update(fresh)
        return
    seen = dict(taken)
    for name in names:
        refuse(name, seen)
        seen[name] = len(seen)
    taken.update(fresh)  # a joint may be called "world"


def _check_spring(name: str, spring: Mapping[str, Any]) -> None:
    """Refuse arguments that no joint takes."""
    if not spring.keys() <= _SPRING:
        unknown = min(spring.keys() - _SPRING)
        raise MechanismError(
            f"joint '{name}': unknown argument '{unknown}'; joints take {', '.join(sorted(_SPRING))}"
        )


def _mapping(value: Any, what: str) -> Mapping[str, float]:
    if not isinstance(value, Mapping) or not value:
        raise MechanismError(
            f"{what}: a mapping from joint names to coefficients expected, got {brief(value)}"
        )
    return dict(value)
