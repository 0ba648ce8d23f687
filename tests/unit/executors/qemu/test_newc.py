from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.executors.qemu.slot import CpioEntry, archive, character_device, directory, regular_file

# bin dev dev/console dev/null bin/sh bin/three empty init | cpio -o -H newc --reproducible (GNU cpio 2.13)
GOLDEN = Path("golden/qemu/small.cpio")
SMALL = (
    directory("bin"),
    directory("dev"),
    character_device("dev/console", 5, 1),
    character_device("dev/null", 1, 3, 0o666),
    regular_file("bin/sh", b"#!/bin/sh\n", 0o755),
    regular_file("bin/three", b"abc", 0o640),
    regular_file("empty", b""),
    CpioEntry("init", stat.S_IFLNK | 0o777, b"bin/sh"),
)
TEXTS = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="/\0"), min_size=1, max_size=20
)


@dataclass(frozen=True)
class Read:
    """An entry as read back, by the format's own description."""

    name: str
    mode: int
    links: int
    data: bytes
    device: tuple[int, int]


def read(text: bytes) -> list[Read]:
    found: list[Read] = []
    at = 0
    while True:
        assert at % 4 == 0
        assert text[at : at + 6] == b"070701"
        fields = [int(text[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        name_end = at + 110 + fields[11]
        assert text[name_end - 1 : name_end] == b"\0"
        name = text[at + 110 : name_end - 1].decode()
        start = name_end + -name_end % 4
        end = start + fields[6]
        if name == "TRAILER!!!":
            assert set(text[start:]) <= {0}
            return found
        found.append(Read(name, fields[1], fields[4], text[start:end], (fields[9], fields[10])))
        assert set(text[end : end + -end % 4]) <= {0}
        at = end + -end % 4


def test_the_archive_is_gnu_cpios_byte_for_byte(repository: Path) -> None:
    assert archive(SMALL, mtime=1700000000) == (repository / "tests" / GOLDEN).read_bytes()


def test_equal_content_is_equal_bytes() -> None:
    assert archive(SMALL) == archive(tuple(SMALL))
    assert archive(SMALL) != archive((*SMALL[:-1], CpioEntry("init", SMALL[-1].mode, b"bin/ah")))


@given(
    st.dictionaries(TEXTS.filter(lambda name: name not in (".", "..", "TRAILER!!!")), st.binary(max_size=300))
)
def test_what_was_written_is_read_back(files: dict[str, bytes]) -> None:
    entries = [regular_file(name, data, 0o600) for name, data in files.items()]
    made = archive(entries)
    assert len(made) % 512 == 0
    expected = [Read(name, stat.S_IFREG | 0o600, 1, data, (0, 0)) for name, data in files.items()]
    assert expected == read(made)


def test_devices_and_folders_keep_their_kind() -> None:
    found = {item.name: item for item in read(archive(SMALL))}
    assert found["dev/console"].device == (5, 1)
    assert stat.S_ISCHR(found["dev/console"].mode)
    assert stat.S_ISDIR(found["bin"].mode)
    assert found["bin"].links == 2
    assert found["init"].data == b"bin/sh"


@pytest.mark.parametrize(
    "name", ["", "/init", "a//b", "bin/", "../x", "bin/../init", ".", "TRAILER!!!", "a\0b"]
)
def test_a_name_that_the_kernel_would_take_otherwise_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        archive([directory("bin"), directory("a"), regular_file(name, b"")])


def test_a_file_before_its_folder_and_a_name_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="before its folder bin"):
        archive([regular_file("bin/sh", b""), directory("bin")])
    with pytest.raises(ValueError, match="twice"):
        archive([directory("bin"), regular_file("bin", b"")])
