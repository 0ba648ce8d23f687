"""Another value of a key in a plan's text, everything else as it was written."""

from __future__ import annotations

import re
import tomllib

from bedplate.errors import PlanError


def with_repetitions(text: str, repetitions: int) -> str:
    """The plan with that number; PlanError where its text cannot be changed with certainty."""
    line = f"repetitions = {repetitions}"
    return _with_line(text, "repetitions", repetitions, line) or _refuse(
        f"the study's plan cannot be changed to {repetitions} repetitions by itself; copy its plan.toml, "
        f"write `{line}` there, and give that with --plan"
    )


def with_executor(text: str, executor: str) -> str:
    """The plan with that executor; PlanError as above."""
    line = f'executor = "{executor}"'
    return _with_line(text, "executor", executor, line) or _refuse(
        f"the plan cannot be changed to --executor {executor} by itself; write `{line}` into a copy of it, "
        "and give the copy"
    )


def _refuse(reason: str) -> str:
    raise PlanError(reason)


def _with_line(text: str, key: str, value: str | int, line: str) -> str | None:
    wanted = {**tomllib.loads(text), key: value}
    # The key may be quoted, and stand under spaces; what TOML makes of a candidate decides.
    lines = re.compile(rf"""(?m)^[ \t]*(?:{key}|"{key}"|'{key}')[ \t]*=[^\n#]*""")
    candidates = [f"{text[: found.start()]}{line} {text[found.end() :]}" for found in lines.finditer(text)]
    # A plan that is silent gets the line at its top: keys before the first table belong there.
    for candidate in (*candidates, f"{line}\n{text}"):
        try:
            changed = tomllib.loads(candidate)
        except tomllib.TOMLDecodeError:
            continue
        if changed == wanted:
            return candidate
    return None
