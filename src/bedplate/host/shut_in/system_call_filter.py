"""A filter of system calls for programs of others: sockets of Unix alone, no rights anew, no keys.

A namespace of networks has no say over AF_VSOCK, which reaches the host of a virtual machine, nor over io_uring, which makes sockets
without socket(2). Root in a namespace of users of one's own may mount, and reaches code of the kernel that nobody else does. A keyring is
shared with every process of the account. The filter is inherited, and nothing takes it away (seccomp(2)).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct

from bedplate.errors import MachineUnfit

# linux/prctl.h, linux/seccomp.h, linux/sched.h.
_PR_SET_NO_NEW_PRIVS, _SECCOMP_SET_MODE_FILTER = 38, 1
# Without it a kernel before 5.16 takes speculation from whoever has a filter, and what is measured would be slower by that. A kernel
# before 4.17 does not know it.
_SPECULATES = 1 << 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_CLONE_NEWUSER = 0x10000000
# Classic BPF (linux/filter.h): load a word, compare it, test its bits, return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# struct seccomp_data: the lower half of an argument stands first.
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
# Numbers from here on are of x32, and would be another way to each call.
_X32 = 0x40000000

_X86_64 = {
    "seccomp": 317,
    "socket": 41,
    "socketpair": 53,
    "clone": 56,
    "unshare": 272,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
}
# Of asm-generic/unistd.h, by which all newer processors go.
_GENERIC = {
    "seccomp": 277,
    "socket": 198,
    "socketpair": 199,
    "clone": 220,
    "unshare": 97,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
}
# The same everywhere.
_SINCE_5 = {"io_uring_setup": 425, "clone3": 435}
# By the machine's name: what linux/audit.h calls its system calls, and their numbers.
_MACHINES = {
    "x86_64": (0xC000003E, _X86_64),
    "aarch64": (0xC00000B7, _GENERIC),
    "riscv64": (0xC00000F3, _GENERIC),
}

_Step = tuple[int, int, int, int]


def refuse_calls(*, io_uring: bool) -> None:
    """No new privileges and no such calls for this process and what it starts; whether `io_uring` stays is the caller's to say.

    For a child before its program. On processors of other kinds, and under a kernel that has no such filter, privileges alone are refused.
    MachineUnfit where the kernel does not do that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise MachineUnfit(
            f"the kernel does not keep programs from new privileges: {os.strerror(ctypes.get_errno())}; "
            "programs and data of others are not run under it"
        )
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return
    steps = b"".join(struct.pack("=HBBI", *step) for step in _steps(*machine, io_uring=io_uring))
    code = ctypes.create_string_buffer(steps, len(steps))
    program = struct.pack("@HP", len(steps) // 8, ctypes.addressof(code))
    for flags in (_SPECULATES, 0):
        if not libc.syscall(
            *map(ctypes.c_long, (machine[1]["seccomp"], _SECCOMP_SET_MODE_FILTER, flags)), program
        ):
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):
            raise MachineUnfit(
                f"system calls cannot be refused to a program of others: {os.strerror(number)}"
            )


def _steps(architecture: int, known: dict[str, int], *, io_uring: bool) -> list[_Step]:
    number = {**known, **_SINCE_5}
    only_unix = _unless_argument(_EQUAL, socket.AF_UNIX, errno.EAFNOSUPPORT, refused_if=False)
    no_users = _unless_argument(_ANY_BIT, _CLONE_NEWUSER, errno.EPERM, refused_if=True)
    # Its flags stand in memory, which no filter reads; a C library goes on with clone.
    missing = _refuse(errno.ENOSYS)
    # Of what a server does all the time, reads and writes above all, most is below the first of these.
    first = min(value for name, value in number.items() if name != "seccomp")
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        *missing,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 1, 0, first),
        (_RETURN, 0, 0, _ALLOW),
        *(_if(_AT_LEAST, _X32, missing) if architecture == _MACHINES["x86_64"][0] else ()),
        *(step for name in ("socket", "socketpair") for step in _if(_EQUAL, number[name], only_unix)),
        *(step for name in ("clone", "unshare") for step in _if(_EQUAL, number[name], no_users)),
        *(
            step
            for name in ("clone3", "add_key", "request_key", "keyctl")
            for step in _if(_EQUAL, number[name], missing)
        ),
        *(() if io_uring else _if(_EQUAL, number["io_uring_setup"], missing)),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _if(comparison: int, value: int, then: list[_Step]) -> list[_Step]:
    """Where what was loaded compares so, what ends in a return; else what comes behind."""
    return [(comparison, 0, len(then), value), *then]


def _unless_argument(comparison: int, value: int, number: int, *, refused_if: bool) -> list[_Step]:
    """By the first argument: refused where the comparison comes out so, else allowed."""
    allowed, refused = [(_RETURN, 0, 0, _ALLOW)], _refuse(number)
    return [
        (_LOAD, 0, 0, _ARGUMENT),
        (comparison, 0, 1, value),
        *(refused + allowed if refused_if else allowed + refused),
    ]


def _refuse(number: int) -> list[_Step]:
    return [(_RETURN, 0, 0, _REFUSE | number)]
