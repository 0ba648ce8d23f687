"""What records say of the datasets and runs of a disk that fails."""

from __future__ import annotations

from bedplate.cuts.faults import FaultRecord
from bedplate.model.engines import ENGINE, POSTGRESQL
from bedplate.model.figure import Better, Metric, Scale, taken_from
from bedplate.model.plan import OwnDiskModel, RecordWords

# Levels of a run: names of faults with commas between, and how often each is tried.
FAULTS_LEVEL, TRIES = "faults", "tries"

# What a plan gets that says nothing: something to lose before the fault, and a checkpoint behind it.
DURATION_S = 4.0

MODEL = OwnDiskModel(
    POSTGRESQL,
    plan_keys={
        ENGINE: "engine",
        "clients": "clients",
        "duration_s": "duration",
        "image_bytes": "image_size",
        FAULTS_LEVEL: "faults",
        TRIES: "tries",
        "seed": "seed",
    },
    words=RecordWords(
        dataset="`engine`, `image_bytes`, `clients`, `duration_s`, `tries`",
        run="`faults` (with commas between), `tries`, `seed`",
        phases="`faults`: all of them in turn; of figures `fault`, the tries of one",
        items="of phase `fault`: the fault's name in a plan",
        files="`faults.jsonl`, a line for each try; `logs/try-NUMBER…`: what the engine said in it",
    ),
)

_LOWER, _NEITHER, _COUNT = Better.LOWER, Better.NEITHER, Scale.COUNT

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
METRICS = {
    "Faulty disks": taken_from(
        "`faults.jsonl`",
        Metric("faults_hit", "1", _COUNT, _NEITHER, "faults that something met and that left a trace, without the controls; only these are results"),
        Metric("faults_not_hit", "1", _COUNT, _NEITHER, "faults that nothing met, or that left no trace"),
        Metric("faults_lost", "1", _COUNT, _LOWER, "faults after which something acknowledged was missing or damaged"),
        Metric("faults_lost_silently", "1", _COUNT, _LOWER,
            "those of them after which the engine worked on what was left, and only the oracle saw it"),
        Metric("faults_stopped", "1", _COUNT, _NEITHER, "faults that ended a client's session or the engine, or after which it hung"),
    ),
}

# fmt: on
WORKLOAD = "faulty_disk"
RECORDS = (FaultRecord,)
