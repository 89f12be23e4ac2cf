"""`March`: the steps of a small world in one compiled call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.contact import _march_kernels as kernels
from pliant.contact._bundle import bundle
from pliant.contact.free import FreeBodies
from pliant.contact.scene import quiet
from pliant.engines.reduced import _kernels as reduced
from pliant.errors import ConvergenceError, InputError, PliantError

if TYPE_CHECKING:
    from pliant.contact.stepping import ContactStepper

__all__ = ["March"]


class March:
    """Steps of a world of free bodies and at most one reduced model, without Python in between."""

    def __init__(self, stepper: ContactStepper):
        self._stepper = stepper
        self._native = stepper.collider.native()
        self._actors = actors = [actor for actor, _, _ in stepper.parts]
        self._free = next((a for a in actors if isinstance(a, FreeBodies)), None)
        others = [a for a in actors if a is not self._free]
        self._model = others[0] if others else None
        compiled = self._model is None or self._model.compiled() is not None
        self.able = self._native is not None and len(others) < 2 and compiled
        self._longest = 6 * max(int(stepper.size.max(initial=0)), 1)  # rows of a block, both sides
        self._room: tuple[int, ...] = ()

    def step(self, n: int) -> tuple[int, PliantError | None]:
        """Take `n` steps; how many were taken, and why no more. All is as after the last of them."""
        stepper = self._stepper
        while True:
            self._prepare()
            with quiet():
                how, number, done = kernels.march(n, stepper.settings.sweeps, self._bundle)
            if how == kernels.DONE:
                return n, None
            kernels.put_back(self._bundle)
            for actor in self._actors:
                actor.state = actor.state  # poses follow
            if how != kernels.MORE_ROOM:
                stepper.forget()
                break
            stepper.reserve(number)
        if done:
            self.step(done)
        return done, self._failure(how, number)

    def _failure(self, how: int, number: int) -> PliantError:
        try:
            if how == kernels.NOT_PLACED:
                self._stepper.collider.refuse(number)
            if how == kernels.FREE_LOST and self._free is not None:
                self._free.fail(number)
            if how == kernels.MODEL_LOST:
                raise ConvergenceError(
                    "a model left the finite numbers: are the wrenches as large as you meant, and was the model made "
                    "at a stable equilibrium?"
                )
            self._stepper.fail()
        except PliantError as error:
            return error

    def _prepare(self) -> None:
        """Collect the arrays, anew if any has grown."""
        s = self._stepper
        s.blocks.room(s.blocks.capacity * self._longest)
        room = (s.blocks.capacity, len(s.blocks.J), s.memories.capacity, s.collider.capacity)
        if room == self._room:
            return
        self._room = room
        b, m, native, t = s.blocks, s.memories, self._native, s.settings
        if native is None:
            raise InputError("contacts cannot be detected without Python here")
        settings = np.zeros(kernels.SETTINGS)
        fall = 0.0 if self._free is None else self._free.gain
        settings[:] = (
            s.h,
            t.margin,
            t.reach,
            t.slop,
            t.share,
            t.thin,
            t.bounce,
            t.tolerance,
            fall,
            t.ahead,
            s.collider.near,
        )
        loose = (self._free or FreeBodies(s.h, np.zeros(3))).compiled()
        model = _NO_MODEL if self._model is None else self._model.compiled() or _NO_MODEL
        self._bundle = bundle(
            settings,
            s.report,
            s.residual,
            (native.model, native.data, native.count, native.real, native.whole, native.layout),
            s.collider.scene_arrays(),
            s.collider.contact_arrays(),
            (
                b.kind, b.partner, b.body, b.point, b.axes, b.bound, b.target, b.give, b.gap, b.impulse, b.turning,
                b.side, b.J, b.Y, b.block, b.inverse, b.amount, b.moved,
            ),
            (m.first, m.second, m.point, m.impulse, m.steady, m.normal, m.taken, m.match, m.now),
            (s.poses, s.places, s.boxes, s.owner, s.drop, s.held, s.material, s.size, s.offset, s.before, s.u, s.w),
            loose,
            model,
            (np.zeros_like(s.places), np.zeros_like(loose[2]), np.zeros_like(model[3])),
        )  # fmt: skip


def _empty(*shape: int, whole: bool = False) -> Any:
    return np.zeros(shape, dtype=np.int64 if whole else np.float64)


_NO_MODEL = (
    _empty(reduced.SIZES, whole=True), _empty(0, 4, whole=True), _empty(1), _empty(1), _empty(0, 4, 4),
    _empty(0, whole=True), _empty(0, 4, whole=True), _empty(0, 6), _empty(0, 0), _empty(0, 0), _empty(7),
    _empty(3, 3), _empty(32),
)  # fmt: skip
