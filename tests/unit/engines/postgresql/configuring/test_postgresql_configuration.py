"""Settings: written so that the server reads what was asked, and compared in the server's own unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.engines.postgresql.settings import (
    compare_settings,
    configuration_text,
    same_value,
    scaled_block_settings,
    scaled_page_costs,
)
from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.levels import Levels


@pytest.mark.parametrize(
    ("asked", "setting", "unit", "vartype", "same"),
    [
        ("128MB", "16384", "8kB", "integer", True),
        ("128MB", "131072", "1kB", "integer", True),
        ("128MB", "16385", "8kB", "integer", False),
        ("30s", "30", "s", "integer", True),
        ("4min", "240", "s", "integer", True),
        ("30", "30", "s", "integer", True),
        ("0.9", "0.9", None, "real", True),
        ("0.9", "0.5", None, "real", False),
        ("off", "off", None, "bool", True),
        ("false", "off", None, "bool", True),
        ("on", "off", None, "bool", False),
        ("on", "on", None, "enum", True),
        ("remote_apply", "on", None, "enum", False),
        ("io_uring", "worker", None, "enum", False),
        ("pg_catalog", "pg_catalog", None, "string", True),
        ("-1", "-1", "8kB", "integer", True),
        ("nonsense", "5", "s", "integer", False),
    ],
)
def test_a_setting_is_compared_in_the_servers_unit(
    asked: str, setting: str, unit: str | None, vartype: str, same: bool
) -> None:
    assert same == same_value(asked, setting, unit, vartype)


def test_a_setting_that_waits_for_a_restart_is_not_in_force() -> None:
    rows = [["shared_buffers", "16384", "8kB", "integer", "128MB", "t"]]
    assert [False] == [item.matches for item in compare_settings({"shared_buffers": "128MB"}, rows)]


def test_a_setting_that_the_server_does_not_have_is_a_mismatch() -> None:
    (found,) = compare_settings({"io_method": "worker"}, [])
    assert (False, None) == (found.matches, found.effective)


def test_block_counted_settings_keep_their_bytes() -> None:
    small = scaled_block_settings(ClusterLevels(), BuildLevels(block_size_bytes=1024))
    assert "800" == small["bgwriter_lru_maxpages"]
    assert "100" == scaled_block_settings(ClusterLevels(), BuildLevels())["bgwriter_lru_maxpages"]
    assert (
        "25"
        == scaled_block_settings(ClusterLevels(), BuildLevels(block_size_bytes=32768))[
            "bgwriter_lru_maxpages"
        ]
    )


def test_the_servers_own_limit_bounds_what_is_scaled() -> None:
    small = scaled_block_settings(ClusterLevels(), BuildLevels(block_size_bytes=1024))
    assert ("256", "256") == (small["bgwriter_flush_after"], small["checkpoint_flush_after"])


def test_what_the_plan_sets_itself_is_not_scaled() -> None:
    levels = ClusterLevels(settings=Levels(bgwriter_lru_maxpages="300"))
    assert "bgwriter_lru_maxpages" not in scaled_block_settings(levels, BuildLevels(block_size_bytes=1024))


def test_what_an_own_file_sets_wins_over_what_is_scaled() -> None:
    levels = ClusterLevels(configuration="effective_cache_size = 9GB\n", scaled_block_settings=True)
    lines = configuration_text(levels, BuildLevels(block_size_bytes=1024), "/run/socket").splitlines()
    values = [line.split("=")[1].strip(" '") for line in lines if line.startswith("effective_cache_size")]
    assert ["4194304", "9GB"] == values


@given(st.text(alphabet=st.characters(blacklist_characters="\n\r\0"), max_size=60))
def test_no_value_can_end_its_line_or_its_quotes(value: str) -> None:
    levels = ClusterLevels(settings=Levels(search_path=value))
    text = configuration_text(levels, BuildLevels(), "/run/s")
    (line,) = [line for line in text.split("\n") if line.startswith("search_path = ")]
    inner = line.removeprefix("search_path = '")[:-1]
    assert value == inner.replace("''", "'").replace("\\\\", "\\")


@pytest.mark.parametrize("value", ["a\nlisten_addresses = '*'", "a\rb", "a\0b"])
def test_a_line_break_in_a_value_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        configuration_text(ClusterLevels(settings=Levels(search_path=value)), BuildLevels(), "/run/s")


def test_what_bedplate_needs_stands_last_and_so_wins() -> None:
    levels = ClusterLevels(configuration="listen_addresses = '*'\nlog_checkpoints = off\n")
    lines = configuration_text(levels, BuildLevels(), "/run/s").splitlines()
    assert "listen_addresses = ''" == [line for line in lines if line.startswith("listen_addresses")][-1]
    assert "log_checkpoints = 'on'" == [line for line in lines if line.startswith("log_checkpoints")][-1]


@pytest.mark.parametrize(
    ("block_kib", "settings", "sequential", "random"),
    [
        (8, {}, "1", "4"),
        (1, {}, "0.125", "0.5"),
        (32, {}, "4", "16"),
        (4, {"random_page_cost": "1.1"}, "0.5", "0.55"),
        (16, {"seq_page_cost": "2", "random_page_cost": 3}, "4", "6"),
    ],
)
def test_page_costs_follow_the_block_size(
    block_kib: int, settings: dict[str, str], sequential: str, random: str
) -> None:
    levels = ClusterLevels(settings=Levels(settings), scaled_page_costs=True)
    build = BuildLevels(block_size_bytes=block_kib * 1024)
    assert {"seq_page_cost": sequential, "random_page_cost": random} == scaled_page_costs(levels, build)
    lines = configuration_text(levels, build, "/run/s").splitlines()
    last = {line.split(" = ")[0]: line for line in lines}
    assert f"random_page_cost = '{random}'" == last["random_page_cost"], "it wins over the plan's own line"
