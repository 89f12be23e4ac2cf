"""What a user waits for: importing, building a huge mechanism, the first equilibrium with a cold compile cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from measure import show

SNIPPETS = {
    "import numpy (for comparison)": "import numpy",
    "import pliant": "import pliant",
    "molecule(50_000) built and checked": "import pliant; pliant.gallery.helix(3); mark(); "
    "pliant.gallery.molecule(50_000)",
    "millipede() built and checked": "import pliant; pliant.gallery.helix(3); mark(); pliant.gallery.millipede()",
    "first equilibrium, compiled code cached": "import pliant; m = pliant.gallery.helix(50); mark(); "
    "pliant.equilibrium(m, {m.end_effectors[0]: (0, 0, -100.0)})",
}
TIMER = """
import resource, time
start = time.perf_counter()
def mark():
    global start, low
    start = time.perf_counter()
    low = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
low = 0
{snippet}
print(time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - low) / 1024)
"""


def _measure(snippet: str, cache: str, rounds: int = 5) -> tuple[float, float]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
    results = []
    for _ in range(rounds):
        command = [sys.executable, "-c", TIMER.format(snippet=snippet)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        results.append(tuple(map(float, done.stdout.split())))
    return min(r[0] for r in results), max(r[1] for r in results)


def run() -> dict[str, dict[str, float]]:
    """Best of five fresh processes each; the cold compile once."""
    results = {}
    with tempfile.TemporaryDirectory() as cache:
        snippet = SNIPPETS["first equilibrium, compiled code cached"]
        seconds, memory = _measure(snippet, cache, rounds=1)
        results["first equilibrium, everything to compile"] = {"seconds": seconds, "MB": memory}
        for name, code in SNIPPETS.items():
            seconds, memory = _measure(code, cache)
            results[name] = {"seconds": seconds, "MB": memory}
    show(
        "start",
        ["", "seconds", "memory added (MB)"],
        [[n, r["seconds"], r["MB"]] for n, r in results.items()],
    )
    return results
