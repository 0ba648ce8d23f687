"""What records say of the datasets and runs of LMDB's microbenchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import LMDB
from bedplate.model.lmdb import WRITE
from bedplate.model.workload import RecordWords, WorkloadModel

if TYPE_CHECKING:
    from bedplate.model.cell import RunSpec


class MicrobenchmarkModel(WorkloadModel):
    """The runs after it read what one run made."""

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
    },
    words=RecordWords(
        dataset="`entries`, `value_bytes`, …",
        run="`kind` (`write`, `read`), `pass` (`cold`, `warm`), `pass_number`, `tests` (with commas between), `batch`, `threads`, "
        "`map_bytes`",
        phases="its tests (`fillseq`, …), whose figures are of phase `tests`",
        items="a test (`fillseq`)",
        facts="`made_cold`, `left_out` (tests that the sync mode does not have)",
        files="`lmdb/<test>.json`: what the driver says of a test",
    ),
)
