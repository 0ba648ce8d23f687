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
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.engines.external.description import FILE, NAME, EngineDescription, read_description
from bedplate.engines.external.folder import PROGRAMS_KEY
from bedplate.errors import (
    BedplateError,
    CommandFailed,
    CommandNotStarted,
    KilledFromOutside,
    OutputNotUnderstood,
)
from bedplate.host.confinement import DATA, PROGRAMS, SIGNALS_FROM, confined
from bedplate.model.durability import DURABLE
from bedplate.model.levels import Levels, as_in_a_plan
from bedplate.units import MIB
from bedplate.visit.cut_engine import END, SETTLED, START, Driven, OracleAnswer
from bedplate.visit.tool_process import ToolProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from bedplate.host.command import Account
    from bedplate.model.levels import Scalar
    from bedplate.visit.cut_engine import Checkpoints, CutEngine, CutWriter, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.tool_process import ToolEnded
    from bedplate.visit.workload import Driver, VisitContext

_PREPARATION_LIMIT_S = 300.0
# After its own time, and after SIGTERM, before it is killed.
_PATIENCE_S = 10.0
# What a checker's answer may be long, and how much of it is kept.
_MOST_CHARACTERS, _MOST_FINDINGS, _FINDING_LENGTH = MIB, 20, 400
_FULL_BYTES = 16 * MIB


class _Pacer:
    """Looks at a writer while it works: enters `beside` at its first mark, halts it where its part of the log is used up, ends it."""

    def __init__(
        self,
        setup: Recorded,
        tool: ToolProcess,
        *,
        marks_before: int,
        duration_s: float,
        beside: Callable[[], object],
        name: str,
    ) -> None:
        self._setup, self._tool, self._name = setup, tool, name
        self._duration_s, self._beside = duration_s, beside
        self._started_s = time.monotonic()
        self._marks_before = marks_before
        self._begun_s: float | None = None
        self._late_s = 0.0
        self._pause_s: Callable[[], float] = lambda: 0.0
        self._halted = False
        self._told_s: float | None = None
        self.log_was_full = False

    def look(self) -> bool:
        """Never true: the writer is told to end here, with its whole group. BedplateError where it does not."""
        now_s = time.monotonic()
        if self._begun_s is None and self._told_s is None:
            if self._setup.mark_count() == self._marks_before:
                if now_s - self._started_s > _PREPARATION_LIMIT_S:
                    raise BedplateError(
                        f"the writer of {self._name} printed no line within {_PREPARATION_LIMIT_S:g} s and was killed: it prints "
                        "`begin` once it has prepared, and `ack CLIENT NUMBER` behind each commit"
                    )
                self._end_if(full=self._setup.is_log_nearly_full(), late=False)
                return False
            self._begun_s = now_s
            self._late_s = now_s + self._duration_s + _PATIENCE_S
            self._pause_s = self._setup.pace(self._duration_s)
            self._beside()
        if self._told_s is not None:
            if now_s - self._told_s > _PATIENCE_S:
                raise BedplateError(
                    f"the writer of {self._name} did not end within {_PATIENCE_S:g} s after SIGTERM and was killed"
                )
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

    def _halt(self, halted: bool) -> None:  # noqa: FBT001 -- one of two states
        if halted != self._halted:
            self._tool.signal(signal.SIGSTOP if halted else signal.SIGCONT)
            self._halted = halted


class _Writer:
    """The author's program, confined."""

    def __init__(self, context: VisitContext, setup: Recorded, clients: int) -> None:
        self._context, self._setup, self._clients = context, setup, clients
        self._folder = Path(context.native_drivers[PROGRAMS_KEY])
        self._description = read_description(context.request.cell.cluster.configuration or "")
        self._settings = context.engine_settings
        promise = self._description.promise(self._settings)
        self._promise = promise
        self.facts: Mapping[str, Scalar] = {
            NAME: self._description.name,
            **self._description.told(self._settings),
        }
        self.bound_ms = None if promise is None else promise.ms
        self.bound_transactions = None if promise is None else promise.transactions

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        return None

    def drive(
        self, output: Path, *, duration_s: float, seed: int, beside: AbstractContextManager[object]
    ) -> Driven:
        """The writer from its start to its end, and what is left of it written back: so much must be there without any cut."""
        context, setup = self._context, self._setup
        asked = Levels(clients=self._clients, seed=seed, duration=max(1, round(duration_s)))
        argv = (
            f"{PROGRAMS}/{self._description.writer}",
            DATA,
            *options(asked),
            *options(self._description.told(self._settings)),
        )
        tool = ToolProcess(
            confined(argv, data=setup.data_directory, programs=self._folder, account=context.account),
            context,
            output=output,
            directory=context.log_directory,
            confined_name=f"the writer of {self._description.name}",
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
                beside=lambda: stack.enter_context(beside),
                name=self._description.name,
            )
            ended = tool.wait(limit_s=_PREPARATION_LIMIT_S + duration_s + 6 * _PATIENCE_S, enough=pacer.look)
            seconds = pacer.seconds
        self._require_success(ended, was_told=pacer.was_told)
        setup.mark(END)
        setup.settle()
        setup.mark(SETTLED)
        return Driven(
            None,
            seconds,
            _first_line(tool.errors) or self._description.name,
            ended_early=pacer.log_was_full,
            demands_all=self._promise is None or self._promise.durability == DURABLE,
        )

    def _require_success(self, ended: ToolEnded, *, was_told: bool) -> None:
        """Whoever is told to end may end by that signal."""
        if ended.status == 0 or (
            was_told and ended.status in (SIGNALS_FROM + signal.SIGTERM, -signal.SIGTERM)
        ):
            return
        room = os.statvfs(self._setup.data_directory)
        full = room.f_bavail * room.f_frsize < _FULL_BYTES
        raise BedplateError(
            f"the writer of {self._description.name} {how_it_ended(ended.status)}: {ended.said}",
            *(("the recorded disk is full: a larger image_size gives it room",) if full else ()),
        )


def options(levels: Mapping[str, Scalar]) -> Iterator[str]:
    """`--NAME=VALUE`."""
    return (f"--{name}={as_in_a_plan(level)}" for name, level in levels.items())


def how_it_ended(status: int) -> str:
    """`ended with status 1`, `was ended by SIGSEGV`."""
    number = -status if status < 0 else status - SIGNALS_FROM
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended with status {status}"


def _first_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    return " ".join(lines[0].split())[:_FINDING_LENGTH] if lines else ""


def judge_document(text: str, promised: Mapping[int, int], *, oracle_s: float | None) -> OracleAnswer:
    """What a checker's answer comes to; OutputNotUnderstood for one that cannot be read, which is no damage but its author's fault."""
    try:
        found = json.loads(text)
        clients = {int(client): _last(last) for client, last in found.pop("clients").items()}
        wrong, refused = (_findings(found.pop(name, [])) for name in ("wrong", "refused"))
        _refuse_more(found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OutputNotUnderstood(
            "the checker",
            expected='one JSON object {"clients": {"0": LAST}, "wrong": [TEXT], "refused": [TEXT]} (docs/ENGINES.md)',
            found=text or "(it printed nothing)",
        ) from error
    silent = [
        *wrong,
        *(
            f"client {client} has transaction {last}, but {promised.get(client, 0)} was the last acknowledged"
            for client, last in clients.items()
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
    return tuple(text[:_FINDING_LENGTH] for text in texts[:_MOST_FINDINGS])


class ExternalCuts:
    """Two programs of the author's."""

    rows = 0
    oracle = 1
    drivers: tuple[Driver, ...] = ()

    def writer(self, context: VisitContext, recorded: Recorded, *, clients: int) -> CutWriter:
        """Nothing beforehand: the writer makes its files in the recording, and says `begin` behind that."""
        return _Writer(context, recorded, clients)

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """By the checker: a status, a signal or a time limit is the engine's own complaint."""
        folder, description = _engine_of(subject)
        argv = confined(
            (f"{PROGRAMS}/{description.checker}", DATA, *options(description.told(subject.settings))),
            data=site.data_directory,
            programs=folder,
            account=site.account,
        )
        # The image of the cut, where its folder may be missing, is looked at before anything is started.
        os.close(os.open(site.data_directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        started = time.monotonic()
        try:
            done = site.commands.run(argv, timeout_s=description.check_limit_s, check=False)
        except CommandNotStarted:
            raise
        except CommandFailed:
            words = f"the checker did not end within {description.check_limit_s:g} s"
            return OracleAnswer(None, detected=(words,), oracle_s=time.monotonic() - started)
        oracle_s = time.monotonic() - started
        if done.status == SIGNALS_FROM + signal.SIGKILL:
            raise KilledFromOutside(description.checker)
        if done.status:
            said = done.stderr.strip() or done.stdout.strip()
            words = f"the checker {how_it_ended(done.status)}{': ' if said else ''}{said[-_FINDING_LENGTH:]}"
            return OracleAnswer(None, detected=(words,), oracle_s=oracle_s)
        return judge_document(done.stdout[:_MOST_CHARACTERS], promised, oracle_s=oracle_s)

    def by_hand(
        self,
        subject: Subject,
        data: Path,
        account: Account,  # noqa: ARG002 -- of engines with a session of somebody's
        as_account: str,
    ) -> Iterator[str]:
        """The checker once more."""
        folder, description = _engine_of(subject)
        words = (str(folder / description.checker), str(data), *options(description.told(subject.settings)))
        yield f"{as_account} {shlex.join(words)}"


def _engine_of(subject: Subject) -> tuple[Path, EngineDescription]:
    """The folder of the programs, and what stands in it about them."""
    folder = Path(str(subject.drivers[PROGRAMS_KEY]))
    return folder, read_description((folder / FILE).read_text(encoding="utf-8"))


POWER_CUT: CutEngine = ExternalCuts()
