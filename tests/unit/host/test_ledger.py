from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.tools.patience import AT_MOST_S

from bedplate.errors import DeviceInUse, MachineUnfit, RequirementMissing
from bedplate.host import ledger
from bedplate.host import ledger as ledger_module
from bedplate.host.command import MARK, Commands, Completed
from bedplate.host.files import take_lock
from bedplate.host.ledger import Holding, Ledger, release_orphans
from bedplate.host.process import boot_id, start_time, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class NoCommands(Commands):
    """Nothing may be started."""

    record: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        raise AssertionError(f"started {argv}")


def _dead(
    state: Path, owner: str, events: Sequence[object], *, boot: str | None = None, tail: str = ""
) -> Path:
    """A ledger whose owner is gone."""
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    head = {"pid": child.pid, "start_time": "1", "boot_id": boot or boot_id()}
    child.wait()
    state.mkdir(exist_ok=True)
    directory = state / owner
    directory.mkdir()
    lines = [json.dumps(line) for line in (head, *events)]
    (directory / "ledger.jsonl").write_text("\n".join(lines) + "\n" + tail)
    return directory


def test_held_is_what_was_noted_and_not_settled(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, "a") as ledger:
        image, loop = Holding("image", "/x"), Holding("loop", "/x")
        ledger.note(image)
        ledger.note(loop)
        ledger.note(Holding("loop", "/x", "/dev/loop3"))
        assert (image, Holding("loop", "/x", "/dev/loop3")) == ledger.holdings()
        ledger.settled(Holding("loop", "/x", "whatever"))
        ledger.settled(loop)
        assert (image,) == ledger.holdings()
        ledger.settled(image)


def test_note_is_on_disk_before_it_returns(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, "a") as ledger:
        ledger.note(Holding("directory", '/x\n"é\udcff'))
        last = (ledger.directory / "ledger.jsonl").read_text().splitlines()[-1]
        assert ["note", "directory", '/x\n"é\udcff', ""] == json.loads(last)
        ledger.settled(Holding("directory", '/x\n"é\udcff'))


def test_children_carry_the_ledgers_mark_and_later_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, "outer")
    ledger = Ledger.open(tmp_path, "a")
    assert str(tmp_path / "a") == os.environ[MARK]
    ledger.close()
    ledger.close()
    assert "outer" == os.environ[MARK]
    assert not (tmp_path / "a").exists()


def test_owner_at_work_is_named_and_not_released(tmp_path: Path) -> None:
    image = tmp_path / "x.img"
    image.touch()
    with Ledger.open(tmp_path / "state", "a") as ledger:
        ledger.note(Holding("image", str(image)))
        with pytest.raises(DeviceInUse, match=f"process {os.getpid()} is at work"):
            Ledger.open(tmp_path / "state", "a")
        report = release_orphans(tmp_path / "state", NoCommands())
        assert ((), (), (f"a: process {os.getpid()} is at work",)) == (
            report.released,
            report.problems,
            report.alive,
        )
        assert image.exists()
        assert () == ledger.release(NoCommands())
        assert not image.exists()


def test_a_child_that_has_closed_everything_and_is_no_program_yet_is_waited_for(tmp_path: Path) -> None:
    """As `subprocess` does between vfork(2) and execve(2): it bears no mark, and would mount after the unmount."""
    begun, waits = tmp_path / "begun", tmp_path / "waits"
    os.mkfifo(waits)
    script = (
        "import os, sys; from pathlib import Path\n"
        "from bedplate.host.ledger import Ledger\n"
        "ledger = Ledger.open(Path(sys.argv[1]), 'a')\n"
        "actions = [(os.POSIX_SPAWN_CLOSE, number) for number in range(3, 1024)]\n"
        "actions.append((os.POSIX_SPAWN_OPEN, 3, sys.argv[2], os.O_CREAT | os.O_WRONLY, 0o600))\n"
        # Opened only once somebody writes to it.
        "actions.append((os.POSIX_SPAWN_OPEN, 0, sys.argv[3], os.O_RDONLY, 0))\n"
        "os.posix_spawn('/bin/sleep', ['sleep', '600'], os.environ, file_actions=actions)\n"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "state"), str(begun), str(waits)]
    with subprocess.Popen(argv) as owner:
        assert wait_until(begun.exists, deadline_s=AT_MOST_S)
        owner.kill()
    with (tmp_path / "state/a/ledger.jsonl").open("rb") as file:
        assert not take_lock(file.fileno())
    waits.write_text("")
    report = release_orphans(tmp_path / "state", NoCommands())
    (ended,) = report.released
    assert (True, True, ()) == (ended.startswith("process "), ended.endswith(" ended"), report.problems)
    assert not (tmp_path / "state/a").exists()


def test_a_copy_of_the_owner_that_has_closed_everything_holds_nothing_up(tmp_path: Path) -> None:
    """The first process of a namespace waits in one, without a program, for as long as another program runs."""
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from bedplate.host.ledger import Ledger\n"
        "ledger = Ledger.open(Path(sys.argv[1]), 'a')\n"
        "copy = os.fork()\n"
        "if not copy:\n"
        "    os.closerange(3, 1024)\n"
        "    print('closed', flush=True)\n"
        "signal.pause()\n"
    )
    argv = [sys.executable, "-c", script, str(tmp_path / "state")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        owner.kill()
        owner.wait()
        with (tmp_path / "state/a/ledger.jsonl").open("rb") as file:
            assert take_lock(file.fileno())
        os.killpg(owner.pid, signal.SIGKILL)


@pytest.mark.parametrize("owner", ["", "a/b", "../a", ".a", "..", "a\0"])
def test_owner_is_a_plain_file_name(tmp_path: Path, owner: str) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        Ledger.open(tmp_path, owner)


def test_state_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    with pytest.raises(RequirementMissing, match="mode 777"):
        Ledger.open(state, "a")
    with pytest.raises(RequirementMissing, match="writable by nobody else"):
        release_orphans(state, NoCommands())


def test_dead_owners_image_is_deleted_and_its_directory_goes(tmp_path: Path) -> None:
    image = tmp_path / "x.img"
    image.touch()
    directory = _dead(tmp_path / "state", "a", [["note", "image", str(image), ""]])
    (directory / "mnt").mkdir()
    (directory / "socket").symlink_to(tmp_path)
    report = release_orphans(tmp_path / "state", NoCommands())
    assert ((f"{image} deleted",), ()) == (report.released, report.problems)
    assert not image.exists()
    assert not directory.exists()
    assert tmp_path.exists()


def test_half_written_last_line_was_never_acted_upon(tmp_path: Path) -> None:
    kept, image = tmp_path / "kept", tmp_path / "x.img"
    kept.touch()
    image.touch()
    torn = json.dumps(["note", "image", str(kept), ""])[:-3]
    _dead(tmp_path / "state", "a", [["note", "image", str(image), ""]], tail=torn)
    report = release_orphans(tmp_path / "state", NoCommands())
    assert () == report.problems
    assert kept.exists()
    assert not image.exists()


def test_what_cannot_be_given_back_stays_for_the_next_time_even_after_a_torn_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "x.img"
    image.touch()
    attached = ["loop9"]
    monkeypatch.setattr("bedplate.host.ledger.attached_to", lambda _path: tuple(attached))
    _dead(tmp_path / "state", "a", [["note", "image", str(image), ""]], tail='["settled", "ima')
    first = release_orphans(tmp_path / "state", NoCommands())
    assert (f"{image} stays: it is attached to /dev/loop9",) == first.problems
    attached.clear()
    second = release_orphans(tmp_path / "state", NoCommands())
    assert (f"{image} deleted",) == second.released
    assert () == release_orphans(tmp_path / "state", NoCommands()).released


def test_after_a_reboot_only_files_are_given_back(tmp_path: Path) -> None:
    """Pids, groups and sysctls of another boot are other things by the same name."""
    image, tunable = tmp_path / "x.img", tmp_path / "read_ahead_kb"
    image.touch()
    tunable.write_text("4096")
    events = [
        ["note", "image", str(image), ""],
        ["note", "tunable", str(tunable), "128"],
        ["note", "process", str(os.getpid()), start_time(os.getpid())],
    ]
    directory = _dead(tmp_path / "state", "a", events, boot="another boot")
    report = release_orphans(tmp_path / "state", NoCommands())
    assert ((f"{image} deleted",), ()) == (report.released, report.problems)
    assert "4096" == tunable.read_text()
    assert not directory.exists()


@pytest.mark.parametrize("head", [b"", b"{", b"[]\n", b'{"pid": "x"}\n', b"\xff\xff\n"])
def test_damaged_head_has_no_living_owner(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/ledger.jsonl").write_bytes(head)
    report = release_orphans(tmp_path, NoCommands())
    assert ((), ()) == (report.problems, report.alive)
    assert not (tmp_path / "a").exists()


def test_directory_of_an_owner_that_died_before_its_ledger_was_born_goes(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    unborn, own = tmp_path / f".a.{child.pid}", tmp_path / f".b.{os.getpid()}"
    for path in (unborn, own):
        path.mkdir()
    release_orphans(tmp_path, NoCommands())
    assert not unborn.exists()
    assert own.exists()


def test_nothing_to_release_where_nothing_ever_was(tmp_path: Path) -> None:
    report = release_orphans(tmp_path / "never", NoCommands())
    assert ((), (), ()) == (report.released, report.problems, report.alive)
    assert not (tmp_path / "never").exists()


def test_holding_of_a_later_version_is_told_and_does_not_block(tmp_path: Path) -> None:
    _dead(tmp_path / "state", "a", [["note", "quantum", "q", ""]])
    report = release_orphans(tmp_path / "state", NoCommands())
    assert ("q: this version does not know holdings of kind 'quantum'",) == report.problems
    assert () == release_orphans(tmp_path / "state", NoCommands()).problems


_NAMES = st.sampled_from(["a", "b", "c"])
_EVENTS = st.lists(
    st.tuples(st.sampled_from(["note", "settled"]), st.sampled_from(["loop", "mount"]), _NAMES, st.text()),
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(events=_EVENTS, cut=st.integers(0, 400))
def test_replay_of_any_prefix_is_the_state_after_its_whole_lines(
    events: list[tuple[str, str, str, str]], cut: int
) -> None:
    head = b"{}\n"
    lines = [json.dumps(event).encode() + b"\n" for event in events]
    text = (head + b"".join(lines))[: len(head) + cut]
    whole = text[len(head) :].count(b"\n")
    # A line that lacks only its line break is whole as well: it was written, and may be acted upon.
    if text[len(head) :].split(b"\n")[-1:] == [b"".join(lines[whole : whole + 1]).rstrip(b"\n")]:
        whole += 1
    expected: dict[tuple[str, str], Holding] = {}
    for event, kind, name, detail in events[:whole]:
        if event == "note":
            expected[kind, name] = Holding(kind, name, detail)
        else:
            expected.pop((kind, name), None)
    assert expected == ledger_module.replay(text)


def test_what_two_dead_ledgers_hold_is_judged_after_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By name the first one holds the image alone, and the second one the loop device over it.
    state, image = tmp_path / "state", tmp_path / "x.img"
    image.touch()
    attached = ["loop7"]
    monkeypatch.setattr(ledger, "attached_to", lambda _image: tuple(attached))
    monkeypatch.setattr(ledger, "device_holders", lambda _path: ())

    class Detaching(Commands):
        def run(self, argv: Sequence[str], **_: object) -> Completed:
            assert ["losetup", "--detach", "/dev/loop7"] == list(argv)
            attached.clear()
            return Completed(tuple(argv), 0, "", "", 0.0)

    for owner, kind in (("1-first", "image"), ("2-second", "loop")):
        _dead(state, owner, [["note", kind, str(image), ""]])
    report = release_orphans(state, Detaching())
    assert ((), [f"/dev/loop7 detached from {image}", f"{image} deleted"]) == (
        report.problems,
        list(report.released),
    )
    assert [] == list(state.iterdir())


def test_a_state_directory_without_room_is_named_and_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(tmp_path, "a")
    image = Holding("image", "/x")
    ledger.note(image)

    def full(_file: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("bedplate.host.ledger.os.write", full)
        with pytest.raises(MachineUnfit, match=f"{tmp_path}/a/ledger.jsonl cannot be written: No space left"):
            ledger.note(Holding("loop", "/x"))
        assert (image,) == ledger.holdings()
        # What is given back is given back, whether that can be written down or not.
        ledger.settled(image)
        assert () == ledger.holdings()
        with pytest.raises(MachineUnfit, match="cannot be written: No space left"):
            Ledger.open(tmp_path, "b")
    ledger.close()
    assert [] == [path for path in tmp_path.iterdir() if path.name != ".locks"]


def test_a_line_of_which_only_a_part_fits_is_not_written_and_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, write = Ledger.open(tmp_path, "a"), os.write
    before, after = Holding("image", "/before"), Holding("image", "/after")
    ledger.note(before)
    with monkeypatch.context() as patched:
        patched.setattr(
            "bedplate.host.ledger.os.write", lambda file, data: write(file, data[: len(data) // 2])
        )
        with pytest.raises(MachineUnfit, match="No space left"):
            ledger.note(Holding("loop", "/torn"))
        with pytest.raises(MachineUnfit, match="No space left"):
            Ledger.open(tmp_path, "b")
        # Nothing says that it was given back, so that it is looked for once more.
        ledger.settled(before)
    ledger.note(after)
    text = (tmp_path / "a/ledger.jsonl").read_bytes()
    assert {item.key: item for item in (before, after)} == ledger_module.replay(text)
    ledger.settled(after)
    ledger.close()
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line", ["5", "null", '"note"', "{}", "[1]", '["note", "image"]', "[" * 20_000, "\0"]
)
def test_a_damaged_line_is_passed_over(tmp_path: Path, line: str) -> None:
    image = tmp_path / "x.img"
    image.touch()
    directory = _dead(tmp_path / "state", "a", [])
    noted = json.dumps(["note", "image", str(image), ""])
    with (directory / "ledger.jsonl").open("a") as file:
        file.write(f"{line}\n{noted}\n")
    report = release_orphans(tmp_path / "state", NoCommands())
    assert ((f"{image} deleted",), ()) == (report.released, report.problems)
    assert not directory.exists()


def test_what_a_kill_leaves_of_a_ledger_that_was_given_back_is_no_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()

    def killed(directory: Path) -> tuple[str, ...]:
        (directory / "ledger.jsonl").unlink()
        raise KeyboardInterrupt

    ledger = Ledger.open(tmp_path, "a")
    (ledger.directory / "mount").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(ledger_module, "remove_tree", killed)
        patched.setattr("bedplate.host.ledger.os.getpid", lambda: child.pid)
        with pytest.raises(KeyboardInterrupt):
            ledger.close()
    (left,) = tmp_path.iterdir()
    assert f".a.{child.pid}" == left.name
    release_orphans(tmp_path, NoCommands())
    assert [] == list(tmp_path.iterdir())
