"""Programs known again by what they serve; journals known again by what mkfs left on their device."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from bedplate.host import ledger
from bedplate.host.block_tree import DeviceNode, Signature, fingerprint
from bedplate.host.command import Completed
from bedplate.host.ledger import Holding
from bedplate.host.mount import type_below
from bedplate.host.process import ProcessTitle, pids_running, title_of


class _Commands:
    """Answers blkid, and remembers what else was run."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.erased: list[str] = []

    def run(self, argv: list[str], **_: object) -> Completed:
        if argv[0] == "wipefs":
            self.erased.append(argv[-1])
        return Completed(tuple(argv), 0, self.said if argv[0] == "blkid" else "", "", 0.0)


def _process(proc: Path, pid: int, *words: str) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))


def test_a_program_is_known_by_its_name_and_one_whole_word(tmp_path: Path) -> None:
    _process(tmp_path, 1, "/sbin/nilfs_cleanerd", "-p", "60", "/dev/loop1", "/mnt/a b")
    _process(tmp_path, 2, "nilfs_cleanerd", "/dev/loop2", "/mnt/a")
    _process(tmp_path, 3, "/bin/sh", "nilfs_cleanerd", "/mnt/a b")
    _process(tmp_path, 4)  # a zombie, or a thread of the kernel
    (tmp_path / "self").mkdir()
    assert (1,) == pids_running("nilfs_cleanerd", "/mnt/a b", tmp_path)
    assert () == pids_running("nilfs_cleanerd", "/mnt", tmp_path)


@pytest.mark.parametrize(
    ("name", "words", "flags", "title"),
    [
        ("postgres", ("postgres: checkpointer ",), 0x400100, ProcessTitle(70, "postgres: checkpointer", False)),
        ("postgres", ("/usr/bin/postgres", "-D", "x"), 0x400100, ProcessTitle(70, "postgres", False)),
        ("a) (b", ("elsewhere: x",), 0, ProcessTitle(70, "a) (b", False)),
        ("kworker/u8:3-loop0", (), 0x4208060, ProcessTitle(70, "kworker/u8:3-loop0", True)),
    ],
)  # fmt: skip
def test_a_process_is_called_by_the_title_that_it_gave_itself(
    tmp_path: Path, name: str, words: tuple[str, ...], flags: int, title: ProcessTitle
) -> None:
    _process(tmp_path, 71, *words)
    (tmp_path / "71/stat").write_text(f"71 ({name}) S 1 71 71 0 -1 {flags} 0 0 0\n")
    (tmp_path / "71/status").write_text(f"Name:\t{name}\nTgid:\t70\nPid:\t71\n")
    assert title == title_of(71, tmp_path)
    assert title_of(72, tmp_path) is None


def test_the_type_below_a_path_is_the_kernels_word_for_it() -> None:
    assert "proc" == type_below(Path("/proc/self/stat"))
    with pytest.raises(FileNotFoundError):
        type_below(Path("/no/such/place"))


@pytest.mark.parametrize(
    ("signature", "own"),
    [
        (Signature("ext4", "filesystem", "bedplate", "u"), True),
        (Signature("jbd", "other", "bedplate", "u"), True),
        (Signature("jbd", "other", "mine", "u"), False),
        (Signature("xfs_external_log", "other", "", ""), False),
        (Signature("luks", "crypto", "bedplate", "u"), False),
    ],
)
def test_what_is_ours_bears_our_label_and_is_a_file_system_or_a_journal(
    signature: Signature, own: bool
) -> None:
    assert own is signature.is_own


def test_a_fingerprint_does_not_hold_the_devices_name() -> None:
    told = _Commands("DEVNAME=/dev/sdx\nUUID=u-1\nTYPE=jbd\n")
    assert "TYPE=jbd UUID=u-1" == fingerprint("/dev/sdx", told)  # type: ignore[arg-type]


class _Node(contextlib.nullcontext[None]):
    """A device that nobody else has."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def claim(self, *, patience_s: float) -> None:
        assert patience_s > 0


@pytest.mark.parametrize(
    ("found", "noted", "wiped"),
    [
        ("TYPE=jbd\n", "TYPE=jbd", True),
        ("TYPE=ext4\nLABEL=mine\n", "TYPE=jbd", False),
        ("", "TYPE=jbd", False),
        # mkfs left nothing that blkid knows (jfs, reiserfs): nothing can be told apart, nothing is wiped.
        ("", "", False),
        ("TYPE=ext4\n", "", False),
    ],
)
def test_a_journal_is_wiped_only_if_it_is_the_one_that_was_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: str, noted: str, wiped: bool
) -> None:
    device = tmp_path / "stable-name"
    monkeypatch.setattr(DeviceNode, "find", lambda path, _tree: _Node(str(path)))
    told = _Commands(found)
    outcome = ledger.give_back(
        Holding("journal_device", str(device), noted),
        told,  # type: ignore[arg-type]
        directory=tmp_path,
        sweep=lambda: None,
    )
    assert (None, True) == (outcome.problem, outcome.settled)
    assert ([str(device)] if wiped else []) == told.erased
    assert wiped == (outcome.done is not None)


def test_a_journals_device_that_is_gone_is_no_problem(tmp_path: Path) -> None:
    told = _Commands("TYPE=jbd\n")
    holding = Holding("journal_device", str(tmp_path / "unplugged"), "TYPE=jbd")
    outcome = ledger.give_back(holding, told, directory=tmp_path, sweep=lambda: None)  # type: ignore[arg-type]
    assert (None, None, True) == (outcome.problem, outcome.done, outcome.settled)
