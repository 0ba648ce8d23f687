"""The unprivileged account that servers run as: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd

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


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
