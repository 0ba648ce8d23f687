"""One self-contained page from studies: it opens offline and asks nothing of a network."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from bedplate import __version__
from bedplate.analysis.claims.file import load_claims
from bedplate.analysis.claims.judged import judge_claims
from bedplate.analysis.comparison.compared import study_names
from bedplate.analysis.comparison.origins import require_one_origin
from bedplate.analysis.selected import selected_overviews
from bedplate.analysis.wording import capital
from bedplate.errors import PlanError
from bedplate.page.answer import study_answer
from bedplate.page.claims_view import claims_view
from bedplate.page.document import page_document
from bedplate.page.effects_view import effects_view, page_effects
from bedplate.page.machines_view import machines_view
from bedplate.page.packed_data import PackedData
from bedplate.page.search_view import chosen_sentence, search_sections, searches_document
from bedplate.page.static import page_shell
from bedplate.page.workload_page import PLACES, workload_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    scripts = {"plotly": get_plotlyjs(), "script": _script()}
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
        policy=content_policy(scripts.values()),
        css=Markup(ASSETS.joinpath("report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        data=Markup(data),  # noqa: S704 - escaped for where it stands
        packed_data=Markup(packed_data.text),  # noqa: S704 - base64
        **{name: Markup(code) for name, code in scripts.items()},  # noqa: S704 - our own and plotly's
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


def _script() -> str:
    """The page's own script: its parts, one after the other."""
    return "\n".join(path.read_text(encoding="utf-8") for path in script_files())


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
