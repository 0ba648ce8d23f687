"""Redis' server in a folder, and its protocol as far as the two programs need it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time


class Refused(Exception):
    """What the server says no to, or what it wrote down before it ended."""


class Server:
    """One that runs until it is killed."""

    def __init__(self, directory, *, patience_s, appendfsync="always", has_rewrites=True):
        program = shutil.which("redis-server", path="/usr/bin:/usr/local/bin:/bin")
        if program is None:
            sys.exit("redis-server is not installed: the package redis-server has it")
        self.version = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout.strip()
        self._own = tempfile.mkdtemp(prefix="redis-", dir="/tmp")
        self._socket, self._log = os.path.join(self._own, "socket"), os.path.join(self._own, "log")
        # No port, no snapshots.
        words = {
            "port": "0",
            "unixsocket": self._socket,
            "dir": directory,
            "save": "",
            "logfile": self._log,
            "appendonly": "yes",
            "appendfsync": appendfsync,
            "auto-aof-rewrite-percentage": "100" if has_rewrites else "0",
            "auto-aof-rewrite-min-size": "64kb",
        }
        argv = [word for name, value in words.items() for word in (f"--{name}", value)]
        # Standard output is the writer's own: a line of the server's there would be a mark.
        self._process = subprocess.Popen(
            [program, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._until = time.monotonic() + patience_s

    def connect(self):
        """A connection, once the server has read its log; Refused where it ends before that."""
        while True:
            try:
                connection = Connection(self._socket)
                connection.ask(b"PING")
            except (OSError, Refused) as error:
                if self._has_ended(0.01) or time.monotonic() > self._until:
                    raise Refused(self._last_lines() or str(error)) from None
            else:
                return connection

    def _has_ended(self, patience_s):
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self):
        """Without a clean end, which would sync what was not yet."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._own, ignore_errors=True)

    def _last_lines(self):
        try:
            with open(self._log, errors="replace") as log:
                return " / ".join(line.strip() for line in log.readlines()[-3:])
        except OSError:
            return ""


class Connection:
    """One to the socket."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._answers = self._socket.makefile("rb")

    def ask(self, *words):
        """The answer to one command."""
        (answer,) = self.ask_all([words])
        return answer

    def ask_all(self, commands):
        """The answers, in order; all commands go in one write."""
        self._socket.sendall(
            b"".join(
                b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
                for words in commands
            )
        )
        return [self._answer() for _ in commands]

    def _answer(self):
        line = self._answers.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._answers.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self._answer() for _ in range(int(rest))]
        raise Refused(rest.decode(errors="replace") or "the server has ended")
