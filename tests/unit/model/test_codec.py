"""Records survive JSON, and a document that does not fit is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
    Throttle,
)
from bedplate.model.figure import Better, Figure, Scale
from bedplate.model.levels import Levels
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Outcome, Phase, RunRecord, Sample

_NAMES = st.text(min_size=1, max_size=20)
_SCALARS = st.one_of(
    st.text(max_size=30),
    st.integers(min_value=-(2**53), max_value=2**53),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
)
_LEVELS = st.dictionaries(_NAMES, _SCALARS, max_size=4).map(Levels)
_SIZES = st.none() | st.integers(min_value=1, max_value=2**40)
_THROTTLES = st.none() | st.builds(Throttle, name=_NAMES, read_iops=_SIZES, write_bytes_per_s=_SIZES)

CELLS = st.builds(
    Cell,
    device=st.builds(DeviceLevels, memory_bytes=_SIZES, throttle=_THROTTLES, read_ahead_kb=_SIZES),
    kernel=st.builds(KernelLevels),
    filesystem=st.builds(
        FilesystemLevels,
        type=st.sampled_from(["ext4", "xfs", "btrfs"]),
        block_size_bytes=_SIZES,
        mount_options=st.lists(_NAMES, max_size=3).map(tuple),
        barrier=st.none() | st.booleans(),
        features=_LEVELS,
    ),
    build=st.builds(BuildLevels, block_size_bytes=st.sampled_from([1024, 8192, 32768])),
    cluster=st.builds(ClusterLevels, settings=_LEVELS, configuration=st.none() | st.text(max_size=50)),
)


@given(CELLS)
def test_a_cell_comes_back_as_it_went(cell: Cell) -> None:
    assert cell == codec.loads(Cell, codec.dumps(cell))


@given(CELLS)
def test_an_identity_survives_the_disk(cell: Cell) -> None:
    assert cell.id == codec.loads(Cell, codec.dumps(cell)).id


@given(_LEVELS, st.lists(st.text(max_size=20), max_size=3))
def test_a_run_record_comes_back_as_it_went(levels: Levels, reasons: list[str]) -> None:
    record = RunRecord(
        spec=RunSpec("read-only", "pgbench", levels),
        outcome=Outcome.FAILED,
        reasons=tuple(Reason("x", words) for words in reasons),
        phases=(Phase("measure", 1.0, 2.5, 1e9, 1e9 + 1.5),),
        before=Sample(1.0, 1e9, "measure", {"device.reads": 12.0}),
        facts=dict(levels),
        commands=(("pgbench", "-c", "4"),),
    )
    assert record == codec.loads(RunRecord, codec.dumps(record))


def test_true_does_not_become_one_nor_one_true() -> None:
    record = RunRecord(RunSpec("a", "pgbench"), Outcome.COMPLETED, facts={"flag": True, "count": 1})
    facts = codec.loads(RunRecord, codec.dumps(record)).facts
    assert (True, 1) == (facts["flag"], facts["count"])
    assert isinstance(facts["flag"], bool)
    assert not isinstance(facts["count"], bool)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda document: document.pop("build"), "Cell.build: missing"),
        (lambda document: document.update(colour="red"), "Cell.colour: Cell has no such field"),
        (lambda document: document["build"].update(block_size_bytes="8k"), "Cell.build.block_size_bytes"),
        (lambda document: document["build"].update(block_size_bytes=True), "Cell.build.block_size_bytes"),
        (lambda document: document["filesystem"].update(mount_options="noatime"), "mount_options"),
        (lambda document: document["filesystem"].update(features=[1]), "features"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_with_its_place(change: Any, place: str) -> None:
    cell = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), ClusterLevels())
    document = json.loads(codec.dumps(cell))
    change(document)
    with pytest.raises(StudyError) as raised:
        codec.from_json(Cell, document)
    assert any(place in reason for reason in raised.value.reasons)


def test_what_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        codec.dumps({"value": float("nan")})


def test_a_half_written_file_is_never_seen(tmp_path: Any) -> None:
    path = tmp_path / "record.json"
    codec.write(path, {"a": 1})
    with pytest.raises(TypeError):
        codec.write(path, {"a": object()})
    assert {"a": 1} == json.loads(path.read_text())


def test_some_fields_of_a_record_are_named_as_the_document_has_them() -> None:
    figure = Figure(
        "measure", "", 1, "tps", None, "1/s", Scale.RATIO, Better.HIGHER, reason=because("x", "it is cold")
    )
    found = codec.json_fields(figure, "metric better=better reason code=reason.code value")
    assert found == {
        "metric": "tps",
        "better": "higher",
        "reason": "it is cold",
        "code": "x",
        "value": None,
    }
    with pytest.raises(AttributeError, match="colour"):
        codec.json_fields(figure, "metric colour")
