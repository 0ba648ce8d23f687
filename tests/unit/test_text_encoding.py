"""Texts that people write: with a byte order mark they are what they are without, and another encoding is named by every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bedplate.analysis.claims import load_claims
from bedplate.campaign.planning import read_plan
from bedplate.engines.external.prepare import read_folder
from bedplate.errors import PlanError
from bedplate.text_encoding import decode_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
OTHERS = {
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "no UTF-8: byte ",
}
PLAN = """# é
repetitions = 1
filesystem = [{ type = "ext4" }]
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "own.sql"
[postgresql]
configuration = "own.conf"
patches = ["own.patch"]
"""
SCRIPT = "SELECT 1; -- é\n"
CONFIGURATION = "shared_buffers = 64MB # é\n"
PATCH = "diff --git a/é b/é\n--- a/é\n+++ b/é\n@@ -1 +1 @@\n-a\n+b\n"
CLAIMS = """title = "é"
[[claim]]
id = "a"
text = "é"
source = "é"
[claim.check]
kind = "ordering"
"""
ENGINE = """title = "é"
name = "é"
"""


def _plan(folder: Path, texts: Mapping[str, bytes]) -> None:
    for name, text in {
        "own.sql": SCRIPT,
        "own.conf": CONFIGURATION,
        "own.patch": PATCH,
        "plan.toml": PLAN,
    }.items():
        (folder / name).write_bytes(texts.get(name, text.encode()))
    read = read_plan(folder / "plan.toml")
    assert MARK not in read.text
    kept = {name: text for name, text in read.plan.files.items() if not name.startswith("sources/")}
    assert MARK not in "".join(read.plan.files.values())
    assert {"own.sql", "own.conf"} <= set(kept)


READERS: Mapping[str, tuple[str, Callable[[Path, Mapping[str, bytes]], object]]] = {
    "own.sql": (SCRIPT, _plan),
    "own.conf": (CONFIGURATION, _plan),
    "own.patch": (PATCH, _plan),
    "plan.toml": (PLAN, _plan),
}


@pytest.mark.parametrize("name", READERS)
def test_a_mark_is_taken_off(tmp_path: Path, name: str) -> None:
    text, read = READERS[name]
    read(tmp_path, {name: text.encode("utf-8-sig")})


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("encoding", OTHERS)
def test_another_encoding_is_named(tmp_path: Path, name: str, encoding: str) -> None:
    text, read = READERS[name]
    with pytest.raises(PlanError, match=f"(?s){OTHERS[encoding]}.*save it as UTF-8"):
        read(tmp_path, {name: text.encode(encoding)})


@pytest.mark.parametrize("encoding", OTHERS)
def test_claims_and_engines_name_it_too(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "claims.toml").write_bytes(CLAIMS.encode(encoding))
    with pytest.raises(PlanError, match=f"{OTHERS[encoding]}.*save it as UTF-8"):
        load_claims([tmp_path / "claims.toml"])
    (tmp_path / "engine.toml").write_bytes(ENGINE.encode(encoding))
    with pytest.raises(PlanError, match=f"{OTHERS[encoding]}.*save it as UTF-8"):
        read_folder(tmp_path)


def test_claims_and_engines_are_what_they_are_without_the_mark(tmp_path: Path) -> None:
    def reasons(encoding: str) -> list[tuple[str, ...]]:
        (tmp_path / "claims.toml").write_bytes(CLAIMS.encode(encoding))
        (tmp_path / "engine.toml").write_bytes(ENGINE.encode(encoding))
        said = []
        for read in (lambda: load_claims([tmp_path / "claims.toml"]), lambda: read_folder(tmp_path)):
            with pytest.raises(PlanError) as raised:
                read()
            said.append(raised.value.reasons)
        return said

    assert reasons("utf-8") == reasons("utf-8-sig")


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"a", b"ab", "é\n".encode()])
def test_a_short_text_is_a_text(data: bytes) -> None:
    assert data.decode("utf-8-sig") == decode_text(data)


def test_the_byte_that_is_none_is_counted_in_the_file() -> None:
    with pytest.raises(ValueError, match="byte 5 is 0xe9"):
        decode_text(b"\xef\xbb\xbfab\xe9")
