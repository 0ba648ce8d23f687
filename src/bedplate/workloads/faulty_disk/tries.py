"""The tries of a run of faults, as the run left them, and what they come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.figures.record_lines import read_record_lines
from bedplate.workloads.faulty_disk.faults import CONTROLS
from bedplate.workloads.faulty_disk.records import TRIES_FILE, FaultRecord, FaultVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class FaultTries:
    """`tried` are the faults, `controls` what shows that the oracle sees; `problems` are what is damaged."""

    tried: tuple[FaultRecord, ...] = ()
    controls: tuple[FaultRecord, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def by_fault(self) -> Mapping[str, tuple[FaultRecord, ...]]:
        """In the order in which they were tried first."""
        found: dict[str, list[FaultRecord]] = {}
        for record in self.tried:
            found.setdefault(record.fault, []).append(record)
        return {fault: tuple(records) for fault, records in found.items()}


def read_tries(run_directory: Path) -> FaultTries:
    """What cannot be read becomes a problem, and the rest is kept."""
    records, problems = read_record_lines(FaultRecord, run_directory / TRIES_FILE, missing="a try")
    return FaultTries(
        tuple(each for each in records if each.fault not in CONTROLS),
        tuple(each for each in records if each.fault in CONTROLS),
        problems,
    )


def counted(records: Iterable[FaultRecord]) -> Mapping[FaultVerdict, int]:
    """How many tries had each verdict, the worst first; those that are no result last."""
    tally = Counter(record.verdict for record in records)
    order = [
        *reversed([each for each in FaultVerdict if each.is_result]),
        *(each for each in FaultVerdict if not each.is_result),
    ]
    return {verdict: tally[verdict] for verdict in order if tally[verdict]}
