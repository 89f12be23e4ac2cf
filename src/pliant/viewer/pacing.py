"""`Pacing`: how often to draw: sixty times a second if all browsers keep up, less often if one does not.

A browser does not tell how long a picture takes it, but it answers questions only between two pictures. A lucky
question is answered at once, one without luck waits for a whole picture, and both travel the same way: the spread of
what answers take is the time of a picture, however far away the browser is.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

__all__ = ["FRAME", "Pacing"]

FRAME = 1 / 60  # s from one picture to the next, at best
_LONGEST = 0.25  # s: at worst
_FINE = 2 * FRAME  # s a browser may take for a picture; its screen has sixty a second as well
_ROOM = 1.5  # times as long as a picture takes: clicks and drags want to be looked after too
_EVERY = 0.5  # s between questions
_KEPT = 16  # answers
_SILENT = 2.0  # s without an answer: it is asleep, or very slow
_QUESTION = "pliant"  # nothing is kept under this name; any answer will do


class Pacing:
    """Watches browsers, each in a thread that ends when it leaves.

    Attributes:
        drawn: set it whenever something was drawn; browsers that have nothing to draw are left alone.
        stopped: set it to ask no more.
    """

    def __init__(self, server: Any) -> None:
        self._server, self._times = server, dict[int, float]()
        self.drawn, self.stopped = False, False

    @property
    def interval(self) -> float:
        """Seconds from one picture to the next that all browsers keep up with."""
        slowest = max(tuple(self._times.values()), default=0.0)
        return FRAME if slowest <= _FINE else min(_ROOM * slowest, _LONGEST)

    def watch(self, client: Any) -> None:
        """Watch a browser until it leaves."""
        threading.Thread(target=self._watch, args=(client,), name="pliant pacing", daemon=True).start()

    def _watch(self, client: Any) -> None:
        took = deque[float](maxlen=_KEPT)
        try:
            while True:
                time.sleep(_EVERY)
                if self.drawn:
                    self.drawn = False
                    # The second is asked at the start of a picture, if the way is short: it has no luck.
                    took.extend((self._answer(client), self._answer(client)))
                    self._times[client.client_id] = _spread(sorted(took))
        except ConnectionError:
            pass
        finally:
            self._times.pop(client.client_id, None)

    def _answer(self, client: Any) -> float:
        """How long a browser takes to answer, s.

        Raises:
            ConnectionError: it has left.
        """
        start = time.perf_counter()
        try:
            if self.stopped or client.client_id not in self._server.get_clients():
                raise ConnectionError
            client.local_storage.get_item(_QUESTION, timeout=_SILENT)
        except TimeoutError:
            return _SILENT
        except RuntimeError as error:  # it has left; or it keeps nothing for anybody, which is an answer too
            if "disconnect" in str(error):
                raise ConnectionError from None
        return time.perf_counter() - start


def _spread(values: list[float]) -> float:
    """From the smallest to the largest, of more than a few without one at either end: anything may happen once."""
    return values[-1] - values[0] if len(values) < 6 else values[-2] - values[1]
