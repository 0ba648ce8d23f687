"""Records of studies that nobody measured, on disk: the JSON of the codec on one line, without a temporary file.

Thousands are written, and Python's fast encoder knows no indentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.codec import dumps

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def write(path: Path, record: Any) -> None:
    """In place of `codec.write`: every reader takes both."""
    path.write_text(f"{dumps(record, indent=None)}\n", encoding="utf-8")
