"""`bedplate run` and `bedplate extend`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.cli.planning import Prospect, prospect, prospect_of
from bedplate.cli.prepare import ensure_packages
from bedplate.errors import (
    EXIT_DONE,
    EXIT_SOME_RUNS_FAILED,
    DeviceRefused,
    PlanError,
    RequirementMissing,
    StudyError,
)
from bedplate.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.executor.display import Display
    from bedplate.model.plan import Plan
    from bedplate.study.store import StudyStore


def run(
    plan: Path, study: Path, *, erase: tuple[str, ...], erase_foreign: bool, retry_failed: bool, yes: bool = False
) -> int:
    """Run a plan into a study, or go on with it."""
    from bedplate.executor.display import display_for_terminal  # noqa: PLC0415
    from bedplate.study.store import StudyStore  # noqa: PLC0415

    found = prospect(plan)
    _check_before_touching(found, erase)
    with display_for_terminal() as display, StudyStore.open_or_create(study, found) as store:
        return measure(found, store, display, erase=erase, erase_foreign=erase_foreign, retry_failed=retry_failed, yes=yes)
