"""What checks MariaDB's data without bedplate: the oracle's questions, and a server that fits."""

from __future__ import annotations

from dataclasses import replace

from bedplate import registry
from bedplate.engines.mariadb import oracle
from bedplate.host.command import Account
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.visit.cuts import Reproduction, Subject

BUILD = EngineBuild("/opt/some where", "10.11.19", 16384, 0, "0" * 64, "here", "cc", (), "1" * 64)
SUBJECT = Subject("mariadb", 10_000, Levels({"innodb_doublewrite": "OFF"}), Levels(), build=BUILD)
ACCOUNT = Account("nobody", 65534, 65534)


def reproduction() -> Reproduction:
    found: Reproduction = registry.engine_part("mariadb", "reproduction")
    return found


def text(subject: Subject = SUBJECT) -> str:
    return "\n".join(reproduction().lines(subject, ACCOUNT))


def test_the_server_is_of_the_release_that_made_the_data_and_has_its_settings() -> None:
    assert '[ "$here" = 10.11 ] || cannot' in text()
    assert "--innodb-page-size=16384" in text()
    assert "--innodb-doublewrite=OFF" in text()
    assert "--skip-networking" in text()
    assert {"MARIADB_PREFIX": "/opt/some where", "MARIADB_LIBRARIES": ""} == reproduction().places(SUBJECT)
    assert {""} == set(reproduction().places(replace(SUBJECT, build=None)).values())


def test_every_page_is_looked_at_but_for_the_doublewrite_buffer() -> None:
    assert 'sums --end-page 63 "$data/ibdata1"' in text()
    assert 'sums --start-page 192 "$data/ibdata1"' in text()
    assert 'for file in "$data"/*/*.ibd; do sums "$file"; done' in text()


def test_the_value_of_a_setting_is_one_word() -> None:
    assert "'--innodb-flush-method=$(reboot)'" in text(
        replace(SUBJECT, settings=Levels({"innodb_flush_method": "$(reboot)"}))
    )


def test_each_secondary_index_is_held_against_its_table() -> None:
    words = [words for words, _ in oracle.by_hand_checks()]
    assert ["note by its primary key and by note_account are not the same"] == [
        each for each in words if "primary key" in each
    ]
