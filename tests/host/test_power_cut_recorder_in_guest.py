"""The recorder below every file system: in a guest below those that the machine's own kernel does not have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.guest_lab import GuestLab
from tests.support.tools.recorder_lab import recorder_driver

from bedplate.executors.qemu.runner import GuestRunner
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.facts import read_machine
from bedplate.host.recorder import DRIVER

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

# Runs in the guest in the place of a visit.
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from recorder_in_guest import main
main([{driver!r}, sys.argv[2], *{names!r}])
Path(sys.argv[2], "visit.json").write_text("{{}}")
"""
_TYPES = ("ext4", "xfs", "btrfs", "jfs", "reiserfs", "nilfs2", "f2fs", "ntfs3", "ntfs-3g")
_EXTERNAL = ("ext3", "ext4", "jfs")
_NAMES = (*_TYPES, *(f"{type_} external" for type_ in _EXTERNAL))
_SOURCES = Path(__file__).resolve().parents[2] / "src"

Lines = Mapping[str, Mapping[str, Any]]


def _is_here(name: str) -> bool:
    """Emulated it takes twenty times as long."""
    kernel_types = filesystem_for(name.partition(" ")[0]).traits.kernel_types
    return not set(kernel_types).isdisjoint(read_machine().filesystems)


def _read(directory: Path) -> Lines:
    found = [json.loads(line) for line in (directory / "lines").read_text().splitlines()]
    return {line["name"]: line for line in found}


@pytest.fixture(scope="module")
def lines(shared_guest: tuple[GuestLab, GuestRunner], tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """Of this machine's kernel and of a guest's."""
    driver, here = str(recorder_driver()), tmp_path_factory.mktemp("here")
    program = Path(__file__).with_name("recorder_in_guest.py")
    subprocess.run(
        [sys.executable, str(program), driver, str(here), *filter(_is_here, _NAMES)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(_SOURCES)},
    )
    lab, executor = shared_guest
    names = [*(name for name in _NAMES if not _is_here(name)), "pressure"]
    script = SCRIPT.format(tests=str(program.parent), driver=driver, names=names)
    request = replace(lab.run(script), native_drivers={DRIVER: driver})
    directory = lab.live(executor, request)
    # Its kernel keeps next to no memory for itself now.
    executor.close()
    return {**_read(here), **_read(directory)}


@pytest.mark.parametrize("name", _NAMES)
def test_the_log_holds_what_the_disks_hold(lines: Lines, name: str) -> None:
    line = lines[name]
    if lacking := line.get("lacking"):
        pytest.skip("; ".join(lacking))
    assert "error" not in line, line
    assert [True, True] == line["same"]
    assert 20 == line["marks"]
    assert (line["writes"][1] > 0) == name.endswith("external")
    # No kernel's JFS was ever seen to flush; the others do at each fsync, on one device or the other.
    assert (line["flushes"] >= 20) == (not name.startswith("jfs")), line


def test_the_kernel_takes_what_keeps_it_from_waiting_for_memory(lines: Lines) -> None:
    # A container may forbid it here.
    there = [line for name, line in lines.items() if "same" in line and not _is_here(name)]
    assert {(True, True)} == {(line["memory_locked"], line["io_flusher"]) for line in there}


def test_writes_end_where_there_is_no_memory_to_cache_them(lines: Lines) -> None:
    line = lines["pressure"]
    assert line["written"]
    # There was need of memory indeed.
    assert line["reclaimed_pages"] > 0
