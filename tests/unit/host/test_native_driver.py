from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from bedplate.engines.lmdb.visit import LIBLMDB
from bedplate.errors import CommandFailed, RequirementMissing
from bedplate.host.command import Commands, Completed
from bedplate.host.native_driver import (
    COMPILER,
    LIBFUSE3,
    Library,
    compiler_requirements,
    ensure_driver,
    library_requirement,
    library_version,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

needs_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C compiler: package gcc")
PROGRAM = "#include <stdio.h>\nint main(void) { return puts(WORD) < 0; }\n"


def compilations(commands: Commands) -> int:
    return sum("-o" in argv for argv in commands.record)


def source_in(folder: Path, word: str = "one") -> Path:
    source = folder / "driver.c"
    source.write_text(f'#define WORD "{word}"\n{PROGRAM}')
    return source


@needs_compiler
def test_builds_once_and_again_only_for_another_source(tmp_path: Path) -> None:
    commands = Commands()
    source = source_in(tmp_path)
    cache = tmp_path / "cache"
    first = ensure_driver("d", source=source, cache_directory=cache, commands=commands)
    assert first == ensure_driver("d", source=source, cache_directory=cache, commands=commands)
    assert compilations(commands) == 1
    second = ensure_driver("d", source=source_in(tmp_path, "two"), cache_directory=cache, commands=commands)
    assert [
        subprocess.run([str(driver)], check=True, capture_output=True, text=True).stdout
        for driver in (first, second)
    ] == ["one\n", "two\n"]


@needs_compiler
def test_the_folder_beside_the_source_belongs_to_it(tmp_path: Path) -> None:
    commands = Commands()
    source = tmp_path / "driver.c"
    source.write_text('#include "driver/word.h"\nint main(void) { return answer(); }\n')
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver/word.h").write_text("int answer(void);\n")
    found = []
    for answer in (7, 8):
        (tmp_path / "driver/word.c").write_text(
            f'#include "word.h"\nint answer(void) {{ return {answer}; }}\n'
        )
        driver = ensure_driver("d", source=source, cache_directory=tmp_path / "cache", commands=commands)
        found.append(subprocess.run([str(driver)], check=False).returncode)
    assert found == [7, 8]


@needs_compiler
def test_several_at_once_compile_once(tmp_path: Path) -> None:
    source = source_in(tmp_path)
    everyone = [Commands() for _ in range(4)]
    with ThreadPoolExecutor(len(everyone)) as pool:
        drivers = set(
            pool.map(
                lambda commands: ensure_driver(
                    "d", source=source, cache_directory=tmp_path / "cache", commands=commands
                ),
                everyone,
            )
        )
    assert len(drivers) == 1
    assert sum(compilations(commands) for commands in everyone) == 1
    (driver,) = drivers
    assert {driver.name, f".{driver.name}.lock"} == {path.name for path in driver.parent.iterdir()}


@needs_compiler
def test_a_source_that_does_not_compile_says_what_the_compiler_said(tmp_path: Path) -> None:
    source = tmp_path / "driver.c"
    source.write_text("#include <no_such_header.h>\n")
    with pytest.raises(RequirementMissing, match=r"no_such_header\.h"):
        ensure_driver("d", source=source, cache_directory=tmp_path / "cache", commands=Commands())
    assert {".lock"} == {path.suffix for path in (tmp_path / "cache").iterdir()}


@dataclass
class _FullDisk(Commands):
    """A compiler that finds no room, and removes what it began."""

    def run(self, argv: Sequence[str], **_options: object) -> Completed:
        if "--version" in argv:
            return Completed(tuple(argv), 0, "cc 1", "", 0.0)
        said = "driver.c:1: fatal error: error writing to /tmp/d.s: No space left on device"
        raise CommandFailed(f"cc failed: {said}", argv=argv, status=1, output=said)


def test_a_compilation_that_a_full_disk_ends_names_the_disk_and_no_package(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(RequirementMissing) as caught:
        ensure_driver("d", source=source_in(tmp_path), cache_directory=cache, commands=_FullDisk())
    place, what = caught.value.reasons
    assert place.startswith(f"{cache} or ")
    assert "No space left on device" in place
    assert "the driver d is compiled there, and was not" in what
    assert "-dev packages" not in " ".join(caught.value.reasons)
    assert 3 == caught.value.exit_code
    assert {".lock"} == {path.suffix for path in cache.iterdir()}


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing, match=r"gone\.c"):
        ensure_driver("d", source=tmp_path / "gone.c", cache_directory=tmp_path, commands=Commands())


@dataclass
class _NoCompiler(Commands):
    def run(self, argv: object, **_options: object) -> Completed:
        del argv
        raise CommandFailed("cc cannot be started: No such file", argv=["cc"], status=None, output="")


def test_without_a_compiler_a_library_cannot_be_looked_for() -> None:
    with pytest.raises(RequirementMissing, match=r"look for lmdb\.h.*install the packages gcc"):
        library_version(LIBLMDB, commands=_NoCompiler())


def test_without_a_compiler_a_library_is_missing_like_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = library_requirement(LIBLMDB, reason="the driver d", commands=_NoCompiler())
    assert "lmdb.h is missing (package liblmdb-dev): the driver d" == found.sentence
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr("bedplate.host.native_driver._C_HEADER", tmp_path / "stdio.h")
    assert [("gcc", False), ("libc6-dev", False)] == [
        (each.package, each.found) for each in compiler_requirements("the driver d")
    ]


def test_no_compiler_names_the_packages(tmp_path: Path) -> None:
    with pytest.raises(RequirementMissing, match="install the packages gcc and libc6-dev"):
        ensure_driver("d", source=source_in(tmp_path), cache_directory=tmp_path, commands=_NoCompiler())


def library_in(folder: Path, version: tuple[str, str] = ("1", "2")) -> Library:
    """A library of one header, found by its own path."""
    header = folder / "bed.h"
    header.write_text(f"#define BED_MAJOR {version[0]}\n#define BED_MINOR {version[1]}\n")
    return Library("libbed", str(header), "libbed-dev", ("-lm",), ("BED_MAJOR", "BED_MINOR"))


@needs_compiler
def test_the_version_of_a_library_stands_in_its_header(tmp_path: Path) -> None:
    assert "1.2" == library_version(library_in(tmp_path), commands=Commands())


@needs_compiler
def test_a_header_that_wants_to_be_told_something_first_is_told(tmp_path: Path) -> None:
    library = library_in(tmp_path)
    header = tmp_path / "bed.h"
    header.write_text(f"#ifdef BED_USE\n{header.read_text()}\n#endif\n")
    assert library_version(library, commands=Commands()) is None
    told = replace(library, header_words=("-DBED_USE=1",))
    assert "1.2" == library_version(told, commands=Commands())


@needs_compiler
def test_libfuse_is_found_where_its_header_is() -> None:
    found = library_version(LIBFUSE3, commands=Commands())
    if found is None:
        pytest.skip("libfuse's header is missing (package libfuse3-dev)")
    assert "3" == found.split(".")[0]


@needs_compiler
def test_another_version_of_a_library_is_another_driver(tmp_path: Path) -> None:
    source, commands = source_in(tmp_path), Commands()
    drivers = [
        ensure_driver(
            "d",
            source=source,
            cache_directory=tmp_path / "cache",
            commands=commands,
            libraries=(library_in(tmp_path, version),),
        )
        for version in (("1", "2"), ("1", "3"), ("1", "2"))
    ]
    assert drivers[0] == drivers[2] != drivers[1]
    # The versions are looked up by the preprocessor: only two of these made a driver.
    assert 2 == compilations(commands)
    assert all(argv[-1] == "-lm" for argv in commands.record if "-o" in argv)


@needs_compiler
@pytest.mark.parametrize("text", [None, "#define BED_MAJOR 1\n"])
def test_a_library_without_header_or_version_names_its_package(tmp_path: Path, text: str | None) -> None:
    library, commands = library_in(tmp_path), Commands()
    header = tmp_path / "bed.h"
    header.unlink() if text is None else header.write_text(text)
    assert library_version(library, commands=commands) is None
    requirement = library_requirement(library, reason="the driver d", commands=commands)
    assert f"{header} is missing (package libbed-dev): the driver d" == requirement.sentence
    with pytest.raises(RequirementMissing, match="install the package libbed-dev"):
        ensure_driver(
            "d",
            source=source_in(tmp_path),
            cache_directory=tmp_path / "cache",
            commands=commands,
            libraries=(library,),
        )
