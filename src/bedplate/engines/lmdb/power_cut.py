"""LMDB under power cuts: one writer that marks each commit, and a check that walks what a cut left.

Both are modes of the driver drivers/power_cut_lmdb.c, which marks where its clients begin and end. The check is a process of its own: the library ends on damage
by a signal as often as by an error.
"""

from __future__ import annotations

import json
import shlex
import signal
import time
from typing import TYPE_CHECKING, Any

from bedplate.engines.lmdb.library import LIBLMDB
from bedplate.engines.lmdb.model import MODEL
from bedplate.engines.lmdb.settings import ASYNCHRONOUS, NOMETASYNC, settings_in_force
from bedplate.errors import BedplateError, CommandFailed, CommandNotStarted, OutputNotUnderstood
from bedplate.units import MIB
from bedplate.visit.cut_engine import Driven, OracleAnswer
from bedplate.visit.tool_process import ToolFailed, ToolProcess
from bedplate.visit.workload import Driver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bedplate.host.command import Account, Commands
    from bedplate.model.levels import Levels, Scalar
    from bedplate.visit.cut_engine import Checkpoints, CutEngine, CutWriter, Recorded, Subject
    from bedplate.visit.engine_server import ServerSite
    from bedplate.visit.workload import VisitContext

DRIVER = Driver("power_cut_lmdb", (LIBLMDB,))
ACCOUNTS = 10_000
# The kind of what the writer leaves for the check.
ORACLE = 1
_MAP_BYTES = 128 * MIB
# The kernel writes back after seconds what nobody waits for; a recording is as short as that.
_PRESSURE_MS = 30
_CHECK_LIMIT_S = 300.0
_PREPARATION_LIMIT_S = 600.0
# What a check counts that nobody but it would find.
_SILENT = {
    "balances_wrong": "accounts are not the sum of their entries",
    "values_wrong": "keys or values are not whole, or none of ours",
    "order_wrong": "keys are not behind the one before",
    "counts_wrong": "databases hold more or fewer entries than they say",
    "pages_unaccounted": "pages are neither used nor free, or both",
}


def sync_mode(settings: Levels) -> str:
    """How commits wait; a plan that leaves it to the tests means the library's own default here."""
    return MODEL.commit_mode(settings)


def bound_transactions(settings: Levels) -> int | None:
    """What lmdb.h calls the bound of MDB_NOMETASYNC: the last transaction; None for any other mode."""
    return 1 if sync_mode(settings) == NOMETASYNC else None


def facts_of(context: VisitContext) -> dict[str, Scalar]:
    """How the environment was opened."""
    mode = sync_mode(context.engine_settings)
    facts = {**settings_in_force(context.engine_settings), "sync": mode}
    return {**facts, "pressure_ms": _PRESSURE_MS} if mode in ASYNCHRONOUS else facts


def examine(
    place: Path, driver: str, promised: Mapping[int, int], *, account: Account, commands: Commands
) -> OracleAnswer:
    """Walk the environment in `place` and compare it with what was promised.

    A reader that does not end has met damage; CommandNotStarted, or OSError, for one that never began.
    """
    started = time.monotonic()
    try:
        done = commands.run(
            [driver, "check", f"--directory={place}"], timeout_s=_CHECK_LIMIT_S, check=False, account=account
        )
    except CommandNotStarted:
        raise
    except CommandFailed as error:
        return OracleAnswer(
            None, detected=(f"the reader: {error.reasons[0]}",), oracle_s=time.monotonic() - started
        )
    oracle_s = time.monotonic() - started
    if done.status < 0:
        said = f": {done.stderr.strip()}" if done.stderr.strip() else ""
        words = f"the reader was ended by {signal.Signals(-done.status).name}{said}"
        return OracleAnswer(None, detected=(words,), oracle_s=oracle_s)
    document = _last_document(done.stdout)
    if document is None:
        raise OutputNotUnderstood(f"{DRIVER.name} check", expected="its document", found=done.output)
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
            f"{DRIVER.name} check", expected=f"a document with {error}", found=json.dumps(dict(document))
        ) from error
    return OracleAnswer(present, silent=tuple(silent), oracle_s=oracle_s)


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


class _Writer:
    """One process, which opens the environment itself."""

    bound_ms: float | None = None

    def __init__(self, context: VisitContext, setup: Recorded, clients: int) -> None:
        self._context, self._setup, self._clients = context, setup, clients
        self.facts: Mapping[str, Scalar] = facts_of(context)
        self.bound_transactions = bound_transactions(context.engine_settings)

    def checkpoints(self) -> AbstractContextManager[Checkpoints] | None:
        return None

    def drive(
        self, output: Path, *, duration_s: float, seed: int, beside: AbstractContextManager[object]
    ) -> Driven:
        """From an empty directory; BedplateError in the library's own words."""
        context, setup = self._context, self._setup
        settings = settings_in_force(context.engine_settings)
        mode = sync_mode(context.engine_settings)
        argv = (
            *(context.native_drivers[DRIVER.name], "write"),
            *(f"--directory={setup.data_directory}", f"--mark={setup.mark_file}"),
            *(
                f"--clients={self._clients}",
                f"--accounts={ACCOUNTS}",
                f"--duration-s={max(1, round(duration_s))}",
            ),
            *(f"--sync={mode}", f"--map-bytes={_MAP_BYTES}", f"--seed={seed}"),
            *(("--writemap",) if settings["writemap"] else ()),
            *(() if settings["readahead"] else ("--no-readahead",)),
            f"--preallocation={settings['preallocation']}",
            *((f"--pressure-ms={_PRESSURE_MS}",) if mode in ASYNCHRONOUS else ()),
            *(
                f"--log={setup.log}",
                f"--log-bytes={setup.room_bytes}",
                f"--log-most={setup.log_for_clients_bytes()}",
            ),
        )
        with ToolProcess(argv, context, output=output, directory=context.log_directory) as tool, beside:
            ended = tool.wait(limit_s=duration_s + _PREPARATION_LIMIT_S, enough=setup.is_log_nearly_full)
        document = _last_document(output.with_suffix(".out").read_text(encoding="utf-8", errors="replace"))
        if document is not None and document["failure"] is not None:
            raise BedplateError(
                f"the LMDB writer: {document['failure']['error']} ({document['failure']['step']})"
            )
        if ended.problem is not None:
            raise ToolFailed(ended.problem, ended)
        if document is None:
            raise OutputNotUnderstood(DRIVER.name, expected="its document", found=output.name)
        return Driven(
            int(document["transactions"]),
            int(document["elapsed_ns"]) / 1e9,
            str(document["library"]),
            ended_early=ended.asked_to_end,
        )


class LmdbCuts:
    """The driver's two modes."""

    rows = ACCOUNTS
    oracle = ORACLE
    drivers: tuple[Driver, ...] = (DRIVER,)

    def writer(self, context: VisitContext, recorded: Recorded, *, clients: int) -> CutWriter:
        """Nothing beforehand: the environment is made in the recording."""
        return _Writer(context, recorded, clients)

    def examine(self, site: ServerSite, subject: Subject, promised: Mapping[int, int]) -> OracleAnswer:
        """By the check."""
        driver = str(subject.drivers[DRIVER.name])
        return examine(site.data_directory, driver, promised, account=site.account, commands=site.commands)

    def by_hand(
        self,
        subject: Subject,
        data: Path,
        account: Account,  # noqa: ARG002 -- of engines with a session of somebody's
        as_account: str,
    ) -> Iterator[str]:
        """The check once more."""
        driver = shlex.quote(str(subject.drivers[DRIVER.name]))
        yield f"{as_account} {driver} check --directory={shlex.quote(str(data))}"


POWER_CUT: CutEngine = LmdbCuts()
