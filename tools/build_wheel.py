"""Build dist/: the sdist, and a wheel with kernels compiled for a portable target; `make wheel`.

    python tools/build_wheel.py [--skip-tests]

Kernels are compiled by `pliant warm-up` for the target below. Then the tests run with the same kernels: if a path that
users can take compiles anything, the build fails and names the kernel, which `pliant.warm_up` has to learn.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD, DIST = ROOT / "build", ROOT / "dist"
# Haswell (2013), Excavator, Zen and later; what every 64-bit Arm processor has
TARGETS = {
    "x86_64": (
        "x86-64-v3",
        "cmov cx8 fxsr mmx sse sse2 sse3 ssse3 sse4.1 sse4.2 cx16 sahf popcnt avx avx2 bmi bmi2 f16c fma lzcnt movbe "
        "xsave",
    ),
    "aarch64": ("generic", "neon"),
    "arm64": ("apple-m1", "neon"),
}


def main() -> None:
    machine = platform.machine()
    if machine not in TARGETS:
        sys.exit(
            f"there is no portable target for {machine}: add one to tools/build_wheel.py, or `pip wheel .`"
        )
    name, features = TARGETS[machine]
    cache, report = BUILD / "kernels", BUILD / "compiled.txt"
    shutil.rmtree(cache, ignore_errors=True)
    report.unlink(missing_ok=True)
    cache.mkdir(parents=True)
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": name,
        "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in features.split()),
        "NUMBA_CACHE_DIR": str(cache),
        "OPENBLAS_NUM_THREADS": "1",
    }
    _run([sys.executable, "-m", "pliant", "warm-up"], environment)
    folder = next(cache.glob("pliant/*"))
    compiled = sorted(folder.glob("*.kernel"))
    if "--skip-tests" not in sys.argv:
        environment["PLIANT_COMPILATION_REPORT"] = str(report)
        _run([sys.executable, "-m", "pytest", "-q", "-n", "auto"], environment)
        forgotten = _forgotten(report)
        if forgotten:
            sys.exit("not compiled by `pliant warm-up`, see src/pliant/warm_up.py:\n" + "\n".join(forgotten))
    shipped = BUILD / "shipped"
    shutil.rmtree(shipped, ignore_errors=True)
    target = shipped / folder.name
    target.mkdir(parents=True)
    for path in compiled:  # NAME-stamp-processor-signature.kernel
        shutil.copy(path, target / re.sub(r"-\w+-(\w+\.kernel)$", r"-any-\1", path.name))
    triple = subprocess.run(
        [sys.executable, "-c", "import llvmlite.binding as b; print(b.get_process_triple())"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    (target / "target.json").write_text(
        json.dumps({"triple": triple, "cpu": name, "features": features.split()})
    )
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "hatchling", "build", "-t", "sdist"], os.environ)
    _run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        {**os.environ, "PLIANT_WHEEL_KERNELS": str(shipped)},
    )
    for path in sorted(DIST.iterdir()):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB, {len(compiled)} kernels")


def _forgotten(report: Path) -> list[str]:
    """Kernels that the tests compiled on a path of pliant's own; tests that call kernels themselves do not count."""
    lines = report.read_text().splitlines() if report.exists() else []
    return sorted({line for line in lines if line.startswith("pliant.")})


def _run(command: list[str], environment: object) -> None:
    if subprocess.run(command, cwd=ROOT, env=environment).returncode:  # type: ignore[arg-type]
        sys.exit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    main()
