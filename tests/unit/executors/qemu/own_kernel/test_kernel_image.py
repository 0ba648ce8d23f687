from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.guests.fake_distribution import bz_image
from tests.support.guests.own_kernels import guest_configuration, kernel_with, packed_image, vmlinux

from bedplate.executors.qemu import own_kernel as kernel_image
from bedplate.executors.qemu.own_kernel import (
    Configuration,
    ImageUnread,
    embedded_configuration,
    has_pvh_entry,
    is_vmlinux,
    release_in_image,
)
from bedplate.host.command import Commands
from bedplate.host.requirement import find_tool
from bedplate.model.limits import FileLimit
from bedplate.units import MIB

SIZE = b"\x12\x34\x56\x00"


def by_program(*argv: str) -> Callable[[bytes], bytes]:
    def pack(kernel: bytes) -> bytes:
        if find_tool(argv[0]) is None:
            pytest.skip(f"needs {argv[0]}")
        return subprocess.run(argv, input=kernel, capture_output=True, check=True).stdout + SIZE

    return pack


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lambda kernel: lzma.compress(kernel, check=lzma.CHECK_CRC32) + SIZE,
    "lzma": lambda kernel: lzma.compress(kernel, format=lzma.FORMAT_ALONE) + SIZE,
    "bzip2": lambda kernel: bz2.compress(kernel) + SIZE,
    "zstd": by_program("zstd", "-q", "-c"),
    "lz4": by_program("lz4", "-q", "-l", "-c"),
}


def test_an_image_says_its_release(tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_bytes(bz_image("6.12.95+deb12-amd64").encode("latin-1"))
    assert release_in_image(image) == "6.12.95+deb12-amd64"


def test_a_vmlinux_says_its_release_in_its_banner(tmp_path: Path) -> None:
    image = tmp_path / "vmlinux"
    image.write_bytes(vmlinux(kernel_with(None, "6.13.0-rc3+"), pvh=True))
    assert is_vmlinux(image)
    assert release_in_image(image) == "6.13.0-rc3+"


@pytest.mark.parametrize("content", [b"", b"MZ", b"\x7fELF" + bytes(2000), bytes(0x202) + b"HdrS"])
def test_an_image_of_another_kind_says_nothing(tmp_path: Path, content: bytes) -> None:
    image = tmp_path / "vmlinuz"
    image.write_bytes(content)
    assert release_in_image(image) is None


@pytest.mark.parametrize("packer", PACKERS)
def test_the_configuration_is_found_however_the_kernel_is_packed(tmp_path: Path, packer: str) -> None:
    text = guest_configuration(EXT4_FS="y")
    image = tmp_path / "bzImage"
    image.write_bytes(packed_image("6.12.1", PACKERS[packer](kernel_with(text))))
    assert text == embedded_configuration(image, commands=Commands())


def test_the_configuration_is_found_in_a_vmlinux(tmp_path: Path) -> None:
    text = guest_configuration()
    image = tmp_path / "vmlinux"
    image.write_bytes(vmlinux(kernel_with(text), pvh=False))
    assert text == embedded_configuration(image, commands=Commands())


def test_an_image_without_a_configuration_has_none_and_a_new_one_is_read_anew(tmp_path: Path) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(packed_image("6.12.1", gzip.compress(kernel_with(None))))
    assert embedded_configuration(image, commands=Commands()) is None
    image.write_bytes(packed_image("6.12.1", gzip.compress(kernel_with("CONFIG_PSI=y\n"))))
    assert embedded_configuration(image, commands=Commands()) == "CONFIG_PSI=y\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "neither a bzImage nor a vmlinux"),
        (b"an image for another processor" * 100, "neither a bzImage nor a vmlinux"),
        (packed_image("6.12.1", gzip.compress(bytes(5000)))[:2650], "cut off"),
        (packed_image("6.12.1", b"\x1f\x8bdamaged" * 20), "cannot be unpacked"),
        (packed_image("6.12.1", b"another packer" * 20), "not known"),
    ],
)
def test_what_cannot_be_looked_into_is_said(tmp_path: Path, content: bytes, why: str) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(content)
    with pytest.raises(ImageUnread, match=why):
        embedded_configuration(image, commands=Commands())


@pytest.mark.parametrize("packer", PACKERS)
def test_a_kernel_that_is_larger_than_any_is_refused_and_not_unpacked_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packer: str
) -> None:
    monkeypatch.setattr(kernel_image, "KERNEL_LIMIT", FileLimit(4 * MIB, "70 MB"))
    image = tmp_path / "bzImage"
    image.write_bytes(packed_image("6.12.1", PACKERS[packer](bytes(64 * MIB))))
    tracemalloc.start()
    try:
        with pytest.raises(
            ImageUnread, match=r"bzImage cannot be unpacked: unpacked it has more than 4,194,304"
        ):
            embedded_configuration(image, commands=Commands())
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packer", PACKERS)
def test_no_more_of_a_kernel_is_unpacked_than_the_configuration_lies_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packer: str
) -> None:
    monkeypatch.setattr(kernel_image, "KERNEL_LIMIT", FileLimit(4 * MIB, "70 MB"))
    image = tmp_path / "bzImage"
    # The configuration is in two pieces of what is unpacked.
    kernel = bytes(MIB - 100) + kernel_with(guest_configuration()) + bytes(64 * MIB)
    image.write_bytes(packed_image("6.12.1", PACKERS[packer](kernel)))
    assert guest_configuration() == embedded_configuration(image, commands=Commands())


def test_words_without_a_configuration_behind_them_are_looked_at_a_few_times(tmp_path: Path) -> None:
    image = tmp_path / "vmlinux"
    image.write_bytes(vmlinux(b"IKCFG_ST\x1f\x8b\x08\0" * 2**18 + b"IKCFG_ED", pvh=False))
    assert embedded_configuration(image, commands=Commands()) is None


def test_a_kernel_that_asks_for_a_dictionary_of_gigabytes_is_refused(tmp_path: Path) -> None:
    packed = bytearray(PACKERS["lzma"](kernel_with(None)))
    packed[1:5] = (3 << 30).to_bytes(4, "little")
    image = tmp_path / "bzImage"
    image.write_bytes(packed_image("6.12.1", bytes(packed)))
    with pytest.raises(ImageUnread, match="bzImage cannot be unpacked: Memory usage limit"):
        embedded_configuration(image, commands=Commands())


@pytest.mark.parametrize("pvh", [True, False])
def test_the_note_by_which_qemu_begins_a_vmlinux_is_seen(tmp_path: Path, *, pvh: bool) -> None:
    image = tmp_path / "vmlinux"
    image.write_bytes(vmlinux(kernel_with(None), pvh=pvh))
    assert has_pvh_entry(image) is pvh


@given(st.binary(max_size=400))
def test_no_content_breaks_the_reading_of_an_elf_file(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    image = tmp_path_factory.getbasetemp() / "any-vmlinux"
    image.write_bytes(b"\x7fELF\x02\x01" + content)
    assert has_pvh_entry(image) in {True, False}
    release_in_image(image)


def test_options_are_read_as_the_build_writes_them() -> None:
    text = '# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=m\nCONFIG_D="a text"\nCONFIG_E=250\n# CONFIG_F=y\n'
    found = Configuration(text, "here")
    assert dict(found.values) == {"A": "n", "B": "y", "C": "m", "D": '"a text"', "E": "250"}
    assert found.value("F") == "n"
    assert found.has("B", as_module=False)
    assert found.has("C", as_module=True)
    assert not found.has("C", as_module=False)
