"""A guest gets the device of the host that was looked at, and nothing else is wiped behind it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.pretended_guest import Pretender, Stage, completes, dies

from bedplate.errors import DeviceRefused, MachineUnfit
from bedplate.executors.qemu import runner as module
from bedplate.executors.qemu import slot as disks_module
from bedplate.executors.qemu.guest import Guest, GuestDisk, GuestExit, GuestFailed
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.executors.qemu.slot import disks_of, renew
from bedplate.host.block_tree import DeviceNode
from bedplate.host.lock import device_lock
from bedplate.model.devices import DeviceIdentity
from bedplate.model.visit import ScratchDevice, VisitRequest
from bedplate.units import MIB


class Node:
    """A device of the host, held open, to which its name leads until it is `turned`."""

    turned = False

    def is_at(self, _path: Path | str) -> bool:
        return not self.turned


class TestADeviceOfTheHost:
    """It stays the one that was looked at, whatever its name comes to mean."""

    @pytest.fixture
    def node(self, monkeypatch: pytest.MonkeyPatch) -> Node:
        held: Any = Node()
        disk = GuestDisk("bedplate-data", Path("/dev/null"), 0, hold=held)
        monkeypatch.setattr(module, "disks_of", lambda *_, **__: (disk,))
        monkeypatch.setattr(module, "renew", lambda *_, **__: None)
        return held  # type: ignore[no-any-return]

    def test_is_held_against_what_the_study_recorded(
        self, stage: Stage, request_of: Any, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recorded = DeviceIdentity(MIB, serial="A")
        asked: list[DeviceIdentity | None] = []

        def refuse(device: ScratchDevice, *_: object, **__: object) -> tuple[str, ...]:
            asked.append(device.recorded)
            return (f"{device.device} is another device than the one that this study began with",)

        monkeypatch.setattr(module, "renew", renew)
        monkeypatch.setattr(disks_module, "refusal_reasons", refuse)
        request = request_of(device="/dev/disk/by-id/x")
        request = replace(request, scratch_device=replace(request.scratch_device, recorded=recorded))
        with pytest.raises(MachineUnfit, match="that this study began with"):
            stage.visit(request)
        assert [recorded] == asked
        assert [] == stage.guests

    def test_is_looked_at_before_each_boot(
        self, stage: Stage, request_of: Any, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        booted = stage.boot

        def turns(*words: Any, **given: Any) -> Pretender:
            node.turned = True
            return booted(*words, **given)

        monkeypatch.setattr(Guest, "boot", turns)
        stage.panics = 1
        with pytest.raises(MachineUnfit, match="/dev/null is another device than the one that was looked at"):
            stage.visit(request_of())
        assert 0 == stage.panics
        assert [] == stage.guests

    def test_may_be_written_to_by_the_guest_that_has_it(
        self, stage: Stage, request_of: Any, node: Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spared: list[tuple[int, ...]] = []
        monkeypatch.setattr(module, "renew", lambda *_, **given: spared.append(given["spared"]))
        stage.visit(request_of())
        stage.visit(request_of())
        assert [(), (4711,)] == spared
        assert 1 == len(stage.guests)

    def test_is_open_until_the_visit_is_over(
        self, tmp_path: Path, request_of: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)
        node = DeviceNode(file, "null", os.stat("/dev/null").st_rdev)  # noqa: PTH116 -- a node
        monkeypatch.setattr(DeviceNode, "find", lambda *_: node)
        monkeypatch.setattr(DeviceNode, "is_named", lambda *_: True)
        monkeypatch.setattr(DeviceNode, "is_at", lambda _, path: str(path) == "/dev/null")
        name = "/dev/disk/by-id/x"
        with ExitStack() as hold:
            (disk,) = disks_of(
                request_of(device=name), place=tmp_path, stack=hold, locked={name: "/dev/null"}
            )
            assert disk.is_what_it_was
            assert disk.hold is node
            os.fstat(file)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(file)

    def test_that_is_not_the_one_that_was_locked_is_refused(
        self, tmp_path: Path, request_of: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def at(*_: object) -> DeviceNode:
            return DeviceNode(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC), "null", 1)

        monkeypatch.setattr(DeviceNode, "find", at)
        monkeypatch.setattr(DeviceNode, "is_named", lambda *_: True)
        name = "/dev/disk/by-id/x"
        with ExitStack() as hold, pytest.raises(DeviceRefused, match="is another device than a moment ago"):
            disks_of(request_of(device=name), place=tmp_path, stack=hold, locked={name: "/dev/zero"})


class TestARealJournalDevice:
    """The guest wipes it at the end of a visit; a guest that died cannot."""

    NAME = "/dev/disk/by-id/journal"
    NODE = "/dev/zero"  # what the name led to

    @pytest.fixture
    def wiped(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        found: list[str] = []
        monkeypatch.setattr(module, "erase_signatures", lambda device, _: found.append(device))
        monkeypatch.setattr(module, "renew", lambda *_, **__: None)
        disks = tuple(GuestDisk(name, Path(name), 0) for name in ("/dev/null", self.NODE))
        monkeypatch.setattr(module, "disks_of", lambda *_, **__: disks)
        monkeypatch.setattr(module, "inside", lambda _: ScratchDevice())
        monkeypatch.setattr(
            GuestRunner, "_asked_inside", lambda _self, request, *_rest: replace(request, provenance={})
        )
        return found

    def journal(self, request_of: Any) -> VisitRequest:
        return request_of(journal=ScratchDevice(device=self.NAME, erase=(self.NAME,)))  # type: ignore[no-any-return]

    def test_is_wiped_after_a_guest_died_and_not_otherwise(
        self, stage: Stage, request_of: Any, wiped: list[str]
    ) -> None:
        stage.deeds = [completes, dies]
        stage.visit(self.journal(request_of))
        assert [] == wiped
        with pytest.raises(GuestFailed):
            stage.visit(self.journal(request_of))
        assert [self.NODE] == wiped

    def test_is_not_wiped_where_its_path_leads_to_another_device(
        self, stage: Stage, request_of: Any, wiped: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        node: Any = Node()
        disks = (GuestDisk("data", Path("/dev/null"), 0), GuestDisk("journal", Path(self.NODE), 0, hold=node))
        monkeypatch.setattr(module, "disks_of", lambda *_, **__: disks)

        def turns(folder: Path) -> GuestExit:
            node.turned = True
            return dies(folder)

        stage.deeds = [turns]
        with pytest.raises(GuestFailed):
            stage.visit(self.journal(request_of))
        assert [] == wiped

    def test_that_was_refused_is_not_touched(
        self, stage: Stage, request_of: Any, wiped: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise DeviceRefused(f"{self.NAME} holds ext4 that bedplate did not make")

        stage.deeds = [completes]
        stage.visit(self.journal(request_of))
        monkeypatch.setattr(module, "renew", refuse)
        with pytest.raises(MachineUnfit, match="holds ext4 that bedplate did not make"):
            stage.visit(self.journal(request_of))
        assert [] == wiped

    def test_is_locked_like_the_scratch_device(
        self, stage: Stage, request_of: Any, wiped: list[str], tmp_path: Path
    ) -> None:
        with (
            device_lock(tmp_path / "state", self.NAME),
            # It is in use for every visit: none of them is recorded as failed.
            pytest.raises(MachineUnfit, match="journal is in use by"),
        ):
            stage.visit(self.journal(request_of))
        assert [] == stage.guests
        assert [] == wiped
