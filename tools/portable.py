"""Run the numerical tests as other processors would: `make portable`.

Each round takes another set of OpenBLAS kernels (numpy's and scipy's) and compiles pliant's kernels for another
instruction set: rounding differs in the last bits, answers must not. Arguments go to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ["spatial", "mechanism", "statics", "engines", "contact", "gallery", "scenes"]
TESTS = [f"tests/{name}" for name in [*FOLDERS, "test_world.py", "test_continuation.py"]]
V2 = "+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"
V3 = f"{V2},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
# OPENBLAS_CORETYPE, NUMBA_CPU_NAME, NUMBA_CPU_FEATURES, what a processor must have for it
ROUNDS = [
    ("Nehalem", "x86-64-v2", V2, "sse4_2"),
    ("Haswell", "x86-64-v3", V3, "avx2"),
    ("SkylakeX", "", "", "avx512vl"),
]


def main() -> None:
    flags = _flags()
    failed = []
    for core, processor, features, needed in ROUNDS:
        name = f"OPENBLAS_CORETYPE={core} NUMBA_CPU_NAME={processor or '(native)'}"
        if needed not in flags:
            print(f"--- {name}: left out, this processor has no {needed}", flush=True)
            continue
        print(f"--- {name}", flush=True)
        environment = {**os.environ, "OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"}
        if processor:
            environment |= {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features}
        tests = ["pytest", "-q", "-n", "auto", *(sys.argv[1:] or TESTS)]
        for arguments in (["pliant", "warm-up"], tests):
            if subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, env=environment).returncode:
                failed.append(name)
                break
    if failed:
        sys.exit("failed with " + "; ".join(failed))
    print("the same answers with all of them")


def _flags() -> set[str]:
    """Features of this processor, as Linux names them."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        sys.exit("make portable needs Linux: it looks at /proc/cpuinfo")
    return set(next((line for line in text.splitlines() if line.startswith("flags")), "").split())


if __name__ == "__main__":
    main()
