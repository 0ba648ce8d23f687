"""What a server runs on: engines by their files, settings by the server's own order, classes by the rules of a visit."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tools.command_line import call_here
from tests.unit.plan.conftest import MACHINE

from bedplate.campaign import questions
from bedplate.campaign.questions import Inspected, inspect, own_question, servers
from bedplate.cli.read import say_inspected
from bedplate.errors import PlanError
from bedplate.filesystem import standing
from bedplate.filesystem.standing import MountedPlace, standing_of
from bedplate.host.block_tree import (
    BlockTree,
    CacheKind,
    DeclaredCache,
    StackedDevice,
    device_stack,
    gets_flushes,
    worst_cache,
)
from bedplate.host.mount import MountEntry
from bedplate.plan.load import load_plan

Place = Callable[..., Path]


@pytest.fixture
def cluster(tmp_path: Path) -> Place:
    """A directory as initdb leaves it, as far as it is looked at; files by name."""

    def make(name: str = "main", **files: str) -> Path:
        place = tmp_path / name
        (place / "pg_tblspc").mkdir(parents=True)
        (place / "pg_wal").mkdir()
        texts = {"PG_VERSION": "17\n", "postgresql.conf": "", **files}
        for each, text in texts.items():
            (place / each).parent.mkdir(exist_ok=True)
            (place / each).write_text(text)
        return place

    return make


def disk(kind: CacheKind, write_cache: str = "write back") -> StackedDevice:
    return StackedDevice("sda", 0, "disk", write_cache, 2**40, cache=DeclaredCache(kind, "it says so"))


def stands(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    """Everything stands on ext4 on a disk with a volatile cache, or what is changed of that."""
    plain = MountedPlace(
        "x", "/srv", "ext4", ("rw",), ("rw",), 4096, True, "internal", "ordered", (disk(CacheKind.VOLATILE),)
    )
    monkeypatch.setattr(questions, "standing_of", lambda *_, **__: replace(plain, **changes))  # type: ignore[arg-type]


def settings_of(place: Path) -> dict[str, str]:
    found = inspect(place).directory
    assert found is not None
    return dict(found.settings)


def test_settings_come_in_the_servers_order_through_includes_and_the_last_start(cluster: Place) -> None:
    place = cluster(
        **{
            "postgresql.conf": "fsync = no\nsynchronous_commit = 0\ninclude_dir 'conf.d'\ninclude_if_exists 'absent'\n",
            "conf.d/a.conf": "fsync = off\nfull_page_writes=off # torn\n",
            "conf.d/b.conf": "FSYNC true\n",
            "conf.d/.c.conf": "fsync = off\n",
            "postgresql.auto.conf": "synchronous_commit = 'local'\n",
            "postmaster.opts": '/usr/lib/postgres "-D" "/srv/main" "-c" "wal_sync_method=open_sync" "--full-page-writes=on"\n',
        }
    )
    expected = {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "local",
        "wal_sync_method": "open_sync",
    }
    assert expected == settings_of(place)
    found = inspect(place).directory
    assert found is not None
    assert ("postgresql", "17", True) == (found.engine, found.version, found.knows_settings)
    assert str(place / "conf.d/b.conf") == found.said_by["fsync"]


@pytest.mark.parametrize("words", ["-F", "-c fsync=off", "-cfsync=off", "--fsync=off"])
def test_what_the_last_start_was_given_wins(cluster: Place, words: str) -> None:
    place = cluster(**{"postgresql.auto.conf": "fsync = on\n", "postmaster.opts": f"postgres {words}\n"})
    assert "off" == settings_of(place)["fsync"]


@pytest.mark.parametrize(
    "text",
    [
        "include 'postgresql.conf'\n",
        "include '/nowhere.conf'\n",
        "include_dir '/nowhere'\n",
        "include '/dev/zero'\n",
    ],
)
def test_what_cannot_be_followed_is_said_and_leaves_the_class_unknown(cluster: Place, text: str) -> None:
    found = inspect(cluster(**{"postgresql.conf": text}))
    assert found.unknown
    assert "unknown" == found.durability.volatile_cache
    assert found.directory is not None
    assert not found.directory.knows_settings


def test_a_pipe_in_place_of_a_file_holds_nobody_up(cluster: Place) -> None:
    place = cluster()
    (place / "postgresql.conf").unlink()
    os.mkfifo(place / "postgresql.conf")
    assert any("it is no file" in sentence for sentence in inspect(place).unknown)


def test_another_engine_is_recognised_and_how_it_is_opened_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(bytes(16) + struct.pack("=II", 0xBEEFC0DE, 1) + bytes(4096))
    for place in (tmp_path, tmp_path / "data.mdb"):
        found = inspect(place)
        assert found.directory is not None
        assert ("lmdb", "unknown") == (found.directory.engine, found.durability.volatile_cache)
    (tmp_path / "data.mdb").write_bytes(b"no environment")
    assert inspect(tmp_path).directory is None


@pytest.mark.parametrize(
    ("changes", "conf", "classes"),
    [
        ({}, "", ("durable", "durable", "durable")),
        ({}, "full_page_writes = off\n", ("unsafe", "unknown", "unsafe")),
        ({}, "synchronous_commit = off\n", ("bounded loss", "bounded loss", "bounded loss")),
        ({"flushes": False}, "", ("unsafe", "durable", "unsafe")),
        ({"layers": (disk(CacheKind.PROTECTED, "write through"),)}, "", ("unsafe", "durable", "durable")),
        ({"layers": (disk(CacheKind.UNKNOWN),), "flushes": False}, "", ("unsafe", "durable", None)),
        ({"type": "overlay"}, "", ("unknown", "unknown", "unknown")),
        ({"type": "tmpfs"}, "", ("unknown", "unknown", "unsafe")),
        ({"journal": "external"}, "", ("unknown", "unknown", "unknown")),
        ({"type": "jfs", "flushes": False}, "fsync = off\n", ("unsafe", "unsafe", "unsafe")),
    ],
)
def test_the_class_is_that_of_a_visit_with_such_flushes(
    cluster: Place,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, object],
    conf: str,
    classes: tuple[object, ...],
) -> None:
    stands(monkeypatch, **changes)
    found = inspect(cluster(**{"postgresql.conf": conf}))
    assert classes == (found.durability.volatile_cache, found.durability.protected_cache, found.fitting)


def plan_text(found: Inspected, **how: bool) -> str:
    question = own_question(replace(MACHINE, filesystems=("ext4", "xfs", "btrfs", "jfs")), found, **how)
    assert question is not None
    plan = load_plan(question.text, source="own", directory=Path("/nowhere"))
    assert () == plan.devices_erased
    return question.text


def test_its_plan_has_what_is_mounted_and_set_beside_what_is_usual(
    cluster: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(
        monkeypatch,
        shown=("rw", "noatime", "commit=30", "errors=remount-ro"),
        data="writeback",
        flushes=False,
    )
    found = inspect(cluster(**{"postgresql.conf": "full_page_writes = off\n"}))
    for beside in (True, False):
        text = plan_text(found, compare=beside)
        for line in (
            'mount_options = ["noatime", "commit=30"]',
            "barrier = false",
            'data = "writeback"',
            'version = "17"',
            'full_page_writes = "off"',
        ):
            assert f"\n{line}\n" in text
        assert beside == ('vary = ["ext4", "xfs", "btrfs"]' in text)
        assert beside != ('type = "power_cut"' in text)


def test_what_is_as_usual_stands_in_its_plan_once(cluster: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    stands(monkeypatch)
    assert 2 == plan_text(inspect(cluster()), compare=True).count("[[filesystem]]")
    old = plan_text(inspect(cluster("old", PG_VERSION="13\n")), compare=True)
    assert "# Version 13 cannot be built here" in old
    odd = {"PG_VERSION": "\x1b[31m", "postgresql.conf": "wal_sync_method = 'x\x1b]'\n"}
    assert "\x1b" not in plan_text(inspect(cluster("odd", **odd)), compare=True)
    stands(monkeypatch, type="overlay")
    assert own_question(MACHINE, inspect(cluster("other"))) is None


def test_the_plan_of_another_server_names_its_engine_and_what_measures_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, options = tmp_path / "mysql", tmp_path / "my.cnf"
    place.mkdir()
    (place / "aria_log_control").write_bytes(b"")
    (place / "ibdata1").write_bytes(bytes(24) + (8).to_bytes(2) + bytes(28) + (0x13).to_bytes(4))
    stands(monkeypatch)
    monkeypatch.setattr("bedplate.engines.mariadb.prepare.USUAL_FILES", (options,))
    for settings, classes in (
        ("", ("durable", "durable")),
        ("skip-innodb-doublewrite", ("unsafe", "unknown")),
        ("innodb_flush_log_at_trx_commit=2", ("bounded loss", "bounded loss")),
    ):
        options.write_text(f"[mysqld]\ndatadir={place}\n{settings}\n")
        found = inspect(place)
        assert classes == (found.durability.volatile_cache, found.durability.protected_cache)
    for beside, kind in ((True, "sysbench"), (False, "power_cut")):
        text = plan_text(found, compare=beside)
        assert '\n[mariadb]\ninnodb_page_size = "4096"\n' in text
        assert '\n[mariadb.settings]\ninnodb_flush_log_at_trx_commit = "2"\n' in text
        assert f'type = "{kind}"' in text
        assert 'engine = "mariadb"\n' in text
    options.write_text(
        f"[mysqld]\ndatadir={place}\ninnodb-buffer-pool-size = 2G\ninnodb_data_home_dir=/x\nmax_connections=9\n[client]\ninnodb_x=1\n"
    )
    text = plan_text(inspect(place), compare=True)
    assert '\ninnodb_buffer_pool_size = "2G"\n' in text
    assert "innodb_x" not in text
    for words in ("innodb_data_home_dir: bedplate sets", "max_connections: none of InnoDB's"):
        assert any(words in line for line in text.splitlines() if line.startswith("# Not in this plan: "))
    options.unlink()
    assert "unknown" == inspect(place).durability.volatile_cache
    with pytest.raises(PlanError, match=r"(?s)how its server is set: none runs on it.*write a plan of its"):
        plan_text(inspect(place))


def test_a_server_of_several_file_systems_is_not_called_safe_by_one_of_them(
    cluster: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(monkeypatch)
    plain = inspect(cluster())
    assert 'type = "power_cut"' in plan_text(plain)
    for change in (
        {"type": "xfs"},
        {"options": ("rw", "nobarrier")},
        {"layers": (replace(disk(CacheKind.VOLATILE), name="sdb"),)},
    ):
        beside = replace(plain.place, **change)
        spread = replace(plain, places={**plain.places, "WAL": beside})
        with pytest.raises(PlanError, match=rf"(?s)WAL is not where.*--on ext4(,{beside.type})?\Z"):
            plan_text(spread)
        assert plan_text(spread, compare=True)
    assert plan_text(replace(plain, places={**plain.places, "WAL": plain.place}))


def test_a_server_of_which_not_all_can_be_read_is_not_called_safe(
    cluster: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(monkeypatch)
    place = cluster(**{"postgresql.conf": "include '/nowhere.conf'\n"})
    with pytest.raises(
        PlanError, match=r"(?s)read: /nowhere\.conf: it is not there.*bedplate ask safe .* --on ext4"
    ):
        plan_text(inspect(place))


def test_what_no_file_of_a_cluster_says_is_said_to_be_unknown(cluster: Place) -> None:
    assert "  not known    settings of roles and databases" in call_here("doctor", cluster()).stdout
    assert () == inspect(cluster("again")).unknown


def test_servers_are_found_by_their_processes(tmp_path: Path) -> None:
    for number, comm, namespace in (
        (7, "postgres", 1),
        (8, "postgres", 1),
        (9, "bash", 1),
        (10, "mariadbd", 1),
        (30, "postgres", 2),
        (31, "postgres", 2),
    ):
        folder = tmp_path / str(number)
        (folder / "ns").mkdir(parents=True)
        (folder / "comm").write_text(f"{comm}\n")
        (folder / "cwd").symlink_to(f"/srv/{number // 10}")
        (folder / "ns/mnt").symlink_to(f"mnt:[{namespace}]")
    (tmp_path / "self").symlink_to("9")
    found, hidden = servers(tmp_path)
    assert (Path("/srv/0"), Path("/srv/1")) == found
    assert (
        "process 30 is a server in another mount namespace (a container): inspect /srv/3 there",
    ) == hidden


def sysfs(tmp_path: Path, **devices: dict[str, str]) -> BlockTree:
    for name, files in devices.items():
        for file, text in files.items():
            path = tmp_path / "class/block" / name.replace("_", "-") / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return BlockTree(tmp_path, tmp_path, tmp_path)


def test_a_stack_is_followed_down_to_its_disks_and_the_least_promise_counts(tmp_path: Path) -> None:
    queue = "queue/write_cache"
    tree = sysfs(
        tmp_path,
        dm_0={queue: "write back\n", "dm/uuid": "LVM-abc", "dm/name": "data", "size": "8", "slaves/md0": ""},
        md0={
            queue: "write back\n",
            "md/level": "raid1\n",
            "size": "8",
            "slaves/sda": "",
            "slaves/nvme0n1": "",
        },
        sda={
            queue: "write through\n",
            "device/scsi_disk/0/cache_type": "write back\n",
            "device/model": "OLD\n",
            "size": "8",
        },
        nvme0n1={queue: "write back\n", "size": "8"},
    )
    layers = device_stack("dm-0", tree)
    assert [(0, "LVM volume data"), (1, "array raid1"), (2, "NVMe disk"), (2, "disk")] == [
        (layer.depth, layer.kind) for layer in layers
    ]
    assert [None, None, CacheKind.VOLATILE, CacheKind.UNKNOWN] == [
        layer.cache and layer.cache.kind for layer in layers
    ]
    assert CacheKind.UNKNOWN is worst_cache(layers).kind
    assert gets_flushes(layers)
    assert [CacheKind.UNKNOWN] == [
        layer.cache.kind for layer in device_stack("nvme0n1", tree, virtualisation="KVM") if layer.cache
    ]


def test_a_btrfs_stands_on_all_its_devices_and_each_has_to_get_its_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = "queue/write_cache"
    tree = sysfs(
        tmp_path,
        sda={queue: "write through\n", "size": "8"},
        sdb={queue: "write back\n", "size": "8"},
        sdc={queue: "write back\n", "size": "8"},
    )
    for owner, names in (("one", ("sda", "sdb")), ("other", ("sdc",))):
        for name in names:
            (tmp_path / "fs/btrfs" / owner / "devices" / name).mkdir(parents=True)
    monkeypatch.setattr(BlockTree, "device_of_file", lambda *_: "sda")
    expected = {"btrfs": (["sda", "sdb"], CacheKind.VOLATILE), "ext4": (["sda"], CacheKind.PROTECTED)}
    for kind, found in expected.items():
        entry = MountEntry(1, 0, "0:40", "/", "/", kind, "/dev/sda", ("rw",), ("rw",))
        monkeypatch.setattr(standing, "read_mount_table", lambda entry=entry: [entry])
        layers = standing_of(tmp_path, tree=tree).layers
        assert found == ([layer.name for layer in layers], worst_cache(layers).kind)
        assert gets_flushes(layers) is False
    assert gets_flushes(device_stack("sdb", tree))
    assert not gets_flushes((*device_stack("sdb", tree), *device_stack("sda", tree)))


@pytest.mark.parametrize("name", ["a\x1b[31mb", "<b>", "x" * 10_000, "\u202eevil"])
def test_hostile_names_are_refused_or_shown_and_never_obeyed(tmp_path: Path, name: str) -> None:
    try:
        (tmp_path / name).mkdir()
    except (OSError, ValueError):
        with pytest.raises(PlanError, match="cannot be looked at"):
            inspect(tmp_path / name)
    done = call_here("doctor", tmp_path / name)
    assert done.returncode in (0, 2)
    assert not {"\x1b", "\u202e"} & {*done.stdout, *done.stderr}


def test_a_directory_that_is_closed_to_this_user_is_told_from_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may read everything, so it is the kernel's answer that is another here.
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    done = call_here("doctor", tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "this user may not look into it" in done.stdout
    assert "  file system  " in done.stdout
    # Where folders of tests are in memory, that alone decides.
    power_cut = "unsafe" if "the file system is memory itself" in done.stdout else "unknown"
    assert f"  power cut    {power_cut}" in done.stdout


def test_inspect_writes_its_plan_once_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(monkeypatch)
    plan = tmp_path / "own.toml"
    for status in (0, 2):
        done = call_here("doctor", tmp_path, "-o", plan)
        assert status == done.returncode, done.stderr
    assert "cannot be written: File exists" in done.stderr
    assert ["own.toml"] == [path.name for path in tmp_path.iterdir()]
    load_plan(plan.read_text(), source="own", directory=tmp_path)


def test_a_database_file_of_sqlite_is_known_by_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(monkeypatch)
    chosen = {"page_size": "8192", "auto_vacuum": "incremental", "journal_mode": "wal"}
    for journal, settings in (("wal", chosen), ("delete", {"page_size": "4096"})):
        path = tmp_path / f"{journal}.db"
        with closing(sqlite3.connect(path)) as database:
            for name, value in {**settings, "journal_mode": journal}.items():
                database.execute(f"PRAGMA {name} = {value}")
            database.execute("CREATE TABLE one (x)")
            database.commit()
            found = inspect(path)
        assert found.directory is not None
        assert ("sqlite", sqlite3.sqlite_version) == (found.directory.engine, found.directory.version)
        assert settings == found.directory.settings
        assert "unknown" == found.durability.volatile_cache
        assert "are each connection's own" in found.unknown[0]
        text = plan_text(found, compare=True)
        assert 'type = "microbenchmark"\nengine = "sqlite"\n' in text
        table = '\n[sqlite]\npage_size = "8192"\njournal_mode = "wal"\nauto_vacuum = "incremental"\n'
        assert (table in text) == (settings == chosen)
    (tmp_path / "short.db").write_bytes(b"SQLite format 3\0")
    assert inspect(tmp_path / "short.db").directory is None


def control(
    *, block: int = 8192, wal_block: int = 8192, segment: int = 16 * 2**20, checksums: int = 1
) -> bytes:
    """A control file as far as its sizes are read (src/include/catalog/pg_control.h)."""
    start = struct.pack("<QIII", 7_000_000_000_000_000_001, 1300, 202406281, 6)
    behind = struct.pack(
        "<8I?3xI", block, 2**30 // block, wal_block, segment, 64, 32, 1996, 2048, True, checksums
    )
    return (start.ljust(224, b"\3") + struct.pack("<d", 1234567.0) + behind).ljust(8192, b"\0")


def made_with(place: Path, **sizes: int) -> Path:
    (place / "global").mkdir(exist_ok=True)
    (place / "global/pg_control").write_bytes(control(**sizes))
    return place


def test_the_plan_carries_what_the_cluster_was_made_with_and_every_setting(
    cluster: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(monkeypatch)
    place = cluster(
        **{
            "postgresql.conf": "shared_buffers = 512MB\nCHECKPOINT_TIMEOUT 15min\nwork_mem = '8 MB'\nfsync = off\n",
            "postgresql.auto.conf": "work_mem = '16MB'\nauto_explain.log_min_duration = 3\n",
            "postmaster.opts": "/usr/bin/postgres -c random_page_cost=1.1\n",
        }
    )
    found = inspect(made_with(place, segment=32 * 2**20, block=16384, checksums=0))
    for beside in (True, False):
        text = plan_text(found, compare=beside)
        for line in (
            "data_checksums = false",
            'block_size = "16 kB"',
            'wal_segment_size = "32 MB"',
            'shared_buffers = "512MB"',
            'checkpoint_timeout = "15min"',
            'work_mem = "16MB"',
            'random_page_cost = "1.1"',
            '"auto_explain.log_min_duration" = "3"',
            'fsync = "off"',
        ):
            assert f"\n{line}\n" in text
        (server,) = load_plan(text, source="own", directory=Path("/nowhere")).clusters
        assert (False, 32 * 2**20, "512MB") == (
            server.data_checksums,
            server.wal_segment_bytes,
            server.settings["shared_buffers"],
        )


LEFT_OUT = {
    "listen_addresses = '*'": "private Unix socket",
    "archive_command = 'scp %p secret:'": "no archive and no standby",
    "archive_mode = on": "no archive and no standby",
    "primary_conninfo = 'password=secret'": "no archive and no standby",
    "synchronous_standby_names = 'secret'": "no archive and no standby",
    "ssl_key_file = '/secret'": "by a network",
    "temp_tablespaces = secret": "no tablespaces",
    "lc_messages = 'secret'": "for each cluster",
    "timezone = 'secret'": "for each cluster",
    "shared_preload_libraries = 'secret'": "loads code into the server",
    "a$b.c = secret": "a setting's name has letters",
    "application_name = 'secret\x1b'": "printable characters",
}


@pytest.mark.parametrize("line", LEFT_OUT)
def test_what_no_plan_takes_over_is_named_in_it_with_the_reason_and_without_its_value(
    cluster: Place, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    stands(monkeypatch)
    text = plan_text(
        inspect(made_with(cluster(**{"postgresql.conf": f"work_mem = 8MB\n{line}\n"}))), compare=True
    )
    name = line.split(" ", maxsplit=1)[0]
    assert any(
        name in each and LEFT_OUT[line] in each for each in text.splitlines() if each.startswith("# Not in")
    )
    assert "secret" not in text
    assert 'work_mem = "8MB"' in text


def test_other_file_systems_options_and_what_is_not_known_are_comments_of_the_plan(
    cluster: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands(monkeypatch, shown=("rw", "noatime", "discard", "x\x1by"))
    plain = inspect(cluster(**{"postgresql.conf": "include '/nowhere.conf'\n"}))
    wal = replace(plain.place, type="xfs", options=("rw", "nobarrier"))
    text = plan_text(replace(plain, places={**plain.places, "WAL": wal}), compare=True)
    for words in ("mount options discard,x?y", "WAL on a file system of its own, xfs of sda with rw,nobarrier",
                  "/nowhere.conf: it is not there (not known", "global/pg_control cannot be read"):  # fmt: skip
        assert any(words in line for line in text.splitlines() if line.startswith("# Not in this plan: "))


@pytest.mark.parametrize("by", ["a link", "its path", "the last start"])
def test_a_stopped_cluster_of_debian_is_set_as_its_configuration_elsewhere_says(
    cluster: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    stands(monkeypatch)
    place = cluster("17/main")
    (place / "postgresql.conf").unlink()
    etc = tmp_path / "etc"
    for name, directory in (("other", tmp_path), ("main", place)):
        (etc / "17" / name).mkdir(parents=True)
        (etc / "17" / name / "conf.d").mkdir()
        (etc / "17" / name / "conf.d/mine.conf").write_text("shared_buffers = 1GB\n")
        named = directory
        if by == "a link" and name == "main":
            named = tmp_path / "linked"
            named.symlink_to(directory)
        (etc / "17" / name / "postgresql.conf").write_text(
            f"data_directory = '{named}'  # c\nfsync = {'off' if name == 'main' else 'on'}\ninclude_dir 'conf.d'\n"
        )
    if by == "the last start":
        (place / "postmaster.opts").write_text(f'postgres "-c" "config_file={etc}/17/main/postgresql.conf"\n')
    else:
        monkeypatch.setattr("bedplate.engines.postgresql.prepare._ELSEWHERE", etc)
    found = inspect(place).directory
    assert found is not None
    assert (True, "off", "1GB") == (
        found.knows_settings,
        found.settings["fsync"],
        found.more["shared_buffers"],
    )
    assert "fsync" in found.said_by


def test_settings_that_are_not_known_are_never_called_defaults(
    cluster: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stands(monkeypatch)
    monkeypatch.setattr("bedplate.engines.postgresql.prepare._ELSEWHERE", Path("/nowhere"))
    place = cluster(**{"postgresql.auto.conf": "fsync = off\n"})
    say_inspected(inspect(place))
    assert "full_page_writes = on (default)" in capsys.readouterr().out
    (place / "postgresql.conf").unlink()
    say_inspected(inspect(place))
    said = " ".join(capsys.readouterr().out.split())
    assert "settings fsync = off, full_page_writes, synchronous_commit, wal_sync_method not known" in said
    assert "(default)" not in said
    assert "postgresql.conf: it is not there (not known" in plan_text(inspect(place), compare=True)
