"""Run the fast tests on every other Python of this machine that pliant supports: `make pythons`.

Interpreters of 3.11 to 3.13 are looked for on the PATH and among pyenv's. Each gets a virtual environment in
`.cache/pythons`, with the pinned versions of requirements/dev.txt. Arguments go to pytest. `tests/test_pythons.py` runs
the same tests on those interpreters that have all packages already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["MODULES", "VERSIONS", "find", "interpreters", "missing", "run_tests"]

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
FOLDER = ROOT / ".cache" / "pythons"  # of the virtual environments
PACKAGES = ("hypothesis", "mpmath", "mujoco-core", "numba", "numpy", "pytest", "rich", "scipy", "typer")
MODULES = ("hypothesis", "mpmath", "mujoco", "numba", "numpy", "pytest", "scipy")
TESTS = [
    *(f"tests/{name}" for name in ("spatial", "mechanism", "formats/test_compiler.py", "test_structure.py")),
    *(f"tests/test_{name}.py" for name in ("checks", "text", "files", "child")),
]


def interpreters(version: str) -> Iterator[Path]:
    """Interpreters of a version, such as "3.12": the virtual environment made here, on the PATH, pyenv's."""
    environment = _python(FOLDER / version)
    found = [environment] if environment.exists() else []
    found += [Path(folder) / f"python{version}" for folder in os.get_exec_path()]
    found += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"), reverse=True)
    for path in found:
        # pyenv's shims fail for versions that are not selected.
        if path.is_file() and _ask(path, "import sys; print('%d.%d' % sys.version_info[:2])") == version:
            yield path


def find(version: str) -> tuple[Path | None, str]:
    """An interpreter of a version with all packages that the tests need; or None, and why there is none."""
    reason = f"there is no Python {version} on this machine"
    for path in interpreters(version):
        absent = missing(path)
        if not absent:
            return path, ""
        reason = f"'{path}' has no {', '.join(absent)}; `make pythons` makes environments that have"
    return None, reason


def missing(python: Path) -> list[str]:
    """Modules of `MODULES` that an interpreter cannot find."""
    code = f"from importlib.util import find_spec; print(*(m for m in {MODULES} if find_spec(m) is None))"
    return (_ask(python, code) or "").split()


def run_tests(python: Path, arguments: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run the fast tests on an interpreter; what they print is in `stdout`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PLIANT_COMPILATION_REPORT", None)  # kernels may be compiled for this Python here
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _python(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _ask(python: Path, code: str) -> str | None:
    """What an interpreter prints; None if it fails."""
    try:
        done = subprocess.run([python, "-P", "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.strip()


def _make_environment(python: Path, version: str) -> Path:
    """A virtual environment of an interpreter, with the pinned versions of what the tests need."""
    folder = FOLDER / version
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    if not _python(folder).exists():
        subprocess.run([uv, "venv", "--quiet", "--python", str(python), str(folder)], check=True)
    pins = ROOT / "requirements" / "dev.txt"
    install = [uv, "pip", "install", "--quiet", "--python", str(_python(folder)), "--constraints", str(pins)]
    subprocess.run([*install, *PACKAGES], check=True)
    return _python(folder)


def main() -> None:
    results = {}
    for version in VERSIONS:
        if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
            results[version] = "this one: `make test` runs on it"
            continue
        base = next(interpreters(version), None)
        if base is None:
            results[version] = "not on this machine"
            continue
        print(f"--- Python {version}: {base}", flush=True)
        done = run_tests(_make_environment(base, version), sys.argv[1:])
        print(done.stdout, flush=True)
        results[version] = "passed" if done.returncode == 0 else "FAILED"
    for version, result in results.items():
        print(f"Python {version}: {result}")
    if "FAILED" in results.values():
        sys.exit(1)


if __name__ == "__main__":
    main()
