"""What `bedplate plan` says of every ready plan and of every plan in the documents, held as text on two machines that are the same everywhere."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.support.goldens.held_text import hold
from tests.support.studies.pretended_machine import NOBODY, ROOT, Pretended, pretended_machine
from tests.support.tools.command_line import Done, call_here

SOURCES = Path(__file__).parents[2]
READY = sorted(path.stem for path in (SOURCES / "plans").glob("*.toml"))
# All of it once, and the text of a machine that lacks everything: its reasons are the other half.
LOOKS: dict[str, tuple[Pretended, tuple[str, ...]]] = {
    "json": (ROOT, ("--json",)),
    "txt": (ROOT, ()),
    "nobody.txt": (NOBODY, ()),
}


def _documented() -> Iterator[tuple[str, str]]:
    """A name for each plan that stands in a document, and its text; a part of a plan has no workload."""
    for document in [SOURCES / "README.md", *sorted((SOURCES / "docs").rglob("*.md"))]:
        number = count(1)
        for block in re.findall(
            r"^ *```toml\n(.*?)^ *```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            if re.search(r"^ *(\[\[)?workload\b", block, re.MULTILINE) and "filesystem" in block:
                yield f"{document.stem}-{next(number)}", textwrap.dedent(block)


DOCUMENTED = dict(_documented())


@pytest.fixture
def files_of_ones_own(tmp_path: Path) -> Path:
    """The folder of a reader who has what the plans in the documents name: an engine, an archive, scripts."""
    engine = tmp_path / "my-engine"
    engine.mkdir()
    engines = (SOURCES / "docs/ENGINES.md").read_text(encoding="utf-8")
    (engine / "engine.toml").write_text(
        textwrap.dedent(
            re.findall(r"^ *```toml\n( *# engine.toml.*?)^ *```$", engines, re.MULTILINE | re.DOTALL)[0]
        )
    )
    for program in ("writer", "checker"):
        (engine / program).write_text("#!/bin/sh\n")
        (engine / program).chmod(0o755)
    for archive in ("shop.dump", "mine.dump"):
        shutil.copy(SOURCES / "plans/own-database/shop.dump", tmp_path / archive)
    for script in ("order.sql", "look.sql", "indexes.sql"):
        (tmp_path / script).write_text("SELECT 1;\n")
    return tmp_path


def said(done: Done, **places: Path) -> str:
    """The exit code and both streams, with names in the place of folders."""
    text = f"{done.stdout}--- exit code {done.returncode}\n{done.stderr}"
    # Since Python 3.12 a sum of floats is rounded once, at its end.
    text = re.sub(r"\d+\.\d{7,}", lambda number: repr(round(float(number[0]), 6)), text)
    for name, place in sorted(places.items(), key=lambda item: -len(str(item[1]))):
        text = text.replace(str(place), f"<{name}>")
    return text


@pytest.mark.parametrize("plan", READY)
def test_a_ready_plan_comes_to_what_it_came_to(plan: str, tmp_path: Path) -> None:
    for ending, (machine, words) in LOOKS.items():
        with pretended_machine(machine, tmp_path):
            done = call_here("plan", SOURCES / "plans" / f"{plan}.toml", *words, COLUMNS="100")
        hold(f"plans/{plan}.{ending}", said(done, cache=tmp_path, sources=SOURCES))


@pytest.mark.parametrize("plan", DOCUMENTED)
def test_a_plan_of_a_document_comes_to_what_it_came_to(
    plan: str, files_of_ones_own: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if "my-engine" in DOCUMENTED[plan] and os.getuid() != 0:
        pytest.skip("this pretends to be root, who runs no programs of other accounts: start it as root")
    file = files_of_ones_own / "plan.toml"
    file.write_text(DOCUMENTED[plan], encoding="utf-8")
    cache = tmp_path_factory.mktemp("cache")
    with pretended_machine(ROOT, cache):
        done = call_here("plan", file, "--json", COLUMNS="100")
    hold(f"plans/documents/{plan}.json", said(done, cache=cache, sources=SOURCES, here=files_of_ones_own))
