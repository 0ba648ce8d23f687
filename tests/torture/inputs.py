"""Plans and studies with something wrong in them, by the thousand, in this process: a refusal is right, a traceback is not."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import polars as pl
from tests.support.studies.damaged_study import damage
from tests.support.studies.plan_mutations import mutated
from tests.support.studies.plan_values import with_every_type
from tests.support.studies.study_readers import READERS, require_harmless, sealed_study
from tests.support.studies.study_values import put, reseal, texts_of
from tests.torture.trial import Tally
from tests.unit.plan.test_mutated_plans import FIO, PLANS, taken_to_the_end

# What is counted of them.
MUTATED_PLANS = "mutated plan"
DAMAGED_READINGS = "reading of a damaged study"
_AT_ONCE = 1000
_STUDIES_AT_ONCE = 10
# What is changed on purpose has its checksums made again.
_RESEALED_SHARE = 0.5
_LARGE_SHARE = 0.1
_HOLES = "20 GB of holes"
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
    """A small study with one thing wrong in it, or with more in it than any study has, shown to a reader."""
    whole = sealed_study(place / "whole")
    for number in range(_STUDIES_AT_ONCE):
        seed = drawn.randrange(1 << 32)
        # A name of its own: what was looked at under a name is held to be that directory (model/limits.py).
        study = place / f"study-{number}"
        shutil.copytree(whole, study)
        done = _made_large(study, drawn) if drawn.random() < _LARGE_SHARE else damage(study, seed)
        if drawn.random() < _RESEALED_SHARE and not done.startswith(_HOLES):
            reseal(study)
            done += ", its checksums made again"
        # One reader of each: many studies find more than many readers of one.
        tally.tried[DAMAGED_READINGS] += 1
        try:
            require_harmless(drawn.choice(READERS), study)
        except AssertionError as error:
            tally.wrong.append(f"{done} (seed {seed}): {error!s:.{_SAID_MAX}}")
        # Folders may be deeper than Python calls itself.
        subprocess.run(["rm", "-r", study], check=True)


def _made_large(study: Path, drawn: random.Random) -> str:
    """Something of a study as large, deep or long as nothing of a study is; what was done, in words."""
    files = sorted(path for path in study.rglob("*") if path.is_file())
    visit = drawn.choice(sorted((study / "visits").glob("*/*/*")))
    match drawn.randrange(5):
        case 0:
            path = drawn.choice(files)
            os.truncate(path, 20 << 30)
            return f"{_HOLES} in {path.relative_to(study)}"
        case 1:
            below = os.open(visit, os.O_RDONLY)
            for _ in range(20_000):
                os.mkdir("d", dir_fd=below)
                above, below = below, os.open("d", os.O_RDONLY, dir_fd=below)
                os.close(above)
            os.close(below)
            return f"20,000 folders deep in {visit.relative_to(study)}"
        case 2:
            for number in range(120_000):
                (visit / f"{number}.{drawn.choice(('json', 'log'))}").touch()
            return f"120,000 files in {visit.relative_to(study)}"
        case 3:
            path = drawn.choice([path for path in files if path.suffix == ".parquet"])
            pl.DataFrame(
                {f"c{number}": pl.zeros(5_000_000, eager=True) for number in range(20)}
            ).write_parquet(path)
            return f"100 million zeros in {path.relative_to(study)}"
        case _:
            place = drawn.choice(texts_of(study))
            put(study, place, "x" * drawn.choice((30_000, 3_000_000, 30_000_000)))
            return f"a long text in {place[0]}"
