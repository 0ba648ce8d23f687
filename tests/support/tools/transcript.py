"""Runs a module of bedplate, and keeps what it and its own children start: `python transcript.py LOG MODULE WORDS…`.

A line of the log is a JSON document: a start (its words, what its environment and rights differ in), or what went to a standard input. Where
a child is a module of bedplate again, this goes between, so that its starts are kept as well. The standard library alone, as in a visit.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

# In the caller's environment: whoever sees it has all of that environment.
CANARY = "BEDPLATE_TEST_OF_THE_CALLER"
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "uts")
_RIGHTS = ("CapEff", "NoNewPrivs", "Seccomp")
_LOG, _MODULE = Path(sys.argv[1]), sys.argv[2]
_Popen: Any = subprocess.Popen


def _keep(**entry: Any) -> None:
    line = json.dumps({"of": _MODULE, **entry}).encode() + b"\n"
    log = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(log, line)
    finally:
        os.close(log)


def _text(data: str | bytes | memoryview) -> str:
    return data if isinstance(data, str) else bytes(data).decode(errors="replace")


class _Kept:
    """A standard input whose words are kept."""

    def __init__(self, pipe: Any, program: str) -> None:
        self._pipe = pipe
        self._program = program

    def write(self, data: str | bytes) -> Any:
        _keep(to=self._program, words=_text(data))
        return self._pipe.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)


def _mine() -> dict[str, Any]:
    """Whose this process is, what it may, what it shares with nobody, and where it can write."""
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
    )
    writable = [
        fields[4]
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if (fields := line.split(" "))
        and "ro" not in fields[5].split(",")
        and not fields[4].startswith(("/proc", "/sys", "/dev"))
        # Put over a socket that another program of the machine has at the moment.
        and not fields[3].endswith("/null")
    ]
    return {
        "account": f"{os.getuid()}:{os.getgid()} {sorted(os.getgroups())}",
        "rights": {name: status.get(name, "") for name in _RIGHTS},
        "namespaces": {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in _NAMESPACES},
        "writable": sorted(set(writable)),
    }


class _Started(_Popen):  # type: ignore[misc]
    """As any other, and kept."""

    stdin: Any

    def __init__(self, args: Any, *more: Any, **how: Any) -> None:
        argv = [os.fspath(word) for word in args]
        self._kept_name = argv[0]
        entry: dict[str, Any] = {
            "argv": argv,
            "cwd": os.fspath(how.get("cwd") or "."),
            **_environment(how.get("env")),
        }
        for name in ("user", "group"):
            if how.get(name) is not None:
                entry[name] = how[name]
        become = how.get("preexec_fn")
        heard, said = os.pipe()
        if become is not None:

            def become_and_say() -> None:
                os.write(said, b"{")
                become()
                os.write(said, json.dumps(_mine()).encode()[1:])

            how["preexec_fn"] = become_and_say
        try:
            super().__init__(_through_this(argv), *more, **how)
        except OSError as error:
            entry["failed"] = error.strerror
            raise
        finally:
            os.close(said)
            with os.fdopen(heard, "rb") as words:
                text = words.read()
            entry["becomes"] = (
                None if not text else "by itself" if text == b"{" else _beside(json.loads(text))
            )
            _keep(**entry)
        if self.stdin is not None:
            self.stdin = _Kept(self.stdin, self._kept_name)

    def communicate(self, input: Any = None, timeout: float | None = None) -> Any:  # noqa: A002 -- Popen's name
        if input is not None:
            _keep(to=self._kept_name, words=_text(input))
            self.stdin = self.stdin._pipe
        return super().communicate(input, timeout)


def _beside(child: dict[str, Any]) -> dict[str, Any]:
    """What the child has in another way than this process."""
    mine = _mine()
    own = [name for name, which in child["namespaces"].items() if which != mine["namespaces"][name]]
    return {**child, "namespaces": own}


def _environment(given: dict[str, str] | None) -> dict[str, Any]:
    if given is None:
        return {"sees": "the caller's environment"}
    changed = {name: value for name, value in given.items() if os.environ.get(name) != value}
    return {
        "sees": "the caller's environment" if CANARY in given else "its own environment",
        "environment": changed,
    }


def _through_this(argv: list[str]) -> list[str]:
    """A module of bedplate's goes through this, also where another program begins its Python."""
    for where, word in enumerate(argv[2:], 2):
        if word.startswith("bedplate.") and argv[where - 1] == "-m" and sys.executable in argv[:where]:
            return [*argv[: where - 1], __file__, str(_LOG), *argv[where:]]
    return argv


if __name__ == "__main__":
    subprocess.Popen = _Started  # type: ignore[misc]
    sys.argv = sys.argv[2:]
    sys.path.pop(0)
    runpy.run_module(_MODULE, run_name="__main__", alter_sys=True)
