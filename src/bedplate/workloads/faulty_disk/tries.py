"""The tries of a run of faults, as the run left them, and what they come to."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
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
    path = run_directory / TRIES_FILE
    try:
        lines = codec.read_bytes(path).decode(errors="replace").splitlines()
    except StudyError as error:
        return FaultTries(problems=tuple(error.reasons))
    records: list[FaultRecord] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(codec.from_json(FaultRecord, json.loads(line), path=f"{path}, line {number}"))
        except json.JSONDecodeError:
            problems.append(f"{path}, line {number} is not JSON: a try is missing")
        except StudyError as error:
            problems += error.reasons
    return FaultTries(
        tuple(each for each in records if each.fault not in CONTROLS),
        tuple(each for each in records if each.fault in CONTROLS),
        tuple(problems),
    )


def counted(records: Iterable[FaultRecord]) -> Mapping[FaultVerdict, int]:
    """How many tries had each verdict, the worst first; those that are no result last."""
    tally = Counter(record.verdict for record in records)
    order = [
        *reversed([each for each in FaultVerdict if each.is_result]),
        *(each for each in FaultVerdict if not each.is_result),
    ]
    return {verdict: tally[verdict] for verdict in order if tally[verdict]}
