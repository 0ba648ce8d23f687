"""Where lines of an answer stand: at a width, and at most so many; what matters least gives way.

No-break spaces hold together what must not be parted at the end of a line; they are taken out here.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LINES_MAX = 8
COLUMNS = 80
# Lines of this rank and beyond go before any other is shortened.
DISPENSABLE = 4
NO_BREAK = "\N{NO-BREAK SPACE}"
# As shlex.quote writes what has a blank in it.
_QUOTED = re.compile(r"'[^']*'")


@dataclass(frozen=True)
class HeadlineLine:
    """One line: what it is about (`Take`, `Ahead`, `Not`, `More`, …; empty where it belongs to the one above), and its text.

    `copied` marks a command or a setting, to be taken as it stands. `rank` says which goes first where there is room for few:
    the largest. `lead` is how the text begins: what a reader looks for, such as the cell or the level that is meant. `short`
    takes the place of the text where that has one line and is too long for it.
    """

    head: str
    text: str
    rank: int
    copied: bool = False
    lead: str = ""
    short: str = ""


def fitted(
    lines: Sequence[HeadlineLine], *, columns: int = COLUMNS, most: int | None = LINES_MAX
) -> tuple[str, ...]:
    """The lines at a width, at most so many: what matters least is shortened first, and then left out."""
    return tuple(text for _, text in placed(lines, columns=columns, most=most))


def placed(
    lines: Sequence[HeadlineLine], *, columns: int, most: int | None
) -> tuple[tuple[HeadlineLine, str], ...]:
    """The same, each with the line that it is of. A command may be wider than the columns, where a word of it is."""
    indent = max((len(line.head) for line in lines), default=0) + 2
    wrapped = [(line, _wrapped(line, columns - indent)) for line in lines]
    while most is not None and sum(len(texts) for _, texts in wrapped) > most:
        victim, is_long = _least(wrapped)
        line, texts = wrapped[victim]
        if is_long:
            wrapped[victim] = (line, _shorter(line, texts, columns - indent))
        else:
            # A command goes with the words that it stands behind.
            del wrapped[
                victim - 1 if line.copied and wrapped[victim - 1][0].text.endswith(":") else victim : victim
                + 1
            ]
    return tuple(
        (line, f"{'' if place else line.head:<{indent}}{text}".replace(NO_BREAK, " ").rstrip())
        for line, texts in wrapped
        for place, text in enumerate(texts)
    )


def _least(wrapped: Sequence[tuple[HeadlineLine, list[str]]]) -> tuple[int, bool]:
    """Which line is to give way, and whether by being shorter: what need not be there first, then whatever has two lines."""
    ranks = [line.rank for line, _ in wrapped]
    last = max(range(len(wrapped)), key=lambda place: (ranks[place], place))
    if ranks[last] >= DISPENSABLE:
        return last, False
    for least_rank, least_lines in ((1, 1), (0, 2), (0, 1)):
        long = [
            place
            for place, (line, texts) in enumerate(wrapped)
            if line.rank >= least_rank and len(texts) > least_lines and not line.copied
        ]
        # What comes first is cut to one line only where nothing is left that could go.
        if long and (least_lines, least_rank) == (1, 0) and ranks[last] > 1:
            break
        if long:
            return max(long, key=lambda place: (ranks[place], place)), True
    return last, False


def _wrapped(line: HeadlineLine, columns: int) -> list[str]:
    """A command goes on behind a backslash, as a shell reads it; a quoted word stays whole."""
    room = max(columns - 2 if line.copied else columns, 20)
    text = _QUOTED.sub(lambda word: word[0].replace(" ", "\0"), line.text) if line.copied else line.text
    texts = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    if not line.copied:
        return texts
    return [each.replace("\0", " ") for each in (*(f"{text} \\" for text in texts[:-1]), texts[-1])]


def _shorter(line: HeadlineLine, texts: Sequence[str], columns: int) -> list[str]:
    """A line less; `…` says that there is more, behind a whole sentence, clause or name where one ends in its second half."""
    *kept, last = [line.short] if len(texts) == 2 and line.short else texts[:-1]
    if last is line.short and len(last) <= columns:
        return [last]
    room = last[: columns - 2]
    for end in (". ", "; ", ", "):
        place = f"{room} ".rfind(end) + 1
        if place > columns // 2:
            room = room[:place]
            break
    else:
        room = room if len(room) == len(last) else room.rpartition(" ")[0] or room
    # An interval without its end is none.
    if room.rfind("(") > max(room.rfind(")"), 0):
        room = room[: room.rfind("(")]
    return [*kept, f"{room.rstrip(',;: ')} …"]
