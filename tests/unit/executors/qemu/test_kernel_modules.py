from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood, RequirementMissing
from bedplate.executors.qemu import kernels
from bedplate.executors.qemu.kernels import ModuleTree, Tool, module_name, read_module
from bedplate.host.command import Commands
from bedplate.model.limits import FileLimit
from bedplate.units import MIB

# As depmod of kernel 6.12 writes it: all that a module needs, the last to be loaded first.
DEPENDENCIES = """\
kernel/fs/netfs/netfs.ko.xz:
kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet.ko.xz: kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz
kernel/fs/jbd2/jbd2.ko.xz:
kernel/fs/nls/nls_utf8.ko.xz:
kernel/drivers/block/null-blk/null-blk.ko.xz:
"""


def tree(
    folder: Path, dependencies: str = DEPENDENCIES, built_in: str = "kernel/fs/fuse/fuse.ko\n"
) -> ModuleTree:
    (folder / "modules.dep").write_text(dependencies)
    (folder / "modules.builtin").write_text(built_in)
    (folder / "modules.alias").write_text("alias fs-ext3 ext4\nalias fs-ext4 ext4\nalias pci:v1 null_blk\n")
    return ModuleTree(folder)


def names(paths: tuple[Path, ...]) -> list[str]:
    return [module_name(path.name) for path in paths]


def test_every_module_comes_after_what_it_needs_and_once(tmp_path: Path) -> None:
    order = tree(tmp_path).load_order(("9p", "9pnet_virtio", "ext4"))
    assert names(order) == ["netfs", "9pnet", "9p", "9pnet_virtio", "jbd2", "ext4"]
    assert order[0] == tmp_path / "kernel/fs/netfs/netfs.ko.xz"


def test_what_is_built_in_is_not_loaded(tmp_path: Path) -> None:
    assert names(tree(tmp_path).load_order(("fuse", "jbd2"))) == ["jbd2"]


def test_dash_and_underscore_name_the_same_module(tmp_path: Path) -> None:
    modules = tree(tmp_path)
    assert modules.load_order(("null_blk",)) == modules.load_order(("null-blk",))
    assert len(modules.load_order(("null_blk", "null-blk"))) == 1


def test_all_that_the_kernel_lacks_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing) as raised:
        tree(tmp_path).load_order(("overlay", "9p", "virtio_blk"))
    assert len(raised.value.reasons) == 2
    assert "no module overlay" in raised.value.reasons[0]


def test_types_are_modules_built_in_or_not_and_their_other_names(tmp_path: Path) -> None:
    (tmp_path / "modules.builtin.modinfo").write_bytes(
        b"fuse.alias=fs-fuseblk\0fuse.license=GPL\0squashfs.alias=fs-squashfs\0vfat.alias=char-1\0"
    )
    expected = ("9p", "ext3", "ext4", "fuse", "fuseblk", "jbd2", "netfs", "squashfs")
    assert expected == tree(tmp_path).filesystems()


def test_a_circle_and_a_missing_line_are_named(tmp_path: Path) -> None:
    with pytest.raises(OutputNotUnderstood, match=r"a\.ko → b\.ko → a\.ko"):
        tree(tmp_path, "a.ko: b.ko\nb.ko: a.ko\n").load_order(("a",))
    with pytest.raises(OutputNotUnderstood, match=r"a line for b\.ko"):
        tree(tmp_path, "a.ko: b.ko\n").load_order(("a",))
    with pytest.raises(OutputNotUnderstood, match="`module: modules`"):
        tree(tmp_path, "a.ko b.ko\n").load_order(("a",))


def test_a_folder_without_depmods_files_says_what_writes_them(tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing, match="modules_install"):
        ModuleTree(tmp_path).load_order(("9p",))


@given(st.data())
def test_any_graph_without_a_circle_is_ordered(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    graph = {
        f"m{number}.ko": [
            f"m{needed}.ko"
            for needed in range(number)
            if data.draw(st.booleans(), label=f"{number}->{needed}")
        ]
        for number in range(count)
    }
    modules = ModuleTree(Path("/nowhere"))
    shuffled = data.draw(st.permutations(sorted(graph)))
    modules.__dict__ |= {
        "dependencies": {name: tuple(data.draw(st.permutations(graph[name]))) for name in shuffled},
        "built_in": (),
    }
    asked = data.draw(st.lists(st.sampled_from(shuffled), min_size=1))
    order = [path.name for path in modules.load_order(asked)]
    assert len(order) == len(set(order))
    assert set(asked) <= set(order)
    for place, name in enumerate(order):
        assert set(graph[name]) <= set(order[:place])


MODULE = b"\x7fELF module"


@pytest.mark.parametrize(
    ("suffix", "content"),
    [(".ko", MODULE), (".ko.xz", lzma.compress(MODULE)), (".ko.gz", gzip.compress(MODULE))],
)
def test_modules_are_decompressed(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    assert read_module(path, commands=Commands()) == MODULE


def test_a_program_that_unpacks_and_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.ko.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(
        RequirementMissing, match=r"m\.ko\.zst cannot be read: /opt/tree/zstd cannot be started"
    ):
        read_module(path, commands=Commands(), zstd=Tool(Path("/opt/tree/zstd")))


@pytest.mark.parametrize("pack", [bytes, lzma.compress, gzip.compress])
def test_a_module_that_is_larger_than_any_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(kernels, "MODULE_LIMIT", FileLimit(2 * MIB, "5 MB"))
    path = tmp_path / "m.ko"
    path.write_bytes(pack(MODULE + bytes(3 * MIB)))
    with pytest.raises(
        RequirementMissing, match=r"m\.ko cannot be read: unpacked it has more than 2,097,152 bytes"
    ):
        read_module(path, commands=Commands())


def test_a_chain_of_modules_that_is_longer_than_any_is_named(tmp_path: Path) -> None:
    (tmp_path / "modules.builtin").touch()
    (tmp_path / "modules.dep").write_text("".join(f"m{n}.ko: m{n + 1}.ko\n" for n in range(20_000)))
    with pytest.raises(OutputNotUnderstood, match="at most 100 deep"):
        ModuleTree(tmp_path).load_order(["m0"])


@pytest.mark.parametrize(
    "name", ["modules.dep", "modules.builtin", "modules.builtin.modinfo", "modules.alias"]
)
def test_a_list_of_modules_that_is_larger_than_any_is_named(tmp_path: Path, name: str) -> None:
    for one in ("modules.dep", "modules.builtin", "modules.builtin.modinfo", "modules.alias"):
        (tmp_path / one).touch()
    os.truncate(tmp_path / name, 2**37)
    with pytest.raises(RequirementMissing, match=rf"{name} cannot be read \(it has more than"):
        ModuleTree(tmp_path).filesystems()


@pytest.mark.parametrize(("suffix", "content"), [(".ko.xz", b"damaged"), (".ko.gz", b""), (".ko", b"MZ")])
def test_a_damaged_module_is_named(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    with pytest.raises(RequirementMissing, match=str(path)):
        read_module(path, commands=Commands())
