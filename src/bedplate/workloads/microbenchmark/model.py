"""What records say of the datasets and runs of the microbenchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import LMDB
from bedplate.model.workload import RecordWords, WorkloadModel
from bedplate.workloads.microbenchmark.metrics import METRICS
from bedplate.workloads.microbenchmark.tests import WRITE

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec


class MicrobenchmarkModel(WorkloadModel):
    """The runs after it read what one run made. A plan says which engines; those of `type = "lmdb"` say nothing."""

    def fills(self, spec: RunSpec) -> bool:
        """What writes makes the databases."""
        return spec.levels.text("kind") == WRITE


MODEL = MicrobenchmarkModel(
    LMDB,
    plan_keys={
        "entries": "entries",
        "value_bytes": "value_size",
        "batch": "batch",
        "tests": "tests",
        "threads": "threads",
        "map_bytes": "map_size",
        "processes": "processes",
        "duration_s": "duration",
    },
    words=RecordWords(
        dataset="`entries`, `value_bytes`, …",
        run="`kind` (`write`, `read`), `pass` (`cold`, `warm`), `pass_number`, `tests` (with commas between), `batch`, `threads`, "
        "`map_bytes`; of `tpcb` alone `processes`, `duration_s`",
        phases="its tests (`fillseq`, …), whose figures are of phase `tests`",
        items="a test (`fillseq`)",
        facts="`made_cold`, `left_out` (tests that the engine's settings do not have); `waiting_test`, `waiting_commits`, "
        "`waiting_flushes`: of its tests whose commits wait, the one that lacked the most flushes",
        files="`tests/<test>.json`: what the driver says of a test (`drivers/microbenchmark.c`). `tests/tpcb.progress.jsonl`: how many transactions had ended at each second. "
        "`lmdb/` in studies of `lmdb`, the type's name when it had no other engine",
    ),
    # Its metrics had the name of the one engine, too.
    former_metrics={
        f"lmdb_{metric.name.removeprefix('test_')}": metric.name
        for each in METRICS.values()
        for metric in each
    },
)
