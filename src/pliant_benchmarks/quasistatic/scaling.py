"""Molecules of 10 to 1,000,000 joints under one force: a step, assembly, memory. Each size in its own process."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

import pliant

from ..harness.process import call_apart, peak_memory
from ..harness.results import Progress, Row, Table, log_figure
from ..harness.timing import Timing, Turns, compare
from .linkages import build_linkage, push

__all__ = ["measure_molecule", "scaling"]

MUJOCO = 500  # joints of the largest molecule in MuJoCo, whose cost grows with depth squared
PINOCCHIO = 200  # and in Pinocchio, whose data take 64 bytes times the cube of the joints: 4 GB at 400


def scaling(quick: bool, progress: Progress) -> Table:
    """A step at tolerances 2^-3 and 2^-7, beside algorithms that compute all joints."""
    sizes = (100, 1_000, 10_000) if quick else (10, 100, 1_000, 10_000, 100_000, 1_000_000)
    rows, curves, missing = [], {}, []
    for size in sizes:
        progress(f"molecule of {size:,} joints")
        found = call_apart(measure_molecule, size)
        if isinstance(found, str):
            rows.append(Row(f"{size:,} joints", stable=f"pliant: {found}"))
            continue
        missing += [why for why in found.pop("missing") if why not in missing]
        times = {name: Timing(*values) for name, values in found.pop("times").items()}
        peers = {name: t for name, t in times.items() if not name.startswith("2^")}
        best = min(peers, key=lambda name: peers[name].median)
        row = compare(
            f"{size:,} joints, 2^-3",
            times["2^-3"].scaled(1e6),
            times[best].scaled(1e6),
            peer_name=f"{best}, all joints",
            target="grows with log n" if size >= 1_000 else "",
        )
        row.values = {**found, **{f"{name}, µs": 1e6 * t.median for name, t in times.items() if name != best}}
        rows.append(row)
        for name, t in times.items():
            label = f"pliant, {name}" if name.startswith("2^") else name
            curves.setdefault(label, []).append((size, 1e6 * t.median))
    return Table(
        "quasistatic",
        "scaling",
        "A local step on larger and larger molecules",
        "µs a step",
        rows,
        settings="One force in the middle, one thread, each size in a process of its own, in turns. Peers compute all "
        "joints: this engine's O(n) articulated-body algorithm (ABA), RL05's DCA on the same tree, MuJoCo's step up to "
        f"{MUJOCO} joints, Pinocchio's ABA up to {PINOCCHIO}; the fastest counts.",
        missing=missing,
        figures=[log_figure("scaling", "A step under one force", "joints", "µs", curves)],
    )


def measure_molecule(size: int, rounds: int = 9) -> dict[str, Any]:
    """Timings of a step, memory, and duration of the assembly of one molecule, in plain data."""
    m, body = build_linkage("molecule", size), size // 2
    start = perf_counter()
    s = push(m, 2.0**-3, [body])
    s.step()
    ready = perf_counter() - start
    tree = s._solver.tree
    out: dict[str, Any] = {
        "set up, s": ready,
        "depth of the tree": int(tree.model.tree.depth.max()),
        "MiB of arrays": tree.nbytes / 2**20,
        "MiB at most": peak_memory(),
    }
    turns, missing = Turns(), []
    s.step(5)
    turns.add("2^-3", lambda: s.step(10), steps=10)
    if size <= 100_000:  # a second tree of a million joints takes another gigabyte
        t = push(m, 2.0**-7, [body])
        t.step(5)
        turns.add("2^-7", lambda: t.step(10), steps=10)
    whole = push(m, 0.1, [body]) if size <= 100_000 else s
    whole._load()
    own, count = whole._solver.tree, 10 if size <= 10_000 else 1

    def divide() -> None:
        for _ in range(count):
            own.up()
            own.down()

    turns.add("ABA", lambda: whole._solver.step_aba(count), steps=count)
    if size <= 100_000:
        turns.add("DCA", divide, every=3, steps=count)
    if size <= MUJOCO:
        _add_mujoco(m, size, turns)
    if size <= PINOCCHIO:
        try:
            _add_pinocchio(m, turns)
        except ImportError as error:
            missing.append(f"Pinocchio is left out: {error} (`make peers` installs the peers)")
    for number in range(rounds):
        turns.round(number)
    out["joints computed"] = len(s.active)
    return {**out, "times": {name: list(turns[name]) for name in turns.names}, "missing": missing}


def _add_mujoco(m: pliant.Mechanism, size: int, turns: Turns) -> None:
    """Add ten steps from rest to the contenders."""
    import mujoco  # after memory was measured

    model = mujoco.MjModel.from_xml_string(m.to_mjcf())
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    data.xfrc_applied[size // 2 + 1, 0] = float(m.mass.mean())

    def step() -> None:
        data.qvel[:] = 0.0
        mujoco.mj_step(model, data, nstep=10)

    turns.add("MuJoCo", step, steps=10)


def _add_pinocchio(m: pliant.Mechanism, turns: Turns) -> None:
    """Add ten articulated-body solves to the contenders."""
    from ..peers.pinocchio import Tree

    theirs = Tree(m)
    q, zero = m.reference, np.zeros(m.nv)

    def step() -> None:
        for _ in range(10):
            theirs.acceleration(q, zero, zero)

    turns.add("Pinocchio", step, steps=10)
