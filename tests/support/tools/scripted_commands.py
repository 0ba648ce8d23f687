"""A double of the program starter: tests say what each program answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
        most_bytes: int | None = None,
        confinement: object = None,
    ) -> Completed:
        del timeout_s, account, extra_environment, stdin, most_bytes, confinement
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
