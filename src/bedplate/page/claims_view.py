"""The claims as a page shows them: one row for each claim and study that measured it, those that nobody measured apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.claims.judged import Finding
from bedplate.analysis.claims.sentences import check_words, claim_bounds, claim_figure, claim_sentences
from bedplate.analysis.comparison.compared import study_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.claims.judged import ClaimsAnswer, JudgedClaim

_CLASSES = {
    Finding.HOLDS: "holds",
    Finding.FAILS: "fails",
    Finding.CANNOT_TELL: "untold",
    Finding.NOT_MEASURED: "unmeasured",
}


@dataclass(frozen=True)
class ClaimRow:
    """A claim in a study; `study` is empty where there is one. `rests_on` is the figure of `estimate` and `bounds`."""

    id: str
    sentence: str
    study: str
    finding: str
    finding_class: str
    estimate: str
    bounds: str
    n: int
    rests_on: str
    notes: tuple[str, ...]
    checks: tuple[str, ...]


@dataclass(frozen=True)
class ClaimSource:
    """A file of claims: its title says where its sentences come from."""

    title: str
    rows: tuple[ClaimRow, ...]
    not_measured: tuple[ClaimRow, ...]


@dataclass(frozen=True)
class ClaimsView:
    """All files, and what is to be known of the findings together."""

    sources: tuple[ClaimSource, ...]
    sentences: tuple[str, ...]


def claims_view(found: ClaimsAnswer) -> ClaimsView:
    """The rows of every file in its order."""
    names = study_names(found.overviews)
    return ClaimsView(
        tuple(
            _source(file.title, judged, names) for file, judged in zip(found.files, found.judged, strict=True)
        ),
        claim_sentences(found) if found.files else (),
    )


def _source(title: str, judged: Sequence[JudgedClaim], names: Sequence[str]) -> ClaimSource:
    rows = [(one, _row(one, names)) for one in judged]
    return ClaimSource(
        title,
        tuple(row for one, row in rows if one.finding is not Finding.NOT_MEASURED),
        tuple(row for one, row in rows if one.finding is Finding.NOT_MEASURED),
    )


def _row(one: JudgedClaim, names: Sequence[str]) -> ClaimRow:
    notes = (*one.reasons, *one.notes, *((f"Read as: {one.claim.note}",) if one.claim.note else ()))
    return ClaimRow(
        id=one.claim.id,
        sentence=one.claim.sentence,
        study=names[one.study] if one.study is not None and len(names) > 1 else "",
        finding=one.finding.value,
        finding_class=_CLASSES[one.finding],
        estimate=claim_figure(one, one.estimate),
        bounds=claim_bounds(one),
        n=one.n,
        rests_on=f"{one.metric}: {one.words}" if one.words else "",
        notes=notes,
        checks=tuple(check_words(check) for check in one.claim.check),
    )
