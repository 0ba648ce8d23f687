"""What a study says of the runs of LMDB's microbenchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.analysis.workload_view import RunHead, WorkloadView
from bedplate.model.lmdb import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.analysis.overview import Overview
    from bedplate.model.cell import RunSpec

_HEADS = {
    WRITE: RunHead("lmdb_tests_s", "tests s", "device_written_mib", "MiB written", beneath=True),
    READ: RunHead("lmdb_tests_s", "tests s", "device_read_mib", "MiB read", beneath=True),
}


class MicrobenchmarkView(WorkloadView):
    """Tests that write, and tests that read what those left."""

    heads: ClassVar[Mapping[str, RunHead]] = _HEADS
    headlines: ClassVar[tuple[str, ...]] = ("lmdb_tests_s",)

    def writes(self, found: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """Those of the kind that says so."""
        return spec.levels.text("kind") == WRITE


ANALYSIS = MicrobenchmarkView()
