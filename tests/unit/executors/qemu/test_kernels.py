from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.guests.fake_distribution import OS_RELEASE, FakeDistribution, FakePackage, bz_image, elf
from tests.support.tools.scripted_commands import ScriptedCommands

from bedplate.errors import OutputNotUnderstood, PlanError, RequirementMissing, VerifyFailed
from bedplate.executors.qemu import kernels
from bedplate.executors.qemu.kernels import (
    GuestKernel,
    ensure_kernel,
    find_kernel,
    guest_machine,
    known_kernels,
)
from bedplate.host import apt
from bedplate.host.command import Completed
from bedplate.host.facts import read_machine
from bedplate.units import GIB

CONFIG = "CONFIG_PSI=y\nCONFIG_XFS_SUPPORT_V4=y\n"


def modules(folder: str) -> dict[str, str]:
    return {
        f"{folder}/kernel/fs/ext4/ext4.ko.xz": "module",
        f"{folder}/kernel/block/bfq.ko.xz": "module",
        f"{folder}/kernel/drivers/net/e1000.ko.xz": "module",
    }


def plain(release: str, version: str) -> dict[str, FakePackage]:
    """Debian's packages up to 13."""
    folder = f"lib/modules/{release}"
    files = {
        f"boot/vmlinuz-{release}": bz_image(release),
        f"boot/config-{release}": CONFIG,
        f"{folder}/modules.builtin": "kernel/fs/fuse/fuse.ko\nkernel/block/mq-deadline.ko\n",
        f"{folder}/modules.order": "kernel/fs/ext4/ext4.ko\n",
        "usr/share/doc/linux/copyright": "a text that nobody needs here",
        **modules(folder),
    }
    return {f"linux-image-{release}": FakePackage(version, files)}


def divided(release: str, version: str, signed: str = "") -> dict[str, FakePackage]:
    """Debian's packages after 13."""
    folder = f"usr/lib/modules/{release}"
    return {
        f"linux-image-{release}": FakePackage(version),
        f"linux-binary-{signed}{release}": FakePackage(version, {f"{folder}/vmlinuz": bz_image(release)}),
        f"linux-modules-{release}": FakePackage(version, modules(folder)),
        f"linux-base-{release}": FakePackage(
            version,
            {
                f"{folder}/modules.builtin": "kernel/fs/fuse/fuse.ko\n",
                f"{folder}/modules.order": "kernel/fs/ext4/ext4.ko\n",
                f"{folder}/config": CONFIG,
            },
        ),
    }


SUITES = {
    "bookworm": {
        "busybox-static": FakePackage("1:1.35", {"bin/busybox": elf(static=True).decode("latin-1")}),
        "kmod": FakePackage("30", {"sbin/depmod": "x"}),
        "zstd": FakePackage("1.5", {"usr/bin/zstd": "x"}),
        **plain("6.1.0-47-amd64", "6.1.170-3"),
    },
    "bookworm-security": plain("6.1.0-56-amd64", "6.1.192-2"),
    "bookworm-backports": plain("6.12.95+deb12-amd64", "6.12.95-1~bpo12+1"),
    "unstable": divided("7.2.13+deb14-amd64", "7.2.13-1"),
}


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDistribution:
    for module in (apt, apt, kernels):
        monkeypatch.setattr(module, "read_os_release", lambda: OS_RELEASE)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    monkeypatch.setattr(kernels, "find_tool", lambda _: None)
    return FakeDistribution(dict(SUITES), tmp_path / "sources")


@pytest.fixture
def commands(distribution: FakeDistribution) -> ScriptedCommands:
    return distribution.answer(ScriptedCommands())


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def ensure(cache: Path, commands: ScriptedCommands) -> Callable[[str | None], GuestKernel]:
    def call(asked: str | None) -> GuestKernel:
        return ensure_kernel(asked, cache_directory=cache, commands=commands, progress=lambda _: None)

    return call


Ensure = Callable[[str | None], GuestKernel]


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "kernels").iterdir() if path.suffix != ".lock")


def test_the_newest_release_of_a_series_comes_from_security(ensure: Ensure) -> None:
    kernel = ensure("6.1")
    assert (kernel.asked, kernel.release) == ("6.1", "6.1.0-56-amd64")
    assert kernel.origin == "linux-image-6.1.0-56-amd64 6.1.192-2 (bookworm-security)"
    assert kernel.image.name == "vmlinuz-6.1.0-56-amd64"
    assert kernel.image.stat().st_mode & 0o777 == 0o644
    assert kernel.configuration is not None
    assert kernel.modules is not None
    assert (kernel.module_directory / "modules.dep").is_file()
    assert sorted(path.name for path in kernel.modules.iterdir()) == ["boot", "lib", "usr"]
    assert list((kernel.modules / "usr").iterdir()) == [kernel.modules / "usr/lib"]
    assert (kernel.modules / "usr/lib/modules").resolve() == (kernel.modules / "lib/modules").resolve()


def test_nothing_asked_is_the_series_with_most_file_systems(ensure: Ensure) -> None:
    kernel = ensure(None)
    assert (kernel.asked, kernel.release) == (None, "6.12.95+deb12-amd64")
    assert kernel.origin.endswith("(bookworm-backports)")


@pytest.mark.parametrize("signed", ["", "unsigned-"])
def test_packages_that_divide_a_kernel_are_put_together(
    distribution: FakeDistribution, ensure: Ensure, signed: str
) -> None:
    distribution.suites = {**SUITES, "unstable": divided("7.2.13+deb14-amd64", "7.2.13-1", signed)}
    kernel = ensure("7.2")
    assert kernel.modules is not None
    assert kernel.image == kernel.module_directory / "vmlinuz"
    assert kernel.configuration is not None
    assert kernel.configuration.place == str(kernel.module_directory / "config")
    assert (kernel.module_directory / "kernel/fs/ext4/ext4.ko.xz").is_file()
    record = json.loads((kernel.modules.parent / "kernel.json").read_text())
    expected = [
        f"linux-{part}-7.2.13+deb14-amd64" for part in (f"binary-{signed}".strip("-"), "modules", "base")
    ]
    assert expected == [item["name"] for item in record["packages"]]
    assert all(len(item["sha256"]) == 64 for item in record["packages"])


def test_ubuntus_extra_modules_and_its_secret_image_are_taken(
    distribution: FakeDistribution, ensure: Ensure
) -> None:
    release, folder = "6.8.0-45-generic", "lib/modules/6.8.0-45-generic"
    distribution.suites = {
        "bookworm": {
            **SUITES["bookworm"],
            f"linux-image-{release}": FakePackage("1", {f"boot/vmlinuz-{release}": bz_image(release)}),
            f"linux-modules-{release}": FakePackage(
                "1",
                {
                    f"{folder}/modules.builtin": "",
                    f"{folder}/modules.order": "",
                    f"{folder}/kernel/a.ko.zst": "",
                },
            ),
            f"linux-modules-extra-{release}": FakePackage("1", {f"{folder}/kernel/fs/jfs/jfs.ko.zst": ""}),
        }
    }
    kernel = ensure("6.8")
    assert kernel.image.stat().st_mode & 0o777 == 0o644
    assert "jfs" in guest_machine(kernel, memory_bytes=GIB, host=read_machine()).filesystems


def test_several_kernels_stand_side_by_side(ensure: Ensure, cache: Path) -> None:
    for asked in ("7.2", "6.1", None):
        ensure(asked)
    releases = ["6.1.0-56-amd64", "6.12.95+deb12-amd64", "7.2.13+deb14-amd64"]
    assert releases == [kernel.release for kernel in known_kernels(cache)]
    assert releases == [kernel.asked for kernel in known_kernels(cache)]
    assert len({kernel.digest for kernel in known_kernels(cache)}) == 3


def test_a_kernel_in_the_cache_needs_no_network_and_stays(
    ensure: Ensure, cache: Path, commands: ScriptedCommands, distribution: FakeDistribution
) -> None:
    distribution.suites = {"bookworm": SUITES["bookworm"]}
    old = ensure("6.1")
    assert old.release == "6.1.0-47-amd64"
    distribution.suites = SUITES
    started = len(commands.record)
    assert old == ensure("6.1") == find_kernel("6.1", cache_directory=cache)
    assert len(commands.record) == started
    # The whole release is another question.
    newer = ensure("6.1.0-56-amd64")
    assert newer.release == "6.1.0-56-amd64"
    found = find_kernel("6.1", cache_directory=cache)
    assert found is not None
    assert found.release == newer.release
    assert find_kernel("6.1.0-47", cache_directory=cache) is not None
    assert find_kernel("6.12", cache_directory=cache) is None
    assert find_kernel(None, cache_directory=cache) is None


def test_an_empty_cache_has_no_kernel(distribution: FakeDistribution, cache: Path) -> None:
    del distribution
    assert known_kernels(cache) == ()
    assert find_kernel("6.12", cache_directory=cache) is None
    assert not cache.exists()


def test_what_every_suite_has_instead_is_said(ensure: Ensure, cache: Path) -> None:
    ensure("6.12")
    with pytest.raises(RequirementMissing) as raised:
        ensure("6.6")
    message = str(raised.value)
    assert "no kernel 6.6 is in the cache (it has 6.12.95+deb12-amd64)" in message
    assert "bookworm-security has 6.1.0-56-amd64" in message
    assert "unstable has 7.2.13+deb14-amd64" in message
    assert "stable: The repository 'stable' does not have a Release file." in message
    assert "the path of a self-built one" in raised.value.reasons[-1]
    assert left(cache) == ["6.12.95+deb12-amd64"]


def test_a_release_that_is_only_named_is_passed_over(distribution: FakeDistribution, ensure: Ensure) -> None:
    distribution.names_only = ("linux-image-6.1.0-99-amd64",)
    assert ensure("6.1").release == "6.1.0-56-amd64"


@pytest.mark.parametrize("program", ["dpkg-deb", "depmod"])
def test_an_interrupted_fetch_leaves_no_half_kernel(
    ensure: Ensure, cache: Path, commands: ScriptedCommands, program: str
) -> None:
    ensure("6.12")

    def interrupted(argv: tuple[str, ...], directory: Path | None) -> Completed:
        del argv, directory
        raise KeyboardInterrupt

    working = commands.answers[program]
    commands.answers[program] = interrupted
    with pytest.raises(KeyboardInterrupt):
        ensure("6.1")
    assert left(cache) == ["6.12.95+deb12-amd64"]
    commands.answers[program] = working
    # What a killed start left behind: a work folder, and a kernel that was never finished.
    (cache / "kernels/.work-fetched/killed/fresh/root").mkdir(parents=True)
    (cache / "kernels/6.1.0-56-amd64/root/boot").mkdir(parents=True)
    assert len(known_kernels(cache)) == 1
    assert ensure("6.1").image.is_file()
    assert left(cache) == ["6.1.0-56-amd64", "6.12.95+deb12-amd64"]


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        ("boot/vmlinuz-6.1.0-56-amd64", "an image"),
        ("lib/modules/6.1.0-56-amd64/modules.builtin", "modules.builtin"),
    ],
)
def test_packages_without_a_part_are_refused(
    distribution: FakeDistribution, ensure: Ensure, cache: Path, gone: str, named: str
) -> None:
    ((name, package),) = SUITES["bookworm-security"].items()
    files = {path: text for path, text in package.files.items() if path != gone}
    distribution.suites = {**SUITES, "bookworm-security": {name: FakePackage(package.version, files)}}
    with pytest.raises(VerifyFailed, match=f"have no {named}"):
        ensure("6.1")
    assert left(cache) == []


def test_an_image_of_another_release_is_refused(distribution: FakeDistribution, ensure: Ensure) -> None:
    ((name, package),) = SUITES["bookworm-security"].items()
    files = {**package.files, "boot/vmlinuz-6.1.0-56-amd64": bz_image("6.1.0-55-amd64")}
    distribution.suites = {**SUITES, "bookworm-security": {name: FakePackage(package.version, files)}}
    with pytest.raises(VerifyFailed, match=r"says that it is 6\.1\.0-55-amd64"):
        ensure("6.1")


def test_a_processor_without_kernel_packages_is_named(
    ensure: Ensure, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure("6.12")
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="s390x"))
    with pytest.raises(RequirementMissing, match="processors of the kind s390x"):
        ensure_on_s390x(ensure)


def ensure_on_s390x(ensure: Ensure) -> None:
    ensure("6.1")


def test_a_damaged_record_names_the_way_out(ensure: Ensure, cache: Path) -> None:
    modules = ensure("6.12").modules
    assert modules is not None
    record = modules.parent / "kernel.json"
    for text in ("", "[]", "{}"):
        record.write_text(text)
        with pytest.raises(OutputNotUnderstood, match="remove its folder"):
            known_kernels(cache)


@pytest.mark.usefixtures("distribution")
@pytest.mark.parametrize("asked", ["latest", "", "6", "-6.12"])
def test_what_names_no_kernel_is_refused_before_any_work(
    cache: Path, commands: ScriptedCommands, asked: str
) -> None:
    with pytest.raises(PlanError, match="names no kernel"):
        find_kernel(asked, cache_directory=cache)
    assert commands.record == []


def test_the_guest_is_a_machine_with_the_kernels_abilities_and_none_of_the_hosts_settings(
    ensure: Ensure,
) -> None:
    host = read_machine()
    machine = guest_machine(ensure("6.12"), memory_bytes=2 * GIB, host=host)
    assert machine.kernel_release == "6.12.95+deb12-amd64"
    assert machine.memory_bytes == 2 * GIB
    assert machine.filesystems == ("ext3", "ext4", "fuse")
    assert machine.cgroup_version == 2
    assert machine.is_root
    assert machine.pressure_available
    assert dict(machine.tunables) == {
        "block.schedulers": "bfq mq-deadline none",
        "kernel.config.XFS_SUPPORT_V4": "y",
    }
    assert machine.cpu_model == host.cpu_model
    assert machine.virtualisation == "QEMU"


def test_a_kernel_without_its_configuration_leaves_what_it_decides_open(ensure: Ensure) -> None:
    kernel = ensure("6.12")
    bare = GuestKernel(
        kernel.asked, kernel.release, kernel.image, kernel.modules, kernel.origin, kernel.digest, None
    )
    machine = guest_machine(bare, memory_bytes=GIB, host=read_machine())
    assert "kernel.config.XFS_SUPPORT_V4" not in machine.tunables
    assert not machine.pressure_available
