"""What the kernel said between two moments, from /dev/kmsg (Documentation/ABI/testing/dev-kmsg)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Self

KERNEL_LOG = Path("/dev/kmsg")

# syslog(2): 4 is a warning, smaller is worse; a record's number holds the facility above three bits.
_WARNING = 4

_RECORD_BYTES = 8192
_WORD = re.compile(r"\w[\w-]*")
_LOOP = re.compile(r"\b(loop\d+)(?:p\d+)?\b")


class KernelLog:
    """The kernel's messages since the opening. Where it may not be read, `messages` gives None."""

    def __init__(self, path: Path | None = None) -> None:
        self._kept: list[tuple[int, int, str]] = []
        self._next: int | None = None
        self._lost = 0
        try:
            self._file = os.open(path or KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._file = -1
            return
        os.lseek(self._file, 0, os.SEEK_END)

    def messages(self, *, about: Iterable[str] = ()) -> tuple[str, ...] | None:
        """Warnings and worse, and whatever names one of `about` (`loop0`), each as the kernel wrote it.

        None where the log cannot be read: silence is then not known. Messages that the kernel
        overwrote before they were read are counted in a last line.
        """
        if self._file < 0:
            return None
        self._drain()
        names = [re.compile(rf"\b{re.escape(name)}\b") for name in about]
        lines = [
            text
            for priority, _, text in self._kept
            if priority <= _WARNING or any(name.search(text) for name in names)
        ]
        if self._lost:
            lines.append(f"({self._lost} kernel messages were overwritten before they could be read)")
        return tuple(lines)

    @property
    def lost_count(self) -> int:
        """How many messages were overwritten before they could be read, as far as `messages` has looked."""
        return self._lost

    def forget(self) -> None:
        """Whatever was said until now."""
        if self._file >= 0:
            self._drain()
        self._kept.clear()
        self._lost = 0

    def close(self) -> None:
        """Stop listening; idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drain(self) -> None:
        while True:
            try:
                record = os.read(self._file, _RECORD_BYTES)
            except BrokenPipeError:
                # Overwritten under the reader: the next read begins at the oldest that is left, and its number says how many.
                if self._next is None:
                    self._lost += 1
                continue
            except OSError:
                return
            if not record:
                return
            for parsed in parse_records(record.decode(errors="replace")):
                _, sequence, _ = parsed
                if self._next is not None and sequence > self._next:
                    self._lost += sequence - self._next
                self._next = sequence + 1
                self._kept.append(parsed)


def messages_of_ours(
    messages: Iterable[str],
    own_loops: Iterable[str],
    *,
    devices: Iterable[str] = (),
    others_in_use: bool = False,
) -> tuple[str, ...]:
    """The messages but those that another device's use may have caused.

    One that names loop devices and none of `own_loops` (`loop0`) is another program's. What names a disk is kept whoever uses
    it, as an image file stands on one. What names none of `devices`, all that the kernel knows, may be of whichever was
    in use: where others were, it is nobody's.
    """
    names = set(own_loops)
    known = {*devices, *names}
    found = []
    for text in messages:
        loops = set(_LOOP.findall(text))
        if loops and not loops & names:
            continue
        if others_in_use and not loops and not known.intersection(_WORD.findall(text)):
            continue
        found.append(text)
    return tuple(found)


def parse_records(text: str) -> tuple[tuple[int, int, str], ...]:
    """(priority 0–7, sequence number, message) of each record; continuation lines are left out.

    A record is `priority,sequence,microseconds,flags;message`; lines that begin with a blank belong to
    the record before.
    """
    found = []
    for line in text.split("\n"):
        head, semicolon, message = line.partition(";")
        fields = head.split(",")
        if line.startswith(" ") or not semicolon or len(fields) < 3:
            continue
        if fields[0].isdecimal() and fields[1].isdecimal():
            found.append((int(fields[0]) & 7, int(fields[1]), _unescape(message)))
    return tuple(found)


def _unescape(message: str) -> str:
    """The kernel writes odd bytes in hexadecimal: they stay so, only a backslash becomes itself."""
    return message.replace("\\x5c", "\\")
