"""What a machine is, as far as a figure depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate.model.cell import digest


@dataclass(frozen=True)
class Machine:
    """Facts of a machine, read without root where that is possible."""

    hostname: str
    """name of the machine"""
    distribution: str
    """name and version"""
    kernel_release: str
    """`uname -r`"""
    architecture: str
    """`uname -m`"""
    cpu_model: str
    """as the processor calls itself"""
    cpu_count: int
    """processors online"""
    memory_bytes: int
    """memory of the machine"""
    page_size_bytes: int
    """page of the kernel"""
    filesystems: tuple[str, ...]
    """types that the kernel has or can load"""
    cgroup_version: int | None
    """1, 2, or null where neither limits memory"""
    pressure_available: bool
    """whether the kernel has PSI"""
    virtualisation: str | None
    """kind of guest or container, null on bare metal"""
    boot_id: str
    """which boot"""
    is_root: bool
    """whether it was read by root"""
    tools: Mapping[str, str] = field(default_factory=dict)
    """program to version line; absent where the program is"""
    tunables: Mapping[str, str] = field(default_factory=dict)
    """kernel settings that figures depend on"""

    @property
    def identity(self) -> str:
        """Digest of what must not change within a study; the kernel is compared apart."""
        return digest(
            {
                "architecture": self.architecture,
                "cpu_model": self.cpu_model,
                "cpu_count": self.cpu_count,
                # Firmware and kernels reserve differing slivers; a DIMM more or less is a change.
                "memory_gib": round(self.memory_bytes / 2**30),
                "page_size_bytes": self.page_size_bytes,
            }
        )
