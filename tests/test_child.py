"""A process of our own: messages there and back, a time limit, a sure end."""

from __future__ import annotations

import pytest

from pliant.child import Child

ECHO = """
import os, sys
from pliant.child import read_frame, write_frame
try:
    while True:
        write_frame(sys.stdout.buffer, read_frame(sys.stdin.buffer) + sys.argv[1].encode())
except EOFError:
    sys.exit(int(os.environ["CODE"]))
"""


def test_messages_come_back_and_the_end_is_orderly():
    child = Child(ECHO, "!", environment={"CODE": "7"})
    child.send(b"one", memoryview(b"two" * 100_000))
    assert child.receive() == b"one!"
    assert child.receive() == b"two" * 100_000 + b"!"
    assert child.running
    assert child.end(patience=60) == 7


@pytest.mark.parametrize("isolated", [False, True])
def test_modules_in_the_working_directory(tmp_path, isolated):
    (tmp_path / "spam.py").write_text("")
    child = Child("import spam", folder=str(tmp_path), isolated=isolated, quiet=True)
    child.process.wait()
    assert child.end() == int(isolated)


@pytest.mark.parametrize("silent", [False, True])
def test_prints_of_a_child_that_takes_its_pipes_are_no_messages(capfd, silent):
    code = f"""
import os, sys
from pliant.child import read_frame, take_pipes, write_frame
inward, outward = take_pipes(silent={silent})
print("spam", sys.stdin.read(), flush=True)
os.write(2, b"eggs")
write_frame(outward, read_frame(inward)[::-1])
"""
    child = Child(code)
    child.send(b"abc")
    assert child.receive() == b"cba"
    assert child.end(patience=60) == 0
    said = capfd.readouterr()
    assert said.out == ""
    assert ("spam" in said.err, "eggs" in said.err) == (not silent, not silent)


def test_time_limits_kill():
    child = Child("import time; time.sleep(600)", quiet=True, own_session=True)
    with child.time_limit(0.2), pytest.raises(EOFError):
        child.receive()
    assert child.expired
    assert child.end() != 0


def test_what_does_not_listen_is_killed():
    child = Child("import time; time.sleep(600)")
    assert child.end(patience=0.1) != 0
    assert not child.running
