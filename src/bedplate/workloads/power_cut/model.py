"""What records say of the datasets and runs of power cuts."""

from __future__ import annotations

from bedplate.cuts.records import (
    COMPLETIONS,
    DEVICE_UNIT,
    EXHAUSTIVE,
    HAS_FUA,
    PLACED,
    PRESSED,
    RECUT,
    SECTOR_BYTES,
    STATES,
)
from bedplate.model.engines import ENGINE, POSTGRESQL
from bedplate.model.plan import OwnDiskModel, RecordWords

MODEL = OwnDiskModel(
    POSTGRESQL,
    cuts_power=True,
    plan_keys={
        ENGINE: "engine",
        "clients": "clients",
        "duration_s": "duration",
        "image_bytes": "image_size",
        "ram_journal": "ram_journal",
        PRESSED: PRESSED,
        COMPLETIONS: COMPLETIONS,
        SECTOR_BYTES: "sector_size",
        HAS_FUA: HAS_FUA,
        "points": "points",
        "sought": "sought",
        PLACED: PLACED,
        STATES: STATES,
        RECUT: RECUT,
        EXHAUSTIVE: EXHAUSTIVE,
        DEVICE_UNIT: DEVICE_UNIT,
        "profiles": "profiles",
        "cache_bytes": "cache_bytes",
        "seed": "seed",
        "keep_logs": "keep_logs",
    },
    words=RecordWords(
        dataset="`engine`, `image_bytes`, `clients`, `duration_s`, `points`. Where they differ from the default: `ram_journal`, "
        "`press_dirty_pages`, `completions`, `sector_bytes`, `fua`, `recut`, `exhaustive`",
        run="`points`, `profiles` (with commas between), `cache_bytes`, `seed`. Where they differ from the default: `keep_logs`, `sought`, "
        "`placed`, `device_unit`, `states`, `recut`, `exhaustive`",
        phases="`recording`, `points`; of figures `cut` (drawn cuts by profile), `cache`, `sought`, `recut` and `exhaustive` (drawn, sought, in "
        "recovery and behind each write of one, by the kind of cache), `pages`",
        items="of phase `cut` the profile; of `cache`, `sought`, `recut` and `exhaustive` the kind of cache; of `pages` `before` and `after`",
        files="`recording.json`, `points.jsonl`, `job.json`, `log.xz`, `recovery-NUMBER.xz`, `recovery-NUMBER-ENTRY.xz`",
    ),
)
