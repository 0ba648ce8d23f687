"""docs/METHOD.md says what the code does: every metric and rule, word for word, and no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bedplate.figures.lmdb_validity import LMDB_RULES
from bedplate.figures.pgbench_validity import PGBENCH_RULES
from bedplate.figures.power_cut_verdict import POWER_CUT_RULES
from bedplate.figures.raw_validity import BONNIE_RULES, FIO_RULES
from bedplate.figures.rule import Rule
from bedplate.figures.tpch_validity import TPCH_RULES
from bedplate.model.durability import CLASSES
from bedplate.model.metrics import METRICS

EVERY_RULE: Mapping[str, tuple[Rule[Any], ...]] = {
    "pgbench": PGBENCH_RULES,
    "TPC-H": TPCH_RULES,
    "LMDB": LMDB_RULES,
    "bonnie++": BONNIE_RULES,
    "fio": FIO_RULES,
    "power cuts": POWER_CUT_RULES,
}


def section(repository: Path, title: str) -> str:
    text = (repository / "docs/METHOD.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/METHOD.md has no section {title}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """Cells of every row of a table, without heads and rules."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not set(line) <= set("|- ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("metric", "rule", "class", "finding")]


def test_every_metric_is_listed_once_with_its_unit_and_definition(repository: Path) -> None:
    listed = {row[0].strip("`"): row[1:3] for row in rows(section(repository, "Metrics"))}
    assert {name: [metric.unit, metric.definition] for name, metric in METRICS.items()} == listed
    assert len(METRICS) == len(rows(section(repository, "Metrics")))


def test_every_metric_has_a_source(repository: Path) -> None:
    assert [] == [row for row in rows(section(repository, "Metrics")) if not row[3]]


def test_every_rule_is_listed_with_its_threshold_verdict_and_source(repository: Path) -> None:
    expected = [
        [rule.name, _judged(rule.name), rule.threshold, rule.verdict.value, rule.source]
        for rule in {rule.name: rule for rules in EVERY_RULE.values() for rule in rules}.values()
    ]
    assert expected == rows(section(repository, "Validity rules"))


def test_rules_of_one_name_are_one_rule() -> None:
    by_name = {rule.name: rule for rule in PGBENCH_RULES}
    assert all(by_name.get(rule.name, rule) is rule for rule in TPCH_RULES)


def _judged(rule: str) -> str:
    found = [workload for workload, rules in EVERY_RULE.items() if rule in [each.name for each in rules]]
    # Nothing of a power cut is timed.
    by_count = {len(EVERY_RULE): "every run", len(EVERY_RULE) - 1: "every timed run"}
    return by_count.get(len(found), ", ".join(found))


def test_every_durability_class_is_explained(repository: Path) -> None:
    listed = [row[0] for row in rows(section(repository, "Durability classes"))]
    assert list(CLASSES) == listed[: len(CLASSES)]


def test_metrics_that_the_text_names_exist(repository: Path) -> None:
    text = (repository / "docs/METHOD.md").read_text(encoding="utf-8")
    endings = r"_(?:ratio|share|cv|trend|mib|per_transaction|s)"
    named = set(re.findall(rf"`([a-z]+(?:_[a-z0-9]+)*{endings})`", text))
    assert named <= set(METRICS), named - set(METRICS)
