"""Steps of a world in one compiled call: free bodies, at most one reduced model, and what never moves.

The same kernels in the same order as in `stepping`, with MuJoCo's collider called by its name; see `native`.
"""

import math

from numba import types

from pliant.compilation import njit
from pliant.contact import _block_kernels as filling
from pliant.contact import _free_kernels as free
from pliant.contact import _kernels as collider
from pliant.contact import _solver_kernels as solver
from pliant.engines.reduced import _contact_kernels as reduced_contact
from pliant.engines.reduced import _kernels as reduced

# How a march ends; the second number says how many contacts there are, or which body it is.
DONE, MORE_ROOM, NOT_PLACED, FREE_LOST, MODEL_LOST, FORCES_LOST = range(6)
# Columns of the report: contacts, blocks, sweeps of both solvers; and which part of the memory was the last step's when
# the march began, with how many contacts.
TOUCHING, ROWS, SWEEPS, AGAIN, HALF, KEPT, REPORT = range(7)
# Places in `settings`
STEP, MARGIN, REACH, SLOP, SHARE, THIN, BOUNCE, TOLERANCE, FALL, AHEAD, NEAR, SETTINGS = range(12)

_SPARE = 2  # the part of the memory that no step uses

_collide = types.ExternalFunction("mj_collision", types.void(types.intp, types.intp))
_jit = njit(error_model="numpy", nogil=True)


@_jit
def put_back(bundle):
    """After a march that did not end well: all that moves as it was before."""
    report, memory, saved, model = bundle.report, bundle.memory, bundle.saved, bundle.model
    _keep(saved[0], bundle.bodies[1])
    _keep(saved[1], bundle.loose[2])
    for i in range(model[0][reduced.WRENCH]):
        model[3][i] = saved[2][i]
    memory[8][0], memory[8][1] = report[HALF], report[KEPT]
    _hand_over(memory, report[KEPT], _SPARE, report[HALF])


@_jit
def _keep(rows, out):
    for r in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            out[r, i] = rows[r, i]


@_jit
def _hand_over(memory, count, source, target):
    """Copy the contacts of one part of the memory to another."""
    first, second, point, impulse, steady, normal, _, _, _ = memory
    for c in range(count):
        first[target, c], second[target, c] = first[source, c], second[source, c]
        steady[target, c], normal[target, c] = steady[source, c], normal[source, c]
        for i in range(3):
            point[target, c, i], impulse[target, c, i] = point[source, c, i], impulse[source, c, i]


@_jit
def march(steps, sweeps, bundle):
    """Take steps, at most `sweeps` sweeps in each. Returns how it ended, a number that explains, whole steps taken.

    If it did not end well, `put_back` is to follow. One function, for what calls it is compiled anew with all of it.

    The bundle:
        settings, report, residual: see above; what the solver left in the last step.
        native: addresses, count, records of contacts, layout.
        scene: what `_kernels.place` takes, the shapes of geoms, which are height fields, and whose they are.
        contacts: what `_kernels.collect` writes, and room for `sift`.
        blocks, memory: arrays of `Blocks` and of the contacts of the last two steps.
        bodies: poses, places, boxes, owner, drop and held of `let_fall`, material, size, offset, velocities before,
            after, and for positions.
        loose: free bodies; model: a reduced one, or empty arrays.
        saved: room for what moves.
    """
    settings, report, residual, native = bundle.settings, bundle.report, bundle.residual, bundle.native
    scene, contacts, blocks, memory = bundle.scene, bundle.contacts, bundle.blocks, bundle.memory
    bodies, loose, model, saved = bundle.bodies, bundle.loose, bundle.model, bundle.saved
    address, data, found, real, whole, layout = native
    (margins, wanted, mj_body, core, xipos, ximat, local, geom_body, geom_core, xpos, xmat, body_margin, geom_margin,
     geom_shape, field, shape_body) = scene  # fmt: skip
    first, second, shape_first, shape_second, at, normal, distance, _ = contacts
    (kind, partner, body, point, axes, bound, target, give, gap, impulse, turning, side, J, Y, block, inverse,
     amount, moved) = blocks  # fmt: skip
    old_first, old_second, old_point, old_impulse, old_steady, old_normal, taken, match, now = memory
    poses, places, boxes, owner, drop, held, material, size, offset, before, u, w = bodies
    fixed, principal, state, given, gravity, wrench, touched, still, work, free_poses = loose
    (sizes, links, constants, own, own_poses, body_link, own_links, screw, basis, rates, start, turn,
     own_work) = model  # fmt: skip
    _keep(places, saved[0])
    _keep(state, saved[1])
    for i in range(sizes[reduced.WRENCH]):
        saved[2][i] = own[i]
    report[HALF], report[KEPT] = now[0], now[1]
    _hand_over(memory, report[KEPT], report[HALF], _SPARE)
    h, count_free, count_own = settings[STEP], state.shape[0], body_link.shape[0]
    moving = count_free + count_own
    # a contact may take two blocks: it may have rolling resistance
    room = min(kind.shape[0] // 2, first.shape[0], taken.shape[0])
    split = 6 * count_free
    none = split - split  # no literal 0: what takes one would be compiled for it once more
    for done in range(steps):
        _copy(free_poses, count_free, 0, poses)
        _copy(own_poses, count_own, count_free, poses)
        filling.look_ahead(
            moving,
            poses,
            places,
            boxes,
            settings[MARGIN],
            settings[AHEAD],
            settings[REACH],
            margins,
            wanted,
        )
        half, kept = now[0], now[1]
        filling.let_fall(kept, old_first[half], old_second[half], old_normal[half], shape_body, owner, drop,
                         settings[REACH], held, margins, wanted)  # fmt: skip
        free.look_ahead(fixed, state, h, settings[FALL], settings[AHEAD], settings[REACH], margins, wanted)
        bad = collider.place(poses, margins, wanted, mj_body, core, xipos, ximat, local, geom_body, geom_core, xpos,
                             xmat, body_margin, geom_margin)  # fmt: skip
        if bad >= 0:
            return NOT_PLACED, bad, done
        _collide(address, data)
        count = int(found[0])
        if count > room:
            return MORE_ROOM, count, done
        filling.remember(moving, poses, places)
        _collect(count, real, whole, layout, geom_body, geom_shape, first, second, shape_first, shape_second,
                 at, normal, distance)  # fmt: skip
        count = collider.sift(count, settings[NEAR], field, *contacts)
        rows = filling.fill(count, first, second, at, normal, distance, material, h, kind, partner, body, point, axes,
                            bound, target, give, gap, impulse, turning)  # fmt: skip
        solver.match(count, shape_first, shape_second, at, kept, old_first[half], old_second[half],
                     old_point[half], taken, match)  # fmt: skip
        filling.recall(count, match, axes, old_impulse[half], old_steady[half], impulse)
        solver.lay_out(rows, body, size, offset, side)
        busy_free = busy_own = False
        for b in range(rows):
            for s in range(2):
                busy_free |= 0 <= body[b, s] < count_free
                busy_own |= count_free <= body[b, s] < moving
        # first halves of the steps
        if busy_free:
            free.velocities(fixed, state, work, before)
            free.accelerate(fixed, state, given, free_poses, gravity, h, wrench)
            free.velocities(fixed, state, work, u)
            free.rows(rows, kind, body, point, axes, side, J, Y, none, fixed, state, work)
        else:
            free.accelerate(fixed, state, given, free_poses, gravity, h, wrench)
            for b in range(count_free):
                touched[b] = False
            bad = free.move(fixed, principal, state, wrench, gravity, touched, still, h, work, free_poses)
            if bad >= 0:
                return FREE_LOST, bad, done
        if busy_own:
            reduced_contact.spin_map(sizes, constants, own, turn, own_work)
            reduced_contact.contact_rows(rows, turning, body, point, axes, side, J, Y, count_free, body_link, own_links,
                                         screw, own_poses, basis, rates, sizes, constants, own, turn)  # fmt: skip
            reduced_contact.velocities(sizes, own, turn, before[split:])
            if sizes[reduced.FREE] == 1:
                for i in range(7):
                    start[i] = own[sizes[reduced.BASE_STATE] + i]
        if count_own > 0 and reduced.advance(1, False, sizes, links, constants, own, own_poses) < 1:
            return MODEL_LOST, 0, done
        if busy_own:
            reduced_contact.velocities(sizes, own, turn, u[split:])
        if count == 0:
            report[TOUCHING] = report[ROWS] = now[1] = 0
            continue
        # impulses
        filling.bounce(count, first, second, material, h, settings[BOUNCE], gap, side, J, before, u, target)
        solver.blocks(rows, side, give, J, Y, block, inverse)
        report[SWEEPS], residual[0] = solver.solve(rows, kind, partner, bound, target, give, side, J, Y, block,
                                                   inverse, impulse, moved, u, sweeps, settings[TOLERANCE])  # fmt: skip
        total = 0.0
        for i in range(u.shape[0]):
            total += abs(u[i])
            w[i] = 0.0
        if not math.isfinite(total):
            return FORCES_LOST, 0, done
        report[AGAIN] = solver.project(rows, kind, give, gap, side, J, Y, block, u, w, amount, settings[SLOP],
                                       settings[SHARE], settings[THIN], h, sweeps, settings[TOLERANCE])  # fmt: skip
        new = 1 - half
        filling.keep(
            count, match, axes, impulse, old_normal[half], old_impulse[new], old_steady[new], old_normal[new]
        )
        for c in range(count):
            old_first[new, c], old_second[new, c] = shape_first[c], shape_second[c]
            for i in range(3):
                old_point[new, c, i] = at[c, i]
        report[TOUCHING], report[ROWS], now[0], now[1] = count, rows, new, count
        # second halves
        if busy_free:
            free.strike(rows, body, side, J, impulse, none, state, touched)
            free.balance(rows, body, axes, amount, none, fixed, state, h, work)
            bad = free.move(fixed, principal, state, wrench, gravity, touched, w, h, work, free_poses)
            if bad >= 0:
                return FREE_LOST, bad, done
        if busy_own:
            reduced_contact.finish(sizes, constants, own, start, turn, u[split:], w[split:], own_work)
            spare = own[sizes[reduced.WORK] + sizes[reduced.WRENCH] :]
            reduced.reconstruct(sizes, links, constants, own, own_poses, spare)
    return DONE, 0, steps


@_jit
def _copy(source, count, first, out):
    for b in range(count):
        for i in range(3):
            for j in range(4):
                out[first + b, i, j] = source[b, i, j]


@_jit
def _collect(count, real, whole, layout, geom_body, geom_shape, first, second, shape_first, shape_second, point, normal,
             distance):  # fmt: skip
    """As `_kernels.collect`, from records of contacts."""
    collider.collect(
        count,
        whole[:, layout[2] : layout[2] + 2],
        real[:, layout[0] : layout[0] + 3],
        real[:, layout[1] : layout[1] + 3],
        real[:, 0],
        geom_body,
        geom_shape,
        first,
        second,
        shape_first,
        shape_second,
        point,
        normal,
        distance,
    )
