"""A commit of somebody's source tree, and patches: what they are called in cells, and what a plan knows of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

# What a plan writes for the changes that are not committed.
WORKING_TREE = "working tree"
# The setting of cells whose library is made from a tree.
SOURCE = "source"
# Where a study notes them, beside its plan.
SOURCES = "sources"
# The fact of how many files of a work tree git does not know: they are left out.
UNTRACKED = "untracked"
# Enough to tell the commits of any one history apart; Linux needs 12 today.
_DIGITS = 12
_SUBJECT_CHARACTERS = 60
_COMMIT_LEVEL = re.compile(r"[0-9a-f]{12}(?:\+[0-9a-f]{8})?(?: .*)?", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class SourceCommit:
    """A commit as git named it when it was asked."""

    hash: str
    """full hash"""
    subject: str
    """first paragraph of its message, printable"""
    describe: str | None = None
    """by the nearest tag, as `git describe --tags`; null where the tree has no tag before it"""

    @property
    def level(self) -> str:
        """`0123456789ab Speed up the checkpointer`: what it is called in cells."""
        return f"{self.hash[:_DIGITS]} {_short(self.subject)}".rstrip()


@dataclass(frozen=True)
class SourceTree:
    """What a plan's tree and commit stood for when it was read: a study keeps it, and stays with it.

    `facts` are what the engine reads from the commit, as its version. `changes` is a patch: what the work tree had beside the
    commit; None where a commit was asked for.
    """

    tree: str
    """the tree as the plan has it"""
    path: str
    """where it lay, absolute"""
    revision: str
    """the commit as the plan has it"""
    commit: SourceCommit
    facts: Mapping[str, str] = field(default_factory=dict)
    changes: str | None = None

    @property
    def level(self) -> str:
        """What it is called in cells: the commit, or `0123456789ab+89abcdef working tree on …`."""
        if self.changes is None:
            return self.commit.level
        digits = f"{self.commit.hash[:_DIGITS]}+{_sha256(self.changes)[:8]}"
        return f"{digits} {WORKING_TREE} on {_short(self.commit.subject)}".rstrip()


@dataclass(frozen=True)
class KernelSource:
    """A kernel that is built from a commit. `fragment` is the text of what is put on top of the shipped configuration, `name` its file's."""

    tree: SourceTree
    name: str | None = None
    fragment: str | None = None

    @property
    def level(self) -> str:
        """What it is called in cells: the commit, and the fragment behind it where there is one."""
        if self.fragment is None:
            return self.tree.level
        return f"{self.tree.level} ({patch_level(self.name or '', self.fragment)})"

    @property
    def digits(self) -> str:
        """What tells the commit from all others, with changes beside it."""
        return commit_digits(self.tree.level)


@dataclass(frozen=True)
class PlanSources:
    """Trees and patches that a plan names, each by its level: `trees` where they lie, `patches` their texts, `kernels` what is built as one."""

    trees: Mapping[str, SourceTree] = field(default_factory=dict)
    patches: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, KernelSource] = field(default_factory=dict)


def is_commit_level(text: str) -> bool:
    """Whether a level is a commit's, and no release or path."""
    return _COMMIT_LEVEL.fullmatch(text) is not None


def patch_level(name: str, text: str) -> str:
    """`v3-0001-faster.patch 0123456789ab`: the file's name, and the first digits of what it holds."""
    return f"{name} {_sha256(text)[:_DIGITS]}"


def commit_digits(level: str) -> str:
    """What tells a commit from all others in its level: the first digits of the hash, with those of changes beside it."""
    return level.partition(" ")[0]


def patch_digits(level: str) -> str:
    """The same of a patch: the first digits of its SHA-256."""
    return level.rpartition(" ")[2]


def _short(subject: str) -> str:
    if len(subject) <= _SUBJECT_CHARACTERS:
        return subject
    return f"{subject[: _SUBJECT_CHARACTERS - 1].rstrip()}…"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
