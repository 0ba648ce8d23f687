"""A search read back from its study: who leads, what comes next, how it ended, and what no cell may be named for."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_search import RUN, VISIT_S, SearchRecipe, write_search
from tests.support.studies.synthetic_study import Recipe, cells_of, write_study, write_visit
from tests.support.studies.written import write

from bedplate.analysis.answer import instead_lines
from bedplate.analysis.overview import overview, overview_of
from bedplate.analysis.search import accepted_words, answer_lines, progress_words, searched, shown_first
from bedplate.cli.app import call
from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.cell import RunSpec
from bedplate.model.figure import RunFigures
from bedplate.model.levels import Levels
from bedplate.model.metrics import censored
from bedplate.model.plan import NotWorse, ScheduledVisit, SearchRecord
from bedplate.model.visit import Durability, Validity
from bedplate.page.views import proof_rows
from bedplate.statistics.search import Ending, SearchEnd
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.analysis.search import Searched
    from bedplate.study.stored import Study

FASTEST = "xfs · fs 4 KiB · db 4 KiB"


def read(directory: Path) -> Searched:
    found = searched(overview(directory))
    assert found is not None
    return found


def read_of(study: Study) -> Searched:
    found = searched(overview_of(study))
    assert found is not None
    return found


def test_a_study_that_is_no_search_has_none(tmp_path: Path) -> None:
    assert searched(overview(write_study(tmp_path / "study"))) is None


def test_it_names_the_planted_cell_with_its_proof_and_its_gain(tmp_path: Path) -> None:
    found = read(write_search(tmp_path / "study"))
    end = found.end
    assert end is not None
    assert (Ending.THIS, [FASTEST]) == (
        end.ending,
        [found.labels[found.id_of(each)].full for each in end.cells],
    )
    assert end.proof is not None
    gain = end.proof.gain
    assert gain is not None
    assert gain.low is not None
    assert 1.1 < gain.low < 1.35
    assert found.budget_s > found.spent_s == len(found.tried) * VISIT_S


def test_the_answer_has_its_figure_its_repetitions_its_margin_and_the_best_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = write_search(tmp_path / "study")
    found = read(directory)
    assert found.end is not None
    best = found.cells[found.end.cells[0]]
    rivals = [each for each in found.cells if each.proved and each.id != best.id]
    rival = max(rivals, key=lambda each: (each.proved and each.proved.centre) or 0.0)
    first, second, *others = answer_lines(found)
    assert best.proved is not None
    assert rival.proved is not None
    assert first.startswith(f"This one: {best.label.full}, with {best.proved.centre:,.0f} tps (")
    assert first.endswith(") as the mean of 5 trusted repetitions of the proof.")
    assert "No rival of its proof may be better by more than 5 %." == second
    proof = next(line for line in others if line.startswith("  proof "))
    assert f"  proof        {rival.label.full} beside it, with {rival.proved.centre:,.0f} tps (" in proof
    assert ", n = 5: ×" in proof
    # Every place has the sentence, and a program the figures.
    assert first == instead_lines(found.overview)[0].text
    assert f"this one: {best.label.full}, {best.proved.centre:,.0f} tps; " in progress_words(found)
    for command in ("advise", "summary"):
        assert not call([command, str(directory)])
        said = " ".join(capsys.readouterr().out.split())
        assert f"{first} {second}" in said
        assert proof.split(": ×")[0].removeprefix("  proof        ") in said or command == "summary"
    assert not call(["show", str(directory), "--advice", "--json"])
    told = json.loads(capsys.readouterr().out)["search"]
    assert 0.05 == told["margin"]
    (of_best,), of_rival = told["figures"], told["best_of_the_others"]
    for cell, told_of in ((best, of_best), (rival, of_rival)):
        assert cell.proved is not None
        assert (cell.id, "tps", cell.proved.centre, cell.proved.n, True) == tuple(
            told_of[key] for key in ("cell", "metric", "value", "trusted_repetitions", "of_the_proof")
        )


@pytest.mark.parametrize(
    ("best", "words"),
    [
        ("latency_ms_p99", "with p99 14.07 ms (13.31 to 14.88) as"),
        ("tps_cv", "with cv of tps 0.2000 (0.2000 to 0.2000) as"),
    ],
)
def test_other_figures_stand_with_their_names_and_units(tmp_path: Path, best: str, words: str) -> None:
    study = read_study(write_search(tmp_path / "study"))
    assert study.search is not None
    found = read_of(replace(study, search=replace(study.search, best=best)))
    assert words in answer_lines(found)[0]


def _changed(study: Study, cell: str, blocks: set[int], **times: float) -> Study:
    """With these figures of a cell so many times as large, in these blocks."""

    def changed(run: RunFigures) -> RunFigures:
        figures = tuple(
            replace(each, value=each.value * times[each.metric])
            if each.metric in times and each.value is not None
            else each
            for each in run.figures
        )
        return replace(run, figures=figures)

    return replace(
        study,
        visits=tuple(
            replace(visit, runs=tuple(map(changed, visit.runs)))
            if (visit.record.key.cell, visit.record.key.repetition - 1 in blocks) == (cell, True)
            else visit
            for visit in study.visits
        ),
    )


def test_what_the_named_cell_is_worse_in_is_told(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study"))
    found = read_of(study)
    assert found.end is not None
    assert not [line for line in answer_lines(found) if line.startswith("  but ")]
    proved = {each.block for each in found.tried if each.proof}
    slow = _changed(study, found.id_of(found.end.cells[0]), proved, latency_ms_p99=3.0)
    lines = [line for line in answer_lines(read_of(slow)) if line.startswith("  but ")]
    # Beside the best of the others and the plan's first cell.
    assert 2 == len(lines)
    assert all(line.startswith("  but          its p99 is ") and " times (" in line for line in lines)
    # What a bound was set to has a line of its own.
    assert slow.search is not None
    bounded = replace(slow, search=replace(slow.search, not_worse=(NotWorse("latency_ms_p99", 9.0),)))
    assert not [line for line in answer_lines(read_of(bounded)) if line.startswith("  but ")]


def test_a_cell_that_looks_better_is_in_the_answer_with_what_speaks_against_it(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study"))
    found = read_of(study)
    other = next(each for each in found.cells if each.measured.n and each.proved is None)
    doubted = read_of(
        replace(
            study,
            visits=tuple(
                replace(
                    visit,
                    runs=tuple(
                        replace(
                            run,
                            validity=Validity.SUSPECT,
                            reasons=planted("late"),
                            figures=tuple(
                                replace(each, value=9000.0) if each.metric == "tps" else each
                                for each in run.figures
                            ),
                        )
                        for run in visit.runs
                    ),
                )
                if visit.record.key.cell == other.id
                else visit
                for visit in study.visits
            ),
        )
    )
    # Beside the end that the records had before the doubt.
    vars(doubted)["after"] = found.end
    (line,) = (line for line in answer_lines(doubted) if "looks better" in line)
    assert (
        f"  but          {other.label.full} looks better with 9,000 tps in 1 repetition; it is not believed"
        == line
    )


@pytest.mark.parametrize("changes", [False, True])
def test_a_machine_that_changed_is_told_beside_the_answer(tmp_path: Path, *, changes: bool) -> None:
    directory = write_search(tmp_path / "study")
    study = read_study(directory)
    recipe = Recipe(filesystem_blocks=(4096,), course_s=5, canaries=1)
    cell = cells_of(recipe)[0]
    specs = (RunSpec("canary", recipe.dataset.workload, Levels(script="read-write", clients=1)),)
    count = len(study.schedule.visits)
    visits = [
        ScheduledVisit(count + number, cell.id, recipe.dataset.id, number + 1, canary=True)
        for number in range(12)
    ]
    runs = {recipe.dataset.id: (*specs, *study.schedule.runs[recipe.dataset.id])}
    write(
        directory / "schedule.json",
        replace(study.schedule, visits=(*study.schedule.visits, *visits), runs=runs),
    )
    for number, visit in enumerate(visits):
        # The machine is half as fast from the middle on.
        factor = 0.5 if changes and number >= 6 else 1.0 + 0.001 * (number % 3)
        write_visit(
            directory,
            recipe,
            cell,
            dataset=recipe.dataset,
            specs=specs,
            visit=visit,
            number=0,
            change=lambda run, *_, factor=factor: replace(
                run,
                figures=tuple(
                    replace(each, value=1000.0 * factor) if each.metric == "tps" else each
                    for each in run.figures
                ),
            ),
        )
    found = read(directory)
    assert len(study.visits) + 12 == len(found.overview.study.visits)
    assert changes == any(
        line.startswith("  but          The canary's tps changed with time") for line in answer_lines(found)
    )


def test_every_cell_of_the_plan_has_its_figures_apart(tmp_path: Path) -> None:
    found = read(write_search(tmp_path / "study"))
    cells = {each.label.full: each for each in found.cells}
    assert 24 == len(cells)
    best = cells[FASTEST]
    assert best.predicted is not None
    assert best.proved is not None
    assert best.predicted.low < best.predicted.value < best.predicted.high
    assert (5, best.believed) == (best.proved.n, best.measured.n)
    # A cell that nobody visited is predicted all the same, and less surely.
    unseen = next(each for each in found.cells if not each.visits and each.closed is None)
    assert unseen.predicted is not None
    assert (0, None) == (unseen.measured.n, unseen.proved)
    assert unseen.predicted.high / unseen.predicted.low > best.predicted.high / best.predicted.low
    unsafe = [each for each in found.cells if each.closed]
    assert 6 == len(unsafe)
    assert all(each.predicted is None and not each.visits for each in unsafe)


def test_what_is_proved_comes_first_even_where_cells_that_nobody_visited_have_more_chance(
    tmp_path: Path,
) -> None:
    found = read(write_search(tmp_path / "study"))
    likely = tuple(replace(cell, best=0.0 if cell.visits else 0.2) for cell in found.cells)
    # A cached property: what it holds is shown.
    found.__dict__["cells"] = likely
    proved = [cell.proved is not None for cell in shown_first(found)]
    assert sum(proved) > 1
    assert proved == sorted(proved, reverse=True)


def test_its_course_has_a_moment_for_each_block_and_ends_with_the_leader(tmp_path: Path) -> None:
    found = read(write_search(tmp_path / "study"))
    assert [block.number for block in found.record.blocks] == [moment.block for moment in found.course]
    assert found.lead is not None
    last = found.course[-1]
    assert (found.id_of(found.lead.leader), found.lead.chance) == (last.leader, last.chance)
    assert found.spent_s == last.spent_s
    assert 1 == pytest.approx(sum(last.best.values()))


def test_the_same_records_in_any_order_give_the_same_next_block(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=3)))
    shuffled = list(study.visits)
    random.Random(3).shuffle(shuffled)
    first, second = read_of(study), read_of(replace(study, visits=tuple(shuffled)))
    assert not isinstance(first.after, SearchEnd)
    assert first.after
    assert first.after == second.after


def test_while_visits_of_a_block_are_due_nothing_follows(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=3)))
    last = max(study.visits, key=lambda visit: visit.record.started_wall_s or 0.0)
    found = read_of(replace(study, visits=tuple(each for each in study.visits if each is not last)))
    assert (1, None, None) == (found.pending, found.after, found.end)
    assert found.lead is not None


def test_a_cell_of_another_class_is_closed_with_those_that_differ_in_the_build_alone(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=2)))
    unsafe = Durability("unsafe", "durable", "declared")
    visits = tuple(
        replace(visit, record=replace(visit.record, durability=unsafe))
        if visit.record.cell.filesystem.type == "xfs"
        else visit
        for visit in study.visits
    )
    found = read_of(replace(study, visits=visits))
    closed = [each for each in found.cells if each.closed and each.closed.code == "durability-not-asked"]
    assert 12 == len(closed)
    assert {"xfs", "ext4"} == {study.schedule.cells[each.id].filesystem.type for each in closed}
    assert any(not each.visits for each in closed if study.schedule.cells[each.id].filesystem.type == "xfs")
    assert found.lead is not None
    assert "xfs" != study.schedule.cells[found.id_of(found.lead.leader)].filesystem.type
    after = found.after
    assert not isinstance(after, SearchEnd)
    assert after
    shut = {each.id for each in closed}
    assert not any(found.id_of(number) in shut for block in after for number in block.cells)


def test_cells_that_are_the_same_in_force_are_one(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=3)))
    visited = list(dict.fromkeys(visit.record.key.cell for visit in study.visits))
    ids = [each.cell for each in (study.search.candidates if study.search else ())]
    first, second = sorted(visited, key=ids.index)[:2]
    visits = tuple(
        replace(visit, record=replace(visit.record, effective_digest="same"))
        if visit.record.key.cell in (first, second)
        else visit
        for visit in study.visits
    )
    found = read_of(replace(study, visits=visits))
    assert {ids.index(second): ids.index(first)} == found.entrants.same_as
    cells = {each.id: each for each in found.cells}
    assert cells[first].visits == cells[second].visits
    merged = cells[second].closed
    assert merged is not None
    assert "identical-in-force" == merged.code
    assert cells[first].closed is None


def test_a_run_in_doubt_takes_its_time_and_is_not_believed(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=2)))
    one = study.visits[0]
    doubted = replace(one, runs=tuple(replace(run, validity=Validity.SUSPECT) for run in one.runs))
    found = read_of(replace(study, visits=(doubted, *study.visits[1:])))
    before = read_of(study)
    assert before.spent_s == found.spent_s
    assert sum(each.value is not None for each in before.tried) - 1 == sum(
        each.value is not None for each in found.tried
    )


def test_where_no_run_is_believed_there_is_no_guess_and_each_doubt_is_counted(tmp_path: Path) -> None:
    recipe = SearchRecipe(budget_visits=14, blocks=1)
    study = read_study(write_search(tmp_path / "study", recipe))
    visits = tuple(
        replace(each, runs=tuple(replace(run, validity=Validity.SUSPECT, reasons=why) for run in each.runs))
        for at, each in enumerate(study.visits)
        for why in [
            (
                *planted(f"no timed checkpoint in {at} s", code="read-write-without-a-checkpoint"),
                *(planted("late", code="emulated-device-late") if at % 3 == 0 else ()),
            )
        ]
    )
    found = read_of(replace(study, visits=visits))
    total = len(visits)
    assert found.end == SearchEnd(Ending.NOT_KNOWN, (), 0.0, None, None, ())
    first, *rest = answer_lines(found)
    assert "Not known: none of its runs is believed." == first
    late = len(range(0, total, 3))
    assert [
        f"  doubted      {total} of {total} runs, which are not believed: the model has no figure of them",
        f"  doubted      {total} of {total} runs, such as: no timed checkpoint in 0 s",
        f"  doubted      {late} of {total} runs, such as: late",
    ] == [line for line in rest if line.startswith("  doubted ")]
    assert f"{total} of {total} runs not believed" in progress_words(found)
    assert any(
        "until what speaks against the runs is mended; then start a new search" in line for line in rest
    )


@pytest.mark.parametrize("alike", [True, False])
def test_where_every_cell_failed_alike_the_cause_is_named_and_nothing_is_tried_again(
    tmp_path: Path, *, alike: bool
) -> None:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(4096,), course_s=5, canaries=0)
    failed = tuple(
        (number, repetition) for number in range(len(cells_of(recipe))) for repetition in range(1, 9)
    )
    study = read_study(write_search(tmp_path / "study", SearchRecipe(recipe=replace(recipe, failed=failed))))
    visits = tuple(
        replace(
            visit,
            record=replace(
                visit.record,
                reasons=planted(
                    f"no space left{'' if alike else f' for {number}th {visit.record.cell.filesystem.type}'}"
                ),
            ),
        )
        for number, visit in enumerate(study.visits)
    )
    found = read_of(replace(study, visits=visits))
    assert not found.failed_alike
    first, *others = answer_lines(found)
    why = "every run failed alike: no space left" if alike else "no cell could be measured"
    assert f"Not known: {why}." == first
    assert alike == any("nothing, until that is mended; then start a new search" in line for line in others)
    assert not any("retry" in line or "--budget" in line for line in others)


def test_a_doubt_that_was_accepted_costs_no_run_and_is_said(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study"))
    assert study.search is not None
    why = planted("other programs used 60 % of the processors' time", code="others-at-work")
    doubted = tuple(
        replace(each, runs=tuple(replace(run, validity=Validity.SUSPECT, reasons=why) for run in each.runs))
        for each in study.visits
    )
    before = read_of(study)
    refused = read_of(replace(study, visits=doubted))
    accepted = read_of(
        replace(study, visits=doubted, search=replace(study.search, accepted=("other programs",)))
    )
    assert before.end is not None
    assert before.end == accepted.end
    assert refused.lead is None
    assert [each.measured for each in before.cells] == [each.measured for each in accepted.cells]
    assert f"{sum(len(each.runs) for each in study.visits)} runs in doubt count here" in accepted_words(
        accepted
    )
    assert any(accepted_words(accepted) in line for line in answer_lines(accepted))
    assert ("", "") == (accepted_words(before), accepted_words(refused))


def test_a_rival_whose_other_figure_the_proof_leaves_open_is_named_with_that_doubt(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study"))
    assert study.search is not None
    bound = (NotWorse("latency_ms_p99", 0.1),)
    found = read_of(replace(study, search=replace(study.search, not_worse=bound)))
    proof = read_of(study).proof
    assert proof is not None
    rival = next(each for each in proof.rivals if each != found.question.baseline)
    open_proof = replace(proof, open=(rival,), doubtful=(rival,))
    # That the statistics say so of such runs has a test of its own; here they say it.
    end = SearchEnd(Ending.ONE_OF, (proof.leader, rival), 0.9, 0.01, open_proof)
    vars(found).update(after=end, proof=open_proof)
    first, second, *others = answer_lines(found)
    assert first.startswith("One of these 2, ")
    assert (
        "Of 1 of them the proof leaves open whether they are worse in latency_ms_p99 than was allowed."
        == second
    )
    # Each that is named has its figure.
    assert 2 == sum(" tps (" in line and " trusted repetitions of the proof" in line for line in others)
    said = "leaves open whether it is worse in latency_ms_p99 than was allowed"
    assert 1 == sum(said in line for line in others)
    notes = [row.note for row in proof_rows(found) if row.note.startswith("still open")]
    assert ["still open, and whether it is worse in latency_ms_p99 than asked"] == notes


def test_another_doubt_beside_the_accepted_one_still_counts(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=2)))
    assert study.search is not None
    why = (*planted("other programs used 60 %"), *planted("the wall clock was stepped"))
    one = study.visits[0]
    doubted = replace(
        one, runs=tuple(replace(run, validity=Validity.SUSPECT, reasons=why) for run in one.runs)
    )
    asked = replace(study.search, accepted=("other programs",))
    found = read_of(replace(study, visits=(doubted, *study.visits[1:]), search=asked))
    assert len(study.visits) - 1 == sum(each.value is not None for each in found.tried)


def test_more_time_of_own_visits_counts_and_the_others_are_reckoned_by_it(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=2)))
    slow = tuple(
        replace(visit, record=replace(visit.record, whole_seconds=3 * VISIT_S)) for visit in study.visits
    )
    found = read_of(replace(study, visits=slow))
    assert {3 * VISIT_S} == set(found.entrants.space.seconds)
    assert len(found.tried) * 3 * VISIT_S == found.spent_s


def test_a_build_that_was_not_made_costs_its_first_cell_and_then_none(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=1)))
    record = study.search
    assert record is not None
    visited = {visit.record.key.cell for visit in study.visits}
    candidates = tuple(
        replace(each, build="made" if each.cell in visited else "lacking") for each in record.candidates
    )
    changed = replace(record, candidates=candidates, builds={"made": 100.0, "lacking": 260.0})
    found = read_of(replace(study, search=changed))
    seconds = dict(zip(found.entrants.cells, found.entrants.space.seconds, strict=True))
    assert {VISIT_S} == {seconds[cell] for cell in visited}
    assert {VISIT_S + 260} == {value for cell, value in seconds.items() if cell not in visited}
    assert len(study.visits) * VISIT_S + 100 == found.spent_s


def test_a_search_that_became_a_factorial_keeps_its_answer(tmp_path: Path) -> None:
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=3)))
    assert study.search is not None
    found = read_of(replace(study, search=replace(study.search, extended=5)))
    assert found.end is not None
    assert Ending.NOT_KNOWN == found.end.ending


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"durable": "somewhat"}, "durability 'somewhat'"),
        ({"dataset": "none-such"}, "'none-such'"),
        ({"budget_s": 0.0}, "its budget"),
        ({"version": 9}, "format 9"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    directory = write_search(tmp_path / "study", SearchRecipe(blocks=1))
    record = codec.read(SearchRecord, directory / "search.json")
    write(directory / "search.json", replace(record, **change))  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=words):
        read_study(directory)


def test_blocks_that_the_schedule_lacks_are_refused(tmp_path: Path) -> None:
    directory = write_search(tmp_path / "study", SearchRecipe(blocks=2))
    record = codec.read(SearchRecord, directory / "search.json")
    stranger = replace(record.blocks[0], number=2)
    write(directory / "search.json", replace(record, blocks=(*record.blocks, stranger)))
    with pytest.raises(StudyError, match="repetition 3 of the schedule lacks"):
        read_study(directory)
    assert (RUN,) == record.runs


def test_a_cell_that_nobody_visited_is_called_as_one_that_was_made_alike(tmp_path: Path) -> None:
    """One row of a map, and not one for what was read back beside one for what was asked."""
    plain = Recipe(filesystem_blocks=(None,), course_s=5, canaries=0)
    study = read_study(write_search(tmp_path / "study", SearchRecipe(blocks=2, recipe=plain)))
    found = read_of(study)
    made = {study.schedule.cells[each.id].filesystem for each in found.cells if each.visits}
    alike = [each for each in found.cells if study.schedule.cells[each.id].filesystem in made]
    assert [each for each in alike if not each.visits]
    assert {("default, 4 KiB", 4096)} == {
        (each.label.filesystem_block, each.label.filesystem_block_bytes) for each in alike
    }
    others = [each for each in found.cells if each not in alike]
    assert {"default"} == {each.label.filesystem_block for each in others}


def test_a_run_that_was_stopped_at_a_limit_counts_as_the_limit(tmp_path: Path) -> None:
    """Without it a cell that ends now and then would be as fast as its quick runs."""
    study = write_search(tmp_path / "study", SearchRecipe(blocks=2))
    path = min(study.glob("visits/*/*/1.1/runs/01-run/run.json"))
    run = codec.read(RunFigures, path)
    assert RUN == run.run
    figures = tuple(
        replace(censored("tps", 10.0), phase=each.phase, item=each.item) if each.metric == "tps" else each
        for each in run.figures
    )
    write(path, replace(run, figures=figures))
    assert 1 == [each.value for each in read(study).tried].count(10.0)
    assert not any(each.value is None for each in read(study).tried)
