"""Every text of a study's records in turn as another one, its checksums made again: what a newer bedplate writes, and a stranger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.study.checksums import CHECKSUMS_FILE, top_checksums, write_checksums
from bedplate.study.records import StudyFacts

# No table of bedplate's has it.
UNKNOWN = "zz-unknown"
_Path = tuple[str | int, ...]


def texts_of(study: Path) -> list[tuple[Path, _Path, bool]]:
    """Each kind of place once: the file below the study, the way in its document, and whether it is a key that is meant.

    The first step of the way into a file of lines is the number of the line.
    """
    places: dict[tuple[str, ...], tuple[Path, _Path, bool]] = {}
    for path in sorted(study.rglob("*.json*")):
        if path.name == CHECKSUMS_FILE:
            continue
        workload = path.parent.parent.parent.parent.name.partition("-")[0] if "visits" in path.parts else ""
        for way, is_key in _ways(_document(path)):
            # Ids, and numbers of entries, are one place; a metric of a figure is another place for each one.
            kind = (
                path.name,
                workload,
                str(is_key),
                *(str(step) for step in way if isinstance(step, str) and "-" not in step),
            )
            places.setdefault(kind, (path.relative_to(study), way, is_key))
    return list(places.values())


def put(study: Path, place: tuple[Path, _Path, bool], text: str = UNKNOWN) -> None:
    """Put another text in a place, and make the checksums of the study and its visits again."""
    below, way, is_key = place
    path = study / below
    document = _document(path)
    at = document
    for step in way[:-1]:
        at = at[step]
    if is_key:
        at[text] = at.pop(way[-1])
    else:
        at[way[-1]] = text
    if path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(line)}\n" for line in document))
    else:
        path.write_text(json.dumps(document, indent=2))
    if below.parts[0] == "visits":
        visit = study.joinpath(*below.parts[:4])
        if (visit / CHECKSUMS_FILE).exists():
            write_checksums(visit)
    elif path.name != "study.json":
        facts = codec.read(StudyFacts, study / "study.json")
        own = top_checksums({str(below): path.read_bytes()})
        codec.write(study / "study.json", replace(facts, checksums={**facts.checksums, **own}))


def _document(path: Path) -> Any:
    text = path.read_text()
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def _ways(value: Any, way: _Path = ()) -> Iterator[tuple[_Path, bool]]:
    if isinstance(value, str):
        yield way, False
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*way, key), True
            yield from _ways(item, (*way, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _ways(item, (*way, number))


def reseal(study: Path) -> None:
    """Make all checksums again, of whatever is there by now: who changes a study on purpose does so."""
    for visit in sorted((study / "visits").glob("*/*/*")):
        with suppress(StudyError, OSError):
            if (visit / CHECKSUMS_FILE).exists():
                write_checksums(visit)
    with suppress(StudyError, OSError):
        facts = codec.read(StudyFacts, study / "study.json")
        own = top_checksums({name: (study / name).read_bytes() for name in facts.checksums})
        codec.write(study / "study.json", replace(facts, checksums=own))
