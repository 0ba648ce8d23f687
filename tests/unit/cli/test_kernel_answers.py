"""What `bedplate doctor` says of a kernel: taken, refused, and not known are three things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bedplate.campaign import planning
from bedplate.cli import doctor
from bedplate.cli.doctor import KernelAnswers, ask_kernel, label
from bedplate.host.facts import read_machine
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels

PLAIN = FilesystemLevels("ext4")
LARGE = replace(PLAIN, block_size_bytes=8192)
LARGER = replace(PLAIN, block_size_bytes=16384)
XFS = FilesystemLevels("xfs")
OLD_XFS = replace(XFS, block_size_bytes=512)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (PLAIN, "ext4"),
        (LARGE, "ext4 8 KiB blocks"),
        (OLD_XFS, "xfs 512 B blocks"),
        (replace(PLAIN, features=Levels(data="journal")), "ext4 data=journal"),
        (FilesystemLevels("btrfs", features=Levels(nodatacow=True)), "btrfs nodatacow=true"),
        (replace(PLAIN, barrier=False), "ext4 nobarrier"),
        (replace(PLAIN, barrier=True), "ext4 barrier"),
        (replace(PLAIN, journal="none"), "ext4 journal=none"),
    ],
)
def test_levels_have_a_name_that_a_person_uses(levels: FilesystemLevels, expected: str) -> None:
    assert expected == label(levels)


def test_what_is_refused_for_one_reason_is_said_once_and_what_is_not_known_is_not_called_taken() -> None:
    answers = KernelAnswers(
        (PLAIN, LARGE, LARGER, XFS, OLD_XFS),
        {PLAIN: (), LARGE: ("too large\nfor a page",), LARGER: ("too large\nfor a page",)},
    )
    assert [
        "    refused    ext4 8 KiB blocks; ext4 16 KiB blocks",
        "               too large",
        "               for a page",
        "    taken      1 of 5 usual levels",
        "    not known  2 (xfs); trying needs root: sudo ./bedplate doctor",
    ] == list(answers.lines(is_root=False))
    assert "needs root" not in list(answers.lines(is_root=True))[-1]
    assert [True, False, False, None, None] == [entry["taken"] for entry in answers.document()]
    assert ["too large\nfor a page"] == answers.document()[1]["reasons"]
    assert "ext4 8 KiB blocks" == answers.document()[1]["name"]


def test_only_root_tries(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def find(
        wanted: tuple[FilesystemLevels, ...], _: object, *, tell: Any
    ) -> Mapping[FilesystemLevels, tuple[str, ...]]:
        tell(0, len(wanted))
        tell(len(wanted), len(wanted))
        return dict.fromkeys(wanted, ("tried",))

    monkeypatch.setattr(planning, "find_refusals", find)
    monkeypatch.setattr(planning, "known_refusals", lambda *_: {PLAIN: ()})
    machine = replace(read_machine(), filesystems=("ext4",))
    seen = ask_kernel(replace(machine, is_root=False))
    assert {PLAIN: ()} == seen.answers
    assert seen.unknown
    assert "" == capsys.readouterr().err
    tried = ask_kernel(replace(machine, is_root=True))
    assert (tried.asked, ()) == (tried.refused, tried.unknown)
    # Standard output belongs to --json.
    said = capsys.readouterr()
    assert "" == said.out
    assert 1 == said.err.count("trying")


def test_doctor_says_it_in_text_and_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path))
    refused = KernelAnswers((PLAIN, LARGE), {PLAIN: (), LARGE: ("too large",)})
    monkeypatch.setattr(doctor, "ask_kernel", lambda _: refused)
    printed: list[Any] = []
    monkeypatch.setattr(doctor, "print_json", printed.append)
    monkeypatch.setattr("bedplate.campaign.preparation.requirements_of", lambda _: ())
    monkeypatch.setattr(
        doctor,
        "planned_study",
        lambda _: SimpleNamespace(machine=read_machine(), expansion=SimpleNamespace(cells=())),
    )
    assert 0 == doctor.doctor(as_json=False)
    assert "refused    ext4 8 KiB blocks\n               too large\n" in capsys.readouterr().out
    assert 0 == doctor.doctor(as_json=True)
    assert refused.document() == printed[0]["levels"]
