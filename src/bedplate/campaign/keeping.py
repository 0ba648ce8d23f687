"""What every executor's visit is asked, and how what came of it gets its place in the study."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, RequirementMissing
from bedplate.figures.run import make_figures
from bedplate.host.patience import wait_until
from bedplate.host.process import writers_below
from bedplate.host.state import state_directory
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.model.filesystem import fill_of
from bedplate.model.power_cut_metrics import CUT, RECUT, SOUGHT
from bedplate.model.reason import because, reasons_of
from bedplate.model.visit import FORMAT_VERSION, Outcome, Validity, VisitKey, VisitRecord, VisitRequest
from bedplate.plan.estimate import device_bytes_needed
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.campaign.known_answers import KnownAnswers
    from bedplate.model.cell import BuildLevels, Cell, Dataset
    from bedplate.model.devices.identity import DeviceIdentity
    from bedplate.model.figure import RunFigures
    from bedplate.model.plan import Expansion, Load, Plan, ScheduledVisit
    from bedplate.model.reason import Reason
    from bedplate.model.visit import EngineBuild, ScratchDevice
    from bedplate.study.store import Attempt, StudyStore

# The time that a run without transactions is about.
_TIMES = ("load_total_s", "streams_s", "queries_total_s", "tests_s", "stages_total_s")
# In a summary of one line.
_SHOWN_REASON_CHARACTERS = 160
# A process that was killed is gone at once, unless its disk keeps it.
_WRITERS_LIMIT_S = 10.0
_WHOLE_SECONDS_FROM = 10
_WHOLE_MIB_FROM = 100


@dataclass(frozen=True)
class SharedInputs:
    """What all visits of a start share; `inputs` are paths of what was made for a dataset beforehand.

    `devices` are those that the study has recorded, by their names; `node_devices` those of a fleet's nodes, by node.
    """

    plan: Plan
    expansion: Expansion
    builds: Mapping[BuildLevels, EngineBuild]
    native_drivers: Mapping[str, str]
    erase: tuple[str, ...]
    erase_foreign: bool
    inputs: Mapping[Dataset, Mapping[str, str]] = field(default_factory=dict)
    devices: Mapping[str, DeviceIdentity] = field(default_factory=dict)
    node_devices: Mapping[str, Mapping[str, DeviceIdentity]] = field(default_factory=dict)

    def allowed(self, device: ScratchDevice, *, node: str | None = None) -> ScratchDevice:
        """The device as its visits get it: with what may be erased, and what it is."""
        allowed = replace(device, erase=self.erase, erase_foreign=self.erase_foreign)
        return allowed.recorded_in(self.devices if node is None else self.node_devices.get(node, {}))


class VisitRequests:
    """Makes the requests of one start of a study."""

    def __init__(self, store: StudyStore, shared: SharedInputs, answers: KnownAnswers) -> None:
        self._store = store
        self._shared = shared
        self._answers = answers

    def request(self, visit: ScheduledVisit, attempt: int, cell: Cell, load: Load) -> VisitRequest:
        """What is asked of one attempt at a visit, on its node where it has one."""
        shared = self._shared
        fleet = shared.plan.fleet
        scratch = shared.plan.scratch_device_for(canary=visit.canary)
        if fleet is not None and visit.node is not None and visit.node in fleet.devices:
            scratch = replace(scratch, device=fleet.devices[visit.node])
        scratch = shared.allowed(scratch, node=visit.node)
        journal = shared.plan.journal_device_for(cell.filesystem)
        if (
            journal is not None
            and journal.device is not None
            and fleet is not None
            and visit.node is not None
        ):
            journal = replace(journal, device=fleet.journal_devices.get(visit.node, journal.device))
        if scratch.image_directory is not None:
            # The plan's own link is followed here; the visit follows none.
            scratch = replace(scratch, image_directory=os.path.realpath(scratch.image_directory))
        # On a node an image stands on a disk of the node's own, where its part of the executor puts it.
        if scratch.is_image and scratch.image_directory is None and visit.node is None:
            scratch = replace(scratch, image_directory=str(self._store.scratch_directory))
        dataset_by = shared.plan.dataset_by_of(canary=visit.canary)
        return VisitRequest(
            format_version=FORMAT_VERSION,
            key=VisitKey(visit.cell_id, visit.dataset_id, visit.repetition, attempt, canary=visit.canary),
            cell=cell,
            dataset=load.dataset,
            runs=load.runs,
            scratch_device=scratch,
            journal_device=None if journal is None else shared.allowed(journal, node=visit.node),
            build=shared.builds.get(cell.build),
            native_drivers=shared.native_drivers,
            inputs=shared.inputs.get(load.dataset, {}),
            expected_answers=self._answers.digests,
            answer_sources=self._answers.sources,
            needed_bytes=None if fill_of(cell.filesystem) is None else device_bytes_needed(cell, load),
            dataset_by=dataset_by,
            state_directory=str(state_directory()),
            # The same load for every cell of a repetition, another one in the next.
            seed=int(digest([shared.plan.seed, visit.repetition, visit.dataset_id], length=7), 16),
            provenance={
                "machine": self._store.facts.machine_identity,
                "plan": shared.plan.digest,
                "dataset": dataset_by,
                **({} if visit.node is None else {"node": visit.node}),
            },
        )


def keep(
    attempt: Attempt, record: VisitRecord, *, seconds_before: float
) -> tuple[VisitRecord, list[RunFigures]]:
    """Make the figures of a visit that has ended and write its final record; OSError where that fails.

    Where figures cannot be made the visit has failed, and says why. `seconds_before` is how long it took until
    now, with its hand-over. RequirementMissing where a process of the visit still writes in its directory: the
    files of a finished visit never change.
    """
    started = time.monotonic()
    _require_no_writer(attempt.directory)
    figures, problems = _make_figures(attempt.directory, record)
    if problems:
        record = replace(
            record,
            outcome=Outcome.FAILED,
            reasons=(*record.reasons, *problems),
            failed_step=record.failed_step or "figures",
        )
    # A job of a fleet may have left it in the format of an earlier version.
    record = replace(
        record,
        format_version=FORMAT_VERSION,
        whole_seconds=seconds_before + time.monotonic() - started,
        sealed=True,
    )
    codec.write(attempt.directory / "visit.json", record)
    return record, figures


def _require_no_writer(directory: Path) -> None:
    writers: tuple[str, ...] = ()

    def all_gone() -> bool:
        nonlocal writers
        writers = writers_below(directory)
        return not writers

    if not wait_until(all_gone, deadline_s=_WRITERS_LIMIT_S):
        raise RequirementMissing(
            *writers,
            "the visit has ended, and is not in the study while this goes on; end that process (`bedplate release` "
            "ends those of a killed visit), and give the same command again",
        )


def _make_figures(directory: Path, record: VisitRecord) -> tuple[list[RunFigures], list[Reason]]:
    """The figures of every run that left a record, and why some could not be made."""
    figures: list[RunFigures] = []
    problems: list[Reason] = []
    for name in record.runs:
        run = directory / "runs" / name
        if not (run / "record.json").exists():
            continue  # the visit ended within it, and says why
        try:
            figures.append(make_figures(directory, run))
        except OSError:
            raise
        except BedplateError as error:
            problems += [reason.about(name) for reason in reasons_of(error)]
        except Exception as error:  # noqa: BLE001 -- the raw record stays, and a bug must not cost the study
            words = f"{name}: its figures could not be made, please report: {error!r}"
            problems.append(because("figures-not-made", words))
    return figures, problems


def summary(record: VisitRecord, figures: Sequence[RunFigures]) -> str:
    """What a person wants to see of a visit that has just ended."""
    if record.outcome is not Outcome.COMPLETED:
        text = "; ".join(map(str, record.reasons))
        return text if len(text) <= _SHOWN_REASON_CHARACTERS else f"{text[: _SHOWN_REASON_CHARACTERS - 1]}…"
    # A doubt is told of a run without a speed too.
    told = [(run, words) for run in figures if (words := _speed(run)) or _doubt(run)]
    parts = []
    for index, (run, words) in enumerate(told):
        count = _queries(run)
        # `cold 93 s, warm 80 s (22 of 22)`: said once of passes that are alike.
        again = index + 1 < len(told) and _queries(told[index + 1][0]) == count
        parts.append(" ".join(filter(None, (run.run, words, "" if again else count, _doubt(run)))))
    # A reader of the log shall not take it for the speed of anything real.
    return ", ".join(parts) + (" (emulated processors)" if parts and record.emulated else "")


def _doubt(run: RunFigures) -> str:
    """`(suspect)` and the like; empty where a run is valid."""
    return "" if run.validity is Validity.VALID else f"({run.validity.value})"


def _speed(run: RunFigures) -> str | None:
    """What a run is about, as `24,310 tps`, `1,301 MiB/s` or `93 s`; `> 93 s` where a part was stopped; None without any."""
    whole = {row.metric: row for row in run.figures if row.phase == "measure" and not row.item}
    tps = whole.get("tps")
    if tps is not None and tps.value is not None:
        return f"{tps.value:,.0f} tps"
    throughput = whole.get("throughput_mib_per_s")
    if throughput is not None and throughput.value is not None:
        return f"{throughput.value:,.{0 if throughput.value >= _WHOLE_MIB_FROM else 1}f} MiB/s"
    for row in (whole[metric] for metric in _TIMES if metric in whole):
        seconds = row.limit if row.value is None else row.value
        if seconds is not None:
            words = format_duration(seconds) if seconds >= _WHOLE_SECONDS_FROM else f"{seconds:.1f} s"
            return f"> {words}" if row.value is None else words
    return _cuts(run)


def _cuts(run: RunFigures) -> str | None:
    """How many power cuts were bad, as `3 of 160 cuts bad, 0 of 40 in recovery`; None of a run without any."""
    told = []
    for phase, words in ((CUT, "cuts bad"), (SOUGHT, "sought"), (RECUT, "in recovery")):
        cuts, bad = (
            sum(row.value or 0 for row in run.figures if (row.phase, row.metric) == (phase, metric))
            for metric in ("power_cuts", "power_cuts_bad")
        )
        told += [f"{bad:,.0f} of {cuts:,.0f} {words}"] if cuts else []
    return ", ".join(told) or None


def _queries(run: RunFigures) -> str:
    """How many queries ended within their limit, as `(22 of 22)`; nothing of a run without queries."""
    completed = next((row.value for row in run.figures if row.metric == "queries_completed"), None)
    asked = sum(row.metric == "query_s" and bool(row.item) for row in run.figures)
    return "" if completed is None else f"({completed:.0f} of {asked})"
