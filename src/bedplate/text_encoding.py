"""Texts that people write: UTF-8, with a byte order mark or without, as editors and spreadsheets save it.

Another encoding is named with the way out. It is never guessed and never replaced, because a wrong character is a wrong figure or a wrong option.
"""

from __future__ import annotations

import codecs

# The mark of UTF-32 begins with that of UTF-16, so that the longer one is looked for first.
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
# Enough of a text without a mark to tell UTF-16 by: each second byte of its Latin letters is 0.
_LOOKED_AT_BYTES = 64
_LEAST_BYTES = 4


def decode_text(data: bytes) -> str:
    """What a file says, without its byte order mark; ValueError names another encoding, and what to do."""
    encoding = next((name for mark, name in _OTHER_MARKS if data.startswith(mark)), None)
    if encoding is None and _is_utf_16(data[:_LOOKED_AT_BYTES]):
        encoding = "UTF-16"
    if encoding is not None:
        raise ValueError(
            f'it is {encoding} (what a spreadsheet calls "Unicode text"), and UTF-8 is read; save it as UTF-8'
        )
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + len(data) - len(data.removeprefix(codecs.BOM_UTF8))
        raise ValueError(
            f"it is no UTF-8: byte {at} is {data[at]:#04x} (of Windows-1252, perhaps, or no text); save it as UTF-8"
        ) from None


def _is_utf_16(head: bytes) -> bool:
    sides = (head[::2], head[1::2])
    return len(head) >= _LEAST_BYTES and any(
        not any(one) and all(other) for one, other in (sides, sides[::-1])
    )
