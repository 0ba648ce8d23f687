"""An own engine for real: programs that do what they may not are ended with a sentence, and the toy's faults are found."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.tools.processes import processes_naming

from bedplate.cuts.points import is_drawn, read_cuts
from bedplate.cuts.records import (
    LOG_FILE,
    POINTS_FILE,
    RECORDING_FILE,
    PointOutcome,
    PointRecord,
    Profile,
    RecordingFacts,
)
from bedplate.cuts.verdict import PowerCutVerdict, measured_durability, verdict_of
from bedplate.engines.external.oracle import POWER_CUT
from bedplate.engines.external.prepare import PROGRAMS_KEY, read_folder
from bedplate.errors import BedplateError, KilledFromOutside, OutputNotUnderstood, RequirementMissing
from bedplate.figures.run import make_figures
from bedplate.figures.validity import CACHES_DROPPED, OTHERS_AT_WORK, THROTTLED_MACHINE
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.native_driver import LIBFUSE3, ensure_driver, library_requirement
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.recorder import recorder_reasons
from bedplate.host.shut_in import DATA, PROGRAMS, Confinement
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, Dataset, FilesystemLevels, RunSpec
from bedplate.model.device_cache import CACHES
from bedplate.model.durability import UNSAFE
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome, RunRecord, VisitRequest
from bedplate.units import MIB
from bedplate.visit.cuts import Driven, OracleAnswer, Recorded, Subject
from bedplate.workloads.acks.figures import READ_LATE

if TYPE_CHECKING:
    from bedplate.visit.recording import VisitContext
    from bedplate.visit.server import ServerSite

    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

SOURCES = Path(__file__).resolve().parents[2]
EXAMPLES = SOURCES / "examples" / "engines"
ENGINE = 'name = "brickbase"\ncheck_limit = "5 min"\n'
# The unit tests and other checkouts have programs that sleep, too: these are ours.
_SLEEPS = f"sleep {10**6 + os.getpid()}"
_LEFT = f"bedplate-test-own-left-{os.getpid()}"
# No network: not even a name server.
_ASKS = "import socket\nsocket.create_connection(('192.0.2.1', 80), 3)\n"
HONEST = """#!/bin/sh
echo 'brickbase 1' >&2
echo begin
for number in 1 2 3; do echo ack 0 $number; done
"""


class PretendedRecording:
    """A folder in place of a recorded file system, and a file in place of the recorder's marks."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.data_directory = base / "data"
        self.mark_file = base / "marks"
        self.log = base / "log"
        self.log_is_full = False
        self.undo = ExitStack()

    def mark(self, text: str) -> None:
        with self.mark_file.open("a") as file:
            file.write(f"{text}\n")

    def mark_count(self) -> int:
        return self.mark_file.read_bytes().count(b"\n")

    def settle(self) -> None:
        pass

    def pace(self, duration_s: float) -> Callable[[], float]:
        return lambda: 0.0

    def is_log_nearly_full(self) -> bool:
        return self.log_is_full


class Workshop:
    """Programs of an author's, and what is around them in a visit."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.account = server_account()
        self.folder = base / "engine"
        self.folder.mkdir(mode=0o755)
        self.recording = PretendedRecording(base)
        self.recording.data_directory.mkdir(mode=0o700)
        shutil.chown(self.recording.data_directory, self.account.uid, self.account.gid)
        self.recording.mark_file.touch()

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def drive(self, writer: str = HONEST, *, duration_s: float = 1.0) -> Driven:
        self.program("writer", writer)
        cell = SimpleNamespace(cluster=ClusterLevels(configuration=ENGINE))
        context = SimpleNamespace(
            account=self.account,
            commands=Commands(),
            enter_group=lambda: None,
            native_drivers={PROGRAMS_KEY: str(self.folder)},
            engine_settings=Levels(),
            log_directory=self.base,
            request=SimpleNamespace(cell=cell, provenance={}),
        )
        recorded = cast("Recorded", self.recording)
        made = POWER_CUT.writer(cast("VisitContext", context), recorded, clients=1)
        return made.drive(self.base / "said", duration_s=duration_s, seed=1, companion=nullcontext())

    def examine(self, checker: str, *, engine: str = ENGINE) -> OracleAnswer:
        (self.folder / "engine.toml").write_text(engine)
        self.program("checker", checker)
        site = SimpleNamespace(
            data_directory=self.recording.data_directory, account=self.account, commands=Commands()
        )
        return POWER_CUT.examine(cast("ServerSite", site), self.subject, {0: 3})

    @property
    def subject(self) -> Subject:
        return Subject("own-engine", 0, Levels(), Levels({PROGRAMS_KEY: str(self.folder)}))

    def marks(self) -> list[str]:
        return self.recording.mark_file.read_text().splitlines()


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    with tempfile.TemporaryDirectory(prefix="bedplate-test-own-", dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)
        yield Workshop(Path(folder))


def test_what_a_writer_prints_are_the_marks_and_its_first_word_of_error_the_version(
    workshop: Workshop,
) -> None:
    driven = workshop.drive()
    assert ("brickbase 1", None, True) == (driven.version, driven.acknowledged, driven.demands_all)
    assert ["start", "begin", "ack 0 1", "ack 0 2", "ack 0 3", "end", "settled"] == workshop.marks()


@pytest.mark.parametrize(
    ("writer", "said"),
    [
        (
            "#!/bin/sh\necho begin; echo broken >&2; exit 3\n",
            "the writer of brickbase ended with status 3: broken",
        ),
        ("#!/bin/sh\necho begin; kill -SEGV $$\n", "was ended by SIGSEGV"),
        ("#!/bin/nothing-of-the-kind\n", "ended with status 127"),
        (f"#!/usr/bin/env python3\n{_ASKS}", "Address family not supported"),
        ("#!/bin/sh\necho rubbish > /etc/bedplate-test-own\n", "Read-only file system"),
    ],
)
def test_a_writer_that_cannot_go_on_is_quoted(workshop: Workshop, writer: str, said: str) -> None:
    with pytest.raises(BedplateError, match=said):
        workshop.drive(writer)


def test_a_full_disk_is_named_behind_the_writers_words(workshop: Workshop) -> None:
    commands = Commands()
    data = str(workshop.recording.data_directory)
    commands.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", data])
    try:
        with pytest.raises(BedplateError, match="No space left") as caught:
            workshop.drive("#!/bin/sh\necho begin; exec dd if=/dev/zero of=filled bs=64k count=64\n")
        assert "the recorded disk is full: a larger image_size gives it room" in caught.value.reasons
    finally:
        commands.run(["umount", data])


def test_what_a_writer_leaves_running_and_lying_about_is_gone(workshop: Workshop) -> None:
    workshop.drive(
        "#!/bin/sh\necho begin\n"
        f"for place in /tmp /var/tmp /dev/shm; do echo here > $place/{_LEFT}; done\n"
        f"setsid {_SLEEPS} >/dev/null 2>&1 &\necho ack 0 1\n"
    )
    assert [] == processes_naming(_SLEEPS)
    assert not [place for place in ("/tmp", "/var/tmp", "/dev/shm") if Path(place, _LEFT).exists()]


def test_a_full_log_ends_the_writer(workshop: Workshop) -> None:
    endless = (
        "#!/bin/sh\necho begin\nnumber=0\nwhile :; do number=$((number + 1)); echo ack 0 $number; done\n"
    )
    workshop.recording.log_is_full = True
    driven = workshop.drive(endless, duration_s=600)
    assert driven.ended_early
    # One that has a mind of its own about SIGTERM ends by it all the same.
    assert workshop.drive(
        endless.replace("begin\n", "begin\ntrap 'exit 0' TERM\n"), duration_s=600
    ).ended_early


def test_a_writer_that_prints_nothing_or_never_ends_is_killed(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.engines.external.oracle.PREPARATION_LIMIT_S", 0.1)
    with pytest.raises(BedplateError, match="printed no line"):
        workshop.drive(f"#!/bin/sh\nexec {_SLEEPS}\n")
    monkeypatch.undo()
    monkeypatch.setattr("bedplate.engines.external.oracle.PATIENCE_S", 0.1)
    with pytest.raises(BedplateError, match="after SIGTERM"):
        workshop.drive("#!/bin/sh\ntrap '' TERM\necho begin\nwhile :; do :; done\n", duration_s=0.1)


@pytest.mark.parametrize(
    ("checker", "said"),
    [
        ("#!/bin/sh\necho 'page 3 is torn' >&2; exit 7\n", "the checker ended with status 7: page 3 is torn"),
        ("#!/bin/sh\nkill -ABRT $$\n", "the checker was ended by SIGABRT"),
        (f"#!/bin/sh\nexec {_SLEEPS}\n", "the checker did not end within"),
    ],
    ids=["status", "signal", "silence"],
)
def test_a_checker_that_does_not_answer_has_met_damage(workshop: Workshop, checker: str, said: str) -> None:
    # Of those that answer none is late, however slow the machine is.
    found = workshop.examine(checker, engine=ENGINE.replace("5 min", "1 s") if _SLEEPS in checker else ENGINE)
    assert found.present is None
    assert said in found.detected[0]


def test_a_checker_that_prints_without_end_is_ended_before_its_time(workshop: Workshop) -> None:
    found = workshop.examine("#!/bin/sh\nexec yes\n")
    assert (None, ("the checker printed more than 1 MiB",)) == (found.present, found.detected)


def test_a_checker_that_answers_is_taken_at_its_word(workshop: Workshop) -> None:
    answers = """#!/bin/sh\necho '{"clients": {"0": 3}, "wrong": ["a page"]}'\n"""
    found = workshop.examine(answers)
    assert ({0: 3}, (), ("a page",)) == (found.present, found.detected, found.silent)
    with pytest.raises(OutputNotUnderstood):
        workshop.examine("#!/bin/sh\necho all is well\n")
    # Programs that are gone are no damage either.
    (workshop.folder / "engine.toml").rename(workshop.folder / "another.toml")
    with pytest.raises(RequirementMissing, match="run the plan that names their folder"):
        next(iter(POWER_CUT.by_hand(workshop.subject, Path("data"), workshop.account, "runuser")))
    (workshop.folder / "another.toml").rename(workshop.folder / "engine.toml")
    # As the kernel does when memory runs out: nothing was found.
    with pytest.raises(KilledFromOutside):
        workshop.examine("#!/bin/sh\nkill -KILL $$\n")


def test_the_confined_see_their_two_folders_and_have_no_rights(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    account = workshop.account
    asks = (
        "echo $(id -u) $(id -G) $(pwd); ls $1; grep -c : /proc/net/dev; grep NoNewPrivs /proc/self/status; "
        "env | cut -d= -f1 | xargs; ls -A /run /tmp | xargs"
    )
    workshop.program("checker", f"#!/bin/sh\n{asks}\n")
    confined = Confinement(
        (f"{PROGRAMS}/checker", PROGRAMS), workshop.recording.data_directory, workshop.folder, account
    )
    # Where other programs have their sockets.
    with tempfile.TemporaryDirectory(dir="/run"):
        told = Commands().run(confined.argv, confinement=confined).stdout.splitlines()
    who, seen, interfaces, privileges, variables, places = told
    assert "/run: /tmp: data engine" == places
    assert f"{account.uid} {account.gid} {DATA}" == who
    assert ("checker", "1") == (seen, interfaces)
    assert privileges.endswith("1")
    # The shell adds where it stands.
    assert {"HOME", "LC_ALL", "PATH", "TZ"} == set(variables.split()) - {"PWD", "OLDPWD", "SHLVL", "_"}


@pytest.fixture(scope="module")
def recorder() -> str:
    requirement = library_requirement(LIBFUSE3, reason="the power-cut recorder", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    source = SOURCES / "drivers" / f"{RECORDER}.c"
    cache = cache_directory() / "drivers"
    return str(
        ensure_driver(
            RECORDER, source=source, cache_directory=cache, commands=Commands(), libraries=(LIBFUSE3,)
        )
    )


def asked(
    bench: Bench, recorder: str, *, engine: str, settings: dict[str, str], profiles: str, points: int
) -> VisitRequest:
    # ext4 begins to write what is renamed over another file, and may end in time: that hides a rename before its fsync.
    visit: VisitRequest = bench.request(FilesystemLevels("ext4", mount_options=("noauto_da_alloc",)))
    folder = read_folder(EXAMPLES / engine)
    cluster = ClusterLevels(settings=Levels(settings, programs=folder.digest), configuration=folder.text)
    build = BuildLevels.unbuilt("own-engine")
    # What is sought hangs on what the recording happens to hold.
    levels = Levels(points=points, profiles=profiles, cache_bytes=8 * MIB, seed=3, sought=0)
    dataset = Levels(engine="own-engine", image_bytes=256 * MIB, clients=2, duration_s=1)
    return replace(
        visit,
        cell=Cell(visit.cell.device, visit.cell.kernel, visit.cell.filesystem, build, cluster),
        build=None,
        dataset=Dataset("power_cut", dataset),
        runs=(RunSpec("power-cut", "power_cut", levels),),
        native_drivers={RECORDER: recorder, PROGRAMS_KEY: str(folder.path)},
    )


WAL = {"journal_mode": "wal", "synchronous": "full"}


@pytest.mark.parametrize(
    ("engine", "settings", "profiles", "points", "found"),
    [
        ("sqlite", WAL, "subset-512,lost,ordered", 12, set()),
        ("toy", {}, "subset-512,lost,ordered", 12, set()),
        ("toy", {"fault": "directory-never-synced"}, "lost,ordered", 8, {PointOutcome.LOST}),
        ("toy", {"fault": "rename-before-fsync"}, "lost,ordered", 8, {PointOutcome.DETECTED}),
        # Where a segment ends the next one is read all the same, and one in the middle is missing.
        (
            "toy",
            {"fault": "commit-record-first"},
            *("lost,subset-512,ordered", 30),
            {PointOutcome.LOST, PointOutcome.SILENT},
        ),
        # What only a torn write shows: a third of such cuts.
        ("toy", {"fault": "no-checksum"}, "subset-512,ordered", 60, {PointOutcome.SILENT}),
        ("toy", {"fault": "recovery-drops-segment"}, "subset-512,ordered", 80, {PointOutcome.LOST}),
    ],
)
def test_each_planted_fault_is_found_and_none_where_none_is(
    bench: Bench,
    recorder: str,
    *,
    engine: str,
    settings: dict[str, str],
    profiles: str,
    points: int,
    found: set[PointOutcome],
) -> None:
    visit = bench.live(
        asked(bench, recorder, engine=engine, settings=settings, profiles=profiles, points=points)
    )
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert (Outcome.COMPLETED, ()) == (run.outcome, run.reasons)
    facts = codec.read(RecordingFacts, directory / RECORDING_FILE)
    assert (PointOutcome.OK, engine) == (facts.whole_log, facts.facts["name"])
    assert str(facts.facts["engine_version"]).lower().startswith(engine)
    judged = [codec.loads(PointRecord, line) for line in (directory / POINTS_FILE).read_text().splitlines()]
    assert points == sum(is_drawn(record) and not record.point.control for record in judged)
    bad = {record.outcome for record in judged if record.outcome.is_bad and not record.point.control}
    assert bool(found) == bool(bad) == bool(found & bad)
    assert any(record.outcome.is_bad for record in judged if record.point.control)
    assert visit.durability is not None
    assert ("durable", "declared") == (visit.durability.volatile_cache, visit.durability.basis)
    assert [] == bench.left_behind()


# Appends lines with a sum; what it does before it acknowledges is filled in.
_LOG_WRITER = """#!/usr/bin/env python3
import os, sys, time, zlib
opt = dict(word[2:].split("=", 1) for word in sys.argv[2:])
log = os.open(os.path.join(sys.argv[1], "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
other = os.open(os.path.join(sys.argv[1], "other"), os.O_WRONLY | os.O_CREAT, 0o600)
os.fsync(log)
os.fsync(os.open(sys.argv[1], os.O_RDONLY))
os.write(1, b"begin\\n")
until, number = time.monotonic() + float(opt["duration"]), 0
while time.monotonic() < until:
    number += 1
    for client in range(int(opt["clients"])):
        line = b"%9d %19d " % (client, number)
        os.write(log, b"%s%08x\\n" % (line, zlib.crc32(line)))
        """

_LOG_CHECKER = """#!/usr/bin/env python3
import json, os, sys, zlib
clients = {}
with open(os.path.join(sys.argv[1], "log"), "rb") as log:
    for line in log.read().splitlines(keepends=True):
        if len(line) != 39 or line[-9:] != b"%08x\\n" % zlib.crc32(line[:-9]):
            break
        client, number = map(int, line.split()[:2])
        clients[client] = number
print(json.dumps({"clients": clients}))
"""

_ACKNOWLEDGES = """
        os.write(1, b"ack %d %d\\n" % (client, number))
    time.sleep(0.004)
"""


# The standard library's shelf over its own dbm, as its manual shows it: sync() behind each change.
_SHELVE_WRITER = """#!/usr/bin/env python3
import dbm.dumb, os, shelve, sys, time
opt = dict(word[2:].split("=", 1) for word in sys.argv[2:])
print("shelve", file=sys.stderr, flush=True)
store = shelve.Shelf(dbm.dumb.open("store", "c"))
store["begin"] = 1
store.sync()
os.sync()
os.write(1, b"begin\\n")
until, number = time.monotonic() + float(opt["duration"]), 0
while time.monotonic() < until:
    number += 1
    for client in range(int(opt["clients"])):
        store[str(client)] = number
        store.sync()
"""

_SHELVE_CHECKER = """#!/usr/bin/env python3
import dbm.dumb, json, os, shelve, sys
os.chdir(sys.argv[1])
try:
    store = shelve.Shelf(dbm.dumb.open("store", "r"))
    clients = {client: store[client] for client in store if client != "begin"}
    print(json.dumps({"clients": clients}))
except Exception as error:
    print(json.dumps({"refused": [f"{type(error).__name__}: {error}"[:300]]}))
"""


def judged_engine(
    bench: Bench,
    recorder: str,
    *,
    before_ack: str,
    writer: str = _LOG_WRITER,
    checker: str = _LOG_CHECKER,
) -> tuple[PowerCutVerdict, Path]:
    folder = bench.base / "engine"
    folder.mkdir()
    promise = '[[promise]]\nclass = "durable"\nsource = "its README"\n'
    (folder / "engine.toml").write_text(f'name = "forgetful"\n{promise}')
    for name, text in (("writer", f"{writer}{before_ack}{_ACKNOWLEDGES}"), ("checker", checker)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    request = asked(bench, recorder, engine="toy", settings={}, profiles="subset-512,lost,ordered", points=9)
    own = read_folder(folder)
    cluster = ClusterLevels(settings=Levels(programs=own.digest), configuration=own.text)
    visit = bench.live(
        replace(
            request,
            cell=replace(request.cell, cluster=cluster),
            native_drivers={RECORDER: recorder, PROGRAMS_KEY: str(folder)},
        )
    )
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert (Outcome.COMPLETED, ()) == (run.outcome, run.reasons)
    verdict = verdict_of(visit, run, read_cuts(directory))
    assert verdict is not None
    assert [] == bench.left_behind()
    return verdict, directory


def test_an_engine_that_never_syncs_is_unsafe_and_not_the_recorder_broken(
    bench: Bench, recorder: str
) -> None:
    verdict, directory = judged_engine(bench, recorder, before_ack="pass")
    assert () == verdict.refused
    assert verdict.never_synced is not None
    assert "9 of 9 cuts lost some" in str(verdict.never_synced)
    assert [UNSAFE, UNSAFE, UNSAFE] == [verdict.cuts(cache).shown for cache in CACHES]
    facts = codec.read(RecordingFacts, directory / RECORDING_FILE)
    # mkfs and the mount flushed, so that the recorder is known to see flushes.
    assert (facts.all_flushes or 0) > facts.flushes
    # What is in the page cache alone is missing with any device: no cut is laid to tearing.
    cuts = [record for record in read_cuts(directory).points if not record.point.control]
    for record in cuts:
        is_ordered = record.point.profile is Profile.ORDERED
        assert is_ordered or (record.weaker is not None and record.weaker.profile is Profile.ORDERED)


def test_shelve_is_unsafe_by_itself_however_often_it_is_told_to_sync(bench: Bench, recorder: str) -> None:
    verdict, directory = judged_engine(
        bench, recorder, before_ack="", writer=_SHELVE_WRITER, checker=_SHELVE_CHECKER
    )
    assert () == verdict.refused
    assert verdict.never_synced is not None
    assert [UNSAFE, UNSAFE, UNSAFE] == [verdict.cuts(cache).shown for cache in CACHES]
    cuts = [record for record in read_cuts(directory).points if not record.point.control]
    assert 2 * sum(record.outcome.is_bad for record in cuts) > len(cuts)


def test_what_is_missing_without_a_cut_is_the_finding_and_the_run_completes(
    bench: Bench, recorder: str
) -> None:
    verdict, directory = judged_engine(
        bench, recorder, before_ack="os.fdatasync(log) if number < 5 else os.ftruncate(log, 39)"
    )
    assert verdict.without_cut is not None
    assert "acknowledged transactions are missing" in str(verdict.without_cut)
    assert "without any cut" in str(verdict.without_cut)
    assert () == verdict.refused
    measured = measured_durability(verdict, None)
    assert measured is not None
    assert UNSAFE == measured.volatile_cache
    assert "" == (directory / POINTS_FILE).read_text()
    assert (directory / LOG_FILE).exists()


def test_a_writer_is_timed_on_the_file_system_of_its_cell(bench: Bench) -> None:
    visit: VisitRequest = bench.request(FilesystemLevels("ext4"))
    folder = read_folder(EXAMPLES / "toy")
    cluster = ClusterLevels(settings=Levels(programs=folder.digest), configuration=folder.text)
    cell = Cell(
        visit.cell.device,
        visit.cell.kernel,
        visit.cell.filesystem,
        BuildLevels.unbuilt("own-engine"),
        cluster,
    )
    runs = tuple(
        RunSpec(f"acks-clients-{clients}", "acks", Levels(clients=clients, warmup_s=0.5, duration_s=2.0))
        for clients in (1, 2)
    )
    drivers = {**visit.native_drivers, PROGRAMS_KEY: str(folder.path)}
    record = bench.live(
        replace(
            visit, cell=cell, build=None, dataset=Dataset("acks", Levels()), runs=runs, native_drivers=drivers
        )
    )
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert "toy store 1" in record.provenance["tools"]
    assert record.durability is not None
    assert "durable" == record.durability.volatile_cache
    for name in record.runs:
        made = make_figures(bench.directory, bench.directory / "runs" / name)
        # A test runs beside others.
        expected = {
            CACHES_DROPPED.code,
            OTHERS_AT_WORK.code,
            THROTTLED_MACHINE.code,
            READ_LATE.code,
            "window-too-short",
        }
        assert {reason.code for reason in made.validity_reasons} <= expected
        found = {figure.metric: figure.value for figure in made.figures}
        assert (found["tps"] or 0) > 0
        # Each commit is one fdatasync, and a new segment a few more.
        assert 0.9 < (found["device_flushes_per_transaction"] or 0) < 2
        assert (found["device_written_kib_per_transaction"] or 0) > 1
    assert [] == bench.left_behind()


@pytest.mark.parametrize(
    ("program", "text", "said"),
    [
        ("writer", "#!/bin/sh\necho begin\n", "the writer acknowledged nothing"),
        (
            "writer",
            "#!/bin/sh\necho begin\necho ack 0 1\necho ack 0 1\n",
            "found 'ack 0 1, behind 1 of client 0'",
        ),
        # Without an end of its own: the log's room is.
        (
            "writer",
            "#!/bin/sh\necho begin\nexec yes hello\n",
            "the writer: expected `begin`, or `ack CLIENT NUMBER`",
        ),
        ("writer", "#!/bin/sh\necho begin\necho ack 2 1\n", "found 'ack 2 1'"),
        ("writer", "#!/bin/sh\necho begin\necho ack 0 1\nkill -SEGV $$\n", "was ended by SIGSEGV"),
        # Room without content: the log of writes stays small, and the disk is what is full.
        (
            "writer",
            "#!/bin/sh\necho begin\nwhile fallocate -l 1M full$((number += 1)); do :; done\nexit 4\n",
            "the recorded disk is full: a larger image_size gives it room",
        ),
        (
            "writer",
            f"#!/usr/bin/env python3\nprint('begin', flush=True)\n{_ASKS}",
            "Address family not supported",
        ),
        ("checker", f"#!/bin/sh\nexec {_SLEEPS}\n", "the checker did not end within"),
        ("checker", "#!/bin/sh\necho all is well\n", "expected one JSON object"),
    ],
)
def test_a_program_that_is_wrong_by_itself_condemns_nothing(
    bench: Bench, recorder: str, *, program: str, text: str, said: str
) -> None:
    folder = Path(shutil.copytree(EXAMPLES / "toy", bench.base / "engine"))
    (folder / program).write_text(text)
    if _SLEEPS in text:
        (folder / "engine.toml").write_text('check_limit = "1 s"\n' + (folder / "engine.toml").read_text())
    request = asked(bench, recorder, engine="toy", settings={}, profiles="lost,ordered", points=4)
    bench.live(replace(request, native_drivers={RECORDER: recorder, PROGRAMS_KEY: str(folder)}))
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert Outcome.FAILED is run.outcome
    assert said in "; ".join(map(str, run.reasons))
    assert not (directory / POINTS_FILE).exists()
    assert [] == bench.left_behind()
    assert [] == processes_naming(_SLEEPS)


def test_what_a_writer_forks_away_ends_with_the_recording(bench: Bench, recorder: str) -> None:
    """It goes on writing to the disk, in a session of its own, after the writer has ended."""
    folder = Path(shutil.copytree(EXAMPLES / "toy", bench.base / "engine"))
    (folder / "writer").rename(folder / "honest")
    (folder / "writer").write_text(
        "#!/bin/sh\n"
        f"setsid sh -c 'while :; do echo more >> $1/away; sleep 0.01; done; : {_LEFT}' sh \"$1\" </dev/null >/dev/null 2>&1 &\n"
        'exec /tmp/engine/honest "$@"\n'
    )
    (folder / "writer").chmod(0o755)
    request = asked(bench, recorder, engine="toy", settings={}, profiles="lost,ordered", points=4)
    bench.live(replace(request, native_drivers={RECORDER: recorder, PROGRAMS_KEY: str(folder)}))
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert (Outcome.COMPLETED, ()) == (run.outcome, run.reasons)
    assert PointOutcome.OK == codec.read(RecordingFacts, directory / RECORDING_FILE).whole_log
    assert [] == bench.left_behind()
    assert [] == processes_naming(_LEFT)
