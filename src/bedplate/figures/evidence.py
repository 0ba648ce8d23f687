"""What the rules of validity look at in every run; what else a workload has stands beside its own rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.facts import cache_drops_of, late_share_of, others_cpu_share_of, steal_share_of
from bedplate.figures.samples import clock_step_s

if TYPE_CHECKING:
    from typing import Any

    from bedplate.figures.inputs import RunInputs
    from bedplate.figures.server_log import Complaint
    from bedplate.model.figure import Window


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """Of one completed run of any workload; None is not known, which is not the same as all being well.

    Times are seconds since the start of what was measured. `windows` are its checkpoints, None where the
    server's log could not be read. `course_problem` says why the samples end early, `course_missing` that they are gone. `problems` are inputs
    that could not be read at all. `others_cpu_share` is the least that other programs used of all processors,
    `cache_drops` how often one of them dropped the caches. `late_share` is by how much an emulated device's requests took longer than they should.
    """

    duration_s: float
    windows: tuple[Window, ...] | None
    complaints: tuple[Complaint, ...]
    kernel_messages: tuple[str, ...]
    clock_step_s: float | None
    steal_share: float | None
    course_problem: str | None
    problems: tuple[str, ...]
    others_cpu_share: float | None = None
    course_missing: bool = False
    cache_drops: int | None = None
    late_share: float | None = None


def shared_evidence(
    inputs: RunInputs,
    duration_s: float,
    *,
    windows: tuple[Window, ...] | None = (),
    complaints: tuple[Complaint, ...] = (),
) -> dict[str, Any]:
    """The fields of RunEvidence by name: a workload's own evidence is made of these and of its own.

    A run without a server has no checkpoints and no complaints.
    """
    return vars(
        RunEvidence(
            duration_s=duration_s,
            windows=windows,
            complaints=complaints,
            kernel_messages=inputs.visit.kernel_messages,
            clock_step_s=clock_step_s(inputs.samples),
            steal_share=steal_share_of(inputs.record),
            others_cpu_share=others_cpu_share_of(inputs.record),
            cache_drops=cache_drops_of(inputs.record),
            late_share=late_share_of(inputs.record),
            course_problem=inputs.course_problem,
            course_missing=inputs.course_missing,
            problems=inputs.problems,
        )
    )
