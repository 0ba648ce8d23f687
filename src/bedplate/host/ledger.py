"""What is held of the machine, written down before it is taken.

After a SIGKILL the next start reads the ledger and gives everything back. A ledger is a directory
`<state directory>/<owner>/` with a file of JSON lines: a head that says who owns it, then `note` and
`settled` lines in the order of events. It appears whole, by a rename, so a head is never half
written; a half-written last line was never acted upon, since a line is written before the act.

The owner holds a lock on the file. A child that was forked and has not yet become its program does not
bear the mark yet, and shares the lock: who gives back takes the lock first, and so waits until every
child can be seen, or a mount under way would come after the unmount. `subprocess` closes what it has
inherited before the program begins, so the file is mapped as well: a lock of flock(2) ends with the last
reference to the open file, and a mapping is one. A child that shares the owner's memory until execve(2), as
those that mount and attach do (vfork(2)), keeps it so long. A copy of the memory has no such mapping, since
some live on without a program: what runs as an account is found by its group or its data directory.

Everything else in that directory (mount points, sockets) is temporary too and goes with it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import mmap
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from bedplate.errors import DeviceInUse, MachineUnfit, RequirementMissing
from bedplate.host import process, undo
from bedplate.host.command import MARK
from bedplate.host.file_lock import take_lock
from bedplate.host.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.host.command import Commands

_FILE = "ledger.jsonl"
# Another start may be giving it back: it ends servers and waits for an unmount.
_LOCK_PATIENCE_S = 120.0
_SWEEPS_MAX = 20


@dataclass(frozen=True)
class Holding:
    """One thing that was taken of the machine; its `kind` says what `name` and `detail` are.

    mount (target; source), loop (image; device and the numbers of its file, once known), loops (folder of images), server (data directory; prefix),
    shared_memory (a server's data directory; its account and when it was started), process (pid; start time), cgroup (its directory), tunable (file; text that restores it),
    throttle (file and device number; line that restores it), write_cache (device name; original),
    image (file to delete), directory (to remove when empty), journal_device (its stable name; what
    blkid found on it after mkfs).
    """

    kind: str
    name: str
    detail: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What a later note or settlement of the same thing is known by."""
        return (self.kind, self.name)


@dataclass(frozen=True)
class ReleaseReport:
    """What was given back, what could not be, and the ledgers whose owner is still at work."""

    released: tuple[str, ...]
    problems: tuple[str, ...]
    alive: tuple[str, ...]


@dataclass(frozen=True)
class _Owner:
    pid: int
    start_time: str
    boot_id: str

    @property
    def same_boot(self) -> bool:
        return self.boot_id == process.boot_id()

    @property
    def alive(self) -> bool:
        return self.same_boot and process.is_running(self.pid, self.start_time)


class Holdings(Protocol):
    """What a taker needs of a ledger."""

    def note(self, holding: Holding) -> None:
        """Write down what will be taken."""
        ...

    def settled(self, holding: Holding) -> None:
        """Write down that it was given back."""
        ...


class KnownHoldings(Holdings, Protocol):
    """The same, and what is held can be asked."""

    def held(self) -> tuple[Holding, ...]:
        """What is held, in the order of taking."""
        ...


class Ledger:
    """The ledger of this process. `directory` is <state directory>/<owner>/."""

    def __init__(self, directory: Path, file: int, owner: _Owner, mapped: mmap.mmap | None = None) -> None:
        self.directory = directory
        self._file = file
        self._mapped = mapped
        self._owner = owner
        self._held: dict[tuple[str, str], Holding] = {}
        self._mark_before = os.environ.get(MARK)

    @classmethod
    def open(cls, state_directory: Path, owner: str) -> Ledger:
        """A new ledger. `owner` is a plain file name.

        DeviceInUse if one of that name is there: its owner is at work, or left something behind.
        """
        if not owner or "/" in owner or owner.startswith(".") or "\0" in owner:
            raise ValueError(f"the owner of a ledger is a plain file name, not {owner!r}")
        _own_state_directory(state_directory)
        directory = state_directory / owner
        pid = os.getpid()
        head = _Owner(pid, process.start_time(pid) or "", process.boot_id())
        hidden = state_directory / f".{owner}.{pid}"
        text = json.dumps({"pid": head.pid, "start_time": head.start_time, "boot_id": head.boot_id})
        file = -1
        try:
            hidden.mkdir(mode=0o755)
            file = os.open(hidden / _FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            _write_whole(file, text.encode() + b"\n")
            mapped = mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
            mapped.madvise(mmap.MADV_DONTFORK)
        except OSError as error:
            if file >= 0:
                os.close(file)
            undo.remove_tree(hidden)
            raise _cannot_write(hidden, error) from error
        try:
            hidden.rename(directory)
        except OSError:
            mapped.close()
            os.close(file)
            undo.remove_tree(hidden)
            raise DeviceInUse(
                f"{directory} is there already: {_who(directory)}; `bedplate release` frees what was left"
            ) from None
        ledger = cls(directory, file, head, mapped)
        os.environ[MARK] = str(directory)
        return ledger

    def note(self, holding: Holding) -> None:
        """Write down what is about to be taken; a second note of it replaces the detail.

        MachineUnfit where it cannot be written: then it must not be taken.
        """
        try:
            self._write("note", holding)
        except OSError as error:
            raise _cannot_write(self.directory / _FILE, error) from error
        self._held[holding.key] = holding

    def settled(self, holding: Holding) -> None:
        """Write down that it was given back; the detail does not matter."""
        if holding.key in self._held:
            # Unwritten, it is looked for again by a later release, which finds nothing left of it.
            with contextlib.suppress(OSError):
                self._write("settled", holding)
            del self._held[holding.key]

    def held(self) -> tuple[Holding, ...]:
        """What is held, in the order of taking."""
        return tuple(self._held.values())

    def release(self, commands: Commands) -> tuple[str, ...]:
        """Give back everything still held, last taken first; the problems as sentences.

        What could not be given back stays in the ledger, for `release_orphans`.
        """
        _, problems = _give_back(self, commands, same_boot=True, orphan=False)
        return tuple(problem.text for problem in problems)

    def close(self) -> None:
        """End the ledger; its directory goes, unless something is still held."""
        if self._file < 0:
            return
        if self._mapped is not None:
            self._mapped.close()
        os.close(self._file)
        self._file = -1
        if self._mark_before is None:
            os.environ.pop(MARK, None)
        else:
            os.environ[MARK] = self._mark_before
        if not self._held:
            _remove(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, event: str, holding: Holding) -> None:
        line = json.dumps([event, holding.kind, holding.name, holding.detail])
        _write_whole(self._file, line.encode() + b"\n")


def release_orphans(state_directory: Path, commands: Commands) -> ReleaseReport:
    """Give back what every dead owner left. Safe to repeat, and beside owners that are at work."""
    if not state_directory.is_dir():
        return ReleaseReport((), (), ())
    _own_state_directory(state_directory)
    released, problems = _release_each(state_directory, commands)
    if problems and released:
        # What two ledgers hold is free only once both have let go of it: judged after all of them.
        final = [problem.text for problem in problems if problem.settled]
        more, problems = _release_each(state_directory, commands)
        released += more
        problems = [*(_Problem(text, settled=True) for text in final), *problems]
    _remove_unborn(state_directory)
    alive = tuple(f"{path.name}: {_who(path)}" for path in _ledgers(state_directory) if _alive(path))
    return ReleaseReport(tuple(released), tuple(problem.text for problem in problems), alive)


@dataclass(frozen=True)
class _Problem:
    """Why something could not be given back; `settled` where no later release will try again."""

    text: str
    settled: bool


def _release_each(state_directory: Path, commands: Commands) -> tuple[list[str], list[_Problem]]:
    """One attempt at every dead owner's ledger."""
    released: list[str] = []
    problems: list[_Problem] = []
    seen: set[Path] = set()
    while True:
        # A released ledger may have ended the owner of another one, which is then an orphan too.
        orphans = [path for path in _ledgers(state_directory) if path not in seen and not _alive(path)]
        if not orphans:
            return released, problems
        for directory in orphans:
            seen.add(directory)
            with _claimed(directory) as ledger:
                if ledger is None:
                    if directory.exists():
                        text = f"{directory} is being given back by another process"
                        problems.append(_Problem(text, settled=False))
                    continue
                same_boot = ledger._owner.same_boot  # noqa: SLF001 -- this module's own class
                done, failed = _give_back(ledger, commands, same_boot=same_boot, orphan=True)
                released += done
                problems += failed
                if not ledger.held():
                    problems += [_Problem(text, settled=False) for text in _remove(directory)]


def _give_back(
    ledger: Ledger, commands: Commands, *, same_boot: bool, orphan: bool
) -> tuple[list[str], list[_Problem]]:
    released: list[str] = []
    problems: list[_Problem] = []
    servers = tuple(item for item in ledger.held() if item.kind == "server")
    groups = tuple(Path(item.name) for item in ledger.held() if item.kind == "cgroup")

    def sweep() -> None:
        """End what the owner's tools and servers still do: they would hold the mount."""
        released.extend(f"server on {server.name} ended" for server in servers if undo.end_server(server))
        for group in groups:
            undo.empty_group(group)
        # Again and again, since one may have forked another meanwhile.
        for _ in range(_SWEEPS_MAX):
            pids = process.marked_with(MARK, str(ledger.directory))
            if not pids:
                break
            for pid in pids:
                # Gently: one of them may be a visit that gives its own things back.
                process.end_process(pid, gently=signal.SIGTERM)
                released.append(f"process {pid} ended")

    if same_boot and orphan:
        sweep()
    for holding in reversed(ledger.held()):
        if not same_boot and holding.kind not in undo.SURVIVE_A_REBOOT:
            outcome = undo.Undone(None)
        else:
            outcome = undo.give_back(holding, commands, directory=ledger.directory, sweep=sweep)
        if outcome.problem is not None:
            problems.append(_Problem(outcome.problem, settled=outcome.settled))
        if outcome.done is not None:
            released.append(outcome.done)
        if outcome.settled:
            ledger.settled(holding)
    return released, problems


@contextlib.contextmanager
def _claimed(directory: Path) -> Iterator[Ledger | None]:
    """A dead owner's ledger, read from its file; None if someone else is giving it back right now."""
    try:
        file = os.open(directory / _FILE, os.O_RDWR | os.O_APPEND)
    except FileNotFoundError:
        yield None
        return
    try:
        # flock(2) can wait, but not for so long and no longer.
        if not wait_until(lambda: take_lock(file), deadline_s=_LOCK_PATIENCE_S):
            yield None
            return
        owner = _read_owner(directory)
        if owner is None:
            yield None
            return
        ledger = Ledger(directory, file, owner)
        text = os.pread(file, os.fstat(file).st_size, 0)
        if not text.endswith(b"\n"):
            # A full disk takes no line, and no half of one then.
            with contextlib.suppress(OSError):
                os.write(file, b"\n")
        ledger._held = replay(text)  # noqa: SLF001 -- this module's own class
        yield ledger
    finally:
        os.close(file)


def _write_whole(file: int, line: bytes) -> None:
    """One line in one write; OSError where it does not fit, and then nothing of it is there.

    A disk that fills up takes a part of it without a complaint, and the next line would be added to that.
    """
    size_bytes = os.fstat(file).st_size
    if os.write(file, line) == len(line):
        return
    os.ftruncate(file, size_bytes)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def replay(text: bytes) -> dict[tuple[str, str], Holding]:
    """What is held after all lines of a ledger but its first; a line that is none is passed over."""
    held: dict[tuple[str, str], Holding] = {}
    for line in text.split(b"\n")[1:]:
        try:
            event, kind, name, detail = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        holding = Holding(str(kind), str(name), str(detail))
        if event == "note":
            held[holding.key] = holding
        else:
            held.pop(holding.key, None)
    return held


def _cannot_write(path: Path, error: OSError) -> MachineUnfit:
    why = error.strerror or str(error)
    return MachineUnfit(
        f"{error.filename or path} cannot be written: {why}; free some room in the state directory, or name another "
        "with the variable BEDPLATE_STATE"
    )


def _own_state_directory(path: Path) -> None:
    """Whoever may write here could make root delete any file: so nobody else may."""
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(path, error) from error
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RequirementMissing(
            f"{path} must belong to uid {os.geteuid()} and be writable by nobody else "
            f"(it belongs to {status.st_uid}, mode {status.st_mode & 0o7777:o}); "
            f"choose another state directory, or chown and chmod 755 it"
        )


def _ledgers(state_directory: Path) -> tuple[Path, ...]:
    return tuple(
        path
        for path in sorted(state_directory.iterdir())
        if not path.name.startswith(".") and (path / _FILE).is_file()
    )


def _read_owner(directory: Path) -> _Owner | None:
    try:
        with (directory / _FILE).open(encoding="utf-8", errors="replace") as file:
            head = json.loads(file.readline())
        return _Owner(int(head["pid"]), str(head["start_time"]), str(head["boot_id"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        # Not a head of ours (a damaged file after a power cut): nobody living wrote it.
        return _Owner(0, "", "")


def _alive(directory: Path) -> bool:
    owner = _read_owner(directory)
    return owner is not None and owner.alive


def _who(directory: Path) -> str:
    owner = _read_owner(directory)
    if owner is None:
        return "it has no ledger"
    return f"process {owner.pid} {'is at work' if owner.alive else 'is gone'}"


def _remove(directory: Path) -> tuple[str, ...]:
    """Remove a ledger that holds nothing any more; the problems.

    By its name first: what a kill leaves of it is then known for one that is no ledger, as one that was never born.
    """
    hidden = directory.with_name(f".{directory.name}.{os.getpid()}")
    if problems := undo.mounts_inside(directory):
        return problems
    try:
        directory.rename(hidden)
    except FileNotFoundError:
        return ()
    except OSError:
        hidden = directory
    return undo.remove_tree(hidden)


def _remove_unborn(state_directory: Path) -> None:
    """Directories of ledgers whose owner died before the first rename, or after the last."""
    for path in state_directory.glob(".*.*"):
        pid = path.name.rpartition(".")[2]
        if path.is_dir() and pid.isdecimal() and process.start_time(int(pid)) is None:
            undo.remove_tree(path)
