"""`./package [KIND …] [--into FOLDER]`."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

from distribution import debian, fedora, image, materials, wheel
from distribution.sources import of_checkout

_KINDS = {
    "wheel": (wheel.build, "for pipx"),
    "deb": (debian.build, "for Debian, Ubuntu"),
    "rpm": (fedora.build, "for Fedora; needs rpmbuild"),
    "image": (image.build, "for containers, an OCI layout; needs mmdebstrap and a mirror of Debian"),
    "materials": (materials.build, "the bill of materials, CycloneDX"),
}


def main() -> int:
    """Build what is asked for and print each file with its digest."""
    parser = argparse.ArgumentParser(prog="./package", description="Build what bedplate is installed from.")
    kinds = "; ".join(f"{kind}: {words}" for kind, (_, words) in _KINDS.items())
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{kinds}. Without a kind all of them")
    parser.add_argument("--into", type=Path, default=Path("dist"), help="the folder that they go to (dist)")
    asked = parser.parse_args()
    unknown = [kind for kind in asked.kinds if kind not in _KINDS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(_KINDS)}")
    into: Path = asked.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    sources = of_checkout()
    for kind in asked.kinds or _KINDS:
        try:
            made = _KINDS[kind][0](sources, into)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"package: {kind} was not built: {error}", file=sys.stderr)
            return 1
        print(f"{hashlib.sha256(made.read_bytes()).hexdigest()}  {made}")
    return 0


sys.exit(main())
