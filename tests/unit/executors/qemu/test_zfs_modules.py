from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tools.scripted_commands import ScriptedCommands, completed

from bedplate.errors import CommandFailed, RequirementMissing, VerifyFailed
from bedplate.executors.qemu import zfs
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.executors.qemu.zfs import (
    KernelHeaders,
    ZfsSource,
    ZfsTree,
    ZfsWork,
    clean_environment,
    compiler_need,
    ensure_zfs,
    find_zfs,
    kernel_suite,
    load_order,
    module_facts,
    named_parts,
    own_headers,
    refused_kernel,
    relocated_objects,
    source_directory,
    verify_userland,
    with_zfs,
    zfs_directory,
    zfs_suites,
)
from bedplate.host.apt import PackageTree
from bedplate.host.command import Commands, Completed
from bedplate.host.native_driver import BuildProgress
from bedplate.model.machine import Machine

VERSION = "2.3.2-2~bpo12+2"
RELEASE = "6.12.117+deb12-amd64"
Ensure = Callable[..., ZfsTree]


def elf(sections: dict[bytes, bytes]) -> bytes:
    """A 64-bit ELF file of these sections, laid out as elf(5) says; the last one holds the names."""
    names = b"\0" + b"".join(name + b"\0" for name in (*sections, b".shstrtab"))
    content, table = bytearray(64), []
    for name, data in {**sections, b".shstrtab": names}.items():
        table.append(
            struct.pack("<IIQQQQIIQQ", names.index(name + b"\0"), 1, 0, 0, len(content), len(data), *[0] * 4)
        )
        content += data
    content[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", content, 0x28, len(content))
    struct.pack_into("<HHH", content, 0x3A, 64, len(table), len(table) - 1)
    return bytes(content) + b"".join(table)


def module(name: str, depends: str = "", *, release: str = RELEASE) -> bytes:
    facts = f"version={VERSION}\0depends={depends}\0name={name}\0vermagic={release} SMP preempt mod_unload \0"
    # zfs.ko's own texts have such words too.
    return elf({b".rodata": b"\0version=%lld\0depends=all\0", b".modinfo": facts.encode()})


def build_two(work: ZfsWork) -> None:
    work.modules.mkdir()
    (work.modules / "zfs.ko").write_bytes(module("zfs", "spl,zlib_deflate"))
    (work.modules / "spl.ko").write_bytes(module("spl"))


@pytest.fixture
def kernel(tmp_path: Path) -> GuestKernel:
    return GuestKernel(
        asked="6.12",
        release=RELEASE,
        image=tmp_path / "vmlinuz",
        modules=tmp_path / "root",
        origin=f"linux-image-{RELEASE} 6.12.117-1~deb12u1 (bookworm-security)",
        digest="d1",
        configuration=None,
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def ensure(kernel: GuestKernel, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ensure:
    """`ensure_zfs` where the distribution has all that is asked for."""
    tools = tmp_path / "packages/root/sbin"
    tools.mkdir(parents=True)
    for name in ("zpool", "zfs"):
        (tools / name).write_text("#!/bin/true\n")
        (tools / name).chmod(0o755)
    userland = PackageTree(tools.parent, {"zfsutils-linux": VERSION}, {"zfsutils-linux": "ab"})
    source = ZfsSource(VERSION, "bookworm-backports", tmp_path / "source", userland)
    headers = KernelHeaders(tmp_path / "common", tmp_path / "objects")
    monkeypatch.setattr(zfs, "fetch_source", lambda *_: source)
    monkeypatch.setattr(zfs, "fetch_headers", lambda *_: headers)

    def call(recipe: Callable[[ZfsWork], None] = build_two, *, of: GuestKernel = kernel) -> ZfsTree:
        return ensure_zfs(
            of, cache_directory=cache, commands=Commands(), progress=lambda _: None, recipe=recipe
        )

    return call


def never(work: ZfsWork) -> None:
    raise AssertionError(f"{work.release} was built again")


def test_a_build_is_made_once_and_then_found(ensure: Ensure, kernel: GuestKernel, cache: Path) -> None:
    assert find_zfs(kernel, cache) is None
    made = ensure()
    assert [path.name for path in made.modules] == ["spl.ko", "zfs.ko"]
    assert made.kernel_modules == ("zlib_deflate",)
    assert made.userland.program("zpool") == made.path[0] / "zpool"
    assert find_zfs(kernel, cache) == made == ensure(never)


def test_the_tree_stands_on_its_own(ensure: Ensure, kernel: GuestKernel, cache: Path, tmp_path: Path) -> None:
    made = ensure()
    (tmp_path / "packages").rename(tmp_path / "gone")
    assert find_zfs(kernel, cache) == made
    assert all(path.is_relative_to(cache) for path in (*made.modules, *made.path))


def test_another_kernel_of_the_same_release_is_another_kernel(
    ensure: Ensure, kernel: GuestKernel, cache: Path
) -> None:
    ensure()
    rebuilt = replace(kernel, digest="d2")
    assert find_zfs(rebuilt, cache) is None
    assert ensure(of=rebuilt).kernel_digest == "d2"
    assert find_zfs(kernel, cache) is None


@pytest.mark.parametrize("lost", ["modules/spl.ko", "userland/sbin/zpool", "zfs.json"])
def test_a_build_that_lost_a_part_is_made_again(
    ensure: Ensure, kernel: GuestKernel, cache: Path, lost: str
) -> None:
    made = ensure()
    (zfs_directory(cache) / f"{RELEASE}-{VERSION}" / lost).unlink()
    assert find_zfs(kernel, cache) is None
    assert ensure().modules == made.modules


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', "not json"])
def test_a_damaged_stamp_is_no_build(ensure: Ensure, kernel: GuestKernel, cache: Path, text: str) -> None:
    ensure()
    (zfs_directory(cache) / f"{RELEASE}-{VERSION}" / "zfs.json").write_text(text)
    assert find_zfs(kernel, cache) is None


def visible(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, VerifyFailed])
def test_an_interrupted_build_leaves_nothing(ensure: Ensure, cache: Path, error: type[BaseException]) -> None:
    def recipe(work: ZfsWork) -> None:
        build_two(work)
        raise error("stopped")

    with pytest.raises(error):
        ensure(recipe)
    assert visible(zfs_directory(cache)) == []


def test_what_a_killed_build_left_is_removed(ensure: Ensure, cache: Path) -> None:
    left = zfs_directory(cache) / ".work-6.1.0-9-amd64/zfs/module"
    left.mkdir(parents=True)
    (zfs_directory(cache) / ".6.1.0-9-amd64.lock").touch()
    ensure()
    assert visible(zfs_directory(cache)) == [f"{RELEASE}-{VERSION}"]


def test_a_failed_build_keeps_its_output(ensure: Ensure, cache: Path) -> None:
    def recipe(work: ZfsWork) -> None:
        raise CommandFailed("make ended", argv=["make"], status=2, output="line one\nline two")

    with pytest.raises(CommandFailed, match=f"ZFS {VERSION} for {RELEASE} failed".replace("+", r"\+")):
        ensure(recipe)
    (log,) = visible(zfs_directory(cache))
    assert (zfs_directory(cache) / log).read_text() == "make\n\nline one\nline two\n"
    ensure()
    assert visible(zfs_directory(cache)) == [f"{RELEASE}-{VERSION}"]


def test_the_digest_is_of_the_modules(ensure: Ensure, cache: Path, kernel: GuestKernel) -> None:
    def other(work: ZfsWork) -> None:
        build_two(work)
        (work.modules / "spl.ko").write_bytes(module("spl") + b"!")

    first = ensure()
    (zfs_directory(cache) / f"{RELEASE}-{VERSION}" / "zfs.json").unlink()
    assert ensure(other).digest != first.digest


def machine_with(*filesystems: str) -> Machine:
    return Machine(
        hostname="guest",
        distribution="",
        kernel_release=RELEASE,
        architecture="x86_64",
        cpu_model="",
        cpu_count=2,
        memory_bytes=2**31,
        page_size_bytes=4096,
        filesystems=filesystems,
        cgroup_version=2,
        pressure_available=True,
        virtualisation="QEMU",
        boot_id="",
        is_root=True,
    )


def test_a_guest_has_zfs_once_it_is_built(ensure: Ensure, kernel: GuestKernel, cache: Path) -> None:
    guest = machine_with("ext4", "xfs")
    assert with_zfs(guest, kernel, cache) == guest
    ensure()
    assert with_zfs(guest, kernel, cache).filesystems == ("ext4", "xfs", "zfs")
    assert with_zfs(machine_with("zfs"), kernel, cache).filesystems == ("zfs",)


@pytest.mark.parametrize(
    ("modules", "order"),
    [
        ({"zfs": ("spl",), "spl": ()}, ("spl", "zfs")),
        (
            {"icp": ("spl",), "spl": (), "zcommon": ("icp",), "zfs": ("zcommon", "spl")},
            ("spl", "icp", "zcommon", "zfs"),
        ),
        ({"zfs": ("zlib_deflate",)}, ("zfs",)),
        ({}, ()),
    ],
)
def test_modules_stand_after_what_they_need(
    modules: dict[str, tuple[str, ...]], order: tuple[str, ...]
) -> None:
    assert load_order(modules) == order


def test_modules_in_a_circle_are_refused() -> None:
    with pytest.raises(VerifyFailed, match="depends on itself"):
        load_order({"a": ("b",), "b": ("a",)})


@pytest.mark.parametrize("content", [b"", b"not a module" * 20, module("zfs")[:-100], elf({b".text": b"x"})])
def test_what_is_no_module_has_no_facts(content: bytes) -> None:
    with pytest.raises(VerifyFailed, match="ELF"):
        module_facts(content)


def test_facts_of_a_module_stand_in_its_own_section() -> None:
    facts = module_facts(module("zfs", "spl"))
    assert facts == {
        "version": VERSION,
        "depends": "spl",
        "name": "zfs",
        "vermagic": f"{RELEASE} SMP preempt mod_unload ",
    }


@pytest.mark.parametrize(
    ("release", "refused"),
    [
        (RELEASE, False),
        ("6.14.11", False),
        ("6.15.0", True),
        ("4.18.0-1-amd64", False),
        ("4.17.9", True),
        ("7.2.13+deb14-amd64", True),
        ("mine", False),  # configure will tell
    ],
)
def test_the_source_says_which_kernels_it_knows(repository: Path, release: str, refused: bool) -> None:
    meta = (repository / "tests/golden/zfs/META").read_text()
    reason = refused_kernel(meta, release)
    assert refused == (reason is not None)
    assert reason is None or "from 4.18 to 6.14" in reason


def test_a_source_without_a_range_is_left_to_configure() -> None:
    assert refused_kernel("Name: zfs\n", RELEASE) is None


@pytest.fixture
def headers(tmp_path: Path, repository: Path) -> KernelHeaders:
    """The distribution's layout: absolute in its makefile, relative in its links."""
    objects = tmp_path / "flavour/usr/src" / f"linux-headers-{RELEASE}"
    tools = tmp_path / "tools/usr"
    common = tools / "src/linux-headers-6.12.117+deb12-common"
    kbuild = tools / "lib/linux-kbuild-6.12.117+deb12"
    for folder in (objects, common, kbuild / "scripts"):
        folder.mkdir(parents=True)
    (objects / "Makefile").write_text(f"include /usr/src/{common.name}/Makefile\n")
    (objects / "scripts").symlink_to(f"../../lib/{kbuild.name}/scripts")
    variables = (repository / "tests/golden/zfs/kernelvariables").read_text()
    (objects / ".kernelvariables").write_text(variables)
    (kbuild / "scripts/modpost").touch()
    tree = PackageTree(tools.parent, {}, {})
    return KernelHeaders(common, objects, (tree,), kbuild)


def work_with(headers: KernelHeaders, tmp_path: Path) -> ZfsWork:
    source = ZfsSource(VERSION, None, tmp_path, PackageTree(tmp_path, {}, {}))
    directory = tmp_path / "work"
    return ZfsWork(RELEASE, source, headers, directory, directory / "modules", Commands(), lambda _: None)


def test_headers_name_their_parts(headers: KernelHeaders) -> None:
    assert named_parts(headers.objects) == (
        "linux-headers-6.12.117+deb12-common",
        "linux-kbuild-6.12.117+deb12",
    )


def test_headers_are_moved_without_the_machines_own_usr(headers: KernelHeaders, tmp_path: Path) -> None:
    moved = relocated_objects(work_with(headers, tmp_path))
    assert (moved / "Makefile").read_text() == f"include {headers.source}/Makefile\n"
    assert (moved / "scripts/modpost").resolve() == headers.tools[0].root / "usr/lib" / (
        "linux-kbuild-6.12.117+deb12/scripts/modpost"
    )
    # The packages' own tree is shared by every build, and stays as it was.
    assert (headers.objects / "Makefile").read_text().startswith("include /usr/src/")


def test_a_self_built_kernels_folder_is_used_where_it_is(tmp_path: Path) -> None:
    headers = KernelHeaders(tmp_path, tmp_path)
    assert relocated_objects(work_with(headers, tmp_path)) == tmp_path


def test_a_self_built_kernel_without_its_build_folder_is_refused(kernel: GuestKernel) -> None:
    folder = kernel.module_directory
    folder.mkdir(parents=True)
    with pytest.raises(RequirementMissing, match=r"Module\.symvers"):
        own_headers(kernel)
    (folder / "build").mkdir()
    (folder / "build/Module.symvers").touch()
    assert own_headers(kernel).objects == (folder / "build").resolve()


def test_the_compiler_is_the_kernels_own(headers: KernelHeaders, tmp_path: Path) -> None:
    assert compiler_need(headers.objects).name == "gcc-12"
    assert compiler_need(tmp_path).name == "gcc"


def test_nothing_of_the_users_surroundings_reaches_the_build(
    headers: KernelHeaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ARCH", "CFLAGS", "KCFLAGS", "MAKEFLAGS", "CROSS_COMPILE", "LLVM", "CONFIG_SITE"):
        monkeypatch.setenv(name, "poison")
    shown = Commands().run([*clean_environment(headers), "env"]).stdout
    assert "poison" not in shown
    assert sorted(line.partition("=")[0] for line in shown.splitlines()) == [
        *("CONFIG_SITE", "HOME", "LC_ALL", "PATH")
    ]


@pytest.mark.parametrize(
    ("origin", "suite"),
    [
        ("linux-image-6.1.0-50-amd64 6.1.176-1 (bookworm)", "bookworm"),
        ("linux-binary-7.2 7.2.13-1 (unstable)", "unstable"),
        ("/usr/src/linux", None),
    ],
)
def test_a_kernels_suite_is_in_its_origin(kernel: GuestKernel, origin: str, suite: str | None) -> None:
    assert kernel_suite(replace(kernel, origin=origin)) == suite


def test_the_newest_zfs_that_runs_here_is_looked_for_first(kernel: GuestKernel) -> None:
    release = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
    assert zfs_suites(kernel, release) == ("bookworm-backports", None, "bookworm-security")


def test_a_package_without_its_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing, match="META and configure"):
        source_directory(tmp_path)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("zfs-2.1.11-1\nzfs_version_kernel() failed: No such file or directory\n", "says 2.1.11-1"),
        ("zfs: /lib/libc.so.6: version `GLIBC_2.38' not found (required by zfs)\n", "does not run"),
    ],
)
def test_a_userland_that_does_not_fit_is_refused(tmp_path: Path, said: str, reason: str) -> None:
    folder = tmp_path / "sbin"
    folder.mkdir()
    (folder / "zfs").write_text("")
    (folder / "zfs").chmod(0o755)
    commands = ScriptedCommands(answers={"zfs": lambda argv, _: completed(argv, said, status=1)})
    with pytest.raises(RequirementMissing, match=reason):
        verify_userland(PackageTree(tmp_path, {}, {}), VERSION, commands)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("zfs", module("zfs", release="6.1.0-50-amd64"), "for 6.1.0-50-amd64, not for"),
        ("zfs", module("zfs").replace(b"2.3.2-2~bpo12+2", b"2.1.11-1+deb121"), "of ZFS 2.1.11"),
        ("spl", module("spl"), r"no zfs\.ko"),
    ],
)
def test_modules_that_are_not_what_was_asked_for_are_refused(
    headers: KernelHeaders, tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    work = replace(work_with(headers, tmp_path), commands=ScriptedCommands(answers={"strip": _copied}))
    built = work.directory / "zfs/module"
    built.mkdir(parents=True)
    (built / f"{name}.ko").write_bytes(content)
    with pytest.raises(VerifyFailed, match=reason):
        zfs.strip_modules(work, built)


def _copied(argv: tuple[str, ...], _: Path | None) -> Completed:
    return completed(argv)


def test_progress_is_told_in_steps(ensure: Ensure, cache: Path, kernel: GuestKernel) -> None:
    told: list[BuildProgress] = []

    def recipe(work: ZfsWork) -> None:
        work.progress(BuildProgress("configure"))
        build_two(work)

    ensure_zfs(kernel, cache_directory=cache, commands=Commands(), progress=told.append, recipe=recipe)
    assert [item.step for item in told] == ["configure"]


def test_the_stamp_says_what_it_cost(ensure: Ensure, cache: Path) -> None:
    ensure()
    stamp = json.loads((zfs_directory(cache) / f"{RELEASE}-{VERSION}" / "zfs.json").read_text())
    assert stamp["build_seconds"] >= 0
    assert stamp["origin"] == f"zfs-dkms {VERSION} (bookworm-backports)"
    assert stamp["modules"] == ["spl.ko", "zfs.ko"]
