"""The recorder in a guest, below file systems that the machine's own kernel need not have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.guest_lab import GuestLab
from tests.support.tools.recorder_lab import recorder_driver

from bedplate.executors.qemu.runner import GuestRunner
from bedplate.host.recorder import DRIVER

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

# Runs in the guest in the place of a visit.
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from recorder_in_guest import main
main([{driver!r}, sys.argv[2]])
Path(sys.argv[2], "visit.json").write_text("{{}}")
"""
_TYPES = ("ext4", "xfs", "btrfs", "jfs", "reiserfs", "nilfs2", "f2fs", "ntfs3", "ntfs-3g")
_EXTERNAL = ("ext3", "ext4", "jfs")

Lines = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def lines(shared_guest: tuple[GuestLab, GuestRunner]) -> Lines:
    driver = recorder_driver()
    lab, executor = shared_guest
    script = SCRIPT.format(tests=str(Path(__file__).parent), driver=str(driver))
    request = replace(lab.run(script), native_drivers={DRIVER: str(driver)})
    directory = lab.live(executor, request)
    # Its kernel keeps next to no memory for itself now.
    executor.close()
    found = [json.loads(line) for line in (directory / "lines").read_text().splitlines()]
    return {line["name"]: line for line in found}


@pytest.mark.parametrize("name", [*_TYPES, *(f"{type_} external" for type_ in _EXTERNAL)])
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
    assert {(True, True)} == {
        (line["memory_locked"], line["io_flusher"]) for line in lines.values() if "same" in line
    }


def test_writes_end_where_there_is_no_memory_to_cache_them(lines: Lines) -> None:
    line = lines["pressure"]
    assert line["written"]
    # There was need of memory indeed.
    assert line["reclaimed_pages"] > 0
