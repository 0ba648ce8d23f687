"""One command of a build of somebody's own source: as an account without rights, shut in, where bedplate is root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.host.shut_in.confinement import Confinement

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.host.command import Account, Commands, Completed

_ENV = "/usr/bin/env"


def build_command(
    argv: Sequence[str],
    *,
    directory: Path,
    work: Path,
    source: Path,
    account: Account | None,
    commands: Commands,
    timeout_s: float,
) -> Completed:
    """Run it in `directory`; it writes nowhere but below `work`, and `source` is there for it. CommandFailed with its whole output.

    Without an `account` it is the caller's own, and runs as any command.
    """
    if account is None:
        return commands.run(argv, timeout_s=timeout_s, directory=directory)
    confined = Confinement((_ENV, f"--chdir={directory}", *argv), data=work, programs=source, account=account)
    return commands.run(confined.argv, timeout_s=timeout_s, confinement=confined)
