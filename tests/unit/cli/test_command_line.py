"""The command line: what it says of itself, how it fails, and how little it loads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.synthetic_study import Recipe, write_study

from bedplate.model.visit import FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

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

COMMANDS = (
    "quickstart",
    "setup",
    "doctor",
    "plan",
    "run",
    "extend",
    "status",
    "cancel",
    "show",
    "compare",
    "effects",
    "advise",
    "report",
    "export",
    "release",
)
# Each costs up to some tenths of a second, and none is needed to read a command's arguments.
HEAVY = frozenset({"pydantic", "polars", "rich", "numpy", "scipy", "plotly", "jinja2", "psycopg"})
# Runs the command line, and ends it with this code where it first asks for one module.
DOOR_REACHED = 99
UNTIL_DOOR = f"""
import os, runpy, sys
door = sys.argv.pop(1)
class Door:
    def find_spec(name, path=None, target=None):
        if name == door:
            print(*sys.modules, file=sys.stderr, flush=True)
            os._exit({DOOR_REACHED})
sys.meta_path.insert(0, Door)
runpy.run_module("bedplate", run_name="__main__", alter_sys=True)
"""


def call(
    *words: str | Path, python: tuple[str, ...] = (), **changes: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *python, "-m", "bedplate", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src"), "COLUMNS": "200"},
        **changes,
    )


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def test_help_names_every_command_and_every_exit_code() -> None:
    done = call("--help")
    assert 0 == done.returncode
    words = " ".join(done.stdout.split())
    for command in COMMANDS:
        assert f" {command} " in words
    assert "0 done; 1 some runs failed; 2 the plan or the call is wrong; 3 a requirement is missing" in words
    assert "130 interrupted" in words
    assert "run-visit" not in words


def test_help_is_what_a_bare_call_prints() -> None:
    assert call("--help").stdout.split() == (call().stdout or call().stderr).split()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_every_option_of_it(command: str) -> None:
    done = call(command, "--help")
    assert 0 == done.returncode
    _, *sections = re.split(r"^(?:Positional arguments|Options):$", done.stdout, flags=re.MULTILINE)
    # A long option has its explanation on the line below.
    text = re.sub(r"\n {10,}", "  ", "".join(sections))
    lines = re.findall(r"^ {2}(\S.*)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        assert re.search(r"\s{2,}\S", line), f"{command}: {line.strip()} is not explained"


def heavy_ones(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & HEAVY


def heavy_before(door: str, *words: str | Path) -> set[str]:
    """What a command has loaded when it first asks for the module `door`."""
    done = subprocess.run(
        [sys.executable, "-c", UNTIL_DOOR, door, *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
    )
    assert DOOR_REACHED == done.returncode, done.stderr
    loaded = done.stderr.split()
    assert "bedplate.cli.app" in loaded
    return heavy_ones(loaded)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        *((command, "--help") for command in COMMANDS),
        *((command, "--nonsense") for command in COMMANDS),
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
    ],
    ids=" ".join,
)
def test_help_and_a_wrong_call_load_nothing_heavy(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = call(*words, python=("-X", "importtime"), cwd=tmp_path)
    assert done.returncode in {0, 2}
    loaded = {
        line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")
    }
    assert "bedplate.cli.app" in loaded
    assert set() == heavy_ones(loaded)


# Up to the module with which the command's own work begins: reading a plan stands on pydantic (`extend`
# reads the study first), the tables on rich, the page on jinja2, an export on polars. `status` and `release` need none of them to the end.
@pytest.mark.parametrize(
    ("door", "words"),
    [
        ("bedplate.executor.preparation", ("quickstart",)),
        ("bedplate.plan.load", ("setup",)),
        ("bedplate.plan.load", ("setup", "PLAN", "--yes", "--tarball", "x")),
        ("bedplate.plan.load", ("doctor", "--json")),
        ("bedplate.plan.load", ("plan", "PLAN", "--json")),
        ("bedplate.plan.load", ("run", "PLAN", "--study", "x", "--erase", "y", "--retry-failed")),
        ("bedplate.study.records", ("extend", "STUDY", "--repetitions", "3")),
        ("bedplate.study.progress", ("status", "STUDY", "--json")),
        ("bedplate.report.tables", ("show", "STUDY", "STUDY", "--metric", "tps")),
        ("bedplate.report.condition", ("compare", "STUDY", "--baseline", "type=a", "--contender", "type=b")),
        ("bedplate.report.effects_tables", ("effects", "STUDY", "--metric", "tps")),
        ("bedplate.report.advice_tables", ("advise", "STUDY", "--cache", "protected")),
        ("bedplate.report.build", ("report", "STUDY", "-o", "x.html")),
        ("bedplate.report.export", ("export", "STUDY", "-o", "x")),
        ("bedplate.host.ledger", ("release",)),
    ],
)
def test_a_command_loads_nothing_heavy_before_its_work(plan: Path, door: str, words: tuple[str, ...]) -> None:
    if words == ("release",) and os.geteuid() != 0:
        pytest.skip("release asks for root first")
    study = plan.parent / "study"
    study.mkdir()
    (study / "study.json").write_text(json.dumps({"format_version": FORMAT_VERSION}))
    (study / "plan.toml").write_text(PLAN)
    given = {"PLAN": plan, "STUDY": study}
    assert set() == heavy_before(door, *(given.get(word, word) for word in words))


@pytest.mark.parametrize("how", [(), ("--json",)], ids=" ".join)
def test_status_of_a_study_loads_nothing_heavy_to_its_end(tmp_path: Path, how: tuple[str, ...]) -> None:
    recipe = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=1, course_s=2)
    study = write_study(tmp_path / "study", recipe)
    done = call("status", study, *how, python=("-X", "importtime"))
    assert 0 == done.returncode
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "bedplate.study.progress" in loaded
    assert set() == heavy_ones(loaded)


def test_what_a_command_loads_before_a_door_is_seen(plan: Path) -> None:
    assert {"pydantic"} == heavy_before("bedplate.executor.trial", "plan", plan)


def test_plan_as_json_has_cells_and_pruned_and_touches_nothing(plan: Path) -> None:
    done = call("plan", plan, "--json", cwd=plan.parent)
    found = json.loads(done.stdout)
    assert ["filesystem.block_size_bytes"] == [
        name for name in found["cells"][0]["levels"] if name.endswith("block_size_bytes")
    ]
    assert 4096 == found["cells"][0]["levels"]["filesystem.block_size_bytes"]
    assert all(pruned["reasons"] for pruned in found["pruned"])
    assert 2 == len(found["cells"]) + len(found["pruned"])
    assert [plan] == list(plan.parent.iterdir())


def test_an_error_names_file_and_key_and_all_of_them_at_once(plan: Path) -> None:
    plan.write_text(PLAN.replace('"ext4"', '"ext5"').replace("scale = 5", "scale = 0"))
    done = call("plan", plan)
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
        (("extend", "/nowhere"), 2, "either --repetitions N or --plan PLAN"),
        (("extend", "/nowhere", "--repetitions", "3"), 2, "/nowhere is not a study"),
        (("extend", "/nowhere", "--repetitions", "0"), 2, "--repetitions"),
        (("plan", "/nowhere.toml"), 2, "ready plans: plans/"),
        (("run", "/nowhere.toml"), 2, "--study"),
        (("fly",), 2, "fly"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    tmp_path: Path, words: tuple[str, ...], status: int, expected: str
) -> None:
    done = call(*words, cwd=tmp_path)
    assert (status, "") == (done.returncode, done.stdout)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_a_device_must_be_named_twice_and_an_image_not_at_all(plan: Path) -> None:
    study = plan.parent / "study"
    done = call("run", plan, "--study", study, "--erase", "/dev/disk/by-id/x")
    assert (2, True) == (done.returncode, "uses an image file and erases no device" in done.stderr)
    plan.write_text(PLAN.replace('image_size = "1 GB"', 'device = "/dev/disk/by-id/x"'))
    for erased in ((), ("--erase", "/dev/disk/by-id/y")):
        done = call("run", plan, "--study", study, *erased)
        assert (2, True) == (done.returncode, "--erase /dev/disk/by-id/x" in done.stderr)
    assert not study.exists()


def test_a_plan_without_a_cell_to_run_says_why(plan: Path) -> None:
    plan.write_text(PLAN.replace('block_size = { vary = ["4 kB", "8 kB"] }', "block_size = 512"))
    done = call("run", plan, "--study", plan.parent / "study")
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
            "PYTHONPATH": str(Path(__file__).parents[3] / "src"),
            "PYTHONUNBUFFERED": unbuffered,
        },
    )
    os.close(theirs)
    assert (0, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_from_outside_is_an_interrupt(tmp_path: Path, number: signal.Signals) -> None:
    # A plan that never ends to be read stands for a study that is being measured.
    endless = tmp_path / "plan.toml"
    os.mkfifo(endless)
    process = subprocess.Popen(
        [sys.executable, "-m", "bedplate", "plan", str(endless)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
        # Under nohup, or in the background of a shell, the tests themselves run with it ignored.
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),  # noqa: PLW1509 -- no threads here
    )
    # Opening the other end waits until the command has come to reading it.
    writer = os.open(endless, os.O_WRONLY)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    os.close(writer)
    assert 130 == process.returncode
    assert "interrupted; what was finished is kept" in said
