"""What a plan needs of the system, there before its first visit: installed after a yes, else named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing

if TYPE_CHECKING:
    from bedplate.campaign.consent import Consent
    from bedplate.campaign.display import Display
    from bedplate.campaign.planning import PlannedStudy
    from bedplate.host.requirement import Requirement


def ensure_requirements(found: PlannedStudy, display: Display, consent: Consent) -> None:
    """Everything that the plan needs of the system, and what its executor fetches before cells are chosen.

    RequirementMissing with the exact command when nobody can be asked, or the answer is no.
    """
    from bedplate.campaign.preparation import install, is_root  # noqa: PLC0415
    from bedplate.host.requirement import install_command, read_os_release  # noqa: PLC0415

    lacking = lacking_of(found)
    if lacking:
        command = install_command(lacking, os_release=read_os_release())
        sentences = [item.sentence for item in lacking]
        if command is None:
            raise RequirementMissing(*sentences, "this distribution is not known; install these by hand")
        shown = " ".join(command)
        if not is_root():
            raise RequirementMissing(*sentences, f"install them: sudo {shown}")
        # Where nobody can be asked, the error alone names them.
        if not consent.yes and not consent.ask("\n".join((*sentences, f"Install them now with `{shown}`?"))):
            raise RequirementMissing(*sentences, f"install them: {shown}")
        install(command, display)
        still = lacking_of(found)
        if still:
            raise RequirementMissing(*(f"after installing: {item.sentence}" for item in still))
    found.executor.prepare(found.plan, display)


def lacking_of(found: PlannedStudy) -> tuple[Requirement, ...]:
    """What of the system is missing; RequirementMissing where the executor cannot be had at all."""
    from bedplate.campaign.preparation import requirements_of  # noqa: PLC0415
    from bedplate.host.requirement import missing  # noqa: PLC0415

    return missing(requirements_of(found.cells, found.workloads, executor=found.executor))
