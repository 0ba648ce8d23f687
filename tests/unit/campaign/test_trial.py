"""File systems are tried once on this kernel, and the answers are kept and read by everybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.planted_reasons import planted

from bedplate.campaign import planning
from bedplate.campaign.planning import MOST_TRIALS, find_refusals, known_refusals, usual_levels
from bedplate.errors import CommandFailed, VerifyFailed
from bedplate.filesystem.refusals import MKFS_REFUSED, PASSING_TROUBLE
from bedplate.host.facts import read_machine
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import contradictions
from bedplate.model.machine import Machine
from bedplate.model.reason import Reason

PLAIN = FilesystemLevels("ext4")
ODD = FilesystemLevels("ext4", mount_options=("odd",))


class Kernel:
    """Answers in place of a real one, and counts what it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.asked: list[FilesystemLevels] = []
        self.answers: dict[FilesystemLevels, tuple[Reason, ...] | Exception] = {}
        self.version = "1"
        self.machine: Machine = replace(read_machine(), filesystems=("ext4",))
        monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
        monkeypatch.setattr(planning, "SYSTEM_CACHE", tmp_path / "system")
        monkeypatch.setattr(planning, "_versions", lambda _: {"tool": self.version})
        monkeypatch.setattr(planning, "probe_refusals", self.probe)

    def probe(self, levels: FilesystemLevels, **_: object) -> tuple[Reason, ...]:
        self.asked.append(levels)
        answer = self.answers.get(levels, ())
        if isinstance(answer, Exception):
            raise answer
        return answer

    def find(self, *wanted: FilesystemLevels) -> dict[FilesystemLevels, tuple[str, ...]]:
        return dict(find_refusals(wanted, self.machine, tell=lambda *_: None))

    def known(self, *wanted: FilesystemLevels) -> dict[FilesystemLevels, tuple[str, ...]]:
        return dict(known_refusals(wanted, self.machine))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kernel:
    return Kernel(monkeypatch, tmp_path)


def test_an_answer_is_found_once_and_known_afterwards(kernel: Kernel) -> None:
    kernel.answers[ODD] = planted("ext4 on /dev/loop7 with odd cannot be mounted: EXT4-fs (loop7): unknown")
    assert {} == kernel.known(PLAIN, ODD)
    expected = {
        PLAIN: (),
        ODD: ("ext4 on a trial image with odd cannot be mounted: EXT4-fs (a trial image): unknown",),
    }
    assert expected == kernel.find(PLAIN, ODD, PLAIN)
    assert [PLAIN, ODD] == kernel.asked
    assert expected == kernel.known(PLAIN, ODD)
    assert expected == kernel.find(PLAIN, ODD)
    assert [PLAIN, ODD] == kernel.asked


def test_another_version_of_a_tool_is_another_question(kernel: Kernel) -> None:
    kernel.find(PLAIN)
    kernel.version = "2"
    assert {} == kernel.known(PLAIN)


@pytest.mark.parametrize(
    "answer",
    [
        CommandFailed("mkfs.ext4 cannot be started", argv=["mkfs.ext4"], status=None, output=""),
        VerifyFailed("x"),
        planted("mkfs: No space left on device", code=PASSING_TROUBLE),
    ],
)
def test_what_says_nothing_of_the_kernel_is_no_answer(
    kernel: Kernel, answer: tuple[Reason, ...] | Exception
) -> None:
    kernel.answers[ODD] = answer
    assert {PLAIN: ()} == kernel.find(ODD, PLAIN)
    assert {PLAIN: ()} == kernel.known(ODD, PLAIN)


def test_what_mkfs_refuses_on_a_small_image_it_may_take_on_a_large_device(kernel: Kernel) -> None:
    own = FilesystemLevels("ext4", mkfs_options=("-N", "2"))
    for levels in (own, PLAIN):
        kernel.answers[levels] = planted("mkfs.ext4 -N 2 refuses: too small", code=MKFS_REFUSED)
    assert {PLAIN: ("mkfs.ext4 -N 2 refuses: too small",)} == kernel.find(own, PLAIN)


@pytest.mark.parametrize(
    "levels",
    [
        FilesystemLevels("xfs"),  # the kernel has none
        FilesystemLevels("ext4", mount_options=("dax",)),  # a loop device has none, a real one may
        FilesystemLevels("ext4", mount_options=("discard=async",)),
        FilesystemLevels("ext4", mkfs_options=("-E", "stride=16,stripe-width=128")),
        FilesystemLevels("ext4", mkfs_options=("-d", "su=512k,sw=1")),
        FilesystemLevels("ext2", journal="none"),  # no kernel has that
    ],
)
def test_what_trying_cannot_tell_is_not_tried(kernel: Kernel, levels: FilesystemLevels) -> None:
    assert {} == kernel.find(levels)
    assert [] == kernel.asked


def test_a_plan_of_thousands_is_not_tried_for_minutes(kernel: Kernel) -> None:
    many: Sequence[FilesystemLevels] = [
        FilesystemLevels("ext4", mkfs_options=("-N", str(1000 + n))) for n in range(MOST_TRIALS + 50)
    ]
    assert MOST_TRIALS == len(kernel.find(*many))
    # The next start goes on with the rest.
    assert len(many) == len(kernel.find(*many))


def test_roots_answers_are_known_to_everybody_and_damaged_ones_to_nobody(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel.find(PLAIN)
    (tmp_path / "cache").rename(tmp_path / "system")
    assert {PLAIN: ()} == kernel.known(PLAIN)
    (answer,) = (tmp_path / "system" / "refusals").iterdir()
    for text in ("", "[", "{}", "[1]", '"x"'):
        answer.write_text(text)
        assert {} == kernel.known(PLAIN)


def test_usual_levels_are_what_the_types_of_this_kernel_can_have(kernel: Kernel) -> None:
    machine = replace(kernel.machine, filesystems=("ext4", "xfs", "tmpfs"))
    usual = usual_levels(machine)
    assert len(set(usual)) == len(usual)
    # The ext4 driver mounts ext2 and ext3 too.
    assert {"ext2", "ext3", "ext4", "xfs"} == {levels.type for levels in usual}
    assert [] == [levels for levels in usual if contradictions(levels)]
    assert {FilesystemLevels("xfs", block_size_bytes=512), FilesystemLevels("ext4", journal="none")} < set(
        usual
    )
    # The device's switch does it there, and a trial says nothing of it.
    assert FilesystemLevels("xfs", barrier=False) not in usual
    assert FilesystemLevels("ext4", barrier=False) in usual
    # All of them are questions that trying answers.
    kernel.machine = machine
    assert set(usual) == set(kernel.find(*usual))
    assert () == usual_levels(replace(machine, filesystems=("tmpfs",)))
