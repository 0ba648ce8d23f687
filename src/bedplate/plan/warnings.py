"""What a plan may ask for although its runs will be `suspect`, or will not mean what they seem to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.model.workload import model_of
from bedplate.plan.platforms import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.model.plan import Plan


class PlanWarnings(Protocol):
    """The role `warnings` of a workload and of an engine; what can be asked for without a doubt has no such file."""

    def __call__(self, plan: Plan, /) -> Iterable[str]:
        """Sentences."""
        ...


def warnings(plan: Plan) -> tuple[str, ...]:
    """Sentences, each once."""
    known: list[Mapping[str, PlanWarnings]] = [registry.parts("warnings"), registry.engine_parts("warnings")]
    found = [sentence for role in known for warn in role.values() for sentence in warn(plan)]
    if plan.repetitions < 3 and any(model_of(workload.type).has_speed for workload in plan.workloads):
        found.append(
            f"repetitions = {plan.repetitions}: the report describes, and gives no verdicts; "
            "`bedplate extend` adds repetitions"
        )
    if plan.executor == LOCAL and len(plan.kernels) > 1:
        found.append(
            'machine.kernel: with executor = "local" this machine itself must boot each of the kernels, again and again; '
            'executor = "qemu" runs them in guests'
        )
    return tuple(dict.fromkeys(found))
