"""What a build of PostgreSQL needs from the machine, found without root and before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.libraries import libraries
from bedplate.engines.postgresql.builds.version import major_of
from bedplate.errors import CommandFailed
from bedplate.host.command import Commands
from bedplate.host.native_driver import compiler_requirements
from bedplate.host.requirement import Need, Requirement, look, missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.engines.postgresql.builds.build_record import BuildSpec

_TOOLS = (Need("make", "make", "runs PostgreSQL's build"),)
# Release tarballs up to 16 carry the generated parsers, later ones do not.
_PARSER_TOOLS = (
    Need("bison", "bison", "generates the parsers of PostgreSQL 17 and later"),
    Need("flex", "flex", "generates the scanners of PostgreSQL 17 and later"),
)
_GIT = Need("git", "git", "reads source trees and applies patches")
_PKG_CONFIG = Need("pkg-config", "pkg-config", "finds PostgreSQL's libraries", alternatives=("pkgconf",))
# Debian's perl-base has the interpreter only; PostgreSQL's generators use these modules.
_PERL_MODULES = ("-MFile::Compare", "-MFile::Basename", "-MGetopt::Long", "-MData::Dumper")


def build_requirements(spec: BuildSpec, *, commands: Commands | None = None) -> tuple[Requirement, ...]:
    """Everything that a build needs, found or not."""
    major = major_of(spec.version)
    runner = Commands() if commands is None else commands
    # No tree of git's carries the generated parsers, and a patch may change what they are made of.
    found = [
        *compiler_requirements("compiles PostgreSQL once per block size"),
        *look((*_TOOLS, *(_PARSER_TOOLS if major >= 17 or spec.is_own else ()))),
        *look([_PKG_CONFIG, *([_GIT] if spec.is_own else [])]),
    ]
    found.append(
        Requirement(
            "perl with its modules",
            "perl",
            "generates PostgreSQL's catalogue",
            found=_succeeds(runner, ["perl", *_PERL_MODULES, "-e", "1"]),
        )
    )
    found += [
        Requirement(
            library.name,
            library.package,
            library.reason,
            found=_succeeds(runner, ["pkg-config", "--exists", library.pkg_config]),
        )
        for library in libraries(major)
    ]
    return tuple(found)


def missing_requirements(spec: BuildSpec, *, commands: Commands | None = None) -> tuple[Requirement, ...]:
    """Those of `build_requirements` that were not found; empty when a build can begin."""
    return missing(build_requirements(spec, commands=commands))


def _succeeds(commands: Commands, argv: Sequence[str]) -> bool:
    try:
        return commands.run(argv, check=False).status == 0
    except CommandFailed:
        return False
