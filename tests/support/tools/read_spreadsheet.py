"""Reads the cells of an XLSX file by its XML alone, so that a test needs neither writer nor office."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclass(frozen=True)
class Read:
    """One cell: its value, and its formula where it has one."""

    value: str | float | None
    formula: str | None = None


def read_spreadsheet(path: Path) -> dict[str, list[list[Read]]]:
    """Sheets by name, in their order, each as rows of cells; empty rows and cells at an end may be missing."""
    with zipfile.ZipFile(path) as archive:
        # Reading compares what is read with its checksum.
        files = {name: archive.read(name) for name in archive.namelist()}
    parts = {
        name: ET.fromstring(content)  # noqa: S314 -- our own file
        for name, content in files.items()
        if name.endswith((".xml", ".rels"))
    }
    return dict(_xlsx(parts))


def values(rows: list[list[Read]]) -> list[list[str | float | None]]:
    """The values alone."""
    return [[cell.value for cell in row] for row in rows]


def _xlsx(parts: Mapping[str, ET.Element]) -> Iterator[tuple[str, list[list[Read]]]]:
    strings = parts.get("xl/sharedStrings.xml", ())
    shared = ["".join(t.text or "" for t in item.iter(f"{_MAIN}t")) for item in strings]
    targets = {one.attrib["Id"]: one.attrib["Target"] for one in parts["xl/_rels/workbook.xml.rels"]}
    for sheet in parts["xl/workbook.xml"].iter(f"{_MAIN}sheet"):
        rows: list[list[Read]] = []
        for row in parts[f"xl/{targets[sheet.attrib[_RELATION]]}"].iter(f"{_MAIN}row"):
            rows += [[] for _ in range(int(row.attrib["r"]) - 1 - len(rows))]
            cells: list[Read] = []
            for cell in row:
                column = _column(cell.attrib["r"])
                cells += [Read(None)] * (column - len(cells))
                cells.append(_xlsx_cell(cell, shared))
            rows.append(cells)
        yield sheet.attrib["name"], rows


def _column(address: str) -> int:
    number = 0
    for letter in re.sub(r"\d", "", address):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _xlsx_cell(cell: ET.Element, shared: list[str]) -> Read:
    formula, value = cell.findtext(f"{_MAIN}f"), cell.findtext(f"{_MAIN}v")
    if cell.get("t") == "s":
        return Read(shared[int(value or "")], formula)
    # xlsxwriter writes a formula that comes to an empty text as one without a value, and Excel takes it so.
    if cell.get("t") == "str" or (formula and not value):
        return Read(value or "", formula)
    return Read(None if value is None else float(value), formula)
