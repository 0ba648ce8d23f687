"""`python -m tests.support.goldens [--write] [--pack STUDY] [NAME...]`: how what is said of the golden studies differs; with --write it is kept."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.goldens.outputs import differences, keep, kept_outputs, outputs
from tests.support.goldens.studies import STUDIES, pack


def main() -> int:
    """0 where nothing differs, or what differs is kept now."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.goldens", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what is said now")
    parser.add_argument("--pack", metavar="STUDY", type=Path, help="pack this study first, as the one NAME")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these studies")
    asked = parser.parse_args()
    if asked.pack is not None:
        (name,) = asked.names
        pack(asked.pack, name)
    differ = False
    for study in STUDIES:
        if asked.names and study.name not in asked.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            now = outputs(study, Path(folder))
        before = kept_outputs(study)
        lines = differences(before, now) if before else ["nothing was kept of it"]
        print(f"{study.name}: {'differs' if lines else 'the same'}", *lines, sep="\n", flush=True)
        differ = differ or bool(lines)
        if lines and asked.write:
            keep(study, now)
    return int(differ and not asked.write)


if __name__ == "__main__":
    sys.exit(main())
