"""Real studies that earlier versions made, and what those versions said of them.

`python -m tests.support.studies.former_studies DIRECTORY NAME` packs a study and what this version says of it into tests/golden/former_studies;
a version that says something else later must name the difference in tests/unit/test_former_studies.py.

Both are of the version of 22 November 2026 (af136e0). `power-cut-quick` is without its 21 recordings (269 MB; the checksums were taken again
after they had gone). Its verdicts are those of that version, whose oracle called a commit `corrupt, silent` where PostgreSQL had counted its
indexes in another order: what counts here is that the record is read as it was written.
"""

from __future__ import annotations

import json
import lzma
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.support.studies.study_readers import said_by_reader

from bedplate.analysis.comparison import selected_overviews
from bedplate.model import codec
from bedplate.page.document import PackedData, page_document

FOLDER = Path(__file__).parents[2] / "golden" / "former_studies"
NAMES = tuple(sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz")))
# Figures are worked out with one library or another; texts are the same to the letter.
_SAME_TO = 1e-9


def unpacked(name: str, place: Path) -> Path:
    """The study, as it was packed."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        # Python 3.11.2, which Debian 12 has, knows no filters, and 3.14 asks for one.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(place)  # noqa: S202 -- packed by ourselves
    return place / "study"


# By the names of the commands that former versions had for them.
_VIEWS: dict[str, tuple[str, ...]] = {"show": (), "advise": ("--advice",), "effects": ("--effects",)}


def answers(study: Path) -> dict[str, Any]:
    """What this version says: `show`, `advise` and `effects` as JSON, the export, and the document of a page."""
    tables = study.parent / "all.json"
    said: dict[str, Any] = {name: _answer(view, study) for name, view in _VIEWS.items()}
    assert said_by_reader(("export", "{study}", "-o", str(tables)), study)[0] == 0
    said["export"] = json.loads(tables.read_text(encoding="utf-8"))
    said["page"] = codec.to_json(page_document(selected_overviews([study]), PackedData()))
    # As a reader of JSON meets it.
    return json.loads(json.dumps(said).replace(str(study.parent), ""))  # type: ignore[no-any-return]


def _answer(view: tuple[str, ...], study: Path) -> Any:
    """As JSON; an error's words where the study has no such answer."""
    code, text = said_by_reader(("show", "{study}", *view, "--json"), study)
    return json.loads(text) if code == 0 else text


def said_before(name: str) -> dict[str, Any]:
    """What the version that made the study said."""
    return json.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))  # type: ignore[no-any-return]


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """Where two answers differ, by path; numbers within a billionth are the same."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = dict.fromkeys((*before, *now))
        missing = object()
        return [
            found
            for key in keys
            for found in differences(before.get(key, missing), now.get(key, missing), f"{place}.{key}")
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            found
            for i, pair in enumerate(zip(before, now, strict=True))
            for found in differences(*pair, f"{place}[{i}]")
        ]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, now))
    if before == now or (numbers and abs(before - now) <= _SAME_TO * max(abs(before), abs(now))):
        return []
    return [f"{place}: {_short(before)} before, {_short(now)} now"]


def _short(value: object) -> str:
    return f"{value!r:.120}"


def main() -> None:
    """Pack a study, and keep what this version says of it."""
    study, name = Path(sys.argv[1]), sys.argv[2]
    with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        archive.add(study, "study", filter=_packed)
    (FOLDER / f"{name}.json.xz").write_bytes(lzma.compress(json.dumps(answers(study)).encode(), preset=9))


def _packed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return None if member.name in ("study/scratch", "study/.lock") else member


if __name__ == "__main__":
    main()
