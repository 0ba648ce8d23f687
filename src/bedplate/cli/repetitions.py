"""Another number of repetitions in a plan's text, everything else as it was written."""

from __future__ import annotations

import re
import tomllib

from bedplate.errors import PlanError

# The key may be quoted, and stand under spaces; what TOML makes of a candidate decides.
_LINE = re.compile(r"""(?m)^[ \t]*(?:repetitions|"repetitions"|'repetitions')[ \t]*=[^\n#]*""")


def with_repetitions(text: str, repetitions: int) -> str:
    """The plan with that number; PlanError where its text cannot be changed with certainty."""
    wanted = {**tomllib.loads(text), "repetitions": repetitions}
    line = f"repetitions = {repetitions}"
    candidates = [f"{text[: found.start()]}{line} {text[found.end() :]}" for found in _LINE.finditer(text)]
    # A plan that is silent gets the line at its top: keys before the first table belong there.
    for candidate in (*candidates, f"{line}\n{text}"):
        try:
            changed = tomllib.loads(candidate)
        except tomllib.TOMLDecodeError:
            continue
        if changed == wanted:
            return candidate
    raise PlanError(
        f"the study's plan cannot be changed to {repetitions} repetitions by itself; copy its plan.toml, "
        f"write `{line}` there, and give that with --plan"
    )
