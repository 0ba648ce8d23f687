"""`bisect.json`: what a bisection asks, and what its commits were found to be so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.campaign.bisection.history import BAD, GOOD, SKIP
from bedplate.errors import StudyError
from bedplate.host.git.repository import is_full_hash
from bedplate.model import codec
from bedplate.near_names import quoted

if TYPE_CHECKING:
    from pathlib import Path

BISECT_VERSION = 1
BISECT_FILE = "bisect.json"
# What a verdict rests on.
BY_INTERVAL, BY_ESTIMATE, BY_RECORD, BY_FAILURE = "interval", "estimate", "record", "failure"


@dataclass(frozen=True)
class JudgedCommit:
    """A commit that was held against the good one."""

    commit: str
    """full hash"""
    subject: str
    """first paragraph of its message, printable"""
    verdict: str
    """`good`, `bad`, or `skip` where it could not be built or its visits failed"""
    basis: str
    """`interval`: all of it is on one side; `estimate`: its time was gone, and the estimate is on that side; `record`: by
    flushes, a durability verdict or another figure of the records; `failure`: it was skipped"""
    words: str
    """what was seen, in a sentence"""
    study: str
    """name of its study's folder; empty where it has none"""
    visits: int = 0
    """visits that it took"""


@dataclass(frozen=True)
class BisectionRecord:
    """`bisect.json` of a bisection's folder."""

    version: int
    """1"""
    tree: str
    """the source tree"""
    good: str
    """full hash of the good commit"""
    bad: str
    """full hash of the bad commit"""
    condition: str
    """what makes a commit bad, as `--fail-if` has it"""
    plan_digest: str
    """digest of the plan that both ends are measured by"""
    ends: JudgedCommit | None = None
    """the bad commit beside the good one; null before both were measured"""
    judged: tuple[JudgedCommit, ...] = ()
    """commits that git asked for, in that order"""


def read_bisection(place: Path) -> BisectionRecord | None:
    """What a bisection came to; None where none was begun. StudyError for another format, and for what is no verdict."""
    path = place / BISECT_FILE
    if not path.exists():
        return None
    found = codec.read(BisectionRecord, path)
    if found.version != BISECT_VERSION:
        raise StudyError(
            f"{path} has format {found.version}, this bedplate knows {BISECT_VERSION}; read it with the version that wrote it"
        )
    for each in (*found.judged, *(() if found.ends is None else (found.ends,))):
        # git takes other words in the place of a verdict, and one of them starts programs.
        if each.verdict not in (GOOD, BAD, SKIP) or not is_full_hash(each.commit):
            raise StudyError(
                f"{path} has the verdict {quoted(each.verdict)} on {quoted(each.commit)}; a verdict is {GOOD}, {BAD} or {SKIP}, "
                "on a commit by its full hash; name another --directory"
            )
    return found


def write_bisection(place: Path, record: BisectionRecord) -> None:
    """Keep it, whole or as it was before."""
    codec.write(place / BISECT_FILE, record)
