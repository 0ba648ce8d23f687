"""What the clients had been promised before a cut: the marks `A <client> <sequence> <monotonic µs>` of the log.

Writers of others print `ack <client> <number>` instead; its time is the recorder's, and its numbers are 1, 2, 3, … of each client.

A client writes its mark after the engine has acknowledged the transaction, so a mark is never earlier than the
promise: a transaction whose mark lies after the cut may be there or not.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.power_cut.run.log import MARK

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from bedplate.workloads.power_cut.run.log import Log

_PREFIX = b"A "
_ACKNOWLEDGED = re.compile(rb"A (\d{1,9}) (\d{1,18}) (\d{1,18})\s*")
_OTHERS_PREFIX = b"ack "
_OTHERS = re.compile(rb"ack (\d{1,9}) (\d{1,18})")
_OTHERS_EXPECTED = "`begin`, or `ack CLIENT NUMBER` with the numbers 1, 2, 3, … of each client, whole lines in one write (docs/ENGINES.md)"


@dataclass(frozen=True)
class Missing:
    """Acknowledged transactions that are not there: how many, and how long before the cut the first was promised.

    `first_ms` is None where nothing is missing.
    """

    transactions: int
    first_ms: float | None


@dataclass(frozen=True)
class Acknowledged:
    """The promises before one cut. `highest` is each client's last sequence; `cut_us` when the cut was, monotonic."""

    transactions: int
    highest: Mapping[int, int]
    cut_us: int | None
    _all: Acknowledgements
    _before: Mapping[int, int]

    @property
    def after_last_ms(self) -> float:
        """How long before the cut the last promise was; 0 without any."""
        times_us = [self._all.clients[client][1][count - 1] for client, count in self._before.items()]
        return 0.0 if self.cut_us is None or not times_us else (self.cut_us - max(times_us)) / 1000

    def missing(self, present: Mapping[int, int]) -> Missing:
        """What is missing if each client's transactions are there up to `present[client]`, and no later one.

        A client that is not in `present` has none at all.
        """
        count, first_us = 0, None
        for client, number in self._before.items():
            sequences, times = self._all.clients[client]
            lost = [
                time
                for sequence, time in zip(sequences[:number], times[:number], strict=True)
                if client not in present or sequence > present[client]
            ]
            count += len(lost)
            if lost:
                first_us = min(lost) if first_us is None else min(first_us, *lost)
        if first_us is None or self.cut_us is None:
            return Missing(count, None)
        # The mark's own time is the client's, a moment before the recorder took it in.
        return Missing(count, max(0.0, (self.cut_us - first_us) / 1000))


class Acknowledgements:
    """All marks of a log, read once. `clients` has for each client its sequences and times in µs, in the log's order."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.clients: dict[int, tuple[list[int], list[int]]] = {}
        self.positions: list[int] = []
        self._positions_of: dict[int, list[int]] = {}
        for index in range(len(log)):
            if log.flags[index] & MARK:
                self._take(index, log.mark(index) or b"")

    def before(self, position: int) -> Acknowledged:
        """The promises of the first `position` entries."""
        before = {
            client: count
            for client, positions in self._positions_of.items()
            if (count := bisect_left(positions, position))
        }
        times_us = [self.clients[client][1][count - 1] for client, count in before.items()]
        issued_ns = self._log.time_before(position)
        if issued_ns is not None:
            times_us.append(issued_ns // 1000)
        return Acknowledged(
            transactions=sum(before.values()),
            highest={client: max(self.clients[client][0][:count]) for client, count in before.items()},
            cut_us=max(times_us, default=None),
            _all=self,
            _before=before,
        )

    def _take(self, index: int, text: bytes) -> None:
        if text.startswith(_OTHERS_PREFIX) and (found := _OTHERS.fullmatch(text)) is not None:
            client, sequence = map(int, found.groups())
            self._add(index, client, sequence, (self._log.entry(index).time_ns or 0) // 1000)
            return
        if not text.startswith(_PREFIX):
            return  # another mark: where the clients began, or the kernel's own at its end
        found = _ACKNOWLEDGED.fullmatch(text)
        if found is None:
            raise OutputNotUnderstood(
                f"mark {index} of the write log {self._log.path}",
                expected="A <client> <sequence> <monotonic µs>",
                found=text.decode(errors="replace"),
            )
        self._add(index, *map(int, found.groups()))

    def _add(self, index: int, client: int, sequence: int, time_us: int) -> None:
        sequences, times = self.clients.setdefault(client, ([], []))
        sequences.append(sequence)
        times.append(time_us)
        self._positions_of.setdefault(client, []).append(index)
        self.positions.append(index)


def require_protocol(log: Log, *, clients: int, own_marks: Container[bytes]) -> None:
    """OutputNotUnderstood for the first line of somebody's writer that says something else than it may.

    `own_marks` are ours, which stand among them.
    """
    last: Counter[int] = Counter()
    for index in range(len(log)):
        text = log.mark(index)
        if text is None or text in own_marks:
            continue
        found = _OTHERS.fullmatch(text)
        client, number = map(int, found.groups()) if found else (-1, 0)
        if client not in range(clients) or number != last[client] + 1:
            told = f", behind {last[client]} of client {client}" if last[client] else ""
            raise OutputNotUnderstood(
                "the writer", expected=_OTHERS_EXPECTED, found=f"{text.decode(errors='replace')}{told}"
            )
        last[client] = number
