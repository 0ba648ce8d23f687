"""Where a class of durability hangs on the device's sectors: every place takes the one that fits the device."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests.synthetic_power_cuts import (
    DATASET,
    POINTS,
    RECIPE,
    RECORDING,
    controls,
    point,
    points_of,
    power_cut_study,
    write_points,
)
from tests.synthetic_study import cells_of

from bedplate.model import codec
from bedplate.model.device_cache import VOLATILE_4K, VOLATILE_512
from bedplate.model.power_cut import (
    POINTS_FILE,
    RECORDING_FILE,
    Placement,
    PointOutcome,
    PointRecord,
    Profile,
)
from bedplate.report.advice import closing_sentences
from bedplate.report.advised import advised
from bedplate.report.export import export
from bedplate.report.overview import Overview, overview
from bedplate.report.power_cut_page import power_cut_document, power_cut_rows
from bedplate.report.tables import show_tables
from bedplate.report.wording import durability_class, durability_words, words_on_device

XFS = next(cell.id for cell in cells_of(RECIPE) if cell.filesystem.type == "xfs")
WORDS = "durable; unsafe with 512-byte sectors"


def sought(number: int, profile: Profile, outcome: PointOutcome) -> PointRecord:
    made = point(POINTS + number, outcome, profile)
    return replace(made, point=replace(made.point, placement=Placement.SOUGHT))


def study_of(directory: Path, device: dict[str, object]) -> Path:
    """XFS loses its directory where it is torn and else nothing; every visit says what device it had."""
    study = power_cut_study(directory)
    for path in study.glob("visits/*/*/*/visit.json"):
        record = json.loads(path.read_text())
        record["device_facts"] = device
        path.write_text(json.dumps(record))
    (run,) = study.glob(f"visits/{XFS}/{DATASET.id}/*/runs/*")
    torn = [sought(n, Profile.SUBSET_512, PointOutcome.FILE_SYSTEM_LOST) for n in range(12)]
    whole = [sought(n, Profile.SUBSET_4K, PointOutcome.OK) for n in range(12, 24)]
    write_points(run / POINTS_FILE, [*points_of({}), *torn, *whole, *controls()])
    codec.write(run / RECORDING_FILE, replace(RECORDING, sought=24, waiting={"directory block": 1}))
    return study


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    file = {"kind": "image file on a loop device", "physical_block_size": 512}
    devices = {
        "4k": {"kind": "block device", "physical_block_size": 4096},
        "512": {**file, "backing_physical_block_size": 512},
        "unknown": file,
    }
    base = tmp_path_factory.mktemp("sectors")
    return {name: study_of(base / name, facts) for name, facts in devices.items()}


@pytest.fixture(scope="module")
def found(studies: dict[str, Path]) -> dict[str, Overview]:
    return {name: overview(study) for name, study in studies.items()}


@pytest.mark.parametrize(
    ("device", "cache", "here"),
    [("4k", VOLATILE_4K, "durable"), ("512", VOLATILE_512, "unsafe"), ("unknown", VOLATILE_512, "unsafe")],
)
def test_the_one_word_of_a_cell_is_that_of_its_own_device(
    found: dict[str, Overview], device: str, cache: str, here: str
) -> None:
    cell = found[device].cells[XFS]
    assert (WORDS, cache) == (durability_words(cell.durability), cell.cache)
    assert here == durability_class(cell.durability, cell.cache) == words_on_device(cell).split(" / ")[0]
    advice = advised(found[device])
    assert (here, cache) == (advice.classes[XFS], advice.cache)
    assert any(XFS in contest.cells for contest in advice.contests) is (here == "durable")
    (row,) = [row for row in power_cut_rows([found[device]]) if row.cell.startswith("xfs")]
    assert [
        cache == "volatile cache, 512-byte sectors" for cache in (c.words for c in row.caches if c.fits)
    ] == [device != "4k"]
    drawn = power_cut_document([found[device]])
    assert drawn is not None
    assert {cache} == {entry["fits"] for entry in drawn}


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("4k", "The device has physical sectors of 4096 bytes"),
        ("512", "The device has physical sectors of 512 bytes"),
        ("unknown", "Which sectors the device has is not known"),
    ],
)
def test_advice_says_whose_class_it_takes(found: dict[str, Overview], device: str, words: str) -> None:
    texts = [each.text for each in closing_sentences(advised(found[device]))]
    assert any(text.startswith(words) and "--cache names another" in text for text in texts)
    named = closing_sentences(advised(found[device], cache=VOLATILE_4K))
    assert not any(words in each.text for each in named)


def test_another_cache_is_asked_for_by_its_name(found: dict[str, Overview]) -> None:
    classes = {
        cache: advised(found["4k"], cache=cache).classes[XFS]
        for cache in ("volatile", "volatile-4k", "volatile-512", "protected")
    }
    assert ["durable", "durable", "unsafe", "durable"] == list(classes.values())
    unsafe = [each.text for each in closing_sentences(advised(found["4k"], cache="volatile-512"))]
    assert any(
        "Unsafe with a volatile cache, 512-byte sectors" in text
        and "0 of 10 bad; where metadata waits 12 of 12 bad: 12 file system lost" in text
        for text in unsafe
    )


@pytest.mark.parametrize("width", [72, 80, 120])
def test_the_terminal_has_a_line_for_each_kind_of_device_and_sought_cuts_apart(
    studies: dict[str, Path], width: int
) -> None:
    text = StringIO()
    console = Console(file=text, width=width, color_system=None)
    for table in show_tables([studies["4k"]]):
        console.print(table)
    lines = text.getvalue().splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip().startswith("xfs") and "4 KiB" in line)
    assert "0 of 12" in lines[start]
    (torn,) = [line for line in lines[start:] if "12 of 12" in line]
    assert "512 B" in torn
    assert "unsafe" in torn
    # The bound of the drawn cuts is theirs alone.
    assert "0 of 10," in torn
    assert max(map(len, lines)) <= width


def test_exports_have_a_column_for_each_class(studies: dict[str, Path], tmp_path: Path) -> None:
    export(studies["512"], tmp_path / "all.json")
    tables = json.loads((tmp_path / "all.json").read_text())
    (verdict,) = [row for row in tables["verdicts"] if row["cell"] == XFS]
    names = ("measured_volatile", "measured_volatile_512", "measured_protected", "device_sector_bytes")
    assert ["durable", "unsafe", "durable", 512] == [verdict[name] for name in names]
    assert (12, 12, 10) == tuple(
        verdict[f"volatile_512_{name}"] for name in ("sought_cuts", "sought_bad", "cuts")
    )
    classes = {
        (row["durability_volatile"], row["durability_volatile_512"])
        for row in tables["runs"]
        if row["cell"] == XFS
    }
    assert {("durable", "unsafe")} == classes
