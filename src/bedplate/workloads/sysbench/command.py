"""How sysbench is called: the distribution's scripts, by its own options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.apt.package_tree import PackageTree
from bedplate.host.shut_in.restriction import Restriction
from bedplate.visit.sql_server import MYSQL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.host.command import Account
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.visit.sql_server import SqlEndpoint

PACKAGE = "sysbench"
# Where a load may use several: each fills a table of its own.
_LOADERS_MOST = 4
_LOGGING = Path(__file__).with_name("transaction_log.lua")


class Sysbench:
    """An unpacked sysbench, and how a server is reached; BedplateError where the request names no tree."""

    def __init__(self, inputs: Mapping[str, str], endpoint: SqlEndpoint, dataset: Dataset) -> None:
        if PACKAGE not in inputs:
            raise BedplateError("the request names no sysbench; `bedplate setup` unpacks its package")
        self._tree = PackageTree(Path(inputs[PACKAGE]), {}, {})
        self._endpoint = endpoint
        self._tables = dataset.levels.integer("tables") or 1
        self._rows = dataset.levels.integer("table_size") or 1

    @property
    def program(self) -> str:
        """Its path."""
        return str(self._tree.demand_program("sysbench"))

    def restriction(
        self, account: Account, *, writable: tuple[Path, ...] = (), readable: tuple[Path, ...] = ()
    ) -> Restriction:
        """What it is left: its tree, the server's socket, and these."""
        socket = Path(self._endpoint.socket)
        folder = socket.parent if self._endpoint.protocol == MYSQL else socket
        return Restriction(account, writable, (self._tree.root, *readable), (folder,))

    def environment(self, **more: str) -> Mapping[str, str]:
        """What an unpacked program needs to find its libraries and its scripts."""
        return {**self._tree.environment, "LUA_PATH": f"{self._scripts}/?.lua;;", **more}

    def preparing(self) -> list[str]:
        """The argument list that makes and fills the tables."""
        threads = min(self._tables, _LOADERS_MOST)
        return [
            self.program,
            *self._shared(),
            f"--threads={threads}",
            self.script("oltp_read_write"),
            "prepare",
        ]

    def running(
        self, spec: RunSpec, script: Path, *, duration_s: float, seed: int, rate_tps: float | None
    ) -> list[str]:
        """That of a run; `script` is the logging one, as the account can read it."""
        levels = spec.levels
        return [
            self.program,
            *self._shared(),
            f"--threads={levels.integer('threads') or 1}",
            f"--time={max(1, round(duration_s))}",
            "--events=0",
            f"--rand-seed={seed % 2**31}",
            "--percentile=99",
            "--histogram=on",
            *(() if rate_tps is None else (f"--rate={rate_tps:g}",)),
            str(script),
            "run",
        ]

    def script(self, name: str) -> str:
        """The path of one of the distribution's scripts."""
        return f"{self._scripts}/{name}.lua"

    @property
    def _scripts(self) -> str:
        return str(self._tree.root / "usr/share/sysbench")

    def _shared(self) -> tuple[str, ...]:
        end, tables = self._endpoint, (f"--tables={self._tables}", f"--table-size={self._rows}")
        if end.protocol == MYSQL:
            return (
                "--db-driver=mysql",
                f"--mysql-socket={end.socket}",
                f"--mysql-user={end.user}",
                f"--mysql-db={end.database}",
                *tables,
            )
        return (
            "--db-driver=pgsql",
            f"--pgsql-host={end.socket}",
            f"--pgsql-user={end.user}",
            f"--pgsql-db={end.database}",
            *tables,
        )


def logging_script() -> str:
    """The text of the script that logs transactions."""
    return _LOGGING.read_text(encoding="utf-8")
