"""The documents say what the program does: commands, metrics, the files that are linked."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from bedplate.cli.reference import reference

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs")


def _pages(repository: Path) -> list[Path]:
    pages = []
    for name in DOCUMENTS:
        path = repository / name
        pages += sorted(path.glob("**/*.md")) if path.is_dir() else [path]
    return pages


def test_every_command_is_documented_as_it_is(repository: Path) -> None:
    shown = (repository / "docs" / "COMMANDS.md").read_text(encoding="utf-8")
    assert reference() == shown, "renew it: python -m bedplate.cli.reference > docs/COMMANDS.md"


def test_no_link_between_documents_is_dead(repository: Path) -> None:
    links = [
        (page, target)
        for page in _pages(repository)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    assert [] == [
        f"{page.relative_to(repository)} -> {target}"
        for page, target in links
        if not target.startswith(("http:", "https:")) and not (page.parent / target).exists()
    ]


def test_a_table_ends_with_a_blank_line(repository: Path) -> None:
    swallowed = []
    for page in _pages(repository):
        lines = re.sub(
            r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
        ).splitlines()
        swallowed += [
            f"{page.name}: {after}"
            for line, after in itertools.pairwise(lines)
            if line.startswith("|") and after and not after.startswith("|")
        ]
    assert [] == swallowed, "Markdown takes the line for one more row"


@pytest.mark.parametrize("name", ["quick", "barriers", "block-sizes", "checkpoints", "vondra-2011-oltp"])
def test_every_ready_plan_is_named_in_the_readme_or_the_plans_page(repository: Path, name: str) -> None:
    text = (repository / "README.md").read_text() + (repository / "docs" / "PLANS.md").read_text()
    assert name in text
    assert (repository / "plans" / f"{name}.toml").exists()
