"""An own engine under power cuts: its writer is recorded, and its checker asked what a cut left (docs/ENGINES.md).

The writer's standard output is the recorder's file of marks, so that an acknowledgement stands in the log in its true place: through
a relay the next transaction's writes would be logged before it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from bedplate.engines.external.prepare import FILE, NAME
from bedplate.engines.external.visit import (
    LONGEST_WORDS,
    PATIENCE_S,
    PREPARATION_LIMIT_S,
    AuthorPrograms,
    does_not_end,
    how_it_ended,
    printed_no_line,
)
from bedplate.errors import (
    CommandFailed,
    CommandNotStarted,
    KilledFromOutside,
    OutputNotUnderstood,
    PrintedTooMuch,
)
from bedplate.host.command import Account
from bedplate.host.shut_in import DATA, PROGRAMS, SIGNALS_FROM
from bedplate.model.durability import DURABLE
from bedplate.model.levels import Scalar
from bedplate.model.visit import EMULATED
from bedplate.units import MIB, format_size
from bedplate.visit.cuts import (
    END,
    SETTLED,
    START,
    Checkpoints,
    CutEngine,
    CutWriter,
    Driven,
    FaultEngine,
    OracleAnswer,
    Recorded,
    Reproduction,
    Subject,
)
from bedplate.visit.recording import Driver, ToolProcess, VisitContext
from bedplate.visit.server import ServerSite

# How long what a checker prints may be, and how much of it is kept.
_MOST_PRINTED_BYTES, _MOST_FINDINGS = MIB, 20

# An author's limit, and ours for his writer, is of a real processor that does little else. Python took 7 to 20 times as long to start on an emulated one
# (docs/BENCHMARKS.md, "Guests and fleets"); beside seventy programs on two processors a check that takes a second took more than thirty.
_MOST_TIMES = 10


class _Pacer:
    """Looks at a writer while it works: enters `beside` at its first mark, halts it where its part of the log is used up, ends it."""

    def __init__(
        self,
        setup: Recorded,
        tool: ToolProcess,
        *,
        marks_before: int,
        duration_s: float,
        start_companion: Callable[[], object],
        name: str,
        emulated: bool = False,
    ) -> None:
        self._setup, self._tool, self._name = setup, tool, name
        self._emulated, self._patience_s = emulated, PATIENCE_S
        self._duration_s, self._beside = duration_s, start_companion
        self._started_s = time.monotonic()
        self._marks_before = marks_before
        self._begun_s: float | None = None
        self._late_s = 0.0
        self._pause_s: Callable[[], float] = lambda: 0.0
        self._halted = False
        self._told_s: float | None = None
        self.log_was_full = False

    def look(self) -> bool:
        """Never true: when it is time, the writer gets SIGTERM here. BedplateError where it does not end."""
        now_s = time.monotonic()
        if self._begun_s is None and self._told_s is None:
            if self._setup.mark_count() == self._marks_before:
                if now_s - self._started_s > PREPARATION_LIMIT_S:
                    raise printed_no_line(self._name)
                self._end_if(full=self._setup.is_log_nearly_full(), late=False)
                return False
            self._begun_s = now_s
            self._late_s = now_s + self._duration_s + PATIENCE_S
            self._pause_s = self._setup.pace(self._duration_s)
            self._beside()
        if self._told_s is not None:
            if now_s - self._told_s > self._patience_s:
                raise does_not_end(self._name, self._patience_s)
            # Whoever was not the writer yet when it came has not heard it.
            self._tool.signal(signal.SIGTERM)
            return False
        self._end_if(
            full=self._setup.is_log_nearly_full(),
            late=now_s > self._late_s,
        )
        if self._told_s is None:
            self._halt(self._pause_s() > 0)
        return False

    @property
    def was_told(self) -> bool:
        """Whether it was told to end."""
        return self._told_s is not None

    @property
    def seconds(self) -> float:
        """Since its first mark."""
        return 0.0 if self._begun_s is None else time.monotonic() - self._begun_s

    def _end_if(self, *, full: bool, late: bool) -> None:
        if self._told_s is None and (full or late):
            self.log_was_full = full
            self._halt(False)
            self._tool.signal(signal.SIGTERM)
            self._told_s = time.monotonic()
            self._patience_s = PATIENCE_S * _times_longer(emulated=self._emulated)

    def _halt(self, halted: bool) -> None:  # noqa: FBT001 -- one of two states
        if halted != self._halted:
            self._tool.signal(signal.SIGSTOP if halted else signal.SIGCONT)
            self._halted = halted


class _Writer:
    """The author's program, confined."""

    was_killed = False

    def __init__(self, context: VisitContext, setup: Recorded, clients: int) -> None:
        self._context, self._setup, self._clients = context, setup, clients
        self._programs = AuthorPrograms.of_visit(context)
        description = self._programs.description
        self._name = description.name
        promise = description.promise(context.engine_settings)
        self._promise = promise
        options = description.options_for(context.engine_settings)
        self.facts: Mapping[str, Scalar] = {NAME: self._name, **options}
        self.bound_ms = None if promise is None else promise.ms
        self.bound_transactions = None if promise is None else promise.transactions

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        return None

    def drive(
        self, output: Path, *, duration_s: float, seed: int, companion: AbstractContextManager[object]
    ) -> Driven:
        """The writer from its start to its end, and what is left of it written back: so much must be there without any cut."""
        context, setup = self._context, self._setup
        data = setup.data_directory
        confined = self._programs.writer(
            data, context.account, clients=self._clients, seed=seed, duration_s=duration_s
        )
        tool = ToolProcess(
            confined.argv,
            context,
            output=output,
            directory=context.log_directory,
            name=f"the writer of {self._name}",
            confinement=confined,
            marks=setup.mark_file,
        )
        setup.mark(START)
        marks_before = setup.mark_count()
        with ExitStack() as stack, tool:
            pacer = _Pacer(
                setup,
                tool,
                marks_before=marks_before,
                duration_s=duration_s,
                start_companion=lambda: stack.enter_context(companion),
                name=self._name,
                emulated=context.request.provenance.get("accelerator") == EMULATED,
            )
            limit_s = PREPARATION_LIMIT_S + duration_s + (2 + _MOST_TIMES) * PATIENCE_S
            ended = tool.wait(limit_s=limit_s, enough=pacer.look)
            seconds = pacer.seconds
        self._programs.require_success(
            ended,
            was_told=pacer.was_told,
            data=data,
            room="the recorded disk is full: a larger image_size gives it room",
        )
        setup.mark(END)
        setup.settle()
        setup.mark(SETTLED)
        return Driven(
            None,
            seconds,
            self._programs.version(tool.errors),
            ended_early=pacer.log_was_full,
            demands_all=self._promise is None or self._promise.durability == DURABLE,
        )


def _times_longer(*, emulated: bool) -> float:
    """How many times as long as its author expects a program may take: by the programs that share a processor now."""
    sharing = os.getloadavg()[0] / (os.cpu_count() or 1)
    return _MOST_TIMES if emulated else min(_MOST_TIMES, max(1.0, sharing))


def judge_document(text: str, promised: Mapping[int, int], *, oracle_s: float | None) -> OracleAnswer:
    """What a checker's answer comes to; OutputNotUnderstood for one that cannot be read, which is no damage but its author's fault."""
    try:
        found = json.loads(text)
        clients = None
        # An engine that refuses its files has no transaction to name.
        if "clients" in found or not found.get("refused"):
            clients = {int(client): _last(last) for client, last in found.pop("clients").items()}
        wrong, refused = (_findings(found.pop(name, [])) for name in ("wrong", "refused"))
        _refuse_more(found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise OutputNotUnderstood(
            f"the checker's answer cannot be read ({what})",
            expected='one JSON object {"clients": {"0": LAST}, "wrong": [TEXT], "refused": [TEXT]} (docs/ENGINES.md)',
            found=text or "(it printed nothing)",
        ) from error
    silent = [
        *wrong,
        *(
            f"client {client} has transaction {last}, but {promised.get(client, 0)} was the last acknowledged"
            for client, last in (clients or {}).items()
            if last > promised.get(client, 0) + 1
        ),
    ]
    return OracleAnswer(clients, detected=refused, silent=tuple(silent), oracle_s=oracle_s)


def _refuse_more(rest: Mapping[str, Any]) -> None:
    """A key with a spelling of its own would be a finding that nobody reads."""
    if rest:
        raise ValueError(f"{next(iter(rest))!r} is no key of an answer")


def _last(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError("no number of a transaction")
    return number


def _findings(texts: Any) -> tuple[str, ...]:
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise ValueError("no list of texts")
    return tuple(text[:LONGEST_WORDS] for text in texts[:_MOST_FINDINGS])


class ExternalCuts:
    """Two programs of the author's."""

    rows = 0
    oracle = 1
    may_link = True
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """Nothing beforehand: the writer makes its files in the recording, and says `begin` behind that."""
        return _Writer(context, setup, clients)

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """By the checker: a status, a signal or a time limit is the engine's own complaint."""
        programs = AuthorPrograms.of_recording(subject)
        description = programs.description
        confined = programs.checker(site.data_directory, site.account)
        # The image of the cut, where its folder may be missing, is looked at before anything is started.
        os.close(os.open(site.data_directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        limit_s = description.check_limit_s * _times_longer(emulated=subject.emulated)
        started = time.monotonic()
        try:
            done = site.commands.run(
                confined.argv,
                timeout_s=limit_s,
                check=False,
                most_bytes=_MOST_PRINTED_BYTES,
                confinement=confined,
            )
        except CommandNotStarted:
            raise
        except CommandFailed as error:
            # Over a damaged page an engine may go round and round, with words or without.
            words = (
                f"the checker printed more than {format_size(_MOST_PRINTED_BYTES)}"
                if isinstance(error, PrintedTooMuch)
                else f"the checker did not end within {limit_s:.0f} s, by check_limit of {FILE}"
            )
            return OracleAnswer(
                None,
                detected=(words,),
                out_of_time=not isinstance(error, PrintedTooMuch),
            )
        oracle_s = time.monotonic() - started
        if done.status == SIGNALS_FROM + signal.SIGKILL:
            raise KilledFromOutside(description.checker)
        if done.status:
            said = done.stderr.strip() or done.stdout.strip()
            words = f"the checker {how_it_ended(done.status)}{': ' if said else ''}{said[-LONGEST_WORDS:]}"
            return OracleAnswer(None, detected=(words,))
        return judge_document(done.stdout, promised, oracle_s=oracle_s)

    def refused_settings(self, subject: Subject) -> Sequence[str]:  # noqa: ARG002 -- of engines that start a server with them
        """None: the checker is confined, and gets only those that its own engine.toml has."""
        return ()

    def by_hand(
        self,
        subject: Subject,
        data: Path,
        account: Account,  # noqa: ARG002 -- of engines with a session of somebody's
        as_account: str,
    ) -> Iterator[str]:
        """The checker once more."""
        programs = AuthorPrograms.of_recording(subject)
        words = (str(programs.folder / programs.description.checker), str(data), *programs.options)
        yield f"{as_account} {shlex.join(words)}"


POWER_CUT: CutEngine = ExternalCuts()

FAULTY_DISK = FaultEngine(POWER_CUT, log_files=(), data_files=("**/*",))

_FOLDER = "own"

# The answer is one JSON object (docs/ENGINES.md).
_READ_ANSWER = (
    "import json, sys; found = json.load(sys.stdin); "
    '[print("present", *each) for each in found["clients"].items()]; '
    '[print("bad", *each.split()) for each in found.get("refused", []) + found.get("wrong", [])]'
)


class ExternalReproduction(Reproduction):
    """The checker opens the files as after any start."""

    needs: Sequence[str] = ("python3, to read the checker's answer", "what the engine's own programs need")

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
