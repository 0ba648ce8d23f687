"""A bundle's script, tried before the bundle is handed out: here; or, as a program, in a guest whose kernel has the file system."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bedplate.cli.cut_script import AS_ASKED, CHECK_LIMIT_S, NO_VERDICT, REPRODUCE, TOOLS
from bedplate.host.command import Commands
from bedplate.host.files import state_directory
from bedplate.host.ledger import Holding, Holdings, Ledger
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.workloads.power_cut.cut_questions import answer

PROGRAM = "bedplate.cli.tried_script"

# Beside the engine's tools the script unpacks and repairs; where these take too long it says so by itself.
TRY_LIMIT_S = CHECK_LIMIT_S + 1800.0

TRIED = "tried"


@dataclass(frozen=True)
class TriedScript:
    """How the script ended. A status other than those of `script.py` is one that it did not mean."""

    status: int
    said: str

    @property
    def as_asked(self) -> bool:
        """Whether it gave the verdict that was asked for."""
        return self.status == AS_ASKED

    @property
    def lacks(self) -> bool:
        """Whether something is missing on this machine, so that it gave none."""
        return self.status == NO_VERDICT


@dataclass(frozen=True)
class ScriptQuestion:
    """What the script of the bundle in `folder` says with these words; `places` are variables of its environment."""

    folder: str
    words: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


def tried(asked: ScriptQuestion, memory: Path, ledger: Holdings) -> TriedScript:
    """In a mount namespace of its own, as nobody else's mounts are any business of it.

    Its copies are made in `memory`, below a folder of their own: a kill leaves neither them nor the loop devices over them for good.
    """
    folder = memory / TRIED
    ledger.note(Holding("loops", str(folder)))
    folder.mkdir(mode=0o755, exist_ok=True)
    variables = {"TMPDIR": str(folder), **asked.places}
    argv = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        str(Path(asked.folder) / REPRODUCE),
        *asked.words,
    ]
    done = Commands().run(argv, timeout_s=TRY_LIMIT_S, check=False, extra_environment=variables)
    return TriedScript(done.status, done.output)


def _answers(asked: ScriptQuestion) -> Iterator[TriedScript]:
    # A guest may have tools of its file system elsewhere than the system has its own, and the script names its own PATH.
    asked = replace(asked, places={TOOLS: os.environ.get("PATH", ""), **asked.places})
    with Ledger.open(state_directory(), f"{os.getpid()}-script") as ledger:
        try:
            yield tried(asked, MEMORY_DIRECTORY, ledger)
        finally:
            ledger.release(Commands())


def main(arguments: list[str]) -> int:
    """Answer a ScriptQuestion."""
    return answer(arguments, ScriptQuestion, _answers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
