"""`[mariadb]` in a plan: what becomes a level, and what is refused with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from bedplate.engines.mariadb.model import same_value
from bedplate.engines.mariadb.plan import ESTIMATE, MariadbTable, untorn_writes
from bedplate.engines.mariadb.prepare import doubt, listed
from bedplate.engines.mariadb.visit import DURABILITY
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    engine_model,
)
from bedplate.model.durability import FilesystemPromise
from bedplate.model.levels import Levels
from bedplate.model.visit import FlushCount, ScratchDevice
from bedplate.plan.rules import CellContext
from bedplate.units import MIB

FLUSHED = FilesystemPromise((FlushCount("data", "logging", 10, 10),))


def cell(**settings: Any) -> Cell:
    cluster = ClusterLevels(settings=Levels(settings))
    return Cell(
        DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels.unbuilt("mariadb"), cluster
    )


def test_settings_become_levels_as_the_server_takes_them() -> None:
    table = MariadbTable.model_validate(
        {
            "innodb_page_size": {"vary": ["4 kB", 16384]},
            "settings": {
                "innodb-doublewrite": False,
                "innodb_buffer_pool_size": "256 MB",
                "innodb_log_file_size": "64M",
                "innodb_flush_log_at_trx_commit": 2,
            },
        }
    )
    setup = table.setup()
    assert ("mariadb", table.count()) == (setup.engine, 2)
    assert {
        "innodb_page_size": 4096,
        "innodb_doublewrite": "OFF",
        "innodb_buffer_pool_size": "268435456",
        "innodb_log_file_size": "67108864",
        "innodb_flush_log_at_trx_commit": "2",
    } == dict(setup.clusters[0].settings)


def test_how_pages_are_written_is_a_level_of_the_cluster() -> None:
    table = MariadbTable.model_validate(
        {"innodb_page_size": "4 kB", "untorn_writes": {"vary": ["on", "count"]}}
    )
    assert [("on", 4096), ("count", 4096)] == [
        (each.untorn_writes, each.settings["innodb_page_size"]) for each in table.setup().clusters
    ]
    named = {"untorn_writes": "on", "innodb_page_size": "4 kB"}
    assert [("cluster.untorn_writes", "on"), ("cluster.settings.innodb_page_size", 4096)] == [
        (MariadbTable.level_name("mariadb", key), MariadbTable.level("mariadb", level))
        for key, level in named.items()
    ]
    with pytest.raises(ValueError, match="allowed: 4 kB"):
        MariadbTable.level("mariadb", "5 kB")


SEEN = {"innodb_log_file_buffering": "ON", "innodb_use_native_aio": "OFF"}


@pytest.mark.parametrize(
    ("changes", "filesystem", "words"),
    [
        ({}, FilesystemLevels("xfs"), []),
        ({"innodb_flush_method": "o_direct"}, FilesystemLevels("xfs"), []),
        ({"innodb_flush_method": "fsync"}, FilesystemLevels("xfs"), ['set innodb_flush_method = "O_DIRECT"']),
        ({"innodb_log_file_buffering": "OFF"}, FilesystemLevels("xfs"), ["the log would be taken for pages"]),
        ({"innodb_use_native_aio": "ON"}, FilesystemLevels("xfs"), ["what asynchronous I/O writes"]),
        ({}, FilesystemLevels("btrfs"), ["btrfs takes no untorn write"]),
        (
            {"innodb_page_size": 4096},
            FilesystemLevels("xfs", block_size_bytes=8192),
            ["a page of 4 KiB is less than a block of 8 KiB"],
        ),
    ],
)
def test_pages_are_seen_that_the_server_writes_by_itself_and_directly(
    changes: dict[str, Any], filesystem: FilesystemLevels, words: list[str]
) -> None:
    plain = replace(cell(**{**SEEN, **changes}), filesystem=filesystem)
    around = CellContext(None, ScratchDevice())
    assert [] == list(untorn_writes(plain, around))
    asked = replace(plain, cluster=replace(plain.cluster, untorn_writes="on"))
    found = list(untorn_writes(asked, around))
    assert len(words) == len(found)
    assert all(expected in why for expected, why in zip(words, found, strict=True))


def test_without_a_word_the_library_would_see_too_much_of_the_log_and_nothing_of_the_pages() -> None:
    asked = replace(cell(), cluster=ClusterLevels(untorn_writes="count"))
    found = " ".join(untorn_writes(asked, CellContext(None, ScratchDevice())))
    assert "innodb_log_file_buffering" in found
    assert "innodb_use_native_aio" in found


def test_a_cell_is_called_by_its_page_size_and_keeps_its_log() -> None:
    assert [4096, 16384] == [cell(innodb_page_size=4096).database_block_bytes, cell().database_block_bytes]
    assert "ext4-innodb4k" == cell(innodb_page_size=4096).slug
    small, usual = (ESTIMATE.log_bytes(cell(**asked)) for asked in ({"innodb_log_file_size": "8388608"}, {}))
    assert 88 * MIB == usual - small


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"innodb_page_size": "5 kB"}, "allowed: 4 kB, 8 kB, 16 kB, 32 kB, 64 kB"),
        ({"settings": {"innodb_page_size": 4096}}, "write innodb_page_size in \\[mariadb\\] itself"),
        ({"settings": {"skip-networking": False}}, "listens on a private Unix socket only"),
        (
            {"settings": {"innodb_log_group_home_dir": "/tmp"}},
            "bedplate decides where the server and its files are",
        ),
        ({"settings": {"init_file": "/etc/passwd"}}, "bedplate decides where the server and its files are"),
        ({"settings": {"plugin_load": "x"}}, "it would load or run"),
        ({"settings": {"innodb doublewrite": 1}}, "letters, digits and underscores"),
        ({"settings": {"innodb_doublewrite": "a\nb"}}, "allowed are true, false, a number"),
    ],
)
def test_what_is_no_setting_of_a_plan_is_refused_with_its_reason(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        MariadbTable.model_validate(table)


@pytest.mark.parametrize(
    ("asked", "shown", "same"),
    [
        ("ON", "ON", True),
        ("1", "ON", True),
        ("2", "ON", False),
        ("90", "90.000000", True),
        ("o_direct", "O_DIRECT", True),
        ("fsync", "O_DIRECT", False),
        ("134217728", "128974848", False),
    ],
)
def test_values_are_compared_by_what_they_mean(asked: str, shown: str, same: bool) -> None:
    assert same is same_value(asked, shown)


def test_a_setting_that_is_not_listed_is_a_doubt_with_the_nearest_name() -> None:
    known = listed(
        "innodb-before 1\nVariables (--variable-name=value)\n"
        "---- ----\ninnodb-doublewrite                 TRUE\nsync-binlog       0\n"
    )
    assert frozenset({"innodb_doublewrite", "sync_binlog"}) == known
    assert (
        "mariadb.settings.innodb_doublewrites: this MariaDB lists no such setting; did you mean innodb_doublewrite?"
        == doubt("innodb_doublewrites", known)
    )


@pytest.mark.parametrize(
    ("shown", "volatile", "protected", "codes"),
    [
        ({}, "durable", "durable", []),
        ({"innodb_flush_log_at_trx_commit": "3"}, "durable", "durable", []),
        (
            {"innodb_flush_log_at_trx_commit": "2"},
            "bounded loss",
            "bounded loss",
            ["innodb-log-flushed-later"],
        ),
        ({"innodb_doublewrite": "OFF"}, "unsafe", "unknown", ["innodb-doublewrite-off"]),
        ({"innodb_doublewrite": "fast"}, "unsafe", "unknown", ["innodb-data-not-synced"]),
        ({"innodb_flush_method": "nosync"}, "unsafe", "unsafe", ["innodb-never-syncs"]),
        ({"innodb_flush_method": "O_DIRECT_NO_FSYNC"}, "unsafe", "unknown", ["innodb-data-not-synced"]),
        ({"innodb_flush_method": "O_DSYNC"}, "durable", "durable", []),
        ({"innodb_flush_method": "ALL_O_DIRECT"}, "unknown", "unknown", ["innodb-setting-not-known"]),
        ({"innodb_doublewrite": "DETECT_ONLY"}, "unknown", "unknown", ["innodb-setting-not-known"]),
    ],
)
def test_the_declared_class_follows_from_what_is_in_force(
    shown: dict[str, str], volatile: str, protected: str, codes: list[str]
) -> None:
    found = DURABILITY.declare(Levels({}), shown, FLUSHED)
    assert (volatile, protected) == (found.volatile_cache, found.protected_cache)
    assert codes == [reason.code for reason in found.reasons]


def test_damage_that_a_setting_allows_is_sure_where_no_flush_was_counted() -> None:
    found = DURABILITY.declare(Levels({}), {"innodb_doublewrite": "OFF"}, FilesystemPromise(()))
    assert ("unsafe", "unknown") == (found.volatile_cache, found.protected_cache)


def test_a_commit_waits_by_what_was_read_back_before_what_was_asked() -> None:
    name = "innodb_flush_log_at_trx_commit"
    model = engine_model("mariadb")
    assert model.waits(Levels({}), {})
    assert not model.waits(Levels({name: "2"}), {})
    assert model.waits(Levels({name: "2"}), {f"setting {name}": "1"})
