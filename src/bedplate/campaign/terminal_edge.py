"""The edge of the terminal: what comes from a study, a tool or a log is shown there, and never obeyed.

Everything that a command says passes here, so that nothing can forget it: a character that a terminal would obey
(controls, escapes, changes of the direction of text) becomes one that can be seen. Lines and tabulators stay.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

# C0 but for tab and line feed, DEL, C1; marks of direction, embeddings, overrides and isolates (Unicode, UAX #9);
# the separators of lines and paragraphs; interlinear annotations.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]")

# Unicode has pictures of C0 and of DEL.
_PICTURES, _DELETE_PICTURE, _OTHER = 0x2400, "\u2421", "\ufffd"


def neutral(text: str) -> str:
    """The text with a picture in place of each character that a terminal would obey."""
    return text if text.isprintable() else _OBEYED.sub(_picture, text)


def json_text(document: object) -> str:
    """A document as JSON whose text no terminal obeys; it is read back as the very same document."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class GuardedStream:
    """A text stream that shows what a terminal would obey; in everything else it is the stream behind it."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def write(self, text: str) -> int:
        """Write the text, neutral; the number of characters that were asked for."""
        self.behind.write(neutral(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


def guard_streams() -> None:
    """From now on standard output and error are neutral."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, GuardedStream):
            setattr(sys, name, cast("TextIO", GuardedStream(stream)))


def unguarded(stream: TextIO) -> TextIO:
    """The stream behind, for who makes its text neutral itself and adds its own colours."""
    return stream.behind if isinstance(stream, GuardedStream) else stream


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return _DELETE_PICTURE if code == 0x7F else _OTHER
