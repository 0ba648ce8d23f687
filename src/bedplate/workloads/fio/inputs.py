"""pg_test_fsync is a program of PostgreSQL: a dataset that asks for it gets those of a build that the study makes anyway."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.campaign.dataset_inputs import DatasetInputs
from bedplate.model.engines import POSTGRESQL
from bedplate.workloads.fio.words import PG_TEST_FSYNC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.campaign.dataset_inputs import MadeAnyway
    from bedplate.model.cell import Dataset


class FioInputs(DatasetInputs):
    """The folder of PostgreSQL's programs; builds are kept and cleared by themselves."""

    def make(
        self,
        dataset: Dataset,
        made: MadeAnyway,
        tell: Callable[[str, int, int], None],  # noqa: ARG002 -- of others' role
    ) -> Mapping[str, str]:
        """The programs, where they are asked for."""
        build = made.build_of(POSTGRESQL)
        if build is None or dataset.levels.get(PG_TEST_FSYNC) is not True:
            return {}
        return {PG_TEST_FSYNC: str(Path(build.prefix) / "bin")}


INPUTS: DatasetInputs = FioInputs()
