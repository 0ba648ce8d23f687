"""QEMU's own control line (QMP): a disk gets the size that its image has now."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from bedplate.errors import BedplateError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

_ANSWER_S = 30.0


class ControlFailed(BedplateError):
    """QEMU refused a command, or answered nothing."""

    code = "qemu-control-failed"


class Control:
    """The control line of one guest; commands are only taken once QEMU has greeted."""

    def __init__(self, end: socket.socket, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._end = end
        self._clock = clock
        self._rest = b""
        self._greeted = False

    def resize(self, node: str, size_bytes: int) -> None:
        """Tell QEMU, and through it the guest, what size the image of `node` has."""
        self._call("block_resize", {"node-name": node, "size": size_bytes})

    def close(self) -> None:
        """Close our end."""
        self._end.close()

    def _call(self, command: str, arguments: Mapping[str, Any] | None = None) -> None:
        if not self._greeted:
            self._greeted = True
            self._call("qmp_capabilities")
        self._end.sendall(json.dumps({"execute": command, "arguments": arguments or {}}).encode() + b"\n")
        give_up = self._clock() + _ANSWER_S
        while True:
            answer = self._next(command, give_up)
            if "return" in answer:
                return
            if "error" in answer:
                raise ControlFailed(f"QEMU refuses {command}: {answer['error'].get('desc', answer['error'])}")

    def _next(self, command: str, give_up: float) -> dict[str, Any]:
        """The next object that QEMU says: its greeting, an event, an answer."""
        while b"\n" not in self._rest:
            self._end.settimeout(max(0.001, give_up - self._clock()))
            try:
                data = self._end.recv(65536)
            except TimeoutError:
                raise ControlFailed(f"QEMU did not answer {command} within {_ANSWER_S:g} s") from None
            if not data:
                raise ControlFailed(f"QEMU ended before it answered {command}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        value = json.loads(line)
        if not isinstance(value, dict):
            raise ControlFailed(f"QEMU answered {command} with {line[:200]!r}")
        return value
