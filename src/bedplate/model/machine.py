"""What a machine is, as far as a figure depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate.model.cell import digest


@dataclass(frozen=True)
class Machine:
    """Facts of a machine, read without root where that is possible.

    `filesystems` are the types that the running kernel has or can load. `cgroup_version` is 1, 2 or
    None where neither limits memory. `tools` maps a program to its version line, absent where the
    program is.
    """

    hostname: str
    distribution: str
    kernel_release: str
    architecture: str
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    page_size_bytes: int
    filesystems: tuple[str, ...]
    cgroup_version: int | None
    pressure_available: bool
    virtualisation: str | None
    boot_id: str
    is_root: bool
    tools: Mapping[str, str] = field(default_factory=dict)
    tunables: Mapping[str, str] = field(default_factory=dict)

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
