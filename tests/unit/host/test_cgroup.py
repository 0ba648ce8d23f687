from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.errors import RequirementMissing, VerifyFailed
from bedplate.host.cgroups import Group, Hierarchy, memory_limit_reasons, read_hierarchy
from bedplate.host.ledger import Ledger, restore_throttle
from bedplate.model.cell import Throttle

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 1 << 29
SLOW = Throttle("slow", read_iops=150, write_bytes_per_s=1 << 20)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    # A plain directory is not removed with its files in it, as a control group is.
    monkeypatch.setattr(
        "bedplate.host.ledger.remove_group", lambda path: shutil.rmtree(path, ignore_errors=True)
    )
    with Ledger.open(tmp_path / "state", "group") as opened:
        yield opened
        assert () == opened.holdings()


def _v2(base: Path, controllers: str = "cpu io memory") -> Hierarchy:
    root = base / "unified"
    root.mkdir()
    (root / "cgroup.controllers").write_text(controllers + "\n")
    (root / "cgroup.subtree_control").write_text("")
    return Hierarchy({}, root, frozenset(controllers.split()))


def _v1(base: Path) -> Hierarchy:
    for name in ("memory", "cpu,cpuacct", "blkio"):
        (base / name).mkdir()
    for file in ("read_iops", "write_iops", "read_bps", "write_bps"):
        (base / f"blkio/blkio.throttle.{file}_device").write_text("")
    v1 = {"memory": base / "memory", "cpuacct": base / "cpu,cpuacct", "blkio": base / "blkio"}
    return Hierarchy(v1, None, frozenset())


def _vm(base: Path) -> Path:
    vm = base / "vm"
    vm.mkdir()
    for name, value in (("ratio", "20"), ("bytes", "0")):
        (vm / f"dirty_{name}").write_text(value)
        (vm / f"dirty_background_{name}").write_text(value)
    return vm


def test_version_2_limits_memory_in_the_group_itself(tmp_path: Path, ledger: Ledger) -> None:
    hierarchy = _v2(tmp_path)
    group = Group.create("x", memory_bytes=LIMIT, ledger=ledger, hierarchy=hierarchy, vm=tmp_path / "no-vm")
    directory = tmp_path / "unified/bedplate-x"
    assert str(LIMIT) == (directory / "memory.max").read_text()
    assert "+memory" == (tmp_path / "unified/cgroup.subtree_control").read_text()
    assert [("device.memory_bytes", LIMIT, LIMIT, True)] == [
        (item.name, item.asked, item.effective, item.matches) for item in group.comparisons
    ]
    group.enter()
    assert (directory / "cgroup.procs").read_text().isdecimal()
    (directory / "memory.peak").write_text("4096\n")
    (directory / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1000000\n")
    usage = group.usage()
    assert (4096, 1.5) == (usage.memory_bytes_peak, usage.cpu_s)
    group.release()
    assert not directory.exists()


def test_version_2_throttles_each_limit_on_its_device(tmp_path: Path, ledger: Ledger) -> None:
    hierarchy = _v2(tmp_path)
    slow = Throttle("slow", read_iops=150)
    group = Group.create("x", throttle=slow, device_number="7:3", ledger=ledger, hierarchy=hierarchy)
    assert "7:3 riops=150" == (tmp_path / "unified/bedplate-x/io.max").read_text()
    assert [150] == [item.effective for item in group.comparisons]
    group.release()


def test_version_1_throttles_on_the_root_group_and_limits_dirty_pages(tmp_path: Path, ledger: Ledger) -> None:
    hierarchy = _v1(tmp_path)
    vm = _vm(tmp_path)
    group = Group.create(
        "x",
        memory_bytes=LIMIT,
        throttle=SLOW,
        device_number="7:3",
        ledger=ledger,
        hierarchy=hierarchy,
        vm=vm,
    )
    assert str(LIMIT) == (tmp_path / "memory/bedplate-x/memory.limit_in_bytes").read_text()
    assert "7:3 150" == (tmp_path / "blkio/blkio.throttle.read_iops_device").read_text()
    assert f"7:3 {1 << 20}" == (tmp_path / "blkio/blkio.throttle.write_bps_device").read_text()
    assert "" == (tmp_path / "blkio/blkio.throttle.write_iops_device").read_text()
    assert not (tmp_path / "blkio/bedplate-x").exists()
    assert (str(LIMIT // 5), str(LIMIT // 10)) == (
        (vm / "dirty_bytes").read_text(),
        (vm / "dirty_background_bytes").read_text(),
    )
    (tmp_path / "cpu,cpuacct/bedplate-x/cpuacct.usage").write_text("250000000\n")
    assert 0.25 == group.cpu_seconds()
    group.release()
    assert "7:3 0" == (tmp_path / "blkio/blkio.throttle.read_iops_device").read_text()


def test_the_dirty_limits_of_the_machine_have_one_holder(tmp_path: Path, ledger: Ledger) -> None:
    hierarchy, vm = _v1(tmp_path), _vm(tmp_path)
    first = Group.create("x", memory_bytes=LIMIT, ledger=ledger, hierarchy=hierarchy, vm=vm)
    with Ledger.open(tmp_path / "another", "group") as another:
        (reason,) = memory_limit_reasons(LIMIT, hierarchy=hierarchy, vm=vm)
        with pytest.raises(RequirementMissing, match=r"holds vm\.dirty_bytes"):
            Group.create("y", memory_bytes=2 * LIMIT, ledger=another, hierarchy=hierarchy, vm=vm)
        assert () == another.holdings()
        assert str(LIMIT // 5) == (vm / "dirty_bytes").read_text()
        first.release()
        assert "wait for its end" in reason
        assert () == memory_limit_reasons(LIMIT, hierarchy=hierarchy, vm=vm)
        Group.create("y", memory_bytes=2 * LIMIT, ledger=another, hierarchy=hierarchy, vm=vm).release()
    # Who has no limit, or one in a group alone, holds nothing of the machine.
    assert () == memory_limit_reasons(None, hierarchy=hierarchy, vm=vm)


def test_uncounted_is_none_not_zero(tmp_path: Path, ledger: Ledger) -> None:
    group = Group.create("x", ledger=ledger, hierarchy=_v2(tmp_path))
    usage = group.usage()
    assert (None, None) == (usage.memory_bytes_peak, usage.cpu_s)
    assert "" == (tmp_path / "unified/cgroup.subtree_control").read_text()
    group.release()


def test_all_that_cannot_be_limited_is_told_at_once(ledger: Ledger) -> None:
    nothing = Hierarchy({}, None, frozenset())
    with pytest.raises(RequirementMissing) as raised:
        Group.create(
            "x", memory_bytes=LIMIT, throttle=SLOW, device_number="7:3", ledger=ledger, hierarchy=nothing
        )
    assert ["memory", "throttle"] == [reason.partition(":")[0] for reason in raised.value.reasons]


def test_limit_that_does_not_read_back_leaves_no_group(tmp_path: Path, ledger: Ledger) -> None:
    hierarchy = _v2(tmp_path)
    directory = tmp_path / "unified/bedplate-x"
    original = Path.mkdir

    def with_deaf_limit(path: Path, mode: int = 0o777, **words: bool) -> None:
        original(path, mode, **words)
        if path == directory:
            (path / "memory.max").symlink_to("/dev/null")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "mkdir", with_deaf_limit)
        with pytest.raises(VerifyFailed, match="effective is None"):
            Group.create("x", memory_bytes=LIMIT, ledger=ledger, hierarchy=hierarchy)
    assert not directory.exists()


def test_group_of_that_name_is_not_taken_over(tmp_path: Path, ledger: Ledger) -> None:
    hierarchy = _v2(tmp_path)
    (tmp_path / "unified/bedplate-x").mkdir()
    with pytest.raises(RequirementMissing, match="bedplate release"):
        Group.create("x", ledger=ledger, hierarchy=hierarchy)
    assert (tmp_path / "unified/bedplate-x").exists()


def test_restored_throttle_looks_only_at_its_own_device(tmp_path: Path) -> None:
    file = tmp_path / "read_iops_device"
    file.write_text("7:30 99\n")
    assert restore_throttle(f"{file} 7:3", "7:3 0").done is None
    assert "7:30 99\n" == file.read_text()


HYBRID = """\
30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
34 30 0:30 / {unified} rw,relatime - cgroup2 cgroup2 rw
"""


def test_hybrid_hierarchy_keeps_controllers_apart(tmp_path: Path) -> None:
    unified = tmp_path / "unified"
    unified.mkdir()
    (unified / "cgroup.controllers").write_text("hugetlb io\n")
    table = tmp_path / "mountinfo"
    table.write_text(HYBRID.format(unified=unified))
    found = read_hierarchy(table)
    assert {"cpu", "cpuacct", "memory"} == set(found.v1)
    assert found.v1["cpu"] == found.v1["cpuacct"]
    assert (unified, frozenset({"hugetlb", "io"})) == (found.v2, found.v2_controllers)
    assert (1, 2, None) == (
        found.version_of("memory"),
        found.version_of("blkio", "io"),
        found.version_of("pids"),
    )


def test_machine_without_control_groups_has_none(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text("")
    assert Hierarchy({}, None, frozenset()) == read_hierarchy(tmp_path / "mountinfo")


def test_groups_are_made_in_the_systems_own_hierarchy_whoever_else_has_mounted_it(tmp_path: Path) -> None:
    def line(number: int, target: str, kind: str, words: str) -> str:
        return f"{number} 1 0:{number} / {target} rw - {kind} {kind} rw{words}\n"

    own = (
        line(31, "/sys/fs/cgroup/memory", "cgroup", ",memory"),
        line(32, "/sys/fs/cgroup/unified", "cgroup2", ""),
    )
    chroot = (
        line(41, "/srv/chroot/sys/fs/cgroup/memory", "cgroup", ",memory"),
        line(42, "/srv/chroot/sys/fs/cgroup", "cgroup2", ""),
    )
    table = tmp_path / "mountinfo"
    for lines in ((*own, *chroot), (*chroot, *own)):
        table.write_text("".join(lines))
        found = read_hierarchy(table)
        assert Path("/sys/fs/cgroup/memory") == found.v1["memory"]
        assert Path("/sys/fs/cgroup/unified") == found.v2
