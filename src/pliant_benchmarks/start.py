"""Suite of start-up: imports, first results with and without a compile cache, building, memory, in fresh processes.

Memory is the growth of the resident set to its peak (Linux; elsewhere not measured).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec

import numpy as np

from .harness.results import Progress, Row, Table
from .harness.timing import Timing, compare, summarize

__all__ = ["PARTS", "building", "first_results", "imports", "large", "memory"]

TIMER = """
import time
def memory():  # MB, now and peak since the mark; the peak that the system reports survives exec
    try:
        words = open("/proc/self/status").read().split()
    except OSError:
        return float("nan"), float("nan")
    return tuple(int(words[words.index(key) + 1]) / 1024 for key in ("VmRSS:", "VmHWM:"))
def mark():
    global start, low
    try:
        open("/proc/self/clear_refs", "w").write("5")  # resets the peak
    except OSError:
        pass
    low = memory()[0]
    start = time.perf_counter()
mark()
CODE
print(time.perf_counter() - start, memory()[1] - low)
"""
FIRST = {  # first result of each engine: preparation, timed code
    "equilibrium of helix(50)": (
        "import pliant; m = pliant.gallery.helix(50)",
        "pliant.equilibrium(m, {m.end_effectors[0]: (0, 0, -100.0)})",
    ),
    "reduce(helix(50)) and a step": (
        "import pliant; m = pliant.gallery.helix(50)",
        "pliant.ReducedSimulation(pliant.reduce(m), 0.001).step()",
    ),
    "a constrained step of helix(50)": (
        "import pliant; m = pliant.gallery.helix(50)",
        "pliant.ConstrainedSimulation(m, 0.001).step()",
    ),
    "a quasi-static step of helix(50)": (
        "import pliant; m = pliant.gallery.helix(50)",
        "pliant.QuasistaticSimulation(m, 0.001).step()",
    ),
}
SMALL = 2.0  # MB; smaller growth may have reused memory that loading had freed
DEEPEST = 490  # bodies of the longest chain that MuJoCo reads
IMPORTS = {
    "MuJoCo": "mujoco",
    "Pinocchio": "pinocchio",
    "DART": "dartpy",
    "Exudyn": "exudyn",
    "Drake": "pydrake.all",
}


def _fresh(code: str, rounds: int, cache: str | None = None) -> tuple[Timing, float]:
    """Wall-clock time and largest memory growth, MB, of a piece of code in fresh processes."""
    environment = {key: value for key, value in os.environ.items() if key != "PLIANT_COMPILATION_REPORT"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    found = []
    for _ in range(rounds):
        command = [sys.executable, "-c", TIMER.replace("CODE", code)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200)
        if done.returncode:
            raise RuntimeError(f"{code}: {done.stderr.strip().splitlines()[-1]}")
        found.append([float(word) for word in done.stdout.split()[-2:]])
    seconds, megabytes = np.array(found).T
    return summarize(seconds.tolist()), float(megabytes.max())


def imports(quick: bool, progress: Progress) -> Table:
    """Import of pliant beside imports of its peers."""
    rounds = 2 if quick else 7
    progress("import pliant")
    ours, memory = _fresh("import pliant", rounds)
    numpy = _fresh("import numpy", rounds)[0].median
    rows, missing = [], []
    for name, module in IMPORTS.items():
        if quick and name != "MuJoCo":
            continue
        if find_spec(module.partition(".")[0]) is None:
            missing.append(f"{name}: not installed (`make peers`)")
            continue
        progress(f"import {module}")
        theirs, more = _fresh(f"import {module}", rounds)
        row = compare("import pliant", ours, theirs, peer_name=f"import {module}", target="under 0.4")
        row.values = {"MB": memory, "peer's MB": more, "numpy alone, s": numpy}
        rows.append(row)
    settings = "Wall clock of fresh processes. pliant imports numba and MuJoCo only when they are needed."
    return Table(
        "start",
        "import",
        "Importing",
        "s",
        rows or [compare("import pliant", ours)],
        settings=settings,
        missing=missing,
    )


def first_results(quick: bool, progress: Progress) -> Table:
    """First result of a process, with and without compiled code in the cache."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for name, (before, code) in FIRST.items():
            if quick and "reduce" not in name:
                continue
            cold = None
            if not quick:
                progress(f"{name}, everything to compile")
                cold = _fresh(f"{before}\nmark()\n{code}", 1, cache)[0].median
            progress(f"{name}, compiled")
            warm, memory = _fresh(f"{before}\nmark()\n{code}", 1 if quick else 7, None if quick else cache)
            row = compare(name, warm, values={"MB": memory})
            row.values["s with everything to compile"] = cold
            row.note = "compiling not measured with --quick" if quick else ""
            rows.append(row)
    settings = "Wall clock of fresh processes, without the import; compiled code is in numba's cache."
    return Table("start", "first-results", "The first result of a process", "s", rows, settings=settings)


def building(quick: bool, progress: Progress) -> Table:
    """Construction and validation of huge mechanisms."""
    rows = []
    for name, target in (("millipede()", ""), ("molecule(50_000)", "under 2 s and 300 MB")):
        if quick and target:
            continue
        progress(f"building {name}")
        code = (
            f"import pliant; pliant.gallery.helix(3)\nmark()\nm = pliant.gallery.{name}\nassert m.body_count"
        )
        ours, memory = _fresh(code, 1 if quick else 5)
        rows.append(compare(name, ours, target=target, values={"MB": memory}))
    return Table("start", "building", "Huge mechanisms, built and checked", "s", rows, settings="Wall clock.")


LARGE = {  # steps on the way from arrays to motion: preparation, timed code, target at a million joints
    "build bicycle_chain": ("", "m = gallery.bicycle_chain({n})", "10 s, 3 GB"),
    "build molecule": ("", "m = gallery.molecule({n})", "10 s, 3 GB"),
    "pack molecule, constrained": (
        "m = gallery.molecule({n}); m.links",
        "pack_constrained(m, np.zeros(3))",
        "5 s",
    ),
    "pack molecule, quasi-static": ("m = gallery.molecule({n}); m.links", "pack_quasistatic(m)", "5 s"),
    "save molecule as .npz": ("m = gallery.molecule({n})", "m.save(file)", "10 s with loading"),
    "load molecule from .npz": ("gallery.molecule({n}).save(file)", "m = pliant.load(file)", ""),
    "a step of bicycle_chain, constrained": (
        "s = pliant.ConstrainedSimulation(gallery.bicycle_chain({n}), 0.01); s.step()",
        "s.step()",
        "0.84 s a solve",
    ),
}
LARGE_START = """
import tempfile
import numpy as np
import pliant
from pliant import gallery
from pliant.engines.constrained.packing import pack as pack_constrained
from pliant.engines.quasistatic.packing import pack as pack_quasistatic
folder = tempfile.TemporaryDirectory()
file = folder.name + "/m.npz"
m = gallery.molecule(20)
pliant.ConstrainedSimulation(m, 0.01).step()
pliant.QuasistaticSimulation(m, 0.01).step()
m.save(file)
pliant.load(file)
del m
"""


def large(quick: bool, progress: Progress) -> Table:
    """Mechanisms of 100,000 and 1,000,000 joints: built and checked, packed, saved, loaded."""
    rows = []
    for size in (100_000,) if quick else (100_000, 1_000_000):
        for name, (before, code, target) in LARGE.items():
            progress(f"{name}, {size:,} joints")
            prepared = LARGE_START + before.format(n=size)
            ours, memory = _fresh(f"{prepared}\nmark()\n{code.format(n=size)}", 1 if quick else 3)
            aim = f"under {target}" if target and size == 1_000_000 else ""
            rows.append(compare(f"{name}, {size:,} joints", ours, target=aim, values={"MB": memory}))
    settings = (
        "Wall clock and growth of the resident set to its peak, in fresh processes, everything compiled."
    )
    return Table("start", "large", "Mechanisms of up to a million joints", "s", rows, settings=settings)


def memory(quick: bool, progress: Progress) -> Table:
    """Resident memory of a simulation after a step, beside MuJoCo's."""
    theirs = (
        "import mujoco, pliant\nxml = pliant.gallery.{0}.to_mjcf()\nmujoco.MjData(mujoco.MjModel.from_xml_string("
        "pliant.gallery.helix(3).to_mjcf()))\nmark()\nm = mujoco.MjModel.from_xml_string(xml)\n"
        "d = mujoco.MjData(m)\nmujoco.mj_step(m, d)"
    )
    engines = {
        "reduced": "pliant.ReducedSimulation(pliant.reduce({0}), 0.001)",
        "constrained": "pliant.ConstrainedSimulation({0}, 0.001)",
        "quasistatic": "pliant.QuasistaticSimulation({0}, 0.001)",
    }
    rows = []
    for links in (400,) if quick else (400, 3000):
        made = f"helix({links})"
        progress(f"memory of {made}")
        peer = _fresh(theirs.format(made), 1)[1] if links < DEEPEST else None
        for engine, code in engines.items():
            if quick and engine != "reduced":
                continue
            ready = code.format("pliant.gallery.helix(3)")
            used = code.format(f"pliant.gallery.{made}")
            ours = _fresh(f"import pliant\n{ready}.step()\nmark()\ns = {used}\ns.step()", 1)[1]
            row = Row(f"{made}, {engine}", ours, peer, peer_name="MuJoCo" if peer else "")
            row.ratio = peer / ours if peer and ours > SMALL else None
            row.note = "" if peer else f"MuJoCo reads chains of up to {DEEPEST} bodies"
            rows.append(row)
    settings = (
        "Growth of the resident set from a loaded and compiled library to a simulation that has made a step. Memory "
        "that was freed while loading is used again, so a megabyte or two may be missing."
    )
    return Table("start", "memory", "Memory of a mechanism in motion", "MB", rows, settings=settings)


PARTS = (imports, first_results, building, large, memory)
