"""Real builds: quick with a warm cache, minutes per block size with a cold one."""

from __future__ import annotations

import os
import pwd
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.engines.postgresql.builds import Build, BuildSpec, ensure_build, find_build, read_build
from bedplate.engines.postgresql.versions import extensions_of, major_of
from bedplate.host.command import Account, Commands
from bedplate.host.files import cache_directory

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

PROGRAMS = (
    *("postgres", "initdb", "pg_ctl", "psql", "pgbench", "pg_controldata", "pg_waldump"),
    *("pg_checksums", "pg_config", "pg_test_fsync"),
)


@pytest.fixture(scope="module", params=[8192, 4096])
def build(request: pytest.FixtureRequest) -> Build:
    return ensure_build(
        BuildSpec("18", request.param),
        cache_directory=cache_directory(),
        commands=Commands(),
        progress=lambda _: None,
    )


@pytest.fixture
def nobody() -> Account:
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


@pytest.fixture
def data_directory(nobody: Account) -> Iterator[Path]:
    # Not tmp_path: its parents are closed to every account but root.
    with tempfile.TemporaryDirectory(prefix="bedplate-test-build-") as folder:
        os.chown(folder, nobody.uid, nobody.gid)
        yield Path(folder) / "data"


def test_server_says_the_release_that_was_built(build: Build, nobody: Account) -> None:
    shown = Commands().run([str(build.program("postgres")), "--version"], account=nobody).stdout
    assert shown.startswith(f"postgres (PostgreSQL) {build.version}")
    assert re.fullmatch(r"18\.\d+", build.version)


def test_every_program_starts_as_an_unprivileged_account(build: Build, nobody: Account) -> None:
    for name in PROGRAMS:
        shown = Commands().run([str(build.program(name)), "--version"], account=nobody).stdout
        assert build.version in shown


def test_the_extensions_that_plans_are_held_against_are_installed(build: Build) -> None:
    installed = {path.stem for path in build.prefix.glob("share/**/extension/*.control")}
    assert extensions_of(major_of(build.version)) == installed


def test_cluster_has_the_block_sizes_of_the_build(
    build: Build, nobody: Account, data_directory: Path
) -> None:
    commands = Commands()
    commands.run(
        [str(build.program("initdb")), "-D", str(data_directory), "--no-sync", "--auth=trust", "--locale=C"],
        account=nobody,
        timeout_s=120,
    )
    shown = commands.run([str(build.program("pg_controldata")), str(data_directory)], account=nobody).stdout
    fields = dict(re.findall(r"^([^:]+):\s+(.*)$", shown, re.MULTILINE))
    assert str(build.block_size_bytes) == fields["Database block size"]
    assert str(build.wal_block_size_bytes) == fields["WAL block size"]
    server = [str(build.program("postgres")), "-D", str(data_directory), "-C"]
    assert str(build.block_size_bytes) == commands.run([*server, "block_size"], account=nobody).stdout.strip()
    assert "io_uring" in _values(build, "io_method", data_directory, nobody)
    assert {"pglz", "lz4", "zstd"} <= set(
        re.findall(r"\w+", _values(build, "wal_compression", data_directory, nobody))
    )
    assert "lz4" in _values(build, "default_toast_compression", data_directory, nobody)


def _values(build: Build, setting: str, data_directory: Path, account: Account) -> str:
    """What the server offers as a setting's value: a refused one makes it list them."""
    return (
        Commands()
        .run(
            [
                str(build.program("postgres")),
                "-D",
                str(data_directory),
                "-c",
                f"{setting}=none-such",
                "-C",
                "port",
            ],
            account=account,
            check=False,
        )
        .stderr
    )


def test_warm_cache_answers_with_the_same_build(build: Build) -> None:
    spec = BuildSpec("18", build.block_size_bytes)
    commands = Commands()
    assert build == find_build(spec, cache_directory=cache_directory(), commands=commands)
    assert build == read_build(build.prefix)
    assert [("cc", "--version")] == commands.record
