"""Settings of a plan, its own postgresql.conf among them, beside what the server says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bedplate.engines.postgresql import prepare
from bedplate.engines.postgresql.prepare import GONE, AskedServer, Refusal, refusals, settings_doubts
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from pathlib import Path

# Of PostgreSQL 18.6 (`postgres -C`); 15 prints the same, but for the units of a range.
NAMES_UNKNOWN = """2026-11-28 22:11:35.600 GMT [20388] LOG:  skipping missing configuration file "/tmp/x/postgresql.auto.conf"
2026-11-28 22:11:35.600 GMT [20388] LOG:  unrecognized configuration parameter "wal_keep_segments" in file "/tmp/x/postgresql.conf" line 2
2026-11-28 22:11:35.600 GMT [20388] LOG:  unrecognized configuration parameter "shared_bufers" in file "/tmp/x/postgresql.conf" line 4
2026-11-28 22:11:35.600 GMT [20388] FATAL:  configuration file "/tmp/x/postgresql.conf" contains errors
"""
VALUES_WRONG = """2026-11-28 22:11:35.610 GMT [20389] LOG:  parameter "fsync" requires a Boolean value
2026-11-28 22:11:35.610 GMT [20389] LOG:  99999999 is outside the valid range for parameter "max_connections" (1 .. 262143)
2026-11-28 22:11:35.610 GMT [20389] LOG:  invalid value for parameter "wal_sync_method": "fsync_writethrough"
2026-11-28 22:11:35.610 GMT [20389] HINT:  Available values: fsync, fdatasync, open_sync, open_datasync.
2026-11-28 22:11:35.610 GMT [20389] LOG:  invalid value for parameter "DateStyle": "x"
2026-11-28 22:11:35.610 GMT [20389] DETAIL:  Unrecognized key word: "x".
2026-11-28 22:11:35.610 GMT [20389] FATAL:  configuration file "/tmp/x/postgresql.conf" contains errors
"""


def test_names_that_the_server_does_not_know_are_told_by_their_lines() -> None:
    assert (Refusal(2, ""), Refusal(4, "")) == refusals(NAMES_UNKNOWN, ["a"] * 5)


def test_a_value_is_of_the_last_line_of_its_name_and_has_the_servers_way_out() -> None:
    names = ["fsync", "max_connections", "fsync", "wal_sync_method", "datestyle"]
    assert {
        3: 'parameter "fsync" requires a Boolean value',
        2: '99999999 is outside the valid range for parameter "max_connections" (1 .. 262143)',
        4: 'invalid value for parameter "wal_sync_method": "fsync_writethrough". '
        "Available values: fsync, fdatasync, open_sync, open_datasync.",
        5: 'invalid value for parameter "DateStyle": "x". Unrecognized key word: "x".',
    } == {each.number: each.words for each in refusals(VALUES_WRONG, names)}


@pytest.mark.parametrize(
    "said", ["", "postgres: not found\n", "LOG:  database system was shut down\n", "FATAL:  x\n"]
)
def test_what_is_of_no_line_is_no_refusal(said: str) -> None:
    assert () == refusals(said, ["fsync"])


# As the server does: names first, values only where every name is known.
PRETENDED = """#!/bin/sh
case "$*" in
*--describe-config*) printf 'shared_buffers\\tpostmaster\\nfsync\\tsighup\\n'; exit 0;;
esac
file=${4#config_file=}
wrong=0
n=0
while IFS= read -r line; do
  n=$((n + 1))
  case "$line" in
  shared_bufers*|nonsense*|wal_keep_segments*)
    echo "LOG:  unrecognized configuration parameter \\"x\\" in file \\"$file\\" line $n" >&2; wrong=1;;
  esac
done < "$file"
[ $wrong = 1 ] && exit 1
grep -q "^fsync = '\\?maybe" "$file" && { echo 'LOG:  parameter "fsync" requires a Boolean value' >&2; exit 1; }
echo /tmp
"""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every build is there, and its server is a pretended one."""
    program = tmp_path / "postgres"
    program.write_text(PRETENDED)
    program.chmod(0o755)
    monkeypatch.setattr(prepare, "to_read_alone", lambda *_: None)

    class Built:
        def program(self, _: str) -> Path:
            return program

    monkeypatch.setattr(prepare, "find_build", lambda *_, **__: Built())


def cell(version: str = "18", *, configuration: str | None = None, **settings: str) -> Cell:
    cluster = ClusterLevels(settings=Levels(settings), configuration=configuration)
    build = BuildLevels("postgresql", version)
    return Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), build, cluster)


@pytest.mark.usefixtures("built")
def test_every_wrong_line_of_an_own_configuration_is_named_at_once() -> None:
    text = "# mine\nshared_bufers = 1GB\nNONSENSE 4\n\nwal_keep_segments=64\nnonsense = 4\nfsync = maybe\nport = 1\n"
    assert [
        "postgresql.configuration: line 2: shared_bufers: this build lists no such setting; did you mean shared_buffers?",
        "postgresql.configuration: line 5: wal_keep_segments: PostgreSQL has had no such setting since version 13; write wal_keep_size, which is a size",
        "postgresql.configuration: line 6: nonsense: this build lists no such setting; take it out",
        'postgresql.configuration: line 7: fsync: parameter "fsync" requires a Boolean value',
    ] == [words for words in settings_doubts([cell(configuration=text)]) if "NONSENSE" not in words]


@pytest.mark.usefixtures("built")
def test_each_value_of_a_setting_that_varies_is_looked_at_and_a_build_is_named_where_there_are_two() -> None:
    cells = [cell(fsync="on"), cell(fsync="maybe"), cell(fsync="off", shared_bufers="1")]
    assert [
        "postgresql.settings.shared_bufers: this build lists no such setting; did you mean shared_buffers?",
        'postgresql.settings.fsync: parameter "fsync" requires a Boolean value',
    ] == sorted(settings_doubts(cells), key=len)[::-1]
    several = settings_doubts([cell("17", fsync="maybe"), cell("18", fsync="maybe")])
    assert ["(PostgreSQL 17)", "(PostgreSQL 18)"] == [words[-15:] for words in several]


@pytest.mark.usefixtures("built")
def test_sound_settings_are_not_doubted() -> None:
    text = "fsync = on\nmy.own = 3\nport = 77\nlisten_addresses 'x'\n"
    assert () == settings_doubts([cell(configuration=text, fsync="off"), cell()])


def test_a_server_that_says_nothing_of_the_file_is_not_asked_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "to_read_alone", lambda *_: None)
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\necho 'LOG:  parameter \"b\" is odd' >&2\nexit 1\n")
    program.chmod(0o755)
    lines = [prepare.AskedSetting("a", "a", "a = 1")]
    assert () == AskedServer(program).doubts(lines)


@pytest.mark.parametrize(
    ("version", "asked", "said"),
    [
        (
            "18",
            {"wal_keep_segments": "64"},
            "postgresql.settings.wal_keep_segments: PostgreSQL has had no such",
        ),
        ("18", {"force_parallel_mode": "on"}, "since version 16; write debug_parallel_query"),
        ("15", {"force_parallel_mode": "on"}, ""),
        ("18", {"old_snapshot_threshold": "1"}, "since version 17; take it out"),
        ("18", {"shared_bufers": "1"}, ""),
    ],
)
def test_without_a_build_what_postgresql_has_taken_out_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, asked: dict[str, str], said: str
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path))
    text = "".join(f"{name.upper()} = {value}\n" for name, value in asked.items())
    for found, place in (
        (settings_doubts([cell(version, **asked)]), "settings."),
        (settings_doubts([cell(version, configuration=text)]), "configuration: line 1: "),
    ):
        assert bool(said) == bool(found)
        assert all(said.replace("settings.", place) in words for words in found)


def test_what_took_the_place_of_a_setting_is_there_today() -> None:
    assert not [name for name, (_, instead) in GONE.items() if instead.split(",")[0] in GONE]
