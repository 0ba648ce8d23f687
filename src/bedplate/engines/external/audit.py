"""What an own engine acknowledges before it is synced, by its own calls: no power is cut, and no checker runs (docs/ENGINES.md).

`drivers/file_calls.c` runs the writer and writes down each call that changes or syncs a file. What stands here judges that list. A
sync covers what was done before it *began*. An acknowledgement speaks of what was done before it, but for what may belong to
a transaction of another client that is still under way.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path

from bedplate.engines.external.prepare import (
    FILE,
    EngineDescription,
    EnginePromise,
    engine_values,
    keep_copy,
    read_folder,
)
from bedplate.engines.external.visit import LONGEST_WORDS, PREPARATION_LIMIT_S, AuthorPrograms, how_it_ended
from bedplate.errors import (
    EXIT_CANNOT_TELL,
    EXIT_DONE,
    EXIT_SOME_RUNS_FAILED,
    BedplateError,
    OutputNotUnderstood,
    RequirementMissing,
)
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory, state_directory
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.native_driver import ensure_driver
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.host.shut_in import DATA, SIGNALS_FROM
from bedplate.installation import shipped
from bedplate.model.durability import BOUNDED_LOSS, UNKNOWN, UNSAFE
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.units import MIB

DRIVER = "file_calls"

# One client shows each commit by itself; two show what clients that share a sync leave out.
CLIENTS = (1, 2)

_LINES_MOST, _PRINTED_BYTES_MOST = 400_000, 256 * MIB

# Behind the time of the writer: what the driver gives it to end, and the busy machine's share.
_PATIENCE_S = 120.0

# A device writes a sector whole: what is not larger, and stays as long, is the old or the new one.
_SECTOR_BYTES = 512

_ESCAPES = {"\\\\": "\\", "\\t": "\t", "\\n": "\n"}
_ESCAPE = re.compile(r"\\[\\tn]")
_DIGITS = re.compile(r"\d+")
_ACK = re.compile(r"ack (\d+) (\d+)")

Name = tuple[str, str]


@dataclass
class _Change:
    """Something done to a file or a name, by where its call began and ended in the order of all."""

    entry: int
    end: int
    ns: int


@dataclass
class _Span:
    """From a change that waits for a sync to that sync: the acknowledgements between, by number; at those that are `bare` nothing else was synced."""

    first_ns: int
    acks: set[int] = field(default_factory=set)
    bare: set[int] = field(default_factory=set)


@dataclass
class _File:
    """What is known of a file. `waiting` are changes of its bytes and size that no sync covers."""

    path: str
    waiting: list[_Change] = field(default_factory=list)
    span: _Span = field(default_factory=lambda: _Span(0))
    names: set[Name] = field(default_factory=set)
    is_synced: bool = False
    is_acknowledged: bool = False
    is_mapped: bool = False
    is_synced_mapped: bool = False
    is_locked: bool = False
    # By sync_file_range, which some take for a sync.
    is_ranged: bool = False

    @property
    def is_shared_memory(self) -> bool:
        """Whether processes share it as memory, as an index or a table of readers, which each start makes anew."""
        return self.is_mapped and self.is_locked

    @property
    def display(self) -> str:
        """By a name that it has, else the last one that it had."""
        return display_name(self.path.removesuffix(" (deleted)"))


@dataclass
class _Naming:
    """A name that was given or taken away, until its folder is synced. `is_by_file`: the file's own fsync came behind it."""

    change: _Change
    method: str
    file: str
    path: str
    span: _Span
    is_by_file: bool = False


@dataclass
class FindingGroup:
    """All of one kind in names that differ by their numbers alone."""

    names: dict[str, None] = field(default_factory=dict)
    acks: set[int] = field(default_factory=set)
    lag: int = 0
    taker: str = ""
    is_never_too: bool = False
    is_ranged: bool = False
    is_first_sync: bool = True


_Groups = dict[tuple[str, str], FindingGroup]


class CallJudge:
    """Goes through the calls once, in the order in which they ended."""

    def __init__(self, promise: EnginePromise | None, clients: int) -> None:
        self._promise, self._clients = promise, clients
        self._files: dict[str, _File] = {}
        self._names: dict[Name, str] = {}
        self._namings: dict[Name, _Naming] = {}
        self._durable_names: set[Name] = set()
        # Those that wait, and those that were synced since the last acknowledgement.
        self._waiting: dict[str, _File] = {}
        self._fresh: dict[str, _File] = {}
        self._syncs: list[tuple[_Change, str]] = []
        self._last_ack: dict[int, int] = {}
        self._begin: int | None = None
        # Since the last acknowledgement: what was acknowledged and destroyed; names taken away; files emptied, or written from the start, how far; whether one
        # took another's place.
        self._destroyed: list[tuple[str, str, str]] = []
        self._away: set[Name] = set()
        self._emptied: set[str] = set()
        self._begun: dict[str, int] = {}
        self._is_replaced = False
        # Acknowledgements since whose predecessor nothing was synced at all.
        self._unsynced_acks: set[int] = set()
        self.acks = self.calls = self.status = 0
        self.is_full = self.has_end = False
        self.unseen: dict[str, None] = {}
        self.mapped: dict[str, None] = {}
        self.findings: _Groups = defaultdict(FindingGroup)
        self.doubts: _Groups = defaultdict(FindingGroup)
        self.names_by_file: dict[str, dict[str, None]] = defaultdict(dict)

    def read(self, line: str) -> None:
        """One line of the driver's; ValueError where it is none."""
        words = [_ESCAPE.sub(lambda match: _ESCAPES[match[0]], word) for word in line.split("\t")]
        entry, end, _thread, ns, kind, *rest = words
        change = _Change(int(entry), int(end), int(ns))
        self.calls += kind not in ("mark", "end", "unseen")
        match kind, rest:
            case "write", [file, offset, length, waits, size, path]:
                self._look_at_write(file, self._file(file, path), int(offset), int(length), int(size))
                if waits == "0":
                    self._wait(file, change)
                else:
                    self._note_sync(file, change)
            case "sync", [how, file, _offset, _length, path]:
                self._sync(change, how, file, self._file(file, path))
            case "all", [_how]:
                for file in list(self._waiting):
                    self._cover_bytes(file, change)
                for name in list(self._namings):
                    self._cover_name(name, change)
            case "size", [how, file, size, rest_size, path]:
                known = self._file(file, path)
                if how == "truncate":
                    if rest_size == "0" and known.is_acknowledged and not self._is_replaced:
                        self._emptied.add(file)
                    if self._begun.get(file) == int(rest_size) > 0:
                        self._overwrite(file, known)
                    else:
                        self._destroy(file, "truncated")
                self._wait(file, change)
            case "zero", [how, file, _offset, _length, _size, path]:
                self._file(file, path)
                if how in ("punch", "zero", "collapse"):
                    self._destroy(file, "punched" if how == "punch" else "zeroed")
                self._wait(file, change)
            case "add", [how, folder, name, file, directory]:
                self._add(change, how, (folder, name), file, f"{directory}/{name}")
            case "remove", [_how, folder, name, file, directory]:
                self._remove(change, (folder, name), file, f"{directory}/{name}")
            case "rename", [folder, name, to, to_name, file, before, _from, directory]:
                self._rename(change, ((folder, name), (to, to_name)), file, before, f"{directory}/{to_name}")
            case "map", [file, path]:
                self._file(file, path).is_mapped = True
            case "lock", [file]:
                self._file(file, "").is_locked = True
            case "mark", [text]:
                for mark in text.splitlines():
                    self._mark(change, mark)
            case "unseen", [name]:
                self.unseen[name] = None
            case "end", [status, full]:
                self.status, self.is_full, self.has_end = int(status), full == "1", True
                self._finish(change)
            case _:
                raise ValueError(f"{kind} has {len(rest)} fields")

    def _file(self, file: str, path: str) -> _File:
        known = self._files.get(file)
        if known is None:
            known = self._files[file] = _File(path)
        return known

    def _wait(self, file: str, change: _Change) -> None:
        known = self._files[file]
        if not known.waiting:
            known.span = _Span(change.ns)
            self._waiting[file] = known
        known.waiting.append(change)

    def _look_at_write(self, file: str, file_state: _File, *numbers: int) -> None:
        offset, length, size = numbers
        is_whole = offset == 0 < size <= length and (length > _SECTOR_BYTES or length != size)
        if file in self._emptied or is_whole:
            self._overwrite(file, file_state)
        elif offset == 0:
            self._begun[file] = length

    def _overwrite(self, file: str, file_state: _File) -> None:
        """All that stood in it is another content now."""
        self._emptied.discard(file)
        # A file that is locked is a database, and what it held may stand in its log.
        if file_state.is_acknowledged and not file_state.is_locked:
            self._note(self.findings, "in-place", file_state.display)
            self._replace(file, file_state.display)

    def _note_sync(self, file: str, change: _Change) -> None:
        self._files[file].is_synced = True
        self._fresh[file] = self._files[file]
        self._syncs.append((change, file))

    def _sync(self, change: _Change, method: str, file: str, file_state: _File) -> None:
        if method == "range":
            file_state.is_ranged = True
            return
        if file_state.is_mapped and not file_state.waiting:
            self._note_sync(file, change)
        self._cover_bytes(file, change)
        file_state.is_synced, file_state.is_synced_mapped = True, file_state.is_mapped
        self._fresh[file] = file_state
        for name, naming in list(self._namings.items()):
            if name[0] == file:
                self._cover_name(name, change)
            # ext4, XFS, Btrfs and F2FS write the name of a new file with its fsync; a link's or a rename's not with fdatasync, as no more than
            # times of the file were changed.
            elif (
                naming.file == file
                and naming.method != "remove"
                and naming.change.end < change.entry
                and (method == "fsync" or naming.method in ("create", "mkdir"))
            ):
                self._end_naming(naming, change)
                naming.is_by_file, naming.span = True, _Span(change.ns)

    def _cover_bytes(self, file: str, change: _Change) -> None:
        """A sync has everything that was done before it began; what was done meanwhile it may have or not."""
        known = self._files[file]
        rest = [waiting for waiting in known.waiting if waiting.end >= change.entry]
        if len(rest) == len(known.waiting):
            return
        self._end_bytes(known, change)
        self._note_sync(file, change)
        known.waiting, known.span = rest, _Span(change.ns)
        if not rest:
            self._waiting.pop(file, None)

    def _cover_name(self, entry_name: Name, change: _Change) -> None:
        naming = self._namings[entry_name]
        if naming.change.end >= change.entry:
            return
        self._end_naming(naming, change)
        del self._namings[entry_name]
        (self._durable_names.discard if naming.method == "remove" else self._durable_names.add)(entry_name)

    def _add(self, change: _Change, method: str, entry_name: Name, file: str, path: str) -> None:
        if method in ("create", "mkdir", "mknod", "symlink"):
            # The number of a file that is gone may be another's now.
            self._files.pop(file, None)
            self._waiting.pop(file, None)
        self._take_place(entry_name, path)
        self._give_name(change, method, entry_name, file, path)

    def _give_name(self, change: _Change, method: str, entry_name: Name, file: str, path: str) -> None:
        known = self._file(file, path)
        known.path = path
        known.names.add(entry_name)
        self._names[entry_name] = file
        if entry_name in self._namings:
            self._end_naming(self._namings[entry_name], change)
        self._namings[entry_name] = _Naming(change, method, file, path, _Span(change.ns))

    def _take_place(self, entry_name: Name, path: str) -> None:
        if entry_name in self._away:
            self._note(self.findings, "away", display_name(path))
            self._replace("", display_name(path))

    def _forget_name(self, entry_name: Name, change: _Change, file: str, path: str) -> None:
        """A name is gone: one that was never on the disk leaves nothing to be synced."""
        self._names.pop(entry_name, None)
        known = self._files.get(file)
        if known is not None:
            known.names.discard(entry_name)
            if not known.names and known.waiting:
                self._end_bytes(known, change, is_never=True)
                known.waiting = []
                self._waiting.pop(file, None)
        naming = self._namings.pop(entry_name, None)
        if naming is not None:
            self._end_naming(naming, change, is_never=True)
        # What was taken away once something else had taken its place is not missed, and may come back.
        if not self._is_replaced and (
            naming is None or naming.is_by_file or entry_name in self._durable_names
        ):
            self._namings[entry_name] = _Naming(change, "remove", file, path, _Span(change.ns))

    def _remove(self, change: _Change, entry_name: Name, file: str, path: str) -> None:
        known = self._file(file, path)
        if known.is_acknowledged and not known.is_locked:
            if len(known.names) <= 1:
                self._destroy(file, "removed")
            self._away.add(entry_name)
        self._forget_name(entry_name, change, file, path)

    def _rename(
        self, change: _Change, old_and_new: tuple[Name, Name], file: str, before: str, path: str
    ) -> None:
        (old, new), known, replaced = old_and_new, self._file(file, path), self._files.get(before)
        if replaced is not None and replaced.is_acknowledged and before != file:
            if known.waiting:
                self._note(self.findings, "rename-first", display_name(path))
            self._replace(before, display_name(path))
        else:
            self._take_place(new, path)
        if replaced is not None:
            self._forget_name(new, change, before, path)
        known.names.add(new)
        self._forget_name(old, change, file, known.path)
        if old[0] == new[0]:
            # The sync that keeps the new name takes the old one away.
            self._namings.pop(old, None)
            self._durable_names.discard(old)
        self._give_name(change, "rename", new, file, path)

    def _destroy(self, file: str, words: str) -> None:
        known = self._files[file]
        if known.is_acknowledged and not known.is_shared_memory:
            self._destroyed.append((file, known.display, words))

    def _replace(self, file: str, taker: str) -> None:
        """The content of `taker` is another one now: what it had may have needed what was destroyed before, in the same commit."""
        if not self._is_replaced:
            for lost, name, words in self._destroyed:
                if lost != file and name != taker:
                    self._note(self.findings, words, name).taker = taker
        self._is_replaced = True

    def _note(self, finding_groups: _Groups, code: str, name: str) -> FindingGroup:
        group = finding_groups[code, _DIGITS.sub("#", name)]
        group.names[name] = None
        group.acks.add(self.acks)
        return group

    def _mark(self, change: _Change, text: str) -> None:
        if text == "begin" and self._begin is None:
            self._begin = change.entry
        match = _ACK.fullmatch(text)
        if match is None:
            return
        client, begin = int(match[1]), self._begin or 0
        others = [self._last_ack.get(other, begin) for other in range(self._clients) if other != client]
        # What another client has begun since its last line it need not have synced yet.
        before = min([change.entry, *others])
        since = self._last_ack.get(client, begin)
        recent = []
        for sync, file in reversed(self._syncs):
            if sync.end < since:
                break
            recent.append((sync.entry, file))
        if not recent:
            self._unsynced_acks.add(self.acks)
        for file, known in self._waiting.items():
            if known.names and known.waiting[0].entry < before:
                known.span.acks.add(self.acks)
                # An engine's log is synced before its other files are written, or behind: they may be covered by it.
                if not known.is_synced or all(other == file for _, other in recent):
                    known.span.bare.add(self.acks)
        for name, naming in self._namings.items():
            if naming.change.entry < before:
                naming.span.acks.add(self.acks)
                if not any(entry > naming.change.end for entry, _ in recent):
                    naming.span.bare.add(self.acks)
                if naming.is_by_file:
                    self._durable_names.add(name)
        for known in self._fresh.values():
            known.is_acknowledged = known.is_acknowledged or not known.waiting
        self._fresh.clear()
        self._last_ack[client] = change.entry
        self.acks += 1
        self._destroyed.clear()
        self._away.clear()
        self._emptied.clear()
        self._begun.clear()
        self._is_replaced = False

    def _is_promised(self, span: _Span, change: _Change) -> bool:
        """Whether the author's bounded loss is as large as what waits."""
        promise = self._promise
        if promise is None or promise.durability != BOUNDED_LOSS:
            return False
        return (
            promise.transactions is not None and len(span.acks) <= promise.transactions * self._clients
        ) or (promise.ms is not None and change.ns - span.first_ns <= promise.ms * 1e6)

    def _end_bytes(self, file_state: _File, change: _Change, *, is_never: bool = False) -> None:
        span = file_state.span
        if not span.acks or self._is_promised(span, change):
            return
        if file_state.is_shared_memory:
            self.mapped[file_state.display] = None
            return
        groups, acks = (self.findings, span.bare) if span.bare else (self.doubts, span.acks)
        group = self._add_span(
            groups, "bytes-never" if is_never else "bytes-late", file_state.display, span, acks
        )
        group.is_ranged = group.is_ranged or file_state.is_ranged
        group.is_first_sync = group.is_first_sync and not file_state.is_synced

    def _end_naming(self, naming: _Naming, change: _Change, *, is_never: bool = False) -> None:
        span, known, name = naming.span, self._files.get(naming.file), display_name(naming.path)
        if not span.acks or self._is_promised(span, change):
            return
        if known is not None and known.is_locked and not known.is_synced:
            return  # a file to be locked, which each start makes anew
        if naming.is_by_file:
            self.names_by_file[folder_of(name)][name] = None
        elif naming.method == "remove":
            self._add_span(self.doubts, "removal", name, span, span.bare or span.acks)
        elif is_never:
            self._add_span(self.findings, "name-never", name, span, span.acks)
        else:
            self._add_span(
                self.findings if span.bare else self.doubts, "name-late", name, span, span.bare or span.acks
            )

    def _add_span(
        self, finding_groups: _Groups, code: str, name: str, span: _Span, acks: set[int]
    ) -> FindingGroup:
        group = finding_groups[code, _DIGITS.sub("#", name)]
        group.names[name] = None
        group.acks |= acks
        group.lag = max(group.lag, len(span.acks))
        return group

    def _finish(self, change: _Change) -> None:
        for known in self._waiting.values():
            if known.names:
                self._end_bytes(known, change, is_never=True)
        for naming in self._namings.values():
            self._end_naming(naming, change, is_never=True)
        for known in self._files.values():
            if known.is_mapped and known.names and not known.is_shared_memory:
                if not known.is_synced_mapped and 2 * len(self._unsynced_acks) >= self.acks:
                    group = self._note(self.findings, "mapped-never", known.display)
                    group.acks = self._unsynced_acks
                else:
                    self.mapped[known.display] = None
        # Where each commit ends with it, taking the name away is the commit; elsewhere a file comes back that nobody needs.
        for key, group in list(self.doubts.items()):
            if key[0] == "removal" and 2 * len(group.acks) >= self.acks:
                self.findings[key] = self.doubts.pop(key)
        for groups in (self.findings, self.doubts):
            for code, name in list(groups):
                never = groups.get(("bytes-never", name))
                if never is not None and code == "bytes-late":
                    late = groups[code, name]
                    late.acks |= never.acks
                    late.names |= never.names
                    late.is_never_too = True
                    del groups["bytes-never", name]
                elif never is not None and code == "rename-first":
                    # What was never synced was not synced before it was renamed either.
                    del groups[code, name]


def display_name(path: str) -> str:
    """A path as its author knows it, from the engine's folder on."""
    return path.removeprefix(f"{DATA}/") if path != DATA else "."


def folder_of(name: str) -> str:
    """The folder that a name stands in, as a reader is told of it."""
    return f"{name.rpartition('/')[0] or 'DIRECTORY'}/"


@dataclass(frozen=True)
class AuditFinding:
    """A sentence about names, and the way out. `commits` of those that were acknowledged it is true of; of an order the times that it was so."""

    code: str
    names: tuple[str, ...]
    clients: int
    commits: int
    sentence: str
    way_out: str


@dataclass(frozen=True)
class Audit:
    """What a writer's calls say of one choice of settings. `commits` were acknowledged with as many clients as the key says.

    `findings` are what a commit relies on and never asked for. `doubts` may be covered by what else was synced. `remarks` are kept by the usual
    file systems and by no standard, or cannot be seen. `unseen` are calls whose work nobody can follow: without findings nothing is known then.
    """

    engine: str
    settings: Mapping[str, Scalar]
    promise: str
    commits: Mapping[int, int]
    calls: int
    findings: tuple[AuditFinding, ...]
    doubts: tuple[AuditFinding, ...]
    remarks: tuple[str, ...]
    unseen: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """1 with findings that are not what the author promises anyway, 125 where not all could be seen."""
        if self.promise == UNSAFE or not (self.findings or self.unseen):
            return EXIT_DONE
        return EXIT_SOME_RUNS_FAILED if self.findings else EXIT_CANNOT_TELL

    @property
    def document(self) -> dict[str, object]:
        """Of JSON."""
        return {**asdict(self), "exit_code": self.exit_code}


# The gravest first: what is gone, what a cut at the wrong moment takes, what a later sync mends.
_CODES = (
    "bytes-never",
    "mapped-never",
    "name-never",
    "away",
    "removed",
    "truncated",
    "punched",
    "zeroed",
    "in-place",
    "rename-first",
    "bytes-late",
    "name-late",
    "removal",
)


def audit_engine(folder: Path, words: Mapping[str, Sequence[str]], *, duration_s: int) -> Iterator[Audit]:
    """One for each choice of the settings in `words`. PlanError for a folder that is none; RequirementMissing where nothing can be followed."""
    engine = read_folder(folder.resolve(), may_lack_checker=True)
    values = engine_values(engine.description, words)
    driver = ensure_driver(
        DRIVER,
        source=shipped("drivers") / f"{DRIVER}.c",
        cache_directory=cache_directory() / "drivers",
        commands=Commands(),
    )
    programs = keep_copy(engine.path, engine.description, engine.digest, may_lack_checker=True)
    for chosen in product(*values.values()):
        settings = Levels(dict(zip(values, chosen, strict=True)))
        promise = engine.description.promise(settings)
        writer = AuthorPrograms(programs, engine.description, settings)
        judges = {clients: CallJudge(promise, clients) for clients in CLIENTS}
        for clients, judge in judges.items():
            _run(writer, judge, driver, clients=clients, duration_s=duration_s)
        yield _audit(engine.description, settings, promise, judges)


def _run(
    author_programs: AuthorPrograms, judge: CallJudge, driver: Path, *, clients: int, duration_s: int
) -> None:
    """The writer once, in a folder in memory, where no sync takes time and nothing of anybody's is written to."""
    account, name = server_account(), author_programs.description.name
    with Ledger.open(state_directory(), f"{os.getpid()}-audit") as ledger:
        place = Path(tempfile.mkdtemp(prefix="bedplate-audit-", dir=MEMORY_DIRECTORY))
        ledger.note(Holding("log_directory", str(place)))
        try:
            data = place / "data"
            data.mkdir(mode=0o700)
            shutil.chown(data, account.uid, account.gid)
            writer = author_programs.writer(data, account, clients=clients, seed=1, duration_s=duration_s)
            limits = ("--folder", DATA, "--duration", str(duration_s), "--most", str(_LINES_MOST))
            confined = replace(writer, argv=(str(driver), *limits, "--", *writer.argv), readable=(driver,))
            done = Commands().run(
                confined.argv,
                timeout_s=PREPARATION_LIMIT_S + duration_s + _PATIENCE_S,
                check=False,
                most_bytes=_PRINTED_BYTES_MOST,
                confinement=confined,
            )
        finally:
            ledger.release(Commands())
    stderr = done.stderr.strip()[-LONGEST_WORDS:]
    if done.status:
        raise RequirementMissing(
            f"the writer of {name} could not be followed: {stderr}; `--audit` needs root and ptrace(2), which a container may forbid "
            "(CAP_SYS_PTRACE)"
        )
    read_calls(judge, done.stdout)
    if judge.status not in (0, SIGNALS_FROM + signal.SIGTERM):
        raise BedplateError(f"the writer of {name} {how_it_ended(judge.status)}: {stderr}")
    if not judge.acks:
        raise BedplateError(
            f"the writer of {name} acknowledged nothing in {duration_s} s; it prints `ack CLIENT NUMBER` behind each commit: {stderr}"
        )


def read_calls(judge: CallJudge, text: str) -> None:
    """All lines of the driver's; OutputNotUnderstood quotes the first that is none."""
    for line in text.splitlines():
        try:
            judge.read(line)
        except (ValueError, LookupError) as error:
            raise OutputNotUnderstood(
                f"a line of {DRIVER} cannot be read ({error})",
                expected="fields as in drivers/file_calls.c",
                found=line,
            ) from error
    if not judge.has_end:
        raise OutputNotUnderstood(f"{DRIVER} has no last line", expected="end STATUS FULL", found=text[-200:])


def _audit(
    description: EngineDescription,
    settings: Levels,
    promise: EnginePromise | None,
    judges: Mapping[int, CallJudge],
) -> Audit:
    known: set[tuple[str, str]] = set()
    findings: list[AuditFinding] = []
    doubts: list[AuditFinding] = []
    for clients, judge in judges.items():
        fresh = [
            (groups, [key for key in groups if key not in known]) for groups in (judge.findings, judge.doubts)
        ]
        for (groups, keys), sentences in zip(fresh, (findings, doubts), strict=True):
            sentences.extend(finding_of(key[0], groups[key], judge.acks, clients) for key in keys)
        known |= {*judge.findings, *judge.doubts}
    return Audit(
        description.name,
        dict(description.options_for(settings)),
        UNKNOWN if promise is None else promise.durability,
        {clients: judge.acks for clients, judge in judges.items()},
        sum(judge.calls for judge in judges.values()),
        tuple(sorted(findings, key=_gravity)),
        tuple(sorted(doubts, key=_gravity)),
        tuple(_remarks(tuple(judges.values()))),
        tuple(dict.fromkeys(name for judge in judges.values() for name in judge.unseen)),
    )


def _gravity(finding: AuditFinding) -> tuple[int, int]:
    return _CODES.index(finding.code), -finding.commits


def finding_of(code: str, finding_group: FindingGroup, acks: int, clients: int) -> AuditFinding:
    """The sentence, and what to do."""
    names = tuple(finding_group.names)
    name = f"`{names[0]}`" + (f" and {len(names) - 1} more like it" if len(names) > 1 else "")
    number, folder, taker = len(finding_group.acks), folder_of(names[0]), finding_group.taker
    was, its, it, this = (
        ("was", "its", "it", "this name") if len(names) == 1 else ("were", "their", "them", "these names")
    )
    commits = f"{number:,} of {acks:,} commits were acknowledged"
    times = f"{number:,} time{'s' * (number != 1)}"
    lag = f"{finding_group.lag:,} commit{'s' * (finding_group.lag != 1)}"
    destroyed = f"{name} {was} {code} before `{taker}` was replaced, in the same commit ({times}): the old `{taker}`, to which a power cut between leads, may need it"
    late = f"which came up to {lag} later{', or never' * finding_group.is_never_too}"
    never = (
        "and they never were: sync_file_range was called, which is no sync"
        if finding_group.is_ranged
        else f"and they never were: nothing synced {it} at all"
        if finding_group.is_first_sync
        else "and they never were: it was synced before they were written, and not again"
    )
    sync_folder = f"fsync {folder} (open it as a folder) before the acknowledgement"
    sentence, way_out = {
        "bytes-never": (
            f"{name}: {commits} before {its} bytes were synced, {never}",
            f"fdatasync {it} before the acknowledgement; what no commit needs, such as a text log, belongs elsewhere",
        ),
        "bytes-late": (
            f"{name}: {commits} before {its} bytes were synced, {late}",
            f"fdatasync {it} before the acknowledgement",
        ),
        "mapped-never": (
            f"{name}, mapped and writable: {commits} without any sync",
            "msync with MS_SYNC, or fdatasync",
        ),
        "name-never": (f"{name}: {commits} before {this} {was} synced, and never {was}", sync_folder),
        "name-late": (
            f"{name}: {commits} before {this} {was} synced, which came up to {lag} later",
            sync_folder,
        ),
        "removal": (
            f"{name}: {commits} before the removal of {this} was synced; if that is what commits, a power cut takes it back",
            sync_folder,
        ),
        "away": (
            f"{name} {was} removed, and the name then given to another file ({times}): a power cut between leaves none",
            "rename the new file over it, which replaces it at once",
        ),
        "in-place": (
            f"{name} {was} emptied or written over in place ({times}): a power cut between leaves a part of it, or nothing",
            f"write another file, fsync it, rename it over this one, fsync {folder}",
        ),
        "rename-first": (
            f"{name} {was} replaced by a file whose own bytes were not synced yet ({times}): a power cut between leaves it empty",
            "fsync the new file before the rename",
        ),
    }.get(code, (destroyed, f"do it once the new `{taker}` and {folder} are synced"))
    return AuditFinding(code, names, clients, number, sentence, way_out)


def _remarks(judges: Sequence[CallJudge]) -> Iterator[str]:
    names_by_file: dict[str, dict[str, None]] = defaultdict(dict)
    for judge in judges:
        for folder, names in judge.names_by_file.items():
            names_by_file[folder] |= names
    for folder, names in names_by_file.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield (
            f"no fsync of {folder} covers the name `{next(iter(names))}`{more}, but one of the file itself. ext4, XFS, Btrfs and F2FS keep "
            "the name then; POSIX promises nothing"
        )
    mapped = dict.fromkeys(name for judge in judges for name in judge.mapped)
    if mapped:
        yield (
            f"{', '.join(f'`{name}`' for name in mapped)}: mapped and writable, and no call shows what is stored there. An index or a table "
            "of readers that each start makes anew loses nothing"
        )
    if any(judge.is_full for judge in judges):
        yield f"the writer was ended after {_LINES_MOST:,} calls; a shorter --duration shows as much"


def audit_lines(audit: Audit, width: int) -> Iterator[str]:
    """What a terminal of so many columns shows."""
    for line in _lines(audit):
        indent = "   " if line[:1].isdigit() or line.startswith(" ") else "  "
        yield from textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )


def _lines(audit: Audit) -> Iterator[str]:
    words = "".join(f" {name}={as_in_a_plan(level)}" for name, level in audit.settings.items())
    commits = " and ".join(
        f"{count:,} with {clients} client{'s' * (clients > 1)}" for clients, count in audit.commits.items()
    )
    yield f"{audit.engine}{words}: commits acknowledged: {commits}; {audit.calls:,} calls that write, name or sync. No power was cut."
    if audit.findings:
        count = len(audit.findings)
        yield f"{count} finding{'s' * (count > 1)}:"
    elif audit.unseen:
        yield "Not known: nothing was found in what could be seen"
    elif audit.doubts:
        yield "No finding. What may be one, where no log has the same:"
    else:
        yield "Clean: whatever was acknowledged had been synced" + (
            ", or is lost by promise" if audit.promise in (BOUNDED_LOSS, UNSAFE) else ""
        )
    for number, finding in enumerate(audit.findings, start=1):
        yield f"{number}. {_of_clients(finding)}{finding.sentence}"
        yield f"   {finding.way_out}"
    if audit.findings and audit.promise == UNSAFE:
        yield f"{FILE} promises unsafe for these settings, so none of it counts"
    for finding in audit.doubts:
        yield f"perhaps: {_of_clients(finding)}{finding.sentence}. Other files were synced meanwhile, which may have it"
    yield from (f"note: {remark}" for remark in audit.remarks)
    for name in audit.unseen:
        yield f"not seen: what the engine does by {name}, which no trace of calls shows. Cut its power: the same command without --audit"


def _of_clients(finding: AuditFinding) -> str:
    return "" if finding.clients == CLIENTS[0] else f"with {finding.clients} clients, "
