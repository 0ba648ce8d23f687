"""The command line: what it says of itself, how it fails, and how little it loads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.command_line import SOURCES, call_apart, call_here

from bedplate.host.process import wait_until
from bedplate.model.visit import FORMAT_VERSION

PLAN = """
title = "t"
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
block_size = { vary = ["4 kB", "8 kB"] }
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

COMMANDS = ("ask", "doctor", "plan", "run", "show", "compare", "report", "export", "release")
VIEWS = tuple(("show", flag) for flag in ("--advice", "--effects", "--claims", "--mail", "--status"))
# Each costs up to some tenths of a second, and none is needed to read a command's arguments.
HEAVY = frozenset({"pydantic", "polars", "rich", "numpy", "scipy", "jinja2", "psycopg"})
# Calls commands in forks of one process: a start costs more than most of them. Each is looked at when it ends, with all
# that those before it in its fork have loaded; one that first asks for the module `door` is ended there, and its fork with it.
DOOR_REACHED = 99
LOOKED_AT = """
import json, os, runpy, sys
import bedplate.cli.app

def live(door, commands, found):
    seen = []
    def look(status):
        seen.append([status, [*sys.modules]])
    def leave():
        found.write_text(json.dumps(seen))
        os._exit(0)
    class Door:
        def find_spec(name, path=None, target=None):
            if name == door:
                look(99)
                leave()
    sys.meta_path.insert(0, Door)
    for words in commands:
        sys.argv[1:] = words
        try:
            runpy.run_module("bedplate", run_name="__main__", alter_sys=True)
            look(0)
        except SystemExit as end:
            look(end.code or 0)
    leave()

from pathlib import Path
for number, (door, commands) in enumerate(json.load(sys.stdin)):
    if os.fork() == 0:
        live(door, commands, Path(sys.argv[1], str(number)))
    os.wait()
"""


@dataclass(frozen=True)
class Loaded:
    """The exit status of a command, and the modules that it had loaded."""

    status: int
    modules: frozenset[str]

    @property
    def heavy(self) -> set[str]:
        return {name.partition(".")[0] for name in self.modules} & HEAVY


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_help_names_every_command_and_every_exit_code() -> None:
    done = call_here("--help", COLUMNS="200")
    assert 0 == done.returncode
    words = " ".join(done.stdout.split())
    for command in COMMANDS:
        assert f" {command} " in words
    assert "0 done; 1 some runs failed; 2 the plan or the call is wrong; 3 a requirement is missing" in words
    assert "130 interrupted" in words
    assert "run-visit" not in words


def test_help_is_what_a_bare_call_prints() -> None:
    bare = call_here(COLUMNS="200")
    assert call_here("--help", COLUMNS="200").stdout.split() == (bare.stdout or bare.stderr).split()


@pytest.mark.parametrize(
    "words",
    [
        *((command,) for command in COMMANDS),
        *VIEWS,
        ("doctor", "--install"),
        ("doctor", "--measure"),
        ("quickstart",),
    ],
)
def test_every_command_explains_itself_and_every_option_of_it(words: tuple[str, ...]) -> None:
    done = call_here(*words, "--help", COLUMNS="200")
    assert 0 == done.returncode
    explained = done.stdout.partition("\n  Examples:\n")[0]
    _, *sections = re.split(r"^(?:Positional arguments|Options):$", explained, flags=re.MULTILINE)
    # A long option has its explanation on the line below.
    text = re.sub(r"\n {10,}", "  ", "".join(sections))
    lines = re.findall(r"^ {2}(\S.*)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        assert re.search(r"\s{2,}\S", line), f"{words}: {line.strip()} is not explained"


Words: TypeAlias = tuple[str, ...]
Looked: TypeAlias = Callable[..., Loaded]
# To their end: they load nothing heavy at all.
LIGHT: tuple[Words, ...] = (
    (),
    ("--help",),
    *((command, "--help") for command in COMMANDS),
    *((command, "--nonsense") for command in COMMANDS),
    *((*view, "--help") for view in VIEWS),
    ("show", "/nowhere", "--advice"),
    ("run", "/nowhere", "--repetitions", "3"),
    ("run", "/nowhere", "--add", "/nowhere.toml"),
    ("setup", "/nowhere.toml"),
    ("plan", "/nowhere.toml"),
    ("run", "/nowhere.toml", "--study", "x"),
    ("extend", "/nowhere"),
    ("extend", "/nowhere", "--repetitions", "3"),
    ("extend", "/nowhere", "--plan", "/nowhere.toml"),
    ("status", "/nowhere"),
    ("show", "/nowhere"),
    ("compare", "/nowhere"),
    ("compare", "/nowhere", "--baseline", "type=ext4", "--contender", "type=xfs"),
    ("effects", "/nowhere"),
    ("advise", "/nowhere"),
    ("report", "/nowhere"),
    ("export", "/nowhere", "-o", "x"),
)
STATUS = (("status", "WHOLE"), ("status", "WHOLE", "--json"))
# Up to the module with which the command's own work begins: reading a plan stands on pydantic (`extend`
# reads the study first), the tables on rich, the page on jinja2, an export on polars. `status` and `release` need none of them to the end.
DOORS: tuple[tuple[str, Words], ...] = (
    ("bedplate.campaign.preparation", ("quickstart",)),
    ("bedplate.plan.load", ("setup",)),
    ("bedplate.plan.load", ("setup", "PLAN", "--yes", "--tarball", "x")),
    ("bedplate.plan.load", ("doctor", "--json")),
    ("bedplate.plan.load", ("plan", "PLAN", "--json")),
    ("bedplate.plan.load", ("run", "PLAN", "--study", "x", "--erase", "y", "--retry-failed")),
    ("bedplate.study.records", ("extend", "STUDY", "--repetitions", "3")),
    ("bedplate.study.store", ("status", "STUDY", "--json")),
    ("bedplate.terminal.tables", ("show", "STUDY", "STUDY", "--metric", "tps")),
    (
        "bedplate.analysis.condition",
        ("compare", "STUDY", "--baseline", "type=a", "--contender", "type=b"),
    ),
    ("bedplate.analysis.comparison", ("effects", "STUDY", "--metric", "tps")),
    ("bedplate.analysis.advice", ("advise", "STUDY", "--cache", "protected")),
    ("bedplate.page.build", ("report", "STUDY", "-o", "x.html")),
    ("bedplate.export.tables", ("export", "STUDY", "-o", "x")),
    ("bedplate.host.ledger", ("release",)),
)
HEAVY_DOOR = ("bedplate.plan.values", ("plan", "PLAN"))
# Tables of speeds: neither courses nor shares of cuts, for which polars and the solver are.
TABLES: tuple[Words, ...] = (
    ("show", "WHOLE"),
    ("compare", "WHOLE", "--baseline", "type=ext4", "--contender", "type=xfs"),
    ("effects", "WHOLE"),
    ("advise", "WHOLE"),
    ("claims", "WHOLE"),
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    """What calls of those above have loaded, at their door or at their end."""
    place = tmp_path_factory.mktemp("loaded")
    (place / "plan.toml").write_text(PLAN)
    study = place / "study"
    study.mkdir()
    (study / "study.json").write_text(json.dumps({"format_version": FORMAT_VERSION}))
    (study / "plan.toml").write_text(PLAN)
    recipe = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=3, course_s=2)
    whole = write_study(place / "whole", recipe)
    given = {"PLAN": str(place / "plan.toml"), "STUDY": str(study), "WHOLE": str(whole)}
    calls: list[tuple[str | None, tuple[Words, ...]]] = [
        *((door, (words,)) for door, words in (*DOORS, HEAVY_DOOR)),
        *((None, commands) for commands in (LIGHT, STATUS, TABLES)),
    ]
    done = subprocess.run(
        [sys.executable, "-c", LOOKED_AT, str(place)],
        input=json.dumps(
            [
                (door, [[given.get(word, word) for word in words] for words in commands])
                for door, commands in calls
            ]
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path_factory.mktemp("empty"),
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )
    assert 0 == done.returncode, done.stderr

    seen = {
        (door, words): Loaded(status, frozenset(modules))
        for number, (door, commands) in enumerate(calls)
        for words, (status, modules) in zip(
            commands, json.loads((place / str(number)).read_text()), strict=True
        )
    }

    def of(door: str | None, words: Words) -> Loaded:
        found = seen[door, words]
        assert "bedplate.cli.app" in found.modules
        return found

    return of


@pytest.mark.parametrize("words", LIGHT, ids=" ".join)
def test_help_and_a_wrong_call_load_nothing_heavy(loaded: Looked, words: Words) -> None:
    found = loaded(None, words)
    assert found.status in {0, 2}
    assert set() == found.heavy


@pytest.mark.parametrize(("door", "words"), DOORS)
def test_a_command_loads_nothing_heavy_before_its_work(loaded: Looked, door: str, words: Words) -> None:
    if words == ("release",) and os.geteuid() != 0:
        pytest.skip("release asks for root first")
    found = loaded(door, words)
    assert (DOOR_REACHED, set()) == (found.status, found.heavy)


@pytest.mark.parametrize("words", STATUS, ids=" ".join)
def test_status_of_a_study_loads_nothing_heavy_to_its_end(loaded: Looked, words: Words) -> None:
    found = loaded(None, words)
    assert 0 == found.status
    assert "bedplate.study.store" in found.modules
    assert set() == found.heavy


def test_tables_of_speeds_load_neither_polars_nor_a_solver(loaded: Looked) -> None:
    for words in TABLES:
        found = loaded(None, words)
        assert 0 == found.status
        assert "bedplate.analysis.overview" in found.modules
        assert set() == {"polars", "scipy.optimize"} & found.modules


def test_what_a_command_loads_before_a_door_is_seen(loaded: Looked) -> None:
    found = loaded(*HEAVY_DOOR)
    assert (DOOR_REACHED, {"pydantic"}) == (found.status, found.heavy)


def test_plan_as_json_has_cells_and_pruned_and_touches_nothing(plan: Path) -> None:
    done = call_here("plan", plan, "--json", cwd=plan.parent)
    found = json.loads(done.stdout)
    assert ["filesystem.block_size_bytes"] == [
        name for name in found["cells"][0]["levels"] if name.endswith("block_size_bytes")
    ]
    assert 4096 == found["cells"][0]["levels"]["filesystem.block_size_bytes"]
    assert all(pruned["reasons"] for pruned in found["pruned"])
    assert 2 == len(found["cells"]) + len(found["pruned"])
    assert [plan] == list(plan.parent.iterdir())


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("", "an image file of 1 GiB (figures include the file system that it lies on)"),
        ('latency = "gp3"', "1 GiB of memory, answered after the times of gp3 (emulated)"),
    ],
)
def test_plan_says_where_the_data_will_be(plan: Path, device: str, words: str) -> None:
    size = 'image_size = "1 GB"'
    plan.write_text(PLAN.replace(size, f"{size}\n{device}"))
    assert f"scratch device   {words}" in call_here("plan", plan, COLUMNS="300").stdout


def test_an_error_names_file_and_key_and_all_of_them_at_once(plan: Path) -> None:
    plan.write_text(PLAN.replace('"ext4"', '"ext5"').replace("scale = 5", "scale = 0"))
    done = call_here("plan", plan)
    assert 2 == done.returncode
    assert "" == done.stdout
    lines = done.stderr.splitlines()
    assert all(line.startswith(f"error: {plan}: ") for line in lines)
    assert ["filesystem[0].type", "workload[0].scale"] == [line.split(": ")[2] for line in lines]


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (("status", "/nowhere"), 2, "/nowhere is not a study: it has no study.json"),
        (("show", "/nowhere"), 2, "/nowhere"),
        (("compare", "/nowhere", "--baseline", "xfs", "--contender", "ext4"), 2, "/nowhere"),
        (("compare", "/nowhere", "--baseline", "xfs"), 2, "--contender"),
        (("effects", "/nowhere"), 2, "/nowhere"),
        (("advise", "/nowhere"), 2, "/nowhere"),
        (("advise", "/nowhere", "--cache", "none"), 2, "--cache"),
        (("report", "/nowhere"), 2, "/nowhere"),
        (("export", "/nowhere", "-o", "x.csv"), 2, "/nowhere"),
        (("extend", "/nowhere"), 2, "--repetitions N or --plan PLAN"),
        (("extend", "/nowhere", "--repetitions", "3"), 2, "/nowhere is not a study"),
        (("extend", "/nowhere", "--repetitions", "0"), 2, "--repetitions"),
        (("plan", "/nowhere.toml"), 2, "ready plans: aa, "),
        (("run", "/nowhere.toml"), 2, "ready plans: aa, "),
        (("compare", "/nowhere"), 2, "missing option '--baseline'"),
        (("fly",), 2, "fly"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(tmp_path: Path, words: Words, status: int, expected: str) -> None:
    done = call_here(*words, cwd=tmp_path)
    assert (status, "") == (done.returncode, done.stdout)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_a_device_must_be_named_twice_and_an_image_not_at_all(plan: Path) -> None:
    study = plan.parent / "study"
    done = call_apart("run", plan, "--study", study, "--erase", "/dev/disk/by-id/x")
    assert (2, True) == (done.returncode, "uses an image file and erases no device" in done.stderr)
    plan.write_text(PLAN.replace('image_size = "1 GB"', 'device = "/dev/disk/by-id/x"'))
    for erased in ((), ("--erase", "/dev/disk/by-id/y")):
        done = call_apart("run", plan, "--study", study, *erased)
        assert (2, True) == (done.returncode, "--erase /dev/disk/by-id/x" in done.stderr)
    assert not study.exists()


def test_a_plan_without_a_cell_to_run_says_why(plan: Path) -> None:
    plan.write_text(PLAN.replace('block_size = { vary = ["4 kB", "8 kB"] }', "block_size = 512"))
    done = call_apart("run", plan, "--study", plan.parent / "study")
    assert 2 == done.returncode
    assert "no cell of this plan can run here" in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_early_is_no_error(plan: Path, unbuffered: str) -> None:
    # Unbuffered, the first line meets the closed pipe; buffered, the first table does, which rich prints.
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "bedplate", "plan", str(plan)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(SOURCES),
            "PYTHONUNBUFFERED": unbuffered,
        },
    )
    os.close(theirs)
    assert (0, b"") == (done.returncode, done.stderr)


def _wait_until_asleep(process: subprocess.Popen[str]) -> None:
    """Python sees a signal when its own code goes on: one that comes just before a system call waits for its end."""
    state = Path("/proc") / str(process.pid) / "stat"
    assert wait_until(lambda: "S" == state.read_text().rpartition(")")[2].split()[0], deadline_s=30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_from_outside_is_an_interrupt(tmp_path: Path, number: signal.Signals) -> None:
    # A plan that never ends to be read stands for a study that is being measured.
    endless = tmp_path / "plan.toml"
    os.mkfifo(endless)
    process = subprocess.Popen(
        [sys.executable, "-m", "bedplate", "plan", str(endless)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        # Under nohup, or in the background of a shell, the tests themselves run with it ignored.
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),  # noqa: PLW1509 -- no threads here
    )
    # Opening the other end waits until the command has come to opening it.
    writer = os.open(endless, os.O_WRONLY)
    try:
        _wait_until_asleep(process)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    finally:
        os.close(writer)
        process.kill()
        process.wait()
    assert 130 == process.returncode
    assert "interrupted; what was finished is kept" in said
