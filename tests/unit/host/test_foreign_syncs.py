"""Counting what anybody on the machine calls, without anything that could be left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.host import block_requests
from bedplate.host.block_requests import CallsNotCounted, Tracepoint, call_counter, processors
from bedplate.host.command import Commands


def test_processors_are_listed_as_the_kernel_lists_them(tmp_path: Path) -> None:
    (tmp_path / "online").write_text("0-2,5\n")
    assert [0, 1, 2, 5] == list(processors(tmp_path / "online"))


def test_a_kernel_without_the_tracepoint_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "events").mkdir()
    monkeypatch.setattr(block_requests, "TRACEFS", (tmp_path,))
    with pytest.raises(CallsNotCounted, match="no tracepoint syscalls/sys_enter_sync"):
        call_counter(tmp_path / "unused", ledger=cast("Any", None), commands=cast("Any", None))


def test_the_counts_of_all_processors_are_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    numbers = iter((3, 4))

    @contextmanager
    def counting() -> Iterator[block_requests.CallCounter]:
        def opened(_: int, processor: int) -> int:
            path = tmp_path / str(processor)
            path.write_bytes(next(numbers).to_bytes(8, "little"))
            return os.open(path, os.O_RDONLY)

        monkeypatch.setattr(block_requests, "perf_event_open", opened)
        monkeypatch.setattr(block_requests, "processors", lambda: iter((0, 1)))
        with block_requests.CallCounter(Tracepoint(7, {})) as counter:
            yield counter

    with counting() as counter:
        assert 7 == counter.count


def test_an_interruption_while_tracefs_is_mounted_leaves_no_mount_that_nobody_knows_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held: list[str] = []
    done: list[str] = []

    class Interrupted(Commands):
        def run(self, argv: Any, **how: Any) -> Any:
            raise KeyboardInterrupt

    ledger = SimpleNamespace(
        note=lambda holding: held.append(holding.name), settled=lambda holding: held.remove(holding.name)
    )
    monkeypatch.setattr(block_requests, "TRACEFS", ())
    monkeypatch.setattr(block_requests, "unmount", lambda place, commands: done.append(f"{place} {held}"))
    with pytest.raises(KeyboardInterrupt):
        call_counter(tmp_path / "tracefs", ledger=cast("Any", ledger), commands=Interrupted())
    # Unmounted while the ledger still has it.
    assert [f"{tmp_path / 'tracefs'} ['{tmp_path / 'tracefs'}']"] == done
    assert [] == held
    assert not (tmp_path / "tracefs").exists()
