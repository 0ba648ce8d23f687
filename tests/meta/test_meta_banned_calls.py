"""Calls that are not made here, each with what is used in its place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

import pytest
from tests.support.tools.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RUN = "bedplate.host.command.Commands.run with an argument list (in tests: subprocess.run with a list)"
_AWARE = "datetime.now(tz=UTC)"
_EVENT = (
    "wait for the event: a file descriptor, a process, threading.Event.wait, or a sleep that is handed in"
)

# Full dotted name -> what to use.
_BANNED_CALLS = {
    "os.system": _RUN,
    "os.popen": _RUN,
    "subprocess.getoutput": _RUN,
    "subprocess.getstatusoutput": _RUN,
    "datetime.datetime.utcnow": _AWARE,
    "datetime.datetime.utcfromtimestamp": "datetime.fromtimestamp(seconds, tz=UTC)",
    "datetime.datetime.today": _AWARE,
    "time.sleep": _EVENT,
    "tempfile.mktemp": "tempfile.mkstemp or tempfile.TemporaryDirectory",
}
_SHELLS = frozenset({"sh", "bash", "dash", "/bin/sh", "/bin/bash"})
_BROAD = frozenset({"Exception", "BaseException"})

# (path, name of the call) -> the reason why nothing can be waited for there.
_ALLOWED: dict[tuple[str, str], str] = {}


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def _imported_names(text: str) -> dict[str, str]:
    """Local name -> full dotted name, from every import of the file."""
    names = {}
    for node in nodes(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The full name of what is called, as far as imports tell; empty for anything computed."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _judge_call(node: ast.Call, name: str) -> Iterator[tuple[str, str]]:
    if name in _BANNED_CALLS:
        yield name, _BANNED_CALLS[name]
    if name == "datetime.datetime.now" and not node.args and not any(k.arg == "tz" for k in node.keywords):
        yield "datetime.now() without a zone", _AWARE
    if any(keyword.arg == "shell" and _is_true(keyword.value) for keyword in node.keywords):
        yield "shell=True", _RUN
    if name == "contextlib.suppress" and any(_names_broad(argument) for argument in node.args):
        yield "suppress(Exception)", "suppress of the error that is expected"


def _names_broad(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(_names_broad(element) for element in node.elts)
    return isinstance(node, ast.Name) and node.id in _BROAD


def _judge_handler(node: ast.ExceptHandler) -> Iterator[tuple[str, str]]:
    if node.type is None:
        yield "a bare except", "except of the error that is expected"
    does_nothing = all(
        isinstance(statement, ast.Pass | ast.Continue)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in node.body
    )
    if _names_broad(node.type) and does_nothing:
        yield "except Exception: pass", "except of the error that is expected; the rest is recorded or raised"


def _judge_list(node: ast.List | ast.Tuple) -> Iterator[tuple[str, str]]:
    words = [element.value if isinstance(element, ast.Constant) else None for element in node.elts[:2]]
    if len(words) == 2 and words[0] in _SHELLS and words[1] == "-c":
        yield "a shell string in an argument list", "the program itself with its arguments"


def banned_calls(path: str, text: str) -> list[tuple[str, str, str]]:
    """Every use as (place, what, replacement)."""
    names = _imported_names(text)
    found: list[tuple[int, str, str]] = []
    for node in nodes(text):
        if isinstance(node, ast.Call):
            found += [(node.lineno, *use) for use in _judge_call(node, _dotted(node.func, names))]
        elif isinstance(node, ast.ExceptHandler):
            found += [(node.lineno, *use) for use in _judge_handler(node)]
        elif isinstance(node, ast.List | ast.Tuple):
            found += [(node.lineno, *use) for use in _judge_list(node)]
    return [(f"{path}:{line}", what, instead) for line, what, instead in sorted(found)]


def not_allowed(path: str, text: str, allowed: dict[tuple[str, str], str]) -> list[str]:
    """The uses that no entry of the allow-list covers, each with its replacement."""
    return [
        f"{place}: {what}; use {instead}"
        for place, what, instead in banned_calls(path, text)
        if (path, what) not in allowed
    ]


def stale_entries(sources: Sequence[_Source], allowed: dict[tuple[str, str], str]) -> list[str]:
    """Entries of the allow-list without a reason, or whose call is gone."""
    named = {path for path, _ in allowed}
    ours = [source for source in sources if source.path in named]
    used = {(s.path, what) for s in ours for _, what, _ in banned_calls(s.path, s.text)}
    return [
        f"{key}: {'has no reason' if key in used else 'is no longer there'}; remove the entry"
        for key, reason in allowed.items()
        if not reason.strip() or key not in used
    ]


def test_banned_calls_are_not_made(python_sources: Sequence[_Source], judge: _Judge) -> None:
    judge([finding for s in python_sources for finding in not_allowed(s.path, s.text, _ALLOWED)])


def test_the_allow_list_holds_only_what_is_needed(python_sources: Sequence[_Source], judge: _Judge) -> None:
    judge(stale_entries(python_sources, _ALLOWED))


_PLANTED = {
    "import subprocess\nsubprocess.run('ls', shell=True)": "shell=True",
    "import subprocess\nsubprocess.run('ls', shell=1)": "shell=True",
    "import os\nos.system('ls')": "os.system",
    "from os import system as run\nrun('ls')": "os.system",
    "import os\nos.popen('ls')": "os.popen",
    "import subprocess as s\ns.getoutput('ls')": "subprocess.getoutput",
    "from subprocess import getstatusoutput\ngetstatusoutput('ls')": "subprocess.getstatusoutput",
    "try:\n    a()\nexcept:\n    b()": "a bare except",
    "try:\n    a()\nexcept Exception:\n    pass": "except Exception: pass",
    "try:\n    a()\nexcept (ValueError, BaseException):\n    'why'": "except Exception: pass",
    "for x in y:\n    try:\n        a()\n    except Exception:\n        continue": "except Exception: pass",
    "import contextlib\nwith contextlib.suppress(Exception):\n    a()": "suppress(Exception)",
    "import time\ntime.sleep(1)": "time.sleep",
    "def f():\n    from time import sleep\n    sleep(1)": "time.sleep",
    "from datetime import datetime\ndatetime.now()": "datetime.now() without a zone",
    "import datetime\ndatetime.datetime.now()": "datetime.now() without a zone",
    "import datetime as d\nd.datetime.utcnow()": "datetime.datetime.utcnow",
    "x = ['sh', '-c', 'rm -rf /']": "a shell string in an argument list",
    "x = ('/bin/bash', '-c', text)": "a shell string in an argument list",
}


@pytest.mark.parametrize(("text", "what"), _PLANTED.items())
def test_a_planted_call_is_found_with_its_replacement(text: str, what: str) -> None:
    findings = banned_calls("a.py", text)
    assert [what] == [finding[1] for finding in findings]
    assert all(instead for _, _, instead in findings)
    assert "; use " in not_allowed("a.py", text, {})[0]


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\nsubprocess.run(['ls'], shell=False)",
        "from datetime import UTC, datetime\ndatetime.now(tz=UTC)\ndatetime.now(UTC)",
        "try:\n    a()\nexcept Exception as error:\n    record(error)",
        "try:\n    a()\nexcept OSError:\n    pass",
        "clock.sleep(1)\nself.system('x')",
        "import time\ndef wait(sleep=time.sleep): sleep(1)",
        "x = ['sh', 'script']",
    ],
)
def test_a_sound_call_passes(text: str) -> None:
    assert banned_calls("a.py", text) == []


def test_the_allow_list_covers_its_file_only() -> None:
    text = "import time\ntime.sleep(1)"
    allowed = {("a.py", "time.sleep"): "planted"}
    assert not_allowed("a.py", text, allowed) == []
    assert len(not_allowed("b.py", text, allowed)) == 1


def test_a_planted_stale_entry_is_found() -> None:
    assert len(stale_entries([], {("gone.py", "time.sleep"): "once needed"})) == 1
