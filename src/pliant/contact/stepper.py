"""`ContactStepper`: steps of several actors that touch each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact import _step as kernels
from pliant.contact import arrays
from pliant.contact.arrays import (
    CONTACTS,
    COUNTS,
    RECOVERY,
    ROWS,
    SWEEPS,
    TAKEN,
    Bodies,
    Native,
    Report,
    Settings,
)
from pliant.contact.collider import Collider
from pliant.contact.collision_scene import quiet
from pliant.contact.free_bodies import FreeBodies
from pliant.engines.actor import SPRING, Actor
from pliant.engines.reduced.actor import NO_MODEL
from pliant.engines.simulation import Effort, Pull
from pliant.errors import ConvergenceError, InputError, PliantError

__all__ = ["ContactStepper"]

Floats = NDArray[np.float64]
_ATTEMPTS = 12  # at a step, in which actors release joints; the last one is taken as it is


class ContactStepper:
    """Detection, rows, solution and motion of all actors that can touch.

    Free bodies, and a reduced model that is the only other actor, are stepped by the kernels of `_step`; other actors
    from Python.

    Args:
        actors: free bodies first, if there are any. The bodies of actors are numbered in this order; bodies that never
            move come last.
        collider: of all bodies.
        poses: of all bodies; those of actors are written at every step.
        material: per body, see `Bodies`.
        settings: parameters of the step.
    """

    def __init__(
        self,
        actors: Sequence[Actor | FreeBodies],
        collider: Collider,
        poses: Floats,
        material: Floats,
        settings: Settings,
    ):
        stops = [(actor.stops, actor.size) for actor in actors if not isinstance(actor, FreeBodies)]
        self._stops = sum(count for count, _ in stops)
        settings = settings._replace(spare=sum(3 * count * size for count, size in stops))
        self.collider, self.settings, self.actors = collider, settings, actors
        self.pulls: list[Pull] = []
        self.rows, self._warm = arrays.make_rows(64, 1024), arrays.make_warm_start(32)
        self._report = Report(np.zeros(COUNTS, dtype=np.int64), np.zeros(1))
        size, offset = np.zeros((2, len(poses)), dtype=np.int64)
        owner = np.full(len(poses), -1, dtype=np.int64)
        drop, strikes = [], np.zeros(len(actors), dtype=bool)
        self._parts: list[tuple[Actor | FreeBodies, Floats]] = []  # with the poses of each
        # actors that step from Python: index, actor, its part of the velocities
        self._others: list[tuple[int, Actor, slice]] = []
        self._free, first, at = FreeBodies(settings.timestep, np.zeros(3)), 0, 0
        for index, actor in enumerate(actors):
            own = slice(first, first + actor.count)
            size[own], offset[own], owner[own] = actor.sizes, at + actor.offsets, index
            drop += [settings.ahead * settings.timestep * actor.fall] * actor.count
            actor.write_poses(poses[own])
            self._parts.append((actor, poses[own]))
            if isinstance(actor, FreeBodies):
                self._free = actor
            else:
                strikes[index] = actor.strikes
                actor.place(first)
                self._others.append((index, actor, slice(at, at + actor.size)))
            first, at = own.stop, at + actor.size
        self._velocities = arrays.Velocities(*np.zeros((3, at)))
        held, busy = np.zeros((2, len(actors)), dtype=bool)
        self._bodies = Bodies(
            poses, poses[:first, :3].reshape(first, 12).copy(), collider.boxes(), owner, np.array(drop), held, busy,
            strikes, material, size, offset,
        )  # fmt: skip
        collider.place(poses)  # steps place bodies that move
        self._native, self._model = collider.native(), None
        self._modelled: Actor | None = None  # actor that is stepped by kernels
        if len(self._others) == 1:
            self._model = self._others[0][1].compiled()
            if self._model is not None:
                self._modelled = self._others.pop()[1]
        self._step: Any = None

    @property
    def compiled(self) -> bool:
        """Whether several steps are taken in one compiled call."""
        return not self.pulls and not self._others and self._native is not None

    @property
    def taken(self) -> int:
        """Number of whole steps taken, counted by the step itself, so that an interrupt loses none."""
        return int(self._report.counts[TAKEN])

    def advance(self, n: int) -> BaseException | None:
        """Take `n` steps; returns what ended them early. All is as after the last of those `taken`."""
        if not self.compiled:
            return self._advance_from_python(n)
        end = self.taken + n
        while True:
            step = self._prepared()
            with quiet():
                how, number, _ = kernels.advance(end - self.taken, step)
            if self._modelled is not None:
                self._modelled.warn()
            if how == arrays.DONE:
                return None
            if how in (arrays.MORE_CONTACTS, arrays.MORE_NUMBERS):
                self._make_room(how, number)
                continue
            for actor in self.actors:
                actor.state = actor.state  # poses follow
            self.forget()
            return self._error(how, number)

    def _advance_from_python(self, n: int) -> BaseException | None:
        for _ in range(n):
            before, taken = ([actor.state for actor in self.actors], self.memory), self.taken
            try:
                self.detect()
                for attempt in range(_ATTEMPTS + 1):
                    opened = self._take_step(last=attempt == _ATTEMPTS)
                    if not opened:
                        break
                    for actor, state in zip(self.actors, before[0], strict=True):
                        if not any(actor is one for one in opened):
                            actor.state = state
                    arrays.keep(self._warm, before[1][1:])
            except BaseException as error:
                for actor, state in zip(self.actors, before[0], strict=True):
                    actor.state = state
                self.memory = before[1]
                self.forget()
                self._report.counts[TAKEN] = taken
                return error
        return None

    def _take_step(self, last: bool) -> list[Actor]:
        """A step whose phases are called from Python, with the contacts that were detected.

        Returns actors that have released joints for the impulses and wait at the start of the step; all others are to
        be put back there. None once the step is taken, as it is in any case if this attempt is the `last`.
        """
        for at, (_, actor, part) in enumerate(self._others):
            size = actor.prepare()
            if size != part.stop - part.start:
                self._resize(at, size)
        step, rows, counts = self._prepared(), self.rows, self._report.counts
        kernels.fill_rows(step)
        pulled = int(counts[ROWS])
        if self.pulls:
            self._add_pulls()
        while (end := kernels.begin(step))[0] == arrays.MORE_NUMBERS:
            self._make_room(*end)
            step, rows = self._prepared(), self.rows
        self._check(*end)
        count, busy = int(counts[ROWS]), self._bodies.busy
        before, u, w = self._velocities
        for index, actor, part in self._others:
            if busy[index]:
                count = actor.begin(count, rows, before[part], u[part])
            else:
                actor.step()
        counts[ROWS] = count
        if count:
            if self.pulls:
                self._tune_pulls(pulled)
            self._check(kernels.solve(step), 0)
            striking = [one for one in self._others if busy[one[0]] and one[1].strikes]
            if striking:
                w += u
                for _, actor, part in striking:
                    actor.strike(count, rows, u[part])
                if kernels.end_targets(step):
                    for _, actor, _ in striking:
                        actor.respond(count, rows)
                    self._check(kernels.strike_rows(step), 0)
                w -= u
            else:
                self._check(kernels.strike(step), 0)
            if not last:
                opened = [
                    actor for index, actor, _ in self._others if busy[index] and actor.opens(count, rows)
                ]
                if opened:
                    return opened
            for pull, impulse in zip(self.pulls, rows.impulse[pulled:], strict=False):
                pull.force[:] = impulse / self.settings.timestep
            for index, actor, part in self._others:
                if busy[index]:
                    actor.finish(count, rows, u[part], w[part])
        self._check(*kernels.finish(step))
        return []

    def _resize(self, at: int, size: int) -> None:
        """Set how many velocities an actor that steps from Python uses; the room that it has stays the same."""
        index, actor, part = self._others[at]
        first = sum(one.count for one in self.actors[:index])
        self._bodies.size[first : first + actor.count] = actor.sizes
        for velocities in self._velocities:
            velocities[part.start + size : part.stop] = 0.0
        self._others[at] = index, actor, slice(part.start, part.start + size)

    def detect(self) -> int:
        """Detect the contacts of bodies where they are now; returns their number."""
        for actor, poses in self._parts:
            actor.write_poses(poses)
        if self._native is None:
            kernels.widen_margins(self._prepared())
            count = self._report.counts[CONTACTS] = self.collider.detect(self._bodies.poses).count
            return count
        with quiet():
            while (end := kernels.detect_contacts(self._prepared()))[0] == arrays.MORE_CONTACTS:
                self._make_room(*end)
        self._check(*end)
        return int(self._report.counts[CONTACTS])

    # --- arrays

    def _prepared(self) -> Any:
        """All arrays as one `Step`, made anew if any has grown."""
        contacts, blocks = self.collider.capacity, len(self.rows.kind)
        needed = 2 * contacts + len(self.pulls) + self._stops  # two for a contact with rolling resistance
        if needed > blocks:
            self.rows = arrays.make_rows(needed + 16, len(self.rows.J))
            self._step = None
        if contacts > len(self._warm.taken):
            values, self._warm = arrays.kept(self._warm), arrays.make_warm_start(contacts)
            arrays.keep(self._warm, values)
            self._step = None
        if self._step is None:
            free, model = self._free.arrays, NO_MODEL if self._model is None else self._model
            try:
                self._step = arrays.make_step(
                    self.settings,
                    self._report,
                    self._native or Native.none(),
                    self.collider.scene,
                    self.collider.found,
                    self.rows,
                    self._warm,
                    self._bodies,
                    self._velocities,
                    free,
                    model,
                    arrays.Saved(
                        np.zeros_like(free.state), np.zeros_like(model.state), np.zeros(2, dtype=np.int64)
                    ),
                )
            except SystemError as error:  # numba's way to pass on a Ctrl-C while it hands over an object
                if isinstance(error.__cause__, KeyboardInterrupt):
                    raise error.__cause__ from None
                raise
        return self._step

    def _make_room(self, how: int, number: int) -> None:
        """Make room for `number` contacts, or numbers in J and Y."""
        if how == arrays.MORE_CONTACTS:
            self.collider.reserve(number)
        else:
            J, Y = np.zeros((2, 2 * number))
            self.rows = self.rows._replace(J=J, Y=Y)
        self._step = None

    # --- errors

    def _check(self, how: int, number: int) -> None:
        if how != arrays.DONE:
            raise self._error(how, number)

    def _error(self, how: int, number: int) -> PliantError:
        if how == arrays.NOT_FINITE:
            return self.collider.not_finite(number)
        if how == arrays.FREE_LOST:
            return self._free.not_finite(number)
        if how == arrays.MODEL_LOST:
            return ConvergenceError(
                "a model left the finite numbers: are the wrenches as large as you meant, and was the model made "
                "at a stable equilibrium?"
            )
        return ConvergenceError(
            "contact forces left the finite numbers: are masses or forces extreme? A shorter timestep may help"
        )

    # --- pulls

    def _add_pulls(self) -> None:
        """A block of rows for the spring of every pull, along the world's axes."""
        r, counts = self.rows, self._report.counts
        for at, pull in enumerate(self.pulls, start=int(counts[ROWS])):
            pose = self._bodies.poses[pull.index]
            r.kind[at], r.partner[at], r.body[at], r.angular[at] = SPRING, -1, (-1, pull.index), False
            r.point[at] = pose[:3, :3] @ pull.point + pose[:3, 3]
            r.axes[at], r.gap[at] = np.eye(3), 0.0
            r.target[at] = r.softness[at] = r.impulse[at] = 0.0
        counts[ROWS] += len(self.pulls)

    def _tune_pulls(self, first: int) -> None:
        """Stiffness and damping of the springs of pulls, from the inertia at their points; `first` block of them."""
        r, h = self.rows, self.settings.timestep
        kernels.delassus(self._prepared())
        for at, pull in enumerate(self.pulls, start=first):
            actor, mobility = self.actors[self._bodies.owner[pull.index]], r.delassus[at]
            if not isinstance(actor, FreeBodies):
                start, size, _ = r.side[at, 1].tolist()
                mobility = actor.mobility(r.J[start : start + 3 * size].reshape(3, size), mobility)
            stiffness, damping = pull.coefficients(mobility)
            if not 0.0 < damping + h * stiffness < np.inf:
                raise ConvergenceError(
                    f"pull of '{pull.body}': its point is too far away to feel the inertia there"
                )
            # backward Euler: impulse = h (k (distance - h v) - d v)
            r.softness[at] = 1.0 / (h * (damping + h * stiffness))
            r.target[at] = stiffness / (damping + h * stiffness) * (pull.target - r.point[at])

    # --- results

    def forget(self) -> None:
        """Drop contacts and effort of the last step."""
        self._report.counts[:TAKEN] = self._report.residual[:] = 0

    @property
    def contacts(self) -> int:
        """Number of contacts of the last step: they are the first blocks of `rows`."""
        return int(self._report.counts[CONTACTS])

    @property
    def effort(self) -> Effort:
        """Cost of the last step: sweeps, blocks of rows, and the residual, m/s."""
        rows, sweeps, again = self._report.counts[[ROWS, SWEEPS, RECOVERY]].tolist()
        return Effort(sweeps + again, rows, float(self._report.residual[0])) if rows else Effort()

    @property
    def memory(self) -> tuple[NDArray, ...]:
        """Start of the next step besides the actors' states: previous poses, and impulses of the last step."""
        return (self._bodies.previous.copy(), *arrays.kept(self._warm))

    def check_memory(self, value: Any) -> None:
        """Refuse what is no `memory` of this stepper: other shapes, types, numbers or indices.

        Raises:
            InputError: it is none.
        """
        own, shapes = self.memory, len(self.collider.scene.shape_body)
        good = isinstance(value, tuple) and len(value) in (0, len(own))
        for part, like in zip(value if good else (), own, strict=False):
            good &= isinstance(part, np.ndarray) and part.dtype == like.dtype and part.ndim == like.ndim
            good = good and part.shape[1:] == like.shape[1:] and bool(np.isfinite(part).all())
            if good and like.dtype.kind == "i":
                good = bool(((part >= 0) & (part < shapes)).all())
        if good and value:
            good = value[0].shape == own[0].shape and len({len(part) for part in value[1:]}) <= 1
        if not good:
            raise InputError("state: its contacts are damaged, or of another world")

    @memory.setter
    def memory(self, value: tuple[NDArray, ...]) -> None:
        for actor, own in self._parts:
            actor.write_poses(own)
        if len(value) > 1 and len(value[1]) > len(self._warm.taken):
            self.collider.reserve(len(value[1]))
            self._prepared()
        arrays.keep(self._warm, value[1:])
        previous = self._bodies.previous
        previous[:] = value[0] if value else self._bodies.poses[: len(previous), :3].reshape(-1, 12)
