"""`bedplate import`: a source, the adapter that it is for, and the study that is made of it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import PlanError, StudyError
from bedplate.imported.choice import adapter_for
from bedplate.imported.published import Publication
from bedplate.imported.source import PublishedSource
from bedplate.imported.study import write_study
from bedplate.study.store import refuse_unless_new

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.imported.published import PublishedRun
    from bedplate.model.reason import Reason


@dataclass(frozen=True)
class Imported:
    """What came of an import: all runs, those without figures among them, and what was left out."""

    adapter: str
    runs: tuple[PublishedRun, ...]
    problems: tuple[Reason, ...]

    @property
    def failures(self) -> tuple[Reason, ...]:
        """Why runs have no figures."""
        return tuple(run.failure for run in self.runs if run.failure is not None)

    @property
    def doubted(self) -> int:
        """How many runs are suspect."""
        return sum(bool(run.doubts) for run in self.runs)


def import_source(path: Path, study: Path, *, form: str | None = None) -> Imported:
    """Make a study of a source. PlanError where nothing in it can be used, with every reason; StudyError for the directory."""
    refuse_unless_new(study)
    source = PublishedSource(path)
    adapter = adapter_for(source, form)
    found = adapter.read(source)
    problems = (*source.problems, *found.problems)
    if not found.runs:
        raise PlanError(f"{source.name} has no run of the form {adapter.name}", *problems)
    title = f"{source.name} (imported, {adapter.name})"
    # Beside its place, then moved there: a study that a kill left half made would never be completed.
    begun = study.absolute().with_name(f".{study.absolute().name}.importing")
    shutil.rmtree(begun, ignore_errors=True)
    try:
        whole = Publication(found.runs, problems)
        write_study(begun, whole, title=title, source=source.name, adapter=adapter.name)
        begun.rename(study)
    except OSError as error:
        raise StudyError(f"{study} cannot be made: {error.strerror}") from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return Imported(adapter.name, found.runs, problems)
