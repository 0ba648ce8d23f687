"""What records say of runs of an own engine's writer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bedplate.errors import OutputNotUnderstood
from bedplate.model.plan import RecordWords, WorkloadModel

ENGINE = "own-engine"

MODEL = WorkloadModel(
    ENGINE,
    plan_keys={"clients": "clients", "warmup_s": "warmup", "duration_s": "duration"},
    words=RecordWords(
        run="`clients`, `warmup_s`, `duration_s`",
        phases="`warmup`, `measure`",
        facts="`reader_cpu_s`: CPU time of the reader of the writer's pipe; `waiting_commits`, `waiting_flushes`, `waiting_clients`: of an engine "
        "that promises to be durable",
        files="`warmup.bin`, `measure.bin`: the log of its lines, condensed; deleted once `run.json` is complete. `logs/acks.out`: the last line of that reader, `end ACKS SECONDS TOGETHER QUIET_S` (`drivers/pgbench_log.c`)",
    ),
)

SUMMARY_FILE = "acks.out"

_SUMMARY = re.compile(r"end (\d+) (\d+\.\d+) (\d+) (\d+\.\d+)\n")


@dataclass(frozen=True)
class AcksSummary:
    """Of the measured window: `together` are lines that came in one read with another of their client.

    `quiet_s` is the longest time without any line. Nobody connects.
    """

    transactions: int
    duration_s: float
    together: int
    quiet_s: float
    initial_connection_ms: float | None = None


def read_summary(logs: Path) -> AcksSummary:
    """From a run's folder of outputs; OutputNotUnderstood where the reader did not come to its end."""
    text = (logs / SUMMARY_FILE).read_text(encoding="utf-8", errors="replace")
    found = _SUMMARY.fullmatch(text)
    if found is None:
        raise OutputNotUnderstood(
            "the reader of the writer's pipe", expected="`end ACKS SECONDS TOGETHER QUIET_S`", found=text
        )
    return AcksSummary(int(found[1]), float(found[2]), int(found[3]), float(found[4]))
