"""sysbench itself, from the distribution's package, unpacked in the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bedplate.campaign.preparation import DatasetInputs, MadeAnyway
from bedplate.host.apt import ensure_package_tree
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.model.cell import Dataset
from bedplate.workloads.sysbench.visit import PACKAGE


class SysbenchInputs(DatasetInputs):
    """One tree for all datasets."""

    def make(
        self,
        dataset: Dataset,  # noqa: ARG002 -- there is one tree
        resources: MadeAnyway,  # noqa: ARG002 -- its own libraries do
        tell: Callable[[str, int, int], None],
    ) -> Mapping[str, str]:
        """The folder of the unpacked package; RequirementMissing with apt's words."""
        tree = ensure_package_tree(
            (PACKAGE,),
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=lambda words: tell(f"{PACKAGE}: {words}", 0, 0),
        )
        return {PACKAGE: str(tree.root)}


INPUTS: DatasetInputs = SysbenchInputs()
