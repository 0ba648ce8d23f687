"""The schema of a claim file: conclusions as sentences that a study can bear out or refute (docs/CLAIMS.md).

One class for each kind of check, one field per key; a field's description says what is allowed, and the errors
quote it. All errors of a file come at once.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from bedplate.errors import PlanError
from bedplate.model.figure import Better, Scale
from bedplate.model.limits import TEXT_LIMIT, read_at_most
from bedplate.model.metrics import METRICS, metric_today
from bedplate.near_names import did_you_mean, of_near_paths
from bedplate.plan.reasons import MOST_REASONS, key_text
from bedplate.plan.table import PlanTable, at_least_one
from bedplate.plan.toml.parsed import parse_toml
from bedplate.plan.words import at_most, shown
from bedplate.text_encoding import decode_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MOST_SENTENCE = 500
PAIR = "pair"


def _metric(name: str) -> str:
    name = metric_today(name)
    if name not in METRICS:
        hint = did_you_mean(name, METRICS, otherwise="docs/method/metrics.md lists them")
        raise ValueError(f"no metric is called so; {hint}")
    return name


def _line(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MOST_SENTENCE:
        raise ValueError(f"allowed is one line of at most {MOST_SENTENCE} characters")
    return text


def _slug(text: str) -> str:
    if not text.replace("-", "").isalnum() or not text.isascii() or len(text) > 60:
        raise ValueError("allowed are letters, digits and -, at most 60")
    return text


Line = Annotated[str, AfterValidator(_line)]
MetricName = Annotated[str, AfterValidator(_metric)]
Bound = Annotated[float, Field(allow_inf_nan=False)]


class Check(PlanTable):
    """What every kind of check has: which figure, of which cells."""

    kind: str
    run: Line = Field(
        description="the name of a run, or where none is called so of its script or of a workload; several runs must all hold"
    )
    metric: MetricName = Field(description="a metric of docs/method/metrics.md")
    per: MetricName | None = Field(default=None, description="a metric that it is divided by")
    items: tuple[Line, ...] = Field(
        default=(), description='a list of parts of the run (`["readseq"]`), each of which must hold'
    )
    where: Line | None = Field(default=None, description="a FILTER: only these cells")
    each: Line | None = Field(
        default=None,
        description='a factor, at each level of which the check must hold; `"pair"` for each pair of cells (ratio) or each cell (value); '
        "without it the mean over all is meant",
    )
    takes_pairs: ClassVar[bool] = True

    @property
    def scale(self) -> Scale:
        """Of the figure; decides whether bounds are ratios or differences."""
        return METRICS[self.metric].scale

    @property
    def is_ratio(self) -> bool:
        """Whether two figures are held against each other by their ratio, else by their difference."""
        return self.scale is Scale.RATIO

    @model_validator(mode="after")
    def _figure_fits(self) -> Check:
        if self.per is not None and not self.is_ratio:
            raise ValueError(f"per divides positive figures only, and {self.metric} is a {self.scale.value}")
        if self.per is not None and METRICS[self.per].scale is not Scale.RATIO:
            raise ValueError(f"per divides by positive figures only, and {self.per} is none")
        if self.each == PAIR and not self.takes_pairs:
            raise ValueError(f'each = "pair" is not for {self.kind}, which speaks of all levels at once')
        return self


class Bounded(Check):
    """A check with bounds; one of them at least."""

    at_least: Bound | None = Field(
        default=None,
        description="the lower bound: a ratio, else a difference in the unit; one of the two is needed",
    )
    at_most: Bound | None = Field(
        default=None, description="the upper bound: a ratio, else a difference in the unit"
    )
    always_a_ratio: ClassVar[bool] = False

    @model_validator(mode="after")
    def _bounds_fit(self) -> Bounded:
        found = [bound for bound in (self.at_least, self.at_most) if bound is not None]
        if not found:
            raise ValueError("at_least, at_most or both are needed")
        if len(found) == 2 and found[0] >= found[1]:
            raise ValueError(f"at_least {found[0]:g} is not below at_most {found[1]:g}")
        if (self.is_ratio or self.always_a_ratio) and min(found) <= 0:
            raise ValueError(f"a bound of a ratio is above 0 (1 is equality), found {min(found):g}")
        return self


class RatioCheck(Bounded):
    """Contender / baseline over cells that differ in nothing but what the filters name."""

    kind: Literal["ratio"]
    contender: Line = Field(description="a FILTER")
    baseline: Line | None = Field(default=None, description="a FILTER; without it every other cell")


class ValueCheck(Bounded):
    """The figure itself, or its quotient."""

    kind: Literal["value"]


class InteractionCheck(Bounded):
    """Contender / baseline in one part of the cells, beside the same ratio in another part."""

    kind: Literal["interaction"]
    contender: Line = Field(description="a FILTER")
    baseline: Line = Field(description="a FILTER")
    at: Line = Field(description="a FILTER: where the first of the two ratios is taken")
    against: Line = Field(description="a FILTER: where the second one is taken")
    takes_pairs: ClassVar[bool] = False


class SpreadCheck(Bounded):
    """How far the levels of a factor lie apart among the contender's cells, beside the baseline's."""

    kind: Literal["spread"]
    factor: Line = Field(description="a factor")
    contender: Line = Field(description="a FILTER: the cells whose spread is meant")
    baseline: Line = Field(description="a FILTER: the cells beside which it is judged")
    takes_pairs: ClassVar[bool] = False
    always_a_ratio: ClassVar[bool] = True


class OppositeCheck(Check):
    """Contender is better than baseline in one part of the cells, and worse in the other."""

    kind: Literal["opposite"]
    contender: Line = Field(description="a FILTER")
    baseline: Line = Field(description="a FILTER")
    at: Line = Field(description="a FILTER: one part of the cells")
    against: Line = Field(description="a FILTER: the other part")
    takes_pairs: ClassVar[bool] = False


class BestCheck(Check):
    """The level of a factor with the best figure: a named one, or that of another factor."""

    kind: Literal["best"]
    factor: Line = Field(description="a factor")
    best: Line | None = Field(default=None, description='a level, or several with commas: "2 kB"')
    like: Line | None = Field(
        default=None, description="in place of `best`: another factor, whose level it is"
    )
    about: float = Field(
        default=1.0,
        ge=1,
        le=1000,
        description="a factor from 1 by which a number may be off: with 2, “about 2 kB” is 1 to 4 kB",
    )
    takes_pairs: ClassVar[bool] = False

    @model_validator(mode="after")
    def _has_one_answer(self) -> BestCheck:
        if (self.best is None) == (self.like is None):
            raise ValueError("allowed is exactly one of best and like")
        if METRICS[self.metric].better is Better.NEITHER:
            raise ValueError(f"of {self.metric} {Better.NEITHER.words}")
        return self


class AlikeCheck(Check):
    """All levels of a factor lie within a margin of each other."""

    kind: Literal["alike"]
    factor: Line = Field(description="a factor")
    margin: float = Field(
        default=0.05,
        gt=0,
        le=10,
        description="a share above 0 (`0.05` is 5 %), for what is no ratio a difference",
    )
    takes_pairs: ClassVar[bool] = False


AnyCheck = RatioCheck | ValueCheck | InteractionCheck | SpreadCheck | OppositeCheck | BestCheck | AlikeCheck
CHECKS: Mapping[str, type[Check]] = {
    "ratio": RatioCheck,
    "value": ValueCheck,
    "interaction": InteractionCheck,
    "spread": SpreadCheck,
    "opposite": OppositeCheck,
    "best": BestCheck,
    "alike": AlikeCheck,
}


class Claim(PlanTable):
    """`[[claim]]`: a sentence, and the checks that must all hold for it."""

    id: Annotated[str, AfterValidator(_slug)] = Field(
        description="letters, digits and -, at most 60; unique in the file"
    )
    sentence: Line = Field(description="one line: the conclusion")
    note: Line | None = Field(default=None, description="one line: how the sentence was read")
    check: Annotated[
        tuple[Annotated[AnyCheck, Field(discriminator="kind")], ...], AfterValidator(at_least_one)
    ] = Field(description="one or more `[[claim.check]]` tables, which must all hold")


class ClaimFile(PlanTable):
    """A whole file of claims."""

    title: Line = Field(description="one line of text")
    claim: Annotated[tuple[Claim, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[claim]] tables"
    )

    @model_validator(mode="after")
    def _ids_differ(self) -> ClaimFile:
        twice = sorted(name for name, n in Counter(claim.id for claim in self.claim).items() if n > 1)
        if twice:
            raise ValueError(f"two claims have the id {', '.join(twice)}")
        return self


def load_claims(paths: Sequence[Path]) -> tuple[ClaimFile, ...]:
    """The claims of some files; PlanError has every reason of all of them, each with its file and key."""
    found, reasons = [], []
    for path in paths:
        try:
            found.append(parse_claims(decode_text(read_at_most(path, TEXT_LIMIT.most_bytes))))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            reasons.append(f"{path}: cannot be read: {why}{of_near_paths(path, error)}")
        except PlanError as error:
            reasons += [f"{path}: {reason}" for reason in error.reasons]
    if reasons:
        raise PlanError(*reasons)
    return tuple(found)


def parse_claims(text: str) -> ClaimFile:
    """The claims in a TOML text; PlanError with all reasons at once."""
    values = parse_toml(text)
    try:
        return ClaimFile.model_validate(values)
    except ValidationError as error:
        found = [_sentence(finding, values) for finding in error.errors(include_url=False)]
        raise PlanError(*at_most(found, MOST_REASONS)) from None
    except RecursionError:
        raise PlanError("nested too deeply") from None


def _sentence(finding: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    # The kind by which a check was chosen is no key of the file.
    location = tuple(
        part
        for at, part in enumerate(finding["loc"])
        if not (at == 4 and part in CHECKS and _is_check(finding))
    )
    key = key_text(location, values).replace("the plan", "the file")
    kind = finding["type"]
    if kind in {"union_tag_not_found", "union_tag_invalid"}:
        return f"{key}.kind: expected one of {', '.join(CHECKS)}"
    if kind == "extra_forbidden":
        allowed = list(_table(finding["loc"]).model_fields)
        hint = did_you_mean(str(location[-1]), allowed, otherwise=f"allowed: {', '.join(allowed)}")
        return f"{key}: unknown key; {hint}"
    field = _table(finding["loc"]).model_fields.get(str(_last_name(location)))
    description = field.description if field is not None and field.description else "a table"
    if kind == "missing":
        return f"{key}: missing; expected {description}"
    found = finding["input"]
    what = "a table" if isinstance(found, dict | PlanTable) else shown(found)
    if kind == "value_error":
        return (
            f"{key}: {finding['ctx']['error']}"
            if what == "a table"
            else f"{key}: found {what}; {finding['ctx']['error']}"
        )
    return f"{key}: found {what}; expected {description}"


def _is_check(finding: Mapping[str, Any]) -> bool:
    return len(finding["loc"]) > 4 and finding["loc"][2] == "check"


def _table(location: Sequence[str | int]) -> type[PlanTable]:
    """The table that the key of a finding stands in."""
    if len(location) > 4 and location[2] == "check":
        return CHECKS.get(str(location[4]), Check)
    return Claim if len(location) > 2 else ClaimFile


def _last_name(location: Sequence[str | int]) -> str | int:
    return next((part for part in reversed(location) if isinstance(part, str)), "")
