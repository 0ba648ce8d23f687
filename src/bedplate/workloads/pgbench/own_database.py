"""One's own database as a plan names it, by a path, and as a study notes it: a study keeps no data.

The note (`plan/dumps/….json`) stands in the place of what the path led to, and is read where the plan is the one that a study
keeps. What a visit says of such a database passes here too.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import ValidationInfo

    from bedplate.model.levels import Levels

# Levels of a dataset: what it is made of, and which state of that.
DUMP, COPY = "dump", "copy"
SHA256, SIZE = "source_sha256", "source_bytes"
_DETAILS = re.compile(r"(DETAIL|HINT|CONTEXT|QUERY|STATEMENT|LINE \d+|LOCATION):")
_QUOTED, _PARAMETER = re.compile(r'"[^"]*"'), re.compile(r'"\$[0-9]{1,4}"')
_NAME_CHARACTERS_MAX = 4000
_Noted = TypeVar("_Noted")


@dataclass(frozen=True)
class NamedSource:
    """A path in a plan: what it leads to, where a study notes that, and the plan's files and places that it adds to."""

    path: Path
    directory: Path
    note: str
    files: dict[str, str]
    archives: dict[str, str]

    def noted(self, kind: type[_Noted]) -> _Noted | None:
        """What a study has of it; None beside a plan that is no study's."""
        try:
            return kind(**json.loads((self.directory / self.note).read_text(encoding="utf-8")))
        except OSError:
            return None
        except (ValueError, TypeError):
            raise ValueError(f"the study's note of it ({self.note}) is damaged") from None

    def keep(self, found: Any, sha256: str) -> None:
        """Note it, and where it lies."""
        self.files[self.note] = json.dumps(asdict(found), indent=1) + "\n"
        self.archives[sha256] = str(self.path)


def named_source(value: Any, info: ValidationInfo, what: str) -> NamedSource:
    """What a path leads to, from the plan's directory or absolute; ValueError in a sentence."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _NAME_CHARACTERS_MAX:
        raise ValueError(f"allowed is the path of {what}")
    context = info.context or {}
    directory = Path(context["directory"])
    try:
        path = (directory / value).resolve()
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    except RuntimeError:
        raise ValueError("it cannot be read: a link leads to itself") from None
    note = f"dumps/{hashlib.sha256(value.encode()).hexdigest()[:16]}.json"
    return NamedSource(path, directory, note, context["files"], context["archives"])


def is_own(levels: Levels) -> bool:
    """Whether a dataset is somebody's own database, and not pgbench's tables."""
    return DUMP in levels or COPY in levels


def _blank(quoted: re.Match[str]) -> str:
    # A parameter's number is nobody's data, and says why a statement was refused.
    return quoted[0] if _PARAMETER.fullmatch(quoted[0]) else '"…"'


def without_data(text: str) -> str:
    """What pgbench printed, without values and names of one's own database: a study keeps it.

    A server's error quotes names and values, and its details stand on lines behind it.
    """
    kept = []
    in_details = False
    for line in text.splitlines():
        in_details = bool(_DETAILS.match(line)) or (in_details and not line.startswith("pgbench"))
        if not in_details:
            kept.append(_QUOTED.sub(_blank, line))
    return "\n".join(kept) + ("\n" if kept else "")
