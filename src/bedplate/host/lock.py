"""One study, and one visit, at a time on a scratch device, whoever started them and wherever their state is.

The lock of a device is the machine's and not a state directory's: it goes by the device's number, and a loop
device's by the file behind it, so that two names, two links and two state directories come to the same lock.
Who holds a partition shares the lock of its disk with the holders of others, and nobody can take the whole disk then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bedplate.errors import DeviceInUse, RequirementMissing
from bedplate.host.block_tree import BlockTree, DeviceNode, backing_file, loop_file
from bedplate.host.files import take_lock
from bedplate.host.process import wait_until

# All image files of a state directory are one scratch device: two at once would measure each other. Those by which nothing is timed
# share it, and nobody who times anything has it meanwhile.
IMAGE_FILES = "the place of image files"

# Where everybody may make a file and nobody can take another's away: the same choice for every user.
_MACHINE_WIDE = (Path("/run/lock"), Path("/dev/shm"), Path("/tmp"))  # noqa: S108 -- opened as such places want it

_EVERYBODYS = stat.S_ISVTX | stat.S_IWOTH
_HOLDER_BYTES = 4096
_UNKNOWN_HOLDER = "another bedplate process"
_OPEN_ATTEMPTS = 10


@contextlib.contextmanager
def device_lock(
    state_directory: Path, stable_name: str, *, study: str = "", is_timed: bool = True
) -> Iterator[str | None]:
    """Hold the scratch device of that name (or IMAGE_FILES) for one visit, in this process alone.

    Yields the node of the device that is held, None for images. DeviceInUse names the pid and the study of
    the holder. The kernel drops the lock when its holder ends, however it ends.
    """
    places, node = _places(state_directory, stable_name, is_timed=is_timed)
    with _all_held(places, stable_name, study):
        yield node


@contextlib.contextmanager
def study_lock(
    state_directory: Path, stable_name: str, *, study: str, is_timed: bool = True
) -> Iterator[None]:
    """Hold the same for a whole study, whose visits are other processes; DeviceInUse as above."""
    places, _ = _places(state_directory, stable_name, prefix="study-", is_timed=is_timed)
    with _all_held(places, stable_name, study):
        yield


def wait_for_last_visit(
    state_directory: Path,
    stable_name: str,
    *,
    deadline_s: float,
    on_wait: Callable[[str], None],
    is_timed: bool = True,
) -> None:
    """Wait until no visit holds the device; DeviceInUse at the deadline.

    A visit whose executor was killed is giving everything back on its own, and must be let.
    `on_wait` is told once who it is.
    """
    places, _ = _places(state_directory, stable_name, is_timed=is_timed)
    refused: list[DeviceInUse] = []

    def is_free() -> bool:
        try:
            with _all_held(places, stable_name, ""):
                return True
        except DeviceInUse as error:
            if not refused:
                on_wait(error.holder)
            refused.append(error)
            return False

    if not wait_until(is_free, deadline_s=deadline_s):
        raise refused[-1]


@dataclass(frozen=True)
class _Place:
    """A file that is locked: `whole` is the disk that it stands for, where a partition of that is held. Such a lock is shared."""

    path: Path
    whole: str | None = None
    shared: bool = False


def _places(
    state_directory: Path, stable_name: str, *, prefix: str = "", is_timed: bool = True
) -> tuple[tuple[_Place, ...], str | None]:
    """The files that are locked, and the node of the device that they stand for."""
    tree = BlockTree()
    node = DeviceNode.find(stable_name, tree) if stable_name.startswith("/") else None
    if node is None and not stable_name.startswith("/"):
        directory = state_directory / ".locks"
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        name = hashlib.sha256(os.fsencode(stable_name)).hexdigest()[:16]
        return (_Place(directory / f"{prefix}{name}", shared=not is_timed),), None
    if node is None:
        # A file that is, or will be, an image: by its name without links.
        name = os.path.realpath(stable_name)
        key = "file-" + hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        return (_Place(_machine_wide() / f"bedplate-{prefix}{key}"),), None
    with node:
        return _places_of(node.name, node.number, tree, prefix), f"/dev/{node.name}"


def _places_of(name: str, number: int, tree: BlockTree, prefix: str) -> tuple[_Place, ...]:
    """The lock of the disk first: who cannot have a partition has touched nothing of it."""
    below = tree.below_all_loops(name)
    if below != name == tree.disk_of(name):
        name, number = below, tree.st_rdev(below)
    folder, whole = _machine_wide(), tree.disk_of(name)
    own = _Place(folder / f"bedplate-{prefix}{_key(name, number)}")
    if whole == name:
        return (own,)
    below = tree.below_all_loops(whole)
    key = _key(below, tree.st_rdev(below))
    return (_Place(folder / f"bedplate-{prefix}{key}", f"/dev/{whole}", shared=True), own)


def _key(name: str, number: int) -> str:
    """Loop devices over one file are one device, whatever their numbers are."""
    found, file = loop_file(name), backing_file(name)
    if found is not None:
        return _number(found.block_device) if found.block_device else _inode(found.device, found.inode)
    if file is not None:
        with contextlib.suppress(OSError):
            status = os.stat(file)  # noqa: PTH116 -- a name of the kernel's
            if not stat.S_ISBLK(status.st_mode):
                return _inode(status.st_dev, status.st_ino)
            return _number(status.st_rdev)
    return _number(number)


def _inode(device: int, inode: int) -> str:
    return f"inode-{device}-{inode}"


def _number(number: int) -> str:
    return f"device-{os.major(number)}-{os.minor(number)}"


def _machine_wide() -> Path:
    for place in _MACHINE_WIDE:
        with contextlib.suppress(OSError):
            status = place.stat()
            if status.st_mode & _EVERYBODYS == _EVERYBODYS and status.st_uid == 0:
                return place
    raise RequirementMissing(
        f"none of {', '.join(map(str, _MACHINE_WIDE))} is a folder of root's in which everybody may lock a file "
        "(mode 1777), so that two starts on one device would not see each other; make /run/lock one"
    )


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(_OPEN_ATTEMPTS):
        # Opened and made apart: the kernel refuses O_CREAT on another user's file in such a folder.
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags)
        with contextlib.suppress(FileExistsError):
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
            os.fchmod(file, 0o666)  # whatever the umask: another user waits by the same file
            return file
    raise DeviceInUse(f"{path} comes and goes, and cannot be locked; remove it, if it is a link")


@contextlib.contextmanager
def _all_held(device_places: tuple[_Place, ...], stable_name: str, study: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for place in device_places:
            stack.enter_context(_hold_lock(place, stable_name, study))
        yield


@contextlib.contextmanager
def _hold_lock(device_place: _Place, stable_name: str, study: str) -> Iterator[None]:
    path, shared = device_place.path, device_place.shared
    while True:
        file = _open(path)
        try:
            if not take_lock(file, shared=shared):
                raise _in_use(stable_name, device_place.whole, _holder_of(os.pread(file, _HOLDER_BYTES, 0)))
            if not _is_at(file, path):
                continue  # its holder has just let go and removed it: another file is the lock now
            try:
                if study or not shared:
                    _sign(file, path, study)
                yield
            finally:
                # While it is locked by nobody else: who has opened it meanwhile sees that it has no name any more.
                if take_lock(file) and _is_at(file, path):
                    with contextlib.suppress(OSError):
                        path.unlink()
            return
        finally:
            os.close(file)


def _sign(file: int, path: Path, study: str) -> None:
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"pid": os.getpid(), "study": study}).encode(), 0)
    except OSError as error:
        # A call on an open file names none, and a full disk is looked for by its path.
        raise OSError(error.errno, error.strerror, str(path)) from error


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except OSError:
        return False


def _in_use(stable_name: str, disk: str | None, holder: str) -> DeviceInUse:
    way_out = "wait for it, stop it, or choose another"
    if stable_name == IMAGE_FILES:
        way_out = "wait for it, or stop it: two at once would measure each other"
    what = stable_name if disk is None else f"{stable_name} is a partition of {disk}, which"
    return DeviceInUse(f"{what} is in use by {holder}; {way_out}", holder=holder)


def _holder_of(content: bytes) -> str:
    try:
        record = json.loads(content)
        # Any user may have written it: no more than a hint, and nothing that a terminal would obey.
        named = str(record["study"])
        study = f", study {named if named.isprintable() else ascii(named)}" if named else ""
        return f"bedplate process {int(record['pid'])}{study}"
    except (ValueError, KeyError, TypeError):
        return _UNKNOWN_HOLDER  # that has only just taken the lock
