"""What records say of fio's datasets and runs."""

from __future__ import annotations

from collections.abc import Mapping

from bedplate.model.cell import RunSpec
from bedplate.model.engines import NO_ENGINE
from bedplate.model.figure import Better, Metric, Scale
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import RecordWords, WorkloadModel

METRICS = {
    "Sequential I/O": (
        Metric(
            "steady_state_attained",
            "share",
            Scale.PROPORTION,
            Better.HIGHER,
            "1 where fio's criterion of a steady state was met, else 0; only where the job asks for one",
            "fio's JSON",
        ),
    )
}

WORKLOAD = "fio"

# The phases of a run of fio, or of pg_test_fsync; those of bonnie++ are its stages. A final sync follows.
FIO_LAY_OUT = "lay out"

FIO_JOB = "job"

# Level `tool` of a run of type fio that is none of fio's own; also the name of its input: a folder of programs.
PG_TEST_FSYNC = "pg_test_fsync"

# The level that says how long each of its measurements takes.
TEST_FSYNC_SECONDS = "seconds"


def is_pg_test_fsync(spec: RunSpec) -> bool:
    """Whether a run of type fio is PostgreSQL's pg_test_fsync beside fio's jobs."""
    return "tool" in spec.levels and spec.levels.text("tool") == PG_TEST_FSYNC


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
