"""The headline of studies of which the truth is planted: who leads, by how much, what is not to be taken, what would tell more."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import Place, known_study
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import RECIPE as CUT_RECIPE
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import HOSTILE, MACHINE, Recipe, write_changed_study, write_study

from bedplate.analysis.advice import Standing, advised, standing_cells
from bedplate.analysis.answer import (
    Answered,
    Headline,
    NotTakenFor,
    RunAnswer,
    StepKind,
    cell_names,
    defaults_of,
    fitted,
    headline,
    headline_lines,
)
from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.effects import study_effects
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.pooled import pooled_line, pooled_pairs
from bedplate.analysis.search import command_lines
from bedplate.cli.asking import say_answer
from bedplate.model import durability
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.codec import read
from bedplate.model.levels import Levels
from bedplate.model.visit import Validity, VisitRecord
from bedplate.statistics.comparison import Verdict, proportion, trials_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import ScheduledVisit

RUN = "read-write"


def cell(kind: str, commit: str | None = None, **levels: object) -> Cell:
    settings = Levels({} if commit is None else {"synchronous_commit": commit})
    filesystem = replace(FilesystemLevels(kind), **levels)  # type: ignore[arg-type]
    return Cell(DeviceLevels(), KernelLevels(), filesystem, BuildLevels(), ClusterLevels(settings=settings))


EXT4, UNSAFE, XFS, BTRFS = (
    cell("ext4", barrier=True),
    cell("ext4", barrier=False),
    cell("xfs"),
    cell("btrfs"),
)
QUICK = (EXT4, UNSAFE, XFS, BTRFS)


def speeds(truth: Mapping[Cell, float], scatter: float = 0.01) -> Callable[[Place], float]:
    def tps(place: Place) -> float:
        noise = random.Random(f"{place.cell.id} {place.run} {place.repetition} {place.canary}").gauss(
            0, scatter
        )
        return truth[place.cell] * math.exp(noise)

    return tps


def study_of(
    place: Path, truth: Mapping[Cell, float], *, scatter: float = 0.01, repetitions: int = 5, **recipe: object
) -> Overview:
    made = Recipe(cells=tuple(truth), runs=(RUN,), repetitions=repetitions, course_s=2, canaries=0)
    return overview(known_study(place / "study", speeds(truth, scatter), replace(made, **recipe)))  # type: ignore[arg-type]


def first_of(found: Overview) -> RunAnswer:
    return headline(found).answers[0]


def lines_of(found: Overview) -> tuple[str, ...]:
    lines = fitted(headline_lines(headline(found)))
    assert len(lines) <= 8
    return lines


def test_the_planted_leader_is_taken_and_its_lead_is_that_of_compare_effects_and_advise(
    tmp_path: Path,
) -> None:
    found = study_of(tmp_path, {EXT4: 1000, UNSAFE: 1900, XFS: 1083, BTRFS: 600})
    told = first_of(found)
    assert Answered.LEADS is told.answered
    assert told.taken is not None
    assert XFS.id == told.taken.cell
    assert told.following is not None
    assert EXT4.id == told.following.other.cell
    assert told.default is not None
    assert EXT4.id == told.default.other.cell
    own = told.following.comparison
    assert 1 / 1.083 == pytest.approx(own.estimate, rel=0.02)
    (pair,) = answer([found], ComparisonQuestion("type=xfs", "type=ext4 barrier=yes", workload=RUN)).compared
    assert own.estimate == pytest.approx(pair.comparison.estimate, rel=1e-9)
    (one,) = (each for each in study_effects(found).found if each.asked.metric == "tps")
    ratio = next(each for each in one.parts[0].effects if (each.level, each.baseline) == ("xfs", "ext4"))
    assert own.estimate == pytest.approx(1 / ratio.ratio, rel=1e-9)
    contest = next(each for each in advised(found).contests if each.durability == "durable")
    assert told.taken.cell in standing_cells(contest, Standing.LEADING)
    assert told.taken.summary == advised(found).summary(contest, contest.objectives[0], XFS.id)


def test_what_is_faster_and_unsafe_is_named_with_its_class_and_never_taken(tmp_path: Path) -> None:
    found = study_of(tmp_path, {EXT4: 1000, UNSAFE: 1900, XFS: 1083})
    told = first_of(found)
    (unsafe,) = told.not_taken
    assert (NotTakenFor.UNSAFE, (UNSAFE.id,)) == (unsafe.why, unsafe.cells)
    assert UNSAFE.id not in {each.cell for each in told.seen}
    words = " ".join(lines_of(found))
    assert re.search(r"Unsafe +ext4 nobarrier \(1,\d\d\d tps\): 0 flushes in 64", words)


def test_of_cells_that_are_not_told_apart_the_default_is_taken(tmp_path: Path) -> None:
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1003, BTRFS: 600}, scatter=0.1)
    told = first_of(found)
    assert Answered.TIED is told.answered
    assert told.taken is not None
    assert (EXT4.id, True) == (told.taken.cell, told.is_default)
    assert [XFS.id] == [each.other.cell for each in told.tied]
    assert told.tied[0].comparison.verdict in (Verdict.CANNOT_TELL, Verdict.SAME)
    assert "this system's default" in lines_of(found)[0]


def test_the_default_is_not_taken_for_an_interval_that_leaves_everything_open(tmp_path: Path) -> None:
    """Its runs have two speeds, as a query of two plans has: nothing is told apart from it, and by its mean it takes twice as long."""
    steady = speeds({EXT4: 1000, XFS: 1003, BTRFS: 900})

    def tps(place: Place) -> float:
        slowed = place.cell == EXT4 and not place.canary and place.repetition == 2
        return steady(place) * (0.12 if slowed else 1)

    made = Recipe(cells=(EXT4, XFS, BTRFS), runs=(RUN,), repetitions=3, course_s=2, canaries=0)
    found = overview(known_study(tmp_path / "study", tps, made))
    told = first_of(found)
    assert Answered.TIED is told.answered
    assert told.taken is not None
    assert (XFS.id, False) == (told.taken.cell, told.is_default)
    beside = {each.other.cell: each.comparison for each in told.tied}
    assert Verdict.CANNOT_TELL is beside[EXT4.id].verdict
    assert told.default is not None
    assert EXT4.id == told.default.other.cell


def test_what_pairs_do_not_tell_all_pairs_of_two_levels_do(tmp_path: Path) -> None:
    """Six block sizes: no pair of XFS and ext4 is told apart, all six together are, and the default is not taken."""
    sizes = (1024, 2048, 4096, 8192, 16384, 32768)
    truth = {
        replace(one, build=replace(one.build, block_size_bytes=size)): speed
        for size in sizes
        for one, speed in ((EXT4, 1000.0), (XFS, 1080.0))
    }
    found = study_of(tmp_path, truth, scatter=0.015, repetitions=3)
    told = first_of(found)
    assert told.taken is not None
    assert "xfs" == found.study.schedule.cells[told.taken.cell].filesystem.type
    assert {"xfs"} == {found.study.schedule.cells[each.other.cell].filesystem.type for each in told.tied}
    (pooled,) = told.types
    question = ComparisonQuestion("type=xfs", "type=ext4", workload=RUN, metrics=("tps",))
    (line,) = pooled_pairs(answer([found], question))
    assert pooled.comparison.estimate == pytest.approx(line.comparison.estimate, rel=1e-9)
    assert 1 / 1.08 == pytest.approx(line.comparison.estimate, rel=0.03)
    assert f"{pooled_line(line)}." in [each.text for each in headline_lines(headline(found))]


def test_what_is_the_same_within_the_margin_is_said_to_be(tmp_path: Path) -> None:
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1004}, scatter=0.005)
    assert Verdict.SAME is first_of(found).tied[0].comparison.verdict
    assert any("the same within 5 %" in line for line in lines_of(found))


def test_two_repetitions_give_what_was_seen_and_the_way_to_verdicts(tmp_path: Path) -> None:
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1500}, repetitions=2)
    told = headline(found)
    assert Answered.NO_VERDICT is told.answers[0].answered
    assert told.answers[0].taken is None
    assert [XFS.id, EXT4.id] == [each.cell for each in told.answers[0].seen]
    (step,) = told.following
    assert (StepKind.REPETITIONS, 3, 5) == (step.kind, step.count, step.repetitions)
    # Two cells of 95 s, three times more.
    assert 2 * 3 * 95 == step.seconds
    lines = lines_of(found)
    assert lines[0].startswith(
        "Not yet  read-write: 2 trusted repetitions show a figure, not a difference; a"
    )
    assert re.search(r"xfs +1,\d\d\d tps +\([\d,.]+ and [\d,.]+\)", " ".join(lines))
    assert any("3 more repetitions should give verdicts, about 10 min:" in line for line in lines)
    assert step.command == f"sudo ./bedplate run {found.study.directory} --repetitions 5"


def test_one_cell_alone_has_no_next(tmp_path: Path) -> None:
    told = first_of(study_of(tmp_path, {XFS: 1000}))
    assert (Answered.ALONE, None) == (told.answered, told.following)
    assert told.taken is not None
    assert told.taken.cell == XFS.id


def test_a_leader_of_bounded_loss_is_none_beside_a_durable_cell(tmp_path: Path) -> None:
    fast = cell("xfs", "off")
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1200, fast: 5000})
    told = first_of(found)
    assert told.taken is not None
    assert (XFS.id, "durable") == (told.taken.cell, told.durability)
    assert [(NotTakenFor.BOUNDED_LOSS, (fast.id,))] == [(each.why, each.cells) for each in told.not_taken]


def test_where_nothing_is_safe_nothing_is_taken(tmp_path: Path) -> None:
    found = study_of(tmp_path, {UNSAFE: 1000, cell("xfs", barrier=False): 1200})
    told = first_of(found)
    assert (Answered.NOTHING, "", None) == (told.answered, told.durability, told.taken)
    assert lines_of(found)[0] == "Not yet  read-write: no cell is known to survive a power cut, so take none."


def doubted(run: RunFigures, _: Cell, __: ScheduledVisit) -> RunFigures:
    return replace(run, validity=Validity.SUSPECT, validity_reasons=planted("the client was saturated"))


def test_of_suspect_runs_alone_there_is_no_answer_and_the_doubt_is_said(tmp_path: Path) -> None:
    recipe = Recipe(cells=(EXT4, XFS), runs=(RUN,), repetitions=5, course_s=2, canaries=0)
    found = overview(write_changed_study(tmp_path / "study", recipe, doubted))
    told = headline(found)
    assert Answered.NOTHING is told.answers[0].answered
    assert [(NotTakenFor.SUSPECT, (EXT4.id, XFS.id))] == [
        (each.why, tuple(sorted(each.cells, key=[EXT4.id, XFS.id].index)))
        for each in told.answers[0].not_taken
    ]
    assert told.following
    assert any("not trusted: " in line for line in lines_of(found))


def test_the_doubt_that_is_said_of_several_cells_is_one_that_they_share(tmp_path: Path) -> None:
    def each_its_own(run: RunFigures, cell: Cell, _: ScheduledVisit) -> RunFigures:
        own = planted(f"the cache of {cell.filesystem.type} was filling", code=cell.filesystem.type)
        shared = planted("others were at work", code="shared")
        return replace(run, validity=Validity.SUSPECT, validity_reasons=(*own, *shared))

    recipe = Recipe(cells=(EXT4, XFS), runs=(RUN,), repetitions=5, course_s=2, canaries=0)
    found = overview(write_changed_study(tmp_path / "study", recipe, each_its_own))
    (told,) = headline(found).answers[0].not_taken
    assert ("others were at work", {EXT4.id, XFS.id}) == (told.reason, set(told.having))


def test_failed_visits_are_named_with_the_command_that_does_them_again(tmp_path: Path) -> None:
    every = tuple((number, repetition) for number in range(2) for repetition in range(1, 6))
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1200}, failed=every)
    told = headline(found)
    assert () == told.answers
    (step,) = told.following
    assert (StepKind.RETRY, 10, None) == (step.kind, step.count, step.seconds)
    assert step.command.endswith("--repetitions 5 --retry-failed")
    assert lines_of(found)[0].startswith("Not yet  no run has a figure")


def test_one_cell_whose_runs_failed_alike_is_not_taken_and_is_to_be_mended(tmp_path: Path) -> None:
    lost = tuple((1, repetition) for repetition in range(1, 6))
    found = study_of(tmp_path, {EXT4: 1000, XFS: 5000, BTRFS: 900}, failed=lost)
    told = headline(found)
    assert told.answers[0].taken is not None
    assert EXT4.id == told.answers[0].taken.cell
    assert NotTakenFor.FAILED in {each.why for each in told.answers[0].not_taken}
    # Trying again what failed five times for one reason does not help.
    assert (StepKind.MEND, 5) == (told.following[0].kind, told.following[0].count)
    assert "no space" in told.following[0].why


def test_the_writing_run_is_the_answer_and_the_reading_one_a_line(tmp_path: Path) -> None:
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1200}, runs=("read-only", RUN))
    told = headline(found)
    assert [RUN, "read-only"] == [each.run[1] for each in told.answers]
    assert any(line.startswith("Also") and "read-only: xfs" in line for line in lines_of(found))


def test_no_cell_like_the_default_is_said(tmp_path: Path) -> None:
    found = study_of(tmp_path, {BTRFS: 1000, XFS: 1200})
    told = first_of(found)
    assert (None, False) == (told.default, told.is_default)
    assert "is not known" in " ".join(lines_of(found))


@pytest.mark.parametrize("distribution", ["Debian GNU/Linux 13 (trixie)", "Rocky Linux 9.4"])
def test_the_default_is_that_of_the_distribution(tmp_path: Path, distribution: str) -> None:
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1000, BTRFS: 1500})
    found = replace(found, study=replace(found.study, machine=replace(MACHINE, distribution=distribution)))
    told = first_of(found).default
    assert told is not None
    assert told.other.cell == (EXT4.id if distribution.startswith("Debian") else XFS.id)


NAMES = "x" * 10_000


def test_names_of_any_length_and_markup_stay_within_eight_lines_of_80_columns(tmp_path: Path) -> None:
    long = cell("ext4", mount_options=(NAMES,))
    found = study_of(tmp_path, {long: 1000, cell("xfs", mount_options=(HOSTILE,)): 1200})
    for line in lines_of(found):
        assert len(line) <= 80 or line.endswith("\\") or "/" in line
    whole = fitted(headline_lines(headline(found)), most=None)
    assert not any(NAMES in line for line in whole if not line.startswith(" "))


def test_no_number_is_broken_at_any_width(tmp_path: Path) -> None:
    found = study_of(tmp_path, {EXT4: 1000, UNSAFE: 1900, XFS: 1083, BTRFS: 600}, repetitions=3)
    lines = headline_lines(headline(found))
    whole = " ".join(fitted(lines, columns=500, most=None))
    numbers = set(re.findall(r"[×+-]?\d[\d,.]*", whole))
    for columns in range(40, 120, 7):
        assert (
            set(re.findall(r"[×+-]?\d[\d,.]*", " ".join(fitted(lines, columns=columns, most=None))))
            == numbers
        )


def names_of(told: Headline) -> dict[str, str]:
    return {name: cell for cell, name in cell_names(told.found).items()}


def test_power_cuts_name_what_separates_bad_cells_from_sound_ones(tmp_path: Path) -> None:
    found = overview(power_cut_study(tmp_path / "study", recipe=CUT_RECIPE))
    told = headline(found)
    assert told.cuts is not None
    assert not told.cuts_first
    sound = {each.cell for each in told.cuts.sound}
    named = names_of(told)
    assert {named["ext4 barrier"], named["xfs"]} == sound
    groups = {group.name: group for group in told.cuts.groups}
    assert {"", "nobarrier"} == set(groups)
    assert groups[""].bad[0].corrupt
    assert (0, True) == (groups["nobarrier"].bad[0].corrupt, groups["nobarrier"].bad[0].lost > 0)
    assert [named["ext4 barrier"]] == [each.cell for each in groups["nobarrier"].otherwise]
    told_cells = {each.cell for group in told.cuts.groups for each in group.bad}
    assert told.answers[0].taken is None or told.answers[0].taken.cell not in told_cells


def test_no_number_of_good_cuts_makes_a_cell_safe_whose_settings_promise_less(tmp_path: Path) -> None:
    found = overview(power_cut_study(tmp_path / "study", recipe=replace(CUT_RECIPE, runs=(), repetitions=1)))
    xfs = {name: cell for cell, name in cell_names(found).items()}["xfs"]
    facts = found.cells[xfs]
    assert facts.durability is not None
    less = replace(
        facts, durability=replace(facts.durability, volatile_cache=durability.UNSAFE, volatile_cache_512=None)
    )
    lines = [
        (each.head, each.text)
        for each in headline_lines(headline(replace(found, cells={**found.cells, xfs: less})))
    ]
    assert [] == [text for head, text in lines if head == "Safe" and "xfs" in text]
    (promised,) = [text for _, text in lines if "by their settings" in text]
    assert promised.startswith("by their settings, although none of")
    assert promised.endswith(": xfs.")


def test_no_bad_cut_is_bounded_and_the_next_bound_has_its_price(tmp_path: Path) -> None:
    found = overview(power_cut_study(tmp_path / "study", recipe=replace(CUT_RECIPE, runs=(), repetitions=1)))
    told = headline(found)
    assert told.cuts_first
    assert told.cuts is not None
    cuts = told.cuts.sound[0].tally.cuts
    words = " ".join(lines_of(found))
    assert (
        f"none of {cuts} cuts of each was bad, so at most {100 * proportion(0, cuts).high:.2g} % are" in words
    )
    step = next(each for each in told.following if each.kind is StepKind.CUTS)
    assert step.bound is not None
    assert step.bound < proportion(0, cuts).high
    assert step.repetitions is not None
    assert step.count == cuts * step.repetitions


def test_trials_for_a_bound_are_the_fewest_that_reach_it() -> None:
    for share in (0.3, 0.05, 0.025, 0.001):
        trials = trials_for(share)
        assert proportion(0, trials).high <= share * (1 + 1e-9)
        assert trials == 1 or proportion(0, trials - 1).high > share
    for share in (0.0, 1.0):
        with pytest.raises(ValueError, match="lies between 0 and 1"):
            trials_for(share)


def test_commands_are_those_of_the_visit_without_its_label_and_its_force(tmp_path: Path) -> None:
    study = write_study(
        tmp_path / "study", Recipe(cells=(EXT4,), runs=(RUN,), repetitions=1, course_s=2, canaries=0)
    )
    record = read(VisitRecord, next(study.glob("visits/ext4*/*/*/visit.json")))
    mount = "/run/bedplate/1-2/mount"
    told = {
        "jfs": (
            ("mkfs.jfs", "-q", "-L", "bedplate", "-J", "journal_dev", "/dev/loop1"),
            ("mkfs.jfs", "-q", "-L", "bedplate", "-J", "device=/dev/loop1", "/dev/loop0"),
            ("mount", "-t", "jfs", "/dev/loop0", mount),
        ),
        "xfs": (
            ("mkfs.xfs", "-q", "-K", "-f", "-L", "bedplate", "-l", "logdev=/dev/loop1", "/dev/loop0"),
            ("mount", "-t", "xfs", "-o", "noatime,logdev=/dev/loop1", "/dev/loop0", mount),
        ),
        "ext4": (
            ("mke2fs", "-q", "-F", "-t", "ext4", "-E", "nodiscard", "-L", "bedplate", "/dev/loop0"),
            ("mount", "-t", "ext4", "-o", "barrier=1", "/dev/loop0", mount),
        ),
        "zfs": (
            ("zpool", "create", "-f", "-t", "bedplate-loop0", "-o", "ashift=12", "bedplate", "/dev/loop0p1"),
            ("mount", "-t", "zfs", "bedplate-loop0", mount),
        ),
    }
    expected: dict[str, tuple[str | None, str, str]] = {
        "jfs": (
            "mkfs.jfs -J journal_dev JOURNAL_DEVICE",
            "mkfs.jfs -J device=JOURNAL_DEVICE DEVICE",
            "mount -t jfs DEVICE DIRECTORY",
        ),
        "xfs": (
            None,
            "mkfs.xfs -K -l logdev=JOURNAL_DEVICE DEVICE",
            "mount -t xfs -o noatime,logdev=JOURNAL_DEVICE DEVICE DIRECTORY",
        ),
        "ext4": (None, "mke2fs -t ext4 -E nodiscard DEVICE", "mount -t ext4 -o barrier=1 DEVICE DIRECTORY"),
        "zfs": (None, "zpool create -o ashift=12 POOL DEVICE", "mount -t zfs POOL DIRECTORY"),
    }
    for kind, commands in told.items():
        own = replace(
            record, cell=cell(kind), commands=(("losetup", "/dev/loop0"), *commands, ("umount", mount))
        )
        assert expected[kind] == command_lines(own)
    assert (None, None, None) == command_lines(replace(record, commands=(("mkfs.xfs", "/dev/loop0"),)))


def test_the_last_lines_of_a_command_are_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1200}, repetitions=3)
    say_answer(found.study.directory)
    assert ["", *lines_of(found)] == capsys.readouterr().out.splitlines()


def test_that_processors_were_emulated_stands_within_the_eight_lines(tmp_path: Path) -> None:
    truth = {EXT4: 1000.0, UNSAFE: 1900.0, XFS: 1083.0}
    found = study_of(tmp_path, truth, runs=("read-only", RUN), provenance={"accelerator": "tcg"})
    assert any(line.startswith("But") and "mulated processors" in line for line in lines_of(found))


def test_what_a_system_makes_by_itself_is_neither_another_type_nor_without_barriers(tmp_path: Path) -> None:
    assert "Debian" in MACHINE.distribution
    only_xfs = study_of(tmp_path / "xfs", {XFS: 1000})
    assert () == defaults_of(only_xfs).cells
    without = study_of(tmp_path / "without", {UNSAFE: 1000})
    assert () == defaults_of(without).cells
    assert 1 == len(defaults_of(study_of(tmp_path / "with", {EXT4: 1000})).cells)


def test_a_device_that_is_erased_is_named_once_more(tmp_path: Path) -> None:
    """Without it `extend` would refuse."""
    found = study_of(tmp_path, {EXT4: 1000, XFS: 1003}, repetitions=2)
    (_, command) = step_of(found)
    assert "--erase" not in command
    plan = 'title = "t"\n[scratch_device]\ndevice = "/dev/disk/by-id/ab"\n[[filesystem]]\ntype = "ext4"\n'
    erasing = replace(found, study=replace(found.study, plan_text=plan))
    (_, command) = step_of(erasing)
    assert command.endswith(" --repetitions 5 --erase /dev/disk/by-id/ab")
    damaged = replace(found, study=replace(found.study, plan_text="no plan"))
    assert step_of(damaged) == step_of(found)


def step_of(found: Overview) -> tuple[StepKind, str]:
    (step,) = headline(found).following
    return step.kind, step.command


def test_types_have_a_confidence_of_their_own_and_are_one_family(tmp_path: Path) -> None:
    """Two classes of a protected cache are two words of one class: their lines do not vanish."""
    sizes = (4096, 8192, 16384)
    truth = {
        replace(one, build=replace(one.build, block_size_bytes=size)): speed
        for size in sizes
        for one, speed in ((EXT4, 1000.0), (XFS, 1100.0), (BTRFS, 700.0))
    }
    found = study_of(tmp_path, truth, scatter=0.015, repetitions=3)
    (own,) = headline(found).answers
    assert {("ext4",), ("btrfs",)} == {tuple(level for _, level in each.contender) for each in own.types}
    together = [
        answer([found], ComparisonQuestion(f"type={others}", f"type={kind}", workload=RUN, metrics=("tps",)))
        for kind, others in (("xfs", "btrfs,ext4"), ("btrfs", "ext4"))
    ]
    one_family = {each.comparison.difference_confidence for each in pooled_pairs(*together)}
    assert one_family == {each.comparison.difference_confidence for each in own.types}
    (note,) = (line.text for line in headline_lines(headline(found)) if line.head == "Note")
    assert f"{100 * max(filter(None, (*one_family, own.confidence))):.4g}" in note
