"""One command of a build: as an account without rights, shut in, where bedplate is root.

What is compiled says what the compiler reads (`#include`, `.incbin`), and what runs meanwhile (`configure`, a makefile). So a build sees
the system's programs, libraries, headers and configuration, as far as every account may read them, and the folders that it is handed.
Everything else of the machine is an empty folder to it: homes, state of services, bedplate's own cache.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.process import PROC
from bedplate.host.requirement import find_tool
from bedplate.host.shut_in.confinement import Confinement
from bedplate.host.shut_in.restriction import SYSTEM_FOLDERS, Restriction
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bedplate.host.command import Account, Commands, Completed

# What it says goes into a log; a compiler's warnings about all of Linux are less.
SAID_BYTES_MOST = 64 * MIB
_COMPILERS = ("cc", "gcc")
# linux/capability.h: the right to mount and to make namespaces.
_CAP_SYS_ADMIN = 21


def builder_account(*, is_own: bool = True) -> Account | None:
    """Who compiles: an account without rights where bedplate is root, else the caller.

    A container may keep root from shutting anything in. Then what is somebody's own is refused at its first command, and what is
    bedplate's, or came with a signature or a checksum that is known, is compiled by the caller: the container is its wall.
    """
    return server_account() if os.geteuid() == 0 and (is_own or _may_shut_in()) else None


def to_read_alone(*folders: Path, is_own: bool = True) -> Restriction | None:
    """What is left to a program that answers a question and writes nothing, beside what every account may read; None as of `builder_account`."""
    account = builder_account(is_own=is_own)
    return None if account is None else Restriction(account, readable=folders)


def build_command(
    argv: Sequence[str],
    *,
    directory: Path,
    work: Path,
    readable: Sequence[Path],
    account: Account | None,
    commands: Commands,
    timeout_s: float,
) -> Completed:
    """Run it in `directory`; it writes nowhere but below `work`, and `readable` are there for it. CommandFailed with its whole output.

    Without an `account` it is the caller's own, and runs as any command.
    """
    if account is None:
        return commands.run(argv, timeout_s=timeout_s, directory=directory)
    _demand_compilers_seen()
    confined = Confinement(
        tuple(argv),
        data=work,
        programs=readable[0],
        account=account,
        readable=tuple(readable[1:]),
        sees_system_alone=True,
        directory=str(directory),
    )
    return commands.run(
        argv, timeout_s=timeout_s, directory=directory, most_bytes=SAID_BYTES_MOST, confinement=confined
    )


def _demand_compilers_seen() -> None:
    """The compiler whose version is recorded is the one that a build finds; RequirementMissing where that is hidden from it."""
    for name in _COMPILERS:
        found = find_tool(name)
        if found is not None and not all(
            path.parts[1] in SYSTEM_FOLDERS for path in (found, found.resolve())
        ):
            raise RequirementMissing(
                f"{found} is the compiler in the search path, and a build, which sees the system's own folders alone, does not see it; "
                "take its folder out of PATH, or install it below /opt or /usr/local"
            )


def _may_shut_in() -> bool:
    """Whether this process has the right to mount, which a container may have taken from root."""
    status = (PROC / "self/status").read_text(encoding="ascii", errors="replace")
    (rights,) = (line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(rights, 16) >> _CAP_SYS_ADMIN & 1)
