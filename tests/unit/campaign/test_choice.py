"""Who lives a plan's visits, under which kernel, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bedplate.campaign.planning import ExecutorChoice, choose, recorded_choice, runs_here
from bedplate.model.cell import FilesystemLevels, KernelLevels
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan
from bedplate.model.reason import sentences
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.rules import LOCAL, QEMU, XFS_V4

HOST = Machine(
    hostname="h",
    distribution="Debian 12",
    kernel_release="6.18.44",
    architecture="x86_64",
    cpu_model="cpu",
    cpu_count=2,
    memory_bytes=8 * 2**30,
    page_size_bytes=4096,
    filesystems=("ext4", "xfs"),
    cgroup_version=1,
    pressure_available=True,
    virtualisation=None,
    boot_id="b",
    is_root=True,
)
PLAN = """
title = "t"
executor = "EXECUTOR"
[scratch_device]
image_size = "1 GB"
[machine]
MACHINE
[[filesystem]]
FILESYSTEM
[[workload]]
type = "pgbench"
scale = SCALE
[[workload.run]]
script = "read-only"
duration = 1
"""


def a_plan(
    executor: str = "auto", *, filesystem: str = 'type = "ext4"', machine: str = "", scale: str = "1"
) -> Plan:
    text = PLAN.replace("EXECUTOR", executor).replace("FILESYSTEM", filesystem)
    text = text.replace("MACHINE", machine).replace("SCALE", scale)
    return load_plan(text, source="p.toml", directory=Path("/nonexistent"))


def types(*names: str) -> str:
    return f"type = {{ vary = {list(names)} }}"


class Kernels:
    """A cache with these kernels, the newest first; `own` is the executor's."""

    def __init__(self, own: str | None, **types_of: tuple[str, ...]) -> None:
        releases = {name.replace("_", ".").removeprefix("k"): found for name, found in types_of.items()}
        self.known = {
            release: replace(HOST, kernel_release=release, filesystems=found, cgroup_version=2)
            for release, found in releases.items()
        }
        self.own = own

    def machine(self, asked: str | None) -> Machine | None:
        if asked is None:
            return None if self.own is None else self.known[self.own]
        return next((self.known[name] for name in self.known if KernelLevels(asked).takes(name)), None)

    def releases(self) -> tuple[str, ...]:
        return tuple(self.known)


NOTHING = Kernels(None)
USUAL = Kernels(
    "6.12.9",
    k7_2_1=("ext4", "xfs", "ntfs"),
    k6_12_9=("ext4", "xfs", "jfs", "reiserfs", "ntfs3"),
    k6_1_0=("ext4", "xfs", "jfs", "reiserfs"),
)


def said(choice: ExecutorChoice) -> str:
    return "\n".join(map(str, choice.reasons))


@pytest.mark.parametrize(
    ("executor", "why"), [(LOCAL, "nothing else is asked for"), (QEMU, "the plan or --executor asks for it")]
)
def test_a_plan_that_names_its_executor_gets_it(executor: str, why: str) -> None:
    found = choose(a_plan(executor, filesystem=types("ext4", "jfs")), HOST, kernels=USUAL)
    assert executor == found.executor
    assert f"executor {executor}: {why}" == str(found.reasons[0])


def test_auto_is_local_for_root_where_the_kernel_has_all() -> None:
    found = choose(a_plan(filesystem=types("ext3", "ext4", "xfs")), HOST, kernels=NOTHING)
    assert LOCAL == found.executor
    (reason,) = found.reasons
    assert "executor local: this is root, and kernel 6.18.44 has every file system of the plan" == str(reason)


def test_auto_goes_into_a_guest_without_root() -> None:
    found = choose(a_plan(), replace(HOST, is_root=False), kernels=USUAL)
    assert QEMU == found.executor
    assert "not root" in str(found.reasons[0])


def test_auto_goes_into_a_guest_for_what_the_kernel_lacks_and_names_it() -> None:
    found = choose(a_plan(filesystem=types("ext4", "jfs", "reiserfs")), HOST, kernels=USUAL)
    assert QEMU == found.executor
    assert "the running kernel 6.18.44 has no jfs, reiserfs" in str(found.reasons[0])
    assert "kernel 6.12.9: it has every file system of the plan" == str(found.reasons[1])
    assert {} == found.platform.chosen


@pytest.mark.parametrize(
    ("asked", "expected"), [("6.18", LOCAL), ("6.18.44", LOCAL), ("6.1", QEMU), ("/usr/src/linux", QEMU)]
)
def test_auto_looks_at_the_kernel_that_the_plan_names(asked: str, expected: str) -> None:
    plan = a_plan(machine=f'kernel = "{asked}"')
    assert expected == choose(plan, HOST, kernels=USUAL).executor


def test_the_newest_kernel_that_has_all_is_taken_where_the_own_one_lacks_something() -> None:
    kernels = Kernels("6.12.9", k7_2_1=("ext4", "jfs", "nilfs2"), k6_12_9=("ext4",), k6_1_0=("jfs", "nilfs2"))
    found = choose(a_plan("qemu", filesystem=types("ext4", "jfs")), HOST, kernels=kernels)
    assert {"7.2.1"} == set(found.platform.chosen.values())
    assert {"ext4", "jfs"} == {levels.type for levels in found.platform.chosen}
    assert "kernel 7.2.1: the newest at hand that has every file system" in said(found)


def test_else_a_kernel_is_chosen_for_each_cell_and_said_so() -> None:
    kernels = Kernels("6.12.9", k7_2_1=("nilfs2",), k6_12_9=("ext4",), k6_1_0=("jfs", "nilfs2"))
    plan = a_plan("qemu", filesystem=types("ext4", "jfs", "nilfs2"))
    found = choose(plan, HOST, kernels=kernels)
    chosen = {levels.type: release for levels, release in found.platform.chosen.items()}
    assert {"jfs": "6.1.0", "nilfs2": "7.2.1"} == chosen
    assert "no kernel at hand has every file system of the plan: 6.12.9" in said(found)
    assert "kernel 6.1.0: jfs" in map(str, found.reasons)
    cells = expand(plan, HOST, platform=found.platform).cells
    under = {planned.cell.filesystem.type: planned.cell.kernel.release for planned in cells}
    assert {"ext4": None, "jfs": "6.1.0", "nilfs2": "7.2.1"} == under


def test_what_no_kernel_has_is_pruned_and_decides_nothing() -> None:
    plan = a_plan("qemu", filesystem=types("ext4", "bcachefs"))
    found = choose(plan, HOST, kernels=USUAL)
    assert {} == found.platform.chosen
    assert "no kernel at hand takes more of the plan" in said(found)
    (pruned,) = expand(plan, HOST, platform=found.platform).pruned
    assert "the guest's kernel 6.12.9 has no bcachefs" in pruned.reasons[0].sentence


def test_a_block_size_decides_like_a_type() -> None:
    kernels = Kernels("6.12.9", k6_12_9=("xfs",), k6_1_0=("xfs",))
    kernels.known["6.12.9"] = replace(kernels.known["6.12.9"], tunables={XFS_V4: "n"})
    plan = a_plan("qemu", filesystem='type = "xfs"\nblock_size = { vary = ["512 B", "4 kB"] }')
    found = choose(plan, HOST, kernels=kernels)
    assert {"6.1.0"} == set(found.platform.chosen.values())


def test_a_kernel_that_is_not_there_yet_prunes_nothing_and_is_said_to_be_unknown() -> None:
    plan = a_plan("qemu", filesystem=types("ext4", "jfs"), machine='kernel = { vary = ["6.12", "5.10"] }')
    found = choose(plan, HOST, kernels=USUAL)
    assert "kernel 5.10: not fetched yet" in said(found)
    assert () == expand(plan, HOST, platform=found.platform).pruned
    none_there = choose(a_plan("qemu", filesystem=types("ext4", "jfs")), HOST, kernels=NOTHING)
    assert "kernel of guests: not fetched yet" in said(none_there)
    assert () == expand(plan, HOST, platform=none_there.platform).pruned


def test_each_kernel_prunes_what_it_lacks() -> None:
    plan = a_plan("qemu", filesystem=types("ext4", "ntfs3"), machine='kernel = { vary = ["6.1", "6.12"] }')
    expansion = expand(plan, HOST, platform=choose(plan, HOST, kernels=USUAL).platform)
    (pruned,) = expansion.pruned
    assert ("ntfs3", "6.1") == (pruned.cell.filesystem.type, pruned.cell.kernel.release)


def test_a_guest_needs_no_cgroup_of_the_host_and_less_memory_than_it_has() -> None:
    host = replace(HOST, cgroup_version=None)
    plan = a_plan("qemu", machine='memory = { vary = ["2 GB", "8 GB"] }')
    expansion = expand(plan, host, platform=choose(plan, host, kernels=USUAL).platform)
    (pruned,) = expansion.pruned
    assert ("memory = 8 GiB leaves nothing to a machine with 8 GiB",) == sentences(pruned.reasons)


def test_a_scale_by_memory_follows_the_guest_and_not_the_host() -> None:
    plan = a_plan("qemu", scale='"2x memory"')
    (planned,) = expand(plan, HOST, platform=choose(plan, HOST, kernels=USUAL).platform).cells
    explicit = a_plan("qemu", scale='"2x memory"', machine='memory = "2 GB"')
    (same,) = expand(explicit, HOST, platform=choose(explicit, HOST, kernels=USUAL).platform).cells
    assert same.loads == planned.loads


def test_a_study_keeps_its_executor_and_its_kernels() -> None:
    plan = a_plan("auto", filesystem=types("ext4", "jfs", "nilfs2"))
    kernels = Kernels("6.12.9", k7_2_1=("nilfs2",), k6_12_9=("ext4",), k6_1_0=("jfs", "nilfs2"))
    begun = choose(plan, HOST, kernels=kernels)
    cells = [planned.cell for planned in expand(plan, HOST, platform=begun.platform).cells]
    # Meanwhile a kernel came that has them all, and the machine's own has as well.
    now = Kernels("6.12.9", k8_0_0=("ext4", "jfs", "nilfs2", "xfs"), k6_12_9=("ext4",), k6_1_0=("jfs",))
    host = replace(HOST, filesystems=("ext4", "jfs", "nilfs2", "xfs"))
    larger = a_plan("auto", filesystem=types("ext4", "jfs", "nilfs2", "xfs"))
    kept = recorded_choice(larger, host, executor=begun.executor, cells=cells, kernels=now)
    assert QEMU == kept.executor
    chosen = {levels.type: release for levels, release in kept.platform.chosen.items()}
    assert {"jfs": "6.1.0", "nilfs2": "7.2.1", "xfs": "8.0.0"} == chosen
    assert "executor qemu: the study was begun with it" == str(kept.reasons[0])


def test_a_local_study_stays_local() -> None:
    plan = a_plan("auto")
    cells = [planned.cell for planned in expand(plan, HOST).cells]
    not_root = replace(HOST, is_root=False)
    assert LOCAL == recorded_choice(plan, not_root, executor=LOCAL, cells=cells, kernels=USUAL).executor


def test_the_kernel_that_runs_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    class Names:
        release = "6.12.95+deb12-amd64"

    monkeypatch.setattr("os.uname", Names)
    for asked, runs in ((None, True), ("6.12", True), ("6.12.95+deb12-amd64", True), ("6.1", False)):
        assert runs is runs_here(KernelLevels(asked))


@pytest.mark.parametrize(
    ("asked", "release", "takes"),
    [
        ("6.1", "6.1", True),
        ("6.1", "6.1.0-56-amd64", True),
        ("6.1", "6.1-rc3", True),
        ("6.1", "6.12.95", False),
        ("6.12.9", "6.12.95", False),
        ("6.12.95+deb12", "6.12.95+deb12-amd64", True),
        ("6.12.95", "6.12", False),
        ("/usr/src/linux", "6.12", False),
    ],
)
def test_a_version_takes_its_releases_and_no_others(asked: str, release: str, takes: bool) -> None:
    assert takes is KernelLevels(asked).takes(release)


def test_levels_of_the_plan_are_what_is_chosen_for() -> None:
    kernels = Kernels("6.12.9", k6_12_9=("ext4",), k6_1_0=("ext4", "jfs"))
    found = choose(a_plan("qemu", filesystem=types("ext4", "jfs")), HOST, kernels=kernels)
    assert {FilesystemLevels("ext4"): "6.1.0", FilesystemLevels("jfs"): "6.1.0"} == found.platform.chosen
