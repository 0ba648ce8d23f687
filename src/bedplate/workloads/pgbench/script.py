"""What the statements of an own script say of what it does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.pgbench_script import first_word, read_script

if TYPE_CHECKING:
    from bedplate.workloads.pgbench.model import RunScript

# A SELECT that locks rows, makes a table, or draws from a sequence leaves something to write.
_WRITES = re.compile(
    r"\bfor\s+(no\s+key\s+update|update|share|key\s+share)\b|\binto\b|\b(nextval|setval)\s*\("
)


def statement_texts(script: str) -> tuple[str, ...]:
    """Each statement, without its comments."""
    return tuple(text for statement in read_script(script).statements for text in statement.texts)


def seems_to_read_only(run_script: RunScript) -> bool:
    """Whether it has SELECTs and nothing else; what a function in one does is seen when it has run."""
    if run_script.text is None:
        return run_script.writes is False
    texts = statement_texts(run_script.text)
    return bool(texts) and all(
        first_word(text) == "select" and not _WRITES.search(text.casefold()) for text in texts
    )
