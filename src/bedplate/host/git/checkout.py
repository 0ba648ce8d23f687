"""A commit and its patches in a folder, for an account that builds them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BuildFailed, CommandFailed, PlanError
from bedplate.host.git.export import export
from bedplate.host.git.patches import apply_patch
from bedplate.host.git.repository import resolve

if TYPE_CHECKING:
    from bedplate.host.command import Account, Commands
    from bedplate.model.source_commit import SourceTree

_SAID_LINES = 12


def write_tree(folder: Path, tree: SourceTree, *, account: Account | None, commands: Commands) -> None:
    """Write a commit into `folder`, which is made and given to `account`, with the changes of the work tree where it has some.

    BuildFailed says what of the tree cannot be read, or does not apply.
    """
    try:
        # It says what a tree that was moved or cut down lacks.
        resolve(Path(tree.path), tree.commit.hash)
        export(Path(tree.path), tree.commit.hash, folder)
    except (PlanError, CommandFailed) as error:
        raise BuildFailed(*error.reasons) from error
    give(folder, account)
    if tree.changes is not None:
        apply_named("the changes of the work tree", tree.changes, folder, account=account, commands=commands)


def apply_named(name: str, text: str, folder: Path, *, account: Account | None, commands: Commands) -> None:
    """Apply a patch to `folder`; BuildFailed has its `name` and git's own words."""
    try:
        apply_patch(text, folder, commands=commands, account=account)
    except CommandFailed as error:
        said = "\n".join(error.output.strip().splitlines()[-_SAID_LINES:]) or error.reasons[0]
        raise BuildFailed(f"{name} does not apply; git says: {said}") from error
    except PlanError as error:
        raise BuildFailed(f"{name}: {error.reasons[0]}") from error


def give(folder: Path, account: Account | None) -> None:
    """Give a folder and all below it to an account; links are given themselves."""
    if account is None:
        return
    os.chown(folder, account.uid, account.gid)
    for where, folders, names in os.walk(folder):
        for name in (*folders, *names):
            os.chown(Path(where, name), account.uid, account.gid, follow_symlinks=False)
