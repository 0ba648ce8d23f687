"""The server of a visit, whatever its engine: which step it is at, what is read back, and who ends it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.errors import PlanError, VisitFailed
from bedplate.host.command import Account
from bedplate.model.cell import BuildLevels
from bedplate.model.visit import ReadBack, VisitRequest
from bedplate.visit import server as visit_server
from bedplate.visit.life import Findings, Steps
from bedplate.visit.server import (
    InForce,
    ServerFailed,
    ServerSite,
    server_of,
    start_server,
    why_the_server_is_gone,
)


class Played:
    """A server and its engine, which say what they are told."""

    making = "make it"
    programs: tuple[str, ...] = ()
    lacks_room = False

    def __init__(self) -> None:
        self.told: list[str] = []
        self.shown = "on"
        self.breaks_at = ""

    def at(self, site: ServerSite) -> Any:
        assert site.socket_directory.stat().st_mode & 0o777 == 0o700
        return self

    def __getattr__(self, name: str) -> Any:
        def tell(*_: object) -> None:
            self.told.append(name)
            if name == self.breaks_at:
                raise ServerFailed(f"it said no to {name}")

        return tell

    def in_force(self, _: object) -> InForce:
        compared = ReadBack("sync", "on", self.shown, "its words", matches=self.shown == "on")
        return InForce({"sync": self.shown}, (compared,), {"played": "7"})


class Stage:
    def __init__(self, base: Path, engine: str) -> None:
        self.played = Played()
        account = Account("me", os.getuid(), os.getgid())
        commands = SimpleNamespace(run=lambda *_, **__: self.played.told.append("sync"))
        self.site = ServerSite(
            None, base, base / "socket", base / "log", account, cast("Any", commands), cast("Any", None)
        )
        cell = SimpleNamespace(build=BuildLevels.unbuilt(engine), device=SimpleNamespace(memory_bytes=None))
        self.request = cast("VisitRequest", SimpleNamespace(cell=cell))
        self.findings, self.undo = Findings(), contextlib.ExitStack()
        self.steps = Steps(lambda _: None)

    def start(self) -> Any:
        return start_server(
            self.request, self.site, undo=self.undo, steps=self.steps, findings=self.findings
        ).server


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    found = Stage(tmp_path, "played")
    monkeypatch.setattr(visit_server, "server_of", lambda _: found.played)
    return found


def test_it_is_made_synced_started_read_back_and_ended_with_the_visit(stage: Stage) -> None:
    assert stage.played is stage.start()
    assert ["initialise", "sync", "start", "create_database"] == stage.played.told
    assert ["make it", "server start", "server read back"] == [each.step for each in stage.steps.timings]
    assert {"played": "7"} == stage.findings.versions
    assert ["sync"] == [item.name for item in stage.findings.comparisons]
    stage.undo.close()
    assert "kill" == stage.played.told[-1]


def test_a_setting_that_is_not_in_force_fails_the_visit_and_is_recorded(stage: Stage) -> None:
    stage.played.shown = "off"
    with pytest.raises(VisitFailed, match="sync: asked on, effective is off"):
        stage.start()
    assert ["off"] == [item.effective for item in stage.findings.comparisons]


@pytest.mark.parametrize(("at", "step"), [("initialise", "make it"), ("start", "server start")])
def test_what_it_refuses_is_told_of_its_step(stage: Stage, at: str, step: str) -> None:
    stage.played.breaks_at = at
    with pytest.raises(VisitFailed, match=f"it said no to {at}"):
        stage.start()
    assert step == stage.steps.current


def test_an_engine_that_is_opened_by_its_workload_has_no_server(tmp_path: Path) -> None:
    assert [None, None] == [server_of(engine) for engine in ("lmdb", "none")]
    stage = Stage(tmp_path, "lmdb")
    assert stage.start() is None
    assert [] == stage.steps.timings
    assert not stage.site.socket_directory.exists()
    with pytest.raises(
        PlanError, match="engine 'oracle' is not known; known are postgresql, lmdb, sqlite, mariadb, none"
    ):
        server_of("oracle")


def test_why_it_is_gone_is_asked_of_the_server_and_of_the_file_system(tmp_path: Path) -> None:
    played = Played()
    context = cast("Any", SimpleNamespace(server=played, mount_point=tmp_path))
    assert () == why_the_server_is_gone(context)
    played.lacks_room = True
    played.breaks_at = "check_alive"
    assert ["scratch-device-full", "server-failed"] == [
        reason.code for reason in why_the_server_is_gone(context)
    ]
