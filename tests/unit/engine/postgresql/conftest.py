from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bedplate.errors import CommandFailed
from bedplate.host.command import Account, Commands, Completed

Answer = Callable[[tuple[str, ...], Path | None], Completed]


def completed(argv: Sequence[str], stdout: str = "", *, status: int = 0) -> Completed:
    return Completed(tuple(argv), status, stdout, "", 0.0)


@dataclass
class ScriptedCommands(Commands):
    """Starts nothing: answers by the first word that names a program; unknown programs are missing."""

    answers: dict[str, Answer] = field(default_factory=dict)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60.0,
        check: bool = True,
        account: Account | None = None,
        extra_environment: object = None,
        stdin: str | None = None,
        directory: Path | None = None,
    ) -> Completed:
        del timeout_s, account, extra_environment, stdin
        words = tuple(argv)
        self.record.append(words)
        answer = self.answers.get(Path(words[0]).name)
        if answer is None:
            raise CommandFailed(f"{words[0]} cannot be started", argv=words, status=None, output="")
        done = answer(words, directory)
        if check and done.status != 0:
            raise CommandFailed(f"{words[0]} failed", argv=words, status=done.status, output=done.output)
        return done

    def programs(self) -> list[str]:
        return [Path(words[0]).name for words in self.record]


def unpack(argv: tuple[str, ...], directory: Path | None) -> Completed:
    """What `tar -xf FILE -C DIRECTORY --strip-components=1` does, as far as a build is concerned."""
    del directory
    target = Path(argv[argv.index("-C") + 1])
    (target / "configure").write_text("#!/bin/sh\n", encoding="utf-8")
    return completed(argv)


@pytest.fixture
def scripted() -> ScriptedCommands:
    return ScriptedCommands()


def _make_tarball(path: Path, version: str, *, content: str = "") -> Path:
    with tarfile.open(path, "w:bz2") as archive:
        for name, text in ((f"postgresql-{version}", None), (f"postgresql-{version}/configure", content)):
            member = tarfile.TarInfo(name)
            if text is None:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def make_tarball(tmp_path: Path) -> Callable[..., Path]:
    def make(version: str, *, name: str | None = None, content: str = "") -> Path:
        return _make_tarball(tmp_path / (name or f"given-{version}.tar.bz2"), version, content=content)

    return make
