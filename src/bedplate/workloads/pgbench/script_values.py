"""Scripts of pgbench and their variables in a plan, from TOML to what a level has.

Each function takes what TOML gave and returns the level; ValueError says what is allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationInfo

from bedplate.engines.postgresql.pgbench_script import BUILT_IN_VARIABLES, SIMPLE, read_script
from bedplate.plan.values import file_beside_the_plan
from bedplate.plan.words import joined, shown

SCRIPTS = ("read-only", "read-write", "simple-update")
# pgbench itself takes 128 (MAX_SCRIPTS in its source).
MOST_SCRIPTS = 100
MOST_VARIABLES = 100

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_VARIABLE_TEXT = re.compile(r"[A-Za-z0-9._+-]{1,60}")


@dataclass(frozen=True)
class Script:
    """A script of transactions: a built-in one by name, or an own one (`custom`) with its text, its stem and its path."""

    name: str
    text: str | None = None
    stem: str | None = None
    path: str | None = None
    weight: int = 1

    @property
    def label(self) -> str:
        """What a run's name calls it."""
        return self.stem or self.name


def script(value: Any, info: ValidationInfo) -> Script:
    """A built-in script by name, or an own one by its path beside the plan."""
    if not isinstance(value, str):
        raise ValueError(f"allowed: {', '.join(SCRIPTS)}, or the path of an own script")
    if value in SCRIPTS:
        return Script(value)
    try:
        text = file_beside_the_plan(value, info)
    except ValueError as error:
        raise ValueError(f"not one of {', '.join(SCRIPTS)}, and as an own script: {error}") from None
    return _own_script(value, text)


def _own_script(path: str, text: str) -> Script:
    if problems := read_script(text).problems:
        raise ValueError(joined(problems))
    stem = re.sub(r"[^A-Za-z0-9._=-]+", "-", Path(path).stem).strip("-.")[:40]
    return Script("custom", text, stem or "custom", path)


def script_of_dataset(value: Any, info: ValidationInfo) -> Script:
    """An own script that runs once behind a restore, where a plan sets no variables and statements are sent as text."""
    if not isinstance(value, str):
        raise ValueError("allowed is the path of an own script")
    text = file_beside_the_plan(value, info)
    if problems := read_script(text).problems_with((), SIMPLE):
        raise ValueError(joined(problems))
    return _own_script(value, text)


def scripts(value: Any, info: ValidationInfo) -> tuple[Script, ...]:
    """Several scripts, each with its weight: `"mine.sql@3"`. They must differ in their labels."""
    if not isinstance(value, list) or not 1 < len(value) <= MOST_SCRIPTS:
        raise ValueError(
            f'allowed is a list of 2 to {MOST_SCRIPTS} scripts with weights: ["mine.sql@3", "read-only"]'
        )
    reasons: list[str] = []
    found: list[Script] = []
    for each in value:
        try:
            found.append(_weighted(each, info))
        except ValueError as error:
            reasons.append(f"{shown(each)}: {error}")
    labels = Counter(each.label for each in found)
    reasons += (
        f"{count} scripts are called {label}, and figures are named by script; rename the file"
        for label, count in labels.items()
        if count > 1
    )
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(found)


def _weighted(value: Any, info: ValidationInfo) -> Script:
    name, at, weight = value.rpartition("@") if isinstance(value, str) else ("", "", "")
    if not at:
        return script(value, info)
    if not re.fullmatch(r"[1-9]\d{0,3}", weight, re.ASCII):
        raise ValueError("a weight is a whole number from 1 to 9999, behind an @ at the end")
    return replace(script(name, info), weight=int(weight))


def variables(value: Any) -> tuple[tuple[str, str | int | float], ...]:
    """What scripts find set under a name; sorted."""
    if not isinstance(value, dict) or len(value) > MOST_VARIABLES:
        raise ValueError(f"allowed is a table of at most {MOST_VARIABLES} names: {{ warehouses = 100 }}")
    reasons = []
    for name, each in value.items():
        if not _VARIABLE.fullmatch(name) or name in BUILT_IN_VARIABLES:
            reasons.append(
                f"{shown(name)}: a name is 1 to 60 letters, digits and _, no digit first, and none of {', '.join(BUILT_IN_VARIABLES)}, "
                "which are set anyway"
            )
        elif isinstance(each, bool) or not (
            isinstance(each, (int, float)) or (isinstance(each, str) and _VARIABLE_TEXT.fullmatch(each))
        ):
            reasons.append(
                f"{name} = {shown(each)}: allowed is a number, or a text of 1 to 60 letters, digits and . _ + -"
            )
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(sorted(value.items()))
