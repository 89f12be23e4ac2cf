"""Warm-up: every kernel compiled, by small runs of every engine, each part in a process of its own.

`python -m pliant.warm_up PART` runs one part. A public path that compiles after a warm-up is a mistake here: the tests
that `make wheel` runs find it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant import contact
from pliant.compilation.progress import QUIET
from pliant.errors import MissingPackageError, PliantError, PliantWarning

__all__ = ["PARTS", "warm_up"]

_STEP = 1e-3


def warm_up(jobs: int | None = None, started: Callable[[str], None] = lambda part: None) -> None:
    """Compile all kernels that are not in the cache yet.

    Args:
        jobs: processes at once; None for one per core.
        started: told the name of every part when it starts.

    Raises:
        PliantError: a part fails.
    """
    waiting, running = list(PARTS), dict[str, subprocess.Popen[str]]()
    try:
        while waiting or running:
            while waiting and len(running) < (jobs or os.cpu_count() or 1):
                part = waiting.pop(0)
                started(part)
                running[part] = subprocess.Popen(
                    [sys.executable, "-m", "pliant.warm_up", part],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    env={**os.environ, QUIET: "1", "OPENBLAS_NUM_THREADS": "1"},
                )
            for part, process in list(running.items()):
                if process.poll() is not None:
                    said = process.communicate()[1].strip().splitlines()
                    del running[part]
                    if process.returncode:
                        raise PliantError(
                            f"warm-up of {part}: {said[-1] if said else 'ended without a word'}"
                        )
            time.sleep(0.05)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


# --- the parts


def _contact() -> None:
    scenes = pliant.scenes
    ball = pliant.shapes.sphere(0.03)
    pair = contact.Collider([(0, ball), (1, ball)], 2, static=np.zeros(2, dtype=bool))
    pair.detect(np.tile(np.eye(4), (2, 1, 1)))
    flight = pliant.World(timestep=1 / 60)
    flight.add_body("ball", ball)
    flight.step()
    flight["ball"].twist()
    world = pliant.World(timestep=1 / 60)
    world.add_static("floor", pliant.shapes.plane())
    world.add_body("ball", ball, mass=0.1, position=(0, 0, 0.029))
    world.add_body("box", pliant.shapes.box((0.05, 0.05, 0.05)), position=(0.5, 0, 0.0499))
    world.step(5)
    with suppress(PliantError):  # a step that fails puts everything back
        world["ball"].apply_wrench(force=(1e300, 0, 0))
        world.step(5)
    for kind in ("reduced", "blended", "full"):
        scenes.grasp(kind).step(3)
    for make in (
        scenes.hexapod,
        scenes.trampoline,
        scenes.suspension,
        scenes.crane_and_wall,
        scenes.peg_in_hole,
    ):
        make().step(3)
    several = scenes.trampoline().world  # two mechanisms: Python calls the halves of a step
    several.add(_coupled(), "other")
    several.step(30)
    several.pull(several.body_names[0], target=(0, 0, 1))
    several.step(2)
    linear = pliant.World(timestep=1 / 60)  # constant maps, stepped from Python as well
    linear.add(pliant.reduce(pliant.gallery.firefighters()), "net", method="tvcg")
    linear.add_body("ball", ball, mass=0.1, position=(0.1, 0.05, 1.2))
    linear.step(40)
    adaptive = pliant.World(timestep=1 / 240)  # rigid clusters, stepped from Python
    molecule = pliant.gallery.molecule(500).with_stiffness("*", 1e-3, 5e-6)
    adaptive.add(molecule, "molecule", engine="adaptive")
    above = molecule.reference_poses[-1, :3, 3] + (0, 0, 0.02)
    adaptive.add_body("ball", pliant.shapes.sphere(0.005), mass=1e-3, position=above, velocity=(0, 0, -2))
    adaptive.step(8)


def _constrained() -> None:
    gallery = pliant.gallery
    for m in (gallery.hand(), gallery.gripper(), gallery.ladder(2), gallery.cable(5, load=100.0), _coupled()):
        simulation = pliant.ConstrainedSimulation(m, 1 / 60)
        simulation.apply_wrench(m.body_names[-1], force=(0, 0, 1.0))
        simulation.step(2)
        simulation.record(2)
        simulation.twist(m.body_names[-1])
        _read(simulation, "poses energy joint_forces damping violation velocity configuration")
        simulation.velocity = np.zeros(m.nv)
    pliant.scenes.crane_lift(5).simulate(1 / 60).step(2)


def _quasistatic() -> None:
    from pliant.engines.quasistatic.solver import Tree

    gallery = pliant.gallery
    for m in (gallery.molecule(300), gallery.ladder(4), gallery.hand()):
        for tolerance, measure in ((0.1, "relative-joint"), (1e-9, "world")):
            simulation = pliant.QuasistaticSimulation(m, _STEP, tolerance=tolerance, measure=measure)
            simulation.apply_wrench(m.body_names[-1], force=(0, 0, 1.0))
            simulation.step(3)
            simulation.refine(1.0)
            simulation.set_motor(m.joint_names[0], torque=0.0)
            simulation.step(30)
            simulation.pose(m.body_names[-1])
            _read(simulation, "poses accelerations active error_bound configuration")
        tree = Tree(m, np.zeros(3), m.armature, np.ones(m.nv))
        tree.up()
        tree.down()
        tree.close_twigs()
    for m, push in ((gallery.molecule(1200).with_stiffness("*", 1e-3, 5e-6), 1.0), (gallery.hand(), 10.0)):
        height = m.reference_poses[:, 2, 3]
        floor = pliant.shapes.plane(position=(0, 0, height.min() - 0.02))
        simulation = pliant.QuasistaticSimulation(m, 1 / 240, (0, 0, 0), obstacles=[floor], friction=0.5)
        simulation.apply_wrench(m.body_names[int(height.argmin())], force=(0, 0, -push))
        simulation.step(40)
        simulation.pose(m.body_names[-1])
        _read(simulation, "contacts")


def _adaptive() -> None:
    gallery = pliant.gallery
    b = pliant.Builder("pair")
    for name in ("a", "b"):
        b.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        b.free(f"root {name}", "world", name)
    for m in (gallery.molecule(300), gallery.millipede(20, 3, 60), b.build()):
        simulation = pliant.AdaptiveSimulation(m, _STEP)
        simulation.apply_wrench(m.body_names[-1], force=(0, 0, 1.0))
        simulation.step(3)
        simulation.set_motor(m.dof_names[0], torque=1e-3)
        simulation.clear_wrenches()
        simulation.step(100)
        simulation.pose(m.body_names[-1])
        _read(simulation, "poses active error_estimate configuration energy")
        simulation.velocity = np.zeros(m.nv)


def _reduced() -> None:
    gallery = pliant.gallery
    for m in (gallery.hand(), gallery.ladder(2), gallery.hexapod(), gallery.y()):
        model = pliant.reduce(m)
        tip = model.end_effectors[0]
        for reconstruction, method in (("joint", "auto"), ("joint", "tvcg"), ("twist", "auto")):
            simulation = pliant.ReducedSimulation(model, _STEP, reconstruction, method=method)
            simulation.apply_wrench(tip, force=(0, 0, 1.0))
            simulation.step()
            simulation.step(2)
            simulation.apply_impulse(tip, (0, 0, 1e-3))
            simulation.record(2)
            simulation.twist(tip)
            _read(simulation, "poses configuration energy")
            batch = pliant.ReducedBatch(model, _STEP, 4, reconstruction, method=method)
            batch.step(2)
            batch.state = batch.state
            batch.reset()
        pliant.ReducedSimulation(model, _STEP, "twist", threads=2).step()


def _blended() -> None:
    m = pliant.gallery.helix(20)
    tip = m.end_effectors[0]
    loads = [np.zeros(3), *np.diag([5.0, 10.0, 20.0])]
    models = [pliant.reduce(m, at=pliant.equilibrium(m, {tip: load})) for load in loads]
    for matrices, method in (("linear", "auto"), ("linear", "tvcg"), ("eigen", "tvcg")):
        model = pliant.blend(models, matrices=matrices)
        simulation = pliant.ReducedSimulation(model, _STEP, method=method)
        simulation.apply_wrench(tip, force=(0, 0, 1.0))
        simulation.step(2)
        _read(simulation, "poses configuration")
        batch = pliant.ReducedBatch(model, _STEP, 4, method=method)
        batch.step(2)
        batch.reset()


def _statics() -> None:
    gallery = pliant.gallery
    for m in (gallery.hand(), gallery.gripper(), gallery.helix(20), gallery.suspension()):
        for limits in (False, True):
            found = pliant.equilibrium(m, {m.end_effectors[0]: (0, 0, 1.0)}, limits=limits)
        found.compliance(m.end_effectors[0])
        found.frequencies(3)
        pliant.compliance_map(m, samples=2, ranges={"*": (-0.1, 0.1)})
        pliant.equilibria(m, [{}]).poses()
        pliant.assemble(m)
    with suppress(PliantError):  # no spring balances a torque: the error names the softest motion
        loose = _coupled(stiffness=0.0)
        pliant.equilibrium(loose, {"two": (0, 0, 0, 0, 1.0, 0)})


def _methods() -> None:
    from pliant.engines.constrained.gs17 import inverse
    from pliant.engines.constrained.gs17.stepper import METHODS, SOLVERS

    chain = np.ones(2), np.tile(np.eye(3), (2, 1, 1)), np.array([[-1, 0], [0, 1]]), *np.ones((3, 2, 3))
    for invert in (inverse.effective_inverse_full, inverse.effective_inverse_low_rank):
        invert(_STEP, *chain)
    for m in (pliant.gallery.cable(4, load=10.0), pliant.gallery.ladder(1), _coupled()):
        for method, solver in product(METHODS, SOLVERS):
            with suppress(PliantError):  # some are not for every joint
                simulation = pliant.ConstrainedSimulation(m, _STEP, stabilization=method, solver=solver)
                simulation.apply_wrench(m.body_names[-1], force=(0, 0, 1.0))
                simulation.step(2)
                _read(simulation, "poses energy")


def _coupled(stiffness: float = 1.0) -> pliant.Mechanism:
    """Two hinges with a coupling and a tendon between them."""
    b = pliant.Builder("coupled")
    for name, parent, x in (("one", "world", 0.0), ("two", "one", 0.1)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.hinge(name, parent, name, anchor=(x, 0, 0), axis=(0, 1, 0), stiffness=stiffness)
    b.couple({"one": 1.0, "two": -1.0})
    b.tendon("tendon", {"one": 1.0, "two": 1.0}, stiffness=stiffness)
    return b.build()


def _pictures() -> None:
    with suppress(MissingPackageError), tempfile.TemporaryDirectory() as folder:
        pliant.picture(pliant.gallery.hand(), Path(folder, "hand.png"))


# Two processes that take these in order seldom compile the same kernels at the same time: worlds need what the
# constrained and the reduced engine compile.
PARTS: dict[str, Callable[[], None]] = {
    "the constrained engine": _constrained,
    "the quasi-static engine": _quasistatic,
    "the adaptive engine": _adaptive,
    "reduced models": _reduced,
    "contact": _contact,
    "GS17's methods": _methods,
    "statics": _statics,
    "blended models": _blended,
    "pictures": _pictures,
}


def _read(what: Any, names: str) -> None:
    for name in names.split():
        getattr(what, name)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", PliantWarning)
    np.seterr(all="ignore")
    try:
        PARTS[sys.argv[1]]()
    except PliantError as error:
        sys.exit(str(error))
