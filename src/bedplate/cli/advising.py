"""`bedplate advise`: from the words of a call to tables or a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def advise(
    study: Path,
    *,
    workloads: Sequence[str],
    durability: str | None,
    cache: str,
    cells: Sequence[str],
    as_json: bool,
) -> None:
    """Print what is to be chosen among the cells of a study. PlanError where there is no such run, class or cell."""
    from bedplate.analysis.advice.advised import advised  # noqa: PLC0415
    from bedplate.analysis.selected import selected_overviews  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal.advice_tables import advice_document, advice_tables  # noqa: PLC0415

    (overview,) = selected_overviews([study], cells)
    found = advised(overview, workloads=workloads, durability=durability, cache=cache)
    if as_json:
        print_json(advice_document(found))
    else:
        print_tables(advice_tables(found))
