"""What records say of runs of an own engine's writer."""

from __future__ import annotations

from bedplate.model.workload import RecordWords, WorkloadModel

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
