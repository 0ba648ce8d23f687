"""The answer of a study, as the last lines of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def say_answer(study: Path) -> None:
    """At most eight lines at 80 columns, behind an empty one; nothing of a study of which no run has been made."""
    from bedplate.analysis.headline.answered import headline  # noqa: PLC0415 -- scipy, and every figure of the study
    from bedplate.analysis.headline.lines import headline_lines  # noqa: PLC0415
    from bedplate.analysis.headline.placing import fitted  # noqa: PLC0415
    from bedplate.analysis.overview import overview  # noqa: PLC0415
    from bedplate.cli.printing import columns  # noqa: PLC0415

    found = overview(study)
    if not found.study.visits:
        return
    print()
    for line in fitted(headline_lines(headline(found)), columns=columns()):
        print(line)
