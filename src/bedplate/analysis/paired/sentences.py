"""What a study of pairs says, in sentences that the terminal, the page and a mail share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.accepted import left_doubts
from bedplate.analysis.comparison.condition import Truth
from bedplate.analysis.comparison.sentences import estimate_words, figure_words, ratio_words
from bedplate.analysis.paired.looked import is_told
from bedplate.analysis.wording import capital, durability_class, figure, verdict_word
from bedplate.model.visit import Outcome
from bedplate.statistics.paired_sequence import FIRST_LOOK
from bedplate.units import cut_line, format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.analysis.comparison.compared import Compared
    from bedplate.analysis.paired.looked import Looked
    from bedplate.study.paired import PairedRecord

# The answer has eight lines at most: two or three of the whole, the rest are pairs.
_LINES = 3
_NAME_CHARACTERS = 60
_CODES = 3
_REASON_CHARACTERS = 300


def answer_lines(found: Looked) -> tuple[str, ...]:
    """The answer, in at most eight lines."""
    return tuple(_answer(found))


def progress_words(found: Looked, *, is_last: bool) -> str:
    """Where it is, in one line: `block 5: tps ×0.98 (0.95 to 1.01): cannot tell; 8 min of 2 h`."""
    told = "; ".join(line_words(found, line) for line in found.lines[:_LINES]) or "no pair has a figure yet"
    if found.has_failed:
        told = lacking_words(found)
    time = f"{format_duration(found.spent_s)} of {format_duration(found.record.budget_s)}"
    if is_last:
        return f"{'known' if found.is_told else 'not known'} after {_blocks(found)}: {told}; {time}"
    return f"block {found.blocks}: {told}; {time}"


def side_names(record: PairedRecord) -> tuple[str, str]:
    """What the two sides are called, short and without what a terminal would obey."""
    return short_name(record.baseline), short_name(record.contender)


def short_name(text: str, characters: int = _NAME_CHARACTERS) -> str:
    """A name that somebody typed or wrote, on one line and as long as a line bears."""
    return cut_line(text, characters)


def _answer(found: Looked) -> Iterator[str]:
    baseline, contender = side_names(found.record)
    yield f"{_verdict(found)}: {contender} beside {baseline}."
    for line in found.lines[:_LINES]:
        yield f"  {line_words(found, line)}{_levels(line)}"
    yield from _promises(found)
    if rest := found.lines[_LINES:]:
        told = sum(is_told(line) for line in rest)
        yield f"  and {format_count(len(rest), 'more line')}, {told} of them known: `bedplate show {found.overview.study.directory}`"
    time = f"{format_duration(found.spent_s)} of {format_duration(found.record.budget_s)}"
    yield f"  {_blocks(found)}, {time} of visits{_left_out(found)}; the intervals hold at every look."
    yield from _why_not(found)


def _blocks(found: Looked) -> str:
    return format_count(found.blocks, "block")


def _promises(found: Looked) -> Iterator[str]:
    """That the change changes what a power cut leaves, which no speed makes up for."""
    for pair in found.record.pairs:
        sides = [found.overview.cells.get(cell) for cell in (pair.baseline, pair.contender)]
        first, second = (
            None if each is None else durability_class(each.durability, each.cache) for each in sides
        )
        if first is not None and second is not None and first != second:
            baseline, contender = side_names(found.record)
            yield f"  After a power cut: {baseline} {first}, {contender} {second}."
            return


def _verdict(found: Looked) -> str:
    record = found.record
    if found.condition is not None:
        words = {Truth.HOLDS: "holds", Truth.FAILS: "does not hold", Truth.CANNOT_TELL: "is not known"}
        return f"“{record.condition}” {words[found.condition]}"
    words_of = dict.fromkeys(map(_word, found.lines))
    if not words_of:
        return "Cannot tell"
    return capital(", ".join(words_of))


def _word(line: Compared) -> str:
    if line.identical:
        return "effectively the same"
    return verdict_word(line.comparison)


def line_words(found: Looked, line: Compared) -> str:
    """`read-write tps on xfs: ×0.94 (0.91 to 0.97): slower`; where a condition is asked, it has the verdict."""
    what = f"{line.asked.run[1]} {line.asked.metric}{f' {line.asked.part}' if line.asked.part else ''}"
    if len(found.record.pairs) > 1:
        what += f" on {short_name(found.overview.cells[line.pair.baseline.cell].label.full)}"
    if line.identical:
        return f"{what}: effectively the same"
    if line.comparison.basis is None:
        estimate, suspect = line.comparison.estimate, line.comparison.suspect
        seen = "" if estimate is None else f"{estimate_words(line.comparison.kind, estimate, 2)}, "
        why = f"; {_suspect_runs(found, suspect)}" if suspect else ""
        return f"{what}: {seen}{line.comparison.n} of the {FIRST_LOOK} pairs of a first look{why}"
    told = figure_words if found.record.condition is None else ratio_words
    return f"{what}: {told(line.comparison)}"


def _levels(line: Compared) -> str:
    if any(each.centre is None for each in line.figures):
        return ""
    first, second = (figure(each).mean for each in line.figures)
    return f"; {first} and {second} {line.comparison.metric.unit}".rstrip()


def _left_out(found: Looked) -> str:
    suspect = max((line.comparison.suspect for line in found.lines), default=0)
    return f", {_suspect_runs(found, suspect)} left out and repeated" if suspect else ""


def _suspect_runs(found: Looked, count: int) -> str:
    """`3 suspect runs (others-at-work, two-speeds)`: the codes that `--accept` would take, the most frequent first."""
    cells = {cell for pair in found.record.pairs for cell in (pair.baseline, pair.contender)}
    codes = Counter(
        reason.code
        for each in found.overview.measurements
        if each.cell in cells and each.outcome is Outcome.COMPLETED and not each.validity.is_trusted
        for reason in left_doubts(each.reasons, found.record.accepted)
    )
    named = ", ".join(code for code, _ in codes.most_common(_CODES))
    return f"{count} suspect run{'s' * (count > 1)}{f' ({named})' if named else ''}"


def lacking_words(found: Looked) -> str:
    """What a side never has, and why; of several the first, and how many more there are."""
    first, more = found.lacking[0], len(found.lacking) - 1
    facts = found.overview.cells.get(first.cell)
    of = f" of {short_name(facts.label.full)}" if facts is not None else ""
    what = f"has {first.what}" if first.what else "completed"
    others = f" (and {more} more of the kind)" if more else ""
    return f"no run{of} {what}{others}: {short_name(first.why, _REASON_CHARACTERS)}"


def _why_not(found: Looked) -> Iterator[str]:
    if found.is_told:
        return
    if found.has_failed:
        mend = "Ask for another (--metric, --workload)" if found.lacking[0].what else "Mend that"
        yield f"  {capital(lacking_words(found))}. {mend} and begin in another --directory."
    elif found.time_is_gone:
        yield "  The time is gone. The same command with a larger --budget goes on."
    else:
        yield "  It was stopped. The same command goes on."
