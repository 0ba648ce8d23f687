"""Git histories that tests make: each commit from files, with dates and names of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bedplate.host import git as tree_repository
from bedplate.host.git import borrow

_WHO = {
    **{
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (
            ("NAME", "A. Hacker"),
            ("EMAIL", "hacker@example.org"),
            ("DATE", "2026-01-02T03:04:05Z"),
        )
    },
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def git(folder: Path, *words: str, stdin: str | None = None) -> str:
    """What git printed in a folder, with nobody's configuration."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        input=stdin,
        env={**inherited, **_WHO},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def repository(folder: Path) -> Path:
    """A new one, its branch called master."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=master")
    return folder


def commit(tree: Path, subject: str, files: Mapping[str, str]) -> str:
    """Write files and commit them; the hash."""
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--allow-empty", "-m", subject)
    return git(tree, "rev-parse", "HEAD").strip()


def working_changes(tree: Path) -> tree_repository.WorkingChanges:
    """What a work tree has beside its HEAD, as bedplate reads it."""
    with borrow(tree, with_index=True) as own:
        return tree_repository.working_changes(own)


def text_of(tree: Path, commit: str, path: str) -> str | None:
    """A file of a commit, as bedplate reads it."""
    with borrow(tree) as own:
        return tree_repository.text_of(own, commit, path)
