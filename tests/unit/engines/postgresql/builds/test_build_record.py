from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from bedplate.engines.postgresql.builds import (
    BLOCK_SIZES_BYTES,
    WAL_BLOCK_SIZES_BYTES,
    Build,
    BuildIdentity,
    BuildSpec,
    configure_cache,
    configure_options,
    read_build,
    stamp_text,
)
from bedplate.errors import PlanError

IDENTITY = BuildIdentity(
    version="18.6",
    block_size_bytes=8192,
    wal_block_size_bytes=8192,
    tarball_sha256="ab" * 32,
    compiler="cc 12.2",
    machine="x86_64",
    configure_options=configure_options(18, 8192, 8192),
    recipe_version=1,
)


def test_allowed_sizes_are_those_of_postgresql() -> None:
    assert (1024, 2048, 4096, 8192, 16384, 32768) == BLOCK_SIZES_BYTES
    assert (*BLOCK_SIZES_BYTES, 65536) == WAL_BLOCK_SIZES_BYTES


@pytest.mark.parametrize("size", [0, -8192, 512, 3000, 8191, 65536])
def test_block_size_that_cannot_be_compiled_is_refused(size: int) -> None:
    with pytest.raises(PlanError, match=f"block size of {size} bytes"):
        BuildSpec(block_size_bytes=size)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(PlanError) as raised:
        BuildSpec(version="7", block_size_bytes=1000, wal_block_size_bytes=131072)
    assert 3 == len(raised.value.reasons)


def test_wal_blocks_may_be_larger_than_data_blocks_can() -> None:
    assert 65536 == BuildSpec(wal_block_size_bytes=65536).wal_block_size_bytes


@pytest.mark.parametrize(
    "change",
    [
        {"version": "18.7"},
        {"block_size_bytes": 4096},
        {"wal_block_size_bytes": 4096},
        {"tarball_sha256": "cd" * 32},
        {"compiler": "cc 13"},
        {"machine": "aarch64"},
        {"configure_options": (*IDENTITY.configure_options, "--with-lz4")},
        {"configure_options": IDENTITY.configure_options[:-1]},
        {"recipe_version": 2},
        {"commit_digits": "0123456789ab"},
        {"patch_digits": ("0123456789ab",)},
    ],
)
def test_any_change_is_another_build(change: dict[str, object]) -> None:
    other = dataclasses.replace(IDENTITY, **change)  # type: ignore[arg-type]
    assert IDENTITY.digest != other.digest
    assert IDENTITY.folder_name != other.folder_name


def test_every_field_of_the_identity_is_in_the_digest_test() -> None:
    assert 10 == len(dataclasses.fields(BuildIdentity))


def test_a_release_is_the_build_that_it_was_before_there_were_commits() -> None:
    known = {
        name: value
        for name, value in dataclasses.asdict(IDENTITY).items()
        if name not in ("commit_digits", "patch_digits")
    }
    text = json.dumps(known, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == IDENTITY.digest


def test_folder_keeps_configure_from_adding_folders_of_its_own() -> None:
    assert IDENTITY.folder_name.startswith("postgresql-18.6-block8k-wal8k-")


def test_uring_is_asked_for_where_postgresql_has_it() -> None:
    assert "--with-liburing" in configure_options(18, 8192, 8192)
    assert "--with-liburing" not in configure_options(17, 8192, 8192)


def build_at(prefix: Path) -> Build:
    return Build(
        prefix=prefix,
        version="18.6",
        block_size_bytes=8192,
        wal_block_size_bytes=8192,
        tarball_sha256="ab" * 32,
        source_origin="cache: distribution: postgresql-18 18.6-3",
        compiler="cc 12.2",
        machine="x86_64",
        configure_options=("--with-blocksize=8",),
        digest=IDENTITY.digest,
        build_seconds=140.5,
        build_cpu_seconds=280.25,
    )


def install(build: Build) -> None:
    build.program("postgres").parent.mkdir(parents=True)
    build.program("postgres").touch()
    (build.prefix / "build.json").write_text(stamp_text(build), encoding="utf-8")


def test_stamp_reads_back_as_written(tmp_path: Path) -> None:
    build = build_at(tmp_path / "p")
    install(build)
    assert build == read_build(tmp_path / "p")
    assert str(tmp_path / "p") == build.for_visit.prefix
    assert build.tarball_sha256 == build.for_visit.source_sha256


def test_build_that_was_moved_is_not_a_build(tmp_path: Path) -> None:
    install(build_at(tmp_path / "p"))
    (tmp_path / "p").rename(tmp_path / "q")
    assert read_build(tmp_path / "q") is None


def test_stamp_without_a_server_is_not_a_build(tmp_path: Path) -> None:
    build = build_at(tmp_path / "p")
    install(build)
    build.program("postgres").unlink()
    assert read_build(build.prefix) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"format": 2}', '{"format": 1, "prefix": 3}'])
def test_damaged_stamp_is_not_a_build(tmp_path: Path, text: str) -> None:
    install(build_at(tmp_path / "p"))
    (tmp_path / "p" / "build.json").write_text(text, encoding="utf-8")
    assert read_build(tmp_path / "p") is None


def test_configures_answers_serve_other_block_sizes_only(tmp_path: Path) -> None:
    packages = tmp_path / "status"
    packages.write_text("installed", encoding="utf-8")

    def path(identity: BuildIdentity) -> Path | None:
        return configure_cache(identity, tmp_path, package_states=(packages,)).path

    smaller = dataclasses.replace(
        IDENTITY, block_size_bytes=4096, configure_options=configure_options(18, 4096, 8192)
    )
    other_compiler = dataclasses.replace(IDENTITY, compiler="cc 13")
    other_options = dataclasses.replace(IDENTITY, configure_options=("CFLAGS=-O3",))
    assert path(IDENTITY) == path(smaller)
    assert 3 == len({path(IDENTITY), path(other_compiler), path(other_options)})
    before = path(IDENTITY)
    packages.write_text("installed more", encoding="utf-8")
    assert before != path(IDENTITY)


def test_configures_answers_are_not_kept_where_packages_cannot_be_told(tmp_path: Path) -> None:
    cache = configure_cache(IDENTITY, tmp_path, package_states=(tmp_path / "absent",))
    assert cache.path is None
    (tmp_path / "config.cache").touch()
    cache.keep(tmp_path)
    assert ["config.cache"] == [item.name for item in tmp_path.iterdir()]


def test_configure_works_on_a_copy_of_the_answers(tmp_path: Path) -> None:
    (tmp_path / "status").touch()
    cache = configure_cache(IDENTITY, tmp_path / "kept", package_states=(tmp_path / "status",))
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    cache.lend(first)
    assert [] == list(first.iterdir())
    (first / "config.cache").write_text("answers", encoding="utf-8")
    cache.keep(first)
    cache.lend(second)
    (second / "config.cache").write_text("scribbled", encoding="utf-8")
    cache.keep(second)
    assert cache.path is not None
    assert "answers" == cache.path.read_text(encoding="utf-8")
