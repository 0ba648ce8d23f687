from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.engines.postgresql.builds import (
    BuildIdentity,
    ConfigureCache,
    RecipeWork,
    compile_postgresql,
    configure_options,
)
from bedplate.engines.postgresql.versions import libraries
from bedplate.errors import VerifyFailed
from bedplate.host.command import Completed
from bedplate.host.native_driver import BuildProgress

if TYPE_CHECKING:
    from tests.support.tools.scripted_commands import ScriptedCommands

MACROS = [library.macro for library in libraries(18)]
HEADER = "#define BLCKSZ 4096\n#define XLOG_BLCKSZ 8192\n" + "".join(
    f"#define {macro} 1\n" for macro in MACROS
)


class FakeBuildTools:
    """`env … configure` writes the header, `env … make install` writes into the stage."""

    def __init__(self, header: str) -> None:
        self.header = header
        self.makes: list[tuple[str, ...]] = []

    def env(self, argv: tuple[str, ...], directory: Path | None) -> Completed:
        assert directory is not None
        if "make" in argv:
            self.makes.append(argv)
            for word in argv:
                if word.startswith("DESTDIR="):
                    stage = Path(word.removeprefix("DESTDIR="))
                    (program,) = [*stage.glob("**/include")] or [stage]
                    closed = program.parent / "bin" / "postgres"
                    closed.parent.mkdir(mode=0o700)
                    closed.touch(mode=0o700)
        else:
            (directory / "src/include").mkdir(parents=True)
            (directory / "src/include/pg_config.h").write_text(self.header, encoding="utf-8")
        return Completed(argv, 0, "", "", 0.0)


@pytest.fixture
def work(tmp_path: Path, scripted: ScriptedCommands) -> Callable[..., RecipeWork]:
    def make(progress: Callable[[BuildProgress], None] = lambda _: None, *, commit: str = "") -> RecipeWork:
        catalog = tmp_path / "tree/src/include/catalog"
        catalog.mkdir(parents=True)
        (catalog / "Makefile").touch()
        (tmp_path / "work").mkdir()
        return RecipeWork(
            identity=BuildIdentity(
                "18.6", 4096, 8192, "ab", "cc", "x86_64", configure_options(18, 4096, 8192), 1, commit
            ),
            tree=tmp_path / "tree",
            work=tmp_path / "work",
            prefix=Path("/cache/builds/postgresql-x"),
            configure_cache=ConfigureCache(None),
            commands=scripted,
            progress=progress,
        )

    return make


def test_steps_are_reported_in_order(work: Callable[..., RecipeWork], scripted: ScriptedCommands) -> None:
    scripted.answers["env"] = FakeBuildTools(HEADER).env
    steps: list[str] = []
    compile_postgresql(work(lambda progress: steps.append(progress.step)))
    assert ["configure", "compile", "install"] == list(dict.fromkeys(steps))


def test_configure_is_asked_for_the_sizes_in_kib(
    work: Callable[..., RecipeWork], scripted: ScriptedCommands
) -> None:
    scripted.answers["env"] = FakeBuildTools(HEADER).env
    compile_postgresql(work())
    configure = scripted.record[0]
    assert "--with-blocksize=4" in configure
    assert "--with-wal-blocksize=8" in configure
    assert "--prefix=/cache/builds/postgresql-x" in configure


def test_surroundings_of_the_user_do_not_reach_the_compiler(
    work: Callable[..., RecipeWork], scripted: ScriptedCommands
) -> None:
    scripted.answers["env"] = FakeBuildTools(HEADER).env
    compile_postgresql(work())
    for words in scripted.record:
        assert {"--unset=CFLAGS", "--unset=MAKEFLAGS", "--unset=CPATH", "CONFIG_SITE=/dev/null"} <= set(words)


def test_installed_files_are_open_to_all_and_headers_are_left_out(
    work: Callable[..., RecipeWork], scripted: ScriptedCommands
) -> None:
    tools = FakeBuildTools(HEADER)
    scripted.answers["env"] = tools.env
    recipe_work = work()
    compile_postgresql(recipe_work)
    server = recipe_work.staged_prefix / "bin" / "postgres"
    assert 0o755 == server.stat().st_mode & 0o777
    assert 0o755 == server.parent.stat().st_mode & 0o777
    assert not (recipe_work.staged_prefix / "include").exists()
    assert "EXTRA_INSTALLED=src/include/catalog" in tools.makes[-1]


@pytest.mark.parametrize(
    ("header", "reasons"),
    [
        (HEADER.replace("BLCKSZ 4096", "BLCKSZ 8192", 1), 1),
        *((HEADER.replace(f"#define {macro} 1", f"/* #undef {macro} */"), 1) for macro in MACROS),
        ("", 2 + len(MACROS)),
    ],
)
def test_option_that_configure_ignored_stops_the_build_before_it_is_compiled(
    work: Callable[..., RecipeWork], scripted: ScriptedCommands, header: str, reasons: int
) -> None:
    tools = FakeBuildTools(header)
    scripted.answers["env"] = tools.env
    with pytest.raises(VerifyFailed) as raised:
        compile_postgresql(work())
    assert reasons == len(raised.value.reasons)
    assert [] == tools.makes


def test_a_commit_that_is_older_than_a_librarys_option_is_built_without_it(
    work: Callable[..., RecipeWork], scripted: ScriptedCommands
) -> None:
    tools = FakeBuildTools(HEADER.replace("#define USE_LIBURING 1\n", ""))
    scripted.answers["env"] = tools.env
    compile_postgresql(work(commit="0123456789ab"))
    assert [] != tools.makes


def test_an_option_that_a_commits_configure_knows_and_does_not_follow_stops_its_build(
    work: Callable[..., RecipeWork], scripted: ScriptedCommands
) -> None:
    scripted.answers["env"] = FakeBuildTools(HEADER.replace("#define USE_ICU 1", "/* #undef USE_ICU */")).env
    with pytest.raises(VerifyFailed, match="USE_ICU undefined"):
        compile_postgresql(work(commit="0123456789ab"))
