"""Where a class of durability hangs on the device's sectors: every place takes the one that fits the device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.studies.synthetic_power_cuts import RECIPE, torn_study
from tests.support.studies.synthetic_study import cells_of
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.advice import advised
from bedplate.analysis.answer import headline, headline_lines
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.wording import (
    durability_class,
    durability_told,
    durability_words,
    promises_differ,
    words_on_device,
)
from bedplate.export.tables import export
from bedplate.export.workbook import about_sheet
from bedplate.model.device_cache import VOLATILE_4K, VOLATILE_512
from bedplate.page.document import page_document
from bedplate.terminal.advice_tables import advice_document
from bedplate.terminal.tables import show_document, show_tables
from bedplate.workloads.power_cut.page import power_cut_document, power_cut_rows

XFS = next(cell.id for cell in cells_of(RECIPE) if cell.filesystem.type == "xfs")
EXT4, UNFLUSHED = (cell.id for cell in cells_of(RECIPE) if cell.filesystem.type == "ext4")
WORDS = "durable; unsafe with 512-byte sectors"


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    file = {"kind": "image file on a loop device", "physical_block_size": 512}
    devices = {
        "4k": {"kind": "block device", "physical_block_size": 4096},
        "512": {**file, "backing_physical_block_size": 512},
        "unknown": file,
    }
    base = tmp_path_factory.mktemp("sectors")
    return {name: torn_study(base / name, facts) for name, facts in devices.items()}


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
    ("device", "other", "words"),
    [
        ("4k", EXT4, "on a device with 512-byte sectors what survives a power cut differs: "),
        ("512", EXT4, "what survives a power cut differs: "),
        ("512", UNFLUSHED, "on a device with 4 KiB sectors what survives a power cut differs: "),
        ("4k", UNFLUSHED, "what survives a power cut differs: "),
        ("4k", XFS, ""),
    ],
)
def test_what_only_another_devices_sectors_lose_is_told_as_such(
    found: dict[str, Overview], device: str, other: str, words: str
) -> None:
    cells = found[device].cells
    told = promises_differ(cells[other], cells[XFS])
    assert told.startswith(words)
    assert bool(words) is bool(told)
    assert told.endswith("not ranked by speed alone") is words.startswith("what")


@pytest.mark.parametrize(("device", "here"), [("4k", "durable"), ("512", "unsafe / durable")])
def test_every_place_of_the_page_and_every_document_names_the_class_of_this_device(
    studies: dict[str, Path], found: dict[str, Overview], device: str, here: str
) -> None:
    words = f"{WORDS}; this device: {here}, measured"
    assert words == durability_told(found[device].cells[XFS])
    page = page_document([found[device]])
    assert [words] == [cell["durability"] for cell in page["cells"] if cell["id"] == XFS]
    sectors = 4096 if device == "4k" else 512
    cells = show_document([studies[device]])["studies"][0]["cells"]
    assert {(sectors, f"volatile-{device}")} == {
        (cell["device_sector_bytes"], cell["device_cache"]) for cell in cells
    }
    assert sectors == advice_document(headline(found[device]))["device_sector_bytes"]
    about = {str(row[0]): str(row[1]) for row in about_sheet(found[device]).rows}
    assert f"sectors of {sectors} bytes" in about["sectors"]


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("4k", "The device has physical sectors of 4096 bytes"),
        ("512", "The device has physical sectors of 512 bytes"),
        ("unknown", "Which sectors the device has is not known"),
    ],
)
def test_advice_says_whose_class_it_takes(found: dict[str, Overview], device: str, words: str) -> None:
    texts = [line.text for line in headline_lines(headline(found[device]))]
    assert any(text.startswith(words) and "--cache names another" in text for text in texts)
    named = headline(found[device], advised(found[device], cache=VOLATILE_4K))
    assert not any(words in line.text for line in headline_lines(named))


def test_another_cache_is_asked_for_by_its_name(found: dict[str, Overview]) -> None:
    classes = {
        cache: advised(found["4k"], cache=cache).classes[XFS]
        for cache in ("volatile", "volatile-4k", "volatile-512", "protected")
    }
    assert ["durable", "durable", "unsafe", "durable"] == list(classes.values())
    told = headline(found["4k"], advised(found["4k"], cache="volatile-512"))
    unsafe = [line.text for line in headline_lines(told)]
    # Chance placed none of the twelve, and they are no share of the ten that it did.
    assert any(
        "corrupt on xfs (12\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}12\N{NO-BREAK SPACE}sought)" in text
        for text in unsafe
    )


@pytest.mark.parametrize("width", [72, 80, 120])
def test_the_terminal_has_a_line_for_each_kind_of_device_and_sought_cuts_apart(
    studies: dict[str, Path], width: int
) -> None:
    text = as_printed(show_tables([studies["4k"]]), width)
    lines = text.splitlines()
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
        (row["durability_volatile"], row["durability_volatile_512"], row["device_sector_bytes"])
        for row in tables["runs"]
        if row["cell"] == XFS
    }
    assert {("durable", "unsafe", 512)} == classes
