"""Ladders: steps that compute all joints of a mechanism with loops, by elimination and by divide and conquer."""

from __future__ import annotations

from time import perf_counter

import pliant

from ..harness.results import Progress, Row, Table
from ..harness.timing import compare, time_in_turns

__all__ = ["loops"]

H = 0.01  # s


def loops(quick: bool, progress: Progress) -> Table:
    """Set-up, first step and steps of ladders under their weight."""
    rows: list[Row] = []
    for cells in (16, 64) if quick else (64, 256, 1024):
        progress(f"a quasi-static step of ladder({cells})")
        m = pliant.gallery.ladder(cells)
        pliant.QuasistaticSimulation(m, H).step()  # compiled
        start = perf_counter()
        s = pliant.QuasistaticSimulation(m, H)
        made = perf_counter()
        s.step()
        stepped = perf_counter()
        tree = pliant.QuasistaticSimulation(m, H)._solver.tree

        def divide(tree=tree) -> None:
            tree.up()
            tree.down()

        times = time_in_turns({"pliant": s.step, "DCA": divide}, 5 if quick else 11)
        row = compare(
            f"ladder({cells})",
            times["pliant"].scaled(1e3),
            times["DCA"].scaled(1e3),
            peer_name="DCA on the same tree",
        )
        row.values = {
            "joints": m.joint_count,
            "loops": m.topology.loops,
            "first step, ms": 1e3 * (stepped - made),
            "setting up, ms": 1e3 * (made - start),
        }
        rows.append(row)
    return Table(
        "quasistatic",
        "quasistatic-loops",
        "All joints of ladders with closed loops",
        "ms a step",
        rows,
        settings="Steps of 10 ms under the ladder's weight, one thread, processor time. Peer: RL05's divide and "
        "conquer (DCA), which merges clusters with themselves.",
    )
