from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.support.studies.former_studies import unpacked
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.analysis.overview import overview
from bedplate.errors import PlanError
from bedplate.page import build
from bedplate.page.build import build_report
from bedplate.page.static import CHAPTERS, WorkloadPage, page_shell


class Elements(HTMLParser):
    """The tags of a page as a browser meets them, and the text of each script."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("build")
    recipe = Recipe(
        filesystem_blocks=(4096,),
        database_blocks=(8192,),
        repetitions=2,
        course_s=5,
        hostile=True,
        failed=((1, 1),),
        suspect=((2, 1),),
    )
    build_report([write_study(directory / "study", recipe)], directory / "report.html")
    return (directory / "report.html").read_text(encoding="utf-8")


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    return parser


def test_names_full_of_markup_make_no_element(hostile: str) -> None:
    found = elements(hostile)
    assert 4 == len(found.scripts)
    assert [] == [tag for tag, _ in found.tags if tag == "img"]
    assert [] == [name for _, attributes in found.tags for name in attributes if name.startswith("on")]


def test_the_data_is_whole_json(hostile: str) -> None:
    data: Any = json.loads(elements(hostile).scripts[0])
    assert 4 == len(data["cells"])
    assert len(data["measurements"]["cell"]) == len(data["measurements"]["course"])


def test_a_page_carries_little_but_its_data(hostile: str) -> None:
    assert len(hostile) < 1_200_000


def test_nothing_is_fetched(hostile: str) -> None:
    found = elements(hostile)
    for tag, attributes in found.tags:
        for name in ("src", "href", "action", "poster", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, value)
    policy = next(a["content"] for t, a in found.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"@import|url\(", "".join(re.findall(r"<style>(.*?)</style>", hostile, re.DOTALL)))


def _sections() -> set[str]:
    return {name for chapter, _, parts in CHAPTERS for name in (chapter, *(part for part, _ in parts))}


def test_every_section_is_in_the_contents(hostile: str) -> None:
    found = elements(hostile)
    ids = {attributes.get("id") for tag, attributes in found.tags if tag == "section"}
    links = {attributes.get("href") for tag, attributes in found.tags if tag == "a"}
    assert _sections() - {"picture", "items", "raw", "claims", "heat-maps", "search"} == ids
    assert {f"#{name}" for name in ids} <= links


def test_a_cell_whose_runs_came_out_unlike_says_which_did(tmp_path: Path) -> None:
    (shell,) = page_shell([overview(unpacked("quickstart", tmp_path))])["studies"]
    said = [row.counted for table in shell.tables for row in table.rows]
    assert "read-only: n = 2; read-write: n = 2 (suspect)" == said[0]
    alike = write_study(
        tmp_path / "alike",
        Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=3, course_s=2),
    )
    (shell,) = page_shell([overview(alike)])["studies"]
    assert {"n = 3"} == {row.counted for table in shell.tables for row in table.rows}


def test_a_study_of_tpch_alone_has_no_section_of_transactions(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", TpchRecipe(filesystems=("ext4",), repetitions=1))
    build_report([study], tmp_path / "report.html")
    found = elements((tmp_path / "report.html").read_text(encoding="utf-8"))
    ids = {attributes.get("id") for tag, attributes in found.tags if tag == "section"}
    of_others = {"latency", "distribution", "checkpoints", "raw", "claims", "failures", "search"}
    assert _sections() - of_others | {"scores", "plans"} == ids
    data = json.loads(found.scripts[0])
    assert "tps" not in [metric["name"] for metric in data["metrics"]]
    firsts = [data["metrics"][run["first"]]["name"] for run in data["runs"]]
    assert ["load_total_s", "queries_total_s", "queries_total_s", "streams_s"] == firsts


def test_a_hostile_study_of_tpch_makes_no_element(tmp_path: Path) -> None:
    recipe = TpchRecipe(filesystems=("ext4",), database_blocks=(8192,), repetitions=2, hostile=True)
    study = synthetic_tpch_study(tmp_path / "study", recipe)
    build_report([study], tmp_path / "report.html")
    found = elements((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert 4 == len(found.scripts)
    assert [] == [tag for tag, _ in found.tags if tag == "img"]
    assert [] == [name for _, attributes in found.tags for name in attributes if name.startswith("on")]


def test_a_report_of_two_studies_holds_both(tmp_path: Path) -> None:
    recipes = [
        Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=1, course_s=5, title=title)
        for title in ("first machine", "second machine")
    ]
    studies = [write_study(tmp_path / recipe.title.split()[0], recipe) for recipe in recipes]
    build_report(studies, tmp_path / "report.html")
    data = json.loads(elements((tmp_path / "report.html").read_text(encoding="utf-8")).scripts[0])
    assert {0, 1} == {cell["study"] for cell in data["cells"]}


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=1, course_s=5)
    page = tmp_path / "new" / "folder" / "report.html"
    build_report([write_study(tmp_path / "study", recipe)], page)
    assert [page] == list(page.parent.iterdir())


def test_a_report_of_nothing_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="at least one study"):
        build_report([], tmp_path / "report.html")


def test_a_study_without_visits_still_makes_a_page(tmp_path: Path) -> None:
    recipe = Recipe(
        filesystem_blocks=(None,),
        database_blocks=(8192,),
        repetitions=1,
        canaries=0,
        missing=tuple((cell, 1) for cell in range(4)),
    )
    build_report([write_study(tmp_path / "study", recipe)], tmp_path / "report.html")
    assert "Nothing has been measured yet." in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_order_of_the_script_names_each_of_its_parts_once() -> None:
    product = Path(build.__file__).parents[1]
    assert sorted(product.rglob("*.js")) == sorted(build.script_files())


def test_a_section_at_a_place_that_the_page_has_not_is_refused(tmp_path: Path) -> None:
    sections = {"footer": ("walls", "Walls")}
    with pytest.raises(
        ValueError, match="behind footer; there are ranking, compare, raw, courses, items, durability"
    ):
        WorkloadPage(tmp_path, sections, is_in=bool, document=lambda *_: {})


def test_what_is_only_declared_does_not_look_safe_where_its_verdict_was_refused(tmp_path: Path) -> None:
    build_report([power_cut_study(tmp_path / "study", refused="xfs")], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    badges = [
        str(attributes["class"])
        for tag, attributes in elements(text).tags
        if tag == "span" and str(attributes.get("class")).startswith("badge ")
    ]
    # In the table of cells and in that of durability.
    assert 2 == badges.count("badge untold")
    assert 2 == text.count('<span class="badge untold"')
    assert "declared, verdict refused" in text
    assert "badge durable" in badges


def test_a_verdict_that_was_believed_keeps_its_colour(tmp_path: Path) -> None:
    build_report([power_cut_study(tmp_path / "study")], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<span class="badge durable"' in text
    assert '<span class="badge untold"' not in text
