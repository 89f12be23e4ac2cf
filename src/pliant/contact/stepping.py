"""`ContactStepper`: steps of several actors that touch each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from pliant.contact import _block_kernels as kernels
from pliant.contact import _solver_kernels as solver
from pliant.contact._march_kernels import AGAIN, REPORT, ROWS, SWEEPS, TOUCHING
from pliant.contact.detection import Collider, Contacts
from pliant.contact.free import FreeBodies
from pliant.contact.march import March
from pliant.contact.memory import Memory
from pliant.contact.solver import SPRING, Blocks
from pliant.engines.actor import Actor
from pliant.engines.simulation import Effort, Pull
from pliant.errors import ConvergenceError, PliantError

__all__ = ["ContactStepper", "Settings"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """How contacts are solved.

    Attributes:
        margin: surfaces nearer than this are looked at, m.
        reach: the same of a body that moves as far as that in a step; planes, free bodies see from farther.
        thin: half the thickness of the thinnest shape that moves, m.
        slop: depth that is left alone, m.
        share: of what is deeper, so much goes in a step; all of it, if it is as deep as `thin`.
        bounce: approach below which there is no restitution, m/s.
        sweeps, tolerance: most sweeps of a step, and the residual that is enough, m/s.
        ahead: what comes in fast is to be seen before it is inside: so many steps ahead, as it may gather speed.
    """

    margin: float
    reach: float
    thin: float
    slop: float
    share: float = 0.3
    bounce: float = 0.05
    sweeps: int = 200
    tolerance: float = 1e-6
    ahead: float = 1.2


class ContactStepper:
    """Detection, rows, solution and motion of all that can touch.

    Args:
        actors: what moves; their bodies are numbered one actor after the other, bodies that do not move after all.
        collider: of all bodies.
        poses: of all bodies; those of actors are written at every step.
        material: per body, see `_block_kernels`.
        h: time step.
    """

    def __init__(
        self,
        actors: Sequence[Actor],
        collider: Collider,
        poses: Floats,
        material: Floats,
        h: float,
        settings: Settings,
    ):
        self.collider, self.poses, self.material, self.settings = collider, poses, material, settings
        self.h = h
        self.blocks, self.memories, self.pulls = Blocks(), Memory(), list[Pull]()
        self.report, self.residual = np.zeros(REPORT, dtype=np.int64), np.zeros(1)
        count = len(poses)
        self.size, self.offset = np.zeros((2, count), dtype=np.int64)
        self.owner = np.full(count, -1, dtype=np.int64)
        falls = []
        self.parts: list[tuple[Actor, Floats, slice]] = []
        first = at = 0
        for index, actor in enumerate(actors):
            own = slice(first, first + actor.count)
            self.size[own], self.offset[own] = actor.sizes, at + actor.offsets
            self.owner[own] = index
            falls += [settings.ahead * h * actor.fall] * actor.count
            actor.place(first)
            self.parts.append((actor, poses[own], slice(at, at + actor.size)))
            first, at = own.stop, at + actor.size
        self.before, self.u, self.w = np.zeros((3, at))
        self._moving = first
        for actor, own, _ in self.parts:
            actor.write_poses(own)
        self.places = poses[:first, :3].reshape(first, 12).copy()
        self.boxes = collider.boxes()
        self.drop, self.held = np.array(falls), np.zeros(len(actors), dtype=bool)
        self._march = March(self)

    def detect(self) -> Contacts:
        """Contacts as bodies are now."""
        s, margins, wanted, first = self.settings, self.collider.margins, self.collider.wanted, 0
        for actor, poses, _ in self.parts:
            actor.write_poses(poses)
        kernels.look_ahead(
            self._moving, self.poses, self.places, self.boxes, s.margin, s.ahead, s.reach, margins, wanted
        )
        m = self.memories
        last = m.half
        kernels.let_fall(
            m.count,
            m.first[last],
            m.second[last],
            m.normal[last],
            self.collider.shape_body,
            self.owner,
            self.drop,
            s.reach,
            self.held,
            margins,
            wanted,
        )
        for actor, _, _ in self.parts:
            if isinstance(actor, FreeBodies):
                own = slice(first, first + actor.count)
                actor.look_ahead(s.ahead, s.reach, margins[own], wanted[own])
            first += actor.count
        kernels.remember(self._moving, self.poses, self.places)
        return self.collider.detect(self.poses)

    @property
    def compiled(self) -> bool:
        """Whether all steps of a call can be taken without Python in between."""
        return not self.pulls and self._march.able

    def march(self, n: int) -> tuple[int, PliantError | None]:
        """Steps in one compiled call; how many were taken, and why no more."""
        return self._march.step(n)

    def step(self, n: int) -> None:
        """Steps of all actors, one after the other."""
        for _ in range(n):
            self._step()

    def _step(self) -> None:
        found = self.detect()
        if not found.count and not self.pulls:
            self.memories.count = self.blocks.count = 0
            self.forget()
            for actor, _, _ in self.parts:
                actor.step()
            return
        blocks = self.blocks
        self._fill(found)
        blocks.lay_out(self.size, self.offset)
        owners = self.owner[blocks.body[: blocks.count]]
        busy = []
        u, w, before = self.u, self.w, self.before
        for index, (actor, _, part) in enumerate(self.parts):
            if (owners == index).any():
                actor.begin(blocks, before[part], u[part])
                busy.append((actor, part))
            else:
                actor.step()
        self._solve(found)
        for actor, part in busy:
            actor.finish(blocks, u[part], w[part])

    def reserve(self, contacts: int) -> None:
        """Make room for so many contacts, in which they may be found anew."""
        self.collider.reserve(contacts)
        self.memories.reserve(contacts)
        self.blocks.reserve(2 * contacts + len(self.pulls))

    def _fill(self, found: Contacts) -> None:
        blocks, old, count = self.blocks, self.memories, found.count
        self.reserve(count)
        b = blocks
        blocks.count = kernels.fill(
            count,
            found.first,
            found.second,
            found.point,
            found.normal,
            found.distance,
            self.material,
            self.h,
            b.kind,
            b.partner,
            b.body,
            b.point,
            b.axes,
            b.bound,
            b.target,
            b.give,
            b.gap,
            b.impulse,
            b.turning,
        )
        self.report[TOUCHING] = count
        last = old.half
        solver.match(
            count,
            found.shape_first,
            found.shape_second,
            found.point,
            old.count,
            old.first[last],
            old.second[last],
            old.point[last],
            old.taken,
            old.match,
        )
        kernels.recall(count, old.match, b.axes, old.impulse[last], old.steady[last], b.impulse)
        for pull in self.pulls:
            self._add(pull)

    def _add(self, pull: Pull) -> None:
        b, at = self.blocks, self.blocks.count
        pose = self.poses[pull.index]
        b.kind[at], b.partner[at], b.body[at], b.turning[at] = SPRING, -1, (-1, pull.index), False
        b.point[at] = pose[:3, :3] @ pull.point + pose[:3, 3]
        b.axes[at], b.gap[at] = np.eye(3), 0.0
        b.target[at] = b.give[at] = 0.0
        b.impulse[at] = 0.0
        b.count += 1

    def _solve(self, found: Contacts) -> None:
        b, u, w, h, s = self.blocks, self.u, self.w, self.h, self.settings
        kernels.bounce(
            found.count,
            found.first,
            found.second,
            self.material,
            h,
            s.bounce,
            b.gap,
            b.side,
            b.J,
            self.before,
            u,
            b.target,
        )
        if self.pulls:
            self._tune()
        sweeps, residual = b.solve(u, s.sweeps, s.tolerance)
        if not np.isfinite(u).all():
            self.fail()
        w[:] = 0.0
        again = b.project(u, w, s.slop, s.share, s.thin, h, s.sweeps, s.tolerance)
        self.report[[ROWS, SWEEPS, AGAIN]], self.residual[0] = (b.count, sweeps, again), residual
        for i, pull in enumerate(self.pulls):
            pull.force[:] = b.impulse[b.count - len(self.pulls) + i] / h
        self._keep(found)

    def _tune(self) -> None:
        """Give springs of pulls the stiffness and damping that suit what they feel at their points."""
        b, h = self.blocks, self.h
        first = b.count - len(self.pulls)
        solver.blocks(b.count, b.side, b.give, b.J, b.Y, b.block, b.inverse)
        for i, pull in enumerate(self.pulls):
            at = first + i
            stiffness, damping = pull.coefficients(b.block[at])
            # backward Euler: impulse = h (k (away - h v) - d v)
            b.give[at] = 1.0 / (h * (damping + h * stiffness))
            b.target[at] = stiffness / (damping + h * stiffness) * (pull.target - b.point[at])

    def fail(self) -> NoReturn:
        raise ConvergenceError(
            "contact forces left the finite numbers: are masses or forces extreme? A shorter timestep may help"
        )

    def _keep(self, found: Contacts) -> None:
        m, b, count = self.memories, self.blocks, found.count
        old, new = m.half, 1 - m.half
        kernels.keep(
            count, m.match, b.axes, b.impulse, m.normal[old], m.impulse[new], m.steady[new], m.normal[new]
        )
        m.first[new, :count], m.second[new, :count] = found.shape_first, found.shape_second
        m.point[new, :count] = found.point
        m.turn(count)

    # --- what is kept

    def forget(self) -> None:
        """Contacts and effort of the last step are no more."""
        self.report[:] = self.residual[:] = 0

    @property
    def touching(self) -> int:
        """Contacts of the last step; the first blocks."""
        return int(self.report[TOUCHING])

    @property
    def effort(self) -> Effort:
        """Cost of the last step: sweeps, blocks of rows, and the residual, m/s."""
        rows, sweeps, again = self.report[[ROWS, SWEEPS, AGAIN]].tolist()
        return Effort(sweeps + again, rows, float(self.residual[0])) if rows else Effort()

    @property
    def memory(self) -> tuple[NDArray, ...]:
        """What the next step starts from, besides what moves."""
        return (self.places.copy(), *self.memories.kept())

    @memory.setter
    def memory(self, value: tuple[NDArray, ...]) -> None:
        for actor, own, _ in self.parts:
            actor.write_poses(own)
        self.memories.restore(value[1:])
        self.places[:] = value[0] if value else self.poses[: self._moving, :3].reshape(-1, 12)
