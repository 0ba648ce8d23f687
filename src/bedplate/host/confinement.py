"""Programs of others: without rights, without network, seeing no temporary files but their own, and ended with all their children.

A namespace of processes ends with its first process, which waits for the program here: whatever the program left running, in
whatever session, is killed by the kernel then. What it writes to /tmp, /var/tmp and /dev/shm goes with its mounts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.host.command import Account

# Where the program finds its two folders, whatever they are called outside.
DATA, PROGRAMS = "/tmp/data", "/tmp/engine"  # noqa: S108 -- of a mount namespace of its own
# Exit statuses of a shell above this are a signal's (POSIX, "Exit Status for Commands").
SIGNALS_FROM = 128
_SCRIPT = Path(__file__).with_suffix(".sh")
# Of what the kernel may lack, as a guest's: without any of these nothing is confined, and unshare(1) says so.
_NAMESPACES = ("--mount", "--pid", "--net")


def confined(argv: tuple[str, ...], *, data: Path, programs: Path, account: Account) -> tuple[str, ...]:
    """The argument list, for root, of a program in `PROGRAMS` that works in `DATA`; it ends with its caller.

    Its exit status is the program's; a signal that ended it is `SIGNALS_FROM` and its number.
    """
    return (
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc"),
        *("sh", str(_SCRIPT), str(data), str(programs)),
        *(
            "setpriv",
            f"--reuid={account.uid}",
            f"--regid={account.gid}",
            "--clear-groups",
            "--no-new-privs",
            "--",
        ),
        *argv,
    )
