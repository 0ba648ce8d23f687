"""Which commit of many made it so: git's own search, driven by studies of pairs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from bedplate.errors import BedplateError, PlanError, StudyError
from bedplate.host.git import Repository, borrow, commit_in, is_full_hash, resolve
from bedplate.model import codec
from bedplate.model.cell import SourceCommit
from bedplate.near_names import quoted
from bedplate.units import cut_line, format_count

GOOD, BAD, SKIP = "good", "bad", "skip"

_TIME_LIMIT_S = 600.0

# git-bisect(1): only commits that were skipped are left.
_ONLY_SKIPPED = 2

_FIRST_BAD = re.compile(r"^([0-9a-f]{40}(?:[0-9a-f]{24})?) is the first bad commit$", re.MULTILINE)
_HASH = re.compile(r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$", re.MULTILINE)
_REF = "refs/heads/bisected"


@dataclass(frozen=True)
class Ends:
    """The two ends of a bisection, and how many commits lie behind the good one, the bad one among them."""

    tree: Path
    good: SourceCommit
    bad: SourceCommit
    commits: int


@dataclass(frozen=True)
class BisectStep:
    """What git asks next, or what it found.

    `commit` is the next one to be judged. `first_bad` is the commit that made it so; `any_of` are those that it may be where the rest
    of them was skipped.
    """

    commit: str | None = None
    first_bad: str | None = None
    any_of: tuple[str, ...] = ()


def ends_of(tree: Path, good: str, bad: str) -> Ends:
    """Both ends by their names; PlanError where they are one commit, or the good one is no ancestor of the bad one."""
    with borrow(tree) as repository:
        first, last = commit_in(repository, good), commit_in(repository, bad)
        if first.hash == last.hash:
            raise PlanError(
                f"{quoted(good)} and {quoted(bad)} are the same commit, {first.hash[:12]}; a bisection needs two"
            )
        is_ancestor = ("merge-base", "--is-ancestor", first.hash, last.hash)
        if repository.run(*is_ancestor, check=False).status != 0:
            base = repository.run("merge-base", first.hash, last.hash, check=False).stdout.strip()
            if base == last.hash:
                raise PlanError(
                    f"{quoted(good)} comes after {quoted(bad)}; name the good commit first: bisect … {bad} {good}"
                )
            way = f"begin at what they have in common: {base[:12]}" if base else "they have nothing in common"
            raise PlanError(f"{quoted(good)} is no ancestor of {quoted(bad)}; {way}")
        count = repository.text("rev-list", "--count", f"{first.hash}..{last.hash}").strip()
        return Ends(tree, first, last, int(count))


class BisectHistory:
    """What git answers about the commits between two ends."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def next(self, verdicts: Iterable[tuple[str, str]]) -> BisectStep:
        """What follows from the verdicts, each a commit and `GOOD`, `BAD` or `SKIP`, in the order in which they were found."""
        with borrow(self._ends.tree) as repository:
            # A repository has to stand somewhere before it can be bisected.
            repository.run("update-ref", _REF, self._ends.bad.hash)
            repository.run("symbolic-ref", "HEAD", _REF)
            found = self._bisect(
                repository, "start", "--no-checkout", self._ends.bad.hash, self._ends.good.hash
            )
            for commit, verdict in verdicts:
                if found.first_bad is not None or found.any_of:
                    break
                found = self._bisect(repository, verdict, commit)
            return found

    def parents(self, commit: str) -> tuple[str, ...]:
        """The hashes of a commit's parents."""
        with borrow(self._ends.tree) as repository:
            return tuple(repository.text("rev-list", "--parents", "-n1", commit).split()[1:])

    def commit(self, name: str) -> SourceCommit:
        """A commit of the tree by its hash."""
        return resolve(self._ends.tree, name)

    def _bisect(self, repository: Repository, *words: str) -> BisectStep:
        done = repository.run("bisect", *words, check=False, timeout_s=_TIME_LIMIT_S)
        found = _FIRST_BAD.search(done.stdout)
        if found is not None:
            return BisectStep(first_bad=found[1])
        if done.status == _ONLY_SKIPPED:
            return BisectStep(any_of=tuple(_HASH.findall(done.stdout)))
        if done.status != 0:
            raise BedplateError(
                f"git bisect {words[0]} ended with status {done.status} in {self._ends.tree}: {done.output[:500]}"
            )
        head = repository.text("rev-parse", "--verify", "--quiet", "BISECT_HEAD", check=False).strip()
        if not _HASH.fullmatch(head):
            raise BedplateError(
                f"git bisect {words[0]} named no commit in {self._ends.tree}: {done.output[:500]}"
            )
        return BisectStep(commit=head)


BISECT_VERSION = 1
BISECT_FILE = "bisect.json"

# What a verdict rests on.
BY_INTERVAL, BY_ESTIMATE, BY_RECORD, BY_FAILURE = "interval", "estimate", "record", "failure"


@dataclass(frozen=True)
class JudgedCommit:
    """A commit that was held against the good one."""

    commit: str
    """full hash"""
    subject: str
    """first paragraph of its message, printable"""
    verdict: str
    """`good`, `bad`, or `skip` where it could not be built or its visits failed"""
    basis: str
    """`interval`: all of it is on one side; `estimate`: its time was gone, and the estimate is on that side; `record`: by
    flushes, a durability verdict or another figure of the records; `failure`: it was skipped"""
    words: str
    """what was seen, in a sentence"""
    study: str
    """name of its study's folder; empty where it has none"""
    visits: int = 0
    """visits that it took"""


@dataclass(frozen=True)
class BisectionRecord:
    """`bisect.json` of a bisection's folder."""

    version: int
    """1"""
    tree: str
    """the source tree"""
    good: str
    """full hash of the good commit"""
    bad: str
    """full hash of the bad commit"""
    condition: str
    """what makes a commit bad, as `--fail-if` has it"""
    plan_digest: str
    """digest of the plan that both ends are measured by"""
    ends: JudgedCommit | None = None
    """the bad commit beside the good one; null before both were measured"""
    judged: tuple[JudgedCommit, ...] = ()
    """commits that git asked for, in that order"""


def read_bisection(place: Path) -> BisectionRecord | None:
    """What a bisection came to; None where none was begun. StudyError for another format, and for what is no verdict."""
    path = place / BISECT_FILE
    if not path.exists():
        return None
    found = codec.read(BisectionRecord, path)
    if found.version != BISECT_VERSION:
        raise StudyError(
            f"{path} has format {found.version}, this bedplate knows {BISECT_VERSION}; read it with the version that wrote it"
        )
    for each in (*found.judged, *(() if found.ends is None else (found.ends,))):
        # git takes other words in the place of a verdict, and one of them starts programs.
        if each.verdict not in (GOOD, BAD, SKIP) or not is_full_hash(each.commit):
            raise StudyError(
                f"{path} has the verdict {quoted(each.verdict)} on {quoted(each.commit)}; a verdict is {GOOD}, {BAD} or {SKIP}, "
                "on a commit by its full hash; name another --directory"
            )
    return found


def write_bisection(place: Path, bisection: BisectionRecord) -> None:
    """Keep it, whole or as it was before."""
    codec.write(place / BISECT_FILE, bisection)


class CommitJudge(Protocol):
    """Holds a commit against the good one."""

    def ends(self, bad: SourceCommit) -> JudgedCommit:
        """The bad commit, held against the good one. It is `bad` only where that is sure, and the good one is not bad itself."""

    def commit(self, candidate: SourceCommit) -> JudgedCommit:
        """A commit that git asks for: `good`, `bad`, or `skip` where it cannot be built or run."""


class BisectEnding(Enum):
    """How a bisection ended."""

    FOUND = "found"
    # Only skipped commits are left between the last good and the first bad one.
    SKIPPED = "skipped"
    # The bad end is not bad.
    NO_BAD_COMMIT = "no bad commit"
    # Whether the bad end is bad was not known when its time was gone.
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Bisected:
    """What a bisection came to. `first_bad` is the commit that made it so, `any_of` those that it may be."""

    ends: Ends
    record: BisectionRecord
    ending: BisectEnding
    first_bad: SourceCommit | None = None
    parents: tuple[SourceCommit, ...] = ()
    any_of: tuple[SourceCommit, ...] = ()

    @property
    def visits(self) -> int:
        """Of all studies together."""
        judged = (*self.record.judged, *((self.record.ends,) if self.record.ends is not None else ()))
        return sum(each.visits for each in judged)

    def of(self, commit: str) -> JudgedCommit | None:
        """What a commit was found to be; None of one that was not asked for."""
        ends = self.record.ends
        if ends is not None and ends.commit == commit:
            return ends
        return next((each for each in self.record.judged if each.commit == commit), None)


def bisect(
    place: Path,
    ends: Ends,
    initial_record: BisectionRecord,
    judge: CommitJudge,
    *,
    tell: Callable[[str], None],
) -> Bisected:
    """Find the commit, or go on with it. StudyError where the folder has another bisection."""
    record = read_bisection(place)
    if record is None:
        record = initial_record
        write_bisection(place, record)
    elif replace(record, ends=None, judged=()) != initial_record:
        raise StudyError(
            f"{place} has another bisection, of {record.good[:12]} to {record.bad[:12]} for {record.condition!r:.100}; name another --directory"
        )
    # What was not known when its time was gone may be known with more of it.
    if record.ends is None or record.ends.verdict == SKIP:
        record = replace(record, ends=judge.ends(ends.bad))
        write_bisection(place, record)
    at_end = record.ends
    if at_end is None:
        raise AssertionError("both ends were judged")
    tell(f"bisect: both ends: {at_end.words}")
    if at_end.verdict != BAD:
        ending = BisectEnding.NO_BAD_COMMIT if at_end.verdict == GOOD else BisectEnding.NOT_KNOWN
        return Bisected(ends, record, ending)
    history = BisectHistory(ends)
    while True:
        step = history.next([(each.commit, each.verdict) for each in record.judged])
        if step.commit is None:
            break
        candidate = history.commit(step.commit)
        tell(f"bisect: commit {len(record.judged) + 1}: {candidate.level}")
        judgement = judge.commit(candidate)
        record = replace(record, judged=(*record.judged, judgement))
        write_bisection(place, record)
        tell(f"bisect: {judgement.verdict}: {judgement.words}")
    if step.first_bad is None:
        return Bisected(ends, record, BisectEnding.SKIPPED, any_of=tuple(map(history.commit, step.any_of)))
    parents = tuple(map(history.commit, history.parents(step.first_bad)))
    return Bisected(ends, record, BisectEnding.FOUND, history.commit(step.first_bad), parents)


COLUMNS = 72

# Subjects are anybody's; one may have ten thousand characters.
_SUBJECT_CHARACTERS = 120

_DIGITS = 12


def mail_text(bisection: Bisected, *, sentences: Sequence[str]) -> str:
    """The text; `sentences` are those about the machine and the method."""
    return "\n".join(
        (
            *_head(bisection),
            "",
            *_outcome_lines(bisection),
            "",
            *_ends(bisection),
            *_table(bisection),
            *_method(bisection, sentences),
            "",
        )
    )


def subject_of(text: str) -> str:
    """A commit's subject on one line, as long as a mail bears."""
    return cut_line(text, _SUBJECT_CHARACTERS)


def _head(bisection: Bisected) -> Iterator[str]:
    if bisection.first_bad is not None:
        yield _cut_to_columns(
            f"Subject: [bisected] {bisection.record.condition}: {subject_of(bisection.first_bad.subject)}"
        )
    else:
        yield _cut_to_columns(f"Subject: [bisected] {bisection.record.condition}: {bisection.ending.value}")


def _outcome_lines(bisection: Bisected) -> Iterator[str]:
    good, bad, condition = bisection.ends.good, bisection.ends.bad, bisection.record.condition
    span = f"{_short(good.hash)} and {_short(bad.hash)}"
    if bisection.first_bad is not None:
        yield from _filled(f"Between {span}, this is the first commit for which “{condition}” holds:")
        yield ""
        yield f"    {bisection.first_bad.hash}"
        yield from _filled(subject_of(bisection.first_bad.subject), indent=4)
        yield ""
        yield from _parent_lines(bisection)
    elif bisection.ending is BisectEnding.SKIPPED:
        yield from _filled(
            f"Between {span}, the first commit for which “{condition}” holds is one of these {len(bisection.any_of)}; the others of them could "
            "not be built or run:"
        )
        yield ""
        for each in bisection.any_of:
            yield from _commit(each)
    elif bisection.ending is BisectEnding.NO_BAD_COMMIT:
        yield from _filled(
            f"There is no bad commit: “{condition}” does not hold of {_short(bad.hash)} beside {_short(good.hash)}."
        )
    else:
        yield from _filled(
            f"Whether “{condition}” holds of {_short(bad.hash)} beside {_short(good.hash)} is not known, so no commit was looked for."
        )


def _parent_lines(bisection: Bisected) -> Iterator[str]:
    """The commit itself and its parents, which bear it out."""
    if bisection.first_bad is None:
        return
    for commit in (bisection.first_bad, *bisection.parents):
        judged = bisection.of(commit.hash)
        name = "it" if commit is bisection.first_bad else f"its parent {_short(commit.hash)}"
        if judged is not None:
            yield from _filled(f"{name}: {judged.words}", indent=2)
        elif commit.hash == bisection.ends.good.hash:
            yield from _filled(f"{name}: the good end", indent=2)
        else:
            yield from _filled(
                f"{name}: not measured; it is an ancestor of a good commit, or was skipped", indent=2
            )


def _ends(bisection: Bisected) -> Iterator[str]:
    yield "Ends:"
    for name, commit in (("good", bisection.ends.good), ("bad", bisection.ends.bad)):
        yield from _filled(f"{name} {_short(commit.hash)} {subject_of(commit.subject)}", indent=2)
    if bisection.record.ends is not None:
        yield from _filled(bisection.record.ends.words, indent=7)
    yield ""


def _table(bisection: Bisected) -> Iterator[str]:
    if not bisection.record.judged:
        return
    yield "Commits as git asked for them, each beside the good end:"
    for each in bisection.record.judged:
        yield from _judgement_lines(each)
    yield ""


def _judgement_lines(judgement: JudgedCommit) -> Iterator[str]:
    sure = " (by the estimate: its time was gone)" if judgement.basis == BY_ESTIMATE else ""
    yield from _filled(
        f"{judgement.verdict:<4} {_short(judgement.commit)} {subject_of(judgement.subject)}", indent=2
    )
    yield from _filled(f"{judgement.words}{sure}", indent=7)


def _method(bisection: Bisected, sentences: Sequence[str]) -> Iterator[str]:
    for sentence in sentences:
        yield from _filled(sentence)
    yield from _filled(
        f"{format_count(bisection.visits, 'visit')}, {format_count(bisection.ends.commits, 'commit')} between the ends."
    )


def _commit(commit: SourceCommit) -> Iterator[str]:
    yield from _filled(f"{_short(commit.hash)} {subject_of(commit.subject)}", indent=2)


def _short(commit: str) -> str:
    return commit[:_DIGITS]


def _filled(text: str, indent: int = 0) -> list[str]:
    """Lines of at most 72 columns; a word that is longer is broken."""
    return textwrap.wrap(
        text, COLUMNS, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2 if indent else 0)
    )


def _cut_to_columns(line: str) -> str:
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"
