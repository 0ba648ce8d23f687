"""`bedplate import`: a source, the adapter that it is for, and the study that is made of it."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bedplate import registry
from bedplate.errors import PlanError, StudyError
from bedplate.imported.published import Adapter, Publication, PublishedRun, PublishedSource
from bedplate.imported.study import write_study
from bedplate.model.reason import Reason, because
from bedplate.near_names import unknown_name
from bedplate.study.store import refuse_unless_new

# A folder of thousands of files may be of another kind altogether.
_MOST_UNREADABLE = 5


def adapters() -> Mapping[str, Adapter]:
    """The role `publications` of every workload that has it, by the names of the forms."""
    return {each.name: each for own in registry.parts("publications").values() for each in own}


def adapter_for(source: PublishedSource, asked: str | None = None) -> Adapter:
    """The adapter that a source is for.

    PlanError for a form that is not known, where none recognises the source, or several do and none is asked for.
    """
    known = adapters()
    if asked is not None:
        if asked not in known:
            raise PlanError(unknown_name("form of publication", asked, known))
        return known[asked]
    found = [each for each in known.values() if each.recognises(source)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.name for each in found)
        raise PlanError(f"{source.name} may be {names}; say which with --format")
    forms = "; ".join(each.words for each in known.values())
    raise PlanError(
        f"{source.name} is none of the forms that are known: {forms}", *source.unreadable[:_MOST_UNREADABLE]
    )


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
    runs, copies = _without_copies(found.runs)
    problems = (*source.problems, *found.problems, *copies)
    if not runs:
        raise PlanError(f"{source.name} has no run of the form {adapter.name}", *problems)
    title = f"{source.name} (imported, {adapter.name})"
    # Beside its place, then moved there: a study that a kill left half made would never be completed.
    begun = study.absolute().with_name(f".{study.absolute().name}.importing")
    # rmtree(3.11) opens what it is given before it looks whether that is a folder: a link is followed, a pipe waited for.
    if begun.is_dir() and not begun.is_symlink():
        shutil.rmtree(begun, ignore_errors=True)
    if os.path.lexists(begun):
        raise StudyError(f"{begun} is in the way, and is no folder; remove it")
    try:
        whole = Publication(runs, problems)
        write_study(begun, whole, title=title, source=source.name, adapter=adapter.name)
        begun.rename(study)
    except OSError as error:
        raise StudyError(f"{study} cannot be made: {error.strerror}") from error
    finally:
        shutil.rmtree(begun, ignore_errors=True)
    return Imported(adapter.name, runs, problems)


def _without_copies(runs: Sequence[PublishedRun]) -> tuple[tuple[PublishedRun, ...], tuple[Reason, ...]]:
    """Each run once, and a problem for every copy: read twice it would count as a repetition, and make a verdict of one run."""
    kept: list[PublishedRun] = []
    copies: list[Reason] = []
    alike: defaultdict[object, list[PublishedRun]] = defaultdict(list)
    for run in runs:
        known = alike[run.machine.name, run.cell, run.scale, run.spec, run.text]
        first = next((other for other in known if _is_copy(run, other)), None)
        if first is None:
            known.append(run)
            kept.append(run)
            continue
        words = f"{run.file}: {run.spec.name} is the run of {first.file} again; it counts once"
        copies.append(because("source-duplicate", words))
    return tuple(kept), tuple(copies)


def _is_copy(run: PublishedRun, other: PublishedRun) -> bool:
    """Whether two runs of one cell and text are one run. A start that one of them lacks parts them from none."""
    has_starts = None not in (run.started_wall_s, other.started_wall_s)
    if has_starts and run.started_wall_s != other.started_wall_s:
        return False
    if run.failure is not None and not has_starts and run.series != other.series:
        # Two that failed may have left the same words.
        return False
    # A document numbers its runs.
    return run.repetition == other.repetition or not (run.file == other.file or run.failure is not None)
