"""`[mariadb]` in a plan: what becomes a level, and what is refused with its reason."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bedplate.engines.mariadb.durability import DURABILITY
from bedplate.engines.mariadb.estimate import ESTIMATE
from bedplate.engines.mariadb.plan import MariadbTable
from bedplate.engines.mariadb.settings import same_value
from bedplate.engines.mariadb.settings_check import doubt, listed
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.engine import engine_model
from bedplate.model.levels import Levels
from bedplate.model.visit import FlushCount
from bedplate.units import MIB
from bedplate.visit.declaration import Promises

PROMISES: Promises = {
    "checked_by_fsck": False,
    "journal_holds_data": False,
    "journal_in_memory": False,
    "rolls_back_whole": False,
    "flushes_when_delayed": None,
}
FLUSHED = (FlushCount("data", "logging", 10, 10),)


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
        ({"innodb_flush_method": "nosync"}, "unsafe", "unsafe", ["innodb-never-syncs"]),
        ({"innodb_flush_method": "O_DIRECT_NO_FSYNC"}, "unsafe", "unknown", ["innodb-data-not-synced"]),
    ],
)
def test_the_declared_class_follows_from_what_is_in_force(
    shown: dict[str, str], volatile: str, protected: str, codes: list[str]
) -> None:
    found = DURABILITY.declare(Levels({}), shown, FLUSHED, PROMISES, keeps_write_order=False)
    assert (volatile, protected) == (found.volatile_cache, found.protected_cache)
    assert codes == [reason.code for reason in found.reasons]


def test_damage_that_a_setting_allows_is_sure_where_no_flush_was_counted() -> None:
    found = DURABILITY.declare(
        Levels({}), {"innodb_doublewrite": "OFF"}, (), PROMISES, keeps_write_order=False
    )
    assert ("unsafe", "unknown") == (found.volatile_cache, found.protected_cache)


def test_a_commit_waits_by_what_was_read_back_before_what_was_asked() -> None:
    name = "innodb_flush_log_at_trx_commit"
    model = engine_model("mariadb")
    assert model.waits(Levels({}), {})
    assert not model.waits(Levels({name: "2"}), {})
    assert model.waits(Levels({name: "2"}), {f"setting {name}": "1"})
