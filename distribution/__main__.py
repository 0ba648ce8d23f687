"""`./package [KIND …] [--into FOLDER]`."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from distribution import debian, fedora, image, materials, wheel
from distribution.sources import changed_files, of_checkout

if TYPE_CHECKING:
    from collections.abc import Sequence

_KINDS = {
    "wheel": (wheel.build, "for pipx"),
    "deb": (debian.build, "for Debian, Ubuntu"),
    "rpm": (fedora.build, "for Fedora; needs rpmbuild"),
    "image": (image.build, "for containers, an OCI layout; needs mmdebstrap and a mirror of Debian"),
    "materials": (materials.build, "the bill of materials, CycloneDX"),
}


def main(words: Sequence[str]) -> int:
    """Build what is asked for and print each file with its digest."""
    parser = argparse.ArgumentParser(prog="./package", description="Build what bedplate is installed from.")
    kinds = "; ".join(f"{kind}: {words}" for kind, (_, words) in _KINDS.items())
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{kinds}. Without a kind all of them")
    parser.add_argument("--into", type=Path, default=Path("dist"), help="the folder that they go to (dist)")
    parser.add_argument(
        "--with-changes", action="store_true", help="build from a checkout with changes that no commit has"
    )
    asked = parser.parse_args(words)
    unknown = [kind for kind in asked.kinds if kind not in _KINDS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(_KINDS)}")
    if not asked.with_changes and (changed := changed_files()):
        # Version and time are the commit's, so the file would pass for it.
        print(
            f"package: no commit has the changes of {len(changed)} tracked files, the first {changed[0]};"
            " commit or stash them, or give --with-changes",
            file=sys.stderr,
        )
        return 1
    into: Path = asked.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    sources = of_checkout()
    failed: list[str] = []
    for kind in asked.kinds or _KINDS:
        try:
            made = _KINDS[kind][0](sources, into)
        except (OSError, subprocess.CalledProcessError) as error:
            failed.append(f"package: {kind} was not built: {error}")
            continue
        print(f"{hashlib.sha256(made.read_bytes()).hexdigest()}  {made}", flush=True)
    # At the end, where they are seen.
    for sentence in failed:
        print(sentence, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
