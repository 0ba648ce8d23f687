"""What the guest is told over the shared folder, and what comes back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu.guest import GuestDisk
from bedplate.executors.qemu.kernels import GuestKernel, Tool
from bedplate.executors.qemu.slot import GuestTools, ResultShare, guest_environment


@pytest.fixture
def share(tmp_path: Path, kernel: GuestKernel) -> ResultShare:
    return ResultShare(tmp_path / "share", kernel, Path(sys.executable))


def put(share: ResultShare, request: Any, **environment: str) -> Path:
    disk = GuestDisk("bedplate-data", Path("/x"), 4096)
    share.lay_visit(3, request, disks=(disk,), load=(("modprobe", "fs-jfs"),), environment=environment)
    return share.directory / "3"


def test_the_agent_finds_what_it_reads(share: ResultShare, request_of: Any, kernel: GuestKernel) -> None:
    folder = put(share, request_of(), PATH="/bin", HOME="/root")
    assert "PATH=/bin\nHOME=/root\n" == (folder / "environment").read_text()
    assert "modprobe fs-jfs\n" == (folder / "load").read_text()
    assert "bedplate-data 4096\n" == (folder / "disks").read_text()
    python = Path((share.directory / "python").read_text().rstrip("\n"))
    assert python.is_file()
    assert not python.is_symlink()
    assert (Path((share.directory / "sources").read_text().strip()) / "bedplate/visit/command.py").is_file()
    modules = Path((share.directory / "modules").read_text().strip())
    assert (modules / kernel.release).is_dir()
    assert (share.directory / "agent").read_text().startswith("#!/bin/sh")


def test_modules_behind_a_link_are_named_by_their_real_place(tmp_path: Path, kernel: GuestKernel) -> None:
    link = tmp_path / "link"
    assert kernel.modules is not None
    link.symlink_to(kernel.modules)
    linked = GuestKernel("x", kernel.release, kernel.image, link, "", "d", None)
    made = ResultShare(tmp_path / "other", linked, Path(sys.executable))
    assert f"{kernel.modules}/lib/modules\n" == (made.directory / "modules").read_text()


def test_a_line_break_in_a_path_is_refused(share: ResultShare, request_of: Any) -> None:
    with pytest.raises(RequirementMissing, match="line break"):
        put(share, request_of(), PATH="/a\n/b")


def test_a_record_is_merged_into_the_visits_directory(
    share: ResultShare, request_of: Any, tmp_path: Path
) -> None:
    folder = put(share, request_of())
    (folder / "visit/logs").mkdir()
    (folder / "visit/logs/server.log").write_text("server")
    (folder / "visit/runs/01-a/logs").mkdir(parents=True)
    (folder / "visit/visit.json").write_text("{}")
    directory = tmp_path / "attempt"
    (directory / "logs").mkdir(parents=True)
    (directory / "logs/other.log").write_text("other")
    share.collect(3, directory)
    found = sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))
    assert found == [
        *("logs", "logs/other.log", "logs/server.log", "request.json"),
        *("runs", "runs/01-a", "runs/01-a/logs", "visit.json"),
    ]
    assert not folder.exists()


def test_tools_of_a_package_tree_come_first() -> None:
    base = {"PATH": "/usr/bin:/bin"}
    found = guest_environment(base, GuestTools(path=(Path("/t/sbin"),), library_path=(Path("/t/lib"),)))
    assert "/t/sbin:/usr/bin:/bin" == found["PATH"]
    assert "/t/lib" == found["LD_LIBRARY_PATH"]
    assert "LD_LIBRARY_PATH" not in guest_environment(base, GuestTools())


def test_modprobe_is_a_script_with_its_own_libraries(tmp_path: Path, kernel: GuestKernel) -> None:
    tool = Tool(Path("/cache/a b/modprobe"), {"LD_LIBRARY_PATH": "/cache/a b/lib"})
    made = ResultShare(tmp_path / "with", kernel, Path(sys.executable), modprobe=tool)
    script = (made.directory / "modprobe").read_text()
    assert (
        "export LD_LIBRARY_PATH='/cache/a b/lib'\nexec '/cache/a b/modprobe' -C /dev/null \"$@\"\n" in script
    )
    without = ResultShare(tmp_path / "without", kernel, Path(sys.executable))
    assert not (without.directory / "modprobe").exists()
