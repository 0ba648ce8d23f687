"""Every command line of the documents works: each is run here as a reader types it, or one of the lists says how far, and why.

WAYS has the command of bedplate, and how far it goes here. A line that goes another way is in EXCEPTIONS, one of another program in OTHERS.
A new line needs no entry where its command goes to its end here; an entry that no document needs any more fails.
"""

from __future__ import annotations

import argparse
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from tests.support.documents.command_lines import (
    PROGRAMS,
    CommandLine,
    command_lines,
    lines_of_page,
    lines_of_plan,
)
from tests.support.documents.reader import ROOT, Reader

from bedplate.cli.app import program
from bedplate.cli.commands import Viewed


@dataclass(frozen=True)
class Whole:
    """To its end."""


@dataclass(frozen=True)
class ToItsQuestion:
    """Until it asks whether to begin, with its plan, time and space shown."""

    why: str


@dataclass(frozen=True)
class ToItsPlan:
    """`bedplate plan` of the plan that it names, and the rest of its words as click takes them."""

    why: str


@dataclass(frozen=True)
class ToItsWords:
    """Only its words, as click takes them; `run_by` is the test that does the work."""

    why: str
    run_by: str = ""


_MINUTES = "measures for minutes or hours, as root"
_SLURM = ToItsWords("needs a fleet", run_by="tests/host/test_slurm_study.py")
_DISK = "needs a disk of the reader's"
_HOST = "tests/host/test_documented_commands.py"
_MORE = ToItsWords("measures a study of this machine on", run_by=_HOST)
WAYS: dict[str, Whole | ToItsQuestion | ToItsPlan | ToItsWords] = {
    **dict.fromkeys(
        ("show", *(f"show --{view}" for view in ("advice", "effects", "claims", "mail"))), Whole()
    ),
    **dict.fromkeys(("show --status", "compare", "report", "export", "import", "completion"), Whole()),
    **dict.fromkeys(("power-cut points", "release"), Whole()),
    **dict.fromkeys(("ask filesystem", "ask safe", "ab", "bisect"), ToItsQuestion(_MINUTES)),
    **dict.fromkeys(("run", "search"), ToItsPlan(_MINUTES)),
    "plan": ToItsPlan("has exit code 3 where this machine lacks what the plan needs"),
    "quickstart": ToItsPlan("installs packages, builds a server, and measures for ten minutes"),
    "doctor": Whole(),
    "doctor --install": ToItsPlan("installs packages, builds servers and fetches kernels"),
    "doctor --measure": ToItsWords(_DISK, run_by="tests/host/test_latency_device.py"),
    "power-cut try": ToItsWords("makes devices as root", run_by=_HOST),
    **dict.fromkeys(
        ("power-cut blame", "power-cut bundle", "power-cut replay"),
        ToItsWords("needs a kept recording, and root", run_by=_HOST),
    ),
}
EXCEPTIONS: dict[str, Whole | ToItsQuestion | ToItsPlan | ToItsWords] = {
    # What it asks of is the server that runs here.
    "bedplate ask safe": ToItsWords("needs a server that runs", run_by="tests/host/test_ask.py"),
    "bedplate doctor /dev/disk/by-id/nvme-EXAMPLE": ToItsWords(_DISK, run_by="tests/host/test_ask.py"),
    "bedplate doctor /dev/sda1 -o mine.toml": ToItsWords(_DISK, run_by="tests/host/test_ask.py"),
    "bedplate doctor DEVICE": ToItsWords(_DISK, run_by="tests/host/test_ask.py"),
    "bedplate doctor": ToItsWords(
        "makes and mounts file systems as root", run_by="tests/host/test_doctor.py"
    ),
    **dict.fromkeys(("bedplate release STUDY", "bedplate release first"), _SLURM),
    **dict.fromkeys(
        (
            *("bedplate run first --repetitions 5", "bedplate run first --add with-btrfs.toml"),
            *("bedplate run STUDY --repetitions 5", "bedplate run STUDY --repetitions N"),
        ),
        _MORE,
    ),
}
_NETWORK = "needs a network beyond the package registries"
_INSTALLED = "changes the packages of the machine; the files are started by tests/host/test_built_packages.py"
_IMAGE = "needs podman and an image"
_SYSTEM = "the system's own, and as it documents it"
# Commands of other programs, and why they are not run.
OTHERS = {
    "git clone …": _NETWORK,
    "git clone https://github.com/tvondra/pg-fs-benchmark": _NETWORK,
    "apt install ./dist/bedplate_0.9.0-1_all.deb": _INSTALLED,
    "dnf install ./dist/bedplate-0.9.0-1.noarch.rpm": _INSTALLED,
    "pipx install --global dist/bedplate-0.9.0-py3-none-any.whl": _INSTALLED,
    "podman load --input dist/bedplate-0.9.0.oci.tar": _IMAGE,
    'podman run --rm -v "$PWD:/studies" bedplate:0.9.0 show my-study': _IMAGE,
    'podman run --rm --privileged --shm-size=4g -v "$PWD:/studies" bedplate:0.9.0 power-cut try '
    "/usr/share/bedplate/src/bedplate/shipped/examples/engines/toy --on ext4 --yes": _IMAGE,
    'PYTHONPATH=src "$(ls -dt /var/cache/bedplate/environments/runtime-*/bin/python | head -1)" mine.py': (
        "needs root's environment; the five lines are those of tests/unit/campaign/test_study_from_python.py"
    ),
    "cp -r examples/engines/templates/python my-engine": "tests/unit/engines/test_engine_examples.py",
    "my-engine/writer data --clients=2 --seed=1 --duration=2": "tests/unit/engines/test_engine_examples.py",
    "my-engine/checker data": "tests/unit/engines/test_engine_examples.py",
    "pg_dump --format=custom --file=mine.dump mydatabase": "needs a server; plans/own-database/shop.dump was made so",
    **dict.fromkeys(
        (
            *("cd bedplate", "mkdir data"),
            *("ls -l /dev/disk/by-id/", "mail -s first list@example.org"),
            "lsblk --output NAME,SIZE,MODEL,SERIAL,FSTYPE,MOUNTPOINTS",
        ),
        _SYSTEM,
    ),
}


def _every_line() -> list[CommandLine]:
    """Each call once, of two places the one that is no mention."""
    known: dict[tuple[str, str], CommandLine] = {}
    for line in sorted(command_lines(ROOT), key=lambda line: line.mention):
        # A plan of a page is the page's own.
        page = line.place if ".toml" in line.text else ""
        known.setdefault((line.call, page), line)
    return list(known.values())


LINES = _every_line()
OURS = [line for line in LINES if line.call.startswith("bedplate ")]
TOOLS = [line for line in LINES if line.call.partition(" ")[0] in PROGRAMS and line not in OURS]


@dataclass(frozen=True)
class Parsed:
    """The command that the words name, and whether they have all that it needs."""

    words: str
    complete: bool


def parsed(words: list[str], *, mention: bool = False) -> Parsed:
    """As click takes them; its own error for what is wrong. A mention may be of the command, or of its options, alone."""
    if "…" in words:
        words = [word for word in words if word != "…"]
    context = program.make_context("bedplate", list(words))
    command: click.Command = program
    left = [*context._protected_args, *context.args]
    while isinstance(command, click.Group):
        if mention and all(word.startswith("-") for word in left):
            return Parsed("", complete=False)
        name, inner, left = command.resolve_command(context, left)
        assert inner is not None, words
        command = inner
        if mention and all(word.startswith("-") for word in left):
            views = command.views if isinstance(command, Viewed) else {}
            shown = next((views[word] for word in left if word in views), command)
            options = {option for parameter in (*command.params, *shown.params) for option in parameter.opts}
            assert options.issuperset(left), f"{name} has no {' '.join(set(left) - options)}"
            return Parsed(name or "", complete=False)
        try:
            context = command.make_context(name or "", list(left), parent=context)
        except click.MissingParameter:
            if not mention:
                raise
            return Parsed(name or "", complete=False)
        command = context.command
        left = [*context._protected_args, *context.args]
    assert [] == left
    return Parsed(context.command_path.partition(" ")[2], complete=True)


def _id(line: CommandLine) -> str:
    return f"{line.place}: {line.call}"


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.setattr("bedplate.campaign.preparation.is_root", lambda: True)
    return Reader(tmp_path)


@pytest.mark.parametrize("line", OURS, ids=_id)
def test_a_command_of_the_documents_works(reader: Reader, line: CommandLine) -> None:
    words = reader.words(line)
    # These print and end before the rest of a command's words is looked at.
    if words[-1:] in (["--help"], ["--schema"]):
        assert 0 == reader.call(line, words=words).returncode
        return
    named = parsed(words, mention=line.mention)
    if not named.complete or "…" in line.text:
        return
    way = EXCEPTIONS.get(line.call) or WAYS[named.words]
    if isinstance(way, Whole):
        done = reader.call(line, words=words)
        # A condition is the exit code: it does not hold, holds, is not known.
        assert done.returncode in ((0, 1, 125) if "--fail-if" in words else (0,)), done.stderr
        assert "error: " not in done.stderr
        assert done.stdout
    elif isinstance(way, ToItsQuestion):
        done = reader.call(line, words=words)
        assert done.returncode in (2, 125), done.stderr
        assert "nobody can be asked here" in done.stderr, done.stderr
        assert "  time      " in done.stdout
    elif isinstance(way, ToItsPlan):
        plan = words[1] if not "".join(words[1:2]).startswith("-") and words[1:] else "quick"
        done = reader.call(line, words=words if named.words == "plan" else ["plan", plan])
        # What this machine lacks is no fault of the line.
        assert done.returncode in (0, 3), done.stderr
        assert "order (seed" in done.stdout, done.stderr


class _Understood(Exception):
    """The words were taken; what comes behind them is not called."""


@pytest.mark.parametrize("line", TOOLS, ids=_id)
def test_a_command_of_another_program_of_ours_is_a_right_call(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as its words: `benchmarks/run` is started by tests/host/test_benchmarks.py, `package` by test_built_packages.py."""
    name, *words = shlex.split(line.call)
    if name == "check":
        done = subprocess.run([ROOT / "check", "--help"], capture_output=True, text=True, check=True)
        own = words[: words.index("--")] if "--" in words else words
        assert set(own) <= set(re.findall(r"--\w+", done.stdout))
        return
    parse = argparse.ArgumentParser.parse_args

    def understood(self: argparse.ArgumentParser, args: list[str] | None = None) -> None:
        parse(self, args)
        raise _Understood

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", understood)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    if name == "benchmarks/run":
        name = f"benchmarks/{words.pop(0)}.py".replace("NAME", "report_build")
    path = {"package": "distribution/__main__.py", "torture": "tests/torture/__main__.py"}.get(name, name)
    monkeypatch.setattr(sys, "argv", [path, *words])
    with pytest.raises(_Understood):
        runpy.run_path(str(ROOT / path), run_name="__main__")


def test_every_command_of_another_program_is_listed_with_its_reason() -> None:
    calls = {line.call for line in LINES if line not in OURS and line not in TOOLS}
    assert set() == calls - OTHERS.keys(), "say in OTHERS why it is not run"
    assert set() == OTHERS.keys() - calls, "no document has it any more"


def test_no_list_has_what_no_document_has_any_more() -> None:
    assert set() == EXCEPTIONS.keys() - {line.call for line in OURS}
    named = {
        words
        for words in WAYS
        for line in OURS
        for command, _, view in [words.partition(" --")]
        if f"{line.call} ".startswith(f"bedplate {command} ") and f" --{view}" in f"{line.call} --"
    }
    assert set() == WAYS.keys() - named


def test_what_only_its_words_are_looked_at_of_is_run_by_a_test() -> None:
    ways = {*WAYS.values(), *EXCEPTIONS.values()}
    tests = {way.run_by for way in ways if isinstance(way, ToItsWords)}
    assert [] == [path for path in tests if not (ROOT / path).is_file()]


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nsudo ./bedplate shwo first\n```",
        "```sh\nbedplate show first; bedplate run quick --stduy s\n```",
        "1. So:\n\n   ```sh\n   bedplate compare first\n   ```",
        "A sentence with `bedplate show --sotr tps`, and more.",
        "    sudo ./bedplate plan quick --executr qemu\n",
        "```yaml\n- run: 'bedplate power-cut try ./x --pionts 3'\n```",
    ],
)
def test_a_planted_wrong_call_is_met(text: str) -> None:
    lines = lines_of_page(text, "planted")
    with pytest.raises((click.UsageError, AssertionError)):
        _ = [parsed(shlex.split(line.text)[1:], mention=line.mention) for line in lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "# Told by `bedplate compare STUDY --baseline a=1\n# --contender a=2` at once.\n",
            "compare STUDY --baseline a=1 --contender a=2",
        ),
        ("#   sudo bedplate run plans/x.toml --study x    once\n", "run plans/x.toml --study x"),
    ],
)
def test_a_command_in_the_comments_of_a_plan_is_met(text: str, expected: str) -> None:
    assert [f"bedplate {expected}"] == [line.call for line in lines_of_plan(text, "planted")]
