"""Runs, cuts and stories of `bedplate power-cut` as JSON documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bedplate.cuts.blame import Story
from bedplate.cuts.points import CONTROL, CUT_KINDS, Cuts, cut_kind, finding_of, is_bad_cut, read_cuts, tally
from bedplate.cuts.records import LOG_FILE, PointRecord
from bedplate.cuts.runs import upper_share
from bedplate.cuts.verdict import recoveries_not_whole
from bedplate.errors import StudyError
from bedplate.model import limits
from bedplate.model.codec import json_fields
from bedplate.model.reason import sentences
from bedplate.study.power_cut_stories import explaining_stories, read_stories, story_of_cut

_CUT = "position profile placement control recovery_of second"

_FOUND = "volatile_writes volatile_bytes kept_writes acknowledged lost_transactions lost_ms consistent failed_once problems"


def runs_document(study: Path, folders: Mapping[str, Path]) -> dict[str, Any]:
    """`power-cut points STUDY`: each run with its cuts by kind, and what its stories say together. StudyError without a run."""
    if not folders:
        raise StudyError(f"{study} has no run of power cuts")
    return {"study": str(study), "runs": [_run(study, name, folder) for name, folder in folders.items()]}


def _run(study: Path, name: str, folder: Path) -> dict[str, Any]:
    cuts = read_cuts(folder)
    records = (*cuts.points, *cuts.recuts)
    stories = explaining_stories(study, folder, cuts)
    return {
        **head_document(name, folder, cuts),
        "log_kept": limits.is_there(folder / LOG_FILE),
        "kinds": kinds_document(records, cuts),
        "good_at_second_look": sum(record.failed_once is not None for record in records),
        "explained": len(stories),
        "faults": [
            {"fault": party, "fault_code": code, "cuts": count}
            for (party, code), count in Counter(
                (story.party.value, story.reason.code) for story in stories
            ).most_common()
        ],
    }


def head_document(name: str, folder: Path, cuts: Cuts) -> dict[str, Any]:
    """Which run, what of it cannot be read, and what was found without any cut."""
    return {
        "name": name,
        "directory": str(folder),
        "damaged": list(cuts.problems),
        "without_cut": [] if cuts.recording is None else list(cuts.recording.without_cut),
        "recovery_refused": list(sentences(recoveries_not_whole(cuts))),
    }


def kinds_document(records: Iterable[PointRecord], cuts: Cuts) -> dict[str, Any]:
    """The cuts of each kind, the bad ones, and what was found; of drawn ones how large the share of bad ones may be."""
    by_kind: dict[str, list[PointRecord]] = {kind: [] for kind in (*CUT_KINDS.values(), CONTROL)}
    for record in records:
        by_kind[cut_kind(record)].append(record)
    document = {}
    for kind, alike in by_kind.items():
        counts = Counter(finding_of(record, cuts.recording) for record in alike)
        bad = sum(record.outcome.is_bad for record in alike)
        document[kind] = {"cuts": len(alike), "bad": bad, "findings": dict(counts)}
        if kind == "drawn":
            share = None if cuts.recording is None else upper_share(tally(alike, cuts.recording))
            document[kind]["bad_share_high"] = share
    return document


def points_document(study: Path, name: str, folder: Path, *, is_complete: bool) -> dict[str, Any]:
    """`power-cut points STUDY RUN`: the bad cuts in the order of their numbers, where `is_complete` all and the controls."""
    cuts, stories = read_cuts(folder), read_stories(study, folder)
    records = (*cuts.points, *cuts.recuts)
    shown = [
        record for record in records if is_complete or is_bad_cut(record) or record.failed_once is not None
    ]
    shown.sort(key=lambda record: (record.point.number, record.point.control))
    return {
        "study": str(study),
        **head_document(name, folder, cuts),
        "kinds": kinds_document(records, cuts),
        "cuts": [cut_document(record, cuts, stories) for record in shown],
    }


def cut_document(record: PointRecord, cuts: Cuts, stories: Mapping[int, Story]) -> dict[str, Any]:
    """One cut by the names of the table `power_cuts` of the export, and its story where there is one."""
    story = story_of_cut(record, stories)
    return {
        "number": record.point.number,
        "kind": cut_kind(record),
        **json_fields(record.point, _CUT),
        "finding": finding_of(record, cuts.recording),
        "weaker": None if record.weaker is None else record.weaker.profile.value,
        **json_fields(record, _FOUND),
        "fault": None if story is None else story.party.value,
        "fault_code": None if story is None else story.reason.code,
        "story": None if story is None else list(story.lines),
    }


def story_document(name: str, folder: Path, story: Story) -> dict[str, Any]:
    """What `power-cut blame` found of one cut."""
    return {
        "name": name,
        "directory": str(folder),
        "number": story.evidence.point,
        "fault": story.party.value,
        "fault_code": story.reason.code,
        "reason": str(story.reason),
        "story": list(story.lines),
        **json_fields(story, "evidence"),
    }
