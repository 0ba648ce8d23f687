"""An own engine's data checked by its own checker, which goes into the bundle with all of its folder."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from bedplate.engines.external.programs import AuthorPrograms
from bedplate.host.shut_in.confinement import DATA, PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.reproduction import Reproduction

_FOLDER = "own"
# The answer is one JSON object (docs/ENGINES.md).
_READ_ANSWER = (
    "import json, sys; found = json.load(sys.stdin); "
    '[print("present", *each) for each in found["clients"].items()]; '
    '[print("bad", *each.split()) for each in found.get("refused", []) + found.get("wrong", [])]'
)


class ExternalReproduction:
    """The checker opens the files as after any start."""

    needs: Sequence[str] = ("python3, to read the checker's answer", "what the engine's own programs need")

    def places(self, subject: Subject) -> Mapping[str, str]:  # noqa: ARG002 -- of engines that are found by one
        """None."""
        return {}

    def files(self, subject: Subject) -> Mapping[str, Path]:
        """The folder of the engine, without what its links lead to."""
        folder = AuthorPrograms.of_recording(subject).folder
        return {
            f"{_FOLDER}/{path.relative_to(folder)}": path
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:  # noqa: ARG002 -- of a server
        """The checker with the cell's settings; a shell's 126 and 127 say that it was not started."""
        programs = AuthorPrograms.of_recording(subject)
        words = (f"{PROGRAMS}/{_FOLDER}/{programs.description.checker}", DATA, *programs.options)
        limit_s = f"{programs.description.check_limit_s:g}"
        return (
            'need python3 "Debian: python3"',
            f'timeout {limit_s} {shlex.join(words)} > "$own/said" 2> "$own/errors"; status=$?',
            "case $status in",
            "    0) python3 -c "
            + shlex.quote(_READ_ANSWER)
            + ' < "$own/said" || cannot "the checker\'s answer cannot be read" ;;',
            '    126 | 127) cannot "the checker cannot be started: $(tail -n 1 "$own/errors")" ;;',
            '    *) bad "the checker ends with $status: $(tail -n 1 "$own/errors")" ;;',
            "esac",
        )


REPRODUCTION: Reproduction = ExternalReproduction()
