"""TPC-H's data: made once for each scale factor, and unused when nobody has asked for them for a month."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bedplate.campaign.dataset_inputs import DatasetInputs, Unused
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.whole_folder import is_work_folder, lock_of
from bedplate.workloads.tpch import data
from bedplate.workloads.tpch.model import WORKLOAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bedplate.campaign.dataset_inputs import MadeAnyway
    from bedplate.model.cell import Dataset

_DAY_S = 86_400.0


class TpchInputs(DatasetInputs):
    """The CSV files of a scale factor, which any account makes, where nodes find them too."""

    def make(
        self,
        dataset: Dataset,
        made: MadeAnyway,  # noqa: ARG002 -- of others' role
        tell: Callable[[str, int, int], None],
    ) -> Mapping[str, str]:
        """The folder of the files."""
        scale_factor = dataset.levels.number("scale_factor")
        if scale_factor is None:
            return {}
        name = f"TPC-H data, scale factor {scale_factor:g}"
        found = data.ensure_tpch_data(
            scale_factor,
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=lambda progress: tell(f"{name}: {progress.step}", progress.done, progress.total),
        )
        return {WORKLOAD: str(found.directory)}

    def unused(self, cache_directory: Path, days: float) -> Iterator[Unused]:
        """Data that are not whole, that another generator made, or that nobody has asked for."""
        directory = data.data_directory(cache_directory)
        for path in sorted(directory.iterdir()) if directory.is_dir() else ():
            # A link is somebody's own business.
            if path.is_dir() and not path.is_symlink():
                reason = _why_unused(path, days)
                if reason is not None:
                    yield Unused(path, reason, lock_of(path), data.RECORD)


def _why_unused(path: Path, at_most_days: float) -> str | None:
    generator = data.packaged_generator()
    if is_work_folder(path):
        return "half made by a start that was ended"
    if not path.name.startswith("sf"):
        return None
    found = data.read_tpch_data(path)
    if found is None:
        return "not whole data"
    if generator is not None and found.generator != generator.name:
        return f"{generator.name} would be used now; they are by {found.generator}"
    days = (time.time() - data.last_use(found)) / _DAY_S
    return f"nobody has asked for them for {days:.0f} days" if days > at_most_days else None


INPUTS: DatasetInputs = TpchInputs()
