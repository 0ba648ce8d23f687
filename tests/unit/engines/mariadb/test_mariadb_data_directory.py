"""A data directory of MariaDB by its files: the page size, and settings in the server's order, or that they are not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bedplate.engines.mariadb import prepare
from bedplate.engines.mariadb.prepare import option, page_size, recognise
from bedplate.model.engines import DataDirectory

Start = Callable[..., None]


def first_page(flags: int) -> bytes:
    """A tablespace's first page up to its flags."""
    return bytes(24) + (8).to_bytes(2) + bytes(28) + flags.to_bytes(4)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory as mariadb-install-db leaves it, as far as it is looked at; the machine's option files lie beside it."""
    found = tmp_path / "data"
    found.mkdir()
    (found / "aria_log_control").write_bytes(b"")
    (found / "ibdata1").write_bytes(first_page(0x13))
    (found / "mysql_upgrade_info").write_text("10.11.19-MariaDB")
    monkeypatch.setattr(prepare, "USUAL_FILES", (tmp_path / "my.cnf", tmp_path / "mysql/my.cnf"))
    return found


@pytest.fixture
def start(tmp_path: Path, place: Path) -> Start:
    """A server that works in the directory, as /proc shows it."""

    def at(*words: str, namespace: int = 1, name: str = "mariadbd") -> None:
        process = tmp_path / "proc/7"
        (process / "ns").mkdir(parents=True)
        (process / "comm").write_text(f"{name}\n")
        (process / "cmdline").write_text("\0".join((f"/usr/sbin/{name}", *words, "")))
        (process / "cwd").symlink_to(place)
        (process / "ns/mnt").symlink_to(f"mnt:[{namespace}]")
        (tmp_path / "proc/self/ns").mkdir(parents=True)
        (tmp_path / "proc/self/ns/mnt").symlink_to("mnt:[1]")

    return at


def found_in(place: Path) -> DataDirectory:
    found = recognise(place, proc=place.parent / "proc")
    assert found is not None
    return found


def test_a_server_without_options_has_its_defaults_and_the_page_size_of_its_files(
    place: Path, start: Start
) -> None:
    start("--no-defaults", f"--datadir={place}")
    found = found_in(place)
    expected = {
        "innodb_page_size": "4096",
        "innodb_flush_log_at_trx_commit": "1",
        "innodb_flush_method": "O_DIRECT",
        "innodb_doublewrite": "ON",
    }
    assert (expected, {"innodb_page_size": "ibdata1"}) == (found.settings, found.said_by)
    assert ("mariadb", "10.11.19", True) == (found.engine, found.version, found.knows_settings)
    assert {"data": str(place)} == found.places


def test_options_come_in_the_servers_order_through_includes_and_its_groups(place: Path, start: Start) -> None:
    beside = place.parent
    (beside / "mysql").mkdir()
    (beside / "mysql/conf.d").mkdir()
    (beside / "my.cnf").write_text(
        "[mysqld]\ninnodb_flush_log_at_trx_commit = 0\n[client]\ninnodb_doublewrite=0\n"
    )
    (beside / "mysql/my.cnf").write_text(f"# ours\n!includedir {beside}/mysql/conf.d\n!include more.cnf\n")
    (beside / "mysql/more.cnf").write_text(
        "[mariadb-10.11]\nskip-innodb-doublewrite\n[mariadb-11.8]\ninnodb_doublewrite\n"
    )
    (beside / "mysql/conf.d/a.cnf").write_text("[server]\ninnodb-flush-method='5' # by number\n")
    (beside / "mysql/conf.d/b.txt").write_text("[server]\ninnodb-flush-method=nosync\n")
    start("--innodb_flush_log_at_trx=2")
    found = found_in(place)
    expected = {
        "innodb_page_size": "4096",
        "innodb_flush_log_at_trx_commit": "2",
        "innodb_flush_method": "O_DIRECT_NO_FSYNC",
        "innodb_doublewrite": "OFF",
    }
    assert (expected, True) == (found.settings, found.knows_settings)
    assert [
        "ibdata1",
        "its command line",
        str(beside / "mysql/conf.d/a.cnf"),
        str(beside / "mysql/more.cnf"),
    ] == list(found.said_by.values())


def test_one_option_file_that_the_command_line_names_is_the_only_one(place: Path, start: Start) -> None:
    (place.parent / "my.cnf").write_text("[mysqld]\ninnodb_doublewrite = 0\n")
    (place.parent / "own.cnf").write_text("[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n")
    start(f"--defaults-file={place.parent / 'own.cnf'}", name="mysqld")
    settings = found_in(place).settings
    assert ("ON", "2") == (settings["innodb_doublewrite"], settings["innodb_flush_log_at_trx_commit"])


@pytest.mark.parametrize("names_it", [True, False])
def test_without_a_server_the_machines_option_files_count_if_they_name_the_directory(
    place: Path, *, names_it: bool
) -> None:
    named = place if names_it else place.parent
    (place.parent / "my.cnf").write_text(f"[mysqld]\ndatadir={named}\ninnodb_doublewrite=OFF\n")
    found = found_in(place)
    assert ("OFF" if names_it else "ON", names_it) == (
        found.settings["innodb_doublewrite"],
        found.knows_settings,
    )
    assert names_it != any("do not name this directory" in sentence for sentence in found.unread)


def test_the_option_files_of_a_container_are_not_taken_for_the_machines(place: Path, start: Start) -> None:
    (place.parent / "my.cnf").write_text("[mysqld]\ninnodb_doublewrite = 0\n")
    start("--innodb-flush-method=fsync", namespace=2)
    found = found_in(place)
    assert ("ON", "fsync", False) == (
        found.settings["innodb_doublewrite"],
        found.settings["innodb_flush_method"],
        found.knows_settings,
    )
    assert "another mount namespace" in found.unread[0]


def test_what_clients_and_servers_share_is_read_and_a_value_may_be_a_word_of_its_own(
    place: Path, start: Start
) -> None:
    (place.parent / "my.cnf").write_text("[client-server]\ninnodb_doublewrite = 0\n")
    start("--innodb-flush-method", "nosync", "--innodb_flush_log_at_trx_commit", "2", "--skip-name-resolve")
    found = found_in(place)
    assert {
        "innodb_doublewrite": "OFF",
        "innodb_flush_method": "nosync",
        "innodb_flush_log_at_trx_commit": "2",
    }.items() <= (found.settings.items())


def test_groups_of_an_instance_are_not_followed_and_that_is_said(place: Path, start: Start) -> None:
    (place.parent / "my.cnf").write_text("[mariadbd.one]\ninnodb_flush_log_at_trx_commit = 0\n")
    start("--defaults-group-suffix=.one")
    found = found_in(place)
    assert not found.knows_settings
    assert "--defaults-group-suffix=.one is not followed" in " ".join(found.unread)


@pytest.mark.parametrize(
    ("group", "reads"),
    [
        ("mariadb-11.4", True),
        ("mysqld-11.4", True),
        ("mariadbd-11.4", True),
        ("mysqld-10.11", False),
        # mysqld.cc has no such groups.
        ("server-11.4", False),
        ("client-server-11.4", False),
    ],
)
def test_a_group_of_a_version_counts_for_that_version(
    place: Path, start: Start, group: str, *, reads: bool
) -> None:
    (place / "mysql_upgrade_info").write_text("11.4.5-MariaDB")
    (place.parent / "my.cnf").write_text(f"[{group}]\ninnodb_flush_log_at_trx_commit = 2\n")
    start()
    found = found_in(place)
    assert ("2" if reads else "1", True) == (
        found.settings["innodb_flush_log_at_trx_commit"],
        found.knows_settings,
    )


@pytest.mark.parametrize(
    ("line", "is_known"),
    [("innodb_flush_log_at_trx = 2", False), ("max_connections = 7", True), ("# innodb_doublewrite=0", True)],
)
def test_of_a_server_without_a_version_the_groups_of_versions_leave_open_what_they_set(
    place: Path, start: Start, line: str, *, is_known: bool
) -> None:
    (place / "mysql_upgrade_info").unlink()
    (place.parent / "my.cnf").write_text(f"[mariadb-11.4]\n{line}\n")
    start()
    found = found_in(place)
    assert is_known == found.knows_settings
    assert is_known or "innodb_flush_log_at_trx_commit in [mariadb-11.4]" in found.unread[0]


def test_what_cannot_be_followed_leaves_the_settings_unknown(place: Path, start: Start) -> None:
    (place.parent / "my.cnf").write_text("!include my.cnf\n!includedir /nowhere\n!include /dev/zero\n")
    start()
    found = found_in(place)
    assert not found.knows_settings
    for words in ("included too deeply", "/nowhere: No such file", "/dev/zero: it is no file"):
        assert any(words in sentence for sentence in found.unread)


def test_what_stands_elsewhere_is_named(place: Path, start: Start) -> None:
    other = place.parent / "other"
    (other / "big").mkdir(parents=True)
    (place / "big").symlink_to(other / "big")
    (place / "shop").mkdir()
    (place / "shop/sold.isl").write_text(f"{other}/shop/sold.ibd")
    start(f"--innodb-log-group-home-dir={other}", "--innodb-undo-directory=.")
    expected = {
        "data": str(place),
        "log": str(other),
        "database big": str(other / "big"),
        "table shop/sold": f"{other}/shop/sold.ibd",
    }
    assert expected == found_in(place).places


@pytest.mark.parametrize("lacking", ["aria_log_control", "ibdata1"])
def test_a_directory_of_another_server_is_none_of_mariadb(place: Path, lacking: str) -> None:
    (place / lacking).unlink()
    assert recognise(place) is None
    assert recognise(place / "ibdata1") is None


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(0x15, 16384), (0x17, 65536), (0x13, 4096), (0, 16384), (3 << 6, 4096), (4 << 6 | 1, 8192)],
)
def test_the_page_size_stands_in_the_first_page(flags: int, expected: int) -> None:
    assert expected == page_size(first_page(flags))
    assert page_size(bytes(100)) is None
    assert page_size(first_page(flags)[:-1]) is None


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("innodb-doublewrite", ("innodb_doublewrite", "ON")),
        ("skip_innodb_doublewrite", ("innodb_doublewrite", "OFF")),
        ("loose-disable-innodb-doublewrite", ("innodb_doublewrite", "OFF")),
        ("enable-innodb-doublewrite=0", ("innodb_doublewrite", "0")),
        ('datadir = "/srv/my # data"', ("datadir", "/srv/my # data")),
        ("datadir=/srv/data # here", ("datadir", "/srv/data")),
    ],
)
def test_an_option_is_read_in_all_its_forms(word: str, expected: tuple[str, str]) -> None:
    assert expected == option(word)
