"""The one guest that an executor has at a time: its boot, what it shares with the host, and its end."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bedplate.errors import EXIT_DONE, BedplateError, DeviceRefused, MachineUnfit, RequirementMissing
from bedplate.executors.qemu import own_kernel, zfs
from bedplate.executors.qemu.guest import (
    TCG,
    BootCrashed,
    Deadlines,
    Guest,
    GuestDisk,
    GuestExit,
    GuestSpec,
    SharedFolder,
    find_accelerator,
    qemu_version,
)
from bedplate.executors.qemu.kernels import (
    GuestKernel,
    Tool,
    find_busybox,
    find_kernel,
    find_modprobe,
    find_zstd,
    is_static,
    module_name,
    modules_of,
    read_module,
)
from bedplate.executors.qemu.own_kernel import lacking
from bedplate.host.apt import PackageTree
from bedplate.host.block_tree import BlockTree, DeviceNode
from bedplate.host.command import Commands, environment
from bedplate.host.facts import counter_khz
from bedplate.host.files import cache_directory, closed_folders
from bedplate.host.files import cache_directory as default_cache_directory
from bedplate.host.files import state_directory as default_state_directory
from bedplate.host.ledger import Holding, Ledger, remove_tree
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.scratch_device import image_path, refusal_reasons, write_image
from bedplate.installation import sources
from bedplate.model import codec
from bedplate.model.cell import KernelLevels
from bedplate.model.device_cache import DISK, JOURNAL_DISK, SECTORS
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Scalar
from bedplate.model.visit import ScratchDevice, VisitRequest
from bedplate.units import MIB, format_size

DATA = "bedplate-data"
JOURNAL = "bedplate-journal"

_JOURNAL_IMAGE = "bedplate-journal.img"
_MEMORY = Path("/dev/shm")  # noqa: S108 -- a file of bedplate's own

# What must stay free beside an image: on a disk for the study and its logs, in memory for nothing.
_MARGIN_BYTES = 256 * MIB

_MEMORY_MARGIN_BYTES = 16 * MIB


def disks_of(
    request: VisitRequest, *, place: Path, stack: ExitStack, locked: Mapping[str, str | None]
) -> tuple[GuestDisk, ...]:
    """The disks that this visit needs; images without a directory of their own stand in `place`.

    Devices of the host stay open until `stack` ends; `locked` are the nodes whose locks are held, by the names of the devices.
    RequirementMissing for a scratch device that is neither a device nor an image, DeviceRefused where none is there.
    """
    scratch = request.scratch_device
    data = _disk(DATA, scratch, image_path(scratch, place), stack, locked)
    if request.journal_device is None:
        return (data,)
    journal = request.journal_device
    directory = Path(journal.image_directory) if journal.image_directory else _MEMORY
    # Images of several bedplates stand in the same memory.
    image = directory / f"{os.getpid()}-{_JOURNAL_IMAGE}"
    return (data, _disk(JOURNAL, journal, image, stack, locked, in_memory=journal.is_image))


def renew(
    request: VisitRequest,
    disks: tuple[GuestDisk, ...],
    *,
    ledger: Ledger,
    commands: Commands,
    progress: Callable[[int, int], None],
    spared: Collection[int] = (),
) -> None:
    """Write the images of a visit anew; a device of the host is asked for once more and left as it is.

    `progress` gets the total of bytes and those done. `spared` is the process of a guest that has the disks already.
    DeviceRefused with every reason; RequirementMissing where there is no room.
    """
    devices = (request.scratch_device, request.journal_device)
    reasons = [
        reason
        for disk, device in zip(disks, devices, strict=False)
        if device is not None and not device.is_image
        for reason in refusal_reasons(device, commands, expected=str(disk.path), spared=spared)
    ]
    if reasons:
        raise DeviceRefused(*reasons)
    for disk, device in zip(disks, devices, strict=False):
        if device is None or not device.is_image:
            continue
        ledger.note(Holding("image", str(disk.path)))
        write_image(
            disk.path,
            disk.size_bytes,
            progress=partial(progress, disk.size_bytes),
            margin_bytes=_MEMORY_MARGIN_BYTES if disk.in_memory else _MARGIN_BYTES,
        )


def demand_same(disks: Iterable[GuestDisk]) -> None:
    """DeviceRefused where a path leads to another device than the one that was looked at."""
    reasons = [
        f"{disk.path} is another device than the one that was looked at for this visit; give the same command again"
        for disk in disks
        if not disk.is_what_it_was
    ]
    if reasons:
        raise DeviceRefused(*reasons)


def inside(guest_disk: GuestDisk) -> ScratchDevice:
    """How the visit in the guest knows a disk: all of it may go, whatever an earlier visit left."""
    return ScratchDevice(device=guest_disk.device, erase=(guest_disk.device,), erase_foreign=True)


def said_of(request: VisitRequest, disks: tuple[GuestDisk, ...]) -> dict[str, str]:
    """What the disks really are, which the guest cannot see: kinds, and physical sectors where something tells."""
    tree, found = BlockTree(), {}
    for disk, device, key in zip(
        disks, (request.scratch_device, request.journal_device), (DISK, JOURNAL_DISK), strict=False
    ):
        if device is None:
            continue
        kind = "memory" if disk.in_memory else "image file" if device.is_image else "block device"
        found[key] = f"{kind} on a virtio disk"
        if (sectors := tree.sectors_at(disk.path)) is not None:
            found[f"{key}{SECTORS}"] = str(sectors)
    return found


def _disk(
    serial: str,
    scratch: ScratchDevice,
    image: Path,
    stack: ExitStack,
    locked: Mapping[str, str | None],
    *,
    in_memory: bool = False,
) -> GuestDisk:
    if scratch.device is not None:
        tree = BlockTree()
        node = DeviceNode.find(scratch.device, tree)
        if node is None:
            raise DeviceRefused(f"{scratch.device} is not there; name a disk, a partition, or a volume")
        stack.enter_context(node)
        try:
            node.pin()
        except OSError as error:
            raise DeviceRefused(f"{scratch.device} cannot be opened: {error.strerror}") from error
        held = locked.get(scratch.device)
        if not node.is_named(tree) or (held is not None and not node.is_at(held)):
            raise DeviceRefused(
                f"{scratch.device} is another device than a moment ago; give the same command again"
            )
        # The kernel's own name: what is asked for before each visit is what the guest writes to.
        return GuestDisk(serial, Path(f"/dev/{node.name}"), tree.size_bytes(node.name), hold=node)
    if not scratch.image_bytes:
        raise RequirementMissing("a scratch device needs a device's name or an image's size")
    return GuestDisk(serial, image, scratch.image_bytes, in_memory=in_memory)


# Where a program in the guest keeps its ledger, mount point and socket: memory of the guest's own.
GUEST_STATE = "/run/guest/state"

# Where the guest has this folder.
GUEST_SHARE = "/run/guest/share"

_AGENT = Path(__file__).with_name("agent.sh")


@dataclass(frozen=True)
class GuestProgram:
    """A module of bedplate's that is called with `options`, the path of its `request` and a folder that it may write to.

    It prints events as a visit does (`visit/life.py`).
    """

    module: str
    request: object
    options: tuple[str, ...] = ()


class ResultShare:
    """The shared folder of one boot, made in `directory`, which must not be there yet."""

    def __init__(
        self, directory: Path, kernel: GuestKernel, interpreter: Path, *, modprobe: Tool | None = None
    ) -> None:
        self.directory = directory
        directory.mkdir(mode=0o755)
        shutil.copyfile(_AGENT, directory / "agent")
        # The real interpreter: a version manager's stand-in costs seconds in an emulated guest.
        _write_line(directory / "python", str(interpreter.resolve()))
        _write_line(directory / "sources", str(sources()))
        # Bound before the root is in force, when a link to an absolute path leads nowhere.
        # Empty where all is built in.
        modules = "" if kernel.modules is None else str(kernel.module_directory.resolve().parent)
        _write_line(directory / "modules", modules)

        if modprobe is not None:
            (directory / "modprobe").write_text(_modprobe_script(modprobe), encoding="utf-8")

    def shares(self) -> tuple[SharedFolder, ...]:
        """What the guest mounts: this folder, and the host's root for reading."""
        return (
            SharedFolder("share", self.directory, writable=True),
            SharedFolder("root", Path("/"), writable=False),
        )

    def lay_visit(
        self,
        number: int,
        request: VisitRequest,
        *,
        disks: Iterable[GuestDisk],
        load: Iterable[tuple[str, str]],
        environment: Mapping[str, str],
    ) -> None:
        """Lay out visit `number` for the agent. `load` are modprobe and insmod lines."""
        prefix = () if request.build is None else (request.build.prefix,)
        self.lay(
            number,
            GuestProgram("bedplate.visit.command", request, ("--executor", "qemu")),
            needed_paths=map(Path, (*prefix, *request.native_drivers.values(), *request.inputs.values())),
            disks=disks,
            load=load,
            environment=environment,
        )

    def lay(
        self,
        number: int,
        program: GuestProgram,
        *,
        needed_paths: Iterable[Path],
        disks: Iterable[GuestDisk],
        load: Iterable[tuple[str, str]],
        environment: Mapping[str, str],
    ) -> None:
        """Lay out a program as `number`. `needed_paths` are files that an account without rights must reach."""
        folder = self.directory / str(number)
        (folder / "visit").mkdir(parents=True)
        codec.write(folder / "request.json", program.request)
        inside = f"{GUEST_SHARE}/{number}"
        words = ("-m", program.module, *program.options, "--", f"{inside}/request.json", f"{inside}/visit")
        _write_lines(folder / "arguments", words)
        # A user's home is such a folder, and the guest's server runs as nobody.
        _write_lines(folder / "folders", map(str, closed_folders(*needed_paths)))
        _write_lines(folder / "load", (f"{how} {what}" for how, what in load))
        _write_lines(folder / "disks", (f"{disk.serial} {disk.size_bytes}" for disk in disks))
        _write_lines(folder / "environment", (f"{name}={value}" for name, value in environment.items()))

    def forget(self, number: int) -> None:
        """Remove what was laid out as `number`."""
        shutil.rmtree(self.directory / str(number))

    def collect(self, number: int, directory: Path) -> None:
        """Move what came of visit `number` into `directory`, with the request that the guest was given."""
        folder = self.directory / str(number)
        _merge(folder / "visit", directory)
        shutil.move(folder / "request.json", directory / "request.json")
        self.forget(number)


def guest_environment(base: Mapping[str, str], tools: GuestTools) -> dict[str, str]:
    """The environment of a program in the guest; the paths of its tools come before the system's own."""
    found = {
        "PATH": os.pathsep.join([*map(str, tools.path), base["PATH"]]),
        "PYTHONPATH": str(sources()),
        "BEDPLATE_STATE": GUEST_STATE,
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    if tools.library_path:
        found["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, tools.library_path))
    return found


def _modprobe_script(tool: Tool) -> str:
    """What the guest's kernel calls: it knows a path, and no environment.

    The host's own configuration is left out: a hardened machine forbids itself the very file systems.
    """
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in tool.environment.items())
    return f'#!/run/guest/bin/busybox sh\n{exports}exec {shlex.quote(str(tool.program))} -C /dev/null "$@"\n'


def _write_line(path: Path, line: str) -> None:
    _write_lines(path, (line,))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    lines = tuple(lines)
    broken = [line for line in lines if "\n" in line]
    if broken:
        raise RequirementMissing(f"a guest cannot be given a path with a line break in it: {broken[0]!r}")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogateescape")


def _merge(source: Path, target: Path) -> None:
    """Move everything in `source` into `target`, folder by folder where both have one."""
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry.is_dir() and not entry.is_symlink() and there.is_dir():
            _merge(entry, there)
            entry.rmdir()
        else:
            shutil.move(entry, there)


_TRAILER = "TRAILER!!!"

# GNU cpio writes whole blocks of this size; the kernel skips the zeros.
_BLOCK_BYTES = 512

_LARGEST_BYTES = 0xFFFFFFFF


@dataclass(frozen=True)
class CpioEntry:
    """One file of root's: `mode` with its type (`stat.S_IFREG | 0o755`), `name` without a leading slash.

    `data` is the content, or the target of a symbolic link; `device` is (major, minor) of a device.
    """

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str, permissions: int = 0o755) -> CpioEntry:
    """An empty folder."""
    return CpioEntry(name, stat.S_IFDIR | permissions)


def regular_file(name: str, data: bytes, permissions: int = 0o644) -> CpioEntry:
    """A file with its content."""
    return CpioEntry(name, stat.S_IFREG | permissions, data)


def character_device(name: str, major: int, minor: int, permissions: int = 0o600) -> CpioEntry:
    """A character device node."""
    return CpioEntry(name, stat.S_IFCHR | permissions, device=(major, minor))


def archive(members: Iterable[CpioEntry], *, mtime: int = 0) -> bytes:
    """The whole archive; ValueError for a name or a size that the format cannot hold.

    A folder must stand before what is in it: the kernel makes none by itself.
    """
    made = bytearray()
    seen: set[str] = set()
    for number, entry in enumerate(members):
        _check(entry, seen)
        seen.add(entry.name)
        links = 2 if stat.S_ISDIR(entry.mode) else 1
        made += _record(entry, number=number, links=links, mtime=mtime)
    made += _record(CpioEntry(_TRAILER, 0), number=0, links=1, mtime=0)
    return bytes(made + bytes(-len(made) % _BLOCK_BYTES))


def _check(member: CpioEntry, names: set[str]) -> None:
    parts = member.name.split("/")
    if member.name == _TRAILER or "\0" in member.name or not all(parts) or {".", ".."} & set(parts):
        raise ValueError(f"not a name in an archive: {member.name!r}")
    if member.name in names:
        raise ValueError(f"{member.name} is in the archive twice")
    parent = "/".join(parts[:-1])
    if parent and parent not in names:
        raise ValueError(f"{member.name} comes before its folder {parent}")
    if len(member.data) > _LARGEST_BYTES:
        raise ValueError(f"{member.name} is too large for the format: {len(member.data)} bytes")


def _record(member: CpioEntry, *, number: int, links: int, mtime: int) -> bytes:
    name = member.name.encode() + b"\0"
    fields = (number, member.mode, 0, 0, links, mtime, len(member.data), 0, 0, *member.device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return b"".join(_padded(head)) + b"".join(_padded(member.data))


def _padded(data: bytes) -> Iterator[bytes]:
    yield data
    yield bytes(-len(data) % 4)


# What stands between the image and the host's root: the PCI devices, the disks, the shares, the layer
# of memory over the root, and the port that the agent is spoken to through.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "9p", "9pnet_virtio", "overlay", "virtio_console")

INIT = Path(__file__).with_name("init.sh")

_FOLDERS = ("bin", "dev", "h", "m", "n", "proc", "run", "rw", "sys", "tmp")


def make_initramfs(
    kernel: GuestKernel,
    *,
    target: Path,
    busybox: Path | None = None,
    init: Path = INIT,
    modules: Sequence[str] = BOOT_MODULES,
    cache: Path | None = None,
) -> Path:
    """Write the initramfs of `kernel` to `target` in one step, and answer with it.

    `busybox` is a static one, by default the machine's or the one in the cache (`ensure_kernel` put it
    there). RequirementMissing where there is none, or where the kernel lacks one of `modules`.
    """
    cache = cache or cache_directory()
    busybox = busybox or find_busybox(cache)
    if busybox is None:
        raise RequirementMissing(
            "no static busybox was found, which a guest starts with; install the package busybox-static, "
            "or fetch the guest's kernel again"
        )
    if not is_static(busybox):
        raise RequirementMissing(f"{busybox} needs libraries, and a guest starts without any")
    entries = (
        *(directory(name) for name in _FOLDERS),
        character_device("dev/console", 5, 1),
        character_device("dev/null", 1, 3, 0o666),
        regular_file("bin/busybox", busybox.read_bytes(), 0o755),
        regular_file("init", init.read_bytes(), 0o755),
        *_module_files(kernel, modules, cache),
    )
    _write_whole(target, archive(entries))
    return target


def _module_files(kernel: GuestKernel, names: Sequence[str], cache: Path) -> Iterator[CpioEntry]:
    zstd = find_zstd(cache)
    commands = Commands()
    loaded = []
    for path in modules_of(kernel).load_order(names):
        data = read_module(path, commands=commands, zstd=zstd)
        loaded.append(f"{module_name(path.name)}.ko")
        yield regular_file(f"m/{loaded[-1]}", data)
    yield regular_file("m/order", "".join(f"{name}\n" for name in loaded).encode())


def _write_whole(target: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.chmod(0o644)
        temporary.rename(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


_BOOT_ATTEMPTS = 3


class GuestSlot:
    """`place` is a folder for what the guest and the host share; it is made. `interpreter` is the host's Python that programs in the guest run under.

    Kernels are looked for in the cache and never fetched. One at a time in a process, and only from a thread that lives as long as it.
    """

    def __init__(
        self,
        place: Path,
        *,
        deadlines: Deadlines | None = None,
        interpreter: Path = Path(sys.executable),
        cache_directory: Path | None = None,
        state_directory: Path | None = None,
        find: Callable[..., GuestKernel | None] = find_kernel,
    ) -> None:
        self.place = place
        self.deadlines = deadlines or Deadlines()
        self.cache = cache_directory or default_cache_directory()
        self.state = state_directory or default_state_directory()
        self.qemu = ""
        self.guest: Guest | None = None
        self._interpreter = interpreter
        self._find = find
        self._ledger: Ledger | None = None
        self._directory: Path | None = None
        self._share: ResultShare | None = None

    @property
    def ledger(self) -> Ledger:
        """What is held; there from `open` on."""
        assert self._ledger is not None  # noqa: S101 -- made by `open`
        return self._ledger

    @property
    def share(self) -> ResultShare:
        """Of the guest that runs."""
        assert self._share is not None  # noqa: S101 -- comes with the guest
        return self._share

    @property
    def _folder(self) -> Path:
        assert self._directory is not None  # noqa: S101 -- made by `open`
        return self._directory

    def open(self) -> None:
        """Make the ledger and the folder; once."""
        if self._ledger is None:
            self.qemu = qemu_version(Commands())
            self._ledger = Ledger.open(self.state, f"{os.getpid()}-guest")
        if self._directory is None:
            self.place.mkdir(parents=True, exist_ok=True)
            directory = self.place / f"bedplate-guest-{secrets.token_hex(4)}"
            self._ledger.note(Holding("log_directory", str(directory)))
            directory.mkdir()
            self._directory = directory

    def kernel(self, kernel_levels: KernelLevels) -> GuestKernel:
        """The kernel of a cell; RequirementMissing where the cache lacks it."""
        kernel = self._find(kernel_levels.release, cache_directory=self.cache)
        if kernel is not None:
            return kernel
        if kernel_levels.is_built:
            raise RequirementMissing(f"kernel {kernel_levels.release} was not built; the start says why")
        raise RequirementMissing(
            f"kernel {kernel_levels.release or 'for guests'} is not in {self.cache}; `bedplate doctor PLAN --install` fetches it"
        )

    def spec(self, kernel: GuestKernel, *, memory_bytes: int, disks: tuple[GuestDisk, ...] = ()) -> GuestSpec:
        """What a guest is made of; RequirementMissing where this machine has less memory."""
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if memory_bytes > there:
            raise RequirementMissing(
                f"a guest with memory = {format_size(memory_bytes)} does not fit this machine of "
                f"{format_size(there)}"
            )
        initramfs = self._folder / f"initramfs-{kernel.digest}"
        if not initramfs.exists():
            make_initramfs(kernel, target=initramfs)
        accelerator = find_accelerator(kernel, qemu=self.qemu, cache_directory=self.cache, ledger=self.ledger)
        return GuestSpec(
            image=kernel.image,
            initramfs=initramfs,
            accelerator=accelerator,
            memory_bytes=memory_bytes,
            cpu_count=len(os.sched_getaffinity(0)),
            disks=disks,
            counter_khz=counter_khz() if accelerator == TCG else None,
        )

    def boot(
        self,
        spec: GuestSpec,
        kernel: GuestKernel,
        logs: Path | None,
        on_event: Callable[[Mapping[str, Scalar]], None],
    ) -> Guest:
        """A guest that is ready; one whose kernel or emulator crashes on its way there is booted again.

        On a loaded host an emulated kernel now and then dies of an interrupt that comes before its
        handler stands, and QEMU was seen to die of SIGSEGV. Nothing was asked of it then, so nothing is
        measured twice or hidden: the console of a boot that failed is kept in `logs`.
        """
        for attempt in range(1, _BOOT_ATTEMPTS):
            try:
                return self._start(spec, kernel)
            except BootCrashed:
                if logs is not None:
                    self.keep_console(logs, name=f"console-boot-{attempt}.log")
                on_event({"event": "step", "step": "boot again"})
        return self._start(spec, kernel)

    def _start(self, spec: GuestSpec, kernel: GuestKernel) -> Guest:
        try:
            demand_same(spec.disks)
        except DeviceRefused as error:
            raise MachineUnfit(*error.reasons) from error
        if self._share is not None:
            remove_tree(self._share.directory)
        self._share = ResultShare(
            self._folder / f"share-{secrets.token_hex(4)}",
            kernel,
            self._interpreter,
            modprobe=find_modprobe(self.cache),
        )
        self.guest = Guest.boot(
            replace(spec, shares=self._share.shares()),
            console=self._folder / "console.log",
            ledger=self.ledger,
            boot_s=self.deadlines.boot_s,
        )
        return self.guest

    def keep_console(self, logs: Path, *, name: str = "console.log") -> None:
        """A full disk may take it, which is no reason to hide what happened."""
        with contextlib.suppress(OSError):
            shutil.copyfile(self._folder / "console.log", logs / name)

    def end(self, *, gently: bool) -> None:
        """End the guest, delete its images; safe to repeat."""
        guest, self.guest = self.guest, None
        if guest is not None:
            guest.end(gently=gently)
        if self._share is not None:
            remove_tree(self._share.directory)
            self._share = None
        if self._ledger is not None:
            for holding in self._ledger.holdings():
                if holding.kind == "image":
                    Path(holding.name).unlink(missing_ok=True)
                    self._ledger.settled(holding)

    def close(self) -> None:
        """End the guest, and give back all that is held; safe to repeat."""
        self.end(gently=True)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
        if self._ledger is not None:
            self._ledger.release(Commands())
            self._ledger.close()
            self._ledger = None


# It is a file system in user space, and loop devices go above its disks. Nothing asks for either by itself: there is
# no udev, which would make the devices by which they are asked for.
_FOR_THE_RECORDER = (("modprobe", "fuse"), ("modprobe", "loop"))


@dataclass(frozen=True)
class GuestTools:
    """`load` are modprobe and insmod lines, `path` and `library_path` come before the system's own.

    `versions` is what the record must say beyond what the visit itself can find out.
    """

    load: tuple[tuple[str, str], ...] = ()
    path: tuple[Path, ...] = ()
    library_path: tuple[Path, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def surroundings_of(
    filesystem: str,
    kernel: GuestKernel,
    *,
    trees: Sequence[PackageTree],
    cache_directory: Path,
    drivers: Collection[str] = (),
) -> GuestTools:
    """The surroundings of a visit on this type with these drivers; RequirementMissing where ZFS was not built."""
    loads = kernel.modules is not None
    if RECORDER in drivers and not loads and kernel.configuration is not None:
        reasons = tuple(lacking(kernel.configuration, own_kernel.RECORDER, with_modules=False))
        if reasons:
            raise RequirementMissing(*(f"kernel {kernel.release}: {reason}" for reason in reasons))
    found = GuestTools(
        load=_FOR_THE_RECORDER if RECORDER in drivers and loads else (),
        path=tuple(entry for tree in trees for entry in tree.path),
        library_path=tuple(entry for tree in trees for entry in tree.library_path),
    )
    if filesystem == zfs.TYPE:
        return _with_zfs(found, kernel, cache_directory)
    # By the alias that mount(2) itself would ask for; what is built in, or lacking, does no harm here.
    types = TRAITS[filesystem].kernel_types if filesystem in TRAITS and loads else ()
    return replace(found, load=(*found.load, *(("modprobe", f"fs-{name}") for name in types)))


def _with_zfs(tools: GuestTools, kernel: GuestKernel, cache_directory: Path) -> GuestTools:
    tree = zfs.find_zfs(kernel, cache_directory)
    if tree is None:
        raise RequirementMissing(
            f"ZFS for kernel {kernel.release} is not in {cache_directory}; `bedplate doctor --install --zfs` builds it"
        )
    return GuestTools(
        load=(
            *tools.load,
            *(("modprobe", name) for name in tree.kernel_modules),
            *(("insmod", str(path)) for path in tree.modules),
        ),
        path=(*tree.path, *tools.path),
        library_path=(*tree.library_path, *tools.library_path),
        versions={"zfs": tree.version, "zfs_modules": tree.digest},
    )


_QUOTED = 2000


@dataclass(frozen=True)
class Errand:
    """A program, and what its guest must have: the kernel, tools of the file system, `drivers` by name, and `memory_bytes`.

    `needed` are files of the host that an account without rights must reach. The programs and libraries of `trees` are found before the
    system's own. It is given up after `limit_s`.
    """

    program: GuestProgram
    kernel: GuestKernel
    filesystem: str
    memory_bytes: int
    limit_s: float
    drivers: Mapping[str, Path]
    needed: Sequence[Path] = ()
    trees: Sequence[PackageTree] = ()


class ErrandRunner:
    """Errands with the same kernel and memory share a guest."""

    def __init__(self, slot: GuestSlot) -> None:
        self._slot = slot
        self._number = 0

    def run(self, errand: Errand, on_event: Callable[[Mapping[str, Scalar]], None]) -> None:
        """Until the program has ended well; BedplateError with what it said where it did not, GuestFailed where its guest died or hung."""
        slot = self._slot
        slot.open()
        tools = surroundings_of(
            errand.filesystem,
            errand.kernel,
            trees=errand.trees,
            cache_directory=slot.cache,
            drivers=tuple(errand.drivers),
        )
        spec = slot.spec(errand.kernel, memory_bytes=errand.memory_bytes)
        if slot.guest is not None and (slot.guest.spec != spec or not slot.guest.is_alive()):
            slot.end(gently=True)
        guest = slot.guest or slot.boot(spec, errand.kernel, None, on_event)
        self._number += 1
        slot.share.lay(
            self._number,
            errand.program,
            needed_paths=(*errand.needed, *errand.drivers.values()),
            disks=(),
            load=tools.load,
            environment=guest_environment(environment(), tools),
        )
        ended = guest.live(
            self._number, limit_s=errand.limit_s, silence_s=slot.deadlines.silence_s, on_event=on_event
        )
        slot.share.forget(self._number)
        if ended.broken:
            slot.end(gently=True)
        _require_done(ended)

    def close(self) -> None:
        """End the guest; safe to repeat."""
        self._slot.close()


def _require_done(guest_exit: GuestExit) -> None:
    if guest_exit.status == EXIT_DONE:
        return
    said = guest_exit.said[-_QUOTED:].splitlines() or ["(it printed nothing)"]
    raise BedplateError(f"in the guest it ended with status {guest_exit.status}: {said[0]}", *said[1:])
