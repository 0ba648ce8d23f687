"""`bedplate setup`, and the first half of every other command that measures."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bedplate.cli.planning import own_plans, prospect
from bedplate.errors import RequirementMissing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bedplate.executor.display import Display
    from bedplate.model.cell import Cell


def setup(plan: Path | None, *, yes: bool, tarball: Path | None) -> None:
    """Install what is missing and build every PostgreSQL that the plan needs."""
    from bedplate.executor.display import display_for_terminal  # noqa: PLC0415
    from bedplate.executor.preparation import prepare_builds, prepare_drivers  # noqa: PLC0415

    found = prospect(plan or own_plans() / "quick.toml")
    cells = [planned.cell for planned in found.expansion.cells]
    with display_for_terminal() as display:
        ensure_packages(cells, display, yes=yes)
        prepare_drivers()
        builds = prepare_builds(cells, display, tarball=tarball)
    for build in builds.values():
        print(f"{build.prefix}  ({build.source_origin}, sha256 {build.source_sha256[:16]}…)")


def ensure_packages(cells: Iterable[Cell], display: Display, *, yes: bool) -> None:
    """Name what is missing, and install it after a yes.

    RequirementMissing with the exact command when nobody can be asked, or the answer is no.
    """
    from bedplate.executor.preparation import install, is_root, missing_of  # noqa: PLC0415
    from bedplate.host.requirement import install_command, read_os_release  # noqa: PLC0415

    lacking = missing_of(cells)
    if not lacking:
        return
    command = install_command(lacking, os_release=read_os_release())
    sentences = [item.sentence for item in lacking]
    if command is None:
        raise RequirementMissing(*sentences, "this distribution is not known; install these by hand")
    shown = " ".join(command)
    if not is_root():
        raise RequirementMissing(*sentences, f"install them: sudo {shown}")
    if not yes:
        for sentence in sentences:
            print(sentence)
        if not sys.stdin.isatty() or not _agreed(f"Install them now with `{shown}`?"):
            raise RequirementMissing(*sentences, f"install them: {shown}")
    install(command, display)
    still = missing_of(cells)
    if still:
        raise RequirementMissing(*(f"after installing: {item.sentence}" for item in still))


def _agreed(question: str) -> bool:
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
