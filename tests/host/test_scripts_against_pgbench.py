"""The reader of scripts against pgbench: what pgbench takes for a command, the reader takes for one, in whatever surroundings.

pgbench reads all of its scripts before it looks for a server. So one without a server says whether it takes a script, and a command
that no pgbench has says where pgbench sees commands.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bedplate.engines.postgresql.pgbench_script import read_script

pytestmark = pytest.mark.host

_UNKNOWN = "xyzzy"
_COMMANDS = (
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
_SQL = (
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


@pytest.fixture(scope="session")
def pgbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution's, else bedplate's own."""
    distributed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))
    if distributed:
        return distributed[-1]
    from tests.host.conftest import built  # noqa: PLC0415 -- it may build one

    return Path(built().prefix) / "bin" / "pgbench"


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=st.lists(st.sampled_from(_COMMANDS) | st.sampled_from(_SQL), min_size=1, max_size=14))
def test_the_reader_takes_what_pgbench_takes(
    pgbench: Path, parts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(parts)
    script = tmp_path_factory.getbasetemp() / "script.sql"
    script.write_bytes(text.encode())
    argv = [str(pgbench), "--no-vacuum", "--transactions=1", f"--host={script}", f"--file={script}"]
    said = subprocess.run(argv, capture_output=True, check=False).stderr.decode(errors="replace")
    problems = read_script(text).problems
    if "connection to server" in said:
        assert not [problem for problem in problems if not _STRICTER.search(problem)], said
    else:
        assert problems, said
