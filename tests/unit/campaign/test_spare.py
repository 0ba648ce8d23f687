"""What of the cache may go: nothing that a checkout, a build, data or a process still stands on."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.tools.scripted_commands import ScriptedCommands

from bedplate.campaign.preparation import Spare, find_spare, remove
from bedplate.engines.postgresql import prepare
from bedplate.engines.postgresql.builds import Build, BuildIdentity, stamp_text
from bedplate.host.files import file_lock
from bedplate.workloads.tpch import prepare as tpch_data
from bedplate.workloads.tpch.prepare import Generator
from bedplate.workloads.tpch.queries import TABLES

DAY_S = 86_400
OURS, THEIRS, OLD = "click==8.5.1\n", "click==8.4\n", "typer==0.29\n"


class Cache:
    """A cache with environments and builds, and checkouts beside it."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = base / "cache"
        self.environments = self.path / "environments"
        self.builds = self.path / "builds"
        self.environments.mkdir(parents=True)
        self.builds.mkdir()
        self.checkout = self.another_checkout(base / "own", OURS)
        self.commands = ScriptedCommands()
        self.current: set[str] = set()
        monkeypatch.setattr(prepare, "is_current", lambda build, **_: build.digest in self.current)
        generator = Generator(base / "tpchgen-cli", "4.0.0")
        monkeypatch.setattr(tpch_data, "packaged_generator", lambda: generator)

    def another_checkout(self, path: Path, text: str) -> Path:
        (path / "requirements").mkdir(parents=True)
        for name in ("runtime", "development", "package"):
            (path / "requirements" / f"{name}.txt").write_text(f"# {name}\n{text}")
        return path

    def environment(self, name: str, text: str, *users: Path, complete: bool = True) -> Path:
        path = self.environments / name
        (path / "bin").mkdir(parents=True)
        (path / "bin" / "tool").write_bytes(b"x" * 100_000)
        (path / "requirements.txt").write_text(text)
        if users:
            (path / "used-by").write_text("".join(f"{user}\n" for user in users))
        if complete:
            (path / "complete").write_text("/usr/bin/python3\n")
        return path

    def build(self, name: str, *, current: bool) -> Path:
        identity = BuildIdentity("18.6", 8192, 8192, "0" * 64, f"cc {name}", "x86_64", (), 1)
        path = self.builds / f"postgresql-18.6-block8k-wal8k-{identity.digest[:12]}"
        (path / "bin").mkdir(parents=True)
        (path / "bin" / "postgres").write_text("")
        build = Build(
            path, "18.6", 8192, 8192, "0" * 64, "cache", f"cc {name}", "x86_64", (), identity.digest, 1.0, 1.0
        )
        (path / "build.json").write_text(stamp_text(build))
        if current:
            self.current.add(identity.digest)
        return path

    def data(self, scale_factor: str, *, version: str = "4.0.0", unused_days: float = 0) -> Path:
        path = self.path / "tpch" / f"sf{scale_factor}-tpchgen-cli-{version}"
        path.mkdir(parents=True)
        for name in TABLES:
            (path / f"{name}.csv").write_text("x" * 10_000)
        fields = {
            "scale_factor": float(scale_factor),
            "generator": f"tpchgen-cli {version}",
            "bytes": 80_000,
            "digest": "0" * 64,
            "files": dict.fromkeys(TABLES, 10_000),
        }
        (path / "data.json").write_text(json.dumps(fields))
        used = time.time() - unused_days * DAY_S
        os.utime(path / "data.json", (used, used))
        return path

    def image(self, kind: str, record: str, key: str, *, unused_days: float = 0, whole: bool = True) -> Path:
        folder = self.path / kind / key
        folder.mkdir(parents=True)
        (folder / "image").write_bytes(b"blocks")
        if whole:
            (folder / record).write_text("{}")
            used = time.time() - unused_days * DAY_S
            os.utime(folder / record, (used, used))
        return folder

    def programs(self, name: str, digit: str, *, unused_days: float = 0, whole: bool = True) -> Path:
        path = self.path / "engines" / f"{name}-{digit * 16}"
        path.mkdir(parents=True)
        (path / "writer").write_text("x" * 10_000)
        if whole:
            (path / "engine.toml").write_text("")
        used = time.time() - unused_days * DAY_S
        os.utime(path, (used, used))
        return path

    def spare(self, days: float = 30) -> dict[Path, Spare]:
        return {
            found.path: found
            for found in find_spare(self.path, checkout=self.checkout, commands=self.commands, days=days)
        }


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    return Cache(tmp_path, monkeypatch)


def test_an_environment_stays_while_any_checkout_has_its_requirements(cache: Cache, tmp_path: Path) -> None:
    theirs = cache.another_checkout(tmp_path / "their own", THEIRS)
    moved_on = cache.another_checkout(tmp_path / "moved", OURS)
    cache.environment("runtime-ours", f"# runtime\n{OURS}")
    cache.environment("development-ours", f"# development\n{OURS}")
    cache.environment("package-ours", f"# package\n{OURS}")
    gone, runtime = tmp_path / "gone" / "runtime.txt", Path("requirements/runtime.txt")
    cache.environment("runtime-theirs", f"# runtime\n{THEIRS}", gone, theirs / runtime)
    old = cache.environment("runtime-old", f"# runtime\n{OLD}", gone, moved_on / runtime)
    never_noted = cache.environment("development-old", f"# development\n{OLD}")
    of_package = cache.environment("package-old", f"# package\n{OLD}", moved_on / "requirements/package.txt")
    assert {old, never_noted, of_package} == set(cache.spare())
    found = cache.spare()[old]
    assert "no checkout has the requirements" in found.reason
    assert 100_000 <= found.size_bytes < 200_000
    assert () == found.held


def test_programs_stay_while_they_are_those_of_their_engine_that_were_used_last(cache: Cache) -> None:
    cache.programs("toy", "a", unused_days=2)
    changed = cache.programs("toy", "0", unused_days=3)
    cache.programs("toy-two", "b", unused_days=29)
    forgotten = cache.programs("sqlite", "c", unused_days=31)
    halves = {cache.programs("toy", "d", whole=False), cache.programs(".work-toy", "e")}
    found = cache.spare()
    assert {changed, forgotten, *halves} == set(found)
    assert ("the programs of toy were changed since", "not used for 31 days") == (
        found[changed].reason,
        found[forgotten].reason,
    )
    assert remove(found[changed]) is None
    assert not changed.exists()


def test_what_an_ended_start_left_half_made_is_spare(cache: Cache) -> None:
    half = cache.environment("runtime-half", f"# runtime\n{OURS}", complete=False)
    work = cache.builds / ".work-postgresql-18.6-block8k-wal8k-0123456789ab"
    work.mkdir()
    torn = cache.build("gcc", current=True)
    (torn / "build.json").write_text("{")
    assert {half, work, torn} == set(cache.spare())


def test_a_build_stays_while_it_would_be_made_again(cache: Cache) -> None:
    cache.build("gcc 12", current=True)
    old = cache.build("gcc 10", current=False)
    assert {old} == set(cache.spare())
    assert "it is by cc gcc 10" in cache.spare()[old].reason


def test_data_stay_while_they_are_asked_for(cache: Cache) -> None:
    cache.data("1", unused_days=29)
    unused = cache.data("10", unused_days=31.2)
    older = cache.data("0.1", version="3.2.1")
    assert {unused, older} == set(cache.spare())
    assert "nobody has asked for them for 31 days" == cache.spare()[unused].reason
    assert "tpchgen-cli 4.0.0 would be used now; they are by tpchgen-cli 3.2.1" == cache.spare()[older].reason
    assert 80_000 <= cache.spare()[unused].size_bytes < 200_000
    assert all(remove(found) is None for found in cache.spare().values())
    assert {} == cache.spare()
    assert not unused.exists()


def test_without_a_generator_no_version_of_data_is_old(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch_data, "packaged_generator", lambda: None)
    cache.data("0.1", version="3.2.1")
    unused = cache.data("1", unused_days=31)
    assert {unused} == set(cache.spare())


def test_data_that_are_not_whole_are_spare_and_those_being_made_are_left_alone(cache: Cache) -> None:
    torn = cache.data("1")
    (torn / "orders.csv").write_text("")
    work = cache.path / "tpch" / ".work-sf3-tpchgen-cli-4.0.0"
    work.mkdir()
    (cache.path / "tpch" / "notes").mkdir()
    assert {torn, work} == set(cache.spare())
    found = cache.spare()[work]
    assert "half made by a start that was ended" == found.reason
    with file_lock(cache.path / "tpch" / ".sf3-tpchgen-cli-4.0.0.lock"):
        assert "being made at this moment" in (remove(found) or "")
    assert work.is_dir()
    assert remove(found) is None
    assert not work.exists()


def test_what_is_not_ours_is_never_spare(cache: Cache, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (cache.environments / "runtime-link").symlink_to(elsewhere)
    (cache.environments / "letters").mkdir()
    (cache.environments / "runtime.lock").write_text("")
    (cache.builds / "postgresql-link").symlink_to(elsewhere)
    (cache.builds / ".configure").mkdir()
    (cache.builds / "notes").mkdir()
    assert {} == cache.spare()
    assert () == find_spare(tmp_path / "no cache", checkout=cache.checkout, commands=cache.commands)


def test_the_environment_that_runs_this_is_never_spare(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    running = cache.environment("runtime-running", OLD)
    assert {running} == set(cache.spare())
    monkeypatch.setattr(sys, "prefix", str(running))
    assert {} == cache.spare()


def test_what_a_process_stands_on_is_told_and_left_alone(cache: Cache) -> None:
    old = cache.build("gcc 10", current=False)
    process = subprocess.Popen(["sleep", "60"], cwd=old / "bin")
    try:
        found = cache.spare()[old]
        assert any(f"process {process.pid} " in sentence for sentence in found.held)
        problem = remove(found)
        assert problem is not None
        assert "is in use: process" in problem
        assert (old / "build.json").exists()
    finally:
        process.kill()
        process.wait()
    assert remove(found) is None
    assert not old.exists()


def test_what_is_being_made_at_this_moment_is_left_alone(cache: Cache) -> None:
    half = cache.environment("runtime-half", OURS, complete=False)
    found = cache.spare()[half]
    with (cache.environments / "runtime.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "being made at this moment" in (remove(found) or "")
    assert half.is_dir()
    assert remove(found) is None
    assert not half.exists()


def test_links_within_are_removed_and_not_followed(cache: Cache, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    old = cache.environment("runtime-old", OLD)
    (old / "link").symlink_to(outside)
    (old / "bin" / "python").symlink_to(outside / "precious")
    assert remove(cache.spare()[old]) is None
    assert "mine" == (outside / "precious").read_text()


def test_a_removal_that_fails_half_way_leaves_nothing_that_counts(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = cache.environment("runtime-old", OLD)
    found = cache.spare()[old]

    def fail(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("shutil.rmtree", fail)
    assert f"{old}: Permission denied" == remove(found)
    assert not (old / "complete").exists()


def test_a_file_with_several_names_is_counted_once(cache: Cache) -> None:
    old = cache.environment("runtime-old", OLD)
    before = cache.spare()[old].size_bytes
    os.link(old / "bin" / "tool", old / "bin" / "again")
    assert before == cache.spare()[old].size_bytes


@pytest.mark.parametrize(("kind", "record"), [("datasets", "kept.json"), ("aged", "aged.json")])
def test_a_kept_image_is_spare_some_days_after_its_last_visit_or_unfinished(
    cache: Cache, kind: str, record: str
) -> None:
    young = cache.image(kind, record, "a", unused_days=29)
    forgotten = cache.image(kind, record, "b", unused_days=31)
    without_record = cache.image(kind, record, "c", whole=False)
    half = cache.image(kind, record, ".work-d", whole=False)
    found = cache.spare()
    assert {forgotten, without_record, half} == set(found)
    assert "31 days" in found[forgotten].reason
    assert {young, *found} == set(cache.spare(days=28))


def test_with_no_days_all_goes_that_is_kept_for_the_next_start(cache: Cache) -> None:
    kept = {
        cache.image("datasets", "kept.json", "a"),
        cache.image("aged", "aged.json", "b"),
        cache.data("1"),
        cache.programs("bricks", "1"),
    }
    assert {} == cache.spare()
    assert kept == set(cache.spare(days=0))
    for spare in cache.spare(days=0).values():
        assert remove(spare) is None
    assert not any(path.exists() for path in kept)
