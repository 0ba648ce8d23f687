"""Facts of the machine, read without root and without starting a program."""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import mmap
import os
import platform
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event

from bedplate.errors import BedplateError
from bedplate.host.cgroups import read_hierarchy
from bedplate.host.command import Commands
from bedplate.host.files import text_of
from bedplate.host.process import boot_id
from bedplate.host.requirement import find_tool, read_os_release
from bedplate.model.machine import Machine
from bedplate.model.plan import tools_of_workloads

# What decides figures and is a setting of the machine, not of a plan.
_TUNABLES = {
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "turbo_off": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "boost": "/sys/devices/system/cpu/cpufreq/boost",
    "smt": "/sys/devices/system/cpu/smt/control",
    "transparent_hugepage": "/sys/kernel/mm/transparent_hugepage/enabled",
    "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "vm.dirty_ratio": "/proc/sys/vm/dirty_ratio",
    "vm.dirty_background_ratio": "/proc/sys/vm/dirty_background_ratio",
    "vm.dirty_bytes": "/proc/sys/vm/dirty_bytes",
    "vm.dirty_background_bytes": "/proc/sys/vm/dirty_background_bytes",
    "vm.dirty_expire_centisecs": "/proc/sys/vm/dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs": "/proc/sys/vm/dirty_writeback_centisecs",
    "vm.swappiness": "/proc/sys/vm/swappiness",
    "vm.overcommit_memory": "/proc/sys/vm/overcommit_memory",
    "vm.nr_hugepages": "/proc/sys/vm/nr_hugepages",
    "kernel.io_uring_disabled": "/proc/sys/kernel/io_uring_disabled",
}

# Words of the kernel's command line that decide figures. The others stay: some hold secrets.
_COMMAND_LINE = ("mitigations", "isolcpus", "nohz_full", "idle", "intel_pstate", "amd_pstate", "nosmt", "mem")

# Options of the kernel's build that decide what can be made, where nothing else tells without root.
_CONFIG_OPTIONS = ("XFS_SUPPORT_V4",)

# Of Ubuntu's own kernels, of dkms on Debian and on Fedora.
_MODULES_APART = ("kernel/zfs/", "updates/", "extra/")

# Modules that bring a scheduler: writing its name to a queue loads them.
SCHEDULER_MODULES = {"bfq": "bfq", "kyber-iosched": "kyber", "mq-deadline": "mq-deadline"}

# A program and the option that makes it say its version; where several lines come, the first counts.
_TOOLS = {
    "losetup": "--version",
    "wipefs": "--version",
    "mount": "--version",
    "mke2fs": "-V",
    "mkfs.xfs": "-V",
    "mkfs.btrfs": "--version",
    "mkfs.jfs": "-V",
    "mkfs.reiserfs": "-V",
    "mkfs.nilfs2": "-V",
    "gcc": "--version",
    "qemu-system-x86_64": "--version",
}

_HYPERVISORS = {
    "kvm": "KVM",
    "qemu": "QEMU",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "innotek": "VirtualBox",
    "xen": "Xen",
    "microsoft corporation": "Hyper-V",
    "amazon ec2": "Amazon EC2",
    "google": "Google Compute Engine",
    "digitalocean": "DigitalOcean",
    "openstack": "OpenStack",
    "parallels": "Parallels",
    "firecracker": "Firecracker",
}


def read_machine(root: Path = Path("/")) -> Machine:
    """The machine as it is now; `tools` is empty, `tool_versions` fills it. `root` is for tests."""
    release = platform.release() if root == Path("/") else text_of(root / "proc/sys/kernel/osrelease")
    proc = root / "proc"
    return Machine(
        hostname=text_of(proc / "sys/kernel/hostname"),
        distribution=distribution(
            read_os_release() if root == Path("/") else text_of(root / "etc/os-release")
        ),
        kernel_release=release,
        architecture=platform.machine(),
        cpu_model=_cpu_model(text_of(proc / "cpuinfo")),
        cpu_count=len(os.sched_getaffinity(0)),
        memory_bytes=_memory_bytes(text_of(proc / "meminfo")),
        page_size_bytes=os.sysconf("SC_PAGE_SIZE"),
        filesystems=_filesystems(root, release),
        cgroup_version=read_hierarchy(proc / "self/mountinfo").version_of("memory"),
        pressure_available=_readable(proc / "pressure/io"),
        virtualisation=_virtualisation(root),
        boot_id=boot_id(proc),
        is_root=os.geteuid() == 0,
        tunables=_tunables(root, release),
    )


def tool_versions() -> Mapping[str, str]:
    """The version line of each tool that is there, by program; starts them, so it takes a moment."""
    known = {**_TOOLS, **tools_of_workloads()}
    there = {name: option for name, option in known.items() if find_tool(name) is not None}
    lines = {name: _version_line(name, option) for name, option in there.items()}
    return {name: line for name, line in lines.items() if line}


def distribution(os_release: str) -> str:
    """`Debian GNU/Linux 12 (bookworm)` from the text of os-release(5); empty where it says nothing."""
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return ""


def _version_line(name: str, option: str) -> str:
    try:
        done = Commands().run([str(find_tool(name) or name), option], timeout_s=10, check=False)
    except BedplateError:
        return ""
    lines = [line.strip() for line in done.output.splitlines() if re.search(r"\d", line)]
    return lines[0] if lines else ""


def _filesystems(root: Path, release: str) -> tuple[str, ...]:
    """Types that the kernel has, and those that a module of the running kernel would bring."""
    lines = text_of(root / "proc/filesystems").splitlines()
    found = {line.split()[-1] for line in lines if line.strip()}
    # kernel/fs/xfs/xfs.ko.zst: the type is the module's name, not the folder's.
    # ZFS comes apart, and stands where its packager puts it; what it stands on has other names.
    apart = {"zfs"} & set().union(*(_modules(root, release, folder) for folder in _MODULES_APART))
    return tuple(sorted(found | _modules(root, release, "kernel/fs/") | apart))


def _modules(root: Path, release: str, folder: str) -> set[str]:
    """Modules of the running kernel in a folder of its tree, built in or to be loaded."""
    place = next(
        (path for prefix in ("lib", "usr/lib") if (path := root / prefix / "modules" / release).is_dir()),
        None,
    )
    if place is None:
        return set()
    lines = [
        line for name in ("modules.builtin", "modules.dep") for line in text_of(place / name).splitlines()
    ]
    return {Path(line.partition(":")[0]).name.split(".ko")[0] for line in lines if line.startswith(folder)}


def _virtualisation(root: Path) -> str | None:
    """The hypervisor's name, `unknown hypervisor` if only the processor tells, None on bare metal."""
    dmi = root / "sys/class/dmi/id"
    words = " ".join(text_of(dmi / name) for name in ("sys_vendor", "product_name", "bios_vendor")).lower()
    for word, name in _HYPERVISORS.items():
        if word in words and (name != "Hyper-V" or "virtual" in words):
            return name
    kind = text_of(root / "sys/hypervisor/type")
    if kind:
        return _HYPERVISORS.get(kind, kind)
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", text_of(root / "proc/cpuinfo"), re.MULTILINE)
    return "unknown hypervisor" if flags else None


def _cpu_model(cpuinfo: str) -> str:
    """x86 has a `model name`; Arm only numbers; s390 and POWER words of their own."""
    fields = dict(_pairs(cpuinfo))
    if "model name" in fields:
        return " ".join(fields["model name"].split())
    arm = [fields[key] for key in ("CPU implementer", "CPU part") if key in fields]
    return fields.get("cpu") or " ".join(["Arm", *arm] if arm else []) or platform.processor() or "unknown"


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()


def _memory_bytes(meminfo: str) -> int:
    found = re.search(r"^MemTotal:\s*(\d+) kB", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _tunables(root: Path, release: str) -> Mapping[str, str]:
    values = {name: text_of(root / path.lstrip("/")) for name, path in _TUNABLES.items()}
    found = {name: _selected(value) for name, value in values.items() if value}
    words = [
        word for word in text_of(root / "proc/cmdline").split() if word.partition("=")[0] in _COMMAND_LINE
    ]
    if words:
        found["kernel.command_line"] = " ".join(words)
    schedulers = _schedulers(root, release)
    if schedulers:
        found["block.schedulers"] = " ".join(sorted(schedulers))
    return {**found, **_build_options(root, release)}


def _schedulers(root: Path, release: str) -> set[str]:
    """Every scheduler that some queue offers or a module would bring; empty where no queue says any."""
    queues = (root / "sys/class/block").glob("*/queue/scheduler")
    offered = {word.strip("[]") for queue in queues for word in text_of(queue).split()}
    if not offered:
        return set()
    modules = _modules(root, release, "kernel/block/")
    return offered | {name for module, name in SCHEDULER_MODULES.items() if module in modules}


def _build_options(root: Path, release: str) -> Mapping[str, str]:
    """`kernel.config.NAME` to y, m or n, from the kernel's own configuration where it can be read."""
    text = ""
    with contextlib.suppress(OSError, EOFError, zlib.error):
        text = gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    return build_options(text or text_of(root / f"boot/config-{release}"))


def build_options(config: str) -> Mapping[str, str]:
    """`kernel.config.NAME` to y, m or n, from the text of a kernel's configuration."""
    found = {}
    for option in _CONFIG_OPTIONS:
        line = re.search(rf"^(?:# CONFIG_{option} is not set|CONFIG_{option}=([ym]))$", config, re.MULTILINE)
        if line is not None:
            found[f"kernel.config.{option}"] = line[1] or "n"
    return found


def _selected(text: str) -> str:
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else text


def _readable(path: Path) -> bool:
    # A kernel booted with psi=0 has the files and answers EOPNOTSUPP.
    with contextlib.suppress(OSError):
        return bool(path.read_text())
    return False


_CPUINFO = Path("/proc/cpuinfo")

# rdtsc; shl rdx, 32; or rax, rdx; ret
_READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")

_STEADY = "constant_tsc"
_PERIOD_S, _TRIES = 0.05, 20


def counter_khz(*, cpuinfo: Path = _CPUINFO) -> int | None:
    """Ticks a millisecond, to some millionths; None where the counter is not steady, or may not be read."""
    if platform.machine() != "x86_64" or not _is_steady(cpuinfo):
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        # A hardened kernel lets nobody make a page that is written and run.
        return None
    page.write(_READ_COUNTER)
    held = ctypes.c_char.from_buffer(page)
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(held))
    first_ticks, first_ns = _moment(counter)
    Event().wait(_PERIOD_S)
    ticks, ns = _moment(counter)
    return round((ticks - first_ticks) * 1e6 / (ns - first_ns))


def _is_steady(cpuinfo: Path) -> bool:
    try:
        return _STEADY in cpuinfo.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return False


def _moment(counter: Callable[[], int]) -> tuple[int, int]:
    """Counter and clock at one moment: of several readings the one that was interrupted least."""
    found = []
    for _ in range(_TRIES):
        before_ns = time.monotonic_ns()
        ticks = counter()
        after_ns = time.monotonic_ns()
        found.append((after_ns - before_ns, ticks, (before_ns + after_ns) // 2))
    _, ticks, ns = min(found)
    return ticks, ns
