"""What records say of fio's datasets and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import NO_ENGINE
from bedplate.model.workload import RecordWords, WorkloadModel
from bedplate.workloads.fio.words import PG_TEST_FSYNC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Levels, Scalar

# That of pg_test_fsync, which has no options in a plan.
_TOOL = "tool"


class FioModel(WorkloadModel):
    """Its runs have the options of fio, by fio's names."""

    def in_a_plan(self, levels: Levels) -> Mapping[str, Scalar]:
        """`job.bs`, as the plan has it."""
        if _TOOL in levels:
            return {}
        return {name if name == PG_TEST_FSYNC else f"job.{name}": level for name, level in levels.items()}


MODEL = FioModel(
    NO_ENGINE,
    {"fio": "--version"},
    words=RecordWords(
        run="the job's options in fio's spelling, or `tool` (`pg_test_fsync`) and `seconds`",
        phases="`lay out`, `job` and `sync`; of pg_test_fsync a part of its output (`one write`)",
        items="`read`, `write` or `sync` of a job, a method of pg_test_fsync",
        facts="`file_bytes`, `made_cold`, `tool_cpu_s`",
    ),
)
