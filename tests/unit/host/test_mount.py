from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import BedplateError, DeviceInUse, VerifyFailed
from bedplate.host import kernel_log
from bedplate.host import mount as room
from bedplate.host.command import Commands, Completed
from bedplate.host.mount import MountEntry, MountRefused, parse_mount_table

if TYPE_CHECKING:
    from collections.abc import Sequence


class Scripted(Commands):
    """Answers every command with the next of the given (status, standard error)."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        super().__init__()
        self.answers = list(answers)

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.record.append(tuple(argv))
        status, stderr = self.answers.pop(0)
        return Completed(tuple(argv), status, "", stderr, 0.0)


def _table(*lines: str) -> tuple[MountEntry, ...]:
    return parse_mount_table("".join(f"{line}\n" for line in lines))


# A number that no device of the machine has.
EXT4 = (
    "42 27 7:1048575 / /mnt/scratch rw,noatime shared:2 master:1 - ext4 /dev/loop9 rw,nobarrier,data=journal"
)


def test_reads_real_mount_table(repository: Path) -> None:
    entries = room.read_mount_table(repository / "tests/golden/filesystem/mountinfo.txt")
    assert [entry.type for entry in entries] == [
        "proc",
        "sysfs",
        "devtmpfs",
        "ext4",
        "ext4",
        "ext2",
        "ext2",
        "xfs",
        "btrfs",
    ]
    assert entries[6].target == "/mnt/bedplate sp\tta\\ba\nnl"
    assert entries[4].options == ("rw", "noatime")
    assert "data=journal" in entries[4].super_options
    assert (entries[8].device, entries[8].source) == ("0:39", "/dev/loop0")


def test_optional_fields_may_be_none_or_many() -> None:
    (many,) = _table(EXT4)
    (none,) = _table(EXT4.replace(" shared:2 master:1", ""))
    assert (True, False) == (many.follows, none.follows)
    assert replace(many, follows=False) == none


def test_a_target_named_hyphen_does_not_end_the_optional_fields() -> None:
    (entry,) = _table("42 27 7:0 / - rw - ext4 /dev/loop9 rw")
    assert (entry.target, entry.type) == ("-", "ext4")


def test_a_comma_within_an_option_stays_within_it() -> None:
    (entry,) = _table(r"42 27 0:5 / /m rw - overlay none rw,lowerdir=/a\054b,index=off")
    assert entry.super_options == ("rw", "lowerdir=/a,b", "index=off")


def test_read_only_is_seen_on_the_mount_and_on_the_file_system() -> None:
    mount_only, system_only, neither = _table(
        EXT4.replace("rw,noatime", "ro,noatime"), EXT4.replace("rw,nobarrier", "ro,nobarrier"), EXT4
    )
    assert (mount_only.read_only, system_only.read_only, neither.read_only) == (True, True, False)


@pytest.mark.parametrize(
    "line", ["nonsense", EXT4.replace(" - ", " "), EXT4.replace("42", "x"), "1 2 3 4 5 6 -"]
)
def test_a_line_that_is_none_is_quoted_not_guessed(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of mountinfo"):
        _table(line)


# What the kernel escapes (fs/seq_file.c, mangle): blank, tab, newline, backslash, hash.
def _mangle(name: bytes) -> str:
    return os.fsdecode(b"".join(b"\\%03o" % byte if byte in b" \t\n\\#" else bytes([byte]) for byte in name))


_NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name)


@given(_NAMES, _NAMES, st.lists(_NAMES.filter(lambda name: b"," not in name), max_size=4))
def test_any_name_of_bytes_survives_the_kernels_escapes(
    target: bytes, source: bytes, words: list[bytes]
) -> None:
    options = ",".join(_mangle(word) for word in words)
    line = f"42 27 7:0 / /{_mangle(target)} rw - ext4 {_mangle(source)} {options or 'rw'}"
    (entry,) = _table(line)
    assert b"/" + target == os.fsencode(entry.target)
    assert source == os.fsencode(entry.source)
    assert (words or [b"rw"]) == [os.fsencode(word) for word in entry.super_options]


@given(st.text())
def test_any_text_is_parsed_or_refused_with_its_line(text: str) -> None:
    reason = ""
    try:
        parse_mount_table(text)
    except ValueError as error:
        reason = str(error)
    assert reason == "" or reason.startswith("not a line of mountinfo")


def test_a_mount_that_fell_back_to_read_only_is_undone_and_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = EXT4.replace("/mnt/scratch", str(tmp_path)).replace("rw,noatime", "ro,noatime")
    monkeypatch.setattr(room, "read_mount_table", lambda: _table(line))
    commands = Scripted((0, ""), (0, ""))
    with pytest.raises(VerifyFailed, match="read-only"):
        room.mount("/dev/loop9", tmp_path, "ext4", (), commands=commands)
    assert ("umount", str(tmp_path)) == commands.record[-1]


def test_a_mount_of_something_else_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = EXT4.replace("/mnt/scratch", str(tmp_path))
    monkeypatch.setattr(room, "read_mount_table", lambda: _table(line))
    with pytest.raises(VerifyFailed) as caught:
        room.mount("/dev/loop8", tmp_path, "ext3", (), commands=Scripted((0, ""), (0, "")))
    assert len(caught.value.reasons) == 2


def test_a_refused_mount_names_device_options_and_reason(tmp_path: Path) -> None:
    with pytest.raises(MountRefused, match=r"xfs on /dev/loop9 with noatime,nobarrier cannot .* bad option"):
        room.mount(
            "/dev/loop9", tmp_path, "xfs", ("noatime", "nobarrier"), commands=Scripted((32, "bad option"))
        )


def test_the_kernels_reason_replaces_the_guesses_of_mount(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "kmsg"
    log.write_text("3,10,1,-;XFS (loop9): an older complaint\n")
    monkeypatch.setattr(kernel_log, "KERNEL_LOG", log)

    class Kernel(Scripted):
        """Says its reason while mount(8) works."""

        def run(self, argv: Sequence[str], **options: object) -> Completed:
            with log.open("a") as writer:
                writer.write("3,11,2,-;xfs: Unknown parameter 'nobarrier'\n")
                writer.write("3,12,3,-;xfs: Unknown parameter 'nobarrier'\n")
                writer.write("3,13,4,-;EXT4-fs (loop90): bad block size 8192\n")
                writer.write("6,14,5,-;XFS (loop9): Mounting V5 Filesystem\n")
            return super().run(argv, **options)

    with pytest.raises(MountRefused) as caught:
        room.mount("/dev/loop9", tmp_path, "xfs", (), commands=Kernel((32, "wrong fs type, …")))
    reasons = ("xfs on /dev/loop9 with no options cannot be mounted: xfs: Unknown parameter 'nobarrier'",)
    assert reasons == caught.value.reasons


@pytest.mark.parametrize(
    ("said", "is_ours"),
    [
        ("BTRFS error (device loop9): open_ctree failed: -5", True),
        ("BTRFS error (device loop9 state C): failed to load root csum", True),
        ("BTRFS: device fsid 1 devid 1 transid 9 /dev/loop9", True),
        ("btrfs: Unknown parameter 'x'", True),
        ("btrfs_validate_extent_buffer: 1 callbacks suppressed", True),
        ("BTRFS warning (device loop90): couldn't read tree root", False),
        ("BTRFS error (device loop1 state C): failed to load root csum", False),
        ("XFS (loop1): log mount failed", False),
    ],
)
def test_what_is_said_of_another_loop_device_is_no_reason(said: str, *, is_ours: bool) -> None:
    assert room._about((said,), name="loop9", type="btrfs") == ((said,) if is_ours else ())


def test_what_is_said_of_every_mount_comes_behind_the_reason() -> None:
    experimental = "XFS (loop9): EXPERIMENTAL large block size feature enabled. Use at your own risk!"
    reason = "XFS (loop9): Metadata CRC error detected at xfs_dir3_block_read_verify+0x71/0x100"
    end = "XFS (loop9): log mount failed"
    found = room._about((experimental, reason, end), name="loop9", type="xfs")
    assert found == (reason, end, experimental)


def test_unmount_of_nothing_is_no_error(tmp_path: Path) -> None:
    commands = Scripted()
    assert not room.unmount(tmp_path, commands=commands)
    assert commands.record == []


def test_a_busy_target_is_tried_again_until_it_is_free(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounted = _table(EXT4.replace("/mnt/scratch", str(tmp_path)))
    commands = Scripted((32, "target is busy."), (32, "target is busy."), (0, ""))
    monkeypatch.setattr(room, "read_mount_table", lambda: mounted if commands.answers else ())
    pauses: list[float] = []
    assert room.unmount(tmp_path, commands=commands, clock=lambda: 0.0, sleep=pauses.append)
    assert len(pauses) == 2


def test_a_number_that_another_mount_got_meanwhile_is_not_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounted = _table(EXT4.replace("/mnt/scratch", str(tmp_path)))
    others = _table(EXT4.replace("/mnt/scratch", "/mnt/of-another"))
    assert {each.mount_id for each in mounted} == {each.mount_id for each in others}
    commands = Scripted((0, ""))
    monkeypatch.setattr(room, "read_mount_table", lambda: mounted if commands.answers else others)
    assert room.unmount(tmp_path, commands=commands, clock=lambda: 0.0, sleep=lambda _: None)


def test_a_target_that_stays_busy_ends_at_the_deadline_and_names_the_holder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounted = _table(EXT4.replace("/mnt/scratch", str(tmp_path)))
    monkeypatch.setattr(room, "read_mount_table", lambda: mounted)
    now = [0.0]
    with (tmp_path / "held").open("w"), pytest.raises(DeviceInUse) as caught:
        room.unmount(
            tmp_path,
            commands=Scripted(*[(32, "target is busy.")] * 100),
            deadline_s=3.0,
            clock=lambda: now[0],
            sleep=lambda seconds: now.__setitem__(0, now[0] + seconds),
        )
    assert any(f"process {os.getpid()} " in reason for reason in caught.value.reasons)
    assert any(reason.endswith(f"holds {tmp_path}/held") for reason in caught.value.reasons)
    assert 3.0 <= now[0] < 4.0


def test_another_error_than_busy_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "read_mount_table", lambda: _table(EXT4.replace("/mnt/scratch", str(tmp_path))))
    with pytest.raises(BedplateError, match="I/O error"):
        room.unmount(tmp_path, commands=Scripted((32, "I/O error")), clock=lambda: 0.0, sleep=lambda _: None)


def test_a_neighbour_with_the_same_beginning_is_no_holder(tmp_path: Path) -> None:
    target, neighbour = tmp_path / "m", tmp_path / "m2"
    target.mkdir()
    neighbour.mkdir()
    with (neighbour / "file").open("w"):
        assert room.holders(target) == ()
    with (target / "file").open("w"):
        assert len(room.holders(target)) == 1


class Others:
    """A /proc of pretended processes, each in a mount namespace of its own."""

    def __init__(self, proc: Path, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc, self.line = proc, EXT4.replace("/mnt/scratch", str(top))
        self.add("self", "python3")
        monkeypatch.setattr(room, "read_mount_table", lambda: _table(self.line))

    def add(self, pid: str, name: str, mounts: str = "", *, opened: str | None = None) -> None:
        folder = self.proc / pid
        for child in ("ns", "fd"):
            (folder / child).mkdir(parents=True)
        (folder / "ns/mnt").symlink_to(f"mnt:[{pid}]")
        (folder / "comm").write_text(f"{name}\n")
        (folder / "mountinfo").write_text(f"{mounts}\n")
        if opened is not None:
            (folder / "fd/3").symlink_to(opened)


def test_a_copy_of_the_mount_in_another_namespace_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    others = Others(tmp_path / "proc", tmp_path / "top", monkeypatch)
    alone = others.line.replace("shared:2 master:1 ", "").replace(str(tmp_path / "top"), "/copy")
    others.add("20", "sleep", alone)
    others.add("21", "bash", others.line.replace("7:1048575", "7:1048574"))
    copy = "process 20 (sleep): /dev/loop9 is mounted on /copy in another mount namespace"
    assert (copy,) == room.holders(tmp_path / "top", proc=others.proc)
    assert () == room.holders(tmp_path / "another", proc=others.proc)


def test_what_is_open_in_a_copy_is_named_and_not_the_copy_that_goes_with_the_mount(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    others = Others(tmp_path / "proc", tmp_path / "top", monkeypatch)
    others.add("20", "resolved", others.line)
    assert 1 == len(room.holders(tmp_path / "top", proc=others.proc))
    others.add("30", "sleep", others.line.replace(str(tmp_path / "top"), "/copy"), opened="/copy/file")
    assert ("process 30 (sleep) holds /copy/file",) == room.holders(tmp_path / "top", proc=others.proc)
