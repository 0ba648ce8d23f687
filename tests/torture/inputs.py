"""Plans and studies with something wrong in them, by the thousand, in this process: a refusal is right, a traceback is not."""

from __future__ import annotations

import random
import shutil
from itertools import islice
from pathlib import Path

from tests.support.studies.damaged_study import damage
from tests.support.studies.plan_mutations import mutated
from tests.support.studies.plan_values import with_every_type
from tests.support.studies.study_readers import READERS, require_harmless, sealed_study
from tests.torture.trial import Tally
from tests.unit.plan.test_mutated_plans import FIO, PLANS, taken_to_the_end

# What is counted of them.
MUTATED_PLANS = "mutated plan"
DAMAGED_READINGS = "reading of a damaged study"
_AT_ONCE = 1000
_STUDIES_AT_ONCE = 10
# One in so many of all values of all types.
_TYPED_OF = 16
_SAID_MAX = 400


def mutated_plans(drawn: random.Random, place: Path, tally: Tally) -> None:
    """Ready plans with one to four changes, or a value of another type, through everything that `bedplate plan` does with them."""
    texts = (FIO, *(path.read_text() for path in sorted(PLANS.glob("*.toml"))))
    typed = islice(with_every_type(texts), drawn.randrange(_TYPED_OF), None, _TYPED_OF)
    for text in (
        *mutated(texts, seed=drawn.randrange(1 << 32), count=_AT_ONCE),
        *(text for _, text in typed),
    ):
        tally.tried[MUTATED_PLANS] += 1
        try:
            taken_to_the_end(text, place)
        except Exception as error:  # noqa: BLE001 -- any is a finding, and the next plan is tried
            tally.wrong.append(
                f"{type(error).__name__}: {error!s:.{_SAID_MAX}} from the plan {text[:_SAID_MAX]!r}"
            )


def damaged_studies(drawn: random.Random, place: Path, tally: Tally) -> None:
    """A small study with one thing wrong in it, shown to every reader."""
    whole = sealed_study(place / "whole")
    for _ in range(_STUDIES_AT_ONCE):
        seed = drawn.randrange(1 << 32)
        study = place / "study"
        shutil.copytree(whole, study)
        done = damage(study, seed)
        for words in READERS:
            tally.tried[DAMAGED_READINGS] += 1
            try:
                require_harmless(words, study)
            except AssertionError as error:
                tally.wrong.append(f"{done} (seed {seed}): {error!s:.{_SAID_MAX}}")
        shutil.rmtree(study)
