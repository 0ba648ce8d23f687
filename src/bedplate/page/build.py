"""One self-contained page from studies: it opens offline and asks nothing of a network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import tarfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from bedplate import __version__
from bedplate.analysis.answer import headline, headline_lines
from bedplate.analysis.claims import judge_claims, load_claims
from bedplate.analysis.comparison import require_one_origin, selected_overviews, study_names
from bedplate.analysis.labels import ENGINE, TYPE, factor_levels, short_name
from bedplate.analysis.mail import machine_line
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.paired import side_names
from bedplate.analysis.wording import capital
from bedplate.errors import BedplateError, PlanError
from bedplate.installation import COMMAND
from bedplate.page.answer import HeadlinePoint, headline_points, study_answer
from bedplate.page.document import PackedData, page_document
from bedplate.page.static import PLACES, page_shell, workload_pages
from bedplate.page.views import (
    chosen_sentence,
    claims_view,
    effects_view,
    machines_view,
    page_effects,
    search_sections,
    searches_document,
)
from bedplate.units import format_count

ASSETS = Path(__file__).parent / "assets"

# The parts of the page's script, without those of workloads, in the order in which they run; each uses what stands above it.
SCRIPT = (
    "core/data",
    "core/inflate",
    "core/words",
    "core/place",
    "core/on_screen",
    "core/choice",
    "core/views",
    "core/bar",
    "core/filters",
    "core/sides",
    "core/save",
    "statistics/spread",
    "statistics/heat_scale",
    "statistics/student",
    "statistics/shares",
    "statistics/verdicts",
    "statistics/pooled_pairs",
    "views/heat_maps",
    "core/alike",
    "core/long_tables",
    "core/pairs",
    "core/pooled",
    "views/comparison",
    "statistics/tpch_scores",
    "core/charts",
    "core/span",
    "core/mark_keys",
    "views/search",
    "views/ranking",
    "views/courses",
    "views/latency",
    "views/items",
    "views/raw",
    "core/tables",
    "views/order",
    "views/effects",
    "core/rows",
    "views/effective",
    "core/pictures",
    "core/paper",
    "core/start",
)


def build_report(
    studies: Sequence[Path], output: Path, *, cells: Sequence[str] = (), claims: Sequence[Path] = ()
) -> None:
    """Write the report of the studies to `output`, whole or not at all; its folder is made if need be.

    `cells` are filters of cells, `claims` files of claims to judge. PlanError without a study, for a filter that selects
    nothing, a file of claims that is wrong, or imported studies beside measured ones; StudyError where a study is damaged.
    """
    if not studies:
        raise PlanError("a report needs at least one study: bedplate report STUDY -o report.html")
    files = load_claims(claims)
    found = selected_overviews(studies, cells)
    require_one_origin(found)
    judged = judge_claims(found, files)
    effects = [page_effects(each) for each in found]
    packed_data = PackedData()
    document = page_document(found, packed_data)
    document["effects"] = effects_view(effects, [(run["dataset"], run["run"]) for run in document["runs"]])
    answers = [
        study_answer(each, told, judged, number)
        for number, (each, told) in enumerate(zip(found, effects, strict=True))
    ]
    document["searches"] = searches_document(found)
    document["mails"] = [each.mail for each in answers]
    data = _for_script_element(json.dumps(document, separators=(",", ":"), allow_nan=False))
    library, packed_library = _library()
    script = "\n".join(path.read_text(encoding="utf-8") for path in script_files())
    environment = page_environment()
    text = environment.get_template("report.html.j2").render(
        **page_shell(found, claims=bool(files)),
        answers=answers,
        claims=claims_view(judged),
        machines=machines_view(found),
        searches=search_sections(found, study_names(found)),
        chosen_cells=chosen_sentence(found, study_names(found)),
        **{
            name: told
            for own in workload_pages()
            if own.is_in(found)
            for name, told in own.variables(found).items()
        },
        version=__version__,
        policy=content_policy((library, script)),
        css=Markup(ASSETS.joinpath("report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        data=Markup(data),  # noqa: S704 - escaped for where it stands
        packed_data=Markup(packed_data.text),  # noqa: S704 - base64
        library=Markup(packed_library),  # noqa: S704 - base64
        script=Markup(script),  # noqa: S704 - our own
    )
    write_page(output, text)


def write_page(output: Path, text: str) -> None:
    """Whole or not at all; its folder is made if need be."""
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.part")
    temporary.unlink(missing_ok=True)
    # A new file, since others may have put a link there. A directory may have a name that is no text.
    with temporary.open("x", encoding="utf-8", errors="replace") as file:
        file.write(text)
    temporary.replace(output)


# A template takes longer to be read than to be filled.
@cache
def page_environment() -> jinja2.Environment:
    """What fills the templates of pages: text that came from outside is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([ASSETS, *(own.folder for own in workload_pages())]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["sentence"] = lambda text: f"{capital(text)}."
    environment.filters["code"] = _code
    return environment


def _code(text: str) -> Markup:
    """The text with what stands between back quotes as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts)
    )


@cache
def _library() -> tuple[str, str]:
    """plotly.js with lines, marks and bars alone, and the same packed; the archive is npm's, with its licence (decision 110)."""
    (archive,) = ASSETS.glob("plotly.js-basic-dist-min-*.tgz")
    with tarfile.open(archive) as files:
        file = files.extractfile("package/plotly-basic.min.js")
        assert file is not None  # noqa: S101 -- a name of a folder or of a device
        code = file.read()
    return code.decode("utf-8"), base64.b64encode(zlib.compress(code, level=9)).decode("ascii")


def script_files() -> list[Path]:
    """Every part of the script, those of workloads' sections behind the part that they use."""
    own: dict[str, list[Path]] = {}
    for page in workload_pages():
        for place, (name, _) in page.sections.items():
            if (path := page.folder / f"{name}.js").is_file():
                own.setdefault(PLACES[place], []).append(path)
    return [path for part in SCRIPT for path in (ASSETS / "script" / f"{part}.js", *own.get(part, ()))]


def _for_script_element(text: str) -> str:
    """JSON that cannot end its <script> element, open a comment in it, or break a line of script."""
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def content_policy(scripts: Iterable[str]) -> str:
    """A Content-Security-Policy: these scripts and no other run, and nothing is ever fetched."""
    hashes = (
        " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
            for code in scripts
        )
        or "'none'"
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


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
        extent=f"{format_count(len(found.cells), 'cell')}, {format_count(len(found.study.visits), 'visit')}",
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
