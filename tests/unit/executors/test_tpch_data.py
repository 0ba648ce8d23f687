"""TPC-H's data are made once and whole, or there are none: whatever the generator or the disk does."""

from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.tools.scripted_commands import ScriptedCommands

from bedplate.errors import CommandFailed, RequirementMissing, VerifyFailed
from bedplate.host.cache import lock_of
from bedplate.host.command import Commands
from bedplate.host.files import file_lock
from bedplate.workloads.tpch import prepare as room
from bedplate.workloads.tpch.model import tpch_data_bytes
from bedplate.workloads.tpch.prepare import (
    Generator,
    TpchData,
    TpchProgress,
    data_directory,
    ensure_tpch_data,
    packaged_generator,
    read_tpch_data,
)
from bedplate.workloads.tpch.queries import LINEITEM, TABLES, row_count

SCALE_FACTOR = 0.0001
ROWS = {name: row_count(table, SCALE_FACTOR) or 0 for name, table in TABLES.items()}
LINES = 400  # of 150 orders
REPOSITORY = Path(__file__).resolve().parents[3]

# A generator in the way of the real one; what it does wrong stands in the file `fault` beside it.
FAKE = """#!{python} -IS
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(here + "/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
out = sys.argv[sys.argv.index("-o") + 1]
tables = json.load(open(here + "/tables.json"))
fault = open(here + "/fault").read().split()
if fault[:1] == ["hang"]:
    open(out + "/region.csv.inprogress", "w").write("r_regionkey,")
    with open(here + "/begun", "w") as begun:
        begun.write(str(os.getpid()))
    open(here + "/go").read()
    os.rename(out + "/region.csv.inprogress", out + "/region.csv")
for name, (header, rows) in tables.items():
    if fault == ["without", name]:
        continue
    if fault == ["header", name]:
        header = header.replace(",", "|")
    if fault[:2] == ["rows", name]:
        rows += int(fault[2])
    text = header + "\\n" + "".join("%d,x\\n" % row for row in range(rows))
    if fault == ["torn", name]:
        text = text[:-2]
    open(out + "/" + name + ".csv", "w").write(text)
    if fault == ["full", name]:
        sys.exit("Error: No space left on device (os error 28)")
"""


class Fake:
    """A cache and a generator that obeys."""

    def __init__(self, base: Path) -> None:
        self.base = base / "generator"
        self.base.mkdir()
        self.cache = base / "cache"
        program = self.base / "tpchgen-cli"
        program.write_text(FAKE.format(python=sys.executable))
        program.chmod(0o755)
        self.generator = Generator(program, "4.0.0")
        rows = {**ROWS, LINEITEM.name: LINES}
        tables = {name: (",".join(table.columns), rows[name]) for name, table in TABLES.items()}
        (self.base / "tables.json").write_text(json.dumps(tables))
        self.told: list[TpchProgress] = []
        self.fault("")

    def fault(self, words: str) -> None:
        (self.base / "fault").write_text(words)

    def hang(self) -> None:
        self.fault("hang")
        os.mkfifo(self.base / "begun")
        os.mkfifo(self.base / "go")

    def ensure(self, scale_factor: float = SCALE_FACTOR) -> TpchData:
        return ensure_tpch_data(
            scale_factor,
            cache_directory=self.cache,
            commands=Commands(),
            progress=self.told.append,
            generator=self.generator,
        )

    def find(self) -> TpchData | None:
        folder = f"sf{SCALE_FACTOR}-tpchgen-cli-{self.generator.version}"
        return read_tpch_data(data_directory(self.cache) / folder)

    def calls(self) -> list[list[str]]:
        calls = self.base / "calls"
        return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []

    def left(self) -> list[str]:
        """What lies among the data, but for locks."""
        names = (path.name for path in (self.cache / "tpch").iterdir())
        return sorted(name for name in names if not name.endswith(".lock"))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    # Else root's folders above would have to be open to everybody; one test asks for that.
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return Fake(tmp_path)


def test_data_are_made_once(fake: Fake) -> None:
    assert fake.find() is None
    data = fake.ensure()
    assert data == fake.find() == fake.ensure()
    assert 1 == len(fake.calls())
    assert data.directory == fake.cache / "tpch" / "sf0.0001-tpchgen-cli-4.0.0"
    assert ["csv", "-s", "0.0001"] == fake.calls()[0][:3]
    assert (SCALE_FACTOR, "tpchgen-cli 4.0.0") == (data.scale_factor, data.generator)
    files = [data.directory / f"{name}.csv" for name in TABLES]
    assert data.bytes == sum(file.stat().st_size for file in files)
    assert {"data.json", *(file.name for file in files)} == {path.name for path in data.directory.iterdir()}


def test_the_digest_is_that_of_the_files_checksums(fake: Fake) -> None:
    data = fake.ensure()
    names = [f"{name}.csv" for name in TABLES]
    listing = subprocess.run(
        ["sha256sum", *names], cwd=data.directory, capture_output=True, check=True
    ).stdout
    assert hashlib.sha256(listing).hexdigest() == data.digest


@pytest.mark.parametrize(
    ("scale_factor", "written"),
    [(1, "1"), (1.0, "1"), (10, "10"), (100.0, "100"), (0.1, "0.1"), (1e-5, "0.00001"), (2.5, "2.5")],
)
def test_a_scale_factor_has_one_folder(
    scale_factor: float, written: str, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**15))
    with pytest.raises(VerifyFailed):
        fake.ensure(scale_factor)
    assert written == fake.calls()[0][2]
    locks = [path.name for path in (fake.cache / "tpch").iterdir()]
    assert [f".sf{written}-tpchgen-cli-4.0.0.lock"] == locks


@pytest.mark.parametrize("scale_factor", [0, -1, float("nan"), float("inf")])
def test_no_scale_factor_touches_nothing(scale_factor: float, fake: Fake) -> None:
    with pytest.raises(ValueError, match="is not a positive number"):
        fake.ensure(scale_factor)
    assert not fake.cache.exists()


def test_another_generators_data_are_others(fake: Fake) -> None:
    data = fake.ensure()
    fake.generator = Generator(fake.generator.program, "4.1.0")
    assert fake.find() is None
    assert fake.ensure().directory.name == "sf0.0001-tpchgen-cli-4.1.0"
    assert data.directory.is_dir()


def test_progress_counts_bytes(fake: Fake) -> None:
    data = fake.ensure()
    steps = [told.step for told in fake.told]
    assert "generate" == steps[0]
    assert "check" == steps[-1]
    assert (data.bytes, data.bytes) == (fake.told[-1].done, fake.told[-1].total)
    assert all(0 <= told.done <= told.total for told in fake.told)
    assert tpch_data_bytes(SCALE_FACTOR) == fake.told[0].total
    checked = [told.done for told in fake.told if told.step == "check"]
    assert sorted(checked) == checked


def test_progress_is_reported_while_the_generator_writes(fake: Fake) -> None:
    fake.hang()
    seen = threading.Event()

    def tell(progress: TpchProgress) -> None:
        # What the fake has written when it hangs, under the name of a file that is not whole.
        if progress.step == "generate" and progress.done == len("r_regionkey,"):
            seen.set()

    def watch() -> None:
        (fake.base / "begun").read_text()
        seen.wait(30)
        (fake.base / "go").write_text("")

    watcher = threading.Thread(target=watch)
    watcher.start()
    ensure_tpch_data(
        SCALE_FACTOR,
        cache_directory=fake.cache,
        commands=Commands(),
        progress=tell,
        generator=fake.generator,
    )
    watcher.join(30)
    assert seen.is_set()


def test_files_are_readable_by_all_whatever_the_umask(fake: Fake) -> None:
    before = os.umask(0o077)
    try:
        data = fake.ensure()
    finally:
        os.umask(before)
    assert 0o755 == data.directory.stat().st_mode & 0o777
    assert {0o644} == {path.stat().st_mode & 0o777 for path in data.directory.iterdir()}


def test_a_cache_that_another_account_cannot_reach_is_refused_for_root(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    closed = fake.cache.parent / "closed"
    closed.mkdir(mode=0o700)
    fake.cache = closed / "cache"
    with pytest.raises(RequirementMissing, match="lets no other account through"):
        fake.ensure()
    assert [] == fake.calls()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("without part", "tpchgen-cli made no part.csv"),
        ("header orders", "orders.csv begins with 'o_orderkey|o_custkey"),
        ("rows customer -1", "customer.csv has 14 rows, not 15"),
        ("rows region 1", "region.csv has 6 rows, not 5"),
        ("rows lineitem -251", "lineitem.csv has 149 rows for 150 orders"),
        ("rows lineitem 651", "lineitem.csv has 1051 rows for 150 orders"),
        ("torn lineitem", "lineitem.csv ends within its row 400"),
        ("torn nation", "nation.csv ends within its row 25"),
    ],
)
def test_what_a_table_must_not_be_is_named_and_not_kept(fault: str, reason: str, fake: Fake) -> None:
    fake.fault(fault)
    with pytest.raises(VerifyFailed) as caught:
        fake.ensure()
    assert reason in caught.value.reasons[0]
    assert [] == fake.left()
    assert fake.find() is None
    fake.fault("")
    assert fake.ensure() == fake.find()


def test_all_that_is_wrong_is_told_at_once(fake: Fake) -> None:
    tables = json.loads((fake.base / "tables.json").read_text())
    tables["part"][1], tables["supplier"][0] = 7, "s_suppkey"
    (fake.base / "tables.json").write_text(json.dumps(tables))
    with pytest.raises(VerifyFailed) as caught:
        fake.ensure()
    assert "supplier.csv begins with 's_suppkey', not with 's_suppkey,s_name," in caught.value.reasons[0]
    assert "part.csv has 7 rows, not 20" == caught.value.reasons[1]
    assert "tpchgen-cli 4.0.0" in caught.value.reasons[-1]


def test_a_table_without_rows_or_header_is_told(fake: Fake) -> None:
    tables = json.loads((fake.base / "tables.json").read_text())
    tables["nation"] = ["", 0]
    (fake.base / "tables.json").write_text(json.dumps(tables))
    with pytest.raises(VerifyFailed, match=r"nation\.csv begins with ''"):
        fake.ensure()


def test_a_generator_that_fails_is_quoted(fake: Fake) -> None:
    fake.fault("full partsupp")
    with pytest.raises(CommandFailed, match="No space left on device"):
        fake.ensure()
    assert [] == fake.left()


def test_a_disk_without_room_is_told_before_anything_is_made(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=500_000_000))
    with pytest.raises(RequirementMissing) as caught:
        fake.ensure(1)
    (sentence,) = caught.value.reasons
    assert "TPC-H's data at scale factor 1 take 1.04 GiB in " in sentence
    assert "which has 477 MiB free; make room" in sentence
    assert [] == fake.calls()
    assert [] == fake.left()
    assert SCALE_FACTOR == fake.ensure().scale_factor


def test_without_a_generator_the_way_out_is_told(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "packaged_generator", lambda: None)
    with pytest.raises(RequirementMissing, match=r"tpchgen-cli.* is not in the environment of .*launcher"):
        ensure_tpch_data(1, cache_directory=fake.cache, commands=ScriptedCommands())
    fake.generator = Generator(fake.base / "gone", "4.0.0")
    with pytest.raises(CommandFailed, match="gone"):
        fake.ensure()


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "part.csv").write_bytes((folder / "part.csv").read_bytes()[:-1]),
        lambda folder: (folder / "orders.csv").unlink(),
        lambda folder: (folder / "data.json").unlink(),
        lambda folder: (folder / "data.json").write_text("{"),
        lambda folder: (folder / "data.json").write_text("[1]"),
        lambda folder: (folder / "data.json").write_text('{"scale_factor": 1, "files": []}'),
        lambda folder: (folder / "data.json").write_bytes(b"\xff\xfe"),
    ],
)
def test_damaged_data_are_made_again(damage: object, fake: Fake) -> None:
    assert callable(damage)
    whole = fake.ensure()
    damage(whole.directory)
    assert fake.find() is None
    assert whole == fake.ensure() == fake.find()
    assert 2 == len(fake.calls())


def test_asking_for_data_is_noted_and_looking_is_not(fake: Fake) -> None:
    data = fake.ensure()
    record = data.directory / "data.json"
    os.utime(record, (1, 1))
    assert fake.find() == data
    assert 1 == record.stat().st_mtime
    fake.ensure()
    assert record.stat().st_mtime > 1_000_000_000


def test_two_starts_make_them_once(fake: Fake) -> None:
    fake.hang()
    waits = threading.Event()
    found: list[TpchData] = []

    def second(progress: TpchProgress) -> None:
        if progress.step == "wait":
            waits.set()

    def start(tell: object) -> None:
        assert callable(tell)
        found.append(
            ensure_tpch_data(
                SCALE_FACTOR,
                cache_directory=fake.cache,
                commands=Commands(),
                progress=tell,
                generator=fake.generator,
            )
        )

    starts = [threading.Thread(target=start, args=(tell,)) for tell in (fake.told.append, second)]
    starts[0].start()
    (fake.base / "begun").read_text()
    starts[1].start()
    assert waits.wait(30)
    assert fake.find() is None
    (fake.base / "go").write_text("")
    for thread in starts:
        thread.join(30)
    assert 2 == len(found)
    assert found[0] == found[1] == fake.find()
    assert 1 == len(fake.calls())


KILLED = """
import os, sys
from pathlib import Path
from bedplate.workloads.tpch.prepare import Generator, ensure_tpch_data
from bedplate.host.command import Commands
os.geteuid = lambda: 1000
program, cache = map(Path, sys.argv[1:])
ensure_tpch_data(0.0001, cache_directory=cache, commands=Commands(), generator=Generator(program, "4.0.0"))
"""


@pytest.fixture
def killed(fake: Fake) -> Iterator[int]:
    """The generator of a start that was killed while it worked, by its pidfd."""
    fake.hang()
    start = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(fake.generator.program), str(fake.cache)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    generator = os.pidfd_open(int((fake.base / "begun").read_text()))
    start.kill()
    start.wait()
    yield generator
    os.close(generator)


def test_a_killed_start_leaves_nothing_that_counts(fake: Fake, killed: int) -> None:
    poller = select.poll()
    poller.register(killed, select.POLLIN)
    try:
        assert poller.poll(10_000), "the generator outlives bedplate"
    finally:
        if not poller.poll(0):
            signal.pidfd_send_signal(killed, signal.SIGKILL)
    assert [".work-sf0.0001-tpchgen-cli-4.0.0"] == fake.left()
    assert fake.find() is None
    fake.fault("")
    data = fake.ensure()
    assert data == fake.find()
    assert [data.directory.name] == fake.left()


def test_other_killed_starts_are_swept_and_living_ones_are_not(fake: Fake) -> None:
    work = fake.cache / "tpch" / ".work-sf3-tpchgen-cli-4.0.0"
    living = work.with_name(".work-sf5-tpchgen-cli-4.0.0")
    for folder in (work, living):
        folder.mkdir(parents=True)
        (folder / "region.csv").write_text("")
        lock_of(folder).touch()
    with file_lock(lock_of(living)):
        fake.ensure()
    assert not work.exists()
    assert (living / "region.csv").exists()


def test_the_packaged_generator_makes_what_it_always_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    generator = packaged_generator()
    assert generator is not None
    data = ensure_tpch_data(0.01, cache_directory=tmp_path, commands=Commands())
    assert data == read_tpch_data(data.directory)
    assert "tpchgen-cli 4.0.0" == data.generator == generator.name
    assert 10_670_284 == data.bytes
    assert GOLDEN_DIGEST == data.digest
    said = Commands().run([str(generator.program), "--version"]).stdout.strip()
    assert said == generator.name


# `sha256sum` of the eight files in the schema's order, and of that: scale factor 0.01 by tpchgen-cli 4.0.0.
GOLDEN_DIGEST = "b04247b619d01e3d5eaf7aa38582eb06c6eae087f54e07d94ba0ba19a67326ba"
