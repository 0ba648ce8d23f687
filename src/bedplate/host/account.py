"""The unprivileged account that servers run as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import contextlib
import os
import pwd
from dataclasses import replace
from pathlib import Path

from bedplate.errors import RequirementMissing
from bedplate.host.command import Account

_PREFERRED = ("bedplate", "nobody")


def server_account() -> Account:
    """`bedplate` if the machine has it, else `nobody`; the calling user where that is not root.

    RequirementMissing if there is neither, or if it is root by another name.
    """
    return recorded_account() if os.geteuid() == 0 else _account(pwd.getpwuid(os.geteuid()))


def recorded_account() -> Account:
    """As whom servers run for root, who records power cuts: here, and in a guest, which has this machine's accounts.

    RequirementMissing as of `server_account`.
    """
    for name in _PREFERRED:
        try:
            found = _account(pwd.getpwnam(name))
        except KeyError:
            continue
        if found.uid == 0:
            raise RequirementMissing(f"account {name} has uid 0; servers need one without privileges")
        return found
    raise RequirementMissing(
        "there is no account for servers: neither bedplate nor nobody; `useradd --system bedplate` makes one"
    )


def in_place_of(recorded: Account | None, here: Account) -> Account:
    """This machine's account for what another machine's has recorded: servers know it by the recorded name."""
    return here if recorded is None else replace(here, name=recorded.name)


def hand_over(directory: Path, recorded: Account | None, account: Account) -> None:
    """Give what the recorded account owns to the one in its place; what has another owner keeps it, as that may be damage.

    No link is followed. What gives an error is left alone, for the engine to meet.
    """
    is_same = recorded is None or (recorded.uid, recorded.gid) == (account.uid, account.gid)
    if recorded is None or is_same or directory.is_symlink():
        return
    waiting = [directory]
    while waiting:
        path = waiting.pop()
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == recorded.uid:
                os.lchown(path, account.uid, account.gid)
            if path.is_dir() and not path.is_symlink():
                waiting += path.iterdir()


def _account(passwd: pwd.struct_passwd) -> Account:
    return Account(passwd.pw_name, passwd.pw_uid, passwd.pw_gid)
