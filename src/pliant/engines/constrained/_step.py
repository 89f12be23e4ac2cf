"""The step: implicit midpoint in joint coordinates, by a few linear-time solves; shorter steps where those fail."""

import math
from typing import Any

from numba import types
from numba.experimental import structref

from pliant.compilation import njit
from pliant.engines.constrained import _aba, _border, _joints, _links
from pliant.engines.constrained import arrays as col
from pliant.engines.constrained._links import vector
from pliant.engines.constrained.arrays import Model

_jit = njit(error_model="numpy", nogil=True, fastmath={"contract"})

DEEPEST = 4  # a step is halved at most this often
ITERATIONS = 8
SLOW = 0.001  # squared half turn of a body beyond which the tolerance is tightened
FINEST = 1 / 64  # tightest tolerance, as a fraction of the given one
SHORTENED = 6  # largest number of halvings of a damped step
EXCESS = 4.0  # a damped step is halved while its kinetic energy exceeds this multiple of the available energy
OPENED = 0.01  # gap, rad or loop sizes, up to which a damped step may open loops
REUSED = 0.1  # motion since rows were chosen, as a share of their smallest remainder, up to which they stay
CLEANED = 8  # steps between checks of momenta
GHOST = 0.5  # share of kinetic energy outside the joints' motions from which a check is bad
LOOKS = 6  # bad checks in a row after which momenta are projected


@_jit
def evaluate_midpoint(model, state, h, scratch, equations):
    """Kinematics, momenta and impulses at the midpoint `q + h/2 u`; with `equations`, also residual and inertia."""
    links, constants, work = model.links, model.constants, scratch.work
    at_middle, impulse, info = scratch.at_middle, scratch.impulse, scratch.info
    n, t = links.shape[0], 0.5 * h
    for first in range(0, n, _links.CHUNK):
        last = min(first + _links.CHUNK, n)
        _links.forward_some(first, last, links, constants, state.q, state.u, t, work)
        _links.momenta(first, last, constants, work, at_middle)
        _links.impulses(first, last, constants, model.gravity, model.loads, t, work, impulse)
        if equations:
            hits, held = _joints.springs(
                first, last, links, model.dofs, model.rest, state.q, state.u, state.v, h, work
            )
            info[col.INFO_HITS] = hits if first == 0 else info[col.INFO_HITS] + hits
            info[col.INFO_HELD] = held if first == 0 else info[col.INFO_HELD] + held
            turn = _aba.residual(first, last, links, constants, state.momentum, impulse, at_middle, t, work)
            info[col.INFO_TURN] = turn if first == 0 else max(turn, info[col.INFO_TURN])


@_jit
def _update_rows(model, state, length, scratch):
    """Right-hand side and compliance of bordering rows; returns the largest gap after `length`."""
    loops, tendons = model.loops, model.tendons
    q, u, v = state.q, state.u, state.v
    wanted, change, border = scratch.wanted, scratch.change, scratch.border
    tree, give, scale = border.tree, border.matrix.give, border.scale
    m, first = wanted.shape[0], 6 * loops.shape[0]
    largest = 0.0
    if first:
        _links.forward(model.links, model.constants, q, u, length, scratch.ahead)
        largest = _border.loop_gaps(loops, scratch.ahead, scratch.small, wanted)
        for r in range(first):
            wanted[r] = -wanted[r] / length
    for r in range(first, m):  # of coordinates, velocities at the midpoint and before the step
        change[0, r], change[1, r], change[2, r] = -model.offsets[r - first], 0.0, 0.0
    for d in range(u.shape[0]):
        for e in range(tree.entry_start[d], tree.entry_start[d + 1]):
            r, x = tree.entry_row[e], tree.entry_value[e]
            change[0, r] += x * q[model.where[d]]
            change[1, r] += x * u[d]
            change[2, r] += x * v[d]
    for r in range(first, m):
        value, rate, n = change[0, r], change[1, r], r - m + tendons.shape[0]
        if n < 0:
            largest = max(largest, abs(value + length * rate))
            wanted[r] = -value / length - rate
        elif border.soft[r] == 1:
            # a tendon has the columns of a dof that `coefficients` fills
            at = value + tendons[n, col.AHEAD] * rate - tendons[n, col.BEHIND] * change[2, r]
            force = tendons[n, col.HALF] * at
            force += tendons[n, col.DRAG] * rate + tendons[n, col.DRAGGED] * change[2, r]
            wanted[r] = -force / tendons[n, col.GIVEN]
            give[r] = scale[r] * scale[r] / tendons[n, col.GIVEN]
    return largest


@_jit
def _start_rows(model, state, scratch, soft):
    """Independent rows among the bordering ones at the start of a step.

    They are chosen anew after motions of a tenth of the smallest remainder: before that, none becomes redundant.
    """
    links, q, chosen = model.links, state.q, state.chosen
    nq, rows = q.shape[0], scratch.wanted.shape[0]
    flags, hard = chosen[nq : nq + rows], rows - model.tendons.shape[0]
    if _border.moved(links, model.dofs, q, chosen) < REUSED * chosen[nq + rows]:
        _border.set_rows(scratch.border, hard, soft, flags)
        return
    _links.forward(links, model.constants, q, state.u, 0.0, scratch.ahead)
    _choose_rows(model, state, scratch.ahead, scratch, soft)
    for i in range(nq):
        chosen[i] = q[i]


@_jit
def _choose_rows(model, state, poses, scratch, soft):
    """Choose independent rows among the bordering ones, at these poses of links."""
    nq, rows = state.q.shape[0], scratch.wanted.shape[0]
    gap = _border.loop_gaps(model.loops, poses, scratch.small, scratch.change[0])
    hard, flags = rows - model.tendons.shape[0], state.chosen[nq : nq + rows]
    state.chosen[nq + rows] = _border.choose_rows(model.links, poses, scratch.border, gap, hard, soft, flags)


@_jit
def newton_step(model, state, h, length, scratch, first):
    """Newton step `du` of the midpoint velocity u; returns the largest gap of loops and couplings after `length`.

    Redundant rows are left out. They are found at the `first` iteration, at the start of the step, since loops are
    closed there; at the midpoint they are not, and redundant rows of spatial loops differ a little from the others.
    But a pose with links in line has more redundant rows than poses nearby: while loops do not close, rows are chosen
    at the midpoint.
    """
    links, loops, info = model.links, model.loops, scratch.info
    work, du, rows = scratch.work, scratch.du, scratch.wanted.shape[0]
    evaluate_midpoint(model, state, h, scratch, True)
    if rows == 0:
        if _aba.factor(links, 0.5 * h, work) >= 0:
            du[0] = math.inf  # not finite
            return math.inf
        _aba.solve(links, work, du)
        return 0.0
    _border.loop_tension(loops, state.multipliers, 0.5 * h, work)
    if first:
        _start_rows(model, state, scratch, scratch.border.soft)
    gap = _update_rows(model, state, length, scratch)
    hard = rows - model.tendons.shape[0]
    if not first and gap >= info[col.INFO_CLOSE] and _border.count_kept(scratch.border, hard) < hard:
        _choose_rows(model, state, work, scratch, scratch.border.soft)
        state.chosen[state.q.shape[0] + rows] = 0.0  # at another pose than the step's start
    if not _border.solve(links, 0.5 * h, scratch, state.multipliers):
        du[0] = math.inf
        return math.inf
    if gap >= info[col.INFO_CLOSE]:
        _border.shorten(model.dofs, length, hard, scratch, state.multipliers)
    return gap


@_jit
def _solve_midpoint(model, state, h, length, scratch):
    """Solve for the midpoint velocity u by accelerated Newton iterations; False if they do not contract."""
    dofs, u, du, info = model.dofs, state.u, scratch.du, scratch.info
    before, best = math.inf, math.inf
    for iteration in range(ITERATIONS):
        gap = newton_step(model, state, h, length, scratch, iteration == 0)
        change = 0.0
        for d in range(u.shape[0]):
            step = h * abs(du[d]) * dofs[d, col.UNIT]
            if not step < 1e9:
                return False
            change = max(change, step)
        info[col.INFO_SOLVES] += 1
        best = min(best, change)
        # Rate of contraction: assumed at the first iteration, measured afterwards; none is assumed where stops act.
        rate = 1.0 if info[col.INFO_HELD] > 0.0 else 0.5 if state.past[col.EXTRAPOLATE] != 0.0 else 0.75
        if iteration > 0:
            rate = min(change / before, 0.95)
        tolerance = info[col.INFO_TOLERANCE]
        settled = change * rate < tolerance * (1.0 - rate) and change < 10.0 * tolerance
        if settled and info[col.INFO_TURN] > SLOW and iteration < ITERATIONS - 1:
            # Errors in the momentum of fast-spinning bodies do not average out.
            fine = tolerance * max((SLOW / info[col.INFO_TURN]) ** 2, FINEST)
            settled = change * rate < fine * (1.0 - rate)
        if settled and gap < info[col.INFO_CLOSE]:
            for d in range(u.shape[0]):
                u[d] += du[d]
            evaluate_midpoint(model, state, h, scratch, False)
            return True
        if iteration > 3 and change > 10.0 * best:
            return False
        _accelerate(iteration, dofs, u, du, scratch.history, scratch.gram)
        before = change
    return False


@_jit
def _accelerate(iteration, dofs, u, du, history, gram):
    """Anderson acceleration, depth 4: `u += du` at first, then with the best combination of the last iterations.

    Terms that the symmetric matrix leaves out, gyroscopic ones and torques across hinges, make plain iterations
    contract slowly or oscillate.
    """
    nv, depth = u.shape[0], gram.shape[1]
    # history: changes of u, changes of du, then the last u and the last du
    now = (iteration - 1) % depth
    if iteration > 0:
        for d in range(nv):
            history[now, d] = u[d] - history[2 * depth, d]
            history[depth + now, d] = du[d] - history[2 * depth + 1, d]
    for d in range(nv):
        history[2 * depth, d] = u[d]
        history[2 * depth + 1, d] = du[d]
    count = min(iteration, depth) if iteration > 1 else 0
    for i in range(count):
        for j in range(i + 1):
            total = 0.0
            for d in range(nv):
                total += dofs[d, col.UNIT] ** 2 * history[depth + i, d] * history[depth + j, d]
            gram[i, j] = total
        total = 0.0
        for d in range(nv):
            total += dofs[d, col.UNIT] ** 2 * history[depth + i, d] * du[d]
        gram[depth, i] = total
    # Differences that repeat others share their weight: no pivot is below 1e-10 of its row, far above rounding.
    for i in range(count):
        gram[i, i] *= 1.0 + 1e-10
    if count:
        _border.cholesky(gram[:count, :count])
        _border.substitute(gram[:count, :count], gram[depth, :count])
    for d in range(nv):
        total = du[d]
        for i in range(count):
            total -= gram[depth, i] * (history[i, d] + history[depth + i, d])
        u[d] += total


@_jit
def _reflect(state, scratch):
    """Velocities and momenta after the step from those before; twice is the identity."""
    for d in range(state.u.shape[0]):
        state.v[d] = 2.0 * state.u[d] - state.v[d]
    _links.reflect(scratch.work, scratch.at_middle, state.momentum)


@_jit
def potential_energy(model, state, t, scratch):
    """Potential energy of gravity and springs after a time t at the velocity u, J."""
    _links.forward(model.links, model.constants, state.q, state.u, t, scratch.ahead)
    total = _links.potential(model.constants, model.gravity, scratch.ahead)
    return total + _joints.joint_energy(model.links, model.dofs, model.rest, state.q, state.u, t)


@_jit
def open_loops(model, scratch):
    """Largest gap of loops, rad or loop sizes, at the pose of the last `potential_energy`."""
    return _border.loop_gaps(model.loops, scratch.ahead, scratch.small, scratch.change[0])


@_jit
def _conserves_energy(model, state, h, scratch):
    """Whether the step, momenta already reflected, gains no energy beyond the work of loads."""
    constants = model.constants
    has = _links.kinetic(constants, state.momentum)
    # Momenta before the step were twice the midpoint's less these.
    had = has - 2.0 * _links.kinetic_change(constants, state.momentum, scratch.at_middle, scratch.work)
    brought = 2.0 * _links.work_done(
        constants, model.gravity, scratch.impulse, scratch.at_middle, 0.5 * h, scratch.work
    )
    brought += potential_energy(model, state, 0.0, scratch) - potential_energy(model, state, h, scratch)
    return has - had - brought <= 1e-3 * (has + had)


@_jit
def solve_damped(model, state, h, scratch):
    """Backward Euler velocity u: the midpoint of a step twice as long is the end of this one. False if not found.

    It damps the oscillations that keep the midpoint iterations from converging, and absorbs impacts on joint stops.
    """
    _joints.coefficients(model.dofs, 2.0 * h, True)
    _joints.coefficients(model.tendons, 2.0 * h, True)
    scratch.info[col.INFO_LENGTH] = 0.0
    scratch.info[col.INFO_UNSETTLED] += 1
    return _solve_midpoint(model, state, 2.0 * h, h, scratch)


@_jit
def accept_damped(model, state, h, scratch, own, brought):
    """Finish a damped step with at most the energy there was and the work of loads; False if it is not finite.

    Loads from row `own` on are those of contacts, whose work is at most `brought`: they are large, and their work at
    the final poses is not exact.
    """
    constants, gravity, dofs = model.constants, model.gravity, model.dofs
    u, v, momentum = state.u, state.v, state.momentum
    work, at_middle, impulse = scratch.work, scratch.at_middle, scratch.impulse
    for d in range(u.shape[0]):
        if not abs(u[d]) < 1e100:
            return False
    had = _links.kinetic(constants, momentum) + rotor_energy(dofs, v)
    had = had + potential_energy(model, state, 0.0, scratch)
    allowed = max(open_loops(model, scratch), OPENED)
    left = -1.0
    for attempt in range(SHORTENED + 1):
        # A motion with far too much energy, or that opens loops, is halved; after the last attempt the joints stay.
        if attempt:
            share = 0.5 if attempt < SHORTENED else 0.0
            brought *= share
            for d in range(u.shape[0]):
                u[d] *= share
        evaluate_midpoint(model, state, 2.0 * h, scratch, False)
        left = had + _links.work_done(constants, gravity, impulse, at_middle, h, work)
        left -= max(_links.work_of_loads(model.loads, own, constants, at_middle, h, work) - brought, 0.0)
        left -= potential_energy(model, state, h, scratch)
        kinetic = _links.kinetic_at(constants, at_middle, work) + rotor_energy(dofs, u)
        if left >= 0.0 and kinetic <= EXCESS * left and not open_loops(model, scratch) > allowed:
            break
    # Half impulses through joints, for `joint_reactions`, before the momenta are overwritten.
    for k in range(momentum.shape[0]):
        x, y, z = vector(momentum, k, col.ANGULAR)
        for i in range(3):
            rx, ry, rz = vector(work, k, col.W_ROTATION + 3 * i)
            linear = impulse[k, col.LINEAR + i] + momentum[k, col.LINEAR + i] - at_middle[k, col.LINEAR + i]
            angular = impulse[k, col.ANGULAR + i] + (rx * x + ry * y + rz * z) - at_middle[k, col.ANGULAR + i]
            impulse[k, col.LINEAR + i], impulse[k, col.ANGULAR + i] = 0.5 * linear, 0.5 * angular
    _links.set_momentum(work, at_middle, momentum)
    has = _links.kinetic(constants, momentum) + rotor_energy(dofs, u)
    scale = 1.0 if has <= max(left, 0.0) else math.sqrt(max(left, 0.0) / has)
    for k in range(momentum.shape[0]):
        for i in range(6):
            momentum[k, i] *= scale
            impulse[k, i] += (scale - 1.0) * at_middle[k, i]
    for d in range(u.shape[0]):
        v[d] = scale * u[d]
    for r in range(state.multipliers.shape[0]):
        state.multipliers[r] *= 0.5
    return True


@_jit
def rotor_energy(dofs, v):
    """Kinetic energy of rotors, J."""
    total = 0.0
    for d in range(v.shape[0]):
        total += 0.5 * dofs[d, col.ARMATURE] * v[d] * v[d]
    return total


@_jit
def _nearest_motion(model, state, scratch):
    """Joint velocities nearest to the momenta, into `du`, and the momenta of bodies at these, into `at_middle`.

    Nearest in the metric of inertia: what is left over is an impulse through joints and loops, and resistances of
    `bare`. False if there are none.
    """
    links, constants = model.links, model.constants
    momentum, du, work = state.momentum, scratch.du, scratch.work
    at_middle, impulse, wanted = scratch.at_middle, scratch.impulse, scratch.wanted
    n = links.shape[0]
    for d in range(du.shape[0]):
        du[d] = 0.0
    for k in range(n):
        for i in range(6):
            impulse[k, i] = 0.0
    _links.forward(links, constants, state.q, du, 0.0, work)
    _links.momenta(0, n, constants, work, at_middle)
    _joints.springs(0, n, links, model.bare, model.rest, state.q, du, state.v, 0.0, work)
    _aba.residual(0, n, links, constants, momentum, impulse, at_middle, 0.0, work)
    if wanted.shape[0]:
        for r in range(wanted.shape[0]):
            wanted[r] = 0.0
        _start_rows(model, state, scratch, scratch.border.none)  # tendons lock nothing
        if not _border.solve(links, 0.0, scratch, scratch.spare):
            return False
    else:
        if _aba.factor(links, 0.0, work) >= 0:
            return False
        _aba.solve(links, work, du)
    _links.forward(links, constants, state.q, du, 0.0, work)
    _links.momenta(0, n, constants, work, at_middle)
    return True


@_jit
def _move_as_nearest(state, scratch):
    """Set velocities and momenta to those of the last `_nearest_motion`."""
    for d in range(state.v.shape[0]):
        state.v[d] = scratch.du[d]
    _links.set_momentum(scratch.work, scratch.at_middle, state.momentum)


@_jit
def _project_momenta(model, state, scratch):
    """Project momenta onto the motions that joints and loops allow, and make velocities agree with them.

    The midpoint update flips momentum outside that subspace every step without damping it. Springs and dampers too
    stiff for the step count as locks. Momenta are projected only after LOOKS bad checks in a row: where bodies turn far
    in a step, momentum outside the subspace comes and goes by itself, and projection would take its energy away.
    """
    constants, work, at_middle = model.constants, scratch.work, scratch.at_middle
    _joints.lock_stiff_joints(model.dofs, scratch.info[col.INFO_LENGTH], model.bare)
    if not _nearest_motion(model, state, scratch):
        return
    has, allowed = _links.kinetic(constants, state.momentum), 0.0
    for k in range(constants.shape[0]):
        for i in range(3):
            allowed += 0.5 * at_middle[k, col.ANGULAR + i] * work[k, col.W_SPIN + i]
            if constants[k, col.C_MASS] > 0.0:
                allowed += 0.5 * at_middle[k, col.LINEAR + i] ** 2 / constants[k, col.C_MASS]
    state.past[col.BAD_CHECKS] = state.past[col.BAD_CHECKS] + 1.0 if has - allowed > GHOST * has else 0.0
    if state.past[col.BAD_CHECKS] >= LOOKS:
        state.past[col.BAD_CHECKS] = 0.0
        _move_as_nearest(state, scratch)


@_jit
def update_guess(dofs, u, last, earlier, past, whole):
    """Keep the last midpoint velocity, and decide whether to extrapolate the next one from two."""
    same, straight = 0.0, 0.0
    for d in range(u.shape[0]):
        unit = dofs[d, col.UNIT]
        same = max(same, abs(u[d] - last[d]) * unit)
        straight = max(straight, abs(u[d] - 2.0 * last[d] + earlier[d]) * unit)
        earlier[d] = last[d]
    past[col.EXTRAPOLATE] = 1.0 if whole and straight < 0.5 * same else 0.0


@structref.register
class _ArraysType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Arrays(structref.StructRefProxy):
    """`Model`, `State` and `Scratch` as one argument: a call from Python looks at every array it is given.

    It keeps its arrays alive. Loads change often, so they travel beside it.
    """

    # The slot itself: numba drops a Ctrl-C that is handled inside the Python property of the base class.
    _numba_type_ = structref.StructRefProxy._type  # pyright: ignore


structref.define_boxing(_ArraysType, Arrays)
structref.define_constructor(Arrays, _ArraysType, ("model", "state", "scratch"))


@njit(counts_references=True)
def join_arrays(model, state, scratch):
    """`Arrays` of a mechanism, for `advance`."""
    return Arrays(model, state, scratch)


@njit(counts_references=True, error_model="numpy", nogil=True, fastmath={"contract"})
def advance(n, timestep, loads, arrays):
    """Take `n` steps. Returns how many were done: fewer if the motion left the finite numbers.

    `loads` are rows as in `Model`, in place of those of `arrays`.
    """
    m, state, scratch = arrays.model, arrays.state, arrays.scratch
    model = Model(
        m.links, m.constants, m.dofs, m.rest, m.gravity, loads, m.loops, m.offsets, m.tendons, m.where, m.bare
    )
    links, dofs, tendons = model.links, model.dofs, model.tendons
    q, u, earlier, past = state.q, state.u, state.earlier, state.past
    backup, info = scratch.backup, scratch.info
    nv = u.shape[0]
    for done in range(n):
        level, at = 0, 0  # in units of the shortest step
        while at < 1 << DEEPEST:
            h = timestep / (1 << level)
            if info[col.INFO_LENGTH] != h:
                _joints.coefficients(dofs, h, False)
                _joints.coefficients(tendons, h, False)
                info[col.INFO_LENGTH] = h
            past[col.SINCE_CHECK] += 1.0
            if past[col.SINCE_CHECK] >= CLEANED:
                _project_momenta(model, state, scratch)
                past[col.SINCE_CHECK] = 0.0
            for d in range(nv):
                backup[d] = u[d]
            if past[col.EXTRAPOLATE] != 0.0:
                for d in range(nv):
                    u[d] += u[d] - earlier[d]
            solves = info[col.INFO_SOLVES]
            settled = _solve_midpoint(model, state, h, h, scratch) and info[col.INFO_HITS] == 0.0
            if settled:
                _reflect(state, scratch)
                # Where convergence is hard, tension may magnify a small error.
                hard = level > 0 or info[col.INFO_SOLVES] - solves > 6
                if hard and not _conserves_energy(model, state, h, scratch):
                    _reflect(state, scratch)  # back to before the step
                    settled = False
            if not settled:
                for d in range(nv):
                    u[d] = backup[d]
                found = solve_damped(model, state, h, scratch)
                if not found and level < DEEPEST:
                    for d in range(nv):
                        u[d] = backup[d]
                    past[col.EXTRAPOLATE] = 0.0
                    level += 1
                    continue
                if not found:
                    # A single Newton step from rest: linear in all forces, with plenty of damping.
                    for d in range(nv):
                        u[d] = 0.0
                    newton_step(model, state, 2.0 * h, h, scratch, True)
                    for d in range(nv):
                        u[d] += scratch.du[d]
                if not accept_damped(model, state, h, scratch, model.loads.shape[0], 0.0):
                    for d in range(nv):
                        u[d] = backup[d]
                    return done
            update_guess(dofs, u, backup, earlier, past, settled and level == 0)
            _links.integrate(links, q, u, h)
            info[col.INFO_SUBSTEPS] += 1
            info[col.INFO_LAST] = h
            at += 1 << (DEEPEST - level)
            while level > 0 and at % (1 << (DEEPEST - level + 1)) == 0:
                level -= 1
        info[col.INFO_TAKEN] += 1.0
    return n


@njit(counts_references=True, error_model="numpy", nogil=True)
def set_nearest_motion(arrays):
    """Set velocities and momenta to the motion of joints nearest to the momenta; False if joints meet no inertia."""
    model, state, scratch = arrays.model, arrays.state, arrays.scratch
    for d in range(model.dofs.shape[0]):
        model.bare[d, col.ARMATURE] = model.bare[d, col.GIVEN] = model.dofs[d, col.ARMATURE]
    if not _nearest_motion(model, state, scratch):
        return False
    _move_as_nearest(state, scratch)
    return True


@njit(counts_references=True, error_model="numpy", nogil=True)
def evaluate_motion(velocity, arrays):
    """Kinematics of links at joint velocities, into `work`, and momenta of these velocities, into `at_middle`."""
    model, state, scratch = arrays.model, arrays.state, arrays.scratch
    _links.forward(model.links, model.constants, state.q, velocity, 0.0, scratch.work)
    _links.momenta(0, model.links.shape[0], model.constants, scratch.work, scratch.at_middle)
