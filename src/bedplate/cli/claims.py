"""`bedplate claims`: from files of sentences to what studies say of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def own_claims() -> Path:
    """The folder of the claims that come with bedplate."""
    return Path(__file__).resolve().parents[3] / "claims"


def claims(studies: Sequence[Path], *, files: Sequence[Path], as_json: bool) -> None:
    """Print what the studies say of the claims. PlanError, before a study is read, for a file that is wrong."""
    from bedplate.analysis.claims.file import load_claims  # noqa: PLC0415

    loaded = load_claims(files or sorted(own_claims().glob("*.toml")))

    from bedplate.analysis.claims.judged import judge_claims  # noqa: PLC0415
    from bedplate.analysis.overview import overview  # noqa: PLC0415
    from bedplate.cli.printing import print_json, print_tables  # noqa: PLC0415
    from bedplate.terminal.claim_tables import claim_tables, claims_document  # noqa: PLC0415

    found = judge_claims([overview(path) for path in studies], loaded)
    if as_json:
        print_json(claims_document(found))
    else:
        print_tables(claim_tables(found))
