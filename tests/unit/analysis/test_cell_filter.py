from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.analysis.cell_filter import Candidate, choose, factor_named, select
from bedplate.analysis.comparison import matched
from bedplate.errors import PlanError


def cell(name: str, study: int = 0, /, **levels: str | int | bool) -> Candidate:
    known = {key.replace("__", "."): level for key, level in levels.items()}
    return Candidate(study, name, (name, f"{name} · fs 4 KiB", name.partition("-")[0]), known)


EXT4 = {"filesystem__type": "ext4", "cluster__settings__shared_buffers": "512MB"}
XFS = {"filesystem__type": "xfs", "cluster__settings__shared_buffers": "512MB"}
CELLS = (
    cell(
        "ext4-a",
        **EXT4,
        filesystem__barrier=True,
        build__block_size_bytes=2048,
        filesystem__block_size_bytes=4096,
    ),
    cell(
        "ext4-b",
        **EXT4,
        filesystem__barrier=False,
        build__block_size_bytes=2048,
        filesystem__block_size_bytes=4096,
    ),
    cell(
        "ext4-c",
        **EXT4,
        filesystem__barrier=True,
        build__block_size_bytes=8192,
        filesystem__block_size_bytes=4096,
    ),
    cell("xfs-a", **XFS, build__block_size_bytes=2048, filesystem__block_size_bytes=4096),
    cell("xfs-b", **XFS, build__block_size_bytes=8192, filesystem__block_size_bytes=4096),
)


def names(text: str, cells: tuple[Candidate, ...] = CELLS) -> list[str]:
    return [found.cell for found in select(text, cells).cells]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("filesystem.type=xfs", ["xfs-a", "xfs-b"]),
        ("type=ext4 barrier=false", ["ext4-b"]),
        ("type=ext4   barrier=no", ["ext4-b"]),
        ("type=ext4,xfs block_size=8k", ["ext4-c", "xfs-b"]),
        ("build.block_size_bytes=8192", ["ext4-c", "xfs-b"]),
        ("build.block_size='8 KiB'", ["ext4-c", "xfs-b"]),
        ("postgresql.block_size=2kB", ["ext4-a", "ext4-b", "xfs-a"]),
        ("block_size=2k,8k type=xfs", ["xfs-a", "xfs-b"]),
        ("ext4-b", ["ext4-b"]),
        ("ext4-b · fs 4 KiB", ["ext4-b"]),
        ("xfs", ["xfs-a", "xfs-b"]),
        ("shared_buffers=512MB type=xfs block_size=2k", ["xfs-a"]),
    ],
)
def test_a_filter_selects_what_it_says(text: str, expected: list[str]) -> None:
    assert expected == names(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty filter", "filesystem.type=ext4"]),
        ("   ", ["empty filter"]),
        ("type=zfs", ["filesystem.type is nowhere 'zfs'", "ext4, xfs"]),
        ("type=ext4,zfs", ["nowhere 'zfs'"]),
        ("colour=red", ["no factor is called 'colour'", "filesystem.type"]),
        ("zfs", ["'zfs' is neither name=level nor a cell"]),
        ("type=xfs barrier=no", ["type=xfs has 2, barrier=no has 1, none is in all"]),
        ("type='xfs", ["No closing quotation"]),
        ("barrier=1", ["filesystem.barrier is nowhere '1'", "yes, no"]),
    ],
)
def test_an_error_names_what_there_is(text: str, words: list[str]) -> None:
    with pytest.raises(PlanError) as error:
        select(text, CELLS)
    assert [] == [word for word in words if word not in str(error.value)], str(error.value)


def test_a_level_with_a_blank_is_named_as_it_may_be_copied() -> None:
    cells = (cell("new", **EXT4), cell("old", **EXT4, cluster__settings__age="small files"))
    with pytest.raises(PlanError, match="did you mean 'small files'") as error:
        select("age=small files", cells)
    (copied,) = re.findall("did you mean (.*)[?]", str(error.value))
    assert ["old"] == names(f"age={copied}", cells)


def test_the_block_sizes_go_by_the_words_of_labels_in_the_units_of_a_plan() -> None:
    cells = [
        cell(
            f"{fs}-{db}",
            **EXT4,
            build__engine="sqlite",
            cluster__settings__page_size=db,
            filesystem__block_size_bytes=fs,
        )
        for fs in (1024, 4096)
        for db in (4096, 8192)
    ]
    assert ["1024-8192"] == [found.cell for found in select("fs=1k db='8 kB'", cells).cells]
    assert ["4096-4096"] == [found.cell for found in select("fs=4096 db=4k", cells).cells]


def test_what_may_be_meant_is_a_factor_of_the_engine_that_ran() -> None:
    cells = [
        cell(str(size), **EXT4, build__engine="sqlite", cluster__settings__page_size=size)
        for size in (4096, 8192)
    ]
    with pytest.raises(PlanError) as error:
        select("pagesize=4k", cells)
    assert "did you mean sqlite.page_size?" in str(error.value) or "did you mean page_size?" in str(
        error.value
    )


def test_a_factor_of_one_engine_is_called_as_its_plan_has_it() -> None:
    cells = [
        cell(
            name,
            **EXT4,
            build__engine="postgresql",
            build__block_size_bytes=size,
            filesystem__block_size_bytes=size,
        )
        for name, size in (("a", 2048), ("b", 4096))
    ]
    for text, words in (
        ("block_size=2k", "postgresql.block_size or filesystem.block_size; write"),
        ("postgresql.block_size=7k", "postgresql.block_size is nowhere '7k'"),
        ("db=7k", "postgresql.block_size is nowhere '7k'"),
    ):
        with pytest.raises(PlanError) as error:
            select(text, cells)
        assert words in str(error.value)


@pytest.mark.parametrize("engine", ["postgresql", "sqlite"])
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("kernel.release", "kernel"),
        ("kernel.release", "machine.kernel"),
        ("device.memory_bytes", "machine.memory"),
        ("device.read_ahead_kb", "scratch_device.read_ahead"),
        ("device.scheduler", "scratch_device.scheduler"),
        ("device.throttle.read_bytes_per_s", "throttle.read_bandwidth"),
        ("build.engine", "engine"),
    ],
)
def test_a_factor_may_be_written_as_a_plan_has_it(engine: str, name: str, written: str) -> None:
    cells = [cell(level, **EXT4, **{"build.engine": engine, name: level}) for level in ("a", "b")]
    assert name == factor_named(written, cells)
    assert ["b"] == [found.cell for found in select(f"{written}=b", cells).cells]


def test_a_short_name_that_means_two_varying_factors_is_refused() -> None:
    other = cell("ext4-d", **EXT4, build__block_size_bytes=2048, filesystem__block_size_bytes=1024)
    with pytest.raises(
        PlanError,
        match=r"build.block_size or filesystem.block_size;|filesystem.block_size or build.block_size;",
    ):
        select("block_size=2k", (*CELLS, other))
    assert ["ext4-d"] == names("filesystem.block_size=1k", (*CELLS, other))


def test_a_level_that_nobody_asked_for_is_default_too() -> None:
    asked = Candidate(0, "a", ("a",), {"filesystem.block_size_bytes": 4096})
    unasked = Candidate(
        0, "b", ("b",), {"filesystem.block_size_bytes": 4096}, frozenset({"filesystem.block_size_bytes"})
    )
    assert ["b"] == names("block_size=default", (asked, unasked))
    assert ["a", "b"] == names("block_size=4k", (asked, unasked))


def test_levels_that_hold_commas_and_spaces_can_be_named() -> None:
    cells = (
        cell("a", filesystem__mount_options="noatime,nodiratime"),
        cell("b", filesystem__mount_options="noatime"),
    )
    assert ["a"] == names(
        "mount_options=noatime,nodiratime", (cells[0], cell("c", filesystem__mount_options="x y"))
    )
    assert ["c"] == names("mount_options='x y'", (*cells, cell("c", filesystem__mount_options="x y")))


def test_one_and_yes_are_two_levels() -> None:
    cells = (cell("a", filesystem__n=1), cell("b", filesystem__n=True))
    assert ["a"] == names("n=1", cells)
    assert ["b"] == names("n=yes", cells)


_LEVEL = st.one_of(
    st.booleans(),
    st.integers(0, 5),
    st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=6),
)
_NAME = st.sampled_from(
    ["filesystem.type", "filesystem.barrier", "build.block_size_bytes", "cluster.settings.a.b"]
)
_CELLS = st.lists(st.dictionaries(_NAME, _LEVEL, min_size=1), min_size=1, max_size=6).map(
    lambda found: tuple(Candidate(0, f"id{n}", (f"id{n}",), levels) for n, levels in enumerate(found))
)


@settings(deadline=None)
@given(_CELLS, st.data())
def test_every_level_can_be_written_and_selects_its_cell(
    cells: tuple[Candidate, ...], data: st.DataObject
) -> None:
    import shlex  # noqa: PLC0415

    chosen = data.draw(st.sampled_from(cells))
    text = " ".join(shlex.quote(f"{name}={level}") for name, level in chosen.levels.items())
    found = select(text, cells)
    assert chosen in found.cells
    assert frozenset(chosen.levels) == found.names


@settings(deadline=None)
@given(_CELLS, st.text(max_size=20))
def test_any_text_selects_cells_or_is_refused(cells: tuple[Candidate, ...], text: str) -> None:
    try:
        found = select(text, cells)
    except PlanError:
        return
    assert found.cells
    assert set(map(id, found.cells)) <= set(map(id, cells))


@settings(deadline=None)
@given(_CELLS, _NAME)
def test_a_whole_name_is_always_understood(cells: tuple[Candidate, ...], name: str) -> None:
    if any(name in found.levels for found in cells):
        assert name == factor_named(name, cells)


def pairs(baseline: str, contender: str, cells: tuple[Candidate, ...] = CELLS) -> list[tuple[str, str]]:
    found = matched(select(baseline, cells), select(contender, cells))
    return [(pair.baseline.cell, pair.contender.cell) for pair in found.pairs]


def test_pairs_differ_only_in_what_is_named() -> None:
    assert [("ext4-a", "ext4-b")] == pairs("barrier=yes", "barrier=no")
    assert [("ext4-a", "ext4-c"), ("xfs-a", "xfs-b")] == pairs("block_size=2k", "block_size=8k")
    found = matched(select("block_size=2k", CELLS), select("block_size=8k", CELLS))
    assert ["ext4-b"] == [alone.cell for alone in found.alone]
    assert () == found.one_sided


def test_a_factor_of_one_side_is_told() -> None:
    found = matched(select("type=ext4", CELLS), select("type=xfs", CELLS))
    assert ("filesystem.barrier",) == found.one_sided
    assert [("ext4-a", "xfs-a"), ("ext4-b", "xfs-a"), ("ext4-c", "xfs-b")] == [
        (pair.baseline.cell, pair.contender.cell) for pair in found.pairs
    ]


def test_cells_by_their_labels_are_a_pair_whatever_differs() -> None:
    assert [("ext4-b", "xfs-b")] == pairs("ext4-b", "xfs-b")


def test_no_cell_meets_itself_and_none_another_twice() -> None:
    assert [] == pairs("ext4-a", "ext4-a")
    found = pairs("type=ext4,xfs", "type=ext4,xfs")
    assert len({frozenset(pair) for pair in found}) == len(found)
    assert all(first != second for first, second in found)


def test_what_hinders_every_pair_is_named() -> None:
    found = matched(select("ext4-a", CELLS[:1]), select("ext4-b", CELLS))
    assert found.pairs
    levels = (
        {"filesystem__type": "ext4", "kernel__release": "6.1"},
        {"filesystem__type": "xfs", "kernel__release": "6.12"},
    )
    cells = (cell("a-1", **levels[0]), cell("b-1", **levels[1]))
    apart = matched(select("type=ext4", cells), select("type=xfs", cells))
    assert ((), ("kernel.release",)) == (apart.pairs, apart.hindering)


def test_a_partner_of_the_own_study_comes_first_and_studies_are_paired_when_named() -> None:
    cells = tuple(
        cell(f"{kind}-{study}", study, filesystem__type=kind, study=f"s{study}")
        for study in (0, 1)
        for kind in ("ext4", "xfs")
    )
    assert [("ext4-0", "xfs-0"), ("ext4-1", "xfs-1")] == pairs("type=ext4", "type=xfs", cells)
    assert [("ext4-0", "ext4-1"), ("xfs-0", "xfs-1")] == pairs("study=s0", "study=s1", cells)
    lone = (cells[0], cells[3])
    assert [("ext4-0", "xfs-1")] == pairs("type=ext4", "type=xfs", lone)


def test_a_setting_of_lmdb_may_be_named_as_in_the_plan() -> None:
    cells = (cell("a", cluster__settings__sync="full"), cell("b", cluster__settings__sync="nosync"))
    assert ["b"] == names("lmdb.sync=nosync", cells)
    assert "cluster.settings.sync" == factor_named("lmdb.sync", cells)
    assert ["b"] == names("sync=nosync", cells)


def lacking_of(*texts: str) -> tuple[list[str], dict[tuple[str, bool], list[str]]]:
    chosen, lacking = choose(texts, CELLS)
    own = {(each.factor, each.kept): [one.cell for one in each.cells] for each in lacking}
    return [one.cell for one in chosen], own


def test_a_choice_keeps_what_cannot_have_the_factor_where_its_level_is_the_usual_one() -> None:
    barrier = "filesystem.barrier"
    assert (["ext4-a", "ext4-c", "xfs-a", "xfs-b"], {(barrier, True): ["xfs-a", "xfs-b"]}) == lacking_of(
        "barrier=yes"
    )
    assert (["ext4-b"], {(barrier, False): ["xfs-a", "xfs-b"]}) == lacking_of("barrier=no")
    # What another factor drops is not said to lack one.
    assert (["ext4-b"], {}) == lacking_of("barrier=no type=ext4")
    assert (["xfs-b"], {(barrier, True): ["xfs-b"]}) == lacking_of("barrier=yes type=xfs build.block_size=8k")
    # Nor what another filter of the choice has.
    assert (["ext4-b", "xfs-a", "xfs-b"], {}) == lacking_of("barrier=no", "type=xfs")
    # A side of a comparison has the level that it names.
    assert ["ext4-a", "ext4-c"] == names("barrier=yes")


def test_a_durability_class_is_chosen_by_its_word() -> None:
    cells = tuple(
        Candidate(0, name, (name,), {"filesystem.type": "ext4"}, classes=classes)
        for name, classes in (
            ("a", ("durable",)),
            ("b", ("unsafe", "unsafe / durable")),
            ("c", ("bounded loss",)),
        )
    )
    assert ["a"] == names("class=durable", cells)
    assert ["b"] == names("class='unsafe / durable'", cells)
    assert ["b", "c"] == names("durability=unsafe,bounded-loss type=ext4", cells)
    assert frozenset() == select("class=durable", cells).names
    with pytest.raises(
        PlanError, match="no cell has the durability class 'unknown'; there are durable, unsafe"
    ):
        select("class=unknown", cells)
