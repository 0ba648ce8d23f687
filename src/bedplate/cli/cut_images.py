"""`bedplate power-cut replay --profile`: the log of a stored run, cut again as other devices would leave it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from bedplate import registry
from bedplate.cli.cut_script import (
    job_of,
    kernel_needs,
    own_tools,
    record_of_visit,
    require_mountable,
    scripts,
)
from bedplate.cli.tried_script import ScriptQuestion, TriedScript, tried
from bedplate.cuts.blame import NOT_BAD_AGAIN, BlamedWrite, BlameEvidence, Repeatability, Story, story_of
from bedplate.cuts.choice import choose_points, placed_points
from bedplate.cuts.log import DEVICE_NAMES, DISCARD, FLUSH, FUA, MARK, Acknowledgements, Log, read_log
from bedplate.cuts.points import CutCounts, finding_of, is_drawn, read_cuts
from bedplate.cuts.records import (
    CONTROLS,
    LOG_FILE,
    RECORDING_FILE,
    ChosenState,
    CutPoint,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.cuts.runs import bound_words
from bedplate.cuts.verdict import CONTROLS_BAD_MIN, finding_words
from bedplate.errors import StudyError
from bedplate.filesystem.after_cut import image_levels, repair_commands
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.account import in_place_of, recorded_account
from bedplate.host.command import Account, Commands
from bedplate.host.requirement import Need, demand, look
from bedplate.model import codec, limits
from bedplate.model.durability import with_kept_journal
from bedplate.model.visit import Durability, VisitRecord
from bedplate.study.power_cut_stories import keep_stories, read_stories
from bedplate.units import format_count, format_size, one_line
from bedplate.visit.cuts import Reproduction
from bedplate.workloads.power_cut.bench import (
    DATA_DIRECTORY,
    Built,
    Found,
    ReplayJob,
    cut_engine,
    rebuilt,
    replayed,
)
from bedplate.workloads.power_cut.cut_questions import CutQuestion, inquest, inquests, recovery_of
from bedplate.workloads.power_cut.log import unpacked
from bedplate.workloads.power_cut.tearing import order_spans
from bedplate.workloads.power_cut.visit import measured_span

# Of the cuts of a log that was kept one in so many is placed.
_PLACED_EACH = 3


def require_log(folder: Path) -> None:
    """StudyError where the run's log was not kept."""
    if not limits.is_there(folder / LOG_FILE):
        raise StudyError(
            f"the log of {folder.name} was not kept: no cut of it was bad but the controls, and its plan keeps no such log, or "
            'none so large; `keep_logs = "all"` in a plan keeps every log'
        )


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
        return self._counts(each for each in self.records if each.point.control and each.acknowledged)

    @property
    def sees_losses(self) -> bool:
        """Whether enough controls were bad: what finds no loss where one must be proves nothing."""
        controls = self.controls
        return controls.bad > CONTROLS_BAD_MIN * controls.cuts

    def of(self, profile: Profile) -> CutCounts:
        """The drawn cuts of one profile."""
        return self._counts(
            each
            for each in self.records
            if not each.point.control and is_drawn(each) and each.point.profile is profile
        )

    @property
    def placed(self) -> CutCounts:
        """Those that chance did not place, of which no share is one."""
        return self._counts(each for each in self.records if not each.point.control and not is_drawn(each))

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

    def _counts(self, records: Iterable[PointRecord]) -> CutCounts:
        return CutCounts.together(CutCounts({finding_of(each, self.recording): 1}) for each in records)


_JOURNAL = "$journal"

# What is mounted by its pool's name, which is not in the job.
_POOLED = "zfs"


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
    if levels.type == _POOLED:
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
    bad = [
        record
        for record in (*cuts.points, *cuts.recuts)
        if record.outcome.is_bad and not record.point.control
    ]
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
    declared, stored = declared_of(folder), _records_of(folder)

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


def beside_record(evidence: BlameEvidence, record: PointRecord | None) -> BlameEvidence:
    """The evidence with the study's own look at the cut counted in: another finding, or a first look that failed, is told as a change."""
    if record is None or evidence.steadiness is not Repeatability.STEADY:
        return evidence
    alike = record.outcome is evidence.outcome and record.failed_once is None
    return evidence if alike else replace(evidence, steadiness=Repeatability.CHANGES)


def record_of(folder: Path, point: CutPoint) -> PointRecord | None:
    """The study's own record of a cut; None without one."""
    return _records_of(folder).get((point.control, point.number))


def _records_of(folder: Path) -> Mapping[tuple[bool, int], PointRecord]:
    cuts = read_cuts(folder)
    return {(each.point.control, each.point.number): each for each in (*cuts.points, *cuts.recuts)}


def declared_of(folder: Path) -> Durability | None:
    """What flushes and settings declared for the cell of a run: of the visit that it is a part of.

    A journal in memory is no reason where the plan had it kept (`ram_journal`).
    """
    declared = record_of_visit(folder).durability
    recording = read_cuts(folder).recording
    if declared is None or recording is None or recording.loses_journal:
        return declared
    return with_kept_journal(declared)


_PACK_LIMIT_S = 3600.0

# Of the log beside what was blamed: this much at most, and of what is before that and before the cut so much always.
_LOG_LINES_MOST, _AROUND = 2000, 20

_PACKERS = (
    Need("tar", "tar", "packs the image of the cut"),
    Need("xz", "xz-utils", "packs the image of the cut, and unpacks it where the bundle is tried"),
)

README, STORY, LOG, PROMISED, VERSIONS = (
    *("README.md", "story.txt", "log.txt", "promised.txt", "versions.txt"),
)

MENDED, ENGINE = "mended", "engine"


class Bundle(NamedTuple):
    """What was made: the story, and what the script said of the image, and of it with what mends it laid back.

    `mended` is None where the cut is bad without a loss: there is nothing to lay back. `where` says of a guest that it was tried in one.
    """

    story: Story
    bad: TriedScript
    mended: TriedScript | None
    where: str = ""


class BundleGuest(Protocol):
    """A guest under the kernel of a run, which mounts what the running kernel cannot."""

    @property
    def words(self) -> str:
        """For a person."""

    def inquest(self, point: CutPoint, /, *, most: int) -> Found:
        """Why a cut of the run is bad."""

    def tried(self, asked: ScriptQuestion, /) -> TriedScript:
        """How the script of a bundle ends there."""


def bundled(
    folder: Path, point: CutPoint, output: Path, *, most: int, guest: BundleGuest | None = None
) -> Bundle:
    """Make the bundle of a cut in the empty directory `output`, and try it here or in the guest.

    StudyError where the cut is not bad again, RequirementMissing before anything is replayed where nothing packs its image.
    """
    demand(look(_PACKERS))
    job = job_of(folder, in_guest=guest is not None)
    require_mountable(job.filesystem.type)
    reproduction: Reproduction | None = registry.engine_part_or_none(job.subject.engine, "reproduction")
    if reproduction is None:
        raise StudyError(
            f"nothing checks {job.subject.engine} without bedplate; `power-cut replay` builds the image of the cut"
        )
    with unpacked(folder) as kept:
        recovery = recovery_of(point, folder, kept)
        found = (
            inquest(folder, job, point, kept, most=most) if guest is None else guest.inquest(point, most=most)
        )
        evidence = beside_record(found.evidence, record_of(folder, point))
        story = story_of(evidence, declared_of(folder))
        if story.reason.code == NOT_BAD_AGAIN:
            raise StudyError(f"point {point.number}: {story.reason}; there is nothing to show")
        with ExitStack() as opened:
            log = opened.enter_context(read_log(kept.log))
            cut_log = log if recovery is None else opened.enter_context(read_log(recovery))
            first = next((each for each in job.points if each.number == point.recovery_of), None)
            promised = Acknowledgements(log).before((first or point).position).highest
            names = _images(log, job, found, memory=kept.memory, output=output, recovery=recovery)
            _write_texts(output, story, cut_log, found, promised)
        _write_scripts(output, job, names, reproduction)
        _versions(output, folder, job)
        asked = ScriptQuestion(str(output), places=reproduction.places(job.subject))
        trying = partial(tried, memory=kept.memory, ledger=kept.ledger) if guest is None else guest.tried
        bundle = Bundle(
            story,
            trying(asked),
            trying(replace(asked, words=(MENDED,))) if (output / MENDED).is_dir() else None,
            "" if guest is None else f" in {guest.words}",
        )
        needs = (*_filesystem_needs(job, names), *reproduction.needs)
        (output / README).write_text(_readme(bundle, needs, output), encoding="utf-8")
    return bundle


def _write_scripts(output: Path, job: ReplayJob, names: tuple[str, ...], reproduction: Reproduction) -> None:
    """The scripts, and what the engine's lines need beside them; a link in an engine's folder is not followed."""
    lines = reproduction.lines(job.subject, in_place_of(job.subject.account, recorded_account()))
    variables = tuple(reproduction.places(job.subject))
    has_mended = (output / MENDED).is_dir()
    for name, text in scripts(job, names, lines, variables, has_mended=has_mended).items():
        (output / name).write_text(text, encoding="utf-8")
        (output / name).chmod(0o755)
    for name, path in reproduction.files(job.subject).items():
        target = output / ENGINE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)


def _images(
    log: Log, job: ReplayJob, found: Found, *, memory: Path, output: Path, recovery: Path | None
) -> tuple[str, ...]:
    """The packed images, and what mends them; their names."""
    commands = Commands()
    first = tuple(each for each in job.points if each.number == found.smallest.recovery_of)
    places = {name: memory / f"bundle-{name}" for name in ("first", "bad", "whole")}
    for place in places.values():
        place.mkdir()

    def image(point: CutPoint, place: str) -> tuple[Path, ...]:
        alone = replace(job, points=(*first, point), recuts=())
        (places["first"]).mkdir(exist_ok=True)
        return rebuilt(log, alone, places["first"], places[place], recovery).images

    bad = image(found.smallest, "bad")
    for path in bad:
        packed = output / f"{path.name}.tar.xz"
        argv = [
            "tar",
            "--create",
            "--sparse",
            f"--directory={path.parent}",
            # At its usual level a server's image takes minutes on a busy machine.
            "--use-compress-program=xz -2",
            f"--file={packed}",
            path.name,
        ]
        commands.run(argv, timeout_s=_PACK_LIMIT_S)
    if found.evidence.smallest:
        whole = image(replace(found.smallest, state=ChosenState((), kept=False)), "whole")
        _write_mended(output / MENDED, found.evidence.smallest, whole)
    for place in places.values():
        shutil.rmtree(place)
    return tuple(path.name for path in bad)


def _write_mended(folder: Path, smallest: tuple[BlamedWrite, ...], whole: tuple[Path, ...]) -> None:
    """What stands at the lost places where nothing is lost: later writes to them included."""
    folder.mkdir()
    for write in smallest:
        image = whole[DEVICE_NAMES.index(write.device)]
        with image.open("rb") as file:
            for start, length in write.lost:
                file.seek(write.offset + start)
                (folder / f"{write.device}-{write.offset + start}").write_bytes(file.read(length))


def _write_texts(output: Path, story: Story, log: Log, found: Found, promised: Mapping[int, int]) -> None:
    (output / STORY).write_text("\n".join(story.lines) + "\n", encoding="utf-8")
    (output / LOG).write_text("\n".join(_log_lines(log, found)) + "\n", encoding="utf-8")
    lines = (f"{client} {number}" for client, number in sorted(promised.items()))
    (output / PROMISED).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _log_lines(log: Log, found: Found) -> Iterator[str]:
    """The entries before the cut, back to what was lost first, and those behind it that are blamed. Of too many those in between are left out."""
    late = found.evidence.mended_by
    told = {write.entry: f"LOST {_parts(write)}" for write in found.evidence.smallest}
    if late is not None:
        told[late.entry] = f"TOO LATE: {'; '.join(late.names)}"
    position = found.smallest.position
    first = max(0, min([position, *told]) - _AROUND)
    # What was on its way at the cut stands behind it in the log.
    until = max([position, *(entry + 1 for entry in told)])
    cut_ns = log.time_before(position)
    yield "# entry, ms before the cut, what, device, offset, length in bytes, who asked for it where that was seen"
    at, is_cut = first, False
    shown = {*told, *range(max(0, position - _AROUND), position)}
    shown |= {*range(max(first, until - _LOG_LINES_MOST), until)}
    for index in (*sorted(shown), until):
        if index >= position and not is_cut:
            yield from _left_out(position - at)
            yield "# the cut"
            at, is_cut = position, True
        yield from _left_out(index - at)
        if index < until:
            yield f"{_entry_line(log, index, cut_ns)} {told.get(index, '')}".rstrip()
        at = index + 1


def _left_out(count: int) -> Iterator[str]:
    if count > 0:
        yield f"# {format_count(count, 'entry', 'entries')} left out"


def _entry_line(log: Log, index: int, cut_ns: int | None) -> str:
    entry = log.entry(index)
    ms = "-" if entry.time_ns is None or cut_ns is None else f"{(cut_ns - entry.time_ns) / 1e6:.3f}"
    if entry.flags & MARK:
        return f"{index} {ms} acknowledged: {one_line((log.mark(index) or b'').decode(errors='replace'))}"
    words = f"{index} {ms} {_what(entry.flags)} {DEVICE_NAMES[entry.device]} {entry.offset} {entry.length}"
    return words + "".join(f" by {each.name}[{each.pid}]" for each in log.writers(index) or ())


def _parts(write: BlamedWrite) -> str:
    parts = ", ".join(f"{start}+{length}" for start, length in write.lost)
    return f"{parts}: {'; '.join(write.names)}"


def _what(flags: int) -> str:
    words = [word for bit, word in ((FLUSH, "flush"), (FUA, "fua"), (DISCARD, "discard")) if flags & bit]
    return "+".join(words) or "write"


def _versions(output: Path, folder: Path, job: ReplayJob) -> None:
    visit = codec.read(VisitRecord, folder.parent.parent / "visit.json")
    recording = codec.read(RecordingFacts, folder / RECORDING_FILE)
    told = {**recording.facts, **visit.versions}
    lines = [f"{name}: {version}" for name, version in sorted(told.items())]
    lines += [f"setting {name}: {level}" for name, level in sorted(job.subject.settings.items())]
    (output / VERSIONS).write_text("".join(f"{one_line(line)}\n" for line in lines), encoding="utf-8")


_TRIED = {
    True: "it gave the bad verdict",
    False: "it did NOT give the bad verdict: what is wrong here the engine's own tools do not see",
}


def _filesystem_needs(job: ReplayJob, names: tuple[str, ...]) -> Iterator[str]:
    type_ = job.filesystem.type
    yield f"a kernel with {kernel_needs(type_)}"
    package = filesystem_for(type_).package
    for tool in own_tools(type_, has_journal=len(names) > 1):
        yield f"{tool} (Debian: {package})"


def _readme(bundle: Bundle, needed: Sequence[str], output: Path) -> str:
    tried = f"it gave none: {bundle.bad.said.strip()}" if bundle.bad.lacks else _TRIED[bundle.bad.as_asked]
    laid = "`sudo ./reproduce.sh mended` lays back what was lost (`mended/`)"
    mended = "The cut is bad although nothing is lost that had been written, so nothing mends it."
    if bundle.mended is not None:
        mended = (
            f"{laid}, and then all is well."
            if bundle.mended.as_asked
            else f"{laid}; when it was made, all was not well then."
        )
    sizes = ", ".join(
        f"`{path.name}` {format_size(path.stat().st_size)}" for path in sorted(output.glob("*.tar.xz"))
    )
    rows = "" if bundle.mended is None else "| `mended/` | what was lost, by device and byte |\n"
    story = "\n".join(f"    {line}" for line in bundle.story.lines)
    needs = "\n".join(
        f"- {need}" for need in (*needed, "losetup, mount, tar, xz, awk, setpriv, unshare; root")
    )
    return f"""# A power cut that was bad

{story}

`sudo ./reproduce.sh` mounts the image that the cut left and asks the engine's own tools. It exits with 0 where it finds the bad
verdict, and with 4 where something is missing and there is none. It works on copies below a temporary folder. When this bundle was
made, it was tried{bundle.where}, and {tried}. {mended}

Root mounts the image (nosuid, nodev, noexec) and repairs it where a mount is not enough. The engine's tools run as account 65534,
without a network. The kernel's file system still reads a stranger's image: whoever does not trust its maker starts a virtual machine for it.

It needs:

{needs}

| file | |
| --- | --- |
| {sizes} | the devices as the cut left them, with no more lost than it takes |
{rows}| `promised.txt` | each client, and its last transaction that was acknowledged before the cut |
| `log.txt` | what was written, by which processes, flushed and acknowledged before the cut |
| `check.sh`, `confine.sh`, `engine/` | what the tools have to answer, and what takes their rights |
| `story.txt`, `versions.txt` | the story above; what it was recorded with |
"""
