from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.units import GIB, MIB
from bedplate.workloads.bonnie.figures import STAGES
from bedplate.workloads.bonnie.visit import BonnieJob, BonnieProgress, BonnieStage

FILE_ONLY = ["putc", "put_block", "rewrite", "getc", "get_block", "seeks"]


def golden(repository: Path, name: str) -> bytes:
    return (repository / "tests/golden/bonnie" / name).read_bytes()


def test_the_argument_list_of_a_whole_run() -> None:
    job = BonnieJob(
        file_size_bytes=GIB,
        seed=11,
        per_character_bytes=3 * MIB,
        seeks=30000,
        files=65536,
    )
    expected = "bonnie++ -d /mnt/scratch -m bedplate -x 1 -z 11 -r 0 -s 1024:8192:30000:5 -f3 -n 64:0:0:1"
    assert expected.split() == job.argv(Path("/mnt/scratch"))


def test_stages_that_are_not_wanted_are_switched_off() -> None:
    small = BonnieJob(file_size_bytes=0, seed=1, files=1024)
    expected = "bonnie++ -d /d -m bedplate -x 1 -z 1 -r 0 -s 0 -f0 -n 1:0:0:1"
    assert expected.split() == small.argv(Path("/d"))
    assert tuple(STAGES[6:]) == small.stages()
    direct = BonnieJob(file_size_bytes=MIB, seed=1, direct=True)
    assert "-D" in direct.argv(Path("/d"))
    assert ["put_block", "rewrite", "get_block", "seeks"] == list(direct.stages())


def test_a_folder_with_a_space_stays_one_argument() -> None:
    assert "/mnt/a b" in BonnieJob(file_size_bytes=MIB, seed=1).argv(Path("/mnt/a b"))


def test_the_reading_side_has_the_same_stages() -> None:
    assert STAGES == tuple(BonnieStage)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"file_size_bytes": 0}, "nothing to do"),
        ({"file_size_bytes": MIB + 1}, "whole MiB"),
        ({"file_size_bytes": -MIB}, "whole MiB"),
        ({"file_size_bytes": 2**41}, "more than bonnie\\+\\+ can count"),
        ({"file_size_bytes": 2**40, "chunk_size_bytes": 256}, "more than bonnie\\+\\+ can count"),
        ({"chunk_size_bytes": 0}, "power of two"),
        ({"chunk_size_bytes": 12288}, "power of two"),
        ({"chunk_size_bytes": 128}, "power of two"),
        ({"chunk_size_bytes": 2 * MIB}, "power of two"),
        ({"per_character_bytes": 8 * MIB}, "at most the file_size"),
        ({"per_character_bytes": 100}, "whole MiB"),
        ({"direct": True, "per_character_bytes": MIB}, "single bytes"),
        ({"direct": True, "chunk_size_bytes": 512}, "use at least 4096"),
        ({"seeks": 0}, "seeks = 0"),
        ({"seeks": 10**8 + 1}, "seeks = 100000001"),
        ({"files": 1000}, "multiples of 1024"),
        ({"files": -1024}, "multiples of 1024"),
        ({"files": 2**25}, "at most 29019136"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": 2**32}, "seed"),
    ],
)
def test_what_bonnie_would_refuse_or_misread_is_refused_first(levels: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BonnieJob(**{"file_size_bytes": 4 * MIB, "seed": 1, **levels})  # type: ignore[arg-type]


def test_every_reason_is_given_at_once() -> None:
    with pytest.raises(ValueError, match=r"seeks = 0.*files = 5.*seed = -1"):
        BonnieJob(file_size_bytes=MIB, seeks=0, files=5, seed=-1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("full.err", list(STAGES)),
        ("limited.err", list(STAGES)),
        ("files-only.err", list(STAGES[6:])),
        ("full-disk.err", ["put_block"]),
        ("full-disk-files.err", ["seq_create"]),
        ("no-user.err", []),
    ],
)
def test_progress_names_each_stage_as_it_begins(repository: Path, name: str, expected: list[str]) -> None:
    assert expected == [
        stage for stage in BonnieProgress().feed(golden(repository, name)) if stage is not None
    ]


@settings(deadline=None)
@given(st.data())
def test_progress_is_the_same_however_the_text_is_cut(repository: Path, data: st.DataObject) -> None:
    text = golden(repository, "full.err")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    progress = BonnieProgress()
    begun = [
        stage
        for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
        for stage in progress.feed(text[begin:end])
    ]
    assert list(STAGES) == [stage for stage in begun if stage is not None]
    assert BonnieProgress().feed(text) == begun


@settings(deadline=None)
@given(st.lists(st.binary(max_size=80)))
def test_progress_takes_any_bytes(pieces: list[bytes]) -> None:
    progress = BonnieProgress()
    for piece in pieces:
        assert all(stage is None or stage in STAGES for stage in progress.feed(piece))


def test_progress_tells_when_a_stage_has_ended(repository: Path) -> None:
    steps = BonnieProgress().feed(golden(repository, "full.err"))
    at = steps.index(BonnieStage.SEEKS)
    # Before the seeks bonnie++ sleeps, and five seekers each say that they are done.
    assert [BonnieStage.GET_BLOCK, None, BonnieStage.SEEKS, BonnieStage.SEQ_CREATE] == steps[at - 2 : at + 2]
    assert steps[-1] is None
    assert len(STAGES) - 1 == steps.count(None)
