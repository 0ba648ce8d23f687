"""How large each room may be: a reader takes the house in room by room (budget.toml)."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tests.meta.conftest import Source

_SOURCE, _TESTS = "src/bedplate/", "tests/"
# A room that has become smaller by more gives it back, so that it does not grow again unseen.
_SLACK = 400


def room_lines(sources: Iterable[Source], top: str) -> Counter[str]:
    """The lines of Python of each folder below `top`; a file that is in none of them counts as the folder of `top` itself."""
    lines: Counter[str] = Counter()
    for source in sources:
        if source.path.startswith(top):
            room, inside, _ = source.path.removeprefix(top).partition("/")
            lines[room if inside else Path(top).name] += len(source.text.splitlines())
    return lines


def over_budget(lines: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """What has more lines than it may have, or so many fewer that its budget says nothing; and rooms without one."""
    findings = [
        f"{room} has {count:,} lines and may have {budget.get(room, 0):,}: take some out, or let another room give them (budget.toml)"
        for room, count in sorted(lines.items())
        if count > budget.get(room, 0)
    ]
    findings += [
        f"{room} has {lines.get(room, 0):,} lines and may have {limit:,}: give back what it does not need (budget.toml)"
        for room, limit in budget.items()
        if limit - lines.get(room, 0) > _SLACK
    ]
    return findings


def test_no_room_is_larger_than_its_budget(
    repository: Path, python_sources: Sequence[Source], judge: Callable[[Sequence[str]], None]
) -> None:
    budget = tomllib.loads((repository / "tests/meta/budget.toml").read_text(encoding="utf-8"))
    modules = sum(source.path.startswith(_SOURCE) for source in python_sources)
    findings = over_budget(room_lines(python_sources, _SOURCE), budget["source"])
    findings += over_budget(room_lines(python_sources, _TESTS), budget["tests"])
    if modules > budget["modules"]:
        findings.append(
            f"{modules} modules, and {budget['modules']} may be: what has one importer belongs in it"
        )
    judge(findings)


def test_a_room_that_grew_or_shrank_or_is_new_is_named() -> None:
    planted = [
        Source("src/bedplate/units.py", "a\nb\n"),
        Source("src/bedplate/host/mount.py", "a\n" * 11),
        Source("src/bedplate/host/deep/er.py", "a\n"),
        Source("src/bedplate/attic/x.py", "a\n"),
        Source("tests/conftest.py", "a\n"),
    ]
    lines = room_lines(planted, _SOURCE)
    assert {"bedplate": 2, "host": 12, "attic": 1} == lines
    assert ["attic", "host", "plan"] == [
        finding.partition(" ")[0] for finding in over_budget(lines, {"bedplate": 2, "host": 11, "plan": 500})
    ]
