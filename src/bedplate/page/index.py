"""One static page over many studies: what each asked, where and when, its answer, and the way to its page."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup

from bedplate import __version__
from bedplate.analysis.factors import ENGINE, TYPE, factor_levels, short_name
from bedplate.analysis.headline.answered import headline
from bedplate.analysis.headline.lines import headline_lines
from bedplate.analysis.headline.mail import machine_line
from bedplate.analysis.overview import overview
from bedplate.analysis.paired.sentences import side_names
from bedplate.errors import BedplateError
from bedplate.installation import COMMAND
from bedplate.page.answer import headline_points
from bedplate.page.build import ASSETS, content_policy, page_environment, write_page
from bedplate.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.page.answer import HeadlinePoint

# The answer's first lines; the rest stands on the study's own page.
_POINTS = 4
_FACTORS = 4
_FIRST = (TYPE, ENGINE)
# Where `bedplate report` and the questions put a study's page, of the study and of the folder that it stands in.
_PAGES = ("{name}.html", "{name}/report.html")
_PAGE_ABOVE = "report.html"


@dataclass(frozen=True)
class IndexEntry:
    """A study on the page, or why it could not be read. `page` is a link from the index; without a page it is empty, and `command` makes one."""

    place: str
    page: str
    title: str = ""
    created: str = ""
    question: str = ""
    machine: str = ""
    extent: str = ""
    points: tuple[HeadlinePoint, ...] = ()
    command: str = ""
    problems: tuple[str, ...] = ()


def build_index(directory: Path, studies: Sequence[Path], output: Path) -> tuple[IndexEntry, ...]:
    """Write the index of these studies below `directory` to `output`, the newest first; a damaged one is named with its reasons."""
    entries = sorted(
        (_entry(study, directory, output) for study in studies),
        key=lambda entry: entry.created,
        reverse=True,
    )
    text = (
        page_environment()
        .get_template("index.html.j2")
        .render(
            title=directory.resolve().name,
            entries=entries,
            version=__version__,
            policy=content_policy(()),
            css=Markup(ASSETS.joinpath("report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        )
    )
    write_page(output, text)
    return tuple(entries)


def _entry(study: Path, directory: Path, output: Path) -> IndexEntry:
    place = os.path.relpath(study, directory)
    # `.` has no name.
    named = study if study.name not in ("", "..") else Path(os.path.abspath(study))  # noqa: PTH100 -- a link keeps its name
    page = _page_of(named, output)
    try:
        found = overview(study)
        facts = found.study.facts
        points = headline_points(headline_lines(headline(found)))[:_POINTS]
    except BedplateError as error:
        return IndexEntry(place, page, problems=error.reasons)
    return IndexEntry(
        place=place,
        page=page,
        title=facts.title or "A study without a title",
        created=facts.created,
        question=_question(found),
        machine=machine_line(found),
        extent=_extent(found),
        points=points,
        command="" if page else _report_command(named),
    )


def _page_of(study: Path, output: Path) -> str:
    """A link to the page of a study, from where the index stands; none where a folder on the way to it may not be read."""
    candidates: Iterable[Path] = (study.parent / each.format(name=study.name) for each in _PAGES)
    try:
        for page in (*candidates, study.parent / _PAGE_ABOVE):
            if page.is_file() and page.resolve() != output.resolve() and _is_its_own(page, study):
                # A name may be any bytes.
                return quote(os.fsencode(os.path.relpath(page, output.parent)))
    except OSError:
        pass
    return ""


def _report_command(study: Path) -> str:
    """Makes its page beside it, as a shell takes it; empty for a name that cannot be copied from a page."""
    told = str(study)
    if not told.isprintable():
        return ""
    # A name that begins so would be an option.
    told = f"./{told}" if told.startswith("-") else told
    return f"{COMMAND} report {shlex.quote(told)} -o {shlex.quote(f'{told}.html')}"


def _is_its_own(page: Path, study: Path) -> bool:
    """The page above a study is its own where no other study stands beside it, as questions leave it."""
    if page.name != _PAGE_ABOVE or page.parent == study:
        return True
    return not any((other / "study.json").exists() for other in study.parent.iterdir() if other != study)


def _question(found: Overview) -> str:
    """What the study was made to find out; empty of one cell that nothing is held against."""
    study = found.study
    if study.paired is not None:
        baseline, contender = side_names(study.paired)
        return f"What does {contender} change beside {baseline}?"
    if study.search is not None:
        return f"Which cell has the best {study.search.best} in {' and '.join(study.search.runs)}?"
    levels = factor_levels((cell, None) for cell in study.schedule.cells.values())
    varied = [
        name
        for name in dict.fromkeys(name for each in levels for name in each)
        if len({each.get(name) for each in levels}) > 1
    ]
    # A device's profile says its times; file system and engine are what people look for first.
    own = sorted(
        (name for name in varied if name.rpartition(".")[0] not in varied),
        key=lambda name: name not in _FIRST,
    )
    names = list(dict.fromkeys(map(short_name, own)))
    if not names:
        return ""
    shown = [*names[:_FACTORS], *([f"{len(names) - _FACTORS} more"] * (len(names) > _FACTORS))]
    words = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"What {'does' if len(shown) == 1 else 'do'} {words} change?"


def _extent(found: Overview) -> str:
    cells, visits = len(found.cells), len(found.study.visits)
    return f"{format_count(cells, 'cell')}, {format_count(visits, 'visit')}"
