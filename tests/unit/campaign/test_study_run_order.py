"""A study with an executor that only pretends: order, failures, lost visits, what is kept."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.planted_reasons import planted

from bedplate.campaign import start
from bedplate.campaign.start import SharedInputs, StudyRun
from bedplate.errors import BedplateError, MachineUnfit
from bedplate.executors.protocol import AfterRepetition, StartOutcome
from bedplate.host.facts import read_machine
from bedplate.model import codec
from bedplate.model.levels import Scalar
from bedplate.model.plan import Plan, ScheduledVisit
from bedplate.model.reason import sentences
from bedplate.model.visit import FORMAT_VERSION, EngineBuild, Outcome, VisitRecord, VisitRequest
from bedplate.plan.estimate import visit_seconds
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.rules import LOCAL, QEMU, Platform
from bedplate.study.records import recorded_expansion
from bedplate.study.store import StudyStore

PLAN = """
title = "t"
repetitions = 2
seed = 5
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
barrier = { vary = [true, false] }
[postgresql]
version = "18"
[[workload]]
type = "pgbench"
scale = 5
[[workload.run]]
script = "read-only"
clients = 1
duration = "60 s"
"""

OnEvent = Callable[[Mapping[str, Scalar]], None]
Deed = Callable[[VisitRequest, Path], VisitRecord | None]


class Pretender:
    """Lives through nothing; `deeds` say what becomes of the n-th visit."""

    def __init__(self, **deeds: Callable[[VisitRequest, Path], VisitRecord | None]) -> None:
        self.name = "pretender"
        self.requests: list[VisitRequest] = []
        self.boots: list[int | None] = []
        self.closed = False
        self._deeds = deeds

    def run_visit(
        self, request: VisitRequest, directory: Path, on_event: OnEvent, *, boot: int | None = None
    ) -> None:
        assert not self.closed
        self.requests.append(request)
        self.boots.append(boot)
        on_event({"event": "step", "step": "mkfs"})
        deed = self._deeds.get(f"visit_{len(self.requests)}", complete)
        record = deed(request, directory)
        if record is not None:
            codec.write(directory / "visit.json", record)

    def called(self, name: str) -> Pretender:
        self.name = name
        return self

    def close(self) -> None:
        self.closed = True


def record_of(
    request: VisitRequest, outcome: Outcome, *reasons: str, runs: tuple[str, ...] = ()
) -> VisitRecord:
    return VisitRecord(
        format_version=FORMAT_VERSION,
        key=request.key,
        cell=request.cell,
        dataset=request.dataset,
        outcome=outcome,
        reasons=planted(*reasons),
        failed_step=None if outcome is Outcome.COMPLETED else "load",
        started_wall_s=0.0,
        seconds=1.0,
        boot_id="b",
        executor="pretender",
        runs=runs,
    )


def complete(request: VisitRequest, _directory: Path) -> VisitRecord:
    return record_of(request, Outcome.COMPLETED)


def fail(request: VisitRequest, _directory: Path) -> VisitRecord:
    return record_of(request, Outcome.FAILED, "the disk is full")


def vanish(_request: VisitRequest, _directory: Path) -> VisitRecord | None:
    raise BedplateError("the visit was killed by signal 9")


class Watcher:
    """A display that remembers."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.left: list[float] = []
        self.ends: list[tuple[str, str]] = []

    def note(self, text: str) -> None:
        raise AssertionError(text)

    def preparing(self, step: str, current: int, total: int) -> None:
        raise AssertionError(step)

    def visit_begins(self, label: str, *, number: int, of: int, seconds_left: float) -> None:
        self.labels.append(f"{number}/{of} {label}")
        self.left.append(seconds_left)

    def event(self, event: Mapping[str, Scalar]) -> None:
        assert {"event": "step", "step": "mkfs"} == event

    def visit_ends(self, outcome: str, seconds: float, summary: str) -> None:
        self.ends.append((outcome, summary))


class Laboratory:
    def __init__(self, directory: Path, text: str = PLAN, *, executor: str = LOCAL) -> None:
        self.plan: Plan = load_plan(text, source="plan.toml", directory=directory)
        self.expansion = expand(self.plan, None, platform=Platform(executor))
        self.schedule = order(self.plan, self.expansion, executor=executor)
        self.store = StudyStore.create(
            directory / "study",
            plan=self.plan,
            plan_text=text,
            plan_files={},
            machine=read_machine(),
            expansion=self.expansion,
            schedule=self.schedule,
        )
        self.watcher = Watcher()
        builds = {
            build: EngineBuild("/p", build.version, build.block_size_bytes, 8192, "", "", "", (), "d")
            for build in self.plan.builds
        }
        self.shared = SharedInputs(self.plan, self.expansion, builds, {}, (), erase_foreign=False)

    def run(
        self,
        executor: Pretender,
        due: tuple[ScheduledVisit, ...] | None = None,
        after_repetition: AfterRepetition | None = None,
    ) -> StartOutcome:
        due = self.store.due_visits(self.schedule) if due is None else due
        return StudyRun(self.store, self.shared, executor, self.watcher).run(due, after_repetition)

    def outcomes(self) -> list[tuple[int, str, tuple[str, ...]]]:
        found = []
        for visit in self.schedule.visits:
            for number, path in self.store.layout.attempts_at(visit).items():
                record = codec.read(VisitRecord, path / "visit.json")
                assert number == record.key.attempt
                found.append((visit.index, record.outcome.value, sentences(record.reasons)))
        return found


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path)


def test_visits_come_in_the_order_of_the_schedule_and_a_failure_stops_none(lab: Laboratory) -> None:
    executor = Pretender(visit_2=fail)
    tally = lab.run(executor)
    assert [(v.cell_id, v.repetition, v.canary) for v in lab.schedule.visits] == [
        (r.key.cell, r.key.repetition, r.key.canary) for r in executor.requests
    ]
    assert (5, 1) == (tally.completed, tally.failed)
    assert [1] == [index for index, outcome, _ in lab.outcomes() if outcome == "failed"]
    assert ("failed", "the disk is full") == lab.watcher.ends[1]
    assert () == lab.store.due_visits(lab.schedule)
    assert 1 == lab.store.unsuccessful(lab.schedule)


def test_between_two_repetitions_the_caller_is_asked_and_may_end_the_start(lab: Laboratory) -> None:
    calls: list[tuple[int, int]] = []

    def once(repetition: int, seconds: float) -> bool:
        assert seconds > 0
        calls.append((repetition, len(lab.outcomes())))
        return False

    kinds = [(visit.repetition, visit.canary) for visit in lab.schedule.visits]
    first = max(number for number, kind in enumerate(kinds) if kind == (1, False))
    outcome = lab.run(Pretender(), after_repetition=once)
    assert (1, first + 1) == (outcome.stopped_after, outcome.completed)
    assert [(1, first + 1)] == calls
    # What is left goes on, and nobody is asked behind the last one.
    rest = lab.run(Pretender(), after_repetition=once)
    assert (None, len(kinds) - first - 1) == (rest.stopped_after, rest.completed)
    assert 1 == len(calls)


def test_a_lost_visit_is_recorded_with_what_is_known_and_can_be_done_again(lab: Laboratory) -> None:
    lab.run(Pretender(visit_3=vanish))
    assert (2, "failed", ("the visit was killed by signal 9",)) in lab.outcomes()
    place = lab.store.layout.attempt(lab.schedule.visits[2], 1)
    record = codec.read(VisitRecord, place / "visit.json")
    assert ("pretender", "visit process") == (record.executor, record.failed_step)
    again = lab.store.due_visits(lab.schedule, retry_failed=True)
    assert [2] == [visit.index for visit in again]
    executor = Pretender()
    lab.run(executor, again)
    assert [2] == [request.key.attempt for request in executor.requests]
    assert 0 == lab.store.unsuccessful(lab.schedule)


def test_a_record_that_is_damaged_or_missing_is_a_lost_visit(lab: Laboratory) -> None:
    def scribble(_request: VisitRequest, directory: Path) -> None:
        (directory / "visit.json").write_text("{")

    tally = lab.run(Pretender(visit_1=scribble, visit_2=lambda *_: None))
    assert 2 == tally.failed
    reasons = [" ".join(reasons) for _, outcome, reasons in lab.outcomes() if outcome == "failed"]
    assert "is not JSON" in reasons[0]
    assert "cannot be read" in reasons[1]


def test_an_interrupted_visit_leaves_nothing_and_is_due_again(lab: Laboratory) -> None:
    def interrupted(_request: VisitRequest, _directory: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.run(Pretender(visit_2=interrupted))
    assert [0] == [index for index, _, _ in lab.outcomes()]
    assert [] == list(lab.store.layout.visits.rglob("*.unfinished"))
    assert lab.schedule.visits[1:] == lab.store.due_visits(lab.schedule)


def test_a_study_that_cannot_be_written_stops_with_the_reason(lab: Laboratory) -> None:
    def full(_request: VisitRequest, directory: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(directory / "visit.json"))

    with pytest.raises(MachineUnfit, match=r"(?s)visit\.json: No space left on device.*same command again"):
        lab.run(Pretender(visit_2=full))
    assert [0] == [index for index, _, _ in lab.outcomes()]


def test_what_the_machine_fails_is_no_result_and_ends_the_start(lab: Laboratory) -> None:
    def unfit(_request: VisitRequest, _directory: Path) -> None:
        raise MachineUnfit("/dev/sdb is held by process 7 (sleep)")

    executor = Pretender(visit_2=unfit)
    with pytest.raises(MachineUnfit, match=r"process 7 \(sleep\)") as caught:
        lab.run(executor)
    assert 3 == caught.value.exit_code
    assert ([0], 2) == ([index for index, _, _ in lab.outcomes()], len(executor.requests))
    assert executor.closed
    assert lab.schedule.visits[1:] == lab.store.due_visits(lab.schedule)


def misspelt(request: VisitRequest, _directory: Path) -> VisitRecord:
    words = f"12:00:0{request.key.repetition} the server did not start: unknown parameter shared_bufers"
    return record_of(request, Outcome.FAILED, words)


def visits_until_given_up(lab: Laboratory, **deeds: Deed) -> int:
    executor = Pretender(**deeds)
    tally = lab.run(executor)
    assert bool(tally.left_behind) is (len(executor.requests) < len(lab.schedule.visits))
    return len(executor.requests)


def test_what_fails_every_visit_alike_ends_the_start_after_the_second(tmp_path: Path) -> None:
    lab = Laboratory(tmp_path, PLAN + "[canary]\nenabled = false\n")
    executor = Pretender(**{f"visit_{number}": misspelt for number in range(1, 9)})
    tally = lab.run(executor)
    assert (2, 2) == (len(executor.requests), tally.failed)
    assert "failed alike, at load: 12:00:01 the server did not start" in tally.left_behind[0]
    assert "the 2 that are left" in tally.left_behind[1]


def test_a_cell_that_differs_is_tried_before_the_study_is_given_up(tmp_path: Path) -> None:
    # Two file systems with barriers on and off, and without canaries: the first two may be of one type.
    text = (
        PLAN + '[[filesystem]]\ntype = "xfs"\nbarrier = { vary = [true, false] }\n[canary]\nenabled = false\n'
    )
    tried: dict[bool, set[int]] = {}
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        lab = Laboratory(folder, text.replace("seed = 5", f"seed = {seed}"))
        cells = [lab.expansion.find(v.cell_id, v.dataset_id, canary=False)[0] for v in lab.schedule.visits]
        one, other = (cell.filesystem for cell in cells[:2])
        deeds: dict[str, Deed] = {f"visit_{number}": misspelt for number in range(1, 9)}
        tried.setdefault(one.type == other.type or one.barrier == other.barrier, set()).add(
            visits_until_given_up(lab, **deeds)
        )
    assert {False: {2}, True: {3}} == tried


def test_one_success_or_another_reason_keeps_the_study_going(tmp_path: Path) -> None:
    def otherwise(request: VisitRequest, _directory: Path) -> VisitRecord:
        return record_of(request, Outcome.FAILED, "another reason")

    for name, deed in (("success", complete), ("reason", otherwise)):
        folder = tmp_path / name
        folder.mkdir()
        deeds: dict[str, Deed] = {f"visit_{number}": misspelt for number in range(1, 9)}
        lab = Laboratory(folder)
        assert len(lab.schedule.visits) == visits_until_given_up(lab, **{**deeds, "visit_1": deed})


def test_a_bug_in_a_figure_costs_the_visit_its_success_and_nothing_else(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_runs(request: VisitRequest, directory: Path) -> VisitRecord:
        (directory / "runs" / "01-a").mkdir(parents=True)
        (directory / "runs" / "01-a" / "record.json").write_text("{}")
        (directory / "runs" / "02-b").mkdir()
        return record_of(request, Outcome.COMPLETED, runs=("01-a", "02-b"))

    def broken(_visit: Path, run: Path) -> None:
        # The second left no record, as its visit ended within it: it must not be asked for.
        assert "01-a" == run.name
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(start, "make_figures", broken)
    tally = lab.run(Pretender(visit_1=with_runs))
    assert (5, 1) == (tally.completed, tally.failed)
    (reasons,) = [reasons for _, outcome, reasons in lab.outcomes() if outcome == "failed"]
    assert "01-a: its figures could not be made, please report: ZeroDivisionError" in reasons[0]


def test_the_time_left_is_corrected_by_what_visits_took(
    lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    estimates = [
        visit_seconds(
            lab.plan, *lab.expansion.find(v.cell_id, v.dataset_id, canary=v.canary), canary=v.canary
        )
        for v in lab.schedule.visits
    ]

    def slow(request: VisitRequest, _directory: Path) -> VisitRecord:
        # Each takes three times what was reckoned.
        clock[0] += 3 * estimates[len(lab.watcher.left) - 1]
        return record_of(request, Outcome.COMPLETED)

    lab.run(Pretender(**{f"visit_{n}": slow for n in range(1, 7)}))
    assert sum(estimates) == pytest.approx(lab.watcher.left[0])
    for number in range(1, 6):
        assert 3 * sum(estimates[number:]) == pytest.approx(lab.watcher.left[number])


def test_a_label_names_what_differs_and_the_repetition(tmp_path: Path) -> None:
    text = PLAN.replace('version = "18"', 'version = "18"\nblock_size = { vary = ["8 kB", "16 kB"] }')
    lab = Laboratory(tmp_path, text + '\n[canary]\nfilesystem = "ext4"\n')
    lab.run(Pretender())
    assert "1/10 canary 1" == lab.watcher.labels[0]
    labels = {label.partition(" ")[2] for label in lab.watcher.labels}
    assert "ext4 nobarrier · db block 16 KiB · repetition 2" in labels
    assert 10 == len(labels)


def test_a_visit_names_a_switch_as_the_plan_has_it(tmp_path: Path) -> None:
    text = PLAN.replace('version = "18"', 'version = "18"\ndata_checksums = { vary = [true, false] }')
    lab = Laboratory(tmp_path, text)
    lab.run(Pretender())
    labels = {label.partition(" ")[2] for label in lab.watcher.labels}
    assert {f"ext4 nobarrier · data_checksums {word} · repetition 2" for word in ("true", "false")} <= labels


def test_every_repetition_has_its_own_load_and_every_cell_of_it_the_same(lab: Laboratory) -> None:
    executor = Pretender()
    lab.run(executor)
    seeds: dict[int, set[int]] = {}
    for request in executor.requests:
        if not request.key.canary:
            seeds.setdefault(request.key.repetition, set()).add(request.seed)
    assert [1, 1] == [len(found) for found in seeds.values()]
    assert seeds[1] != seeds[2]


def test_what_is_recorded_of_a_schedule_gives_it_back(lab: Laboratory) -> None:
    # The canary loads the same dataset (scale 5) with other runs: neither may take the other's.
    expansion, schedule = recorded_expansion(lab.store.schedule)
    assert lab.schedule == schedule
    assert lab.expansion.by_visit == expansion.by_visit
    assert lab.expansion.canary == expansion.canary
    assert lab.expansion.pruned == expansion.pruned


def test_an_executor_is_closed_whatever_happens(lab: Laboratory) -> None:
    def interrupted(_request: VisitRequest, _directory: Path) -> None:
        raise KeyboardInterrupt

    done, broken = Pretender(), Pretender(visit_1=interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.run(broken)
    lab.run(done)
    assert broken.closed
    assert done.closed


def test_a_visit_says_which_boot_it_shares(tmp_path: Path) -> None:
    lab = Laboratory(tmp_path, PLAN + "[guest]\nvisits_per_boot = 2\n", executor=QEMU)
    executor = Pretender().called(QEMU)
    lab.run(executor)
    assert [visit.boot for visit in lab.schedule.visits] == executor.boots
    # A canary at each end by itself, and a boot for the two cells of each repetition.
    assert [1, 1, 2, 2] == executor.boots[1:-1]
    assert 4 == len(set(executor.boots))


def test_the_journal_is_handed_to_those_that_ask_for_one_and_must_be_named_as_well(tmp_path: Path) -> None:
    text = PLAN.replace("barrier = ", 'journal = { vary = ["internal", "external"] }\nbarrier = ')
    lab = Laboratory(tmp_path, text + '[journal_device]\ndevice = "/dev/disk/by-id/second"\n')
    lab.shared = replace(lab.shared, erase=("/dev/disk/by-id/second",))
    executor = Pretender()
    lab.run(executor)
    for request in executor.requests:
        external = request.cell.filesystem.journal == "external"
        assert external is (request.journal_device is not None)
        if request.journal_device is not None:
            assert "/dev/disk/by-id/second" == request.journal_device.device
            assert ("/dev/disk/by-id/second",) == request.journal_device.erase
    assert {True, False} == {request.journal_device is None for request in executor.requests}


class Machine:
    """A machine whose kernel a test boots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.release = "none"
        monkeypatch.setattr("os.uname", lambda: self)


def test_on_the_machine_itself_a_study_goes_as_far_as_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PLAN + '[machine]\nkernel = { vary = ["6.1", "6.12"] }\n[canary]\nenabled = false\n'
    lab = Laboratory(tmp_path, text)
    machine = Machine(monkeypatch)
    kernels = []
    for _ in range(9):
        executor = Pretender().called(LOCAL)
        tally = lab.run(executor)
        kernels.append({request.cell.kernel.release for request in executor.requests})
        assert executor.closed
        if tally.needs_kernel is None:
            break
        machine.release = f"{tally.needs_kernel}.0-test"
    # Nothing under the wrong kernel, each kernel once or twice, and in the end all of it.
    assert set() == kernels[0]
    assert all(len(found) == 1 for found in kernels[1:])
    assert () == lab.store.due_visits(lab.schedule)
    assert 3 <= len(kernels) <= 5
    assert {outcome for _, outcome, _ in lab.outcomes()} == {"completed"}


def test_a_guest_brings_its_kernel(tmp_path: Path) -> None:
    lab = Laboratory(tmp_path, PLAN + '[machine]\nkernel = "4.0"\n', executor=QEMU)
    tally = lab.run(Pretender().called(QEMU))
    assert (None, 6) == (tally.needs_kernel, tally.completed)
