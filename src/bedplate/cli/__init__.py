"""The command line: what a person types.

Here: commands with their options, questions and exit codes, and what is printed.
Not here: the run of a study, which is `campaign`; nothing here changes a machine.
May import: every room, each when a command is called, so that a start costs under 0.3 s; click.
Must not import: jinja2, xlsxwriter.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from bedplate.campaign.display import silence_standard_output
from bedplate.campaign.terminal_edge import guard_streams
from bedplate.errors import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_REQUIREMENT_MISSING,
    BedplateError,
    RequirementMissing,
)
from bedplate.host.interruption import arrive, open_said
from bedplate.units import GIB, MIB, format_size

# `report` of a small study reserves 1.5 GiB with 2 processors and 2 GiB with 64.
_ADDRESS_SPACE_BYTES = 2 * GIB
_OF_EACH_PROCESSOR_BYTES = 4 * MIB
_TELLS_OF_ITSELF = {"-h", "--help", "-V", "--version", "help"}


def main() -> None:
    """Run the command line and exit with the documented code."""
    _take_ends_as_interrupts()
    # Whatever the caller lets others write: what root makes in a study, the cache or /run, root alone changes.
    os.umask(os.umask(0o022) | 0o022)
    output = open_said()
    guard_streams()
    status = _run_command(sys.argv[1:])
    if output.lost is not None:
        _tell(
            f"standard output cannot be written: {output.lost.strerror}; some of what the command says is lost, "
            "and nothing of what it did"
        )
        status = status or EXIT_REQUIREMENT_MISSING
    sys.exit(status)


def _run_command(words: Sequence[str]) -> int:
    """The exit code of a command, and what is said when it ends early."""
    try:
        # A large study is a million small records that are kept: a collector that looks through them again and again is
        # a sixth of the time of `show`, and finds nothing. Nor does it in what is imported.
        gc.set_threshold(100_000, 50, 100)
        from bedplate.cli.app import call  # noqa: PLC0415

        if not _TELLS_OF_ITSELF & {*words}:
            _require_address_space()
        status = call(words)
        # Here, where its failure is understood, and not when the interpreter ends.
        sys.stdout.flush()
    except BedplateError as error:
        _tell(*error.reasons)
        return error.exit_code
    except KeyboardInterrupt:
        # The terminal has echoed ^C, so the sentence takes a line of its own.
        print("\ninterrupted; what was finished is kept, the same command goes on", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`bedplate show | head`), which is its right.
        silence_standard_output()
        return EXIT_DONE
    except OSError as error:
        # A full disk, a directory that may not be written: the machine's, and for its owner to mend.
        what = f"{error.filename}: " if error.filename else ""
        _tell(f"{what}{error.strerror or error}")
        return EXIT_REQUIREMENT_MISSING
    except MemoryError:
        _tell(
            f"{' '.join(words[:1])}: memory ran out; leave more of it free, take away a limit (ulimit -v, a control group), or ask for "
            "fewer cells (--cells)"
        )
        return EXIT_REQUIREMENT_MISSING
    return status


def _require_address_space() -> None:
    """RequirementMissing where a limit (ulimit -v) leaves less than the libraries reserve.

    They use a tenth of that. Without it they do not say so: an import fails anywhere, OpenBLAS tries for ever, polars aborts.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = _ADDRESS_SPACE_BYTES + (os.cpu_count() or 1) * _OF_EACH_PROCESSOR_BYTES
    if limit not in (resource.RLIM_INFINITY, -1) and limit < needed:
        raise RequirementMissing(
            f"the address space is limited to {format_size(limit)} (ulimit -v), and the libraries reserve up to {format_size(needed)}, though they "
            "use a tenth of it: ulimit -v unlimited; a control group limits what is used"
        )


def _tell(*reasons: str) -> None:
    for reason in reasons:
        print(f"error: {reason}", file=sys.stderr)


def _take_ends_as_interrupts() -> None:
    """SIGTERM and a closed terminal end a study as Ctrl-C does: the visit gives everything back first."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        arrive(KeyboardInterrupt())

    signal.signal(signal.SIGTERM, interrupt)
    # nohup has it ignored, and means it.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)
