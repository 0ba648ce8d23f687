"""A kernel is built as root: what runs of the tree has no rights, no network, and nothing to write to but its build folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.sources.histories import commit, repository
from tests.support.sources.toy_kernel import made, toy_kernel

from bedplate.executors.qemu import kernels as build_module
from bedplate.executors.qemu.kernels import ensure_built
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.git import resolve
from bedplate.model.cell import KernelSource, SourceTree

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

# One that an account without rights reaches.
SYSTEM_PYTHON = Path("/usr/bin/python3")
# What a makefile of somebody's might try, beside its work.
_TRIES = """\
allnoconfig: tries
tries:
\tid -u >$(O)/who
\tcat /proc/net/dev >$(O)/network
\t-echo planted >main.c
\t-echo planted >@OUTSIDE@
"""


@pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason="the toy's makefile runs the system's Python")
def test_a_makefile_of_a_tree_builds_shut_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "missing_requirements", tuple)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    outside.chmod(0o666)
    tree = repository(tmp_path / "linux")
    files = toy_kernel(python=SYSTEM_PYTHON)
    commit(
        tree, "Tries", {**files, "Makefile": files["Makefile"] + _TRIES.replace("@OUTSIDE@", str(outside))}
    )

    def build() -> Path:
        source = KernelSource(SourceTree(str(tree), str(tree), "master", resolve(tree, "master")))
        kernel = ensure_built(
            source, cache_directory=tmp_path / "cache", commands=Commands(), progress=lambda _: None
        )
        assert kernel.release == f"6.12.1-g{source.digits}"
        (place,) = (tmp_path / "cache/kernels/trees").glob("linux-*")
        return place

    place = build()
    objects = place / "objects"
    assert (objects / "who").read_text().strip() == str(server_account().uid)
    devices = [line.split(":")[0].strip() for line in (objects / "network").read_text().splitlines()[2:]]
    assert set(devices) <= {"lo"}
    assert (place / "source/main.c").read_text() == files["main.c"]
    assert outside.read_text() == "mine"
    assert (tree / "main.c").read_text() == files["main.c"]
    assert made(objects) == ["fsync", "main"]
    commit(tree, "Next", {"fsync.c": "int second = 3;\n"})
    build()
    assert made(objects) == ["fsync"]
