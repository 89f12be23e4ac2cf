"""First results from the wheel in dist/, as a new user has them: `make wheel-check`.

A clean environment, an empty home, nothing writable but the folder it runs in: every engine and a world, in fresh
processes. Fails if anything is compiled or a first result takes longer than the limit.

    python tools/check_wheel.py [--limit SECONDS] [--online]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = {
    "pliant --version": None,
    "pliant info gallery:hand": None,
    "pliant reduce gallery:hand": None,
    "equilibrium": 'pliant.equilibrium(pliant.gallery.helix(50), {"link50": (0, 0, -100)})',
    "equilibrium with loops": 'pliant.equilibrium(pliant.gallery.gripper(), {"left_pad": (1, 0, 0)})',
    "reduced": "pliant.ReducedSimulation(pliant.reduce(pliant.gallery.hand()), 1e-3).step()",
    "constrained": "pliant.ConstrainedSimulation(pliant.gallery.hand(), 1 / 60).step()",
    "constrained with loops": "pliant.ConstrainedSimulation(pliant.gallery.gripper(), 1 / 60).step()",
    "quasistatic": "pliant.QuasistaticSimulation(pliant.gallery.molecule(1000), 1e-3).step()",
    "adaptive": "pliant.AdaptiveSimulation(pliant.gallery.molecule(1000), 1e-3).step()",
    "a world": "pliant.scenes.grasp().step()",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds that a first result may take")
    parser.add_argument(
        "--online", action="store_true", help="install all dependencies instead of the locked ones"
    )
    asked = parser.parse_args()
    wheels = sorted((ROOT / "dist").glob("pliant-*cp*.whl"))
    if not wheels:
        sys.exit("there is no wheel with machine code in dist/: make wheel")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = environment(place / "venv", wheels[-1], asked.online)
        (place / "empty").mkdir()
        print(f"{wheels[-1].name}, {wheels[-1].stat().st_size / 1e6:.1f} MB", flush=True)
        slow = [name for name in RESULTS if not _first(python, name, place, asked.limit)]
    if slow:
        sys.exit(f"compiled, failed or slower than {asked.limit:g} s: {', '.join(slow)}")


def environment(folder: Path, wheel: Path, online: bool = False) -> Path:
    """A clean environment with a wheel or sdist of pliant in it, and this environment's other packages; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    if online:
        subprocess.run([*pip, f"{wheel}[all]"], check=True)
        return python
    site = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    # a path in a .pth file is searched, but .pth files in it are not: this environment's own pliant stays out
    Path(site, "locked.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    subprocess.run([*pip, "--no-index", "--no-deps", "--no-build-isolation", str(wheel)], check=True)
    return python


def _first(python: Path, name: str, place: Path, limit: float) -> bool:
    """Whether a first result comes in time, with nothing compiled."""
    code = RESULTS[name]
    report = place / "compiled.txt"
    report.unlink(missing_ok=True)
    command = [str(python), "-c", f"import pliant\n{code}"]
    if code is None:
        command = [str(python.with_name("pliant")), *name.split()[1:]]
    hidden = ("PYTHON", "NUMBA", "PLIANT", "XDG")
    variables = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    variables |= {"HOME": os.devnull, "PLIANT_COMPILATION_REPORT": str(report)}  # no home, not even for root
    begin = time.monotonic()
    done = subprocess.run(command, cwd=place / "empty", env=variables, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    compiled = len(report.read_text().splitlines()) if report.exists() else 0
    print(f"{name:28s} {seconds:5.2f} s, {compiled} kernels compiled", flush=True)
    if done.returncode:
        print(done.stderr.strip()[-500:])
    return not done.returncode and not compiled and seconds < limit


if __name__ == "__main__":
    main()
