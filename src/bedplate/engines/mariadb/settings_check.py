"""What is doubtful about a plan's settings, by the server's own list of them (`mariadbd --verbose --help`), once its packages are there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import PAGE_SIZE
from bedplate.engines.mariadb.preparation import PACKAGES, build_of
from bedplate.engines.mariadb.unpacked import SERVER, Programs
from bedplate.errors import BedplateError
from bedplate.host.apt.package_tree import find_package_tree
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.shut_in.building import to_read_alone
from bedplate.model.engines import MARIADB
from bedplate.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.model.cell import Cell

_LISTED = re.compile(r"^([a-z][a-z0-9-]+) +\S", re.MULTILINE)
_FROM_HERE = "Variables (--variable-name=value)"


def settings_doubts(cells: Iterable[Cell]) -> tuple[str, ...]:
    """A sentence for each setting that this MariaDB does not list; nothing while its packages are not there."""
    of_engine = [cell for cell in cells if cell.build.engine == MARIADB]
    names = dict.fromkeys(name for cell in of_engine for name in cell.cluster.settings if name != PAGE_SIZE)
    known = _known() if names else frozenset()
    return tuple(doubt(name, known) for name in names if known and name not in known)


def doubt(name: str, known: frozenset[str]) -> str:
    """Of a setting that is not listed."""
    return f"mariadb.settings.{name}: this MariaDB lists no such setting; {did_you_mean(name, known)}"


def listed(text: str) -> frozenset[str]:
    """The names in what `--verbose --help` prints, as `SHOW VARIABLES` spells them."""
    return frozenset(name.replace("-", "_") for name in _LISTED.findall(text.partition(_FROM_HERE)[2]))


def _known() -> frozenset[str]:
    tree = find_package_tree(PACKAGES, cache_directory=cache_directory())
    if tree is None:
        return frozenset()
    try:
        programs = Programs(build_of(tree))
        argv = [programs.path(SERVER), "--no-defaults", "--verbose", "--help"]
        done = Commands().run(
            argv,
            timeout_s=30,
            extra_environment=programs.environment,
            confinement=to_read_alone(tree.root, is_own=False),
        )
        return listed(done.stdout)
    except BedplateError:
        return frozenset()


SETTINGS_CHECK = settings_doubts
