"""Every error that bedplate raises on purpose.

An error names the thing, what was found, and the way out. Several reasons that were found
together travel together: `reasons` holds one sentence each. The classes say *who* can act:
`PlanError` the author of the plan, `RequirementMissing` the owner of the machine, the rest
whoever reads the visit's record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.model.reason import Reason

EXIT_DONE = 0
EXIT_SOME_RUNS_FAILED = 1
EXIT_PLAN_OR_CALL_WRONG = 2
EXIT_REQUIREMENT_MISSING = 3
# `git bisect run` takes it for: this commit cannot be tested (git-bisect(1)).
EXIT_CANNOT_TELL = 125
EXIT_INTERRUPTED = 130


class BedplateError(Exception):
    """Base of all deliberate errors; `reasons` are its sentences, and never empty.

    `given` is what it was raised with. A sentence among that has the `code` of the class, which is stored in studies
    (`model.reason.reasons_of`).
    """

    exit_code = EXIT_SOME_RUNS_FAILED
    code = "failed"
    # What a foreign program said, which is all that it can be known by. Sentences of ours are not searched.
    said = ""

    def __init__(self, *reasons: str | Reason) -> None:
        if not reasons:
            raise TypeError(f"{type(self).__name__} needs at least one reason")
        self.given = reasons
        self.reasons = tuple(map(str, reasons))
        super().__init__("\n".join(self.reasons))


class PlanError(BedplateError):
    """The plan, or the call, is wrong; nothing was touched."""

    exit_code = EXIT_PLAN_OR_CALL_WRONG
    code = "plan-wrong"


class StudyError(BedplateError):
    """The study on disk does not fit the request (another plan, another machine, damaged)."""

    exit_code = EXIT_PLAN_OR_CALL_WRONG
    code = "study-unfit"


class RequirementMissing(BedplateError):
    """The machine lacks a tool, a right, space or memory; each reason names the fix."""

    exit_code = EXIT_REQUIREMENT_MISSING
    code = "requirement-missing"


class MachineUnfit(BedplateError):
    """The machine keeps every visit from running, and not this cell: nothing is recorded, and the start ends."""

    exit_code = EXIT_REQUIREMENT_MISSING
    code = "machine-unfit"


class BuildFailed(BedplateError):
    """Somebody's own source cannot be built: a patch does not apply, or a compiler says no. What else there is goes on."""

    exit_code = EXIT_REQUIREMENT_MISSING
    code = "build-failed"


class DeviceRefused(BedplateError):
    """The scratch device may not be erased: it is in use, foreign, or not what the plan named."""

    exit_code = EXIT_REQUIREMENT_MISSING
    code = "device-refused"


class DeviceInUse(DeviceRefused):
    """Something else holds the scratch device right now; `holder` says who, where that is a bedplate."""

    code = "device-in-use"

    def __init__(self, *reasons: str | Reason, holder: str = "") -> None:
        super().__init__(*reasons)
        self.holder = holder


class CommandFailed(BedplateError):
    """A command exited with an unexpected status, ran into its time limit, or was not found."""

    code = "command-failed"

    def __init__(self, reason: str, *, argv: Sequence[str], status: int | None, output: str) -> None:
        super().__init__(reason)
        self.argv = tuple(argv)
        self.status = status
        self.output = self.said = output


class CommandNotStarted(CommandFailed):
    """A command that is not there or may not be run: nothing was found out by it."""

    code = "command-not-started"


class PrintedTooMuch(CommandFailed):
    """A command printed more than it may, and was killed."""

    code = "printed-too-much"

    def __init__(self, program: str, most_bytes: int, *, argv: Sequence[str]) -> None:
        super().__init__(
            f"{program} printed more than {most_bytes} bytes and was killed",
            argv=argv,
            status=None,
            output="",
        )


class KilledFromOutside(BedplateError):
    """SIGKILL ended a program, and bedplate had not sent it: what the program would have found is not known."""

    code = "killed-from-outside"

    def __init__(self, program: str) -> None:
        super().__init__(
            f"{program} was killed from outside (SIGKILL), as the kernel does when memory runs out; see its log "
            "(dmesg), and leave more memory free"
        )


class OutputNotUnderstood(BedplateError):
    """A tool printed something that its parser does not know; the text is quoted, never guessed."""

    code = "output-not-understood"

    def __init__(self, tool: str, *, expected: str, found: str) -> None:
        shown = found if len(found) <= 400 else f"{found[:400]}… ({len(found)} characters)"
        super().__init__(f"{tool}: expected {expected}, found {shown!r}")


class VerifyFailed(BedplateError):
    """What was read back is not what the plan asked for; one reason per difference."""

    code = "not-as-asked"


class VisitFailed(BedplateError):
    """A visit cannot go on; `step` is the step of its life at which it stopped."""

    code = "visit-failed"

    def __init__(self, step: str, *reasons: str | Reason) -> None:
        super().__init__(*reasons)
        self.step = step
