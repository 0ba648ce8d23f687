"""A machine for `bedplate plan` that is the same everywhere: who asks, which file systems there are, and what is installed.

All that a plan looks at is pretended here, and no program starts.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.tools.doubles import put_in_place_of

from bedplate.host import block_tree, facts, requirement, scratch_device
from bedplate.host.requirement import Requirement
from bedplate.model.filesystem import TRAITS
from bedplate.model.machine import Machine
from bedplate.units import GIB

_ALL = Machine(
    hostname="pretended",
    distribution="Debian GNU/Linux 12 (bookworm)",
    kernel_release="6.12.48",
    architecture="x86_64",
    cpu_model="Pretended CPU",
    cpu_count=4,
    memory_bytes=16 * GIB,
    page_size_bytes=4096,
    filesystems=tuple(sorted(TRAITS)),
    cgroup_version=2,
    pressure_available=True,
    virtualisation=None,
    boot_id="pretended",
    is_root=True,
    tunables={"block.schedulers": "bfq kyber mq-deadline none", "kernel.config.XFS_SUPPORT_V4": "y"},
)


@dataclass(frozen=True)
class Pretended:
    """A machine, and whether all programs, headers and libraries are there or none."""

    machine: Machine
    has_tools: bool


# Root of a machine that has everything; somebody without rights, on one that has nothing and takes two file systems.
ROOT = Pretended(_ALL, has_tools=True)
NOBODY = Pretended(
    replace(_ALL, filesystems=("ext4", "xfs"), is_root=False, cgroup_version=1), has_tools=False
)
_now = ROOT


@contextlib.contextmanager
def pretended_machine(what: Pretended, cache: Path) -> Iterator[None]:
    """In this process; `cache` is an empty folder, so that nothing is built, fetched or tried yet."""
    global _now  # noqa: PLW0603 -- what the doubles below speak of
    doubles: dict[Any, Any] = {
        facts.read_machine: _read_machine,
        requirement.read_os_release: _read_os_release,
        requirement.find_tool: _find_tool,
        requirement.missing: _missing,
        block_tree.device_contents: _device_contents,
        scratch_device.refusal_reasons: _refusal_reasons,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEDPLATE_CACHE", str(cache))
        patch.setenv("BEDPLATE_STATE", str(cache / "state"))
        patch.setattr(os, "geteuid", lambda: 0 if what.machine.is_root else 1000)
        patch.setattr(subprocess, "Popen", _Answer)
        for function, double in doubles.items():
            put_in_place_of(function, double, patch)
        before, _now = _now, what
        try:
            yield
        finally:
            _now = before


def pretended() -> Pretended:
    """The machine that this is at the moment."""
    return _now


# Code that runs in the place of another function's (`tools/doubles.py`).


def _read_machine(root: object) -> Machine:
    from tests.support.studies.pretended_machine import pretended  # noqa: PLC0415

    return pretended().machine


def _read_os_release() -> str:
    return 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n'


def _find_tool(name: str) -> Path | None:
    from pathlib import Path  # noqa: PLC0415

    from tests.support.studies.pretended_machine import pretended  # noqa: PLC0415

    return Path("/usr/bin", name) if pretended().has_tools else None


def _missing(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    from dataclasses import replace  # noqa: PLC0415

    from tests.support.studies.pretended_machine import pretended  # noqa: PLC0415

    lacking = dict.fromkeys(replace(each, found=False) for each in requirements)
    return () if pretended().has_tools else tuple(lacking)


def _device_contents(*_: object) -> None:
    return None


def _refusal_reasons(*_: object) -> tuple[str, ...]:
    return ()


class _Answer:
    """In the place of a program: it says its name, or is not there."""

    returncode, pid = 0, -1

    def __init__(self, argv: Sequence[str], *_: object, **__: object) -> None:
        if not pretended().has_tools:
            raise FileNotFoundError(2, "No such file or directory", argv[0])
        self._said = f"{argv[0]} 1.0\n"

    def communicate(self, *_: object, **__: object) -> tuple[str, str]:
        return self._said, ""
