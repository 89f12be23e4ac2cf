"""`Inspector`: messages of clients of the live view, checked before they are stored.

viser takes what a websocket sends: a slider would hold text, a control of a position infinity, and strange messages end
in tracebacks. The inspector drops those of unknown types, with members of the wrong type, with numbers that are not
finite or are huge, values that a control cannot have, and files that are too large or come from nowhere. Each makes a
line in the log, a few in ten seconds.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pliant.viewer.opening import LARGEST_FILE

__all__ = ["Inspector", "Sender"]

_log = logging.getLogger("pliant.viewer")
_LARGEST = 1e15  # number in a message; times are in milliseconds
_LONGEST = 100_000  # characters or entries
_PART = 1024  # bytes: a file comes in parts of at least that, besides the last
_LINES, _SECONDS = 5, 10.0  # lines in the log, in that many seconds


@dataclass
class Sender:
    """A connection, as far as its files are concerned: one at a time.

    Attributes:
        transfer: identifier of the file on its way; empty: none.
        missing: numbers of its parts that have not come.
        bytes_left: bytes of the file that have not come.
    """

    transfer: str = ""
    missing: set[int] = field(default_factory=set)
    bytes_left: int = 0

    def start_refusal(self, message: dict[str, Any], handle: Any) -> str | None:
        """Why a file may not come to a control; None: it may, and is the one on its way."""
        size, parts = message["size_bytes"], message["part_count"]
        if handle is None or not hasattr(handle, "mime_type"):
            return "no such place for files"
        if self.transfer:
            return "another file is on its way"
        if not 0 <= size <= LARGEST_FILE:
            return f"a file of {size} bytes; up to {LARGEST_FILE} are allowed"
        if not (size > 0) <= parts <= 1 + size // _PART:
            return f"a file of {size} bytes in {parts} parts"
        if parts:
            self.transfer, self.missing, self.bytes_left = message["transfer_uuid"], set(range(parts)), size
        return None

    def part_refusal(self, message: dict[str, Any]) -> str | None:
        """Why a part of a file is refused; None: it is the one on its way."""
        index, content = message["part_index"], message["content"]
        if message["transfer_uuid"] != self.transfer or index not in self.missing:
            return "a part of no file"
        if len(content) > self.bytes_left:
            return "a file longer than it said"
        self.missing.remove(index)
        self.bytes_left -= len(content)
        if not self.missing:
            self.transfer = ""
        return None


class Inspector:
    """Check of messages from clients.

    Attributes:
        find_control: the control of a page with an identifier; None: there is none.
    """

    def __init__(self) -> None:
        self.find_control: Callable[[str], Any] = lambda identifier: None
        self._lines = self._unsaid = 0
        self._since = -math.inf

    def guard(self, handler: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        """A handler of websocket connections that receives sound messages alone."""

        async def handle(connection: Any) -> None:
            receive, sender = connection.recv, Sender()

            async def receive_sound(*args: Any, **words: Any) -> Any:
                while True:
                    data = await receive(*args, **words)
                    why = self.refusal(data, sender)
                    if why is None:
                        return data
                    self.tell(why)

            connection.recv = receive_sound
            await handler(connection)

        return handle

    def refusal(self, data: Any, sender: Sender) -> str | None:
        """Why a message of a sender is refused; None: it is sound."""
        import msgspec

        if not isinstance(data, bytes):
            return "text instead of bytes"
        try:
            content = msgspec.msgpack.decode(data)
            name = content.pop("type")
            kind = _kinds()[name]
            why = _unsound(content)
            if why is None:
                msgspec.convert(content, kind)
        except (
            msgspec.MsgspecError,
            LookupError,
            TypeError,
            AttributeError,
            ValueError,
            RecursionError,
        ) as error:
            return f"not understood: {_short(error)}"
        if why is None and name == "GuiUpdateMessage":
            why = self._value_refusal(content["uuid"], content["updates"])
        elif why is None and name == "FileTransferStartUpload":
            why = sender.start_refusal(content, self.find_control(content["source_component_uuid"]))
        elif why is None and name == "FileTransferPart":
            why = sender.part_refusal(content)
        return None if why is None else f"{_short(name)}: {why}"

    def _value_refusal(self, uuid: str, updates: dict[str, Any]) -> str | None:
        """Why a control cannot have the values of an update."""
        handle = self.find_control(uuid)
        if handle is None:
            return "no such control"
        for word, value in updates.items():
            if word != "value":
                return f"'{_short(word)}' of a control is not a client's to change"
            if not _is_like(value, handle.value):
                return f"a value like {_short(repr(handle.value))} expected, not {_short(repr(value))}"
            low, high = (getattr(handle, bound, None) for bound in ("min", "max"))
            if low is not None and high is not None and not low <= value <= high:
                return f"a number from {low} to {high} expected, not {value}"
            options = getattr(handle, "options", None)
            if options is not None and value not in options:
                return f"one of the options expected, not {_short(repr(value))}"
        return None

    def tell(self, why: str) -> None:
        """Write a line in the log, unless there were many just now."""
        now = time.monotonic()
        if now - self._since > _SECONDS:
            more = f" ({self._unsaid} more were refused before)" if self._unsaid else ""
            self._since, self._lines, self._unsaid = now, 0, 0
        else:
            more = ""
        self._lines += 1
        if self._lines <= _LINES:
            _log.warning("the view refused a message: %s%s", why, more)
        else:
            self._unsaid += 1


@cache
def _kinds() -> dict[str, Any]:
    """Types of messages by name."""
    from viser import _messages as known

    return {kind.__name__: kind for kind in known.Message.get_subclasses()}


def _unsound(value: Any, depth: int = 0) -> str | None:
    """Why a value, or one within it, cannot be part of a message."""
    if isinstance(value, bool | bytes) or value is None:
        return None
    if isinstance(value, int | float):
        return None if abs(value) <= _LARGEST else f"the number {value:.3g}"  # NaN fails
    if isinstance(value, str):
        return None if len(value) <= _LONGEST else f"a text of {len(value)} characters"
    if depth > 10 or len(value) > _LONGEST:
        return "values nested too deep, or too many"
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return next((why for part in parts if (why := _unsound(part, depth + 1)) is not None), None)


def _is_like(value: Any, now: Any) -> bool:
    """Whether a value has the type of another: whole numbers are numbers, lists are tuples."""
    if isinstance(now, bool | str):
        return type(value) is type(now)
    if isinstance(now, int | float):
        return type(value) in (int, float)
    if isinstance(now, tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(now)
            and all(_is_like(a, b) for a, b in zip(value, now, strict=True))
        )
    return False


def _short(value: Any) -> str:
    """One line of at most 80 printable characters."""
    text = str(value)[:80]
    return "".join(c if c.isprintable() else " " for c in text)
