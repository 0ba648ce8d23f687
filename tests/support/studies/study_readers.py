"""Every command that reads a study, called in this process, and what must hold of what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.studies.synthetic_power_cuts import RECIPE, power_cut_study
from tests.support.tools.command_line import call_here

from bedplate.campaign.terminal_edge import neutral
from bedplate.model import codec
from bedplate.model.visit import VisitRecord
from bedplate.study.checksums import write_checksums

READERS = (
    ("show", "{study}", "--status"),
    ("show", "{study}", "--status", "--verify", "--json"),
    ("show", "{study}"),
    ("compare", "{study}", "--baseline", "type=ext4 barrier=yes", "--contender", "type=xfs"),
    ("show", "{study}", "--effects", "--workload", "read-write"),
    ("show", "{study}", "--advice", "--json"),
    ("show", "{study}", "--claims"),
    ("power-cut", "points", "{study}"),
    ("export", "{study}", "-o", "{out}/tables"),
    ("export", "{study}", "-o", "{out}/book.xlsx"),
    ("export", "{study}", "-o", "{out}/all.json"),
    ("report", "{study}", "-o", "{out}/page.html"),
)


def sealed_study(place: Path) -> Path:
    """Speeds and power cuts of four cells; every other visit has checksums, the rest are of an earlier version."""
    study = power_cut_study(place, recipe=replace(RECIPE, repetitions=2, course_s=2))
    for visit in sorted((study / "visits").glob("*/*/*"))[::2]:
        record = codec.read(VisitRecord, visit / "visit.json")
        codec.write(visit / "visit.json", replace(record, sealed=True))
        write_checksums(visit)
    return study


def said_by_reader(words: tuple[str, ...], study: Path) -> tuple[int, str]:
    """The exit code of a reader, and what it says at its edge to the terminal; an exception is an AssertionError."""
    out = study.parent / "out"
    try:
        done = call_here(*(word.format(study=study, out=out) for word in words))
    except Exception as error:
        raise AssertionError(f"{' '.join(words)}: {error!r}") from error
    return done.returncode, done.stdout + done.stderr


def require_harmless(words: tuple[str, ...], study: Path) -> None:
    """AssertionError unless the reader says what is wrong in a sentence that no terminal obeys."""
    status, said = said_by_reader(words, study)
    assert said == neutral(said), f"{words}: a control character in {said!r}"
    assert status in {0, 1, 2, 3}, said
    assert "Traceback" not in said
    if status in {2, 3}:
        assert "error: " in said
        assert str(study) in said
