"""The answer in words, line by line: the same for the terminal, the page and what is mailed.

What must not be parted at the end of a line (a number and its unit) has no-break spaces in it; `placing.fitted` takes them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.advice.extending import about_words
from bedplate.analysis.comparison.sentences import pooled_in_short, pooled_line, ratio_words
from bedplate.analysis.headline.answered import Answered, NotTakenFor
from bedplate.analysis.headline.costs import StepKind
from bedplate.analysis.headline.instead import instead_lines
from bedplate.analysis.headline.names import cell_names, shortened
from bedplate.analysis.headline.page_copies import copies_words
from bedplate.analysis.headline.placing import DISPENSABLE, NO_BREAK, HeadlineLine
from bedplate.analysis.headline.set_up import settings_words
from bedplate.analysis.power_cut_view import percent_from_above
from bedplate.analysis.wording import capital, confidence_words, figure, margin_words
from bedplate.analysis.workload_view import view_of
from bedplate.model.device_cache import CACHE_WORDS
from bedplate.model.power_cut_verdict import BOUNDED, BROKEN, LOSS, CutCounts
from bedplate.model.template import and_more
from bedplate.statistics.comparison import CHANCE, REPETITIONS_MAX, EstimateKind, Verdict
from bedplate.statistics.false_discovery import RATE
from bedplate.statistics.proportions import proportion
from bedplate.units import format_count, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bedplate.analysis.headline.answered import BesideCell, Headline, NotTaken, RunAnswer, SeenCell
    from bedplate.analysis.headline.costs import NextStep
    from bedplate.analysis.headline.cuts import CutCell, CutGroup, CutsAnswer
    from bedplate.analysis.headline.set_up import SetUp

_SHOWN = 3
_REASON_CHARACTERS = 90
_UNNAMED_UNITS = ("1", "1/s", "share")
_TIMES = ("s", "ms")
_DEFAULT = "this system's default"
_TYPES_SHOWN = 2


def headline_lines(told: Headline) -> tuple[HeadlineLine, ...]:
    """All that the answer has to say, in the order in which it is read."""
    if instead := instead_lines(told.found):
        return instead
    names = {cell: shortened(" ".join(name.split())) for cell, name in cell_names(told.found).items()}
    # Whether copies of pages may go is what such a study was made to ask.
    lines = [
        HeadlineLine(head, text, rank, lead=lead)
        for each in (told.cuts.copies if told.cuts is not None else ())
        for head, text, lead, rank in copies_words(each, names)
    ]
    of_pages = bool(lines)
    verdicts = list(_verdicts(told, names))
    if told.answers:
        first, *others = told.answers
        lines += _taking(first, names)
        lines += _others([each for each in others if each.durability], names)
    elif told.cuts is None and not verdicts:
        lines.append(HeadlineLine("Take", "nothing yet: no run has a figure that cells are compared by.", 0))
    if told.cuts is not None:
        lines += _of_cuts(told.cuts, names, first=not told.answers and not of_pages)
    lines += verdicts
    for place, step in enumerate(told.following[:2]):
        lines += _step(step, told, names, rank=3 if place else 0)
    lines += _sureness(told)
    return tuple(lines)


def _verdicts(told: Headline, names: Mapping[str, str]) -> Iterable[HeadlineLine]:
    """Of workloads that have verdicts of their own."""
    specs = map(told.found.spec, told.found.runs)
    for workload in dict.fromkeys(spec.workload for spec in specs if spec is not None):
        for each in view_of(workload).answer(told.found, names):
            yield HeadlineLine(each.head, each.text, each.rank, lead=each.lead)


def _taking(answer: RunAnswer, names: Mapping[str, str]) -> Iterable[HeadlineLine]:
    lead = names[answer.taken.cell] if answer.taken else ""
    yield HeadlineLine("Take", _take_words(answer, names), 0, lead=lead)
    if answer.set_up is not None:
        yield from _copied(answer.set_up)
    if answer.tied:
        yield HeadlineLine("Or", _or_words(answer, names), 1)
    for place, pooled in enumerate(answer.types[:_TYPES_SHOWN]):
        short = f"{pooled_in_short(pooled)}."
        yield HeadlineLine("Types", f"{pooled_line(pooled)}.", 3 if place else 1, short=short)
    if words := _ahead_words(answer, names):
        yield HeadlineLine("Ahead", words, 1)
    elif answer.taken is not None and answer.default is None and not answer.is_default:
        # Of no use where there is room for few.
        yield HeadlineLine("Ahead", f"{capital(_no_default_words(answer, names))}.", DISPENSABLE)
    for each in answer.not_taken:
        yield HeadlineLine("Not", _not_words(answer, each, names), 1 if each.why is NotTakenFor.UNSAFE else 2)


def _copied(found: SetUp) -> Iterable[HeadlineLine]:
    if found.commands:
        yield HeadlineLine("", " && ".join(found.commands), 1, copied=True)
    varied = {name: found.settings[name] for name in found.varied}
    words = [*([settings_words(varied)] if varied else []), *found.further]
    if words:
        yield HeadlineLine("", f"with {'; '.join(words)}", 3)


def _take_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    run, taken = answer.run[1], answer.taken
    if answer.answered is Answered.NOTHING:
        if not answer.durability:
            return f"nothing: by {run} no cell is durable or bounded loss."
        return f"nothing yet: of {run}, no {answer.durability} cell has a trusted {answer.objective.head}."
    if taken is None and answer.cells:
        # It is not the number of repetitions that keeps it from a verdict.
        why = f"as of one {answer.durability} cell alone enough runs are trusted"
        return f"no verdict on {run}, {why}. Seen so far, {_seen_words(answer, names)}."
    if taken is None:
        n = max(each.summary.n for each in answer.seen)
        many = "s" * (n > 1)
        return (
            f"no verdict yet with {n} repetition{many} of {run}. Seen so far, {_seen_words(answer, names)}."
        )
    default = f" ({_DEFAULT})" if answer.is_default else ""
    mean = f"{taken.summary.centre_kind} of{NO_BREAK}{taken.summary.n}"
    own = f"{names[taken.cell]}{default}: {_figure(answer, taken)}, {mean}, {run}"
    if answer.answered is Answered.ALONE:
        return f"{own}; {_alone_words(answer, names)}."
    if answer.answered is Answered.LEADS:
        return f"{own}; the best of {answer.cells} {answer.durability} cells."
    if answer.answered is Answered.BY_LEVELS:
        return f"{own}; its levels are the best over all pairs of {answer.cells} {answer.durability} cells."
    return f"{own}; none is shown better."


def _alone_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    others = ", ".join(names[cell] for cell in answer.same_as[:_SHOWN])
    alike = f" but {others}{_rest(answer.same_as)}, effectively the same" if others else ""
    return f"no other cell is {answer.durability}{alike}"


def _seen_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    seen = [f"{names[each.cell]} {_figure(answer, each)}" for each in answer.seen[:_SHOWN]]
    return f"{answer.durability}: {', '.join(seen)}{_rest(answer.seen)}"


def _ahead_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """How far it is ahead of the next, and of what this system makes by itself."""
    if answer.taken is None:
        return ""
    words = []
    following = answer.following if not answer.tied else None
    default = answer.default
    if following is not None and default is not None and following.other.cell == default.other.cell:
        words.append(
            _beside_words(answer, following, f"{names[following.other.cell]}, the next and {_DEFAULT}")
        )
    else:
        if following is not None:
            words.append(_beside_words(answer, following, f"{names[following.other.cell]}, the next"))
        if default is not None:
            words.append(_beside_words(answer, default, f"{names[default.other.cell]}, {_DEFAULT}"))
    if words and default is None and not answer.is_default:
        words.append(_no_default_words(answer, names))
    return ". ".join(map(capital, words)) + "." if words else ""


def _no_default_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """Why nothing is said of what this system makes by itself."""
    why = "no cell is like it"
    if answer.default_kind is None:
        why = "what its distribution installs on is not known"
    elif answer.default_cells:
        why = f"{names[answer.default_cells[0]]} is not judged here"
    return f"how far ahead of {_DEFAULT} is not known: {why}"


def _or_words(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """What may be taken as well, and how far the first of them may be away."""
    first = answer.tied[0]
    named = [f"{names[each.other.cell]} ({figure(each.other.summary).mean})" for each in answer.tied[:_SHOWN]]
    if first.comparison.basis is None:
        told = f"not compared with {named[0]}: {'; '.join(first.comparison.reasons) or 'too few repetitions'}"
    elif first.comparison.verdict is Verdict.SAME:
        told = f"the same within {margin_words(first.comparison)} as {named[0]}, {ratio_words(first.comparison)} of it"
    else:
        told = f"not told apart from {named[0]}, {ratio_words(first.comparison)} of it"
    others = f"; likewise {', '.join(named[1:])}{_rest(answer.tied)}" if named[1:] else ""
    return f"{told}{others}."


def _beside_words(answer: RunAnswer, beside: BesideCell, other: str) -> str:
    """`×1.08 (1.05 to 1.11) of ext4, the next`; what cannot be told is said first."""
    told = beside.comparison
    figures = ratio_words(told)
    if told.basis is None:
        return f"not compared with {other}: {'; '.join(told.reasons) or 'too few repetitions'}"
    also = f"; ahead of it in {', '.join(beside.ahead_in)}" if beside.ahead_in else ""
    if told.verdict is Verdict.SAME:
        return f"the same within {margin_words(told)} as {other}: {figures}{also}"
    if told.verdict is Verdict.CANNOT_TELL:
        return f"cell by cell not distinguished from {other}: {figures}{also}"
    of = " the time of" if answer.metric.unit in _TIMES else " of"
    return f"{figures}{of if told.kind is EstimateKind.RATIO else ' beside'} {other}"


def _not_words(answer: RunAnswer, found: NotTaken, names: Mapping[str, str]) -> str:
    figures = {each.cell: each for each in found.seen}
    order = [*figures, *(cell for cell in found.cells if cell not in figures)]
    listed = ", ".join(
        names[cell] + (f" ({figure(figures[cell].summary).mean}{_unit(answer)})" if cell in figures else "")
        for cell in order[:_SHOWN]
    )
    what = {
        NotTakenFor.UNSAFE: "unsafe",
        NotTakenFor.UNKNOWN: "unknown after a power cut",
        NotTakenFor.BOUNDED_LOSS: "loses the last commits",
        NotTakenFor.FAILED: "failed",
        NotTakenFor.SUSPECT: "not trusted",
        NotTakenFor.NOT_RUN: "not run yet",
        NotTakenFor.TOO_FEW: "not judged",
    }[found.why]
    why = ""
    if found.reason and found.why is not NotTakenFor.NOT_RUN:
        # What speaks against some of these cells is not said of all.
        some = ", ".join(names[cell] for cell in found.having[:_SHOWN])
        whose = "" if len(found.having) == len(found.cells) else f"; {some}{_rest(found.having)}"
        why = f"{whose}: {_brief(found.reason)}"
    return _ended(f"{what}: {listed}{_rest(order)}{why}")


def _ended(text: str) -> str:
    """With a full stop, unless it ends already."""
    return text if text.endswith((".", "…")) else f"{text}."


def _brief(reason: str) -> str:
    text = " ".join(reason.split())
    return text if len(text) <= _REASON_CHARACTERS else f"{text[: _REASON_CHARACTERS - 1]}…"


def _others(others: Sequence[RunAnswer], names: Mapping[str, str]) -> Iterable[HeadlineLine]:
    """The other questions in one line, of several each in few words."""
    if len(others) == 1:
        yield HeadlineLine("Also", _also(others[0], names), 2)
    elif others:
        yield HeadlineLine("Also", f"{'; '.join(_briefly(each, names) for each in others)}.", 2)


def _briefly(answer: RunAnswer, names: Mapping[str, str]) -> str:
    run = answer.run[1]
    if answer.taken is None:
        return f"{run}: no verdict yet" if answer.seen else f"{run}: nothing to take"
    tied = f" or {len(answer.tied)} more" if answer.tied else ""
    return f"{run}: {names[answer.taken.cell]} {_figure(answer, answer.taken)}{tied}"


def _also(answer: RunAnswer, names: Mapping[str, str]) -> str:
    """Another question in one line."""
    run = answer.run[1]
    if answer.answered is Answered.NOTHING:
        return _take_words(answer, names)
    if answer.taken is None:
        return f"{run}, no verdict yet, {_seen_words(answer, names)}."
    own = f"{run}: {names[answer.taken.cell]} {_figure(answer, answer.taken)}"
    if answer.answered is Answered.TIED:
        others = ", ".join(names[each.other.cell] for each in answer.tied[:_SHOWN])
        return f"{own}, not told apart from {others}{_rest(answer.tied)}."
    if answer.following is None:
        return f"{own}; {_alone_words(answer, names)}."
    return f"{own}, {_beside_words(answer, answer.following, names[answer.following.other.cell])}."


def _figure(answer: RunAnswer, seen: SeenCell) -> str:
    """`1,310 tps (1,290 to 1,330)`, the interval of the mean, else what was found."""
    told = figure(seen.summary)
    bounds = f" ({told.between(f'{NO_BREAK}to{NO_BREAK}')})" if told.low else ""
    return f"{told.mean}{_unit(answer)}{bounds}"


def _unit(answer: RunAnswer) -> str:
    unit = answer.metric.unit
    return f"{NO_BREAK}{answer.objective.head if unit in _UNNAMED_UNITS else unit}"


def _of_cuts(found: CutsAnswer, names: Mapping[str, str], *, first: bool) -> Iterable[HeadlineLine]:
    rank = 0 if first else 1
    if found.safe:
        for words, bound in _safe_words(found, names):
            yield HeadlineLine("Safe", words, rank, lead=bound)
            rank = 3
    else:
        yield HeadlineLine(
            "Safe", f"none of the cells that were cut (with a {CACHE_WORDS[found.cache]}).", rank
        )
    for group in found.groups:
        yield HeadlineLine("Not", f"{group_words(group, names)}.", 2, lead=group.name)
    for durability in dict.fromkeys(each.durability for each in found.promising_less):
        own = [each for each in found.promising_less if each.durability == durability]
        listed = ", ".join(names[each.cell] for each in own[:_SHOWN])
        lead = f"{durability} by what their settings promise"
        yield HeadlineLine("Not", f"{lead}: {listed}{_rest(own)}; {none_bad_words(own)}.", 3, lead=lead)
    for cells, words in (
        (found.refused, "cut, but the verdict was refused"),
        (found.of_others, "cut as another device or journal would leave it, which is no class of the cell"),
        (found.not_asked, f"cut, but never with a {CACHE_WORDS[found.cache]}"),
        (found.uncounted, "a recovery that nothing cut left damage, so that no cut in recovery counts"),
    ):
        if cells:
            listed = ", ".join(names[cell] for cell in cells[:_SHOWN])
            yield HeadlineLine("Open", f"{listed}{_rest(cells)}: {words}.", rank + 2)


def _safe_words(found: CutsAnswer, names: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """A text for each number of cuts, and how it begins; what was cut most first, as its bound is the lowest."""
    cache = f" (with a {CACHE_WORDS[found.cache]})"
    for count in sorted({each.tally.cuts for each in found.safe}, reverse=True):
        own = [each for each in found.safe if each.tally.cuts == count]
        listed = _with_common([names[each.cell] for each in own[: 2 * _SHOWN]])
        bound = none_bad_words(own)
        yield f"{bound}: {listed}{and_more(len(own), 2 * _SHOWN)}{cache}.", bound
        cache = ""


def _with_common(own: Sequence[str]) -> str:
    """`ext4, xfs, btrfs with full_page_writes=on`: what all of several names have behind their first word is said once."""
    firsts, rests = zip(*(name.partition(" ")[::2] for name in own), strict=True)
    if len(own) < 2 or len(set(rests)) > 1 or not rests[0]:
        return ", ".join(own)
    return f"{', '.join(firsts)} with {rests[0]}"


def group_words(group: CutGroup, names: Mapping[str, str]) -> str:
    """`full_page_writes = off: corrupt on ext4 (8 of 30 cuts), btrfs (2 of 30); on: none of 30 bad, so under 12 %`."""
    own = {each.cell: each.within or names[each.cell] for each in (*group.bad, *group.good)}
    words = []
    for what, findings in (
        ("corrupt", BROKEN),
        ("acknowledged commits lost", (LOSS,)),
        ("the last commits lost", (BOUNDED,)),
    ):
        having = [each for each in group.bad if each.cuts.all.of(*findings)]
        listed = [
            f"{own[each.cell]} ({_share_words(each, findings, first=not place)})"
            for place, each in enumerate(having[:_SHOWN])
        ]
        if listed:
            words.append(f"{what} on {', '.join(listed)}{_rest(having)}")
    if group.good:
        listed = [own[each.cell] for each in group.good[:_SHOWN]]
        words.append(f"{', '.join(listed)}{_rest(group.good)}: {none_bad_words(group.good)}")
    if group.otherwise:
        words.append(f"{group.otherwise_name}: {none_bad_words(group.otherwise)}")
    told = "; ".join(words)
    return f"{group.name}: {told}" if group.name else told


def _share_words(cell: CutCell, findings: Sequence[str], *, first: bool) -> str:
    """`3 of 208 cuts, 2 of 40 in recovery`; `3 of 208` behind the first. What is counted apart is named where it was bad."""
    cuts = CutCounts.together((cell.cuts.drawn, cell.cuts.sought))
    counted = (
        (cuts, f" {'cut' if cuts.cuts == 1 else 'cuts'}" if first else ""),
        (cell.cuts.recut, f" in{NO_BREAK}recovery"),
        (cell.cuts.enumerated, f"{NO_BREAK}states"),
    )
    return ", ".join(
        f"{bad:,}{NO_BREAK}of{NO_BREAK}{tally.cuts:,}{words}"
        for tally, words in counted
        if (bad := tally.of(*findings))
    )


def none_bad_words(cells: Sequence[CutCell]) -> str:
    """`none of 30 bad, so under 12 %`, of several the one that was cut least."""
    least = min(each.tally.cuts for each in cells)
    each = " each" if len(cells) > 1 else ""
    if not least:
        return "no cut bad"
    bound = percent_from_above(proportion(0, least).high)
    return f"none of {format_count(least, 'cut')}{each} bad, so under {bound} %".replace(" %", f"{NO_BREAK}%")


def _step(step: NextStep, told: Headline, names: Mapping[str, str], *, rank: int) -> Iterable[HeadlineLine]:
    yield HeadlineLine("More", f"{step_words(step, told, names)}{':' if step.command else '.'}", rank)
    if step.command:
        yield HeadlineLine("", step.command, rank, copied=True)


def step_words(step: NextStep, told: Headline, names: Mapping[str, str]) -> str:
    """What a step would tell, and how long it takes."""
    takes = "" if step.seconds is None else f", about {about_words(step.seconds).replace(' ', NO_BREAK)}"
    many = "s" * (step.count > 1)
    if step.kind is StepKind.RETRY:
        return f"{step.count} run{many} failed; this does {'them' if many else 'it'} again{takes}"
    if step.kind is StepKind.GO_ON:
        return f"{step.count} run{many} {'are' if many else 'is'} still due; this goes on{takes}"
    if step.kind is StepKind.CUTS:
        # One line of a mail: the bound and the minutes are what is asked.
        bound = percent_from_above(step.bound or 1.0)
        return f"{step.count:,} cuts of each, none bad, would mean under {bound}{NO_BREAK}%{takes}"
    if step.kind is StepKind.ALL_THE_SAME:
        return "which of them is the fastest all the same"
    if step.kind is StepKind.LONGER:
        return (
            f"no number of repetitions up to {REPETITIONS_MAX} promises to tell these apart; longer runs, or a quieter machine, "
            "might"
        )
    first = told.answers[0] if told.answers else None
    if first is not None and first.answered is Answered.NO_VERDICT and not first.cells:
        return f"{step.repetitions} repetitions give verdicts{takes}"
    if first is not None and first.answered in (Answered.NO_VERDICT, Answered.NOTHING):
        return f"{step.count} more repetition{many} while nothing else uses the machine{takes}"
    other = "" if step.apart is None else f" it from {names[step.apart]}"
    return f"{step.count} more repetition{many}{takes}, would tell{other} (chance {percent(CHANCE)})"


def _sureness(told: Headline) -> Iterable[HeadlineLine]:
    if told.advice.judged:
        confidences = [each.confidence for each in told.answers if each.confidence is not None]
        words = f"{told.advice.verdicts:,} of {format_count(told.advice.judged, 'comparison')} can tell; {percent(RATE)} of verdicts are wrong on average"
        intervals = f", ratios have {confidence_words(confidences)} intervals" if confidences else ""
        # A family of their own, of all pairs of types.
        of_types = [
            each.comparison.difference_confidence or each.comparison.confidence
            for each in (told.answers[0].types if told.answers else ())
            if each.comparison.basis is not None
        ]
        intervals += f", those of types {confidence_words(of_types)}" if of_types else ""
        yield HeadlineLine("Sure", f"{words}{intervals}.", 4)
    # Speeds of an emulator may not be read without it.
    rank = 1 if any(facts.emulated for facts in told.found.cells.values()) else 5
    for doubt in told.doubts:
        yield HeadlineLine("But", _ended(capital(doubt)), rank)
        rank = 5


def _rest(cells: Sequence[object]) -> str:
    return and_more(len(cells), _SHOWN)
