"""What records say of the datasets and runs of a disk that fails."""

from __future__ import annotations

from bedplate.model.engines import POSTGRESQL
from bedplate.model.power_cut import ENGINE
from bedplate.model.workload import OwnDiskModel, RecordWords

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
