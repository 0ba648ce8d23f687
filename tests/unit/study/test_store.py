from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.studies.planted_reasons import planted

import bedplate
from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.plan import (
    DEFAULTS_VERSION,
    Canary,
    DatasetScale,
    EngineSetup,
    Expansion,
    Load,
    Plan,
    PlannedCell,
    PlannedWorkload,
    Schedule,
    ScheduledVisit,
)
from bedplate.model.visit import FORMAT_VERSION, Outcome, ScratchDevice, VisitKey, VisitRecord
from bedplate.study.records import StudySchedule
from bedplate.study.store import Attempt, StudyStore, writer_of

CELL = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), ClusterLevels())
DATASET = Dataset("pgbench", Levels(scale=1))
RUNS = (RunSpec("ro", "pgbench"),)
EXPANSION = Expansion((PlannedCell(CELL, (Load(DATASET, RUNS),)),), (), None)
PLAN = Plan(
    title="t",
    repetitions=3,
    seed=1,
    executor="local",
    scratch_device=ScratchDevice(image_bytes=2**30),
    devices=(CELL.device,),
    kernels=(CELL.kernel,),
    filesystems=(CELL.filesystem,),
    engines=(EngineSetup("postgresql", (CELL.build,), (CELL.cluster,)),),
    workloads=(PlannedWorkload("pgbench", (DatasetScale(1),), RUNS),),
    canary=Canary(enabled=False),
)
MACHINE = Machine("h", "d", "6.1", "x86_64", "cpu", 2, 2**32, 4096, ("ext4",), 2, True, None, "b", True)


def schedule(repetitions: int = 3) -> Schedule:
    visits = tuple(ScheduledVisit(i, CELL.id, DATASET.id, i + 1) for i in range(repetitions))
    return Schedule(1, repetitions, visits)


def create(directory: Path) -> StudyStore:
    return StudyStore.create(
        directory,
        plan=PLAN,
        plan_text="title = 't'\n",
        plan_files={"own.sql": "select 1"},
        machine=MACHINE,
        expansion=EXPANSION,
        schedule=schedule(),
    )


def extend(store: StudyStore) -> None:
    store.extend(
        plan=replace(PLAN, repetitions=5),
        plan_text="title = 't' # more\n",
        plan_files={"own.sql": "select 1", "scripts/two.sql": "select 2"},
        expansion=EXPANSION,
        schedule=schedule(5),
        change="extended from 3 to 5 repetitions",
    )


def write_record(attempt: Attempt, visit: ScheduledVisit, outcome: Outcome = Outcome.COMPLETED) -> None:
    record = VisitRecord(
        format_version=FORMAT_VERSION,
        key=VisitKey(visit.cell_id, visit.dataset_id, visit.repetition, attempt.number),
        cell=CELL,
        dataset=DATASET,
        outcome=outcome,
        reasons=() if outcome is Outcome.COMPLETED else planted("why"),
        failed_step=None,
        started_wall_s=0.0,
        seconds=1.0,
        boot_id="b",
        executor="local",
    )
    codec.write(attempt.directory / "visit.json", record)


def finish(store: StudyStore, visit: ScheduledVisit, outcome: Outcome = Outcome.COMPLETED) -> int:
    with store.attempt(visit) as attempt:
        write_record(attempt, visit, outcome)
        attempt.finish()
        return attempt.number


def indexes(visits: tuple[ScheduledVisit, ...]) -> list[int]:
    return [visit.index for visit in visits]


def test_a_new_study_has_everything_due_and_says_who_made_it(tmp_path: Path) -> None:
    with create(tmp_path / "s") as store:
        assert [0, 1, 2] == indexes(store.due_visits(schedule()))
        assert ["created"] == [entry.what for entry in store.facts.history]
        assert PLAN.digest == store.facts.plan_digest
        assert "select 1" == (store.layout.plan_files / "own.sql").read_text()


def test_a_study_says_which_defaults_its_plan_is_read_with(tmp_path: Path) -> None:
    with create(tmp_path / "s") as store:
        assert DEFAULTS_VERSION == store.facts.defaults
        older = json.loads(store.layout.facts.read_text())
        del older["defaults"]
        store.layout.facts.write_text(json.dumps(older))
        # What was begun before there were versions was read with the first.
        assert 1 == store.facts.defaults


def test_a_finished_visit_is_due_no_more_in_the_next_start_either(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        assert 1 == finish(store, schedule().visits[1])
        assert [0, 2] == indexes(store.due_visits(schedule()))
    with StudyStore.open(tmp_path) as store:
        assert [0, 2] == indexes(store.due_visits(schedule()))


def test_a_failed_visit_is_due_again_only_when_asked_and_keeps_its_first_attempt(tmp_path: Path) -> None:
    visit = schedule().visits[0]
    with create(tmp_path) as store:
        assert 1 == finish(store, visit, Outcome.FAILED)
        assert [1, 2] == indexes(store.due_visits(schedule()))
        assert [0, 1, 2] == indexes(store.due_visits(schedule(), retry_failed=True))
        assert 2 == finish(store, visit)
        assert [1, 2] == indexes(store.due_visits(schedule(), retry_failed=True))
        assert [1, 2] == list(store.layout.attempts_at(visit))


def test_an_attempt_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    visit = schedule().visits[0]

    def interrupted(store: StudyStore) -> None:
        with store.attempt(visit) as attempt:
            write_record(attempt, visit)
            raise KeyboardInterrupt

    with create(tmp_path) as store:
        with pytest.raises(KeyboardInterrupt):
            interrupted(store)
        assert [] == list(store.layout.place_of(visit).iterdir())
        assert [0, 1, 2] == indexes(store.due_visits(schedule()))


class Killed(BaseException):
    """Stands for SIGKILL: nothing that would clean up runs."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Iterator[None]:
    """Die at the n-th change of a name or sync to the disk, and leave everything as it is."""
    steps = 0

    def counted(call: object) -> object:
        def run(*arguments: object, **more: object) -> object:
            nonlocal steps
            steps += 1
            if steps == step:
                raise Killed
            return call(*arguments, **more)  # type: ignore[operator]

        return run

    with monkeypatch.context() as patch:
        for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "replace"), (Path, "write_text")):
            patch.setattr(owner, name, counted(getattr(owner, name)))
        patch.setattr("shutil.rmtree", lambda *_a, **_k: None)
        yield


@pytest.mark.parametrize("step", range(1, 12))
def test_a_kill_while_a_visit_is_finished_leaves_it_whole_or_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    visit = schedule().visits[0]
    store = create(tmp_path)
    done = False
    with killed_at(monkeypatch, step):
        try:
            finish(store, visit)
            done = True
        except Killed:
            pass
    store.close()
    with StudyStore.open(tmp_path) as again:
        due = indexes(again.due_visits(schedule()))
        if done:
            assert [1, 2] == due
        if due == [1, 2]:
            (path,) = again.layout.attempts_at(visit).values()
            assert Outcome.COMPLETED is codec.read(VisitRecord, path / "visit.json").outcome
        else:
            assert [] == list(again.layout.place_of(visit).glob("*"))


@pytest.mark.parametrize("step", range(1, 30))
def test_a_kill_while_a_study_is_created_lets_the_next_create_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    made = None
    with killed_at(monkeypatch, step), suppress(Killed):
        made = create(tmp_path)
    _free(made, tmp_path)
    if (tmp_path / "study.json").exists():
        with StudyStore.open(tmp_path) as store:
            assert [0, 1, 2] == indexes(store.due_visits(schedule()))
    else:
        with create(tmp_path) as store:
            assert ["created"] == [entry.what for entry in store.facts.history]


@pytest.mark.parametrize("step", range(1, 30))
def test_a_kill_while_a_study_is_extended_leaves_the_old_or_the_new_plan_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    store = create(tmp_path)
    finish(store, schedule().visits[0])
    with killed_at(monkeypatch, step), suppress(Killed):
        extend(store)
    store.close()
    with StudyStore.open(tmp_path) as again:
        whole = (
            again.facts.plan_digest == PLAN.digest,
            again.layout.plan.read_text() == "title = 't'\n",
            len(codec.read(StudySchedule, again.layout.schedule).visits) == 3,
            len(again.facts.history) == 1,
            not (again.layout.plan_files / "scripts/two.sql").exists(),
        )
        assert 1 == len(set(whole)), whole
        assert [1, 2, 3, 4] == indexes(again.due_visits(schedule(5)))
        assert not again.layout.extension.exists()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        # A folder named as an attempt, such as 2.1, is one that was damaged.
        st.text("0123456789.abc~²٣-", min_size=1, max_size=12).filter(
            lambda name: name not in (".", "..") and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", name)
        ),
        unique=True,
    ),
    st.booleans(),
)
def test_foreign_names_beside_visits_are_no_visits(names: list[str], folders: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, create(Path(folder)) as store:
        finish(store, schedule().visits[0])
        place = store.layout.place_of(schedule().visits[0])
        for name in names:
            if not (place / name).exists():
                (place / name).mkdir() if folders else (place / name).write_text("{")
        assert [1, 2] == indexes(store.due_visits(schedule()))
        assert 2 == finish(store, schedule().visits[0])


def test_a_file_named_as_the_next_attempt_stays_and_the_attempt_takes_the_number_after_it(
    tmp_path: Path,
) -> None:
    with create(tmp_path) as store:
        visit = schedule().visits[0]
        finish(store, visit)
        stranger = store.layout.attempt(visit, 2)
        stranger.write_text("{")
        assert 3 == finish(store, visit)
        assert "{" == stranger.read_text()


def test_a_directory_with_something_else_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.odt").write_text("ten years")
    with pytest.raises(StudyError, match="not empty and no study"):
        create(tmp_path)
    assert ["thesis.odt"] == [path.name for path in tmp_path.iterdir()]


def test_a_study_is_not_made_over_another(tmp_path: Path) -> None:
    create(tmp_path).close()
    with pytest.raises(StudyError, match="not empty"):
        create(tmp_path)


def test_no_study_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"no study\.json"):
        StudyStore.open(tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_a_study_of_another_format_is_refused_and_its_lock_let_go(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        newer = {**codec.to_json(store.facts), "format_version": FORMAT_VERSION + 1, "unheard_of": 1}
        codec.write(store.layout.facts, newer)
    for _ in range(2):
        with pytest.raises(StudyError, match=f"of format {FORMAT_VERSION + 1}"):
            StudyStore.open(tmp_path)


def as_of_format_1(store: StudyStore) -> None:
    codec.write(store.layout.facts, replace(store.facts, format_version=1))


def test_a_study_of_format_1_gets_the_format_of_the_first_visit_that_is_added(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        as_of_format_1(store)
    with StudyStore.open(tmp_path) as store:
        store.note("looked at")
        assert 1 == store.facts.format_version
        finish(store, schedule().visits[0])
        assert FORMAT_VERSION == store.facts.format_version


def test_a_study_of_format_1_gets_the_format_of_its_extension(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        as_of_format_1(store)
        extend(store)
        assert FORMAT_VERSION == store.facts.format_version


def test_half_written_json_is_refused_by_name(tmp_path: Path) -> None:
    create(tmp_path).close()
    text = (tmp_path / "study.json").read_text()
    (tmp_path / "study.json").write_text(text[: len(text) // 2])
    with pytest.raises(StudyError, match=r"study\.json is not JSON"):
        StudyStore.open(tmp_path)


def test_a_second_writer_is_refused_with_the_first_one_s_pid(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        with pytest.raises(StudyError, match=f"written by process {os.getpid()}"):
            StudyStore.open(tmp_path)
        assert str(os.getpid()) == writer_of(store.layout)
    assert writer_of(store.layout) is None


def test_a_killed_writer_holds_nothing_and_its_unfinished_visit_is_swept(tmp_path: Path) -> None:
    create(tmp_path).close()
    place = StudyStore.open(tmp_path)
    visit = schedule().visits[0]
    unfinished = place.layout.attempt(visit, 1).with_name("1.1.unfinished")
    place.close()
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from bedplate.study.store import StudyStore\n"
        "store = StudyStore.open(Path(sys.argv[1]))\n"
        "Path(sys.argv[2]).mkdir(parents=True)\n"
        "(Path(sys.argv[2]) / 'visit.json').write_text('{\"half')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), str(unfinished)],
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(bedplate.__file__).parent.parent)},
    )
    assert -9 == killed.returncode
    assert unfinished.exists()
    with StudyStore.open(tmp_path) as store:
        assert not unfinished.exists()
        assert [0, 1, 2] == indexes(store.due_visits(schedule()))


def test_an_extension_is_written_into_the_history(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        extend(store)
        assert ["created", "extended from 3 to 5 repetitions"] == [
            entry.what for entry in store.facts.history
        ]
        assert [0, 1, 2, 3, 4] == indexes(store.due_visits(schedule(5)))


def _free(store: StudyStore | None, directory: Path) -> None:
    """The lock dies with its process; in here its descriptor has to be closed."""
    if store is not None:
        store.close()
        return
    lock = directory / ".lock"
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and entry.readlink() == lock:
            os.close(int(entry.name))


def test_a_finished_visit_has_checksums_and_is_not_done_when_it_was_damaged_since(tmp_path: Path) -> None:
    visit = schedule().visits[0]
    with create(tmp_path) as store:
        finish(store, visit)
        file = store.layout.attempt(visit, 1) / "visit.json"
        assert (0, [1, 2]) == (
            store.unsuccessful(schedule()),
            indexes(store.due_visits(schedule(), retry_failed=True)),
        )
        file.write_text(file.read_text().replace('"seconds": 1.0', '"seconds": 2.0'))
        assert 1 == store.unsuccessful(schedule())
        assert [1, 2] == indexes(store.due_visits(schedule()))
        assert [0, 1, 2] == indexes(store.due_visits(schedule(), retry_failed=True))
        assert 2 == finish(store, visit)
        assert 0 == store.unsuccessful(schedule())


def test_a_visit_whose_record_is_gone_keeps_its_number(tmp_path: Path) -> None:
    visit = schedule().visits[0]
    with create(tmp_path) as store:
        finish(store, visit)
        (store.layout.attempt(visit, 1) / "visit.json").unlink()
        assert [0, 1, 2] == indexes(store.due_visits(schedule(), retry_failed=True))
        assert 2 == finish(store, visit)
