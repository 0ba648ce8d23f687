"""What was asked, what was in force, and the commands that make a cell again."""

from __future__ import annotations

import shlex
from typing import Any

from bedplate.analysis.overview import Overview
from bedplate.analysis.wording import rounded
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, ReadBack, VisitRecord

Row = tuple[str, Any, Any, str]


def effective_document(found: Overview) -> dict[str, Any]:
    """Rows of name, asked, effective and source: `common` to all cells, and by cell what is its own.

    Each cell also has its commands, versions, flush counts and the reasons for its durability class.
    They come from the latest completed visit, from the latest one where none was completed.
    """
    records = {cell: record for cell in found.cells if (record := _representative(found, cell))}
    rows = {cell: tuple(_row(item) for item in record.comparisons) for cell, record in records.items()}
    common = set.intersection(*(set(found_rows) for found_rows in rows.values())) if rows else set()
    # With one cell everything is common, and the cell would look as if nothing were known of it.
    if len(rows) < 2:
        common = set()
    first = next(iter(rows.values()), ())
    return {
        "common": [list(row) for row in first if row in common],
        "cells": {
            found.cells[cell].id: _cell(record, [list(row) for row in rows[cell] if row not in common])
            for cell, record in records.items()
        },
    }


def _representative(found: Overview, cell: str) -> VisitRecord | None:
    records = [
        visit.record
        for visit in found.study.visits
        if visit.record.key.cell == cell and not visit.record.key.canary
    ]
    completed = [record for record in records if record.outcome is Outcome.COMPLETED]
    return max(completed or records, key=lambda record: record.started_wall_s or 0.0, default=None)


def _row(item: ReadBack) -> Row:
    return (item.name, _shown(item.asked), _shown(item.effective), item.source)


def _shown(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return rounded(value) if isinstance(value, float) else value


def _cell(record: VisitRecord, rows: list[list[Any]]) -> dict[str, Any]:
    return {
        "rows": rows,
        "commands": [shlex.join(command) for command in record.commands],
        "versions": dict(record.versions),
        "device": {name: _shown(value) for name, value in record.device_facts.items()},
        "flushes": [[c.device, c.pattern, c.calls, c.flushes] for c in record.flush_counts],
        "durability": list(sentences(record.durability.reasons)) if record.durability else [],
        "timings": [[timing.step, round(timing.seconds, 2)] for timing in record.timings],
        "kernel_messages": list(record.kernel_messages),
        "visit": f"repetition {record.key.repetition}, attempt {record.key.attempt}",
        "executor": record.executor,
    }
