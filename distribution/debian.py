"""A package of Debian and its kin, of all architectures: what is compiled is compiled where it runs."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from distribution.requirements import DEPENDS, RECOMMENDS
from distribution.sources import DESCRIPTION, HOME, lay_out, settle

if TYPE_CHECKING:
    from distribution.sources import Sources

_CONTROL = """\
Package: bedplate
Version: {version}-1
Architecture: all
Maintainer: the authors of bedplate <bedplate@localhost>
Section: admin
Priority: optional
Depends: {depends}
Recommends: {recommends}
Description: {description}
 From one plan bedplate formats, mounts, verifies, runs and compares every
 combination of file system, block size, mount options and database settings,
 and gives a durability verdict beside every speed.
 .
 The first start makes a Python environment below /var/cache/bedplate, for
 which pip needs its package index.
"""
_CACHE = "/var/cache/bedplate"
# The bytecode is the distribution's way, of a folder that is not Python's own only where it is named. What the first start
# made goes with a purge alone, studies never. A cache that has a file system of its own is emptied: its folder is in use.
_SCRIPTS = {
    "postinst": f'if [ "$1" = configure ]; then py3compile -p bedplate /{HOME}; fi',
    "prerm": "py3clean -p bedplate",
    "postrm": f'if [ "$1" = purge ]; then rm -rf --one-file-system {_CACHE} || [ -z "$(ls -A {_CACHE})" ]; fi',
}


def build(sources: Sources, into: Path) -> Path:
    """The package in the folder `into`."""
    target = into / f"bedplate_{sources.version}-1_all.deb"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        lay_out(sources, root, zsh="vendor-completions")
        control = root / "DEBIAN"
        control.mkdir()
        (control / "control").write_text(_control(sources.version), encoding="utf-8")
        for name, line in _SCRIPTS.items():
            (control / name).write_text(f"#!/bin/sh\nset -e\n{line}\n", encoding="utf-8")
            (control / name).chmod(0o755)
        settle(root, sources.epoch)
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(target)],
            check=True,
            env=sources.environment,
            stdout=subprocess.DEVNULL,
        )
    return target


def _control(version: str) -> str:
    return _CONTROL.format(
        version=version,
        depends=", ".join("python3 (>= 3.11)" if name == "python3" else name for name in DEPENDS),
        recommends=", ".join(RECOMMENDS),
        description=DESCRIPTION,
    )
