"""What `bedplate power-cut` does with the cuts of a study: lists them, cuts their logs again, tells their stories, and has guests recover them."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

from bedplate.cuts.blame import BlameEvidence, Found, Repeatability, Story, story_of
from bedplate.cuts.choice import choose_points, placed_points
from bedplate.cuts.log import read_log
from bedplate.cuts.points import (
    CONTROL,
    GOOD,
    CutCounts,
    Cuts,
    cut_kind,
    finding_of,
    is_bad_cut,
    is_drawn,
    read_cuts,
    tallies,
    tally,
)
from bedplate.cuts.records import (
    CONTROLS,
    LOG_FILE,
    RECORDING_FILE,
    RECOVERY_LOG_FILE,
    CutPoint,
    Placement,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.cuts.runs import bound_words
from bedplate.cuts.verdict import (
    controls_of,
    controls_see_losses,
    finding_words,
    recoveries_not_whole,
)
from bedplate.errors import BedplateError, RequirementMissing, StudyError
from bedplate.executors.protocol import Listener
from bedplate.executors.qemu.executor import prepare_guests
from bedplate.executors.qemu.kernels import GuestKernel, find_kernel
from bedplate.executors.qemu.slot import Errand, ErrandRunner, GuestProgram, GuestSlot
from bedplate.filesystem.after_cut import image_levels, repair_commands
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.apt import PackageTree
from bedplate.host.command import Account
from bedplate.host.files import cache_directory
from bedplate.model import codec, limits
from bedplate.model.cell import KernelLevels
from bedplate.model.levels import Scalar
from bedplate.model.visit import VisitRecord
from bedplate.plan.rules import GUEST_MEMORY_BYTES
from bedplate.study.layout import StudyLayout
from bedplate.study.power_cut_stories import explaining_stories, keep_stories, read_stories
from bedplate.units import format_count, format_milliseconds, parse_size
from bedplate.workloads.power_cut import bundle, cut_questions
from bedplate.workloads.power_cut.bench import DATA_DIRECTORY, Built, ReplayJob, cut_engine, replayed
from bedplate.workloads.power_cut.bundle import POOLED, TRY_LIMIT_S, ScriptQuestion, TriedScript
from bedplate.workloads.power_cut.cut_questions import (
    ANSWER,
    IS_LAST,
    CutQuestion,
    beside_record,
    declared_of,
    inquests,
    job_of,
    record_of_visit,
    records_of,
    require_trusted_kernel,
)
from bedplate.workloads.power_cut.log import unpacked
from bedplate.workloads.power_cut.tearing import order_spans
from bedplate.workloads.power_cut.visit import measured_span

# Of the cuts of a log that was kept one in so many is placed.
_PLACED_EACH = 3


def cut_again(
    folder: Path,
    profiles: Sequence[Profile],
    *,
    points: int,
    seed: int,
    recover: Callable[[Sequence[CutPoint]], tuple[PointRecord, ...]] | None = None,
) -> CutAgain:
    """Cut the log of a run at so many points more, shared evenly by the profiles; nothing is added to the study.

    A third of them is placed where the order of what the engine did shows, as far as these profiles show it.

    `recover` says what comes of the points where they are not recovered here; what workers said besides is not known then.
    """
    job = job_of(folder, in_guest=recover is not None)
    recording = codec.read(RecordingFacts, folder / RECORDING_FILE)
    told: list[str] = []
    with unpacked(folder) as kept:
        with read_log(kept.log) as log:
            begin, end = measured_span(log)
            spans = order_spans(log, job.filesystem, measured_from=begin, until=end)
            # Where there are fewer such places, as in a log without calls, chance places more.
            placed = sum(1 for _ in placed_points(spans, profiles, points // _PLACED_EACH, seed))
            chosen = choose_points(
                log,
                points=points - placed,
                profiles=profiles,
                seed=seed,
                measured_from=begin,
                measured_until=end,
                window_bytes=job.window_bytes,
                controls=CONTROLS,
                commit_spans=spans,
                placed=placed,
            )
        if recover is None:
            again = replace(job, points=chosen)
            records = tuple(replayed(kept.log, again, told.append, memory=kept.memory, ledger=kept.ledger))
    if recover is not None:
        records = recover(chosen)
    return CutAgain(records, recording, tuple(told))


@dataclass(frozen=True)
class CutAgain:
    """What came of the points; `told` is what the workers said besides."""

    records: tuple[PointRecord, ...]
    recording: RecordingFacts
    told: tuple[str, ...] = ()

    @property
    def controls(self) -> CutCounts:
        """Cuts in which the device lied about its flushes, of those that could lose something."""
        return controls_of(self.records, self.recording)

    @property
    def sees_losses(self) -> bool:
        """Whether enough controls were bad: what finds no loss where one must be proves nothing."""
        return controls_see_losses(self.controls)

    def of(self, profile: Profile) -> CutCounts:
        """The drawn cuts of one profile."""
        return tallies(self.records, self.recording).get(profile.value, CutCounts())

    @property
    def placed(self) -> CutCounts:
        """Those that chance did not place, of which no share is one."""
        placed = (each for each in self.records if not each.point.control and not is_drawn(each))
        return tally(placed, self.recording)

    def lines(self, profiles: Iterable[Profile]) -> Iterator[str]:
        """A line for each profile, one for the placed cuts where there are any, and one for the controls."""
        for profile in profiles:
            tally = self.of(profile)
            found = finding_words(tally)
            yield f"{profile.value:11} bad {bound_words(tally)}{f': {found}' if found else ''}"
        if self.placed.cuts:
            found = finding_words(self.placed)
            yield f"{'placed':11} bad {self.placed.bad} of {self.placed.cuts}{f': {found}' if found else ''}"
        yield f"{'controls':11} bad {self.controls.bad} of {self.controls.cuts}"


_JOURNAL = "$journal"


def by_hand(job: ReplayJob, built: Built, account: Account) -> Iterator[str]:
    """Shell lines for root, from a copy of the image to the engine on it; the image itself stays as the cut left it."""
    folder = built.disk.parent.absolute()
    mounted = folder / "mount"
    yield "by hand, as root (on a copy, since recovery writes):"
    names = {"disk": built.disk, **({} if built.journal is None else {"journal": built.journal})}
    for name, image in names.items():
        copy = _quoted(folder / f"{name}.tried")
        yield f"  cp --sparse=always {_quoted(image.absolute())} {copy}"
        yield f"  {name}=$(losetup --find --show {copy}); blockdev --setrw ${name}"
    yield f"  mkdir -p {_quoted(mounted)}"
    yield from (
        f"  {line}" for line in _mounting_by_hand(job, mounted, has_journal=built.journal is not None)
    )
    yield from (f"  {line}" for line in _asking(job, mounted / DATA_DIRECTORY, account))
    yield f"  umount {_quoted(mounted)}; losetup --detach {' '.join(f'${name}' for name in names)}"


def _mounting_by_hand(job: ReplayJob, mounted: Path, *, has_journal: bool) -> Iterator[str]:
    levels = job.filesystem
    if levels.type == POOLED:
        yield f"zpool import -f -d $disk -R {_quoted(mounted)} -a"
        return
    journal = _JOURNAL if has_journal else None
    options = [*filesystem_for(levels.type).mount_options(image_levels(levels, journal))]
    if levels.type == "xfs" and journal is not None:
        options.append(f"logdev={journal}")
    # A journal is the shell's variable, so that these words are not quoted; options have no spaces.
    words = f" -o {','.join(options)}" if options else ""
    yield f"mount -t {levels.type}{words} $disk {_quoted(mounted)}"
    repairs = repair_commands(levels.type, "$disk", journal)
    if repairs:
        each = ("; ".join(commands) for commands in repairs)
        yield f"# if it does not mount, each in turn and mount again: {'; '.join(each)}"


def _asking(job: ReplayJob, data: Path, account: Account) -> Iterator[str]:
    """The engine runs as the account that owns its files, which must be able to reach them."""
    subject = job.subject
    owner = subject.account
    if owner is not None and owner.uid != account.uid:
        yield f"chown -hR --from={owner.uid} {account.uid}:{account.gid} {_quoted(data)}   # of another machine's account"
    as_account = (
        f"unshare --net setpriv --no-new-privs --reuid={account.uid} --regid={account.gid} --clear-groups"
    )
    yield f"# as {account.name}, who must be able to enter every folder above {_quoted(data)}"
    yield from cut_engine(subject.engine).by_hand(subject, data, account, as_account)


def _quoted(path: Path | str) -> str:
    return shlex.quote(str(path))


def bad_points(folder: Path, *, every: bool) -> list[CutPoint]:
    """The bad cuts of a run in the order of their numbers; without `every` one for each finding of volatile, ordered and second cuts."""
    cuts = read_cuts(folder)
    bad = [record for record in (*cuts.points, *cuts.recuts) if is_bad_cut(record)]
    bad.sort(key=lambda record: record.point.number)
    if every:
        return [record.point for record in bad]
    return [record.point for record in _one_of_each(bad, cuts.recording)]


def _one_of_each(bad: Iterable[PointRecord], recording: RecordingFacts | None) -> Iterator[PointRecord]:
    seen = set()
    for record in bad:
        point = record.point
        # A loss within what settings may lose says nothing of one beyond it.
        kind = (
            finding_of(record, recording),
            point.profile is Profile.ORDERED,
            point.recovery_of is not None,
        )
        if kind not in seen:
            seen.add(kind)
            yield record


def without_story(study: Path, folder: Path, points: Iterable[CutPoint]) -> list[CutPoint]:
    """Those whose story is not told yet."""
    told = {number for number, story in read_stories(study, folder).items() if not story.evidence.control}
    return [point for point in points if point.number not in told]


def tell_stories(
    study: Path,
    folder: Path,
    points: Sequence[CutPoint],
    *,
    most: int,
    told: Callable[[Story], None],
    hold: Callable[[Callable[[BlameEvidence], None]], object] | None = None,
) -> None:
    """Make the story of each point in turn, and keep it in the study at once.

    `hold` holds the inquests where they are not held here, and hands on what each ends with.
    """
    declared, stored = declared_of(folder), records_of(folder)

    def keep(evidence: BlameEvidence) -> None:
        beside = beside_record(evidence, stored.get((evidence.control, evidence.point)))
        story = story_of(beside, declared)
        keep_stories(study, folder, [story])
        told(story)

    if hold is not None:
        hold(keep)
        return
    question = CutQuestion(str(folder.absolute()), job_of(folder), tuple(points), most)
    for found in inquests(question, most):
        keep(found.evidence)


_INDENT = "  "


def run_lines(study: Path, folders: Mapping[str, Path]) -> Iterator[str]:
    """For each run its name, how many of its cuts were bad, whether they can be cut again, and its folder; below it what its stories say together."""
    if not folders:
        raise StudyError(f"{study} has no run of power cuts")
    width = max(map(len, folders))
    for name, folder in folders.items():
        cuts = read_cuts(folder)
        points = [record for record in cuts.points if not record.point.control]
        bad = sum(record.outcome.is_bad for record in points)
        log = "log kept" if limits.is_there(folder / LOG_FILE) else "no log"
        again = [record for record in cuts.recuts if record.point.placement is not Placement.WHOLE]
        words = f"{sum(map(is_bad_cut, again))} of {len(again)} in recovery  " if again else ""
        if refused := recoveries_not_whole(cuts):
            words = f"recoveries refused ({len(refused)} not whole)  "
        remounted = sum(record.failed_once is not None for record in (*cuts.points, *cuts.recuts))
        words += f"{remounted} good at the second look only  " if remounted else ""
        yield f"{name:{width}}  {bad:>4} of {len(points):<4} bad  {words}{log:8}  {folder.relative_to(StudyLayout(study).visits)}"
        bad_numbers = {record.point.number for record in (*points, *again) if is_bad_cut(record)}
        explained = explaining_stories(study, folder, cuts)
        yield from (f"{_INDENT * 4}{line}" for line in _story_lines(explained, bad_cuts=len(bad_numbers)))


def _story_lines(stories: Sequence[Story], *, bad_cuts: int) -> Iterator[str]:
    """How few writes were enough, where these lay, and whose faults they are, each with the number of cuts."""
    if not stories:
        return
    found = [story.evidence for story in stories]
    enough = Counter(format_count(len(one.smallest), "write") if one.smallest else "nothing" for one in found)
    places = Counter(place for one in found for place in {write.place.value for write in one.smallest})
    yield f"{len(stories)} of {bad_cuts} explained, by the loss of {_counted(enough)}"
    if places:
        yield f"what is lost: {_counted(places)}"
    yield f"fault: {_counted(Counter(f'{story.party.value}, {story.reason.code}' for story in stories))}"
    if unsure := sum(not one.is_smallest or one.steadiness is not Repeatability.STEADY for one in found):
        yield f"of these {unsure} may shrink further, or answered differently when asked again"


def _counted(counts: Counter[str]) -> str:
    """The most frequent first, and words in their order."""
    return "; ".join(
        f"{words} ({count})" for words, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )


def point_lines(
    folder: Path, *, every: bool, stories: Mapping[int, Story] = MappingProxyType({})
) -> Iterator[str]:
    """Two lines for each bad cut of a run in the order of their numbers, with `every` for all and the controls.

    One with a story has that in place of what was wrong first.
    """
    cuts = read_cuts(folder)
    yield from (f"{_INDENT}{problem}" for problem in cuts.problems)
    if cuts.recording is not None:
        yield from (f"{_INDENT}without any cut: {problem}" for problem in cuts.recording.without_cut)
    yield from (f"{_INDENT}cuts in recovery do not count: {reason}" for reason in recoveries_not_whole(cuts))
    found = (*cuts.points, *cuts.recuts)
    chosen = [record for record in found if every or is_bad_cut(record) or record.failed_once is not None]
    if not chosen:
        judged = sum(cut_kind(record) != CONTROL for record in found)
        yield f"none of {judged} cuts was bad; --all lists them, and the {len(found) - judged} controls"
    for record in sorted(chosen, key=lambda record: record.point.number):
        point = record.point
        kind = "control" if point.control else point.placement.value
        again = f"{point.recovery_words}: " if point.recovery_words else ""
        weaker = "" if record.weaker is None else f", and as {record.weaker.profile.value}"
        yield f"{point.number:>5}  {point.profile.value:10}  {kind:8}  {again}{_finding(record, cuts)}{weaker}"
        story = stories.get(point.number)
        more = record.problems[:1] if story is None else (*record.problems[:1], *story.lines[1:])
        yield from (f"{_INDENT * 4}{line}" for line in more)
        if record.failed_once is not None:
            yield f"{_INDENT * 4}good at the second look, at a fresh copy; the first ended on: {record.failed_once}"


def _finding(record: PointRecord, cuts: Cuts) -> str:
    """In the verdict's words, which know what the engine's settings call bounded."""
    found = str(record.outcome.value) if cuts.recording is None else finding_of(record, cuts.recording)
    return (
        found
        if found in GOOD or record.lost_ms is None
        else f"{found}, since {format_milliseconds(record.lost_ms)}"
    )


# A single replay may take as long: repairs, servers and their answers have limits of minutes, and the log is unpacked first. A guest that is
# silent is noticed earlier. Of many replays each has so long at most on average, in an emulated guest.
_ERRAND_LIMIT_S, _REPLAY_LIMIT_S = 3600.0, 120.0

# What a guest has of its own in place of the host's (init.sh).
_HIDDEN = tuple(map(Path, ("/dev", "/proc", "/run", "/sys")))

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class PreparedRun:
    """A run whose guest can be started: its folder, the visit's record, the kernel and the tools of its file system."""

    folder: Path
    record: VisitRecord
    kernel: GuestKernel
    trees: tuple[PackageTree, ...]


class GuestCuts:
    """Of the runs of a study, one guest at a time."""

    def __init__(self, study: Path) -> None:
        self._study = study
        self._memory_bytes = _guest_memory_bytes(study)
        self._errands = ErrandRunner(GuestSlot(cache_directory() / "guests"))

    def prepared(self, folder: Path, listener: Listener) -> PreparedRun:
        """What the guest of a run needs, fetched now as `bedplate doctor --install` would.

        The kernel is the recorded release where the cache has it, else what the cell asked for. RequirementMissing where it cannot be had,
        StudyError where the study is not to be trusted with it.
        """
        _require_files(folder, ())
        record = record_of_visit(folder)
        require_seen_by_guests(folder, "copy the study elsewhere")
        require_trusted_kernel(record.cell.kernel, self._study)
        levels = _recorded(record)
        found = prepare_guests([replace(record.cell, kernel=levels)], listener)
        if found.failed:
            raise RequirementMissing(*(reason for reasons in found.failed.values() for reason in reasons))
        kernel = find_kernel(levels.release, cache_directory=cache_directory())
        if kernel is None:
            raise RequirementMissing(f"kernel {levels.release} is not in {cache_directory()}")
        return PreparedRun(folder, record, kernel, found.trees)

    def hold(
        self,
        run: PreparedRun,
        points: Sequence[CutPoint],
        *,
        most: int,
        told: Callable[[BlameEvidence], None],
    ) -> None:
        """Tell what the inquest into each point ends with, as soon as it does.

        StudyError where a file of the run is missing, BedplateError where an inquest could not be held, GuestFailed where the guest died.
        """
        self._ask(run, points, Found, _number_of, lambda found: told(found.evidence), most=most)

    def inquest(self, run: PreparedRun, point: CutPoint, *, most: int) -> Found:
        """The inquest into one point with the cut that loses no more than it must; errors as of `hold`."""
        founds = list[Found]()
        self._ask(run, [point], Found, _number_of, founds.append, most=most)
        return founds[0]

    def outcomes(self, run: PreparedRun, points: Sequence[CutPoint]) -> tuple[PointRecord, ...]:
        """What comes of each point, which may be others than the run's, in the order of their numbers; errors as of `hold`."""
        records = list[PointRecord]()
        self._ask(run, points, PointRecord, lambda record: record.point.number, records.append)
        return tuple(sorted(records, key=lambda record: record.point.number))

    def tried(self, run: PreparedRun, asked: ScriptQuestion) -> TriedScript:
        """How the script of a bundle ends; BedplateError where it did not end in time, GuestFailed where the guest died."""
        answers = list[TriedScript]()
        program = GuestProgram(bundle.PROGRAM, asked)
        self._run(run, program, _Heard(TriedScript, answers.append), limit_s=_ERRAND_LIMIT_S + TRY_LIMIT_S)
        if len(answers) != 1:
            raise BedplateError(f"the guest ended, and said {len(answers)} times how the script had")
        return answers[0]

    def _ask(
        self,
        run: PreparedRun,
        points: Sequence[CutPoint],
        kind: type[_Record],
        number_of: Callable[[_Record], int],
        told: Callable[[_Record], object],
        *,
        most: int | None = None,
    ) -> None:
        """One answer of that kind for each point."""
        _require_files(run.folder, points)
        due = {point.number for point in points}

        def take(record: _Record) -> None:
            number = number_of(record)
            if number not in due:
                raise BedplateError(f"the guest spoke of cut {number}, of which nobody asked it")
            due.discard(number)
            told(record)

        job = job_of(run.folder, in_guest=True)
        question = CutQuestion(str(run.folder.resolve()), job, tuple(points), most)
        limit_s = _ERRAND_LIMIT_S + len(points) * (most or 1) * _REPLAY_LIMIT_S
        self._run(run, GuestProgram(cut_questions.PROGRAM, question), _Heard(kind, take), limit_s=limit_s)
        if due:
            missing, cuts = ", ".join(map(str, sorted(due))), format_count(len(due), "cut", "cuts")
            raise BedplateError(f"the guest ended, and said nothing of {cuts}: {missing}")

    def _run(
        self, run: PreparedRun, program: GuestProgram, heard: _Heard[_Record], *, limit_s: float
    ) -> None:
        subject, cell = job_of(run.folder, in_guest=True).subject, run.record.cell
        errand = Errand(
            program,
            run.kernel,
            cell.filesystem.type,
            cell.device.memory_bytes or self._memory_bytes,
            limit_s=limit_s,
            drivers={name: Path(str(path)) for name, path in subject.drivers.items()},
            needed=() if subject.build is None else (Path(subject.build.prefix),),
            trees=run.trees,
        )
        self._errands.run(errand, heard.hear)

    def close(self) -> None:
        """End the guest; safe to repeat."""
        self._errands.close()


@dataclass(frozen=True)
class GuestOfRun:
    """The guest for a bundle of one run, in which the inquest is held and the script tried.

    A guest caches the host's folders: it sees new files only in a folder that it had not read before.
    """

    guests: GuestCuts
    run: PreparedRun

    @property
    def words(self) -> str:
        """For a person."""
        return f"a guest with kernel {self.run.kernel.release}"

    def inquest(self, point: CutPoint, /, *, most: int) -> Found:
        """Why a cut of the run is bad; errors as of `GuestCuts.hold`."""
        return self.guests.inquest(self.run, point, most=most)

    def tried(self, asked: ScriptQuestion, /) -> TriedScript:
        """How the script of a bundle ends; errors as of `GuestCuts.tried`."""
        return self.guests.tried(self.run, asked)


class _Heard(Generic[_Record]):
    """Records that come in pieces: a line of the channel has an end."""

    def __init__(self, kind: type[_Record], told: Callable[[_Record], object]) -> None:
        self._kind, self._told, self._text = kind, told, ""

    def hear(self, event: Mapping[str, Scalar]) -> None:
        if event["event"] != ANSWER:
            return
        self._text += str(event[ANSWER])
        if event[IS_LAST]:
            text, self._text = self._text, ""
            self._told(codec.from_json(self._kind, json.loads(text)))


def require_seen_by_guests(place: Path, way_out: str) -> None:
    """RequirementMissing where a guest has a folder of its own in place of the one that holds this."""
    real = place.resolve()
    for hidden in _HIDDEN:
        if real.is_relative_to(hidden):
            raise RequirementMissing(
                f"a guest does not see {real}, as it has a {hidden} of its own: {way_out}"
            )


def _number_of(found: Found) -> int:
    return found.evidence.point


def _recorded(record: VisitRecord) -> KernelLevels:
    """The very release that was recorded, where it is one of the distribution's and the cache has it."""
    asked, release = record.cell.kernel, record.provenance.get("kernel")
    if asked.is_path or asked.is_built or release is None:
        return asked
    exact = KernelLevels(release)
    if exact.is_path or exact.is_built or find_kernel(release, cache_directory=cache_directory()) is None:
        return asked
    return exact


def _require_files(folder: Path, points: Sequence[CutPoint]) -> None:
    there = {name for name in limits.names_in(folder) if fnmatch(name, RECOVERY_LOG_FILE.format(first="*"))}
    names = {
        LOG_FILE,
        RECORDING_FILE,
        *(name for point in points for name in point.recovery_log_files),
        *there,
    }
    wrong = [folder / name for name in sorted(names) if not limits.is_file(folder / name)]
    if wrong:
        raise StudyError(*(f"{path} is missing, a link, or no file" for path in wrong))


def _guest_memory_bytes(study: Path) -> int:
    """Of the study's plan. Nothing else is read of it: what a plan names may be gone, or a stranger's."""
    path = StudyLayout(study).plan
    try:
        guest = tomllib.loads(codec.read_text(path)).get("guest", {})
        return parse_size(guest["memory"]) if "memory" in guest else GUEST_MEMORY_BYTES
    except (tomllib.TOMLDecodeError, ValueError, TypeError, AttributeError) as error:
        raise StudyError(f"{path}: the memory of its guests cannot be read: {error}") from error
