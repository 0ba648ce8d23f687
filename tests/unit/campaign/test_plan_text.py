"""One key is changed in a plan's text, and nothing else."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.campaign.planning import with_executor, with_repetitions
from bedplate.errors import PlanError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("repetitions = 2\nseed = 1\n", "repetitions = 5 \nseed = 1\n"),
        ("seed = 1 # one\nrepetitions=2 # few\n", "seed = 1 # one\nrepetitions = 5 # few\n"),
        ('  "repetitions" = 0x2\n', "repetitions = 5 \n"),
        ("seed = 1\n[canary]\nenabled = false\n", "repetitions = 5\nseed = 1\n[canary]\nenabled = false\n"),
        ("", "repetitions = 5\n"),
        # What only looks like the key is left alone.
        (
            'title = """\nrepetitions = 3\n"""\nrepetitions = 2\n',
            'title = """\nrepetitions = 3\n"""\nrepetitions = 5 \n',
        ),
        (
            'title = """\nrepetitions = 3\n"""\n',
            'repetitions = 5\ntitle = """\nrepetitions = 3\n"""\n',
        ),
        ("[other]\nrepetitions = 9\n", "repetitions = 5\n[other]\nrepetitions = 9\n"),
        ("# repetitions = 4\nrepetitions = 2", "# repetitions = 4\nrepetitions = 5 "),
    ],
)
def test_only_the_key_changes(text: str, expected: str) -> None:
    assert expected == with_repetitions(text, 5)


def test_what_cannot_be_changed_for_certain_is_refused_with_the_way_out() -> None:
    with pytest.raises(PlanError, match=r"write `repetitions = 5`.*--plan"):
        with_repetitions('"rep\\u0065titions" = 2\n', 5)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["title", "seed", "note", "repetitions"]), st.integers(0, 99), max_size=4
    ),
    st.text(st.sampled_from("repetitions =#0123\t\n"), max_size=30),
    st.integers(1, 1000),
)
def test_the_meaning_is_the_same_but_for_the_repetitions(
    values: dict[str, int], noise: str, repetitions: int
) -> None:
    text = "".join(f"{key} = {value}\n" for key, value in values.items())
    comment = "".join(f"# {line}\n" for line in noise.splitlines())
    text = f"{comment}{text}[table]\nrepetitions = 7\n"
    changed = with_repetitions(text, repetitions)
    assert {**tomllib.loads(text), "repetitions": repetitions} == tomllib.loads(changed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('executor = "local" # mine\nseed = 1\n', 'executor = "qemu" # mine\nseed = 1\n'),
        ("[canary]\n", 'executor = "qemu"\n[canary]\n'),
        ('title = "executor = 1"\n', 'executor = "qemu"\ntitle = "executor = 1"\n'),
    ],
)
def test_an_executor_is_written_into_the_text(text: str, expected: str) -> None:
    assert expected == with_executor(text, "qemu")


def test_an_executor_that_cannot_be_written_for_certain_is_refused() -> None:
    with pytest.raises(PlanError, match=r"--executor qemu by itself; write `executor = \"qemu\"`"):
        with_executor('"\\u0065xecutor" = "local"\n', "qemu")
