from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bedplate.model.cell import Cell
from bedplate.model.visit import ReadBack
from bedplate.visit.server import EngineServer, InForce, Server, ServerFailed, ServerSite


class Heap(Server):
    def __init__(self, site: ServerSite) -> None:
        self._site = site
        self._process: subprocess.Popen[bytes] | None = None

    def initialise(self, cell: Cell) -> None:
        self._stones.write_text(f"{cell.database_block_bytes}")

    def start(self) -> None:
        with self._site.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["sleep", "infinity"],
                stdout=log,
                stderr=log,
                preexec_fn=self._site.enter_group,  # noqa: PLW1509 -- a visit has no threads
            )

    def create_database(self) -> None:
        (self._site.data_directory / "database").mkdir()
        shutil.chown(self._site.data_directory / "database", self._site.account.uid)

    def in_force(self, cell: Cell) -> InForce:
        asked, found = cell.database_block_bytes, int(self._stones.read_text())
        compared = ReadBack("pile.stone", asked, found, "the first stone", matches=asked == found)
        return InForce({"stone": f"{found}"}, (compared,), {"pile": "1"})

    def check_alive(self) -> None:
        if self._process is None or self._process.poll() is not None:
            raise ServerFailed("the pile fell")

    @property
    def has_crashed(self) -> bool:
        return False

    @property
    def lacks_room(self) -> bool:
        return False

    def last_words(self) -> str:
        return "(a pile says nothing)"

    def stop(self, *, timeout_s: float | None = None) -> int | None:
        self.kill()
        return 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def _stones(self) -> Path:
        return self._site.data_directory / "stones"


SERVER = EngineServer("heap up", (), Heap)
