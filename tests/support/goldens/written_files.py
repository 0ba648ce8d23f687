"""What a reading command wrote, as text: the tables of an export, and a page without its styles and scripts."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from base64 import b64decode
from html import unescape
from typing import TYPE_CHECKING, Any

import polars as pl
from tests.support.tools.read_spreadsheet import Read, read_spreadsheet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_PACKED = re.compile(r'<script type="application/octet-stream" id="packed-data">(.*?)</script>', re.DOTALL)
_LEFT_OUT = re.compile(r"(<(script|style)\b[^>]*>).*?(</\2>)", re.DOTALL)
_PACKED_COLUMNS = ("course", "latencies")
_DIGITS = 10


def file_text(path: Path) -> str:
    """The content of a file that a command wrote, or of all files of a folder."""
    if path.is_dir():
        return "\n".join(f"# {name.name}\n{file_text(name)}" for name in sorted(path.iterdir()))
    return _BY_ENDING[path.suffix](path)


def _csv(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _parquet(path: Path) -> str:
    frame = pl.read_parquet(path)
    types = ", ".join(f"{name} {kind}" for name, kind in frame.schema.items())
    return f"{types}\n{frame.write_csv()}"


def _json(path: Path) -> str:
    """A row a line, each value beside its name: rows of one table have the same names."""
    found = json.loads(path.read_text(encoding="utf-8"))
    tables = found if isinstance(found, dict) else {path.stem: found}
    return "\n".join(f"## {name}\n{_rows(rows)}" for name, rows in tables.items())


def _rows(rows: Sequence[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(tuple(row) for row in rows))
    heads = [", ".join(name) for name in names]
    return "\n".join([*heads, *(",".join(_cell(value) for value in row.values()) for row in rows)])


def _cell(value: object) -> str:
    """As `write_csv` of polars has it, so that what is the same in two formats looks the same."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f'"{value.replace(chr(34), chr(34) * 2)}"' if re.search(r'[,"\n\r]|^$', value) else value
    return json.dumps(value)


def _spreadsheet(path: Path) -> str:
    sheets = read_spreadsheet(path)
    return "\n".join(f"## {name}\n{_lines(rows)}" for name, rows in sheets.items())


def _lines(rows: Iterable[Sequence[Read]]) -> str:
    # An empty row or cell at an end is there in one format and not in the other, and nobody sees it.
    return "\n".join("\t".join(map(_read, row)).rstrip() for row in rows).rstrip()


def _read(cell: Read) -> str:
    value = cell.value
    said = (
        ""
        if value is None
        else f"{value:.{_DIGITS}g}"
        if isinstance(value, float)
        else value.replace("\n", "⏎")
    )
    return f"{said} [{cell.formula}]" if cell.formula else said


def _page(path: Path) -> str:
    """The document that the script draws from, then the elements, one a line."""
    text = path.read_text(encoding="utf-8")
    data, packed = _DATA.search(text), _PACKED.search(text)
    document = (
        ""
        if data is None
        else _document(json.loads(data.group(1)), "" if packed is None else packed.group(1))
    )
    elements = re.sub(r">\s*<", ">\n<", _LEFT_OUT.sub(r"\1…\3", text))
    return f"## document\n{document}\n## elements\n{unescape(elements)}"


def _document(document: dict[str, Any], packed: str) -> str:
    columns = document["measurements"]
    for name in _PACKED_COLUMNS:
        columns[name] = [place and _packed(packed[place[0] : sum(place)]) for place in columns.get(name, ())]
    return "\n".join(
        f"{name}: {json.dumps(value, ensure_ascii=False, indent=1)}" for name, value in document.items()
    )


def _packed(piece: str) -> dict[str, Any]:
    """Latencies as they are; of a course the head, and the digest of the rest. How small it is depends on zlib's version."""
    content = zlib.decompress(b64decode(piece))
    if content.startswith(b"{"):
        return dict(json.loads(content))
    begin = 4 + int.from_bytes(content[:4], "little")
    return {"head": json.loads(content[4:begin]), "sha256": hashlib.sha256(content[begin:]).hexdigest()[:16]}


_BY_ENDING: dict[str, Callable[[Path], str]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".json": _json,
    ".xlsx": _spreadsheet,
    ".html": _page,
    ".txt": _csv,
}
