"""What a study answers, in eight lines: what to take, how far ahead and how sure, what not, and what would tell more."""

from __future__ import annotations

import math
import re
import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from bedplate.analysis.advice import (
    RECOMMENDED,
    SURE,
    VOLATILE,
    Advised,
    Contest,
    NextVisits,
    Objective,
    RankedCell,
    Run,
    Standing,
    about_words,
    advised,
    extend_command,
    failed_alike,
    more_for_verdicts,
    next_visits,
    objectives_of,
    ranking,
    seconds_of_a_repetition,
    seconds_of_visits,
    standing_cells,
    study_directory,
    without_figures,
)
from bedplate.analysis.comparison import ComparisonQuestion, answer, candidates_of
from bedplate.analysis.effects import study_effects
from bedplate.analysis.labels import DEFAULT, FILESYSTEM_BLOCK, TYPE, level_text, short_name, usual_factors
from bedplate.analysis.overview import CellFacts, Measurement, Overview, Trouble, is_chosen
from bedplate.analysis.paired import answer_lines as answer_of_pairs
from bedplate.analysis.paired import looked
from bedplate.analysis.pooled import pooled_in_short, pooled_line, pooled_pairs, ratio_words
from bedplate.analysis.run_heads import answers_first, has_speed, view_of
from bedplate.analysis.search import Searched, SetUp, answer_lines, search_of, set_up, settings_words
from bedplate.analysis.wording import (
    block_words,
    capital,
    confidence_words,
    durability_class,
    figure,
    margin_words,
    says_nothing,
    unit_words,
)
from bedplate.cuts.points import BOUNDED, BROKEN, LOSS, CutCounts
from bedplate.cuts.records import DEVICE_UNIT, ENOSPC, LOG_FILE, PageCounts
from bedplate.cuts.runs import (
    CutRun,
    cut_cell_words,
    percent_from_above,
    speaking,
    weaker_words,
    without_share,
)
from bedplate.cuts.runs import pooled as pooled_cuts
from bedplate.cuts.verdict import (
    CUTS_FOR_MORE,
    PAGES_TEAR,
    CacheCuts,
    are_untorn,
    broke_itself,
    is_broken_otherwise,
)
from bedplate.errors import PlanError
from bedplate.figures.validity import CACHES_DROPPED, OTHERS_AT_WORK, THROTTLED_MACHINE
from bedplate.installation import COMMAND
from bedplate.model.cell import BuildLevels, type_of_cell
from bedplate.model.course import and_more
from bedplate.model.device_cache import CACHE_WORDS, CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, SESSION_SETTINGS, UNKNOWN, UNSAFE
from bedplate.model.figure import Better, Metric, Scale
from bedplate.model.levels import Scalar
from bedplate.model.reason import (
    FULL_PAGE_WRITES_OFF,
    INNODB_DOUBLEWRITE_OFF,
    ONLY_FSYNCED,
    PAGES_WRITTEN_OTHERWISE,
    pages_unmended,
    sentences,
)
from bedplate.statistics.comparison import (
    CONFIDENCE,
    MARGIN,
    REPETITIONS_MAX,
    Comparison,
    EstimateKind,
    Verdict,
    proportion,
    trials_for,
)
from bedplate.statistics.effects import Effects
from bedplate.statistics.estimation import REPETITIONS_MIN
from bedplate.statistics.false_discovery import RATE
from bedplate.statistics.summary import TRUSTED, Summary
from bedplate.study.power_cut_stories import run_names
from bedplate.units import asked_percent, format_count, format_size, percent

if TYPE_CHECKING:
    from bedplate.analysis.pooled import PooledPairs


@dataclass(frozen=True)
class WorseLevel:
    """A level of a cell that is shown worse than another one, over all pairs of cells that differ in it alone."""

    factor: str
    level: Scalar
    better: Scalar

    @property
    def words(self) -> str:
        """`db block 2 KiB is worse than 8 KiB`, `ext4 is worse than xfs`."""
        level, better = (level_text(self.factor, each) for each in (self.level, self.better))
        return (
            f"{level if self.factor == TYPE else f'{short_name(self.factor)} {level}'} is worse than {better}"
        )


def beaten_cells(found: Overview, of: RunAnswer, cells: Sequence[str]) -> Mapping[str, WorseLevel]:
    """Of some cells those at a level that `effects` shows worse than a level of another of them; none where no other would be left.

    Not where the ratio depends on another factor beyond chance: then a ratio over all pairs is not that of each. What holds
    within one file system is said of its cells alone.
    """
    if len(cells) < 2 or of.metric.scale is not Scale.RATIO:
        return {}
    levels = {one.cell: one.levels for one in candidates_of([found]) if one.cell in cells}
    worse = [
        (part.within, pair)
        for each in study_effects(found, workload=of.run[1], metrics=(of.metric.name,)).found
        if each.asked.run == of.run
        for part in each.parts
        if part.durability == of.durability
        for pair in _worse_levels(part, of.metric)
    ]
    beaten = {
        cell: pair
        for cell in cells
        for within, pair in reversed(worse)
        if levels[cell].get(pair.factor) == pair.level
        and any(
            own.get(pair.factor) == pair.better and _are_in(within, own, levels[cell])
            for own in levels.values()
        )
    }
    return beaten if len(beaten) < len(cells) else {}


def _are_in(within: tuple[str, Scalar] | None, *levels_of_cells: Mapping[str, Scalar]) -> bool:
    return within is None or all(levels.get(within[0]) == within[1] for levels in levels_of_cells)


def beside_other_types(advice: Advised, of: RunAnswer, cell: str) -> tuple[PooledPairs, ...]:
    """Each other type of its class relative to that of a cell, over all pairs of cells that differ in the type alone.

    As `compare` pools them, the most pairs first; none where no two pairs do.
    """
    found, cells = advice.overview, advice.overview.study.schedule.cells
    own = cells[cell].filesystem.type
    others = sorted(
        {cells[other].filesystem.type for other in found.cells if found.of(other, of.run)} - {own}
    )
    question = ComparisonQuestion(
        f"{TYPE}={own}", f"{TYPE}={','.join(others)}", workload=of.run[1], metrics=(of.metric.name,)
    )
    try:
        lines = pooled_pairs(answer([found], question)) if others else ()
    except PlanError:
        return ()
    of_class = [
        line
        for line in lines
        if not line.beside
        and line.asked.run == of.run
        and {
            advice.classes[side.cell] for side in (line.pairs[0].pair.baseline, line.pairs[0].pair.contender)
        }
        == {of.durability}
    ]
    return tuple(sorted(of_class, key=lambda line: -len(line.pairs)))


def _worse_levels(part: Effects, metric: Metric) -> Iterator[WorseLevel]:
    depending = {
        name for each in part.interactions if each.judged.is_told_apart for name in (each.factor, each.by)
    }
    for each in part.effects:
        if each.judged.is_told_apart and each.factor not in depending:
            is_better = (each.ratio > 1) == (metric.better is Better.HIGHER)
            levels = (each.baseline, each.level) if is_better else (each.level, each.baseline)
            yield WorseLevel(each.factor, *levels)


# What is written, and where it goes.
_WRITTEN = (
    ("device_written_kib_per_transaction", "to the device"),
    ("wal_kib_per_transaction", "of log"),
)

# A cell with copies of its pages and one without may differ in these alone; they are named behind the table of their engine.
_OF_COPIES = frozenset({"full_page_writes", "innodb_doublewrite", "untorn_writes"})


@dataclass(frozen=True)
class Saved:
    """One kind of bytes for each transaction, in KiB; `where` says which."""

    where: str
    without: Summary
    with_copies: Summary

    @property
    def words(self) -> str:
        """`16.4 KiB to the device (-34 %)`."""
        share = (self.without.centre or 0.0) / (self.with_copies.centre or 1.0) - 1
        return f"{figure(self.without).mean} KiB {self.where} ({100 * share:+.0f} %)"


@dataclass(frozen=True)
class Saving:
    """A cell without copies beside the one with them, in a run that measured both."""

    cell: str
    beside: str
    run: str
    saved: tuple[Saved, ...]


def saving(found: Overview, cells: Iterable[str]) -> Saving | None:
    """Of the first of these cells, which do without copies, that has a like one with them in some run; None where none has."""
    for cell in cells:
        for beside, facts in found.cells.items():
            if _keeps_copies(facts) and _is_like(found, cell, beside):
                for run in found.runs:
                    saved = tuple(_saved(found, run, cell, beside))
                    if saved:
                        return Saving(cell, beside, run[1], saved)
    return None


def saving_words(told: Saving, copies: str, names: Mapping[str, str]) -> str:
    """Of one such pair, and in which run."""
    written = " and ".join(each.words for each in told.saved)
    return f"without {copies} {written} for each transaction: {names[told.cell]} beside {names[told.beside]}, {told.run}."


def _keeps_copies(facts: CellFacts) -> bool:
    return facts.declared is not None and pages_unmended(facts.declared.reasons) is None


def _is_like(found: Overview, one: str, other: str) -> bool:
    """Whether they differ in what makes copies needless, and in nothing else."""
    return one != other and _levels(found, one) == _levels(found, other)


def _levels(found: Overview, cell: str) -> Mapping[str, Scalar]:
    asked = found.study.schedule.cells[cell].levels
    return {name: level for name, level in asked.items() if name.rpartition(".")[2] not in _OF_COPIES}


def _saved(found: Overview, run: tuple[str, str], cell: str, beside: str) -> Iterable[Saved]:
    for metric, where in _WRITTEN:
        own, its = (found.summary(each, run, metric) for each in (cell, beside))
        if own.centre is not None and its.centre and {own.basis, its.basis} == {TRUSTED}:
            yield Saved(where, own, its)


# What a bound on the share of bad cuts is brought below, the first that is not reached.
_SHARES = (0.05, 0.025, 0.01, 0.005)


class StepKind(StrEnum):
    """What a step does."""

    RETRY = "retry"
    GO_ON = "go on"
    MEND = "mend"
    REPETITIONS = "repetitions"
    CUTS = "cuts"
    KEPT_LOG = "kept log"
    LONGER = "longer"
    ALL_THE_SAME = "all the same"


@dataclass(frozen=True)
class NextStep:
    """One step that tells more.

    `repetitions` are those in all, None where none are added. `command` is to be copied, empty where no command does it;
    `seconds` is None where the study has no visit to take it from. `count` is what the step is about: the runs that failed or
    are missing, the repetitions that are added, the cuts that there would be, of which none bad would bound the share of bad
    ones by `bound`. `apart` is the cell that repetitions would tell from the taken one. `why` is what made all runs fail alike.
    """

    kind: StepKind
    count: int
    command: str = ""
    seconds: float | None = None
    repetitions: int | None = None
    bound: float | None = None
    apart: BesideCell | None = None
    why: str = ""


def next_steps(
    found: Overview, answers: Sequence[RunAnswer], cuts: CutsAnswer | None, classes: Mapping[str, str]
) -> tuple[NextStep, ...]:
    """What would help, the most useful first; empty where every question is answered and nothing failed.

    `classes` are the durability classes of the cells. To an imported study nothing is added, but it can be read otherwise.
    """
    if found.study.facts.is_imported:
        unranked = [answer for answer in answers[:1] if not answer.durability]
        return tuple(step for answer in unranked for step in _cost_verdicts(found, answer, classes))
    steps = [
        *_missing(found),
        *(step for answer in answers[:1] for step in _cost_verdicts(found, answer, classes)),
    ]
    # Beside speeds only where these leave nothing to be measured.
    if cuts is not None and not (answers and steps):
        steps += _sharper(found, cuts)
    return tuple(steps)


def _missing(found: Overview) -> Iterable[NextStep]:
    """Runs that failed, and those that were due and have not been made; of cells of which every run failed alike what is to be mended."""
    plain = [m for m in found.measurements if not m.canary]
    failing = {m.cell for m in plain if m.trouble is Trouble.FAILED}
    why = failed_alike([m for m in plain if m.cell in failing])
    for trouble, step, option in (
        (Trouble.FAILED, StepKind.RETRY, " --retry-failed"),
        (Trouble.NOT_RUN, StepKind.GO_ON, ""),
    ):
        runs = [m for m in plain if m.trouble is trouble]
        if why and trouble is Trouble.FAILED:
            yield NextStep(StepKind.MEND, len(runs), why=why)
        elif runs and not (why and all(m.cell in failing or m.trouble is Trouble.NOT_RUN for m in plain)):
            there = found.study.schedule.repetitions
            command = f"{extend_command(found, there)}{option}"
            yield NextStep(step, len(runs), command, _seconds_of(found, runs))


def _cost_verdicts(found: Overview, answer: RunAnswer, classes: Mapping[str, str]) -> Iterable[NextStep]:
    """Repetitions that give verdicts, or else show whether the taken cell differs from the first other one that the answer names."""
    if not answer.durability:
        worst = next((each for each in (UNSAFE, UNKNOWN) if each in classes.values()), None)
        if worst is not None:
            command = f"{COMMAND} show {study_directory(found)} --advice --durability {worst}"
            yield NextStep(StepKind.ALL_THE_SAME, len(answer.not_taken), command)
        return
    if not answer.seen or answer.answered.is_without_verdict:
        cells = [cell for cell, of in classes.items() if of == answer.durability]
        # Enough that failed or are due are other steps.
        if more := more_for_verdicts(found, cells, answer.run):
            yield _repetitions(found, more)
        return
    waiting = [
        each
        for each in (*(answer.tied[:_SHOWN] or [answer.following]), answer.default)
        if each is not None
        and each.comparison.verdict is Verdict.CANNOT_TELL
        and each.comparison.basis is not None
    ]
    if not waiting:
        return
    # The first that the answer names, so that both are about one rival.
    rival, *_ = waiting
    if (more := rival.comparison.more_repetitions) is None:
        yield NextStep(StepKind.LONGER, 1, apart=rival)
    else:
        yield _repetitions(found, more, apart=rival)


def _repetitions(found: Overview, more: int, *, apart: BesideCell | None = None) -> NextStep:
    wanted = found.study.schedule.repetitions + more
    seconds = seconds_of_a_repetition(found)
    return NextStep(
        StepKind.REPETITIONS,
        more,
        extend_command(found, wanted),
        None if seconds is None else more * seconds,
        repetitions=wanted,
        apart=apart,
    )


def _sharper(found: Overview, cuts: CutsAnswer) -> Iterable[NextStep]:
    """More repetitions of every cell: as many as bring the bound of the least cut safe cell below the next share.

    Those that are scheduled are taken for made; a repetition may have several recordings.
    """
    counts = {each.cell: each.tally.cuts for each in cuts.safe if each.tally.cuts}
    if not counts:
        return
    cell = min(counts, key=lambda each: counts[each])
    of_each = counts[cell] / len({run.key.repetition for run in found.cells[cell].cuts})
    there = found.study.schedule.repetitions
    bound = proportion(0, round(of_each * there)).high
    wanted = next((share for share in _SHARES if share < bound), bound / 2)
    repetitions = max(math.ceil(trials_for(wanted) / of_each), there + 1)
    seconds = seconds_of_a_repetition(found)
    yield NextStep(
        StepKind.CUTS,
        round(of_each * repetitions),
        extend_command(found, repetitions),
        None if seconds is None else (repetitions - there) * seconds,
        repetitions=repetitions,
        bound=proportion(0, round(of_each * repetitions)).high,
    )
    yield from _kept_log(found, cell)


# As many as `power-cut replay` makes by itself.
_CUTS_OF_A_LOG = 90


def _kept_log(found: Overview, cell: str) -> Iterable[NextStep]:
    """Of the cell that was cut least often, where a log of it was kept here: more cuts without another recording."""
    kept = next((run for run in found.cells[cell].cuts if (run.directory / LOG_FILE).is_file()), None)
    if kept is None or found.study.facts.executor != "local":
        return
    names = {folder: name for name, folder in run_names(found.study.directory).items()}
    name = names.get(kept.directory, shlex.quote(str(kept.directory)))
    command = (
        f"sudo {COMMAND} power-cut replay {study_directory(found)} {name} --profile lost --profile ordered"
    )
    yield NextStep(
        StepKind.KEPT_LOG, _CUTS_OF_A_LOG, f"{command} --points {_CUTS_OF_A_LOG}", why=type_of_cell(cell)
    )


def _seconds_of(found: Overview, runs: Iterable[Measurement]) -> float | None:
    """The visits of these runs once more."""
    visits = {(m.cell, m.dataset, m.repetition) for m in runs}
    return seconds_of_visits(found, [(cell, dataset, False) for cell, dataset, _ in visits])


# What an installer makes where nobody chooses, by how the distribution calls itself: Debian's partman-ext3, Ubuntu's curtin;
# Red Hat, "Managing file systems", since RHEL 7, and what is built from its sources.
_INSTALLED = {
    "Debian": "ext4",
    "Ubuntu": "ext4",
    "Red Hat": "xfs",
    "Rocky": "xfs",
    "AlmaLinux": "xfs",
    "CentOS": "xfs",
    "Oracle Linux": "xfs",
}

# mke2fs.conf(5) for disks of 512 MiB and more, mkfs.xfs(8), mkfs.btrfs(8) where a page has 4 KiB.
_USUAL_BLOCK_BYTES = 4096

_SETTING, _ON = "cluster.settings.", "on"

_FILESYSTEM, _OPTIONS = "filesystem.", "filesystem.mount_options"


@dataclass(frozen=True)
class Defaults:
    """`cells` depart in nothing from what the system makes by itself; `departures` are factors by cell, without its type.

    `kind` is the type that the system is installed on, None where that is not known. Of what all cells share, only the file system's own levels and settings that decide durability are departures: a study
    without barriers has no cell that a system makes by itself.
    """

    cells: tuple[str, ...]
    departures: Mapping[str, tuple[str, ...]]
    kind: str | None


def defaults_of(found: Overview) -> Defaults:
    """Of the type that the machine's distribution installs on."""
    every = {one.cell: one.levels for one in candidates_of([found])}
    varied = {name for levels in every.values() for name in levels if _varies(name, every)}
    departures = {
        cell: tuple(
            name
            for name in levels
            if (name in varied or _is_telling(name)) and not _is_usual(found, name, levels)
        )
        for cell, levels in every.items()
    }
    type_ = _installed(found.study.machine.distribution)
    return Defaults(
        tuple(cell for cell, own in departures.items() if not own and every[cell][TYPE] == type_),
        departures,
        type_,
    )


def _installed(distribution: str) -> str | None:
    return next((type_ for start, type_ in _INSTALLED.items() if distribution.startswith(start)), None)


def _is_telling(name: str) -> bool:
    """Whether a level that all cells share makes them unlike what a system makes; `noatime` and its like do not."""
    of_filesystem = name.startswith(_FILESYSTEM) and name not in (TYPE, _OPTIONS)
    return of_filesystem or name.removeprefix(_SETTING) in SESSION_SETTINGS


def _varies(name: str, every: Mapping[str, Mapping[str, Scalar]]) -> bool:
    return name != TYPE and len({repr(levels[name]) for levels in every.values() if name in levels}) > 1


def _is_usual(found: Overview, name: str, levels: Mapping[str, Scalar]) -> bool:
    if name in usual_factors(levels):
        return True
    if name == FILESYSTEM_BLOCK:
        return levels[name] == _USUAL_BLOCK_BYTES
    if name == "kernel.release":
        return levels[name] == found.study.machine.kernel_release
    return name.removeprefix(_SETTING) in SESSION_SETTINGS and levels[name] == _ON


# A name may be of any length: a plan's own mount options stand in it.
NAME_CHARACTERS = 48

# A level is one word, or two: `sync=full`, `no writemap`, `default commit`.
_WORDS = re.compile(r"(?:no |default )?\S+")


def cell_names(found: Overview) -> dict[str, str]:
    """By cell its variant, without the words that all have; with the block sizes that differ, of all cells, where two would be called the same.

    `xfs`, `ext4 nobarrier`, `ext4 barrier fs 4k db 8k`: of two names, what one leaves out the other leaves out too.
    """
    # What is not named is as it is by itself.
    words = {
        cell: [word for word in _WORDS.findall(facts.label.panel) if not word.startswith(f"{DEFAULT} ")]
        for cell, facts in found.cells.items()
    }
    blocks = {cell: block_words(facts.label).split(" · ") for cell, facts in found.cells.items()}
    names = _without_shared(words)
    if len(set(names.values())) < len({facts.label.panel for facts in found.cells.values()}):
        names = {cell: " ".join(own) for cell, own in words.items()}
    if len(set(names.values())) < len(names):
        behind = _without_shared({cell: ["", *own] for cell, own in blocks.items()})
        if len({(names[cell], behind[cell]) for cell in names}) < len(names):
            behind = {cell: f" {' '.join(own)}" for cell, own in blocks.items()}
        names = {cell: f"{name}{behind[cell]}" for cell, name in names.items()}
    return names


def _without_shared(words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The first word of each, and behind it those that not all have."""
    shared = set.intersection(*map(set, words.values())) if len(words) > 1 else set()
    return {
        cell: " ".join([first, *(word for word in rest if word not in shared)])
        for cell, (first, *rest) in words.items()
    }


def short_names(found: Overview) -> dict[str, str]:
    """The same for a line, of which a name of any length leaves something."""
    return {cell: shortened(" ".join(name.split())) for cell, name in cell_names(found).items()}


def shortened(name: str, characters: int = NAME_CHARACTERS) -> str:
    """Its beginning and its end, which is where names differ."""
    if len(name) <= characters:
        return name
    end = characters // 3
    return f"{name[: characters - end - 1]}…{name[-end:]}"


# What each engine calls its copies.
_COPIES = {FULL_PAGE_WRITES_OFF: "page images", INNODB_DOUBLEWRITE_OFF: "double writing"}

_SHOWN_COPIES = 4


@dataclass(frozen=True)
class WithoutCopies:
    """The recordings of a study that were made without one kind of copies (`page images`), as their cuts came out.

    `whole` are those that may do without, by why their pages are whole; `torn` are unsafe, and so are those that something else than a
    torn page broke (`broken`), or whose file system broke itself (`fallen`); of the others `unknown` says what is missing. Of `no_room` the verdict is refused, as XFS had no room for pages that were to be written whole (ENOSPC), and of `refused` as pages
    were written otherwise for another reason, which it says. `saving` is what one of the first saves.
    """

    copies: str
    whole: Mapping[str, tuple[CutRun, ...]]
    torn: tuple[CutRun, ...]
    unknown: Mapping[str, tuple[CutRun, ...]]
    no_room: tuple[CutRun, ...] = ()
    saving: Saving | None = None
    broken: tuple[CutRun, ...] = ()
    fallen: tuple[CutRun, ...] = ()
    refused: Mapping[str, tuple[CutRun, ...]] = field(default_factory=dict)


def without_copies(found: Overview) -> tuple[WithoutCopies, ...]:
    """One for each kind of copies; none where no recording looked at its pages, or none was cut as sectors of 4 KiB leave it."""
    by_code: dict[str, list[CutRun]] = {}
    for facts in found.cells.values():
        for run in facts.cuts:
            verdict = run.verdict
            is_otherwise = _pages_without_room(run) > 0 or _why_otherwise(run) is not None
            # A visit whose pages were written otherwise may have failed, and promises nothing any more.
            code = run.left_out if is_otherwise else run.unmended
            looked = verdict.pages is not None and not verdict.refused and _volatile(run).cuts > 0
            if code is not None and (looked or is_otherwise):
                by_code.setdefault(code, []).append(run)
    told = (_sorted_out(_COPIES[code], runs) for code, runs in by_code.items())
    return tuple(
        replace(each, saving=saving(found, (run.key.cell for runs in each.whole.values() for run in runs)))
        for each in told
    )


def _sorted_out(copies: str, runs: Sequence[CutRun]) -> WithoutCopies:
    whole: dict[str, tuple[CutRun, ...]] = {}
    unknown: dict[str, tuple[CutRun, ...]] = {}
    refused: dict[str, tuple[CutRun, ...]] = {}
    torn, broken, fallen = [], [], []
    no_room = tuple(run for run in runs if _pages_without_room(run))
    for run in runs:
        ground = run.ground(VOLATILE_4K)
        if run in no_room:
            continue
        if (why := _why_otherwise(run)) is not None:
            refused[why] = (*refused.get(why, ()), run)
        elif ground is not None and ground.words == PAGES_TEAR:
            torn.append(run)
        elif broke_itself(run.verdict.by_device):
            fallen.append(run)
        elif _volatile(run).broken:
            # Where cuts that tear nothing are too few, nobody knows what broke it: that is said of the cell alone.
            if is_broken_otherwise(run.verdict.by_device, run.verdict.pages):
                broken.append(run)
        elif ground is None and (again := run.verdict.cuts(VOLATILE_4K).recut).bad:
            if are_untorn(run.verdict.pages, run.verdict.recovered_pages):
                broken.append(run)
            else:
                words = f"{again.bad} of {again.cuts} cuts in recovery bad"
                unknown[words] = (*unknown.get(words, ()), run)
        elif ground is None and (in_order := run.verdict.cuts(PROTECTED).drawn).broken:
            words = f"{in_order.broken} of {in_order.cuts} cuts in order bad, which no whole page mends"
            unknown[words] = (*unknown.get(words, ()), run)
        elif ground is None:
            tearing = run.verdict.cuts(VOLATILE_4K).tearing
            words = f"{tearing} of {CUTS_FOR_MORE} cuts that could tear a page"
            unknown[words] = (*unknown.get(words, ()), run)
        elif ground.stands in (UNKNOWN, UNSAFE):
            unknown[ground.words] = (*unknown.get(ground.words, ()), run)
        else:
            whole[ground.words] = (*whole.get(ground.words, ()), run)
    return WithoutCopies(
        copies,
        whole,
        tuple(torn),
        unknown,
        no_room,
        broken=tuple(broken),
        fallen=tuple(fallen),
        refused=refused,
    )


def copies_words(told: WithoutCopies, names: Mapping[str, str]) -> Iterable[tuple[str, str, str, int]]:
    """Head, text, how the text begins and rank of each line: where the copies may go, where pages tear without, and what is open."""
    lead, without = f"{told.copies} may go", f"without {told.copies}"
    for ground, runs in told.whole.items():
        yield "Safe", f"{lead} where pages are {ground}: {_listed(runs, names)}.", lead, 0
    if not told.whole:
        yield "Open", f"{lead} nowhere here: no recording shows that pages are whole {without}.", lead, 0
    if told.saving is not None:
        yield "Saves", saving_words(told.saving, told.copies, names), without, 1
    if told.torn:
        yield "Unsafe", f"{without} pages tear: {_listed(told.torn, names, with_unit=True)}.", without, 1
    if told.broken:
        named = _listed(told.broken, names, with_unit=True)
        yield "Unsafe", f"{without} cuts are bad that no torn page explains: {named}.", without, 1
    if told.fallen:
        named = _listed(told.fallen, names, with_unit=True)
        yield "Unsafe", f"the file system itself broke, which {told.copies} do not mend: {named}.", "", 1
    for run in told.no_room:
        refused, asked = _pages_without_room(run), _pages_asked(run)
        words = (
            f"{without} XFS had no free space in one piece for {refused:,} of {asked:,} pages that were to be whole (ENOSPC): "
            f"{names[run.key.cell]}{_way_out(run)}."
        )
        yield "Open", words, without, 1
    for why, runs in told.refused.items():
        # Their cuts are counted nowhere: they are of pages that were written in two ways.
        named = ", ".join(names[run.key.cell] for run in runs[:_SHOWN_COPIES])
        yield (
            "Open",
            f"{without} no verdict on {named}{and_more(len(runs), _SHOWN_COPIES)}: {why}.",
            without,
            2,
        )
    for why, runs in told.unknown.items():
        yield "Open", f"{without} {why}: {_listed(runs, names)}.", without, 2


def _listed(runs: Sequence[CutRun], names: Mapping[str, str], *, with_unit: bool = False) -> str:
    """`xfs untorn_writes=on (bad: 0 of 150, < 2.5 %)`: bad cuts, and the bound of their share; bad ones that have none, as in recovery."""
    named = []
    for run in runs[:_SHOWN_COPIES]:
        unit = run.spec.levels.integer(DEVICE_UNIT) if with_unit else None
        where = f" on a device that writes {format_size(unit)} whole" if unit else ""
        named.append(f"{names[run.key.cell]}{where} (bad: {cut_cell_words(run.verdict.cuts(VOLATILE_4K))})")
    return f"{', '.join(named)}{and_more(len(runs), _SHOWN_COPIES)}"


def _pages_without_room(run: CutRun) -> int:
    """Pages that were to be written whole, and were written plainly as XFS found no room for them."""
    return _counts(run).refused.get(ENOSPC, 0)


def _why_otherwise(run: CutRun) -> str | None:
    """Why pages that were to be written whole were not, by the reason that refuses the verdict."""
    found = (reason for reason in run.verdict.refused if reason.code == PAGES_WRITTEN_OTHERWISE)
    return next(map(str, found), None)


def _pages_asked(run: CutRun) -> int:
    counts = _counts(run)
    return counts.atomic + counts.refusals


def _counts(run: CutRun) -> PageCounts:
    """Of the recorded server, and of it in the recoveries that were cut again."""
    pages = run.verdict.pages
    every = (pages.counts if pages else None, *(each.counts for each in run.verdict.recovered_pages))
    return PageCounts.together(filter(None, every))


def _way_out(run: CutRun) -> str:
    pages = run.verdict.pages
    size = format_size(pages.page_bytes).replace(" KiB", "k") if pages is not None else ""
    return f'; cowextsize = "{size}" is the way out'


def _volatile(run: CutRun) -> CutCounts:
    """The drawn cuts with a volatile cache; sectors of 512 bytes tear metadata too, and say nothing of pages alone."""
    return run.verdict.cuts(VOLATILE_4K).drawn


# Of each kind of cache behind a number of cuts.
_IN_SHORT = {
    PROTECTED: "with a protected cache",
    VOLATILE_4K: "with 4 KiB sectors",
    VOLATILE_512: "with 512-byte sectors",
}

# Of what is sound with a kind of cache: the disks with which it is not.
_ON_ANOTHER_DISK = {
    PROTECTED: "bad on a disk whose cache a power cut empties",
    VOLATILE_4K: "bad on a disk with 512-byte sectors",
    VOLATILE_512: "bad on another disk",
}

# Of what no cut was bad of, by what its settings promise.
_BY_SETTINGS = {
    UNSAFE: "by their settings",
    BOUNDED_LOSS: "by their settings the last commits may be lost",
    UNKNOWN: "nothing tells what their settings promise",
}

# A factor and its level in some cells; None in cells that do not have the factor.
Separating: TypeAlias = "tuple[str, Scalar | None]"

Levels: TypeAlias = "Mapping[str, Mapping[str, Scalar]]"

_NAMED = 3


@dataclass(frozen=True)
class CutCell:
    """A cell whose power was cut, with the kind of cache that is meant.

    `cuts` are those that chance placed, of which alone a share is a share, and those that were placed where something can happen.
    `durability` is its class with that cache: where no cut was bad, what its settings promise. `within` is what it is called
    among the cells of its group: its name without what the group has in common.
    """

    cell: str
    cuts: CacheCuts
    durability: str
    within: str = ""
    why: tuple[str, ...] = ()
    """what the recording itself says of bad cuts, a sentence each"""
    elsewhere: Mapping[str, CacheCuts] = field(default_factory=dict)
    """by every other kind of cache: the cuts with it, where some were bad"""

    @property
    def tally(self) -> CutCounts:
        """The cuts that chance placed."""
        return self.cuts.drawn

    @property
    def corrupt(self) -> int:
        """Cuts of either placement after which what was left was not whole."""
        return self.cuts.all_cuts.broken

    @property
    def lost(self) -> int:
        """Cuts of either placement that lost acknowledged commits and left the rest whole."""
        return self.cuts.all_cuts.of(LOSS)

    @property
    def bounded(self) -> int:
        """Those that lost no more than the engine's settings allow."""
        return self.cuts.all_cuts.of(BOUNDED)

    @property
    def is_sound(self) -> bool:
        """Whether no cut found anything."""
        return not self.cuts.all_cuts.bad


@dataclass(frozen=True)
class CutGroup:
    """Cells that share a level by which they are separated from sound ones.

    `name` has it in words (`full_page_writes=off`), empty where it is the type, which each name has, and for cells that nothing
    separates from a sound one.
    `bad` lost something, the worst first; `good` share the level and lost nothing. `otherwise` are the sound cells that differ
    from a bad one in this level alone, and `otherwise_name` their level, or their names where that level does not tell.
    """

    name: str
    bad: tuple[CutCell, ...]
    good: tuple[CutCell, ...] = ()
    otherwise: tuple[CutCell, ...] = ()
    otherwise_name: str = ""


@dataclass(frozen=True)
class CutsAnswer:
    """The power cuts of a study with one kind of cache (`cache`, of `model.device_cache`).

    `sound` are the cells of which no cut found anything bad, `groups` the others, those with corruption first. `refused` had
    cuts and no verdict, each with why, those of `of_others` tell of another device or journal, and those of `not_asked` were of other caches
    and found nothing. `copies` says where the engine may do without copies of its pages.
    """

    cache: str
    sound: tuple[CutCell, ...]
    groups: tuple[CutGroup, ...]
    refused: Mapping[str, str]
    of_others: tuple[str, ...]
    not_asked: tuple[str, ...]
    uncounted: tuple[str, ...]
    copies: tuple[WithoutCopies, ...]
    without_cut: Mapping[str, str] = field(default_factory=dict)
    """by cell what was missing or damaged though nothing was cut, in words"""

    @property
    def safe(self) -> tuple[CutCell, ...]:
        """The sound cells that are durable."""
        return tuple(each for each in self.sound if each.durability == DURABLE)

    @property
    def promising_less(self) -> tuple[CutCell, ...]:
        """The sound cells whose settings promise less than the cuts found: no number of cuts makes them safe."""
        return tuple(each for each in self.sound if each.durability != DURABLE)


def cuts_answer(found: Overview, cache: str) -> CutsAnswer | None:
    """None where no power was cut."""
    cells = found.cells.values()
    if not any(facts.cuts for facts in cells):
        return None
    judged = [each for facts in cells if (each := _judged_cuts(facts, cache)) is not None]
    without_cut = {
        facts.id: str(run.verdict.without_cut)
        for facts in cells
        for run in facts.cuts
        if run.verdict.without_cut is not None
    }
    known = {each.cell for each in judged} | without_cut.keys()
    sound = tuple(each for each in judged if each.is_sound)
    unknown = [facts for facts in cells if facts.cuts and facts.id not in known]
    refused = {
        facts.id: str(reasons[0])
        for facts in unknown
        if (reasons := [reason for run in facts.cuts for reason in run.verdict.refused])
    }
    left = [facts for facts in unknown if facts.id not in refused]
    not_asked = [facts.id for facts in left if any(run.shown_class for run in facts.cuts)]
    return CutsAnswer(
        cache=cache,
        sound=sound,
        groups=_Separation(found, sound).groups([each for each in judged if not each.is_sound]),
        refused=refused,
        of_others=tuple(facts.id for facts in left if facts.id not in not_asked),
        not_asked=tuple(not_asked),
        uncounted=tuple(
            facts.id
            for facts in cells
            if any(run.verdict.recoveries and run.verdict.recoveries.refused for run in facts.cuts)
        ),
        copies=without_copies(found),
        without_cut=without_cut,
    )


def _judged_cuts(facts: CellFacts, cache: str) -> CutCell | None:
    """Of the recordings that give a class; None where none does, or none was cut with this cache and nothing else was bad."""
    runs = [run for run in facts.cuts if run.shown_class is not None]
    spoken, cuts = speaking(runs, cache)
    if not cuts.all_cuts.cuts:
        return None
    others = {each: pooled_cuts(runs, each) for each in CACHES if each != spoken}
    return CutCell(
        facts.id,
        cuts,
        durability_class(facts.durability, cache),
        why=tuple(str(run.verdict.never_synced) for run in runs if run.verdict.never_synced is not None),
        elsewhere={each: counts for each, counts in others.items() if counts.all_cuts.bad},
    )


@dataclass(frozen=True)
class _Separation:
    """Finds what separates cells from the sound ones of their study."""

    found: Overview
    sound: tuple[CutCell, ...]

    @cached_property
    def levels(self) -> Levels:
        return {one.cell: one.levels for one in candidates_of([self.found])}

    @cached_property
    def names(self) -> Mapping[str, str]:
        return cell_names(self.found)

    @cached_property
    def unusual(self) -> Mapping[str, tuple[str, ...]]:
        return defaults_of(self.found).departures

    def groups(self, bad: Sequence[CutCell]) -> tuple[CutGroup, ...]:
        """Every bad cell in one group; those with corruption first."""
        separators = self._separators(bad)
        left, groups = list(bad), []
        while left:
            covered = {
                each: [one for one in left if self._level(one, each[0]) == each[1]] for each in separators
            }
            best = max(covered, key=lambda each: self._weight(each, len(covered[each])), default=None)
            if best is not None and not covered[best]:
                del separators[best]
                continue
            own = left if best is None else covered[best]
            groups.append(CutGroup("", _worst_first(own)) if best is None else self._group(best, own, bad))
            left = [one for one in left if one not in own]
        return tuple(sorted(groups, key=lambda group: not any(each.corrupt for each in group.bad)))

    def _separators(self, bad: Sequence[CutCell]) -> dict[Separating, None]:
        separators: dict[Separating, None] = {}
        for one in bad:
            for other in self.sound:
                differing = self._differing(one, other)
                names = [name for name in differing if name != TYPE] or differing
                if len(names) == 1 and (names[0] == TYPE or names[0] in self.unusual[one.cell]):
                    separators[names[0], self._level(one, names[0])] = None
        return separators

    def _weight(self, separating: Separating, bad: int) -> tuple[bool, int, int]:
        good = sum(self._level(each, separating[0]) == separating[1] for each in self.sound)
        return separating[0] != TYPE, bad - good, bad

    def _differing(self, one: CutCell, other: CutCell) -> list[str]:
        """Factors that two cells have at two levels; between two types what one alone has goes with the type."""
        first, second = self.levels[one.cell], self.levels[other.cell]
        of_one_type = first.get(TYPE) == second.get(TYPE)
        names = first.keys() | second.keys() if of_one_type else first.keys() & second.keys()
        return [name for name in sorted(names) if first.get(name) != second.get(name)]

    def _level(self, one: CutCell, name: str) -> Scalar | None:
        return self.levels[one.cell].get(name)

    def _group(self, separating: Separating, bad: Sequence[CutCell], all_bad: Sequence[CutCell]) -> CutGroup:
        name, level = separating
        otherwise = [each for each in self.sound if any(self._differing(one, each) == [name] for one in bad)]
        others = {repr(self._level(each, name)): self._level(each, name) for each in otherwise}
        only = next(iter(others.values())) if len(others) == 1 else None
        return CutGroup(
            name="" if name == TYPE else _separating_words(name, level),
            bad=_worst_first(self._within(each, separating) for each in bad),
            good=tuple(
                self._within(each, separating) for each in self.sound if self._level(each, name) == level
            ),
            otherwise=tuple(otherwise),
            otherwise_name=self._otherwise(name, only, otherwise, all_bad),
        )

    def _otherwise(
        self, name: str, only: Scalar | None, sound: Sequence[CutCell], all_bad: Sequence[CutCell]
    ) -> str:
        """The level of the sound cells; their names where a cell with that level is bad elsewhere, as the level says too much then."""
        is_telling = isinstance(only, str) and name != TYPE and only != DEFAULT
        if not is_telling or any(self._level(each, name) == only for each in all_bad):
            return ", ".join(self.names[each.cell] for each in sound[:_NAMED]) + and_more(len(sound), _NAMED)
        return str(only)

    def _within(self, one: CutCell, separating: Separating) -> CutCell:
        """The cell with the name that it has where what separates stands before it."""
        name, level = separating
        if name == TYPE:
            return replace(one, within=self.names[one.cell])
        own = _separating_words(name, level)
        return replace(one, within=" ".join(word for word in self.names[one.cell].split() if word != own))


def _separating_words(name: str, level: Scalar | None) -> str:
    """As the label of a cell has it: `full_page_writes=off`, `nobarrier`, `nodatacow`; of a type its name."""
    words = DEFAULT if level is None else level_text(name, level)
    if name == TYPE:
        return words
    short = short_name(name)
    if isinstance(level, bool):
        return short if level else f"no{short}"
    return f"{short}={words}"


def _worst_first(cells: Iterable[CutCell]) -> tuple[CutCell, ...]:
    return tuple(sorted(cells, key=lambda each: (-each.corrupt, -each.lost, -each.bounded)))


class Answered(StrEnum):
    """How far a question is answered."""

    # One cell is ahead of all others that nothing rules out, in the run's first figure.
    LEADS = "leads"
    # One is at no worse level than any that it is not distinguished from cell by cell.
    BY_LEVELS = "by levels"
    # Several may be the best: nothing tells them apart, or they are shown to be the same.
    TIED = "tied"
    # One cell alone is of the class.
    ALONE = "alone"
    # Too few repetitions for any verdict.
    NO_VERDICT = "no verdict"
    # No cell of a class that may be taken has a trusted figure.
    NOTHING = "nothing"

    @property
    def is_without_verdict(self) -> bool:
        """Whether it is the number of repetitions that keeps it from a verdict."""
        return self is Answered.NO_VERDICT


class NotTakenFor(StrEnum):
    """Why a cell is not to be taken, the gravest first."""

    UNSAFE = "unsafe"
    UNKNOWN = "unknown"
    BOUNDED_LOSS = "bounded loss"
    FAILED = "failed"
    SUSPECT = "suspect"
    NOT_RUN = "not run"
    # Nothing is against it but that it has too few trusted runs for a verdict, and so is in none.
    TOO_FEW = "too few"


# A cell nearer to the default takes the place of the best one where its mean is no more than so many times worse: a
# convention of bedplate. Beyond it the better mean is the better guess, whatever the intervals leave open.
_AS_GOOD_MAX = 1.25

_OF_TROUBLE = {
    Trouble.FAILED: NotTakenFor.FAILED,
    Trouble.SUSPECT: NotTakenFor.SUSPECT,
    Trouble.UNKNOWN: NotTakenFor.SUSPECT,
    Trouble.NOT_RUN: NotTakenFor.NOT_RUN,
}

_OF_CLASS = {
    UNSAFE: NotTakenFor.UNSAFE,
    UNKNOWN: NotTakenFor.UNKNOWN,
    BOUNDED_LOSS: NotTakenFor.BOUNDED_LOSS,
}


@dataclass(frozen=True)
class SeenCell:
    """A cell with the repetitions of the question's figure; `summary.centre` is the mean that every reader shows."""

    cell: str
    summary: Summary


@dataclass(frozen=True)
class BesideCell:
    """Another cell relative to the taken one: `comparison.estimate` is other / taken, or other - taken, as its `kind` says.

    Without an interval the two may not be compared, and `comparison.reasons` say why. `ahead_in` are the other figures in which
    the taken one is shown better, `behind_in` those in which it is shown worse, each with the comparison.
    """

    other: SeenCell
    comparison: Comparison
    ahead_in: tuple[str, ...] = ()
    behind_in: tuple[tuple[str, Comparison], ...] = ()


@dataclass(frozen=True)
class NotTaken:
    """Cells that are not to be taken, all for one reason.

    `reason` is the sentence of the records that most of them have, empty without any, and `having` are these. `seen` are the figures of
    those that have one, the best first: of other durability than what is taken, so never part of its ratio or its rank.
    """

    why: NotTakenFor
    cells: tuple[str, ...]
    reason: str
    having: tuple[str, ...]
    seen: tuple[SeenCell, ...] = ()

    def looks_better(self, answer: RunAnswer, seen: SeenCell | None = None) -> bool:
        """Whether a cell, the first of them unless one is named, may be as safe and has the better mean than what is taken, or than the best that was seen."""
        best, own = answer.taken or next(iter(answer.seen), None), seen or next(iter(self.seen), None)
        if best is None or own is None or own.cell == best.cell or self.why in _OF_CLASS.values():
            return False
        mean, other = own.summary.centre or 0.0, best.summary.centre or 0.0
        return mean > other if answer.metric.better is Better.HIGHER else mean < other


@dataclass(frozen=True)
class RunAnswer:
    """What one run answers: which cell to take, among those of one durability class.

    `objective` is the run's first figure. `durability` is the class of all cells here, empty where no cell is of one that may
    be taken. `taken` is None without a verdict. `better` is the one with the best mean, where that is not taken. `tied` are the others that may be taken as well, the best first, each beside it.
    `beaten` are cells that are not distinguished from it one by one, each with a level
    that is shown worse over all its pairs. `packaged` is the best cell with the pages that packages of the engine have, where the taken one has
    others. `following` is the next of the rest by the mean. `default` is the set-up that this system makes by itself, None where the
    study has none or it is taken; `is_default` says whether it is. `default_kind` is the type that this system is installed on,
    None where that is not known, and `default_cells` are those of the study that are like it, judged or not. `same_as` are cells that are the same in
    force as the taken one. `seen` are all cells of the class that have a trusted
    figure, the best first; `cells` counts those that are judged. `confidence` is that of the comparisons. `types` are each other type relative to that of the taken cell,
    over all matched pairs of the class, as `compare` pools them, the most pairs first; of the first answer alone.
    """

    run: Run
    objective: Objective
    durability: str
    answered: Answered
    cells: int
    seen: tuple[SeenCell, ...] = ()
    taken: SeenCell | None = None
    better: BesideCell | None = None
    tied: tuple[BesideCell, ...] = ()
    beaten: Mapping[str, WorseLevel] = field(default_factory=dict)
    following: BesideCell | None = None
    default: BesideCell | None = None
    packaged: BesideCell | None = None
    is_default: bool = False
    default_kind: str | None = None
    default_cells: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()
    confidence: float | None = None
    set_up: SetUp | None = None
    types: tuple[PooledPairs, ...] = ()
    not_taken: tuple[NotTaken, ...] = ()

    @property
    def metric(self) -> Metric:
        """The figure that the answer is about."""
        return self.objective.metric


@dataclass(frozen=True)
class Headline:
    """The answer of one study.

    `answers` has one for each run that has a speed, those that write first: the first is the answer of the study. `cuts` is
    that of its power cuts; it stands first where no run has a speed (`cuts_first`). `following` are the steps that would
    tell more, the most useful first, with the command and what it takes. `doubts` are sentences that stand beside every figure
    (emulation first, an image file) and what the study says against itself. `advice` is what it was made from; it counts how many
    comparisons can tell.
    """

    advice: Advised
    answers: tuple[RunAnswer, ...]
    cuts: CutsAnswer | None
    following: tuple[NextStep, ...]
    doubts: tuple[str, ...]

    @property
    def found(self) -> Overview:
        """The study."""
        return self.advice.overview

    @property
    def contests(self) -> tuple[Contest, ...]:
        """The classes of each run, in the order of the answers."""
        order = [answer.run for answer in self.answers]
        return tuple(sorted(self.advice.contests, key=lambda contest: order.index(contest.run)))

    def answer_of(self, contest: Contest) -> RunAnswer | None:
        """The answer that is of this class of this run; None where it is of another class."""
        same = (
            each for each in self.answers if (each.run, each.durability) == (contest.run, contest.durability)
        )
        return next(same, None)

    @property
    def cuts_first(self) -> bool:
        """Whether the study is one of power cuts."""
        return self.cuts is not None and not self.answers


def headline(found: Overview, advice: Advised | None = None) -> Headline:
    """The answer of a study; `advice` is its advice with a volatile cache, where a caller has it already."""
    told = advised(found, cache=VOLATILE) if advice is None else advice
    defaults = defaults_of(found)
    asked = [
        (run, objectives[0])
        for run in told.runs
        if has_speed(found, run) and (objectives := objectives_of(found, run))
    ]
    answers = tuple(
        _answer(told, defaults, run, objective)
        for run, objective in sorted(
            asked, key=lambda each: answers_first(found, each[0], each[1].metric.name)
        )
    )
    answers = (*(_with_types(told, each) for each in answers[:1]), *answers[1:])
    cuts = cuts_answer(found, told.cache)
    return Headline(
        advice=told,
        answers=answers,
        cuts=cuts,
        following=next_steps(found, answers, cuts, told.classes),
        doubts=(*found.marks, *found.health.sentences(), *([told.sectors] if told.sectors else [])),
    )


def _with_types(advice: Advised, own: RunAnswer) -> RunAnswer:
    if own.taken is None:
        return own
    return replace(own, types=beside_other_types(advice, own, own.taken.cell))


def _answer(advice: Advised, defaults: Defaults, run: Run, objective: Objective) -> RunAnswer:
    """Of the strictest class in which a cell has a trusted figure."""
    contests = [contest for contest in advice.contests if contest.run == run]
    having = [contest for contest in contests if _seen(advice, contest, objective)]
    contest = next(iter(having or contests), None)
    if contest is None:
        nothing = RunAnswer(run, objective, "", Answered.NOTHING, 0)
        return replace(nothing, not_taken=_not_taken(advice, nothing))
    due = [cell for cell in (*contest.cells, *contest.left_out) if advice.overview.of(cell, run)]
    plain = RunAnswer(
        run,
        objective,
        contest.durability,
        Answered.NOTHING,
        cells=len(contest.cells),
        seen=_seen(advice, contest, objective),
    )
    plain = replace(plain, not_taken=_not_taken(advice, plain))
    if contest.can_judge or not plain.seen:
        plain = replace(plain, not_taken=(*plain.not_taken, *_not_judged(advice, contest, plain)))
    if not plain.seen:
        return plain
    if contest.can_judge:
        return _judged(advice, defaults, contest, plain)
    if len(due) > 1 or plain.seen[0].summary.n < REPETITIONS_MIN:
        return replace(plain, answered=Answered.NO_VERDICT)
    alone = plain.seen[0]
    same_as = contest.same_as.get(alone.cell, ())
    return _taking(advice, defaults, replace(plain, answered=Answered.ALONE), alone, same_as=same_as)


def _seen(advice: Advised, contest: Contest, objective: Objective) -> tuple[SeenCell, ...]:
    """The cells of a class that have a trusted value, the best mean first."""
    return _ranked(advice, contest.run, objective, (*contest.cells, *contest.left_out), basis=TRUSTED)


def _ranked(
    advice: Advised, run: Run, objective: Objective, cells: Iterable[str], *, basis: str | None = None
) -> tuple[SeenCell, ...]:
    sign = -1 if objective.metric.better is Better.HIGHER else 1
    every = [SeenCell(cell, advice.summary_of(run, objective, cell)) for cell in cells]
    known = [
        (sign * each.summary.centre, each)
        for each in every
        # Where some runs were stopped at a limit, the mean of the others is that of the quick ones.
        if each.summary.centre is not None
        and not each.summary.censored
        and basis in (None, each.summary.basis)
    ]
    return tuple(each for _, each in sorted(known, key=lambda pair: pair[0]))


def _judged(advice: Advised, defaults: Defaults, contest: Contest, plain: RunAnswer) -> RunAnswer:
    """Among the cells that nothing rules out the one with the best mean, or one that may be as good and is nearer to the default.

    It is near by its mean as well: an interval so wide that it leaves everything open makes no cell as good as the best.
    What pairs of cells do not tell, all pairs of two levels together may: at a level that is shown worse none is taken.
    """
    ranked = [each for each in plain.seen if each.cell in contest.cells]
    ruled_out = standing_cells(contest, Standing.RULED_OUT)
    leading = standing_cells(contest, Standing.LEADING)
    # A cell that keeps within its limits goes before one that is not known to.
    unbeaten = (
        [each for each in ranked if each.cell in leading]
        or [each for each in ranked if each.cell not in ruled_out]
        or ranked[:1]
    )
    beaten = beaten_cells(advice.overview, plain, [each.cell for each in unbeaten])
    beaten = {
        **_of_worse_types(advice, plain, [each.cell for each in unbeaten if each.cell not in beaten]),
        **beaten,
    }
    among = [each for each in unbeaten if each.cell not in beaten]
    taken = min(
        (each for each in among if _is_near(plain.metric, each, among[0])),
        key=lambda each: (
            each.cell not in defaults.cells,
            not _has_packaged_pages(advice, each),
            len(defaults.departures[each.cell]),
            ranked.index(each),
        ),
    )
    # What looks better than the answer is in its lines, also where one of its levels is shown worse over all pairs.
    better = next((each for each in unbeaten[:1] if ranked.index(each) < ranked.index(taken)), None)
    rest = [each for each in ranked if each not in among]
    answered = replace(
        plain,
        answered=Answered.TIED
        if len(among) > 1
        else Answered.LEADS
        if len(unbeaten) == 1
        else Answered.BY_LEVELS,
        tied=tuple(_beside(advice, contest, taken, each) for each in among if each is not taken),
        better=None if better is None else _beside(advice, contest, taken, better),
        beaten=beaten,
        following=_beside(advice, contest, taken, rest[0]) if rest else None,
        default=next(
            (
                _beside(advice, contest, taken, each)
                for each in ranked
                if each is not taken and {each.cell, *contest.same_as[each.cell]} & set(defaults.cells)
            ),
            None,
        ),
        packaged=next(
            (
                _beside(advice, contest, taken, each)
                for each in ranked
                if not _has_packaged_pages(advice, taken) and _has_packaged_pages(advice, each)
            ),
            None,
        ),
        confidence=contest.confidences[0].difference,
    )
    return _taking(advice, defaults, answered, taken, same_as=contest.same_as[taken.cell])


def _of_worse_types(advice: Advised, of: RunAnswer, cells: Sequence[str]) -> Mapping[str, WorseLevel]:
    """Of some cells those of a type that `compare` shows worse, over all matched pairs, than the type of another; none where no other is left.

    Where pairs disagree about how much, they have to agree that it is worse.
    """
    kinds = {cell: advice.overview.study.schedule.cells[cell].filesystem.type for cell in cells}
    worse: dict[str, WorseLevel] = {}
    if len(set(kinds.values())) > 1:
        for better, cell in {kind: cell for cell, kind in kinds.items()}.items():
            for line in beside_other_types(advice, of, cell):
                ((_, other),) = line.contender
                if other in kinds.values() and _is_worse(line, of.metric):
                    worse[str(other)] = WorseLevel(TYPE, other, better)
    beaten = {cell: worse[kind] for cell, kind in kinds.items() if kind in worse}
    return beaten if len(beaten) < len(cells) else {}


def _is_worse(line: PooledPairs, metric: Metric) -> bool:
    comparison = line.comparison
    if comparison.verdict in (Verdict.SAME, Verdict.CANNOT_TELL) or comparison.kind is not EstimateKind.RATIO:
        return False
    estimates = [comparison.estimate]
    if line.disagree:
        estimates += [pair.comparison.estimate for pair in line.pairs]
    known = [each for each in estimates if each is not None]
    return all((each < 1) is (metric.better is Better.HIGHER) for each in known)


def _has_packaged_pages(advice: Advised, seen: SeenCell) -> bool:
    """Whether its pages are those of its engine as distributions pack it, so that nothing has to be built; of an engine without a choice too."""
    cell = advice.overview.study.schedule.cells[seen.cell]
    usual = replace(cell, build=BuildLevels(engine=cell.build.engine)).database_block_bytes
    return not cell.build.is_built or cell.database_block_bytes == usual


def _is_near(metric: Metric, own: SeenCell, best: SeenCell) -> bool:
    if metric.scale is not Scale.RATIO or own is best:
        return True
    ratio = (own.summary.centre or 0.0) / (best.summary.centre or math.inf)
    return ratio <= _AS_GOOD_MAX if metric.better is Better.LOWER else ratio >= 1 / _AS_GOOD_MAX


def _taking(
    advice: Advised, defaults: Defaults, answered: RunAnswer, taken: SeenCell, *, same_as: Sequence[str] = ()
) -> RunAnswer:
    """With the cell that is to be taken, and how it was made."""
    is_default = bool({taken.cell, *same_as} & set(defaults.cells))
    return replace(
        answered,
        taken=taken,
        is_default=is_default,
        same_as=tuple(same_as),
        default=None if is_default else answered.default,
        default_kind=defaults.kind,
        default_cells=tuple(cell for cell in defaults.cells if advice.overview.of(cell, answered.run)),
        set_up=set_up(advice.overview, taken.cell),
    )


def _beside(advice: Advised, contest: Contest, taken: SeenCell, other: SeenCell) -> BesideCell:
    """Where the contest did not judge the pair, without an interval."""
    comparison = advice.comparison(contest, contest.objectives[0], taken.cell, other.cell)
    row, column = contest.cells.index(taken.cell), contest.cells.index(other.cell)
    others = list(enumerate(contest.objectives))[1:]
    return BesideCell(
        other,
        comparison,
        ahead_in=tuple(each.head for at, each in others if contest.better[at, row, column]),
        behind_in=tuple(
            (each.head, advice.comparison(contest, each, taken.cell, other.cell))
            for at, each in others
            if contest.better[at, column, row]
        ),
    )


def _not_taken(advice: Advised, answered: RunAnswer) -> tuple[NotTaken, ...]:
    """Cells of lesser classes, and those of which every run failed, is doubted or is missing; each cell once."""
    found, run = advice.overview, answered.run
    due = [cell for cell in found.cells if found.of(cell, run)]
    why: dict[NotTakenFor, list[str]] = {each: [] for each in NotTakenFor}
    for cell in due:
        if cell not in {each.cell for each in answered.seen}:
            reason = _why_not(advice, run, cell, answered.durability)
            if reason is not None:
                why[reason].append(cell)
    return tuple(
        NotTaken(
            each,
            tuple(cells),
            *_reason(advice, run, each, cells),
            _ranked(advice, run, answered.objective, cells),
        )
        for each, cells in why.items()
        if cells
    )


def _not_judged(advice: Advised, contest: Contest, answered: RunAnswer) -> Iterable[NotTaken]:
    """The cells of the class that no verdict is about: a better one may be among them."""
    named = {cell for each in answered.not_taken for cell in each.cells}
    cells = tuple(cell for cell in contest.left_out if cell not in named)
    if cells:
        stopped = [cell for cell in cells if cell in contest.stopped]
        seen = _ranked(advice, contest.run, answered.objective, cells)
        reason = contest.left_out[(*stopped, *(each.cell for each in seen), *cells)[0]]
        having = tuple(cell for cell in cells if contest.left_out[cell] == reason)
        if not stopped and len(having) < len(cells):
            reason, having = f"fewer than {REPETITIONS_MIN} trusted runs", cells
        yield NotTaken(NotTakenFor.TOO_FEW, cells, reason, having, seen)


def _why_not(advice: Advised, run: Run, cell: str, durability: str) -> NotTakenFor | None:
    """None where nothing is against a cell but that it has too few runs."""
    own = advice.classes[cell]
    if own == UNSAFE != durability:
        return NotTakenFor.UNSAFE
    troubles = [m.trouble for m in advice.overview.of(cell, run)]
    if all(troubles):
        worst_first = (Trouble.FAILED, Trouble.SUSPECT, Trouble.UNKNOWN, Trouble.NOT_RUN)
        first = next(each for each in worst_first if each in troubles)
        return _OF_TROUBLE[first]
    return _OF_CLASS.get(own) if own != durability else None


def _reason(advice: Advised, run: Run, why: NotTakenFor, cells: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The sentence that most of some cells have, and which of them; of two cells a sentence differs in its figures at most."""
    told = {cell: dict(_said_of(advice, run, why, cell)) for cell in cells}
    counts = Counter(alike for own in told.values() for alike in own)
    if not counts:
        return "", ()
    alike, _ = counts.most_common(1)[0]
    having = tuple(cell for cell, own in told.items() if alike in own)
    return told[having[0]][alike], having


def _said_of(advice: Advised, run: Run, why: NotTakenFor, cell: str) -> Iterable[tuple[str, str]]:
    """Each sentence about a cell, by the same without its figures; what is measured is counted by cell, and told with the power cuts."""
    promise = advice.overview.cells[cell].durability
    if why in _OF_CLASS.values():
        reasons = promise.reasons if promise is not None and promise.basis == "declared" else ()
        # It holds whatever the flushes are, and explains no class.
        reasons = tuple(each for each in reasons if each.code != ONLY_FSYNCED) or reasons
    else:
        reasons = tuple(reason for m in advice.overview.of(cell, run) for reason in m.reasons)
    return ((without_figures(words), words) for words in reversed(sentences(reasons)))


LINES_MAX = 8

COLUMNS = 80

# Lines of the first rank and beyond go where they have no room, before what comes first is shortened; those of the second before any other is.
_SECOND, DISPENSABLE = 2, 4

NO_BREAK = "\N{NO-BREAK SPACE}"

# As shlex.quote writes what has a blank in it.
_QUOTED = re.compile(r"'[^']*'")


@dataclass(frozen=True)
class HeadlineLine:
    """One line: what it is about (`Take`, `Ahead`, `Not`, `More`, …; empty where it belongs to the one above), and its text.

    `copied` marks a command or a setting, to be taken as it stands. `rank` says which goes first where there is room for few:
    the largest. `lead` is how the text begins: what a reader looks for, such as the cell or the level that is meant. `short`
    says the same in fewer words.
    """

    head: str
    text: str
    rank: int
    copied: bool = False
    lead: str = ""
    short: str = ""


def fitted(
    lines: Sequence[HeadlineLine], *, columns: int = COLUMNS, most: int | None = LINES_MAX
) -> tuple[str, ...]:
    """The lines at a width, at most so many: what matters least is said in short first, and then left out. No sentence is cut."""
    return tuple(text for _, text in placed(lines, columns=columns, most=most))


def placed(
    lines: Sequence[HeadlineLine], *, columns: int, most: int | None
) -> tuple[tuple[HeadlineLine, str], ...]:
    """The same, each with the line that it is of. A command may be wider than the columns, where a word of it is."""
    indent = max((len(line.head) for line in lines), default=0) + 2
    wrapped = [(line, _wrapped(line, columns - indent)) for line in lines]
    while most is not None and len(wrapped) > 1 and sum(len(texts) for _, texts in wrapped) > most:
        # What matters least comes first, to be said in short, and then to go. What comes first is shortened only where nothing else is left.
        places = sorted(range(len(wrapped)), key=lambda place: (-wrapped[place][0].rank, -place))
        least = places[0]
        line = wrapped[least][0]
        shorter = (
            (place, texts)
            for place in (() if line.rank >= DISPENSABLE else places)
            if (wrapped[place][0].rank or line.rank < _SECOND)
            # The first line has its last clauses, which say why that cell is taken, until nothing else is left.
            and (
                texts := _shorter(*wrapped[place], columns - indent, with_clauses=place > 0 or not line.rank)
            )
        )
        place, texts = next(shorter, (least, []))
        if texts:
            wrapped[place] = (wrapped[place][0], texts)
        else:
            # A command goes with the words that it stands behind.
            del wrapped[least - (line.copied and wrapped[least - 1][0].text.endswith(":")) : least + 1]
    return tuple(
        (line, f"{'' if place else line.head:<{indent}}{text}".replace(NO_BREAK, " ").rstrip())
        for line, texts in wrapped
        for place, text in enumerate(texts)
    )


def _wrapped(line: HeadlineLine, columns: int) -> list[str]:
    """A command goes on behind a backslash, as a shell reads it; a quoted word stays whole."""
    room = max(columns - 2 if line.copied else columns, 20)
    text = _QUOTED.sub(lambda word: word[0].replace(" ", "\0"), line.text) if line.copied else line.text
    texts = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    if not line.copied:
        return texts
    return [each.replace("\0", " ") for each in (*(f"{text} \\" for text in texts[:-1]), texts[-1])]


def _shorter(line: HeadlineLine, texts: Sequence[str], columns: int, *, with_clauses: bool) -> list[str]:
    """In short, or else without its last sentences or clauses, so that it has fewer lines; empty where it cannot be shorter."""
    if line.copied:
        return []
    words = line.short or line.text
    end = words[-1:] if words.endswith(":") else "."
    ends = [found.start() for found in re.finditer(r"[.;] ", words)] if with_clauses else []
    for text in (words, *(f"{words[:place]}{end}" for place in reversed(ends))):
        shorter = _wrapped(replace(line, text=text), columns)
        if len(shorter) < len(texts) and text.count("(") == text.count(")"):
            return shorter
    return []


_NO_SEARCH = "The answer of a search is of all its cells; these are some of them, or no figure is there yet."

# The page's column of heads is narrow.
_HEADS = {"mattered": "matters"}

# What makes a cell stands below its name, further in.
_BELOW_A_CELL = "    "

# What is not here may go where there is room for few lines.
_RANKS = {
    "Search": 1,
    "Refuted": 1,
    "Gain": 1,
    "But": 1,
    "Proof": 2,
    "Doubted": 2,
    "Outside": 3,
    "Matters": 3,
}


def instead_lines(found: Overview) -> tuple[HeadlineLine, ...]:
    """Its answer; empty of any other study, and of some cells of a study of pairs."""
    if is_chosen(found.study):
        search = search_of(found)
        return (HeadlineLine("Search", _NO_SEARCH, 0),) if search is None else tuple(_of_search(search))
    pairs = looked(found)
    if pairs is None:
        return ()
    first, *rest = answer_of_pairs(pairs)
    return (HeadlineLine("Change", first, 0), *(HeadlineLine("", line.strip(), 1) for line in rest))


def _of_search(found: Searched) -> Iterator[HeadlineLine]:
    """The lines of `advise`, each behind its head."""
    first, *rest = answer_lines(found)
    yield HeadlineLine("Search", first, 0)
    commands = _commands(found)
    head = "Search"
    for line in rest:
        own, blanks, text = line.strip().partition("  ")
        if line.startswith(_BELOW_A_CELL) or not blanks:
            own, text = head, line.strip()
        own = _HEADS.get(own, own).capitalize()
        rank = _RANKS.get(own, DISPENSABLE)
        text = text.strip()
        yield HeadlineLine("" if own == head else own, text, rank, copied=text in commands)
        head = own


def _commands(found: Searched) -> frozenset[str]:
    """Those that make the cells that it names."""
    cells = () if found.end is None else map(found.id_of, found.end.cells)
    return frozenset(
        command
        for cell in cells
        if cell in found.overview.cells
        for command in set_up(found.overview, cell).commands
    )


_SHOWN = 3


_NOT_HEADS = {
    NotTakenFor.UNSAFE: "Unsafe",
    NotTakenFor.UNKNOWN: "Open",
    NotTakenFor.BOUNDED_LOSS: "Less safe",
    NotTakenFor.FAILED: "Failed",
    NotTakenFor.SUSPECT: "Doubtful",
    NotTakenFor.NOT_RUN: "Not yet",
    NotTakenFor.TOO_FEW: "Open",
}

# Of one cell, and of several.
_NOT_WORDS = {
    NotTakenFor.UNSAFE: ("", ""),
    NotTakenFor.UNKNOWN: (" is not known to survive a power cut", " are not known to survive a power cut"),
    NotTakenFor.BOUNDED_LOSS: (" may lose the last commits in a power cut",) * 2,
    NotTakenFor.FAILED: ("", ""),
    NotTakenFor.SUSPECT: (" is not trusted", " are not trusted"),
    NotTakenFor.NOT_RUN: (" was not run", " were not run"),
    NotTakenFor.TOO_FEW: (" is not judged", " are not judged"),
}

_DEFAULT = "this system's default"

_TYPES_SHOWN = 2

# Doubts of runs that had not the machine to themselves.
_OF_OTHERS = frozenset(rule.code for rule in (THROTTLED_MACHINE, OTHERS_AT_WORK, CACHES_DROPPED))


def headline_lines(told: Headline) -> tuple[HeadlineLine, ...]:
    """All that the answer has to say, in the order in which it is read."""
    if instead := instead_lines(told.found):
        return instead
    names = short_names(told.found)
    # Whether copies of pages may go is what such a study was made to ask.
    lines = [
        HeadlineLine(head, text, rank, lead=lead)
        for each in (told.cuts.copies if told.cuts is not None else ())
        for head, text, lead, rank in copies_words(each, names)
    ]
    of_pages = bool(lines)
    verdicts = list(_verdicts(told, names))
    if told.answers:
        first, *others = told.answers
        lines += run_lines(first, names)
        lines += _others([each for each in others if each.durability], names)
    elif told.cuts is None and not verdicts:
        lines.append(HeadlineLine("Not yet", "no run has a figure that cells are compared by.", 0))
    if told.cuts is not None:
        lines += _of_cuts(told.cuts, names, first=not told.answers and not of_pages)
    lines += verdicts
    if told.advice.without:
        runs = ", ".join(run[1] for run in told.advice.without)
        words = f"{runs}: no figure of the whole run, so that nothing is compared here; `bedplate compare` has the others."
        lines.append(HeadlineLine("Open", words, DISPENSABLE))
    lines += _next_lines(told, names)
    lines += _sureness(told)
    return tuple(lines)


def _verdicts(told: Headline, names: Mapping[str, str]) -> Iterable[HeadlineLine]:
    """Of workloads that have verdicts of their own."""
    specs = map(told.found.spec, told.found.runs)
    for workload in dict.fromkeys(spec.workload for spec in specs if spec is not None):
        for each in view_of(workload).answer(told.found, names):
            yield HeadlineLine(each.head, each.text, each.rank, lead=each.lead)


def run_lines(answer: RunAnswer, names: Mapping[str, str]) -> Iterable[HeadlineLine]:
    """All that is said of one run."""
    lead = names[answer.taken.cell] if answer.taken else ""
    # Nobody is told to take what may lose data.
    head = "Not yet" if answer.taken is None else "Take" if answer.durability in RECOMMENDED else "Fastest"
    short = _take_words(answer, names, in_short=True)
    yield HeadlineLine(head, _take_words(answer, names), 0, lead=lead, short=short)
    if answer.set_up is not None:
        yield from _copied(answer.set_up)
    if answer.tied:
        yield HeadlineLine("Or", _or_words(answer, names), 1, short=_or_in_short(answer, names))
    for place, pooled in enumerate(answer.types[:_TYPES_SHOWN]):
        short = f"{pooled_in_short(pooled)}."
        is_open = pooled.comparison.verdict is Verdict.CANNOT_TELL
        words = short if pooled.disagree else f"{pooled_line(pooled)}."
        # Of pairs that disagree a short answer says nothing that a reader could use.
        rank = DISPENSABLE if pooled.disagree else 3 if place or is_open else 1
        yield HeadlineLine("Types", words, rank, short=short)
    if words := _others_words(answer, names):
        yield HeadlineLine("Others", words, 1)
    elif answer.taken is not None and answer.default is None and not answer.is_default:
        # Of no use where there is room for few.
        yield HeadlineLine("Open", f"{capital(_no_default_words(answer, names))}.", DISPENSABLE)
    if answer.packaged is not None and answer.packaged.other.cell not in _roles(answer):
        yield HeadlineLine("Packages", _packaged_words(answer, answer.packaged, names), 3)
    if aside := _aside_words(answer, names):
        yield HeadlineLine("But", aside, 1)
    # What looks better than the answer belongs to the answer.
    for each in sorted(answer.not_taken, key=lambda one: not one.looks_better(answer)):
        rank = 0 if each.looks_better(answer) else 1 if each.why is NotTakenFor.UNSAFE else 2
        short = _not_words(answer, each, names, in_short=True)
        yield HeadlineLine(_NOT_HEADS[each.why], _not_words(answer, each, names), rank, short=short)


def _copied(found: SetUp) -> Iterable[HeadlineLine]:
    if found.commands:
        yield HeadlineLine("", " && ".join(found.commands), 1, copied=True)
    varied = {name: found.settings[name] for name in found.varied}
    words = [*([settings_words(varied)] if varied else []), *found.further]
    if words:
        # Without it the commands make another cell, so that they go first.
        yield HeadlineLine("", f"with {'; '.join(words)}", 0)


def _take_words(answer: RunAnswer, names: Mapping[str, str], *, in_short: bool = False) -> str:
    run, taken, head = answer.run[1], answer.taken, answer.objective.head
    of_class = f"{answer.durability} cell"
    if answer.answered is Answered.NOTHING:
        if not answer.durability:
            return f"{run}: no cell is known to survive a power cut, so take none."
        return f"{run}: no {of_class} has a trusted {head}."
    if taken is None and answer.cells:
        # It is not the number of repetitions that keeps it from a verdict.
        return f"{run}: only one {of_class} has {REPETITIONS_MIN} trusted repetitions, so nothing can be compared with it. So far {_seen_words(answer, names)}."
    if taken is None:
        n = max(each.summary.n for each in answer.seen)
        many = "repetition shows" if n == 1 else "repetitions show"
        return f"{run}: {n} trusted {many} a figure, not a difference; a verdict needs at least {REPETITIONS_MIN}. So far {_seen_words(answer, names)}."
    default = f" ({_DEFAULT})" if answer.is_default else ""
    of = f"mean of {taken.summary.n}".replace(" ", NO_BREAK)
    what = f"{head} " if unit_words(answer.metric) else ""
    own = f"{names[taken.cell]}{default}: {what}{_figure(answer, taken)}, {of}, {run}"
    if answer.answered is Answered.ALONE:
        return f"{own}; {_alone_words(answer, names)}."
    if answer.answered is Answered.LEADS:
        return f"{own}; the best of {answer.cells} {of_class}s."
    words = f"{own}; none of {answer.cells} {of_class}s is shown better"
    # The best-looking one that is no choice, and the best-looking choice.
    rivals = [*([answer.better] if answer.better is not None else []), *answer.tied]
    order = [each.cell for each in answer.seen]
    looking_better = [each for each in rivals if order.index(each.other.cell) < order.index(taken.cell)]
    if in_short:
        choices = [each for each in looking_better if each.other.cell not in answer.beaten]
        looking_better = (choices or looking_better)[:1]
    for each in looking_better:
        name = f"{names[each.other.cell]} has {figure(each.other.summary).mean}"
        if (beaten := answer.beaten.get(each.other.cell)) is not None:
            words += f"; {name}, but over all pairs {beaten.words}"
            continue
        is_same = each.comparison.verdict is Verdict.SAME
        why = f"the same within {margin_words(each.comparison)}" if is_same else "which may be chance"
        nearer = (
            ""
            if answer.is_default or in_short
            else ", and this one departs less from what the system makes by itself"
        )
        return f"{words}; {name}, {why}{nearer}."
    if looking_better:
        return f"{words}."
    if answer.answered is Answered.BY_LEVELS:
        cell, worse = next(iter(answer.beaten.items()))
        return (
            f"{words}; by itself {names[cell]} is not distinguished from it, but over all pairs of cells that differ in this alone "
            f"{worse.words}{_so_are(len(answer.beaten) - 1)}."
        )
    return f"{words}."


def _so_are(others: int) -> str:
    """Of further cells that are left out for such a level."""
    if not others:
        return ""
    return f"; so {format_count(others, 'other cell')} {'is' if others == 1 else 'are'} left out"


def _packaged_words(answer: RunAnswer, packaged: BesideCell, names: Mapping[str, str]) -> str:
    """The best cell of those that need no build of their own."""
    figures = _beside_figures(packaged.comparison, " of it")
    return f"{names[packaged.other.cell]} is the best of those with the block size that packages have: {_figure(answer, packaged.other)}, {figures}."


def _aside_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """In which other figures the taken cell is shown worse than the cells that the answer names."""
    beside = [*answer.tied[:_SHOWN], *filter(None, (answer.following, answer.default))]
    by_cell = {each.other.cell: each for each in reversed(beside)}
    by_head: dict[str, list[str]] = {}
    for cell, each in reversed(by_cell.items()):
        for head, comparison in each.behind_in:
            figures = _beside_figures(comparison, f" {_behind(comparison)}")
            by_head.setdefault(head, []).append(f"{names[cell]} has {figures}")
    words = [f"it is worse in {head}: {', '.join(own[:_SHOWN])}{_rest(own)}" for head, own in by_head.items()]
    return f"{'. '.join(map(capital, words))}." if len(words) > 1 else f"{words[0]}." if words else ""


def _alone_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    others = ", ".join(names[cell] for cell in answer.same_as[:_SHOWN])
    alike = f" but {others}{_rest(answer.same_as)}, effectively the same" if others else ""
    return f"no other cell is {answer.durability}{alike}"


def _seen_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    seen = [f"{names[each.cell]} {_figure(answer, each)}" for each in answer.seen[:_SHOWN]]
    return f"{answer.durability}: {', '.join(seen)}{_rest(answer.seen)}"


def _others_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """The next cell, and what this system makes by itself, each relative to the one to take; what is said of what may be taken as well is not said again."""
    if answer.taken is None:
        return ""
    roles = _roles(answer)
    words = [
        _beside_words(answer, each, f"{names[cell]}, {' and '.join(roles[cell])},")
        for cell, each in {
            each.other.cell: each for each in (answer.following, answer.default) if each is not None
        }.items()
        if cell in roles and not (answer.tied and answer.tied[0].other.cell == cell)
    ]
    if words and answer.default is None and not answer.is_default:
        words.append(capital(_no_default_words(answer, names)))
    return f"{'. '.join(words)}." if words else ""


def _roles(answer: RunAnswer) -> Mapping[str, Sequence[str]]:
    """What the cells are beside the one to take of which a ratio to it is said."""
    following = answer.following if not answer.tied else None
    roles: dict[str, list[str]] = {}
    for beside, role in ((following, "the next"), (answer.default, _DEFAULT)):
        if beside is not None:
            roles.setdefault(beside.other.cell, []).append(role)
    if answer.packaged is not None and answer.packaged.other.cell in roles:
        roles[answer.packaged.other.cell].append("the best with the block size that packages have")
    return roles


def _no_default_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """Why nothing is said of what this system makes by itself."""
    why = f"no cell is {answer.default_kind} as the system makes it"
    if answer.default_kind is None:
        why = "what its distribution installs on is not known"
    elif answer.default_cells:
        why = f"{names[answer.default_cells[0]]} is not judged here"
    return f"what is gained over {_DEFAULT} is not known: {why}"


def _or_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """What may be taken as well: each kind of verdict with its own cells, and how far the first of them may be away."""
    by_verdict: dict[str, list[BesideCell]] = {}
    for each in answer.tied:
        by_verdict.setdefault(_not_apart_words(each.comparison), []).append(each)
    parts = []
    for words, cells in by_verdict.items():
        first = cells[0].comparison
        named = [f"{names[each.other.cell]} ({figure(each.other.summary).mean})" for each in cells[1:_SHOWN]]
        far = _why_not_compared(first) if first.basis is None else _beside_figures(first, " of it")
        between = ", " if far.startswith(("×", "+", "-")) else "; "
        others = f"; likewise {', '.join(named)}{_rest(cells)}" if named else ""
        other = cells[0].other
        roles = _roles(answer).get(other.cell, ()) if cells[0] is answer.tied[0] else ()
        role = f" ({' and '.join(roles)})" if roles else ""
        parts.append(
            f"{words} {names[other.cell]}{role}, which has {figure(other.summary).mean}{between}{far}{others}"
        )
    return f"{'. '.join(map(capital, parts)) if len(parts) > 1 else parts[0]}."


def _or_in_short(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """The first of them, and how many there are."""
    first = answer.tied[0]
    words = _not_apart_words(first.comparison)
    alike = sum(_not_apart_words(each.comparison) == words for each in answer.tied)
    return f"{words} {names[first.other.cell]} ({figure(first.other.summary).mean}){and_more(alike, 1)}."


def _not_apart_words(comparison: Comparison) -> str:
    if comparison.basis is None:
        return "not compared with"
    if comparison.verdict is Verdict.SAME:
        return f"the same within {margin_words(comparison)} as"
    return "not distinguished from"


def _why_not_compared(comparison: Comparison) -> str:
    return "; ".join(comparison.reasons) or "too few repetitions"


def _beside_figures(comparison: Comparison, behind: str = "", *, with_confidence: bool = True) -> str:
    """`×1.08 (1.05 to 1.11)`, with the words behind it."""
    if says_nothing(comparison):
        return "the ratio is not known"
    return f"{ratio_words(comparison, with_confidence=with_confidence)}{behind}"


def _behind(comparison: Comparison) -> str:
    return "of it" if comparison.kind is EstimateKind.RATIO else "beside it"


def _beside_words(answer: RunAnswer, beside: BesideCell, other: str) -> str:
    """`ext4, the next, has ×0.93 (0.90 to 0.95) of its tps`; what cannot be told is said behind it."""
    comparison, head = beside.comparison, answer.objective.head
    if comparison.basis is None:
        return f"{other} is not compared: {_why_not_compared(comparison)}"
    if says_nothing(comparison):
        return f"{other} is not distinguished from it, and the ratio is not known"
    its = f" of its {head}" if comparison.kind is EstimateKind.RATIO else " beside it"
    words = f"{other} has {ratio_words(comparison)}{its}"
    also = f", and is worse in {', '.join(beside.ahead_in)}" if beside.ahead_in else ""
    if comparison.verdict is Verdict.SAME:
        return f"{words}: the same within {margin_words(comparison)}{also}"
    return f"{words}: not distinguished{also}" if comparison.verdict is Verdict.CANNOT_TELL else words


def _not_words(
    answer: RunAnswer, found: NotTaken, names: Mapping[str, str], *, in_short: bool = False
) -> str:
    figures = {each.cell: each for each in found.seen}
    order = [*figures, *(cell for cell in found.cells if cell not in figures)]
    listed = []
    shown = 1 if in_short else _SHOWN
    for cell in order[:shown]:
        parts = [f"{figure(figures[cell].summary).mean}{_unit(answer)}"] if cell in figures else []
        parts += ["looks better"] if parts and found.looks_better(answer, figures[cell]) else []
        listed.append(f"{names[cell]} ({', '.join(parts)})" if parts else names[cell])
    why = ""
    if not in_short and found.reason and found.why is not NotTakenFor.NOT_RUN:
        # What speaks against some of these cells is not said of all.
        some = ", ".join(names[cell] for cell in found.having[:_SHOWN])
        whose = "" if len(found.having) == len(found.cells) else f"; {some}{_rest(found.having)}"
        why = f"{whose}: {' '.join(found.reason.split())}"
    words = _NOT_WORDS[found.why][len(order) > 1]
    return _ended(f"{', '.join(listed)}{and_more(len(order), shown)}{words}{why}")


def _ended(text: str) -> str:
    """With a full stop, unless it ends already."""
    return text if text.endswith((".", "…")) else f"{text}."


def _others(others: Sequence[RunAnswer], names: Mapping[str, str]) -> Iterable[HeadlineLine]:
    """The other questions in one line, of several each in few words."""
    if len(others) == 1:
        yield HeadlineLine("Also", _also(others[0], names), 2)
    elif others:
        yield HeadlineLine("Also", f"{'; '.join(_briefly(each, names) for each in others)}.", 2)


def _briefly(answer: RunAnswer, names: Mapping[str, str]) -> str:
    run = answer.run[1]
    if answer.taken is None:
        return f"{run}: no verdict yet" if answer.seen else f"{run}: nothing trusted yet"
    others = names[answer.tied[0].other.cell] if len(answer.tied) == 1 else f"{len(answer.tied)} others"
    tied = f", {_not_apart_words(answer.tied[0].comparison)} {others}" if answer.tied else ""
    return f"{run}: {names[answer.taken.cell]} {_figure(answer, answer.taken)}{tied}"


def _also(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """Another question in one line."""
    run = answer.run[1]
    if answer.answered is Answered.NOTHING:
        return _take_words(answer, names)
    if answer.taken is None:
        return f"{run}: no verdict yet; so far {_seen_words(answer, names)}."
    own = f"{run}: {names[answer.taken.cell]} {_figure(answer, answer.taken)}"
    if answer.answered is Answered.TIED:
        others = ", ".join(names[each.other.cell] for each in answer.tied[:_SHOWN])
        return f"{own}, not distinguished from {others}{_rest(answer.tied)}."
    if answer.following is None:
        return f"{own}; {_alone_words(answer, names)}."
    return f"{own}; {_beside_words(answer, answer.following, names[answer.following.other.cell])}."


def _figure(answer: RunAnswer, seen: SeenCell) -> str:
    """`1,310 tps (1,290 to 1,330)`, the interval of the mean, else what was found."""
    told = figure(seen.summary)
    kind = "" if told.is_interval or told.are_values else f"range{NO_BREAK}"
    bounds = f" ({kind}{told.between(f'{NO_BREAK}to{NO_BREAK}')})" if told.low else ""
    return f"{told.mean}{_unit(answer)}{bounds}"


def _unit(answer: RunAnswer) -> str:
    return f"{NO_BREAK}{unit_words(answer.metric) or answer.objective.head}"


def _of_cuts(found: CutsAnswer, names: Mapping[str, str], *, first: bool) -> Iterable[HeadlineLine]:
    rank = 0 if first else 1
    for cell, words in found.without_cut.items():
        yield HeadlineLine("Unsafe", f"{names[cell]}: {words}.", rank, lead=words)
    if found.safe:
        for words, bound, cuts in _safe_words(found, names):
            # A class needs so many cuts to be better than promised, and so does the word.
            yield HeadlineLine("Safe" if cuts >= CUTS_FOR_MORE else "Open", words, rank, lead=bound)
            rank = 3
    elif found.groups or not found.without_cut:
        yield HeadlineLine(
            "Open", f"no cell that was cut is known to be safe with a {CACHE_WORDS[found.cache]}.", rank
        )
    for group in found.groups:
        worst = any(each.corrupt or each.lost for each in group.bad)
        head = "Unsafe" if worst else "Less safe"
        words, short = f"{group_words(group, names)}.", f"{group_words(group, names, in_short=True)}."
        yield HeadlineLine(head, words, 1 if worst else 2, lead=group.name, short=short)
    if other := [each for each in found.sound if each.elsewhere]:
        listed = ", ".join(
            f"{names[each.cell]} ({_elsewhere_words(each, (BOUNDED, LOSS, *BROKEN))})"
            for each in other[:_SHOWN]
        )
        yield HeadlineLine("Unsafe", f"{_ON_ANOTHER_DISK[found.cache]}: {listed}{_rest(other)}.", 2)
    for durability in dict.fromkeys(each.durability for each in found.promising_less):
        own = [each for each in found.promising_less if each.durability == durability]
        listed = ", ".join(names[each.cell] for each in own[:_SHOWN])
        lead = _BY_SETTINGS[durability]
        head = _NOT_HEADS[_OF_CLASS[durability]]
        words = f"{lead}, although {none_bad_words(own)}: {listed}{_rest(own)}."
        yield HeadlineLine(head, words, 3, lead=lead)
    alike: dict[str, list[str]] = {}
    for cell, why in found.refused.items():
        alike.setdefault(without_figures(why), []).append(cell)
    refused = ((cells, _refused_words(cells, found.refused, names)) for cells in alike.values())
    for cells, words in (
        *refused,
        (
            found.of_others,
            "power was cut as another device or journal leaves it, which says nothing of this one",
        ),
        (found.not_asked, f"power was cut, but never with a {CACHE_WORDS[found.cache]}"),
        (
            found.uncounted,
            "a recovery that ran to its end left damage too, so that power cuts in recovery show nothing",
        ),
    ):
        if cells:
            listed = ", ".join(names[cell] for cell in cells[:_SHOWN])
            yield HeadlineLine("Open", f"{listed}{_rest(cells)}: {words}.", rank + 2)
    every = [each for group in found.groups for each in group.bad] + [*found.sound]
    if any(cuts.sought.bad for each in every for cuts in (each.cuts, *each.elsewhere.values())):
        words = "sought cuts are placed where a cut can tear metadata or order shows, so that their number is no share."
        yield HeadlineLine("Note", words, DISPENSABLE)


def _refused_words(cells: Sequence[str], why: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Of cells whose reasons differ in their figures at most."""
    first = why[cells[0]]
    is_same = len({why[cell] for cell in cells}) == 1
    because = f": {first}" if is_same else f", of {names[cells[0]]} because {first}"
    return f"power was cut, but there is no verdict{because}"


def _safe_words(found: CutsAnswer, names: Mapping[str, str]) -> Iterable[tuple[str, str, int]]:
    """A text for each number of cuts, how it begins, and that number; what was cut most first, as its bound is the lowest."""
    cache = f" (with a {CACHE_WORDS[found.cache]})"
    for count in sorted({each.tally.cuts for each in found.safe}, reverse=True):
        own = [each for each in found.safe if each.tally.cuts == count]
        listed = _with_common([names[each.cell] for each in own[: 2 * _SHOWN]])
        bound = none_bad_words(own)
        yield f"{bound}: {listed}{and_more(len(own), 2 * _SHOWN)}{cache}.", bound, count
        cache = ""


def _with_common(own: Sequence[str]) -> str:
    """`ext4, xfs, btrfs with full_page_writes=on`: what all of several names have behind their first word is said once."""
    firsts, rests = zip(*(name.partition(" ")[::2] for name in own), strict=True)
    if len(own) < 2 or len(set(rests)) > 1 or not rests[0]:
        return ", ".join(own)
    return f"{', '.join(firsts)} with {rests[0]}"


def group_words(group: CutGroup, names: Mapping[str, str], *, in_short: bool = False) -> str:
    """`full_page_writes = off: corrupt on ext4 (8 of 30 cuts), btrfs (2 of 30); on: none of 30 cuts was bad, so at most 12 % are`."""
    own = {each.cell: each.within or names[each.cell] for each in (*group.bad, *group.good)}
    words = []
    for what, findings in (
        ("corrupt", BROKEN),
        ("acknowledged commits lost", (LOSS,)),
        ("the last commits lost", (BOUNDED,)),
    ):
        having = [each for each in group.bad if each.cuts.all_cuts.of(*findings)]
        if in_short and having:
            shares = [_shares(each.cuts, findings, first=not place)[:1] for place, each in enumerate(having)]
            listed = [
                f"{own[each.cell]} ({share[0]})" if share else own[each.cell]
                for each, share in zip(having[:_SHOWN], shares, strict=False)
            ]
            words = [f"{what} on {', '.join(listed)}{_rest(having)}"]
            break
        listed = [
            f"{own[each.cell]} ({_share_words(each, findings, first=not place)})"
            for place, each in enumerate(having[:_SHOWN])
        ]
        if listed:
            words.append(f"{what} on {', '.join(listed)}{_rest(having)}")
    words += [f"{own[each.cell]}: {why}" for each in group.bad for why in each.why[:1] if not in_short]
    if group.good and not in_short:
        listed = [own[each.cell] for each in group.good[:_SHOWN]]
        words.append(f"{', '.join(listed)}{_rest(group.good)}: {none_bad_words(group.good)}")
    if group.otherwise and not in_short:
        words.append(f"{group.otherwise_name}: {none_bad_words(group.otherwise)}")
    told = "; ".join(words)
    return f"{group.name}: {told}" if group.name else told


def _share_words(cell: CutCell, findings: Sequence[str], *, first: bool) -> str:
    """`3 of 208 cuts, 2 of 40 in recovery`; `3 of 208` behind the first. What is counted apart is named where it was bad."""
    elsewhere = _elsewhere_words(cell, findings)
    shares = ", ".join(_shares(cell.cuts, findings, first=first))
    return "; ".join(filter(None, (shares, elsewhere)))


def _shares(cuts: CacheCuts, findings: Sequence[str], *, first: bool = False) -> list[str]:
    counted = (
        (cuts.drawn, f" {'cut' if cuts.drawn.cuts == 1 else 'cuts'}" if first else ""),
        *((tally, f"{NO_BREAK}{words}") for tally, words in without_share(cuts)),
    )
    shares = [
        f"{bad:,}{NO_BREAK}of{NO_BREAK}{tally.cuts:,}{words}"
        for tally, words in counted
        if (bad := tally.of(*findings))
    ]
    if weaker := cuts.weaker.of(*findings):
        shares.append(weaker_words(weaker))
    return shares


def _elsewhere_words(cell: CutCell, findings: Sequence[str]) -> str:
    """`1 of 15 with 512-byte sectors`: the bad cuts with every other kind of cache, so that none of them is left out."""
    named = []
    for cache, cuts in cell.elsewhere.items():
        own = _shares(replace(cuts, weaker=CutCounts()), findings)
        if weaker := cuts.weaker.of(*findings) if not own else 0:
            own = [f"{weaker:,} of these also"]
        named += [f"{' and '.join(own)} {_IN_SHORT[cache]}"] if own else []
    return "; ".join(named)


def none_bad_words(cells: Sequence[CutCell]) -> str:
    """`none of 30 cuts was bad, so at most 12 % are`, of several the one that was cut least."""
    least = min(each.tally.cuts for each in cells)
    each = " of each" if len(cells) > 1 else ""
    if not least:
        return "no cut was bad"
    bound = percent_from_above(proportion(0, least).high)
    return f"none of {format_count(least, 'cut')}{each} was bad, so at most {bound}{NO_BREAK}% are"


def _next_lines(told: Headline, names: Mapping[str, str]) -> Iterable[HeadlineLine]:
    """One step with its command, and what could be known after it."""
    for step in told.following[:1]:
        end = ":" if step.command else "."
        short = ""
        if step.repetitions and step.apart:
            takes = (
                "" if step.seconds is None else f" (about {about_words(step.seconds).replace(' ', NO_BREAK)})"
            )
            short = (
                f"{format_count(step.count, 'more repetition')}{takes} should show whether they differ{end}"
            )
        words = step_words(step, told, names)
        due = sum(later.count for later in told.following[1:] if later.kind is StepKind.GO_ON)
        if due:
            words = f"{format_count(due, 'run')} {'is' if due == 1 else 'are'} still due, and {words}"
        yield HeadlineLine("Next", f"{words}{end}", 0, short=short)
        if step.command:
            yield HeadlineLine("", step.command, 0, copied=True)
        for later in told.following[1:]:
            if later.repetitions is not None and step.kind is not StepKind.MEND:
                yield HeadlineLine("", f"Then {step_words(later, told, names)}.", 3)


def step_words(step: NextStep, told: Headline, names: Mapping[str, str]) -> str:
    """What a step would tell, and how long it takes."""
    takes = "" if step.seconds is None else f", about {about_words(step.seconds).replace(' ', NO_BREAK)}"
    many = "s" * (step.count > 1)
    if step.kind is StepKind.RETRY:
        return f"{step.count} run{many} failed; to try {'them' if many else 'it'} again{takes}"
    if step.kind is StepKind.MEND:
        return _ended(
            f"{step.count} runs failed alike, so trying again does not help; mend this first: {step.why}"
        ).removesuffix(".")
    if step.kind is StepKind.GO_ON:
        return f"{step.count} run{many} {'are' if many else 'is'} still due; to go on{takes}"
    if step.kind is StepKind.CUTS:
        # One line of a mail: the bound and the minutes are what is asked.
        bound = percent_from_above(step.bound or 1.0)
        return f"{step.count:,} cuts of each, none bad, would show at most {bound}{NO_BREAK}%{takes}"
    if step.kind is StepKind.KEPT_LOG:
        return f"{step.count} more cuts of the kept log of {step.why} need no new recording"
    if step.kind is StepKind.ALL_THE_SAME:
        return "to see which of them is the fastest all the same"
    first = told.answers[0] if told.answers else None
    if step.apart is not None and first is not None and first.taken is not None:
        comparison = step.apart.comparison
        by = f" by more than {margin_words(comparison)}" if comparison.kind is EstimateKind.RATIO else ""
        whether = f"whether {names[first.taken.cell]} and {names[step.apart.other.cell]} differ{by}"
        if step.kind is StepKind.LONGER:
            return f"to show {whether} takes more than {REPETITIONS_MAX} repetitions; longer runs, or a quieter machine, might do with fewer"
        takes = f" ({takes.removeprefix(', ')})" if takes else ""
        return f"{step.count} more repetition{many}{takes} should show {whether}"
    if first is not None and first.answered is Answered.NO_VERDICT and not first.cells:
        return f"{step.count} more repetition{many}{_made_how(told)} should give verdicts{takes}"
    return f"{step.count} more repetition{many}{_made_how(told)}{takes}"


def _made_how(told: Headline) -> str:
    """What more repetitions need, so that they are not doubted as those before."""
    doubted = [
        each for answer in told.answers[:1] for each in answer.not_taken if each.why is NotTakenFor.SUSPECT
    ]
    if not doubted:
        return ""
    codes = {
        reason.code
        for m in told.found.measurements
        if m.trouble is Trouble.SUSPECT and m.cell in doubted[0].having
        for reason in m.reasons
    }
    if codes & _OF_OTHERS:
        return " while nothing else uses the machine"
    return " without what makes the others doubtful"


def contest_notes(
    advice: Advised, contest: Contest, names: Mapping[str, str], of: RunAnswer | None
) -> tuple[str, ...]:
    """What a table of the class in this run cannot show: that its likeliest cell is sure to be near the best, and which pairs are not compared."""
    notes = []
    visits = next_visits(advice, contest)
    is_taken = isinstance(visits, NextVisits) and (
        of is None or of.taken is None or of.taken.cell == visits.leader
    )
    # Of another cell than the one to take it would only ask why.
    if isinstance(visits, NextVisits) and visits.chance >= SURE and is_taken:
        notes.append(
            f"With a probability of {percent(SURE)} or more {names[visits.leader]} is within {percent(MARGIN)} of the best of {visits.among} cells."
        )
    if contest.incomparable:
        were = "was" if contest.incomparable == 1 else "were"
        notes.append(
            f"{format_count(contest.incomparable, 'pair')} of cells {were} measured in other surroundings, which no factor explains, "
            "and so not compared."
        )
    return tuple(notes)


def standing_words(ranked_cell: RankedCell, of: RunAnswer | None, names: Mapping[str, str]) -> str:
    """What is shown of a cell, in words that are true of it alone; `of` is the answer that the table belongs to."""
    standing, evidence = ranked_cell.standing, ranked_cell.evidence
    if of is not None and of.taken is not None and ranked_cell.cell == of.taken.cell:
        return "take this one" if of.durability in RECOMMENDED else "fastest"
    if standing is None:
        return "not judged"
    if standing is Standing.RULED_OUT:
        return f"worse than {names[ranked_cell.worse_than]}" if ranked_cell.worse_than else "shown worse"
    if of is not None and ranked_cell.cell in of.beaten:
        return of.beaten[ranked_cell.cell].words
    if standing is Standing.OPEN:
        return "open"
    if evidence is None:
        return "best mean"
    if evidence.comparison.basis is None:
        return "not compared"
    same = evidence.comparison.verdict is Verdict.SAME
    return f"same within {margin_words(evidence.comparison)}" if same else "not distinguished"


def relative_words(of: RunAnswer | None) -> str:
    """What the ratios of a table are relative to."""
    if of is None or of.taken is None:
        return "the first row"
    return "the cell to take" if of.durability in RECOMMENDED else "the fastest cell"


def table_rows(
    advice: Advised, contest: Contest, of: RunAnswer | None, most: int = sys.maxsize
) -> tuple[tuple[RankedCell, ...], int]:
    """The first rows of a class, with every cell that the answer names, and how many are left out."""
    ranked = ranking(advice, contest, of.taken.cell if of is not None and of.taken is not None else None)
    named = named_cells(of)
    rows = tuple(each for place, each in enumerate(ranked) if place < most or each.cell in named)
    return rows, len(ranked) - len(rows)


def named_cells(of: RunAnswer | None) -> frozenset[str]:
    """Those that the lines of an answer name, which no table of it leaves out."""
    if of is None or of.taken is None:
        return frozenset()
    beside = (of.better, *of.tied[:_SHOWN], of.following, of.default, of.packaged)
    unjudged = (each.cell for left in of.not_taken for each in left.seen if left.looks_better(of, each))
    return frozenset((of.taken.cell, *(each.other.cell for each in beside if each is not None), *unjudged))


def beside_words(ranked_cell: RankedCell, names: Mapping[str, str]) -> str:
    """`×0.92 (0.90 to 0.94)`, relative to the cell of all rows; in the figure of a limit so said; empty of that cell itself."""
    if ranked_cell.evidence is None:
        return ""
    figures = _beside_figures(ranked_cell.evidence.comparison, with_confidence=False)
    if ranked_cell.limit is None:
        return figures
    allowed = f"{asked_percent(ranked_cell.limit.share)} worse is allowed"
    return (
        f"{ranked_cell.limit.objective.head} {figures} of {names[ranked_cell.evidence.baseline]}; {allowed}"
    )


def _sureness(told: Headline) -> Iterable[HeadlineLine]:
    confidences = [each.confidence for each in told.answers if each.confidence is not None]
    if confidences:
        # Those of types are a family of their own.
        confidences += [
            each.comparison.difference_confidence or each.comparison.confidence
            for each in told.answers[0].types
            if each.comparison.basis is not None
        ]
        words = f"about 1 in {round(1 / RATE)} such verdicts is wrong"
        if (most := max(confidences)) > CONFIDENCE:
            words += f"; as many cells are compared at once, intervals of ratios are widened, up to {confidence_words([most])}"
        words += "."
        yield HeadlineLine("Note", words.replace(" %", f"{NO_BREAK}%"), 4)
    # Speeds of an emulator may not be read without it.
    rank = 1 if any(facts.emulated for facts in told.found.cells.values()) else 5
    for doubt in told.doubts:
        is_canary = doubt in told.found.health.canary_changes
        # What the machine did matters to every figure, however little room there is.
        yield HeadlineLine("But", _ended(capital(doubt)), min(rank, 1) if is_canary else rank)
        rank = 5


def _rest(cells: Sequence[object]) -> str:
    return and_more(len(cells), _SHOWN)
