"""What `bedplate power-cut try` says to a program: one JSON document, and a JUnit file for a CI."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from bedplate.analysis.answer import headline
from bedplate.analysis.condition import Truth
from bedplate.analysis.overview import CellFacts, Overview
from bedplate.cli.cut_documents import cut_document, head_document, kinds_document
from bedplate.cuts.blame import Story
from bedplate.cuts.points import CUT_KINDS, Cuts, cut_kind, finding_of, is_bad_cut
from bedplate.cuts.records import PointRecord
from bedplate.cuts.runs import CutRun
from bedplate.errors import EXIT_CANNOT_TELL, EXIT_DONE, EXIT_SOME_RUNS_FAILED
from bedplate.installation import COMMAND
from bedplate.model.codec import json_fields
from bedplate.model.reason import sentences
from bedplate.study.power_cut_stories import run_names, stories_of, story_of_cut
from bedplate.terminal.advice_tables import advice_document
from bedplate.terminal.tables import power_cut_document
from bedplate.units import format_count, one_line


@dataclass(frozen=True)
class EngineTrial:
    """What `power-cut try` ended with.

    `left_out` are file systems that could not be tried here, `truths` what is known of the condition by cell, empty without one.
    """

    overview: Overview
    plan: Path
    report: Path
    left_out: Mapping[str, tuple[str, ...]]
    exit_status: int
    condition: str | None = None
    truths: Mapping[str, Truth] = field(default_factory=dict)

    @property
    def study(self) -> Path:
        """Its directory."""
        return self.overview.study.directory

    @property
    def again(self) -> str:
        """The command that records and cuts once more, into a study of its own."""
        return shlex.join(
            (COMMAND, "run", str(self.plan), "--study", str(self.study.with_name(f"{self.study.name}-again")))
        )

    @property
    def exit_reason(self) -> str:
        """Why the exit code is what it is."""
        if self.condition is not None:
            words = {
                EXIT_DONE: "does not hold of any cell",
                EXIT_SOME_RUNS_FAILED: "holds of a cell",
                EXIT_CANNOT_TELL: "is not known of a cell",
            }
            return f"--fail-if {self.condition}: {words[self.exit_status]}"
        if self.exit_status == EXIT_DONE:
            return "every visit was completed; what the cuts found changes the exit code only with --fail-if"
        return "not every visit was completed"

    @cached_property
    def names(self) -> Mapping[Path, str]:
        """The names by which `power-cut points` and `replay` know the runs, by their folders."""
        return {folder: name for name, folder in run_names(self.study).items()}


def tried_document(trial: EngineTrial) -> dict[str, Any]:
    """`power-cut try --json`: what `ask safe --json` has, every recording with its bad cuts, and the reason of the exit code."""
    return {
        **advice_document(headline(trial.overview)),
        "plan": str(trial.plan),
        "report": str(trial.report),
        "left_out": {kind: list(reasons) for kind, reasons in trial.left_out.items()},
        "cells": [_tried_cell(trial, cell) for cell in trial.overview.cells.values()],
        "condition": trial.condition,
        "again": trial.again,
        "exit_status": trial.exit_status,
        "exit_reason": trial.exit_reason,
    }


def _tried_cell(trial: EngineTrial, cell: CellFacts) -> dict[str, Any]:
    levels = trial.overview.study.schedule.cells[cell.id]
    truth = trial.truths.get(cell.id)
    return {
        **json_fields(levels, "filesystem=filesystem.type engine=build.engine settings=cluster.settings"),
        **json_fields(cell, "cell=id label=label.full durability declared"),
        "condition_holds": None if truth is None else truth.value,
        "reasons": _failures(trial, cell),
        "power_cuts": [
            {**document, **_tried_run(trial, run)}
            for document, run in zip(power_cut_document(cell), cell.cuts, strict=True)
        ],
    }


def _failures(trial: EngineTrial, cell: CellFacts) -> list[str]:
    """Why runs of a cell failed, or are not believed."""
    reasons = (
        reason for line in trial.overview.measurements if line.cell == cell.id for reason in line.reasons
    )
    return list(dict.fromkeys(sentences(reasons)))


def _tried_run(trial: EngineTrial, run: CutRun) -> dict[str, Any]:
    name, stories = trial.names[run.directory], stories_of(run.directory)
    records = (*run.cuts.points, *run.cuts.recuts)
    return {
        **head_document(name, run.directory, run.cuts),
        "kinds": kinds_document(records, run.cuts),
        "bad_cuts": [
            {
                **cut_document(record, run.cuts, stories),
                "sentence": _sentence(record, run.cuts, stories),
                "replay": _replay_command(trial.study, name, record),
            }
            for record in sorted(records, key=lambda record: record.point.number)
            if is_bad_cut(record)
        ],
    }


def _sentence(record: PointRecord, cuts: Cuts, stories: Mapping[int, Story]) -> str:
    """What one cut came to, in a line: the finding, the first thing that was wrong, and whose fault it is where that is known."""
    point = record.point
    where = f", {point.recovery_words}" if point.recovery_words else ""
    story = story_of_cut(record, stories)
    words = [f"cut {point.number} ({point.profile.value}{where}): {finding_of(record, cuts.recording)}"]
    words += record.problems[:1]
    if story is not None:
        words.append(story.lines[-1])
    return one_line("; ".join(words))


def _replay_command(study: Path, name: str, record: PointRecord) -> str:
    number = str(record.point.number)
    return shlex.join(
        (COMMAND, "power-cut", "replay", str(study), name, number, "--keep", f"{name}-{number}")
    )


def junit_text(trial: EngineTrial) -> str:
    """`power-cut try --junit`: a suite for each recording, with a case for its verdict and for each kind of cut.

    A case fails by the bad cuts of its kind, unless the condition of --fail-if does not hold of the cell. What failed, or has no verdict, is an
    error; what could not be tried here is skipped, with a condition an error.
    """
    suites = [suite for cell in trial.overview.cells.values() for suite in _suites(trial, cell)]
    skipped = [*trial.left_out.items(), *((label.full, why) for label, why in trial.overview.pruned)]
    # Of what was not tried nothing is known, and a condition asks.
    outcome = "skipped" if trial.condition is None else "error"
    suites += [
        _suite(name, [_case(name, "verdict", outcome, "; ".join(reasons))]) for name, reasons in skipped
    ]
    root = ET.Element("testsuites", name=one_line(trial.overview.study.facts.title))
    root.extend(suites)
    _count(root)
    ET.indent(root)
    return f"{ET.tostring(root, encoding='unicode', xml_declaration=False)}\n"


def _suites(trial: EngineTrial, cell: CellFacts) -> Iterator[ET.Element]:
    label = cell.label.full
    truth = trial.truths.get(cell.id)
    if not cell.cuts:
        reasons = _failures(trial, cell) or ["no power was cut"]
        yield _suite(label, [_case(label, "verdict", "error", "; ".join(reasons))])
    for run in cell.cuts:
        name = trial.names[run.directory]
        kinds = dict.fromkeys(CUT_KINDS.values())
        cases = [_verdict_case(trial, name, run, truth)]
        cases += [case for kind in kinds if (case := _kind_case(name, kind, run, truth)) is not None]
        yield _suite(label, cases)


def _verdict_case(trial: EngineTrial, run_name: str, run: CutRun, truth: Truth | None) -> ET.Element:
    """Whether the experiment holds, what is wrong without any cut, and what the condition came to."""
    verdict = run.verdict
    condition = f"--fail-if {trial.condition}"
    if verdict.refused:
        return _case(run_name, "verdict", "error", f"refused: {'; '.join(sentences(verdict.refused))}")
    if truth is Truth.CANNOT_TELL:
        return _case(run_name, "verdict", "error", f"{condition}: {truth.value}")
    if truth is Truth.HOLDS:
        return _case(run_name, "verdict", "failure", f"{condition}: {truth.value}")
    if verdict.without_cut is not None and truth is None:
        return _case(run_name, "verdict", "failure", str(verdict.without_cut))
    return _case(run_name, "verdict")


def _kind_case(run_name: str, kind: str, run: CutRun, truth: Truth | None) -> ET.Element | None:
    """The cuts of one kind; None without any."""
    records = [record for record in (*run.cuts.points, *run.cuts.recuts) if cut_kind(record) == kind]
    if not records:
        return None
    recoveries = run.verdict.recoveries
    if records[0].point.recovery_of is not None and recoveries is not None and recoveries.uncounted:
        return _case(run_name, kind, "skipped", "; ".join(sentences(recoveries.uncounted)))
    bad_records = sorted(filter(is_bad_cut, records), key=lambda record: record.point.number)
    if not bad_records:
        return _case(run_name, kind)
    stories = stories_of(run.directory)
    lines = "\n".join(_sentence(record, run.cuts, stories) for record in bad_records)
    words = f"{len(bad_records):,} of {format_count(len(records), 'cut')} bad"
    return _case(run_name, kind, "system-out" if truth is Truth.FAILS else "failure", words, lines)


def _suite(label: str, cases: Iterable[ET.Element]) -> ET.Element:
    suite = ET.Element("testsuite", name=one_line(label))
    suite.extend(cases)
    _count(suite)
    return suite


def _case(class_name: str, name: str, outcome: str = "", words: str = "", lines: str = "") -> ET.Element:
    """One that passed, or with an element of that name. Characters that XML cannot have, as other unprintable ones, become question marks."""
    case = ET.Element("testcase", classname=one_line(class_name), name=name)
    if outcome == "system-out":
        ET.SubElement(case, outcome).text = f"{words}\n{lines}"
    elif outcome:
        ET.SubElement(case, outcome, message=one_line(words)).text = lines or None
    return case


def _count(element: ET.Element) -> None:
    """How many cases are below it, and how they ended."""
    element.set("tests", str(len(list(element.iter("testcase")))))
    for name, plural in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(plural, str(len(list(element.iter(name)))))
