"""`pliant view`: it starts, says where, obeys its options and gives clear errors."""

from __future__ import annotations

import re
import socket

import pliant


def test_says_where_and_ends(cli):
    said = cli("view", "gallery:two_link", "--port", "0", "--seconds", "0.2", "--engine", "reduced").stdout
    assert re.search(r"shows 'two_link.*' at http://127.0.0.1:\d+ \(Ctrl\+C ends\)", said)


def test_takes_scenes_and_end_effectors(cli):
    cli("view", "gallery:heavy_ball", "--port", "0", "--seconds", "0.1")
    cli("view", "gallery:hand", "--port", "0", "--seconds", "0.1", "-e", "thumb_tip")


def test_takes_worlds_and_blends(cli):
    said = cli("view", "gallery:grasp", "--port", "0", "--seconds", "0.1").stdout
    assert "shows 'grasp' at" in said
    said = cli("view", "gallery:grasp", "--port", "0", "--engine", "reduced", code=1).stderr
    assert "leave -e and --engine out" in said
    m = pliant.gallery.helix(5)
    pliant.blend([pliant.reduce(m)]).save("blend.npz")
    assert "shows 'helix 5' at" in cli("view", "blend.npz", "--port", "0", "--seconds", "0.1").stdout


def test_errors_are_one_line(cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = cli("view", "gallery:two_link", "--port", port, code=1).stderr
    assert said.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is in use" in said
    said = cli("view", "gallery:hand", "--port", "0", "-e", "thumb_tipp", code=1).stderr
    assert "thumb_tip" in said
    assert said.count("\n") == 1
