"""A tool of the tests' own, followed to its end: its words, its CPU, its failures."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.tools.unrestricted import UNRESTRICTED

from bedplate.errors import BedplateError
from bedplate.host.command import Account, Commands
from bedplate.visit.recording import ToolProcess, VisitContext


class Play:
    """A rig whose account is the caller, and the group that was entered."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.entered = directory / "entered"
        account = Account("me", os.getuid(), os.getgid())
        self.context = cast(
            "VisitContext", SimpleNamespace(account=account, commands=Commands(), enter_group=self._enter)
        )

    def _enter(self) -> None:
        self.entered.write_text(str(os.getpid()))

    def tool(self, script: str, program: str = sys.executable) -> ToolProcess:
        argv = [program, "-c", script]
        return ToolProcess(
            argv,
            self.context,
            output=self.directory / "tool",
            directory=self.directory,
            confinement=UNRESTRICTED,
        )


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path)


def test_words_come_while_the_tool_runs_and_are_kept(play: Play) -> None:
    script = "import sys; sys.stderr.write('begun'); sys.stderr.flush(); print('result'); sys.stdin.read()"
    with play.tool(script) as tool:
        assert b"begun" == b"".join(tool.pieces(limit_s=30))
        assert (0, None) == (tool.outcome.status, tool.outcome.problem)
    assert "result\n" == tool.output.read_text()
    assert "begun" == (play.directory / "tool.err").read_text()


def test_the_child_enters_the_group_before_it_becomes_the_tool(play: Play) -> None:
    with play.tool("import os; print(os.getpid())") as tool:
        tool.wait(limit_s=30)
    assert play.entered.read_text() == tool.output.read_text().strip()
    assert [tool.argv] == play.context.commands.record


def test_cpu_is_that_of_the_tool_and_its_children(play: Play) -> None:
    script = (
        "import os, time\n"
        "def burn():\n"
        "    while time.process_time() < 0.3: pass\n"
        "child = os.fork()\n"
        "burn()\n"
        "if child: os.waitpid(child, 0)\n"
    )
    with play.tool(script) as tool:
        ended = tool.wait(limit_s=60)
    assert 0.55 < ended.cpu_s < 2


def test_a_failure_has_the_tools_own_words(play: Play) -> None:
    with play.tool("import sys; sys.exit('no such thing')") as tool:
        ended = tool.wait(limit_s=30)
    assert (1, f"{sys.executable} ended with status 1: no such thing") == (ended.status, ended.problem)


def test_without_words_on_standard_error_those_before_the_document_are_quoted(play: Play) -> None:
    script = "import sys; print('fio: pid=1, err=28'); print('{'); print(' \"a\": 1}'); sys.exit(1)"
    with play.tool(script) as tool:
        ended = tool.wait(limit_s=30)
    assert str(ended.problem).endswith("ended with status 1: fio: pid=1, err=28")


def test_a_signal_is_named(play: Play) -> None:
    with play.tool("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") as tool:
        ended = tool.wait(limit_s=30)
    assert (-signal.SIGKILL, True) == (ended.status, "was killed by SIGKILL" in str(ended.problem))


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_tool_that_does_not_end_is_killed_with_its_children(play: Play) -> None:
    script = (
        "import os, time\n"
        "if not os.fork(): open('child', 'w').write(str(os.getpid())); time.sleep(600)\n"
        "time.sleep(600)\n"
    )
    with (
        pytest.raises(BedplateError, match="did not end within 1 s and was killed"),
        play.tool(script) as tool,
    ):
        tool.wait(limit_s=1)
    child = int((play.directory / "child").read_text())
    deadline = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < deadline


def test_leaving_early_kills_it(play: Play) -> None:
    class Stop(Exception):
        pass

    def leave(tool: ToolProcess) -> None:
        with tool:
            raise Stop

    tool = play.tool("import time; time.sleep(600)")
    with pytest.raises(Stop):
        leave(tool)
    pid = int(play.entered.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(RuntimeError, match="has not ended yet"):
        _ = tool.outcome


def test_a_program_that_is_not_there_is_named(play: Play) -> None:
    with (
        pytest.raises(BedplateError, match=r"/no/such/tool cannot be started: No such file"),
        play.tool("", "/no/such/tool"),
    ):
        pass


def test_a_tool_that_has_done_enough_is_asked_to_end_and_does_so_in_order(play: Play) -> None:
    script = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('in order')));"
        "open('ready', 'w').close(); [signal.pause() for _ in iter(int, 1)]"
    )
    with play.tool(script) as tool:
        ended = tool.wait(limit_s=30, enough=(play.directory / "ready").exists)
    assert (ended.status, ended.problem, ended.asked_to_end) == (0, None, True)
    assert tool.output.read_text() == "in order\n"


def test_a_tool_that_never_has_enough_ends_by_itself(play: Play) -> None:
    with play.tool("print('done')") as tool:
        ended = tool.wait(limit_s=30, enough=lambda: False)
    assert (ended.status, ended.asked_to_end) == (0, False)


def test_the_limit_holds_for_a_tool_that_does_not_end_when_asked(play: Play) -> None:
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('ready', 'w').close(); [signal.pause() for _ in iter(int, 1)]"
    with pytest.raises(BedplateError, match="did not end within"), play.tool(script) as tool:
        tool.wait(limit_s=2, enough=(play.directory / "ready").exists)
