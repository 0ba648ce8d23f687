"""Where a page keeps what nobody looks at yet: one long text, of which each piece is read when it is asked for."""

from __future__ import annotations

import base64


class PackedData:
    """Pieces of bytes in base64, one behind the other; the page's `bedplate.packedData` takes them from there."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def put(self, piece: bytes | None) -> list[int] | None:
        """Where the piece stands: its first letter and how many it has. None for nothing."""
        if piece is None:
            return None
        text = base64.b64encode(piece).decode("ascii")
        place = [self._length, len(text)]
        self._pieces.append(text)
        self._length += len(text)
        return place

    @property
    def text(self) -> str:
        """All pieces."""
        return "".join(self._pieces)
