"""A commit held against the good one: a study of pairs in a folder of its own, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.condition import Truth
from bedplate.analysis.paired.condition import ConditionSubject, nearest, seen_words, side_truth
from bedplate.analysis.paired.course import UntilTold
from bedplate.analysis.paired.looked import looked_at
from bedplate.analysis.paired.sentences import lacking_words, line_words, short_name
from bedplate.campaign.bisection.history import BAD, GOOD, SKIP
from bedplate.campaign.bisection.record import BY_ESTIMATE, BY_FAILURE, BY_INTERVAL, BY_RECORD, JudgedCommit
from bedplate.campaign.display import display_for_terminal
from bedplate.campaign.paired.blocks import measure_pairs
from bedplate.cli.changes.measuring import write_plan
from bedplate.cli.questioning import PLAN_FILE, STUDY
from bedplate.cli.running import consent
from bedplate.errors import BuildFailed, StudyError
from bedplate.statistics.comparison import MARGIN
from bedplate.study.folder import Folder

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.analysis.paired.condition import PairedCondition
    from bedplate.analysis.paired.looked import Looked
    from bedplate.campaign.paired.sides import PairedPlan
    from bedplate.cli.changes.bisecting import BisectAsked
    from bedplate.model.source_commit import SourceCommit
    from bedplate.study.paired import PairedRecord

_WORDS = {Truth.HOLDS: BAD, Truth.FAILS: GOOD}
_REASON_CHARACTERS = 300
_DIGITS = 12
_BOTH_ENDS = "both-ends"


@dataclass(frozen=True)
class PairedJudge:
    """Judges commits in folders of `place`, each in a study of pairs with the good one."""

    asked: BisectAsked
    condition: PairedCondition
    good: SourceCommit
    place: Path

    def record(self, plan: PairedPlan) -> PairedRecord:
        """What the study of a commit asks."""
        return self.asked.how.record(
            plan, margin=MARGIN, metrics=self.condition.metrics, condition=self.condition.text
        )

    def ends(self, bad: SourceCommit) -> JudgedCommit:
        """The bad commit, held against the good one. It is `bad` only where that is sure, and the good one is not bad itself.

        StudyError where an end does not run, or the good one is bad. What keeps an end from being built is raised as it is.
        """
        found, visits = self._measured(bad, _BOTH_ENDS)
        if found.has_failed:
            raise StudyError(
                f"both ends must have what is asked for before a commit is looked for; {lacking_words(found)}",
                f"`bedplate status {found.overview.study.directory}` has all of it; mend that, or name other ends or another condition, and "
                "begin in another --directory",
            )
        if self.condition.subject is not ConditionSubject.SIDES:
            self._refuse_a_bad_good_end(found)
        known = found.condition or Truth.CANNOT_TELL
        verdict = _WORDS.get(known, SKIP)
        study = f"{_BOTH_ENDS}/{STUDY}"
        return JudgedCommit(bad.hash, bad.subject, verdict, self._basis(), self._words(found), study, visits)

    def commit(self, candidate: SourceCommit) -> JudgedCommit:
        """A commit that git asks for: `good`, `bad`, or `skip` where it cannot be built or run.

        StudyError where its runs cannot be believed: that says nothing of the commit, and skipping it would lose it.
        """
        folder = candidate.hash[:_DIGITS]
        study = f"{folder}/{STUDY}"
        try:
            found, visits = self._measured(candidate, folder)
        except BuildFailed as error:
            words = f"cannot be built: {short_name(error.reasons[0], _REASON_CHARACTERS)}"
            return JudgedCommit(candidate.hash, candidate.subject, SKIP, BY_FAILURE, words, "")
        known, basis = found.condition or Truth.CANNOT_TELL, self._basis()
        if known is Truth.CANNOT_TELL:
            known, basis = nearest(self.condition, found.overview, found.record, found.lines), BY_ESTIMATE
        if known is Truth.CANNOT_TELL:
            goods = {pair.baseline for pair in found.record.pairs}
            if found.has_failed and any(each.cell in goods for each in found.lacking):
                raise StudyError(
                    f"{candidate.level}: the good commit has no figure beside it, so nothing is said of this one; {lacking_words(found)}",
                    f"`bedplate status {found.overview.study.directory}` has all of it",
                )
            if found.has_failed:
                return JudgedCommit(
                    candidate.hash,
                    candidate.subject,
                    SKIP,
                    BY_FAILURE,
                    lacking_words(found),
                    study,
                    visits,
                )
            raise StudyError(
                f"{candidate.level}: no run of it could be believed, and a commit is not skipped for that",
                f"`bedplate status {found.overview.study.directory}` says why; the same command with a larger --budget goes on, or --accept WORDS "
                "counts the doubt",
            )
        return JudgedCommit(
            candidate.hash, candidate.subject, _WORDS[known], basis, self._words(found), study, visits
        )

    def _measured(self, commit: SourceCommit, folder: str) -> tuple[Looked, int]:
        """Its study, begun or gone on with, to its end; and the visits that it has. BuildFailed where a side cannot be built."""
        plan = self.asked.paired(self.good.hash, commit.hash, self.condition.first_blocks)
        place = self.place / folder
        with Folder.at(self.place) as top:
            top.refuse_links(place)
        write_plan(plan, place)
        outcome = measure_pairs(
            place / PLAN_FILE,
            place / STUDY,
            self.record(plan),
            UntilTold(self.condition.first_blocks),
            consent=consent(yes=True),
            watch=display_for_terminal,
        )
        if outcome.last.start is not None and outcome.last.start.not_built:
            raise BuildFailed(*outcome.last.start.not_built)
        found = looked_at(place / STUDY)
        if not outcome.has_ended:
            raise StudyError(f"{place / STUDY} was not measured to its end; the same command goes on")
        return found, len(found.overview.study.visits)

    def _refuse_a_bad_good_end(self, found: Looked) -> None:
        cells = [pair.baseline for pair in found.record.pairs]
        if side_truth(self.condition, found.overview, found.record, cells) is Truth.HOLDS:
            seen = seen_words(self.condition, found.overview, found.record, cells)
            raise StudyError(
                f"“{self.condition.text}” holds of the good commit too ({seen}); name an older one, or another condition"
            )

    def _basis(self) -> str:
        return BY_INTERVAL if self.condition.needs_pairs else BY_RECORD

    def _words(self, found: Looked) -> str:
        if self.condition.subject is ConditionSubject.SIDES:
            return "; ".join(line_words(found, line) for line in self.condition.lines_of(found.lines))
        sides = ([p.contender for p in found.record.pairs], [p.baseline for p in found.record.pairs])
        of_commit, of_good = (
            seen_words(self.condition, found.overview, found.record, cells) for cells in sides
        )
        return f"{of_commit}; the good one: {of_good}"
