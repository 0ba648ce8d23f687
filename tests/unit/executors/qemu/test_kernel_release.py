from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import PlanError
from bedplate.executors.qemu.kernels import accepts, check_asked, is_path, release_key


@pytest.mark.parametrize(
    ("asked", "release", "expected"),
    [
        ("6.1", "6.1.0-56-amd64", True),
        ("6.1", "6.12.95+deb12-amd64", False),
        ("6.12", "6.12.95+deb12-amd64", True),
        ("6.12.9", "6.12.95+deb12-amd64", False),
        ("6.12.95", "6.12.95+deb12-amd64", True),
        ("6.1.0-5", "6.1.0-56-amd64", False),
        ("6.1.0-56", "6.1.0-56-amd64", True),
        ("6.12.95+deb12-amd64", "6.12.95+deb12-amd64", True),
        ("6.12.95+deb12-amd64", "6.12.95+deb12", False),
        ("6.12.90+deb13", "6.12.90+deb13.1-amd64", True),
    ],
)
def test_a_release_answers_its_beginning_and_no_number_is_cut(
    asked: str, release: str, expected: bool
) -> None:
    assert expected is accepts(asked, release)


def test_newer_releases_are_later_whatever_their_spelling() -> None:
    expected = [
        "6.1.0-9-amd64",
        "6.1.0-56-amd64",
        "6.12.9+deb12-amd64",
        "6.12.90+deb13-amd64",
        "6.12.90+deb13.1-amd64",
        "6.12.117+deb12-amd64",
        "7.2.11+deb13-amd64",
    ]
    assert expected == sorted(expected[3:] + expected[:3], key=release_key)


def test_the_flavours_number_is_none_of_the_release() -> None:
    assert release_key("6.1.0-56-amd64") == (6, 1, 0, 56)
    assert release_key("6.8.0-45-generic") == (6, 8, 0, 45)
    assert release_key("6.18.0-rc3+") == (6, 18, 0)
    assert release_key("next") == ()


@given(st.text())
def test_no_text_breaks_the_key(text: str) -> None:
    assert all(number >= 0 for number in release_key(text))


@given(st.from_regex(r"[0-9]+\.[0-9]+(\.[0-9]+)?([+~][a-z]+[0-9]+)?(-[0-9]+)?(-amd64)?", fullmatch=True))
def test_a_release_is_taken_as_it_is_and_answers_itself(release: str) -> None:
    assert check_asked(release) == release
    assert accepts(release, release)
    assert not accepts(release, f"1{release}")


@pytest.mark.parametrize(
    "text", ["", "6", "latest", "-6.12", "6.12 amd64", "6.12;rm", "6.12\n", "v6.12", "٦.١"]
)
def test_what_names_no_kernel_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="names no kernel"):
        check_asked(text)


def test_a_path_is_told_from_a_release() -> None:
    assert is_path("/usr/src/linux")
    assert is_path("./linux")
    assert not is_path("6.12")
