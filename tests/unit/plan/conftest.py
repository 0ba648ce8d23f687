"""A small plan to change one thing of, and a machine to expand it on."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedplate.errors import PlanError
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan
from bedplate.plan.load import load_plan

MINIMAL = """
title = "minimal"
[scratch_device]
image_size = "4 GB"
[[filesystem]]
type = "ext4"
[[workload]]
type = "pgbench"
scale = 10
[[workload.run]]
script = "read-only"
duration = "10 s"
"""
MACHINE = Machine(
    hostname="h",
    distribution="Debian 12",
    kernel_release="6.18.44",
    architecture="x86_64",
    cpu_model="cpu",
    cpu_count=2,
    memory_bytes=24 * 2**30 - 12345,
    page_size_bytes=4096,
    filesystems=("ext2", "ext3", "ext4", "xfs", "btrfs"),
    cgroup_version=1,
    pressure_available=True,
    virtualisation=None,
    boot_id="b",
    is_root=False,
)

LoadText = Callable[..., Plan]
ReasonsOf = Callable[..., tuple[str, ...]]


@pytest.fixture
def minimal() -> str:
    return MINIMAL


@pytest.fixture
def load_text(tmp_path: Path) -> LoadText:
    def load(text: str) -> Plan:
        return load_plan(text, source="p.toml", directory=tmp_path)

    return load


@pytest.fixture
def reasons_of(tmp_path: Path) -> ReasonsOf:
    def reasons(text: str) -> tuple[str, ...]:
        with pytest.raises(PlanError) as caught:
            load_plan(text, source="p.toml", directory=tmp_path)
        return caught.value.reasons

    return reasons


@pytest.fixture
def edited() -> Callable[..., str]:
    """The minimal plan with one line put into a table, in place of its own line for that key."""

    def edit(line: str, table: str = "") -> str:
        key = next(iter(tomllib.loads(f"{line}\n")))
        lines: list[str] = []
        here, seen = "", False
        for old in ["", *MINIMAL.strip().splitlines()]:
            if old.startswith("["):
                here = old.strip("[]")
            if here == table and old.split(" = ")[0] == key:
                continue
            lines.append(old)
            if (old.startswith("[") or old == "") and here == table and not seen:
                lines.append(line)
                seen = True
        return "\n".join(lines if seen else [*lines, f"[{table}]", line])

    return edit


@pytest.fixture
def machine() -> Callable[..., Machine]:
    def make(**changes: Any) -> Machine:
        return replace(MACHINE, **changes)

    return make
