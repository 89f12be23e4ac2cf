"""Machine code of kernels: kept, found again, and compiled anew where it does not fit.

Runs are fresh processes where the environment, notices or what is shipped matter, else a kernel made anew in this one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pliant.compilation import njit, places, progress, stamps
from pliant.spatial import kernels

RUN = """
import numpy as np
from pathlib import Path
from pliant.compilation import places
{before}
from pliant.spatial import kernels
out = np.zeros(4)
kernels.quat_multiply(np.array([.5, .5, .5, .5]), np.array([.1, .7, -.7, .1]), out)
print(out.tobytes().hex())
"""


# children run without these settings, so that their machine code is of another processor than this process's own
SAME_PROCESSOR = pytest.mark.skipif(
    "NUMBA_CPU_NAME" in os.environ, reason="another processor is asked for here than in child processes"
)


def call(folder: Path, before: str = "", cache: Path | None = None, **environment: str):
    """Call a kernel in a fresh process: the bits it gives, the kernels compiled, stderr. The cache is in `folder`."""
    report = folder / "report.txt"
    report.unlink(missing_ok=True)
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "PLIANT"))}
    variables |= {
        "NUMBA_CACHE_DIR": str(cache or folder / "cache"),
        "PLIANT_COMPILATION_REPORT": str(report),
        **environment,
    }
    command = [sys.executable, "-c", RUN.replace("{before}", before)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    compiled = report.read_text().splitlines() if report.exists() else []
    return done.stdout.strip(), [line.split("\t")[1].rpartition(".")[2] for line in compiled], done.stderr


@pytest.fixture
def run(tmp_path):
    """Call a kernel in a fresh process with a cache of this test's own."""
    return partial(call, tmp_path)


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """A folder with a cache that holds one kernel, compiled from an empty one, and the bits that it gives."""
    folder = tmp_path_factory.mktemp("compiled")
    bits, compiled, _ = call(folder)
    assert compiled == ["quat_multiply"]
    return folder / "cache", bits


@pytest.fixture
def kernel(compiled_once, tmp_path):
    """The file of a kernel that was compiled, in a copy of its cache, and the bits that it gives."""
    cache, bits = compiled_once
    shutil.copytree(cache, tmp_path / "cache")
    (path,) = (tmp_path / "cache").rglob("*quat_multiply*.kernel")
    return path, bits


@pytest.fixture
def anew(kernel, tmp_path, monkeypatch):
    """Make the same kernel anew, with that cache, and call it: the bits it gives and whether it was compiled."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    remembered = places.local, places.shipped, stamps.stamp

    def anew():
        for function in remembered:
            function.cache_clear()
        before, out = len(progress.compiled()), np.zeros(4)
        made = njit(kernels.quat_multiply.py_func, error_model="numpy")
        made(np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.1, 0.7, -0.7, 0.1]), out)
        return out.tobytes().hex(), len(progress.compiled()) > before

    yield anew
    monkeypatch.undo()
    for function in remembered:
        function.cache_clear()


def test_kept(run, kernel):
    assert run()[:2] == (kernel[1], [])


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "garbage"])
def test_damaged_files_are_compiled_anew(anew, kernel, damage):
    path, bits = kernel
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(
            {"empty": b"", "cut": bytes(content[:-40]), "flipped": bytes(content)}.get(damage, b"x" * 500)
        )
    assert anew() == (bits, True)
    assert anew() == (bits, False)


@SAME_PROCESSOR
def test_a_changed_source_is_compiled_anew(anew, kernel, monkeypatch):
    assert anew() == (kernel[1], False)
    with monkeypatch.context() as changed:
        changed.setattr(stamps, "_text", lambda path: path.read_text() + "#")
        assert anew() == (kernel[1], True)
    assert anew() == (kernel[1], False)  # the other one is still there


def test_old_sources_are_forgotten(anew, tmp_path, monkeypatch):
    for word in "abcd":
        with monkeypatch.context() as changed:
            changed.setattr(stamps, "_text", lambda path, word=word: path.read_text() + f"#{word}")
            assert anew()[1]
    assert len(list((tmp_path / "cache").rglob("*quat_multiply*.kernel"))) == 3


EDITED = """
import numpy as np, sys
from pathlib import Path
from pliant.compilation import stamps
{before}
from pliant.spatial import kernels
source = Path(kernels.__file__)
if {edit}:
    text = source.read_text()
    head, mark, tail = text.partition("def quat_multiply(")
    assert mark
    line = next(one for one in tail.splitlines(True) if "out[0] = " in one)
    source.write_text(head + mark + tail.replace(line, line.replace("out[0] = ", "out[0] = 100.0 + "), 1))
out = np.zeros(4)
kernels.quat_multiply(np.array([1.0, 0, 0, 0]), np.array([1.0, 0, 0, 0]), out)
print(out[0])
"""


@pytest.mark.parametrize("guarded", [True, False])
def test_a_source_edited_after_it_was_imported_does_not_name_what_was_imported(tmp_path, guarded):
    """Else the next process takes machine code of the old source for that of the new one, as it does unguarded."""
    shutil.copytree(
        places._PACKAGE, tmp_path / "pliant", ignore=shutil.ignore_patterns("__pycache__", "shipped")
    )
    before = "" if guarded else "stamps._STARTED = float('inf')"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("PLIANT_COMPILATION_REPORT", None)  # what is compiled here is compiled on purpose

    def call(edit):
        command = [sys.executable, "-c", EDITED.replace("{before}", before).replace("{edit}", str(edit))]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    assert call(edit=True) == 1.0
    assert call(edit=False) == (101.0 if guarded else 1.0)


def test_another_processor(run, kernel, tmp_path):
    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    bits, compiled, _ = run(**settings)
    assert (bits, compiled) == (kernel[1], ["quat_multiply"])
    assert run(**settings)[1] == run()[1] == []


def test_nothing_writable(run, kernel):
    bits, compiled, said = run(cache=Path(os.devnull))
    assert (bits, compiled) == (kernel[1], ["quat_multiply"])
    assert "Traceback" not in said


def test_no_home(run, kernel):
    before = "import os; os.environ.pop('NUMBA_CACHE_DIR'); places._PACKAGE = Path('/a/b/c')"
    bits, compiled, said = run(before, HOME=os.devnull, XDG_CACHE_HOME="")
    assert (bits, compiled) == (kernel[1], ["quat_multiply"])
    assert "Traceback" not in said


# --- machine code that comes with the package


@pytest.fixture
def shipped(kernel, tmp_path):
    """A folder of machine code as it is in a wheel, and the line that makes pliant look there."""
    path, _ = kernel
    folder = tmp_path / "shipped" / path.parent.name
    folder.mkdir(parents=True)
    path.rename(folder / re.sub(r"-\w+-(\w+\.kernel)$", r"-any-\1", path.name))
    (folder / places.TARGET).write_text('{"triple": "TRIPLE", "features": []}'.replace("TRIPLE", _triple()))
    return folder, f"places._SHIPPED = Path({str(tmp_path / 'shipped')!r})"


def _triple() -> str:
    import llvmlite.binding as llvm

    return llvm.get_process_triple()


def test_shipped(run, kernel, shipped, tmp_path):
    assert run(shipped[1])[:2] == (kernel[1], [])
    assert run(shipped[1], cache=Path(os.devnull))[:2] == (kernel[1], [])
    assert not list((tmp_path / "cache").rglob("*.kernel"))  # nothing was written


@SAME_PROCESSOR
def test_shipped_from_another_folder(anew, kernel, shipped, tmp_path, monkeypatch):
    moved = tmp_path / "moved"
    shutil.move(shipped[0].parent, moved)
    for path in moved.rglob("*"):
        os.utime(path, (0, 0))
    monkeypatch.setattr(places, "_SHIPPED", moved)
    assert anew() == (kernel[1], False)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("numba", "the package has machine code for"),
        ("feature", "needs a processor with unobtainium"),
        ("triple", "needs a processor with sparc-sun-solaris"),
        ("target", "target.json is missing or damaged"),
        ("damage", "is damaged"),
    ],
)
def test_shipped_for_something_else_says_so_once(run, kernel, shipped, change, reason):
    folder, before = shipped
    target = folder / places.TARGET
    if change == "numba":
        folder.rename(folder.with_name("cpython-311-numba0.1.0-linux-x86_64"))
    elif change == "feature":
        target.write_text(target.read_text().replace("[]", '["unobtainium"]'))
    elif change == "triple":
        target.write_text('{"triple": "sparc-sun-solaris", "features": []}')
    elif change == "target":
        target.unlink()
    else:
        (path,) = folder.glob("*.kernel")
        path.write_bytes(path.read_bytes()[:-1])
    patient = f"{before}\nfrom pliant.compilation import progress; progress._PATIENCE = -1.0"
    bits, compiled, said = run(patient)
    assert (bits, compiled) == (kernel[1], ["quat_multiply"])
    assert said.count("\n") == 1
    assert said.startswith("pliant: compiling kernels of rigid motions, once, about ")
    assert reason in said
    if change == "numba":
        assert run(patient)[1:] == ([], "")  # then it is in the cache, and there is nothing to say


# --- stamps


def test_stamp_knows_imported_kernels():
    found = stamps._imported(stamps._source("pliant.engines.constrained._step"))
    names = {path.name for path in found}
    assert {"_border.py", "_aba.py", "_links.py", "_joints.py", "arrays.py"} <= names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import pliant.shapes\n", ["pliant.shapes"]),
        ("from pliant.spatial import kernels as se3\n", ["pliant.spatial.kernels"]),
        ("from pliant.mechanism.links import LINK_BALL, LINK_FIXED\n", ["pliant.mechanism.links"] * 2),
        (
            "from pliant.statics import (\n    tree_kernels,\n    inertia as i,\n)\n",
            ["pliant.statics.tree_kernels", "pliant.statics.inertia"],
        ),
        ("    from pliant.statics import loads\n", ["pliant.statics.loads"]),
        ("import numpy\nfrom plian import a\n", []),
    ],
)  # fmt: skip
def test_imports_are_read(text, expected):
    assert list(stamps._modules(text)) == expected


def test_private_kernels_refuse_python():
    from pliant.engines.constrained import _step

    with pytest.raises(TypeError, match="_solve_midpoint is for other kernels"):
        _step._solve_midpoint(1, 2, 3, 4, 5)
