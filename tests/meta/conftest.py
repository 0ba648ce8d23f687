"""What the meta tests look at: the files of the repository as a clean checkout has them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

# Where there is no git (a release's tarball, a bare machine), folders that tools make are left out by name.
_MADE_BY_TOOLS = frozenset({".git", ".venv", "__pycache__", "bedplate-study"})


@dataclass(frozen=True)
class Source:
    """One file: its path in the repository, with `/`, and its text."""

    path: str
    text: str = field(repr=False)  # or pytest prints the whole repository with a failure


def _paths(root: Path) -> list[Path]:
    if (root / ".git").exists() and shutil.which("git"):
        # Untracked files too: a new module is judged before its first commit.
        listing = subprocess.run(
            [
                "git",
                "-c",
                f"safe.directory={root}",
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ],
            cwd=root,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        return [root / name for name in listing.split("\0") if name]
    return [
        path
        for path in root.rglob("*")
        if not any(part in _MADE_BY_TOOLS or part.endswith("_cache") for part in path.relative_to(root).parts)
    ]


@pytest.fixture(scope="session")
def sources(repository: Path) -> tuple[Source, ...]:
    """Every text file of the repository; recorded output of real tools (tests/golden) is not style."""
    found = []
    for path in sorted(set(_paths(repository))):
        if not path.is_file() or path.is_symlink():
            continue
        data = path.read_bytes()
        if b"\0" not in data[:4096]:
            name = path.relative_to(repository).as_posix()
            found.append(Source(name, data.decode("utf-8", errors="replace")))
    return tuple(found)


@pytest.fixture(scope="session")
def python_sources(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """The Python files."""
    return tuple(source for source in sources if source.path.endswith(".py"))


@pytest.fixture
def judge() -> Callable[[Sequence[str]], None]:
    """Fails with every finding on a line of its own, each with its place and its replacement."""

    def fail_on(findings: Sequence[str]) -> None:
        if findings:
            pytest.fail("\n".join(findings), pytrace=False)

    return fail_on


@pytest.fixture(autouse=True, scope="session")
def _judge_sees_something(python_sources: tuple[Source, ...]) -> None:
    # An empty listing would let every test here pass.
    assert any(source.path == "src/bedplate/errors.py" for source in python_sources)
