"""`bedplate run-visit REQUEST DIRECTORY`: one JSON document in, one directory out.

Standard library only: in an emulated guest every import costs seconds. Exit codes: 0 when the visit
was recorded, whatever its outcome; 2 when the request cannot be read; 3 when the machine is unfit for any visit, 1
when something went wrong that nobody foresaw, 130 when it was abandoned: then there is no record.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from bedplate.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_PLAN_OR_CALL_WRONG,
    EXIT_REQUIREMENT_MISSING,
    EXIT_SOME_RUNS_FAILED,
    BedplateError,
    MachineUnfit,
    StudyError,
)
from bedplate.host.files import NO_ROOM, full_places
from bedplate.host.interruption import arrive
from bedplate.host.mount import (
    enter_own_namespaces,
    follow_no_links_below,
    let_go_of_foreign_mounts,
    paths_in,
)
from bedplate.host.process import end_with
from bedplate.model import codec
from bedplate.model.visit import FORMAT_VERSION, VisitRequest
from bedplate.visit.life import EventStream, live


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
    # A visit whose executor was killed ends too, cleanly, instead of going on unseen.
    if not end_with(os.getppid() if given.parent is None else given.parent, signal.SIGTERM):
        return EXIT_INTERRUPTED
    events = EventStream(sys.stdout)
    try:
        if os.geteuid() == 0:
            _live_apart(request, given)
        record = live(request, given.directory, executor=given.executor, emit=events.emit)
        codec.write(given.directory / "visit.json", record)
    except Abandoned:
        return EXIT_INTERRUPTED
    except MachineUnfit as error:
        _say(*error.reasons)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 -- whatever it is, nobody should have to read a traceback for it
        full = full_places(given.directory, Path(request.state_directory))
        if full or (isinstance(error, OSError) and error.errno in NO_ROOM):
            _say(*(full or (f"{getattr(error, 'filename', None) or given.directory}: {error}",)))
            return EXIT_REQUIREMENT_MISSING
        file = given.directory / "logs" / "traceback.txt"
        with contextlib.suppress(OSError):
            file.write_text(traceback.format_exc(), encoding="utf-8")
        _say(f"an error that bedplate did not expect, please report it with {file}: {error!r}")
        return EXIT_SOME_RUNS_FAILED
    return EXIT_DONE


def _live_apart(request: VisitRequest, arguments: argparse.Namespace) -> None:
    """In namespaces of its own: no stranger can hold what is mounted here, and a SIGKILL unmounts it by itself."""
    enter_own_namespaces()
    let_go_of_foreign_mounts((arguments.request, arguments.directory, *paths_in(codec.to_json(request))))
    scratch = request.scratch_device
    images = scratch.image_directory if scratch.is_image else None
    for place in (arguments.directory, *(() if images is None else (Path(images),))):
        follow_no_links_below(place)


def _say(*reasons: str) -> None:
    """For the executor, a line each; a full disk may not take them."""
    with contextlib.suppress(OSError):
        print(*reasons, sep="\n", file=sys.stderr, flush=True)


def _abandon_on_signals() -> None:
    def abandon(_number: int, _frame: FrameType | None) -> None:
        # A second signal must not interrupt the giving back.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        arrive(Abandoned())

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, abandon)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
