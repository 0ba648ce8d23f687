"""`bedplate quickstart`: from nothing to a first report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.campaign.planning import own_plans
from bedplate.cli.answering import say_answer
from bedplate.errors import PlanError, RequirementMissing
from bedplate.host.ownership import first_made, give_to_caller
from bedplate.units import format_duration

if TYPE_CHECKING:
    from pathlib import Path


def quickstart(directory: Path, *, yes: bool) -> int:
    """Prepare, run plans/quick.toml, print the table, write the page, say what it answers."""
    from bedplate.campaign.planning import planned_study  # noqa: PLC0415
    from bedplate.campaign.preparation import is_root  # noqa: PLC0415
    from bedplate.cli.running import consent, run  # noqa: PLC0415

    plan = own_plans() / "quick.toml"
    if not is_root():
        raise RequirementMissing(
            "quickstart makes an image file, formats it and mounts it: that needs root",
            "go on with: sudo ./bedplate quickstart",
            "without root: `./bedplate doctor` says what this machine can run, "
            "`./bedplate plan plans/quick.toml` what would be done",
        )
    found = planned_study(plan)
    study = directory / "study"
    print(
        f"{found.plan.title}: {len(found.schedule.visits)} visits, about "
        f"{format_duration(found.estimate.seconds)} and {format_duration(found.estimate.build_seconds)} "
        f"more if PostgreSQL has to be built. Everything goes to {directory}; no device is erased."
    )
    page = directory / "report.html"
    made = (study, page) if directory.is_dir() else (first_made(directory),)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"--directory {directory} cannot be made: {error.strerror}") from error
    try:
        status = run(plan, study, consent=consent(yes=yes), answers=False)
        _present(study, page)
    finally:
        for path in made:
            give_to_caller(path)
    return status


def _present(study: Path, page: Path) -> None:
    from bedplate.cli.printing import print_tables  # noqa: PLC0415
    from bedplate.page.build import build_report  # noqa: PLC0415
    from bedplate.terminal.tables import show_tables  # noqa: PLC0415

    print()
    print_tables(show_tables([study]))
    build_report([study], page)
    print()
    print(f"report: {page}")
    say_answer(study)
