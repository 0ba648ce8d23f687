"""Power cuts of an engine that is a library: one writer that marks each commit, and a check that walks what a cut left.

Both are modes of a program that is compiled with the engine (drivers/power_cut.c), which marks where its clients begin and end.
The check is a process of its own: a library ends on damage by a signal as often as by an error.
"""

from __future__ import annotations

import json
import shlex
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.errors import BedplateError, CommandFailed, CommandNotStarted, OutputNotUnderstood
from bedplate.host.shut_in.restriction import Restriction
from bedplate.model.levels import as_in_a_plan
from bedplate.visit.cut_engine import Driven, OracleAnswer
from bedplate.visit.tool_process import ToolFailed, ToolProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from bedplate.host.command import Account, Commands
    from bedplate.model.levels import Levels, Scalar
    from bedplate.visit.cut_engine import Checkpoints, CutWriter, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import Driver, VisitContext

ACCOUNTS = 10_000
# The kind of what the writer leaves for the check.
ORACLE = 1
# The kernel writes back after seconds what nobody waits for; a recording is as short as that.
_PRESSURE_MS = 30
_CHECK_LIMIT_S = 300.0
_PREPARATION_LIMIT_S = 600.0
# What a check counts that nobody but it would find.
_SILENT = {
    "balances_wrong": "accounts are not the sum of their entries",
    "values_wrong": "keys or values are not whole, or none of ours",
    "order_wrong": "keys are not behind the one before",
    "counts_wrong": "tables hold more or fewer entries than they say",
    "pages_unaccounted": "pages are neither used nor free, or both",
}


def examine(
    place: Path, driver: str, promised: Mapping[int, int], *, account: Account, commands: Commands
) -> OracleAnswer:
    """Walk the database in `place` and compare it with what was promised.

    A reader that does not end has met damage; CommandNotStarted, or OSError, for one that never began.
    """
    started = time.monotonic()
    try:
        done = commands.run(
            [driver, "check", f"--directory={place}"],
            timeout_s=_CHECK_LIMIT_S,
            check=False,
            confinement=Restriction(account, (place,), (Path(driver),)),
        )
    except CommandNotStarted:
        raise
    except CommandFailed as error:
        return OracleAnswer(
            None,
            detected=(f"the reader: {error.reasons[0]}",),
            oracle_s=time.monotonic() - started,
            out_of_time=True,
        )
    oracle_s = time.monotonic() - started
    if done.status < 0:
        said = f": {done.stderr.strip()}" if done.stderr.strip() else ""
        words = f"the reader was ended by {signal.Signals(-done.status).name}{said}"
        return OracleAnswer(None, detected=(words,), oracle_s=oracle_s)
    document = _last_document(done.stdout)
    if document is None:
        raise OutputNotUnderstood("the check", expected="its document", found=done.output)
    return judge_document(document, promised, oracle_s=oracle_s)


def judge_document(
    document: Mapping[str, Any], promised: Mapping[int, int], *, oracle_s: float | None
) -> OracleAnswer:
    """What a check's document comes to; OutputNotUnderstood if something is missing in it."""
    try:
        if (failure := document["failure"]) is not None:
            return OracleAnswer(
                None, detected=(f"{failure['error']} ({failure['step']})",), oracle_s=oracle_s
            )
        silent = [f"{document[name]} {words}" for name, words in _SILENT.items() if document[name]]
        if document["accounts"] != ACCOUNTS:
            silent.append(f"{ACCOUNTS} accounts were made, {document['accounts']} are there")
        present = {}
        for client in document["clients"]:
            number, last = int(client["client"]), int(client["last"])
            present[number] = last
            if client["gaps"] or client["entries"] != last:
                silent.append(
                    f"client {number} has {client['entries']} entries up to {last}: some are missing between"
                )
            if last > promised.get(number, 0) + 1:
                silent.append(
                    f"client {number} has transaction {last}, but {promised.get(number, 0)} was the last acknowledged"
                )
    except (KeyError, TypeError, ValueError) as error:
        raise OutputNotUnderstood(
            "the check", expected=f"a document with {error}", found=json.dumps(dict(document))
        ) from error
    # A program of an earlier version has none.
    complaints = tuple(map(str, document.get("complaints", ())))
    return OracleAnswer(present, detected=complaints, silent=tuple(silent), oracle_s=oracle_s)


def _last_document(text: str) -> dict[str, Any] | None:
    """The last line that is a JSON object, None without one."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                return None
            return found if "failure" in found else None
    return None


@dataclass(frozen=True)
class NativeCuts:
    """The program's two modes, of one engine, which a person calls `label`.

    By the settings of a cell: what the program is told (`told`), whether nothing waits, so that the kernel is pressed to write
    (`is_pressed`), and how many transactions at most the settings call lost (`bound`; None where they say nothing).
    """

    driver: Driver
    label: str
    told: Callable[[Levels], Levels]
    is_pressed: Callable[[Levels], bool]
    bound: Callable[[Levels], int | None]

    rows = ACCOUNTS
    oracle = ORACLE
    may_link = False

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """The one that is compiled."""
        return (self.driver,)

    def facts_of(self, settings: Levels) -> dict[str, Scalar]:
        """How the database is opened."""
        pressed = {"pressure_ms": _PRESSURE_MS} if self.is_pressed(settings) else {}
        return {**self.told(settings), **pressed}

    def writer(self, context: VisitContext, setup: Recorded, *, clients: int) -> CutWriter:
        """Nothing beforehand: the database is made in the recording."""
        return _Writer(self, context, setup, clients)

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """By the check."""
        driver = str(subject.drivers[self.driver.name_for(subject.settings)])
        return examine(site.data_directory, driver, promised, account=site.account, commands=site.commands)

    def refused_settings(self, subject: Subject) -> Sequence[str]:  # noqa: ARG002 -- of engines that start a server with them
        """None: the check opens what it finds."""
        return ()

    def by_hand(
        self,
        subject: Subject,
        data: Path,
        account: Account,  # noqa: ARG002 -- of engines with a session of somebody's
        as_account: str,
    ) -> Iterator[str]:
        """The check once more."""
        driver = shlex.quote(str(subject.drivers[self.driver.name_for(subject.settings)]))
        yield f"{as_account} {driver} check --directory={shlex.quote(str(data))}"


class _Writer:
    """One process, which opens the database itself."""

    bound_ms: float | None = None
    was_killed = False

    def __init__(self, engine: NativeCuts, context: VisitContext, setup: Recorded, clients: int) -> None:
        self._engine, self._context, self._setup, self._clients = engine, context, setup, clients
        settings = context.engine_settings
        self.facts: Mapping[str, Scalar] = engine.facts_of(settings)
        self.bound_transactions = engine.bound(settings)

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        return None

    def drive(
        self, output: Path, *, duration_s: float, seed: int, beside: AbstractContextManager[object]
    ) -> Driven:
        """From an empty directory; BedplateError in the library's own words."""
        engine, context, setup = self._engine, self._context, self._setup
        settings = context.engine_settings
        driver = context.native_drivers[engine.driver.name_for(settings)]
        argv = (
            *(driver, "write"),
            *(f"--directory={setup.data_directory}", f"--mark={setup.mark_file}"),
            *(f"--clients={self._clients}", f"--accounts={ACCOUNTS}"),
            *(f"--duration-s={max(1, round(duration_s))}", f"--seed={seed}"),
            *(f"--set={name}={as_in_a_plan(level)}" for name, level in engine.told(settings).items()),
            *((f"--pressure-ms={_PRESSURE_MS}",) if engine.is_pressed(settings) else ()),
            *(f"--log={setup.log}", f"--log-bytes={setup.room_bytes}"),
            f"--log-most={setup.log_for_clients_bytes()}",
        )
        restriction = Restriction(
            context.account, (setup.data_directory, setup.mark_file), (Path(driver), setup.log)
        )
        with (
            ToolProcess(
                argv, context, output=output, directory=context.log_directory, confinement=restriction
            ) as tool,
            beside,
        ):
            ended = tool.wait(limit_s=duration_s + _PREPARATION_LIMIT_S, enough=setup.is_log_nearly_full)
        document = _last_document(output.with_suffix(".out").read_text(encoding="utf-8", errors="replace"))
        if document is not None and document["failure"] is not None:
            raise BedplateError(
                f"the {engine.label} writer: {document['failure']['error']} ({document['failure']['step']})"
            )
        if ended.problem is not None:
            raise ToolFailed(ended.problem, ended)
        if document is None:
            raise OutputNotUnderstood(engine.driver.name, expected="its document", found=output.name)
        return Driven(
            int(document["transactions"]),
            int(document["elapsed_ns"]) / 1e9,
            str(document["library"]),
            ended_early=ended.asked_to_end,
        )
