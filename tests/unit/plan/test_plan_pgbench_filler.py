"""Text that does not compress in pgbench's filler columns."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import pytest

from bedplate.errors import PlanError, VisitFailed
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan
from bedplate.plan.expand import expand
from bedplate.workloads.pgbench.visit import demand_random, load_random

LoadText = Callable[[str], Plan]
TEXT = '[[filesystem]]\ntype = "ext4"\n[[workload]]\ntype = "pgbench"\n'


class _Server:
    """Answers with one text, and remembers what it was told."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.told: list[str] = []

    def execute(self, statement: str) -> None:
        self.told.append(statement)

    def value(self, statement: str) -> str:
        self.told.append(statement)
        return self.text


def _rows(count: int) -> str:
    digests = (hashlib.sha512(f"7 {row}".encode()).digest() for row in range(count))
    return "".join(base64.b64encode(digest).decode()[:84] for digest in digests)


def test_every_table_has_as_many_rows_as_pgbench_makes() -> None:
    server = _Server()
    load_random(server, 3, seed=7)  # type: ignore[arg-type]
    assert ["pgbench_branches", "pgbench_tellers", "pgbench_accounts"] == [
        told.split()[2] for told in server.told
    ]
    assert ["(1, 3)", "(1, 30)", "(1, 300000)"] == [
        told[told.index("series") + 6 : told.index(" AS row")] for told in server.told
    ]
    assert all("'7 ' || row" in told for told in server.told)


def test_random_letters_pass_and_blanks_do_not() -> None:
    assert 0.7 < demand_random(_Server(_rows(2000))) < 0.85  # type: ignore[arg-type]
    for text in (" " * 84_000, "", "0123456789abcdef" * 5000):
        with pytest.raises(VisitFailed, match="so it is not random"):
            demand_random(_Server(text))  # type: ignore[arg-type]


def test_filler_makes_a_dataset_of_its_own_and_blanks_are_none(
    load_text: LoadText, machine: Callable[..., Machine]
) -> None:
    text = f'{TEXT}scale = {{ vary = [5, 10] }}\nfiller = {{ vary = ["blank", "random"] }}\n'
    (cell,) = expand(load_text(text), machine()).cells
    assert [(5, None), (5, "random"), (10, None), (10, "random")] == [
        (load.dataset.levels["scale"], load.dataset.levels.get("filler")) for load in cell.loads
    ]
    plain = expand(load_text(f"{TEXT}scale = 5\n"), machine()).cells[0].loads[0].dataset
    assert plain == cell.loads[0].dataset
    assert "filler random" in cell.loads[1].dataset.words


def test_the_same_scale_by_two_ways_is_still_an_error(load_text: LoadText) -> None:
    text = f'[machine]\nmemory = "1 GB"\n{TEXT}filler = "random"\nscale = '
    # What a gigabyte holds; the plan's own image is sized by it.
    assert load_text(f'{text}{{ vary = [69, "1x memory"] }}\n')
    with pytest.raises(PlanError, match="two scales come to 70"):
        load_text(f'{text}{{ vary = [70, "1x memory"] }}\n')


def test_a_dump_has_no_filler_of_pgbench(load_text: LoadText) -> None:
    with pytest.raises(PlanError, match=r"dump"):
        load_text(f'{TEXT}dump = "x.dump"\nfiller = "random"\n')
