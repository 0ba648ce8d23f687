"""The documents say what the program does: what is made from the code is up to date, the files that are linked are there."""

from __future__ import annotations

import itertools
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from bedplate.cli.documents import MARKER, NAME, manual_page, parts, renewed, rules_of_runs
from bedplate.model.durability import CLASSES
from bedplate.model.metrics import METRICS
from bedplate.model.visit import FORMAT_VERSION
from bedplate.page.answer import KINDS
from bedplate.plan.load import load_plan
from bedplate.registry import WORKLOADS
from bedplate.statistics.estimation import paired, unpaired

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs")


def _pages(repository: Path) -> list[Path]:
    pages = []
    for name in DOCUMENTS:
        path = repository / name
        pages += sorted(path.glob("**/*.md")) if path.is_dir() else [path]
    return pages


def _text(repository: Path, name: str) -> str:
    return (repository / "docs" / name).read_text(encoding="utf-8")


def test_what_is_made_from_the_code_is_what_the_code_says(repository: Path) -> None:
    made = parts()
    for page in (repository / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert renewed(text, made) == text, f"{page.name}: ./check --documents writes it anew"
    manual = (repository / "docs" / NAME).read_text(encoding="utf-8")
    assert manual_page() == manual, f"{NAME}: ./check --documents writes it anew"


def test_every_part_that_is_made_stands_on_a_page_once(repository: Path) -> None:
    markers = [
        found for page in (repository / "docs").rglob("*.md") for found in MARKER.findall(page.read_text())
    ]
    assert sorted(parts()) == sorted(name for _, name in markers)


def test_every_head_of_an_answer_is_explained_where_the_page_is(repository: Path) -> None:
    source = repository / "src" / "bedplate" / "analysis" / "answer.py"
    heads = {*re.findall(r'HeadlineLine\("([A-Z]\w+)"', source.read_text()), *KINDS}
    assert {"Take", "Also", "Change"} < heads
    table = re.findall(r"^\| ([A-Z][\w, ]+) \|", _text(repository, "READING.md"), re.MULTILINE)
    assert heads <= set(", ".join(table).split(", "))


def test_every_row_says_everything() -> None:
    empty = [f"{name}: {row}" for name, part in parts().items() for row in part.splitlines() if "|  |" in row]
    assert [] == empty, "give the field a docstring, the metric a source"
    assert len(rules_of_runs()) == len(WORKLOADS)


def test_rules_of_one_name_are_one_rule() -> None:
    rules = {rule.name: rule for of_one in rules_of_runs() for rule in of_one.rules}
    assert all(rules[rule.name] is rule for of_one in rules_of_runs() for rule in of_one.rules)


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("the plan", "| `machine` | – | – | the table below |"),
        ("[machine]", "| `memory` | device | yes | 256 MB or more,"),
        ("[guest]", "| `visits_per_boot` | – | no |"),
        (
            "[[filesystem]]",
            '| `data` | filesystem | yes | `"ordered"`, `"writeback"`, `"journal"` (ext3, ext4, reiserfs) |',
        ),
        ("[postgresql]", "| `settings` | cluster | each |"),
        ("[postgresql]", "| `source` | build | its `commit` |"),
        ("[sqlite]", "| `source` | cluster | its `commit` |"),
        ("[[workload]] of type tpch", "| `type` | load | no | `tpch` | required |"),
    ],
)
def test_a_key_of_a_plan_says_whether_it_varies(table: str, row: str) -> None:
    assert any(line.startswith(row) for line in parts()[f"keys of {table}"].splitlines())


def test_a_part_is_written_below_its_marker_and_nothing_else_is() -> None:
    page = (
        "# A\n\n<!-- generated: b -->\n| old |\n\nby hand\n\n<!-- generated to the end: c -->\nold\n\nolder\n"
    )
    expected = "# A\n\n<!-- generated: b -->\n| new |\n\nby hand\n\n<!-- generated to the end: c -->\nend\n"
    assert expected == renewed(page, {"b": "| new |", "c": "end"})
    assert expected == renewed(expected, {"b": "| new |", "c": "end"})


def test_the_version_of_the_format_is_the_one_that_is_written(repository: Path) -> None:
    text = _text(repository, "STUDY_FORMAT.md")
    assert text.startswith(f"# The study on disk, format {FORMAT_VERSION}\n")
    assert {f"{FORMAT_VERSION}; 1 in older ones"} == set(
        re.findall(r"^\| `format_version` \| whole number \| (.*) \|$", text, re.MULTILINE)
    )


def test_every_durability_class_is_explained(repository: Path) -> None:
    section = _text(repository, "METHOD.md").partition("\n### Durability classes\n")[2]
    section = section.partition("\n### ")[0]
    listed = re.findall(r"^\| ([a-z ]+) \| [^|]+ \|$", section, re.MULTILINE)
    assert ["class", *CLASSES] == listed


def test_the_example_of_six_numbers_is_what_the_code_makes_of_them(repository: Path) -> None:
    text = _text(repository, "METHOD.md").partition("\n### Six numbers\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| \d \| (\d+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    ext4, xfs, ratios, logarithms = np.array(rows, dtype=float).T
    assert 3 == len(rows)
    assert np.allclose(xfs / ext4, ratios, atol=5e-4)
    assert np.allclose(np.log(xfs / ext4), logarithms, atol=5e-5)
    for found in (paired(np.log(ext4), np.log(xfs)), unpaired(np.log(ext4), np.log(xfs))):
        low, high = np.exp(found.interval(0.95))
        assert f"interval of {low:.3f} to {high:.3f}" in text
        assert f"{np.exp(found.mean):.3f}" in text


def test_metrics_that_the_text_names_exist(repository: Path) -> None:
    endings = r"_(?:ratio|share|cv|trend|mib|per_transaction|s)"
    text = "\n".join(_text(repository, name) for name in ("METHOD.md", "METRICS.md", "FINDINGS.md"))
    named = set(re.findall(rf"`([a-z]+(?:_[a-z0-9]+)*{endings})`", text))
    assert len(named) > 20
    assert named <= set(METRICS), named - set(METRICS)


def test_no_link_between_documents_is_dead(repository: Path) -> None:
    links = [
        (page, target)
        for page in _pages(repository)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]
    assert [] == [
        f"{page.relative_to(repository)} -> {target}"
        for page, target in links
        if not target.startswith(("http:", "https:")) and not (page.parent / target).exists()
    ]


def _anchors(page: Path) -> set[str]:
    """Those that a forge makes of the headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = (found.replace("`", "").strip().lower() for found in re.findall(r"^#+ (.+)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads}


def test_no_link_leads_to_a_heading_that_is_gone(repository: Path) -> None:
    links = [
        (page, (page.parent / target) if target else page, anchor)
        for page in _pages(repository)
        for target, anchor in re.findall(
            r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8")
        )
    ]
    assert len(links) > 20
    assert [] == [
        f"{page.relative_to(repository)} -> {target.name}#{anchor}"
        for page, target, anchor in links
        if anchor not in _anchors(target)
    ]


def test_files_that_a_document_names_are_there(repository: Path) -> None:
    program = repository / "src" / "bedplate"
    folders = {path.name for place in (repository, program) for path in place.iterdir()}
    named = [
        (page.name, path)
        for page in (repository / "docs").rglob("*.md")
        for path in re.findall(r"`(\w+/[\w/]+\.(?:py|js|c|h|toml))`", page.read_text(encoding="utf-8"))
        if path.partition("/")[0] in folders
    ]
    assert len(named) > 20
    assert [] == [
        each for each in named if not any((place / each[1]).exists() for place in (repository, program))
    ]


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ("a workload", r"part|parts"),
        ("an engine", r"engine_part|engine_part_or_none|engine_parts|engines_with"),
    ],
)
def test_every_role_of_a_folder_is_in_the_architecture(repository: Path, row: str, asked: str) -> None:
    program = "\n".join(path.read_text() for path in (repository / "src" / "bedplate").glob("**/*.py"))
    roles = set(re.findall(rf'registry\.(?:{asked})\((?:[\w.]+, )?"(\w+)"\)', program))
    lines = _text(repository, "ARCHITECTURE.md").splitlines()
    # What a workload brings to the page and to exports has rows of its own.
    told = " ".join(
        line for line in lines if line.startswith((f"| {row} |", "| a section of", "| a table of"))
    )
    assert len(roles) > 8
    assert set() == {role for role in roles if f"`{role}`" not in told}


def test_a_table_ends_with_a_blank_line(repository: Path) -> None:
    swallowed = []
    for page in _pages(repository):
        lines = re.sub(
            r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
        ).splitlines()
        swallowed += [
            f"{page.name}: {after}"
            for line, after in itertools.pairwise(lines)
            if line.startswith("|") and after and not after.startswith("|")
        ]
    assert [] == swallowed, "Markdown takes the line for one more row"


def test_the_readme_is_read_at_once(repository: Path) -> None:
    assert len((repository / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def _pages_to_type_from(repository: Path) -> list[Path]:
    return [repository / "README.md", *sorted((repository / "docs" / "how-to").glob("*.md"))]


def test_a_long_page_has_contents(repository: Path) -> None:
    long = [page for page in (repository / "docs").rglob("*.md") if len(page.read_text().splitlines()) > 300]
    assert 5 <= len(long)
    # The commands are in the order of their help, which lists them.
    without = {page.name for page in long if "\nContents: [" not in page.read_text()}
    assert {"COMMANDS.md"} == without


def test_a_journey_is_one_page(repository: Path) -> None:
    tables = dict.fromkeys(parts(), "")
    lines = {
        page.name: len(renewed(page.read_text(), tables).splitlines())
        for page in _pages_to_type_from(repository)[1:]
    }
    assert {"choose.md", "change.md", "engine.md"} == set(lines)
    assert {} == {name: count for name, count in lines.items() if count > 60}


def test_a_plan_of_a_journey_is_a_right_plan(repository: Path, tmp_path: Path) -> None:
    blocks = [
        (page.name, textwrap.dedent(block))
        for page in _pages_to_type_from(repository)[1:]
        for block in re.findall(r"^ *```toml\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert 2 <= sum("filesystem" in block for _, block in blocks)
    for name, block in blocks:
        # A page on one table shows that one alone.
        if "filesystem" in block:
            assert load_plan(block, source=name, directory=tmp_path).filesystems, name


@pytest.mark.parametrize("name", ["quick", "barriers", "block-sizes", "checkpoints", "vondra-2011-oltp"])
def test_every_ready_plan_is_named_in_the_readme_or_the_plans_page(repository: Path, name: str) -> None:
    text = (repository / "README.md").read_text() + (repository / "docs" / "PLANS.md").read_text()
    assert name in text
    assert (repository / "plans" / f"{name}.toml").exists()
