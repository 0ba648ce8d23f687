"""A bundle's script is started as it is, whatever its path, and how it ends is the answer."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from bedplate.errors import BedplateError
from bedplate.host.command import Completed
from bedplate.model import codec
from bedplate.workloads.power_cut import bundle
from bedplate.workloads.power_cut.bundle import (
    NO_VERDICT,
    REPRODUCE,
    ScriptQuestion,
    TriedScript,
    main,
    tried,
)
from bedplate.workloads.power_cut.cut_questions import ANSWER, IS_LAST


class Apart:
    """Runs what is behind unshare(1), which only root may call."""

    def run(
        self, argv: list[str], *, timeout_s: float, check: bool, extra_environment: Mapping[str, str]
    ) -> Completed:
        assert not check
        assert timeout_s > 1800
        assert ["unshare", "--mount", "--propagation", "private"] == argv[:4]
        done = subprocess.run(
            argv[4:],
            env={"PATH": "/usr/bin:/bin", **extra_environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr, 0.0)


class Ledger:
    def note(self, _: object) -> None: ...


@pytest.fixture
def bundle_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a folder whose name env(1) would take for a variable."""
    monkeypatch.setattr(bundle, "Commands", Apart)
    folder = tmp_path / "a=b c"
    folder.mkdir()
    script = folder / REPRODUCE
    script.write_text('#!/bin/sh\necho "$TMPDIR $PGBIN $BEDPLATE_TOOLS $*"\nexit ' + f"{NO_VERDICT}\n")
    script.chmod(0o755)
    return folder


def test_it_is_started_with_its_words_and_variables_whatever_its_path(
    bundle_folder: Path, tmp_path: Path
) -> None:
    asked = ScriptQuestion(str(bundle_folder), ("mended",), {"PGBIN": "/x y"})
    found = tried(asked, tmp_path, cast("Any", Ledger()))
    assert TriedScript(NO_VERDICT, f"{tmp_path / 'tried'} /x y  mended") == found
    assert (True, False) == (found.lacks, found.as_asked)


def test_as_a_program_it_tells_how_the_script_ended_and_where_the_tools_are(
    bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", "/tools:/usr/bin:/bin")
    monkeypatch.setattr(bundle, "MEMORY_DIRECTORY", tmp_path)
    codec.write(tmp_path / "question", ScriptQuestion(str(bundle_folder), (), {"PGBIN": "/pg"}))
    assert 0 == main([str(tmp_path / "question"), str(tmp_path)])
    (event,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert event[IS_LAST]
    told = codec.from_json(TriedScript, json.loads(event[ANSWER]))
    assert TriedScript(NO_VERDICT, f"{tmp_path / 'tried'} /pg /tools:/usr/bin:/bin") == told

    def late(*_: object, **__: object) -> None:
        raise BedplateError("reproduce.sh did not end within 3,600 s")

    monkeypatch.setattr(Apart, "run", late)
    assert 1 == main([str(tmp_path / "question"), str(tmp_path)])
    assert "did not end within 3,600 s\n" in capsys.readouterr().err
    assert [] == list((tmp_path / "state").glob("*-script*"))
