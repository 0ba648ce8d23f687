"""An own postgresql.conf as the server reads it, and what of it never reaches one."""

from __future__ import annotations

import pytest

from bedplate.engines.postgresql.settings import (
    CONTROLLED,
    configuration_lines,
    controlled_in,
    own_configuration_text,
    own_settings,
    refused_library,
    syntax_errors,
    without_controlled,
)
from bedplate.engines.postgresql.settings import configuration_text as written
from bedplate.model.cell import BuildLevels, ClusterLevels

SPELLINGS = ("{}'x'", "{} 'x'", "{}='x'", "{} = 'x'", "  {}\t=\t'x' # why", "{}\f'x'", "{}'x", "{} x", "{}=x")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", CONTROLLED)
def test_what_bedplate_decides_is_seen_and_taken_out_however_it_is_spelled(name: str, spelling: str) -> None:
    for spelled in (name, name.upper()):
        line = spelling.format(spelled)
        assert (name,) == controlled_in(line)
        text = f"work_mem = 4MB\n{line}\nport = 1"
        kept = without_controlled(text)
        assert ["work_mem"] == [found for _, found, _ in configuration_lines(kept)]
        assert text.count("\n") == kept.count("\n")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", ["include", "include_dir", "include_if_exists"])
def test_includes_are_refused_however_they_are_spelled(name: str, spelling: str) -> None:
    with pytest.raises(ValueError, match="includes are not followed"):
        own_configuration_text(spelling.format(name))


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\x1c", "\x0b"])
def test_a_newline_alone_ends_a_line(sign: str) -> None:
    (line,) = configuration_lines(f"search_path = 'a{sign}include b'")
    assert (0, "search_path", f"a{sign}include b") == line


def test_what_may_start_a_program_is_set_to_nothing_behind_the_plans_own_lines() -> None:
    commands = [name for name, why in CONTROLLED.items() if "start a program" in why]
    assert {""} == {own_settings("/s")[name] for name in commands}
    text = written(
        ClusterLevels(configuration="\n".join(f"{name}'touch /x'" for name in commands)), BuildLevels(), "/s"
    )
    in_force = {name: value for _, name, value in configuration_lines(text)}
    assert {""} == {in_force[name] for name in commands}
    assert not [value for _, _, value in configuration_lines(text) if "touch" in value]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared_preload_libraries", "/tmp/evil"),
        ("shared_preload_libraries", "pg_stat_statements, /tmp/evil"),
        ("shared_preload_libraries", "$libdir/../evil"),
        ("session_preload_libraries", '"/tmp/evil"'),
        ("local_preload_libraries", "$libdir/plugins/evil"),
        ("oauth_validator_libraries", "evil"),
        ("some_library", "evil"),
        ("jit_provider", "/tmp/evil"),
        ("dynamic_library_path", "/tmp:$libdir"),
        ("extension_control_path", "/tmp"),
    ],
)
def test_a_library_that_is_not_postgresqls_own_is_refused(name: str, value: str) -> None:
    assert f"{name} loads code into the server" in str(refused_library(name, value))
    with pytest.raises(ValueError, match="loads code into the server"):
        own_configuration_text(f"{name}'{value}'")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared_preload_libraries", "pg_stat_statements, $libdir/auto_explain"),
        ("shared_preload_libraries", ""),
        ("dynamic_library_path", "$libdir"),
        ("jit_provider", "llvmjit"),
        ("shared_buffers", "/tmp/evil"),
    ],
)
def test_contribs_and_what_loads_nothing_may_stand(name: str, value: str) -> None:
    assert refused_library(name, value) is None


# Each held against PostgreSQL 15 and 18 (tests/host/test_settings_of_a_build.py).
TAKEN = [
    "", "  # c", "work_mem = 4MB", "work_mem 4MB#c", "work_mem=4MB", "WORK_MEM\t'4 MB' # c", "work_mem4 4", "include'x'", "a = on\r",
    "a.b = 1", "a = 'it''s'", r"a = 'it\'s'", "a = 0x1F", "a = 0x1FkB", "a = -1.5e5", "a = .5", "a = 5.", "a = .", "a = C.UTF-8", "a = b:c/d-e",
    "a = ''", "é.b = é", "a = '#'", "a = +1kB",
]  # fmt: skip
NOT_TAKEN = {
    "shared_buffers = 256 MB": "write shared_buffers = '256 MB'",
    "work_mem = 1.5GB # c": "write work_mem = '1.5GB'",
    "log_directory /var/log": "write log_directory = '/var/log'",
    "log_directory = /var/log": "write log_directory = '/var/log'",
    "log_filename = postgresql.log": "write log_filename = 'postgresql.log'",
    'search_path = "$user", public': "write search_path = '\"$user\", public'",
    "x = 1;": "write x = '1'",
    "x = on,off": "write x = 'on,off'",
    **dict.fromkeys(("a = 'b", "a = 'b'c", "a", "a =", "= 1", "a-b = 1", "a.b.c = 1", "1a = 1", "a = = 1", "[mysqld]", "a = '\\'",
                     "a\f'x'", "a = 'x'\f", "a = 1 b", "a = \\a", "a = *", "a: 1"), ""),
}  # fmt: skip


@pytest.mark.parametrize("line", TAKEN)
def test_a_line_that_the_server_takes_is_taken(line: str) -> None:
    assert [] == list(syntax_errors(line))


@pytest.mark.parametrize("line", NOT_TAKEN)
def test_a_line_that_it_does_not_take_is_refused_with_the_way_out(line: str) -> None:
    (reason,) = syntax_errors(f"work_mem = 4MB\n{line}\n# c\n")
    assert "line 2: the server does not take" in reason
    assert NOT_TAKEN[line] in reason


def test_all_lines_of_an_own_configuration_are_named_at_once_and_none_that_bedplate_takes_out() -> None:
    with pytest.raises(ValueError, match=r"line 1.*line 3.*line 4") as raised:
        own_configuration_text("work_mem = 4 MB\nlog_filename = postgresql.log\na b c\n[x]\n")
    assert "line 2" not in str(raised.value)


@pytest.mark.parametrize(
    ("quoted", "value"),
    [("it''s", "it's"), (r"it\'s", "it's"), (r"a\\b", r"a\b"), (r"\t", "\t"), (r"\101", "A"), (r"\x", "x")],
)
def test_a_quoted_value_is_what_the_server_makes_of_it(quoted: str, value: str) -> None:
    ((_, _, found),) = configuration_lines(f"a = '{quoted}'")
    assert value == found
