"""What a build of a kernel needs from the machine, found without root and before any work."""

from __future__ import annotations

from pathlib import Path

from bedplate.host.requirement import Need, Requirement, look, missing

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
