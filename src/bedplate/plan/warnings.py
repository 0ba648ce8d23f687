"""What a plan may ask for although its runs will be `suspect`, or will not mean what they seem to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.model.workload import model_of
from bedplate.plan.platforms import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bedplate.model.plan import Plan


# A disk that turns does at most so many I/Os a second; where there are more, what is merged matters little.
_DISK_IOPS = 1000


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
    found += _journals_of_data(plan)
    return tuple(dict.fromkeys(found))


def _journals_of_data(plan: Plan) -> Iterator[str]:
    """The kernel's throttling counts what is submitted; a disk, and a device with latency, what is left when neighbours are merged."""
    limits = [device.throttle.write_iops for device in plan.devices if device.throttle is not None]
    if any(limit is not None and limit <= _DISK_IOPS for limit in limits) and any(
        filesystem.features.get("data") == "journal" for filesystem in plan.filesystems
    ):
        yield (
            'data = "journal": a throttle counts each block of the journal as an I/O, where a disk merges neighbours. '
            "So loads and runs take many times as long. `latency` in the place of `throttle` merges them"
        )
