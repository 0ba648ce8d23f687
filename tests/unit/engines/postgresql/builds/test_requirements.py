from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bedplate.engines.postgresql.builds import BuildSpec, build_requirements, missing_requirements
from bedplate.errors import PlanError
from bedplate.host.command import Completed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools.scripted_commands import ScriptedCommands


def names(version: str, commands: ScriptedCommands) -> set[str]:
    return {item.name for item in build_requirements(BuildSpec(version), commands=commands)}


def test_newer_versions_need_more(scripted: ScriptedCommands) -> None:
    assert {"bison", "flex"} == names("17", scripted) - names("15", scripted)
    assert {"liburing"} == names("18.6", scripted) - names("17", scripted)


def test_library_that_pkg_config_does_not_know_is_missing_with_its_package(
    scripted: ScriptedCommands,
) -> None:
    def pkg_config(argv: tuple[str, ...], _: Path | None) -> Completed:
        return Completed(argv, 1, "", "", 0.0)

    scripted.answers["pkg-config"] = pkg_config
    assert ("liburing", "liburing-dev") in [
        (item.name, item.package) for item in missing_requirements(BuildSpec("18"), commands=scripted)
    ]


def test_perl_without_its_modules_is_not_enough(scripted: ScriptedCommands) -> None:
    scripted.answers["perl"] = lambda argv, _: Completed(argv, 2, "", "Can't locate File/Compare.pm", 0.0)
    lacking = {item.package for item in missing_requirements(BuildSpec("17"), commands=scripted)}
    assert "perl" in lacking
    scripted.answers["perl"] = lambda argv, _: Completed(argv, 0, "", "", 0.0)
    assert "perl" not in {item.package for item in missing_requirements(BuildSpec("17"), commands=scripted)}


def test_version_that_cannot_be_built_has_no_requirements(scripted: ScriptedCommands) -> None:
    with pytest.raises(PlanError):
        build_requirements(BuildSpec("14"), commands=scripted)


def test_a_commit_and_a_patched_release_need_git_and_the_generators(scripted: ScriptedCommands) -> None:
    release = names("15", scripted)
    for own in (
        BuildSpec("15.4", source_commit="0123456789ab Start"),
        BuildSpec("15", patches=("x.patch 0123456789ab",)),
    ):
        found = {item.name for item in build_requirements(own, commands=scripted)}
        assert {"git", "bison", "flex"} == found - release
