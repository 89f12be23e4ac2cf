"""Names of what the arrays of a manifold hold: entries of `sizes`, and columns of its tables, see `kernels`."""

from pliant.engines.reduced.kernels import SIZES

# Entries of `sizes` beyond those of `kernels`: level of accuracy; whether T is Φ in all poses; n rounded up to a
# multiple of four; numbers of closing rows, couplings, tendons, balls, held loads and slots for loads; whether there
# is Ψ, and whether forces at rest change with y; number of coordinates whose inertia forces a step resolves; whether
# there are no dampers
METHOD, PLAIN, WIDTH, CLOSING, COUPLINGS, TENDONS, BALLS, HELD, SLOTS, CURVED, BENT, RESOLVED, LOSSLESS = (
    range(SIZES, SIZES + 13)
)
# offsets in `constants`
_AT = SIZES + 13
MAP, PHI, SCREW, JOINT, BODY, CURVATURE, CLOSE, COUPLING, TENDON, TENSION, REST, STEP_INERTIA = range(
    _AT, _AT + 12
)
MOTOR, FIXED, MODE, DAMPER_MATRIX, INERTIA_AT_REST, WORKING, STEADY, SLOPE, HELD_ROWS = range(
    _AT + 12, _AT + 21
)
# of steps with contacts: map; impulse per change of rates; transposed: mean velocities per impulse, those per change
# of rates, the impulse per change of rates of all coordinates, and the rates at the end per impulse
TOUCHING, TOUCHING_INERTIA, RESPONSE, MEAN_SHARE, PUSHED_INERTIA, YIELD = range(_AT + 22, _AT + 28)
# number of rows of motion with stops; displacements at which they are, lower and upper, (stops, 2)
STOPS, STOP_LIMITS = range(_AT + 28, _AT + 30)
# number of closing rows, rounded up to a multiple of four; of links, and rows of motion, that move by themselves: those
# behind them, which no coordinate moves against their parents, are part of the links that carry them
CLOSING_WIDTH, MOVED, MOVED_ROWS = range(_AT + 30, _AT + 33)
# whether loads change over the step; response to forces that do, (n, 2 width); axes of end effectors at y = 0
RAMP, RAMP_MAP, TURNS = range(_AT + 33, _AT + 36)
# of parts of a step, which is halved up to DIVISIONS times: MAP, STEP_INERTIA and MODE of each length, longest first
DIVIDED = _AT + 36
# whether steps of small motion need no poses: no loop, stop or boundary is to be watched
QUIET = _AT + 37
_AT += 38
# of tables in `sizes` itself
LOOP_TABLE, ROW_TABLE, BALL_TABLE, BALL_LINKS, COLUMNS, ABOVE, STOP_TABLE, DIVISION_TABLE = range(
    _AT, _AT + 8
)
# in `state`: forces of the last step, those of contacts among them, multipliers, budget; then scratch
FORCES, PUSH, MULTIPLIERS, BUDGET = range(_AT + 8, _AT + 12)
_AT += 12
MOTION, RATE, BIAS, TANGENT, CLOSERS, AXIS, TWIST, ACCELERATION, LOAD, FORCE, SUBTREE = range(_AT, _AT + 11)
SWEEP, OPEN, GAP, PIVOT, ANSWER, TORQUE, GRADIENT, POINTS, STEP_WORK, PLACING = range(_AT + 11, _AT + 21)
PLACED, MOMENTS, CARRIED, SHARES, TOTAL, CONTACT_WORK, HUB, BASE_WORK, STOP_WORK = range(_AT + 21, _AT + 30)
# of closed loops: rates of gaps per coordinate, swaps of rows of PIVOT, displacements without multipliers, Ψ(x, .);
# coordinates of the last tangent, then 1 if it is that of the present state
GAP_RATES, SWAPS, UNCLOSED, BENDING, TANGENT_AT = range(_AT + 30, _AT + 35)
# of loads: those on end effectors that ACTING is of, and their force on the coordinates at y = 0 with its change per
# coordinate, (1 + n, width), forces of the linear part included; changes of loads over a step in which they ramp, rows
# as of loads; change of forces over it, (2 + n, width)
KNOWN_LOADS, ACTING, CHANGES, CHANGE = range(_AT + 35, _AT + 39)
# copy of the state at the start of a step that is divided
WHOLE_STEP, MANIFOLD_SIZES = _AT + 39, _AT + 40

AUTO, SMALL, FULL = range(3)  # levels: chosen by the size of the motion; work of forces; inertia as well
STIFFNESS, PULL, DAMPER, ARMATURE, JOINT_SIZE = range(5)  # rows of JOINT, (JOINT_SIZE, rows)
# columns of BODY, per link: mass, centre, xx xy xz yy yz zz about it
MASS, COM, ABOUT, BODY_SIZE = 0, 1, 4, 10
SPRING, SLACK, DASHPOT, TENSION_SIZE = range(4)  # columns of TENSION: stiffness, tension at y = 0, damping
# columns of REST, per ball: quaternion from rest to q0, stiffness, torque at rest
TURN, BALL_STIFFNESS, BALL_PULL, REST_SIZE = 0, 4, 7, 10
# of FIXED: gravity, m/s²; point that twists are about; unit of gaps, m; square of the distance that end effectors may
# go, m², infinite if unknown; their origins at y = 0
GRAVITY, ORIGIN, LENGTH, BOUNDARY, ENDS = 0, 3, 6, 7, 8
# columns of MODE: ω²; the share of inertia forces that a step resolves; 1 / displacement and 1 / rate from which on
# motion counts as large
SQUARE, FILTER, LARGE, FAST, MODE_SIZE = range(5)
COPY, ORIGINAL, LOOP_SIZE = range(3)  # columns of LOOP_TABLE: places of the poses
# columns of DIVISION_TABLE, a row for the whole step and each length of its parts: entries of `sizes` for it
LENGTH_MAP, LENGTH_INERTIA, LENGTH_MODE, LENGTH_RESOLVED, DIVISION_SIZE = range(5)
DIVISIONS = 4  # how often a step is halved, at most
OF, COMPONENT, ROW_SIZE = range(3)  # columns of ROW_TABLE: loop and component, or -1 and coupling
# Numbers of MOMENTS and SUBTREE: mass, first and second moments about the fixed point, two zeros. Of CARRIED: see
# `_row_momenta`.
MOMENT_SIZE, CARRIED_SIZE = 12, 10
# of BUDGET: J; whether it is set, and how; steps that ended where loops part; square of the largest distance of an end
# effector beyond the boundary, m²; number of steps until now that stopped on their way; energy at the end, J; how many
# times the change of FORCES from the last step to this one is that over this one, loads of which ramp: none if those of
# the last are not known, two after held loads, one after a ramp
ENERGY, SET, HALTS, FARTHEST, STOPPED, ACTUAL, CHANGED, BUDGET_SIZE = range(8)
AFTER_HELD, AFTER_RAMP = 2.0, 1.0
KNOWN, BOUND_ABOVE = 1.0, 2.0  # of SET: the energy is known, or what it is at most, after loads and contacts
# of HUB, scratch of a floating base, home axes unless said: half the time step within a step, else 0; rotations from
# home to the world, at the start of the step and for loads; angular momentum at the start; angular velocity of the
# base; its twist about the fixed point for sweeps; net force, and torque about the centre of mass; mass; centre of
# mass, from the fixed point; inverse inertia about it; a load in home axes; then per rate of the coordinates, base at
# rest, (9, width): velocity of the centre of mass, angular momentum about it, and inverse inertia times that
HALF, START, TURNED, SPUN, SPIN, BASE_TWIST, NET, WHOLE, MIDDLE, INVERSE = (
    0,
    1,
    10,
    19,
    22,
    25,
    31,
    37,
    38,
    41,
)
ROW, PER_RATE = 50, 68
# of BASE_WORK, scratch of contacts: axes of a contact as its actor sees them, (3, 3). Of a floating base, world axes,
# at the start of the step: inverse inertia of the whole about its centre of mass, (3, 3); velocities at the end of the
# step, of the centre of mass and angular, and those that it moves by; angular velocity of the base per rate of the
# coordinates, momentum kept, (3, width)
CONTACT_AXES, WORLD_INVERSE, END_VELOCITY, MEAN_VELOCITY, SPIN_PER_RATE = 0, 9, 18, 24, 30
