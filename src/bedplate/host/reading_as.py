"""Reads files as an account does: what its owner may not read, root does not read for them, nor through a link that they made."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from bedplate.host.command import Account

_T = TypeVar("_T")

# setgroups(2), by the machine's name; glibc's function changes all threads.
_SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159}

_UNCHANGED = 0xFFFFFFFF


def read_as(account: Account | None, read: Callable[[], _T]) -> _T:
    """What `read` returns, in a thread that opens files with the rights of an account; with the caller's own for None.

    The kernel asks for the rights of the thread alone (setfsuid(2)), and takes root's right to pass them with the change.
    """
    if account is None:
        return read()
    results: list[_T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            _become(account)
            results.append(read())
        except BaseException as error:  # noqa: BLE001 -- it is the caller's
            errors.append(error)

    thread = threading.Thread(target=work, name="reads as an account")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _become(account: Account) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    setgroups = _SETGROUPS.get(os.uname().machine)
    if setgroups is not None:
        libc.syscall(setgroups, 0, None)
    libc.setfsgid(account.gid)
    libc.setfsuid(account.uid)
    # Each returns what was there before, and never an error.
    if (libc.setfsuid(_UNCHANGED), libc.setfsgid(_UNCHANGED)) != (account.uid, account.gid):
        raise PermissionError(f"files cannot be read as account {account.name}")
