"""One's own databases: a dump is restored once for each build and layout, and a data directory is copied from where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bedplate.campaign.preparation import DatasetInputs, MadeAnyway
from bedplate.engines.postgresql.own_data import ClusterLayout
from bedplate.engines.postgresql.prepare import (
    RECORD,
    DatabaseSource,
    databases_directory,
    ensure_restored,
    is_whole_database,
    needs_root,
)
from bedplate.errors import BedplateError, PlanError
from bedplate.host.cache import Unused, days_since, unused_folders
from bedplate.host.files import cache_directory
from bedplate.model.cell import Dataset
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels
from bedplate.units import KIB
from bedplate.workloads.pgbench.model import COPY, DUMP, SHA256, is_own
from bedplate.workloads.pgbench.own_files import demand_unchanged, scripts_of_dataset

_DAY_S = 86_400.0


class OwnDatabaseInputs:
    """Data directories to be copied; of pgbench's own tables nothing is made beforehand."""

    def make(
        self, dataset: Dataset, resources: MadeAnyway, tell: Callable[[str, int, int], None]
    ) -> Mapping[str, str]:
        """Of a dump one for each build and layout of the study's cells."""
        place = resources.archives.get(dataset.levels.text(SHA256) or "")
        if COPY in dataset.levels:
            return {COPY: _unchanged(place, dataset.levels)}
        return self._restored(dataset, place, resources, tell) if DUMP in dataset.levels else {}

    def obstacle(self, dataset: Dataset, *, on_nodes: bool) -> str | None:
        """What comes from one's own database needs root to be made, and lies where this machine alone reads it."""
        levels = dataset.levels
        if not is_own(levels):
            return None
        name = levels.get(DUMP) or levels.get(COPY)
        if on_nodes:
            return (
                f"{name} stays on this machine: bedplate ships no database to the nodes of a cluster; "
                "run the plan on one of them, with --executor local"
            )
        return needs_root(str(name)) if DUMP in levels else None

    def _restored(
        self,
        dataset: Dataset,
        archive: str | None,
        resources: MadeAnyway,
        tell: Callable[[str, int, int], None],
    ) -> Mapping[str, str]:
        name = dataset.levels.text(DUMP) or ""
        source = DatabaseSource(name, dataset.levels.text(SHA256) or "", scripts_of_dataset(dataset.levels))
        found: dict[str, str] = {}
        for build, cluster in resources.clusters(POSTGRESQL):
            layout = ClusterLayout(build, cluster.data_checksums)
            if layout.key in found:
                continue
            words = f"{name} for blocks of {build.block_size_bytes // KIB} kB"

            def tell_step(step: str, words: str = words) -> None:
                tell(f"{words}: {step}", 0, 0)

            path = ensure_restored(
                source,
                layout,
                archive=None if archive is None else Path(archive),
                cache_directory=cache_directory(),
                tell=tell_step,
            )
            found[layout.key] = str(path)
        return found

    def unused(self, cache_directory: Path, days: float) -> Iterator[Unused]:
        """What is not whole, or that nobody has asked for."""
        return unused_folders(
            databases_directory(cache_directory), RECORD, lambda path: _why_unused(path, days)
        )


def _unchanged(place: str | None, levels: Levels) -> str:
    """A data directory in the state that the plan was read in; PlanError otherwise."""
    if place is None:
        raise PlanError(
            f"the place of copy = {levels[COPY]} is not known; begin with the plan beside it: bedplate run PLAN"
        )
    try:
        demand_unchanged(Path(place), levels)
    except BedplateError as error:
        raise PlanError(*error.reasons) from error
    return place


def _why_unused(path: Path, at_most_days: float) -> str | None:
    if not is_whole_database(path):
        return "not a whole database"
    days = days_since(path / RECORD)
    return f"nobody has asked for it for {days:.0f} days" if days > at_most_days else None


INPUTS: DatasetInputs = OwnDatabaseInputs()
