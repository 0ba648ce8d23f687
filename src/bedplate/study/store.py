"""The store: the only writer of a study, append-only.

A visit is written under a name that no reader looks at, gets its checksums and is renamed into place when it is
whole, so a visit is complete or absent whatever happens, and never written again. One process at a time writes; a second is refused.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from bedplate import __version__
from bedplate.errors import StudyError
from bedplate.model import codec, no_links
from bedplate.model.plan import DEFAULTS_VERSION
from bedplate.model.visit import FORMAT_VERSION, Outcome
from bedplate.study.checksums import top_checksums, write_checksums
from bedplate.study.folder import Folder
from bedplate.study.layout import UNFINISHED, StudyLayout
from bedplate.study.paired import read_paired
from bedplate.study.records import MEASURED, FileChecksum, HistoryEntry, StudyFacts, StudySchedule
from bedplate.study.schedule import read_schedule, schedule_record
from bedplate.study.search import read_order
from bedplate.study.stored import read_visit, visits_by_place
from bedplate.study.version import refuse_imported, require_known_format
from bedplate.study.writer import take_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from bedplate.model.devices.identity import DeviceIdentity
    from bedplate.model.machine import StoredMachine
    from bedplate.model.plan import Expansion, Plan, Schedule, ScheduledVisit
    from bedplate.model.search import SearchRecord
    from bedplate.study.paired import PairedRecord
    from bedplate.study.stored import Due, Place


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
        devices: Mapping[str, DeviceIdentity] | None = None,
        origin: str = MEASURED,
    ) -> StudyStore:
        """A new study; StudyError if the directory holds something else.

        `machine_identity` stands in place of the machine's own where several machines are measured. With `search` it is one,
        with `paired` it measures pairs until it can tell. `devices` are those that it erases, by their names.
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
            devices=devices or {},
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

    def due(self, schedule: Schedule, *, retry_failed: bool = False) -> tuple[ScheduledVisit, ...]:
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

    def note(self, what: str) -> None:
        """Write down in the study's history that something was done to it."""
        facts = self.facts
        self._write_facts(replace(facts, history=(*facts.history, HistoryEntry(_now(), what))))

    def extend(
        self,
        *,
        plan: Plan,
        plan_text: str,
        plan_files: Mapping[str, str],
        expansion: Expansion,
        schedule: Schedule,
        what: str,
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
        history = (*facts.history, HistoryEntry(_now(), what))
        self._put_in_place(replace(facts, plan_digest=plan.digest, history=history), files)

    def search_on(
        self, search: SearchRecord, visits: Iterable[ScheduledVisit] = (), *, what: str | None = None
    ) -> None:
        """Write down what a search came to, and the visits that it adds; `what` goes into the study's history."""
        facts, schedule = self.facts, self.schedule
        if what is not None:
            facts = replace(facts, history=(*facts.history, HistoryEntry(_now(), what)))
        more = replace(schedule, visits=(*schedule.visits, *visits))
        self._put_in_place(
            facts, {self.layout.schedule: _as_file(more), self.layout.search: _as_file(search)}
        )

    def pair_on(self, paired: PairedRecord, *, what: str) -> None:
        """Write down that a study of pairs may take longer, or believes more; `what` goes into the study's history."""
        facts = self.facts
        facts = replace(facts, history=(*facts.history, HistoryEntry(_now(), what)))
        self._put_in_place(facts, {self.layout.paired: _as_file(paired)})

    def note_kernel(self, release: str) -> None:
        """The study goes on under another kernel, which the plan declares as a factor."""
        self._write_facts(replace(self.facts, kernel_release=release))
        self.note(f"went on under kernel {release}")

    def record_devices(self, devices: Mapping[str, DeviceIdentity]) -> None:
        """Write down which devices the study erases, those that it knows already left as they are."""
        facts = self.facts
        known = {**devices, **facts.devices}
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

    def _is_completed(self, visit: ScheduledVisit, known: Mapping[Place, Due]) -> bool:
        attempts = self.layout.attempts_at(visit)
        if not attempts:
            return False
        try:
            last = read_visit(attempts[max(attempts)], known)
        except StudyError:
            return False
        return last.record.outcome is Outcome.COMPLETED

    def _raise_format(self) -> None:
        """Say in the study's own file that it holds something of this version: a former one must not read it."""
        facts = self.facts
        if facts.format_version != FORMAT_VERSION:
            self._write_facts(replace(facts, format_version=FORMAT_VERSION))

    def _begin(self, files: Mapping[Path, str], facts: StudyFacts) -> None:
        for path, text in files.items():
            self._folder.write(path, text)
        self._folder.make(self.layout.visits)
        # Last, as a directory with a study.json is a study.
        self._write_facts(replace(facts, checksums=self._checksums_of(files)))
        self._folder.sync_names(self.layout.directory)

    def _write_facts(self, facts: StudyFacts) -> None:
        self._folder.write(self.layout.facts, _as_file(facts))

    def _checksums_of(self, files: Mapping[Path, str]) -> dict[str, FileChecksum]:
        return top_checksums(
            {str(path.relative_to(self.layout.directory)): text.encode() for path, text in files.items()}
        )

    def _put_in_place(self, facts: StudyFacts, files: Mapping[Path, str]) -> None:
        """New top files, and `study.json` with their checksums: all of them or none, whatever interrupts it."""
        checksums = {**facts.checksums, **self._checksums_of(files)}
        renewed = replace(facts, format_version=FORMAT_VERSION, checksums=checksums)
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
        parts = [layout.directory / name for name in no_links.names_in(layout.directory)]
        for path in (*no_links.folders_below(layout.visits, levels=3), *parts):
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
            fit = not no_links.names_in(layout.visits)
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
