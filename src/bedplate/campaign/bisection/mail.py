"""What a bisection found, as a text of 72 columns for a mailing list."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from bedplate.campaign.bisection.driving import BisectEnding
from bedplate.campaign.bisection.record import BY_ESTIMATE
from bedplate.units import cut_line, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.campaign.bisection.driving import Bisected
    from bedplate.campaign.bisection.record import JudgedCommit
    from bedplate.model.source_commit import SourceCommit

COLUMNS = 72
# Subjects are anybody's; one may have ten thousand characters.
_SUBJECT_CHARACTERS = 120
_DIGITS = 12


def mail_text(found: Bisected, *, how: Sequence[str]) -> str:
    """The text; `how` are sentences about the machine and the method."""
    return "\n".join(
        (*_head(found), "", *_found(found), "", *_ends(found), *_table(found), *_method(found, how), "")
    )


def subject_of(text: str) -> str:
    """A commit's subject on one line, as long as a mail bears."""
    return cut_line(text, _SUBJECT_CHARACTERS)


def _head(found: Bisected) -> Iterator[str]:
    if found.first_bad is not None:
        yield _cut(f"Subject: [bisected] {found.record.condition}: {subject_of(found.first_bad.subject)}")
    else:
        yield _cut(f"Subject: [bisected] {found.record.condition}: {found.ending.value}")


def _found(found: Bisected) -> Iterator[str]:
    good, bad, condition = found.ends.good, found.ends.bad, found.record.condition
    span = f"{_short(good.hash)} and {_short(bad.hash)}"
    if found.first_bad is not None:
        yield from _filled(f"Between {span}, this is the first commit for which “{condition}” holds:")
        yield ""
        yield f"    {found.first_bad.hash}"
        yield from _filled(subject_of(found.first_bad.subject), indent=4)
        yield ""
        yield from _beside(found)
    elif found.ending is BisectEnding.SKIPPED:
        yield from _filled(
            f"Between {span}, the first commit for which “{condition}” holds is one of these {len(found.any_of)}; the others of them could "
            "not be built or run:"
        )
        yield ""
        for each in found.any_of:
            yield from _commit(each)
    elif found.ending is BisectEnding.NO_BAD_COMMIT:
        yield from _filled(
            f"There is no bad commit: “{condition}” does not hold of {_short(bad.hash)} beside {_short(good.hash)}."
        )
    else:
        yield from _filled(
            f"Whether “{condition}” holds of {_short(bad.hash)} beside {_short(good.hash)} is not known, so no commit was looked for."
        )


def _beside(found: Bisected) -> Iterator[str]:
    """The commit itself and its parents, which bear it out."""
    if found.first_bad is None:
        return
    for commit in (found.first_bad, *found.parents):
        judged = found.of(commit.hash)
        name = "it" if commit is found.first_bad else f"its parent {_short(commit.hash)}"
        if judged is not None:
            yield from _filled(f"{name}: {judged.words}", indent=2)
        elif commit.hash == found.ends.good.hash:
            yield from _filled(f"{name}: the good end", indent=2)
        else:
            yield from _filled(
                f"{name}: not measured; it is an ancestor of a good commit, or was skipped", indent=2
            )


def _ends(found: Bisected) -> Iterator[str]:
    yield "Ends:"
    for name, commit in (("good", found.ends.good), ("bad", found.ends.bad)):
        yield from _filled(f"{name} {_short(commit.hash)} {subject_of(commit.subject)}", indent=2)
    if found.record.ends is not None:
        yield from _filled(found.record.ends.words, indent=7)
    yield ""


def _table(found: Bisected) -> Iterator[str]:
    if not found.record.judged:
        return
    yield "Commits as git asked for them, each beside the good end:"
    for each in found.record.judged:
        yield from _judged(each)
    yield ""


def _judged(each: JudgedCommit) -> Iterator[str]:
    sure = " (by the estimate: its time was gone)" if each.basis == BY_ESTIMATE else ""
    yield from _filled(f"{each.verdict:<4} {_short(each.commit)} {subject_of(each.subject)}", indent=2)
    yield from _filled(f"{each.words}{sure}", indent=7)


def _method(found: Bisected, how: Sequence[str]) -> Iterator[str]:
    for sentence in how:
        yield from _filled(sentence)
    yield from _filled(
        f"{format_count(found.visits, 'visit')}, {format_count(found.ends.commits, 'commit')} between the ends."
    )


def _commit(commit: SourceCommit) -> Iterator[str]:
    yield from _filled(f"{_short(commit.hash)} {subject_of(commit.subject)}", indent=2)


def _short(commit: str) -> str:
    return commit[:_DIGITS]


def _filled(text: str, indent: int = 0) -> list[str]:
    """Lines of at most 72 columns; a word that is longer is broken."""
    return textwrap.wrap(
        text, COLUMNS, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2 if indent else 0)
    )


def _cut(line: str) -> str:
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"
