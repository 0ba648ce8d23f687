"""The engines, and which of them each type of workload runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model import power_cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.model.levels import Levels

POSTGRESQL = "postgresql"
LMDB = "lmdb"
# The file system itself: sequential I/O has no engine between.
NO_ENGINE = "none"

# A power cut is asked of either engine, so its dataset says which.
CUT_ENGINES = (POSTGRESQL, LMDB)

ENGINE_OF: Mapping[str, str] = {
    "pgbench": POSTGRESQL,
    "tpch": POSTGRESQL,
    "lmdb": LMDB,
    "bonnie": NO_ENGINE,
    "fio": NO_ENGINE,
}


def engine_of(workload: str, dataset: Levels) -> str:
    """The engine that a dataset of a type of workload is for; KeyError for a type that is not known."""
    if workload == power_cut.WORKLOAD:
        return dataset.text(power_cut.ENGINE) or POSTGRESQL
    return ENGINE_OF[workload]


def engines_of(workload: str, datasets: Iterable[Levels]) -> tuple[str, ...]:
    """The engines of a workload, each once; of most types one, whatever the datasets."""
    if workload != power_cut.WORKLOAD:
        return (ENGINE_OF[workload],)
    return tuple(dict.fromkeys(engine_of(workload, levels) for levels in datasets))
