"""The command line: what a person types, and nothing that is measured.

Every command imports what it needs when it is called: a start costs under 0.3 s before it does work.
"""

from __future__ import annotations

import io
import signal
import sys
from typing import TYPE_CHECKING

from bedplate.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_REQUIREMENT_MISSING, BedplateError
from bedplate.executor.display import silence_standard_output

if TYPE_CHECKING:
    from types import FrameType


def main() -> None:
    """Run the command line and exit with the documented code."""
    # The internal command has only the standard library, so it must not meet typer.
    if sys.argv[1:2] == ["run-visit"]:
        from bedplate.visit.command import main as run_visit  # noqa: PLC0415

        sys.exit(run_visit(sys.argv[2:]))
    from bedplate.cli.app import app  # noqa: PLC0415

    _take_ends_as_interrupts()
    # A terminal of another encoding loses a character, not a study.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except BedplateError as error:
        _tell(*error.reasons)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # Typer turns Ctrl-C into a silent exit 130, and a closed pipe into a failure.
        if isinstance(end.__context__, BrokenPipeError):
            # The reader of our output went away (`bedplate show | head`), which is its right.
            silence_standard_output()
            sys.exit(EXIT_DONE)
        if end.code == EXIT_INTERRUPTED:
            print("interrupted; what was finished is kept, the same command goes on", file=sys.stderr)
        raise
    except OSError as error:
        # A full disk, a directory that may not be written: the machine's, and for its owner to mend.
        what = f"{error.filename}: " if error.filename else ""
        _tell(f"{what}{error.strerror or error}")
        sys.exit(EXIT_REQUIREMENT_MISSING)


def _tell(*reasons: str) -> None:
    for reason in reasons:
        print(f"error: {reason}", file=sys.stderr)


def _take_ends_as_interrupts() -> None:
    """SIGTERM and a closed terminal end a study as Ctrl-C does: the visit gives everything back first."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    # nohup has it ignored, and means it.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)
