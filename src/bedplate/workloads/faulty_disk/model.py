"""What records say of the datasets and runs of a disk that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import POSTGRESQL
from bedplate.model.power_cut import ENGINE
from bedplate.model.workload import RecordWords, WorkloadModel

if TYPE_CHECKING:
    from bedplate.model.levels import Levels

# Levels of a run: names of faults with commas between, and how often each is tried.
FAULTS_LEVEL, TRIES = "faults", "tries"
# What a plan gets that says nothing: something to lose before the fault, and a checkpoint behind it.
DURATION_S = 4.0


class FaultyDiskModel(WorkloadModel):
    """A disk may fail below any engine that has an oracle, so its dataset says which."""

    @property
    def has_own_disk(self) -> bool:
        """A recorded one."""
        return True

    def engine_of(self, dataset: Levels) -> str:
        """What the dataset says."""
        return dataset.text(ENGINE) or super().engine_of(dataset)


MODEL = FaultyDiskModel(
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
