from __future__ import annotations

import fcntl
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.engines.postgresql import builds as build_module
from bedplate.engines.postgresql.builds import (
    Build,
    BuildSpec,
    RecipeWork,
    ensure_build,
    find_build,
    is_current,
)
from bedplate.errors import CommandFailed, RequirementMissing, VerifyFailed
from bedplate.host.command import Completed
from bedplate.host.native_driver import BuildProgress
from bedplate.host.requirement import Requirement

if TYPE_CHECKING:
    from tests.support.tools.scripted_commands import ScriptedCommands

MakeTarball = Callable[..., Path]
Recipe = Callable[[RecipeWork], None]


def install_nothing_but_the_server(work: RecipeWork) -> None:
    (work.staged_prefix / "bin").mkdir(parents=True)
    (work.staged_prefix / "bin" / "postgres").write_text(
        str(work.identity.block_size_bytes), encoding="ascii"
    )


@pytest.fixture
def machine(scripted: ScriptedCommands, monkeypatch: pytest.MonkeyPatch) -> ScriptedCommands:
    """A machine that has everything, with a compiler that says what the test lets it say."""
    scripted.answers |= {
        "cc": lambda argv, _: Completed(argv, 0, "cc (Some) 12.2.0\nCopyright\n", "", 0.0),
        "postgres": lambda argv, _: Completed(argv, 0, "postgres (PostgreSQL) 18.6\n", "", 0.0),
    }
    monkeypatch.setattr(build_module, "missing_requirements", lambda *_, **__: ())
    monkeypatch.setattr(build_module, "find_tool", lambda _: Path("/usr/bin/cc"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return scripted


@pytest.fixture
def ensure(machine: ScriptedCommands, make_tarball: MakeTarball, tmp_path: Path) -> Callable[..., Build]:
    tarball = make_tarball("18.6")

    def call(
        recipe: Recipe,
        *,
        block_size_bytes: int = 8192,
        given: Path | None = tarball,
        progress: Callable[[BuildProgress], None] = lambda _: None,
    ) -> Build:
        return ensure_build(
            BuildSpec("18", block_size_bytes, tarball=given),
            cache_directory=tmp_path / "cache",
            commands=machine,
            progress=progress,
            recipe=recipe,
        )

    return call


def visible(directory: Path) -> list[str]:
    return [item.name for item in directory.iterdir() if not item.name.startswith(".")]


def hidden_work(directory: Path) -> list[str]:
    return [item.name for item in directory.iterdir() if item.name.startswith(".work-")]


def test_build_is_made_once_and_then_found(
    ensure: Callable[..., Build], machine: ScriptedCommands, tmp_path: Path
) -> None:
    made = []

    def recipe(work: RecipeWork) -> None:
        made.append(work.prefix)
        install_nothing_but_the_server(work)

    first = ensure(recipe)
    assert first == ensure(recipe) == ensure(recipe, given=None)
    assert [first.prefix] == made
    assert first == find_build(BuildSpec("18"), cache_directory=tmp_path / "cache", commands=machine)
    assert ("18.6", 8192, "cc (Some) 12.2.0") == (first.version, first.block_size_bytes, first.compiler)
    assert first.source_origin.startswith("given tarball: ")


def test_each_block_size_has_its_own_build(ensure: Callable[..., Build]) -> None:
    builds = [ensure(install_nothing_but_the_server, block_size_bytes=size) for size in (4096, 8192, 4096)]
    assert builds[0] == builds[2]
    assert ["4096", "8192"] == [item.program("postgres").read_text(encoding="ascii") for item in builds[:2]]


def test_another_compiler_is_another_build(ensure: Callable[..., Build], machine: ScriptedCommands) -> None:
    first = ensure(install_nothing_but_the_server)
    machine.answers["cc"] = lambda argv, _: Completed(argv, 0, "cc (Some) 13.0\n", "", 0.0)
    assert first.prefix != ensure(install_nothing_but_the_server).prefix


def test_a_build_is_current_until_something_else_would_be_made(
    ensure: Callable[..., Build], machine: ScriptedCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ensure(install_nothing_but_the_server, block_size_bytes=4096)
    assert is_current(build, commands=machine)
    with monkeypatch.context() as changed:
        changed.setattr(build_module, "RECIPE_VERSION", -1)
        assert not is_current(build, commands=machine)
    machine.answers["cc"] = lambda argv, _: Completed(argv, 0, "cc (Some) 13.0\n", "", 0.0)
    assert not is_current(build, commands=machine)
    # Without a compiler nothing is known, and nothing is thrown away for it.
    monkeypatch.setattr(build_module, "find_tool", lambda _: None)
    assert is_current(build, commands=machine)


def test_interrupted_build_leaves_nothing_and_is_made_again(
    ensure: Callable[..., Build], tmp_path: Path
) -> None:
    def interrupted(work: RecipeWork) -> None:
        install_nothing_but_the_server(work)
        raise KeyboardInterrupt

    builds = tmp_path / "cache" / "builds"
    with pytest.raises(KeyboardInterrupt):
        ensure(interrupted)
    assert [] == visible(builds)
    assert [] == hidden_work(builds)
    assert ensure(install_nothing_but_the_server).program("postgres").is_file()


def test_prefix_without_a_stamp_is_built_anew(ensure: Callable[..., Build]) -> None:
    build = ensure(install_nothing_but_the_server)
    (build.prefix / "build.json").unlink()
    (build.prefix / "bin" / "left-over").touch()
    again = ensure(install_nothing_but_the_server)
    assert build.prefix == again.prefix
    assert not (again.prefix / "bin" / "left-over").exists()


def test_work_of_a_killed_start_is_removed_by_the_next_and_that_of_a_live_one_is_not(
    ensure: Callable[..., Build], tmp_path: Path
) -> None:
    builds = tmp_path / "cache" / "builds"
    for name in ("killed", "alive"):
        (builds / f".work-{name}").mkdir(parents=True)
        (builds / f".{name}.lock").touch()
    with (builds / ".alive.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ensure(install_nothing_but_the_server)
    assert [".work-alive"] == hidden_work(builds)


def test_server_of_another_release_is_not_kept(
    ensure: Callable[..., Build], machine: ScriptedCommands, tmp_path: Path
) -> None:
    machine.answers["postgres"] = lambda argv, _: Completed(argv, 0, "postgres (PostgreSQL) 18.5\n", "", 0.0)
    with pytest.raises(VerifyFailed, match=r"18\.5"):
        ensure(install_nothing_but_the_server)
    assert [] == visible(tmp_path / "cache" / "builds")


def test_failed_tool_leaves_its_whole_output(ensure: Callable[..., Build], tmp_path: Path) -> None:
    def failing(_: RecipeWork) -> None:
        raise CommandFailed(
            "make ended with status 2", argv=["make"], status=2, output="first line\nlast line"
        )

    with pytest.raises(CommandFailed, match="whole output is in"):
        ensure(failing)
    builds = tmp_path / "cache" / "builds"
    (log,) = builds.glob("failed-*.log")
    assert "first line" in log.read_text(encoding="utf-8")
    assert [log.name] == visible(builds)


def test_missing_requirements_are_told_before_anything_runs(
    ensure: Callable[..., Build], machine: ScriptedCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = (
        Requirement("bison", "bison", "parsers", found=False),
        Requirement("flex", "flex", "scanners", found=False),
    )
    monkeypatch.setattr(build_module, "missing_requirements", lambda *_, **__: lacking)
    monkeypatch.setattr(build_module, "find_tool", lambda _: None)
    with pytest.raises(RequirementMissing) as raised:
        ensure(install_nothing_but_the_server)
    assert ["bison", "flex"] == [reason.split()[0] for reason in raised.value.reasons[:2]]
    assert [] == machine.record


def test_finished_build_is_found_though_tools_have_gone(
    ensure: Callable[..., Build], monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ensure(install_nothing_but_the_server)
    lacking = (Requirement("bison", "bison", "parsers", found=False),)
    monkeypatch.setattr(build_module, "missing_requirements", lambda *_, **__: lacking)
    assert build == ensure(install_nothing_but_the_server)


def test_root_refuses_a_cache_that_the_servers_account_cannot_reach(
    ensure: Callable[..., Build], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    tmp_path.chmod(0o700)
    with pytest.raises(RequirementMissing, match="BEDPLATE_CACHE"):
        ensure(install_nothing_but_the_server)


def _start(call: Callable[..., Build], made: Path, entered: Event, waiting: Event, go_on: Event) -> None:
    def slow(work: RecipeWork) -> None:
        entered.set()
        assert go_on.wait(30)
        with made.open("a", encoding="ascii") as file:
            file.write("made\n")
        install_nothing_but_the_server(work)

    def progress(step: BuildProgress) -> None:
        if step.step.startswith("waits for another start"):
            waiting.set()

    call(slow, progress=progress)


def test_two_starts_at_once_build_once(ensure: Callable[..., Build], tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    entered, waiting, go_on = context.Event(), context.Event(), context.Event()
    made = tmp_path / "made"
    starts = [context.Process(target=_start, args=(ensure, made, entered, waiting, go_on)) for _ in range(2)]
    starts[0].start()
    assert entered.wait(30)
    starts[1].start()
    assert waiting.wait(30)
    go_on.set()
    for start in starts:
        start.join(30)
    assert [0, 0] == [start.exitcode for start in starts]
    assert "made\n" == made.read_text(encoding="ascii")
    assert 1 == len(visible(tmp_path / "cache" / "builds"))
