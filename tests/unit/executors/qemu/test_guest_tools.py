from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.guests.fake_distribution import OS_RELEASE, FakeDistribution, FakePackage, elf
from tests.support.tools.scripted_commands import ScriptedCommands

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu import kernels
from bedplate.executors.qemu.kernels import (
    ensure_busybox,
    ensure_depmod,
    ensure_zstd,
    find_busybox,
    is_static,
)
from bedplate.host import apt

TOOLS = {
    "busybox-static": FakePackage("1:1.35", {"bin/busybox": elf(static=True).decode("latin-1")}),
    "kmod": FakePackage("30", {"bin/kmod": "x", "sbin/depmod": "-> /bin/kmod"}),
    "zstd": FakePackage("1.5", {"usr/bin/zstd": "x"}),
}


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedCommands:
    for module in (apt, apt):
        monkeypatch.setattr(module, "read_os_release", lambda: OS_RELEASE)
    distribution = FakeDistribution({"bookworm": TOOLS}, tmp_path / "sources")
    return distribution.answer(ScriptedCommands())


def machine_has(monkeypatch: pytest.MonkeyPatch, **tools: Path) -> None:
    monkeypatch.setattr(kernels, "find_tool", tools.get)


def ignore(text: str) -> None:
    del text


def test_a_static_program_names_no_loader(tmp_path: Path) -> None:
    program = tmp_path / "program"
    for content, expected in (
        (elf(static=True), True),
        (elf(static=False), False),
        (b"#!/bin/sh\n", False),
        (elf(static=True)[:40], False),
        (elf(static=True)[:64], False),
        (b"", False),
    ):
        program.write_bytes(content)
        assert expected is is_static(program), content[:70]


def test_pythons_own_loader_is_static_and_python_is_not() -> None:
    loaders = [path for path in (Path("/lib64/ld-linux-x86-64.so.2"),) if path.exists()]
    assert all(is_static(path) for path in loaders)
    assert not is_static(Path("/bin/sh").resolve())


def test_the_machines_busybox_counts_if_it_is_static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "busybox"
    machine_has(monkeypatch, busybox=own)
    own.write_bytes(elf(static=True))
    assert find_busybox(tmp_path / "cache") == own
    own.write_bytes(elf(static=False))
    assert find_busybox(tmp_path / "cache") is None


def test_what_the_machine_lacks_comes_from_one_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: ScriptedCommands
) -> None:
    machine_has(monkeypatch)
    cache = tmp_path / "cache"
    busybox = ensure_busybox(cache, commands=commands, progress=ignore)
    assert is_static(busybox)
    assert find_busybox(cache) == busybox
    started = len(commands.record)
    depmod = ensure_depmod(cache, commands=commands, progress=ignore)
    zstd = ensure_zstd(cache, commands=commands, progress=ignore)
    assert len(commands.record) == started
    assert depmod.program.name == "depmod"
    assert zstd.environment["PATH"].startswith(str(busybox.parents[1]))


def test_what_the_machine_has_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: ScriptedCommands
) -> None:
    machine_has(monkeypatch, depmod=Path("/sbin/depmod"))
    assert ensure_depmod(tmp_path, commands=commands, progress=ignore).program == Path("/sbin/depmod")
    assert commands.record == []


def test_a_machine_without_apt_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_has(monkeypatch)
    with pytest.raises(RequirementMissing, match="no apt"):
        ensure_busybox(tmp_path, commands=ScriptedCommands(), progress=ignore)
