"""No plan ends in a traceback: what is wrong is said in bounded, printable sentences that name the key."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from tests.support.studies.plan_mutations import mutated
from tests.support.studies.plan_values import with_every_type

from bedplate.errors import PlanError
from bedplate.plan.estimate import estimate
from bedplate.plan.expand import expand
from bedplate.plan.fields import departures
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.toml import MOST_CHARACTERS, parse_toml

ReasonsOf = Callable[[str], tuple[str, ...]]
Edited = Callable[..., str]

PLANS = Path(__file__).resolve().parents[3] / "plans"
FIO = """
title = "fio"
[scratch_device]
image_size = "4 GB"
[[filesystem]]
type = "ext4"
[[workload]]
type = "fio"
[[workload.job]]
job = "wal-append"
"""


def taken_to_the_end(text: str, directory: Path) -> bool:
    """Whether it is a plan, of which everything is made that `bedplate plan` shows; PlanError's words are looked at."""
    try:
        plan = load_plan(text, source="p.toml", directory=directory)
        expansion = expand(plan, None)
        schedule = order(plan, expansion, executor="local")
        estimate(plan, expansion, schedule, executor="local")
    except PlanError as error:
        for reason in error.reasons:
            assert len(reason) < 2200, reason
            assert reason.replace("\n", "").isprintable(), reason
        return False
    return True


def test_a_few_hundred_mutated_plans_end_in_a_plan_or_in_sentences(tmp_path: Path) -> None:
    texts = (FIO, *(path.read_text() for path in sorted(PLANS.glob("*.toml"))))
    small = tuple(text for text in texts if len(text) < 2500)
    taken = [taken_to_the_end(text, tmp_path) for text in mutated(small, seed=13, count=300)]
    assert 20 < sum(taken) < 280  # else they show little of one side


def test_every_type_of_value_at_every_key_ends_in_a_plan_or_in_sentences() -> None:
    texts = (FIO, *(path.read_text() for path in sorted(PLANS.glob("*.toml"))))
    # A part of them, in which each key and each type is: `./torture` has all.
    for words, text in islice(with_every_type(texts), 0, None, 17):
        try:
            taken_to_the_end(text, PLANS)
        except Exception as error:
            raise AssertionError(words) from error


@pytest.mark.parametrize("value", ["{ a = 1 }", "[1]", "[{ a = 1 }]", "{ vary = [[1], { a = 1 }] }"])
def test_a_setting_of_an_own_engine_that_is_no_single_value_is_refused_by_its_key(
    reasons_of: ReasonsOf, minimal: str, value: str
) -> None:
    reasons = reasons_of(f'{minimal}[engine]\npath = "engine"\nsettings = {{ a = {value} }}\n')
    assert any("engine.settings.a" in reason for reason in reasons)


def test_levels_of_two_engines_with_one_name_have_any_types() -> None:
    ((first, second),) = departures([{"lmdb": {"sync": 1}, "sqlite": {"sync": "a"}}])
    assert first[0] == second[0]


def test_a_table_of_cells_that_matches_none_is_shown_without_control_characters(
    reasons_of: ReasonsOf, minimal: str
) -> None:
    text = minimal.replace("scale = 10", 'cells = [{ filesystem.type = "\\u0000" }]')
    (reason,) = reasons_of(text)
    assert "no cell of the plan has filesystem.type '\\x00'" in reason


@pytest.mark.parametrize("value", ['{ vary = ["wal-append"] }', "{}", "[]", "5"])
def test_a_ready_job_is_one_name(reasons_of: ReasonsOf, value: str) -> None:
    (reason,) = reasons_of(FIO.replace('"wal-append"', value))
    assert reason.startswith("p.toml: workload[0].job")
    assert "write a [[workload.job]] for each of them" in reason


@pytest.mark.parametrize("name", ["checkpoint_completion_target", "checkpoint_timeout"])
@pytest.mark.parametrize("value", ["1e307", '"inf"', '"nan"', f'"{"9" * 400}"', "-1", "0"])
def test_a_setting_without_end_is_left_to_the_server(
    minimal: str, tmp_path: Path, name: str, value: str
) -> None:
    text = minimal.replace("read-only", "read-write") + f"[postgresql.settings]\n{name} = {value}\n"
    assert taken_to_the_end(text, tmp_path)


@pytest.mark.parametrize("value", [f'"{"9" * 400} GB"', f'"{"9" * 400} s"'])
def test_sizes_and_times_without_end_are_refused(reasons_of: ReasonsOf, value: str) -> None:
    (reason,) = reasons_of(f"{FIO}size = {value}\nruntime = {value}\n")
    assert "fio option size" in reason
    assert "fio option runtime" in reason


@pytest.mark.parametrize(
    "table",
    [
        '"\\u0000" = { vary = [] }',
        '"\\u001b[31m" = { vary = [1, 1] }',
        'cells = [{ filesystem = { "\\u0000" = [] } }]',
    ],
)
def test_a_key_of_control_characters_is_shown_without_them(reasons_of: ReasonsOf, table: str) -> None:
    reasons = reasons_of(FIO + table + "\n")
    assert reasons
    assert all(reason.replace("\n", "").isprintable() for reason in reasons)


def test_hundreds_of_unknown_options_are_told_in_one_screen(reasons_of: ReasonsOf) -> None:
    lines = "\n".join(f'option_{number} = "{"x" * 100}"' for number in range(200))
    (reason,) = reasons_of(f"{FIO}{lines}\n")
    assert "and 195 more" in reason
    assert len(reason) < 2000


def test_hundreds_of_wrong_words_are_told_in_one_screen(reasons_of: ReasonsOf, edited: Edited) -> None:
    words = ", ".join(f'"/{number}{"x" * 1000}"' for number in range(100))
    for key in ("mount_options", "mkfs_options"):
        (reason,) = reasons_of(edited(f"{key} = [{words}]", "filesystem"))
        assert "and 95 more" in reason
        assert len(reason) < 2000


@pytest.mark.parametrize(
    "line",
    [
        "a" + ".a" * 50_000 + " = 1",
        "[" + "a." * 50_000 + "a]",
        "x = {" + "a . " * 50_000 + "a = 1}",
        '"a\\".".' * 50_000 + "a = 1",
        "'#'." * 50_000 + "a = 1",
    ],
)
def test_a_key_of_thousands_of_parts_is_refused_before_it_is_parsed(reasons_of: ReasonsOf, line: str) -> None:
    assert reasons_of(f"title = 'x'\n{line}\n") == (
        "p.toml: line 2 has a key of more than 16 parts with dots between them",
    )


@pytest.mark.parametrize(
    "line",
    [
        "x = [" + "0.1, " * 500 + "]",
        "x = '" + "a." * 500 + "'",
        'x = "' + '\\".' * 500 + '"',
        "x = 1 # " + "a." * 500,
        "x = 'a' # '" + "." * 500,
        ".".join("abcdefghijklmnop") + " = 1",
    ],
)
def test_dots_that_are_no_long_key_are_no_matter(line: str) -> None:
    assert parse_toml(line)


def test_looking_for_long_keys_is_linear_whatever_is_not_closed() -> None:
    for line in ('"' + '\\".' * 300_000, "'." * 300_000, "a" * 900_000 + "." * 20, '"a.' * 300_000):
        with pytest.raises(PlanError):
            parse_toml(line)


def test_a_text_that_is_too_large_is_not_parsed() -> None:
    with pytest.raises(PlanError, match="allowed are 1000000"):
        parse_toml("a.\n" * (MOST_CHARACTERS // 3 + 1))


def test_too_many_cells_visits_and_runs_are_refused_before_they_are_made(
    reasons_of: ReasonsOf, minimal: str
) -> None:
    def levels(count: int) -> str:
        return f"{{ vary = [{', '.join(str(64 + number) for number in range(count))}] }}"

    cells = f"{minimal}[postgresql.settings]\nwork_mem = {levels(20_001)}\n"
    (reason,) = reasons_of(cells)
    assert "20001 cells" in reason
    visits = f"repetitions = 10\n{minimal}[postgresql.settings]\nwork_mem = {levels(10_001)}\n"
    (reason,) = reasons_of(visits)
    assert "100010 visits; allowed are 100000" in reason
    runs = minimal.replace('"10 s"', levels(1000)) + f"[postgresql.settings]\nwork_mem = {levels(101)}\n"
    (reason,) = reasons_of(runs)
    assert "505000 runs; allowed are 500000" in reason


@pytest.mark.parametrize(
    ("kind", "key", "words"),
    [
        ("ext4", "mount_options", '"errors=panic"'),
        ("ext2", "mount_options", '"noatime", "errors=Panic"'),
        ("btrfs", "mount_options", '"fatal_errors=panic"'),
        ("jfs", "mount_options", '"errors=panic"'),
        ("nilfs2", "mount_options", '"errors=panic"'),
        ("f2fs", "mount_options", '"errors=panic"'),
        ("xfs", "mount_options", '"panic_on_error"'),
        ("ext4", "mkfs_options", '"-e", "panic"'),
        ("ext3", "mkfs_options", '"-E", "errors=panic"'),
        ("ext4", "mkfs_options", '"-E", "mount_opts=errors=panic"'),
        ("zfs", "mkfs_options", '"-o", "failmode=panic"'),
    ],
)
def test_no_option_lets_a_file_system_stop_the_machine(
    reasons_of: ReasonsOf, minimal: str, kind: str, key: str, words: str
) -> None:
    text = minimal.replace('type = "ext4"', f'type = "{kind}"\n{key} = [{words}]')
    assert any("would stop the whole machine" in reason for reason in reasons_of(text))


def test_an_error_that_stops_the_file_system_alone_may_be_asked_for(minimal: str, tmp_path: Path) -> None:
    for words in ('mount_options = ["errors=remount-ro"]', 'mkfs_options = ["-e", "continue"]'):
        assert taken_to_the_end(minimal.replace('type = "ext4"', f'type = "ext4"\n{words}'), tmp_path)
