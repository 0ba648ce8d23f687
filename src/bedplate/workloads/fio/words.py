"""Names that plans, records and figures of fio share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec

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
