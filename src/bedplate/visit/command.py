"""`bedplate run-visit REQUEST DIRECTORY`: one JSON document in, one directory out.

Standard library only: in an emulated guest every import costs seconds. Exit codes: 0 when the visit
was recorded, whatever its outcome; 2 when the request cannot be read; 130 when it was abandoned, and
then there is no record.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_PLAN_OR_CALL_WRONG, BedplateError, StudyError
from bedplate.host.interruption import arrive
from bedplate.model import codec
from bedplate.model.visit import FORMAT_VERSION, VisitRequest
from bedplate.visit.events import EventStream
from bedplate.visit.life import live

if TYPE_CHECKING:
    from types import FrameType


class Abandoned(BaseException):
    """A signal asked the visit to end; everything taken is given back on the way out."""


def main(arguments: list[str]) -> int:
    """Run one visit."""
    parser = argparse.ArgumentParser(prog="bedplate run-visit", description=__doc__)
    parser.add_argument("request", type=Path, help="the request, a JSON document")
    parser.add_argument("directory", type=Path, help="where the record goes; must exist and be empty")
    parser.add_argument("--executor", default="local", help="who runs this visit, for the record")
    parser.add_argument("--parent", type=int, help="the process that started it; the visit ends with it")
    given = parser.parse_args(arguments)
    try:
        request = codec.read(VisitRequest, given.request)
        if request.format_version != FORMAT_VERSION:
            raise StudyError(
                f"{given.request} is of format {request.format_version}, this bedplate speaks {FORMAT_VERSION}"
            )
    except BedplateError as error:
        for reason in error.reasons:
            print(f"error: {reason}", file=sys.stderr)
        return EXIT_PLAN_OR_CALL_WRONG
    _abandon_on_signals()
    if not _end_with_the_parent(given.parent):
        return EXIT_INTERRUPTED
    events = EventStream(sys.stdout)
    try:
        record = live(request, given.directory, executor=given.executor, emit=events.emit)
    except Abandoned:
        return EXIT_INTERRUPTED
    codec.write(given.directory / "visit.json", record)
    return EXIT_DONE


def _abandon_on_signals() -> None:
    def abandon(_number: int, _frame: FrameType | None) -> None:
        # A second signal must not interrupt the giving back.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        arrive(Abandoned())

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, abandon)


_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h


def _end_with_the_parent(parent: int | None) -> bool:
    """A visit whose executor was killed ends too, cleanly, instead of going on unseen.

    False if it was killed already, before the kernel could be asked to tell.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    return parent is None or os.getppid() == parent


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
