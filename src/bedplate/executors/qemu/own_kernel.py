"""Kernels of the user's own: what an image says of itself, what a guest needs of it, and how one is built from a tree."""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import itertools
import lzma
import mmap
import os
import re
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed, VerifyFailed
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.files import text_of
from bedplate.host.git import give
from bedplate.host.native_driver import BuildProgress, count_objects, watched
from bedplate.host.requirement import Need, Requirement, find_tool, look, missing
from bedplate.host.shut_in import DATA, PROGRAMS, SAID_BYTES_MOST, Confinement, to_read_alone
from bedplate.model.filesystem import TRAITS
from bedplate.model.limits import KERNEL_LIMIT, FileLimit
from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.executors.qemu.kernels import Tool

GZIP, _BZIP2, _XZ, _LZMA = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x5d\0\0"

_ZSTD, _LZ4_OF_KERNELS, _LZ4, _ELF = b"\x28\xb5\x2f\xfd", b"\x02\x21\x4c\x18", b"\x04\x22\x4d\x18", b"\x7fELF"
_PIECE_BYTES = MIB

# A kernel's own way of packing it asks for 128 MiB at most.
_DICTIONARY_BYTES_MOST = 192 * MIB

_LIMIT_S = 300.0


class NotUnpacked(BedplateError):
    """It is packed in a way that is not known, damaged, or larger than anything of its kind."""

    code = "not-unpacked"


def unpack(packed: bytes, limit: FileLimit, commands: Commands, zstd: Tool | None) -> Iterator[bytes]:
    """What `packed` holds, in pieces; NotUnpacked, where `limit` is met as well. `zstd` is the program where it is not in the search path."""
    left = limit.most_bytes
    try:
        for piece in _pieces(packed, commands, zstd):
            left -= len(piece)
            if left < 0:
                break
            yield piece
    except NotUnpacked:
        raise
    except (OSError, EOFError, zlib.error, lzma.LZMAError, BedplateError) as error:
        raise NotUnpacked(str(error)) from error
    if left < 0:
        raise NotUnpacked(
            f"unpacked it has more than {limit.most_bytes:,} bytes; real ones have {limit.real}"
        )


def _pieces(packed: bytes, commands: Commands, zstd: Tool | None) -> Iterator[bytes]:
    if packed.startswith(_ELF):
        yield packed
    elif packed.startswith(GZIP):
        yield from _by_python(zlib.decompressobj(31), packed)
    elif packed.startswith((_XZ, _LZMA)):
        yield from _by_python(lzma.LZMADecompressor(memlimit=_DICTIONARY_BYTES_MOST), packed)
    elif packed.startswith(_BZIP2):
        yield from _by_python(bz2.BZ2Decompressor(), packed)
    elif packed.startswith(_ZSTD):
        yield from _by_program("zstd", packed, commands, zstd)
    elif packed.startswith((_LZ4, _LZ4_OF_KERNELS)):
        yield from _by_program("lz4", packed, commands, None)
    else:
        raise NotUnpacked(f"it is packed in a way that is not known (it begins with {packed[:4].hex()})")


def _by_python(
    decompressor: zlib._Decompress | lzma.LZMADecompressor | bz2.BZ2Decompressor, packed: bytes
) -> Iterator[bytes]:
    piece = decompressor.decompress(packed, _PIECE_BYTES)
    while piece:
        yield piece
        # zlib hands back what it has not read; the other two keep it.
        rest = getattr(decompressor, "unconsumed_tail", b"")
        piece = b"" if decompressor.eof else decompressor.decompress(rest, _PIECE_BYTES)
    if not decompressor.eof:
        raise EOFError("it is cut off")


def _by_program(name: str, packed: bytes, commands: Commands, tool: Tool | None) -> Iterator[bytes]:
    program = name if tool is None else str(tool.program)
    folders = () if tool is None or tool.root is None else (tool.root,)
    with tempfile.TemporaryFile() as source:
        source.write(packed)
        source.seek(0)
        yield from commands.stream(
            [program, "-q", "-d", "-c"],
            source,
            timeout_s=_LIMIT_S,
            extra_environment=None if tool is None else tool.environment,
            confinement=to_read_alone(*folders, is_own=False),
        )


BUILT_IN, MODULE, NOT_SET = "y", "m", "n"

_LINE = re.compile(r"^CONFIG_(\w+)=(.*)$|^# CONFIG_(\w+) is not set$", re.MULTILINE)


@dataclass(frozen=True)
class Configuration:
    """The text of a `.config`, wherever it came from; `place` says where."""

    text: str
    place: str

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Every option that the text names, without CONFIG_; `n` for one that is not set."""
        return {match[1] or match[3]: match[2] or NOT_SET for match in _LINE.finditer(self.text)}

    def value(self, option: str) -> str:
        """`y`, `m`, a text or a number; `n` also where the option is not named, as its own needs are not met then."""
        return self.values.get(option, NOT_SET)

    def has(self, option: str, *, as_module: bool) -> bool:
        """Whether the kernel has it: built in, or as a module where one can be loaded."""
        return self.value(option) == BUILT_IN or (as_module and self.value(option) == MODULE)


def read_configuration(file: Path) -> Configuration | None:
    """The one in a file; None where it cannot be read, or is empty."""
    text = text_of(file)
    return Configuration(text, str(file)) if text else None


# A kernel that is booted with `quiet` says nothing of what goes well, so that silence may have other reasons.
_KERNEL_SPOKE = re.compile(r"\[ *\d+\.\d+\]|Linux version|bedplate: |Kernel panic")

_SILENT = (
    "nothing came on its serial port: a kernel without CONFIG_PRINTK, CONFIG_TTY or CONFIG_SERIAL_8250_CONSOLE, or for other processors, "
    "says nothing"
)

_BY_WORDS = (
    (
        re.compile(r"VFS: Unable to mount root fs|VFS: Cannot open root device"),
        "the kernel took no first root: CONFIG_BLK_DEV_INITRD is not set",
    ),
    (
        re.compile(r"Failed to execute /init \(error -8\)|Requested init /init failed \(error -8\)"),
        "the kernel cannot run /init: CONFIG_BINFMT_SCRIPT, CONFIG_BINFMT_ELF or CONFIG_64BIT is not set",
    ),
    (
        re.compile(r"Failed to execute /init|No working init found"),
        "the kernel cannot run /init: CONFIG_BINFMT_SCRIPT or CONFIG_BINFMT_ELF is not set",
    ),
)


def lacking_by_console(text: str) -> tuple[str, ...]:
    """What a guest that was never ready tells of an option; at most one sentence, none where it tells nothing."""
    for words, sentence in _BY_WORDS:
        if words.search(text):
            return (sentence,)
    return () if _KERNEL_SPOKE.search(text) else (_SILENT,)


_ELF_HEAD = b"\x7fELF"
_ELF64_LITTLE = b"\x7fELF\x02\x01"

# The setup header: its magic, the version of the protocol, where the release is named, how long the setup is, where the kernel lies.
_MAGIC_AT, _MAGIC = 0x202, b"HdrS"

_PROTOCOL_AT, _PROTOCOL_WITH_PAYLOAD = 0x206, 0x0208
_VERSION_POINTER_AT, _VERSION_BASE = 0x20E, 0x200
_SETUP_SECTORS_AT, _PAYLOAD_AT = 0x1F1, 0x248
_SECTOR = 512
_USUAL_SETUP_SECTORS = 4
_HEADER_BYTES = 0x260

# init/version.c: `Linux version 6.12.1 (who@where) …`
_BANNER = re.compile(rb"Linux version (\d[!-~]*) \(")

_BEGIN, _END = b"IKCFG_ST", b"IKCFG_ED"

# A kernel with everything in it takes some 100 MB.
_PACKED_BYTES_MOST = 256 * MIB

# One with everything has 100 KB, 300 KB when it is unpacked. The first of the two words stands in the code once or twice.
_CONFIGURATION_BYTES_MOST, _BEGINNINGS_MOST = MIB, 64

_PT_NOTE = 4

# include/xen/interface/elfnote.h: where a 32-bit entry is, by which QEMU begins a vmlinux (CONFIG_PVH).
_XEN, _PHYS32_ENTRY = b"Xen\0", 18


class ImageUnread(BedplateError):
    """The image is of a form that is not known, or damaged; its configuration cannot be looked at."""

    code = "kernel-image-unread"


def is_vmlinux(image: Path) -> bool:
    """Whether it is an ELF file, as the build's `vmlinux` is."""
    with image.open("rb") as file:
        return file.read(len(_ELF_HEAD)) == _ELF_HEAD


def release_in_image(image: Path) -> str | None:
    """The release that an image says it is; None for an image of another kind."""
    if is_vmlinux(image):
        return _release_in_vmlinux(image)
    with image.open("rb") as file:
        head = file.read(_VERSION_POINTER_AT + 2)
        if head[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or len(head) < _VERSION_POINTER_AT + 2:
            return None
        (pointer,) = struct.unpack_from("<H", head, _VERSION_POINTER_AT)
        file.seek(_VERSION_BASE + pointer)
        words = file.read(256).partition(b"\0")[0].split()
    return words[0].decode("ascii", "replace") if words else None


def embedded_configuration(image: Path, *, commands: Commands, zstd: Tool | None = None) -> str | None:
    """The text of the configuration in an image; None where it holds none.

    ImageUnread where the image cannot be looked into: another form, damaged, packed by a program that is not here. `zstd` is that program
    where it is not in the search path.
    """
    status = image.stat()
    key = (str(image), status.st_size, status.st_mtime_ns)
    return _configuration(key, _kernel_in(image, commands, zstd))


def has_pvh_entry(image: Path) -> bool:
    """Whether QEMU can begin a `vmlinux` itself: it has the note that CONFIG_PVH makes."""
    with image.open("rb") as file:
        head = file.read(64)
        if not head.startswith(_ELF64_LITTLE) or len(head) < 64:
            return False
        (table_at,) = struct.unpack_from("<Q", head, 32)
        entry_size, entries = struct.unpack_from("<HH", head, 54)
        for number in range(entries):
            file.seek(table_at + number * entry_size)
            entry = file.read(56)
            if len(entry) < 56 or struct.unpack_from("<I", entry)[0] != _PT_NOTE:
                continue
            (offset,) = struct.unpack_from("<Q", entry, 8)
            (size,) = struct.unpack_from("<Q", entry, 32)
            file.seek(offset)
            if _notes_have_entry(file.read(min(size, MIB))):
                return True
    return False


def _notes_have_entry(notes: bytes) -> bool:
    at = 0
    while at + 12 <= len(notes):
        name_size, content_size, kind = struct.unpack_from("<III", notes, at)
        name = notes[at + 12 : at + 12 + name_size]
        if name == _XEN and kind == _PHYS32_ENTRY:
            return True
        at += 12 + (name_size + 3) // 4 * 4 + (content_size + 3) // 4 * 4
    return False


def _release_in_vmlinux(image: Path) -> str | None:
    if image.stat().st_size == 0:
        return None
    with image.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = _BANNER.search(content, 0, KERNEL_LIMIT.most_bytes)
        return found[1].decode("ascii") if found else None


# An image is unpacked in half a second to two, and asked for several times in a start.
_KNOWN: dict[tuple[str, int, int], str | None] = {}


def _configuration(identity: tuple[str, int, int], pieces: Iterator[bytes]) -> str | None:
    if identity not in _KNOWN:
        _KNOWN[identity] = _configuration_in(pieces)
    return _KNOWN[identity]


def _configuration_in(pieces: Iterator[bytes]) -> str | None:
    """The words stand in the code that looks for them as well: whatever is not gzip between two of them is passed over."""
    kept, at, tried = b"", 0, 0
    for piece in pieces:
        kept, at = kept[at:] + piece, 0
        while (begin := kept.find(_BEGIN, at)) >= 0:
            end = kept.find(_END, begin)
            if end < 0 and len(kept) - begin < _CONFIGURATION_BYTES_MOST:
                break
            at = begin + len(_BEGIN)
            tried += 1
            if tried > _BEGINNINGS_MOST:
                return None
            if end < 0:
                continue
            with contextlib.suppress(zlib.error):
                text = zlib.decompressobj(31).decompress(kept[at:end], _CONFIGURATION_BYTES_MOST)
                return text.decode("utf-8", "replace")
        # A word may be in two pieces.
        at = max(at, len(kept) - len(_BEGIN)) if begin < 0 else begin
    return None


def _kernel_in(image: Path, commands: Commands, zstd: Tool | None) -> Iterator[bytes]:
    """The kernel itself, unpacked, as far as the caller takes it."""
    try:
        with image.open("rb") as file:
            header = file.read(_HEADER_BYTES)
            if header.startswith(_ELF_HEAD):
                # What the configuration is in stands before all that debuggers need.
                file.seek(0)
                yield from itertools.islice(iter(lambda: file.read(MIB), b""), KERNEL_LIMIT.most_bytes // MIB)
                return
            packed = _payload(image, file, header)
        # Behind all forms but gzip stands the length of the kernel, four bytes that are none of the packer's (scripts/Makefile.lib).
        packed = packed if packed.startswith(GZIP) else packed[:-4]
        yield from unpack(packed, KERNEL_LIMIT, commands, zstd)
    except (OSError, NotUnpacked) as error:
        raise ImageUnread(f"{image} cannot be unpacked: {error}") from error


def _payload(image: Path, stream: IO[bytes], header: bytes) -> bytes:
    """The packed kernel of a bzImage."""
    if header[_MAGIC_AT : _MAGIC_AT + 4] != _MAGIC or len(header) < _HEADER_BYTES:
        raise ImageUnread(f"{image} is neither a bzImage nor a vmlinux")
    (protocol,) = struct.unpack_from("<H", header, _PROTOCOL_AT)
    offset, length = struct.unpack_from("<II", header, _PAYLOAD_AT)
    if length > _PACKED_BYTES_MOST:
        raise ImageUnread(
            f"{image} says that its kernel has {length:,} packed bytes; at most {_PACKED_BYTES_MOST:,} are read"
        )
    stream.seek(((header[_SETUP_SECTORS_AT] or _USUAL_SETUP_SECTORS) + 1) * _SECTOR + offset)
    packed = stream.read(length)
    if protocol < _PROTOCOL_WITH_PAYLOAD or not length or len(packed) < length:
        raise ImageUnread(f"{image} does not say where its kernel lies, or is cut off")
    return packed


@dataclass(frozen=True)
class NeededOption:
    """An option, without CONFIG_, and what it is for. `alternatives` serve as well. A module serves where `as_module`."""

    name: str
    purpose: str
    as_module: bool = False
    alternatives: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """`CONFIG_EXT2_FS or CONFIG_EXT4_USE_FOR_EXT2`."""
        return " or ".join(f"CONFIG_{name}" for name in (self.name, *self.alternatives))


_RUNS = "runs the host's programs"
_CONSOLE = "the guest's console"
_DISKS = "the guest's disks"
_SHARES = "the folders of the host"
_SERVERS = "servers and their clients"

# What a visit starts is shut in by these (`host/shut_in/`). A program that is kept from less would be measured otherwise.
SHUT_IN = (
    NeededOption("NAMESPACES", "what programs of others are kept from: all that follows"),
    NeededOption("PID_NS", "what programs of others are kept from: other processes"),
    NeededOption("NET_NS", "what programs of others are kept from: the network"),
    NeededOption("IPC_NS", "what programs of others are kept from: shared memory of other programs"),
    # SECCOMP_FILTER follows from this one and NET, and nobody sets it.
    NeededOption("SECCOMP", "what programs of others are kept from: system calls"),
)

EVERY_GUEST = (
    NeededOption("64BIT", _RUNS),
    NeededOption("PCI", "the devices of QEMU's machine"),
    NeededOption("ACPI", "the processors and interrupts of QEMU's machine"),
    NeededOption("PRINTK", _CONSOLE),
    NeededOption("TTY", _CONSOLE),
    NeededOption("SERIAL_8250_CONSOLE", _CONSOLE),
    NeededOption("BLK_DEV_INITRD", "the first root of the guest"),
    NeededOption("BINFMT_ELF", _RUNS),
    NeededOption("BINFMT_SCRIPT", "the first program of the guest, a script"),
    NeededOption("DEVTMPFS", "the files of devices"),
    NeededOption("PROC_FS", "what the kernel says of itself"),
    NeededOption("PROC_SYSCTL", "what the kernel says of itself"),
    NeededOption("SYSFS", "what the kernel says of its devices"),
    NeededOption("SHMEM", "memory of the guest's own, over the host's root"),
    NeededOption("TMPFS", "memory of the guest's own, over the host's root"),
    NeededOption("OVERLAY_FS", "memory of the guest's own, over the host's root", as_module=True),
    NeededOption("BLOCK", _DISKS),
    NeededOption("BLK_DEV", _DISKS),
    NeededOption("VIRTIO_PCI", "disks, shared folders and the agent's port", as_module=True),
    NeededOption("VIRTIO_BLK", _DISKS, as_module=True),
    NeededOption("VIRTIO_CONSOLE", "the port of the agent", as_module=True),
    NeededOption("NET", _SHARES),
    NeededOption("NET_9P", _SHARES, as_module=True),
    NeededOption("NET_9P_VIRTIO", _SHARES, as_module=True),
    NeededOption("9P_FS", _SHARES, as_module=True),
    NeededOption("MULTIUSER", "a server's own account"),
    NeededOption("FILE_LOCKING", _SERVERS),
    NeededOption("UNIX", _SERVERS),
    NeededOption("INET", _SERVERS),
    NeededOption("SYSVIPC", _SERVERS),
    NeededOption("FUTEX", _SERVERS),
    NeededOption("EPOLL", _SERVERS),
    NeededOption("EVENTFD", _SERVERS),
    NeededOption("SIGNALFD", _SERVERS),
    NeededOption("TIMERFD", _SERVERS),
    NeededOption("POSIX_TIMERS", _SERVERS),
    NeededOption("ADVISE_SYSCALLS", "forgetting what is in the page cache"),
    NeededOption("CGROUPS", "the CPU time of a visit"),
    *SHUT_IN,
)

# Power cuts and failing disks: the recorder is a file system in user space, and loop devices go above its disk.
RECORDER = (
    NeededOption("FUSE_FS", "the recorder of power cuts", as_module=True),
    NeededOption("BLK_DEV_LOOP", "the recorder of power cuts", as_module=True),
)

# By the type in a plan.
FILESYSTEMS: Mapping[str, NeededOption] = {
    "ext2": NeededOption("EXT2_FS", "ext2", as_module=True, alternatives=("EXT4_USE_FOR_EXT2",)),
    "ext3": NeededOption("EXT4_FS", "ext3", as_module=True),
    "ext4": NeededOption("EXT4_FS", "ext4", as_module=True),
    "xfs": NeededOption("XFS_FS", "xfs", as_module=True),
    "btrfs": NeededOption("BTRFS_FS", "btrfs", as_module=True),
    "f2fs": NeededOption("F2FS_FS", "f2fs", as_module=True),
    "jfs": NeededOption("JFS_FS", "jfs", as_module=True),
    "nilfs2": NeededOption("NILFS2_FS", "nilfs2", as_module=True),
    "reiserfs": NeededOption("REISERFS_FS", "reiserfs", as_module=True),
    "bcachefs": NeededOption("BCACHEFS_FS", "bcachefs", as_module=True),
    "ntfs3": NeededOption("NTFS3_FS", "ntfs3", as_module=True),
    "ntfs-3g": NeededOption("FUSE_FS", "ntfs-3g", as_module=True),
}

SCHEDULERS: Mapping[str, NeededOption] = {
    "mq-deadline": NeededOption("MQ_IOSCHED_DEADLINE", "mq-deadline", as_module=True),
    "kyber": NeededOption("MQ_IOSCHED_KYBER", "kyber", as_module=True),
    "bfq": NeededOption("IOSCHED_BFQ", "bfq", as_module=True),
}

# A guest of `vmlinux` is begun by another way.
VMLINUX = (NeededOption("PVH", "QEMU begins a vmlinux by it; a bzImage needs none"),)


def has(configuration: Configuration, option: NeededOption, *, with_modules: bool) -> bool:
    """Whether the kernel has the option, or one that serves as well."""
    as_module = option.as_module and with_modules
    return any(configuration.has(name, as_module=as_module) for name in (option.name, *option.alternatives))


def lacking(
    configuration: Configuration, needed_options: Iterable[NeededOption], *, with_modules: bool
) -> Iterator[str]:
    """A sentence for each option that a kernel lacks: what was found, what it is for."""
    for option in needed_options:
        if has(configuration, option, with_modules=with_modules):
            continue
        found = configuration.value(option.name)
        if found == MODULE:
            why = (
                "a module (=m), and must be built in"
                if with_modules
                else "a module (=m), and no modules are beside the image"
            )
        else:
            why = "not set" if found == NOT_SET else found
        yield f"{option.words} is {why}: {option.purpose}"


_ALWAYS = ("9p", "overlay", "proc", "sysfs", "tmpfs")

# By type: what else its driver answers to.
_ANSWERS_TO = {"ext4": ("ext3",)}


@dataclass(frozen=True)
class AllBuiltIn:
    """The same questions as to a `ModuleTree`; there is nothing to load. `configuration` is None where it is not known."""

    configuration: Configuration | None

    def filesystems(self) -> tuple[str, ...]:
        """Types that are built in; all that a plan may name where nothing is known, as the guest tells then."""
        if self.configuration is None:
            known = {name for traits in TRAITS.values() for name in traits.kernel_types} - {"zfs"}
            return tuple(sorted(known.union(_ALWAYS)))
        found = {
            kind
            for kind, option in FILESYSTEMS.items()
            if kind in TRAITS and kind != "ntfs-3g" and has(self.configuration, option, with_modules=False)
        }
        if has(self.configuration, FILESYSTEMS["ntfs-3g"], with_modules=False):
            found |= {"fuse", "fuseblk"}
        for kind, names in _ANSWERS_TO.items():
            found.update(names if kind in found else ())
        return tuple(sorted(found.union(_ALWAYS)))

    def schedulers(self) -> tuple[str, ...]:
        """Schedulers of I/O that are built in, `none` apart; all where nothing is known."""
        if self.configuration is None:
            return tuple(SCHEDULERS)
        return tuple(
            name for name, option in SCHEDULERS.items() if has(self.configuration, option, with_modules=False)
        )

    def load_order(self, names: Iterable[str]) -> tuple[Path, ...]:  # noqa: ARG002 -- what is lacking was refused before
        """Nothing."""
        return ()


GUEST = Path(__file__).with_name("guest.config")

_MUST = frozenset(option.name for option in (*EVERY_GUEST, *RECORDER))


@dataclass(frozen=True)
class WantedConfiguration:
    """`own` is the text of the user's fragment, None for the shipped configuration alone."""

    own: str | None = None

    @property
    def text(self) -> str:
        """All of it, for KCONFIG_ALLCONFIG: the last word on an option counts."""
        return "\n".join((GUEST.read_text(encoding="utf-8"), *(() if self.own is None else (self.own, ""))))

    @property
    def digest(self) -> str:
        """SHA-256, as hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def losses(self, configuration: Configuration) -> Iterator[str]:
        """A sentence for each option that had to come out as it was asked for, and did not.

        That is what every guest needs, and every line of the user's own. The rest of the shipped configuration is what a kernel may not know.
        """
        own = Configuration("" if self.own is None else self.own, "own").values
        shipped = {name: value for name, value in _shipped().items() if name in _MUST}
        for name, value in {**shipped, **own}.items():
            if configuration.value(name) != value:
                wanted = "is not set" if value == NOT_SET else f"={value}"
                is_now = (
                    "not set" if configuration.value(name) == NOT_SET else f"={configuration.value(name)}"
                )
                yield (
                    f"CONFIG_{name}{' ' if value == NOT_SET else ''}{wanted} did not survive (it is {is_now}): this kernel does not know it, or lacks "
                    "what it depends on"
                )

    def left_out(self, configuration: Configuration) -> tuple[str, ...]:
        """Options of the shipped configuration that this kernel does not take, beside those of `lost`."""
        own = Configuration("" if self.own is None else self.own, "own").values
        return tuple(
            name
            for name, value in _shipped().items()
            if name not in _MUST and name not in own and configuration.value(name) != value
        )


def _shipped() -> dict[str, str]:
    return dict(Configuration(GUEST.read_text(encoding="utf-8"), str(GUEST)).values)


RECIPE_VERSION = 1
COMPILER = "gcc"

_CACHING_COMPILER = "ccache"
_OBJECTS, _FRAGMENT, _COMPILER_CACHE = "objects", "fragment", "ccache"
_IMAGE = "arch/x86/boot/bzImage"
_CONFIGURE_TIMEOUT_S = 1800.0

# On two busy cores the first build takes an hour.
_COMPILE_TIMEOUT_S = 6 * 3600.0

_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True)
class KernelWork:
    """One build to be made: of `source`, in the folder `work`, which former builds of the same tree and configuration were made in too.

    `label` stands behind the version in the kernel's release, `built_at` is the time that the kernel says it was built at. What is `confined` is
    shut in, which needs root.
    """

    source: Path
    work: Path
    wanted: WantedConfiguration
    label: str
    built_at: str
    confined: bool
    commands: Commands
    progress: Callable[[BuildProgress], None]

    @property
    def objects(self) -> Path:
        """Where the objects, the configuration and the image are."""
        return self.work / _OBJECTS

    @property
    def image(self) -> Path:
        """The finished image; VerifyFailed where it is none of the build's own."""
        return self.product(_IMAGE)

    def product(self, name: str) -> Path:
        """A file that the build is to have written. VerifyFailed where there is another: root reads it, and makefiles are anybody's."""
        path = self.objects / name
        if not path.resolve().is_relative_to(self.objects.resolve()) or path.is_symlink():
            raise VerifyFailed(f"{path} leads out of the folder that the build may write to")
        if path.exists() and not path.is_file():
            raise VerifyFailed(f"{path} is no file, and the build was to write one")
        return path

    @property
    def configuration(self) -> Configuration:
        """As the kernel's own tools wrote it; VerifyFailed if they did not."""
        found = read_configuration(self.product(".config"))
        if found is None:
            raise VerifyFailed(f"{self.objects / '.config'} was not written")
        return found


def build_kernel(work: KernelWork) -> None:
    """Configure and compile into `work.objects`; CommandFailed with a tool's whole output, VerifyFailed with every option that was lost."""
    work.objects.mkdir(parents=True, exist_ok=True)
    _take_away_unfinished(work)
    _hand_over(work)
    try:
        _configure(work)
        _compile(work)
    except CommandFailed as error:
        if error.status is not None:
            # By itself: make(1) took away what it had half made.
            _marker(work).unlink()
        raise
    _verify(work)
    _marker(work).unlink()


def _marker(work: KernelWork) -> Path:
    return work.work / "under-way"


def _take_away_unfinished(work: KernelWork) -> None:
    """What a build wrote that was killed: a compiler may have stopped in the midst of an object, and make(1) goes by its time."""
    marker = _marker(work)
    if marker.exists():
        began_ns = marker.stat().st_mtime_ns
        for folder, _, names in os.walk(work.objects):
            for name in names:
                path = Path(folder, name)
                if path.lstat().st_mtime_ns >= began_ns:
                    path.unlink()
    marker.unlink(missing_ok=True)
    marker.touch()


def _hand_over(work: KernelWork) -> None:
    """Give the build folder to the account that builds; the source stays ours."""
    (work.work / _FRAGMENT).write_text(work.wanted.text, encoding="utf-8")
    if not work.confined:
        return
    account = server_account()
    if work.objects.stat().st_uid != account.uid:
        give(work.objects, account)


def _configure(work: KernelWork) -> None:
    work.progress(BuildProgress("configure"))
    _run_make(
        work, f"KCONFIG_ALLCONFIG={_inside(work, _FRAGMENT)}", "allnoconfig", timeout_s=_CONFIGURE_TIMEOUT_S
    )
    lost = tuple(work.wanted.losses(work.configuration))
    if lost:
        raise VerifyFailed(*lost)


def _compile(work: KernelWork) -> None:
    # Of a former commit: make(1) knows which of them still stand, and those that it writes anew count.
    again = work.image.exists()
    word = "compile what changed" if again else "compile"
    since_ns = _marker(work).stat().st_mtime_ns if again else None

    def count() -> int:
        return count_objects(work.objects, since_ns=since_ns)

    def report(number: int) -> None:
        work.progress(BuildProgress(word, number, None))

    report(count())
    with watched(count, report):
        _run_make(work, "bzImage", timeout_s=_COMPILE_TIMEOUT_S)


def _verify(work: KernelWork) -> None:
    """The image is of this build: it holds this configuration, and is of the release that the makefiles say."""
    said = work.product("include/config/kernel.release").read_text(encoding="utf-8").strip()
    found = release_in_image(work.image)
    reasons = [] if found == said else [f"the image says that it is {found}, the build that it is {said}"]
    embedded = embedded_configuration(work.image, commands=work.commands)
    if embedded is not None and embedded.strip() != work.configuration.text.strip():
        reasons.append("the image holds another configuration than the one that was asked for")
    if reasons:
        raise VerifyFailed(*reasons)


def _inside(work: KernelWork, name: str) -> str:
    """A path below the build folder as the build sees it."""
    return f"{DATA}/{name}" if work.confined else str(work.work / name)


def _run_make(work: KernelWork, *words: str, timeout_s: float) -> None:
    """make(1) with nothing of the user's environment: CFLAGS, ARCH or MAKEFLAGS would become part of the kernel."""
    source = PROGRAMS if work.confined else str(work.source)
    make, env = find_tool("make"), find_tool("env")
    compiler = COMPILER
    variables: tuple[str, ...] = ("LC_ALL=C", "HOME=/nonexistent")
    if find_tool(_CACHING_COMPILER) is not None:
        compiler = f"{_CACHING_COMPILER} {COMPILER}"
        variables += (f"CCACHE_DIR={_inside(work, f'{_OBJECTS}/.{_COMPILER_CACHE}')}",)
    argv = (
        *(str(env), "--ignore-environment", *variables, f"PATH={_path()}"),
        *(str(make), "--no-print-directory", "-s", "-C", source, f"O={_inside(work, _OBJECTS)}"),
        *("-j", str(len(os.sched_getaffinity(0))), f"CC={compiler}", f"LOCALVERSION={work.label}"),
        *(
            f"KBUILD_BUILD_TIMESTAMP={work.built_at}",
            "KBUILD_BUILD_USER=bedplate",
            "KBUILD_BUILD_HOST=bedplate",
        ),
        *words,
    )
    confined = None
    if work.confined:
        confined = Confinement(argv, work.work, work.source, server_account(), sees_system_alone=True)
    work.commands.run(argv, timeout_s=timeout_s, confinement=confined, most_bytes=SAID_BYTES_MOST)


def _path() -> str:
    """The folders of the programs that a build uses, and the system's own."""
    own = [str(found.parent) for name in (COMPILER, _CACHING_COMPILER) if (found := find_tool(name))]
    return os.pathsep.join(dict.fromkeys((*own, *_SYSTEM_FOLDERS)))


def copy_result(work: KernelWork, folder: Path) -> None:
    """The image and its configuration, for whoever keeps them."""
    shutil.copyfile(work.image, folder / "bzImage")
    shutil.copyfile(work.product(".config"), folder / "config")


_WHAT_FOR = "builds a guest's kernel"

_TOOLS = (
    Need("gcc", "gcc", _WHAT_FOR),
    Need("make", "make", _WHAT_FOR),
    Need("ld", "binutils", _WHAT_FOR),
    Need("flex", "flex", "generates the scanner of the kernel's configuration"),
    Need("bison", "bison", "generates the parser of the kernel's configuration"),
    Need("bc", "bc", "generates the kernel's time constants"),
    Need("perl", "perl", "generates parts of the kernel"),
    Need("gzip", "gzip", "packs the kernel"),
    Need("git", "git", "reads the kernel's tree"),
)

_C_HEADER = Path("/usr/include/stdio.h")
_ELF_HEADER = Path("/usr/include/libelf.h")


def missing_requirements() -> tuple[Requirement, ...]:
    """All that a build needs and that is not here; empty when one can begin."""
    return missing(
        (
            *look(_TOOLS),
            Requirement("C library headers", "libc6-dev", _WHAT_FOR, found=_C_HEADER.is_file()),
            Requirement(
                "libelf with its headers",
                "libelf-dev",
                "objtool, which checks each object of a kernel, reads ELF files with it",
                found=_ELF_HEADER.is_file(),
            ),
        )
    )
