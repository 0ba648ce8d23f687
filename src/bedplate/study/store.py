"""The store: the only writer of a study, append-only.

A visit is written under a name that no reader looks at, gets its checksums and is renamed into place when it is
whole, so a visit is complete or absent whatever happens, and never written again. One process at a time writes; a second is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from bedplate import __version__
from bedplate.cuts.records import RECORDING_FILE, RecordingFacts
from bedplate.errors import StudyError
from bedplate.model import codec, limits
from bedplate.model.devices import DeviceIdentity
from bedplate.model.machine import StoredMachine
from bedplate.model.plan import (
    DEFAULTS_VERSION,
    Expansion,
    Plan,
    Schedule,
    ScheduledVisit,
    SearchRecord,
    pruned_lines,
)
from bedplate.model.reason import sentences
from bedplate.model.visit import FORMAT_VERSION, Outcome, RunRecord, Timing, VisitRecord
from bedplate.study.checksums import (
    MODE_METRICS,
    VisitFiles,
    changed_top_files,
    in_other_modes,
    is_doubted,
    top_checksums,
    write_checksums,
)
from bedplate.study.layout import UNFINISHED, Folder, StudyLayout, refuse_imported, require_known_format
from bedplate.study.records import (
    MEASURED,
    FileChecksum,
    HistoryEntry,
    PairedRecord,
    StudyFacts,
    StudySchedule,
    read_order,
    read_paired,
    read_schedule,
    schedule_record,
)
from bedplate.study.stored import (
    Due,
    Place,
    SetAside,
    by_path,
    read_record,
    read_visit,
    visit_directories,
    visits_by_place,
)

_LOCKS = Path("/proc/locks")


def take_lock(folder: Folder) -> int:
    """The study's lock as a file descriptor to be closed; StudyError names the process that has it."""
    path = StudyLayout(folder.directory).lock
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(path.name, flags, 0o644, dir_fd=folder.descriptor)
    except OSError as error:
        raise StudyError(f"{folder.directory} cannot be written to: {error.strerror}") from error
    status = os.fstat(lock)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(lock)
        # It is the one file of a study that is written to in its place.
        raise StudyError(f"{path} is no plain file, or has another name beside this one; remove it")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = _recorded(lock) or "unknown"
        os.close(lock)
        raise StudyError(
            f"{folder.directory} is being written by process {holder}; wait for it, or end it"
        ) from None
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def writer_of(layout: StudyLayout) -> str | None:
    """The process that writes a study now, None if nobody does or it cannot be told.

    Only looks: a reader that tried the lock itself could make a writer's start fail.
    """
    try:
        lock = limits.open_without_links(layout.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        recorded = _recorded(lock)
        inode = os.fstat(lock).st_ino
        locks = _LOCKS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    finally:
        os.close(lock)
    return recorded if (recorded, inode) in flock_holders(locks) else None


def flock_holders(locks: str) -> frozenset[tuple[str, int]]:
    """Process and inode of every exclusive flock(2), from /proc/locks (proc_locks(5)).

    The device is left out: btrfs shows another one there than stat(2) does.
    """
    found = set()
    for line in locks.splitlines():
        # `3: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; who waits has `->` before the kind.
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[3] == "WRITE":
            inode = words[5].rpartition(":")[2]
            if inode.isdecimal():
                found.add((words[4], int(inode)))
    return frozenset(found)


def _recorded(lock: int) -> str:
    return os.pread(lock, 100, 0).decode(errors="replace").strip()


@dataclass(frozen=True)
class Attempt:
    """A visit being written; `finish` puts it into its place."""

    number: int
    directory: Path
    _final: Path
    _folder: Folder

    def finish(self) -> None:
        """Take its checksums, make it durable and visible, in that order: from now on it is never written again.

        The caller has made sure that no process of the visit can write any more.
        """
        if removed := self._folder.leave_plain(self.directory):
            lines = (
                f"{name} was removed: it was no plain file, or another name of somebody else's\n"
                for name in removed
            )
            self._folder.write(self.directory / "logs" / "removed.txt", "".join(lines))
        write_checksums(self.directory)
        self._folder.sync(self.directory)
        self._folder.move(self.directory, self._final)
        self._folder.sync_names(self._final.parent)


class StudyStore:
    """Opened for writing; holds the study's lock until it is closed."""

    def __init__(self, directory: Path) -> None:
        self.layout = StudyLayout(directory)
        self._folder = Folder.of_study(directory, to_write=True)
        with contextlib.ExitStack() as stack:
            stack.callback(self._folder.close)
            self._lock = take_lock(self._folder)
            stack.callback(os.close, self._lock)
            self._sweep()
            stack.pop_all()

    @classmethod
    def create(
        cls,
        directory: Path,
        *,
        plan: Plan,
        plan_text: str,
        plan_files: Mapping[str, str],
        machine: StoredMachine,
        expansion: Expansion,
        schedule: Schedule,
        executor: str = "local",
        machine_identity: str | None = None,
        search: SearchRecord | None = None,
        paired: PairedRecord | None = None,
        identities: Mapping[str, DeviceIdentity] | None = None,
        origin: str = MEASURED,
    ) -> StudyStore:
        """A new study; StudyError if the directory holds something else.

        `machine_identity` stands in place of the machine's own where several machines are measured. With `search` it is one,
        with `paired` it measures pairs until it can tell. `identities` are those that it erases, by their names.
        """
        store = cls._held_new(directory)
        layout = store.layout
        now = _now()
        files = {
            layout.machine: _as_file(machine),
            layout.schedule: _as_file(schedule_record(expansion, schedule)),
            layout.plan: plan_text,
            **({} if search is None else {layout.search: _as_file(search)}),
            **({} if paired is None else {layout.paired: _as_file(paired)}),
            **{layout.plan_files / name: text for name, text in plan_files.items()},
        }
        facts = StudyFacts(
            format_version=FORMAT_VERSION,
            title=plan.title,
            created=now,
            bedplate=__version__,
            plan_digest=plan.digest,
            machine_identity=machine_identity or machine.identity,
            kernel_release=machine.kernel_release,
            history=(HistoryEntry(now, "created" if search is None else "created as a search"),),
            executor=executor,
            defaults=DEFAULTS_VERSION,
            origin=origin,
            devices=identities or {},
        )
        store._begin(files, facts)  # noqa: SLF001 -- this class's own
        return store

    @classmethod
    def _held_new(cls, directory: Path) -> StudyStore:
        """The directory of a new study, made and held."""
        refuse_unless_new(directory)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"{directory} cannot be made: {error.strerror}") from error
        store = cls(directory)
        try:
            # Another start may have made one here before it let go of the lock.
            refuse_unless_new(directory)
        except StudyError:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, directory: Path) -> StudyStore:
        """An existing study; StudyError if there is none, one of another format, or an imported one."""
        require_known_format(StudyLayout(directory))
        refuse_imported(StudyLayout(directory))
        return cls(directory)

    @property
    def facts(self) -> StudyFacts:
        """`study.json` as it stands."""
        return codec.read(StudyFacts, self.layout.facts)

    @property
    def schedule(self) -> StudySchedule:
        """`schedule.json` as it stands."""
        return read_schedule(self.layout)

    @property
    def search(self) -> SearchRecord | None:
        """`search.json` as it stands; None of a study that is no search."""
        return read_order(self.layout)[1]

    @property
    def paired(self) -> PairedRecord | None:
        """`paired.json` as it stands; None of a study of another kind."""
        return read_paired(self.layout, self.schedule)

    @property
    def scratch_directory(self) -> Path:
        """Where an image file may stand while a visit uses it."""
        self._folder.make(self.layout.scratch)
        return self.layout.scratch

    def unsuccessful(self, schedule: Schedule) -> int:
        """How many visits there are whose last attempt did not complete, or is damaged."""
        known = visits_by_place(self.schedule)
        return sum(
            bool(self.layout.attempts_at(visit)) and not self._is_completed(visit, known)
            for visit in schedule.visits
        )

    def bad_without_cut(self, schedule: Schedule) -> int:
        """How many runs of power cuts found something missing or damaged where nothing was cut, by their last attempts."""
        bad = 0
        for visit in schedule.visits:
            attempts = self.layout.attempts_at(visit)
            runs = self.layout.attempt(visit, max(attempts)) / "runs" if attempts else None
            for path in runs.glob(f"*/{RECORDING_FILE}") if runs else ():
                with contextlib.suppress(StudyError):
                    bad += bool(codec.read(RecordingFacts, path).without_cut)
        return bad

    def due_visits(self, schedule: Schedule, *, retry_failed: bool = False) -> tuple[ScheduledVisit, ...]:
        """Visits that have no finished attempt, in order; with `retry_failed` also those that failed or are damaged."""
        if not retry_failed:
            return tuple(visit for visit in schedule.visits if not self.layout.attempts_at(visit))
        known = visits_by_place(self.schedule)
        return tuple(visit for visit in schedule.visits if not self._is_completed(visit, known))

    @contextlib.contextmanager
    def attempt(self, visit: ScheduledVisit) -> Iterator[Attempt]:
        """A place for the next attempt at a visit; what is not finished inside is removed."""
        number = max(self.layout.attempts_at(visit), default=0) + 1
        # A stranger's file of that name is no attempt, and stays.
        while os.path.lexists(final := self.layout.attempt(visit, number)):
            number += 1
        directory = final.with_name(f"{final.name}{UNFINISHED}")
        # The visit of a start that was killed may have gone on for a moment after the sweep.
        self._folder.remove(directory)
        self._folder.make(directory)
        self._raise_format()
        try:
            yield Attempt(number, directory, final, self._folder)
        finally:
            self._folder.remove(directory)

    def note(self, change: str) -> None:
        """Write down in the study's history that something was done to it."""
        facts = self.facts
        self._write_facts(replace(facts, history=(*facts.history, HistoryEntry(_now(), change))))

    def extend(
        self,
        *,
        plan: Plan,
        plan_text: str,
        plan_files: Mapping[str, str],
        expansion: Expansion,
        schedule: Schedule,
        change: str,
        search: SearchRecord | None = None,
    ) -> None:
        """Put a larger plan in place of the frozen one; the caller has made sure that it only adds.

        `search` is what a search becomes by it.
        """
        facts = self.facts
        layout = self.layout
        files = {
            **{layout.plan_files / name: text for name, text in plan_files.items()},
            layout.plan: plan_text,
            layout.schedule: _as_file(schedule_record(expansion, schedule)),
            **({} if search is None else {layout.search: _as_file(search)}),
        }
        history = (*facts.history, HistoryEntry(_now(), change))
        self._put_in_place(replace(facts, plan_digest=plan.digest, history=history), files)

    def search_on(
        self, search: SearchRecord, visits: Iterable[ScheduledVisit] = (), *, change: str | None = None
    ) -> None:
        """Write down what a search came to, and the visits that it adds; `change` goes into the study's history."""
        facts, schedule = self.facts, self.schedule
        if change is not None:
            facts = replace(facts, history=(*facts.history, HistoryEntry(_now(), change)))
        more = replace(schedule, visits=(*schedule.visits, *visits))
        self._put_in_place(
            facts, {self.layout.schedule: _as_file(more), self.layout.search: _as_file(search)}
        )

    def pair_on(self, paired: PairedRecord, *, change: str) -> None:
        """Write down that a study of pairs may take longer, or believes more; `change` goes into the study's history."""
        facts = self.facts
        facts = replace(facts, history=(*facts.history, HistoryEntry(_now(), change)))
        self._put_in_place(facts, {self.layout.paired: _as_file(paired)})

    def note_kernel(self, release: str) -> None:
        """The study goes on under another kernel, which the plan declares as a factor."""
        self._write_facts(replace(self.facts, kernel_release=release))
        self.note(f"went on under kernel {release}")

    def record_devices(self, identities: Mapping[str, DeviceIdentity]) -> None:
        """Write down which devices the study erases, those that it knows already left as they are."""
        facts = self.facts
        known = {**identities, **facts.devices}
        if known != facts.devices:
            self._write_facts(replace(facts, format_version=FORMAT_VERSION, devices=known))

    def close(self) -> None:
        """Let the next writer in."""
        os.close(self._lock)
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_completed(self, visit: ScheduledVisit, scheduled: Mapping[Place, Due]) -> bool:
        attempts = self.layout.attempts_at(visit)
        if not attempts:
            return False
        try:
            last = read_visit(attempts[max(attempts)], scheduled)
        except StudyError:
            return False
        return last.record.outcome is Outcome.COMPLETED

    def _raise_format(self) -> None:
        """Say in the study's own file that it holds something of this version: a former one must not read it."""
        facts = self.facts
        if facts.format_version != FORMAT_VERSION:
            self._write_facts(replace(facts, format_version=FORMAT_VERSION))

    def _begin(self, files: Mapping[Path, str], study_facts: StudyFacts) -> None:
        for path, text in files.items():
            self._folder.write(path, text)
        self._folder.make(self.layout.visits)
        # Last, as a directory with a study.json is a study.
        self._write_facts(replace(study_facts, checksums=self._checksums_of(files)))
        self._folder.sync_names(self.layout.directory)

    def _write_facts(self, study_facts: StudyFacts) -> None:
        self._folder.write(self.layout.facts, _as_file(study_facts))

    def _checksums_of(self, files: Mapping[Path, str]) -> dict[str, FileChecksum]:
        return top_checksums(
            {str(path.relative_to(self.layout.directory)): text.encode() for path, text in files.items()}
        )

    def _put_in_place(self, study_facts: StudyFacts, files: Mapping[Path, str]) -> None:
        """New top files, and `study.json` with their checksums: all of them or none, whatever interrupts it."""
        checksums = {**study_facts.checksums, **self._checksums_of(files)}
        renewed = replace(study_facts, format_version=FORMAT_VERSION, checksums=checksums)
        self._stage_extension({**files, self.layout.facts: _as_file(renewed)})
        self._roll_extension_forward()

    def _stage_extension(self, files: Mapping[Path, str]) -> None:
        """Write new top files apart, whole and durable; the last rename decides that they hold."""
        layout, folder = self.layout, self._folder
        for path, text in files.items():
            folder.write(layout.staged / path.relative_to(layout.directory), text)
        folder.sync(layout.staged)
        folder.move(layout.staged, layout.extension)
        folder.sync_names(layout.directory)

    def _roll_extension_forward(self) -> None:
        """Move staged files into place; what a kill interrupts here the next start ends."""
        layout, folder = self.layout, self._folder
        for path in sorted(folder.files(layout.extension)):
            folder.move(path, layout.directory / path.relative_to(layout.extension))
        folder.sync_names(layout.directory)
        folder.remove(layout.extension)

    def _sweep(self) -> None:
        """Remove what a killed writer left unfinished; the lock says that nobody writes it now."""
        layout, folder = self.layout, self._folder
        folder.remove(layout.staged)
        if folder.has(layout.extension):
            self._roll_extension_forward()
        parts = [layout.directory / name for name in limits.names_in(layout.directory)]
        for path in (*limits.folders_below(layout.visits, levels=3), *parts):
            if path.name.endswith(UNFINISHED) or path.match(".*.part"):
                folder.remove(path)


def refuse_unless_new(directory: Path) -> None:
    """StudyError unless a study can be made there: nothing is, or only what a killed start left."""
    if not os.path.lexists(directory):
        return
    if not directory.is_dir():
        raise StudyError(f"{directory} is there and no directory; name another with --study")
    layout = StudyLayout(directory)
    try:
        fit = _has_own_names_alone(layout)
        if fit:
            # Before anything of them is listed: one may be a link.
            Folder.of_study(directory, to_write=True).close()
            fit = not limits.names_in(layout.visits)
    except OSError as error:
        raise StudyError(f"{directory} cannot be read: {error.strerror}") from error
    if not fit:
        raise StudyError(f"{directory} is not empty and no study; name another directory with --study")


def _has_own_names_alone(layout: StudyLayout) -> bool:
    """Whether nothing is there, or only what a killed `create` may have left."""
    own = {layout.lock, layout.machine, layout.schedule, layout.plan, layout.plan_files, layout.visits}
    own |= {layout.scratch, layout.fleet, layout.search, layout.paired}
    return all(path in own or path.match(".*.part") for path in layout.directory.iterdir())


def _as_file(record: StoredMachine | StudySchedule | SearchRecord | PairedRecord | StudyFacts) -> str:
    return codec.dumps(record) + "\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# Recorded and not reported; every other phase is.
_WARMUP = "warmup"

# The phase of the figures of a whole run.
_WHOLE = "measure"


@dataclass(frozen=True)
class FailedVisit:
    """A visit that failed in its last attempt, and where to look."""

    visit: str
    step: str
    reasons: tuple[str, ...]
    logs: str


@dataclass(frozen=True)
class Progress:
    """Counts of visits by their last attempt.

    `measured_s` is the time inside the phases of finished visits that figures are made of: all but the warm-up.
    `visits_s` is the wall time of those visits, with boots, hand-over and figures; their ratio says how well a
    study uses its time. `steps` are means per visit, the longest first, without the runs themselves.
    `emulated`: some visit had emulated processors. `suspect` counts runs of the visits' last
    attempts that are suspect or of unknown validity. `damaged` counts
    visits whose last attempt is among the `set_aside`; `remarks` name changed files that no figure is made from, `changed`
    those of the study itself. `pruned` are lines about the cells that could not be, with the reasons.
    """

    title: str
    visits: int
    completed: int
    failed: int
    left: int
    writer: str | None
    unfinished: str | None
    measured_s: float
    visits_s: float
    measured_share: float | None
    seconds_left: float | None
    emulated: bool
    steps: tuple[Timing, ...]
    failures: tuple[FailedVisit, ...]
    history: tuple[HistoryEntry, ...]
    suspect: int = 0
    damaged: int = 0
    set_aside: tuple[SetAside, ...] = ()
    remarks: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Run:
    """A run as far as its validity needs it; `values` are those that tell its mode, none where it did not complete."""

    name: str
    doubted: bool
    values: Mapping[str, float]


@dataclass(frozen=True)
class _FinishedVisit:
    """A finished attempt, as far as its progress needs it."""

    path: Path
    record: VisitRecord
    measured_s: float
    runs: tuple[_Run, ...]
    remarks: tuple[str, ...]


def read_progress(directory: Path) -> Progress:
    """The progress of a study; StudyError if there is none."""
    layout = StudyLayout(directory)
    require_known_format(layout)
    facts = codec.read(StudyFacts, layout.facts)
    schedule = read_schedule(layout)
    scheduled = visits_by_place(schedule)
    last: dict[Place, tuple[int, _FinishedVisit | None]] = {}
    aside: list[SetAside] = []
    for path in visit_directories(layout.visits):
        place, attempt = by_path(path)
        done = None
        try:
            done = _read_finished_visit(path, scheduled)
        except StudyError as error:
            aside.append(SetAside(path, place, attempt, error.reasons))
        if place in scheduled and attempt > last.get(place, (0, None))[0]:
            last[place] = (attempt, done)
    in_order = sorted(last, key=lambda place: scheduled[place].visit.index)
    finished = [done for place in in_order if (done := last[place][1]) is not None]
    records = [done.record for done in finished]
    measured_s = sum(done.measured_s for done in finished)
    visits_s = sum(record.whole_seconds or record.seconds for record in records)
    left = len(schedule.visits) - len(last)
    attempts = limits.folders_below(layout.visits, levels=3)
    unfinished = next((path for path in attempts if path.name.endswith(UNFINISHED)), None)
    return Progress(
        title=facts.title,
        visits=len(schedule.visits),
        completed=sum(record.outcome is Outcome.COMPLETED for record in records),
        failed=sum(record.outcome is not Outcome.COMPLETED for record in records),
        left=left,
        writer=writer_of(layout),
        unfinished=None if unfinished is None else str(unfinished.relative_to(layout.visits)),
        measured_s=measured_s,
        visits_s=visits_s,
        # Nobody recorded the phases of what others made.
        measured_share=measured_s / visits_s if visits_s and not facts.is_imported else None,
        seconds_left=left * visits_s / len(records) if records else None,
        emulated=any(record.emulated for record in records),
        steps=_mean_steps(records),
        failures=tuple(_failure(done) for done in finished if done.record.outcome is not Outcome.COMPLETED),
        history=facts.history,
        suspect=_doubted(finished),
        damaged=len(last) - len(finished),
        set_aside=tuple(aside),
        remarks=tuple(remark for done in finished for remark in done.remarks),
        changed=changed_top_files(layout, facts),
        pruned=tuple(pruned_lines(schedule.pruned)),
    )


def _read_finished_visit(path: Path, scheduled: Mapping[Place, Due]) -> _FinishedVisit:
    files = VisitFiles(path)
    record = read_record(files, scheduled)
    if not files.has_checksums:
        # Nothing else says that its records are what bedplate wrote.
        read_visit(path, scheduled)
    phases = [
        phase
        for name in record.runs
        if files.has(f"runs/{name}/record.json")
        for phase in files.record(RunRecord, f"runs/{name}/record.json").phases
        if phase.name != _WARMUP
    ]
    return _FinishedVisit(
        path=path,
        record=record,
        measured_s=sum(phase.end_monotonic_s - phase.start_monotonic_s for phase in phases),
        runs=tuple(_run(files, name, record) for name in files.names("run.json")),
        remarks=files.remarks,
    )


def _run(files: VisitFiles, name: str, record: VisitRecord) -> _Run:
    """Read without making records of its hundred figures: `status` may be asked every minute."""
    source = str(files.directory / name)
    run = codec.parse(files.text(name), source=source)
    if not isinstance(run, dict) or not isinstance(run.get("figures", []), list):
        raise StudyError(f"{source}: expected an object (RunFigures), found {run!r:.200}")
    outcome = run.get("outcome")
    values = {
        each["metric"]: each["value"]
        for each in run.get("figures", [])
        if isinstance(each, dict)
        and isinstance(each.get("metric"), str)
        and each["metric"] in MODE_METRICS
        and (each.get("phase"), each.get("item")) == (_WHOLE, "")
        and isinstance(each.get("value"), int | float)
    }
    return _Run(
        name=str(run.get("run")),
        doubted=is_doubted(outcome, run.get("validity"), record),
        values=values if outcome == Outcome.COMPLETED else {},
    )


def _doubted(finished: Sequence[_FinishedVisit]) -> int:
    """How many runs are doubted, by themselves or beside their repetitions."""
    runs = [(done.record.key, run) for done in finished if not done.record.key.canary for run in done.runs]
    others = in_other_modes([((key.cell, key.dataset, run.name), run.values) for key, run in runs])
    return sum(run.doubted or place in others for place, (_, run) in enumerate(runs))


def _mean_steps(records: list[VisitRecord]) -> tuple[Timing, ...]:
    seconds: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for timing in record.timings:
            if not timing.step.startswith("run "):
                seconds[timing.step].append(timing.seconds)
    means = [Timing(step, sum(values) / len(values)) for step, values in seconds.items()]
    return tuple(sorted(means, key=lambda timing: -timing.seconds))


def _failure(finished_visit: _FinishedVisit) -> FailedVisit:
    record = finished_visit.record
    what = "canary" if record.key.canary else record.cell.variant
    return FailedVisit(
        visit=f"{what}, repetition {record.key.repetition}, attempt {record.key.attempt}",
        step=record.failed_step or "unknown step",
        reasons=sentences(record.reasons),
        logs=str(finished_visit.path / "logs"),
    )
