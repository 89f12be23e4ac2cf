"""Messages of clients: malformed ones are refused before they are stored, with few lines in the log."""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import pliant

viser = pytest.importorskip("viser")

import msgspec  # noqa: E402
from websockets.sync.client import connect  # noqa: E402
from websockets.typing import Subprotocol  # noqa: E402

from pliant.viewer import messages  # noqa: E402
from pliant.viewer.messages import Inspector, Sender  # noqa: E402
from pliant.viewer.opening import LARGEST_FILE  # noqa: E402

PROTOCOL = Subprotocol(f"viser-v{viser.__version__}")
MESSAGES = 1000  # random ones, to a live view
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def shown():
    with pliant.view(pliant.gallery.arm(), port=0, block=False) as view:
        yield view


def pack(kind, **content) -> bytes:
    return msgspec.msgpack.encode({"type": kind, **content})


def update(uuid, value, word="value") -> bytes:
    return pack("GuiUpdateMessage", uuid=uuid, updates={word: value})


def camera(**changes) -> bytes:
    sound = {
        "wxyz": (1.0, 0.0, 0.0, 0.0),
        "position": (1.0, 1.0, 1.0),
        "fov": 1.0,
        "near": 0.1,
        "far": 100.0,
        "image_height": 100,
        "image_width": 100,
        "look_at": (0.0, 0.0, 0.0),
        "up_direction": (0.0, 0.0, 1.0),
    }
    return pack("ViewerCameraMessage", **{**sound, **changes})


def test_what_is_refused_and_why(shown):
    page = shown.page
    speed, buttons = page._speed._impl, page._buttons._impl
    inspector = Inspector()
    inspector.find_control = shown._control
    sound = [
        camera(),
        update(speed.uuid, speed.value),
        update(speed.uuid, int(speed.props.max)),
        update(buttons.uuid, "Step"),
    ]
    assert [inspector.refusal(data, Sender()) for data in sound] == [None] * len(sound)
    refused = {
        "text instead of bytes": "hello",
        "not understood": b"\xc1\x00",
        "not understood: 'type'": msgspec.msgpack.encode({}),
        "not understood: 'Nothing'": pack("Nothing"),
        "not understood: Expected `float`": camera(fov="wide"),
        "not understood: Expected `array`": camera(position=None),
        "not understood: Object missing": pack("ViewerCameraMessage", fov=1.0),
        "ViewerCameraMessage: the number nan": camera(position=(NAN, 0.0, 0.0)),
        "ViewerCameraMessage: the number inf": camera(fov=INF),
        "ViewerCameraMessage: the number 1e+300": camera(look_at=(0.0, 1e300, 0.0)),
        "nested too deep": pack(
            "GuiUpdateMessage", uuid="x", updates={"value": [[[[[[[[[[[[[[1]]]]]]]]]]]]]]}
        ),
        "a text of 200000 characters": update(buttons.uuid, "x" * 200_000),
        "no such control": update("nobody", 1.0),
        "not a client's to change": update(speed.uuid, 5.0, "max"),
        "a value like": update(speed.uuid, "fast"),
        "not True": update(speed.uuid, True),
        "not None": update(speed.uuid, None),
        "a number from": update(speed.uuid, 1e9),
        "one of the options": update(buttons.uuid, "Explode"),
    }
    for why, data in refused.items():
        assert why in (inspector.refusal(data, Sender()) or ""), why


def test_values_of_the_tolerance_are_checked_and_those_of_a_slider_that_is_gone_are_refused():
    m = pliant.gallery.molecule(300)
    with pliant.view(pliant.AdaptiveSimulation(m, 1 / 60), port=0, block=False) as view:
        inspector, ask = Inspector(), view.runner.ask
        page: Any = view.page
        inspector.find_control = view._control
        slider = page._tolerance._impl
        assert (slider.value, slider.props.min, slider.props.max) == (-2.0, -5.0, 1.0)
        for sound in (-5.0, 1, 0.5):
            assert inspector.refusal(update(slider.uuid, sound), Sender()) is None
        for why, wrong in (
            ("a number from -5", -6.0),
            ("a number from -5", 1e9),
            ("the number nan", NAN),
            ("the number inf", INF),
            ("a value like -2", "1e-3"),
            ("a value like -2", True),
            ("a value like -2", None),
            ("a value like -2", [1.0]),
        ):
            assert why in (inspector.refusal(update(slider.uuid, wrong), Sender()) or ""), wrong
        ask(lambda: view.session.set_engine("constrained"))
        ask(page.show_controls)
        assert not page._adaptive.visible
        ask(lambda: view.session.set_engine("quasistatic"))
        ask(page.show_controls)
        assert page._adaptive.visible
        assert page._tolerance._impl.uuid != slider.uuid
        assert "no such control" in (inspector.refusal(update(slider.uuid, -2.0), Sender()) or "")


def start(control, transfer="t", size: Any = 10, parts: int = 1) -> bytes:
    words = {"source_component_uuid": control, "transfer_uuid": transfer, "filename": "a.xml"}
    return pack("FileTransferStartUpload", **words, mime_type="", part_count=parts, size_bytes=size)


def part(control, transfer="t", index: int = 0, content: Any = b"0123456789") -> bytes:
    words = {"source_component_uuid": control, "transfer_uuid": transfer}
    return pack("FileTransferPart", **words, part_index=index, content=content)


def test_files_that_are_refused(shown):
    """One at a time per connection, no larger than said, said no larger than allowed, to the button for files."""
    page = shown.page
    inspector = Inspector()
    inspector.find_control = shown._control
    button, speed = page._upload._impl.uuid, page._speed._impl.uuid

    def refused(*sent):
        sender = Sender()
        return [inspector.refusal(data, sender) for data in sent][-1] or ""

    assert refused(start(button), part(button)) == ""
    assert refused(start(button, size=2048, parts=2), part(button, index=1, content=bytes(2048))) == ""
    assert refused(start(button), part(button), start(button, "u"), part(button, "u")) == ""
    assert refused(start(button, size=0, parts=0), start(button, "u")) == ""
    refusals = {
        "no such place": (start(speed),),
        "no such place for": (start("nobody"),),
        "another file": (start(button), start(button, "u")),
        f"up to {LARGEST_FILE}": (start(button, size=LARGEST_FILE + 1, parts=1),),
        "a file of -1 bytes": (start(button, size=-1),),
        "10 bytes in 0 parts": (start(button, parts=0),),
        "10 bytes in 3 parts": (start(button, parts=3),),
        "in 1000000000 parts": (start(button, size=LARGEST_FILE, parts=10**9),),
        "a part of no file": (part(button),),
        "of no file": (start(button), part(button, "other")),
        "part of no": (start(button), part(button, index=1)),
        "part of": (start(button), part(button, index=-1)),
        "a part": (start(button, size=2048, parts=2), part(button), part(button)),
        "a file longer": (start(button), part(button, content=bytes(11))),
        "Expected `int`": (start(button, size="large"),),
        "Expected `bytes`": (start(button), part(button, content=7)),
        "a value like": (update(button, {"name": "a.xml", "content": b""}),),
    }
    for why, sent in refusals.items():
        assert why in refused(*sent), why


def test_lines_in_the_log_are_short_and_few(caplog, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(messages.time, "monotonic", lambda: now[0])
    inspector = Inspector()
    with caplog.at_level(logging.WARNING, "pliant.viewer"):
        for i in range(100):
            inspector.tell(f"reason {i}")
        assert len(caplog.messages) == messages._LINES
        now[0] += messages._SECONDS + 1
        inspector.tell("again")
    assert caplog.messages[-1].endswith(f"again ({100 - messages._LINES} more were refused before)")
    assert all("\n" not in line for line in caplog.messages)


def test_a_live_view_stores_nothing_malformed_and_goes_on(shown, caplog, capfd):
    page, session = shown.page, shown.session
    speed = page._speed._impl
    before, rng = (speed.value, session.speed), np.random.default_rng(0)
    junk = [NAN, INF, 1e300, "x", None, True, [], {}, [[1]], -1e9, "x" * 1000, b"\x00" * 10]
    uuids = [*page._server.gui._gui_input_handle_from_uuid, "nobody"]
    address = f"ws://{urlsplit(shown.url).netloc}/"
    with (
        caplog.at_level(logging.WARNING, "pliant.viewer"),
        connect(address, subprotocols=[PROTOCOL], max_size=None) as client,
    ):
        for _ in range(MESSAGES):
            value = junk[rng.integers(len(junk))]
            kind = rng.integers(7)
            if kind == 0:
                data: bytes | str = update(speed.uuid, value)
            elif kind == 1:
                data = update(
                    uuids[rng.integers(len(uuids))], value, ("value", "max", "__class__")[rng.integers(3)]
                )
                if value is True or isinstance(value, str):
                    continue  # a button, or a text: some control may take it
            elif kind == 2:
                data = camera(**{("position", "fov", "wxyz")[rng.integers(3)]: value})
                if value is True:
                    continue
            elif kind == 4:
                size = int(rng.integers(-5, 5000))
                data = start(uuids[rng.integers(len(uuids))], "t", size, int(rng.integers(-1, 4)))
            elif kind == 5:
                content = bytes(int(rng.integers(0, 5000)))
                data = part("x", "t", int(rng.integers(-1, 4)), content)
            elif kind == 3:
                data = rng.integers(0, 256, rng.integers(1, 60), dtype=np.uint8).tobytes()
            else:
                data = "text"
            client.send(data)
        assert (speed.value, session.speed) == before
        assert shown.session is session  # no file that came was one
        states = page._server.gui._current_file_upload_states.values()
        assert sum(sum(map(len, state["parts"].values())) for state in states) <= 5000
        # the connection is alive: a sound value arrives
        client.send(update(speed.uuid, speed.props.max))
        for _ in range(200):
            if speed.value == speed.props.max:
                break
            time.sleep(0.05)
        assert speed.value == speed.props.max
    refusals = [line for line in caplog.messages if "refused a message" in line]
    assert 0 < len(refusals) <= 10 * messages._LINES
    assert "Traceback" not in "".join(capfd.readouterr())
