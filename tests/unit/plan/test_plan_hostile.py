"""A plan from anywhere: nothing in it may reach another device, file or terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import PlanError
from bedplate.model.plan import Plan
from bedplate.plan.load import _document, load_plan

LoadText = Callable[[str], Plan]
ReasonsOf = Callable[[str], tuple[str, ...]]
Edited = Callable[..., str]


@pytest.mark.parametrize(
    "path",
    [
        "/dev/sda",
        "/dev/sda1",
        "/dev/nvme0n1",
        "/dev/loop3",
        "/dev/dm-0",
        "/dev/md127",
        "/dev/disk/by-uuid/x",
        "/dev/disk/by-label/x",
        "/dev/disk/by-id/../../sda",
        "/dev/block/8:0",
        "/etc/passwd",
        "/dev/disk/by-id/a b",
        "/dev/disk/by-id/a\\u0000",
        "sda",
        "",
    ],
)
def test_a_name_that_may_mean_another_disk_tomorrow_is_refused(
    reasons_of: ReasonsOf, minimal: str, path: str
) -> None:
    (reason,) = reasons_of(minimal.replace('image_size = "4 GB"', f'device = "{path}"'))
    assert reason.startswith("p.toml: scratch_device.device: found ")


@pytest.mark.parametrize(
    "path",
    [
        "/dev/disk/by-id/ata-X_1",
        "/dev/disk/by-path/pci-0:1",
        "/dev/mapper/vg-lv",
        "/dev/md/data",
        "/dev/vg/lv",
    ],
)
def test_stable_names_of_devices_are_accepted(load_text: LoadText, minimal: str, path: str) -> None:
    plan = load_text(minimal.replace('image_size = "4 GB"', f'device = "{path}"'))
    assert (path, None) == (plan.scratch_device.device, plan.scratch_device.image_bytes)


@pytest.mark.parametrize(
    "word",
    [
        "-o",
        "noatime,ro",
        "a b",
        "a\\u0000",
        "logdev=x",
        "journal_dev=0x803",
        "device=/dev/sda",
        "bind",
        "remount",
        "loop",
        "ro",
        "X-mount.mkdir",
        "subdir=../x/y",
        "",
        "x" * 10_000,
    ],
)
def test_a_mount_option_smuggles_nothing(reasons_of: ReasonsOf, edited: Edited, word: str) -> None:
    (reason,) = reasons_of(edited(f'mount_options = ["noatime", "{word}"]', "filesystem"))
    assert reason.startswith("p.toml: filesystem[0].mount_options: found ")
    assert len(reason) < 500


@pytest.mark.parametrize(
    "words",
    [
        ["/dev/sda"],
        ["-O", "^64bit", "sda"],
        ["sda"],
        ["-q", "/dev/sda"],
        ["-J", "device=UUID=x"],
        ["-Jdevice=UUID=x"],
        ["-l", "size=64m,logdev=sdb"],
        ["--", "x"],
        ["-O", "a b"],
        ["-O", "a\\u0000"],
        ["-n"],
        ["-b", "4096"],
        ["-d", "tree"],
        ["--version"],
        ["-L", "mine"],
        [""],
    ],
)
def test_mkfs_options_smuggle_nothing(reasons_of: ReasonsOf, edited: Edited, words: list[str]) -> None:
    listed = ", ".join(f'"{word}"' for word in words)
    (reason,) = reasons_of(edited(f"mkfs_options = [{listed}]", "filesystem"))
    assert reason.startswith("p.toml: filesystem[0]")


def test_ordinary_mkfs_options_are_accepted(load_text: LoadText, edited: Edited) -> None:
    line = 'mkfs_options = ["-O", "^metadata_csum,fast_commit", "-J", "size=64", "-E", "stride=2"]'
    plan = load_text(edited(line, "filesystem"))
    assert plan.filesystems[0].mkfs_options[:2] == ("-O", "^metadata_csum,fast_commit")


def test_the_same_option_may_be_right_for_another_type(load_text: LoadText, edited: Edited) -> None:
    text = edited('mkfs_options = ["-n", "16384"]', "filesystem").replace('"ext4"', '"btrfs"')
    assert load_text(text).filesystems[0].mkfs_options == ("-n", "16384")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\\setshell x rm\nSELECT 1;", "shell"),
        (b"  \\shell rm", "shell"),
        (b"", "empty"),
        (b"SELECT '\0'", "NUL"),
        (b"\xff\xfe", "UTF-8"),
        (b"-" * (2**20 + 1), "larger"),
    ],
)
def test_an_own_script_is_checked_before_it_runs(
    reasons_of: ReasonsOf, edited: Edited, tmp_path: Path, content: bytes, why: str
) -> None:
    (tmp_path / "mine.sql").write_bytes(content)
    (reason,) = reasons_of(edited('script = "mine.sql"', "workload.run"))
    assert why in reason


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "link", "fifo", ".", "a\\u0000b", "x" * 400])
def test_only_regular_files_below_the_plan_are_read(
    reasons_of: ReasonsOf, minimal: str, tmp_path: Path, name: str
) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "fifo")
    (reason,) = reasons_of(f'{minimal}[postgresql]\nconfiguration = "{name}"\n')
    assert reason.startswith("p.toml: postgresql.configuration: found ")


def test_a_configuration_with_includes_is_refused(
    reasons_of: ReasonsOf, minimal: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.conf").write_text("include_dir = 'conf.d'\n")
    (reason,) = reasons_of(f'{minimal}[postgresql]\nconfiguration = "mine.conf"\n')
    assert "includes are not followed" in reason


@pytest.mark.parametrize(
    "text",
    [
        "",
        "title",
        "title = ",
        "\0",
        "title = 'a'\ntitle = 'b'",
        "a = " + "[" * 100_000,
        "a = " + "{b=" * 100_000,
        "a = " + "[" * 200 + "]" * 200,
        "a = " + "9" * 5000,
        "a = 0x" + "f" * 9000,
        ".".join(["a"] * 5000) + " = 1",
        "x" * 10_000 + " = 1",
        "x" * 1_000_001,
        "[postgresql.settings]\n" + ".".join(["a"] * 3000) + " = 1",
        "[postgresql.settings]\nb = [" + "{a" + ".a" * 3000 + "=1}]",
        '"<script>alert(1)</script>" = "[bold]"',
        '"\\u001b[31m" = "\\u001b[31m"',
        "title = 2026-01-01",
        "filesystem = 5\nworkload = {}\nscratch_device = []\npostgresql = 1\ncanary = false",
        "[filesystem]\ntype = 'ext4'",
        "[[scratch_device]]",
        "[[filesystem]]\ntype = [[], {}]",
        "\ufeff" + "title = 1",
    ],
)
def test_hostile_text_gives_short_printable_reasons(reasons_of: ReasonsOf, text: str) -> None:
    for reason in reasons_of(text):
        assert len(reason) < 700
        assert reason.replace("\n", "").isprintable()


def test_a_thousand_errors_are_cut_with_their_count(reasons_of: ReasonsOf, minimal: str) -> None:
    reasons = reasons_of("\n".join(f"wrong{number} = 1" for number in range(1000)) + minimal)
    assert len(reasons) == 101
    assert reasons[-1] == "p.toml: and 900 more"


@given(st.text(max_size=300))
def test_any_text_is_a_plan_or_a_plan_error(text: str) -> None:
    with pytest.raises(PlanError):
        load_plan(text, source="p.toml", directory=Path("/nonexistent"))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["vary", "type", "scale", "run", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    key=st.sampled_from(
        ["title", "scratch_device", "filesystem", "postgresql", "workload", "machine", "canary"]
    ),
    value=_VALUES,
)
def test_any_value_under_any_key_is_refused_in_words(key: str, value: object) -> None:
    with pytest.raises(PlanError) as caught:
        _document({key: value}, {"directory": Path("/nonexistent"), "files": {}, "archives": {}})
    assert all(reason.isprintable() for reason in caught.value.reasons)
