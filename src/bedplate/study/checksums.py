"""The checksums of a finished visit: taken before it gets its place, held against its files by every reader.

They find what was damaged or changed by mistake. Who changes a file and its checksum alike is not found.
"""

from __future__ import annotations

import hashlib
import stat
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from bedplate.errors import StudyError
from bedplate.model import codec, limits
from bedplate.model.cell import RunSpec
from bedplate.model.durability import CLASSES
from bedplate.model.figure import Figure, RunFigures, Scale, Status
from bedplate.model.limits import MOST_FILES, MOST_LEVELS, MOST_NAME_CHARACTERS, most_bytes_compared, too_long
from bedplate.model.metrics import METRICS
from bedplate.model.reason import Reason, because, distinct
from bedplate.model.visit import FORMAT_VERSION, KNOWN_FORMATS, Outcome, Validity, VisitRecord
from bedplate.study.layout import KNOWN_WORDS, StudyLayout
from bedplate.study.records import Checksums, FileChecksum, StudyFacts
from bedplate.units import percent

Record = TypeVar("Record")

CHECKSUMS_FILE = "checksums.json"

# What figures, tables and pages are made from; a visit with another one of these is not used. The rest are logs.
_RECORD_SUFFIXES = (".json", ".jsonl", ".parquet")

# A folder that somebody filled has as many reasons as files: a reader learns nothing from the eleventh.
_MOST_TOLD = 10

_CHANGED = "was changed after its visit had ended: its checksum is another"


def write_checksums(directory: Path) -> None:
    """Take the checksums of all plain files of a visit, and write them beside them; readers name whatever else lies there."""
    files = {
        name: FileChecksum(size_bytes, _sha256_of(directory / name))
        for name, size_bytes in sorted(_sizes(directory).items())
        # Opening a pipe would wait for whoever writes to it.
        if name != CHECKSUMS_FILE and size_bytes >= 0
    }
    codec.write(directory / CHECKSUMS_FILE, Checksums(FORMAT_VERSION, files))


def top_checksums(files: Mapping[str, bytes]) -> dict[str, FileChecksum]:
    """Of the files at the top of a study, by their path below it."""
    return {
        name: FileChecksum(len(data), hashlib.sha256(data).hexdigest())
        for name, data in sorted(files.items())
    }


def changed_top_files(layout: StudyLayout, study_facts: StudyFacts) -> tuple[str, ...]:
    """Which files of a study itself are not what they were when it was made or extended; none of earlier versions."""
    changed = tuple(_changed_top_files(layout.directory, study_facts.checksums))
    if not changed:
        return ()
    # Within an extension some are new already and some are not; one may have ended since `facts` was read.
    if limits.is_there(layout.extension):
        return ()
    return tuple(_changed_top_files(layout.directory, codec.read(StudyFacts, layout.facts).checksums))


def _changed_top_files(directory: Path, checksums: Mapping[str, FileChecksum]) -> Iterator[str]:
    for name, expected in checksums.items():
        path, below = directory / name, Path(name)
        # The study's own path may have `..` in it.
        if below.is_absolute() or ".." in below.parts:
            yield f"study.json has a checksum of {name!r:.200}, which is no file of the study"
            continue
        try:
            found = hashlib.sha256(codec.read_bytes(path)).hexdigest()
        except StudyError as error:
            yield from error.reasons
            continue
        if found != expected.sha256:
            yield f"{path} was changed after the study was made or extended: its checksum is another"


class VisitFiles:
    """The files of a finished visit, held against its checksums; a visit of an earlier version has none.

    `damage` says why the visit must not be used, `remarks` what is to be named and changes no figure. Both come
    from names and sizes; the content of a file is compared when it is read, or by `verify`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._sizes = _sizes(directory)
        self.damage: tuple[str, ...] = ()
        self.remarks: tuple[str, ...] = ()
        self._files: Mapping[str, FileChecksum] = {}
        self.has_checksums = CHECKSUMS_FILE in self._sizes
        if self.has_checksums:
            found = codec.read(Checksums, directory / CHECKSUMS_FILE)
            if found.format_version not in KNOWN_FORMATS:
                raise StudyError(f"{directory / CHECKSUMS_FILE} is of format {found.format_version}")
            self._files = found.files
            self._note(self._changed_sizes())

    @property
    def size_bytes(self) -> int:
        """Of all files that have a checksum."""
        return sum(file.size_bytes for file in self._files.values())

    @property
    def count(self) -> int:
        """How many files have a checksum."""
        return len(self._files)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self._sizes

    def names(self, ending: str) -> list[str]:
        """The paths of all files of this name, in order."""
        return sorted(name for name in self._sizes if name.rpartition("/")[2] == ending)

    def record(self, kind: type[Record], name: str) -> Record:
        """The record in a file; StudyError if it does not fit, or is not what it was when the visit had ended."""
        return codec.loads(kind, self.text(name), source=str(self.directory / name))

    def text(self, name: str) -> str:
        """The text of a file; StudyError if it is not what it was when the visit had ended."""
        path = self.directory / name
        data = codec.read_bytes(path)
        expected = self._files.get(name)
        if expected is not None and hashlib.sha256(data).hexdigest() != expected.sha256:
            raise StudyError(f"{path} {_CHANGED}")
        return codec.decode(data, source=str(path))

    def verify(self) -> None:
        """Compare the content of every file; adds to `damage` and `remarks`."""
        self._note(self._changed_content())

    def _changed_content(self) -> Iterator[tuple[str, str]]:
        for name, expected in self._files.items():
            if self._sizes.get(name) != expected.size_bytes or expected.size_bytes < 0:
                continue  # said already
            if expected.size_bytes > (most_bytes := most_bytes_compared(name.rpartition("/")[2])):
                yield (
                    name,
                    f"is not compared: it has {expected.size_bytes:,} bytes, and at most {most_bytes:,} are",
                )
                continue
            try:
                found = _sha256_of(self.directory / name)
            except StudyError as error:
                yield name, f"is not compared: {'; '.join(error.reasons)}"
                continue
            if found != expected.sha256:
                yield name, _CHANGED

    def _changed_sizes(self) -> Iterator[tuple[str, str]]:
        for name, expected in self._files.items():
            size_bytes = self._sizes.get(name)
            if size_bytes is None:
                yield name, "is missing; it was there when its visit had ended"
            elif size_bytes < 0:
                yield name, "was changed after its visit had ended: it is no plain file any more"
            elif size_bytes != expected.size_bytes:
                sizes = f"{size_bytes} bytes, and {expected.size_bytes} before"
                yield name, f"was changed after its visit had ended: {sizes}"
        for name in self._sizes.keys() - self._files.keys() - {CHECKSUMS_FILE}:
            yield name, "was not there when its visit had ended"

    def _note(self, changes: Iterable[tuple[str, str]]) -> None:
        """The first changes in words, each of a record as damage; of the rest how many there are."""
        damage: list[str] = []
        remarks: list[str] = []
        for name, what in changes:
            (damage if name.endswith(_RECORD_SUFFIXES) else remarks).append(f"{self.directory / name} {what}")
        self.damage = (*self.damage, *_first(damage, f"records of {self.directory}"))
        self.remarks = (*self.remarks, *_first(remarks, f"files of {self.directory}"))


def _first(words: list[str], subject: str) -> Iterator[str]:
    yield from words[:_MOST_TOLD]
    if len(words) > _MOST_TOLD:
        yield f"and so are {len(words) - _MOST_TOLD:,} more {subject}"


def _sizes(directory: Path) -> dict[str, int]:
    """The size of every file by its path below `directory`; StudyError where that cannot be looked at, or is more than a visit has.

    What is no plain file (a link, a pipe) has none: -1. A name that is no UTF-8 is nobody's here, and left out.
    """
    found: dict[str, int] = {}
    count = 0
    try:
        for name, entry in limits.entries_below(directory):
            count += 1
            if name.count("/") >= MOST_LEVELS:
                raise StudyError(
                    f"{directory} is not read: {name:.200} lies deeper than {MOST_LEVELS} folders, where a visit has nothing"
                )
            if count > MOST_FILES:
                raise StudyError(
                    f"{directory} is not read: it has more than {MOST_FILES:,} files and folders, and no visit has as many"
                )
            if not entry.is_dir(follow_symlinks=False) and (name.isascii() or _is_text(name)):
                status = entry.stat(follow_symlinks=False)
                found[name] = status.st_size if stat.S_ISREG(status.st_mode) else -1
    except OSError as error:
        raise StudyError(f"{directory / (error.filename or '')} cannot be read: {error.strerror}") from error
    return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sha256_of(path: Path) -> str:
    with codec.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_read(run: RunFigures, visit: VisitRecord) -> RunFigures:
    """The run with its visit's doubts: a completed run is suspect then, whatever its own rules say."""
    if not visit.doubts or run.outcome is not Outcome.COMPLETED:
        return run
    reasons = distinct((*visit.doubts, *run.validity_reasons))
    return replace(run, validity=Validity.SUSPECT, validity_reasons=reasons)


def is_doubted(outcome: str | None, validity: str | None, visit: VisitRecord) -> bool:
    """The same of a run of which only two values were read: whether it is completed and no part of a verdict."""
    return outcome == Outcome.COMPLETED and (bool(visit.doubts) or validity != Validity.VALID)


if TYPE_CHECKING:
    Paced = tuple[Hashable, Mapping[str, float]]

WAYS_SHARE_MAX = 0.10
TPS_SHARE_MAX = 0.05

# Below the header of one WAL record for each transaction: what waits for the medium sleeps for other causes.
WAL_KIB_OF_READING_MAX = 0.02

_WAYS = {
    "client_sleeps_per_transaction": (
        "the client's threads slept {} times for each transaction, where the median is {}",
        "{:.2f}".format,
    ),
    "context_switches_per_transaction": (
        "{} changes of tasks for each transaction, where the median is {}",
        "{:.2f}".format,
    ),
    "machine_cpu_share": ("processors were busy for {} of the time, where the median is {}", percent),
}

# What the rule looks at.
MODE_METRICS = ("tps", "wal_kib_per_transaction", *_WAYS)


def in_other_modes(paced_runs: Sequence[Paced]) -> dict[int, Reason]:
    """Which runs that only read slept and sped otherwise than the median of their kind, and why it is thought so.

    Of two repetitions that differ both are told: nothing tells which is the usual one.
    """
    kinds: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, (kind, values) in enumerate(paced_runs):
        if (
            values.get("tps")
            and values.get("wal_kib_per_transaction", WAL_KIB_OF_READING_MAX) < WAL_KIB_OF_READING_MAX
        ):
            kinds[kind].append(place)
    return {
        places[number]: reason
        for places in kinds.values()
        for number, reason in _runs_of_other_modes([paced_runs[place][1] for place in places])
    }


def _runs_of_other_modes(kind: Sequence[Mapping[str, float]]) -> Iterator[tuple[int, Reason]]:
    usual_tps = median(values["tps"] for values in kind)
    usual = {
        metric: median(known) for metric in _WAYS if (known := [v for m in kind if (v := m.get(metric))])
    }
    for number, values in enumerate(kind):
        tps = values["tps"]
        if abs(tps / usual_tps - 1) <= TPS_SHARE_MAX:
            continue
        otherwise = [
            words.format(written(value), written(usual[metric]))
            for metric, (words, written) in _WAYS.items()
            if (value := values.get(metric)) and abs(value / usual[metric] - 1) > WAYS_SHARE_MAX
        ]
        if otherwise:
            median_words = f"where the median of {len(kind)} repetitions is {usual_tps:.0f}"
            words = (
                f"the scheduler ran it in another way: {'; '.join(otherwise)}; {tps:.0f} tps, {median_words}"
            )
            yield number, because("scheduled-otherwise", words, tps=tps, tps_median=usual_tps)


# Of a scale on which something can be negative: a trend falls.
_SIGNED = Scale.SHARE

# Two clocks may part by a little.
_WHOLE = 1.01

# Beyond it a square has no number any more; no counter of a machine comes near.
_LARGEST = 1e100


def impossible(run: RunFigures, due_runs: Sequence[RunSpec]) -> Iterator[str]:
    """Why the figures of a run cannot be what they say; `due_runs` are the runs that its visit may have made."""
    if run.format_version not in KNOWN_FORMATS:
        yield f"it is of format {run.format_version}, not {KNOWN_WORDS}"
    yield from _foreign(run, due_runs)
    for what, texts in (
        ("the phase", {figure.phase for figure in run.figures}),
        ("the item", {figure.item for figure in run.figures}),
        ("the unit", {figure.unit for figure in run.figures}),
        ("the metric", {figure.metric for figure in run.figures}),
    ):
        yield from too_long(f"{what} of a figure", *texts)
    for figure in run.figures:
        if not _is_usual(figure):
            yield from _impossible_figure(figure)
    places = [(each.phase, each.item, each.pass_, each.metric) for each in run.figures]
    if len(set(places)) < len(places):
        for (phase, item, _, metric), count in Counter(places).items():
            if count > 1:
                yield f"{metric} of {f'{phase} {item}'.strip()!r:.80} is in it {count} times"
    if run.duration_s is not None and run.duration_s < 0:
        yield f"it took {run.duration_s:g} seconds"


def impossible_visit(record: VisitRecord) -> Iterator[str]:
    """Why the record of a visit cannot be what it says, or is none of this version's."""
    if record.format_version not in KNOWN_FORMATS:
        yield f"it is of format {record.format_version}, not {KNOWN_WORDS}"
    # An id is a hash of what it stands for.
    for what, said, identity in (
        ("cell", record.key.cell, record.cell.id),
        ("dataset", record.key.dataset, record.dataset.id),
    ):
        if said != identity:
            yield f"it is of the {what} {said!r:.200}, and describes {identity!r:.200}"
    for durability in (record.durability, record.durability and record.durability.without_waiting):
        if durability is not None:
            reasons = sum(len(reason.sentence) for reason in durability.reasons)
            yield from too_long("the basis of its durability", durability.basis)
            if reasons > MOST_NAME_CHARACTERS:
                yield f"the reasons of its durability have {reasons:,} characters; allowed are {MOST_NAME_CHARACTERS:,}"
            told = (durability.volatile_cache, durability.protected_cache, durability.volatile_cache_512)
            for name in dict.fromkeys(told):
                if name is not None and name not in CLASSES:
                    yield f"{name!r:.80} is no durability class"


def _foreign(run: RunFigures, due_runs: Sequence[RunSpec]) -> Iterator[str]:
    """A run that the visit was never asked for, or another one under its name."""
    named = [spec for spec in due_runs if spec.name == run.run]
    if not named:
        yield f"schedule.json has no run {run.run!r:.80} of this visit"
    elif (run.run_id, run.workload) not in {(spec.id, spec.workload) for spec in named}:
        told = " or ".join(spec.id for spec in named)
        yield f"it is the run {run.run_id!r:.80} of {run.workload!r:.40}, and schedule.json has {told!r:.200}"


def _is_usual(figure: Figure) -> bool:
    """Whether a figure is plainly in order, as nearly all are: a study of hundreds of cells has a hundred thousand."""
    known = METRICS.get(figure.metric)
    if known is None or figure.value is None or figure.limit is not None:
        return False
    most = _WHOLE if known.scale is Scale.PROPORTION else _LARGEST
    return 0 <= figure.value <= most and figure.unit == known.unit


def _impossible_figure(figure: Figure) -> Iterator[str]:
    if figure.status is Status.MEASURED and figure.value is None:
        yield f"{figure.metric} is measured and has no value"
    known = METRICS.get(figure.metric)
    if known is None:
        return
    if figure.unit != known.unit:
        yield f"{figure.metric} is in {figure.unit!r:.40}, and it is measured in {known.unit!r}"
    for value in (figure.value, figure.limit):
        if value is None:
            continue
        if value < 0 and known.scale is not _SIGNED:
            yield f"{figure.metric} is {value:g}, and it cannot be negative"
        if value > _WHOLE and known.scale is Scale.PROPORTION:
            yield f"{figure.metric} is {value:g}, and it is a part of a whole"
        if abs(value) > _LARGEST:
            yield f"{figure.metric} is {value:g}, which nothing comes to"
