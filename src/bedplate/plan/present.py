"""The JSON document of `bedplate plan --json`."""

from __future__ import annotations

from typing import Any

from bedplate.model.cell import Cell
from bedplate.model.codec import to_json
from bedplate.model.plan import Expansion, Plan, Schedule
from bedplate.model.reason import sentences
from bedplate.plan.estimate import StudyEstimate


def plan_document(
    plan: Plan, expansion: Expansion, schedule: Schedule, estimated: StudyEstimate
) -> dict[str, Any]:
    """What a plan comes to, ready for `json.dumps`.

    `cells` and `pruned` have `id`, `variant`, the asked `levels` by dotted name; `cells` also their
    `loads`, `pruned` their `reasons`.
    """
    return {
        "title": plan.title,
        "digest": plan.digest,
        "repetitions": plan.repetitions,
        "seed": schedule.seed,
        "executor": plan.executor,
        "scratch_device": to_json(plan.scratch_device),
        "dataset": plan.dataset_by,
        "cells": [
            {
                **_cell(planned.cell),
                "loads": [
                    {"id": load.dataset.id, **to_json(load.dataset), "runs": to_json(load.runs)}
                    for load in planned.loads
                ],
            }
            for planned in expansion.cells
        ],
        "pruned": [
            {**_cell(pruned.cell), "reasons": list(sentences(pruned.reasons))} for pruned in expansion.pruned
        ],
        "canary": None if expansion.canary is None else _cell(expansion.canary.cell),
        "schedule": to_json(schedule.visits),
        "estimate": to_json(estimated),
        "warnings": list(expansion.warnings),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {"id": cell.id, "variant": cell.variant, "levels": to_json(cell.levels)}
