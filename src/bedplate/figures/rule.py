"""What a rule of validity is, and how a run is judged by several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from bedplate.model.visit import Validity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# What a rule looks at. A rule that looks at what every run has judges any run.
Evidence_contra = TypeVar("Evidence_contra", contravariant=True)


@dataclass(frozen=True)
class Rule(Generic[Evidence_contra]):
    """`threshold` says in words when the rule speaks, `source` why; `judge` gives its reason or None.

    `verdict` is what the run becomes: `unknown` where evidence is missing, else `suspect`.
    """

    name: str
    threshold: str
    source: str
    judge: Callable[[Evidence_contra], str | None]
    verdict: Validity = Validity.SUSPECT


def judge(
    evidence: Evidence_contra, rules: Iterable[Rule[Evidence_contra]]
) -> tuple[Validity, tuple[str, ...]]:
    """All reasons at once; one that makes a run suspect outweighs one that leaves it unknown."""
    found = [(rule.verdict, reason) for rule in rules if (reason := rule.judge(evidence)) is not None]
    reasons = tuple(reason for _, reason in found)
    verdicts = {verdict for verdict, _ in found}
    if Validity.SUSPECT in verdicts:
        return Validity.SUSPECT, reasons
    return (Validity.UNKNOWN if verdicts else Validity.VALID), reasons
