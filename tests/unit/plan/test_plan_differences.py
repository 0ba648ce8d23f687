from __future__ import annotations

from collections.abc import Callable

import pytest

from bedplate.model.plan import Plan
from bedplate.plan.differences import differences, obstacles_to_extend

LoadText = Callable[[str], Plan]
Edited = Callable[..., str]


def test_comments_title_and_the_order_of_levels_make_no_difference(load_text: LoadText, minimal: str) -> None:
    old = load_text(minimal.replace('"ext4"', '{ vary = ["ext4", "xfs"] }'))
    new = load_text(
        minimal.replace('"ext4"', '{ vary = ["xfs", "ext4"] } # both').replace("minimal", "other")
    )
    assert differences(old, new) == ()
    assert old.digest == new.digest


@pytest.mark.parametrize(
    ("table", "line", "expected"),
    [
        ("", "repetitions = 7", "repetitions: was 5, is 7"),
        ("", "seed = 2", "seed: was 1, is 2"),
        (
            "scratch_device",
            'image_size = "6 GB"',
            "scratch_device: was an image of 4 GiB, is an image of 6 GiB",
        ),
        ("filesystem", 'type = { vary = ["ext4", "xfs"] }', "cells added: xfs-pg8k-"),
        ("canary", "enabled = false", "canary.enabled: was true, is false"),
        ("canary", 'every = "1 h"', "canary.every: was 2 h 00 min, is 1 h 00 min"),
        ("canary", 'filesystem = "ext4"', "canary.filesystem: was not asked for, is ext4"),
        ("workload", "scale = { vary = [10, 20] }", "workload pgbench at scale 20: added"),
        (
            "workload.run",
            'duration = "11 s"',
            "workload pgbench at scale 10: run read-only: duration_s: was 10.0, is 11.0",
        ),
        (
            "workload.run",
            "rate = 5",
            "workload pgbench at scale 10: run read-only: rate_tps: was not asked for, is 5.0",
        ),
        ("workload.run", 'name = "x"', "workload pgbench at scale 10: run read-only taken out"),
    ],
)
def test_a_difference_is_named_and_changes_the_digest(
    *, load_text: LoadText, minimal: str, edited: Edited, table: str, line: str, expected: str
) -> None:
    old, new = load_text(minimal), load_text(edited(line, table))
    assert differences(old, new)[0].startswith(expected)
    assert old.digest != new.digest
    assert differences(old, old) == ()


def test_a_changed_cell_is_one_added_and_one_taken_out(load_text: LoadText, minimal: str) -> None:
    found = differences(load_text(minimal), load_text(minimal.replace('"ext4"', '"xfs"')))
    assert ["cells added", "cells taken out"] == [sentence.split(":")[0] for sentence in found]


def test_the_order_of_runs_is_a_difference(load_text: LoadText, minimal: str) -> None:
    run = minimal[minimal.index("[[workload.run]]") :]
    second = f'{run}name = "second"\n'
    first = minimal[: minimal.index("[[workload.run]]")]
    old, new = load_text(first + run + second), load_text(first + second + run)
    assert differences(old, new) == ("workload pgbench at scale 10: the runs come in another order",)
    assert old.digest != new.digest


def test_more_repetitions_and_cells_are_an_extension(
    load_text: LoadText, minimal: str, edited: Edited
) -> None:
    old = load_text(minimal)
    new = load_text(edited("repetitions = 9").replace('"ext4"', '{ vary = ["ext4", "xfs"] }'))
    assert obstacles_to_extend(old, new) == ()
    assert len(differences(old, new)) == 2


def test_anything_else_is_an_obstacle(load_text: LoadText, minimal: str, edited: Edited) -> None:
    old = load_text(edited("repetitions = 9"))
    new = load_text(minimal.replace('"ext4"', '"xfs"').replace("scale = 10", "scale = 20"))
    starts = [
        "workload pgbench at scale 10: taken out",
        "workload pgbench at scale 20: added",
        "repetitions: was 9, is 5",
        "cells taken out: ext4-pg8k-",
        "the canary would move from ext4 to xfs",
    ]
    found = obstacles_to_extend(old, new)
    assert len(starts) == len(found)
    assert all(sentence.startswith(start) for start, sentence in zip(starts, found, strict=True))


def test_a_canary_that_would_move_can_be_held(load_text: LoadText, minimal: str) -> None:
    xfs = minimal.replace('"ext4"', '"xfs"')
    both = minimal.replace('"ext4"', '{ vary = ["ext4", "xfs"] }')
    assert len(obstacles_to_extend(load_text(xfs), load_text(both))) == 1
    held = '[canary]\nfilesystem = "xfs"\n'
    assert obstacles_to_extend(load_text(xfs + held), load_text(both + held)) == ()


def test_hundreds_of_cells_are_named_in_part(load_text: LoadText, minimal: str) -> None:
    levels = list(range(300))
    new = load_text(f"{minimal}[postgresql.settings]\nwork_mem = {{ vary = {levels} }}\n")
    (added, _) = differences(load_text(minimal), new)
    assert added.endswith("and 295 more")
