"""Golden texts: what a program said or did when it was last looked at, held against what it says or does now.

`WRITE_GOLDENS=1 pytest FILES` writes those anew that differ, and names each of them; git shows what changed.
"""

from __future__ import annotations

import difflib
import lzma
import os
import warnings
from pathlib import Path

GOLDEN = Path(__file__).parents[2] / "golden"
WRITE = "WRITE_GOLDENS"
# A longer text is packed: nobody reads it whole, and a difference is shown line by line all the same.
PLAIN_CHARACTERS = 60_000
_SHOWN_LINES = 200


def hold(name: str, text: str) -> None:
    """The golden of this name, a path below tests/golden, is `text`; else AssertionError with the difference."""
    plain, packed = GOLDEN / name, GOLDEN / f"{name}.xz"
    expected = _read(plain, packed)
    if text == expected:
        return
    if os.environ.get(WRITE):
        plain.parent.mkdir(parents=True, exist_ok=True)
        for path in (plain, packed):
            path.unlink(missing_ok=True)
        if len(text) > PLAIN_CHARACTERS:
            packed.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        else:
            plain.write_text(text, encoding="utf-8")
        warnings.warn(f"written anew: tests/golden/{name}", stacklevel=2)
        return
    lines = list(
        difflib.unified_diff(
            (expected or "").splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm=""
        )
    )
    shown = "\n".join(lines[:_SHOWN_LINES]) + ("\n…" if len(lines) > _SHOWN_LINES else "")
    raise AssertionError(f"{shown}\nif it is meant: {WRITE}=1 pytest and this test; then read `git diff`")


def _read(plain: Path, packed: Path) -> str | None:
    if packed.is_file():
        return lzma.decompress(packed.read_bytes()).decode()
    return plain.read_text(encoding="utf-8") if plain.is_file() else None
