"""One study at a time on a scratch device."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def device_lock(state_directory: Path, stable_name: str, *, study: str = "") -> Iterator[None]:
    """Hold the scratch device of that name, or image directory, for this process alone.

    DeviceInUse names the pid and the study of the holder. The kernel drops the lock when its holder
    ends, however it ends. Two names of one device are one lock.
    """
    resolved = os.path.realpath(stable_name)
    directory = state_directory / ".locks"
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    path = directory / hashlib.sha256(os.fsencode(resolved)).hexdigest()[:16]
    # The file stays: removing it would let a third process lock a file that has no name any more.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DeviceInUse(
                f"{stable_name} is in use by {_holder(file)}; wait for it, stop it, or choose another"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "study": study}).encode(), 0)
        yield
    finally:
        os.close(file)


def _holder(file: int) -> str:
    try:
        record = json.loads(os.pread(file, 65536, 0))
        study = f", study {record['study']}" if record["study"] else ""
        return f"bedplate process {int(record['pid'])}{study}"
    except (ValueError, KeyError, TypeError):
        return "another bedplate process"  # that has only just taken the lock
