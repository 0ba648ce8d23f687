"""`bedplate compare` and `bedplate effects`: from the words of a call to tables or a document."""

from __future__ import annotations

import traceback
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from bedplate.cli.studies import require_studies
from bedplate.errors import EXIT_CANNOT_TELL, EXIT_DONE, BedplateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class NothingTold(BedplateError):
    """A comparison with a condition that came to no answer, whatever the reason."""

    exit_code = EXIT_CANNOT_TELL
    code = "nothing-told"


@contextmanager
def bisectable() -> Iterator[None]:
    """NothingTold for every error, those of bedplate itself too: bisecting would take their codes for a bad commit."""
    try:
        yield
    except BedplateError as error:
        raise NothingTold(*error.reasons) from error
    except OSError as error:
        raise NothingTold(str(error)) from error
    except Exception as error:
        traceback.print_exc()
        raise NothingTold("bedplate itself failed; what it was stands above") from error


def compare(
    studies: Sequence[Path],
    *,
    baseline: str,
    contender: str,
    workload: str | None,
    metrics: Sequence[str],
    margin: str,
    factors: Sequence[str],
    accepted: Sequence[str],
    fail_if: str | None,
    across_durability: bool,
    cells: Sequence[str],
    as_json: bool,
) -> int:
    """Print the comparisons; the exit code is that of the condition `fail_if`, 0 without one.

    PlanError for a filter, a metric, a margin or a condition that is not understood: before a study is read
    where that can be told. With a condition, NothingTold for that and for every other error.
    """
    with nullcontext() if fail_if is None else bisectable():
        studies = require_studies(studies)
        from bedplate.analysis.comparison.condition import exit_status, parse_condition, parse_share, truth  # noqa: PLC0415

        share = parse_share(margin)
        condition = None if fail_if is None else parse_condition(fail_if, margin=share)

        from bedplate.analysis.comparison.compared import ComparisonQuestion, answer  # noqa: PLC0415
        from bedplate.analysis.selected import selected_overviews  # noqa: PLC0415
        from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
        from bedplate.terminal.compare_tables import compare_document, compare_tables  # noqa: PLC0415

        question = ComparisonQuestion(
            baseline,
            contender,
            workload,
            tuple(metrics),
            share,
            tuple(factors),
            tuple(accepted),
            across_durability,
        )
        found = answer(selected_overviews(studies, cells), question)
        if as_json:
            print_json(compare_document(found, condition))
        else:
            print_tables(compare_tables(found, condition))
        if condition is None:
            return EXIT_DONE
        return exit_status(truth(condition, each) for each in found.compared)


def effects(
    study: Path,
    *,
    workload: str | None,
    metrics: Sequence[str],
    across_durability: bool,
    cells: Sequence[str],
    as_json: bool,
) -> None:
    """Print what each factor does. PlanError where there is no such run or metric."""
    from bedplate.analysis.effects.factor_effects import study_effects  # noqa: PLC0415
    from bedplate.analysis.selected import selected_overviews  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal.effects_tables import effects_document, effects_tables  # noqa: PLC0415

    (narrowed,) = selected_overviews([study], cells)
    found = study_effects(narrowed, workload=workload, metrics=metrics, across_durability=across_durability)
    if as_json:
        print_json(effects_document(found))
    else:
        print_tables(effects_tables(found))
