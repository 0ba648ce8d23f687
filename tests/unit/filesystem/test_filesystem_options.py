from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import PlanError, VerifyFailed
from bedplate.filesystem import btrfs, ext
from bedplate.filesystem.adapter import (
    Argument,
    OptionRules,
    compared,
    effective_facts,
    fact,
    joined,
    not_verifiable,
    parse_arguments,
    refuse,
    verify,
)
from bedplate.filesystem.f2fs import F2fs
from bedplate.filesystem.jfs import Jfs
from bedplate.filesystem.nilfs2 import Nilfs2
from bedplate.filesystem.ntfs import Ntfs3
from bedplate.filesystem.registry import FILESYSTEMS, filesystem_for
from bedplate.filesystem.reiserfs import Reiserfs
from bedplate.filesystem.xfs import Xfs
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.visit import ReadBack


def _ext4(repository: Path, name: str) -> set[str]:
    return set((repository / "tests/golden/filesystem" / name).read_text().split())


def _one(rules: OptionRules, word: str, shown: set[str]) -> ReadBack:
    (comparison,) = rules.compare((word,), shown, "here")
    return comparison


@pytest.mark.parametrize(
    ("word", "matches"),
    [
        ("barrier=1", True),
        ("barrier", True),
        ("barrier=0", False),
        ("nobarrier", False),
        ("data=ordered", True),
        ("data=journal", False),
        ("commit=5", True),
        ("commit=0", True),
        ("commit=7", False),
        ("delalloc", True),
        ("nodelalloc", False),
        ("nodiscard", True),
        ("discard", False),
        ("data_err=ignore", True),
        ("data_err=abort", False),
        ("sysvgroups", True),
        ("bsdgroups", False),
        ("no_prefetch_block_bitmaps", False),
        ("init_itable", True),
        ("nobh", False),
        ("oldalloc", False),
        ("journal_ioprio=3", None),
        ("defaults", True),
        ("nofail", None),
        ("x-systemd.automount", None),
    ],
)
def test_words_of_ext4_against_its_real_list(repository: Path, word: str, matches: bool | None) -> None:
    shown = _ext4(repository, "ext4-options.txt") | {"rw", "relatime"}
    assert matches is _one(ext.COMPLETE, word, shown).matches


def test_a_mismatch_says_what_is_in_force_instead(repository: Path) -> None:
    shown = _ext4(repository, "ext4-options-nobarrier-journal.txt")
    effective = {
        word: _one(ext.COMPLETE, word, shown).effective
        for word in ("barrier=1", "commit=5", "data=ordered", "delalloc", "nobh")
    }
    assert effective == {
        "barrier=1": "nobarrier",
        "commit=5": "commit=7",
        "data=ordered": "data=journal",
        "delalloc": "nodelalloc",
        "nobh": None,
    }


def test_an_option_that_ext2_silently_ignores_is_caught(repository: Path) -> None:
    ignored = _one(ext.COMPLETE, "nobh", _ext4(repository, "ext2-options-nobh.txt"))
    with pytest.raises(VerifyFailed, match=r"nobh.*was ignored"):
        verify([ignored])


@pytest.mark.parametrize(
    ("word", "shown", "matches"),
    [
        ("noatime", {"rw", "noatime"}, True),
        ("noatime", {"rw", "relatime"}, False),
        ("strictatime", {"rw"}, True),
        ("strictatime", {"rw", "relatime"}, False),
        ("relatime", {"rw", "relatime"}, True),
        ("sync", {"rw", "sync"}, True),
        ("sync", {"rw"}, False),
        ("async", {"rw"}, True),
        ("async", {"rw", "sync"}, False),
        ("nodev", {"rw", "nodev"}, True),
        ("dev", {"rw", "nodev"}, False),
        ("rw", {"ro"}, False),
        ("lazytime", {"rw"}, False),
    ],
)
def test_words_of_the_vfs(word: str, shown: set[str], matches: bool) -> None:
    assert matches is _one(OptionRules(), word, shown).matches


@pytest.mark.parametrize(
    ("word", "shown", "matches"),
    [
        ("logbsize=262144", {"logbsize=256k"}, True),
        ("allocsize=1m", {"allocsize=1024k"}, True),
        ("allocsize=64k", {"allocsize=1024k"}, False),
        ("nodiscard", {"rw"}, True),
        ("nodiscard", {"discard"}, False),
        ("attr2", {"rw", "inode64"}, False),
        ("ikeep", {"rw"}, False),
        ("uquota", {"usrquota"}, True),
        ("noquota", {"usrquota"}, False),
        ("dax", {"dax=never"}, False),
        ("dax=inode", {"rw"}, True),
        ("dax=inode", {"dax=always"}, False),
    ],
)
def test_words_of_xfs(word: str, shown: set[str], matches: bool) -> None:
    assert matches is _one(Xfs.rules, word, shown).matches


@pytest.mark.parametrize(
    ("word", "shown", "matches"),
    [
        ("barrier", {"rw"}, True),
        ("barrier", {"nobarrier"}, False),
        ("nobarrier", {"nobarrier"}, True),
        ("nodiscard", {"discard=async"}, False),
        ("nodiscard", {"rw"}, True),
        ("discard=sync", {"discard"}, True),
        ("discard=async", {"discard"}, False),
        ("compress=zstd", {"compress=zstd:3"}, True),
        ("compress=zstd:9", {"compress=zstd:3"}, False),
        ("compress", {"compress=zlib:3"}, True),
        ("compress=no", {"rw"}, True),
        ("compress=no", {"compress=lzo"}, False),
        ("commit=30", {"rw"}, True),
        ("commit=30", {"commit=5"}, False),
        ("thread_pool=4", {"rw"}, True),
        ("thread_pool=5", {"rw"}, False),
        ("nossd", {"ssd"}, False),
        ("nossd", {"rw"}, True),
        ("clear_cache", {"rw"}, None),
        ("nodatacow", {"compress=zstd:3"}, False),
    ],
)
def test_words_of_btrfs(word: str, shown: set[str], matches: bool | None) -> None:
    assert matches is _one(btrfs.option_rules(2), word, shown).matches


@given(st.text(min_size=1), st.sets(st.text(min_size=1), max_size=5))
def test_no_word_is_in_force_unless_it_or_its_spelling_is_shown(word: str, shown: set[str]) -> None:
    comparison = _one(OptionRules(), word, shown)
    if comparison.matches and comparison.effective != word:
        assert comparison.effective in shown


def test_a_word_asked_twice_is_compared_once() -> None:
    assert len(OptionRules().compare(("noatime", "noatime"), {"noatime"}, "here")) == 1


def test_every_mismatch_is_a_reason() -> None:
    comparisons = (compared("a", 1, 2, "x"), compared("b", 1, 1, "x"), compared("c", None, 9, "x"))
    with pytest.raises(VerifyFailed) as caught:
        verify((*comparisons, compared("d", True, None, "x"), not_verifiable("e", "w", "why")))
    assert len(caught.value.reasons) == 2


def test_effective_facts_tell_configurations_apart_and_nothing_else() -> None:
    plain = [
        compared("filesystem.barrier", None, True, "x"),
        fact("filesystem.uuid", "d3ae7b08-9cd6-439c-a13b-3c0c4a759946", "x"),
        fact("filesystem.absent", None, "x"),
    ]
    asked = [compared("filesystem.barrier", True, True, "x"), *plain[1:]]
    ignored = [*plain, _one(ext.COMPLETE, "nobh", {"rw"})]
    unseen = [*plain, _one(ext.COMPLETE, "journal_ioprio=3", {"rw"})]
    expected = {"filesystem.barrier": True}
    assert [expected] * 3 == [effective_facts(item) for item in (plain, asked, ignored)]
    assert expected != effective_facts(unseen)


def test_the_plans_lists_do_not_undo_bedplates_own() -> None:
    own = (Argument("-E", "nodiscard,lazy_itable_init=0"), Argument("-O", "^has_journal"))
    asked = parse_arguments(("-E stride=16", "-O", "^64bit", "-I512"), valued=ext.Ext.valued)
    words = joined(own, asked, lists=("-E", "-O"))
    assert (
        *("-E", "nodiscard,lazy_itable_init=0,stride=16"),
        *("-O", "^has_journal,^64bit"),
        *("-I", "512"),
    ) == words


def test_flags_are_read_as_getopt_does() -> None:
    found = parse_arguments(("-cvb 1024", "-Eone,two=2", "--csum=xxhash"), valued="bE")
    assert [item.text for item in found] == ["-c", "-v", "-b 1024", "-E one,two=2", "--csum xxhash"]
    assert found[3].parts == (("one", None), ("two", "2"))


@pytest.mark.parametrize("words", [("512",), ("-I",), ("-b", "1024", "4096")])
def test_a_stray_word_never_reaches_mkfs(words: tuple[str, ...]) -> None:
    with pytest.raises(PlanError):
        parse_arguments(words, valued="bI")


def test_an_external_journal_is_refused_without_its_device() -> None:
    with pytest.raises(PlanError, match="external"):
        refuse(FilesystemLevels("ext4", journal="external"))


def test_an_unknown_type_lists_the_known_ones() -> None:
    with pytest.raises(PlanError, match="bcachefs, btrfs, ext2, ext3, ext4, f2fs"):
        filesystem_for("ntfs")


@pytest.mark.parametrize("type_", sorted(FILESYSTEMS))
def test_needs_name_tool_and_package(type_: str) -> None:
    needs = filesystem_for(type_).needs
    assert needs
    assert all(need.name and need.package and type_ in need.reason for need in needs)


def test_mount_options_stand_before_the_plans_own() -> None:
    levels = FilesystemLevels(
        "ext4", barrier=False, mount_options=("noatime",), features=Levels(data="journal")
    )
    assert filesystem_for("ext4").mount_options(levels) == ("barrier=0", "data=journal", "noatime")


def test_btrfs_does_not_discard_by_itself_but_may_be_asked_to() -> None:
    mount_options = filesystem_for("btrfs").mount_options
    assert mount_options(FilesystemLevels("btrfs", features=Levels(nodatacow=True))) == (
        "nodiscard",
        "nodatacow",
    )
    assert mount_options(FilesystemLevels("btrfs", mount_options=("discard=async",))) == ("discard=async",)


def test_xfs_has_no_mount_option_for_barriers() -> None:
    assert filesystem_for("xfs").mount_options(FilesystemLevels("xfs", barrier=False)) == ()


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (
            FilesystemLevels("reiserfs", barrier=True, features=Levels(data="journal")),
            ("barrier=flush", "data=journal"),
        ),
        (FilesystemLevels("reiserfs", barrier=False), ("barrier=none",)),
        (
            FilesystemLevels("nilfs2", barrier=False, mount_options=("pp=60", "nogc", "order=strict")),
            ("nobarrier", "order=strict"),
        ),
        # On without a word, and no discard of its own.
        (FilesystemLevels("f2fs", barrier=True), ("nodiscard",)),
        (FilesystemLevels("f2fs", barrier=False, mount_options=("discard",)), ("nobarrier", "discard")),
        (FilesystemLevels("jfs"), ()),
        (FilesystemLevels("ntfs3", barrier=False), ()),
        (FilesystemLevels("ntfs-3g", mount_options=("big_writes",)), ("permissions", "big_writes")),
        (FilesystemLevels("ntfs-3g", mount_options=("permissions",)), ("permissions",)),
        (FilesystemLevels("bcachefs", barrier=False), ("journal_flush_disabled",)),
    ],
    ids=lambda value: value.type if isinstance(value, FilesystemLevels) else "",
)
def test_words_for_mount_of_the_rarer_types(levels: FilesystemLevels, words: tuple[str, ...]) -> None:
    assert words == filesystem_for(levels.type).mount_options(levels)


def test_a_device_for_a_journal_that_is_not_external_is_refused() -> None:
    with pytest.raises(PlanError, match="not external"):
        refuse(FilesystemLevels("ext4"), "/dev/loop1")
    refuse(FilesystemLevels("ext4", journal="external"), "/dev/loop1")


@pytest.mark.parametrize(
    ("rules", "word", "shown", "matches"),
    [
        (Reiserfs.rules, "barrier=flush", {"rw"}, True),
        (Reiserfs.rules, "barrier=flush", {"barrier=none"}, False),
        (Reiserfs.rules, "data=ordered", {"data=journal"}, False),
        (Reiserfs.rules, "notail", {"notail"}, True),
        (Reiserfs.rules, "notail", {"rw"}, False),
        (Reiserfs.rules, "conv", {"rw"}, None),
        (Nilfs2.rules, "order=strict", {"rw"}, False),
        (Nilfs2.rules, "order=relaxed", {"rw"}, True),
        (F2fs.rules, "nodiscard", {"discard"}, False),
        (F2fs.rules, "fsync_mode=strict", {"fsync_mode=posix"}, False),
        (F2fs.rules, "barrier", {"barrier"}, True),
        (F2fs.rules, "barrier", {"nobarrier"}, False),
        (Jfs.rules, "errors=continue", {"rw"}, False),
        (Jfs.rules, "errors=remount-ro", {"rw"}, True),
        (Jfs.rules, "nodiscard", {"discard=4096"}, False),
        (Ntfs3.rules, "prealloc", {"rw"}, False),
        (Ntfs3.rules, "noprealloc", {"rw"}, True),
    ],
)
def test_words_that_the_rarer_types_show(
    rules: OptionRules, word: str, shown: set[str], matches: bool | None
) -> None:
    assert matches is _one(rules, word, shown).matches
