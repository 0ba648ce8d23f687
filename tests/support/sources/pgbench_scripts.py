"""Pieces of pgbench's scripts, and pgbench's own word on whether it takes what is made of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from bedplate.engines.postgresql.pgbench_script import read_script

_UNKNOWN = "xyzzy"
COMMANDS = (
    *(
        f"\\{blanks}{word}"
        for word in (f"{_UNKNOWN} a", _UNKNOWN.upper())
        for blanks in ("", " ", "\t", " \\\n ", "\\\r\n")
    ),
    *("\\set x 1\n", "\\set x 1", "\\set x", "\\set", "\\set x (1 + 2", ")\n", "\\set y random(1, :x)\n"),
    *(
        "\\set z case when :x = 1 then 2 else 3 end\n",
        "\\set x 1 \\\n + 2\n",
        "\\set x not true\n",
        "\\set x hash(1)\n",
    ),
    *(
        "\\set x pi()\n",
        "\\set x least(,1)\n",
        "\\set x 1 is not null\n",
        "\\set x abs(1,2)\n",
        "\\set x 1 1\n",
    ),
    *(
        "\\if 1\n",
        "\\elif 1 \n",
        "\\else\n",
        "\\ELSE\n",
        "\\endif\n",
        "\\sleep 5ms\n",
        "\\sleep :x us\n",
        "\\sleep ms\n",
    ),
    *(
        "\\sleep 5 5\n",
        "\\sleep +\n",
        "\\sleep -5s s\n",
        "\\gset\n",
        "\\gset p_\n",
        "\\aset\n",
        "\\startpipeline\n",
    ),
    *("\\endpipeline a\n", "\\", _UNKNOWN),
)
SQL = (
    *"'\"$-+/*@=:;()[]{}%#~?`,. \n\r\t\f",
    *(
        "''",
        "E'",
        "e'",
        "\\'",
        "U&'",
        'u&"',
        "u&",
        "b'",
        "X'",
        "N'",
        "$$",
        "$a$",
        "$é$",
        "$b",
        "$1",
        "--",
        "/*",
        "*/",
        "**/",
    ),
    *(
        "||",
        ":x",
        ":'x'",
        ":'x",
        ':"x"',
        ":{?x}",
        ":{?",
        "::",
        ":=",
        ":e",
        ":1e",
        "\\;",
        "\\:",
        "\r\n",
        "a",
        "ab_$",
        "é",
        "e",
    ),
    *(
        "1",
        "1.5",
        "1e",
        "1e5",
        "0x1F",
        "1_000",
        ".5",
        "..",
        "begin atomic",
        "end",
        "case",
        "create function f()",
        "select 1;",
    ),
)
# What the reader refuses and pgbench takes: the server would not, or other versions read it differently.
_STRICTER = re.compile(r"does not end|directly before|: a name is")


def difference(text: str, pgbench: Path, script: Path) -> str | None:
    """What pgbench says of a script and the reader does not, or the other way round; None where both agree. It is written to `script`."""
    script.write_bytes(text.encode())
    argv = [str(pgbench), "--no-vacuum", "--transactions=1", f"--host={script}", f"--file={script}"]
    said = subprocess.run(argv, capture_output=True, check=False).stderr.decode(errors="replace")
    problems = read_script(text).problems
    if "connection to server" in said:
        wrong = [problem for problem in problems if not _STRICTER.search(problem)]
        return f"pgbench takes {text!r}, the reader says {wrong}" if wrong else None
    return None if problems else f"the reader takes {text!r}, pgbench says {said}"
