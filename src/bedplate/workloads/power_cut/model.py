"""What records say of the datasets and runs of power cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import POSTGRESQL
from bedplate.model.power_cut import COMPLETIONS, DEVICE_UNIT, ENGINE, PRESSED, RECUT, STATES
from bedplate.model.workload import RecordWords, WorkloadModel

if TYPE_CHECKING:
    from bedplate.model.levels import Levels


class PowerCutModel(WorkloadModel):
    """A power cut is asked of any engine that has an oracle, so its dataset says which."""

    @property
    def has_own_disk(self) -> bool:
        """A recorded one."""
        return True

    def engine_of(self, dataset: Levels) -> str:
        """What the dataset says; those of the first version say nothing, and are PostgreSQL's."""
        return dataset.text(ENGINE) or super().engine_of(dataset)


MODEL = PowerCutModel(
    POSTGRESQL,
    plan_keys={
        ENGINE: "engine",
        "clients": "clients",
        "duration_s": "duration",
        "image_bytes": "image_size",
        "ram_journal": "ram_journal",
        PRESSED: PRESSED,
        COMPLETIONS: COMPLETIONS,
        "points": "points",
        "sought": "sought",
        STATES: STATES,
        RECUT: RECUT,
        DEVICE_UNIT: DEVICE_UNIT,
        "profiles": "profiles",
        "cache_bytes": "cache_bytes",
        "seed": "seed",
        "keep_logs": "keep_logs",
    },
    words=RecordWords(
        dataset="`engine`, `image_bytes`, `clients`, `duration_s`, `points`; `ram_journal` where it is `kept`, `press_dirty_pages` where it is true, `completions` where they are late, `recut` where there are any",
        run="`points`, `profiles` (with commas between), `cache_bytes`, `seed`",
        files="`recording.json`, `points.jsonl`, `log.xz`, `recovery-NUMBER.xz`",
    ),
)
