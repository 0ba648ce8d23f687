"""A double of the program starter that starts nothing, answers as it is told, and keeps all that it was asked."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bedplate.host.command import Account, Commands, Completed
from bedplate.host.shut_in import Confinement, Restriction

_USUAL_LIMIT_S = 60.0


@dataclass
class RecordedCommands(Commands):
    """`answer` gives what a program prints; `lines` are the calls as one would type them, with what else was asked behind."""

    answer: Callable[[tuple[str, ...]], str] = lambda _: ""
    lines: list[str] = field(default_factory=list)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = _USUAL_LIMIT_S,
        check: bool = True,
        account: Account | None = None,
        extra_environment: Mapping[str, str] | None = None,
        stdin: str | None = None,
        directory: Path | None = None,
        most_bytes: int | None = None,
        confinement: Confinement | Restriction | None = None,
    ) -> Completed:
        self.record.append(tuple(argv))
        more = [
            "" if timeout_s == _USUAL_LIMIT_S else f"within {timeout_s:g} s",
            "" if check else "whatever its status",
            "" if account is None else f"as {account.name}",
            *(f"{name}={value}" for name, value in (extra_environment or {}).items()),
            "" if directory is None else f"in {directory}",
            "" if most_bytes is None else f"at most {most_bytes} bytes",
            "" if confinement is None else f"shut in by {type(confinement).__name__}",
        ]
        said = ", ".join(words for words in more if words)
        self.lines.append(shlex.join(argv) + (f"    # {said}" if said else ""))
        self.lines += [f"    < {line}" for line in (stdin or "").splitlines()]
        return Completed(tuple(argv), 0, self.answer(tuple(argv)), "", 0.0)
