"""The line between bedplate and the agent of a guest: text lines over a virtio-serial port.

    → visit 3
    ← {"event": "step", "step": "mkfs"}          the visit's own events, passed on as they are
    ← {"agent": "alive"}                         every ten seconds
    ← Traceback (most recent call last): …       anything else: what the visit said
    ← {"agent": "ended", "status": 0, "tainted": 0}

A guest may be hostile or broken, and its lines cut short by its death: nothing is taken on trust.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.model.levels import Scalar

# A line that is longer is none of ours; what came of it is dropped.
_LINE_BYTES_MAX = 1 << 20
_READ_BYTES = 1 << 16
# poll(2) counts milliseconds in an int.
_POLL_S_MAX = 3600.0

Message: TypeAlias = "dict[str, Scalar] | str"


class GuestGone(Exception):
    """The other end was closed: QEMU has ended."""


def parse(line: bytes) -> Message:
    """A message of the agent's or of the visit's as a flat object, anything else as text."""
    text = line.decode("utf-8", errors="replace").rstrip("\r\n")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(value, dict) or not {"agent", "event"} & value.keys():
        return text
    return {name: item for name, item in value.items() if isinstance(item, (str, int, float, bool))}


class Channel:
    """Our end of the line; `clock` is monotonic."""

    def __init__(self, end: socket.socket, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._end = end
        self._clock = clock
        self._rest = bytearray()
        self._lines: deque[bytes] = deque()
        self._poller = select.poll()
        self._poller.register(end, select.POLLIN)

    def send(self, line: str) -> None:
        """Send one line; GuestGone if nobody can read it any more."""
        try:
            self._end.sendall(line.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise GuestGone from error

    def receive(self, *, until: float) -> Message | None:
        """The next message, None if none has come when the clock says `until`; GuestGone at the end."""
        while not self._lines:
            wait_s = until - self._clock()
            if wait_s <= 0:
                return None
            if self._poller.poll(min(wait_s, _POLL_S_MAX) * 1000):
                self._read()
        return parse(self._lines.popleft())

    def close(self) -> None:
        """Close our end."""
        self._end.close()

    def _read(self) -> None:
        try:
            data = self._end.recv(_READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            raise GuestGone
        *lines, rest = (bytes(self._rest) + data).split(b"\n")
        self._lines.extend(line for line in lines if line.strip())
        self._rest = bytearray(rest if len(rest) <= _LINE_BYTES_MAX else b"")


def line_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends: one to keep, one for QEMU. No path that could be too long or left behind."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
