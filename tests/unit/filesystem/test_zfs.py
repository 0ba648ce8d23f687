from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.filesystem_site import site_on
from tests.support.tools.scripted_commands import ScriptedCommands, completed

from bedplate.errors import CommandFailed, DeviceInUse, OutputNotUnderstood, PlanError, RequirementMissing
from bedplate.filesystem import zfs
from bedplate.filesystem.zfs import Zfs, parse_properties, parse_version
from bedplate.host import zpool
from bedplate.host.command import Completed
from bedplate.host.mount import MountEntry
from bedplate.host.zpool import export_pool, imported_pools, parse_status, pool_name, release_pool
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def golden(repository: Path) -> Path:
    return repository / "tests/golden/zfs"


def test_the_tools_and_the_modules_say_their_versions(golden: Path) -> None:
    both = "2.3.2-2~bpo12+2"
    assert parse_version((golden / "zfs-version.txt").read_text()) == {"zfs": both, "zfs-kmod": both}


def test_without_modules_the_tools_still_say_theirs() -> None:
    said = "zfs-2.3.2-2~bpo12+2\nzfs_version_kernel() failed: No such file or directory\n"
    assert parse_version(said) == {"zfs": "2.3.2-2~bpo12+2"}


@pytest.mark.parametrize("said", ["", "zfs-kmod-2.3.2\n", "The ZFS modules cannot be auto-loaded.\n"])
def test_a_version_that_is_none_is_not_guessed(said: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        parse_version(said)


@pytest.mark.parametrize(
    ("name", "logs", "clean"),
    [
        ("plain", (), False),  # no scrub has run: nothing is known
        ("slog", ("/dev/vdb1",), False),
        ("checked-plain", (), True),
        ("checked-slog", ("/dev/vdb1",), True),
        ("damaged", (), False),
    ],
)
def test_a_pool_is_clean_only_after_a_scrub_that_found_nothing(
    golden: Path, name: str, logs: tuple[str, ...], clean: bool
) -> None:
    status = parse_status((golden / f"zpool-status-{name}.txt").read_text())
    assert (status.devices, status.logs, status.is_clean) == (("/dev/vda1",), logs, clean)


@pytest.mark.parametrize(
    ("scan", "errors", "mended"),
    [
        ("scrub repaired 128K in 00:00:01 with 0 errors on Thu", "No known data errors", True),
        ("scrub repaired 0B in 00:00:01 with 0 errors on Thu", "No known data errors", True),
        ("scrub repaired 48K in 00:00:01 with 1 errors on Thu", "No known data errors", False),
        ("scrub repaired 48K in 00:00:01 with 0 errors on Thu", "1 data errors, use '-v' for a list", False),
        ("scrub in progress since Thu", "No known data errors", False),
    ],
)
def test_a_scrub_has_mended_a_pool_where_it_left_no_error(
    golden: Path, scan: str, errors: str, mended: bool
) -> None:
    rotten = parse_status((golden / "zpool-status-rotten.txt").read_text())
    found = replace(rotten, scan=scan, errors=errors)
    assert (False, mended) == (found.is_clean, found.is_mended)
    assert not parse_status((golden / "zpool-status-checked-plain.txt").read_text()).is_mended


def test_what_is_damaged_is_counted(golden: Path) -> None:
    status = parse_status((golden / "zpool-status-damaged.txt").read_text())
    assert status.counted == 40
    assert status.errors.startswith("10 data errors")
    assert status.scan.startswith("scrub repaired 48K")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", ()),
        ("checked-slog", ()),
        (
            "rotten",
            (
                "zpool status: /dev/vda1: 0 read, 0 write, 2 checksum errors",
                "zpool status: errors: 1 data errors, use '-v' for a list",
            ),
        ),
    ],
)
def test_what_a_pool_counts_of_errors_is_what_it_complains_of(
    golden: Path, name: str, said: tuple[str, ...]
) -> None:
    assert said == parse_status((golden / f"zpool-status-{name}.txt").read_text()).complaints


def test_a_mounted_pool_is_asked_for_its_errors_by_the_name_that_it_has_in_memory(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotten = (golden / "zpool-status-rotten.txt").read_text()
    commands = ScriptedCommands(answers={"zpool": lambda argv, _: completed(argv, rotten)})
    site = site_on(FilesystemLevels("zfs"), "/dev/loop7", commands)
    entry = SimpleNamespace(source="bedplate-loop7")
    monkeypatch.setattr(zfs, "mount_entry", lambda _: entry)
    assert 2 == len(Zfs().complaints(site))
    assert [("zpool", "status", "-P", "-p", "bedplate-loop7")] == commands.record


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("No known data errors", "1 data errors, use '-v' for a list"),
        ("with 0 errors", "with 1 errors"),
        ("scrub repaired 0B", "scrub repaired 4K"),
        ("state: ONLINE", "state: DEGRADED"),
        ("/dev/vda1   ONLINE       0     0     0", "/dev/vda1   ONLINE       0     0     1"),
        ("scan: scrub repaired 0B in", "scan: scrub in progress since"),
    ],
)
def test_each_sign_of_damage_is_enough(golden: Path, old: str, new: str) -> None:
    text = (golden / "zpool-status-checked-plain.txt").read_text()
    assert parse_status(text).is_clean
    assert old in text
    assert not parse_status(text.replace(old, new)).is_clean


@pytest.mark.parametrize("text", ["", "no pools available\n", "  pool: x\n state: ONLINE\nerrors: none\n"])
def test_a_status_that_is_none_is_not_guessed(text: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        parse_status(text)


def test_properties_are_pairs(golden: Path) -> None:
    dataset = parse_properties((golden / "zfs-get.txt").read_text())
    pool = parse_properties((golden / "zpool-get.txt").read_text())
    assert (dataset["recordsize"], dataset["compression"], dataset["mountpoint"]) == (
        "131072",
        "on",
        "legacy",
    )
    assert (pool["ashift"], pool["autotrim"], pool["cachefile"]) == ("12", "off", "none")


@pytest.mark.parametrize("text", ["", "recordsize 131072\n", "a\tb\tc\n"])
def test_properties_that_are_none_are_not_guessed(text: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        parse_properties(text)


@pytest.mark.parametrize(
    ("word", "matches"),
    [
        ("-o ashift=12", True),
        ("-o ashift=9", False),
        ("-O atime=on", True),
        ("-O atime=off", False),
        ("-O xattr=sa", True),
        ("-O xattr=dir", False),
        ("-O primarycache=all", True),
        ("-O primarycache=metadata", False),
        ("-o feature@async_destroy=enabled", True),
        ("-o feature@spacemap_histogram=enabled", True),  # active: in use already
        ("-o feature@spacemap_histogram=disabled", False),
        ("-o feature@no_such=enabled", False),
        ("-O special_small_blocks=0", True),
        ("-O quota=1G", False),
    ],
)
def test_asked_properties_against_real_ones(golden: Path, word: str, matches: bool) -> None:
    dataset = parse_properties((golden / "zfs-get.txt").read_text())
    pool = parse_properties((golden / "zpool-get.txt").read_text())
    shown = {**zfs.prefix_names("dataset", dataset), **zfs.prefix_names("pool", pool)}
    found, *_ = Zfs().superblock_comparisons(FilesystemLevels("zfs", mkfs_options=(word,)), shown)
    assert found.matches is matches


@dataclass
class Machine:
    """Pools and partitions of a machine that only remembers them."""

    pools: set[str] = field(default_factory=set)
    partitions: set[str] = field(default_factory=set)
    refuse: str = ""
    busy: int = 0
    # The kernel's own list, a folder for each pool; None where it has none.
    kstats: Path | None = None

    def zpool(self, argv: tuple[str, ...], directory: Path | None) -> Completed:
        done = self._zpool(argv, directory)
        if self.kstats is not None:
            for folder in self.kstats.iterdir():
                folder.rmdir()
            for name in self.pools:
                (self.kstats / name).mkdir()
        return done

    def _zpool(self, argv: tuple[str, ...], _: Path | None) -> Completed:
        verb = argv[1]
        if verb == self.refuse:
            return Completed(argv, 1, "", f"cannot {verb}: no", 0.0)
        if verb == "list":
            return completed(argv, "".join(f"{name}\t-\n" for name in sorted(self.pools)))
        if verb == "create":
            self.pools.add(argv[argv.index("-t") + 1])
        elif verb == "import":
            self.pools.add(argv[-1])
        elif verb == "status":
            rows = "".join(f"\t  {node}1 ONLINE 0 0 0\n" for node in sorted(self.partitions))
            text = (
                f"  pool: x\n state: ONLINE\n  scan: scrub repaired 0B in 0 with 0 errors on x\n"
                f"config:\n\n\tNAME STATE READ WRITE CKSUM\n{rows}\nerrors: No known data errors\n"
            )
            return completed(argv, text)
        elif verb in ("export", "destroy"):
            if self.busy:
                self.busy -= 1
                return Completed(argv, 1, "", "cannot export 'x': pool is busy", 0.0)
            self.pools.discard(argv[-1])
        return completed(argv)

    def add(self, path: str) -> str:
        self.partitions.add(path)
        return f"{path}1"


@dataclass
class EnvironmentCommands(ScriptedCommands):
    """Remembers what the last start of each verb found in its environment besides."""

    environments: dict[str, object] = field(default_factory=dict)

    def run(self, argv: Sequence[str], *, extra_environment: object = None, **how: Any) -> Completed:
        if extra_environment is not None:
            self.environments[argv[1]] = extra_environment
        return super().run(argv, **how)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    found = Machine()
    for module in (zfs, zpool):
        monkeypatch.setattr(module, "drop_partition_over", found.partitions.discard)
        monkeypatch.setattr(module, "disk_under", lambda node: node[:-1])
        monkeypatch.setattr(module, "MODULE", tmp_path)
    monkeypatch.setattr(zpool, "KSTATS", tmp_path / "none")
    monkeypatch.setattr(zfs, "partition_over", found.add)
    monkeypatch.setattr(zpool.imported_pools, "__kwdefaults__", {"module": tmp_path})
    return found


@pytest.fixture
def commands(machine: Machine) -> ScriptedCommands:
    return ScriptedCommands(answers={"zpool": machine.zpool})


def said(commands: ScriptedCommands, verb: str) -> tuple[str, ...]:
    (found,) = (argv for argv in commands.record if argv[:2] == ("zpool", verb))
    return found


def test_a_pool_is_made_of_what_was_asked_and_left_to_nobody(
    machine: Machine, commands: ScriptedCommands
) -> None:
    levels = FilesystemLevels(
        "zfs",
        8192,
        mkfs_options=("-O atime=off",),
        journal="external",
        features=Levels(compression="lz4", logbias="throughput", sync="always"),
    )
    Zfs().mkfs(site_on(levels, "/dev/vda", commands, journal="/dev/vdb"))
    assert said(commands, "create") == (
        *("zpool", "create", "-f", "-t", "bedplate-vda"),
        *("-o", "cachefile=none", "-o", "ashift=12", "-O", "mountpoint=legacy", "-O", "recordsize=8192"),
        *("-O", "compression=lz4", "-O", "logbias=throughput", "-O", "sync=always", "-O", "atime=off"),
        *("bedplate", "/dev/vda1", "log", "/dev/vdb1"),
    )
    assert (machine.pools, machine.partitions) == (set(), set())


def test_an_asked_sector_size_stands_alone(machine: Machine, commands: ScriptedCommands) -> None:
    Zfs().mkfs(site_on(FilesystemLevels("zfs", mkfs_options=("-o ashift=9",)), "/dev/vda", commands))
    assert [word for word in said(commands, "create") if word.startswith("ashift")] == ["ashift=9"]
    assert not machine.pools


def test_what_a_killed_visit_left_is_destroyed_first(machine: Machine, commands: ScriptedCommands) -> None:
    machine.pools |= {"bedplate-vda", "tank"}
    Zfs().mkfs(site_on(FilesystemLevels("zfs"), "/dev/vda", commands))
    assert said(commands, "destroy")[-1] == "bedplate-vda"
    assert machine.pools == {"tank"}


def test_a_refused_pool_leaves_no_partition(machine: Machine, commands: ScriptedCommands) -> None:
    machine.refuse = "create"
    levels = FilesystemLevels("zfs", journal="external")
    with pytest.raises(CommandFailed):
        Zfs().mkfs(site_on(levels, "/dev/vda", commands, journal="/dev/vdb"))
    assert (machine.pools, machine.partitions) == (set(), set())


@pytest.mark.parametrize("refuse", ["import", "scrub"])
def test_a_check_that_fails_leaves_no_pool_and_no_partition(
    machine: Machine, commands: ScriptedCommands, refuse: str
) -> None:
    machine.refuse = refuse
    levels = FilesystemLevels("zfs", journal="external")
    with pytest.raises(CommandFailed):
        Zfs().check(site_on(levels, "/dev/vda", commands, journal="/dev/vdb"))
    assert (machine.pools, machine.partitions) == (set(), set())


def test_a_check_scrubs_and_leaves_nothing_imported(machine: Machine, commands: ScriptedCommands) -> None:
    found = Zfs().check(site_on(FilesystemLevels("zfs"), "/dev/vda", commands))
    assert found.clean
    assert said(commands, "import") == (
        *(
            "zpool",
            "import",
            "-N",
            "-t",
            "-o",
            "cachefile=none",
            "-d",
            "/dev/vda1",
            "bedplate",
            "bedplate-vda",
        ),
    )
    assert (machine.pools, machine.partitions) == (set(), set())


def verbs(commands: ScriptedCommands) -> list[str]:
    return [argv[1] for argv in commands.record if argv[0] == "zpool"]


def test_a_check_starts_no_program_to_learn_what_the_kernel_and_the_caller_know(
    machine: Machine, commands: ScriptedCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.kstats = tmp_path / "kstats"
    machine.kstats.mkdir()
    monkeypatch.setattr(zpool, "KSTATS", machine.kstats)
    levels = FilesystemLevels("zfs", journal="external")
    assert Zfs().check(site_on(levels, "/dev/vda", commands, journal="/dev/vdb")).clean
    assert ["import", "scrub", "status", "export"] == verbs(commands)
    assert (machine.pools, machine.partitions) == (set(), set())


@pytest.mark.parametrize("own", [True, False])
def test_a_mounted_pool_is_exported_and_one_of_another_device_is_asked_for_its_disks(
    machine: Machine,
    commands: ScriptedCommands,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: bool,
) -> None:
    machine.kstats = tmp_path / "kstats"
    name = "bedplate-vda" if own else "bedplate-vdz"
    (machine.kstats / name).mkdir(parents=True)
    machine.pools.add(name)
    machine.partitions.add("/dev/vda" if own else "/dev/vdz")
    entry = MountEntry(2, 1, "0:50", "/", "/mnt", "zfs", name, (), ())
    monkeypatch.setattr(zpool, "KSTATS", machine.kstats)
    monkeypatch.setattr(zfs, "find_mount", lambda _: entry)
    monkeypatch.setattr("bedplate.filesystem.adapter.unmount", lambda *_, **__: True)
    assert Zfs().unmount(site_on(FilesystemLevels("zfs"), "/dev/vda", commands))
    assert (["export"] if own else ["status", "export"]) == verbs(commands)
    assert (machine.pools, machine.partitions) == (set(), set())


@pytest.mark.parametrize("act", ["mkfs", "check"])
def test_the_tools_do_not_wait_for_udev(machine: Machine, act: str) -> None:
    seen = EnvironmentCommands(answers={"zpool": machine.zpool})
    getattr(Zfs(), act)(site_on(FilesystemLevels("zfs"), "/dev/vda", seen))
    (found,) = (seen.environments[verb] for verb in ("create", "import") if verb in seen.environments)
    assert {"ZFS_VDEV_DEVID_OPT_OUT": "YES", "ZPOOL_IMPORT_UDEV_TIMEOUT_MS": "0"} == found


def test_unsafe_levels_are_refused_before_anything_is_touched(commands: ScriptedCommands) -> None:
    with pytest.raises(PlanError, match="as a key"):
        Zfs().mkfs(site_on(FilesystemLevels("zfs", mkfs_options=("-O sync=disabled",)), "/dev/vda", commands))
    with pytest.raises(PlanError, match="journal device"):
        Zfs().mkfs(site_on(FilesystemLevels("zfs", journal="external"), "/dev/vda", commands))
    assert commands.record == []


def test_without_the_module_the_way_out_is_named(
    commands: ScriptedCommands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(zfs, "MODULE", tmp_path / "none")
    with pytest.raises(RequirementMissing, match="bedplate doctor --install --zfs"):
        Zfs().mkfs(site_on(FilesystemLevels("zfs"), "/dev/vda", commands))


def test_no_tool_is_started_where_zfs_is_not_loaded(tmp_path: Path) -> None:
    assert imported_pools(ScriptedCommands(), module=tmp_path / "none") == {}


def test_pools_are_listed_with_their_roots(golden: Path, tmp_path: Path) -> None:
    text = (golden / "zpool-list.txt").read_text() + "tank\t-\n"
    commands = ScriptedCommands(answers={"zpool": lambda argv, _: completed(argv, text)})
    assert imported_pools(commands, module=tmp_path) == {"bedplate-vda": "/mnt/zfs-target", "tank": "-"}


def test_a_pool_is_named_after_the_device_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "stable").symlink_to("/dev/vdz")
    assert pool_name(str(tmp_path / "stable")) == "bedplate-vdz"


def test_a_pool_that_is_busy_for_a_moment_is_tried_again(
    machine: Machine, commands: ScriptedCommands
) -> None:
    machine.pools.add("bedplate-vda")
    machine.busy = 2
    export_pool("bedplate-vda", commands, deadline_s=10)
    assert machine.pools == set()


def test_a_pool_that_stays_busy_is_named(machine: Machine, commands: ScriptedCommands) -> None:
    machine.busy = 100
    with pytest.raises(DeviceInUse, match=r"bedplate-vda.*pool is busy"):
        export_pool("bedplate-vda", commands, deadline_s=0)


def test_only_pools_of_ones_own_are_released(machine: Machine, commands: ScriptedCommands) -> None:
    machine.pools.add("tank")
    assert not release_pool("bedplate-vda", commands)
    assert machine.pools == {"tank"}


@pytest.mark.parametrize(
    ("state", "orders"), [("SUSPENDED\n", ["repaired", "clear"]), ("ONLINE\n", []), (None, [])]
)
def test_a_suspended_pool_goes_on_once_the_disk_is_repaired(
    commands: ScriptedCommands,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str | None,
    orders: list[str],
) -> None:
    kstats = tmp_path / "kstats"
    monkeypatch.setattr(zpool, "KSTATS", kstats)
    if state is not None:
        (kstats / "bedplate-vda").mkdir(parents=True)
        (kstats / "bedplate-vda" / "state").write_text(state)
    found: list[str] = []

    def clear(argv: tuple[str, ...], _: Path | None) -> Completed:
        found.append(argv[1])
        return completed(argv)

    commands.answers["zpool"] = clear
    resumed = Zfs().resume(
        site_on(FilesystemLevels("zfs"), "/dev/vda", commands), lambda: found.append("repaired")
    )
    assert (orders, bool(orders)) == (found, resumed)
