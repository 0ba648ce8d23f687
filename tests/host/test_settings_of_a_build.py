"""Settings before a server starts with them: this module's reading of a postgresql.conf held against the server's own, on a real build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.engines.postgresql.configuring.test_server_settings import NOT_TAKEN, TAKEN

from bedplate.engines.postgresql.prepare import AskedServer, AskedSetting
from bedplate.engines.postgresql.settings import syntax_errors
from bedplate.host.command import Commands
from bedplate.host.shut_in import builder_account

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.model.visit import EngineBuild

pytestmark = [pytest.mark.host, pytest.mark.second_lane]


def test_the_server_takes_the_lines_that_are_taken(
    build_of: Callable[[int], EngineBuild], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("settings")
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    lines = [*TAKEN, *NOT_TAKEN]
    file = folder / "postgresql.conf"
    file.write_text("\n".join(line for line in lines if not line.startswith("include")) + "\n")
    file.chmod(0o644)
    program = str(Path(build_of(8192).prefix) / "bin/postgres")
    said = Commands().run(
        [program, "-D", str(folder), "-c", f"config_file={file}", "-C", "work_mem"],
        account=builder_account(),
        check=False,
    )
    theirs = [int(line) for line in re.findall(r'syntax error in file ".*" line (\d+)', said.stderr)]
    ours = [int(words.split(" ")[1].rstrip(":")) for words in syntax_errors(file.read_text())]
    assert ours == theirs


def test_a_real_server_names_every_line_that_it_refuses(build_of: Callable[[int], EngineBuild]) -> None:
    server = AskedServer(Path(build_of(8192).prefix) / "bin/postgres")
    texts = {
        "wal_keep_segments": "64",
        "shared_bufers": "1GB",
        "fsync": "maybe",
        "max_connections": "99999999",
        "work_mem": "3XB",
        "wal_sync_method": "fsync_writethrough",
        "my.own": "1",
        "shared_buffers": "1GB",
    }
    asked = [AskedSetting(name, name, f"{name} = '{value}'") for name, value in texts.items()]
    found = server.doubts(asked)
    assert list(texts)[:6] == [words.partition(":")[0] for words in found]
    assert "did you mean shared_buffers?" in found[1]
    assert "Available values: fsync, fdatasync" in found[5]
