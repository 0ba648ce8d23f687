"""One's own databases: restored once for each build and layout, and unused when nobody has asked for them for a month."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.campaign.dataset_inputs import Unused
from bedplate.engines.postgresql.foreign_data import ClusterLayout
from bedplate.engines.postgresql.restored import (
    RECORD,
    DatabaseSource,
    databases_directory,
    ensure_restored,
    is_whole_database,
)
from bedplate.host.cache import cache_directory
from bedplate.host.whole_folder import is_work_folder, lock_of
from bedplate.model.engines import POSTGRESQL
from bedplate.units import KIB
from bedplate.workloads.pgbench.dump import DUMP, SHA256, scripts_of_dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bedplate.campaign.dataset_inputs import DatasetInputs, MadeAnyway
    from bedplate.model.cell import Dataset

_UNUSED_DAYS = 30
_DAY_S = 86_400.0


class OwnDatabaseInputs:
    """Data directories to be copied; of pgbench's own tables nothing is made beforehand."""

    def make(
        self, dataset: Dataset, made: MadeAnyway, tell: Callable[[str, int, int], None]
    ) -> Mapping[str, str]:
        """One for each build and layout of the study's cells."""
        name, sha256 = dataset.levels.text(DUMP), dataset.levels.text(SHA256)
        if name is None or sha256 is None:
            return {}
        source = DatabaseSource(name, sha256, scripts_of_dataset(dataset.levels))
        archive = made.archives.get(sha256)
        found: dict[str, str] = {}
        for build, cluster in made.clusters(POSTGRESQL):
            layout = ClusterLayout(build, cluster.data_checksums)
            if layout.key in found:
                continue
            words = f"{name} for blocks of {build.block_size_bytes // KIB} kB"

            def told(step: str, words: str = words) -> None:
                tell(f"{words}: {step}", 0, 0)

            path = ensure_restored(
                source,
                layout,
                archive=None if archive is None else Path(archive),
                cache_directory=cache_directory(),
                tell=told,
            )
            found[layout.key] = str(path)
        return found

    def unused(self, cache_directory: Path) -> Iterator[Unused]:
        """What is not whole, or that nobody has asked for."""
        directory = databases_directory(cache_directory)
        for path in sorted(directory.iterdir()) if directory.is_dir() else ():
            if not path.is_dir() or path.is_symlink():
                continue
            reason = _why_unused(path)
            if reason is not None:
                yield Unused(path, reason, lock_of(path), RECORD)


def _why_unused(path: Path) -> str | None:
    if is_work_folder(path):
        return "half made by a start that was ended"
    if not is_whole_database(path):
        return "not a whole database"
    days = (time.time() - (path / RECORD).stat().st_mtime) / _DAY_S
    return f"nobody has asked for it for {days:.0f} days" if days > _UNUSED_DAYS else None


INPUTS: DatasetInputs = OwnDatabaseInputs()
