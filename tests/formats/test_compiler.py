"""The compiler's process: quiet, restarted when it dies, and never in the way."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pliant.errors import FormatError
from pliant.formats import compiler, load

SPHERE = '<worldbody><body name="{0}"><joint/><geom size=".1"/></body></worldbody>'


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "m.xml"
    file.write_text(f"<mujoco>{SPHERE.format('a')}</mujoco>")
    return file


def test_importing_formats_imports_neither_mujoco_nor_numba():
    code = "import sys, pliant.formats; sys.exit(any(name in sys.modules for name in ('mujoco', 'numba', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_crash_is_an_error_and_the_next_file_loads(model, monkeypatch):
    load(model)
    process = compiler._running
    assert process is not None
    request = compiler._Compiler.request

    def die(self, text, assets):
        self.process.kill()
        self.process.wait()
        return request(self, text, assets)

    with monkeypatch.context() as patch:
        patch.setattr(compiler._Compiler, "request", die)
        with pytest.raises(FormatError, match="crashed on this file"):
            load(model)
    assert load(model).body_names == ("a",)
    assert compiler._running is not process


def test_an_endless_compilation_is_ended(model, monkeypatch):
    load(model)
    process = compiler._running
    assert process is not None
    monkeypatch.setattr(compiler, "TIME_LIMIT", 0.5)

    def wait(self, text, assets):
        return self.receive()  # a reply that never comes

    with monkeypatch.context() as patch:
        patch.setattr(compiler._Compiler, "request", wait)
        with pytest.raises(FormatError, match=r"did not finish within 0\.5 s"):
            load(model)
    monkeypatch.setattr(compiler, "TIME_LIMIT", 60)
    assert load(model).body_names == ("a",)


def test_names_are_not_formats(tmp_path):
    """MuJoCo 4.0 hands the name of an actuator's class to printf as the format, and aborts on this one."""
    file = tmp_path / "m.xml"
    text = '<mujoco><worldbody><body name="100%{0}"><joint name="j"/><geom size=".1"/></body></worldbody>{1}</mujoco>'
    file.write_text(text.format("%n", '<actuator><motor joint="j" class="%s%n%s"/></actuator>'))
    with pytest.raises(FormatError, match="%s%n%s"):
        load(file)
    file.write_text(text.format("%n", ""))
    assert load(file).body_names == ("100%%n",)


def test_nothing_is_printed_or_left_behind(tmp_path, model):
    """MuJoCo warns about this model on the terminal and in a log file in the working directory."""
    (tmp_path / "m.xml").write_text(
        '<mujoco><worldbody><body><joint name="j" range="0 0"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    code = "import sys; from pliant.formats import load; load(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(model)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == ""
    assert [f.name for f in tmp_path.iterdir()] == ["m.xml"]


def test_modules_in_the_working_directory_are_not_run(tmp_path, model):
    for name in ("mujoco", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\nraise SystemExit(3)\n")
    code = "import sys; from pliant.formats import load; load(sys.argv[1])"
    subprocess.run([sys.executable, "-P", "-c", code, str(model)], cwd=tmp_path, check=True)
    assert not (tmp_path / "ran").exists()


def test_threads_share_one_process(tmp_path):
    files = []
    for i in range(16):
        files.append(tmp_path / f"{i}.xml")
        files[-1].write_text(f"<mujoco>{SPHERE.format(f'body{i}')}</mujoco>")
    with ThreadPoolExecutor(8) as pool:
        names = [m.body_names[0] for m in pool.map(load, files)]
    assert names == [f"body{i}" for i in range(16)]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_one_of_its_own(model):
    load(model)
    process = compiler._running
    assert process is not None
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_first_body, [model] * 4) == ["a"] * 4
    assert load(model).body_names == ("a",)
    assert compiler._running is process
    assert os.path.isdir(process.folder)


def _first_body(file):
    return load(file).body_names[0]


def test_lines_are_those_of_the_file(tmp_path):
    (tmp_path / "part.xml").write_text(
        '<mujoco>\n\n\n<worldbody>\n<body><joint/>\n<geom size="x"/></body></worldbody></mujoco>'
    )
    file = tmp_path / "m.xml"
    file.write_text(
        '<mujoco>\n  <!-- a comment\n  of two lines -->\n  <worldbody>\n    <geom sise="1"/>\n  </worldbody>\n</mujoco>'
    )
    with pytest.raises(FormatError, match=r"m\.xml'.*sise.*line 5"):
        load(file)
    file.write_text('<mujoco>\n<include file="part.xml"/></mujoco>')
    with pytest.raises(FormatError, match=r"line 6 of '.*part\.xml'"):
        load(file)
    file.write_text("<mujoco>\n<worldbody>\n<body>")
    with pytest.raises(FormatError, match=r"m\.xml', line 3: not well-formed"):
        load(file)
