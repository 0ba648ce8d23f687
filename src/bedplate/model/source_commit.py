"""A commit of somebody's source tree: what it is called, and where it was found."""

from __future__ import annotations

from dataclasses import dataclass

# Enough to tell the commits of any one history apart; Linux needs 12 today.
_DIGITS = 12
_SUBJECT_CHARACTERS = 60


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
        subject = self.subject
        if len(subject) > _SUBJECT_CHARACTERS:
            subject = f"{subject[: _SUBJECT_CHARACTERS - 1].rstrip()}…"
        return f"{self.hash[:_DIGITS]} {subject}".rstrip()


def digits_of(level: str) -> str:
    """The first digits of the hash in a `SourceCommit.level`."""
    return level.partition(" ")[0]
