"""Rules that say whether a run may be believed, and the reasons that all workloads share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bedplate.model.levels import Scalar
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Validity

# What a rule looks at. A rule that looks at what every run has judges any run.
Evidence_contra = TypeVar("Evidence_contra", contravariant=True)


@dataclass(frozen=True)
class Spoken:
    """What a rule says where numbers stand in it that are worth reading apart."""

    sentence: str
    values: Mapping[str, Scalar]


def spoken(sentence: str, **values: Scalar) -> Spoken:
    """A sentence with its values by name."""
    return Spoken(sentence, values)


@dataclass(frozen=True)
class Rule(Generic[Evidence_contra]):
    """`threshold` says in words when the rule speaks, `source` why; `judge` gives its sentence or None.

    `verdict` is what the run becomes: `unknown` where evidence is missing, else `suspect`.
    """

    name: str
    threshold: str
    source: str
    judge: Callable[[Evidence_contra], Spoken | str | None]
    verdict: Validity = Validity.SUSPECT

    @property
    def code(self) -> str:
        """Of its reasons: its name as one word."""
        return self.name.replace(" ", "-").lower()

    def reason(self, evidence: Evidence_contra) -> Reason | None:
        """Why the rule speaks against a run; None where it does not."""
        found = self.judge(evidence)
        if isinstance(found, Spoken):
            return because(self.code, found.sentence, **found.values)
        return None if found is None else because(self.code, found)


@dataclass(frozen=True)
class RunRules(Generic[Evidence_contra]):
    """The rules for runs of a type of workload, the role `validity` of its folder; `of` is what METRICS.md calls them."""

    of: str
    rules: tuple[Rule[Evidence_contra], ...]

    def judge(self, evidence: Evidence_contra) -> tuple[Validity, tuple[Reason, ...]]:
        """As all its rules together judge a run."""
        return judge(evidence, self.rules)


def judge(
    evidence: Evidence_contra, rules: Iterable[Rule[Evidence_contra]]
) -> tuple[Validity, tuple[Reason, ...]]:
    """All reasons at once; one that makes a run suspect outweighs one that leaves it unknown."""
    found = [(rule.verdict, reason) for rule in rules if (reason := rule.reason(evidence)) is not None]
    reasons = tuple(reason for _, reason in found)
    verdicts = {verdict for verdict, _ in found}
    if Validity.SUSPECT in verdicts:
        return Validity.SUSPECT, reasons
    return (Validity.UNKNOWN if verdicts else Validity.VALID), reasons


class Inputs(Protocol):
    """What the figures of a run are made of; `problems` are those that could not be read at all."""

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each."""


def _unreadable(run_inputs: Inputs) -> str | None:
    return "; ".join(run_inputs.problems) or None


INPUT_UNREADABLE: Rule[Inputs] = Rule(
    "input unreadable",
    "an input of the figures is missing or damaged",
    "absent is not zero: what is not known is neither good nor bad",
    _unreadable,
    Validity.UNKNOWN,
)

NOTHING_MEASURED = because("nothing-measured", "nothing was measured")
NOT_COMPLETED = because("run-not-completed", "the run did not complete")


def unreadable(problems: Iterable[str]) -> tuple[Reason, ...]:
    """What cannot be read, as reasons."""
    return tuple(Reason(INPUT_UNREADABLE.code, words) for words in problems)
