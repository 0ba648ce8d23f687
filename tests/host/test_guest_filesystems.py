"""Every file system and external journal in one boot of a guest: made, mounted, read back, flushed, checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.guest_lab import GuestLab

from bedplate.executors.qemu.kernels import find_kernel
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.executors.qemu.zfs import find_zfs
from bedplate.filesystem.registry import FILESYSTEMS
from bedplate.host.files import cache_directory
from bedplate.host.requirement import look
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import TRAITS
from bedplate.units import MIB

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

# Runs in the guest; what it prints is not for the executor, so it goes to a file.
SCRIPT = """
import contextlib, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from guest_filesystems import main
with Path(sys.argv[2], "lines").open("w") as file, contextlib.redirect_stdout(file):
    main([*{words!r}, "/dev/disk/by-id/virtio-bedplate-data", "/dev/disk/by-id/virtio-bedplate-journal"])
Path(sys.argv[2], "visit.json").write_text("{{}}")
"""
# bcachefs has no tools anywhere; zfs has a test of its own, as its modules are built on request only.
_WITHOUT_TOOLS = {"bcachefs", "zfs"}

Lines = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def lines(shared_guest: tuple[GuestLab, GuestRunner]) -> Lines:
    lab, executor = shared_guest
    script = SCRIPT.format(tests=str(Path(__file__).parent), words=())
    request = lab.run(script, image_bytes=640 * MIB)
    if _zfs_is_built():
        # The type decides which modules the guest loads and which programs it finds; all others stay.
        cell = replace(request.cell, filesystem=FilesystemLevels("zfs"))
        request = replace(request, cell=cell)
    directory = lab.live(executor, request)
    found = [json.loads(line) for line in (directory / "lines").read_text().splitlines()]
    return {line["name"]: line for line in found}


def _zfs_is_built() -> bool:
    kernel = find_kernel(None, cache_directory=cache_directory())
    return kernel is not None and find_zfs(kernel, cache_directory()) is not None


def _tools_here(type_: str) -> bool:
    return all(need.found for need in look(FILESYSTEMS[type_].needs))


@pytest.mark.parametrize("type_", sorted(set(FILESYSTEMS) - _WITHOUT_TOOLS))
def test_a_type_is_made_mounted_read_back_flushed_and_clean(lines: Lines, type_: str) -> None:
    if not _tools_here(type_):
        pytest.skip(f"the tools of {type_} are not installed")
    line = lines[type_]
    assert ("completed", [], "clean") == (line["outcome"], line["reasons"], line["check"].split(";")[0])
    flushes = {pattern: count for _, pattern, _, count in line["flushes"]}
    assert {"appending", "overwriting", "logging"} == flushes.keys()
    # No kernel's JFS was ever seen to flush; all others flush at each call, in both patterns.
    assert all((count >= 50) == (type_ != "jfs") for count in flushes.values()), flushes


@pytest.mark.parametrize(
    "type_", [name for name, traits in TRAITS.items() if "external" in traits.journals and name != "zfs"]
)
def test_an_external_journal_is_on_its_device_and_flushed_there(lines: Lines, type_: str) -> None:
    if not _tools_here(type_):
        pytest.skip(f"the tools of {type_} are not installed")
    line = lines[f"{type_} external"]
    assert ("completed", [], "clean") == (line["outcome"], line["reasons"], line["check"])
    assert "the given device" == line["facts"]["filesystem.journal_device"]


@pytest.mark.parametrize(("name", "flushing"), [("zfs", "data"), ("zfs external", "journal")])
def test_zfs_is_made_mounted_read_back_flushed_and_clean(lines: Lines, name: str, flushing: str) -> None:
    if not _zfs_is_built():
        pytest.skip("zfs's modules are not built: `bedplate doctor --install --zfs`")
    line = lines[name]
    assert ("completed", []) == (line["outcome"], line["reasons"])
    assert line["check"].startswith("clean")
    flushes = {(device, pattern): count for device, pattern, _, count in line["flushes"]}
    assert flushes[flushing, "appending"] >= 50
    assert flushes[flushing, "overwriting"] >= 50


def test_ext3_and_ext4_leave_the_data_device_unflushed_after_overwrites(lines: Lines) -> None:
    """Up to 6.12, whatever the journal's device was told: what is overwritten stands in a cache.

    On ext4 what is appended as well (docs/METHOD.md, "Flushes per fsync").
    """
    for name, appending in (("ext3 external", True), ("ext4 external", False)):
        flushes = {(device, pattern): count for device, pattern, _, count in lines[name]["flushes"]}
        assert flushes["data", "overwriting"] == 0, name
        assert (flushes["data", "appending"] >= 50) == appending, (name, flushes)
        assert flushes["journal", "appending"] >= 50, name
