"""What an own postgresql.conf asks for, told apart from the lines around it."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from bedplate.engines.postgresql.settings import configuration_text, settings_of_own_file
from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.levels import Levels

INITDB = "max_connections = 100\nshared_buffers = 128MB\n"


def _rows(text: str) -> list[list[str | None]]:
    """As the server's own parser numbers them."""
    return [
        [line.split(" = ")[0], line.split(" = ")[1].strip("'"), str(number)]
        for number, line in enumerate(text.split("\n"), start=1)
        if " = " in line and not line.startswith("#")
    ]


def _whole(configuration: str | None) -> str:
    levels = ClusterLevels(settings=Levels({"work_mem": "16MB"}), configuration=configuration)
    return INITDB + configuration_text(levels, BuildLevels(), "/run/socket")


def test_only_its_own_lines_count_the_last_one_wins_and_what_bedplate_needs_is_left_out() -> None:
    text = _whole("shared_buffers = 96MB\nport = 6000\nmax_wal_size = 1GB\nshared_buffers = 64MB")
    assert {"shared_buffers": "64MB", "max_wal_size": "1GB"} == settings_of_own_file(text, _rows(text))


def test_without_one_nothing_is_asked() -> None:
    text = _whole(None)
    assert {} == settings_of_own_file(text, _rows(text))


def test_comments_that_look_like_the_frame_do_not_cut_it_short() -> None:
    text = _whole("# the plan's own postgresql.conf ends\nwork_mem = 1MB")
    assert {"work_mem": "1MB"} == settings_of_own_file(text, _rows(text))


_NAMES = st.text(string.ascii_lowercase, min_size=3, max_size=12).map("{}_x".format)


@given(st.dictionaries(_NAMES, st.integers(0, 9999).map(str)))
def test_every_setting_of_the_file_is_asked(settings: dict[str, str]) -> None:
    text = _whole("\n".join(f"{name} = {value}" for name, value in settings.items()))
    assert settings == settings_of_own_file(text, _rows(text))
