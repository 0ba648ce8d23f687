"""One study, and one visit, at a time on a scratch device."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING

from bedplate.errors import DeviceInUse
from bedplate.host.file_lock import take_lock
from bedplate.host.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# All image files are one scratch device: two at once would measure each other, wherever they lie.
IMAGE_FILES = "the place of image files"


@contextlib.contextmanager
def device_lock(state_directory: Path, stable_name: str, *, study: str = "") -> Iterator[None]:
    """Hold the scratch device of that name (or IMAGE_FILES) for one visit, in this process alone.

    DeviceInUse names the pid and the study of the holder. The kernel drops the lock when its holder
    ends, however it ends. Two names of one device are one lock.
    """
    with _held(_open(state_directory, stable_name), stable_name, study):
        yield


@contextlib.contextmanager
def study_lock(state_directory: Path, stable_name: str, *, study: str) -> Iterator[None]:
    """Hold the same for a whole study, whose visits are other processes; DeviceInUse as above."""
    with _held(_open(state_directory, stable_name, prefix="study-"), stable_name, study):
        yield


def wait_for_last_visit(
    state_directory: Path, stable_name: str, *, deadline_s: float, on_wait: Callable[[str], None]
) -> None:
    """Wait until no visit holds the device; DeviceInUse at the deadline.

    A visit whose executor was killed is giving everything back on its own, and must be let.
    `on_wait` is told once who it is.
    """
    file = _open(state_directory, stable_name)
    try:
        if not take_lock(file):
            on_wait(_holder(file))
            if not wait_until(lambda: take_lock(file), deadline_s=deadline_s):
                raise _in_use(stable_name, file)
    finally:
        os.close(file)


def _open(state_directory: Path, stable_name: str, *, prefix: str = "") -> int:
    resolved = os.path.realpath(stable_name) if stable_name.startswith("/") else stable_name
    directory = state_directory / ".locks"
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    path = directory / (prefix + hashlib.sha256(os.fsencode(resolved)).hexdigest()[:16])
    # The file stays: removing it would let a third process lock a file that has no name any more.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


@contextlib.contextmanager
def _held(file: int, stable_name: str, study: str) -> Iterator[None]:
    try:
        if not take_lock(file):
            raise _in_use(stable_name, file)
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "study": study}).encode(), 0)
        yield
    finally:
        os.close(file)


def _in_use(stable_name: str, file: int) -> DeviceInUse:
    return DeviceInUse(f"{stable_name} is in use by {_holder(file)}; wait for it, stop it, or choose another")


def _holder(file: int) -> str:
    try:
        record = json.loads(os.pread(file, 65536, 0))
        study = f", study {record['study']}" if record["study"] else ""
        return f"bedplate process {int(record['pid'])}{study}"
    except (ValueError, KeyError, TypeError):
        return "another bedplate process"  # that has only just taken the lock
