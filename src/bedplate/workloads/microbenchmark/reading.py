"""What a study says of the runs of the microbenchmark, and what each test promises: a class beside every speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from bedplate.analysis.overview import CellFacts, Overview
from bedplate.analysis.run_heads import RunHead, WorkloadView
from bedplate.analysis.wording import durability_words
from bedplate.model.cell import RunSpec
from bedplate.model.durability import ONLY_READS, UNKNOWN
from bedplate.model.visit import Durability
from bedplate.workloads.microbenchmark.model import READ, TESTS, WRITE, is_synchronous, tests_of, writes

Run = tuple[str, str]

SPEED = "test_operations_per_s"

_READS = Durability(ONLY_READS, ONLY_READS, "declared")

_HEADS = {
    WRITE: RunHead("tests_s", "tests s", "device_written_mib", "MiB written", beneath=True),
    READ: RunHead("tests_s", "tests s", "device_read_mib", "MiB read", beneath=True),
}


class MicrobenchmarkView(WorkloadView):
    """Tests that write, and tests that read what those left."""

    heads: ClassVar[Mapping[str, RunHead]] = _HEADS
    headlines: ClassVar[tuple[str, ...]] = ("tests_s",)
    looked_at: ClassVar[tuple[str, str] | None] = (TESTS, SPEED)

    def writes(self, overview: Overview, run: tuple[str, str], spec: RunSpec) -> bool:  # noqa: ARG002 -- its kind says it
        """Those of the kind that says so."""
        return spec.levels.text("kind") == WRITE

    def promised(self, durability: Durability | None, phase: str, item: str) -> Durability | None:
        """Of a test its own."""
        return _promised(durability, item) if phase == TESTS else durability


def run_tests(overview: Overview, run: Run) -> tuple[str, ...]:
    """The tests of a run in their order."""
    spec = overview.spec(run)
    return () if spec is None else tests_of(spec)


def promised_classes(cell: CellFacts, test: str) -> tuple[str, ...]:
    """The classes of what this test commits there, with the volatile cache of the device and with a protected one.

    Nothing of a test that only reads, and one class where both agree.
    """
    if not writes(test):
        return ()
    found = _promised(cell.durability, test)
    if found is None:
        return (UNKNOWN,)
    return tuple(dict.fromkeys((found.class_with(cell.cache), found.protected_cache)))


def promise(cell: CellFacts, test: str) -> str:
    """What survives a power cut of what this test commits there, volatile / protected cache."""
    return durability_words(_promised(cell.durability, test))


def _promised(durability: Durability | None, test: str) -> Durability | None:
    if not writes(test):
        return _READS
    if durability is None or durability.without_waiting is None:
        return durability
    return replace(durability, without_waiting=None) if is_synchronous(test) else durability.without_waiting


ANALYSIS = MicrobenchmarkView()
