"""`scripts` and `variables` of a pgbench run: what they come to, what pgbench is given, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from bedplate.model.cell import Dataset
from bedplate.model.levels import Levels
from bedplate.model.plan import Plan, model_of
from bedplate.plan.differences import differences
from bedplate.workloads.pgbench.model import RunScript, scripts_of, variables_of, writes
from bedplate.workloads.pgbench.visit import _script_options

if TYPE_CHECKING:
    from bedplate.visit.recording import VisitContext

LoadText = Callable[..., Plan]
ReasonsOf = Callable[..., tuple[str, ...]]
_VARIABLES = "variables = { warehouses = 100 }"
_READ = "\\set id random(1, :warehouses)\nSELECT :id;\n"
_WRITE = "UPDATE t SET n = n + 1;\n"


@pytest.fixture
def plan_text(minimal: str, tmp_path: Path) -> Callable[[str], str]:
    """The minimal plan with these lines for its run, and two scripts beside it."""
    (tmp_path / "read.sql").write_text(_READ)
    (tmp_path / "write.sql").write_text(_WRITE)
    return lambda lines: minimal.replace('script = "read-only"', lines)


def test_several_scripts_keep_their_order_weights_and_texts(
    load_text: LoadText, plan_text: Callable[[str], str]
) -> None:
    lines = (
        'scripts = ["read.sql@3", "write.sql", "read-only@2"]\nvariables = { warehouses = 100, kind = "big" }'
    )
    plan = load_text(plan_text(lines))
    (run,) = plan.workloads[0].runs
    assert run.name == "read=3-write=1-read-only=2"
    assert scripts_of(run.levels) == (
        RunScript("read", _READ, 3),
        RunScript("write", _WRITE, 1),
        RunScript("read-only", None, 2),
    )
    assert {"warehouses": 100, "kind": "big"} == variables_of(run.levels)
    assert {"read.sql": _READ, "write.sql": _WRITE} == plan.files
    shown = model_of("pgbench").in_a_plan(run.levels)
    assert ("read@3, write@1, read-only@2", 100) == (
        shown["run.scripts"],
        shown["run.variables.warehouses"],
    )
    assert "run.script" not in shown


def test_a_list_of_scripts_is_one_level_and_several_lists_vary(
    load_text: LoadText, plan_text: Callable[[str], str]
) -> None:
    lines = 'scripts = { vary = [["read.sql@9", "write.sql"], ["read.sql", "write.sql"]] }\n' + _VARIABLES
    names = [run.name for run in load_text(plan_text(lines)).workloads[0].runs]
    assert ["read=9-write=1", "read=1-write=1"] == names


def test_another_weight_is_another_run_and_a_changed_text_is_told_without_the_text(
    load_text: LoadText, plan_text: Callable[[str], str], tmp_path: Path
) -> None:
    named = 'name = "mix"\nscripts = ["read.sql@{}", "write.sql"]\n{}'
    first = load_text(plan_text(named.format(3, _VARIABLES)))
    second = load_text(plan_text(named.format(4, _VARIABLES)))
    (weight,) = differences(first, second)
    assert "run mix: script_1_weight" in weight
    (tmp_path / "write.sql").write_text("DELETE FROM t;\n")
    (told,) = differences(second, load_text(plan_text(named.format(4, _VARIABLES))))
    assert "the text of the script changed" in told
    assert "DELETE" not in told


def test_pgbench_is_given_every_script_with_its_weight_and_every_variable(tmp_path: Path) -> None:
    levels = Levels(
        script="several",
        script_1="own",
        script_1_weight=3,
        script_1_text="SELECT :scale;",
        script_2="read-write",
        script_2_weight=1,
        variable_n=7,
    )
    spec = SimpleNamespace(levels=levels, id="mix-1")
    context = SimpleNamespace(log_directory=tmp_path, dataset=Dataset("pgbench", Levels(scale=5)))
    options = list(_script_options(spec, cast("VisitContext", context)))  # type: ignore[arg-type]
    own = tmp_path / "mix-1-1.sql"
    assert ["--scale=5", "--define=n=7", f"--file={own}@3", "--builtin=tpcb-like@1"] == options
    assert own.read_text() == "SELECT :scale;"


def test_one_script_is_given_as_before_there_were_several(tmp_path: Path) -> None:
    spec = SimpleNamespace(levels=Levels(script="read-only"), id="reads-1")
    context = SimpleNamespace(log_directory=tmp_path, dataset=Dataset("pgbench", Levels(scale=5)))
    assert ["--builtin=select-only"] == list(_script_options(spec, cast("VisitContext", context)))  # type: ignore[arg-type]
    assert scripts_of(Levels(script="mine.sql", script_text="SELECT 1")) == (
        RunScript("mine.sql", "SELECT 1"),
    )


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ((RunScript("read-only"), RunScript("read-only", None, 3)), False),
        ((RunScript("own", _READ), RunScript("read-write")), True),
        # What a function in a SELECT does, only the run shows.
        ((RunScript("own", "SELECT 1;"), RunScript("read-only")), None),
    ],
)
def test_one_that_writes_makes_the_run_write(
    scripts: tuple[RunScript, ...], *, expected: bool | None
) -> None:
    assert writes(scripts) is expected


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('scripts = ["read.sql@0", "write.sql"]', "a weight is a whole number from 1 to 9999"),
        ('scripts = ["read.sql@-1", "write.sql"]', "a weight is a whole number"),
        ('scripts = ["read.sql@heavy", "write.sql"]', "a weight is a whole number"),
        ('scripts = ["read.sql@1.5", "write.sql"]', "a weight is a whole number"),
        ('scripts = ["read.sql@10000", "write.sql"]', "a weight is a whole number"),
        ('scripts = ["read.sql@3", "none.sql"]', "there is no such file"),
        ('scripts = ["read.sql@3", "../write.sql"]', "outside of the plan's directory"),
        (f'scripts = ["read.sql@3", "{"a" * 10_000}"]', "allowed is a path relative to the plan"),
        ('scripts = ["read.sql@3", 7]', "or the path of an own script"),
        ('scripts = ["read.sql@3", "read.sql@1"]', "2 scripts are called read"),
        ('scripts = ["read.sql@3"]', "a list of 2 to 100 scripts"),
        ('scripts = "read.sql@3"', "a list of 2 to 100 scripts"),
        ("", "script or scripts: one of them is needed"),
        ('script = "read-only"\nscripts = ["read.sql", "write.sql"]', "script or scripts: one of them"),
        ('script = "read-only"\nvariables = { scale = 3 }', "which are set anyway"),
        ('script = "read-only"\nvariables = { "a b" = 3 }', "a name is 1 to 60 letters"),
        ('script = "read-only"\nvariables = { a = true }', "allowed is a number, or a text"),
        ('script = "read-only"\nvariables = { a = "1; DROP TABLE t" }', "allowed is a number, or a text"),
        ('script = "read-only"\nvariables = 7', "allowed is a table"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    lines: str, words: str, plan_text: Callable[[str], str], reasons_of: ReasonsOf
) -> None:
    (reason,) = reasons_of(plan_text(lines))
    assert words in reason
    assert len(reason) < 700
