"""action.yml and ci/gitlab.yml: what a service requires is there, and what is given to them becomes no part of a script.

Each script is run as the service runs it, with programs in place of `sudo` and `bedplate` that write down their words.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from bedplate.cli.app import program

_GITHUB, _GITLAB = "action.yml", "ci/gitlab.yml"
BOTH = pytest.mark.parametrize("name", [_GITHUB, _GITLAB])
_INPUT = re.compile(r"\$(?:\{\{|\[\[) *inputs\.([\w-]+) *(?:\}\}|\]\])")
# `key:` or `key: value`, the key a plain word.
_PAIR = re.compile(r"([A-Za-z][\w-]*):(?: (.*))?")
HOSTILE = "an engine\"; touch taken; $(touch taken) `touch taken` 'x"

# Writes its words and gives the code that it is asked for.
_WITNESS = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["WITNESS"], "a") as out:
    print(json.dumps(sys.argv), file=out)
sys.exit(int(os.environ["CODE"]))
"""


def read(text: str) -> Any:
    """The part of YAML that the recipes are written in: nested pairs and lists, texts and blocks of lines."""
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    return _node(lines)


def _node(lines: list[str]) -> Any:
    indent = len(lines[0]) - len(lines[0].lstrip())
    starts = [place for place, line in enumerate(lines) if not line.startswith(" " * (indent + 1))]
    parts = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    assert all(part[0].startswith(" " * indent) for part in parts), lines[0]
    if lines[0].lstrip().startswith("- "):
        return [_item([part[0].replace("- ", "  ", 1), *part[1:]]) for part in parts]
    pairs = [_PAIR.fullmatch(part[0].strip()) for part in parts]
    assert all(pairs), lines
    return {
        pair[1]: _value(pair[2] or "", part[1:])
        for pair, part in zip(pairs, parts, strict=True)
        if pair is not None
    }


def _item(lines: list[str]) -> Any:
    return _node(lines) if _PAIR.fullmatch(lines[0].strip()) else _value(lines[0].strip(), lines[1:])


def _value(word: str, below: list[str]) -> Any:
    if word == "|":
        indent = len(below[0]) - len(below[0].lstrip())
        return "\n".join(line[indent:] for line in below)
    assert not (word and below), word
    return _node(below) if below else (word[1:-1] if word.startswith('"') else word)


def inputs_and_jobs(name: str, text: str) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """What may be given, and each step or job: its `script`, and its `environment`."""
    if name == _GITHUB:
        action = read(text)
        assert action["name"]
        assert action["description"]
        assert "composite" == action["runs"]["using"]
        steps = action["runs"]["steps"]
        assert all("bash" == step["shell"] for step in steps)
        return action["inputs"], [
            {"script": step["run"], "environment": step["env"], "all": step} for step in steps
        ]
    head, body = text.split("\n---\n")
    jobs = read(body).values()
    return read(head)["spec"]["inputs"], [
        {"script": "\n".join(job["script"]), "environment": job["variables"], "all": job} for job in jobs
    ]


def findings(name: str, text: str) -> Iterator[str]:
    """What is given but may not be, or is never used; and what a script would be written with."""
    inputs, jobs = inputs_and_jobs(name, text)
    for key, described in inputs.items():
        if not described.get("description"):
            yield f"{key} has no description"
    used = {key for job in jobs for key in _INPUT.findall(str(job["all"]))}
    yield from (f"{key} is used, and cannot be given" for key in sorted(used - {*inputs}))
    yield from (f"{key} is given, and not used" for key in sorted({*inputs} - used))
    for job in jobs:
        if re.search(r"\$\{\{|\$\[\[", job["script"]):
            yield "a script is written with what is given"
        variables = set(re.findall(r"\$([A-Z_]+)", job["script"]))
        yield from (f"{key} is in a script, and not set" for key in sorted(variables - {*job["environment"]}))


@BOTH
def test_a_recipe_is_whole(repository: Path, name: str) -> None:
    assert [] == [*findings(name, (repository / name).read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("name", "old", "new", "finding"),
    [
        (_GITHUB, '"$POINTS"', "${{ inputs.points }}", "a script is written with what is given"),
        (_GITHUB, "inputs.points", "inputs.cuts", "cuts is used, and cannot be given"),
        (_GITHUB, "        POINTS:", "        CUTS:", "POINTS is in a script, and not set"),
        (_GITLAB, '"$POINTS"', "$[[ inputs.points ]]", "a script is written with what is given"),
        (_GITLAB, '  POINTS: "$[[ inputs.points ]]"', '  POINTS: "160"', "points is given, and not used"),
    ],
)
def test_a_planted_fault_of_a_recipe_is_found(
    repository: Path, name: str, old: str, new: str, finding: str
) -> None:
    text = (repository / name).read_text(encoding="utf-8")
    assert old in text
    assert finding in [*findings(name, text.replace(old, new))]


def ran(
    repository: Path, folder: Path, name: str, given: dict[str, str], code: int = 0
) -> tuple[int, list[list[str]]]:
    """The exit code of the recipe's script, and the words of each program that it called."""
    inputs, (job,) = inputs_and_jobs(name, (repository / name).read_text(encoding="utf-8"))
    values = {key: described.get("default", "") for key, described in inputs.items()} | given
    environment = {
        key: _INPUT.sub(lambda found: values[found[1]], text) for key, text in job["environment"].items()
    }
    if name == _GITHUB:
        assert "${{ github.action_path }}/bedplate" == environment["BEDPLATE"]
        environment["BEDPLATE"] = "/the checkout/bedplate"
    (folder / "bin").mkdir()
    for witness in ("sudo", "bedplate"):
        (folder / "bin" / witness).write_text(_WITNESS, encoding="utf-8")
        (folder / "bin" / witness).chmod(0o755)
    script = folder / "script"
    script.write_text(job["script"] + "\n", encoding="utf-8")
    # As each service calls it, by its documentation.
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail"] if name == _GITHUB else ["sh", "-e"]
    done = subprocess.run(
        [*shell, script],
        cwd=folder,
        env={
            **environment,
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "TMPDIR": str(folder),
            "WITNESS": str(folder / "words"),
            "CODE": str(code),
        },
        check=False,
        capture_output=True,
    )
    return done.returncode, [*map(json.loads, (folder / "words").read_text().splitlines())]


def understood(words: list[str]) -> dict[str, Any]:
    """The options of `power-cut try` as its own command line takes the words."""
    context = program.make_context("bedplate", [*words])
    command: click.Command = program
    left = [*context._protected_args, *context.args]
    while isinstance(command, click.Group):
        name, inner, left = command.resolve_command(context, left)
        assert inner is not None
        command = inner
        context = command.make_context(name, left, parent=context)
        left = [*context._protected_args, *context.args]
    return context.params


@BOTH
def test_a_recipe_cuts_the_power_of_what_is_given_whatever_its_name_says(
    repository: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / HOSTILE).mkdir()
    (tmp_path / HOSTILE / "engine.toml").touch()
    given = {
        "engine": HOSTILE,
        "file-systems": "ext4,xfs",
        "points": "4",
        "fail-if": "worse than promised",
        "results": "-my results",
    }
    code, calls = ran(repository, tmp_path, name, given)
    assert 0 == code
    assert not (tmp_path / "taken").exists()
    (words,) = calls
    at = words.index("power-cut")
    before = [Path(words[0]).name, *words[1:at]]
    assert (["sudo", "/the checkout/bedplate"] if name == _GITHUB else ["bedplate"]) == before
    options = understood(words[at:])
    engine = options["folder"]
    if name == _GITLAB:
        assert tmp_path == engine.parents[1]
        assert ["engine.toml"] == [path.name for path in engine.iterdir()]
        assert 0o755 == engine.stat().st_mode & 0o777
    else:
        assert Path(HOSTILE) == engine
    assert (4, "-my results", True) == (options["points"], str(options["directory"]), options["yes"])
    assert "-my results/junit.xml" == str(options["junit"])
    assert "worse than promised" in words
    assert "ext4,xfs" in words


@BOTH
@pytest.mark.parametrize("code", [1, 2, 125])
def test_a_job_fails_with_the_code_of_the_command(
    repository: Path, tmp_path: Path, name: str, code: int
) -> None:
    (tmp_path / "engine").mkdir()
    found, calls = ran(repository, tmp_path, name, {"engine": "engine"}, code)
    assert (code, 1) == (found, len(calls))
    at = calls[0].index("power-cut")
    assert (160, "bad") == tuple(understood(calls[0][at:])[key] for key in ("points", "fail_if"))


def test_a_service_takes_no_more_than_is_tested_here(repository: Path) -> None:
    """GitLab writes what is given into the text of the file, so that a quotation mark in it would end the text there."""
    inputs, _ = inputs_and_jobs(_GITLAB, (repository / _GITLAB).read_text(encoding="utf-8"))
    for key in ("engine", "file-systems", "results", "image"):
        shape = re.compile(inputs[key]["regex"])
        assert shape.fullmatch("a,b" if key == "file-systems" else "a.b/c-d")
        assert not any(shape.fullmatch(text) for text in ('a"b', "a$b", "a`b", "a b", "a\nb"))
    assert "number" == inputs["points"]["type"]
    assert inputs["fail-if"]["options"].startswith("[bad, ")
