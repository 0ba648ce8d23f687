"""An own engine for real: programs that do what they may not are ended with a sentence, and the toy's faults are found."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from bedplate.engines.external.folder import PROGRAMS_KEY, read_folder
from bedplate.engines.external.power_cut import POWER_CUT
from bedplate.errors import BedplateError, KilledFromOutside, OutputNotUnderstood
from bedplate.host.account import server_account
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.confinement import DATA, PROGRAMS, confined
from bedplate.host.native_driver import LIBFUSE3, ensure_driver, library_requirement
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.recorder import recorder_reasons
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, Dataset, FilesystemLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.power_cut import POINTS_FILE, RECORDING_FILE, PointOutcome, PointRecord, RecordingFacts
from bedplate.model.visit import Outcome, RunRecord, VisitRequest
from bedplate.units import MIB
from bedplate.visit.cut_engine import Driven, OracleAnswer, Recorded, Subject

if TYPE_CHECKING:
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import VisitContext

    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

SOURCES = Path(__file__).resolve().parents[2]
EXAMPLES = SOURCES / "examples" / "engines"
ENGINE = 'name = "brickbase"\ncheck_limit = "1 s"\n'
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
            request=SimpleNamespace(cell=cell),
        )
        recorded = cast("Recorded", self.recording)
        made = POWER_CUT.writer(cast("VisitContext", context), recorded, clients=1)
        return made.drive(self.base / "said", duration_s=duration_s, seed=1, beside=nullcontext())

    def examine(self, checker: str) -> OracleAnswer:
        (self.folder / "engine.toml").write_text(ENGINE)
        self.program("checker", checker)
        site = SimpleNamespace(
            data_directory=self.recording.data_directory, account=self.account, commands=Commands()
        )
        subject = Subject("own-engine", 0, Levels(), Levels({PROGRAMS_KEY: str(self.folder)}))
        return POWER_CUT.examine(cast("ServerSite", site), subject, {0: 3})

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
        # No network: not even a name server.
        (
            "#!/usr/bin/env python3\nimport socket\nsocket.create_connection(('192.0.2.1', 80), 3)\n",
            "Network is unreachable",
        ),
        ("#!/bin/sh\necho rubbish > /etc/bedplate-test-own\n", "Permission denied"),
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
        "for place in /tmp /var/tmp /dev/shm; do echo here > $place/bedplate-test-own-left; done\n"
        "setsid sleep 4242 >/dev/null 2>&1 &\necho ack 0 1\n"
    )
    words = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _is_there(path)]
    assert b"sleep\x004242\x00" not in words
    assert not [
        place for place in ("/tmp", "/var/tmp", "/dev/shm") if Path(place, "bedplate-test-own-left").exists()
    ]


def _is_there(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


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
    monkeypatch.setattr("bedplate.engines.external.power_cut._PREPARATION_LIMIT_S", 0.1)
    with pytest.raises(BedplateError, match="printed no line"):
        workshop.drive("#!/bin/sh\nexec sleep 4242\n")
    monkeypatch.undo()
    monkeypatch.setattr("bedplate.engines.external.power_cut._PATIENCE_S", 0.1)
    with pytest.raises(BedplateError, match="after SIGTERM"):
        workshop.drive("#!/bin/sh\ntrap '' TERM\necho begin\nwhile :; do :; done\n", duration_s=0.1)


@pytest.mark.parametrize(
    ("checker", "said"),
    [
        ("#!/bin/sh\necho 'page 3 is torn' >&2; exit 7\n", "the checker ended with status 7: page 3 is torn"),
        ("#!/bin/sh\nkill -ABRT $$\n", "the checker was ended by SIGABRT"),
        ("#!/bin/sh\nexec sleep 4242\n", "the checker did not end within 1 s"),
    ],
)
def test_a_checker_that_does_not_answer_has_met_damage(workshop: Workshop, checker: str, said: str) -> None:
    found = workshop.examine(checker)
    assert found.present is None
    assert said in found.detected[0]


def test_a_checker_that_answers_is_taken_at_its_word(workshop: Workshop) -> None:
    answers = """#!/bin/sh\necho '{"clients": {"0": 3}, "wrong": ["a page"]}'\n"""
    found = workshop.examine(answers)
    assert ({0: 3}, (), ("a page",)) == (found.present, found.detected, found.silent)
    with pytest.raises(OutputNotUnderstood):
        workshop.examine("#!/bin/sh\necho all is well\n")
    # As the kernel does when memory runs out: nothing was found.
    with pytest.raises(KilledFromOutside):
        workshop.examine("#!/bin/sh\nkill -KILL $$\n")


def test_the_confined_see_their_two_folders_and_have_no_rights(workshop: Workshop) -> None:
    account = workshop.account
    asks = "echo $(id -u) $(id -G) $(pwd); ls $1; grep -c : /proc/net/dev; grep NoNewPrivs /proc/self/status"
    workshop.program("checker", f"#!/bin/sh\n{asks}\n")
    argv = confined(
        (f"{PROGRAMS}/checker", PROGRAMS),
        data=workshop.recording.data_directory,
        programs=workshop.folder,
        account=account,
    )
    who, seen, interfaces, privileges = Commands().run(argv).stdout.splitlines()
    assert f"{account.uid} {account.gid} {DATA}" == who
    assert ("checker", "1") == (seen, interfaces)
    assert privileges.endswith("1")


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
    visit: VisitRequest = bench.request(FilesystemLevels("ext4"))
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
            "lost,subset-512,ordered",
            30,
            {PointOutcome.LOST, PointOutcome.SILENT},
        ),
        # What only a torn write shows: a third of such cuts.
        ("toy", {"fault": "no-checksum"}, "subset-512,ordered", 60, {PointOutcome.SILENT}),
        ("toy", {"fault": "recovery-drops-segment"}, "subset-512,ordered", 40, {PointOutcome.LOST}),
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
    assert points == sum(not record.point.control for record in judged)
    bad = {record.outcome for record in judged if record.outcome.is_bad and not record.point.control}
    assert bool(found) == bool(bad) == bool(found & bad)
    assert any(record.outcome.is_bad for record in judged if record.point.control)
    assert visit.durability is not None
    assert ("durable", "declared") == (visit.durability.volatile_cache, visit.durability.basis)
    assert [] == bench.left_behind()


def test_a_checker_that_is_wrong_by_itself_condemns_nothing(bench: Bench, recorder: str) -> None:
    folder = Path(shutil.copytree(EXAMPLES / "toy", bench.base / "engine"))
    (folder / "checker").write_text("""#!/bin/sh\necho '{"clients": {"0": 1, "1": 1}}'\n""")
    request = asked(bench, recorder, engine="toy", settings={}, profiles="lost,ordered", points=4)
    bench.live(replace(request, native_drivers={RECORDER: recorder, PROGRAMS_KEY: str(folder)}))
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert Outcome.FAILED is run.outcome
    assert "nothing was cut, the writer was only ended" in str(run.reasons[0])
    assert not (directory / POINTS_FILE).exists()
    assert [] == bench.left_behind()
