"""A package of Fedora, and the spec file that it is built from."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.requirement import fedora_names
from distribution.requirements import DEPENDS, RECOMMENDS
from distribution.sources import DESCRIPTION, lay_out, settle

if TYPE_CHECKING:
    from distribution.sources import Sources

_SPEC = """\
Name:           bedplate
Version:        {version}
Release:        1
Summary:        A lab that {description}
License:        Apache-2.0
Source0:        %{{name}}-%{{version}}.tar
BuildArch:      noarch
{requires}
{recommends}

%description
From one plan bedplate formats, mounts, verifies, runs and compares every
combination of file system, block size, mount options and database settings,
and gives a durability verdict beside every speed.

The first start makes a Python environment below /var/cache/bedplate, for
which pip needs its package index.

%global __brp_python_bytecompile %{{nil}}
%global __brp_mangle_shebangs %{{nil}}

%prep
%setup -q -c

%install
cp -a usr %{{buildroot}}/

%preun
[ "$1" != 0 ] || find /usr/share/bedplate -name __pycache__ -prune -exec rm -rf {{}} +

%files
/usr/bin/bedplate
/usr/share/bedplate
/usr/share/doc/bedplate
/usr/share/man/man1/bedplate.1*
/usr/share/bash-completion/completions/bedplate
/usr/share/zsh/site-functions/_bedplate
/usr/share/fish/vendor_completions.d/bedplate.fish
"""
# What two builds would differ in.
_DEFINITIONS = {
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
    "_buildhost": "localhost",
    "__os_install_post": "%{nil}",
}


def build(sources: Sources, into: Path) -> Path:
    """The package in the folder `into`, its spec file beside it. OSError where rpmbuild is not there."""
    if shutil.which("rpmbuild") is None:
        raise OSError("the package of Fedora needs rpmbuild: apt-get install rpm, or dnf install rpm-build")
    spec = into / "bedplate.spec"
    spec.write_text(_spec(sources.version), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        lay_out(sources, top / "root", zsh="site-functions")
        settle(top / "root", sources.epoch)
        with tarfile.open(top / f"bedplate-{sources.version}.tar", "w") as archive:
            archive.add(top / "root" / "usr", "usr")
        definitions = {**_DEFINITIONS, "_topdir": folder, "_sourcedir": folder, "_rpmdir": folder}
        words = [word for name, value in definitions.items() for word in ("--define", f"{name} {value}")]
        subprocess.run(
            ["rpmbuild", "-bb", "--quiet", *words, str(spec)],
            check=True,
            env=sources.environment,
        )
        return Path(shutil.copy(top / "noarch" / f"bedplate-{sources.version}-1.noarch.rpm", into))


def _spec(version: str) -> str:
    # Fedora's Python has its module venv with it.
    needed = [name for name in DEPENDS if name != "python3-venv"]
    return _SPEC.format(
        version=version,
        description=DESCRIPTION,
        requires="\n".join(
            f"Requires:       {name}{' >= 3.11' if name == 'python3' else ''}"
            for name in fedora_names(needed)
        ),
        recommends="\n".join(f"Recommends:     {name}" for name in fedora_names(RECOMMENDS)),
    )
