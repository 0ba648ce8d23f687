"""Every command in surroundings that a caller may give it: descriptors that are closed or full, no HOME, no folder to be in.

All run as an ordinary user, so that none changes the machine. Their calls are the first examples of their help. Each ends in a fork of
one process, which stands where a start of Python would: a start costs more than most commands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.documents.command_lines import CommandLine
from tests.support.documents.reader import Reader
from tests.support.studies.study_lab import NOBODY
from tests.support.tools.command_line import SOURCES
from tests.support.tools.patience import AT_MOST_S

from bedplate.cli.options import EXAMPLES

# In place of what would be built for minutes, and of what depends on the servers that run here.
_INSTEAD = {
    "doctor --install": "bedplate doctor nowhere --install",
    "ask safe": "bedplate ask safe full_page_writes=off --on ext4",
}
# Reads from its input what is to be called where, one after the other; its own folder is the reader's.
_FORKS = """
import json, os, sys, traceback

def stand(place, name):
    out, err = (os.open(f"{place}.{which}", os.O_CREAT | os.O_WRONLY, 0o666) for which in ("out", "err"))
    full = os.open("/dev/full", os.O_WRONLY)
    if name == "readers that went away":
        reader, out = os.pipe()
        os.close(reader)
        err = out
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(full if name == "full output" else out, 1)
    os.dup2(err, 2)
    if name == "closed descriptors":
        os.closerange(0, 3)
        sys.stdin = sys.stdout = sys.stderr = None
    if name == "no environment":
        for word in ("HOME", "PATH", "LANG", "LC_ALL", "XDG_CACHE_HOME", "USER", "LOGNAME"):
            os.environ.pop(word, None)
        os.environ.update(TERM="dumb", COLUMNS="1", TMPDIR="/nowhere")
        sys.stdout = open(1, "w", encoding="ascii", closefd=False)
    if name == "a folder that is gone":
        os.mkdir(f"{place}.gone")
        os.chdir(f"{place}.gone")
        os.rmdir(f"{place}.gone")

# What is forked must have no threads: polars, which starts some, is left to those that need it.
import bedplate, importlib, pkgutil, pydantic, rich.console, rich.table, scipy.stats

def load():
    sys.modules["polars"] = None
    for module in pkgutil.walk_packages(bedplate.__path__, "bedplate."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                if error.name != "polars":
                    raise
    del sys.modules["polars"]

def live(place, words, name):
    stand(place, name)
    sys.argv[1:] = words
    try:
        from bedplate.__main__ import main
        main() if words else sys.exit(load())
    except SystemExit as end:
        os._exit(end.code or 0)
    except BaseException:
        with open(f"{place}.err", "a") as file:
            traceback.print_exc(file=file)
    os._exit(99)

def end(folder, words, name):
    os.chdir(f"{folder}/work")
    child = os.fork()
    if child == 0:
        live(f"{folder}/{name}", words, name)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

calls = json.load(sys.stdin)
for folder, name in {name: (folder, name) for folder, _, name in calls}.values():
    if end(folder, [], name):
        sys.exit(f"{name}: a module cannot be loaded: {open(f'{folder}/{name}.err').read()}")
# Once for all calls: each would take longer over it than over the rest.
load()
print(json.dumps([end(*call) for call in calls]))
"""
SILENT = ("closed descriptors", "readers that went away")
SURROUNDINGS = ("no environment", "full output", "a folder that is gone", *SILENT)


@dataclass(frozen=True)
class Ended:
    """How a call ended, and what it said."""

    status: int
    stdout: str
    stderr: str


def _call_of(command: str, work: Path) -> list[str]:
    """The first example of a command, with what it names in a folder that is made."""
    work.mkdir(parents=True)
    example = _INSTEAD.get(command, EXAMPLES[command][0]).partition(" > ")[0].removeprefix("sudo ")
    return Reader(work).words(CommandLine(example, f"{command} --help"))


@pytest.fixture(scope="module")
def every_end(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Ended]:
    """Of each command, by where it was called."""
    base = tmp_path_factory.mktemp("surroundings")
    calls = [
        # A study is imported once.
        (str(base / command), words if command != "import" else [*words[:-1], name.replace(" ", "-")], name)
        for command in EXAMPLES
        for words in [_call_of(command, base / command / "work")]
        for name in SURROUNDINGS
    ]
    as_user: tuple[str, ...] = ()
    if os.geteuid() == 0:
        as_user = NOBODY
        for path in (base, *base.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
    done = subprocess.run(
        # As a start: the folder that it is called in is no place of modules.
        [*as_user, sys.executable, "-P", "-c", _FORKS],
        input=json.dumps(calls),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=AT_MOST_S,
        env={
            **os.environ,
            "HOME": str(base),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": str(SOURCES),
            "BEDPLATE_CACHE": str(base / "cache"),
            "BEDPLATE_STATE": str(base / "state"),
        },
    )
    return {
        (Path(folder).name, name): Ended(
            status, *(Path(folder, f"{name}.{kind}").read_text(errors="replace") for kind in ("out", "err"))
        )
        for (folder, _, name), status in zip(calls, json.loads(done.stdout), strict=True)
    }


@pytest.mark.parametrize("command", EXAMPLES)
def test_a_command_ends_with_a_sentence_wherever_it_is_called(
    every_end: dict[tuple[str, str], Ended], command: str
) -> None:
    ends = {name: every_end[command, name] for name in SURROUNDINGS}
    plain = ends["no environment"]
    for name, end in ends.items():
        assert end.status in (0, 1, 2, 3, 125), f"{name}: {end}"
        assert "Traceback" not in end.stderr, f"{name}: {end.stderr}"
        assert end.stdout or end.stderr or name in SILENT, f"{name}: {end}"
    # What is done does not depend on who watches.
    assert plain.status == ends["closed descriptors"].status, (
        f"{ends['closed descriptors']}, and {plain} elsewhere"
    )
    assert ends["readers that went away"].status in (plain.status, 0)
    full = ends["full output"]
    if plain.stdout:
        assert "standard output cannot be written: No space left on device" in full.stderr
        assert (plain.status or 3) == full.status
    else:
        assert plain.stderr == full.stderr
